"""A file that a command writes for a person: a new one, whole or not there."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from changectl.core.errors import InputError, Problem


def write_new(file: Path, text: str, *, private: bool, hint: str) -> None:
    """Write a new file.

    Args:
        file: where.
        text: what.
        private: whether nobody else may read it: it holds what users wrote, or how hosts are configured.
        hint: what to do where there is such a file.

    Raises:
        InputError: there is such a file already, which stays as it is; or it cannot be written, and is not there.
    """

    def create(path: str, flags: int) -> int:
        return os.open(path, flags, 0o600 if private else 0o666)

    try:
        with open(file, "x", encoding="utf-8", newline="\n", opener=create) as stream:
            try:
                stream.write(text)
                stream.flush()
            except BaseException:
                with suppress(OSError):
                    file.unlink()
                raise
    except FileExistsError:
        problem = Problem("this file exists already, and nothing is overwritten", str(file), hint=hint)
        raise InputError(problem) from None
    except OSError as error:
        raise InputError(Problem(f"cannot be written: {error.strerror or error}", str(file))) from None

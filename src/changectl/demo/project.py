"""The demo's folder: the example project with this machine's paths and port filled in, and a model."""

from __future__ import annotations

import json
import shlex
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path, PurePath

from changectl.core.errors import InputError

MARKER = ".made-by-changectl-demo"
MODEL_SIZE = (
    "medium"  # an answer costs tens of milliseconds on one core: long enough to measure, short enough to wait for
)
_SCRIPT = PurePath("service/run-chat")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_demo(folder: Path) -> bool:
    """Whether an earlier demo made this folder."""
    return (folder / MARKER).is_file()


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds something else.

    Raises:
        InputError: it exists, is not empty, and no demo made it.
    """
    if folder.exists() and not is_demo(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists and no demo made it: choose another place with --dir")


def write_project(folder: Path, port: int) -> None:
    """Write the project anew; what an earlier demo left there goes.

    Args:
        folder: absolute; made where it is missing.
        port: where the server will listen.

    Raises:
        InputError: the folder holds something else, or a package is missing.
        OSError: it cannot be written.
    """
    check_folder(folder)
    if is_demo(folder):
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).write_text("Everything in this folder was made by the demo, which may delete it.\n")
    values = {"DIR": str(folder), "PORT": str(port), "PYTHON": sys.executable, "SERVER": str(_server())}
    for name, text in example():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(filled(name, text, values), encoding="utf-8")
    (folder / _SCRIPT).chmod(0o755)
    _write_model(folder / "service" / "model.gguf")


def example() -> Iterator[tuple[PurePath, str]]:
    """Every file of the example project as it is shipped, with its place in the project."""
    yield from _below(files("changectl.demo") / "example", PurePath())


def filled(name: PurePath, text: str, values: Mapping[str, str]) -> str:
    """The text with every `@NAME@` replaced; quoted as the file's syntax wants it."""
    quote: Callable[[str], str] = shlex.quote if name == _SCRIPT else _inside_yaml_quotes
    for word, value in values.items():
        text = text.replace(f"@{word}@", quote(value))
    return text


def _inside_yaml_quotes(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


def _below(folder: Traversable, inside: PurePath) -> Iterator[tuple[PurePath, str]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            yield from _below(entry, inside / entry.name)
        else:
            yield inside / entry.name, entry.read_text(encoding="utf-8")


def _server() -> Path:
    return Path(__file__).resolve().with_name("llama_server.py")


def _write_model(path: Path) -> None:
    # Both come with the extra `demo` only: without it, a sentence is better than a traceback.
    for package in ("xllamacpp", "gguf"):
        if find_spec(package) is None:
            raise InputError(f"the demo needs the package {package}: pip install 'changectl[demo]'")
    from changectl.demo.tinymodel import write_gguf

    write_gguf(path, MODEL_SIZE, name="chat")

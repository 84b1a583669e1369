"""The end of a trial whose change must not stay."""

from __future__ import annotations

from changectl.core.judging.judgement import Judgement


class NotKept(Exception):
    """The change must not stay; `reason` is a stable word, the text says why."""

    def __init__(self, reason: str, text: str, judgement: Judgement | None = None) -> None:
        super().__init__(text)
        self.reason = reason
        self.judgement = judgement

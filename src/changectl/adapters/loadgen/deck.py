"""Which request of a closed level is next: a conversation's next turn, or else the next entry of the workload."""

from __future__ import annotations

from collections import deque
from typing import Deque, List, Optional, Tuple

from changectl.adapters.loadgen.job import Item


class Deck:
    """The workload of one level, dealt round after round.

    A turn can only be sent when the one before it is answered, for the answer is part of it. It goes out next then, on
    the stream that has just got the answer, so that a level sends as many requests at a time as it is to, whatever
    they are. After a failed turn a conversation cannot go on: its other turns are not sent.
    """

    def __init__(self, workload: List[Item]) -> None:
        self._workload = workload
        self._dealt = 0
        self._waiting: Deque[Tuple[Item, int]] = deque()
        self._closed = False

    def take(self) -> Optional[Tuple[Item, int]]:
        """The next request, and the round in which its entry was dealt; None: there is none, nothing more is dealt."""
        if self._waiting:
            return self._waiting.popleft()
        if self._closed:
            return None
        number, self._dealt = self._dealt, self._dealt + 1
        return self._workload[number % len(self._workload)], number // len(self._workload)

    def answered(self, item: Item, round_number: int, answer: str) -> None:
        """A request got this good answer; a conversation goes on with it."""
        if item.follow_ups:
            self._waiting.append((item.followed(answer), round_number))

    @property
    def between_rounds(self) -> bool:
        """Whether the next request would be the first one of another round."""
        return not self._waiting and not self._closed and self._dealt > 0 and self._dealt % len(self._workload) == 0

    def close(self) -> None:
        """Deal nothing more; conversations that have begun go on to their end."""
        self._closed = True

"""The real clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Fulfils core.ports.Clock."""

    def now(self) -> str:
        """ISO 8601 in UTC with microseconds."""
        return datetime.now(UTC).isoformat(timespec="microseconds")

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

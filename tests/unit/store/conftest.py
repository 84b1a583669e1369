from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from changectl.store import open_store
from changectl.store.store import Store


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "state" / "changectl.db"


@pytest.fixture
def store(database: Path) -> Iterator[Store]:
    with open_store(database, busy_seconds=0.3) as opened:
        yield opened

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.store.records import Record, build

from changectl.store import open_store
from changectl.store.store import Store


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "state" / "changectl.db"


@pytest.fixture
def store(database: Path) -> Iterator[Store]:
    with open_store(database, busy_seconds=0.3) as opened:
        yield opened


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A record for an audit, to be copied."""
    return build(tmp_path_factory.mktemp("whole") / "state")


@pytest.fixture
def record(whole: Record, tmp_path: Path) -> Record:
    """A copy of it, to be tampered with."""
    return whole.copy(tmp_path / "state")

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from changectl.store.store import Store

PAGE = Path(__file__).parents[3] / "docs/reference/journal.md"


def test_the_documented_check_accepts_a_journal_and_finds_a_change(
    store: Store, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for number in range(3):
        store.journal.append("r1", "note", {"number": number, "text": "\u00e9\u4e2d"}, step=number)
    monkeypatch.chdir(database.parent)

    exec(code, {})

    raw = sqlite3.connect(database, isolation_level=None)
    raw.execute("DROP TRIGGER event_never_changes")
    raw.execute("UPDATE event SET step = 9 WHERE sequence = 2")
    raw.close()
    with pytest.raises(AssertionError):
        exec(code, {})

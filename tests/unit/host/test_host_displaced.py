"""A file of somebody else that a killed call displaced: it is named, and nothing of ours ever removes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure


def left(host: Any, place: Path, data: bytes) -> None:
    """As if a call had been killed that exchanged "old" with "new" through this place."""
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(data)
    given = str(place).removesuffix(".displaced")
    line = {"event": "write.intent", "resolved": str(host.etc / "a.conf"), "temporaries": [given]}
    with (host.run_folder / "events.jsonl").open("a") as out:
        out.write(json.dumps(line) + "\n")


def listed(host: Any) -> dict[str, Any]:
    [item] = [item for item in host.call("leftovers")["items"] if item["what"] == "temporary"]
    return dict(item)


@pytest.mark.parametrize("lies", ["etc/.a.conf.changectl-1-abc", "etc/.a.conf.changectl-1-abc.displaced",
                                   "swap/1-abc", "swap/1-abc.displaced"])  # fmt: skip
def test_somebody_elses_displaced_file_is_named_and_outlives_every_tidying_up(host: Any, lies: str) -> None:
    host.edited()
    folder, name = lies.split("/")
    where = (host.etc if folder == "etc" else host.run_folder / folder) / name
    left(host, where, b"theirs")
    host.give_back()

    item = listed(host)
    assert (item["place"], item["removable"]) == (str(where), False)
    assert f"compare it with {host.etc / 'a.conf'}, and move it back" in item["how"]
    for call in ("cleanup", "forget"):
        with pytest.raises(Failure) as caught:
            host.call(call)
        assert (caught.value.reason, caught.value.details["kept"]) == ("displaced", [str(where)])
    assert where.read_bytes() == b"theirs"

    where.replace(host.etc / "a.conf")
    assert host.call("forget")["changed"]


def test_a_copy_of_our_own_bytes_goes(host: Any) -> None:
    path = host.edited()
    host.write(path, b"old", b"new")
    where = host.etc / ".a.conf.changectl-1-abc.displaced"
    event = next(event for event in host.events() if event["event"] == "write.intent")
    with (host.run_folder / "events.jsonl").open("a") as out:
        out.write(json.dumps({**event, "temporaries": [str(where).removesuffix(".displaced")]}) + "\n")
    where.write_bytes(b"old")
    host.give_back()

    assert (listed(host)["removable"], listed(host)["how"]) == (True, "cleanup")
    host.call("cleanup")
    assert not where.exists()

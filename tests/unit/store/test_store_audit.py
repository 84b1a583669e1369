"""What an audit finds on real databases, by the program and by the stand-alone verifier, which must not disagree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.store.auditors import Found, agreed, by_program, by_verifier, examined
from tests.unit.store.records import CUT, KEPT, REVERTED, Record, act, close_ranks, unguarded

from changectl.store import open_store

Damage = Callable[[Record], None]


def change(statement: str, *values: Any, rehash: bool = False, guards: bool = True) -> Damage:
    def damage(record: Record) -> None:
        with unguarded(record.path, put_back=guards) as raw:
            raw.execute(statement, values)
            if rehash:
                close_ranks(raw)

    return damage


def one_bit(of: Callable[[Record], Path], at: int = -1) -> Damage:
    def damage(record: Record) -> None:
        data = bytearray(of(record).read_bytes())
        data[at] ^= 1
        of(record).write_bytes(data)

    return damage


def half_the_file(record: Record) -> None:
    data = record.path.read_bytes()
    record.path.write_bytes(data[: len(data) // 8192 * 4096])


NOTHING: Found = set()
OUTCOME = f"DELETE FROM event WHERE kind = 'write.outcome' AND run = '{KEPT}'"
SOUND, LINKED, BROKEN = ["linked", "complete"], ["linked", "not complete"], ["not linked", "not complete"]


def test_a_sound_record_is_linked_complete_and_witnessed_up_to_the_newest_head(record: Record) -> None:
    words, found = agreed(record)
    newest = record.heads["gpu1"][-1]["sequence"]

    assert (words, found) == ([*SOUND, f"witnessed up to event {newest}"], NOTHING)
    (cut,) = examined(record).open_runs
    assert (cut.run, [intent.action for intent in cut.begun]) == (CUT, ["restart"])


def test_without_hosts_nobody_witnesses_it_and_it_says_so(record: Record) -> None:
    assert agreed(record, heads=False) == ([*SOUND, "not witnessed"], NOTHING)


# What is done, what is found where, and the first two words of the verdict; without any host.
ALONE: dict[str, tuple[Damage, Found, list[str]]] = {
    "a body": (change("UPDATE event SET body = x'7b7d' WHERE sequence = 2"), {("changed_event", 2)}, BROKEN),
    "a time": (change("UPDATE event SET at = 'now' WHERE sequence = 9"), {("changed_event", 9)}, BROKEN),
    "the first event": (
        change("DELETE FROM event WHERE sequence = 1"), {("missing_event", 2), ("broken_link", 2)}, BROKEN,
    ),
    "replaced": (
        change("REPLACE INTO event SELECT sequence, run, step, kind, at, x'7b7d', prev, hash FROM event "
               "WHERE sequence = 2"), {("changed_event", 2)}, BROKEN,
    ),
    "an outcome, all hashes anew": (change(OUTCOME, rehash=True), {
        ("intent_without_outcome", 6), ("rewritten", 10),
    }, LINKED),
    "no JSON": (change("UPDATE event SET body = x'ff' WHERE sequence = 2"),
                {("changed_event", 2), ("malformed_event", 2)}, BROKEN),
    "a list": (change("UPDATE event SET body = x'5b5d' WHERE sequence = 2"),
               {("changed_event", 2), ("malformed_event", 2)}, BROKEN),
    "a deep body": (change("UPDATE event SET body = ? WHERE sequence = 2", b"[" * 200_000),
                    {("changed_event", 2), ("malformed_event", 2)}, BROKEN),
    "text where bytes belong": (change("UPDATE event SET body = CAST(body AS TEXT) WHERE sequence = 2"),
                                {("malformed_event", 2)}, BROKEN),
    "a run that no query finds": (change("UPDATE event SET run = CAST(run AS BLOB) WHERE sequence = 2"),
                                  {("malformed_event", 2)}, BROKEN),
    "no text": (change("UPDATE event SET kind = x'ff00fe' WHERE sequence = 2"),
                {("malformed_event", 2), ("changed_event", 2)}, BROKEN),
    "a step that is none": (change("UPDATE event SET step = 'x' WHERE sequence = 9"),
                            {("malformed_event", 9), ("changed_event", 9)}, BROKEN),
    "guards that are gone": (change("SELECT 1", guards=False), {("guard_missing", None)}, SOUND),
    "evidence gone": (lambda record: record.blob.unlink(), set(), LINKED),
    "evidence changed": (one_bit(lambda record: record.blob), set(), LINKED),
    "evidence emptied": (lambda record: record.blob.write_bytes(b"") and None, set(), LINKED),
    "a copy gone": (lambda record: record.snapshot.unlink(), set(), LINKED),
    "a copy's form": (one_bit(lambda record: record.snapshot, 3), set(), LINKED),
    "the table gone": (change("DROP TABLE event", guards=False),
                       {("guard_missing", None), ("damaged_database", 1)}, BROKEN),
    "half a file": (half_the_file, set(), BROKEN),
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_what_shows_without_any_host(record: Record, name: str) -> None:
    damage, expected, start = ALONE[name]
    damage(record)

    words, found = agreed(record, heads=False)

    assert words == [*start, "not witnessed"]
    assert found >= expected
    assert found - {("guard_missing", None)} or expected == {("guard_missing", None)}


def anew(statement: str) -> Damage:
    """All hashes computed anew, and no body left that tells an earlier one: only somebody else can know."""

    def damage(record: Record) -> None:
        with unguarded(record.path) as raw:
            raw.execute(statement)
            raw.execute("""UPDATE event SET body = CAST(replace(CAST(body AS TEXT), '"head"', '"hat"') AS BLOB)""")
            close_ranks(raw)

    return damage


def forget(run: str) -> Damage:
    def damage(record: Record) -> None:
        record.heads["gpu1"] = [head for head in record.heads["gpu1"] if head["run"] != f"{run}.1"]

    return damage


# What nobody can see in the record alone, and what it is once hosts are heard.
BY_WITNESS: dict[str, tuple[Damage, Found, list[str]]] = {
    "a body": (anew("UPDATE event SET body = x'7b7d' WHERE sequence = 2"),
               {("rewritten", head) for head in (4, 10, 17, 23, 30)}, ["not witnessed"]),
    "a whole run but the first": (anew(f"DELETE FROM event WHERE run = '{REVERTED}'"),
                                  {("unknown_run", 17), ("unknown_run", 23), ("lines_gone", 30)},
                                  ["witnessed up to event 10"]),
    "the last rows": (change("DELETE FROM event WHERE sequence > 13"),
                      {("unknown_run", 17), ("unknown_run", 23), ("unknown_run", 30)}, ["witnessed up to event 10"]),
    "the last rows of a run": (change("DELETE FROM event WHERE sequence > 28"), {("lines_gone", 30)},
                               ["witnessed up to event 23"]),
    "all rows": (change("DELETE FROM event"),
                 {("unknown_run", head) for head in (4, 10, 17, 23, 30)}, ["not witnessed"]),
    "an arming that no host knows": (forget(REVERTED), {("not_witnessed", 18)}, ["witnessed up to event 30"]),
    "a change before a head": (change("UPDATE event SET at = 'x' WHERE sequence = 9"), {("changed_event", 9)},
                               ["witnessed up to event 4"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_WITNESS)
def test_what_shows_only_by_what_hosts_witness(record: Record, name: str) -> None:
    damage, expected, end = BY_WITNESS[name]
    damage(record)

    words, found = agreed(record)

    assert found == expected
    assert words[2:] == end
    if "changed_event" not in {problem for problem, _ in expected}:
        assert agreed(record, heads=False)[1] == NOTHING


def test_an_upstream_is_witnessed_by_its_balancers_host_alone(record: Record) -> None:
    balancer = "lb1 (upstream nginx-chat)"
    with open_store(record.path) as store:
        out = act(store, CUT, "arm", {"host": balancer, "folder": f"{CUT}.1.1"}, host=balancer, armed=True)
        later = act(store, CUT, "arm", {"folder": f"{CUT}.1"}, armed=True)
    record.heads["gpu1"].append({"at": "2026-11-30T08:26:00Z", "run": f"{CUT}.1", "what": "armed", **later})
    assert agreed(record)[1] == NOTHING  # it was not asked

    head = {"at": "2026-11-30T08:25:30Z", "run": f"{CUT}.1.1", "what": "armed", **out}
    record.heads["lb1"] = [head]
    assert agreed(record)[1] == NOTHING
    record.heads["lb1"] = [{**head, "hash": "00" * 32}]
    assert agreed(record)[1] == {("rewritten", out["sequence"])}


def test_only_the_program_has_the_key_to_look_into_saved_configurations(record: Record) -> None:
    one_bit(lambda record: record.snapshot)(record)

    words, found = by_program(record, heads=False)

    assert words == [*LINKED, "not witnessed"]
    assert [problem for problem, _ in found] == ["snapshot_changed"]
    assert by_verifier(record, heads=False) == ([*SOUND, "not witnessed"], NOTHING)


def test_without_the_key_it_is_said_once_and_missing_copies_are_still_named(record: Record) -> None:
    record.key.unlink()
    record.snapshot.unlink()

    problems = [finding.problem for finding in examined(record, heads=False).findings]

    assert sorted(problems) == ["key_missing", "snapshot_missing"]


def test_auditing_writes_nothing_into_the_folder_of_the_record(record: Record) -> None:
    def content() -> dict[str, bytes]:
        files = (path for path in record.path.parent.rglob("*") if path.is_file())
        return {path.name: path.read_bytes() for path in files if not path.name.endswith(("-shm", "-wal"))}

    before = content()
    with unguarded(record.path, put_back=False):
        pass
    tampered = record.path.read_bytes()
    agreed(record, heads=False)

    assert content() == {**before, record.path.name: tampered}

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from changectl.core.errors import ChangectlError
from changectl.core.redaction.redactor import Tripwire
from changectl.store import open_store
from changectl.store.store import Store


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def only_file(folder: Path) -> Path:
    (found,) = [path for path in folder.rglob("*") if path.is_file()]
    return found


@pytest.fixture
def loose_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("loose_umask")
def test_everything_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    database = tmp_path / "new" / "folder" / "changectl.db"
    with open_store(database) as store:
        store.journal.append("r1", "note", {})
        store.records.put_blob(b"evidence")
        store.records.put_snapshot("r1", "h1", b"saved")
        names = {path.relative_to(database.parent).parts[0] for path in database.parent.rglob("*")}
        files = [path for path in database.parent.rglob("*") if path.is_file()]
        folders = [tmp_path / "new", *(path for path in (tmp_path / "new").rglob("*") if path.is_dir())]

        assert {mode(path) for path in files} == {0o600}
        assert {mode(path) for path in folders} == {0o700}
    assert {"changectl.db", "changectl.db-wal", "changectl.db-shm", "changectl.key", "blobs", "snapshots"} <= names


def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    open_store(tmp_path / "changectl.db").close()
    assert mode(tmp_path) == 0o755


def test_a_database_that_others_can_read_is_a_finding(store: Store, database: Path) -> None:
    database.chmod(0o640)
    assert [finding.problem for finding in store.verify_chain()] == ["readable_by_others"]


def test_evidence_is_compressed_and_kept_once(store: Store, database: Path) -> None:
    data = b"line\n" * 10_000
    assert store.records.put_blob(data) == store.records.put_blob(data)
    assert store.records.get_blob(store.records.put_blob(data)) == data
    assert only_file(database.parent / "blobs").stat().st_size < 1000


def test_evidence_changed_on_disk_is_noticed_and_put_right_by_keeping_it_again(store: Store, database: Path) -> None:
    digest = store.records.put_blob(b"first")
    other = store.records.put_blob(b"second")
    place, other_place = (database.parent / "blobs" / name[:2] / name for name in (digest, other))
    for damage in (b"", b"garbage", place.read_bytes()[:-3], other_place.read_bytes()):
        place.write_bytes(damage)
        with pytest.raises(ChangectlError) as caught:
            store.records.get_blob(digest)
        assert caught.value.reason == "blob_changed"

    store.records.put_blob(b"first")
    assert store.records.get_blob(digest) == b"first"


@pytest.mark.parametrize("digest", ["../../etc/passwd", "", "A" * 64, "0" * 63])
def test_only_a_digest_is_a_name(store: Store, digest: str) -> None:
    for get in (store.records.get_blob, store.records.get_snapshot):
        with pytest.raises(ChangectlError) as caught:
            get(digest)
        assert caught.value.reason == "bad_digest"


def test_missing_evidence_is_named(store: Store) -> None:
    with pytest.raises(ChangectlError) as caught:
        store.records.get_blob("0" * 64)
    assert caught.value.reason == "blob_missing"


def test_evidence_with_a_known_secret_is_not_kept(store: Store, database: Path) -> None:
    store.guard(Tripwire({"s3cr3t!value"}))
    with pytest.raises(ChangectlError) as caught:
        store.records.put_blob(b"log: Authorization: s3cr3t!value\n")
    assert caught.value.reason == "secret_in_record"
    assert not (database.parent / "blobs").exists()


def test_saved_bytes_come_back_and_are_not_readable_on_disk(store: Store, database: Path) -> None:
    data = b"HF_TOKEN=hf_0123456789\n\x00\xff"
    digest = store.records.put_snapshot("r1", "h1", data)

    assert store.records.get_snapshot(digest) == data
    assert b"HF_TOKEN" not in only_file(database.parent / "snapshots").read_bytes()


def test_a_changed_snapshot_is_noticed(store: Store, database: Path) -> None:
    digest = store.records.put_snapshot("r1", "h1", b"saved")
    place = only_file(database.parent / "snapshots")
    sealed = place.read_bytes()
    for damage in (b"", sealed[:30], sealed[:-1] + bytes([sealed[-1] ^ 1]), b"x" + sealed[1:]):
        place.write_bytes(damage)
        with pytest.raises(ChangectlError) as caught:
            store.records.get_snapshot(digest)
        assert caught.value.reason == "snapshot_changed"


def test_a_snapshot_under_another_ones_name_is_noticed(store: Store, database: Path) -> None:
    digest = store.records.put_snapshot("r1", "h1", b"saved")
    other = store.records.put_snapshot("r1", "h1", b"other")
    folder = database.parent / "snapshots"
    (folder / digest[:2] / digest).write_bytes((folder / other[:2] / other).read_bytes())
    with pytest.raises(ChangectlError) as caught:
        store.records.get_snapshot(digest)
    assert caught.value.reason == "snapshot_changed"


def test_a_wrong_key_is_told_from_a_changed_file(store: Store, database: Path, tmp_path: Path) -> None:
    digest = store.records.put_snapshot("r1", "h1", b"saved")
    with open_store(tmp_path / "elsewhere" / "x.db") as other:
        other.records.put_snapshot("r1", "h1", b"y")

    with open_store(database, tmp_path / "elsewhere" / "changectl.key") as wrong:
        for action in (lambda: wrong.records.get_snapshot(digest), lambda: wrong.records.put_snapshot("r", "h", b"z")):
            with pytest.raises(ChangectlError) as caught:
                action()
            assert caught.value.reason == "key_wrong"


def test_a_lost_key_is_never_replaced_by_a_new_one(store: Store, database: Path) -> None:
    digest = store.records.put_snapshot("r1", "h1", b"saved")
    key = database.parent / "changectl.key"
    key.unlink()
    for action in (lambda: store.records.get_snapshot(digest), lambda: store.records.put_snapshot("r", "h", b"z")):
        with pytest.raises(ChangectlError) as caught:
            action()
        assert caught.value.reason == "key_missing"
    assert not key.exists()


@pytest.mark.parametrize("content", [b"", b"short", b"!!!", b"A" * 44])
def test_a_damaged_key_is_wrong(store: Store, database: Path, content: bytes) -> None:
    digest = store.records.put_snapshot("r1", "h1", b"saved")
    (database.parent / "changectl.key").write_bytes(content)
    with pytest.raises(ChangectlError) as caught:
        store.records.get_snapshot(digest)
    assert caught.value.reason == "key_wrong"


def test_a_key_that_others_can_read_is_refused(store: Store, database: Path) -> None:
    digest = store.records.put_snapshot("r1", "h1", b"saved")
    (database.parent / "changectl.key").chmod(0o644)
    with pytest.raises(ChangectlError) as caught:
        store.records.get_snapshot(digest)
    assert caught.value.reason == "key_exposed"


def test_the_redaction_salt_stays_the_same_and_differs_between_records(
    store: Store, database: Path, tmp_path: Path
) -> None:
    with open_store(database) as again, open_store(tmp_path / "elsewhere" / "x.db") as other:
        assert store.redaction_salt() == again.redaction_salt() != other.redaction_salt()

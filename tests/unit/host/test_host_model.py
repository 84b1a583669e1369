"""The model's files: whole or not, digests, cache, readability."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changectl_host import dispatch, facts, gguf, model


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def tiny_gguf(alignment: int = 32) -> bytes:
    pairs = [
        text("general.alignment") + struct.pack("<II", 4, alignment),
        text("general.name") + struct.pack("<I", 8) + text("tiny"),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("bc"),
        text("scores") + struct.pack("<IIQ", 9, 6, 3) + struct.pack("<fff", 1, 2, 3),
        text("flag") + struct.pack("<I?", 7, True),
    ]
    tensors = [
        text("a.weight") + struct.pack("<I", 2) + struct.pack("<QQ", 32, 2) + struct.pack("<IQ", 8, 0),
        text("b.weight") + struct.pack("<I", 1) + struct.pack("<Q", 10) + struct.pack("<IQ", 0, 96),
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs + tensors)
    head += b"\0" * (-len(head) % alignment)
    return head + b"\1" * (96 + 40)


WHOLE = tiny_gguf()


def tiny_safetensors(size: int = 8) -> bytes:
    header = json.dumps(
        {"__metadata__": {"a": "b"}, "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, size]}}
    ).encode()
    return struct.pack("<Q", len(header)) + header + b"\0" * size


def ask(path: Path, **args: Any) -> dict[str, Any]:
    return dispatch("model", {"path": str(path), **args})


def problem_of(data: bytes, folder: Path, name: str = "m.gguf") -> str | None:
    (folder / name).write_bytes(data)
    problems = ask(folder)["problems"]
    return problems[0]["problem"] if problems else None


@settings(max_examples=60)
@given(cut=st.integers(0, len(WHOLE) - 1))
def test_a_gguf_file_is_found_cut_off_wherever_it_was_cut(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.gguf"
    path.write_bytes(WHOLE[:cut])
    assert gguf.problem(str(path), cut)


@settings(max_examples=100)
@given(at=st.integers(0, len(WHOLE) - 137), value=st.integers(0, 255))
def test_no_damaged_gguf_header_breaks_the_check(at: int, value: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    path.write_bytes(WHOLE[:at] + bytes([value]) + WHOLE[at + 1 :])
    gguf.problem(str(path), len(WHOLE))


def test_whole_files_are_whole(tmp_path: Path) -> None:
    assert problem_of(WHOLE, tmp_path) is None
    assert problem_of(tiny_gguf(64), tmp_path) is None
    assert problem_of(tiny_safetensors(), tmp_path, "m.safetensors") is None


def test_damaged_safetensors_are_said_so(tmp_path: Path) -> None:
    whole = tiny_safetensors()
    for data in (whole[:-1], whole[:20], whole[:5], whole + b"x", struct.pack("<Q", 4) + b"nope"):
        assert problem_of(data, tmp_path, "m.safetensors")


def test_a_pointer_file_is_not_a_model(tmp_path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    assert "git-lfs" in str(problem_of(pointer, tmp_path, "m.safetensors"))


def test_a_shard_that_the_index_names_must_exist(tmp_path: Path) -> None:
    (tmp_path / "m-1.safetensors").write_bytes(tiny_safetensors())
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}))
    assert [item["problem"] for item in ask(tmp_path)["problems"]] == [
        "the index names m-2.safetensors, which does not exist"
    ]
    index.write_text("{}")
    assert "damaged" in ask(tmp_path)["problems"][0]["problem"]


def test_digests_are_read_once_and_known_again_by_size_and_time(tmp_path: Path) -> None:
    for name in ("a.bin", "sub/b.bin", "skip.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode() * 1000)
    seen: list[Any] = []
    first = dispatch("model", {"path": str(tmp_path), "deep": True, "exclude": ["skip*"]}, seen.append)
    assert [entry["path"] for entry in first["files"]] == ["a.bin", "sub/b.bin"]
    assert first["files"][0]["sha256"] == hashlib.sha256(b"a.bin" * 1000).hexdigest()
    assert seen[-1] == {"hashed_bytes": 14000, "total_bytes": 14000}
    known = {entry["path"]: [entry["size"], entry["mtime_ns"], entry["sha256"]] for entry in first["files"]}
    again = ask(tmp_path, deep=True, known=known, exclude=["skip*"])
    assert again["hashed_bytes"] == 0
    assert again["files"] == first["files"]
    (tmp_path / "a.bin").write_bytes(b"x" * 5000)
    assert ask(tmp_path, deep=True, known=known, exclude=["skip*"])["hashed_bytes"] == 5000


def test_links_are_followed_but_never_in_circles(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "x").write_bytes(WHOLE)
    (tmp_path / "m.gguf").symlink_to("blobs/x")
    (tmp_path / "blobs" / "up").symlink_to("..")
    (tmp_path / "gone.gguf").symlink_to("nowhere")
    found = ask(tmp_path)
    assert {entry["path"] for entry in found["files"]} == {"m.gguf", "gone.gguf", "blobs/x"}
    assert found["problems"] == [{"path": "gone.gguf", "problem": "is a link that leads nowhere"}]


def test_a_single_file_and_an_empty_folder(tmp_path: Path) -> None:
    assert ask(tmp_path)["problems"]
    path = tmp_path / "m.gguf"
    path.write_bytes(WHOLE)
    assert ask(path, deep=True)["files"][0]["sha256"] == hashlib.sha256(WHOLE).hexdigest()


def test_readable_means_the_file_and_every_folder_above_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "m.gguf"
    path.parent.mkdir()
    path.write_bytes(WHOLE)
    path.chmod(0o640)
    me, group = os.geteuid(), path.stat().st_gid
    assert not facts.readable_by(str(path), me + 4711, [group + 4711])
    path.parent.chmod(0o700)
    assert ask(path, uid=me + 4711, gids=[group])["readable_by"]["all"] is False
    path.parent.chmod(0o755)


def test_a_large_file_says_that_it_gets_on_while_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(b"x" * (64 << 20))
    told: list[dict[str, Any]] = []
    model.model({"path": str(tmp_path / "m.bin"), "deep": True}, told.append, tick=0.001)
    assert len(told) > 1
    assert [entry["hashed_bytes"] for entry in told] == sorted(entry["hashed_bytes"] for entry in told)
    assert told[-1] == {"hashed_bytes": 64 << 20, "total_bytes": 64 << 20}

"""The demo's folder: filled with this machine's facts, and never over anything else."""

from __future__ import annotations

import shlex
import socket
from pathlib import Path, PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from changectl.core.errors import InputError
from changectl.demo.project import MARKER, check_folder, example, filled, free_port, is_demo, write_project

PRINTABLE = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="@"), min_size=1)


def test_a_folder_with_something_else_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years")
    with pytest.raises(InputError, match="no demo made it"):
        write_project(tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError):
        check_folder(tmp_path / "file")


def test_missing_and_empty_folders_and_those_of_an_earlier_demo_are_taken(tmp_path: Path) -> None:
    check_folder(tmp_path / "new")
    check_folder(tmp_path)
    (tmp_path / MARKER).write_text("")
    (tmp_path / "old").write_text("")
    check_folder(tmp_path)
    assert is_demo(tmp_path)


def test_the_project_is_written_anew_with_a_model_and_no_place_left_open(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    write_project(folder, 4711)
    (folder / "service" / "chat.env").write_text("changed")
    write_project(folder, 4711)
    assert "--parallel 2 " in (folder / "service" / "chat.env").read_text()
    assert (folder / "service" / "model.gguf").read_bytes()[:4] == b"GGUF"
    assert (folder / "service" / "run-chat").stat().st_mode & 0o111
    service = YAML(typ="safe").load((folder / "inventory/services/chat.yml").read_text())
    assert service["instances"][0]["endpoint"] == "http://127.0.0.1:4711"
    assert service["manager"]["command"]["pid"] == {"file": f"{folder}/service/chat.pid"}
    for name, _ in example():
        assert not {"@DIR@", "@PORT@", "@PYTHON@", "@SERVER@"} & set((folder / name).read_text().split('"'))


@given(PRINTABLE)
def test_any_path_survives_yaml(value: str) -> None:
    text = filled(PurePath("inventory/hosts.yml"), 'python: "@PYTHON@"', {"PYTHON": value})
    assert YAML(typ="safe").load(text) == {"python": value}


@given(PRINTABLE)
def test_any_path_is_one_word_to_the_shell(value: str) -> None:
    text = filled(PurePath("service/run-chat"), "nohup @PYTHON@ --model", {"PYTHON": value})
    assert shlex.split(text) == ["nohup", value, "--model"]


def test_the_port_is_one_that_nobody_listens_on() -> None:
    port = free_port()
    with socket.socket() as mine:
        mine.bind(("127.0.0.1", port))

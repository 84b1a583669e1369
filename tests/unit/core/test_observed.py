from __future__ import annotations

import base64

import pytest

from changectl.core.errors import HostCallError
from changectl.core.observed import Capture, Hello, HostFacts, Model, Nvml, Observed, Status


def test_an_answer_is_read_with_its_types() -> None:
    content = base64.b64encode(b"A=1\n").decode()
    found = Observed.read(
        {
            "manager": {
                "unit": "chat.service",
                "show": {"Restart": "no"},
                "files": ["/u"],
                "need_daemon_reload": False,
            },
            "process": {"pid": 7, "argv": ["x"], "tree": [7, 8], "future_field": 1},
            "files": {"/u": {"exists": True, "content": content}, "/none": {"exists": False}},
            "port_owner": None,
        }
    )

    assert found.process is not None
    assert found.process.tree == [7, 8]
    assert found.content("/u") == b"A=1\n"
    assert found.content("/none") is None
    assert found.content("/never-asked") is None
    assert found.port_asked


def test_what_is_missing_stays_missing() -> None:
    found = Observed.read({"manager": {}, "process": None, "files": {}})

    assert found.process is None
    assert found.manager.need_daemon_reload is None
    assert not found.port_asked
    assert Status.read({"active": "active"}).restarts is None
    assert Hello.read({"python": "3.11.2"}).kubernetes is None
    assert HostFacts.read({}).free_bytes("/") is None
    assert Nvml.read({}).gpus is None


@pytest.mark.parametrize(
    ("kind", "answer", "place"),
    [
        (Status, {}, "active"),
        (Hello, {"kubernetes": False}, "python"),
        (Model, {"files": []}, "problems"),
        (Model, {"files": [{"size": 1}], "problems": []}, "files/0/path"),
        (Capture, {"problems": []}, "restorable"),
        (Observed, {"process": {"argv": []}}, "process/pid"),
        (Status, "up", "the answer"),
        (Observed, ["x"], "the answer"),
    ],
)
def test_a_demanded_field_that_is_missing_is_named(kind: type[Status], answer: object, place: str) -> None:
    with pytest.raises(HostCallError, match=place) as raised:
        kind.read(answer)

    assert raised.value.reason == "bad_answer"


def test_a_file_that_could_not_be_looked_at_neither_exists_nor_not() -> None:
    found = Observed.read({"files": {"/x": {"exists": None, "error": "not permitted", "reason": "not_permitted"}}})

    assert found.files["/x"].exists is None
    assert found.content("/x") is None


def test_contents_and_environments_do_not_show_in_texts() -> None:
    secret = base64.b64encode(b"TOKEN=hunter2").decode()
    found = Observed.read(
        {"process": {"pid": 1, "environ": {"TOKEN": "hunter2"}, "argv": ["--api-key", "hunter2"]},
         "files": {"/e": {"exists": True, "content": secret}}}
    )  # fmt: skip

    assert "hunter2" not in repr(found)
    assert secret not in repr(found)


def test_free_space_is_a_number_or_not_known() -> None:
    told = HostFacts.read({"disks": {"/a": {"free": 5}, "/b": 7, "/c": {"total": 1}, "/d": True}})

    assert [told.free_bytes(path) for path in ("/a", "/b", "/c", "/d", "/e")] == [5, 7, None, None, None]


def test_figures_of_the_model_come_from_the_first_file_that_has_some() -> None:
    files = [{"path": "a.json"}, {"path": "b.gguf", "facts": {"llama.block_count": 2}}]

    assert Model.read({"files": files, "problems": []}).facts() == {"llama.block_count": 2}
    assert Model.read({"files": [], "problems": []}).facts() == {}

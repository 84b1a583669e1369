"""systemd through a stand-in for its tools, and the parsers of what they print."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl_host import Failure, systemd

UNIT = {"systemd": {"unit": "chat.service"}}
# A manager in one file: the state lies beside it, `start` runs a sleeping process, `stop` ends it.
SYSTEMCTL = """#!{python}
import json, os, signal, subprocess, sys
folder = os.path.dirname(os.path.abspath(__file__))
words = [word for word in sys.argv[1:] if not word.startswith("--")]
with open(folder + "/calls", "a") as out:
    out.write(" ".join(words) + "\\n")
def state():
    try:
        return json.load(open(folder + "/state"))
    except OSError:
        return {{"pid": 0}}
now = state()
if words[0] == "show":
    place = "/proc/%d/stat" % now["pid"]
    alive = now["pid"] and os.path.exists(place) and ") Z" not in open(place).read()
    print("LoadState=loaded\\nMainPID=%d\\nNRestarts=2\\nResult=success" % (now["pid"] if alive else 0))
    print("InvocationID=4f1e\\nActiveState=" + ("active" if alive else "inactive"))
    print("FragmentPath=" + folder + "/chat.service\\nDropInPaths=" + folder + "/10.conf " + folder + "/20.conf")
    print("EnvironmentFiles=" + folder + "/env (ignore_errors=yes)\\nNeedDaemonReload=yes\\nControlGroup=")
    print("ExecStart={{ path=/bin/x ; argv[]=/bin/x --a ; }}\\nUser=nobody")
elif words[0] == "start":
    if os.path.exists(folder + "/masked"):
        sys.exit("Unit chat.service is masked.")
    child = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=-3, stderr=-3)
    json.dump({{"pid": child.pid}}, open(folder + "/state", "w"))
elif words[0] == "stop" and now["pid"]:
    os.kill(now["pid"], signal.SIGTERM)
"""
JOURNALCTL = """#!{python}
import json, sys
after = [word for word in sys.argv if word.startswith("--after-cursor")]
if "_SYSTEMD_INVOCATION_ID=4f1e" in sys.argv:
    for number in range(100_000):
        print(json.dumps({{"MESSAGE": "start %d" % number, "__CURSOR": "s"}}), flush=True)
print(json.dumps({{"MESSAGE": "later" if after else "first", "__CURSOR": "c2" if after else "c1"}}))
"""


@pytest.fixture
def tools(place: Path, monkeypatch: Any) -> Any:
    folder = place / "bin"
    folder.mkdir()
    for name, text in (("systemctl", SYSTEMCTL), ("journalctl", JOURNALCTL)):
        (folder / name).write_text(text.format(python=sys.executable))
        (folder / name).chmod(0o755)
    for name in ("chat.service", "10.conf", "20.conf", "env"):
        (folder / name).write_text(f"# {name}\n")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    yield folder
    if (folder / "state").exists():
        pid = json.loads((folder / "state").read_text())["pid"]
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)


def test_a_unit_is_restarted_in_the_right_order(host: Any, tools: Path) -> None:
    first = host.call("service", manager=UNIT, action="start")
    answer = host.call("service", manager=UNIT, action="restart", daemon_reload=True, reset_failed=True, stop_timeout=5)
    assert answer["started_pid"] != first["started_pid"]
    acts = [line for line in (tools / "calls").read_text().splitlines() if not line.startswith("show")]
    assert acts == ["start chat.service", "stop chat.service", "daemon-reload", "reset-failed chat.service",
                    "start chat.service"]  # fmt: skip
    assert host.call("service", manager=UNIT, action="stop", stop_timeout=5)["changed"]


def test_a_start_tells_where_the_journal_ended_before_it(host: Any, tools: Path) -> None:
    told = host.call("service", manager={"systemd": {"unit": "chat.service"}}, action="restart", stop_timeout=3)
    assert told["log_cursor"] == "c1"
    again = host.call("service", manager={"systemd": {"unit": "chat.service"}}, action="start")
    assert again["log_cursor"] is None, "it runs already: nothing was started"


def test_a_unit_that_systemd_refuses_to_start_is_said_so(host: Any, tools: Path) -> None:
    (tools / "masked").touch()
    with pytest.raises(Failure) as caught:
        host.call("service", manager=UNIT, action="start")
    assert caught.value.reason == "start_failed"
    assert "masked" in caught.value.message


def test_inspect_brings_the_units_files_in_effective_order(host: Any, tools: Path) -> None:
    found = host.call("inspect", manager=UNIT)
    assert [Path(path).name for path in found["manager"]["files"]] == ["chat.service", "10.conf", "20.conf"]
    assert found["manager"]["env_files"] == [{"path": str(tools / "env"), "optional": True}]
    assert found["manager"]["need_daemon_reload"] is True
    assert {Path(path).name for path in found["files"]} == {"chat.service", "10.conf", "20.conf", "env"}


def test_status_tells_the_first_lines_of_the_running_start_on_request_however_long_it_runs(
    host: Any, tools: Path
) -> None:
    host.call("service", manager=UNIT, action="start")

    now = host.call("status", manager=UNIT, from_start=True)

    assert now["start_log"] == [f"start {number}" for number in range(400)]
    assert (now["log"], now["cursor"]) == (["first"], "c1")
    assert "start_log" not in host.call("status", manager=UNIT)


def test_status_follows_the_journal(host: Any, tools: Path) -> None:
    host.call("service", manager=UNIT, action="start")
    now = host.call("status", manager=UNIT)
    assert (now["active"], now["restarts"], now["log"], now["cursor"]) == ("active", 2, ["first"], "c1")
    assert now["process"]["rss_bytes"] > 0
    assert host.call("status", manager=UNIT, cursor="c1")["log"] == ["later"]


@pytest.mark.parametrize("unit", ["--now", "x", "a b.service", "../x.service", "x.socket", None, "-x.service"])
def test_what_is_no_service_name_never_reaches_systemctl(host: Any, unit: Any) -> None:
    with pytest.raises(Failure) as caught:
        host.call("status", manager={"systemd": {"unit": unit}})
    assert caught.value.reason == "bad_arguments"


def test_a_host_without_systemd_is_said_so(host: Any, place: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", str(place))
    with pytest.raises(Failure) as caught:
        host.call("status", manager=UNIT)
    assert caught.value.reason == "no_systemd"


def test_values_with_line_breaks_stay_whole() -> None:
    shown = systemd.parse_show(
        "Environment=A=1 B=2\nExecStart={ a ; }\nExecStart={ b }\nDescription=x\ny z\nMainPID=7\n"
    )
    assert shown == {
        "Environment": "A=1 B=2",
        "ExecStart": ["{ a ; }", "{ b }"],
        "Description": "x\ny z",
        "MainPID": "7",
    }


@given(
    st.dictionaries(st.from_regex(r"[A-Z][A-Za-z0-9]{0,12}", fullmatch=True), st.from_regex(r"[^\n]*", fullmatch=True))
)
def test_every_property_comes_back_from_show(properties: dict[str, str]) -> None:
    wanted = {key: value for key, value in properties.items() if not key.startswith(("Exec", "EnvironmentFiles"))}
    assert systemd.parse_show("".join(f"{key}={value}\n" for key, value in wanted.items())) == wanted


@given(st.text())
def test_no_output_of_systemctl_breaks_the_parsers(text: str) -> None:
    systemd.parse_show(text)
    systemd.parse_journal(text)
    systemd.seconds(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1min 30s", 90.0), ("500ms", 0.5), ("infinity", None), ("", None), ("1h", 3600.0), ("5x", None)],
)
def test_time_spans_are_read_as_systemctl_prints_them(text: str, value: float | None) -> None:
    assert systemd.seconds(text) == value


def test_journal_messages_that_are_not_text_are_kept() -> None:
    text = json.dumps({"MESSAGE": [104, 255, 105], "__CURSOR": "x"}) + "\nbroken\n" + json.dumps({"MESSAGE": None})
    assert systemd.parse_journal(text) == (["h�i"], "x")

"""What /proc says, whatever it says."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl_host import procfs


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=15),
    st.integers(1, 4_000_000),
    st.integers(0, 10**9),
)
def test_a_process_is_read_whatever_its_name_is(name: str, pid: int, ticks: int) -> None:
    line = f"{pid} ({name}) S 1 2 3 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 {ticks} 1 2 3"
    found = procfs.parse_stat(line)
    assert found == procfs.Stat(pid, name, "S", 1, 2, 3, 9, ticks)


@given(st.text())
def test_no_text_breaks_the_parsers(text: str) -> None:
    procfs.parse_stat(text)
    procfs.parse_limits(text)
    procfs.parse_sockets(text)
    procfs.parse_environ(text.encode(errors="replace"))


@given(st.dictionaries(st.binary(min_size=1).filter(lambda b: b"=" not in b and b"\0" not in b),
                       st.binary().filter(lambda b: b"\0" not in b)))  # fmt: skip
def test_an_environment_comes_back_byte_by_byte(values: dict[bytes, bytes]) -> None:
    block = b"".join(key + b"=" + value + b"\0" for key, value in values.items())
    found = procfs.parse_environ(block)
    assert {os.fsencode(key): os.fsencode(value) for key, value in found.items()} == values


def test_listening_sockets_of_both_families_are_found() -> None:
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as server:
            try:
                server.bind((address, 0))
            except OSError:
                continue  # a machine without IPv6
            server.listen()
            port = server.getsockname()[1]
            assert procfs.port_owner(port) == os.getpid()
            assert port in procfs.ports_of([os.getpid()])
        assert procfs.port_owner(port) is None


@pytest.mark.parametrize("first", [None, "engine --api-key sk-hidden", "/opt/bin/engine", ""])
def test_whoever_holds_a_port_is_named_without_arguments(host: Any, first: str | None) -> None:
    code = (
        "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"
    )
    words = [sys.executable if first is None else first, "-c", code, "--api-key", "sk-hidden"]
    with subprocess.Popen(
        words, executable=sys.executable, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as stranger:
        assert stranger.stdout is not None
        found = host.call("inspect", port=int(stranger.stdout.readline()))["port_owner"]
        stranger.kill()
    runs = (Path(sys.executable) if first is None else Path(sys.executable).resolve()).name
    assert found == {"pid": stranger.pid, "argv": ["engine" if first else runs]}


def test_a_zombie_counts_as_gone() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert procfs.stat(pid) is None
    os.waitpid(pid, 0)

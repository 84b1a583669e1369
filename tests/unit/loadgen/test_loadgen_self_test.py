"""The generator against a server of known pace: what it finds out about itself, and that nothing else notices."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from tests.unit.loadgen.harness import Result, make_job
from tests.unit.loadgen.server import Conversation, Server

from changectl.core.judging.exactness import LIMITS, shortcomings
from changectl.core.measuring.measured import Measurement
from changectl.core.measuring.self_test import FIGURES, SelfTest, said

EVERYTHING = dict.fromkeys(LIMITS, 60.0)  # so that a busy machine does not try again

# The sender's host: each time that something arrives, the program gets round to it so much later.
SLUGGISH = """
import runpy, selectors, sys, time
prompt = selectors.EpollSelector.select
def select(self, timeout=None):
    found = prompt(self, timeout)
    time.sleep({seconds} if found else 0)
    return found
selectors.EpollSelector.select = select
sys.argv = [{program!r}]
runpy.run_path({program!r}, run_name="__main__")
"""
NO_PROCESS = """
import os, runpy, sys
def fork():
    raise BlockingIOError(11, "no more processes")
os.fork = fork
sys.argv = [{program!r}]
runpy.run_path({program!r}, run_name="__main__")
"""
KILLED = """
import os, signal
from changectl.adapters.loadgen.stub import Pace, Stub
print(Stub(Pace(0.1, 0.1, 2))._pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


async def answer(talk: Conversation) -> None:
    await talk.head()
    await talk.text("a", finish="stop")
    await talk.usage(1)
    await talk.end()


def run(code: str, program: Path, **job: Any) -> tuple[dict[str, Any], list[str]]:
    """The summary of the program on such a host, and the paths that the service was asked for."""
    with Server(answer) as server:
        text = json.dumps(make_job(server.url, **job))
        words = [sys.executable, "-c", code.replace("{program!r}", repr(str(program)))]
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=60, check=False)
        asked = [talk.method_and_path for talk in server.seen]
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1])["summary"], asked


def held_against(test: SelfTest) -> list[str]:
    return [text for _, text in shortcomings(Measurement((), self_test=test))]


def test_it_says_how_exact_it_is_and_the_service_notices_nothing(generate: Callable[..., Result]) -> None:
    seen = []
    for own in ({}, {"self_test": EVERYTHING}):
        with Server(answer) as server:
            result = generate(make_job(server.url, levels=[{"name": "low", "streams": 2, "requests": 6}], **own))
            seen.append(sorted(str(talk.body) for talk in server.seen))
        assert result.status == 0
        assert len(result.records) == 6

    test = said(result.summary)
    (only,) = test.tries
    assert set(only) == set(FIGURES)
    assert 0 < only["ttft_p50"] <= only["ttft_p99"] < 2
    assert 0 <= only["tpot_p50"] <= only["tpot_p99"] < 1
    assert seen[0] == seen[1]


def test_it_says_nothing_unless_it_is_asked(generate: Callable[..., Result]) -> None:
    with Server(answer) as server:
        assert generate(make_job(server.url)).summary["self_test"] is None


def test_one_that_is_slow_to_notice_what_arrives_is_found_out_in_every_try(program: Path) -> None:
    # Not the pace of that server, nor a multiple of it: the two would step alike, and little would be late.
    summary, _ = run(SLUGGISH.replace("{seconds}", "0.035"), program, self_test=LIMITS)
    test = said(summary)
    assert 1 < len(test.tries) <= 5
    assert min(one["ttft_p50"] for one in test.tries) > LIMITS["ttft_p50"]
    assert "first tokens were noticed" in held_against(test)[0]


def test_without_a_server_of_known_pace_it_measures_and_is_not_taken_for_exact(program: Path) -> None:
    summary, asked = run(NO_PROCESS, program, self_test=LIMITS)
    assert len(asked) == 1
    assert said(summary) == SelfTest((), "[Errno 11] no more processes")
    assert "no more processes" in held_against(said(summary))[0]


def test_the_server_of_known_pace_ends_with_a_generator_that_is_killed() -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == -signal.SIGKILL
    child, deadline = int(done.stdout), monotonic() + 10
    while _alive(child):
        assert monotonic() < deadline
        sleep(0.02)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, ValueError):
        return False


@pytest.mark.parametrize("limits", [{"ttft_p50": 0}, {"ttft_p50": "soon"}, 5])
def test_limits_that_make_no_sense_are_refused_before_anything_is_sent(
    generate: Callable[..., Result], limits: Any
) -> None:
    with Server(answer) as server:
        assert generate(make_job(server.url, self_test=limits)).status == 2
        assert not server.seen

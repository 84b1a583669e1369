"""What engine and host did in each phase is recorded with it, and told for kept, reverted and failed attempts."""

from __future__ import annotations

import json
from typing import Any

from tests.workflow.stage import BETTER, WORSE, Stage

from changectl.core.errors import HostCallError
from changectl.core.history.time_spent import TimeSpent, time_spent

THREAD = 1_000_000_000


def queueing(argv: list[str], seconds: float) -> dict[str, Any]:
    """Eight streams on so many slots: the others wait, and one thread has a core for itself."""
    waiting = max(0, 8 - int(argv[argv.index("--parallel") + 1])) if argv else 0
    page = f"llamacpp:requests_deferred {waiting}\nllamacpp:requests_processing {8 - waiting}\n"
    return {"page": {"status": 200, "body": page}, "threads": {"7": [int(seconds * THREAD), 0]}}


def told(stage: Stage) -> TimeSpent:
    (found,) = time_spent(stage.journal.bodies("measure.outcome"))
    return found


def test_the_queue_and_the_busiest_thread_of_both_phases_are_recorded_of_a_reverted_change() -> None:
    stage = Stage()
    stage.host.sampler.seen = queueing
    end = stage.apply(WORSE)
    waiting, thread = told(stage).row("waiting"), told(stage).row("busiest_thread")

    assert end.exit_code == 4
    assert waiting.before is not None
    assert waiting.after is not None
    assert (waiting.before.most, waiting.after.most) == (4, 7)
    assert thread.after is not None
    assert (thread.after.of, round(thread.after.mean or 0, 3)) == ("main", 1.0)


def test_the_looks_themselves_are_kept_as_evidence() -> None:
    stage = Stage()
    stage.apply(BETTER)
    outcome = stage.journal.bodies("measure.outcome")[0]
    raw = json.loads(stage.records.get_blob(outcome["samples"]))

    assert len(raw["looks"]) == 5
    assert "tokens_predicted_total" in raw["page_before"]


def test_a_load_generator_that_failed_leaves_what_was_seen_meanwhile() -> None:
    stage = Stage()
    stage.host.sampler.seen = queueing
    stage.host.on_call = lambda host, call: failing(call, "generator_failed")
    stage.apply(BETTER)
    outcome = stage.journal.bodies("measure.outcome")[0]

    assert outcome["summary"]["invalid"]
    assert outcome["activity"]["engine"]["gauges"]["waiting"]["most"] == 4


def test_a_phase_that_was_broken_off_leaves_what_was_seen_until_then() -> None:
    stage = Stage()
    stage.host.sampler.seen = queueing
    stage.host.on_call = lambda host, call: failing(call, "timed_out")
    stage.apply(BETTER)
    outcome = stage.journal.bodies("measure.outcome")[0]

    assert (outcome["ok"], outcome["phase"], outcome["host"]) == (False, "A", "gpu1")
    assert outcome["activity"]["engine"]["gauges"]["waiting"]["most"] == 4
    assert stage.records.get_blob(outcome["samples"])


def failing(call: str, reason: str) -> None:
    if call == "measure":
        raise HostCallError("it did not work", reason=reason)


def test_a_host_that_cannot_be_sampled_fails_no_measurement_and_says_why() -> None:
    stage = Stage()
    stage.host.sampler.fails = HostCallError("gpu1: no room", reason="no_room")
    end = stage.apply(BETTER)

    assert end.exit_code == 0
    row = told(stage).row("busiest_thread")
    assert row.before is not None
    assert row.before.missing == "gpu1: no room"


def test_samples_that_cannot_be_kept_stop_nothing() -> None:
    stage = Stage()
    stage.fail_at(2, lambda: OSError("the disk is full"), "records put_blob")  # after the model
    end = stage.apply(BETTER)

    assert end.exit_code == 0
    assert stage.journal.bodies("measure.outcome")[0]["samples"] is None

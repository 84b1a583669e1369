"""What earlier runs left behind, read from a real database."""

from __future__ import annotations

from changectl.core.cost import Spent
from changectl.core.observed import StatusProcess
from changectl.store.memory import RunMemory
from changectl.store.store import Store


def opened(store: Store, run: str, service: str = "chat", **more: str) -> None:
    store.journal.append(run, "run.opened", {"service": service, **more})


def closed(store: Store, run: str, outcome: str) -> None:
    store.journal.append(run, "run.closed", {"outcome": outcome, "exit_code": 0})


def unfinished(store: Store, service: str = "chat") -> list[str]:
    return RunMemory(store.journal, store.records).unfinished(service)


def test_a_run_without_an_end_is_unfinished_for_its_own_service_alone(store: Store) -> None:
    opened(store, "r1")
    opened(store, "r2")
    closed(store, "r2", "kept")

    assert unfinished(store) == ["r1"]
    assert unfinished(store, "search") == []


def test_a_revert_that_brought_the_saved_configuration_back_settles_it(store: Store) -> None:
    opened(store, "r1")
    opened(store, "r2", reverts="r1")
    closed(store, "r2", "reverted")

    assert unfinished(store) == []


def test_accepting_what_stands_settles_it(store: Store) -> None:
    opened(store, "r1")
    opened(store, "r2", reverts="r1")
    closed(store, "r2", "kept_unjudged")

    assert unfinished(store) == []


def test_a_revert_that_was_refused_or_failed_settles_nothing(store: Store) -> None:
    opened(store, "r1")
    for run, outcome in (("r2", "refused"), ("r3", "revert_failed"), ("r4", "aborted")):
        opened(store, run, reverts="r1")
        closed(store, run, outcome)

    assert unfinished(store) == ["r1", "r3"]  # what the failed one left is not known either


def load_seconds(store: Store) -> float | None:
    return RunMemory(store.journal, store.records).load_seconds("chat")


def test_only_a_start_leaves_a_load_time(store: Store) -> None:
    opened(store, "r1")
    store.journal.append("r1", "ready.outcome", {"ok": True, "seconds": 37.0})  # an older record: nobody knows
    assert load_seconds(store) is None

    store.journal.append("r1", "ready.outcome", {"ok": True, "started": True, "seconds": 0.5})
    store.journal.append("r1", "ready.outcome", {"ok": True, "started": False, "seconds": 3000.0})
    store.journal.append("r1", "ready.outcome", {"ok": False, "seconds": 600.0})
    assert load_seconds(store) == 0.5


LOAD = {"workload": "aa", "levels": {"busy": "4 streams"}, "length": "40 requests"}


def test_outages_are_remembered_by_what_was_done(store: Store) -> None:
    opened(store, "r1")
    for after, seconds in (("write", 3.1), ("restore", 6.6), ("restart", 3.4)):
        body = {"ok": True, "started": True, "after": after, "seconds": 0.5, "out_seconds": seconds}
        store.journal.append("r1", "ready.outcome", body)
    store.journal.append("r1", "ready.outcome", {"ok": True, "started": False, "seconds": 0.0})
    spent = RunMemory(store.journal, store.records).spent("chat", LOAD)

    assert (list(spent.starts), list(spent.ways_back), list(spent.phases)) == ([3.1, 3.4], [6.6], [])
    assert RunMemory(store.journal, store.records).spent("search", LOAD) == Spent([], [], [])


def test_only_measurements_with_the_very_same_load_are_timed(store: Store) -> None:
    opened(store, "r1")
    for conditions, ok in ((LOAD, True), ({**LOAD, "length": "20 s"}, True), (LOAD, False), (None, True)):
        store.journal.append("r1", "measure.intent", {"host": "gpu1"}, step=1)
        body = {"host": "gpu1", "ok": ok, "conditions": conditions and {**conditions, "kernel": "6.1"}}
        store.journal.append("r1", "measure.outcome", body, step=1)
    store.journal.append("r1", "measure.intent", {"host": "gpu2"}, step=1)  # cut off
    spent = RunMemory(store.journal, store.records).spent("chat", LOAD)

    (seconds,) = spent.phases
    assert 0.0 <= seconds < 60.0


def test_a_measurement_whose_levels_ended_early_counts_with_the_time_that_it_spared(store: Store) -> None:
    opened(store, "r1")
    levels = [
        {"asked_seconds": 900.0, "ended": 200.0},
        {"asked_seconds": 900.0, "ended": None},
        {"asked_seconds": 900.0},
    ]
    store.journal.append("r1", "measure.intent", {"host": "gpu1"}, step=1)
    body = {"host": "gpu1", "ok": True, "conditions": LOAD, "summary": {"levels": levels}}
    store.journal.append("r1", "measure.outcome", body, step=1)

    (seconds,) = RunMemory(store.journal, store.records).spent("chat", LOAD).phases
    assert 700.0 <= seconds < 760.0


def test_what_a_process_said_when_it_started_is_found_again_for_that_process_alone(store: Store) -> None:
    opened(store, "r1")
    blob = store.records.put_blob(b"loading\nn_slots = 4")
    which = {"pid": 77, "start_ticks": 5, "started_at": 1000.0}
    body = {"host": "gpu1", "ok": True, "started": True, "process": which, "log_blob": blob}
    store.journal.append("r1", "ready.outcome", body)
    memory = RunMemory(store.journal, store.records)

    def said(host: str = "gpu1", **changed: float) -> list[str]:
        return memory.start_log("chat", host, StatusProcess.read({**which, **changed}))

    assert said() == ["loading", "n_slots = 4"]
    assert said(started_at=1001.0) == ["loading", "n_slots = 4"]  # the host's clock was set a little
    assert said("gpu2") == said(pid=78) == said(start_ticks=6) == said(started_at=90_000.0) == []


def test_what_trials_and_calibrations_found_out_about_noise_is_kept_once_for_a_trial_that_went_on(store: Store) -> None:
    found = {"alike": {"kernel": "6.1"}, "measured": {"rps_ok": {"variance": 0.01, "df": 5.0}}}
    for run, more in (("r1", {}), ("r2", {"extends": "r1"}), ("r3", {})):
        store.journal.append(run, "run.opened", {"service": run, **more})
        store.journal.append(run, "verdict", {"verdict": "inconclusive", "noise": found})
    store.journal.append("r4", "run.opened", {"service": "r4", "extends": "r3"})
    store.journal.append("r4", "verdict", {"verdict": "invalid", "noise": None})
    store.journal.append("r5", "verdict", {"verdict": "improved"})  # of an older program
    store.journal.append("r6", "verdict", {"verdict": "improved", "noise": {"measured": 3}})
    store.journal.append("r7", "calibration", {"host": "gpu1", "noise": found})

    assert [one.run for one in RunMemory(store.journal, store.records).learned()] == ["r2", "r3", "r7"]


def out_of_service(store: Store, service: str = "chat") -> dict[str, str]:
    found = RunMemory(store.journal, store.records).out_of_service(service)
    return {name: one.folder for name, one in found.items()}


def taken_out(store: Store, run: str, host: str, folder: str) -> None:
    body = {"host": host, "balancer": "lb1", "upstream": "chat", "folder": folder}
    store.journal.append(run, "drain.intent", body, step=1)


def test_what_a_run_left_out_of_service_is_known_until_a_later_one_put_it_back(store: Store) -> None:
    store.journal.append("r1", "run.opened", {"service": "chat"})
    taken_out(store, "r1", "gpu1", "r1.1.1")
    taken_out(store, "r1", "gpu2", "r1.1.2")
    assert out_of_service(store) == {"gpu1": "r1.1.1", "gpu2": "r1.1.2"}
    assert out_of_service(store, "other") == {}

    store.journal.append("r2", "run.opened", {"service": "chat"})
    back = {"host": "gpu1", "folder": "r1.1.1", "ok": True, "how": "lb1 put it back into service by itself"}
    store.journal.append("r2", "undrain.outcome", back)
    assert out_of_service(store) == {"gpu2": "r1.1.2"}


def test_a_later_run_that_takes_the_same_instance_out_found_it_in_service(store: Store) -> None:
    for run in ("r1", "r2"):
        store.journal.append(run, "run.opened", {"service": "chat"})
        taken_out(store, run, "gpu1", f"{run}.1.1")

    assert out_of_service(store) == {"gpu1": "r2.1.1"}

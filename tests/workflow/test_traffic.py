"""Whatever stops an instance, users are kept away from it first, and it is back in service at the end."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import replace
from typing import Any

import pytest
from tests.workflow.crash import Killed, die_before, settle
from tests.workflow.fake_balancer import FILE, FakeBalancer
from tests.workflow.fake_host import FakeHost
from tests.workflow.incident_stage import NEVER
from tests.workflow.live_stage import LIVE_SERVICE, UNIT, UNIT_TEXT, Users, applied
from tests.workflow.stage import BETTER, SERVICE, WORSE, Left, Stage, plan_text
from tests.workflow.world import FakeInventory

from changectl.core.errors import ChangectlError, ContactLost, HostCallError, Refused
from changectl.core.history.events import TURN
from changectl.core.history.reading import services
from changectl.core.history.runs import runs, summarise
from changectl.core.incident import Incident
from changectl.core.lease import LONGEST_BEAT
from changectl.core.lifecycle import Ending, Outcome
from changectl.core.ports import HostAddress
from changectl.reports import status
from changectl.reports._blocks import Line
from changectl.workflow.apply import apply
from changectl.workflow.interrupts import Interrupted
from changectl.workflow.revert import revert
from changectl.workflow.revert_order import what_to_revert

TRAFFIC = f"""\
traffic: {{nginx: {{host: lb1, file: {FILE}, upstream: chat, member: "{{{{ ansible_host }}}}:{{{{ port }}}}"}}}}
drain: 30s
"""
TRIAL = """\
version: 1
service: chat
reason: a story
effort: standard
steps:
  - change: {{parameter: {{name: parallel, to: {slots}}}}}
    expect: neutral
"""
SAME = 5
BUSY = "llamacpp:requests_processing 4\nllamacpp:requests_deferred 3\n"


class Behind(Stage):
    """Two instances behind a balancer; every time that a service is stopped, somebody looks who gets requests."""

    def __init__(self, more: str = "", names: tuple[str, ...] = ("gpu1", "gpu2"), base: str = SERVICE) -> None:
        listed = ", ".join(
            f'{{host: {name}, endpoint: "http://127.0.0.1:8080", vars: {{port: "8080"}}}}' for name in names
        )
        text = base
        if not any(":" in name for name in names):
            text = text.replace('{group: gpu, each: {endpoint: "http://127.0.0.1:8080"}}', f"[{listed}]")
        super().__init__(names, service_text=text.replace("limits:", f"{TRAFFIC}limits:").replace(
            "{load_on_live: true}", f"{{load_on_live: true{more}}}"))  # fmt: skip
        self.balancer = FakeBalancer("lb1", self.world, dict(self.hosts))
        self.addresses.append(HostAddress("lb1", {"ansible_host": "lb1"}))
        self.hosts_and_balancer: dict[str, Any] = {**self.doors.hosts, "lb1": self.balancer}
        self.doors.hosts = self.playbooks.hosts = self.hosts_and_balancer
        self.stopped_in_service: list[str] = []
        self.stopped = 0
        for name, host in self.hosts.items():
            host.on_stop = lambda _, name=name: self._look(name)  # type: ignore[misc]

    def _look(self, name: str) -> None:
        self.stopped += 1
        if name not in self.balancer.out():
            self.stopped_in_service.append(name)

    @property
    def users_noticed_nothing(self) -> bool:
        return self.stopped > 0 and self.stopped_in_service == [] and self.balancer.file == self.balancer.before


def test_a_kept_change_takes_one_instance_after_the_other_out_and_puts_it_back() -> None:
    stage = Behind()
    end = stage.apply(BETTER)

    assert end.exit_code == 0
    assert stage.users_noticed_nothing
    assert [body["host"] for body in stage.journal.bodies("drain.intent")] == ["gpu1", "gpu2"]
    assert [body["ok"] for body in stage.journal.bodies("undrain.outcome")] == [True, True]
    assert stage.balancer.keeper.holder is None
    assert stage.balancer.keeper.armed == {}
    assert summarise(stage.journal.lines).out == ()


def test_a_change_that_is_not_kept_is_taken_back_out_of_service() -> None:
    stage = Behind()

    assert stage.apply(WORSE).last.outcome is Outcome.REVERTED
    assert stage.users_noticed_nothing
    assert stage.serving_as_before()


def test_a_trial_of_several_pairs_needs_no_outage_and_users_do_not_see_it() -> None:
    stage = Behind()
    end = apply(stage.order(TRIAL.format(slots=SAME)), stage.tools)

    assert end.exit_code == 0
    assert stage.users_noticed_nothing
    assert len(stage.journal.bodies("drain.intent")) == 2


def test_where_a_time_out_is_limited_the_instance_serves_between_two_pairs_on_the_saved_configuration() -> None:
    stage = Behind(", max_out: 30s")
    serving: list[str] = []
    stage.balancer.on_switch = lambda call: serving.extend(
        host.process.argv[-1] for host in stage.hosts.values() if call == "put_back" and host.process
    )
    end = apply(stage.order(TRIAL.format(slots=SAME)), stage.tools)

    assert end.exit_code in (0, 5)
    assert stage.users_noticed_nothing
    assert len(stage.journal.bodies("drain.intent")) > 2
    assert set(serving[:2]) == {"4"}


@pytest.mark.parametrize(("longest", "again"), [("12s", False), ("60s", True)])
def test_a_phase_is_not_measured_once_more_where_that_would_keep_the_instance_out_too_long(
    longest: str, again: bool
) -> None:
    stage = Behind(f", max_out: {longest}")
    stage.hosts["gpu1"].late = 1
    stage.apply(BETTER)

    first = stage.journal.bodies("measure.outcome")[0]
    assert ("late" in first) is again
    assert stage.users_noticed_nothing


def test_a_revert_takes_the_instances_out_too() -> None:
    stage = Behind()
    stage.apply(BETTER)
    stage.stopped = 0
    order = what_to_revert("R1", stage.journal.events("R1"), "it was a mistake")
    _, ending = revert(order, stage.placed, None, stage.tools)

    assert ending.outcome is Outcome.REVERTED
    assert stage.stopped == 2
    assert stage.users_noticed_nothing


@pytest.mark.parametrize(
    ("reason", "spoil"),
    [
        ("last_member", lambda lb: lb.unreachable.add("gpu2")),
        ("last_member", lambda lb: setattr(lb, "file", lb.file.replace(b"gpu2:8080 weight=2", b"gpu2:8080 down"))),
        ("others_unknown", lambda lb: lb.metrics.update(gpu2="nothing_of_use 1\n")),
        ("others_full", lambda lb: lb.metrics.update(gpu1=BUSY)),
        ("pending_reload", lambda lb: lb.pending.append(FILE)),
        ("edit_refused", lambda lb: setattr(lb, "file", b"upstream other {}\n")),
    ],
)  # fmt: skip
def test_what_would_leave_users_without_service_is_refused_before_anything_is_touched(reason: str, spoil: Any) -> None:
    stage = Behind()
    spoil(stage.balancer)
    before = stage.balancer.file
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.reason) == (3, reason)
    assert stage.stopped == 0
    assert stage.balancer.file == before
    assert stage.journal.bodies("drain.intent") == []


def test_with_an_outage_in_the_plan_the_last_member_may_go_out() -> None:
    stage = Behind(names=("gpu1",))
    text = TRIAL.format(slots=SAME).replace("effort: standard", "effort: standard\noutage: 30m")

    assert apply(stage.order(text), stage.tools).exit_code == 0
    assert stage.users_noticed_nothing


def test_an_instance_whose_requests_do_not_end_goes_back_and_is_not_stopped() -> None:
    stage = Behind()
    stage.balancer.connections = [1] * 200
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.reason) == (3, "not_drained")
    assert stage.stopped == 0
    assert stage.balancer.file == stage.balancer.before
    assert summarise(stage.journal.lines).out == ()


def test_an_engine_that_hangs_never_ends_its_requests_so_an_incident_cuts_them_after_the_declared_time() -> None:
    stage = Behind()
    for host in stage.hosts.values():
        host.on_start, host.load_seconds = hangs_when_saved, NEVER
    stage.balancer.connections = [1] * 1000
    end = apply(replace(stage.order(plan_text(BETTER)), incident=Incident("OPS-1 it hangs", 10)), stage.tools)

    assert end.last.outcome is Outcome.KEPT_UNJUDGED, end.last.text
    assert [body.get("cut") for body in stage.journal.bodies("drained.outcome")] == [True, True]
    assert all(body["seconds"] >= 30 for body in stage.journal.bodies("drained.outcome"))
    assert any("still 1 connections 30 s after" in line for line in stage.reporter.notes)
    assert stage.users_noticed_nothing


def hangs_when_saved(host: FakeHost) -> None:
    """The engine gives an answer on the new configuration alone."""
    host.load_seconds = NEVER if host.process is not None and host.process.argv[-1] == "4" else 1.0


def test_a_limit_need_not_name_the_balancer() -> None:
    stage = Behind()
    inventory = stage.tools.inventory
    *gpus, balancer = inventory.addresses  # type: ignore[attr-defined]
    stage.tools = replace(stage.tools, inventory=FakeInventory(gpus, others=[balancer]))

    assert stage.apply(BETTER).exit_code == 0
    assert stage.users_noticed_nothing


def test_a_balancer_that_the_inventory_does_not_know_is_named_with_what_to_write() -> None:
    stage = Behind()
    stage.tools = replace(stage.tools, inventory=FakeInventory(stage.addresses[:2]))
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.reason) == (3, "no_balancer")
    assert "names lb1, which is no host of the inventory: write the name of one there" in end.last.text


def test_where_users_are_the_load_the_instance_is_out_for_its_restart_alone() -> None:
    stage = Behind(base=LIVE_SERVICE + "limits: {load_on_live: true}\n")
    for host in stage.hosts.values():
        host.files[UNIT] = UNIT_TEXT.encode()
        host.restart()
        host.process.started, host.metrics = -3600.0, Users().page  # type: ignore[union-attr]
    stage.stopped, stage.stopped_in_service = 0, []
    stage.balancer.metrics = dict.fromkeys(stage.hosts, "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n")
    serving: list[bool] = []

    def look(name: str) -> None:
        if name in ("journal observe.intent", "journal observe.outcome"):
            serving.append(stage.balancer.out() == [])

    stage.world.before = look
    end = applied(stage, "{observe: 5m}")

    assert (end.exit_code, end.last.reason) == (0, "kept"), end.last.text
    assert serving == [True] * 8
    assert stage.users_noticed_nothing


def test_requests_in_work_are_waited_for() -> None:
    stage = Behind()
    stage.balancer.connections = [2, 1, 1]

    assert stage.apply(BETTER).exit_code == 0
    assert stage.users_noticed_nothing


def test_a_switch_that_nginx_does_not_take_ends_the_step_with_nothing_touched() -> None:
    stage = Behind()
    stage.balancer.refuses = "nginx does not take its configuration"
    end = stage.apply(BETTER)

    assert end.exit_code == 3
    assert stage.stopped == 0
    assert stage.balancer.file == stage.balancer.before
    assert stage.balancer.keeper.holder is None


def test_a_member_that_somebody_took_out_stays_out() -> None:
    stage = Behind()
    stage.balancer.file = stage.balancer.before = stage.balancer.file.replace(
        b"gpu1:8080 weight=2;", b"gpu1:8080 down;"
    )
    end = stage.apply(BETTER)

    assert end.last.reason in ("kept", "last_member")
    assert stage.balancer.file == stage.balancer.before


def test_somebody_elses_edit_of_the_very_line_stays_and_only_our_word_goes() -> None:
    stage = Behind(names=("gpu1", "gpu2"))

    def edit(call: str) -> None:
        if call == "put_back" and b"weight=9" not in stage.balancer.file:
            stage.balancer.file = stage.balancer.file.replace(b"gpu1:8080 weight=2", b"gpu1:8080 weight=9")

    stage.balancer.on_switch = edit
    assert stage.apply(BETTER).exit_code == 0
    assert stage.balancer.file == stage.balancer.before.replace(b"gpu1:8080 weight=2", b"gpu1:8080 weight=9")


def test_a_dead_man_that_was_faster_costs_nothing() -> None:
    stage = Behind()
    fired = False

    def hurry(call: str) -> None:
        nonlocal fired
        if call == "put_back" and not fired:
            fired = True
            stage.balancer.lease_runs_out()
            stage.balancer.keeper.require("lb1", "?", 0)

    stage.balancer.on_switch = hurry
    assert stage.apply(BETTER).exit_code == 0
    assert stage.balancer.file == stage.balancer.before


def test_a_balancer_that_is_lost_on_the_way_back_is_told_and_the_saved_configuration_is_back_all_the_same() -> None:
    stage = Behind()

    def lost(call: str) -> None:
        if call == "put_back":
            raise ContactLost("lb1: gone")

    stage.balancer.on_switch = lost
    end = stage.apply(WORSE)

    assert end.last.outcome is Outcome.REVERTED
    assert "still out of service" in end.last.text
    assert stage.serving_as_before()
    assert [one.instance for one in summarise(stage.journal.lines).out] == ["gpu1"]
    (told,) = [block.text for block in status.as_blocks(services(runs(stage.journal.lines)), {})
               if isinstance(block, Line) and "lb1" in block.text]  # fmt: skip
    assert "gpu1 was taken out of service at lb1" in told
    assert "the record does not say that it is back" in told  # nobody asks the balancer, which may have put it back
    assert "R1.1.1" in stage.balancer.keeper.armed


@pytest.mark.parametrize("dead_man", [False, True])
@pytest.mark.parametrize(
    "moment", ["play lb1 traffic", "journal drain.outcome", "journal drained.outcome", "play gpu1 apply",
               "journal measure.intent", "journal undrain.intent", "journal undrain.outcome", "journal disarm.intent"]
)  # fmt: skip
def test_wherever_the_controller_dies_recover_leaves_every_instance_in_service(moment: str, dead_man: bool) -> None:
    stage = Behind()
    stage.world.before = die_before(stage.world, lambda name, _: name == moment)
    with contextlib.suppress(Killed):
        stage.apply(BETTER)
    stage.world.before = lambda name: None
    if dead_man:
        for host in stage.hosts.values():
            host.lease_runs_out()
        stage.balancer.lease_runs_out()
    stage.stopped_in_service.clear()
    settle(stage)

    assert stage.balancer.file == stage.balancer.before
    assert stage.balancer.keeper.armed == {}
    assert stage.stopped_in_service == []
    assert summarise(stage.journal.lines).out == ()
    if (moment, dead_man) == ("journal undrain.outcome", False):
        told = [body["how"] for body in stage.journal.bodies("undrain.outcome") if "how" in body]
        assert told == ["the run itself had put it back into service, at ?"]


def test_a_balancer_that_is_lost_right_after_its_lease_was_taken_over_gets_no_more_signs_of_life() -> None:
    stage = Behind()
    left_out_by_a_step(stage)
    stage.balancer.on_switch = lambda call: None
    before = len(stage.heart.beatings)

    def lost(name: str) -> None:
        if name == "door lb1 standing" and any(one.host == "lb1" for one in stage.heart.beatings[before:]):
            raise ContactLost("lb1: gone")

    stage.world.before = lost
    stage.apply(BETTER)

    taken = [one for one in stage.heart.beatings[before:] if one.host == "lb1"]
    assert taken
    assert all(one.stopped for one in taken)


@pytest.mark.parametrize("ended", ["signal", "lease"])
def test_whoever_ends_the_run_while_it_goes_back_finds_it_in_service_and_takes_it_out_again(ended: str) -> None:
    stage = Behind()

    def end(call: str) -> None:
        if call != "put_back" or len(stage.journal.bodies("drain.intent")) > 1:
            return
        if ended == "signal":
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            next(one for one in stage.heart.beatings if one.host == "gpu2").lost = "somebody else has it"

    stage.balancer.on_switch = end
    with stage.interrupts.listening():
        stage.apply(BETTER)

    assert len(stage.journal.bodies("drain.intent")) == 2
    assert stage.users_noticed_nothing
    assert stage.serving_as_before()


@pytest.mark.parametrize("moment", ["door lb1 disarm", "journal undrain.outcome", "journal disarm.outcome"])
@pytest.mark.parametrize(
    "error",
    [
        HostCallError("lb1: no room", reason="disk_full"),
        ChangectlError("the record cannot be written", reason="record_failed"),
        ValueError("nobody expected this"),
    ],
    ids=["host", "record", "unexpected"],
)
def test_what_serves_again_and_could_not_be_recorded_so_is_taken_out_again_before_it_is_stopped(
    moment: str, error: Exception
) -> None:
    stage = Behind()

    def fail(name: str) -> None:
        if name == moment and stage.balancer.out() == [] and stage.stopped:
            stage.world.before = lambda _: None
            raise error

    stage.world.before = fail
    end = stage.apply(BETTER)

    assert end.last.outcome is Outcome.REVERTED
    assert stage.users_noticed_nothing
    assert stage.serving_as_before()
    assert stage.balancer.keeper.armed == {}


def test_a_release_that_got_lost_keeps_the_next_instance_from_nothing() -> None:
    stage = Behind()
    stage.fail_at(1, lambda: HostCallError("lb1: the call failed", reason="failed"), "door lb1 release")

    assert stage.apply(BETTER).exit_code == 0
    assert stage.users_noticed_nothing
    assert stage.balancer.keeper.holder is None


@pytest.mark.parametrize("turn", ["gpu1", "gpu2"])
def test_recover_takes_an_instance_out_although_the_one_that_died_had_not_released_the_balancer(turn: str) -> None:
    stage = Behind()
    turns: list[str] = []

    def now(name: str, _: int) -> bool:
        turns.extend([name] if name == "door lb1 release" else [])
        return len(turns) == (1 if turn == "gpu1" else 2)

    stage.world.before = die_before(stage.world, now)
    with contextlib.suppress(Killed):
        stage.apply(BETTER)
    stage.world.before = lambda name: None
    settle(stage)

    assert stage.users_noticed_nothing
    assert stage.balancer.keeper.holder is None


def test_another_run_that_has_the_balancer_is_no_earlier_time_of_ours() -> None:
    stage = Behind()
    theirs = {"run": "R9.1.1", "generation": 1, "nonce": "n", "owner": "lee@desk", "seconds": 300.0}
    stage.balancer.keeper.holder = theirs
    end = stage.apply(BETTER)

    assert "R9.1.1" in end.last.text
    assert stage.stopped == 0
    assert stage.balancer.keeper.holder == theirs


@pytest.mark.parametrize(
    "moment", ["door lb1 capture", "play gpu2 restore", "journal ready.outcome", "door lb1 release"]
)
def test_recover_of_a_revert_brings_back_first_what_is_out_already(moment: str) -> None:
    stage = Behind()
    stage.apply(BETTER)
    stage.stopped = 0
    stage.world.before = die_before(stage.world, lambda name, _: name == moment)
    order = what_to_revert("R1", stage.journal.events("R1"), "it was a mistake")
    with contextlib.suppress(Killed):
        revert(order, stage.placed, None, stage.tools)
    stage.world.before = lambda name: None

    assert settle(stage, "R2").outcome is Outcome.REVERTED
    assert stage.users_noticed_nothing
    assert stage.serving_as_before()


def test_what_was_saved_on_the_balancer_is_gone_once_the_instance_serves_again() -> None:
    stage = Behind()
    stage.apply(BETTER)

    assert stage.balancer.saved == {}


def test_a_member_that_wants_a_token_from_the_balancers_host_is_never_taken_out() -> None:
    stage = Behind(names=("gpu1", "gpu2", "gpu3"))
    stage.balancer.forbidden.add("gpu1")
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.reason) == (3, "member_sick")
    assert "HTTP 401" in end.last.text
    assert stage.stopped == 0
    assert stage.journal.bodies("drain.intent") == []


def test_a_member_that_somebody_lets_in_after_the_pre_checks_is_taken_out_before_it_is_stopped() -> None:
    stage = Behind(names=("gpu1", "gpu2", "gpu3"))
    serving = stage.balancer.file
    stage.balancer.file = serving.replace(b"gpu1:8080 weight=2;", b"gpu1:8080 down;")

    def let_in(name: str) -> None:
        if name == f"journal {TURN}":
            stage.balancer.file = serving

    stage.world.before = let_in
    stage.apply(BETTER)

    assert stage.users_noticed_nothing


def loses_the_way_back(stage: Behind, error: Exception | None = None) -> None:
    """From now on the balancer takes instances out, and cannot put them back."""

    def lost(call: str) -> None:
        if call == "put_back":
            raise error or ContactLost("lb1: gone")

    stage.balancer.on_switch = lost


def test_a_revert_leaves_the_last_serving_instance_alone_while_the_other_is_still_out() -> None:
    stage = Behind()
    stage.apply(BETTER)
    stage.stopped = 0
    loses_the_way_back(stage)
    order = what_to_revert("R1", stage.journal.events("R1"), "it was a mistake")
    _, ending = revert(order, stage.placed, None, stage.tools)

    assert (ending.outcome, ending.reason) == (Outcome.REVERT_UNVERIFIED, "needs_person")
    assert "gpu1: not taken back" in ending.text
    assert "changectl revert R1" in ending.text
    assert stage.stopped == 1
    assert stage.stopped_in_service == []
    assert [host.process.argv[-1] for host in stage.hosts.values() if host.process] == ["8", "4"]

    stage.balancer.on_switch = lambda call: None
    stage.balancer.lease_runs_out()
    again = what_to_revert("R1", stage.journal.events("R1"), "it was a mistake", stage.journal.lines)
    assert revert(again, stage.placed, None, stage.tools)[1].outcome is Outcome.REVERTED
    assert stage.serving_as_before()


def test_a_second_revert_mends_the_one_that_is_out_before_it_takes_out_the_last_that_serves() -> None:
    stage = Behind()
    stage.apply(BETTER)
    loses_the_way_back(stage)
    reverted(stage)
    stage.stopped_in_service.clear()
    _, still = reverted(stage)

    assert (still.outcome, still.reason) == (Outcome.REVERT_UNVERIFIED, "needs_person")
    assert "gpu1: not taken back" in still.text
    assert stage.stopped_in_service == []
    assert stage.hosts["gpu1"].process is not None
    assert stage.hosts["gpu1"].process.argv[-1] == "8"

    stage.balancer.on_switch = lambda call: None
    assert reverted(stage)[1].outcome is Outcome.REVERTED
    assert stage.stopped_in_service == []
    assert stage.serving_as_before()
    assert stage.balancer.file == stage.balancer.before
    assert stage.balancer.keeper.armed == {}
    assert stage.memory.out_of_service("chat") == {}


def reverted(stage: Behind) -> tuple[str, Ending]:
    order = what_to_revert("R1", stage.journal.events("R1"), "it was a mistake", stage.journal.lines)
    last = runs(stage.journal.lines)[-1]
    stage.memory.cut_off = [last.run] if last.outcome == "revert_unverified" else []
    return revert(order, stage.placed, None, stage.tools)


def left_out_by_a_step(stage: Behind) -> None:
    """gpu1 is kept, gpu2 is restored and could not be put back."""
    stage.hosts["gpu2"].speed = lambda argv, streams: (200 if argv[-1] == "8" else 20, 5)
    stage.world.before = lambda name: loses_the_way_back(stage) if name == "play gpu2 restore" else None
    assert stage.apply(BETTER).last.outcome is Outcome.KEPT_PARTLY
    stage.world.before = lambda name: None


def test_a_revert_is_refused_while_the_only_other_instance_is_out_and_goes_on_once_it_is_back() -> None:
    stage = Behind()
    left_out_by_a_step(stage)
    stage.stopped = 0
    _, ending = reverted(stage)

    assert (ending.outcome, ending.reason) == (Outcome.REFUSED, "others_out")
    assert "gpu2 is out of service, so gpu1 was not taken out, too" in ending.text
    assert stage.stopped == 0

    stage.balancer.on_switch = lambda call: None
    stage.balancer.lease_runs_out()
    assert reverted(stage)[1].outcome is Outcome.REVERTED
    assert stage.stopped_in_service == []
    assert stage.serving_as_before()


def cut_off_before_it_began(stage: Behind) -> None:
    """gpu2 is still out, and the revert that was to mend that before it touches gpu1 died."""
    left_out_by_a_step(stage)
    stage.world.before = die_before(stage.world, lambda name, _: name == "journal undrain.intent")
    with contextlib.suppress(Killed):
        reverted(stage)
    stage.world.before = lambda name: None
    stage.stopped = 0


def test_recover_of_a_revert_that_never_began_leaves_the_last_serving_instance_alone() -> None:
    stage = Behind()
    cut_off_before_it_began(stage)
    with pytest.raises(Refused, match="gpu2 is out of service, so gpu1 was not taken out, too") as caught:
        settle(stage, "R2")

    assert caught.value.reason == "others_out"
    assert stage.stopped == 0

    stage.balancer.on_switch = lambda call: None
    stage.balancer.lease_runs_out()
    assert settle(stage, "R2").outcome is Outcome.REVERTED
    assert stage.stopped_in_service == []
    assert stage.serving_as_before()


@pytest.mark.parametrize(
    "begun",
    [
        lambda host: host.keeper.armed.update({"R1.1": {"nonce": "of the revert"}}),
        lambda host: setattr(host, "process", None),
    ],
    ids=["armed", "stopped"],
)
def test_an_instance_whose_way_back_may_have_begun_is_brought_back_whoever_else_is_out(begun: Any) -> None:
    stage = Behind()
    cut_off_before_it_began(stage)
    begun(stage.hosts["gpu1"])

    assert settle(stage, "R2").outcome is Outcome.REVERTED
    assert stage.hosts["gpu1"].process is not None
    assert stage.hosts["gpu1"].process.argv[-1] == "4"


def test_the_next_change_takes_over_what_an_earlier_run_left_out() -> None:
    stage = Behind()
    left_out_by_a_step(stage)
    stage.balancer.on_switch = lambda call: None
    stage.hosts["gpu2"].speed = stage.hosts["gpu1"].speed
    end = stage.apply(BETTER)

    assert end.exit_code == 0, end.last.text
    assert stage.balancer.file == stage.balancer.before
    assert stage.balancer.keeper.armed == {}
    assert stage.memory.out_of_service("chat") == {}


def test_recover_says_what_the_balancer_did_by_itself_while_nobody_watched() -> None:
    stage = Behind()
    stage.world.before = die_before(stage.world, lambda name, _: name == "journal undrain.intent")
    with contextlib.suppress(Killed):
        stage.apply(BETTER)
    stage.world.before = lambda name: None
    stage.balancer.lease_runs_out()
    ending = settle(stage)

    assert ending.outcome is Outcome.REVERTED
    assert "gpu1: lb1 put it back into service by itself at ?" in ending.text


def test_who_leaves_at_once_is_told_what_the_balancer_does_by_itself() -> None:
    stage = Behind()

    def twice(name: str) -> None:
        if name == "journal measure.intent":
            stage.interrupts.abandon()

    stage.world.before = twice
    with pytest.raises(Left) as left:
        stage.apply(BETTER)

    assert "lb1 (upstream nginx-chat-" in str(left.value)
    assert "its dead-man puts the instance back into service once it answers in about" in str(left.value)


def test_with_all_or_none_the_kept_one_serves_on_while_the_other_is_still_out() -> None:
    stage = Behind()
    stage.hosts["gpu2"].speed = lambda argv, streams: (200 if argv[-1] == "8" else 20, 5)
    stage.world.before = lambda name: loses_the_way_back(stage) if name == "play gpu2 restore" else None
    text = TRIAL.format(slots=BETTER).replace("effort: standard", "effort: quick\non_partial: revert_all")
    end = apply(stage.order(text), stage.tools)

    assert end.last.outcome is Outcome.KEPT_PARTLY
    assert "still out of service" in end.last.text
    assert [host.process.argv[-1] for host in stage.hosts.values() if host.process] == ["8", "4"]
    assert stage.stopped_in_service == []


def test_a_signal_while_an_untouched_instance_is_put_back_waits_for_the_end_on_record() -> None:
    stage = Behind()

    def fail(name: str) -> None:
        if name == "door gpu1 status" and "journal drained.outcome" in stage.world.trace:
            stage.balancer.on_switch = lambda call: os.kill(os.getpid(), signal.SIGINT)
            raise ContactLost("gpu1: gone")

    stage.world.before = fail
    with contextlib.suppress(Interrupted):
        stage.apply(BETTER)

    assert stage.journal.bodies("step.closed")[-1]["reason"] == "contact_lost"
    assert stage.stopped == 0
    assert stage.balancer.file == stage.balancer.before
    assert stage.journal.bodies("run.closed")


@pytest.mark.parametrize("answers_again", [True, False])
def test_a_balancer_that_falls_silent_ends_the_trial_before_users_get_what_is_on_trial(answers_again: bool) -> None:
    stage = Behind()

    def silence(name: str) -> None:
        if name == "journal write.outcome" and "lb1" not in stage.heart.silent:
            stage.heart.silent["lb1"] = stage.world.seconds - 1000
            stage.balancer.lease_runs_out()
        elif name == "door lb1 standing" and "lb1" in stage.heart.silent:
            if not answers_again:
                raise ContactLost("lb1: gone")
            stage.heart.silent["lb1"] = stage.world.seconds

    stage.world.before = silence
    end = stage.apply(BETTER)

    assert (end.last.outcome, end.last.reason) == (Outcome.REVERTED, "lease_lost")
    assert "is silent, and its dead-man acts" in end.last.text
    assert stage.serving_as_before()
    assert stage.balancer.file == stage.balancer.before
    assert stage.stopped_in_service == ([] if answers_again else ["gpu1"])  # nobody to ask: restored all the same


def test_the_balancers_lease_outlives_that_of_the_instance_although_its_last_sign_of_life_is_older() -> None:
    stage = Behind()
    stage.apply(BETTER)
    seconds = {body["host"].split()[0]: body["seconds"] for body in stage.journal.bodies("lease.intent")}

    assert seconds["lb1"] - LONGEST_BEAT > seconds["gpu1"]

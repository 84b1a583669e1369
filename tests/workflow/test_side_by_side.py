"""Several instances of one service on one host: one lease, and a snapshot and a dead-man for each."""

from __future__ import annotations

import pytest
from tests.workflow.crash import Killed, die_before, settle
from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import BETTER, SERVICE, Stage, plan_text
from tests.workflow.test_traffic import Behind

from changectl.core.errors import InputError
from changectl.core.history.places import host_folders
from changectl.core.history.reading import runs, services
from changectl.core.lifecycle import Ending, Outcome
from changectl.workflow.apply import RunEnd, apply
from changectl.workflow.preview import preview, would_proceed
from changectl.workflow.recover import exit_code
from changectl.workflow.revert import accept_present, revert, what_to_revert

ONE, TWO = "gpu1:8080", "gpu1:8081"
BOTH, ALL = (ONE, TWO), (ONE, TWO, "gpu2")
FOLDERS = {ONE: "R1.1/1", TWO: "R1.1/2", "gpu2": "R1.1"}


def rolled(stage: Stage, policy: str = "") -> RunEnd:
    return apply(
        stage.order(plan_text(BETTER).replace("effort: quick\n", f"effort: quick\noutage: 30m\n{policy}")), stage.tools
    )


def slow_with_the_change(host: FakeHost) -> None:
    host.speed = lambda argv, streams: (200 if argv[-1] == "8" else 20, 5)


def cannot_be_restored(host: FakeHost) -> None:
    def refuse(host: FakeHost, call: str) -> None:
        if call == "restore":
            host.read_only = (host.unit_file,)
            raise OSError(f"{host.name}: the disk is gone")

    host.on_call = refuse


def slots(stage: Stage) -> str:
    """What every instance runs with, in order."""
    return " ".join(host.process.argv[-1] if host.process else "-" for host in stage.hosts.values())


def closed(stage: Stage) -> dict[str, str]:
    instances: dict[str, str] = stage.journal.bodies("step.closed")[-1]["instances"]
    return instances


def given_back(stage: Stage) -> bool:
    """Whether no host is held, and nothing is armed anywhere."""
    return all(host.keeper.armed == {} and host.keeper.holder is None for host in stage.hosts.values())


def take_back(stage: Stage, run: str = "R1") -> Ending:
    order = what_to_revert(run, stage.journal.events(run), "a test", stage.journal.lines)
    return revert(order, stage.placed, None, stage.tools)[1]


def cut_off(stage: Stage, call: str, when: str = "", policy: str = "") -> Stage:
    """A rollout whose controller died right before a call, once the instances ran with these slots."""
    stage.world.before = die_before(stage.world, lambda name, _: name == call and slots(stage).startswith(when))
    with pytest.raises(Killed):
        rolled(stage, policy)
    stage.world.before = lambda name: None
    return stage


def leases_run_out(stage: Stage) -> None:
    for host in stage.hosts.values():
        host.lease_runs_out()


def test_each_is_kept_by_itself_under_one_lease_of_the_host() -> None:
    stage = Stage(BOTH)
    end = rolled(stage)

    assert (end.exit_code, end.last.outcome, slots(stage)) == (0, Outcome.KEPT, "8 8")
    acts = [
        act for act in stage.world.trace if act.startswith("play") or act.endswith(("capture", "disarm", "release"))
    ]
    assert acts == [
        *[f"door {name} capture" for name in BOTH],
        *[act for name in BOTH for act in (f"play {name} service", f"play {name} apply", f"door {name} disarm")],
        acts[-1],
    ]
    assert acts[-1].endswith("release")  # once, when neither needs it
    assert given_back(stage)
    decided = stage.hosts[ONE].keeper.decided
    assert {folder: one["outcome"] for folder, one in decided.items()} == {"R1.1/1": "kept", "R1.1/2": "kept"}
    assert closed(stage) == {ONE: "kept", TWO: "kept"}
    assert [(one.host, one.name) for one in host_folders(stage.journal.lines)] == [(ONE, "R1.1/1"), (TWO, "R1.1/2")]


def test_one_that_is_not_kept_goes_back_alone_and_what_runs_where_is_told_by_host_and_port() -> None:
    stage = Stage(ALL)
    slow_with_the_change(stage.hosts[TWO])
    end = rolled(stage)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (4, Outcome.KEPT_PARTLY, "regressed")
    assert slots(stage) == "8 4 4"
    assert closed(stage) == {ONE: "kept", TWO: "reverted", "gpu2": "untouched"}
    assert "gpu1:8080: runs on the change; gpu1:8081: runs on the saved configuration again" in end.last.text
    (status,) = services(runs(stage.journal.lines))
    assert [mix.by_value for mix in status.mixes] == [{"8": [ONE], "4": [TWO, "gpu2"]}]
    assert given_back(stage)


def test_both_go_back_last_first_where_the_plan_says_so() -> None:
    stage = Stage(BOTH)
    slow_with_the_change(stage.hosts[TWO])
    end = rolled(stage, "on_partial: revert_all\n")

    assert (end.exit_code, end.last.outcome) == (4, Outcome.REVERTED)
    plays = [act for act in stage.world.trace if act.startswith("play") and act.endswith("restore")]
    assert plays == [f"play {TWO} restore", f"play {ONE} restore"]
    assert stage.serving_as_before()
    assert given_back(stage)


def test_a_kept_one_serves_on_where_its_neighbour_cannot_be_restored_and_the_host_stays_armed() -> None:
    stage = Stage(BOTH)
    slow_with_the_change(stage.hosts[TWO])
    cannot_be_restored(stage.hosts[TWO])
    end = rolled(stage, "on_partial: revert_all\n")

    assert (end.exit_code, end.last.outcome) == (6, Outcome.REVERT_FAILED)
    assert closed(stage) == {ONE: "kept", TWO: "revert_failed"}
    assert list(stage.hosts[ONE].keeper.armed) == ["R1.1/2"]  # its dead-man goes on trying
    assert stage.hosts[ONE].keeper.holder is not None


def test_the_dead_man_brings_back_the_unjudged_one_and_leaves_the_kept_alone() -> None:
    stage = cut_off(Stage(BOTH), "journal disarm.intent", "8 8")
    leases_run_out(stage)

    assert slots(stage) == "8 4"
    ending = settle(stage)
    assert (exit_code(ending), ending.outcome) == (0, Outcome.KEPT_PARTLY)
    assert closed(stage) == {ONE: "kept", TWO: "reverted"}
    assert slots(stage) == "8 4"
    assert given_back(stage)


def test_what_was_judged_on_the_second_can_be_kept_on_by_a_person() -> None:
    stage = cut_off(Stage(BOTH), "journal disarm.intent", "8 8")
    ending = settle(stage, go_on=True)

    assert (ending.outcome, slots(stage)) == (Outcome.KEPT, "8 8")
    assert given_back(stage)


def test_a_revert_takes_both_back_and_finds_nothing_to_do_the_second_time() -> None:
    stage = Stage(BOTH)
    rolled(stage)
    assert take_back(stage).outcome is Outcome.REVERTED
    assert stage.serving_as_before()
    assert given_back(stage)
    assert take_back(stage).reason == "nothing_to_do"


def test_a_revert_of_two_steps_goes_back_through_all_folders_of_both() -> None:
    stage = Stage(BOTH)
    stage.apply(6, BETTER)
    before = len(stage.playbooks.arguments)
    assert take_back(stage).outcome is Outcome.REVERTED

    folders = [arguments["changectl_run"] for arguments in stage.playbooks.arguments[before:]]
    assert folders == ["R1.2/2", "R1.2/1", "R1.1/2", "R1.1/1"]
    assert stage.serving_as_before()
    assert given_back(stage)


def test_a_revert_goes_to_the_folder_on_record_wherever_the_service_file_lists_the_instance_by_now() -> None:
    stage = Stage(BOTH)
    rolled(stage)
    order = what_to_revert("R1", stage.journal.events("R1"), "a test")
    _, ending = revert(order, tuple(reversed(stage.placed)), None, stage.tools)

    assert ending.outcome is Outcome.REVERTED
    assert stage.serving_as_before()


def test_what_stands_on_both_can_be_accepted() -> None:
    stage = cut_off(Stage(BOTH), "journal disarm.intent", "8 8")
    order = what_to_revert("R1", stage.journal.events("R1"), "put right by hand")
    _, ending = accept_present(order, stage.placed, stage.tools)

    assert (ending.outcome, slots(stage)) == (Outcome.KEPT_UNJUDGED, "8 8")
    assert given_back(stage)


@pytest.mark.parametrize("policy", ["", "on_partial: revert_all\n"])
@pytest.mark.parametrize("acted", [True, False], ids=["the dead-man was first", "recover was first"])
def test_wherever_it_was_cut_off_each_instance_decides_for_itself(policy: str, acted: bool) -> None:
    whole = Stage(ALL)
    rolled(whole)
    decisive = ("lease", "turn", "disarm", " apply", "capture", "restore", ".closed", "release")
    calls = enumerate(whole.world.trace, 1)
    for number in [at for at, call in calls if at % 41 == 1 or any(word in call for word in decisive)]:
        stage = Stage(ALL)
        stage.world.before = die_before(stage.world, lambda _, seen, at=number: seen >= at)  # type: ignore[misc]
        with pytest.raises(Killed):
            rolled(stage, policy)
        stage.world.before = lambda name: None
        if acted:
            leases_run_out(stage)
        if not stage.journal.events("R1") or stage.journal.bodies("run.closed"):
            continue
        decided = {name: stage.hosts[name].keeper.decided.get(FOLDERS[name], {}) for name in ALL}
        kept = [name for name in ALL if decided[name].get("outcome") == "kept"]
        over = bool(stage.journal.bodies("step.closed"))
        ending = settle(stage)

        stays = kept if over or not policy or len(kept) == len(ALL) else []
        where = (number, stage.world.trace[number - 1], ending)
        wanted = Outcome.KEPT if len(stays) == len(ALL) else Outcome.KEPT_PARTLY if stays else None
        assert wanted in (ending.outcome, None), where
        assert slots(stage) == " ".join("8" if name in stays else "4" for name in ALL), where
        assert exit_code(ending) == 0, where
        assert given_back(stage), where


def test_wherever_recover_dies_too_the_next_one_settles_it() -> None:
    length = len(cut_off(Stage(BOTH), "journal disarm.intent", "8 8").world.trace)
    first = cut_off(Stage(BOTH), "journal disarm.intent", "8 8")
    settle(first)
    for number in range(1, len(first.world.trace) - length + 1, 3):
        stage = cut_off(Stage(BOTH), "journal disarm.intent", "8 8")
        stage.world.before = die_before(stage.world, lambda _, seen, at=number: seen >= at)  # type: ignore[misc]
        with pytest.raises(Killed):
            settle(stage)
        stage.world.before = lambda name: None
        if not stage.journal.bodies("run.closed"):
            settle(stage)
        where = (number, stage.world.trace[length + number - 1])
        assert slots(stage) == "8 4", where
        assert stage.hosts[ONE].keeper.armed == {}, where


def with_a_common_environment_file() -> Stage:
    """Both units read one and the same environment file."""
    stage = Stage(BOTH, service_text=SERVICE.replace("/etc/chat.env", "/etc/common.env"))
    for name in BOTH:
        host = stage.hosts[name]
        text = host.files[host.unit_file].decode().replace(host.env, "/etc/common.env")
        host.files = {host.unit_file: text.encode(), "/etc/common.env": host.files[host.env]}
        host.env = "/etc/common.env"
        host.restart()
    stage.world.seconds += 60
    return stage


ENVIRONMENT = """\
version: 1
service: chat
reason: a story
effort: quick
steps:
  - change: {environment: {name: OMP_NUM_THREADS, to: "2"}}
    expect: neutral
"""


def test_a_file_that_another_instance_reads_is_not_edited_and_the_refusal_says_what_to_do_instead() -> None:
    stage = with_a_common_environment_file()
    before = {name: host.digests() for name, host in stage.hosts.items()}
    end = apply(stage.order(ENVIRONMENT), stage.tools)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (3, Outcome.REFUSED, "shared_file")
    assert "gpu1:8080, gpu1:8081 on host gpu1 share /etc/common.env" in end.last.text
    assert "systemctl edit UNIT" in end.last.text
    assert {name: host.digests() for name, host in stage.hosts.items()} == before
    assert given_back(stage)

    (step,) = preview(stage.order(ENVIRONMENT), stage.tools)
    assert "share /etc/common.env" in step.refusal
    assert not would_proceed([step])
    assert rolled(stage).exit_code == 0  # the units are their own


def test_the_preview_names_every_instance_by_host_and_port() -> None:
    stage = Stage(BOTH)
    (step,) = preview(stage.order(plan_text(BETTER)), stage.tools)

    assert [(one.instance, one.path) for one in step.instances] == [
        (ONE, "/etc/systemd/system/chat-8080.service"), (TWO, "/etc/systemd/system/chat-8081.service"),
    ]  # fmt: skip
    assert would_proceed([step])


def test_a_balancer_takes_out_the_member_at_the_instances_own_port() -> None:
    stage = Behind(names=ALL)
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome) == (0, Outcome.KEPT)
    assert stage.users_noticed_nothing
    assert [body["host"] for body in stage.journal.bodies("drain.intent")] == list(ALL)
    assert stage.balancer.keeper.holder is None


def test_instances_that_the_same_unit_starts_are_refused_before_any_host_is_touched() -> None:
    stage = Stage(BOTH, service_text=SERVICE.replace("chat.service", "same.service"))
    with pytest.raises(InputError, match="started by the same thing") as refused:
        stage.order(plan_text(BETTER))
    assert "gpu1:8080 and gpu1:8081 on host gpu1" in str(refused.value)


def test_another_service_on_the_host_has_its_turn_once_this_one_is_done() -> None:
    first, second = Stage(), Stage()
    second.runs, second.host.keeper = 5, first.host.keeper
    codes = []

    def come_between(name: str) -> None:
        if name == "journal verdict":
            codes.append(second.apply(BETTER).exit_code)

    first.world.before = come_between
    codes += [first.apply(BETTER).exit_code, second.apply(BETTER).exit_code]

    assert codes == [7, 0, 0]
    decided = first.host.keeper.decided
    assert {folder: one["outcome"] for folder, one in decided.items()} == {"R1.1": "kept", "R7.1": "kept"}

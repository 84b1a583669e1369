"""A real server of tensors, declared as a generic engine and measured through the Open Inference Protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.mlserver_service import MlserverService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240, func_only=True)]
#: These tests are about what is measured, and not about the speed of the machine they run on.
ANY_SPEED = "    accept: {e2e_user: <= 60s, rps_ok: '>= 0.01 rps'}\n"


@pytest.fixture
def iris(m1: LabHost) -> Iterator[MlserverService]:
    service = MlserverService(m1)
    try:
        service.install()
        yield service
    finally:
        service.uninstall()


def laid_out(desk: Desk, iris: MlserverService) -> Desk:
    desk.lay_out([iris], texts={iris.name: iris.described})  # type: ignore[list-item]  # it has all that is asked for
    (desk.folder / "workloads" / f"{iris.name}.jsonl").write_text(iris.workload)
    return desk


def test_a_json_setting_of_a_server_of_tensors_is_measured_and_kept(desk: Desk, iris: MlserverService) -> None:
    laid_out(desk, iris)

    plan = desk.plan("{parameter: {name: debug, from: 'true', to: 'false'}}", service=iris.name, more=ANY_SPEED)
    ended = desk.measured(plan, 0, timeout=220)

    assert iris.settings()["debug"] is False
    assert iris.serves()
    step = desk.show(ended.document["run"]["run"])["steps"][0]
    assert step["ready"][0]["detail"] == "answered y FP32"
    levels = [level for phase in step["measurements"] for level in phase["summary"]["levels"]]
    assert len(levels) == 2
    for level in levels:
        assert level["ok"] == level["n"] > 0
        assert level["finish"] == {"y FP32": level["n"]}
        assert level["latency"]["e2e_user"]["p50"] > 0
        assert level["latency"]["ttft_user"]["p50"] is level["out_tok_s"] is None
    rows = {row["metric"]: row["state"] for row in step["rows"]}
    assert rows["ttft_user_p50"] == rows["tpot_p50"] == rows["out_tok_s"] == "not defined"


def test_a_value_with_which_it_does_not_start_ends_restored(desk: Desk, iris: MlserverService) -> None:
    laid_out(desk, iris)
    before = iris.host.read_file(iris.env_file)

    change = "{environment: {name: MLSERVER_GRPC_MAX_MESSAGE_LENGTH, from: absent, to: many}}"
    ended = desk.measured(desk.plan(change, service=iris.name, more=ANY_SPEED), 4, timeout=220)

    assert ended.document["reason"] == "did_not_start"
    assert iris.host.read_file(iris.env_file) == before
    assert iris.serves()


def test_a_limit_on_a_first_token_is_refused_with_what_to_limit_instead(desk: Desk, iris: MlserverService) -> None:
    laid_out(desk, iris)

    plan = desk.plan("{parameter: {name: debug, from: 'true', to: 'false'}}", service=iris.name,
                     more="    accept: {ttft_user_p95: <= 1s}\n")  # fmt: skip

    assert "name `e2e_user` instead" in desk.run("validate", "-i", "hosts.yml", plan).expect(2).err

"""`changectl selftest` on a real service: a real delay is seen, and the host stays as it is."""

from __future__ import annotations

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.test_plan import ServiceMaker, everything, processes

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240, func_only=True)]
# What other work of this machine does to the load generator. That it is said is right, too; a delay that went unseen,
# or a difference where there is none, never is.
DISTURBED = ("the load generator did not keep up", "the load generator did not tell time", "good answers to")


def test_a_delay_on_the_way_is_seen_and_nothing_on_the_host_is_changed(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service], levels="{low: 2 streams}")
    h1.ssh("true")
    files, started = everything(h1), processes(h1, service)

    ended = desk.run("selftest", "-i", "hosts.yml", service.name, "--seconds", "4s", "--json")

    assert everything(h1) == files
    assert processes(h1, service) == started
    assert "6 phases at low (2 streams), about 24s" in ended.err
    (one,) = ended.document["instances"]
    if ended.code == 0:
        assert (one["state"], one["delayed"], one["reasons"]) == ("sees", "regressed", [])
        assert one["found"] == pytest.approx(one["delay"], rel=0.5)
    else:
        assert (ended.code, one["state"]) == (3, "blind")
        texts = [reason["text"] for reason in one["reasons"]]
        assert [text for text in texts if not any(words in text for words in DISTURBED)] == []
    last = desk.run("selftest", "-i", "hosts.yml", service.name, "--last", "--json").expect(ended.code)
    assert last.document["run"] == ended.document["run"]

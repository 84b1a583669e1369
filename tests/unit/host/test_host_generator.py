"""A load generator that fails after it said something plausible measured nothing."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.unit.host.test_host_doors import generator

from changectl_host import Failure

PLAUSIBLE = """\
import json, os, signal, sys
for number in range(60):
    print(json.dumps({"i": number, "level": "normal", "cls": "ok", "status": 200, "n_out": 10}), flush=True)
print(json.dumps({"summary": {"wall_start": 1.0, "requests": 60}}), file=sys.stderr, flush=True)
"""


@pytest.mark.parametrize("end", ["sys.exit(3)", "raise MemoryError", "os.kill(os.getpid(), signal.SIGTERM)"])
def test_records_of_a_generator_that_ended_badly_are_no_measurement_however_good_they_look(host: Any, end: str) -> None:
    def measure(source: str) -> Any:
        return host.call("measure", generator=base64.b64encode(generator(source)).decode())

    assert measure(PLAUSIBLE)["count"] == 60
    with pytest.raises(Failure, match="ended with status") as caught:
        measure(PLAUSIBLE + end)
    assert caught.value.reason == "generator_failed"
    assert caught.value.details["status"] not in (0, None)

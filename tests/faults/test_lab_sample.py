"""A fixed sample of the matrix on hosts of the lab, both at the same time: every fault, every lifecycle state.

The whole matrix is `make faults`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.faults.cells import lab_cells, sample
from tests.faults.lab_runs import lab_runs
from tests.faults.table import table
from tests.faults.worlds import Result
from tests.lab.harness.install import LabMissingError, demanded

pytestmark = pytest.mark.lab

SIZE = 40


@pytest.fixture(scope="module")
def results() -> Iterator[list[Result]]:
    try:
        with lab_runs() as made:
            yield list(made.run_all(sample(list(lab_cells(made.dry_runs())), SIZE)))
    except LabMissingError as problem:
        if demanded():
            pytest.fail(f"CI leaves nothing out, but: {problem}", pytrace=False)
        pytest.skip(f"no lab: {problem}")


def test_after_every_fault_the_saved_configuration_or_a_judged_change_is_in_force(results: list[Result]) -> None:
    assert len(results) == SIZE
    assert all(result.sound for result in results), table(results)

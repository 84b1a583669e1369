"""A fixed sample of the matrix of faults on two hosts of the lab at once: every fault, every lifecycle state.

The whole matrix is `make faults`; what a cell is, and who judges it, stands in tests/faults.
"""

from __future__ import annotations

import pytest
from tests.faults.cells import lab_cells, sample
from tests.faults.lab_runs import runs_on
from tests.faults.table import table
from tests.faults.worlds import Result
from tests.lab.harness.lab import Lab

pytestmark = pytest.mark.lab

SIZE = 40


@pytest.fixture(scope="module")
def results(lab: Lab) -> list[Result]:
    with runs_on(lab) as made:
        return list(made.run_all(sample(list(lab_cells(made.dry_runs())), SIZE)))


def test_after_every_fault_the_saved_configuration_or_a_judged_change_is_in_force(results: list[Result]) -> None:
    assert len(results) == SIZE
    assert all(result.sound for result in results), table(results)

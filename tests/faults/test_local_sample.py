"""A fixed sample of the matrix over the local connection: every fault, every lifecycle state, about four minutes.

The whole matrix is `make faults`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.faults import inside
from tests.faults.cells import local_cells, sample
from tests.faults.table import table
from tests.faults.worlds import Result, worlds
from tests.lab.harness.install import demanded

pytest.importorskip("xllamacpp", reason="the engine comes with the extra `demo`")

SIZE = 24


@pytest.fixture(scope="module")
def results() -> Iterator[list[Result]]:
    reason = inside.possible()
    if reason is not None:
        if demanded():
            pytest.fail(f"CI leaves nothing out, but: {reason}", pytrace=False)
        pytest.skip(f"cells need namespaces of their own: {reason}")
    with worlds() as made:
        yield list(made.run_all(sample(list(local_cells(made.dry_runs())), SIZE)))


def test_after_every_fault_the_saved_configuration_or_a_judged_change_is_in_force(results: list[Result]) -> None:
    assert len(results) == SIZE
    assert all(result.sound for result in results), table(results)

"""Two instances on one host: whoever dies, the one that was not decided goes back, and the one that is kept stays."""

from __future__ import annotations

import pytest
from tests.faults import inside
from tests.faults.bench import NEW_SLOTS, OLD_SLOTS
from tests.faults.worlds import worlds
from tests.lab.harness.install import demanded

pytest.importorskip("xllamacpp", reason="the engine comes with the extra `demo`")

UNDECIDED = {"when": "after", "kind": "verdict", "number": 2}
NOT_BEGUN = {"when": "after", "kind": "disarm.outcome", "number": 1}


@pytest.mark.parametrize("point", [UNDECIDED, NOT_BEGUN], ids=["the second was armed", "the second was not begun"])
def test_the_controller_dies_once_the_first_is_kept(point: dict[str, object]) -> None:
    reason = inside.possible()
    if reason is not None:
        if demanded():
            pytest.fail(f"CI leaves nothing out, but: {reason}", pytrace=False)
        pytest.skip(f"cells need namespaces of their own: {reason}")
    with worlds() as made:
        told = made.pair(point)

    assert told["struck"], told
    assert told["by_the_host"] == [NEW_SLOTS, OLD_SLOTS], told
    assert (told["recover"], told["outcome"], told["ended"]) == (0, "kept_partly", True), told
    assert told["slots"] == [NEW_SLOTS, OLD_SLOTS], told

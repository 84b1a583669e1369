"""The plans that are shipped show the product as it is: no margin is widened but by a declared trade."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

import changectl
from changectl import kinds
from changectl.core.declared import plan as plans

PACKAGE = Path(changectl.__file__).parent
ROOT = Path(__file__).parents[3]
DEMO = PACKAGE / "demo" / "example"
DEMO_PLANS = sorted((DEMO / "changeplans").glob("*.yml"))
SHIPPED = [
    *DEMO_PLANS,
    *sorted((PACKAGE / "scaffold" / "changeplans").glob("*.yml")),
    *sorted((ROOT / "changeplans").glob("*.yml")),
]

# A trade has two sides: what gets better, and the other thing that may get worse for it.
TRADES = {"0001-more-slots.yml": {"tpot"}, "0002-one-slot.yml": set()}


def raw(path: Path) -> dict:
    return YAML(typ="safe").load(path.read_text())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_plan_widens_no_margin_but_as_the_price_of_another_gain(path: Path) -> None:
    plan = plans.load(path.read_bytes(), path.name, kinds=kinds.specs())
    for step in plan.steps:
        accepted = {guard.ref.metric.name for guard in step.accept}
        gained = {gain.ref.metric.name for gain in step.expect.gains}
        assert not accepted & gained
        assert not accepted or gained, "a price without a gain is no trade"
        assert "failures" not in accepted
        assert set(plan.guards((), step)) == set(step.accept)


def test_the_demo_accepts_the_trades_that_it_tells_of_and_no_others() -> None:
    assert {path.name: accepted_by(path) for path in DEMO_PLANS} == TRADES


def accepted_by(path: Path) -> set[str]:
    plan = plans.load(path.read_bytes(), path.name, kinds=kinds.specs())
    return {guard.ref.metric.name for step in plan.steps for guard in step.accept}


@pytest.mark.parametrize("path", DEMO_PLANS, ids=lambda path: path.stem)
def test_a_demo_plan_says_nothing_else_that_could_spare_it_the_defaults(path: Path) -> None:
    assert set(raw(path)) == {"version", "service", "reason", "effort", "steps"}
    (step,) = raw(path)["steps"]
    assert set(step) <= {"change", "expect", "accept"}


def test_the_demo_service_replaces_no_default_margin() -> None:
    service = raw(DEMO / "inventory" / "services" / "chat.yml")
    assert service["class"] == "interactive"  # the class that guards the most
    assert "slo" not in service

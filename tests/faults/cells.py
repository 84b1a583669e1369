"""The matrix: which fault strikes where. Points come from a dry run, so that they are those that really happen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

#: A lifecycle state begins with the event that is named here; what no event begins belongs to the state before it.
STATES = {
    "run.opened": "opened",
    "lease.intent": "leasing",
    "lease.outcome": "leased",
    "contact": "contacted",
    "capture.intent": "saving",
    "capture.outcome": "saved",
    "measure.intent": "baseline",
    "write.intent": "writing",
    "arm.outcome": "armed",
    "write.outcome": "starting",
    "ready.outcome": "ready",
    "effective.outcome": "effective",
    "measure.intent/2": "measuring",
    "verdict": "judged",
    "disarm.intent": "disarming",
    "disarm.outcome": "disarmed",
    "step.closed": "closed",
    "evidence.outcome": "leaving",
    "lease.intent/2": "taking over",
    "restore.intent": "restoring",
    "restore.outcome": "restarting",
    "ready.outcome/2": "back",
    "verify.intent": "proving",
    "verify.outcome": "proven",
}
#: Nothing was done to the service yet; what a signal or a kill does there is the same for every plan.
BEFORE_ANYTHING = ("opened", "leasing", "leased", "contacted", "saving", "saved")
SIGNALS = ("INT", "TERM", "HUP")
PLANS = ("kept", "reverted")


@dataclass(frozen=True)
class Point:
    """Right before or after the n-th event of a kind is committed, in the lifecycle state that is left or begun."""

    when: str
    kind: str
    number: int
    state: str

    def __str__(self) -> str:
        return f"{self.when}-{self.kind}-{self.number}"


@dataclass(frozen=True)
class Cell:
    """One fault at one point of one plan on one kind of host."""

    place: str  # local, or lab
    plan: str
    fault: str
    point: Point

    @property
    def name(self) -> str:
        """Unique, and good as the name of a folder."""
        return f"{self.place}-{self.plan}-{self.fault}-{self.point}"


def points(kinds: Sequence[str]) -> list[Point]:
    """Every moment right before and right after an event, in the order in which a run met them."""
    found, seen, state = [], Counter[str](), "opened"
    for kind in kinds:
        seen[kind] += 1
        found.append(Point("before", kind, seen[kind], state))
        state = STATES.get(f"{kind}/{seen[kind]}") or (STATES.get(kind, state) if seen[kind] == 1 else state)
        found.append(Point("after", kind, seen[kind], state))
    return found


def states(kinds: Sequence[str]) -> list[Point]:
    """One moment in every lifecycle state: right after the event that begins it."""
    found: dict[str, Point] = {}
    for point in points(kinds):
        if point.when == "after":
            found.setdefault(point.state, point)
    return list(found.values())


def distinct_states(kinds: Mapping[str, Sequence[str]]) -> list[tuple[str, Point]]:
    """Every lifecycle state once, with a plan that meets it: up to the verdict both plans are the same."""
    reverted = states(kinds["reverted"])
    judged = [point.state for point in reverted].index("judged") + 1
    return [
        *(("kept", point) for point in states(kinds["kept"])),
        *(("reverted", point) for point in reverted[judged:]),
    ]


def local_cells(kinds: Mapping[str, Sequence[str]]) -> Iterator[Cell]:
    """All cells over the local connection. `kinds`: plan -> the events of an undisturbed run of it."""
    for plan in PLANS:
        for point in points(kinds[plan]):
            yield Cell("local", plan, "kill", point)
    for plan, point in distinct_states(kinds):
        for name in SIGNALS:
            yield Cell("local", plan, name.lower(), point)
        if point.state not in BEFORE_ANYTHING:
            yield Cell("local", plan, "hang", point)
        for disk in ("state", "service", "project"):
            yield Cell("local", plan, f"full-{disk}", point)
    yield from _orphans("local", kinds)
    for point in states(kinds["dying"]):
        if point.state not in BEFORE_ANYTHING:
            yield Cell("local", "dying", "kill", point)
            yield Cell("local", "dying", "int", point)
    yield Cell("local", "dying", "crash", states(kinds["dying"])[0])
    yield Cell("local", "none", "race", Point("after", "contact", 1, "contacted"))


def lab_cells(kinds: Mapping[str, Sequence[str]]) -> Iterator[Cell]:
    """All cells on hosts with a systemd and an sshd of their own."""
    for plan, point in distinct_states(kinds):
        for fault in ("kill", "int", "term", "link-seconds", "link-gone", "power", "reboot", "sshd"):
            yield Cell("lab", plan, fault, point)
    yield from _orphans("lab", kinds)
    yield Cell("lab", "dying", "crash", states(kinds["dying"])[0])


def _orphans(place: str, kinds: Mapping[str, Sequence[str]]) -> Iterator[Cell]:
    """What a dead command left behind writes late: a change, or a restore."""
    for plan in PLANS:
        for point in states(kinds[plan]):
            if point.kind == {"kept": "write.intent", "reverted": "restore.intent"}[plan]:
                yield Cell(place, plan, "orphan", point)


def sample(cells: Sequence[Cell], size: int) -> list[Cell]:
    """A fixed choice that meets every fault and every lifecycle state; always the same for the same cells."""
    chosen: list[Cell] = []
    left = list(cells)
    faults, met = Counter[str](), Counter[str]()
    while left and len(chosen) < size:
        best = min(left, key=lambda cell: (faults[cell.fault], met[cell.point.state], cells.index(cell)))
        left.remove(best)
        chosen.append(best)
        faults[best.fault] += 1
        met[best.point.state] += 1
    return chosen

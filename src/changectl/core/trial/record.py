"""A trial as the record keeps it: the phases that were measured, and the looks that were taken at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changectl.core.history.events import MEASURE, VERDICT, items_of, mapping_of, mappings_of, outcome, text_of
from changectl.core.history.runs import RunSummary
from changectl.core.judging.conditions import Fingerprint
from changectl.core.judging.judgement import HardEvent, Reason
from changectl.core.measuring.measured import Measurement
from changectl.core.ports import Event
from changectl.core.trial.noise_model import NOTHING_KNOWN, NoiseModel
from changectl.core.trial.phases import TrialPhase, pairs_done


@dataclass(frozen=True, slots=True)
class RecordedTrial:
    """The trial of one instance up to now, over all the runs that it was extended by.

    Attributes:
        phases: in the order in which they ran.
        looks: the numbers of pairs after which there was a look.
        more_pairs: how many more would decide it, as the last look said; None: no number would.
        noise: what the noise of the host was taken for.
    """

    phases: tuple[TrialPhase, ...]
    looks: tuple[int, ...]
    more_pairs: int | None = None
    noise: NoiseModel = NOTHING_KNOWN

    @property
    def pairs(self) -> int:
        """How many were run."""
        return pairs_done(self.phases)


def looks_taken(phases: Sequence[TrialPhase], schedule: Iterable[int]) -> tuple[int, ...]:
    """The looks of a schedule that so many phases were enough for."""
    return tuple(look for look in sorted(schedule) if 2 * look <= max((phase.number for phase in phases), default=0))


def recorded_trial(events: Sequence[Event], host: str) -> RecordedTrial | None:
    """The trial of an instance; None: it had none of several pairs, or its looks are not on record.

    Args:
        events: of all runs that belong to the trial, oldest first.
        host: the instance.

    Raises:
        ValueError: a phase is not readable: it was recorded in another shape.
    """
    own = [event for event in events if text_of(event.body, "host") == host]
    verdict = next((event.body for event in reversed(own) if event.kind == VERDICT), {})
    bodies = [event.body for event in own if event.kind == outcome(MEASURE) and event.body.get("ok")]
    looks = items_of(verdict, "looks")
    if not looks or not bodies or any("number" not in body for body in bodies):
        return None
    assumed = mapping_of(mapping_of(verdict, "terms"), "noise")
    noise = NoiseModel.from_json(assumed) if assumed else NOTHING_KNOWN  # older programs knew nothing of any host
    return RecordedTrial(tuple(map(recorded_phase, bodies)), tuple(looks), verdict.get("more_pairs"), noise)


def trial_runs(run: str, runs: Iterable[RunSummary]) -> list[str]:
    """The runs over which the trial of a run went, that one last."""
    by_name = {one.run: one for one in runs}
    found = [run]
    while (before := by_name[found[0]].extends if found[0] in by_name else None) and before not in found:
        found.insert(0, before)
    return found


def recorded_phase(body: Mapping[str, Any]) -> TrialPhase:
    """One phase from its `measure.outcome`; that of a quick trial has no number: its A is the first, its B the second.

    Raises:
        ValueError: it was recorded in another shape.
    """
    try:
        return TrialPhase(
            number=body.get("number", 1 + "AB".index(body["phase"])),
            letter=body["phase"],
            measurement=Measurement.from_json(body["summary"]),
            conditions=Fingerprint.from_json(body["conditions"]),
            fresh=body["fresh_start"],
            events=tuple(HardEvent(**event) for event in mappings_of(body, "events")),
            observations=tuple(
                Reason(text_of(one, "code"), text_of(one, "text")) for one in mappings_of(body, "observations")
            ),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not the shape of a measured phase: {error!r}") from error

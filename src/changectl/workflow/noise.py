"""The noise of a host: what a trial takes it for before it begins, and what it finds out about it for later ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from changectl.core.judging.hardware import hardware
from changectl.core.judging.judgement import Judgement
from changectl.core.trial.noise_learned import known, learned, tells_noise, usually
from changectl.core.trial.noise_model import NoiseModel
from changectl.core.trial.phases import TrialPhase
from changectl.core.trial.record import RecordedTrial
from changectl.workflow.attempt import Attempt
from changectl.workflow.conditions import LoadPlan, model_digest
from changectl.workflow.contact import Contact
from changectl.workflow.tools import Tools

ORDER_OF_REQUESTS = "seed"  # of a load it says least: another order of the same requests is as noisy


def alike(contact: Contact, load: LoadPlan) -> dict[str, Any]:
    """What has to be the same on another host, or later, for its noise to be the same; None: not known."""
    target, host = contact.target, contact.host_answer
    version = target.engine.version(contact.pages, contact.status.whole_log)
    own = hardware(host, version)
    memory = None if own.memory is None else round(own.memory / 1e9)
    facts = {**own.parts.facts, "memory_gb": memory, "kernel": host.get("kernel"), "engine": target.engine.name}
    facts |= {"model": model_digest(contact.model), "caller": load.caller.name if load.caller else "", **load.facts()}
    facts.pop(ORDER_OF_REQUESTS)
    return facts


def known_noise(contact: Contact, load: LoadPlan, tools: Tools, ahead: timedelta = timedelta()) -> NoiseModel:
    """What earlier trials on this host and its like found out, as far as it counts now, or so much later."""
    then = datetime.fromisoformat(tools.clock.now()) + ahead
    return known(tools.memory.learned(), alike(contact, load), then.isoformat())


def usual_figures(contact: Contact, load: LoadPlan, tools: Tools) -> dict[str, float]:
    """How large the figures on this host and its like were lately with the configuration of that time."""
    return usually(tools.memory.learned(), alike(contact, load), tools.clock.now())


class HostNoise:
    """The noise in one trial: it is asked for once, so that no look takes it for anything else than the one before."""

    def __init__(self, attempt: Attempt, load: LoadPlan, earlier: RecordedTrial | None) -> None:
        self._attempt, self._load, self._earlier = attempt, load, earlier

    @cached_property
    def assumed(self) -> NoiseModel:
        """What is taken for it; a trial that goes on takes it for what it did before."""
        if self._earlier is not None:
            return self._earlier.noise
        return known_noise(self._attempt.contact, self._load, self._attempt.tools)

    def found(self, phases: Sequence[TrialPhase], judgement: Judgement) -> Mapping[str, Any] | None:
        """For the record: what the phases say of it; None: they are too few, or were not as they should be."""
        tools, run = self._attempt.tools, self._attempt.recorder.run
        told = phases if tells_noise(judgement) else ()
        found = learned(told, alike(self._attempt.contact, self._load), tools.clock.now(), run)
        return None if found is None else found.to_json()

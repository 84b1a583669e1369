"""Can the effort decide the plan's limits here? Where it cannot, the restarts would buy no verdict."""

from __future__ import annotations

from dataclasses import replace

from changectl.core.precheck import Check, CheckResult, Situation
from changectl.core.trial.power import Blind, Power

ORDER = 90
CHECK = Check("decidable", "required")
_NAMED = 3  # limits that a sentence lists


def check(situation: Situation) -> CheckResult:
    """By this host's own noise it refuses; by the guess that stands in where nobody knows it, it is advice."""
    power = situation.power
    if power is None:
        return CHECK.unknown("what the effort can decide was not computed")
    if power.spared:
        return CHECK.not_applicable(power.spared)
    if not power.blind:
        return CHECK.passed("it can decide every default margin and expected gain", _figure(power))
    certain = [one for one in power.blind if one.certain]
    if not certain:
        hint = f"`changectl calibrate {power.service}` finds out; {_ways(power.blind)}"
        guess = "taking a guess for this host's noise, its effort leaves open: "
        return replace(CHECK.failed(guess + _listed(power.blind), hint, _figure(power)), level="advice")
    text = f"its effort is not enough on this host: {_listed(certain)}"
    if power.accepted:
        return replace(CHECK.failed(f"{text}. The plan accepts that", "", _figure(power)), level="advice")
    hint = f"{_ways(certain)}, or `accept_undecided: true` if a trial without a verdict is worth its restarts"
    return replace(CHECK.failed(text, hint, _figure(power)), reason="undecidable")


def _figure(power: Power) -> str:
    return f"{power.pairs} pair{'' if power.pairs == 1 else 's'}"


def _listed(blind: tuple[Blind, ...] | list[Blind]) -> str:
    more = len(blind) - _NAMED
    return "; ".join(one.text for one in blind[:_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _ways(blind: tuple[Blind, ...] | list[Blind]) -> str:
    """What decides it: more pairs, if a trial can have so many; else only other limits do."""
    needed = [one.enough for one in blind]
    enough = [number for number in needed if number is not None]
    if len(enough) < len(needed):
        return "no effort is enough for all of it: measure longer phases, or accept a limit that is wider (`accept`)"
    return f"{max(enough)} pairs are enough (`effort: thorough` has up to 8), or accept a wider limit (`accept`)"

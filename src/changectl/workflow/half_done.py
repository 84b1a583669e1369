"""A step that was cut off, once its hosts have said what is true: how it ends, and what each instance runs then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from changectl.core.errors import LeftToHost, Refused
from changectl.core.lifecycle import DECIDED, Ending, Found, Outcome
from changectl.core.rollout import ALREADY, UNTOUCHED, mix
from changectl.workflow.hold import Hold
from changectl.workflow.not_kept import NotKept
from changectl.workflow.open_run import OpenRun
from changectl.workflow.restore import FAILED, LEFT, REVERTED, UNVERIFIED, Restored, bring_back
from changectl.workflow.revert_order import KeptEdit
from changectl.workflow.tools import Tools
from changectl.workflow.trial import still_good, still_written

RECOVERED = "recovered"
Ends = Mapping[str, str]  # by instance: what became of it


@dataclass(frozen=True)
class HalfDone:
    """A step that was cut off.

    Attributes:
        order: the run, as the record tells it.
        holds: what it takes to act on each instance that it had saved, in order.
        found: by instance: what its host said.
        tools: the ports.
    """

    order: OpenRun
    holds: Sequence[tuple[Hold, KeptEdit]]
    found: Mapping[str, Found]
    tools: Tools

    def ended(self, ending: Ending, now: Mapping[str, str] | None = None) -> tuple[Ending, Ends]:
        """The ending, and what became of each instance; `now`: of those on which something was done just now."""
        return ending, {name: (now or {}).get(name) or self._end_of(name) for name in self.order.instances}

    def _end_of(self, name: str) -> str:
        found = self.found.get(name)
        if found in DECIDED:
            judged = found is Found.KEPT and name in self.order.judged
            return (Outcome.KEPT if judged else Outcome.KEPT_UNJUDGED).value
        return ALREADY if name in self.order.already else UNTOUCHED

    def kept(self) -> tuple[Ending, Ends]:
        """Every host that was touched has on record that it stays."""
        if any(one is Found.UNTOUCHED for one in self.found.values()):
            return self._in_part({})
        if Found.ACCEPTED in self.found.values():
            return self.ended(_unjudged("its host has on record that a person accepted it"))
        if not set(self.found) <= self.order.judged:
            return self.ended(_unjudged("its host has on record that it was kept, unjudged"))
        return self.ended(Ending(Outcome.KEPT, RECOVERED, "every host has on record that it was judged and kept"))

    def kept_on(self) -> tuple[Ending, Ends]:
        """Finish what was cut off between a verdict and the host's decision. Raises Refused."""
        untouched = [name for name, one in self.found.items() if one is Found.UNTOUCHED]
        if untouched and self.order.all_or_none:
            text = f"{', '.join(untouched)}: it was not changed yet, and the plan says on_partial: revert_all"
            raise Refused(f"{text}; leave out --continue to bring the saved configuration back", reason="not_judged")
        for _, edit in self.holds:
            found = self.found[edit.instance]
            if found in (*DECIDED, Found.UNTOUCHED) or (found is Found.OPEN and edit.instance in self.order.good):
                continue
            text = f"{edit.instance}: it was not judged good, or not watched to the end, or does not stand there"
            raise Refused(f"{text}; leave out --continue to bring the saved configuration back", reason="not_judged")
        waiting = [(hold, edit) for hold, edit in self.holds if self.found[edit.instance] is Found.OPEN]
        try:
            for hold, edit in waiting:
                still_good(hold.target, self.order.good[edit.instance], self.tools.clock)
                still_written(hold.target, edit.path, edit.after)
        except NotKept as cause:
            raise Refused(f"{cause}; leave out --continue", reason=cause.reason) from cause
        self.tools.interrupts.check()  # the last moment
        with self.tools.interrupts.ignored():
            for hold, _ in waiting:
                hold.lease.disarm("kept")
        now = {edit.instance: Outcome.KEPT.value for _, edit in waiting}
        if any(one is Found.UNTOUCHED for one in self.found.values()):
            return self._in_part(now)
        text = "it was judged before it was cut off, still runs and answers: kept"
        return self.ended(Ending(Outcome.KEPT, RECOVERED, text), now)

    def restored(self) -> tuple[Ending, Ends]:
        """Bring back what is not decided, last instance first, whoever did it before: what stands is only proven.

        Raises:
            LeftToHost: a host does not answer any more; its dead-man restores it.
        """
        decided = [pair for pair in reversed(self.holds) if self.found[pair[1].instance] in DECIDED]
        begun = [pair for pair in reversed(self.holds) if self.found[pair[1].instance] in (Found.OPEN, Found.RESTORED)]
        ends: dict[str, Restored] = {}
        for hold, edit in [*begun, *(decided if self.order.all_or_none else ())]:
            bad = any(end.outcome != REVERTED or end.still_out for end in ends.values())
            if bad and self.found[edit.instance] in DECIDED:
                break  # a good one serves on as long as another one is out
            hold.insist()
            by_host = self.found[edit.instance] is Found.RESTORED
            with hold.tools.interrupts.ignored():
                ends[edit.instance] = (_changed_since(hold, edit) if by_host else None) or bring_back(hold)
            hold.lease.give_back()
        if any(end.outcome == LEFT for end in ends.values()):
            raise LeftToHost("\n".join(end.detail for end in ends.values() if end.outcome != REVERTED))
        now, text = {name: end.outcome for name, end in ends.items()}, "\n".join(end.detail for end in ends.values())
        stays = [edit.instance for _, edit in decided if edit.instance not in ends]
        worse = [end.outcome for end in ends.values() if end.outcome != REVERTED]
        if worse:
            text += f"\n{mix({name: self._end_of(name) for name in stays})}" if stays else ""
            return self.ended(Ending(Outcome(FAILED if FAILED in worse else worse[0]), "needs_person", text), now)
        return self._in_part(now, text) if stays else self.ended(Ending(Outcome.REVERTED, RECOVERED, text), now)

    def _in_part(self, now: Mapping[str, str], text: str = "") -> tuple[Ending, Ends]:
        _, ends = self.ended(_unjudged(""), now)
        told = "\n".join(line for line in (text, f"it was cut off between its instances. {mix(ends)}") if line)
        return Ending(Outcome.KEPT_PARTLY, RECOVERED, told), ends


def _unjudged(text: str) -> Ending:
    return Ending(Outcome.KEPT_UNJUDGED, RECOVERED, text)


def _changed_since(hold: Hold, edit: KeptEdit) -> Restored | None:
    """What somebody changed after the host had brought it back stays, unproven; None: it is as it was brought back."""
    facts = hold.target.inspect().files.get(edit.path)
    if facts is not None and facts.exists and facts.sha256 == edit.before:
        return None
    text = "its host had brought the saved configuration back; somebody changed"
    return Restored(UNVERIFIED, f"{edit.instance}: {text} {edit.path} since, and that stays")

"""Before a trial goes on: is the instance as it was when its phases on record were measured?"""

from __future__ import annotations

from changectl.core.errors import Refused
from changectl.core.judging.conditions import differences
from changectl.core.trial.phases import of_letter
from changectl.core.trial.record import RecordedTrial
from changectl.workflow.attempt import Attempt
from changectl.workflow.calling import Sent, calling
from changectl.workflow.conditions import LoadPlan, Present, fingerprint, model_digest

CONDITIONS_DIFFER = "conditions_differ"


def require_same_conditions(attempt: Attempt, load: LoadPlan, earlier: RecordedTrial) -> None:
    """Hold what was read at the contact, nothing being changed yet, against the first phase of A.

    Raises:
        Refused: something differs, so that new phases could not be compared with those on record.
        CallerLost: the host that is to send the load cannot be reached.
    """
    contact, tools = attempt.contact, attempt.tools
    version = contact.target.engine.version(contact.pages, contact.status.whole_log)
    before = of_letter(earlier.phases, "A")[0].conditions
    with calling(contact.target, load.caller, tools) as one:
        # From which address it sends is seen when it sends: the new phases are held against the old ones for that.
        caller = {**one.conditions(Sent()), "caller_address": before.facts.get("caller_address")}
    model = model_digest(contact.model)
    present = Present(contact.hello, contact.host_answer, contact.observed, model, version, caller)
    now = fingerprint(contact, present, load, tools.secrets)
    found = differences(before, now)
    if found:
        listed = "; ".join(tools.secrets.redactor.text(str(one)) for one in found)
        text = f"{contact.target.name} is not as it was when the trial was measured: {listed}"
        raise Refused(f"{text}. A new trial can be made of it: changectl apply", reason=CONDITIONS_DIFFER)

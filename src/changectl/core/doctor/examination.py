"""Is a host fit for changes? From what was seen of it to a list of checks, each with what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from changectl.core.doctor import host as doctor_host
from changectl.core.doctor.facts import Check, Facts, Greeting, Proof
from changectl.core.doctor.leftovers import controller_of, held, holder, how_ended, leftovers

OLDEST = (3, 8)  # Python that the host program runs on
LATEST = 1.0  # seconds after its deadline at which the dead-man has begun at last
EARLY = 0.05  # seconds before its deadline that reading two clocks may explain
_RULE = "let the user become root, in /etc/sudoers.d: USER ALL=(ALL) NOPASSWD: ALL"
#: In the order of telling: each is looked at after those above it. Name -> whether a change needs it.
NAMES = {
    "reachable": True, "host_key": True, "sudo": True, "python": True, "same_python": False, "state_folder": True,
    "room": True, "attributes": False, "temporary_folder": False, "clock": False, "systemd": True,
    "daemon_reload": False, "leftovers": True, "dead_man": True, "taken_away": True,
}  # fmt: skip
SENDING = ("reachable", "host_key", "python", "clock")  # what sending load takes


@dataclass(frozen=True, slots=True)
class Examination:
    """One host, looked at.

    Attributes:
        host: its name in the inventory.
        state_dir: the state folder that was looked at; None: the default one.
        checks: in the order of NAMES.
        proof: figures of the proof; None: it did not come to that.
        sends_only: whether it was looked at as a host that sends load and is never changed.
    """

    host: str
    state_dir: str | None
    checks: tuple[Check, ...]
    proof: Proof | None = None
    sends_only: bool = False

    @property
    def findings(self) -> list[Check]:
        """What has to be mended before a change."""
        return [check for check in self.checks if check.finding]


def exit_code(examinations: Sequence[Examination]) -> int:
    """0 all sound, 3 findings."""
    return 3 if any(one.findings for one in examinations) else 0


def checks(facts: Facts) -> tuple[Check, ...]:
    """All checks of one host; what could not be looked at is `unknown`, and says because of which check."""
    found = {check.name: check for check in [*_contact(facts), *_told(facts), *_proof(facts)]}
    looked_at = {name: NAMES[name] for name in SENDING} if facts.sends_only else NAMES
    if facts.trouble == "sudo":
        looked_at = {**looked_at, "sudo": True}  # it is in the way of everything, whatever the host is for
    return tuple(
        found.get(name) or _unseen(name, facts, required=required)
        for name, required in looked_at.items()
        if name in found or name != "taken_away"
    )


def _unseen(name: str, facts: Facts, *, required: bool) -> Check:
    if facts.trouble is not None:
        because = {"unreachable": "reachable"}.get(facts.trouble, facts.trouble)
    else:
        because = "dead_man" if name == "same_python" and facts.proof is not None else ""
    why = f"not looked at because of {because}" if because else facts.unread or "not looked at"
    return Check(name, "unknown", why, required=required, because=because)


def _contact(facts: Facts) -> list[Check]:
    """`reachable`, `host_key`, `sudo`, `python`: as far as we came."""
    key = _host_key(facts)
    if facts.trouble == "unreachable":
        return [
            Check("reachable", "failed", facts.said, "mend that first; ssh with the inventory's variables shows it")
        ]
    how = "this machine, without a terminal" if facts.local else "over ssh, without a terminal"
    reached = [Check("reachable", "ok", how), key]
    if facts.trouble == "sudo":
        reached.append(Check("sudo", "failed", facts.said, sudo_todo(facts.said)))
    if facts.trouble == "python":
        todo = "install Python 3.8 or newer, or set ansible_python_interpreter to one"
        return [*reached, Check("python", "failed", facts.said, todo)]
    if facts.trouble is None and facts.greeting is not None:
        reached.append(_sudo(facts, facts.greeting))
    return [*reached, _python(facts.greeting)] if facts.greeting is not None else reached


def _host_key(facts: Facts) -> Check:
    if facts.local:
        return Check("host_key", "ok", "this machine")
    if facts.unchecked:
        todo = "take that out of the inventory: plays would talk to whoever answers at that address"
        return Check("host_key", "failed", f"checked here, but not by Ansible ({facts.unchecked})", todo)
    return Check("host_key", "ok", "checked")


def _sudo(facts: Facts, greeting: Greeting) -> Check:
    user = greeting.user or f"uid {greeting.uid}"
    if greeting.uid == 0:
        asked = "with the password that was given" if facts.password else "nothing was asked"
        return Check("sudo", "ok", f"root through sudo, {asked}" if facts.become else "root, without sudo")
    todo = "set ansible_become: true, unless all that the services need belongs to that user"
    return Check("sudo", "advice", f"acts as {user}, not as root", todo)


def sudo_todo(said: str) -> str:
    """What to do about a sudo that did not let us become root."""
    text = said.lower()
    if "must have a tty" in text:
        return "let sudo work without a terminal, in /etc/sudoers.d: Defaults:USER !requiretty"
    if any(words in text for words in ("password is required", "terminal is required", "no password was provided")):
        return f"give the password (-K, or ansible_become_password in a vault), or {_RULE}"
    if "incorrect password" in text or "sorry, try again" in text:
        return "that password is not this user's: give the right one (-K)"
    if "not in the sudoers" in text or "not allowed" in text:
        return _RULE
    if "not found" in text or "no such file" in text:
        return "install sudo, or log in as root (ansible_user: root, ansible_become: false)"
    return "run by hand, as that user: sudo -n true"


def _python(greeting: Greeting) -> Check:
    figure = f"{greeting.python}, {greeting.executable}"
    match = re.match(r"(\d+)\.(\d+)", greeting.python)
    if match is None:
        return Check("python", "unknown", f"not a Python version: {greeting.python!r}")
    if (int(match[1]), int(match[2])) < OLDEST:
        return Check("python", "failed", figure, "set ansible_python_interpreter to Python 3.8 or newer")
    return Check("python", "ok", figure)


def _told(facts: Facts) -> list[Check]:
    """What the host tells of itself."""
    found = [] if facts.clock is None else [doctor_host.clock(facts)]
    if facts.leftovers is not None:
        found.append(leftovers(facts.leftovers, facts.ended))
    told = facts.told
    if told is None:
        return found
    root = facts.greeting is not None and facts.greeting.uid == 0
    return [
        *found,
        doctor_host.state_folder(told.folders),
        doctor_host.room(told.folders),
        doctor_host.attributes(told.folders, told.selinux),
        doctor_host.temporary(told.temporary),
        doctor_host.systemd(told.systemd, root=root),
        doctor_host.reload(told.systemd),
        *_same_python(facts),
    ]


def _same_python(facts: Facts) -> list[Check]:
    """The plays' Python is known where they started what keeps watch."""
    plays = facts.proof.executable if facts.proof is not None else None
    if plays is None or facts.greeting is None:
        return []
    here = facts.greeting.executable
    if plays == here:
        return [Check("same_python", "ok", f"{plays}, for reading and for plays", required=False)]
    todo = "set ansible_python_interpreter, which counts for both"
    return [Check("same_python", "advice", f"reading on {here}, plays on {plays}", todo, required=False)]


def _proof(facts: Facts) -> list[Check]:
    proof = facts.proof
    if proof is None:
        return []
    if not proof.begun:
        return [_dead_man(proof, facts)]
    if proof.left:
        todo = "look at the host again; once nothing is armed there, take away what is named"
        return [_dead_man(proof, facts), Check("taken_away", "failed", "\n".join(proof.left), todo)]
    return [_dead_man(proof, facts), Check("taken_away", "ok", "nothing of this look is left")]


def _not_now(proof: Proof, facts: Facts) -> Check:
    """Somebody has the host: whoever the host itself lists, and how that run ended, where the record has its end."""
    todo = "look again when that run has ended, or its lease is over"
    live = held(facts.leftovers or ())
    if not live:
        return Check("dead_man", "unknown", f"not proven now: {proof.why}", todo)
    figure = f"not proven now: {holder(live[0])} has the lease of this host"
    known = controller_of(live[0]) in facts.ended
    return Check("dead_man", "unknown", figure, how_ended(live[0], facts.ended) if known else todo)


def _dead_man(proof: Proof, facts: Facts) -> Check:
    match proof.state:
        case "not_now":
            return _not_now(proof, facts)
        case "lost":
            return Check("dead_man", "unknown", proof.why, "look again when the host answers")
        case "failed":
            return Check("dead_man", "failed", proof.why, "no change could be made safely here: mend that first")
    late, seconds = max(0.0, proof.late or 0.0), proof.seconds or 0.0
    figure = f"began {late * 1000:.0f} ms after its deadline, and the saved bytes were back in {seconds * 1000:.0f} ms"
    if proof.reboot_safe:
        return Check("dead_man", "ok", f"{figure}; kept by {proof.keeper}, over a restart of the host too")
    todo = "where a restart of the host must not stop it: let systemd and root keep watch"
    return Check("dead_man", "advice", f"{figure}; {proof.unsafe_why}", todo)

"""Puts together all that is known about an instance and runs every pre-check on it; nothing is changed."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from changectl import probes
from changectl.core.caller import CallerSeen
from changectl.core.declared.measured_path import ENDPOINT
from changectl.core.digest import sha256
from changectl.core.errors import HostCallError
from changectl.core.leaving import Leaving
from changectl.core.measuring.measurement import parse_records
from changectl.core.observed import Capture, GpuDriver, Help, HostFacts, Model, Nvml, UnitVerify
from changectl.core.precheck import CheckResult, Situation
from changectl.core.trial.power import Power
from changectl.workflow.before_out import leaving
from changectl.workflow.calling import CallerLost, calling
from changectl.workflow.conditions import LoadPlan
from changectl.workflow.contact import Contact
from changectl.workflow.live_load import live_load
from changectl.workflow.locate import read_by_engine
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools
from changectl.workflow.values import NOT_IN_FILES

HELP_TIMEOUT = 120.0  # seconds; some engines import for half a minute before they print their help

T = TypeVar("T")


def check(
    contact: Contact,
    tools: Tools,
    *,
    starts: int,
    capture: Capture | None,
    preview: bool,
    load: LoadPlan | None,
    noticed: bool = False,
    power: Power | None = None,
) -> list[CheckResult]:
    """Run every pre-check; what cannot be read counts as not known, and the check says so.

    Args:
        contact: the instance and the change.
        tools: the ports.
        starts: how often it is started in a row.
        capture: what was saved; None: nothing was.
        preview: whether it is only looked at.
        load: what is sent; None: nothing is.
        noticed: whether the plan allows that users notice it when the instance is out of service.
        power: what the plan's effort can decide there.
    """
    situation = _situation(contact, tools, starts)
    if load is not None:
        situation = replace(situation, quality_prompts=load.quality_prompts, workload=load.workload)
    caller = _caller(contact.target, load, tools)
    target, slots = contact.target, contact.target.engine.capacity(contact.pages).slots
    idle = not contact.takes_part  # it is only looked at
    out = Leaving() if idle else leaving(target, tools, slots=slots, noticed=noticed, sick=bool(contact.sick))
    live = _or_none(lambda: live_load(target, None if idle else load, tools))
    return probes.run_all(
        replace(situation, capture=capture, preview=preview, caller=caller, leaving=out, live=live, power=power)
    )


def _caller(target: Target, load: LoadPlan | None, tools: Tools) -> CallerSeen:
    """Who would send the load, and what came of one request from there where it is another host."""
    if load is None:
        return CallerSeen("")
    name = load.caller_name(target)
    if load.path == ENDPOINT and (load.caller is None or name == target.address.name):
        return CallerSeen(name, own=True)
    try:
        with calling(target, load.caller, tools) as caller:
            python = caller.hello().python
            sent = caller.send(tools.generator(), load.trying_job(target), "try", load.timeout, lambda _: None)
    except CallerLost as lost:
        return CallerSeen(name, trouble=lost.why)
    except HostCallError as error:
        return CallerSeen(name, trouble=str(error))
    tried = next(iter(parse_records(sent.records)), None)
    return CallerSeen(
        name,
        python=python,
        address=sent.summary.get("source"),
        tried=tried,
        failure=sent.failure,
        endpoint=load.endpoint(target),
    )


def _situation(contact: Contact, tools: Tools, starts: int) -> Situation:
    target, wanted, process = contact.target, contact.wanted, contact.observed.process
    before = dict(target.engine.effective(contact.pages, contact.status.whole_log))
    if process is not None:
        before |= target.engine.running(process.argv or [], process.environ or {})
    known = process is not None  # what pages and log tell without it is about some other process, or an earlier one
    moved = {**contact.ahead.settings, wanted.label: wanted.to if wanted.setting is not None else None}
    after = {name: value for name, value in before.items() if name not in moved}
    after |= {name: value for name, value in moved.items() if value is not None}
    kept = tools.memory.model_manifest(target.service.service, target.name)
    earlier = contact.status
    host = HostFacts.read(contact.host_answer)
    return Situation(
        service=target.service.service,
        endpoint=target.endpoint,
        expected_model=target.service.model.name,
        model_path=target.service.model_path,
        engine=target.engine,
        manager=target.manager,
        name=wanted.name,
        setting=wanted.setting or wanted.twin,
        to=wanted.to,
        edited_files=(contact.edit.path,),
        writes_nothing=contact.measured_alone,
        read_by_engine=read_by_engine(target.service.carriers),
        values=[row for row in contact.values if row.file is not NOT_IN_FILES],
        settings_before=before if known else None,
        settings_after=after if known else None,
        starts_needed=starts,
        bytes_needed=sum(facts.size or 0 for facts in contact.observed.files.values()) * 4 + (1 << 22),
        hello=contact.hello,
        host=host,
        observed=contact.observed,
        status=target.status(earlier.cursor),
        status_earlier=earlier,
        pages=contact.pages,
        log=contact.status.whole_log,
        nvml=_or_none(lambda: _nvml(target, host.gpu, tools)),
        help=_or_none(lambda: _help(contact)),
        unit_verify=_or_none(lambda: _unit_verify(contact)),
        drain=target.service.drain,
        state_path=target.state_path,
        model=contact.model,
        model_kept=None if kept is None else Model.read(kept),
        model_excluded=target.model_excluded,
    )


def _or_none(read: Callable[[], T | None]) -> T | None:
    """What the host cannot tell stays not known; the check that needs it refuses."""
    try:
        return read()
    except HostCallError:
        return None


def _nvml(target: Target, gpu: GpuDriver | None, tools: Tools) -> Nvml | None:
    if gpu is not None and gpu.present is False:
        return Nvml(none="no NVIDIA driver on this host")
    source = tools.nvml_source()
    return None if source is None else Nvml.read(target.ask("nvml", {"source": source}))


def _help(contact: Contact) -> Help | None:
    process, manager = contact.observed.process, contact.observed.manager
    argv = contact.target.engine.help_argv((process.argv or []) if process else unit_command(manager.exec_start))
    if not argv:
        return None
    # With the service's own variables: an engine may not even load its libraries without them.
    environ, user = (process.environ, process.user) if process else (None, (manager.show or {}).get("User"))
    args = {"argv": argv, "user": user or None, "environ": dict(environ or {}), "timeout": HELP_TIMEOUT}
    return Help.read(contact.target.ask("help", args, timeout=HELP_TIMEOUT + 10))


def unit_command(exec_start: str | Sequence[str] | None) -> list[str]:
    """The words that a unit starts its last command with, as systemctl shows them; empty: it does not tell.

    Good for the program's name, which needs no quotes; what follows may be split wrongly.
    """
    shown = [exec_start] if isinstance(exec_start, str) else list(exec_start or [])
    match = re.search(r"argv\[\]=(.*?) ;", shown[-1]) if shown else None
    return match[1].split() if match else []


def _unit_verify(contact: Contact) -> UnitVerify | None:
    unit = contact.observed.manager.unit
    if unit is None:
        return None
    edit = contact.edit
    new = {"path": edit.path, "content": base64.b64encode(edit.after).decode(), "sha256": sha256(edit.after)}
    return UnitVerify.read(contact.target.ask("unit_verify", {"unit": unit, "files": [new]}))

"""The engine knows the setting and can take the new value: asked of its own --help, before anything is stopped."""

from __future__ import annotations

from changectl.core.engine import Engine
from changectl.core.precheck import Check, CheckResult, Situation
from changectl.core.settings import Setting

ORDER = 50
CHECK = Check("value_known", "required", reads_process=True)


def check(situation: Situation) -> CheckResult:
    """Type and range by the table, existence and choices by the help of the running program."""
    engine, setting = situation.engine, situation.setting
    if setting is None:
        return CHECK.not_applicable(f"{situation.name or 'this'} is no setting of the engine's table")
    if engine is None:
        return CHECK.unknown("the engine is not known")
    help_text = situation.help.text if situation.help else None
    problem = None if situation.to is None else engine.value_problem(setting, situation.to, help_text)
    if problem:
        return CHECK.failed(problem, "write a value that the engine takes")
    if situation.to is None:
        return CHECK.passed(f"{setting.name} is taken out: the engine's own default counts")
    if not engine.has_help:
        return CHECK.not_applicable(f"a {engine.name} engine cannot be asked; the service file declares {setting.name}")
    return _asked(engine, setting, help_text)


def _asked(engine: Engine, setting: Setting, help_text: str | None) -> CheckResult:
    if help_text is None:
        return CHECK.unknown("the engine was not asked for its help")
    known = engine.knows(help_text, setting)
    if known is None and not setting.flags:
        return CHECK.not_applicable(f"{setting.name} is an environment variable, which no help lists")
    if known is None:
        return CHECK.unknown(f"what answered is not the help of {engine.name}", "see how the unit starts the engine")
    if not known:
        return CHECK.failed(
            f"this version of {engine.name} does not know {setting.name}", setting.note or "see its own --help"
        )
    return CHECK.passed(f"{setting.name} is in the engine's own help")

"""Can it be judged what a change that may alter answers does to them? It takes quality prompts in the workload."""

from __future__ import annotations

from changectl.core.judging.quality import CLEAR_PROMPTS, LEAST_PROMPTS
from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 73
CHECK = Check("quality_prompts", "advice")


def check(situation: Situation) -> CheckResult:
    """The number of quality prompts, where the engine's table says that the setting may change answers."""
    if not situation.name:
        return CHECK.unknown("what is to be changed is not known")
    if situation.setting is None or not situation.setting.changes_answers:
        return CHECK.not_applicable(f"{situation.name} is not known to change answers")
    if situation.quality_prompts is None:
        return CHECK.unknown(f"{situation.name} may change answers, and nothing is measured that could tell")
    figure = f"{situation.quality_prompts} of the {CLEAR_PROMPTS} that are needed"
    hint = f'add `"quality": true` to {CLEAR_PROMPTS} or more requests of the workload'
    if situation.quality_prompts < LEAST_PROMPTS:
        text = "may change answers, which this workload cannot judge: the verdict stays inconclusive"
        return CHECK.failed(f"{situation.name} {text}", hint, figure)
    if situation.quality_prompts < CLEAR_PROMPTS:
        text = "may change answers, and so few prompts can show that it does, not that it does not"
        accept = "or say in the plan how many may differ: `accept: {disagreement: <= 60%}`"
        return CHECK.failed(f"{situation.name} {text}: a trial keeps nothing", f"{hint}, {accept}", figure)
    return CHECK.passed("what it does to answers can be judged", figure)

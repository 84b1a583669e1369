"""How plans and services say how many requests a level gets."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from changectl.core.declared.grammar import fault
from changectl.core.judging.harm import MINIMUM_OK
from changectl.core.measuring.statistics import MINIMUM


def _enough(requests: int) -> int:
    """A number that can only end inconclusive is a mistake of the file, not of the run that it would cost."""
    if requests < MINIMUM_OK:
        message = f"{requests} requests can never be judged: each level needs {MINIMUM_OK} good answers in each phase"
        raise fault(message, f"write `requests: {MINIMUM['p95']}`, or at least {MINIMUM_OK} and none of them may fail")
    return requests


Requests = Annotated[int, Field(le=1_000_000, json_schema_extra={"minimum": MINIMUM_OK}), AfterValidator(_enough)]

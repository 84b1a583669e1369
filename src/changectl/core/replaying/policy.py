"""Other limits than those a run was judged by: what would they have said? Asked after the fact, it changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field, model_validator

from changectl.core.declared.fields import Version
from changectl.core.declared.grammar import Grammar, fault, validate
from changectl.core.declared.metric_fields import ExpectField, Guards
from changectl.core.declared.source import read_yaml


class Policy(Grammar):
    """Limits and expectations as services and plans write them; what is left out stays as it was."""

    version: Version = Field(description="version of this grammar", examples=[1])
    class_: Literal["interactive", "offline"] | None = Field(
        None, alias="class", description="which metrics are guarded by default"
    )
    slo: Guards | None = Field(
        None, description="absolute limits in place of the service's", examples=["{ttft_user_p95: <= 800ms}"]
    )
    accept: Guards | None = Field(
        None, description="absolute limits in place of the plan's", examples=["{tpot_p95: <= 45ms}"]
    )
    expect: ExpectField | None = Field(
        None, description="the gain in place of the plan's, or `neutral`", examples=["{rps_ok at peak: +10%}"]
    )

    @model_validator(mode="after")
    def _say_something(self) -> Self:
        if self.class_ is None and self.slo is None and self.accept is None and self.expect is None:
            hint = "write at least one of `class`, `slo`, `accept` and `expect`, like `slo: {ttft_user_p95: <= 800ms}`"
            raise fault("a policy that names no limit asks nothing", hint)
        return self


def load(content: bytes | str, file: str, *, levels: Iterable[str]) -> Policy:
    """Read a policy.

    Args:
        content: the file's bytes.
        file: its name for messages.
        levels: the load levels that were measured.

    Raises:
        InputError: with every problem of the file.
    """
    return validate(read_yaml(content, file), Policy, {"levels": tuple(levels)})

"""The base of all typed views on host answers."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from changectl.core.errors import HostCallError


class Answer(BaseModel):
    """Base of all answers: read-only; what a newer host program adds is kept out of the way."""

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())

    @classmethod
    def read(cls, answer: Any) -> Self:
        """Take a host call's answer.

        Raises:
            HostCallError: reason `bad_answer`; a demanded field is missing or of the wrong type, and which.
        """
        try:
            return cls.model_validate(answer)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = "/".join(str(part) for part in first["loc"]) or "the answer"
            raise HostCallError(
                f"the host's answer is not understood: {cls.__name__}: {place}: {first['msg']}", reason="bad_answer"
            ) from None

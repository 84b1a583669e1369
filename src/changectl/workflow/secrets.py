"""The secret values that a run meets, so that no record, log or output shows one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from changectl.core.declared.plan import Plan
from changectl.core.observed import Observed
from changectl.core.redaction.patterns import secret_spans
from changectl.core.redaction.redactor import Redactor, Tripwire
from changectl.core.redaction.secrets import SHORTEST
from changectl.core.redaction.variables import secret_values


class Secrets:
    """Grows while the run reads; everything that is recorded or shown goes through its redactor."""

    def __init__(self, salt: bytes, guard: Callable[[Tripwire], None]) -> None:
        self._salt = salt
        self._guard = guard
        self._known: set[str] = set()
        self._public: set[str] = set()
        self.redactor = Redactor((), salt=salt)

    def learn(self, values: Iterable[str]) -> None:
        """Remember values; too short ones are found everywhere by chance and are left out."""
        new = {value for value in values if len(value.strip()) >= SHORTEST} - self._known
        if new:
            self._known |= new
            self._renew()

    def spare(self, names: Iterable[str]) -> None:
        """Names by which the record is read again: a service, a host, a file. What is part of one is no secret.

        A vault may hold such a word too ("production"); hidden in the record, the run could not be taken back.
        """
        new = set(names) - self._public
        self._public |= new
        if any(value in name for value in self._known for name in new):
            self._renew()

    def _renew(self) -> None:
        secret = {value for value in self._known if not any(value in name for name in self._public)}
        self.redactor = Redactor(secret, salt=self._salt)
        self._guard(Tripwire(secret))

    def learn_host(self, variables: Mapping[str, Any], bearer: str | None) -> None:
        """What the inventory and the service give for a host: the variables that are secret by their names."""
        self.learn(secret_values(variables))
        if bearer:
            self.learn([bearer])

    def learn_plan(self, plan: Plan) -> None:
        """What looks secret in the values that a plan asserts and sets: a key that is rotated, an address with one."""
        for step in plan.steps:
            spec = step.change.spec.model_dump()
            values = (spec.get("from_"), spec.get("to"))
            self.learn(_secret_parts("\n".join(f"{spec.get('name')}={value}" for value in values if value is not None)))

    def learn_observed(self, observed: Observed) -> None:
        """What looks secret in configuration files and in the running process."""
        for facts in observed.files.values():
            if (data := facts.data) is not None:
                self.learn(_secret_parts(data.decode("utf-8", "replace")))
        if observed.process is not None:
            environ = observed.process.environ or {}
            self.learn(_secret_parts("\n".join(f"{name}={value}" for name, value in environ.items())))
            self.learn(_secret_parts(" ".join(observed.process.argv or [])))

    def clean(self, body: Any) -> Any:
        """A record's body with every known secret replaced, at any depth."""
        if isinstance(body, str):
            return self.redactor.known(body)
        if isinstance(body, Mapping):
            return {self.redactor.known(str(key)): self.clean(value) for key, value in body.items()}
        if isinstance(body, list | tuple):
            return [self.clean(value) for value in body]
        return body

    def digest(self, value: str) -> str:
        """A salted digest by which two secret values can be compared without showing them."""
        return self.redactor.marker(value)


def _secret_parts(text: str) -> list[str]:
    """The secret values of a text; of a URL's `user:password` the password alone too, also as it is meant."""
    found = [text[start:end].strip().strip("\"'") for spans in secret_spans(text) for start, end in spans]
    found += [part.partition(":")[2] for part in found]
    return [*found, *map(unquote, found)]

"""Which variables of an inventory are secrets: by their names, or because they come from an encrypted file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from changectl.core.declared.fields import is_template
from changectl.core.redaction.patterns import looks_secret

_PLACES = ("_file", "_path", "_dir", "_folder")  # name where something lies: `ansible_ssh_private_key_file`


def secret_values(variables: Mapping[str, Any]) -> list[str]:
    """Values of variables named `vault_*` or like a secret, at any depth."""
    return [text for name, value in variables.items() for text in _leaves(str(name), value, secret=False, hidden=False)]


def hidden_values(data: Any) -> list[str]:
    """Values that somebody encrypted together, whatever their names.

    Left out is what a vault holds beside secrets and what has to be readable in a record: how to reach a host, paths,
    numbers and switches; unless the name says that it is a secret.
    """
    return list(_leaves("", data, secret=False, hidden=True))


def _leaves(name: str, value: Any, *, secret: bool, hidden: bool) -> Iterator[str]:
    secret = secret or name.startswith("vault_") or name.endswith("_pass") or looks_secret(name)
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(str(key), item, secret=secret, hidden=hidden)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(name, item, secret=secret, hidden=hidden)
    elif not isinstance(value, bool) and value is not None:
        text = str(value)
        if not is_template(text) and _counts(name, value, secret=secret, hidden=hidden):
            yield text
            yield from (line.strip() for line in text.splitlines() if line.strip() != text)


def _counts(name: str, value: Any, *, secret: bool, hidden: bool) -> bool:
    path = isinstance(value, str) and value.startswith(("/", "~")) and "\n" not in value
    if secret:
        return not (path and name.endswith(_PLACES))
    return hidden and isinstance(value, str) and not path and not name.startswith("ansible_")

"""What a command prints with --json, held against docs/reference/records.schema.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/reference/records.schema.json").read_text())


def fits(document: Any, name: str) -> None:
    """The document as it would be read, held against its definition; raises jsonschema.ValidationError."""
    read = json.loads(json.dumps(document, allow_nan=False))
    which = {"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"], "$schema": SCHEMA["$schema"]}
    jsonschema.validate(read, which, cls=jsonschema.Draft202012Validator)

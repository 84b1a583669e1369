"""Open Inference Protocol, also called KServe v2: POST /v2/models/NAME/infer, JSON tensors in and out, whole."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional
from urllib.parse import quote

from changectl.loads import _whole
from changectl.loads._openai import Piece, Request, short
from changectl.loads._whole import METRICS

__all__ = ["METRICS", "NAME", "STREAMED", "build_request", "read"]

NAME = "kserve_v2"
STREAMED = False


def build_request(prompt: Mapping[str, Any], settings: Mapping[str, Any]) -> Request:
    """Method, path, headers and body for one inference.

    Args:
        prompt: {"inputs": [{"name", "shape", "datatype", "data"}, ...]}.
        settings: model (its name, as the path has it), and optionally body (more fields, such as `outputs`).
    """
    body: Dict[str, Any] = dict(settings.get("body") or {})
    body["inputs"] = prompt["inputs"]
    return _whole.request("/v2/models/{}/infer".format(quote(str(settings["model"]), safe="")), body)


def read(body: str) -> Piece:
    """What an answer brought: tensors whose data has the size that their shapes declare, or none."""
    return _whole.read(body, _answer)


def _answer(message: Mapping[str, Any]) -> Piece:
    outputs = message.get("outputs")
    if not isinstance(outputs, list):
        return Piece(broken="there are no `outputs`")
    kinds: List[str] = []
    values = 0
    for number, output in enumerate(outputs):
        wrong = _wrong(output)
        if wrong is not None:
            return Piece(broken="output {}: {}".format(number, wrong))
        kinds.append("{} {}".format(output["name"], output["datatype"]))
        values += _size(output["shape"])
    # Of a shape that follows the input every prompt would be a kind of its own: name and type are what stays.
    return Piece(finish=short(", ".join(kinds)) if values else None, done=True)


def _wrong(output: Any) -> Optional[str]:
    """Why it is no tensor as the protocol has them; None: it is one."""
    if not isinstance(output, dict):
        return "not an object"
    for name in ("name", "datatype"):
        if not isinstance(output.get(name), str):
            return "its `{}` is no text".format(name)
    shape = output.get("shape")
    if not isinstance(shape, list) or not all(isinstance(one, int) and one >= 0 for one in shape):
        return "its `shape` is no list of sizes"
    if not isinstance(output.get("data"), list):
        return "it has no `data`"
    held = _leaves(output["data"])
    if held is None:
        return "its `data` holds what is no value"
    if held != _size(shape):
        return "its `data` has {} values, its shape {} declares {}".format(held, shape, _size(shape))
    return None


def _size(shape: List[int]) -> int:
    size = 1
    for one in shape:
        size *= one
    return size


def _leaves(data: List[Any]) -> Optional[int]:
    """How many values stand in nested or flat data; None: something there is no value."""
    count = 0
    waiting = [data]
    while waiting:
        for member in waiting.pop():
            if isinstance(member, list):
                waiting.append(member)
            elif member is None or isinstance(member, dict):
                return None
            else:
                count += 1
    return count

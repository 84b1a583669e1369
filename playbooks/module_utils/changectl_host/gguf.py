"""Is a GGUF file whole? Read its header and compute how long it must be."""

from __future__ import annotations

import math
import struct
from typing import Any, BinaryIO, Dict, List, Optional, Tuple

# Value types of metadata: struct codes of the fixed-size ones.
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
# Tensor types: (elements per block, bytes per block).
_BLOCKS: Dict[int, Tuple[int, int]] = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 40), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 16: (256, 66), 17: (256, 74),
    18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2),
    26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip
_SHORT = 200  # bytes of a text that is worth telling: a chat template is not
_MOST = 1 << 24  # more entries than any real file has: a damaged count


class Damaged(Exception):
    """The file is not a whole GGUF file; the text says why."""


class _Reader:
    def __init__(self, source: BinaryIO, order: str) -> None:
        self.source = source
        self.order = order

    def take(self, size: int) -> bytes:
        data = self.source.read(size)
        if len(data) != size:
            raise Damaged("ends in the middle of its header")
        return data

    def number(self, code: str) -> int:
        return int(struct.unpack(self.order + code, self.take(struct.calcsize(code)))[0])

    def skip(self, size: int, limit: int) -> None:
        position = self.source.tell() + size
        if position > limit:
            raise Damaged("ends in the middle of its header")
        self.source.seek(position)

    def string(self, limit: int) -> bytes:
        size = self.number("Q")
        if self.source.tell() + size > limit:
            raise Damaged("ends in the middle of its header")
        return self.take(size)


def problem(path: str, size: int) -> Optional[str]:
    """What is wrong with the file; None: its data reaches as far as its header says."""
    return examine(path, size)[0]


def examine(path: str, size: int) -> Tuple[Optional[str], Dict[str, Any]]:
    """What is wrong with the file (None: nothing), and the numbers and short texts of its header by name."""
    found: Dict[str, Any] = {}
    try:
        with open(path, "rb") as source:
            needed = required_size(source, size, found)
    except Damaged as damage:
        return f"the GGUF file {damage}", {}
    except (struct.error, ValueError, OverflowError):
        return "the GGUF header is damaged", {}
    if needed > size:
        return f"the GGUF file is cut off: it has {size} bytes and its header asks for {needed}", {}
    return None, found


def required_size(source: BinaryIO, size: int, found: Optional[Dict[str, Any]] = None) -> int:
    """The length that the tensor table asks for; `found` is filled with the header's plain values.

    Raises:
        Damaged: the header itself is not whole or not understood.
    """
    if source.read(4) != b"GGUF":
        raise Damaged("does not begin with GGUF")
    version = source.read(4)
    order = "<" if version[:2] != b"\0\0" else ">"
    reader = _Reader(source, order)
    if len(version) < 4 or struct.unpack(order + "I", version)[0] not in (2, 3):
        raise Damaged("has a version that is not known here")
    tensors, pairs = reader.number("Q"), reader.number("Q")
    if max(tensors, pairs) > _MOST:
        raise Damaged("has a damaged header: impossible counts")
    alignment = 32
    for _ in range(pairs):
        key, kind = reader.string(size), reader.number("I")
        value = _plain_value(reader, kind, size)
        if value is not None and found is not None:
            found[key.decode("utf-8", "replace")] = value
        if key == b"general.alignment" and kind == 4:
            alignment = value or 32
    ends = [_tensor_end(reader, size) for _ in range(tensors)]
    begin = -(-source.tell() // alignment) * alignment
    return begin + max(ends) if ends else source.tell()


def _plain_value(reader: _Reader, kind: int, limit: int) -> Any:
    """A number or a short text; anything longer is passed over, and reads None."""
    if kind in _SCALARS:
        code = _SCALARS[kind]
        number = struct.unpack(reader.order + code, reader.take(struct.calcsize(code)))[0]
        # JSON knows no such numbers.
        return None if isinstance(number, float) and not math.isfinite(number) else number
    if kind == _STRING:
        text = reader.string(limit)
        return text.decode("utf-8", "replace") if len(text) <= _SHORT else None
    _skip_value(reader, kind, limit)
    return None


def _skip_value(reader: _Reader, kind: int, limit: int, depth: int = 0) -> None:
    if kind in _SCALARS:
        reader.skip(struct.calcsize(_SCALARS[kind]), limit)
    elif kind == _STRING:
        reader.skip(reader.number("Q"), limit)
    elif kind == _ARRAY and depth < 4:
        inner, count = reader.number("I"), reader.number("Q")
        if inner in _SCALARS:
            reader.skip(struct.calcsize(_SCALARS[inner]) * count, limit)
            return
        for _ in range(count):
            _skip_value(reader, inner, limit, depth + 1)
    else:
        raise Damaged("has a damaged header: unknown kind of value")


def _tensor_end(reader: _Reader, limit: int) -> int:
    reader.string(limit)
    dimensions = reader.number("I")
    if dimensions > 8:
        raise Damaged("has a damaged header: impossible dimensions")
    shape: List[int] = [reader.number("Q") for _ in range(dimensions)]
    kind, offset = reader.number("I"), reader.number("Q")
    elements = 1
    for length in shape:
        elements *= length
    # A tensor type newer than this table: only its beginning can be demanded.
    per_block, block_bytes = _BLOCKS.get(kind, (1, 0))
    return offset + -(-elements // per_block) * block_bytes

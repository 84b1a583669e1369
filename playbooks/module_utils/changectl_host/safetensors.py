"""Are safetensors files whole, and is every shard there that the index names?"""

from __future__ import annotations

import json
import os
import struct
from typing import Dict, List, Optional

_MOST = 100 * 1024 * 1024  # bytes of header that a real file never exceeds


def problem(path: str, size: int) -> Optional[str]:
    """What is wrong with the file; None: its header is sound and its data ends where the file ends."""
    with open(path, "rb") as source:
        prefix = source.read(8)
        if len(prefix) < 8:
            return "the safetensors file is cut off in its first 8 bytes"
        length = struct.unpack("<Q", prefix)[0]
        if length > _MOST or 8 + length > size:
            return f"the safetensors file is cut off or damaged: header of {length} bytes in a file of {size}"
        text = source.read(length)
    try:
        header = json.loads(text)
        ends = [int(entry["data_offsets"][1]) for name, entry in header.items() if name != "__metadata__"]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return "the safetensors header is damaged"
    needed = 8 + length + max(ends, default=0)
    if needed == size:
        return None
    word = "cut off" if size < needed else "longer than its header says"
    return f"the safetensors file is {word}: it has {size} bytes and its header asks for {needed}"


def index_problems(path: str) -> List[Dict[str, str]]:
    """What an index file (model.safetensors.index.json) names that is not there."""
    try:
        with open(path, "rb") as source:
            shards = sorted(set(json.loads(source.read())["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError):
        return [{"path": path, "problem": "the index of shards is damaged"}]
    folder = os.path.dirname(path)
    missing = [name for name in shards if not isinstance(name, str) or not os.path.exists(os.path.join(folder, name))]
    return [{"path": path, "problem": f"the index names {name}, which does not exist"} for name in missing]

"""GPUs through NVML, with the nvidia-ml-py source that the controller sends: nothing is installed on the host."""

from __future__ import annotations

import base64
import binascii
import sys
import types
import zlib
from typing import Any, Dict, List

from .failure import Failure


def nvml(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call: {gpus: [...], driver, cuda} or {none: why}."""
    return _answer(load(args.get("source")))


def load(source: Any) -> Any:
    """The bindings as a module, made from what the controller sent.

    Raises:
        Failure: `bad_arguments`; and whatever else foreign code raises.
    """
    try:
        text = zlib.decompress(base64.b64decode(source or "", validate=True))
    except (binascii.Error, zlib.error, TypeError):
        raise Failure("bad_arguments", "source must be base64 of zlib-compressed Python source") from None
    library: Any = types.ModuleType("pynvml")
    earlier = sys.modules.get("pynvml")
    sys.modules["pynvml"] = library  # while it loads it looks itself up there
    try:
        exec(compile(text, "pynvml.py", "exec"), library.__dict__)  # noqa: S102  the package the controller brought
        return library
    finally:
        if earlier is None:
            del sys.modules["pynvml"]
        else:
            sys.modules["pynvml"] = earlier


class Held:
    """NVML kept open, for figures that are read again and again."""

    def __init__(self, source: Any) -> None:
        """Raises Failure or what NVML says: there is nothing to be read."""
        self._library = load(source)
        self._library.nvmlInit()

    def gpus(self) -> List[Dict[str, Any]]:
        """The load on every GPU now, without who uses it."""
        return [_load(self._library, self._library.nvmlDeviceGetHandleByIndex(index), index)
                for index in range(self._library.nvmlDeviceGetCount())]  # fmt: skip

    def close(self) -> None:
        """Give it back."""
        self._library.nvmlShutdown()


def _answer(library: Any) -> Dict[str, Any]:
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        return {"none": f"NVML does not answer: {error}"}
    try:
        count = library.nvmlDeviceGetCount()
        if not count:
            return {"none": "NVML sees no GPU"}
        return {
            "gpus": [_gpu(library, index) for index in range(count)],
            "driver": _ask(library, "nvmlSystemGetDriverVersion"),
            "cuda": _ask(library, "nvmlSystemGetCudaDriverVersion"),
        }
    finally:
        library.nvmlShutdown()


def _ask(library: Any, name: str, *values: Any) -> Any:
    """One NVML question; None when this GPU, driver or version of the library has no answer."""
    function = getattr(library, name, None)
    if function is None:
        return None
    try:
        found = function(*values)
    except library.NVMLError:
        return None
    return found.decode(errors="replace") if isinstance(found, bytes) else found


def _gpu(library: Any, index: int) -> Dict[str, Any]:
    handle = library.nvmlDeviceGetHandleByIndex(index)
    return {
        **_load(library, handle, index),
        "name": _ask(library, "nvmlDeviceGetName", handle),
        "uuid": _ask(library, "nvmlDeviceGetUUID", handle),
        "processes": _processes(library, handle),
    }


def _load(library: Any, handle: Any, index: int) -> Dict[str, Any]:
    memory = _ask(library, "nvmlDeviceGetMemoryInfo", handle)
    use = _ask(library, "nvmlDeviceGetUtilizationRates", handle)
    return {
        "index": index,
        "memory_total": getattr(memory, "total", None),
        "memory_used": getattr(memory, "used", None),
        "memory_free": getattr(memory, "free", None),
        "utilisation_gpu": getattr(use, "gpu", None),
        "utilisation_memory": getattr(use, "memory", None),
        "temperature": _ask(library, "nvmlDeviceGetTemperature", handle, 0),
        "power_milliwatts": _ask(library, "nvmlDeviceGetPowerUsage", handle),
        "clock_sm_mhz": _ask(library, "nvmlDeviceGetClockInfo", handle, 1),
        "throttle_reasons": _ask(library, "nvmlDeviceGetCurrentClocksThrottleReasons", handle),
        "ecc_uncorrected": _ask(library, "nvmlDeviceGetTotalEccErrors", handle, 1, 0),
    }


def _processes(library: Any, handle: Any) -> List[Dict[str, Any]]:
    found = _ask(library, "nvmlDeviceGetComputeRunningProcesses", handle) or []
    return [{"pid": item.pid, "memory_used": item.usedGpuMemory} for item in found]

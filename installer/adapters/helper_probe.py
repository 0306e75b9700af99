"""Runs inside the helper container on the standard library alone: CUDA's memory and the engine's disk, one JSON line.

Its one argument is the UUID of the card, or nothing where no card was asked for. The calls are those of CUDA's driver
API (libcuda.so.1), whose numbers are what the served model will see; NVML would show what the host sees.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import uuid


class CudaError(Exception):
    """A call of CUDA's driver API that did not return 0; `code` is None where the call is not there at all."""

    def __init__(self, call: str, code: int | None = None) -> None:
        super().__init__(call)
        self.call = call
        self.code = code


def main(wanted: str) -> None:
    """Print what was seen."""
    seen: dict[str, object] = {"disk_free_bytes": free_bytes("/"), "cuda": None, "failed_call": "", "code": None}
    if wanted:
        try:
            seen["cuda"] = memory_of(wanted)
        except CudaError as error:
            seen["failed_call"], seen["code"] = error.call, error.code
    print(json.dumps(seen), flush=True)  # noqa: T201 - standard output is the way back


def free_bytes(path: str) -> int:
    """Return the free bytes of a disk; a container's root lies on the engine's own."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


def memory_of(wanted: str) -> dict[str, int]:
    """Return free and total bytes of the card, with a context in place, as vLLM measures them."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise CudaError(str(error)) from error
    call(cuda, "cuInit", 0)
    context = ctypes.c_void_p()
    device = device_of(cuda, wanted)
    call(cuda, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call(cuda, "cuCtxSetCurrent", context)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call(cuda, "cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return {"free_bytes": free.value, "total_bytes": total.value}


def device_of(cuda: ctypes.CDLL, wanted: str) -> ctypes.c_int:
    """Return the card with this UUID; a single card needs no name, and under WSL2 its name may differ."""
    count = ctypes.c_int()
    call(cuda, "cuDeviceGetCount", ctypes.byref(count))
    devices = [ctypes.c_int() for _ in range(count.value)]
    for ordinal, device in enumerate(devices):
        call(cuda, "cuDeviceGet", ctypes.byref(device), ordinal)
    if len(devices) > 1:
        devices = [device for device in devices if uuid_of(cuda, device) == wanted.lower()]
    if not devices:
        raise CudaError("cuDeviceGet")
    return devices[0]


def uuid_of(cuda: ctypes.CDLL, device: ctypes.c_int) -> str:
    """Return a card's UUID as NVML writes it."""
    raw = (ctypes.c_ubyte * 16)()
    call(cuda, "cuDeviceGetUuid", ctypes.byref(raw), device)
    return f"gpu-{uuid.UUID(bytes=bytes(raw))}"


def call(cuda: ctypes.CDLL, name: str, *arguments: object) -> None:
    """Call a function of the driver API, or raise CudaError."""
    try:
        code = getattr(cuda, name)(*arguments)
    except AttributeError as error:
        raise CudaError(name) from error
    if code != 0:
        raise CudaError(name, code)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")

"""NVIDIA's own tool, asked where its library cannot be loaded: it knows where that lies (WSL, an odd driver store)."""

from __future__ import annotations

import os
import shutil

import msgspec

from installer.adapters import processes
from installer.domain import nvidia_smi
from installer.domain.facts import Nvidia

_PLACES = (
    "/usr/lib/wsl/lib/nvidia-smi",
    os.path.expandvars(r"%SystemRoot%\System32\nvidia-smi.exe"),
    os.path.expandvars(r"%ProgramFiles%\NVIDIA Corporation\NVSMI\nvidia-smi.exe"),
)


def read(timeout_s: float) -> Nvidia | None:
    """Return driver and cards, or None where the tool is not there, fails, or does not answer in time."""
    program = shutil.which("nvidia-smi") or next((place for place in _PLACES if os.path.isfile(place)), None)  # noqa: PTH113
    if program is None:
        return None
    query = (f"--query-gpu={','.join(nvidia_smi.COLUMNS)}", "--format=csv,noheader,nounits")
    try:
        table = processes.run((program, *query), timeout_s=timeout_s)
        head = processes.run((program,), timeout_s=timeout_s)
    except (OSError, TimeoutError):
        return None
    cards = nvidia_smi.cards(table.stdout)
    seen = nvidia_smi.banner(head.stdout)
    if table.code != 0 or not cards or seen is None:
        return None
    version = seen.driver_version or nvidia_smi.driver_version(table.stdout)
    return msgspec.structs.replace(seen, gpus=cards, driver_version=version, detail="nvidia-smi")

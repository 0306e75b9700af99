"""A stub NVIDIA driver library, so that the real ``nvidia-ml-py`` reads any machine a test invents.

``build_nvml`` makes the library once, ``write_machine`` the text file it answers from, and a child process that is
started with ``nvml_env`` sees that machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.rig.images.layers import compile_c

GIB = 1 << 30
UUID = "GPU-5090aaaa-0000-4000-8000-000000005090"

RTX_5090: Mapping[str, Any] = {
    "name": "NVIDIA GeForce RTX 5090",
    "uuid": UUID,
    "total": 32607 << 20,
    "reserved": 548 << 20,
    "free": 31500 << 20,
    "capability": "12.0",
    "pci": "00000000:01:00.0",
    "pci_device_id": 0x2B8510DE,
    "persistence": 0,
    "pstate": 8,
    "utilization": 0,
    "memory_utilization": 0,
    "addressing": 1,
}
"""A desktop card on Linux: it has no driver model, no MIG and no serial number, which are NOT_SUPPORTED then."""


def build_nvml(folder: Path) -> Path:
    """Compile the library into ``folder`` as ``libnvidia-ml.so.1``; its path."""
    library = folder / "libnvidia-ml.so.1"
    compile_c(
        [Path(__file__).parent / "nvml.c"], library,
        "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libnvidia-ml.so.1",
    )  # fmt: skip
    return library


def nvml_env(library: Path, file: Path) -> dict[str, str]:
    """This process's environment, in which a child finds the stub library and the machine file."""
    return {**os.environ, "LD_LIBRARY_PATH": str(library.parent), "STUB_NVML_FILE": str(file)}


def machine(*gpus: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A machine with these GPUs, and ``driver``, ``cuda``, ``returns``, ``hang`` where they differ from the usual."""
    return {"driver": "580.95.05", "cuda": 13000, "gpus": list(gpus), **more}


def write_machine(path: Path, facts: Mapping[str, Any]) -> Path:
    """Render a machine into the stub's text file (whole or not at all: a reader may be at work).

    ``gpus``: each with the keys of ``RTX_5090``; further ``serial``, ``mig`` (0, 1), ``driver_model`` (0 WDDM, 1 TCC,
    2 MCDM), ``lost``, ``returns`` {function: code} and ``processes`` [{pid, kind (compute, graphics), name, used}].
    A missing key answers NOT_SUPPORTED; a process without ``used`` (or None) is N/A, without ``name`` NOT_FOUND.
    ``returns`` {function: code} and ``hang`` (names) hold for the whole library; without ``_vN`` for every version.
    """
    lines = [f"driver={facts['driver']}"] if facts.get("driver") else []
    lines += [f"cuda={facts.get('cuda', 13000)}", f"count={len(facts.get('gpus', ()))}"]
    lines += [f"return.{name}={code}" for name, code in facts.get("returns", {}).items()]
    hanging = facts.get("hang", ())
    lines += [f"hang.{name}=1" for name in ([hanging] if isinstance(hanging, str) else hanging)]
    for index, gpu in enumerate(facts.get("gpus", ())):
        lines += _gpu_lines(f"gpu{index}", gpu)
    draft = path.with_name(path.name + ".draft")
    draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
    draft.replace(path)
    return path


def _gpu_lines(prefix: str, gpu: Mapping[str, Any]) -> list[str]:
    plain = {key: value for key, value in gpu.items() if key not in ("returns", "processes") and value is not None}
    lines = [f"{prefix}.{key}={int(value) if isinstance(value, bool) else value}" for key, value in plain.items()]
    lines += [f"{prefix}.return.{name}={code}" for name, code in gpu.get("returns", {}).items()]
    for number, process in enumerate(gpu.get("processes", ())):
        here = f"{prefix}.process{number}"
        lines += [f"{here}.kind={process.get('kind', 'compute')}", f"{here}.pid={process['pid']}"]
        lines += [f"{here}.used={process['used']}"] if process.get("used") is not None else []
        lines += [f"process.{process['pid']}.name={process['name']}"] if process.get("name") else []
    return lines

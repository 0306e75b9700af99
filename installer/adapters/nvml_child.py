"""The child process of `installer.adapters.nvml`: asks NVIDIA's driver and writes one JSON line per answer.

Every line leaves at once, so that what is known before the driver sticks is not lost. Only here `pynvml` is imported.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pynvml

from installer.adapters.nvml import Card, Done, Driver, Line, LostCard, Refused, Remark, nvml_error
from installer.domain.facts import Gpu, GpuMemory, GpuProcess, Missing

_MISSING_OF_CODE = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: Missing.NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: Missing.NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION: Missing.NO_PERMISSION,
    pynvml.NVML_ERROR_NOT_FOUND: Missing.NOTHING_THERE,
}

_CARD_IS_GONE = {pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED}

# Of the newer form of a call. The newer one for CUDA's version also wants libcuda, which need not be there (nvml.h).
_ASK_THE_OLDER_FORM = {
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
}

# nvmlDriverModel_t; 1 is called WDM there and shown as TCC everywhere else.
_DRIVER_MODELS = {pynvml.NVML_DRIVER_WDDM: "WDDM", pynvml.NVML_DRIVER_WDM: "TCC", pynvml.NVML_DRIVER_MCDM: "MCDM"}

PCI_DEVICES = Path("/sys/bus/pci/devices")
_NVIDIA, _DISPLAYS = "0x10de", ("0x0300", "0x0302")
"""A PCI vendor, and the classes of cards with and without an output for a screen."""

Say = Callable[[Line], None]


def main() -> int:
    """Ask NVML for everything and write it to standard output.

    NVML is not shut down: the end of the process does that, and a call less is a call less to hang in.
    """
    # A windowed build on Windows has no sys.stdout, but it has the pipe.
    with os.fdopen(1, "wb", closefd=False) as output:

        def say(line: Line) -> None:
            output.write(msgspec.json.encode(line) + b"\n")
            output.flush()

        try:
            _read(say)
        except pynvml.NVMLError as error:
            say(Refused(code=error.value, text=str(error)))
    return 0


def _read(say: Say) -> None:
    asleep = cards_asleep(PCI_DEVICES)  # before NVML wakes them
    pynvml.nvmlInit()
    say(Driver(version=_driver_version(), cuda=_cuda_version()))
    for index in range(pynvml.nvmlDeviceGetCount()):
        try:
            say(Card(gpu=_CardReader(index, say, asleep).read()))
        except pynvml.NVMLError as error:
            say(LostCard(index=index, code=error.value, text=str(error)))
    say(Done())


def _driver_version() -> str | None:
    try:
        return _text(pynvml.nvmlSystemGetDriverVersion)
    except pynvml.NVMLError:
        return None


def _cuda_version() -> tuple[int, int] | None:
    try:
        version: int = _newest_of(pynvml.nvmlSystemGetCudaDriverVersion_v2, pynvml.nvmlSystemGetCudaDriverVersion)()
    except pynvml.NVMLError:
        return None
    return version // 1000, version % 1000 // 10


def cards_asleep(devices: Path) -> frozenset[tuple[int, int, int]]:
    """Return domain, bus and device of NVIDIA's cards that Linux has put to sleep; asking wakes none of them.

    Source: the kernel's Documentation/ABI/testing/sysfs-devices-power. Other systems do not tell, so that none sleeps.
    """
    return frozenset(_pci_place(card.name) for card in devices.glob("*:*:*.0") if _is_nvidia(card) and _sleeps(card))


def _is_nvidia(device: Path) -> bool:
    return _word(device / "vendor") == _NVIDIA and _word(device / "class").startswith(_DISPLAYS)


def _sleeps(device: Path) -> bool:
    return _word(device / "power" / "runtime_status") in ("suspended", "suspending")


def _word(file: Path) -> str:
    try:
        return file.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


def _pci_place(name: str) -> tuple[int, int, int]:
    """Read a place as sysfs names it, such as 0000:01:00.0."""
    domain, bus, device = name.removesuffix(".0").split(":")
    return int(domain, 16), int(bus, 16), int(device, 16)


class _CardReader:
    """Asks one card. A question without an answer is a Missing; only a card that is gone raises NVMLError."""

    def __init__(self, index: int, say: Say, asleep: frozenset[tuple[int, int, int]] = frozenset()) -> None:
        self._index = index
        self._say = say
        self._all_asleep = asleep
        self._handle = pynvml.nvmlDeviceGetHandleByIndex(index)

    def read(self) -> Gpu:
        uuid = _text(pynvml.nvmlDeviceGetUUID, self._handle)
        memory = self._memory()
        return Gpu(
            index=self._index,
            uuid=uuid,
            name=self._name(),
            memory=memory,
            compute_capability=self._compute_capability(),
            driver_model=self._driver_model(),
            mig_enabled=self._mig_enabled(),
            # A card that is there and has no memory of its own to tell of shares the computer's: GB10, Jetson.
            unified_memory=memory is Missing.NOT_SUPPORTED,
            asleep=self._was_asleep(),
            processes=self._processes(),
        )

    def _ask(self, question: Callable[..., Any], *arguments: object) -> Any:
        try:
            return question(*arguments)
        except pynvml.NVMLError as error:
            if error.value in _CARD_IS_GONE:
                raise
            if error.value not in _MISSING_OF_CODE:
                what = getattr(question, "__name__", "")
                self._say(Remark(text=f"card {self._index}: {what}: {nvml_error(error.value, str(error))}"))
            return _MISSING_OF_CODE.get(error.value, Missing.NOTHING_THERE)

    def _name(self) -> str:
        name: str | Missing = self._ask(_text, pynvml.nvmlDeviceGetName, self._handle)
        return "" if isinstance(name, Missing) else name

    def _memory(self) -> GpuMemory | Missing:
        info = self._ask(_memory_info, self._handle)
        if isinstance(info, Missing):
            return info
        return GpuMemory(
            total_bytes=info.total,
            free_bytes=info.free,
            used_bytes=info.used,
            reserved_bytes=getattr(info, "reserved", 0),
        )

    def _compute_capability(self) -> tuple[int, int] | Missing:
        capability = self._ask(pynvml.nvmlDeviceGetCudaComputeCapability, self._handle)
        return capability if isinstance(capability, Missing) else (capability[0], capability[1])

    def _driver_model(self) -> str | Missing:
        models = self._ask(
            _newest_of(pynvml.nvmlDeviceGetDriverModel_v2, pynvml.nvmlDeviceGetDriverModel_v1), self._handle
        )
        return models if isinstance(models, Missing) else _DRIVER_MODELS.get(models[0], str(models[0]))

    def _mig_enabled(self) -> bool:
        modes = self._ask(pynvml.nvmlDeviceGetMigMode, self._handle)
        return not isinstance(modes, Missing) and modes[0] == pynvml.NVML_DEVICE_MIG_ENABLE

    def _was_asleep(self) -> bool:
        if not self._all_asleep:
            return False
        place = self._ask(pynvml.nvmlDeviceGetPciInfo, self._handle)
        return not isinstance(place, Missing) and (place.domain, place.bus, place.device) in self._all_asleep

    def _processes(self) -> tuple[GpuProcess, ...] | Missing:
        """List each process once: one that computes and draws is in both of NVML's lists."""
        listed = [self._ask(question, self._handle) for question in (_compute_processes, _graphics_processes)]
        readable = [processes for processes in listed if not isinstance(processes, Missing)]
        if not readable:
            missing: Missing = listed[0]
            return missing
        used_by_pid: dict[int, int | Missing] = {}
        for process in (process for processes in readable for process in processes):
            used_by_pid[process.pid] = _larger(used_by_pid.get(process.pid), process.usedGpuMemory)
        return tuple(
            GpuProcess(pid=pid, name=self._ask(_text, pynvml.nvmlSystemGetProcessName, pid), used_bytes=used)
            for pid, used in sorted(used_by_pid.items())
        )


def _larger(known: int | Missing | None, used_bytes: int | None) -> int | Missing:
    """Merge what two lists say of one process; None is NVML's "not available", as under WDDM."""
    figures = [figure for figure in (known, used_bytes) if isinstance(figure, int)]
    return max(figures) if figures else Missing.NOT_SUPPORTED


def _newest_of(newer: Callable[..., Any], older: Callable[..., Any]) -> Callable[..., Any]:
    """Return a question that falls back to its older form where this driver does not know the newer one."""

    def question(*arguments: object) -> Any:
        try:
            return newer(*arguments)
        except pynvml.NVMLError as error:
            if error.value not in _ASK_THE_OLDER_FORM:
                raise
            return older(*arguments)

    question.__name__ = older.__name__
    return question


def _memory_v2(handle: object) -> Any:
    return pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)


_memory_info = _newest_of(_memory_v2, pynvml.nvmlDeviceGetMemoryInfo)
_compute_processes = _newest_of(
    pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2
)
_graphics_processes = _newest_of(
    pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3, pynvml.nvmlDeviceGetGraphicsRunningProcesses_v2
)


def _text(question: Callable[..., Any], *arguments: object) -> str:
    """Ask for a text past pynvml's strict decoding: names of cards and processes are whatever bytes they are."""
    answer: str | bytes = inspect.unwrap(question)(*arguments)
    return answer.decode(errors="replace") if isinstance(answer, bytes) else answer


if __name__ == "__main__":
    sys.exit(main())

"""NVIDIA's driver through NVML, asked in a child process that is killed at its limit.

A call into a wedged driver never returns, and a thread that hangs in it cannot be ended. So `nvml_child` asks and
writes one JSON line per answer; what it said before the driver stuck is kept.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from installer.adapters import nvidia_smi
from installer.domain.facts import Gpu, Nvidia, NvidiaState
from installer.domain.redaction import redacted
from installer.domain.strict_json import NOT_OF_THAT_FORM

FROZEN_ARGUMENT = "--nvml-child"

# NVML's return codes (nvml.h, nvmlReturn_t); every other code is a failure without a state of its own.
_STATE_OF_CODE = {
    3: NvidiaState.NOT_SUPPORTED,
    4: NvidiaState.NO_PERMISSION,
    9: NvidiaState.NOT_LOADED,
    10: NvidiaState.TIMED_OUT,
    12: NvidiaState.NO_DRIVER,
    15: NvidiaState.GPU_LOST,
    18: NvidiaState.LIBRARY_MISMATCH,
}

# A process inside a stuck driver call does not die of SIGKILL, and its pipes stay open.
_PATIENCE_AFTER_KILL_S = 1.0

_CREATION_FLAGS = 0
if sys.platform == "win32":
    _CREATION_FLAGS = subprocess.CREATE_NO_WINDOW


class _Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="line", tag=str.lower):
    """One line of the child."""


class Driver(_Line, frozen=True, kw_only=True):
    """NVML is up."""

    version: str | None
    cuda: tuple[int, int] | None


class Refused(_Line, frozen=True, kw_only=True):
    """NVML did not come up, or does not tell how many cards there are."""

    code: int
    text: str


class Card(_Line, frozen=True, kw_only=True):
    """A card that answered."""

    gpu: Gpu


class LostCard(_Line, frozen=True, kw_only=True):
    """A card that is in the list and did not answer."""

    index: int
    code: int
    text: str


class Remark(_Line, frozen=True, kw_only=True):
    """A single question that failed with an error of its own."""

    text: str


class Done(_Line, frozen=True, kw_only=True):
    """All cards were asked."""


Line = Driver | Refused | Card | LostCard | Remark | Done


def nvml_error(code: int, text: str) -> str:
    """Write an NVML error down: the code is what counts, the text is the library's own."""
    return f"NVML error {code} ({text})"


class NvmlGpus:
    """The `Gpus` port over NVML. `timeout_s` bounds the whole reading."""

    def __init__(self, timeout_s: float = 10.0) -> None:
        self._timeout_s = timeout_s

    def read(self) -> Nvidia:
        """Read the driver and all cards. Never raises for the machine's state.

        Cards that answered before a time-out or a crash are kept beside that state. Where NVML's library cannot be
        found, the driver's own tool may still find it.
        """
        try:
            seen = understood(*_listen(_start_child(), self._timeout_s))
        except OSError as error:
            return Nvidia(state=NvidiaState.FAILED, detail=str(error))
        if seen.state is NvidiaState.NO_DRIVER:
            return nvidia_smi.read(self._timeout_s) or seen
        return seen


@dataclass(frozen=True)
class _Heard:
    lines: tuple[Line, ...]
    complaint: str
    exit_status: int | None
    """None: it had to be killed."""


def _start_child() -> subprocess.Popen[bytes]:
    frozen = getattr(sys, "frozen", False)
    command = [sys.executable, FROZEN_ARGUMENT] if frozen else [sys.executable, "-m", "installer.adapters.nvml_child"]
    # `-m` looks in the working folder first: it has to be where this package lies, not where a person happens to be.
    folder = None if frozen else Path(__file__).parents[2]
    return subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        creationflags=_CREATION_FLAGS,
    )


def _listen(child: subprocess.Popen[bytes], timeout_s: float) -> tuple[bytes, bytes, int | None]:
    """Return output, complaint and exit status; None where it had to be killed."""
    try:
        output, complaint = child.communicate(timeout=timeout_s)
        return output, complaint, child.returncode
    except subprocess.TimeoutExpired:
        child.kill()
    finally:
        if child.poll() is None:
            child.kill()
    try:
        output, complaint = child.communicate(timeout=_PATIENCE_AFTER_KILL_S)
    except subprocess.TimeoutExpired as stuck:
        output, complaint = stuck.output or b"", stuck.stderr or b""
    return output, complaint, None


def understood(output: bytes, complaint: bytes, exit_status: int | None) -> Nvidia:
    """Return what the child's lines say; an exit status of None means that it had to be killed."""
    return _understand(_Heard(_lines(output), _last_line(complaint), exit_status))


def _lines(output: bytes) -> tuple[Line, ...]:
    """Decode what is a line of ours; a driver library may print on its own, and the last line may be cut."""
    lines = []
    for text in output.splitlines():
        try:
            lines.append(msgspec.json.decode(text, type=Line))
        except NOT_OF_THAT_FORM:
            continue
    return tuple(lines)


def _last_line(complaint: bytes) -> str:
    return next((line for line in reversed(complaint.decode(errors="replace").splitlines()) if line.strip()), "")


def _understand(heard: _Heard) -> Nvidia:
    driver = next((line for line in heard.lines if isinstance(line, Driver)), Driver(version=None, cuda=None))
    return Nvidia(
        state=_state(heard),
        driver_version=driver.version,
        cuda_version=driver.cuda,
        gpus=tuple(line.gpu for line in heard.lines if isinstance(line, Card)),
        detail=redacted("; ".join(_details(heard))),
    )


def _state(heard: _Heard) -> NvidiaState:
    for line in heard.lines:
        if isinstance(line, Refused):
            return _STATE_OF_CODE.get(line.code, NvidiaState.FAILED)
    if not _complete(heard.lines):
        return NvidiaState.TIMED_OUT if heard.exit_status is None else NvidiaState.FAILED
    if any(isinstance(line, Card) for line in heard.lines):
        return NvidiaState.READ
    lost = next((line for line in heard.lines if isinstance(line, LostCard)), None)
    return NvidiaState.NO_DEVICE if lost is None else _STATE_OF_CODE.get(lost.code, NvidiaState.FAILED)


def _complete(lines: Sequence[Line]) -> bool:
    """Say whether all was said; how the child ended after that does not matter: drivers can crash on unloading."""
    return any(isinstance(line, (Done, Refused)) for line in lines)


def _details(heard: _Heard) -> list[str]:
    details = []
    for line in heard.lines:
        if isinstance(line, Refused):
            details.append(nvml_error(line.code, line.text))
        elif isinstance(line, LostCard):
            details.append(f"card {line.index}: {nvml_error(line.code, line.text)}")
        elif isinstance(line, Remark):
            details.append(line.text)
    if not _complete(heard.lines) and heard.exit_status is not None:
        details.append(f"reader ended with {heard.exit_status}: {heard.complaint}".rstrip(": "))
    return details

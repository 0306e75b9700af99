"""Facts: everything that was read from this machine, as frozen values with a JSON form.

`slipway detect --json` prints this shape and `slipway offers --machine FILE` reads it, so a recorded machine is the
same value as a live one. All memory and disk figures are bytes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from installer.domain.problems import InstallerError, MalformedFile

SCHEMA = 1


class Missing(StrEnum):
    """Why a figure is not there: three states that are never taken for zero, nor for one another."""

    NOT_SUPPORTED = "not_supported"
    NO_PERMISSION = "no_permission"
    NOTHING_THERE = "nothing_there"


_MISSING = {missing.value: missing for missing in Missing}


def _or_missing(text: str) -> str:
    """Turn the text of a missing state back into that state: the decoder takes no union of two kinds of text."""
    return _MISSING.get(text, text)


class _Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class GpuMemory(_Fact, frozen=True, kw_only=True):
    """NVML's memory info v2: `free` is what the driver can still give, `reserved` is what it keeps for itself."""

    total_bytes: int
    free_bytes: int
    used_bytes: int
    reserved_bytes: int = 0


class CudaMemory(_Fact, frozen=True, kw_only=True):
    """CUDA's own free and total memory, read inside a container: the figures that vLLM's start gate compares."""

    total_bytes: int
    free_bytes: int


class GpuProcess(_Fact, frozen=True, kw_only=True):
    """A process that holds graphics memory; the amount is missing where the driver does not tell (WDDM, WSL2).

    `name` is a text or a Missing, which is a text of its own kind.
    """

    pid: int
    name: str
    used_bytes: int | Missing

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "name", _or_missing(self.name))


class Gpu(_Fact, frozen=True, kw_only=True):
    """One graphics card as NVML shows it; addressed by UUID, since NVML's order is not CUDA's.

    `driver_model` is WDDM, TCC, MCDM or a Missing, which is a text of its own kind. `asleep` says that the card had
    been put to sleep to save power and that reading it woke it: who reads it again and again keeps it awake.
    """

    index: int
    uuid: str
    name: str
    memory: GpuMemory | Missing
    compute_capability: tuple[int, int] | Missing
    driver_model: str = Missing.NOT_SUPPORTED
    mig_enabled: bool = False
    unified_memory: bool = False
    asleep: bool = False
    processes: tuple[GpuProcess, ...] | Missing = ()
    cuda: CudaMemory | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "driver_model", _or_missing(self.driver_model))


class NvidiaState(StrEnum):
    """How far the reading of the NVIDIA driver came."""

    READ = "read"
    NO_DRIVER = "no_driver"
    NO_DEVICE = "no_device"
    NO_PERMISSION = "no_permission"
    NOT_SUPPORTED = "not_supported"
    LIBRARY_MISMATCH = "library_mismatch"
    NOT_LOADED = "not_loaded"
    GPU_LOST = "gpu_lost"
    TIMED_OUT = "timed_out"
    FAILED = "failed"


class Nvidia(_Fact, frozen=True, kw_only=True):
    """The NVIDIA driver and its cards. `cuda_version` is the newest that the driver can run, as major and minor."""

    state: NvidiaState
    driver_version: str | None = None
    cuda_version: tuple[int, int] | None = None
    gpus: tuple[Gpu, ...] = ()
    detail: str = ""


class Proxy(_Fact, frozen=True, kw_only=True):
    """The proxies that programs on one side go through, without name and password; "" means none.

    `reaches_loopback` tells that requests to 127.0.0.1 would go to the proxy, too; None where nobody looked.
    """

    http: str = ""
    https: str = ""
    no_proxy: str = ""
    reaches_loopback: bool | None = None

    @property
    def shown(self) -> str:
        """Return the proxy that a download goes through, "" where there is none."""
        return self.https or self.http


class EngineState(StrEnum):
    """Whether a container engine answers, and if not, which of the different reasons it is."""

    RUNNING = "running"
    NOT_INSTALLED = "not_installed"
    DOWN = "down"
    NO_PERMISSION = "no_permission"
    TIMED_OUT = "timed_out"
    PODMAN = "podman"
    FAILED = "failed"


class Engine(_Fact, frozen=True, kw_only=True):
    """The container engine behind the context in force. `api_version` is as Docker writes it, such as 1.44.

    `nvidia_hook` tells that NVIDIA's toolkit is installed beside an engine on this very host, `other_contexts` name
    engines that may answer, too. `proxy` is the engine's own, through which it pulls.
    """

    state: EngineState
    context: str = ""
    endpoint: str = ""
    version: str = ""
    api_version: str = ""
    os_type: str = ""
    operating_system: str = ""
    architecture: str = ""
    kernel: str = ""
    docker_desktop: bool = False
    rootless: bool = False
    runtimes: tuple[str, ...] = ()
    nvidia_hook: bool = False
    cdi_spec_dirs: tuple[str, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    memory_bytes: int | None = None
    data_root: str = ""
    data_root_free_bytes: int | None = None
    other_contexts: tuple[str, ...] = ()
    proxy: Proxy = Proxy()
    detail: str = ""

    @property
    def nvidia_ready(self) -> bool:
        """Say whether the engine announces a way to hand an NVIDIA card to a container.

        Docker Desktop's WSL2 back end has it built in and announces nothing.
        """
        wsl2_backend = self.docker_desktop and "wsl2" in self.kernel.casefold()
        announced = "nvidia" in self.runtimes or self.nvidia_hook
        return announced or any("nvidia.com/gpu" in d for d in self.cdi_devices) or wsl2_backend


class ComposeState(StrEnum):
    """Whether Compose v2 is there."""

    READY = "ready"
    NOT_INSTALLED = "not_installed"
    TIMED_OUT = "timed_out"
    FAILED = "failed"


class Compose(_Fact, frozen=True, kw_only=True):
    """The `docker compose` plugin (or its stand-alone binary); `command` is how it is called."""

    state: ComposeState
    version: str = ""
    command: tuple[str, ...] = ()
    detail: str = ""


class PciCard(_Fact, frozen=True, kw_only=True):
    """An NVIDIA card on the bus, whatever its driver says: the kernel's driver for it, and whether it sleeps."""

    address: str
    driver: str = ""
    power: str = ""

    @property
    def asleep(self) -> bool:
        """Say whether it is switched off to save power; a reading wakes it."""
        return self.power.casefold() in ("suspended", "d3cold", "d3hot")


class Host(_Fact, frozen=True, kw_only=True):
    """The computer itself. `wsl2` is true inside a WSL2 distribution; cards on the bus are listed on Linux only.

    `variables` are names of the environment that mislead other programs, each with its flaw and never with its value.
    `proxy` is that of this user's programs.
    """

    system: str
    release: str = ""
    architecture: str = ""
    ram_total_bytes: int | None = None
    ram_available_bytes: int | None = None
    wsl2: bool = False
    desktop_session: bool = False
    nvidia_cards: tuple[PciCard, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    proxy: Proxy = Proxy()


class Folder(_Fact, frozen=True, kw_only=True):
    """The folder for the weights and what its disk has left; writable tells of the nearest parent that exists."""

    path: str
    free_bytes: int | None
    writable: bool = True


class Ports(_Fact, frozen=True, kw_only=True):
    """The first ports from 8000 on that nobody listens on."""

    free: tuple[int, ...] = ()


class Calibration(_Fact, frozen=True, kw_only=True):
    """What real starts of one profile on one card taught: bytes to add to the upper end of the overhead.

    Less than nothing where the prediction was too careful. `starts` counts what went into it.
    """

    gpu_uuid: str
    wsl2: bool
    profile: str
    shift_bytes: int = 0
    starts: int = 0


class Facts(_Fact, frozen=True, kw_only=True):
    """One reading of the whole machine. `calibrations` are what earlier starts on it taught."""

    schema: int = SCHEMA
    recorded: str | None = None
    nvidia: Nvidia
    engine: Engine
    compose: Compose
    host: Host
    weights_folder: Folder
    ports: Ports = Ports()
    calibrations: tuple[Calibration, ...] = ()

    @property
    def behind_wsl2(self) -> bool:
        """Say whether CUDA runs behind WSL2's paravirtualised driver, in this distribution or in Docker Desktop's."""
        return self.host.wsl2 or (self.engine.docker_desktop and self.host.system == "Windows")

    def gpu(self, uuid: str) -> Gpu | None:
        """Return the card with this UUID, or None."""
        return next((gpu for gpu in self.nvidia.gpus if gpu.uuid == uuid), None)

    def calibration(self, gpu_uuid: str, profile: str) -> Calibration | None:
        """Return what starts of this very profile on this card taught, or None."""
        return next((c for c in self._of_card(gpu_uuid) if c.profile == profile), None)

    def shift_bytes(self, gpu_uuid: str, profile: str) -> int:
        """Return what to add to the overhead of a profile on a card.

        A profile's own starts count as they are. Those of others can only make more careful: their room to spare may
        be their own, but what they took beyond the prediction, this card or driver may take of every profile.
        """
        own = self.calibration(gpu_uuid, profile)
        return own.shift_bytes if own else max((0, *(c.shift_bytes for c in self._of_card(gpu_uuid))))

    def _of_card(self, gpu_uuid: str) -> tuple[Calibration, ...]:
        here = self.behind_wsl2
        return tuple(c for c in self.calibrations if c.gpu_uuid == gpu_uuid and c.wsl2 == here)

    def with_cuda(self, uuid: str, cuda: CudaMemory) -> Facts:
        """Return these facts with CUDA's own figures for one card."""
        gpus = tuple(msgspec.structs.replace(gpu, cuda=cuda) if gpu.uuid == uuid else gpu for gpu in self.nvidia.gpus)
        return msgspec.structs.replace(self, nvidia=msgspec.structs.replace(self.nvidia, gpus=gpus))


def from_json(text: str | bytes, path: str = "") -> Facts:
    """Read recorded facts, with or without a UTF-8 byte order mark (Windows' editors and shells write one).

    Raises InstallerError(MalformedFile) with the path inside the document and the reason.
    """
    text = text.removeprefix("\ufeff") if isinstance(text, str) else text.removeprefix(b"\xef\xbb\xbf")
    try:
        facts = msgspec.json.decode(text, type=Facts)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InstallerError(MalformedFile.of(path, error)) from error
    if facts.schema != SCHEMA:
        raise InstallerError(
            MalformedFile(path=path, where="$.schema", reason=f"expected {SCHEMA}, got {facts.schema}")
        )
    return facts


def to_json(facts: Facts) -> Any:
    """Return facts as plain JSON values."""
    return msgspec.to_builtins(facts)

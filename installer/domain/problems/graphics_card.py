"""The graphics card, its driver and its memory."""

from __future__ import annotations

from installer.domain.driver_versions import minimum_driver
from installer.domain.problems.base import Action, Problem, Treatment


class GpuProblem(Problem, frozen=True, kw_only=True):
    """The graphics card, its driver or its memory."""

    family = "gpu"
    exit_code = 10
    action = Action.CHECK_AGAIN


class NoNvidiaDriver(GpuProblem, frozen=True, kw_only=True):
    """NVML's library is not there: no driver, or no NVIDIA card."""

    action = Action.INSTALL
    wsl2: bool = False


class DriverNotLoaded(GpuProblem, frozen=True, kw_only=True):
    """The library is there but the kernel module does not answer."""

    action = Action.START
    detail: str = ""


class DriverLibraryMismatch(GpuProblem, frozen=True, kw_only=True):
    """Kernel module and user library are of different versions, as after an update without a restart."""

    detail: str = ""


class NvidiaNoPermission(GpuProblem, frozen=True, kw_only=True):
    """The driver is there but refuses this user."""

    detail: str = ""


class GpuReadTimedOut(GpuProblem, frozen=True, kw_only=True):
    """The driver did not answer in time and the reading was ended."""

    seconds: float


class GpuLost(GpuProblem, frozen=True, kw_only=True):
    """The card fell off the bus; `running` while a server used it. `xid` is the driver's own number for the fault."""

    detail: str = ""
    xid: int | None = None
    running: bool = False

    @property
    def treatment(self) -> Treatment:
        """A server that lost its card never comes up again."""
        return Treatment.FAIL_FAST if self.running else Treatment.BLOCK


class GpuReadFailed(GpuProblem, frozen=True, kw_only=True):
    """The driver answered with an error that has no kind of its own."""

    action = Action.REPORT
    detail: str


class NoGpu(GpuProblem, frozen=True, kw_only=True):
    """The driver is there and lists no card."""


class DriverTooOld(GpuProblem, frozen=True, kw_only=True):
    """The image needs a newer CUDA than this driver can run."""

    action = Action.INSTALL
    driver: str
    driver_cuda: str
    image: str
    image_cuda: str
    wsl2: bool = False

    @property
    def needed_driver(self) -> str:
        """Return the first driver that runs the image's CUDA, "" where that is not known; under WSL2 it is Windows'."""
        return minimum_driver(self.image_cuda, windows=self.wsl2)


class DriverCombination(GpuProblem, frozen=True, kw_only=True):
    """CUDA 803: libraries of the image and of the driver are mixed up, whatever their age.

    The image's own compatibility libraries came before the driver's (vLLM's images since 0.15, gpustack issue 4678):
    the ladder puts the driver's first.
    """

    treated = Treatment.ADAPT
    cuda_error: int
    driver: str = ""


class KernelMissing(GpuProblem, frozen=True, kw_only=True):
    """The image has no kernel for this card; `capability` and `needed` are the message's own, such as 120."""

    action = Action.CHOOSE_ANOTHER
    capability: str = ""
    needed: str = ""
    image: str = ""


class Fp8NotSupported(GpuProblem, frozen=True, kw_only=True):
    """This card's kernels cannot read an FP8 cache: below compute capability 8.9 the cache stays in 16 bits."""

    treated = Treatment.ADAPT
    dtype: str


class UvaNotAvailable(GpuProblem, frozen=True, kw_only=True):
    """vLLM 0.24 to 0.29 want pinned memory, which WSL2 does not give (vllm issue 47387)."""

    action = Action.CHOOSE_ANOTHER
    release: str = ""


class NotResident(GpuProblem, frozen=True, kw_only=True):
    """WSL2 could not keep memory on the card, although enough of it is free; `code` is its driver's (-12)."""

    treated = Treatment.ADAPT
    code: int | None = None


class NoAdapterInWsl(GpuProblem, frozen=True, kw_only=True):
    """WSL shows no graphics card at all: driver of Windows too old, WSL 1, or a TCC card."""

    detail: str = ""


class CapabilityTooLow(GpuProblem, frozen=True, kw_only=True):
    """The profile's kernels do not exist for this card's compute capability."""

    action = Action.CHOOSE_ANOTHER
    profile: str
    capability: str
    needed: str


class GpuMemoryUnknown(GpuProblem, frozen=True, kw_only=True):
    """The card's memory cannot be read; `state` is one of the three missing states."""

    gpu: str
    state: str


class MigNotServed(GpuProblem, frozen=True, kw_only=True):
    """The card is split by MIG; instances are not served."""

    action = Action.CHOOSE_ANOTHER
    gpu: str


class DoesNotFit(GpuProblem, frozen=True, kw_only=True):
    """The profile needs more than this card can give it; `limit` names the term that is short."""

    action = Action.CHOOSE_ANOTHER
    profile: str
    gpu: str
    needed_bytes: int
    available_bytes: int
    limit: str


class NotEnoughFreeMemory(GpuProblem, frozen=True, kw_only=True):
    """vLLM's start gate would refuse: too much of the card is in use by others."""

    action = Action.FREE_MEMORY
    gpu: str
    free_bytes: int
    total_bytes: int
    needed_bytes: int
    holders: tuple[str, ...] = ()

    @property
    def short_bytes(self) -> int:
        """Return how many bytes must be freed."""
        return max(0, self.needed_bytes - self.free_bytes)


class NotEnoughHostMemory(GpuProblem, frozen=True, kw_only=True):
    """The engine's memory is smaller than loading this checkpoint takes."""

    advice = True
    memory_bytes: int
    needed_bytes: int
    wsl2: bool = False


class MemoryHiddenByWsl2(GpuProblem, frozen=True, kw_only=True):
    """WSL2 keeps a share of the card's memory that the driver's figure does not show."""

    advice = True
    gpu: str
    hidden_bytes: int


class GpuNotInContainer(GpuProblem, frozen=True, kw_only=True):
    """A container was started with the card and CUDA did not find it there."""

    gpu: str
    cuda_error: int | None
    detail: str = ""


class ProfileBlocked(GpuProblem, frozen=True, kw_only=True):
    """A measured failure of this profile on this class of card, with its source."""

    action = Action.CHOOSE_ANOTHER
    profile: str
    reason: str
    source: str


class CacheNotLaidOut(GpuProblem, frozen=True, kw_only=True):
    """vLLM of this release refuses to lay out the model's cache, whatever the card has."""

    action = Action.CHOOSE_ANOTHER
    profile: str
    release: str


class NothingFits(GpuProblem, frozen=True, kw_only=True):
    """No profile of the registry runs on this machine as it is."""

    action = Action.CHOOSE_ANOTHER
    gpu: str

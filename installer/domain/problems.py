"""Problems: everything that can go wrong, as values. Sentences about them live in `installer.text`.

One frozen class per kind, its figures as typed fields. The family gives the exit code. A Problem never holds a secret
and never a guess: what is not known is `Unknown...`, with the lines that were seen.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import ClassVar

import msgspec


class Action(StrEnum):
    """What a person can do about a Problem; a window draws a button from it."""

    CORRECT_INPUT = "correct_input"
    CHECK_AGAIN = "check_again"
    TRY_AGAIN = "try_again"
    FREE_MEMORY = "free_memory"
    CHOOSE_ANOTHER = "choose_another"
    INSTALL = "install"
    START = "start"
    SIGN_IN = "sign_in"
    CONSENT = "consent"
    REPORT = "report"


def snake_case(name: str) -> str:
    """Return a class name as a JSON kind: `DiskFull` is `disk_full`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Tagged(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=snake_case):
    """A value that says in its JSON which kind it is."""

    @property
    def kind(self) -> str:
        """Return the kind as it is written in JSON."""
        return snake_case(type(self).__name__)


class Problem(Tagged, frozen=True, kw_only=True):
    """A failure or an advice. `exit_code` and `family` belong to the kind, `advice` means that nothing is blocked."""

    family: ClassVar[str] = "bug"
    exit_code: ClassVar[int] = 1
    action: ClassVar[Action] = Action.REPORT
    advice: ClassVar[bool] = False

    @property
    def command(self) -> str | None:
        """Return a command that a person can copy to mend this, or None."""
        return None

    @property
    def technical(self) -> tuple[str, ...]:
        """Return lines for whoever wants to look closer, as they were seen and in no language of ours."""
        detail = getattr(self, "detail", "")
        return tuple(str(detail).splitlines())


class InstallerError(Exception):
    """Carries a Problem up to the one place that shows it."""

    def __init__(self, problem: AnyProblem) -> None:
        super().__init__(problem.kind)
        self.problem = problem


class Cancelled(BaseException):
    """The person stopped the run. Not an Exception, so that no handler swallows it."""


class UsageProblem(Problem, frozen=True, kw_only=True):
    """What was asked for cannot be taken as it is."""

    family = "usage"
    exit_code = 2
    action = Action.CORRECT_INPUT


class BadArguments(UsageProblem, frozen=True, kw_only=True):
    """The command line cannot be read. `detail` names flags, never their values: one of them may be a secret."""

    detail: str


class MalformedFile(UsageProblem, frozen=True, kw_only=True):
    """A file (registry, answers, machine, plan) that cannot be read: `where` is the path inside the document."""

    path: str
    where: str
    reason: str

    @classmethod
    def of(cls, path: str, error: Exception) -> MalformedFile:
        """Translate a parser's error; msgspec puts the place behind ` - at `, of a key as "`key` in `$.place`"."""
        reason, _, where = str(error).partition(" - at ")
        return cls(path=path, where=where.rpartition(" in ")[2].strip("`") or "$", reason=reason)


class FileUnreadable(UsageProblem, frozen=True, kw_only=True):
    """A file that was named cannot be opened."""

    path: str
    reason: str


class UnknownName(UsageProblem, frozen=True, kw_only=True):
    """A profile, stack, card or release that does not exist; `known` lists those that do."""

    field: str
    value: str
    known: tuple[str, ...]


class BadChoice(UsageProblem, frozen=True, kw_only=True):
    """A choice outside its limits. `limit` is a range or a form that would be accepted."""

    field: str
    value: str
    limit: str


class LicenceNotAccepted(UsageProblem, frozen=True, kw_only=True):
    """The profile's licence asks for consent, which `--yes` does not give."""

    action = Action.CONSENT
    profile: str
    licence: str
    url: str = ""


class EditedByHand(UsageProblem, frozen=True, kw_only=True):
    """A file of ours was changed by a person; `diff` shows what would be lost."""

    action = Action.CONSENT
    path: str
    diff: str

    @property
    def technical(self) -> tuple[str, ...]:
        """Return what would be lost, as a diff."""
        return tuple(self.diff.splitlines())


class ConsentNeeded(UsageProblem, frozen=True, kw_only=True):
    """The run needs a yes and nobody is there to give it."""

    action = Action.CONSENT
    stack: str


class NotInstalled(UsageProblem, frozen=True, kw_only=True):
    """The stack that was named is not installed in this home."""

    stack: str
    home: str


class AlreadyRunning(UsageProblem, frozen=True, kw_only=True):
    """Another Slipway holds this home."""

    action = Action.TRY_AGAIN
    pid: int | None
    home: str


class CardHeldByStack(UsageProblem, frozen=True, kw_only=True):
    """The other stack holds the card; below 48 GB one of them holds it at a time."""

    action = Action.FREE_MEMORY
    stack: str
    other: str

    @property
    def command(self) -> str:
        """Return the command that stops the other stack."""
        return f"slipway stop --stack {self.other}"


class NotServedYet(UsageProblem, frozen=True, kw_only=True):
    """The profile is data for a later version: this one cannot start its back end (or one server on several cards)."""

    action = Action.CHOOSE_ANOTHER
    profile: str
    backend: str


class EvidenceNotReproduced(UsageProblem, frozen=True, kw_only=True):
    """A profile was measured to run on a card, and the memory accounting says that it does not fit there."""

    profile: str
    card: str
    source: str
    needed_bytes: int
    available_bytes: int


class LicenceTagMissing(UsageProblem, frozen=True, kw_only=True):
    """The hub names no licence for these checkpoints, so that nobody may assume one."""

    repos: tuple[str, ...]


class SignatureInvalid(UsageProblem, frozen=True, kw_only=True):
    """A registry was not signed with the key that was named, or was changed since."""

    path: str
    revision: str = ""


class RegistryExpired(UsageProblem, frozen=True, kw_only=True):
    """A signed registry is past its date. `expired` is ISO 8601."""

    action = Action.TRY_AGAIN
    path: str
    revision: str
    expired: str


class RegistryRecalled(UsageProblem, frozen=True, kw_only=True):
    """A signed registry stands on a recall list: its own, that of the one kept here, or is older than that one."""

    path: str
    revision: str
    recalled_by: str


class SigningNotInstalled(UsageProblem, frozen=True, kw_only=True):
    """Checking a signature needs the optional package `cryptography`."""

    action = Action.INSTALL

    @property
    def command(self) -> str:
        """Return the command that installs it."""
        return 'pip install "slipway[signing]"'


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
    """The card fell off the bus."""

    detail: str = ""


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


class NothingFits(GpuProblem, frozen=True, kw_only=True):
    """No profile of the registry runs on this machine as it is."""

    action = Action.CHOOSE_ANOTHER
    gpu: str


class DockerProblem(Problem, frozen=True, kw_only=True):
    """The container engine, Compose, or the way from the engine to the card."""

    family = "docker"
    exit_code = 20
    action = Action.CHECK_AGAIN


class EngineNotInstalled(DockerProblem, frozen=True, kw_only=True):
    """No Docker on this machine."""

    action = Action.INSTALL
    system: str


class EngineDown(DockerProblem, frozen=True, kw_only=True):
    """Docker is installed and does not answer at its endpoint."""

    action = Action.START
    endpoint: str
    detail: str = ""


class EngineNoPermission(DockerProblem, frozen=True, kw_only=True):
    """The engine's socket refuses this user."""

    endpoint: str

    @property
    def command(self) -> str | None:
        """Return the command that lets this user in; on Windows that is done in the computer management."""
        return None if self.endpoint.startswith("npipe") else 'sudo usermod -aG docker "$USER"'


class EngineTimedOut(DockerProblem, frozen=True, kw_only=True):
    """The engine took the connection and did not answer in time."""

    endpoint: str
    seconds: float


class EngineIsPodman(DockerProblem, frozen=True, kw_only=True):
    """Podman answers: it takes a GPU request over Docker's interface and ignores it."""

    endpoint: str
    version: str


class EngineNotLinux(DockerProblem, frozen=True, kw_only=True):
    """The engine runs Windows containers."""

    os_type: str


class EngineFailed(DockerProblem, frozen=True, kw_only=True):
    """The engine refused with an error that has no kind of its own."""

    action = Action.REPORT
    operation: str
    detail: str


class EngineLost(DockerProblem, frozen=True, kw_only=True):
    """The engine went away in the middle of a step."""

    action = Action.START
    operation: str
    detail: str = ""


class NvidiaToolkitMissing(DockerProblem, frozen=True, kw_only=True):
    """The engine knows no way to hand an NVIDIA card to a container."""

    action = Action.INSTALL
    runtimes: tuple[str, ...]
    docker_desktop: bool = False

    @property
    def command(self) -> str | None:
        """Return the command that tells Docker about NVIDIA's runtime, where that is the way."""
        if self.docker_desktop:
            return None
        return "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"


class ComposeMissing(DockerProblem, frozen=True, kw_only=True):
    """Compose v2 is not there."""

    action = Action.INSTALL
    detail: str = ""


class ComposeTooOld(DockerProblem, frozen=True, kw_only=True):
    """Compose is older than the file needs."""

    action = Action.INSTALL
    version: str
    needed: str


class NoSuchPlatform(DockerProblem, frozen=True, kw_only=True):
    """The image exists, but not for this processor."""

    action = Action.CHOOSE_ANOTHER
    image: str
    platform: str
    platforms: tuple[str, ...]


class NetworkProblem(Problem, frozen=True, kw_only=True):
    """The way to a registry or a hub, and what they answered."""

    family = "network"
    exit_code = 30
    action = Action.TRY_AGAIN


class Unreachable(NetworkProblem, frozen=True, kw_only=True):
    """A host did not answer: no route, no name, refused, timed out."""

    host: str
    detail: str = ""


class TlsNotTrusted(NetworkProblem, frozen=True, kw_only=True):
    """The host's certificate is not trusted, as behind a proxy that opens TLS."""

    host: str
    by_engine: bool = False


class Stalled(NetworkProblem, frozen=True, kw_only=True):
    """A transfer stood still for longer than it may."""

    what: str
    seconds: float


class CaptivePortal(NetworkProblem, frozen=True, kw_only=True):
    """A web page came instead of the file: a sign-in page of the network, or a proxy's notice."""

    url: str


class ServerError(NetworkProblem, frozen=True, kw_only=True):
    """The host answered with an error of its own."""

    host: str
    status: int


class RateLimited(NetworkProblem, frozen=True, kw_only=True):
    """The host asks to come back later; `retry_after_s` is what it named, if it did."""

    host: str
    retry_after_s: int | None = None


class ImageUnknown(NetworkProblem, frozen=True, kw_only=True):
    """The registry does not know this image or tag, or does not show it to us."""

    action = Action.CHOOSE_ANOTHER
    image: str


class DigestGone(NetworkProblem, frozen=True, kw_only=True):
    """The pinned digest was removed from the registry."""

    action = Action.CHOOSE_ANOTHER
    image: str
    digest: str
    tag: str = ""


class RegistryDenied(NetworkProblem, frozen=True, kw_only=True):
    """The image registry wants a sign-in."""

    action = Action.SIGN_IN
    image: str


class TokenNeeded(NetworkProblem, frozen=True, kw_only=True):
    """The hub answered 401: the repository is private, gated, or does not exist."""

    action = Action.SIGN_IN
    repo: str
    had_token: bool


class AccessNotGranted(NetworkProblem, frozen=True, kw_only=True):
    """The hub answered 403: the licence is not accepted, or the token may not read gated repositories."""

    action = Action.SIGN_IN
    repo: str
    gated: bool


class RepoUnknown(NetworkProblem, frozen=True, kw_only=True):
    """The hub does not know this repository, revision or file."""

    action = Action.CHOOSE_ANOTHER
    repo: str
    revision: str
    file: str = ""


class BadToken(NetworkProblem, frozen=True, kw_only=True):
    """The token has characters that no token has."""

    action = Action.CORRECT_INPUT
    form: str = "hf_…"


class WrongContent(NetworkProblem, frozen=True, kw_only=True):
    """A file's content is not what the hub announced; the bad bytes were thrown away."""

    file: str
    expected: str
    got: str


class Truncated(NetworkProblem, frozen=True, kw_only=True):
    """A file ended early again and again."""

    file: str
    got_bytes: int
    expected_bytes: int


class NotResolvedYet(NetworkProblem, frozen=True, kw_only=True):
    """Nothing is known yet of this profile's sources, and the network is not there."""

    profile: str


class DiskProblem(Problem, frozen=True, kw_only=True):
    """Disk space and the right to write."""

    family = "disk"
    exit_code = 40
    action = Action.TRY_AGAIN


class DiskFull(DiskProblem, frozen=True, kw_only=True):
    """Not enough room: `where` is a folder, or the engine's data root."""

    where: str
    needed_bytes: int | None
    free_bytes: int | None
    engine: bool = False


class NotWritable(DiskProblem, frozen=True, kw_only=True):
    """A folder or file cannot be written by this user."""

    path: str
    reason: str = ""


class StartProblem(Problem, frozen=True, kw_only=True):
    """The container did not come up."""

    family = "start"
    exit_code = 50
    action = Action.TRY_AGAIN


class PortTaken(StartProblem, frozen=True, kw_only=True):
    """Something listens on the port already."""

    action = Action.CHOOSE_ANOTHER
    port: int
    owner: str = ""


class KvCacheTooSmall(StartProblem, frozen=True, kw_only=True):
    """The context needs more KV cache than is left; `possible_tokens` is the engine's own figure."""

    action = Action.CHOOSE_ANOTHER
    context: int
    needed_gib: float
    available_gib: float
    possible_tokens: int | None


class NoCacheBlocks(StartProblem, frozen=True, kw_only=True):
    """Weights and working memory leave nothing for the KV cache."""

    action = Action.CHOOSE_ANOTHER


class StateBlocksTooFew(StartProblem, frozen=True, kw_only=True):
    """More sequences at once than there are state blocks for the linear layers."""

    action = Action.CHOOSE_ANOTHER
    max_num_seqs: int
    blocks: int


class FreeBelowUtilisation(StartProblem, frozen=True, kw_only=True):
    """vLLM's start gate refused: free memory is below what it was told to take."""

    action = Action.FREE_MEMORY
    free_gib: float
    total_gib: float
    utilisation: float
    wanted_gib: float


class CudaOutOfMemory(StartProblem, frozen=True, kw_only=True):
    """CUDA ran out of memory; `phase` is weights, profiling, graphs, sampler or request."""

    action = Action.CHOOSE_ANOTHER
    phase: str
    tried: str = ""


class UnknownArgument(StartProblem, frozen=True, kw_only=True):
    """The image's program does not know an argument that it was given."""

    action = Action.REPORT
    arguments: str


class ContainerExited(StartProblem, frozen=True, kw_only=True):
    """The container ended by itself; the lines are the last that say something."""

    exit_code_of_container: int
    lines: tuple[str, ...] = ()

    @property
    def technical(self) -> tuple[str, ...]:
        """Return the lines of the log that say something."""
        return self.lines


class ContainerKilled(StartProblem, frozen=True, kw_only=True):
    """The container was killed from outside, most often because the host's memory ran out."""

    out_of_memory: bool
    host_memory_bytes: int | None = None


class NeverHealthy(StartProblem, frozen=True, kw_only=True):
    """The container runs and neither its log nor its health moved for longer than this phase may take."""

    phase: str
    seconds: float
    lines: tuple[str, ...] = ()

    @property
    def technical(self) -> tuple[str, ...]:
        """Return the last lines of the log."""
        return self.lines


class RelaxRefused(StartProblem, frozen=True, kw_only=True):
    """Only a value below what the person chose would start, and nobody agreed to that."""

    action = Action.CONSENT
    field: str
    chosen: str
    possible: str


class ContainerNotOurs(StartProblem, frozen=True, kw_only=True):
    """A container or project of that name exists and does not carry our label."""

    action = Action.CORRECT_INPUT
    name: str


class SmokeProblem(Problem, frozen=True, kw_only=True):
    """The server is up and does not do what it is there for."""

    family = "smoke"
    exit_code = 60
    action = Action.TRY_AGAIN


class SmokeFailed(SmokeProblem, frozen=True, kw_only=True):
    """One or more checks failed; their names, in the order they ran."""

    checks: tuple[str, ...]
    details: tuple[str, ...] = ()

    @property
    def technical(self) -> tuple[str, ...]:
        """Return what each failed check found."""
        return tuple(f"{name}: {found}" for name, found in zip(self.checks, self.details, strict=False))


class NotAnswering(SmokeProblem, frozen=True, kw_only=True):
    """Healthy, but a request gets no answer."""

    seconds: float


class Interrupted(Problem, frozen=True, kw_only=True):
    """The person stopped the run."""

    family = "cancelled"
    exit_code = 130
    action = Action.TRY_AGAIN


class Bug(Problem, frozen=True, kw_only=True):
    """A fault of Slipway's own."""

    error: str
    where: str = ""


AnyProblem = (
    BadArguments
    | MalformedFile
    | FileUnreadable
    | UnknownName
    | BadChoice
    | LicenceNotAccepted
    | EditedByHand
    | ConsentNeeded
    | NotInstalled
    | AlreadyRunning
    | CardHeldByStack
    | NotServedYet
    | EvidenceNotReproduced
    | LicenceTagMissing
    | SignatureInvalid
    | RegistryExpired
    | RegistryRecalled
    | SigningNotInstalled
    | NoNvidiaDriver
    | DriverNotLoaded
    | DriverLibraryMismatch
    | NvidiaNoPermission
    | GpuReadTimedOut
    | GpuLost
    | GpuReadFailed
    | NoGpu
    | DriverTooOld
    | CapabilityTooLow
    | GpuMemoryUnknown
    | MigNotServed
    | DoesNotFit
    | NotEnoughFreeMemory
    | NotEnoughHostMemory
    | MemoryHiddenByWsl2
    | GpuNotInContainer
    | ProfileBlocked
    | NothingFits
    | EngineNotInstalled
    | EngineDown
    | EngineNoPermission
    | EngineTimedOut
    | EngineIsPodman
    | EngineNotLinux
    | EngineFailed
    | EngineLost
    | NvidiaToolkitMissing
    | ComposeMissing
    | ComposeTooOld
    | NoSuchPlatform
    | Unreachable
    | TlsNotTrusted
    | Stalled
    | CaptivePortal
    | ServerError
    | RateLimited
    | ImageUnknown
    | DigestGone
    | RegistryDenied
    | TokenNeeded
    | AccessNotGranted
    | RepoUnknown
    | BadToken
    | WrongContent
    | Truncated
    | NotResolvedYet
    | DiskFull
    | NotWritable
    | PortTaken
    | KvCacheTooSmall
    | NoCacheBlocks
    | StateBlocksTooFew
    | FreeBelowUtilisation
    | CudaOutOfMemory
    | UnknownArgument
    | ContainerExited
    | ContainerKilled
    | NeverHealthy
    | RelaxRefused
    | ContainerNotOurs
    | SmokeFailed
    | NotAnswering
    | Interrupted
    | Bug
)
"""Every kind there is: matched exhaustively, so that a kind without a sentence does not type-check."""


def to_json(problem: Problem) -> dict[str, object]:
    """Return a Problem as plain JSON values, with its kind, family and exit code."""
    values: dict[str, object] = msgspec.to_builtins(problem)
    return values | {"family": problem.family, "exit_code": problem.exit_code, "advice": problem.advice}


def kinds() -> tuple[type[Problem], ...]:
    """Return every concrete kind, in the order in which they stand here."""
    families = (UsageProblem, GpuProblem, DockerProblem, NetworkProblem, DiskProblem, StartProblem, SmokeProblem)
    found = [kind for family in families for kind in family.__subclasses__()]
    return (*found, Interrupted, Bug)

"""The server's start, and what is known of why it failed."""

from __future__ import annotations

from installer.domain.problems.base import Action, Problem, Treatment

MOSTLY_FREE_SHARE = 0.8
"""Below this share of the card that is free, somebody else uses it: closing that helps, taking less does not."""

LEAST_BESIDE_WEIGHTS_GIB = 1.0
"""What a start needs beside its weights at the very least (activations, CUDA's own context), by public logs."""


class StartProblem(Problem, frozen=True, kw_only=True):
    """The container did not come up."""

    family = "start"
    exit_code = 50
    action = Action.TRY_AGAIN


class PortTaken(StartProblem, frozen=True, kw_only=True):
    """Something listens on the port already, or Windows keeps it for itself."""

    treated = Treatment.ADAPT
    action = Action.CHOOSE_ANOTHER
    port: int
    owner: str = ""


class KvCacheTooSmall(StartProblem, frozen=True, kw_only=True):
    """The context needs more KV cache than is left; `possible_tokens` is the engine's own figure."""

    action = Action.CHOOSE_ANOTHER
    context: int
    needed_gib: float | None
    available_gib: float | None
    possible_tokens: int | None

    @property
    def treatment(self) -> Treatment:
        """Where the engine says which context is possible, that one is tried."""
        return Treatment.ADAPT if self.possible_tokens else Treatment.BLOCK


class NoCacheBlocks(StartProblem, frozen=True, kw_only=True):
    """Weights and working memory leave nothing for the KV cache.

    `weights_gib` and `share_gib` are what the weights take and what the server may take, where the plan tells.
    """

    action = Action.CHOOSE_ANOTHER
    weights_gib: float | None = None
    share_gib: float | None = None

    @property
    def treatment(self) -> Treatment:
        """A smaller working set can only help where the weights leave room for one; another share never does."""
        if self.weights_gib is None or self.share_gib is None:
            return Treatment.BLOCK
        return Treatment.ADAPT if self.share_gib - self.weights_gib > LEAST_BESIDE_WEIGHTS_GIB else Treatment.BLOCK


class StateBlocksTooFew(StartProblem, frozen=True, kw_only=True):
    """More sequences at once than there are state blocks for the linear layers."""

    action = Action.CHOOSE_ANOTHER
    max_num_seqs: int
    blocks: int

    @property
    def treatment(self) -> Treatment:
        """Where there is room for one request at least, as many are asked for as there is room."""
        return Treatment.ADAPT if self.blocks >= 1 else Treatment.BLOCK


class FreeBelowUtilisation(StartProblem, frozen=True, kw_only=True):
    """vLLM's start gate refused: free memory is below what it was told to take."""

    action = Action.FREE_MEMORY
    free_gib: float
    total_gib: float
    utilisation: float
    wanted_gib: float

    @property
    def treatment(self) -> Treatment:
        """A little short is met by a smaller share; where others hold the card, a smaller share only fails later."""
        mostly_free = self.total_gib > 0 and self.free_gib / self.total_gib >= MOSTLY_FREE_SHARE
        return Treatment.ADAPT if mostly_free else Treatment.BLOCK


class CudaOutOfMemory(StartProblem, frozen=True, kw_only=True):
    """CUDA ran out of memory; `phase` is weights, profiling, graphs, sampler or request."""

    action = Action.CHOOSE_ANOTHER
    phase: str
    tried: str = ""

    @property
    def treatment(self) -> Treatment:
        """Weights that do not fit never will; a running server that ran full is a proof that failed."""
        match self.phase:
            case "weights":
                return Treatment.BLOCK
            case "request":
                return Treatment.FAIL_FAST
            case _:
                return Treatment.ADAPT


class UnknownArgument(StartProblem, frozen=True, kw_only=True):
    """The image's program does not know an argument that it was given; one of the profile's own is left out."""

    action = Action.REPORT
    treated = Treatment.ADAPT
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


class SharedMemoryTooSmall(StartProblem, frozen=True, kw_only=True):
    """A bus error: `/dev/shm` of the container is too small. Slipway's own file asks for 8 GB."""

    treated = Treatment.ADAPT
    shm_bytes: int | None = None


class FreeMemoryMoved(StartProblem, frozen=True, kw_only=True):
    """Another program gave graphics memory back while vLLM measured; the next start measures right."""

    treated = Treatment.RETRY
    initial_gib: float
    current_gib: float


class ArchitectureUnknown(StartProblem, frozen=True, kw_only=True):
    """The image is older than the model: it does not know its architecture."""

    action = Action.CHOOSE_ANOTHER
    architecture: str
    release: str = ""


class OffloadRefused(StartProblem, frozen=True, kw_only=True):
    """The image cannot keep weights in main memory with these settings."""

    action = Action.CHOOSE_ANOTHER
    detail: str = ""


class ReadyTimedOut(StartProblem, frozen=True, kw_only=True):
    """vLLM gave up waiting for its own engine; with more patience the start goes on."""

    treated = Treatment.ADAPT
    seconds: int


class JsonArgument(StartProblem, frozen=True, kw_only=True):
    """An argument of the server should be JSON and is none: quotes or braces were doubled on the way."""

    treated = Treatment.ADAPT
    flag: str
    value: str

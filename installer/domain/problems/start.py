"""The server's start, and what is known of why it failed."""

from __future__ import annotations

from installer.domain.problems.base import Action, Problem


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

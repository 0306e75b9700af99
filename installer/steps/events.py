"""Events: what a run tells while it runs. The same frozen values feed window, terminal, `--json` and `events.jsonl`."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from installer.domain.calibration import LogFigures, Prediction
from installer.domain.plan import Relaxation
from installer.domain.problems import AnyProblem, snake_case
from installer.steps.smoke import SmokeReport


class Step(StrEnum):
    """The steps of a run, in the order in which they are shown."""

    PROBE = "probe"
    IMAGE = "image"
    WEIGHTS = "weights"
    FILES = "files"
    GATE = "gate"
    START = "start"
    SMOKE = "smoke"
    STOP = "stop"
    REMOVE = "remove"


INSTALL_STEPS = (Step.PROBE, Step.IMAGE, Step.WEIGHTS, Step.FILES, Step.GATE, Step.START, Step.SMOKE)


class _Note(msgspec.Struct, frozen=True, kw_only=True, tag_field="note", tag=snake_case):
    pass


class Recomputed(_Note, frozen=True, kw_only=True):
    """CUDA's own figure changed the plan: the share of the card is another one now."""

    free_bytes: int
    total_bytes: int
    old_utilisation: float
    new_utilisation: float


class Relaxed(_Note, frozen=True, kw_only=True):
    """A start failed and is tried again with one setting lowered."""

    change: Relaxation
    attempt: int


class Phase(_Note, frozen=True, kw_only=True):
    """The server's own log says that it reached the next phase of its start."""

    name: str


class Advice(_Note, frozen=True, kw_only=True):
    """Something that blocks nothing and should be known."""

    problem: AnyProblem


class Again(_Note, frozen=True, kw_only=True):
    """Something passing went wrong and is tried again: a line that broke, a host that asked to wait."""

    problem: AnyProblem
    attempt: int


class BackedUp(_Note, frozen=True, kw_only=True):
    """A file that will be replaced was kept under another name."""

    path: str
    backup: str


class Measured(_Note, frozen=True, kw_only=True):
    """What the server's log told of its memory, beside what was predicted."""

    predicted: Prediction
    logged: LogFigures


Note = Recomputed | Relaxed | Phase | Advice | Again | BackedUp | Measured


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=snake_case):
    at: str


class Started(_Event, frozen=True, kw_only=True):
    """A step begins."""

    step: Step


class Progress(_Event, frozen=True, kw_only=True):
    """A step's bytes so far, never fewer than before."""

    step: Step
    done: int
    total: int


class Notice(_Event, frozen=True, kw_only=True):
    """Something that a person should read while the step goes on."""

    step: Step
    notice: Note


class Skipped(_Event, frozen=True, kw_only=True):
    """The step's result is there already."""

    step: Step


class Finished(_Event, frozen=True, kw_only=True):
    """A step is done."""

    step: Step
    seconds: float


class Failed(_Event, frozen=True, kw_only=True):
    """A step failed. The run ends, or the ladder tries again."""

    step: Step
    problem: AnyProblem


class Proved(_Event, frozen=True, kw_only=True):
    """The proof by real requests, whole, whether it passed or not."""

    report: SmokeReport


class Settled(_Event, frozen=True, kw_only=True):
    """The run is over: `ok`, `cancelled`, or `failed` with its problem."""

    outcome: str
    problem: AnyProblem | None = None
    seconds: float


Event = Started | Progress | Notice | Skipped | Finished | Failed | Proved | Settled

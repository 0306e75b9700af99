"""The proof by real requests."""

from __future__ import annotations

from installer.domain.problems.base import Action, Problem, Treatment


class SmokeProblem(Problem, frozen=True, kw_only=True):
    """The server is up and does not do what it is there for."""

    family = "smoke"
    exit_code = 60
    action = Action.TRY_AGAIN
    treated = Treatment.FAIL_FAST


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


class NotReadyYet(SmokeProblem, frozen=True, kw_only=True):
    """The server still loads: it answers, but not yet with 200."""

    treated = Treatment.RETRY
    status: int


class ReasoningOnly(SmokeProblem, frozen=True, kw_only=True):
    """The answer is empty and its thoughts are not: the server's parser does not suit the model."""

    advice = True
    treated = Treatment.WARN
    field: str


class ReasoningInAnswer(SmokeProblem, frozen=True, kw_only=True):
    """The model's thoughts stand in its answer; the server works."""

    advice = True
    treated = Treatment.WARN
    begins: str


class AnswerCutShort(SmokeProblem, frozen=True, kw_only=True):
    """The answer ended at its limit before a word of it came: it is asked again with more room."""

    treated = Treatment.RETRY
    tokens: int | None = None


class ChatTemplateMissing(SmokeProblem, frozen=True, kw_only=True):
    """The model brings no form for conversations; it is proved with plain text instead."""

    advice = True
    treated = Treatment.ADAPT
    detail: str = ""


class SlowKernel(SmokeProblem, frozen=True, kw_only=True):
    """The model's number format is not computed by this card but unpacked first: right, and slower than it could be."""

    advice = True
    treated = Treatment.WARN
    kernel: str


class MediaNotFetched(SmokeProblem, frozen=True, kw_only=True):
    """The server could not fetch a picture from the internet, which says nothing of the model; proofs carry theirs."""

    advice = True
    treated = Treatment.ADAPT
    url: str
    status: int | None = None


class MediaRefused(SmokeProblem, frozen=True, kw_only=True):
    """The server takes fewer pictures or videos, or other settings for them, than the request has."""

    advice = True
    treated = Treatment.WARN
    detail: str
    limit: int | None = None


class VideoFramesMissing(SmokeProblem, frozen=True, kw_only=True):
    """A video has fewer frames than its own head says: a matter of that file."""

    advice = True
    treated = Treatment.WARN
    expected: int
    loaded: int


class ImageUnusable(SmokeProblem, frozen=True, kw_only=True):
    """A picture came and is none: `flaw` is black, one_colour, transparent, noise or wrong_size."""

    flaw: str
    width: int = 0
    height: int = 0
    mean: float | None = None
    deviation: float | None = None
    opaque_share: float | None = None

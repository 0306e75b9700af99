"""Asking the server that was installed: what cannot be asked, and what came instead of an answer."""

from __future__ import annotations

from installer.domain.problems.base import Action, Treatment
from installer.domain.problems.smoke import SmokeProblem
from installer.domain.problems.start import StartProblem
from installer.domain.problems.usage import UsageProblem


class ServerNotRunning(StartProblem, frozen=True, kw_only=True):
    """The stack is installed and no container of it runs; `ended_with` is the exit code of one that ended by itself."""

    action = Action.START
    stack: str
    port: int
    ended_with: int | None = None

    @property
    def command(self) -> str:
        """Return the command that starts it."""
        return "slipway start" if self.stack == "chat" else f"slipway start --stack {self.stack}"


class ServerStarting(StartProblem, frozen=True, kw_only=True):
    """The container runs and its server does not answer yet: it loads the model, or has hung."""

    action = Action.TRY_AGAIN
    treated = Treatment.RETRY
    stack: str
    port: int

    @property
    def command(self) -> str:
        """Return the command that says whether it serves."""
        return "slipway status" if self.stack == "chat" else f"slipway status --stack {self.stack}"


class PicturesNotRead(UsageProblem, frozen=True, kw_only=True):
    """A picture was given to a profile that takes text only."""

    action = Action.CHOOSE_ANOTHER
    profile: str


class PictureUnreadable(UsageProblem, frozen=True, kw_only=True):
    """A file is no picture that can be sent; `state` is unknown_format, damaged or too_large."""

    path: str
    state: str


class BeyondContext(UsageProblem, frozen=True, kw_only=True):
    """The server refused a request that is longer than the profile's context. Both figures are tokens."""

    limit_tokens: int
    native_tokens: int
    reads_media: bool
    graphics_card: bool


class AnswerRefused(SmokeProblem, frozen=True, kw_only=True):
    """The server answered with an error of its own; `status` is HTTP's, or that of an error inside a stream."""

    status: int
    detail: str = ""


class AnswerBroken(SmokeProblem, frozen=True, kw_only=True):
    """An answer ended before its end, or turned into something that is none."""

    detail: str = ""

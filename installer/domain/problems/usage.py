"""What was asked for cannot be taken as it is: arguments, files, choices, consent."""

from __future__ import annotations

from installer.domain.problems.base import Action, Problem

LONGEST_REASON = 300
"""A parser repeats the name that it does not know, however long that is."""


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
        reason, _, where = str(error).rpartition(" - at ") if " - at " in str(error) else (str(error), "", "")
        shown = reason if len(reason) <= LONGEST_REASON else reason[: LONGEST_REASON - 1] + "…"
        return cls(path=path, where=where.rpartition(" in ")[2].strip("`") or "$", reason=shown)


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


class WindowNotAvailable(UsageProblem, frozen=True, kw_only=True):
    """The window needs the optional package PySide6 and the libraries of a desktop; `detail` is what is missing."""

    action = Action.INSTALL
    detail: str = ""

    @property
    def command(self) -> str:
        """Return the command that installs the package."""
        return 'pip install "slipway[window]"'


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


class PinNotProved(UsageProblem, frozen=True, kw_only=True):
    """An image is to be pinned with which no proof has passed."""

    action = Action.CONSENT
    image: str

    @property
    def command(self) -> str:
        """Return the command that proves it."""
        return "slipway smoke"


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


class NoTokenStore(UsageProblem, frozen=True, kw_only=True):
    """The system's store for secrets cannot keep the token; `state` is not_installed, none or refused.

    not_installed: the optional package `keyring` is not there. none: this session has no store. refused: the store is
    locked or said no.
    """

    action = Action.INSTALL
    state: str

    @property
    def command(self) -> str | None:
        """Return the command that installs the package, where that is what is missing."""
        return 'pip install "slipway[keyring]"' if self.state == "not_installed" else None

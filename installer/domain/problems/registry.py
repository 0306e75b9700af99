"""The registry: what it lists but cannot be served, and what is wrong with one that was fetched."""

from __future__ import annotations

from installer.domain.problems.base import Action
from installer.domain.problems.usage import UsageProblem


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

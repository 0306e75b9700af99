"""Videos that a person gives: what is none, what cannot be fetched, and the way from the container to this computer."""

from __future__ import annotations

from installer.domain.problems.base import Action, Treatment
from installer.domain.problems.network import NetworkProblem
from installer.domain.problems.smoke import SmokeProblem
from installer.domain.problems.usage import UsageProblem


class VideosNotRead(UsageProblem, frozen=True, kw_only=True):
    """A video was given to a profile that reads none."""

    action = Action.CHOOSE_ANOTHER
    profile: str


class VideoUnreadable(UsageProblem, frozen=True, kw_only=True):
    """A file is no video that can be sent; `state` is unknown_format or too_large."""

    path: str
    state: str
    limit_bytes: int = 0


class VideoTooLongForContext(UsageProblem, frozen=True, kw_only=True):
    """The context has no room for the frames that a server takes of a video at least."""

    action = Action.CHOOSE_ANOTHER
    context: int
    frames: int


class UrlNotPublic(NetworkProblem, frozen=True, kw_only=True):
    """The address wants a sign-in: 401 or 403."""

    action = Action.CORRECT_INPUT
    url: str
    status: int


class UrlNotFound(NetworkProblem, frozen=True, kw_only=True):
    """Nothing is at the address: 404 or 410."""

    action = Action.CORRECT_INPUT
    url: str
    status: int


class UrlTimedOut(NetworkProblem, frozen=True, kw_only=True):
    """The address gave nothing for so many seconds."""

    treated = Treatment.RETRY
    url: str
    seconds: float


class UrlHostUnknown(NetworkProblem, frozen=True, kw_only=True):
    """The name in the address is not known to the DNS, or the DNS does not answer."""

    action = Action.CORRECT_INPUT
    host: str


class UrlTooLarge(NetworkProblem, frozen=True, kw_only=True):
    """What is at the address is larger than what a server takes; `size_bytes` is None where it does not say."""

    action = Action.CORRECT_INPUT
    url: str
    limit_bytes: int
    size_bytes: int | None = None


class UrlNotVideo(NetworkProblem, frozen=True, kw_only=True):
    """What is at the address is no video; `found` is the type that it announces."""

    action = Action.CORRECT_INPUT
    url: str
    found: str = ""


class HostNotReached(SmokeProblem, frozen=True, kw_only=True):
    """The container does not reach this computer: a firewall, or an engine that does not let it. The file goes along.

    `address` is where this computer waited, "" where there was none to wait at. `tried` is false where the container
    has nothing to try it with.
    """

    advice = True
    treated = Treatment.ADAPT
    address: str = ""
    tried: bool = True
    detail: str = ""

"""The way to registry and hub, and what they answer."""

from __future__ import annotations

from installer.domain.problems.base import Action, Problem, Treatment


class NetworkProblem(Problem, frozen=True, kw_only=True):
    """The way to a registry or a hub, and what they answered."""

    family = "network"
    exit_code = 30
    action = Action.TRY_AGAIN


class Unreachable(NetworkProblem, frozen=True, kw_only=True):
    """A host did not answer: no route, no name, refused, timed out."""

    treated = Treatment.RETRY
    host: str
    detail: str = ""


class TlsNotTrusted(NetworkProblem, frozen=True, kw_only=True):
    """The host's certificate is not trusted, as behind a proxy that opens TLS."""

    host: str
    by_engine: bool = False


class Stalled(NetworkProblem, frozen=True, kw_only=True):
    """A transfer stood still for longer than it may."""

    treated = Treatment.RETRY
    what: str
    seconds: float


class CaptivePortal(NetworkProblem, frozen=True, kw_only=True):
    """A web page came instead of the file: a sign-in page of the network, or a proxy's notice."""

    url: str


class ServerError(NetworkProblem, frozen=True, kw_only=True):
    """The host answered with an error of its own."""

    treated = Treatment.RETRY
    host: str
    status: int


class RateLimited(NetworkProblem, frozen=True, kw_only=True):
    """The host asks to come back later; `retry_after_s` is what it named, if it did."""

    treated = Treatment.RETRY
    host: str
    retry_after_s: int | None = None


class ImageUnknown(NetworkProblem, frozen=True, kw_only=True):
    """The registry does not know this image or tag, or does not show it to us."""

    action = Action.CHOOSE_ANOTHER
    image: str


class DigestGone(NetworkProblem, frozen=True, kw_only=True):
    """The pinned digest was removed from the registry.

    A digest that nobody named is looked up anew; one that a person named is theirs to change.
    """

    action = Action.CHOOSE_ANOTHER
    treated = Treatment.ADAPT
    image: str
    digest: str
    tag: str = ""


class RegistryDenied(NetworkProblem, frozen=True, kw_only=True):
    """The image registry wants a sign-in."""

    action = Action.SIGN_IN
    image: str


class TokenNeeded(NetworkProblem, frozen=True, kw_only=True):
    """The hub answered 401: the repository is private, gated, or does not exist. `gated` where it is known to be."""

    action = Action.SIGN_IN
    repo: str
    had_token: bool
    gated: bool = False


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

    treated = Treatment.RETRY
    file: str
    expected: str
    got: str


class Truncated(NetworkProblem, frozen=True, kw_only=True):
    """A file ended early again and again."""

    treated = Treatment.RETRY
    file: str
    got_bytes: int
    expected_bytes: int


class NotResolvedYet(NetworkProblem, frozen=True, kw_only=True):
    """Nothing is known yet of this profile's sources, and the network is not there."""

    profile: str


class ProxyRefused(NetworkProblem, frozen=True, kw_only=True):
    """The proxy that is set does not answer, or wants a name and a password; `status` is its answer, if one came."""

    action = Action.CORRECT_INPUT
    proxy: str
    status: int | None = None


class WeightsDamaged(NetworkProblem, frozen=True, kw_only=True):
    """A weight file cannot be read: cut short, or a pointer in its place. It is checked and fetched anew."""

    treated = Treatment.RETRY
    file: str
    reason: str

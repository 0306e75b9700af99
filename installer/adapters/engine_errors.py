"""What a container engine, Compose and the NVIDIA hook say, as Problems. Pure: text in, value out.

Daemons are not translated, but they are reworded: the table of fingerprints looks for codes, paths and numbers first,
and for the shortest wording that all known releases share.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass

from installer.adapters import known_failures
from installer.domain.facts import EngineState
from installer.domain.fingerprints import Situation
from installer.domain.problems import (
    AnyProblem,
    DigestGone,
    EngineDown,
    EngineFailed,
    EngineLost,
    EngineNoPermission,
    EngineNotInstalled,
    EngineTimedOut,
    ImageUnknown,
    Unreachable,
)
from installer.domain.redaction import detail_of, redacted
from installer.domain.sources import ImageSource

__all__ = ["Asked", "causes", "detail_of", "problem_of", "redacted", "state_of", "unanswered"]

_DOCKER_HUB = "registry-1.docker.io"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the engine was asked to do when it failed."""

    operation: str
    image: ImageSource | None = None
    gpu: str = ""
    endpoint: str = ""

    @property
    def image_name(self) -> str:
        """Return the image as a person knows it."""
        if self.image is None:
            return ""
        return self.image.by_tag if self.image.tag else self.image.by_digest

    @property
    def registry(self) -> str:
        """Return the registry's host: Docker Hub, unless the image's first part is a host."""
        host, slash, _ = (self.image.repository if self.image else "").partition("/")
        return host if slash and (set(".:") & set(host) or host == "localhost") else _DOCKER_HUB

    @property
    def situation(self) -> Situation:
        """Return what is known beside the engine's words."""
        known: dict[str, object] = {"operation": self.operation, "gpu": self.gpu, "endpoint": self.endpoint}
        if self.image is not None:
            known |= {
                "image": self.image_name,
                "file": self.image_name,
                "platform": self.image.platform,
                "host": self.registry,
                "url": self.registry,
            }
        return Situation(origin="engine", known={name: value for name, value in known.items() if value})


def problem_of(text: str, asked: Asked) -> AnyProblem:
    """Return the Problem behind a message of the daemon or of Compose; what no row knows is EngineFailed."""
    problem = known_failures.table().cause(text, asked.situation)
    if problem is None:
        return EngineFailed(operation=asked.operation, detail=detail_of(text))
    return _about_the_image(problem, text, asked)


def _about_the_image(problem: AnyProblem, text: str, asked: Asked) -> AnyProblem:
    """Add what the words leave open: an image is pulled by its digest, and a connection may be the engine's own."""
    match problem:
        case DigestGone() | ImageUnknown() if asked.image is not None and not _is_local(text):
            if isinstance(problem, DigestGone) or not _is_unknown_name(text):
                image = asked.image
                return DigestGone(image=image.repository, digest=image.index_digest, tag=image.tag)
        case DigestGone():
            return DigestGone(image=problem.image.partition("@")[0], digest=problem.digest)
        case Unreachable() if asked.image is None and "https://" not in text:
            return EngineLost(operation=asked.operation, detail=detail_of(text))
    return problem


def _is_local(text: str) -> bool:
    return "no such image" in text.casefold()


def _is_unknown_name(text: str) -> bool:
    return "name unknown" in text.casefold() or "name_unknown" in text.casefold()


def state_of(error: BaseException) -> EngineState:
    """Return what an error of the transport says about the engine, by its numbers."""
    for cause in causes(error):
        if isinstance(cause, TimeoutError) or type(cause).__name__ in ("ReadTimeout", "ConnectTimeout"):
            return EngineState.TIMED_OUT
        number = getattr(cause, "winerror", None) or getattr(cause, "errno", None)
        if number in (errno.EACCES, errno.EPERM, _WINDOWS_ACCESS_DENIED):
            return EngineState.NO_PERMISSION
        if number in (errno.ENOENT, errno.ECONNREFUSED, errno.ECONNRESET, errno.EPIPE, errno.ENOTSOCK, *_WINDOWS_DOWN):
            return EngineState.DOWN
    return EngineState.FAILED


_WINDOWS_ACCESS_DENIED = 5
_WINDOWS_DOWN = (2, 231, 10054, 10061)  # no such pipe, pipe busy, WSAECONNRESET, WSAECONNREFUSED


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that lie behind it: urllib3 and requests keep the cause as an argument."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, BaseException) and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__, *one.args, getattr(one, "reason", None)]


def unanswered(state: EngineState, endpoint: str, detail: str, seconds: float = 0.0) -> AnyProblem:
    """Return the Problem of an engine that could not be asked."""
    match state:
        case EngineState.NO_PERMISSION:
            return EngineNoPermission(endpoint=endpoint)
        case EngineState.TIMED_OUT:
            return EngineTimedOut(endpoint=endpoint, seconds=seconds)
        case EngineState.DOWN:
            return EngineDown(endpoint=endpoint, detail=detail_of(detail))
        case EngineState.NOT_INSTALLED:
            return EngineNotInstalled(system="")
        case _:
            return EngineFailed(operation="connect", detail=detail_of(detail))

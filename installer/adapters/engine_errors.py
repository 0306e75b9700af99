"""What a container engine, Compose and the NVIDIA hook say, as Problems. Pure: text in, value out.

Daemons are not translated, but they are reworded: rules look for codes, paths and numbers first, and for the shortest
wording that all known releases share.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from installer.domain.facts import EngineState
from installer.domain.problems import (
    AnyProblem,
    CaptivePortal,
    ContainerNotOurs,
    DigestGone,
    DiskFull,
    DriverLibraryMismatch,
    DriverTooOld,
    EngineDown,
    EngineFailed,
    EngineLost,
    EngineNoPermission,
    EngineNotInstalled,
    EngineTimedOut,
    GpuNotInContainer,
    ImageUnknown,
    NoSuchPlatform,
    NvidiaToolkitMissing,
    PortTaken,
    RateLimited,
    RegistryDenied,
    ServerError,
    TlsNotTrusted,
    Truncated,
    Unreachable,
    WrongContent,
)
from installer.domain.sources import ImageSource

_DETAIL_CHARACTERS = 600
_DOCKER_HUB = "registry-1.docker.io"
_NAMES_OF_SECRETS = r"[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)"
_SECRETS = (
    (r"hf_[A-Za-z0-9]{6,}", "hf_…"),
    (r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}", r"\1 …"),
    (rf"(?i)({_NAMES_OF_SECRETS}[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s\"',;]+)", r"\1…"),
    (r"(\w://)[^/@\s\"']+@", r"\1…@"),
    # a registry hands out signed addresses of its store
    (r"(https?://[^\s\"'?]+)\?[^\s\"']+", r"\1?…"),
)


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


def redacted(text: str) -> str:
    """Return a text without anything that looks like a token, a password or a signed address."""
    for pattern, replacement in _SECRETS:
        text = re.sub(pattern, replacement, text)
    return text


def detail_of(text: str) -> str:
    """Return a message on one line, redacted, and no longer than a person reads."""
    return redacted(" ".join(text.split()))[:_DETAIL_CHARACTERS]


def problem_of(text: str, asked: Asked) -> AnyProblem:
    """Return the Problem behind a message of the daemon or of Compose; without a rule it is EngineFailed."""
    for rule in _RULES:
        problem = rule(text, asked)
        if problem is not None:
            return problem
    return EngineFailed(operation=asked.operation, detail=detail_of(text))


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


def _engine_unreachable(text: str, asked: Asked) -> AnyProblem | None:
    at = re.search(r"((?:unix|npipe|tcp)://[^\s\"']+?)[.:]?(?=[\s\"']|$)", text)
    endpoint = at[1] if at else asked.endpoint
    if re.search(r"(?i)permission denied.*docker.*(socket|daemon|api)|dial unix \S+: connect: permission denied", text):
        return EngineNoPermission(endpoint=endpoint)
    if re.search(r"(?i)cannot connect to the docker|could not be found in this WSL|dial unix|pipe/docker", text):
        return EngineDown(endpoint=endpoint, detail=detail_of(text))
    if re.search(r"(?i)error during connect", text):
        return EngineLost(operation=asked.operation, detail=detail_of(text))
    return None


def _disk_full(text: str, asked: Asked) -> AnyProblem | None:
    if not re.search(r"(?i)no space left on device|ENOSPC|not enough space on the disk|disk quota exceeded", text):
        return None
    where = re.search(r"(?:write|mkdir|open|copy\w*|create\w*) ((?:/|[A-Z]:\\)[^:\s]+)", text)
    return DiskFull(where=where[1] if where else asked.endpoint, needed_bytes=None, free_bytes=None, engine=True)


def _tls(text: str, asked: Asked) -> AnyProblem | None:
    if re.search(r"x509: |tls: failed to verify certificate|certificate signed by unknown", text):
        return TlsNotTrusted(host=_host(text, asked), by_engine=True)
    return None


def _rate(text: str, asked: Asked) -> AnyProblem | None:
    if not re.search(r"(?i)toomanyrequests|\b429\b", text):
        return None
    seconds = re.search(r"(?i)retry[- ]after:?\s*(\d+)(?=\s*(?:s|sec\w*)?(?:\W|$))", text)
    return RateLimited(host=_host(text, asked), retry_after_s=int(seconds[1]) if seconds else None)


def _platform(text: str, asked: Asked) -> AnyProblem | None:
    if not re.search(
        r"(?i)no matching manifest|no match for platform|not match the (specified|expected) platform", text
    ):
        return None
    named = re.search(r"\b(linux|windows)/\w+(?:/v\d+)?", text)
    platform = asked.image.platform if asked.image else named[0] if named else ""
    return NoSuchPlatform(image=asked.image_name, platform=platform, platforms=())


def _denied(text: str, asked: Asked) -> AnyProblem | None:
    if re.search(r"(?i)unauthorized|authentication required|access denied|denied: |no basic auth", text):
        return RegistryDenied(image=asked.image_name or _image_in(text))
    return None


def _unknown_image(text: str, asked: Asked) -> AnyProblem | None:
    if not re.search(
        r"(?i)manifest[ _]unknown|manifest (for )?\S+ not found|no such image|name[ _]unknown|\S+: not found$", text
    ):
        return None
    if re.search(r"(?i)no such image", text):  # the engine's own store, not a registry
        return ImageUnknown(image=_image_in(text) or asked.image_name)
    digest = re.search(r"@(sha256:[0-9a-f]{64})", text)
    if asked.image is not None and (digest or not re.search(r"(?i)name[ _]unknown", text)):
        return DigestGone(image=asked.image.repository, digest=asked.image.index_digest, tag=asked.image.tag)
    if digest:
        return DigestGone(image=_image_in(text).partition("@")[0], digest=digest[1])
    return ImageUnknown(image=asked.image_name or _image_in(text))


def _broken_transfer(text: str, asked: Asked) -> AnyProblem | None:
    short = re.search(r"(?i)short read: expected (\d+) bytes but got (\d+)", text)
    if short:
        return Truncated(file=asked.image_name, expected_bytes=int(short[1]), got_bytes=int(short[2]))
    wrong = re.search(
        r"(?i)verification failed for digest (sha256:\w+)|unexpected commit digest (sha256:\w+), expected (sha256:\w+)",
        text,
    )
    if wrong:
        return WrongContent(file=asked.image_name, expected=wrong[1] or wrong[3], got=wrong[2] or "")
    if "invalid character '<'" in text:
        return CaptivePortal(url=_url(text) or asked.registry)
    return None


def _port(text: str, _: Asked) -> AnyProblem | None:
    taken = r"port is already allocated|address already in use|ports are not available|\b10013\b|\b10048\b"
    if not re.search(rf"(?i){taken}", text):
        return None
    forms = (
        r"Bind for \S*?:(\d+) failed",
        r"(?i)exposing port \w+ \S*?:(\d+) ->",
        r"(?i)bind (?:host )?port (?:for )?(?:\[[^\]]*\]|[\d.]+):(\d+)",
        r"listen (?:tcp|udp)\d? \S*?:(\d+): bind",
        r"(?:\d+\.\d+\.\d+\.\d+|\]):(\d+)",
    )
    found = next((hit for form in forms if (hit := re.search(form, text))), None)
    return PortTaken(port=int(found[1])) if found else None


def _name(text: str, _: Asked) -> AnyProblem | None:
    conflict = re.search(r'container name "/?([^"]+)" is already in use', text)
    return ContainerNotOurs(name=conflict[1]) if conflict else None


def _nvidia(text: str, asked: Asked) -> AnyProblem | None:
    cuda = re.search(r"unsatisfied condition: cuda\s*>=\s*(\d+(?:\.\d+)*)", text)
    if cuda:
        return DriverTooOld(driver="", driver_cuda="", image=asked.image_name, image_cuda=cuda[1])
    if re.search(r"(?i)driver/library version mismatch", text):
        return DriverLibraryMismatch(detail=detail_of(text))
    # "AMD CDI spec not found" is what Docker 29 says where NVIDIA's is missing (moby #52048)
    missing = (
        r"could not select device driver|CDI spec not found|unresolvable CDI devices|runtime name: nvidia"
        r"|nvidia-container-(runtime|cli|toolkit)\S*: (executable file )?not found"
    )
    if re.search(rf"(?i){missing}", text):
        return NvidiaToolkitMissing(runtimes=())
    if re.search(r"nvidia-container-cli: |nvidia-container-runtime-hook|nvidia\.com/gpu", text):
        return GpuNotInContainer(gpu=asked.gpu, cuda_error=None, detail=detail_of(text))
    return None


def _server_error(text: str, asked: Asked) -> AnyProblem | None:
    status = re.search(r"(?i)unexpected (?:HTTP )?status\S*(?: from \w+ request to \S+)?:? (5\d\d)\b", text)
    return ServerError(host=_host(text, asked), status=int(status[1])) if status else None


def _network(text: str, asked: Asked) -> AnyProblem | None:
    by_a_registry = asked.image is not None or "https://" in text
    words = (
        r"dial tcp|no such host|i/o timeout|handshake timeout|deadline exceeded|Client\.Timeout|network is unreachable"
        r"|connection refused|connection reset|unexpected EOF|: EOF\b|proxyconnect"
    )
    if not re.search(rf"(?i){words}", text):
        return None
    if not by_a_registry:
        return EngineLost(operation=asked.operation, detail=detail_of(text))
    return Unreachable(host=_host(text, asked), detail=detail_of(text))


def _url(text: str) -> str:
    found = re.search(r"https?://[^\s\"'?]+", text)
    return redacted(found[0]) if found else ""


def _host(text: str, asked: Asked) -> str:
    proxy = re.search(r"proxyconnect tcp: dial tcp:? (?:lookup )?([^\s:]+(?::\d+)?)", text)
    if proxy:
        return proxy[1]
    address = re.search(r"https?://(?:[^/@\s\"']*@)?([^/\s\"':?]+(?::\d+)?)", text)
    return address[1] if address else asked.registry


def _image_in(text: str) -> str:
    named = re.search(r"(?i)(?:manifest for|access denied for|no such image:?|pulling) ([\w./:@-]+)", text)
    return named[1].rstrip(":,") if named else ""


# The order matters: what is particular comes first, and "not found", "denied" and "refused" come late, because many
# messages end in them.
_RULES: tuple[Callable[[str, Asked], AnyProblem | None], ...] = (
    _engine_unreachable,
    _disk_full,
    _nvidia,
    _port,
    _name,
    _tls,
    _rate,
    _platform,
    _broken_transfer,
    _server_error,
    _denied,
    _unknown_image,
    _network,
)

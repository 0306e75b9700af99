"""What a dry run can let fail, once, so that trying again shows the way out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from installer.adapters.dryrun_log import FAULTS
from installer.domain.problems import (
    AccessNotGranted,
    AnyProblem,
    BadChoice,
    CaptivePortal,
    DigestGone,
    DiskFull,
    DriverTooOld,
    EngineFailed,
    EngineLost,
    EngineTimedOut,
    GpuNotInContainer,
    ImageUnknown,
    InstallerError,
    NoSuchPlatform,
    NotWritable,
    NvidiaToolkitMissing,
    RateLimited,
    RegistryDenied,
    RepoUnknown,
    ServerError,
    Stalled,
    TlsNotTrusted,
    TokenNeeded,
    Truncated,
    Unreachable,
    WrongContent,
)

REGISTRY_HOST = "registry-1.docker.io"
HUB_HOST = "huggingface.co"
STALL_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a failure is about. Sizes are bytes; `in_engine` tells of a place on the engine's own disk."""

    name: str = ""
    tag: str = ""
    digest: str = ""
    platform: str = ""
    file: str = ""
    where: str = ""
    needed_bytes: int = 0
    in_engine: bool = False
    gpu: str = ""
    driver: str = ""


Make = Callable[[Subject], AnyProblem]


def _wrong_content(s: Subject) -> AnyProblem:
    return WrongContent(file=s.file, expected=f"sha256:{'a' * 64}", got=f"sha256:{'b' * 64}")


def _truncated(s: Subject) -> AnyProblem:
    return Truncated(file=s.file, got_bytes=s.needed_bytes // 2, expected_bytes=s.needed_bytes)


def _disk_full(s: Subject) -> AnyProblem:
    return DiskFull(where=s.where, needed_bytes=s.needed_bytes, free_bytes=s.needed_bytes // 10, engine=s.in_engine)


def _driver_too_old(s: Subject) -> AnyProblem:
    return DriverTooOld(driver=s.driver, driver_cuda="12.4", image=s.name, image_cuda="13.0")


PROBLEMS: Mapping[str, Mapping[str, Make]] = {
    "resolve": {
        "image_unknown": lambda s: ImageUnknown(image=f"{s.name}:{s.tag}"),
        "no_such_platform": lambda s: NoSuchPlatform(image=s.name, platform=s.platform, platforms=()),
        "rate_limited": lambda _: RateLimited(host=REGISTRY_HOST, retry_after_s=900),
        "server_error": lambda _: ServerError(host=REGISTRY_HOST, status=503),
        "unreachable": lambda _: Unreachable(host=REGISTRY_HOST),
        "tls_not_trusted": lambda _: TlsNotTrusted(host=REGISTRY_HOST),
        "captive_portal": lambda _: CaptivePortal(url=f"https://{REGISTRY_HOST}/v2/"),
        "token_needed": lambda s: TokenNeeded(repo=s.name, had_token=False),
        "access_not_granted": lambda s: AccessNotGranted(repo=s.name, gated=True),
    },
    "probe": {
        "gpu_not_in_container": lambda s: GpuNotInContainer(gpu=s.gpu, cuda_error=100, detail="cuInit"),
        "nvidia_toolkit_missing": lambda _: NvidiaToolkitMissing(runtimes=("runc",)),
        "driver_too_old": _driver_too_old,
        "engine_lost": lambda _: EngineLost(operation="probe"),
        "engine_timed_out": lambda s: EngineTimedOut(endpoint=s.where, seconds=120.0),
    },
    "image": {
        "digest_gone": lambda s: DigestGone(image=s.name, digest=s.digest, tag=s.tag),
        "image_unknown": lambda s: ImageUnknown(image=f"{s.name}:{s.tag}"),
        "registry_denied": lambda s: RegistryDenied(image=s.name),
        "rate_limited": lambda _: RateLimited(host=REGISTRY_HOST),
        "tls_not_trusted": lambda _: TlsNotTrusted(host=REGISTRY_HOST, by_engine=True),
        "unreachable": lambda _: Unreachable(host=REGISTRY_HOST),
        "stalled": lambda s: Stalled(what=s.name, seconds=STALL_SECONDS),
        "disk_full": _disk_full,
        "engine_lost": lambda _: EngineLost(operation="pull"),
        "engine_failed": lambda _: EngineFailed(operation="pull", detail="layer does not exist"),
    },
    "weights": {
        "token_needed": lambda s: TokenNeeded(repo=s.name, had_token=False),
        "access_not_granted": lambda s: AccessNotGranted(repo=s.name, gated=True),
        "repo_unknown": lambda s: RepoUnknown(repo=s.name, revision=s.tag),
        "rate_limited": lambda _: RateLimited(host=HUB_HOST, retry_after_s=300),
        "captive_portal": lambda _: CaptivePortal(url=f"https://{HUB_HOST}/"),
        "unreachable": lambda _: Unreachable(host=HUB_HOST),
        "stalled": lambda s: Stalled(what=s.file, seconds=STALL_SECONDS),
        "wrong_content": _wrong_content,
        "truncated": _truncated,
        "disk_full": _disk_full,
        "not_writable": lambda s: NotWritable(path=s.where),
    },
    "start": {
        "engine_lost": lambda _: EngineLost(operation="up"),
    },
}
"""Failures that are raised by the door itself."""

ASKING_THE_HUB = ("token_needed", "access_not_granted")
ASKING_THE_REGISTRY = tuple(kind for kind in PROBLEMS["resolve"] if kind not in ASKING_THE_HUB)
"""Two are asked when a profile is resolved."""

BEHAVIOURS: Mapping[str, tuple[str, ...]] = {
    "probe": ("too_little_memory", "disk_full"),
    "gate": ("not_enough_free_memory",),
    "start": (*FAULTS, "port_taken"),
    "smoke": ("empty_answer", "not_answering", "server_error", "wrong_context", "wrong_model", "wrong_word"),
}
"""Failures that come from how the simulated card, server or container behaves."""

BEFORE_THE_FIRST_BYTE = frozenset(
    {
        "access_not_granted",
        "captive_portal",
        "digest_gone",
        "image_unknown",
        "not_writable",
        "rate_limited",
        "registry_denied",
        "repo_unknown",
        "tls_not_trusted",
        "token_needed",
    }
)
"""Refusals; whatever else stops a transfer does so on the way."""


def known() -> tuple[str, ...]:
    """Return every failure that can be asked for, as STEP:KIND."""
    both = [f"{step}:{kind}" for table in (PROBLEMS, BEHAVIOURS) for step, kinds in table.items() for kind in kinds]
    return tuple(sorted(both))


class Failure:
    """The failure that was asked for. It happens once, and then everything works.

    Raises InstallerError(BadChoice) for one that is not known.
    """

    def __init__(self, asked: str | None) -> None:
        if asked is not None and asked not in known():
            raise InstallerError(BadChoice(field="dry_run_fail", value=asked, limit=", ".join(known())))
        self._step, _, self._kind = (asked or "").partition(":")
        self._lock = threading.Lock()

    def take(self, step: str, *kinds: str) -> str | None:
        """Return the kind that shall happen now at this step, among these if any are named, and be done with it."""
        with self._lock:
            if self._step != step or (kinds and self._kind not in kinds):
                return None
            self._step = ""
            return self._kind

    def strike(self, step: str, subject: Subject, *kinds: str) -> None:
        """Raise the Problem that shall happen now at this step, among these kinds if any are named."""
        kind = self.take(step, *(kinds or PROBLEMS[step]))
        if kind is not None:
            raise InstallerError(PROBLEMS[step][kind](subject))

"""The doors to the world, as the use cases see them. Adapters implement them; every failure is an InstallerError.

Sizes are bytes, times seconds. `report` takes (done, total) in bytes; `cancel` ends a blocking call at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from installer.domain.facts import Compose, CudaMemory, Engine, Host, Nvidia
from installer.domain.registry import HelperImage, ImageRelease
from installer.domain.sources import FolderWeights, ImageSource, VolumeWeights, WeightsPlace, WeightsSource
from installer.steps.cancel import Cancel

Report = Callable[[int, int], None]

__all__ = ["FolderWeights", "VolumeWeights", "WeightsPlace"]


class _Seen(msgspec.Struct, frozen=True):
    pass


class ProbeReading(_Seen, frozen=True, kw_only=True):
    """What the helper container saw: CUDA's memory (None without a card) and the engine's own disk."""

    cuda: CudaMemory | None
    data_root_free_bytes: int


class ContainerState(_Seen, frozen=True, kw_only=True):
    """A container as the engine describes it.

    `exit_code` is that of its last end, also after it was started anew; `health` is Docker's word, or "" where the
    image has no health check. `error` is the engine's own, where it could not start what the container was to run;
    `missing_health_program` is the health check's, where that is not in the image. `profile`, `registry_revision`,
    `image_digest` and `fingerprint` are read from our labels (`app.slipway.…`).
    """

    id: str
    name: str
    image: str
    status: Literal["created", "running", "paused", "restarting", "removing", "exited", "dead"]
    health: Literal["", "starting", "healthy", "unhealthy"]
    exit_code: int
    out_of_memory: bool
    restart_count: int
    started_at: str
    error: str = ""
    missing_health_program: str = ""
    profile: str = ""
    registry_revision: str = ""
    image_digest: str = ""
    fingerprint: str = ""


class Gpus(Protocol):
    """NVIDIA's driver."""

    def read(self) -> Nvidia:
        """Read the driver and all cards. Never raises for the machine's state: the state is part of the answer."""
        ...


class Machine(Protocol):
    """The computer: processor, memory, folders, ports."""

    def host(self) -> Host:
        """Read system, memory and WSL2."""
        ...

    def folder_free(self, path: str) -> tuple[int | None, bool]:
        """Return the free bytes at a folder (or its nearest parent), and whether it can be written."""
        ...

    def free_ports(self, first: int, count: int) -> tuple[int, ...]:
        """Return the first ports from `first` on that nobody listens on at 127.0.0.1."""
        ...

    def port_owner(self, port: int) -> str | None:
        """Return None for a free port, otherwise who holds it ("" where that cannot be told)."""
        ...


class ContainerEngine(Protocol):
    """Docker Engine over its API."""

    def facts(self) -> Engine:
        """Read the engine. Never raises for the engine's state: the state is part of the answer."""
        ...

    def probe(self, helper: ImageSource, gpu_uuid: str | None, cancel: Cancel) -> ProbeReading:
        """Pull the helper image if it is not there and read CUDA's memory and the engine's disk in a container.

        Raises GpuNotInContainer, NvidiaToolkitMissing, DriverTooOld, and the problems of `pull`.
        """
        ...

    def has_image(self, image: ImageSource) -> bool:
        """Say whether an image with this index digest is there, by RepoDigests."""
        ...

    def pull(self, image: ImageSource, report: Report, cancel: Cancel) -> None:
        """Pull by index digest, report bytes over all layers, and anchor the image with a local tag.

        Raises DiskFull, DigestGone, ImageUnknown, RegistryDenied, RateLimited, Unreachable, TlsNotTrusted,
        NoSuchPlatform, EngineLost, EngineFailed.
        """
        ...

    def tag(self, image: ImageSource) -> None:
        """Give an image that is there its publisher's tag, as a pull by tag would.

        Raises ImageUnknown where it is not there, EngineFailed.
        """
        ...

    def remove_image(self, image: ImageSource) -> int:
        """Remove an image and its anchor; return how many bytes that freed."""
        ...

    def containers(self, project: str) -> tuple[ContainerState, ...]:
        """Return the containers of a Compose project."""
        ...

    def logs(self, container_id: str, tail: int | None = None) -> bytes:
        """Return a container's output so far."""
        ...

    def follow_logs(self, container_id: str, cancel: Cancel) -> Iterator[bytes]:
        """Yield a container's output, line by line, until it ends or the person cancels."""
        ...


class ImageRegistry(Protocol):
    """The OCI registry that an image comes from."""

    def resolve(self, release: ImageRelease | HelperImage, platform: str, digest: str | None = None) -> ImageSource:
        """Ask for digests, layer sizes and the image's configuration; nothing is pulled.

        `digest` asks for a pinned index rather than for the tag; `platform` is like "linux/amd64".
        Raises ImageUnknown, DigestGone, RegistryDenied, RateLimited, ServerError, Unreachable, TlsNotTrusted,
        NoSuchPlatform, CaptivePortal.
        """
        ...


class Hub(Protocol):
    """The hub that the weights come from."""

    def resolve(self, repo: str, revision: str) -> WeightsSource:
        """Ask for the commit behind a revision and its files with sizes and checksums.

        Raises TokenNeeded, AccessNotGranted, RepoUnknown, RateLimited, ServerError, Unreachable, CaptivePortal.
        """
        ...

    def licence(self, repo: str, revision: str) -> str:
        """Return the id of the licence that the model's card names, "" where it names none or more than one.

        Raises the problems of `resolve`.
        """
        ...

    def missing_bytes(self, weights: WeightsSource, place: WeightsPlace) -> int:
        """Return how many bytes still have to be fetched; 0 means that every file is there and was checked."""
        ...

    def fetch(self, weights: WeightsSource, place: WeightsPlace, report: Report, cancel: Cancel) -> None:
        """Fetch what is missing, resuming parts, and check every file before it gets its name.

        Raises the problems of `resolve`, WrongContent, Truncated, Stalled, DiskFull, NotWritable.
        """
        ...

    def speed(self, weights: WeightsSource, seconds: float, cancel: Cancel) -> float | None:
        """Read the largest file for so many seconds at most, keep nothing of it, and return the bytes per second.

        None where too little came to tell, for whatever reason: what is wrong shows when it is fetched.
        """
        ...

    def remove(self, weights: WeightsSource, place: WeightsPlace) -> int:
        """Remove the files of one commit; return how many bytes that freed."""
        ...


class Stack(Protocol):
    """Docker Compose over one file."""

    def compose(self) -> Compose:
        """Read Compose's version. Never raises for its state: the state is part of the answer."""
        ...

    def check(self, file: str) -> None:
        """Let Compose read the file (`config --quiet`). Raises MalformedFile, ComposeMissing."""
        ...

    def up(self, file: str, cancel: Cancel) -> None:
        """Create and start the containers of the file.

        Raises ImageUnknown where the image was not pulled, PortTaken, ContainerNameTaken, NvidiaToolkitMissing,
        EngineDown, EngineLost, EngineFailed.
        """
        ...

    def stop(self, file: str) -> None:
        """Stop the containers and leave them."""
        ...

    def down(self, file: str, volumes: bool = False) -> None:
        """Remove the containers and the network of the file, and its volumes if asked."""
        ...


class ServerAnswer(_Seen, frozen=True, kw_only=True):
    """An HTTP answer of the server that was installed; `status` 0 means that no answer came in time."""

    status: int
    body: bytes
    seconds: float


class Usage(_Seen, frozen=True, kw_only=True):
    """What the server counted for one answer, in tokens; those that the model thought with are generated, too."""

    prompt_tokens: int
    generated_tokens: int


class Delta(_Seen, frozen=True, kw_only=True):
    """One piece of an answer that streams. `finish` comes once and says why it ended: stop, length and others."""

    content: str = ""
    reasoning: str = ""
    finish: str = ""
    usage: Usage | None = None


class Server(Protocol):
    """A server with OpenAI's API: the one that was installed, or one that a person names.

    `base` is an address without "/v1" at its end, such as "http://127.0.0.1:8000". Towards this computer itself no
    proxy is asked.
    """

    def get(
        self, base: str, path: str, timeout_s: float, key: str | None = None, cancel: Cancel | None = None
    ) -> ServerAnswer:
        """Ask; no answer is status 0, never an exception. `cancel` ends the wait at once with Cancelled."""
        ...

    def post(
        self,
        base: str,
        path: str,
        body: dict[str, object],
        timeout_s: float,
        key: str | None = None,
        cancel: Cancel | None = None,
    ) -> ServerAnswer:
        """Send JSON; no answer is status 0, never an exception. `cancel` ends the wait at once with Cancelled."""
        ...

    def stream(
        self, base: str, path: str, body: dict[str, object], quiet_s: float, key: str | None, cancel: Cancel
    ) -> Generator[Delta]:
        """Send JSON and yield the answer piece by piece as it comes. `cancel` ends it at once with Cancelled.

        Closing it ends the request, and with it the server's work.
        Raises NotAnswering where nothing comes for `quiet_s` seconds, AnswerRefused, AnswerBroken.
        """
        ...


class Autostart(Protocol):
    """The entry by which this user's session starts a stack."""

    def enable(self, stack: str) -> str:
        """Write the entry; return its path. Raises NotWritable."""
        ...

    def disable(self, stack: str) -> None:
        """Remove the entry if it is there."""
        ...


class Awake(Protocol):
    """The computer's standby."""

    def held(self) -> AbstractContextManager[bool]:
        """Keep the computer awake inside, for the thread that enters; say whether it agreed. Never raises."""
        ...


class Picture(_Seen, frozen=True, kw_only=True):
    """A picture that can be sent: its bytes as PNG and its size in pixels, and the size that it had if larger."""

    png: bytes
    width: int
    height: int
    original: tuple[int, int] | None = None


class Pictures(Protocol):
    """Picture files that a person names."""

    def read(self, path: str, most_pixels: int) -> Picture:
        """Decode a picture to its end, upright and without what else the file tells, not larger than `most_pixels`.

        Raises FileUnreadable, PictureUnreadable.
        """
        ...


class Clip(_Seen, frozen=True, kw_only=True):
    """A video file that can be sent: its MIME type, and its length where the file tells it."""

    path: str
    mime: str
    size_bytes: int
    seconds: float | None = None


class Media(Protocol):
    """Videos that a person names, and the way on which a server in a container gets one."""

    def read(self, path: str) -> Clip:
        """Look at a file. Raises FileUnreadable, VideoUnreadable."""
        ...

    def fetched(self, url: str, cancel: Cancel) -> AbstractContextManager[Clip]:
        """Fetch a video from a public address; it is gone on leaving.

        Raises BadChoice for what is no http address, UrlNotPublic, UrlNotFound, UrlTimedOut, UrlHostUnknown,
        UrlTooLarge, UrlNotVideo, and the problems of the network.
        """
        ...

    def offered(self, clip: Clip, container_id: str, cancel: Cancel) -> AbstractContextManager[str]:
        """Offer a video under an address that this container reaches, which is tried first, until leaving.

        Raises HostNotReached.
        """
        ...

    def inline(self, clip: Clip) -> str:
        """Return a video as a data URI. Raises FileUnreadable, VideoUnreadable where it is too large for that."""
        ...


class Clock(Protocol):
    """Time."""

    def now(self) -> str:
        """Return the time as ISO 8601 in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never jump."""
        ...

    def wait(self, seconds: float, cancel: Cancel) -> None:
        """Wait, or raise Cancelled at once."""
        ...


@dataclass(frozen=True, kw_only=True)
class Ports:
    """All doors together. A dry run replaces every one of them; nothing else knows of it."""

    gpus: Gpus
    machine: Machine
    engine: ContainerEngine
    images: ImageRegistry
    hub: Hub
    stack: Stack
    server: Server
    clock: Clock
    autostart: Autostart
    awake: Awake
    pictures: Pictures
    media: Media

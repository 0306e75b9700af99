"""Where weights are written: a folder of the host, or a named volume of the engine. Both work through one `Store`."""

from __future__ import annotations

import contextlib
import errno
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any, Self

import docker.errors
import msgspec
import requests
from docker import DockerClient
from docker.types import Mount

from installer.adapters.store import FRAME, Store, UnsafeName, frame, lengths
from installer.domain.problems import (
    AnyProblem,
    DiskFull,
    EngineFailed,
    EngineLost,
    InstallerError,
    MalformedFile,
    NotWritable,
)
from installer.domain.sources import VolumeWeights
from installer.steps.cancel import Cancel

MOUNTED_AT = "/models"
LABEL = "slipway.helper"

_HASH_STEP = 16 << 20
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_STDOUT = 1


class Entry(msgspec.Struct, frozen=True):
    """A file as it lies there: size in bytes, time of change in nanoseconds."""

    size: int
    changed_ns: int


class OpenFile:
    """A part that grows, or a whole file that is checked. `offset` counts the bytes that are in its checksum."""

    def __init__(self, sink: Sink, handle: int, length: int) -> None:
        self.length = length
        self.offset = 0
        self._sink = sink
        self._handle = handle

    def hash_all(self, check: Callable[[], None]) -> None:
        """Hash what lies there already; `check` is called often and may raise."""
        while self.offset < self.length:
            check()
            self.offset = int(self._sink.call("advance", self._handle, min(_HASH_STEP, self.length - self.offset)))

    def append(self, data: bytes) -> None:
        """Write at the end."""
        self.offset = int(self._sink.call("append", self._handle, data=data))

    def restart(self) -> None:
        """Throw away what is there."""
        self._sink.call("restart", self._handle)
        self.offset = self.length = 0

    def digest(self) -> str:
        """Return the checksum of the bytes up to the offset, in hexadecimal."""
        return str(self._sink.call("digest", self._handle))

    def publish(self) -> int:
        """Bring the part to the disk and give it its name; return its time of change in nanoseconds."""
        return int(self._sink.call("publish", self._handle))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(InstallerError):  # the engine is gone, and whatever led here says so better
            self._sink.call("close", self._handle)


class Sink(ABC):
    """A folder that weights go into, with the operations of a `Store`. `where` is how a person knows it.

    Every operation may raise DiskFull or NotWritable, in an engine's volume also EngineLost and EngineFailed.
    """

    def __init__(self, where: str, *, in_engine: bool = False) -> None:
        self.where = where
        self.in_engine = in_engine

    @abstractmethod
    def _run(self, operation: str, arguments: list[Any], data: bytes | None) -> Any:
        """Run one operation of the store. Raises OSError, UnsafeName."""

    def call(self, operation: str, *arguments: object, data: bytes | None = None) -> Any:
        """Run one operation of the store; what it raises becomes a Problem."""
        try:
            return self._run(operation, list(arguments), data)
        except OSError as error:
            raise InstallerError(self._problem(error)) from error
        except UnsafeName as error:
            raise InstallerError(
                MalformedFile(path=self.where, where=ascii(str(error)), reason="unsafe name")
            ) from error

    def listing(self) -> dict[str, Entry]:
        """Return every file by its relative name with forward slashes."""
        return {name: Entry(*values) for name, values in self.call("listing").items()}

    def free_bytes(self) -> int:
        """Return what the disk has left."""
        return int(self.call("free"))

    def read(self, name: str) -> bytes:
        """Return a small file, empty where there is none."""
        return bytes(self.call("read", name))

    def write(self, name: str, data: bytes) -> None:
        """Replace a small file as a whole."""
        self.call("write", name, data=data)

    def remove(self, name: str) -> int:
        """Remove a file and the folders that this leaves empty; return the bytes that it had."""
        return int(self.call("remove", name))

    def part(self, name: str, algorithm: str, size: int) -> OpenFile:
        """Open the part of a file, made if it is not there."""
        return OpenFile(self, *self.call("open_part", name, algorithm, size))

    def whole(self, name: str, algorithm: str, size: int) -> OpenFile:
        """Open a finished file for checking."""
        return OpenFile(self, *self.call("open_whole", name, algorithm, size))

    def _problem(self, error: OSError) -> AnyProblem:
        if error.errno in _NO_ROOM:
            return DiskFull(where=self.where, needed_bytes=None, free_bytes=None, engine=self.in_engine)
        name = errno.errorcode.get(error.errno or 0, type(error).__name__)
        return NotWritable(path=str(error.filename or self.where), reason=name)


class FolderSink(Sink):
    """A folder of this computer: `root/below`."""

    def __init__(self, root: str, below: str) -> None:
        super().__init__(root)
        self._store = Store(root, below)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close_all()

    def _run(self, operation: str, arguments: list[Any], data: bytes | None) -> Any:
        return self._store.call(operation, arguments, data)


class VolumeSink(Sink):
    """A folder in a named volume, reached through a helper container that has no network.

    The container ends by itself when this side is gone, since its stdin is closed with the connection.
    """

    def __init__(self, client: DockerClient, image: str, volume: str, below: str) -> None:
        super().__init__(volume, in_engine=True)
        self._lock = threading.Lock()
        self._received = bytearray()
        self._complaint = bytearray()
        container = client.api.create_container(
            image,
            entrypoint=["python3"],
            command=["-c", agent(), MOUNTED_AT, below],
            stdin_open=True,
            labels={LABEL: "weights"},
            host_config=client.api.create_host_config(
                mounts=[Mount(MOUNTED_AT, volume, type="volume")], network_mode="none", auto_remove=True
            ),
        )
        stream = client.api.attach_socket(container["Id"], {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        self._stream = stream  # keeps docker's answer, and with it the connection, alive
        self._socket: Any = getattr(stream, "_sock", stream)
        self._socket.settimeout(None)  # bringing gigabytes to a disk takes as long as it takes
        try:
            client.api.start(container["Id"])
        except BaseException:
            self.close()
            client.api.remove_container(container["Id"], force=True)
            raise

    def hang_up(self) -> None:
        """End a call that blocks in another thread; the sink is of no use afterwards."""
        with contextlib.suppress(OSError, AttributeError):
            self._socket.shutdown(2)

    def close(self) -> None:
        """Let the container end."""
        self.hang_up()
        self._stream.close()
        self._socket.close()

    def _run(self, operation: str, arguments: list[Any], data: bytes | None) -> Any:
        with self._lock:
            try:
                self._socket.sendall(frame([operation, arguments], data))
                head_length, data_length = lengths(self._take(FRAME.size))
                head = json.loads(self._take(head_length))
                answer = self._take(data_length or 0)
            except (OSError, EOFError) as error:
                raise InstallerError(EngineLost(operation=f"volume {self.where}", detail=self._last_words())) from error
        if "errno" in head:
            raise OSError(head["errno"], "", head["path"] or None)
        if head.get("refused") == UnsafeName.__name__:
            raise UnsafeName(head["name"])
        if "refused" in head:
            raise ValueError(head["name"])
        return head["value"] if data_length is None else answer

    def _take(self, count: int) -> bytes:
        """Return so many bytes of the container's output; the engine wraps each piece with its stream and length."""
        while len(self._received) < count:
            header = self._exactly(8)
            piece = self._exactly(int.from_bytes(header[4:], "big"))
            (self._received if header[0] == _STDOUT else self._complaint).extend(piece)
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = self._socket.recv(count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def _last_words(self) -> str:
        return self._complaint.decode(errors="replace").strip().rpartition("\n")[2]


def agent() -> str:
    """Return the program that the helper container runs: the text of `installer.adapters.store`."""
    return resources.files("installer.adapters").joinpath("store.py").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Volumes:
    """Opens sinks in the engine's volumes. `client` is asked when it is needed, not before."""

    client: Callable[[], DockerClient]

    def exists(self, volume: str) -> bool:
        """Say whether there is such a volume; asking makes none."""
        with _engine_errors(f"volume {volume}"):
            try:
                self.client().volumes.get(volume)
            except docker.errors.NotFound:
                return False
            return True

    @contextlib.contextmanager
    def open(self, place: VolumeWeights, below: str, cancel: Cancel) -> Iterator[Sink]:
        """Hold a sink for a folder in a volume, which is made if it is not there. Cancel ends a blocking call."""
        with _engine_errors(f"volume {place.volume}"):
            sink = VolumeSink(self.client(), place.helper, place.volume, below)
        try:
            with cancel.waking(sink.hang_up):
                yield sink
        finally:
            sink.close()


@contextlib.contextmanager
def _engine_errors(operation: str) -> Iterator[None]:
    try:
        yield
    except docker.errors.APIError as error:
        raise InstallerError(EngineFailed(operation=operation, detail=str(error.explanation or error))) from error
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        raise InstallerError(EngineLost(operation=operation, detail=type(error).__name__)) from error

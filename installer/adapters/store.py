"""Files below one folder: parts that grow, are hashed on the way, and get their name only when they are whole.

The standard library alone, and one file: where a volume of the engine must be filled, this very text runs in the
helper container as `python3 -c TEXT ROOT BELOW` and is driven over its stdin and stdout (`serve`). Nothing here knows
of a network or a token.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

PART = ".part"
FRAME = struct.Struct(">II")
OPERATIONS = frozenset(
    (
        "listing", "free", "read", "write", "remove",
        "open_part", "open_whole", "advance", "append", "restart", "digest", "publish", "close",
    )
)  # fmt: skip
_STEP = 1 << 20


class UnsafeName(ValueError):
    """A file name that would leave the folder, or that some system cannot hold."""


def safe_parts(name: str) -> list[str]:
    """Split a relative name with forward slashes into its parts.

    Raises UnsafeName for anything that is absolute, climbs, names a drive or a stream, or holds control characters.
    """
    parts = name.split("/")
    forbidden = any(char in '\\:*?"<>|' or ord(char) < 32 or ord(char) == 127 for char in name)
    if forbidden or any(part in ("", ".", "..") for part in parts):
        raise UnsafeName(name)
    return parts


class OpenFile:
    """A file that is being hashed and, if it is a part, written. `offset` counts the bytes that are in the hash."""

    def __init__(self, path: Path, final: Path, algorithm: str, size: int) -> None:
        self.lock = threading.Lock()
        self.offset = 0
        self._path = path
        self._final = final
        self._algorithm = algorithm
        self._size = size
        self._hash = _hasher(algorithm, size)
        self._file = path.open("rb" if path == final else "r+b", buffering=0)

    @property
    def length(self) -> int:
        """Return how many bytes lie on the disk."""
        return os.fstat(self._file.fileno()).st_size

    def advance(self, limit: int) -> int:
        """Hash up to `limit` more of the bytes that lie there; return the offset that was reached."""
        end = self.offset + limit
        while self.offset < end and (block := self._file.read(min(_STEP, end - self.offset))):
            self._hash.update(block)
            self.offset += len(block)
        return self.offset

    def append(self, data: bytes) -> int:
        """Write at the offset and hash; return the new offset, which also counts a write that failed half-way."""
        rest = memoryview(data)
        while rest:
            written = self._file.write(rest)
            self._hash.update(rest[:written])
            self.offset += written
            rest = rest[written:]
        return self.offset

    def restart(self) -> None:
        """Throw away what is there."""
        self._file.seek(0)
        self._file.truncate(0)
        self._hash = _hasher(self._algorithm, self._size)
        self.offset = 0

    def digest(self) -> str:
        """Return the checksum of the bytes up to the offset."""
        return str(self._hash.hexdigest())

    def publish(self) -> int:
        """Bring the part to the disk and give it its name; return its time of change in nanoseconds."""
        os.fsync(self._file.fileno())
        self._file.close()
        self._path.replace(self._final)
        _sync_folder(self._final.parent)
        return self._final.stat().st_mtime_ns

    def close(self) -> None:
        """Close the file and leave it as it is."""
        self._file.close()


class Store:
    """The operations on the folder `below` a root. Each takes and gives plain values, so that a wire can carry it."""

    def __init__(self, root: str, below: str) -> None:
        self._root = Path(root)
        self._folder = self._root.joinpath(*safe_parts(below))
        self._open: dict[int, OpenFile] = {}
        self._count = 0
        self._lock = threading.Lock()

    def listing(self) -> dict[str, list[int]]:
        """Return size and time of change (ns) of every file, by relative name with forward slashes."""
        found = {}
        for path in self._folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file():
                    status = path.stat()
                    found[path.relative_to(self._folder).as_posix()] = [status.st_size, status.st_mtime_ns]
        return found

    def free(self) -> int:
        """Return the free bytes of the disk that the folder is or will be on."""
        folder = self._folder.absolute()
        while not folder.exists():
            folder = folder.parent
        return shutil.disk_usage(folder).free

    def read(self, name: str) -> bytes:
        """Return a small file, or nothing where there is none."""
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return b""

    def write(self, name: str, data: bytes) -> None:
        """Replace a small file as a whole."""
        path = self._path(name)
        part = path.with_name(path.name + PART)
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)

    def remove(self, name: str) -> int:
        """Remove a file and the folders that this leaves empty; return the bytes that it had."""
        path = self._path(name)
        try:
            size = path.stat().st_size
            path.unlink()
        except FileNotFoundError:
            return 0
        with contextlib.suppress(OSError):  # the first folder that still holds something ends it
            for folder in path.parents:
                if folder == self._root:
                    break
                folder.rmdir()
        return size

    def open_part(self, name: str, algorithm: str, size: int) -> list[int]:
        """Open the part of a file, made if it is not there; return its handle and how many bytes it has."""
        final = self._path(name)
        part = final.with_name(final.name + PART)
        part.parent.mkdir(parents=True, exist_ok=True)
        part.touch()
        return self._keep(OpenFile(part, final, algorithm, size))

    def open_whole(self, name: str, algorithm: str, size: int) -> list[int]:
        """Open a finished file for hashing; return its handle and how many bytes it has."""
        path = self._path(name)
        return self._keep(OpenFile(path, path, algorithm, size))

    def advance(self, handle: int, limit: int) -> int:
        """Hash up to `limit` more of the bytes that are there; return the offset."""
        with self._held(handle) as file:
            return file.advance(limit)

    def append(self, handle: int, data: bytes) -> int:
        """Write and hash; return the offset."""
        with self._held(handle) as file:
            return file.append(data)

    def restart(self, handle: int) -> None:
        """Empty a part."""
        with self._held(handle) as file:
            file.restart()

    def digest(self, handle: int) -> str:
        """Return the checksum so far."""
        with self._held(handle) as file:
            return file.digest()

    def publish(self, handle: int) -> int:
        """Give a part its name; return its time of change in nanoseconds."""
        with self._held(handle) as file:
            return file.publish()

    def close(self, handle: int) -> None:
        """Close a file and leave it as it is. Waits for a write that is under way."""
        file = self._open.pop(handle, None)
        if file is not None:
            with file.lock:
                file.close()

    def close_all(self) -> None:
        """Close every file: whoever still holds a handle can write no more."""
        for handle in list(self._open):
            self.close(handle)

    def call(self, operation: str, arguments: list[Any], data: bytes | None = None) -> Any:
        """Run an operation by its name; `data` is its last argument where bytes are given."""
        if operation not in OPERATIONS:
            raise ValueError(operation)
        return getattr(self, operation)(*arguments, *(() if data is None else (data,)))

    def _path(self, name: str) -> Path:
        return self._folder.joinpath(*safe_parts(name))

    def _keep(self, file: OpenFile) -> list[int]:
        with self._lock:
            self._count += 1
            self._open[self._count] = file
            return [self._count, file.length]

    @contextlib.contextmanager
    def _held(self, handle: int) -> Iterator[OpenFile]:
        file = self._open.get(handle)
        if file is None:
            raise ValueError("closed")
        with file.lock:
            if handle not in self._open:
                raise ValueError("closed")
            yield file


def _hasher(algorithm: str, size: int) -> Any:
    """Start a checksum. Git hashes a blob's kind and size before its content (git-hash-object)."""
    if algorithm == "git":
        return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    return hashlib.new(algorithm)


def _sync_folder(folder: Path) -> None:
    """Make a rename last; Windows cannot open a folder and does not need it."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def frame(head: Any, data: bytes | None = None) -> bytes:
    """Pack one message: both lengths, a JSON head, and bytes; no bytes at all is the largest length."""
    text = json.dumps(head).encode()
    length = 0xFFFFFFFF if data is None else len(data)
    return FRAME.pack(len(text), length) + text + (data or b"")


def lengths(header: bytes) -> tuple[int, int | None]:
    """Unpack the lengths of a message's head and bytes; None is no bytes at all."""
    head, data = FRAME.unpack(header)
    return head, None if data == 0xFFFFFFFF else data


def serve(requests: BinaryIO, answers: BinaryIO, store: Store) -> None:
    """Answer messages until the other side is gone."""
    while len(header := requests.read(FRAME.size)) == FRAME.size:
        head_length, data_length = lengths(header)
        operation, arguments = json.loads(requests.read(head_length))
        data = None if data_length is None else requests.read(data_length)
        try:
            value = store.call(operation, arguments, data)
            answer = frame({}, value) if isinstance(value, bytes) else frame({"value": value})
        except OSError as error:
            answer = frame({"errno": error.errno, "path": str(error.filename or "")})
        except ValueError as error:
            answer = frame({"refused": type(error).__name__, "name": str(error)})
        answers.write(answer)
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer, Store(sys.argv[1], sys.argv[2]))

"""What lies in a sink already: whole files whose checksum was right, and parts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from installer.adapters.sinks import Entry, OpenFile, Sink
from installer.adapters.store import PART
from installer.domain.sources import WeightFile, WeightsSource
from installer.domain.strict_json import NOT_OF_THAT_FORM

MEMORY = ".slipway-verified.json"


@dataclass(frozen=True)
class Checksum:
    """How a file is checked: by sha256, by git's blob id, or (value "") by nothing but its size."""

    algorithm: str
    value: str

    @classmethod
    def of(cls, file: WeightFile) -> Checksum:
        """Return the strongest that the hub announced."""
        if file.sha256 is None and file.git_blob_id:
            return cls("git", file.git_blob_id)
        return cls("sha256", file.sha256 or "")

    @property
    def text(self) -> str:
        """Return it as it is shown and remembered."""
        return f"{self.algorithm}:{self.value}"

    def fits(self, digest: str) -> bool:
        """Say whether a file with this digest is the one that was announced."""
        return self.value in ("", digest)


def part_of(sink: Sink, file: WeightFile) -> OpenFile:
    """Open the part of a file."""
    return sink.part(file.path, Checksum.of(file).algorithm, file.size_bytes)


class _Checked(msgspec.Struct, frozen=True):
    """What a file was like when its checksum was right."""

    size: int
    changed_ns: int
    checksum: str


class Memory:
    """The checksums that were right, kept beside the files: a second run need not read tens of gigabytes again."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._lock = threading.Lock()
        try:
            self._known = msgspec.json.decode(sink.read(MEMORY) or b"{}", type=dict[str, _Checked])
        except NOT_OF_THAT_FORM:
            self._known = {}

    def holds(self, file: WeightFile, entry: Entry) -> bool:
        """Say whether this very file was checked, and was not touched since."""
        return self._known.get(file.path) == _Checked(entry.size, entry.changed_ns, Checksum.of(file).text)

    def note(self, file: WeightFile, changed_ns: int) -> None:
        """Note that a file was checked."""
        with self._lock:
            self._known[file.path] = _Checked(file.size_bytes, changed_ns, Checksum.of(file).text)

    def save(self) -> None:
        """Write the notes down."""
        with self._lock:
            self._sink.write(MEMORY, msgspec.json.format(msgspec.json.encode(self._known)))


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The files that are whole, the bytes of parts, and what of the whole ones was checked only now."""

    weights: WeightsSource
    whole: frozenset[str]
    parts: dict[str, int]
    bad: tuple[str, ...]
    checked_now: bool

    @property
    def absent(self) -> tuple[WeightFile, ...]:
        """Return the files that have still to be fetched."""
        return tuple(file for file in self.weights.files if file.path not in self.whole)

    @property
    def missing_bytes(self) -> int:
        """Return how many bytes have still to be fetched."""
        return sum(file.size_bytes - self.parts.get(file.path, 0) for file in self.absent)


def survey(weights: WeightsSource, sink: Sink, memory: Memory, check: Callable[[], None]) -> Survey:
    """Look what is there. A file of the right size that nobody remembers is read once; `check` may raise meanwhile."""
    listed = sink.listing()
    whole, bad, checked_now = set(), [], False
    for file in weights.files:
        entry = listed.get(file.path)
        if entry is None or entry.size != file.size_bytes:
            continue
        if not memory.holds(file, entry):
            if not _is_right(file, sink, check):
                bad.append(file.path)
                continue
            memory.note(file, entry.changed_ns)
            checked_now = True
        whole.add(file.path)
    return Survey(
        weights=weights,
        whole=frozenset(whole),
        parts=_parts(weights.files, listed),
        bad=tuple(bad),
        checked_now=checked_now,
    )


def _is_right(file: WeightFile, sink: Sink, check: Callable[[], None]) -> bool:
    checksum = Checksum.of(file)
    with sink.whole(file.path, checksum.algorithm, file.size_bytes) as opened:
        opened.hash_all(check)
        return checksum.fits(opened.digest())


def _parts(files: Iterable[WeightFile], listed: dict[str, Entry]) -> dict[str, int]:
    """Return the bytes of every part that can be resumed; one that is too long will be thrown away."""
    sizes = {file.path: listed[file.path + PART].size for file in files if file.path + PART in listed}
    return {file.path: sizes[file.path] for file in files if sizes.get(file.path, 0) in range(1, file.size_bytes + 1)}

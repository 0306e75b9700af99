"""Progress of an image pull: the engine's events and the registry's layer sizes in, bytes done and in all out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from installer.domain.figures import natural
from installer.domain.sources import Layer

# moby's own constants (distribution/pull_v2.go, distribution/xfer): never translated. From each of them on, all bytes
# of the layer are here; what follows is checking and unpacking, which moves nothing over the line.
_ALL_HERE = frozenset({"Already exists", "Verifying Checksum", "Download complete", "Extracting", "Pull complete"})
_SHORT_ID = 12


class PullProgress(msgspec.Struct, frozen=True):
    """How far a pull is, over the layers that the registry announced.

    `sizes` and `have` are bytes by the short id that the engine's events carry. Where the registry announced nothing
    (an offline plan), the sizes are those that the engine names on the way, so that the total may grow.
    """

    sizes: Mapping[str, int]
    have: Mapping[str, int]
    announced: bool

    @classmethod
    def of(cls, layers: Iterable[Layer]) -> PullProgress:
        """Return the progress before the first event."""
        sizes = {short_id(layer.digest): layer.size_bytes for layer in layers}
        return cls(sizes=sizes, have={}, announced=bool(sizes))

    @property
    def done(self) -> int:
        """Return the bytes that are here: never fewer than after any earlier event."""
        return sum(self.have.values())

    @property
    def total(self) -> int:
        """Return the bytes of all layers."""
        return sum(self.sizes.values())

    def after(self, event: Mapping[str, object]) -> PullProgress:
        """Return the progress after one event of `POST /images/create`.

        A layer that starts anew keeps what it had: a bar that runs backwards tells nobody anything.
        """
        layer, status, (current, size) = event.get("id"), event.get("status"), _figures(event)
        if not isinstance(layer, str) or not isinstance(status, str):
            return self
        sizes = self.sizes
        if not self.announced and status == "Downloading" and size > sizes.get(layer, 0):
            sizes = {**sizes, layer: size}
        if layer not in sizes:
            return self
        if status in _ALL_HERE:
            current = sizes[layer]
        elif status != "Downloading":
            return self
        here = max(self.have.get(layer, 0), min(current, sizes[layer]))
        return msgspec.structs.replace(self, sizes=sizes, have={**self.have, layer: here})

    def finished(self) -> PullProgress:
        """Return the progress of a pull that the engine called complete: layers that it shared had no event."""
        return msgspec.structs.replace(self, have=dict(self.sizes))


def short_id(digest: str) -> str:
    """Return the id by which the engine's events call a layer: the first twelve digits of its digest."""
    return digest.rpartition(":")[2][:_SHORT_ID]


def _figures(event: Mapping[str, object]) -> tuple[int, int]:
    detail = event.get("progressDetail")
    if not isinstance(detail, Mapping):
        return 0, 0
    return _natural(detail.get("current")), _natural(detail.get("total"))


def _natural(value: object) -> int:
    return natural(value) or 0

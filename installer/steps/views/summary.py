"""The page *Summary* as values: what will be downloaded and where to, how long that takes, what is written."""

from __future__ import annotations

import difflib
from typing import Literal

import msgspec

from installer.domain import compose
from installer.domain.facts import Facts
from installer.domain.plan import UNPACKED_OVER_COMPRESSED, Plan
from installer.domain.registry import Licence
from installer.domain.sources import VolumeWeights
from installer.steps.known import Flow


class DiffLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the file that will be written, or one that goes from the file that is there."""

    change: Literal["same", "new", "gone"]
    text: str


class DiskUse(msgspec.Struct, frozen=True, kw_only=True):
    """A disk that gets fuller. `engine` says that it is Docker's own; `free_bytes` is None where that is not known."""

    where: str
    engine: bool
    needed_bytes: int
    free_bytes: int | None

    @property
    def after_bytes(self) -> int | None:
        """Return what will be free afterwards."""
        return None if self.free_bytes is None else self.free_bytes - self.needed_bytes


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that will be done. Bytes are what still has to be fetched; what is here already does not count.

    `folder` is where the weights go, None where it is Docker's own disk. `lines` are the compose file, with what
    changes in the one on disk if there is one; `on_disk` says whether there is.
    """

    plan: Plan
    model: str
    publisher: str
    quantization: str
    image_bytes: int
    weights_bytes: int
    folder: str | None
    disks: tuple[DiskUse, ...]
    licence: Licence
    needs_consent: bool
    compose_name: str
    on_disk: bool
    lines: tuple[DiffLine, ...]

    @property
    def download_bytes(self) -> int:
        """Return what goes over the line."""
        return self.image_bytes + self.weights_bytes

    @property
    def changes(self) -> bool:
        """Say whether anything comes or goes in the file that is there."""
        return any(line.change != "same" for line in self.lines)


def summary(flow: Flow, *, on_disk: bytes | None = None) -> Summary | None:
    """Return what the plan will do, None as long as there is none.

    `on_disk` is the compose file that is there already.
    """
    plan, facts = flow.plan, flow.facts
    if plan is None or facts is None:
        return None
    profile = flow.registry.profile(plan.profile)
    model, licence = flow.registry.model_of(profile), flow.registry.licence_of(profile)
    image = 0 if flow.present.image else plan.image.size_bytes
    weights = max(0, plan.weights.size_bytes - flow.present.weights_bytes)
    rendered = compose.render(plan)
    return Summary(
        plan=plan,
        model=model.name,
        publisher=model.publisher,
        quantization=model.quantization,
        image_bytes=image,
        weights_bytes=weights,
        folder=None if isinstance(plan.place, VolumeWeights) else plan.place.folder,
        disks=_disks(facts, plan, image, weights),
        licence=licence,
        needs_consent=not licence.free and licence.id not in flow.choices.accept_licenses,
        compose_name=rendered.name,
        on_disk=on_disk is not None,
        lines=_lines(rendered.text if on_disk is None else on_disk.decode(errors="replace"), rendered.text),
    )


def _lines(old: str, new: str) -> tuple[DiffLine, ...]:
    """Return the new file as a whole, with what goes from the old one where it stood."""
    before, after = old.splitlines(), new.splitlines()
    lines: list[DiffLine] = []
    for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            lines += [DiffLine(change="same", text=line) for line in after[j1:j2]]
        else:
            lines += [DiffLine(change="gone", text=line) for line in before[i1:i2]]
            lines += [DiffLine(change="new", text=line) for line in after[j1:j2]]
    return tuple(lines)


def _disks(facts: Facts, plan: Plan, image: int, weights: int) -> tuple[DiskUse, ...]:
    """Say where it goes: an image is unpacked in the engine's store, and it is the volume's disk too."""
    unpacked = UNPACKED_OVER_COMPRESSED * image
    in_volume = isinstance(plan.place, VolumeWeights)
    store = DiskUse(
        where=facts.engine.data_root,
        engine=True,
        needed_bytes=unpacked + (weights if in_volume else 0),
        free_bytes=facts.engine.data_root_free_bytes,
    )
    if in_volume:
        return (store,)
    folder = facts.weights_folder
    return (store, DiskUse(where=folder.path, engine=False, needed_bytes=weights, free_bytes=folder.free_bytes))

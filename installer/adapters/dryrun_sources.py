"""Registry and hub of a dry run: the same name has always the same digests, and sizes are the registry file's own."""

from __future__ import annotations

import hashlib
import re

from installer.adapters.dryrun_failures import (
    ASKING_THE_HUB,
    ASKING_THE_REGISTRY,
    BEFORE_THE_FIRST_BYTE,
    Subject,
)
from installer.adapters.dryrun_world import LINE_BYTES_PER_SECOND, World, key_of, transfer
from installer.domain.problems import ImageUnknown, InstallerError, RepoUnknown
from installer.domain.registry import HelperImage, ImageRelease, Model
from installer.domain.sources import FolderWeights, ImageSource, Layer, WeightFile, WeightsPlace, WeightsSource
from installer.steps.cancel import Cancel
from installer.steps.ports import Report

HELPER_BYTES = 48_000_000
SHARD_BYTES = 5_000_000_000
LAYER_SHARES = (30, 2, 1, 14, 25, 9, 8, 6, 4, 1)
"""Percent of an image in each of its layers: a few large ones, as in vLLM's."""

SMALL_FILES = {
    "config.json": 3_200,
    "generation_config.json": 240,
    "model.safetensors.index.json": 92_000,
    "tokenizer.json": 11_400_000,
    "tokenizer_config.json": 9_700,
}
LARGE_FROM_BYTES = 10_000_000
_COMMIT = re.compile(r"[0-9a-f]{40}")


class SimulatedRegistry:
    """Implements `ImageRegistry` over the names in the registry file."""

    def __init__(self, world: World) -> None:
        self._world = world

    def resolve(self, release: ImageRelease | HelperImage, platform: str, digest: str | None = None) -> ImageSource:
        """Make up what a registry would say; a digest that is named is taken as one that exists."""
        name = f"{release.repo}:{release.tag}"
        self._world.failure.strike(
            "resolve", Subject(name=release.repo, tag=release.tag, platform=platform), *ASKING_THE_REGISTRY
        )
        registry = self._world.registry
        if release != registry.helper and release not in registry.images.values():
            raise InstallerError(ImageUnknown(image=name))
        size_bytes = release.compressed_bytes if isinstance(release, ImageRelease) else HELPER_BYTES
        return ImageSource(
            repository=release.repo,
            tag=release.tag,
            index_digest=digest or _digest(name),
            platform_digest=_digest(f"{digest or name} {platform}"),
            platform=platform,
            layers=_layers(name, size_bytes),
            entrypoint=release.entrypoint if isinstance(release, ImageRelease) else (),
            requires_cuda=f"cuda>={release.cuda}" if isinstance(release, ImageRelease) and release.cuda else "",
            created=f"{release.released}T09:00:00Z" if isinstance(release, ImageRelease) else "",
            version_label=release.version if isinstance(release, ImageRelease) else "",
        )


def _layers(name: str, size_bytes: int) -> tuple[Layer, ...]:
    sizes = [size_bytes * share // 100 for share in LAYER_SHARES]
    sizes[0] += size_bytes - sum(sizes)
    return tuple(Layer(digest=_digest(f"{name} layer {n}"), size_bytes=size) for n, size in enumerate(sizes))


class SimulatedHub:
    """Implements `Hub` over the models in the registry file."""

    def __init__(self, world: World) -> None:
        self._world = world

    def resolve(self, repo: str, revision: str) -> WeightsSource:
        """Make up a commit whose weight files have the size that the registry file tells."""
        self._world.failure.strike("resolve", Subject(name=repo, tag=revision), *ASKING_THE_HUB)
        model = self._model(repo, revision)
        commit = revision if _COMMIT.fullmatch(revision) else _hex(f"{repo}@{revision}")[:40]
        sizes = SMALL_FILES | _shards(model.checkpoint_bytes)
        files = tuple(_file(f"{repo}@{commit}", path, size) for path, size in sorted(sizes.items()))
        return WeightsSource(repo=repo, commit=commit, files=files)

    def licence(self, repo: str, revision: str) -> str:
        """Return the licence that the registry file tells."""
        return self._model(repo, revision).licence

    def _model(self, repo: str, revision: str) -> Model:
        model = next((one for one in self._world.registry.models.values() if one.repo == repo), None)
        if model is None:
            raise InstallerError(RepoUnknown(repo=repo, revision=revision))
        return model

    def missing_bytes(self, weights: WeightsSource, place: WeightsPlace) -> int:
        """Return how many bytes have still to be fetched."""
        return weights.size_bytes - self._world.weights.get(key_of(weights, place), 0)

    def fetch(self, weights: WeightsSource, place: WeightsPlace, report: Report, cancel: Cancel) -> None:
        """Fetch what is missing; bytes that came stay after a failure or a cancel."""
        world, key = self._world, key_of(weights, place)
        subject = _subject(weights, place)
        cancel.check()
        world.failure.strike("weights", subject, *BEFORE_THE_FIRST_BYTE)
        fails_from = weights.size_bytes * 2 // 5

        def came(here: int) -> None:
            world.weights[key] = here
            if here >= fails_from:
                world.failure.strike("weights", subject)

        transfer(world, weights.size_bytes, world.weights.get(key, 0), report, cancel, came)

    def speed(self, weights: WeightsSource, seconds: float, cancel: Cancel) -> float | None:  # noqa: ARG002 - one line
        """Return how fast the simulated line is."""
        self._world.pause(seconds, cancel)
        return float(LINE_BYTES_PER_SECOND)

    def remove(self, weights: WeightsSource, place: WeightsPlace) -> int:
        """Forget the files of one commit; return how many bytes that freed."""
        return self._world.weights.pop(key_of(weights, place), 0)


def _subject(weights: WeightsSource, place: WeightsPlace) -> Subject:
    largest = max(weights.files, key=lambda file: file.size_bytes)
    return Subject(
        name=weights.repo,
        tag=weights.commit,
        file=largest.path,
        where=place.folder if isinstance(place, FolderWeights) else place.volume,
        needed_bytes=weights.size_bytes,
        in_engine=not isinstance(place, FolderWeights),
    )


def _shards(checkpoint_bytes: int) -> dict[str, int]:
    count = max(1, -(-checkpoint_bytes // SHARD_BYTES))
    each = checkpoint_bytes // count
    sizes = [each] * (count - 1) + [checkpoint_bytes - each * (count - 1)]
    return {f"model-{n:05d}-of-{count:05d}.safetensors": size for n, size in enumerate(sizes, 1)}


def _file(origin: str, path: str, size_bytes: int) -> WeightFile:
    content = _hex(f"{origin} {path}")
    if size_bytes >= LARGE_FROM_BYTES:
        return WeightFile(path=path, size_bytes=size_bytes, sha256=content)
    return WeightFile(path=path, size_bytes=size_bytes, git_blob_id=content[:40])


def _digest(name: str) -> str:
    return f"sha256:{_hex(name)}"


def _hex(name: str) -> str:
    return hashlib.sha256(f"dry run {name}".encode()).hexdigest()

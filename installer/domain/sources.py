"""Sources: what only the network knows of a profile, as frozen values with a JSON form.

The last resolved sources stay in the home, so that a plan can be made offline, with their date shown.
"""

from __future__ import annotations

import msgspec

from installer.domain.units import Natural

ATTESTATION = "attestation-manifest"


class _Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Layer(_Source, frozen=True, kw_only=True):
    """One compressed layer of an image."""

    digest: str
    size_bytes: Natural


class ImageSource(_Source, frozen=True, kw_only=True):
    """An image as its registry describes it.

    `repository` is the full name to pull (`vllm/vllm-openai`, or `127.0.0.1:5000/vllm/vllm-openai` behind a mirror).
    `index_digest` is what a pin names; `platform_digest` is the manifest for this processor, equal to it where the
    tag is no index. `requires_cuda` is the image's own `NVIDIA_REQUIRE_CUDA`.
    """

    repository: str
    tag: str
    index_digest: str
    platform_digest: str
    platform: str
    layers: tuple[Layer, ...]
    entrypoint: tuple[str, ...] = ()
    requires_cuda: str = ""
    created: str = ""
    version_label: str = ""

    @property
    def size_bytes(self) -> int:
        """Return the compressed size: what goes over the line."""
        return sum({layer.digest: layer.size_bytes for layer in self.layers}.values())

    @property
    def by_digest(self) -> str:
        """Return the reference that can never mean another image."""
        return f"{self.repository}@{self.index_digest}"

    @property
    def by_tag(self) -> str:
        """Return the reference that the publisher may move."""
        return f"{self.repository}:{self.tag}"


class WeightFile(_Source, frozen=True, kw_only=True):
    """A file at the pinned commit: large ones carry a sha256, small ones only git's blob id."""

    path: str
    size_bytes: Natural
    sha256: str | None = None
    git_blob_id: str | None = None


class WeightsSource(_Source, frozen=True, kw_only=True):
    """The files of a checkpoint at one commit of its repository on the hub.

    `gated` tells that everybody may see them and only accounts that agreed to the publisher's terms may fetch them.
    """

    repo: str
    commit: str
    files: tuple[WeightFile, ...]
    gated: bool = False

    @property
    def size_bytes(self) -> int:
        """Return the size of all files together."""
        return sum(file.size_bytes for file in self.files)

    @property
    def checkpoint_bytes(self) -> int:
        """Return the size of the weight files alone: what has to go onto the card."""
        return sum(file.size_bytes for file in self.files if file.path.endswith(".safetensors"))

    @property
    def folder(self) -> str:
        """Return where the files lie below the models folder, with forward slashes."""
        return f"{self.repo.replace('/', '--')}/{self.commit}"


class Sources(_Source, frozen=True, kw_only=True):
    """Everything about one profile that the network knew at `resolved_at` (ISO 8601, UTC)."""

    profile: str
    image: ImageSource
    helper: ImageSource
    weights: WeightsSource
    resolved_at: str


class FolderWeights(_Source, frozen=True, kw_only=True, tag="folder", tag_field="kind"):
    """Weights in a folder of the host; the engine mounts it."""

    folder: str


class VolumeWeights(_Source, frozen=True, kw_only=True, tag="volume", tag_field="kind"):
    """Weights in a named volume of the engine, where a folder of the host would be slow (Docker Desktop).

    `helper` is the reference of the image that fills it.
    """

    volume: str
    helper: str


WeightsPlace = FolderWeights | VolumeWeights

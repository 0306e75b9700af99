"""The registry: models, flag profiles, image releases and their flags, as data that was read from YAML.

Parsing is strict: an unknown key, a wrong type or a name that nothing defines is a MalformedFile with its path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from installer.domain import fingerprints as fingerprint_tables
from installer.domain import strict_yaml
from installer.domain.fingerprints import Fingerprint
from installer.domain.problems import InstallerError, MalformedFile, UnknownName
from installer.domain.units import Gib, Natural, Port

Task = Literal["chat", "vision", "image"]
StackName = Literal["chat", "images"]
Backend = Literal["vllm", "vllm-omni", "diffusers"]
SERVED_BACKENDS: tuple[Backend, ...] = ("vllm",)
"""What this version can start; the other profiles are data for a later one and are refused with that reason."""

EvidenceKind = Literal["measured", "documented", "derived"]
KvCacheDtype = Literal["auto", "fp8", "nvfp4"]
COMMIT_DIGITS = 40
MOST_LAYERS = 10_000
SM12X = 12
"""The major compute capability of the RTX 50 series, RTX PRO Blackwell and GB10."""

FlagValue = str | int | float | bool | dict[str, Any]


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class Licence(_Entry, frozen=True, kw_only=True):
    """A licence, by the id that a model's card names; one that is not free needs `accept_licenses: [id]`."""

    id: str
    name: str
    url: str
    free: bool = True
    commercial: bool = True


class LayerGroup(_Entry, frozen=True, kw_only=True):
    """Layers that share one kind of cache.

    `full` and `sliding` cache keys and values, `mla` one compressed row, `linear` a state of fixed size (Mamba and
    gated-delta layers). `window` is in tokens, `head_dim` in elements; `value_head_dim` where values have another one.

    `token_bytes` is for rows that do not follow from heads, as an indexer's are; `fp8_token_bytes` is for layouts that
    hold scales too (656 for the sparse MLA of DeepSeek V3.2). A state grows by `draft_state_bytes` with every
    speculative token: one more row of its convolution. `state_chunk` is in tokens and only for Mamba 2.
    """

    kind: Literal["full", "sliding", "mla", "linear"]
    layers: Annotated[int, msgspec.Meta(ge=1, le=MOST_LAYERS)]
    kv_heads: Natural = 0
    head_dim: Natural = 0
    value_head_dim: Natural = 0
    window: Natural = 0
    latent_dim: Natural = 0
    token_bytes: Natural = 0
    fp8_token_bytes: Natural = 0
    state_bytes: Natural = 0
    state: Literal["gated_delta", "mamba2", "other"] = "gated_delta"
    state_chunk: Natural = 0
    draft_state_bytes: Natural = 0


class Architecture(_Entry, frozen=True, kw_only=True):
    """The numbers of a model that vLLM's memory accounting asks for, and how they are known.

    `draft_layer_groups` are the layers that speculative decoding adds (MTP, EAGLE). `intermediate_size` is the width of
    the feed-forward layer, of a single expert where there are experts; `encoder_bytes` is what the vision tower takes
    for its largest picture. Both are 0 where they are not known. `layers_without_cache` are layers that read the keys
    and values of another one, and keep none.
    """

    hidden_size: Natural
    vocab_size: Natural
    layer_groups: tuple[LayerGroup, ...]
    draft_layer_groups: tuple[LayerGroup, ...] = ()
    experts_per_token: Natural = 0
    intermediate_size: Natural = 0
    encoder_bytes: Natural = 0
    layers_without_cache: Natural = 0
    evidence: EvidenceKind = "derived"
    source: str


class ModelFile(_Entry, frozen=True, kw_only=True):
    """One file of a checkpoint; `sha256` where the hub keeps it as a large file."""

    path: str
    size_bytes: Natural
    sha256: str | None = None


class Model(_Entry, frozen=True, kw_only=True):
    """One checkpoint on the hub. `checkpoint_bytes` is the sum of its weight files at that revision.

    `revision: main` means that no commit was read yet: an installation resolves it, records the commit and serves that.
    `resident_bytes` is what vLLM reports as loaded, where somebody measured it. A model that makes pictures has no
    `architecture` and no `native_context`: vLLM's accounting is not asked for it.
    """

    repo: str
    revision: str
    name: str
    publisher: str
    licence: str
    quantization: str
    checkpoint_bytes: Natural
    checkpoint_evidence: EvidenceKind
    checkpoint_source: str = ""
    resident_bytes: Natural | None = None
    resident_source: str = ""
    native_context: Natural = 0
    reads: tuple[Literal["text", "image", "video", "audio"], ...]
    architecture: str | None = None
    good_for: Literal["chat", "small_chat", "vision", "coding", "trial", "pictures"]
    note: str = ""
    files: tuple[ModelFile, ...] = ()

    @property
    def is_pinned(self) -> bool:
        """Say whether the revision is a commit, which never changes."""
        return len(self.revision) == COMMIT_DIGITS and set(self.revision) <= set("0123456789abcdef")


class Flag(_Entry, frozen=True, kw_only=True):
    """One argument of the server, with the reason for its value. `true` is written as a bare flag.

    `reason` names a sentence in `installer.text`, so that both languages have it.
    """

    flag: str
    value: FlagValue
    reason: str


class Evidence(_Entry, frozen=True, kw_only=True):
    """Where a profile's claim comes from. Only *measured* on the same class of card counts as tested.

    `memory_gib` is the card's memory as its driver shows it; `free_gib` what CUDA had free, where that was told.
    `memory_gib` of a unified memory is the computer's.
    """

    kind: EvidenceKind
    card: str = ""
    capability: str = ""
    memory_gib: Gib | None = None
    free_gib: Gib | None = None
    wsl2: bool = False
    unified_memory: bool = False
    version: str = ""
    source: str
    note: str = ""


class Block(_Entry, frozen=True, kw_only=True):
    """A failure that was measured: the profile is refused where all named conditions hold.

    `reason` names a sentence in `installer.text`. `revision` and `version` are the commits of model and server that
    failed: the block is lifted by a registry that names another one (`Registry.blocks_of`).
    """

    reason: str
    source: str
    revision: str = ""
    version: str = ""
    note: str = ""
    max_memory_gib: Gib | None = None
    capabilities: tuple[str, ...] = ()
    wsl2: bool | None = None


class Profile(_Entry, frozen=True, kw_only=True):
    """A model with flags that make it run on a tier of cards.

    `utilisation` is vLLM's share of the card at most; `context` is in tokens; `min_capability` is like "8.0". A profile
    takes one card unless `tensor_parallel` says how many. A profile that makes pictures has `peak_bytes` (the most it
    takes with all `max_references`) in place of a context; `max_frames` is how many frames of a video it reads.
    """

    model: str
    stack: StackName
    task: Task
    backend: Backend = "vllm"
    image: str
    tier_gib: Natural
    context: Natural = 0
    utilisation: float = 0.9
    max_num_seqs: Natural = 1
    max_num_batched_tokens: Natural = 2048
    kv_cache_dtype: KvCacheDtype = "auto"
    enforce_eager: bool = False
    reads_media: bool = False
    cpu_offload_gib: Natural = 0
    max_references: Natural = 0
    max_frames: Natural = 0
    peak_bytes: Natural | None = None
    tensor_parallel: Natural = 1
    min_capability: str
    max_capability: str | None = None
    gpu: bool = True
    quality: int
    recommended: bool = True
    flags: tuple[Flag, ...] = ()
    environment: dict[str, str] = {}
    environment_wsl2: dict[str, str] = {}
    environment_sm12x: dict[str, str] = {}
    thinking_off: bool = False
    evidence: tuple[Evidence, ...]
    blocks: tuple[Block, ...] = ()

    def environment_on(self, capability: tuple[int, int] | None, *, wsl2: bool) -> dict[str, str]:
        """Return the environment of the server on a card (SM 12.x has its own) and behind WSL2 or not."""
        sm12x = capability is not None and capability[0] == SM12X
        return self.environment | (self.environment_sm12x if sm12x else {}) | (self.environment_wsl2 if wsl2 else {})


class ImageRelease(_Entry, frozen=True, kw_only=True):
    """A release of a server image.

    `health` is the program that the image has for asking its own health; none means that the host polls.
    `cuda` is the CUDA version that the image was built with, which the driver must be able to run.
    `compressed_bytes` is what an offline plan assumes until the registry tells. `flags` names the list of arguments of
    its server; none is for a back end that this version does not start. `digest` and `platforms` (digest by platform)
    are what `slipway registry refresh` saw; an installation resolves the tag itself. One that is not `published` is
    built from our own sources.
    """

    repo: str
    tag: str
    version: str
    released: str
    cuda: str | None
    entrypoint: tuple[str, ...]
    health: tuple[str, ...] | None
    auth: Literal["key", "none"]
    flags: str | None = None
    port: Port = 8000
    compressed_bytes: Natural
    digest: str | None = None
    platforms: dict[str, str] = {}
    rolling: bool = False
    published: bool = True
    source: str


class HelperImage(_Entry, frozen=True, kw_only=True):
    """The small image that looks at card, disk and ports from inside the engine."""

    repo: str
    tag: str
    digest: str | None = None


class Registry(_Entry, frozen=True, kw_only=True):
    """All of it. `revision` goes into the labels of what is installed.

    `fingerprints` may be missing from a registry of one's own: then those that come with Slipway count.
    """

    revision: str
    licences: dict[str, Licence]
    architectures: dict[str, Architecture]
    models: dict[str, Model]
    profiles: dict[str, Profile]
    images: dict[str, ImageRelease]
    helper: HelperImage
    flags: dict[str, frozenset[str]]
    fingerprints: dict[str, Fingerprint] = {}

    def profile(self, name: str) -> Profile:
        """Return a profile by its id, or raise InstallerError(UnknownName)."""
        if name not in self.profiles:
            raise InstallerError(UnknownName(field="profile", value=name, known=tuple(self.profiles)))
        return self.profiles[name]

    def model_of(self, profile: Profile) -> Model:
        """Return the model that a profile serves."""
        return self.models[profile.model]

    def architecture_of(self, profile: Profile) -> Architecture:
        """Return the architecture behind a profile. Raises LookupError for one that makes pictures."""
        name = self.models[profile.model].architecture
        if name is None:
            raise LookupError(profile.model)
        return self.architectures[name]

    def image_of(self, profile: Profile) -> ImageRelease:
        """Return the image release that a profile runs on."""
        return self.images[profile.image]

    def licence_of(self, profile: Profile) -> Licence:
        """Return the licence of the model that a profile serves."""
        return self.licences[self.models[profile.model].licence]

    def known_failures(self) -> fingerprint_tables.Table:
        """Return the table that tells causes from words."""
        return fingerprint_tables.Table(self.fingerprints)

    def blocks_of(self, profile: Profile) -> tuple[Block, ...]:
        """Return the blocks that still stand: those of this commit of the model and this version of the server.

        A revision that moves, such as `main`, may be the one that failed.
        """
        model, image = self.model_of(profile), self.image_of(profile)
        return tuple(
            block
            for block in profile.blocks
            if (not block.revision or not model.is_pinned or model.revision.startswith(block.revision))
            and block.version in ("", image.version)
        )


def parse(texts: Mapping[str, str]) -> Registry:
    """Read the registry from its YAML files, given as name and text.

    Raises InstallerError(MalformedFile) with file, path inside it and reason, also for what no type says
    (`installer.domain.registry_rules`).
    """
    merged: dict[str, Any] = {"flags": {}}
    origin: dict[str, str] = {}
    for path, text in texts.items():
        for key, value in strict_yaml.mapping(path, text).items():
            if key == "flags":
                for release, names in _flag_lists(path, value).items():
                    if release in merged["flags"]:
                        raise InstallerError(
                            MalformedFile(path=path, where=f"$.flags.{release}", reason="stands in two files")
                        )
                    merged["flags"][release] = names
            elif key in merged:
                raise InstallerError(
                    MalformedFile(path=path, where=f"$.{key}", reason=f"stands in {origin[key]} already")
                )
            else:
                merged[key] = value
            origin[key] = path
    try:
        registry = msgspec.convert(merged, type=Registry)
    except msgspec.ValidationError as error:
        problem = _with_entry_named(MalformedFile.of("", error), merged)
        section = problem.where.removeprefix("$.").split(".")[0].split("[")[0]
        raise InstallerError(msgspec.structs.replace(problem, path=origin.get(section, "registry"))) from error
    from installer.domain import registry_rules  # it knows the accounting, which knows the types of this file

    for where, reason in registry_rules.broken(registry):
        section = where.removeprefix("$.").split(".")[0]
        raise InstallerError(MalformedFile(path=origin[section], where=where, reason=reason))
    fingerprint_tables.parse(registry.fingerprints, origin.get("fingerprints", ""))
    return registry


def schema() -> dict[str, Any]:
    """Return the JSON schema of the registry: of all its files laid together."""
    return msgspec.json.schema(Registry) | {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def _with_entry_named(problem: MalformedFile, merged: Mapping[str, Any]) -> MalformedFile:
    """Say which entry is meant: msgspec writes `$.profiles[...].context` for every one of them."""
    section = problem.where.removeprefix("$.").split("[...]")[0]
    shape = {
        "licences": Licence,
        "architectures": Architecture,
        "models": Model,
        "profiles": Profile,
        "images": ImageRelease,
        "fingerprints": Fingerprint,
    }.get(section)
    entries = merged.get(section)
    if shape is None or not isinstance(entries, dict):
        return problem
    for name, entry in entries.items():
        try:
            msgspec.convert(entry, type=shape)
        except msgspec.ValidationError as error:
            named = MalformedFile.of(problem.path, error)
            return msgspec.structs.replace(named, where=f"$.{section}.{name}{named.where.removeprefix('$')}")
    return problem


def _flag_lists(path: str, value: object) -> dict[str, frozenset[str]]:
    """Read what one of the flag files says, so that an error names that file and not another."""
    try:
        return msgspec.convert(value, type=dict[str, frozenset[str]])
    except msgspec.ValidationError as error:
        problem = MalformedFile.of(path, error)
        where = "$.flags" + problem.where.removeprefix("$")
        raise InstallerError(msgspec.structs.replace(problem, where=where)) from error


def capability(text: str) -> tuple[int, int]:
    """Return a compute capability such as "12.0" as two numbers."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)

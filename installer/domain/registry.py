"""The registry: models, flag profiles, image releases and their flags, as data that was read from YAML.

Parsing is strict: an unknown key, a wrong type or a name that nothing defines is a MalformedFile with its path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import yaml

from installer.domain.problems import InstallerError, MalformedFile, UnknownName

Task = Literal["chat", "vision", "image"]
StackName = Literal["chat", "images"]
Backend = Literal["vllm", "vllm-omni"]
EvidenceKind = Literal["measured", "documented", "derived"]
KvCacheDtype = Literal["auto", "fp8"]
FlagValue = str | int | float | bool | dict[str, Any]


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Licence(_Entry, frozen=True, kw_only=True):
    """A licence; one that is not free needs `accept_licenses: [id]`."""

    id: str
    name: str
    url: str
    free: bool = True


class LayerGroup(_Entry, frozen=True, kw_only=True):
    """Layers that share one kind of cache.

    `full` and `sliding` cache keys and values, `mla` one compressed row, `linear` a state of fixed size (Mamba and
    gated-delta layers). `window` is in tokens, `head_dim` in elements.
    """

    kind: Literal["full", "sliding", "mla", "linear"]
    layers: int
    kv_heads: int = 0
    head_dim: int = 0
    window: int = 0
    latent_dim: int = 0
    state_bytes: int = 0


class Architecture(_Entry, frozen=True, kw_only=True):
    """The numbers of a model that vLLM's memory accounting asks for."""

    hidden_size: int
    vocab_size: int
    layer_groups: tuple[LayerGroup, ...]
    experts_per_token: int = 0
    source: str


class Model(_Entry, frozen=True, kw_only=True):
    """One checkpoint on the hub. `checkpoint_bytes` is the sum of its weight files at that revision.

    `resident_bytes` is what vLLM reports as loaded, where somebody measured it.
    """

    repo: str
    revision: str
    name: str
    publisher: str
    licence: str
    quantization: str
    checkpoint_bytes: int
    checkpoint_evidence: EvidenceKind
    resident_bytes: int | None = None
    native_context: int
    reads: tuple[Literal["text", "image", "video", "audio"], ...]
    architecture: str
    good_for: Literal["chat", "small_chat", "vision", "coding", "trial"]


class Flag(_Entry, frozen=True, kw_only=True):
    """One argument of the server, with the reason for its value. `true` is written as a bare flag.

    `reason` names a sentence in `installer.text`, so that both languages have it.
    """

    flag: str
    value: FlagValue
    reason: str


class Evidence(_Entry, frozen=True, kw_only=True):
    """Where a profile's claim comes from. Only *measured* on the same class of card counts as tested."""

    kind: EvidenceKind
    card: str = ""
    capability: str = ""
    memory_gib: float | None = None
    version: str = ""
    source: str
    note: str = ""


class Block(_Entry, frozen=True, kw_only=True):
    """A failure that was measured: the profile is refused where all named conditions hold."""

    reason: str
    source: str
    max_memory_gib: float | None = None
    capabilities: tuple[str, ...] = ()
    wsl2: bool | None = None


class Profile(_Entry, frozen=True, kw_only=True):
    """A model with flags that make it run on a tier of cards.

    `utilisation` is vLLM's share of the card at most; `context` is in tokens; `min_capability` is like "8.0".
    """

    model: str
    stack: StackName
    task: Task
    backend: Backend = "vllm"
    image: str
    tier_gib: int
    context: int
    utilisation: float
    max_num_seqs: int
    max_num_batched_tokens: int
    kv_cache_dtype: KvCacheDtype = "auto"
    enforce_eager: bool = False
    reads_media: bool = False
    cpu_offload_gib: int = 0
    max_references: int = 0
    min_capability: str
    max_capability: str | None = None
    gpu: bool = True
    quality: int
    recommended: bool = True
    flags: tuple[Flag, ...] = ()
    environment: dict[str, str] = {}
    environment_wsl2: dict[str, str] = {}
    thinking_off: bool = False
    evidence: tuple[Evidence, ...]
    blocks: tuple[Block, ...] = ()


class ImageRelease(_Entry, frozen=True, kw_only=True):
    """A release of a server image.

    `health` is the program that the image has for asking its own health; none means that the host polls.
    `cuda` is the CUDA version that the image was built with, which the driver must be able to run.
    `compressed_bytes` is what an offline plan assumes until the registry tells.
    """

    repo: str
    tag: str
    version: str
    released: str
    cuda: str | None
    entrypoint: tuple[str, ...]
    health: tuple[str, ...] | None
    auth: Literal["key", "none"]
    flags: str
    port: int = 8000
    compressed_bytes: int
    rolling: bool = False
    source: str


class HelperImage(_Entry, frozen=True, kw_only=True):
    """The small image that looks at card, disk and ports from inside the engine."""

    repo: str
    tag: str
    digest: str | None = None


class Registry(_Entry, frozen=True, kw_only=True):
    """All of it. `revision` goes into the labels of what is installed."""

    revision: str
    licences: dict[str, Licence]
    architectures: dict[str, Architecture]
    models: dict[str, Model]
    profiles: dict[str, Profile]
    images: dict[str, ImageRelease]
    helper: HelperImage
    flags: dict[str, frozenset[str]]

    def profile(self, name: str) -> Profile:
        """Return a profile by its id, or raise InstallerError(UnknownName)."""
        if name not in self.profiles:
            raise InstallerError(UnknownName(field="profile", value=name, known=tuple(self.profiles)))
        return self.profiles[name]

    def model_of(self, profile: Profile) -> Model:
        """Return the model that a profile serves."""
        return self.models[profile.model]

    def architecture_of(self, profile: Profile) -> Architecture:
        """Return the architecture behind a profile."""
        return self.architectures[self.models[profile.model].architecture]

    def image_of(self, profile: Profile) -> ImageRelease:
        """Return the image release that a profile runs on."""
        return self.images[profile.image]

    def licence_of(self, profile: Profile) -> Licence:
        """Return the licence of the model that a profile serves."""
        return self.licences[self.models[profile.model].licence]


def parse(texts: Mapping[str, str]) -> Registry:
    """Read the registry from its YAML files, given as name and text.

    Raises InstallerError(MalformedFile) with file, path inside it and reason.
    """
    merged: dict[str, Any] = {"flags": {}}
    origin: dict[str, str] = {}
    for path, text in texts.items():
        for key, value in _mapping(path, text).items():
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
    for where, reason in _broken_references(registry):
        section = where.removeprefix("$.").split(".")[0]
        raise InstallerError(MalformedFile(path=origin[section], where=where, reason=reason))
    return registry


def _with_entry_named(problem: MalformedFile, merged: Mapping[str, Any]) -> MalformedFile:
    """Say which entry is meant: msgspec writes `$.profiles[...].context` for every one of them."""
    section = problem.where.removeprefix("$.").split("[...]")[0]
    shape = {
        "licences": Licence,
        "architectures": Architecture,
        "models": Model,
        "profiles": Profile,
        "images": ImageRelease,
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


def _mapping(path: str, text: str) -> dict[str, Any]:
    try:
        value = yaml.load(text, Loader=_StrictKeys)  # noqa: S506 - a SafeLoader that is strict about keys
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "$"
        raise InstallerError(MalformedFile(path=path, where=where, reason=error.problem or "not YAML")) from error
    except yaml.YAMLError as error:
        raise InstallerError(MalformedFile(path=path, where="$", reason=str(error).splitlines()[0])) from error
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        # PyYAML's constructors let these through: a date that no calendar has, `!!bool perhaps`, endless nesting.
        raise InstallerError(MalformedFile(path=path, where="$", reason=f"not YAML: {error}")) from error
    if not isinstance(value, dict):
        raise InstallerError(MalformedFile(path=path, where="$", reason="expected a mapping with names as keys"))
    return value


def _flag_lists(path: str, value: object) -> dict[str, frozenset[str]]:
    """Read what one of the flag files says, so that an error names that file and not another."""
    try:
        return msgspec.convert(value, type=dict[str, frozenset[str]])
    except msgspec.ValidationError as error:
        problem = MalformedFile.of(path, error)
        where = "$.flags" + problem.where.removeprefix("$")
        raise InstallerError(msgspec.structs.replace(problem, where=where)) from error


_TAGS_OF_KEYS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")


class _StrictKeys(yaml.SafeLoader):
    """YAML lets a key stand twice, and be a number; in a registry either is a mistake."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(getattr(key_node, "value", ""))
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag not in _TAGS_OF_KEYS:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key} is no text without quotes", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _broken_references(registry: Registry) -> list[tuple[str, str]]:
    broken: list[tuple[str, str]] = []

    def expect(where: str, name: str, known: Mapping[str, object]) -> None:
        if name not in known:
            broken.append((where, f"{name!r} is not defined"))

    for key, model in registry.models.items():
        expect(f"$.models.{key}.licence", model.licence, registry.licences)
        expect(f"$.models.{key}.architecture", model.architecture, registry.architectures)
    for key, image in registry.images.items():
        expect(f"$.images.{key}.flags", image.flags, registry.flags)
    for key, profile in registry.profiles.items():
        expect(f"$.profiles.{key}.model", profile.model, registry.models)
        expect(f"$.profiles.{key}.image", profile.image, registry.images)
        if broken:
            continue
        broken += _unknown_flags(key, profile, registry)
        broken += _impossible_limits(key, profile, registry)
    return broken


def _unknown_flags(key: str, profile: Profile, registry: Registry) -> list[tuple[str, str]]:
    image = registry.image_of(profile)
    known = registry.flags[image.flags]
    return [
        (f"$.profiles.{key}.flags[{index}].flag", f"{flag.flag} does not exist in {image.version}")
        for index, flag in enumerate(profile.flags)
        if flag.flag not in known
    ]


def _impossible_limits(key: str, profile: Profile, registry: Registry) -> list[tuple[str, str]]:
    native = registry.model_of(profile).native_context
    checks = [
        ("context", 0 < profile.context <= native, f"must lie in 1..{native}"),
        ("utilisation", 0 < profile.utilisation <= 1, "must lie above 0 and be 1 at most"),
        ("max_num_seqs", profile.max_num_seqs >= 1, "must be 1 at least"),
        ("max_num_batched_tokens", profile.max_num_batched_tokens >= 1, "must be 1 at least"),
        ("evidence", len(profile.evidence) > 0, "every profile says where its claim comes from"),
        ("min_capability", _is_capability(profile.min_capability), 'expected a form like "8.0"'),
    ]
    return [(f"$.profiles.{key}.{field}", reason) for field, holds, reason in checks if not holds]


def _is_capability(text: str) -> bool:
    major, dot, minor = text.partition(".")
    return bool(dot) and major.isdigit() and minor.isdigit()


def capability(text: str) -> tuple[int, int]:
    """Return a compute capability such as "12.0" as two numbers."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)

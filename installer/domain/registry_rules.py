"""What a registry has to hold that no type says: names that are defined, limits that go together, figures at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from packaging.version import InvalidVersion, Version

from installer.domain.kv_layers import token_bytes
from installer.domain.one_line import is_one_line
from installer.domain.registry import SERVED_BACKENDS, Architecture, Flag, ImageRelease, LayerGroup, Profile, Registry

Broken = tuple[str, str]
"""Where in the registry, and what is wrong there."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""A profile's id is a file name in the home, a label of the container and the name of the served model."""

_CAPABILITY = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}")
_FORM = 'expected a form like "8.0"'
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REPOSITORY = re.compile(r"[a-z0-9][a-z0-9._:/-]*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


def broken(registry: Registry) -> tuple[Broken, ...]:
    """Return everything that is wrong, as a path inside the registry and a reason."""
    names = tuple(_names(registry))
    return names or (*_architectures(registry), *_images(registry), *_profiles(registry))


def _names(registry: Registry) -> Iterator[Broken]:
    def undefined(where: str, name: str, known: Mapping[str, object]) -> Iterator[Broken]:
        if name not in known:
            yield where, f"{name!r} is not defined"

    for key, licence in registry.licences.items():
        if key != licence.id:
            yield f"$.licences.{key}.id", "differs from its key"
    for key, model in registry.models.items():
        yield from undefined(f"$.models.{key}.licence", model.licence, registry.licences)
        if model.architecture is not None:
            yield from undefined(f"$.models.{key}.architecture", model.architecture, registry.architectures)
    for key, image in registry.images.items():
        if image.flags is not None:
            yield from undefined(f"$.images.{key}.flags", image.flags, registry.flags)
    for key, profile in registry.profiles.items():
        if not _NAME.fullmatch(key):
            yield "$.profiles", f"{key!r} is no name of letters, digits, points and hyphens"
        yield from undefined(f"$.profiles.{key}.model", profile.model, registry.models)
        yield from undefined(f"$.profiles.{key}.image", profile.image, registry.images)


def _architectures(registry: Registry) -> Iterator[Broken]:
    for key, architecture in registry.architectures.items():
        yield from _layers(f"$.architectures.{key}", architecture)


def _layers(where: str, architecture: Architecture) -> Iterator[Broken]:
    if not architecture.layer_groups:
        yield f"{where}.layer_groups", "must have one at least"
    for name in ("layer_groups", "draft_layer_groups"):
        for index, group in enumerate(getattr(architecture, name)):
            if not _keeps_something(group):
                yield (
                    f"{where}.{name}[{index}]",
                    f"a layer of kind {group.kind} keeps something: its figures are missing",
                )


def _keeps_something(group: LayerGroup) -> bool:
    if group.kind == "linear":
        return group.state_bytes > 0
    return token_bytes(group, "auto") > 0 and (group.kind != "sliding" or group.window > 0)


def _images(registry: Registry) -> Iterator[Broken]:
    for key, image in registry.images.items():
        yield from _named(f"$.images.{key}", image.repo, image.tag)
        if image.cuda is not None and not _is_capability(image.cuda):
            yield f"$.images.{key}.cuda", _FORM
        if image.flags is not None and not _is_release(image.version):
            yield f"$.images.{key}.version", 'expected a form like "0.33.0"'
    yield from _named("$.helper", registry.helper.repo, registry.helper.tag)


def _named(where: str, repository: str, tag: str) -> Iterator[Broken]:
    if not _REPOSITORY.fullmatch(repository):
        yield f"{where}.repo", "is no name of an image"
    if not _TAG.fullmatch(tag):
        yield f"{where}.tag", "is no tag of an image"


def _is_release(version: str) -> bool:
    try:
        return bool(_CAPABILITY.match(version)) and Version(version) is not None
    except InvalidVersion:
        return False


def _profiles(registry: Registry) -> Iterator[Broken]:
    for key, profile in registry.profiles.items():
        where, image = f"$.profiles.{key}", registry.image_of(profile)
        yield from _unknown_flags(where, profile, image, registry)
        for index, flag in enumerate(profile.flags):
            if not _is_json(flag):
                yield f"{where}.flags[{index}].value", "is nothing that JSON can say"
        for name in ("environment", "environment_wsl2", "environment_sm12x"):
            for variable, value in getattr(profile, name).items():
                if not (_VARIABLE.fullmatch(variable) and is_one_line(value)):
                    yield f"{where}.{name}", f"{variable!r} is no variable with a value of one line"
        yield from _impossible_limits(where, profile, registry)


def _unknown_flags(where: str, profile: Profile, image: ImageRelease, registry: Registry) -> Iterator[Broken]:
    if image.flags is None:
        if profile.backend in SERVED_BACKENDS:
            yield f"$.images.{profile.image}.flags", f"{profile.backend} needs its list of flags"
        return
    for index, flag in enumerate(profile.flags):
        if flag.flag not in registry.flags[image.flags]:
            yield f"{where}.flags[{index}].flag", f"{flag.flag} does not exist in {image.version}"


def _is_json(flag: Flag) -> bool:
    """YAML has dates, sets and numbers that are none; a plan is kept as JSON, and some flags take JSON."""
    try:
        json.dumps(flag.value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _impossible_limits(where: str, profile: Profile, registry: Registry) -> Iterator[Broken]:
    highest = profile.max_capability
    rows = profile.evidence
    checks = [
        ("utilisation", 0 < profile.utilisation <= 1, "must lie above 0 and be 1 at most"),
        ("max_num_seqs", profile.max_num_seqs >= 1, "must be 1 at least"),
        ("max_num_batched_tokens", profile.max_num_batched_tokens >= 1, "must be 1 at least"),
        ("tensor_parallel", profile.tensor_parallel >= 1, "must be 1 at least"),
        ("evidence", len(rows) > 0, "every profile says where its claim comes from"),
        ("evidence", all(row.capability == "" or _is_capability(row.capability) for row in rows), _FORM),
        ("min_capability", _is_capability(profile.min_capability), _FORM),
        ("max_capability", highest is None or _is_capability(highest), _FORM),
    ]
    if profile.backend == "vllm":
        native = registry.model_of(profile).native_context
        has_architecture = registry.model_of(profile).architecture is not None
        checks += [
            ("context", 0 < profile.context <= native, f"must lie in 1..{native}"),
            ("model", has_architecture, "vLLM's accounting needs the architecture of the model"),
        ]
    for field, holds, reason in checks:
        if not holds:
            yield f"{where}.{field}", reason


def _is_capability(text: str) -> bool:
    return _CAPABILITY.fullmatch(text) is not None

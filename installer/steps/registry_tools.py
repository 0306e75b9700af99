"""What maintains the registry: does the accounting bear out each claim, and what do hub and image registry say now."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import yaml

from installer.domain import registry as registries
from installer.domain.facts import (
    Compose,
    ComposeState,
    CudaMemory,
    Engine,
    EngineState,
    Facts,
    Folder,
    Gpu,
    GpuMemory,
    Host,
    Missing,
    Nvidia,
    NvidiaState,
)
from installer.domain.memory import Verdict, budget
from installer.domain.offers import offer
from installer.domain.problems import (
    AnyProblem,
    DoesNotFit,
    EvidenceNotReproduced,
    InstallerError,
    LicenceTagMissing,
    MalformedFile,
    NoSuchPlatform,
    NotEnoughFreeMemory,
    UnknownName,
)
from installer.domain.registry import (
    SERVED_BACKENDS,
    Evidence,
    ImageRelease,
    Model,
    ModelFile,
    Registry,
    capability,
)
from installer.domain.units import gib
from installer.steps.ports import Hub, ImageRegistry

PLATFORMS = ("linux/amd64", "linux/arm64")
IDLE_UNIFIED_SHARE = 0.94
"""What an idle computer with unified memory has available (GB10 as recorded)."""

SAID_BY_THE_PLAN = (
    "--served-model-name",
    "--host",
    "--port",
    "--max-model-len",
    "--gpu-memory-utilization",
    "--max-num-seqs",
    "--max-num-batched-tokens",
    "--kv-cache-dtype",
    "--enforce-eager",
    "--cudagraph-capture-sizes",
    "--cpu-offload-gb",
)
"""What a plan says itself, so that every release must know it and no profile may repeat it."""

Tell = Callable[[str], None]


# --- check ----------------------------------------------------------------------------------------------------------


def check(registry: Registry) -> tuple[AnyProblem, ...]:
    """Return everything that is wrong with a registry that could be read.

    Each release knows the arguments that a plan says, no profile repeats one, and what was measured to run comes out
    as *fits* or *tight* on the card where it was measured.
    """
    return (*_arguments(registry), *_evidence(registry))


def _arguments(registry: Registry) -> list[AnyProblem]:
    found: list[AnyProblem] = []
    for key, profile in registry.profiles.items():
        image = registry.image_of(profile)
        missing = [flag for flag in SAID_BY_THE_PLAN if image.flags and flag not in registry.flags[image.flags]]
        if missing:
            where, reason = f"$.flags.{image.flags}", f"{', '.join(missing)} does not exist there"
            found.append(MalformedFile(path="registry", where=where, reason=reason))
        found += [
            MalformedFile(
                path="registry", where=f"$.profiles.{key}.flags[{index}]", reason=f"{flag.flag} is said by a field"
            )
            for index, flag in enumerate(profile.flags)
            if flag.flag in SAID_BY_THE_PLAN
        ]
    return list(dict.fromkeys(found))


def _evidence(registry: Registry) -> list[AnyProblem]:
    return [
        problem
        for name, profile in registry.profiles.items()
        if profile.gpu and profile.backend in SERVED_BACKENDS
        for row in profile.evidence
        if row.kind == "measured"
        for problem in _contradiction(registry, name, row)
    ]


def _contradiction(registry: Registry, name: str, row: Evidence) -> tuple[AnyProblem, ...]:
    if row.memory_gib is None or not row.capability:
        where = f"$.profiles.{name}.evidence"
        return (MalformedFile(path="registry", where=where, reason="measured, but on a card without its class"),)
    facts = machine_of(row)
    (gpu,) = facts.nvidia.gpus
    made = offer(facts, registry, name, gpu)
    match made.reason:
        case DoesNotFit(needed_bytes=needed, available_bytes=available):
            pass
        case NotEnoughFreeMemory(needed_bytes=needed, free_bytes=available):
            pass
        case _:
            return () if made.verdict in (Verdict.FITS, Verdict.TIGHT) else (made.reason,)  # type: ignore[return-value]
    return (
        EvidenceNotReproduced(
            profile=name, card=row.card, source=row.source, needed_bytes=needed, available_bytes=available
        ),
    )


def machine_of(row: Evidence) -> Facts:
    """Return an idle machine with the card of a measurement, on Linux or behind WSL2 as it was measured."""
    total = gib(row.memory_gib or 0)
    memory: GpuMemory | Missing = GpuMemory(total_bytes=total, free_bytes=total, used_bytes=0)
    gpu = Gpu(
        index=0,
        uuid="GPU-00000000-0000-0000-0000-000000000000",
        name=row.card,
        memory=Missing.NOT_SUPPORTED if row.unified_memory else memory,
        compute_capability=capability(row.capability),
        unified_memory=row.unified_memory,
    )
    facts = Facts(
        nvidia=Nvidia(state=NvidiaState.READ, gpus=(gpu,)),
        engine=Engine(state=EngineState.RUNNING, os_type="linux", runtimes=("nvidia",)),
        compose=Compose(state=ComposeState.READY),
        host=Host(
            system="Linux",
            wsl2=row.wsl2,
            ram_total_bytes=total if row.unified_memory else None,
            ram_available_bytes=round(total * IDLE_UNIFIED_SHARE) if row.unified_memory else None,
        ),
        weights_folder=Folder(path="", free_bytes=None),
    )
    room = budget(facts, gpu)
    if row.free_gib is None or room is None:
        return facts
    return facts.with_cuda(gpu.uuid, CudaMemory(total_bytes=room.total_bytes, free_bytes=gib(row.free_gib)))


# --- refresh --------------------------------------------------------------------------------------------------------


def refresh(texts: Mapping[str, str], hub: Hub, images: ImageRegistry, tell: Tell) -> dict[str, str]:
    """Return the registry's files with what hub and image registry say now: commits, files, sizes, licences, digests.

    Files that hold neither models nor images come back as they are; the others are written in one order, whatever it
    was before. Raises LicenceTagMissing with every checkpoint that lacks one, UnknownName for a licence that the
    registry does not know, and the problems of `Hub.resolve` and `ImageRegistry.resolve`.
    """
    registry = registries.parse(texts)
    models = _models_now(registry, hub, tell)
    releases = {key: _release_now(release, images, tell) for key, release in registry.images.items()}
    fresh = msgspec.structs.replace(registry, models=models, images=releases)
    for name, profile in registry.profiles.items():
        for block in set(registry.blocks_of(profile)) - set(fresh.blocks_of(profile)):
            tell(f"lifted, so test it anew: {name} {block.reason} {block.revision} {block.version}".rstrip())
    return written(texts, fresh)


def _models_now(registry: Registry, hub: Hub, tell: Tell) -> dict[str, Model]:
    tags = {model.repo: hub.licence(model.repo, "main") for model in registry.models.values()}
    untagged = tuple(sorted(repo for repo, tag in tags.items() if not tag))
    if untagged:
        raise InstallerError(LicenceTagMissing(repos=untagged))
    for tag in tags.values():
        if tag not in registry.licences:
            raise InstallerError(UnknownName(field="licence", value=tag, known=tuple(registry.licences)))
    return {key: _model_now(model, tags[model.repo], hub, tell) for key, model in registry.models.items()}


def _model_now(model: Model, licence: str, hub: Hub, tell: Tell) -> Model:
    seen = hub.resolve(model.repo, "main")
    tell(f"{model.repo} {seen.commit} {licence}")
    return msgspec.structs.replace(
        model,
        revision=seen.commit,
        licence=licence,
        checkpoint_bytes=seen.checkpoint_bytes,
        checkpoint_evidence="measured",
        checkpoint_source="the hub's sizes of the weight files at this commit",
        files=tuple(
            ModelFile(path=file.path, size_bytes=file.size_bytes, sha256=file.sha256 or None) for file in seen.files
        ),
    )


def _release_now(release: ImageRelease, images: ImageRegistry, tell: Tell) -> ImageRelease:
    if not release.published:
        return release
    first, *others = PLATFORMS
    seen = images.resolve(release, first)
    platforms = {first: seen.platform_digest}
    for platform in others:
        try:
            platforms[platform] = images.resolve(release, platform).platform_digest
        except InstallerError as error:
            if not isinstance(error.problem, NoSuchPlatform):
                raise
    tell(f"{release.repo}:{release.tag} {seen.index_digest}")
    return msgspec.structs.replace(
        release, digest=seen.index_digest, platforms=platforms, compressed_bytes=seen.size_bytes
    )


# --- writing --------------------------------------------------------------------------------------------------------


def written(texts: Mapping[str, str], registry: Registry) -> dict[str, str]:
    """Return the registry's files with its models and images written anew, each file with its first remarks."""
    sections: dict[str, Any] = {
        "models": msgspec.to_builtins(registry.models),
        "images": msgspec.to_builtins(registry.images),
    }
    return {path: _file_with(text, sections) for path, text in texts.items()}


def _file_with(text: str, sections: Mapping[str, Any]) -> str:
    document = yaml.safe_load(text)
    if not set(document) & set(sections):
        return text
    remarks = []
    for line in text.splitlines(keepends=True):
        if not line.startswith("#"):
            break
        remarks.append(line)
    parts = [_dump({key: sections.get(key, value)}, apart=key in sections) for key, value in document.items()]
    return "".join(remarks) + "\n".join(parts)


class _Dumper(yaml.SafeDumper):
    """Writes short lists and files in one line, and never an anchor."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the name is PyYAML's
        return True


def _list(dumper: _Dumper, values: list[Any] | tuple[Any, ...]) -> yaml.Node:
    in_one_line = all(isinstance(value, str) for value in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=in_one_line)


def _mapping(dumper: _Dumper, values: dict[str, Any]) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", values, flow_style="size_bytes" in values)


_Dumper.add_representer(list, _list)
_Dumper.add_representer(tuple, _list)
_Dumper.add_representer(dict, _mapping)


def _dump(section: dict[str, Any], *, apart: bool) -> str:
    text: str = yaml.dump(section, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=118)
    entries = re.split(r"\n(?=  \S)", text)
    return entries[0] + "\n" + "\n\n".join(entries[1:]) if apart else text

"""The plan: every choice made, with all that the act phase needs. Deciding is pure and is run again on every click."""

from __future__ import annotations

from typing import Literal

import msgspec

from installer.domain import addresses, checks, video
from installer.domain.choices import Choices
from installer.domain.facts import SCHEMA, CudaMemory, Facts, Gpu, Missing
from installer.domain.figures import whole
from installer.domain.memory import Fit, Verdict
from installer.domain.offers import (
    Offer,
    RoomEnough,
    RoomTight,
    RunsWithoutGpu,
    offer,
    offers,
    resident_bytes,
    settings_of,
)
from installer.domain.problems import (
    AnyProblem,
    BadChoice,
    DiskFull,
    InstallerError,
    LicenceNotAccepted,
    MalformedFile,
    NothingFits,
    NotWritable,
    UnknownName,
)
from installer.domain.registry import Flag, FlagValue, Profile, Registry
from installer.domain.settings import Settings
from installer.domain.sources import FolderWeights, ImageSource, Sources, VolumeWeights, WeightsPlace, WeightsSource
from installer.domain.strict_json import decoded
from installer.domain.units import Natural, Port

WEIGHTS_VOLUME = "slipway-models"
MODELS_IN_CONTAINER = "/models"
UNPACKED_OVER_COMPRESSED = 3
"""A vLLM image of about 10 GB compressed takes 25 to 30 GB in the engine's store."""

API_WITH_START_INTERVAL = (1, 44)
"""Engine 25, the first that takes a health check's start interval."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class PlannedGpu(_Part, frozen=True, kw_only=True):
    """The card that the plan is for."""

    uuid: str
    name: str


class Relaxation(_Part, frozen=True, kw_only=True):
    """One setting that was lowered after a failed start, and the kind of the failure."""

    field: str
    old: str
    new: str
    because: str


class Plan(_Part, frozen=True, kw_only=True):
    """What will be done, whole: images and files with digests and sizes, every argument with its reason.

    `release` names the image release of the registry, `resolved_at` is when registry and hub told of digests and files
    (ISO 8601, UTC), `health` is None where the image has no program to ask with.
    """

    schema: int = SCHEMA
    slipway: str
    registry_revision: str
    choices: Choices
    profile: str
    task: Literal["chat", "vision", "image"]
    gpu: PlannedGpu | None
    wsl2: bool
    release: str
    image: ImageSource
    pinned: bool
    helper: ImageSource
    weights: WeightsSource
    place: WeightsPlace
    settings: Settings
    weights_bytes: Natural
    native_context: Natural
    flags: tuple[Flag, ...]
    environment: dict[str, str]
    entrypoint: tuple[str, ...]
    health: tuple[str, ...] | None
    knows_start_interval: bool
    needs_key: bool
    thinking_off: bool
    port: Port
    container_port: Port
    fit: Fit | None
    resolved_at: str
    relaxed: tuple[Relaxation, ...] = ()

    @property
    def stack(self) -> str:
        """Return the stack that this plan is for."""
        return self.choices.stack

    @property
    def project(self) -> str:
        """Return the Compose project: it never depends on a folder's name."""
        return f"slipway-{self.choices.stack}"

    @property
    def base(self) -> str:
        """Return the address of the server."""
        return addresses.own_server(self.port)

    @property
    def endpoint(self) -> str:
        """Return the base address of the server's API."""
        return f"{self.base}/v1"

    @property
    def image_reference(self) -> str:
        """Return what the compose file names: the digest, or the tag where the person wants it to move."""
        return self.image.by_digest if self.pinned else self.image.by_tag

    @property
    def model_path(self) -> str:
        """Return where the container finds the weights."""
        return f"{MODELS_IN_CONTAINER}/{self.weights.folder}"

    @property
    def download_bytes(self) -> int:
        """Return what goes over the line at most: image and weights."""
        return self.image.size_bytes + self.weights.size_bytes

    @property
    def takes_video(self) -> bool:
        """Say whether the limit of media per request names videos."""
        limits = (flag.value for flag in self.flags if flag.flag == "--limit-mm-per-prompt")
        return self.settings.reads_media and any(
            isinstance(limit, dict) and bool(limit.get("video")) for limit in limits
        )

    @property
    def arguments(self) -> tuple[Flag, ...]:
        """Return every argument after the model, each with the reason for its value."""
        return (*_settings_as_flags(self), *self.flags)


class Present(_Part, frozen=True, kw_only=True):
    """What an earlier run left here already, so that it needs no room any more. Weights are bytes."""

    image: bool = False
    weights_bytes: Natural = 0


class Refusal(_Part, frozen=True, kw_only=True):
    """Why no plan could be made: one problem at least, the first is the one to show."""

    problems: tuple[AnyProblem, ...]


def _settings_as_flags(plan: Plan) -> tuple[Flag, ...]:
    s = plan.settings
    rows: list[tuple[str, FlagValue, str, bool]] = [
        ("--served-model-name", plan.profile, "stable_name", True),
        ("--host", "0.0.0.0", "inside_the_container", True),
        ("--port", plan.container_port, "inside_the_container", True),
        ("--max-model-len", s.context, "context_of_the_profile", True),
        ("--gpu-memory-utilization", s.utilisation, "share_that_is_free", plan.gpu is not None),
        ("--max-num-seqs", s.max_num_seqs, "sequences_cost_memory", True),
        ("--max-num-batched-tokens", s.max_num_batched_tokens, "batch_costs_memory", True),
        ("--kv-cache-dtype", s.kv_cache_dtype, "kv_fp8_halves_cache", s.kv_cache_dtype != "auto"),
        ("--enforce-eager", True, "graphs_do_not_fit", s.enforce_eager),
        ("--cudagraph-capture-sizes", " ".join(map(str, s.graph_sizes)), "fewer_graphs", bool(s.graph_sizes)),
        ("--cpu-offload-gb", s.cpu_offload_gib, "weights_in_host_memory", s.cpu_offload_gib > 0),
        ("--allowed-media-domains", addresses.HOST_IN_CONTAINER, "media_from_this_computer_only", s.reads_media),
        (video.TRUST_FLAG, True, "requests_choose_frames", plan.takes_video and video.needs_trust(s.release)),
    ]
    return tuple(Flag(flag=flag, value=value, reason=reason) for flag, value, reason, given in rows if given)


def choose_profile(facts: Facts, registry: Registry, choices: Choices) -> Offer | Refusal:
    """Return the offer that will be planned: the chosen profile, or the best one that fits this stack.

    Nothing is chosen for a person that only fits tightly.
    """
    problem = _unknown_names(facts, registry, choices)
    if problem:
        return Refusal(problems=(problem,))
    if choices.profile is not None:
        return _offer_of(facts, registry, choices, choices.profile)
    mine = [o for o in offers(facts, registry, choices.gpu_uuid) if registry.profiles[o.profile].stack == choices.stack]
    best = next((o for o in mine if o.verdict is Verdict.FITS and registry.profiles[o.profile].recommended), None)
    if best is not None:
        return _offer_of(facts, registry, choices, best.profile)
    machine = checks.machine(facts)
    names = ", ".join(gpu.name for gpu in facts.nvidia.gpus)
    return Refusal(problems=machine or (NothingFits(gpu=names),))


def _unknown_names(facts: Facts, registry: Registry, choices: Choices) -> AnyProblem | None:
    if choices.profile is not None and choices.profile not in registry.profiles:
        return UnknownName(field="profile", value=choices.profile, known=tuple(registry.profiles))
    if choices.gpu_uuid is not None and facts.nvidia.gpus and facts.gpu(choices.gpu_uuid) is None:
        return UnknownName(field="gpu_uuid", value=choices.gpu_uuid, known=tuple(g.uuid for g in facts.nvidia.gpus))
    return None


def _offer_of(
    facts: Facts, registry: Registry, choices: Choices, name: str, weights: WeightsSource | None = None
) -> Offer:
    """Judge the profile on the card that was chosen, or on the one that suits it best."""
    candidates = [gpu for gpu in facts.nvidia.gpus if choices.gpu_uuid in (None, gpu.uuid)]
    judged = [offer(facts, registry, name, gpu, choices.context, weights) for gpu in candidates]
    if not judged or not registry.profiles[name].gpu:
        return offer(facts, registry, name, None, choices.context, weights)
    order = list(Verdict)
    return min(judged, key=lambda o: (order.index(o.verdict), -(o.fit.spare_bytes if o.fit else 0)))


def decide(
    facts: Facts,
    registry: Registry,
    sources: Sources,
    choices: Choices,
    *,
    slipway: str,
    present: Present | None = None,
) -> Plan | Refusal:
    """Make the plan for one profile whose sources are known, or say everything that stands against it.

    `slipway` is the version that decides; `present` is what needs no room on disk any more.
    """
    name = sources.profile
    profile = registry.profile(name)
    chosen = _offer_of(facts, registry, choices, name, sources.weights)
    gpu = facts.gpu(chosen.gpu_uuid) if chosen.gpu_uuid and profile.gpu else None
    problems = (
        *_against_choices(registry, name, profile, choices),
        *_against_machine(chosen),
        *_against_image(facts, profile, sources),
        *_against_disk(facts, sources, present or Present()),
    )
    if problems:
        return Refusal(problems=problems)
    return _planned(facts, registry, sources, choices, gpu, slipway)


def _against_choices(registry: Registry, name: str, profile: Profile, choices: Choices) -> tuple[AnyProblem, ...]:
    model, licence = registry.model_of(profile), registry.licence_of(profile)
    found: list[AnyProblem] = []
    if profile.stack != choices.stack:
        found.append(BadChoice(field="stack", value=choices.stack, limit=profile.stack))
    if choices.context is not None and choices.context > model.native_context:
        found.append(BadChoice(field="context", value=str(choices.context), limit=f"<= {model.native_context}"))
    if choices.references is not None and choices.references > profile.max_references:
        found.append(BadChoice(field="references", value=str(choices.references), limit=f"<= {profile.max_references}"))
    if choices.vram_budget_gib is not None and profile.task != "image":
        found.append(BadChoice(field="vram_budget_gib", value=str(choices.vram_budget_gib), limit="task: image"))
    if not licence.free and licence.id not in choices.accept_licenses:
        found.append(LicenceNotAccepted(profile=name, licence=licence.id, url=licence.url))
    return tuple(found)


def _against_machine(chosen: Offer) -> tuple[AnyProblem, ...]:
    if chosen.verdict in (Verdict.FITS, Verdict.TIGHT):
        return ()
    if isinstance(chosen.reason, RoomEnough | RoomTight | RunsWithoutGpu):
        raise AssertionError(chosen.reason.kind)
    return (chosen.reason,)


def _against_image(facts: Facts, profile: Profile, sources: Sources) -> tuple[AnyProblem, ...]:
    """Let the image's own demand on the driver have the last word over the registry's."""
    cuda = required_cuda(sources.image.requires_cuda)
    return checks.driver(facts, sources.image.by_tag, cuda) if profile.gpu else ()


def required_cuda(requirement: str) -> str | None:
    """Return the version in an image's NVIDIA_REQUIRE_CUDA, such as "cuda>=13.0 brand=…"; None if there is none."""
    first = requirement.split(" ", 1)[0]
    name, _, version = first.partition(">=")
    major, dot, minor = version.partition(".")
    return version if name == "cuda" and dot and major.isdigit() and minor.isdigit() else None


def _against_disk(facts: Facts, sources: Sources, present: Present) -> tuple[AnyProblem, ...]:
    image = 0 if present.image else UNPACKED_OVER_COMPRESSED * sources.image.size_bytes
    weights = max(0, sources.weights.size_bytes - present.weights_bytes)
    if facts.engine.docker_desktop:
        return _engine_room(facts, image + weights)
    return _engine_room(facts, image) + _folder_room(facts, weights)


def _engine_room(facts: Facts, needed: int) -> tuple[AnyProblem, ...]:
    free = facts.engine.data_root_free_bytes
    if free is None or free >= needed:
        return ()
    return (DiskFull(where=facts.engine.data_root, needed_bytes=needed, free_bytes=free, engine=True),)


def _folder_room(facts: Facts, needed: int) -> tuple[AnyProblem, ...]:
    folder = facts.weights_folder
    if not folder.writable:
        return (NotWritable(path=folder.path),)
    if folder.free_bytes is None or folder.free_bytes >= needed:
        return ()
    return (DiskFull(where=folder.path, needed_bytes=needed, free_bytes=folder.free_bytes),)


def _capability(gpu: Gpu | None) -> tuple[int, int] | None:
    return None if gpu is None or isinstance(gpu.compute_capability, Missing) else gpu.compute_capability


def _planned(
    facts: Facts, registry: Registry, sources: Sources, choices: Choices, gpu: Gpu | None, slipway: str
) -> Plan:
    profile = registry.profile(sources.profile)
    model, image = registry.model_of(profile), registry.image_of(profile)
    chosen = offer(facts, registry, sources.profile, gpu, choices.context, sources.weights)
    settings = settings_of(profile, image, choices.context, gpu)
    if chosen.fit:
        settings = msgspec.structs.replace(settings, utilisation=chosen.fit.utilisation)
    return Plan(
        slipway=slipway,
        registry_revision=registry.revision,
        choices=choices,
        profile=sources.profile,
        task=profile.task,
        gpu=PlannedGpu(uuid=gpu.uuid, name=gpu.name) if gpu else None,
        wsl2=facts.behind_wsl2,
        release=profile.image,
        image=sources.image,
        pinned=choices.docker_image_pin_digest != "",
        helper=sources.helper,
        weights=sources.weights,
        place=place_of(facts, sources),
        settings=settings,
        weights_bytes=resident_bytes(registry, profile, sources.weights),
        native_context=model.native_context,
        flags=profile.flags,
        environment=profile.environment_on(_capability(gpu), wsl2=facts.behind_wsl2),
        entrypoint=image.entrypoint,
        health=image.health,
        knows_start_interval=_api(facts.engine.api_version) >= API_WITH_START_INTERVAL,
        needs_key=image.auth == "key",
        thinking_off=profile.thinking_off,
        port=choices.port or next(iter(facts.ports.free), 8000),
        container_port=image.port,
        fit=chosen.fit,
        resolved_at=sources.resolved_at,
    )


def place_of(facts: Facts, sources: Sources) -> WeightsPlace:
    """Choose where the weights lie: a bind mount from NTFS into Docker Desktop reads at about 20 MB/s."""
    if facts.engine.docker_desktop:
        return VolumeWeights(volume=WEIGHTS_VOLUME, helper=sources.helper.by_digest)
    return FolderWeights(folder=facts.weights_folder.path)


def _api(version: str) -> tuple[int, int]:
    major, minor = map(whole, version.partition(".")[::2])
    return (0, 0) if major is None or minor is None else (major, minor)


def decide_again(plan: Plan, facts: Facts, registry: Registry, cuda: CudaMemory | None) -> Plan | Refusal:
    """Decide with CUDA's own figure, which has the last word before the big pull and before the start."""
    if plan.gpu is None or cuda is None:
        return plan
    gpu = facts.with_cuda(plan.gpu.uuid, cuda).gpu(plan.gpu.uuid)
    if gpu is None:
        return Refusal(problems=(UnknownName(field="gpu_uuid", value=plan.gpu.uuid, known=()),))
    seen = facts.with_cuda(plan.gpu.uuid, cuda)
    chosen = offer(seen, registry, plan.profile, gpu, plan.choices.context, plan.weights)
    against = _against_machine(chosen)
    if against:
        return Refusal(problems=against)
    assert chosen.fit is not None
    utilisation = chosen.fit.utilisation
    if any(step.field == "utilisation" for step in plan.relaxed):
        utilisation = min(utilisation, plan.settings.utilisation)
    settings = msgspec.structs.replace(plan.settings, utilisation=utilisation)
    return msgspec.structs.replace(plan, settings=settings, fit=chosen.fit)


def disk_refusal(plan: Plan, data_root: str, free_bytes: int, present: Present) -> Refusal | None:
    """Say whether the engine's own disk, as a container saw it, has no room for what is not `present` there yet."""
    needed = 0 if present.image else UNPACKED_OVER_COMPRESSED * plan.image.size_bytes
    if isinstance(plan.place, VolumeWeights):
        needed += max(0, plan.weights.size_bytes - present.weights_bytes)
    if free_bytes >= needed:
        return None
    return Refusal(problems=(DiskFull(where=data_root, needed_bytes=needed, free_bytes=free_bytes, engine=True),))


def refusal_of(chosen: Offer, registry: Registry, choices: Choices) -> Refusal | None:
    """Say what stands against an offer before the network was asked."""
    profile = registry.profile(chosen.profile)
    problems = (*_against_choices(registry, chosen.profile, profile, choices), *_against_machine(chosen))
    return Refusal(problems=problems) if problems else None


def to_json(plan: Plan) -> bytes:
    """Return a plan as it is written to disk."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n"


def from_json(text: str | bytes, path: str) -> Plan:
    """Read a plan. Raises InstallerError(MalformedFile) with the path inside the document and the reason."""
    plan = decoded(text, Plan, path)
    if plan.schema != SCHEMA:
        raise InstallerError(MalformedFile(path=path, where="$.schema", reason=f"expected {SCHEMA}"))
    return plan

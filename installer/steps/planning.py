"""From facts and choices to a plan, with what the network knows: the read and decide phases in one call."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from installer import __version__
from installer.domain import checks, compose
from installer.domain import plan as plans
from installer.domain.choices import Choices, pinned_digest
from installer.domain.facts import Facts, Gpu, GpuMemory
from installer.domain.facts import Ports as FreePorts
from installer.domain.plan import Plan, Present, Refusal
from installer.domain.problems import DigestGone, InstallerError
from installer.domain.registry import Registry
from installer.domain.sources import FolderWeights, ImageSource, WeightsPlace, WeightsSource
from installer.steps import read, start
from installer.steps.home import Home
from installer.steps.job import Job
from installer.steps.ports import Ports


def plan_to_install(choices: Choices, job: Job, home: Home) -> tuple[Job, Plan]:
    """Go on with the earlier plan if it answers the same choices, otherwise make a new one; nothing is changed yet.

    Returns the job with the facts that the plan was made from. Raises InstallerError with what stands against it.
    """
    blocking = checks.engine(job.facts) + checks.compose(job.facts)
    if blocking:
        raise InstallerError(blocking[0])
    old = job.home.plan()
    if old is not None and resumable(old, job.registry, choices, job.facts) and not _should_try_anew(old, job):
        if not _digest_is_gone(old, job):
            return job, old
        old = None
    facts = without_ours(job.facts, old) if old is not None and _runs(old, job) else job.facts
    made = planned(facts, job.registry, choices, job.ports, home)
    if isinstance(made, Refusal):
        raise InstallerError(made.problems[0])
    return replace(job, facts=facts), made


def _should_try_anew(old: Plan, job: Job) -> bool:
    """Begin with the full settings again where the last run had lowered some and they were never proved."""
    proof = job.home.proof()
    return bool(old.relaxed) and (proof is None or proof.start.fingerprint != compose.fingerprint(old))


def _digest_is_gone(old: Plan, job: Job) -> bool:
    """Say whether an image that was never pulled is gone from its registry: a tag moved on, nobody pinned the old one.

    A digest that a person named stays: what to take in its place is theirs to say.
    """
    if pinned_digest(old.choices) or old.release not in job.registry.images or job.ports.engine.has_image(old.image):
        return False
    try:
        release = job.registry.images[old.release]
        job.ports.images.resolve(release, old.image.platform, old.image.index_digest)
    except InstallerError as error:
        return isinstance(error.problem, DigestGone)
    return False


def _runs(old: Plan, job: Job) -> bool:
    container = start.current_container(old, job)
    return container is not None and container.status == "running"


def without_ours(facts: Facts, old: Plan) -> Facts:
    """Return the machine as it will be once our server of an earlier plan is stopped: another plan is judged on that.

    What the server holds is taken from its plan; CUDA's own figure follows when it is really stopped.
    """
    share = round(old.fit.budget.total_bytes * old.settings.utilisation) if old.fit else 0
    gpus = tuple(_freed(gpu, share) if old.gpu and gpu.uuid == old.gpu.uuid else gpu for gpu in facts.nvidia.gpus)
    ports = FreePorts(free=tuple(sorted({*facts.ports.free, old.port})))
    nvidia = msgspec.structs.replace(facts.nvidia, gpus=gpus)
    return msgspec.structs.replace(facts, nvidia=nvidia, ports=ports)


def _freed(gpu: Gpu, share_bytes: int) -> Gpu:
    if not isinstance(gpu.memory, GpuMemory):
        return gpu
    seen = gpu.memory
    free_bytes = min(seen.total_bytes - seen.reserved_bytes, seen.free_bytes + share_bytes)
    memory = msgspec.structs.replace(
        seen, free_bytes=free_bytes, used_bytes=max(0, seen.total_bytes - seen.reserved_bytes - free_bytes)
    )
    return msgspec.structs.replace(gpu, memory=memory, cuda=None)


def planned(facts: Facts, registry: Registry, choices: Choices, ports: Ports, home: Home) -> Plan | Refusal:
    """Choose the profile, resolve its sources and decide.

    What the machine refuses is said before the network is asked. Raises the problems of `read.sources`.
    """
    chosen = plans.choose_profile(facts, registry, choices)
    if isinstance(chosen, Refusal):
        return chosen
    refused = plans.refusal_of(chosen, registry, choices)
    if refused:
        return refused
    sources = read.sources(facts, registry, chosen.profile, choices, ports, home)
    there = present(sources.image, sources.helper, sources.weights, plans.place_of(facts, sources), ports)
    return plans.decide(facts, registry, sources, choices, slipway=__version__, present=there)


def present(
    image: ImageSource, helper: ImageSource, weights: WeightsSource, place: WeightsPlace, ports: Ports
) -> Present:
    """Say what an earlier run left here already, so that it needs no room any more.

    Only the helper image can look into a volume, and it may not be there yet.
    """
    can_look = isinstance(place, FolderWeights) or ports.engine.has_image(helper)
    missing = ports.hub.missing_bytes(weights, place) if can_look else weights.size_bytes
    return Present(image=ports.engine.has_image(image), weights_bytes=weights.size_bytes - missing)


def resumable(old: Plan, registry: Registry, choices: Choices, facts: Facts) -> bool:
    """Say whether an earlier plan answers the same choices here, so that running again is going on with it."""
    return (
        old.choices == choices
        and (old.gpu is None or facts.gpu(old.gpu.uuid) is not None)
        and old.registry_revision == registry.revision
        and old.slipway == __version__
    )

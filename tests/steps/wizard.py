"""A person in the wizard over a recorded machine, without a window and without a network."""

from __future__ import annotations

from typing import Any

import msgspec

from installer.domain import compose
from installer.domain.choices import Choices, pinned_digest
from installer.domain.facts import Facts, Gpu, GpuMemory
from installer.domain.plan import Plan, Present, place_of
from installer.domain.registry import Registry
from installer.domain.sources import WeightFile
from installer.steps import flow as flows
from installer.steps.flow import Answer, Flow, Page
from installer.steps.install import Installed
from installer.steps.lifecycle import Status
from installer.steps.smoke import SmokeReport, Start
from tests.builders import COMMIT, digest_of, image, recorded, shipped_registry, sources

LARGE, OTHER, SMALL = "qwen3.6-27b-nvfp4-64k", "qwen3.8-27b-nvfp4-32k", "qwen3.5-4b-fp8-8gb"
LICENSED = next(
    name
    for name, profile in shipped_registry().profiles.items()
    if not shipped_registry().licence_of(profile).free and profile.backend == "vllm"
)


def answer(flow: Flow, **changes: Any) -> Answer:
    """What registry and hub would say of the profile in force; nothing of it is here yet."""
    assert flow.profile is not None
    assert flow.facts is not None
    pin = pinned_digest(flow.choices)
    release = flow.registry.image_of(flow.registry.profile(flow.profile))
    known = sources(flow.profile, flow.registry)
    if pin is not None:
        known = sources(flow.profile, flow.registry, image=image(release.repo, release.tag, index_digest=pin))
    values: dict[str, Any] = {"sources": known, "pin": pin, "place": place_of(flow.facts, known), "present": Present()}
    return Answer(**(values | changes))


def began(machine: str = "rtx-5090-linux", choices: Choices | None = None, registry: Registry | None = None) -> Flow:
    """The first page, after the machine was read."""
    return flows.seen(flows.opened(registry or shipped_registry(), choices=choices), recorded(machine))


def at(page: Page, machine: str = "rtx-5090-linux", **choices: Any) -> Flow:
    """As far as a page, by going on; the network answers when it is asked."""
    return walked(flows.chose(began(machine), **choices), page)


def walked(flow: Flow, page: Page) -> Flow:
    """Go on to a page; the network answers when it is asked."""
    while flow.page is not page:
        if flows.needs_sources(flow):
            flow = flows.resolved(flow, answer(flow))
        after = flows.forward(flow)
        assert after != flow, f"{flow.page} does not let go: {flows.standing(flow).reason}"
        flow = after
    return flow


def plan_of(machine: str = "rtx-5090-linux", **choices: Any) -> Plan:
    """The plan that the summary shows."""
    plan = at(Page.SUMMARY, machine, **choices).plan
    assert plan is not None
    return plan


def installed(plan: Plan) -> Installed:
    """The end of an installation that was proved."""
    start = Start(container="c", started_at="2026-12-01T00:00:00Z", fingerprint=compose.fingerprint(plan))
    return Installed(plan=plan, report=SmokeReport(start=start, at="2026-12-01T00:00:00Z", checks=()))


def status(plan: Plan) -> Status:
    """What `lifecycle.status` tells of a plan that serves."""
    return Status(
        stack=plan.stack,
        state="serving",
        profile=plan.profile,
        model=plan.weights.repo,
        context=plan.settings.context,
        endpoint=f"http://127.0.0.1:{plan.port}/v1",
        image=plan.image_reference,
        image_digest=plan.image.index_digest,
        pinned=plan.pinned,
        compose_file="docker-compose.vllm.yml",
        container=None,
        proof=None,
        figures=None,
    )


def with_used(facts: Facts, used_bytes: int, index: int = 0) -> Facts:
    """The same machine while other programs hold so much more of one card."""

    def taken(gpu: Gpu) -> Gpu:
        assert isinstance(gpu.memory, GpuMemory)
        seen = gpu.memory
        memory = msgspec.structs.replace(
            seen, free_bytes=seen.free_bytes - used_bytes, used_bytes=seen.used_bytes + used_bytes
        )
        return msgspec.structs.replace(gpu, memory=memory)

    gpus = tuple(taken(gpu) if gpu.index == index else gpu for gpu in facts.nvidia.gpus)
    return msgspec.structs.replace(facts, nvidia=msgspec.structs.replace(facts.nvidia, gpus=gpus))


def heavier(flow: Flow, checkpoint_bytes: int) -> Answer:
    """What the hub would say if the checkpoint were as large as this."""
    known = answer(flow)
    shard = WeightFile(
        path="model.safetensors", size_bytes=checkpoint_bytes, sha256=digest_of("x").removeprefix("sha256:")
    )
    weights = msgspec.structs.replace(known.sources.weights, commit=COMMIT, files=(shard,))
    return answer(flow, sources=msgspec.structs.replace(known.sources, weights=weights))

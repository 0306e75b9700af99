"""Offers on the recorded machines: what a person with that card is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from installer.domain.checks import machine as machine_problems
from installer.domain.facts import GpuMemory
from installer.domain.kv_layers import CannotLayOut
from installer.domain.levers import Case
from installer.domain.memory import Verdict
from installer.domain.offers import Offer, longest_context_here, offer, offers, settings_of
from installer.domain.registry import SERVED_BACKENDS, Flag, Registry
from installer.domain.units import gib
from tests.builders import MACHINES, recorded, shipped_registry

REGISTRY = shipped_registry()


def offered(machine: str, gpu_uuid: str | None = None) -> dict[str, Offer]:
    return {each.profile: each for each in offers(recorded(machine), REGISTRY, gpu_uuid)}


def recommended(machine: str) -> str | None:
    return next((each.profile for each in offered(machine).values() if each.recommended), None)


@pytest.mark.parametrize(
    ("machine", "profile"),
    [
        ("rtx-5090-linux", "qwen3.6-27b-nvfp4-64k"),
        ("rtx-5090-wsl2", "qwen3.6-27b-nvfp4-64k"),
        ("two-cards-16-and-32gb", "qwen3.6-27b-nvfp4-64k"),
        ("rtx-4090", "qwen3.8-27b-int4-24gb"),
        ("rtx-5090-laptop-24gb", "qwen3.8-27b-int4-24gb"),
        ("t4", "qwen3-14b-awq-16gb"),
        ("rtx-4060-8gb", "qwen3.5-4b-fp8-8gb"),
        ("rtx-3060-12gb", "qwen3.5-4b-fp8-12gb"),
        ("rtx-5080", "qwen3-14b-nvfp4-16gb"),
        ("rtx-3090", "gpt-oss-20b-24gb"),
        ("rtx-pro-6000", "qwen3.8-27b-fp8-48gb"),
        ("no-nvidia-card", "cpu-trial"),
        ("engine-without-nvidia-toolkit", "cpu-trial"),
        ("engine-down", None),
        ("podman-socket", None),
    ],
)
def test_what_is_recommended(machine: str, profile: str | None):
    assert recommended(machine) == profile


@pytest.mark.parametrize("machine", MACHINES)
def test_every_profile_has_a_verdict_with_a_reason_and_at_most_one_is_recommended(machine: str):
    found = offered(machine)
    assert set(found) == set(REGISTRY.profiles)
    assert sum(each.recommended for each in found.values()) <= 1
    for each in found.values():
        assert each.reason.kind
        assert (each.verdict is Verdict.FITS) == (each.reason.kind in ("room_enough", "runs_without_gpu"))
        assert (each.verdict is Verdict.TIGHT) == (each.reason.kind == "room_tight")


@pytest.mark.parametrize(
    ("machine", "kind"),
    [
        ("engine-down", "engine_down"),
        ("podman-socket", "engine_is_podman"),
        ("no-nvidia-card", "no_nvidia_driver"),
        ("engine-without-nvidia-toolkit", "nvidia_toolkit_missing"),
        ("h100-mig", "mig_not_served"),
        ("rtx-3090-old-driver", "driver_too_old"),
    ],
)
def test_what_blocks_a_machine_is_said_and_is_not_a_question_of_room(machine: str, kind: str):
    offer = offered(machine)["qwen3-8b-awq-8gb"]
    assert (offer.verdict, offer.reason.kind) == (Verdict.BLOCKED, kind)


def test_the_spike_s_profile_is_tight_under_wsl2_and_never_recommended():
    offer = offered("rtx-5090-wsl2")["qwen3.6-27b-nvfp4-spike"]
    assert (offer.verdict, offer.recommended, offer.fit.utilisation) == (Verdict.TIGHT, False, 0.94)


def test_a_16_gb_blackwell_card_does_not_get_the_27b_although_its_capability_would_do():
    assert offered("rtx-5080")["qwen3.6-27b-nvfp4-64k"].verdict is Verdict.NO


def test_nvfp4_needs_blackwell_whatever_the_memory():
    assert offered("rtx-3090")["qwen3.6-27b-nvfp4-64k"].reason.kind == "capability_too_low"


def test_the_card_s_name_decides_nothing():
    facts = recorded("rtx-5090-laptop-24gb")
    gpus = tuple(msgspec.structs.replace(gpu, name="NVIDIA GeForce RTX 5090") for gpu in facts.nvidia.gpus)
    renamed = msgspec.structs.replace(facts, nvidia=msgspec.structs.replace(facts.nvidia, gpus=gpus))
    named = [(o.profile, o.verdict, o.recommended) for o in offers(facts, REGISTRY)]
    assert named == [(o.profile, o.verdict, o.recommended) for o in offers(renamed, REGISTRY)]


def test_on_two_cards_each_profile_gets_the_better_one_and_a_named_one_is_kept_to():
    small, large = recorded("two-cards-16-and-32gb").nvidia.gpus
    assert offered("two-cards-16-and-32gb")["qwen3.6-27b-nvfp4-64k"].gpu_uuid == large.uuid
    on_small = offered("two-cards-16-and-32gb", small.uuid)["qwen3.6-27b-nvfp4-64k"]
    assert (on_small.gpu_uuid, on_small.verdict) == (small.uuid, Verdict.NO)


def test_a_busy_card_is_told_what_to_free_instead_of_that_it_is_too_small():
    facts = recorded("rtx-5090-linux")
    (gpu,) = facts.nvidia.gpus
    assert isinstance(gpu.memory, GpuMemory)
    busy = msgspec.structs.replace(gpu, memory=msgspec.structs.replace(gpu.memory, free_bytes=gib(12)), cuda=None)
    facts = msgspec.structs.replace(facts, nvidia=msgspec.structs.replace(facts.nvidia, gpus=(busy,)))
    offer = next(o for o in offers(facts, REGISTRY) if o.profile == "qwen3.6-27b-nvfp4-64k")
    assert (offer.verdict, offer.reason.kind) == (Verdict.NO, "not_enough_free_memory")
    assert gib(13) < offer.reason.short_bytes < gib(19)


@pytest.mark.parametrize("machine", MACHINES)
def test_what_this_version_cannot_start_is_never_offered(machine: str):
    for name, each in offered(machine).items():
        if REGISTRY.profiles[name].backend not in SERVED_BACKENDS:
            assert (each.verdict, each.recommended) == (Verdict.BLOCKED, False)


@pytest.mark.parametrize(
    ("machine", "profile", "kind", "reason"),
    [
        ("rtx-pro-6000", "qwen-image-2.1-bf16-24gb", "not_served_yet", None),
        ("rtx-5080", "qwen-image-2.1-bf16-24gb", "profile_blocked", "init_out_of_memory"),
        ("rtx-3090", "qwen-image-2.1-fp8-24gb", "profile_blocked", "fp8_output_broken"),
        ("rtx-4090", "qwen-image-2.1-fp8-24gb", "profile_blocked", "fp8_output_broken"),
        ("rtx-5090-linux", "qwen3.6-27b-nvfp4-fp4-cache-64k", "profile_blocked", "fp4_cache_crashes"),
        ("rtx-5090-wsl2", "qwen3.6-27b-fp8-48gb", "profile_blocked", "no_room_for_context"),
        ("t4", "qwen-image-2.1-int8-16gb", "capability_too_low", None),
    ],
)
def test_a_measured_failure_is_a_better_reason_than_that_it_is_not_served(
    machine: str, profile: str, kind: str, reason: str | None
):
    offer = offered(machine)[profile]
    assert (offer.verdict, offer.reason.kind) == (Verdict.BLOCKED, kind)
    assert getattr(offer.reason, "reason", None) == reason


def test_one_server_over_several_cards_is_not_offered_yet():
    profile = msgspec.structs.replace(REGISTRY.profile("qwen3.6-27b-nvfp4-64k"), tensor_parallel=2)
    registry = msgspec.structs.replace(REGISTRY, profiles={**REGISTRY.profiles, "two-cards": profile})
    found = {offer.profile: offer for offer in offers(recorded("two-cards-16-and-32gb"), registry)}
    assert (found["two-cards"].verdict, found["two-cards"].reason.kind) == (Verdict.BLOCKED, "not_served_yet")


@pytest.mark.parametrize("machine", MACHINES)
def test_the_order_is_task_then_fit_then_evidence_for_this_card_then_quality(machine: str):
    def rank(offer: Offer) -> tuple[int, ...]:
        profile = REGISTRY.profiles[offer.profile]
        return (
            ("chat", "images").index(profile.stack),
            ("fits", "tight", "no", "blocked").index(offer.verdict),
            not profile.recommended,
            ("measured", "documented", "derived").index(offer.evidence_here),
            -profile.quality,
        )

    ranks = [rank(offer) for offer in offered(machine).values()]
    assert ranks == sorted(ranks)


def test_what_was_measured_on_another_class_of_card_is_only_derived_here():
    here, elsewhere = offered("rtx-5090-linux"), offered("rtx-pro-6000")
    assert here["qwen3.5-35b-a3b-gptq-32gb"].evidence_here == "measured"
    assert elsewhere["qwen3.5-35b-a3b-gptq-32gb"].evidence_here == "derived"
    assert elsewhere["qwen3.6-27b-nvfp4-64k"].evidence_here == "documented"


def test_untested_is_judged_by_class_of_card():
    assert not offered("rtx-5090-linux")["qwen3.6-27b-nvfp4-64k"].untested
    assert offered("rtx-pro-6000")["qwen3.6-27b-nvfp4-64k"].untested


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_has_problems_exactly_if_no_gpu_profile_can_be_offered(machine: str):
    problems = machine_problems(recorded(machine))
    blocked = all(
        offer.verdict is Verdict.BLOCKED for offer in offered(machine).values() if REGISTRY.profiles[offer.profile].gpu
    )
    per_card = {"h100-mig", "rtx-3090-old-driver"}
    assert bool(problems) == (blocked and machine not in per_card)


def with_profile(name: str, flags: tuple[Flag, ...] = (), **changes: Any) -> Registry:
    shipped = shipped_registry()
    profile = shipped.profile(name)
    changed = msgspec.structs.replace(profile, flags=(*profile.flags, *flags), **changes)
    return msgspec.structs.replace(shipped, profiles={**shipped.profiles, name: changed})


@pytest.mark.parametrize(
    ("flag", "value", "field", "expected"),
    [
        ("--block-size", 64, "block_tokens", 64),
        ("--speculative-config", {"method": "mtp", "num_speculative_tokens": 3}, "speculative_tokens", 3),
        ("--mamba-cache-mode", "all", "mamba_cache_mode", "all"),
        ("--enable-prefix-caching", True, "mamba_cache_mode", "align"),
        ("--no-enable-prefix-caching", True, "mamba_cache_mode", "none"),
        ("--no-async-scheduling", True, "async_scheduling", False),
    ],
)
def test_an_argument_that_costs_memory_reaches_the_oracle(flag: str, value: Any, field: str, expected: object):
    registry = with_profile("qwen3.6-27b-nvfp4-64k", (Flag(flag=flag, value=value, reason="as_in_the_spike"),))
    profile = registry.profile("qwen3.6-27b-nvfp4-64k")
    assert getattr(settings_of(profile, registry.image_of(profile)), field) == expected


def test_drafting_costs_memory():
    name, draft = "qwen3.6-27b-nvfp4-64k", {"method": "mtp", "num_speculative_tokens": 3}
    facts = recorded("rtx-5090-linux")
    plain = offer(facts, shipped_registry(), name, facts.nvidia.gpus[0])
    registry = with_profile(name, (Flag(flag="--speculative-config", value=draft, reason="as_in_the_spike"),))
    drafting = offer(facts, registry, name, facts.nvidia.gpus[0])
    assert drafting.fit.estimate.kv_bytes > plain.fit.estimate.kv_bytes


def test_a_cache_that_the_release_cannot_lay_out_is_said_and_not_raised(monkeypatch: pytest.MonkeyPatch):
    def refuses(*_: object, **__: object) -> None:
        raise CannotLayOut("sliding layers beside MLA")

    monkeypatch.setattr(Case, "judge", refuses)
    facts = recorded("rtx-5090-linux")
    seen = offer(facts, shipped_registry(), "qwen3.6-27b-nvfp4-64k", facts.nvidia.gpus[0])
    assert (seen.verdict, seen.reason.kind) == (Verdict.BLOCKED, "cache_not_laid_out")


def test_what_is_tight_or_does_not_fit_carries_what_would_gain_memory():
    seen = {each.profile: each for each in offers(recorded("rtx-4060-ti-16gb"), shipped_registry())}
    judged = [each for each in seen.values() if each.fit and each.verdict is not Verdict.FITS]
    assert judged
    assert all(lever.gained_bytes > 0 for each in judged for lever in each.levers)
    assert any(lever.verdict is Verdict.FITS for each in judged for lever in each.levers)


def test_the_longest_context_that_fits_does_and_a_longer_one_does_not():
    facts, registry, name = recorded("rtx-5090-linux"), shipped_registry(), "qwen3.6-27b-nvfp4-64k"
    gpu = facts.nvidia.gpus[0]
    longest = longest_context_here(facts, registry, offer(facts, registry, name, gpu))
    assert offer(facts, registry, name, gpu, longest).verdict is Verdict.FITS
    assert offer(facts, registry, name, gpu, longest + 1024).verdict is not Verdict.FITS

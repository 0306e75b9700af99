"""Deciding: what is planned, what is refused and with which Problem, all of it before a byte is fetched."""

from __future__ import annotations

import msgspec
import pytest

from installer.domain import plan as plans
from installer.domain.choices import Choices
from installer.domain.facts import CudaMemory, Folder
from installer.domain.offers import Offer
from installer.domain.plan import Plan, Present, Refusal, choose_profile, decide, decide_again, required_cuda
from installer.domain.problems import InstallerError, MalformedFile
from installer.domain.registry import SERVED_BACKENDS
from installer.domain.sources import WeightFile, WeightsSource
from installer.domain.units import GB, gib
from tests.builders import COMMIT, decided, image, planned, recorded, shipped_registry, sources

REGISTRY = shipped_registry()
P27 = "qwen3.6-27b-nvfp4-64k"


def kinds(refusal: Plan | Refusal | Offer) -> list[str]:
    assert isinstance(refusal, Refusal)
    return [problem.kind for problem in refusal.problems]


def test_the_plan_holds_every_argument_with_a_reason():
    plan = planned()
    assert all(flag.reason for flag in plan.arguments)
    assert len({flag.flag for flag in plan.arguments}) == len(plan.arguments)
    known = REGISTRY.flags["0.33.0"]
    assert {flag.flag for flag in plan.arguments} <= known


@pytest.mark.parametrize(
    "profile", [name for name, p in REGISTRY.profiles.items() if p.gpu and p.backend in SERVED_BACKENDS]
)
def test_every_profile_s_arguments_exist_in_its_release(profile: str):
    wanted = REGISTRY.profile(profile)
    machine = "gb10" if wanted.min_capability == "12.1" else "rtx-pro-6000"
    licences = tuple(REGISTRY.licences)
    plan = decided(machine, profile, Choices(folder="/home/user/models", accept_licenses=licences))
    if any("12.0" in block.capabilities for block in wanted.blocks):
        assert kinds(plan) == ["profile_blocked"]
        return
    assert isinstance(plan, Plan), plan
    flags = REGISTRY.flags[REGISTRY.image_of(wanted).flags or ""]
    assert {flag.flag for flag in plan.arguments} <= flags


def test_without_a_profile_the_recommended_one_is_taken_and_nothing_tight():
    chosen = choose_profile(recorded("rtx-5090-wsl2"), REGISTRY, Choices())
    assert isinstance(chosen, Offer)
    assert chosen.profile == P27


def test_a_machine_that_offers_nothing_says_what_is_wrong_with_it():
    assert kinds(choose_profile(recorded("podman-socket"), REGISTRY, Choices())) == ["engine_is_podman"]


@pytest.mark.parametrize(
    ("choices", "kind"),
    [
        (Choices(profile="no-such"), "unknown_name"),
        (Choices(gpu_uuid="GPU-00000000-0000-0000-0000-00000000dead"), "unknown_name"),
    ],
)
def test_a_name_that_does_not_exist_is_refused_with_those_that_do(choices: Choices, kind: str):
    refusal = choose_profile(recorded("rtx-5090-linux"), REGISTRY, choices)
    assert kinds(refusal) == [kind]
    assert refusal.problems[0].known


@pytest.mark.parametrize(
    ("choices", "field"),
    [
        (Choices(stack="images", folder="/m"), "stack"),
        (Choices(context=1_000_000, folder="/m"), "context"),
        (Choices(references=2, folder="/m"), "references"),
        (Choices(vram_budget_gib=8.0, folder="/m"), "vram_budget_gib"),
    ],
)
def test_a_choice_that_this_profile_cannot_take_names_its_field(choices: Choices, field: str):
    refusal = decided("rtx-5090-linux", P27, choices)
    assert refusal.problems[0].kind == "bad_choice"
    assert refusal.problems[0].field == field


def test_a_licence_that_is_not_free_is_never_accepted_by_silence():
    model = REGISTRY.models[REGISTRY.profile(P27).model]
    closed = msgspec.structs.replace(REGISTRY.licences[model.licence], free=False)
    registry = msgspec.structs.replace(REGISTRY, licences=REGISTRY.licences | {model.licence: closed})
    facts = recorded("rtx-5090-linux")
    refused = decide(facts, registry, sources(P27), Choices(folder="/m"), slipway="1")
    assert kinds(refused) == ["licence_not_accepted"]
    agreed = Choices(folder="/m", accept_licenses=(closed.id,))
    assert isinstance(decide(facts, registry, sources(P27), agreed, slipway="1"), Plan)


def test_the_image_s_own_demand_on_the_driver_has_the_last_word():
    newer = image(requires_cuda="cuda>=99.0 brand=tesla,driver>=470")
    refusal = decided("rtx-5090-linux", P27, image=newer)
    assert kinds(refusal) == ["driver_too_old"]
    assert refusal.problems[0].image_cuda == "99.0"


@pytest.mark.parametrize(
    ("text", "version"),
    [("cuda>=13.0 brand=x", "13.0"), ("cuda>=12.9", "12.9"), ("", None), ("brand=x", None), ("cuda>=x", None)],
)
def test_the_cuda_that_an_image_requires(text: str, version: str | None):
    assert required_cuda(text) == version


def test_disk_that_is_short_is_refused_on_the_side_that_is_short():
    facts = recorded("rtx-5090-linux")
    small_root = msgspec.structs.replace(facts, engine=msgspec.structs.replace(facts.engine, data_root_free_bytes=100))
    small_folder = msgspec.structs.replace(facts, weights_folder=Folder(path="/m", free_bytes=10, writable=True))
    closed = msgspec.structs.replace(facts, weights_folder=Folder(path="/m", free_bytes=10 * GB, writable=False))
    outcomes = [
        decide(f, REGISTRY, sources(P27), Choices(folder="/m"), slipway="1") for f in (small_root, small_folder, closed)
    ]
    assert [(p.problems[0].kind, getattr(p.problems[0], "engine", None)) for p in outcomes] == [
        ("disk_full", True),
        ("disk_full", False),
        ("not_writable", None),
    ]


def test_what_is_there_already_needs_no_room():
    facts = recorded("rtx-5090-linux")
    full = msgspec.structs.replace(
        facts,
        engine=msgspec.structs.replace(facts.engine, data_root_free_bytes=0),
        weights_folder=Folder(path="/m", free_bytes=0, writable=True),
    )
    there = Present(image=True, weights_bytes=sources(P27).weights.size_bytes)
    assert isinstance(decide(full, REGISTRY, sources(P27), Choices(folder="/m"), slipway="1", present=there), Plan)


def test_weights_that_are_larger_than_the_registry_says_count_as_large_as_they_are():
    files = (WeightFile(path="model.safetensors", size_bytes=gib(29), sha256="1" * 64),)
    heavy = WeightsSource(repo="nvidia/Qwen3.6-27B-NVFP4", commit=COMMIT, files=files)
    assert kinds(decided("rtx-5090-linux", P27, weights=heavy)) == ["does_not_fit"]


class TestDecideAgain:
    """CUDA's own figure has the last word."""

    def test_the_same_figure_changes_nothing(self):
        plan = planned()
        cuda = CudaMemory(total_bytes=plan.fit.budget.total_bytes, free_bytes=plan.fit.budget.free_bytes)
        again = decide_again(plan, recorded("rtx-5090-linux"), REGISTRY, cuda)
        assert again.settings == plan.settings

    def test_a_little_less_lowers_the_share(self):
        cuda = CudaMemory(total_bytes=gib(31.36), free_bytes=gib(26.6))
        again = decide_again(planned(), recorded("rtx-5090-linux"), REGISTRY, cuda)
        assert isinstance(again, Plan)
        assert again.settings.utilisation < planned().settings.utilisation

    def test_too_little_is_refused_with_what_must_be_freed(self):
        cuda = CudaMemory(total_bytes=gib(31.36), free_bytes=gib(8))
        again = decide_again(planned(), recorded("rtx-5090-linux"), REGISTRY, cuda)
        assert kinds(again) == ["not_enough_free_memory"]
        assert again.problems[0].short_bytes > gib(15)

    def test_without_a_card_there_is_nothing_to_decide_again(self):
        plan = planned("no-nvidia-card", "cpu-trial")
        assert decide_again(plan, recorded("no-nvidia-card"), REGISTRY, None) is plan


class TestOnDisk:
    def test_a_plan_survives_its_file(self):
        assert plans.from_json(plans.to_json(planned()), "plan.json") == planned()

    @pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"schema": 1}', b"\xff\xfe", b'{"schema": "x"}'])
    def test_a_damaged_plan_is_named(self, text: bytes):
        with pytest.raises(InstallerError) as caught:
            plans.from_json(text, "plan.json")
        assert isinstance(caught.value.problem, MalformedFile)
        assert caught.value.problem.path == "plan.json"

    def test_a_plan_of_another_schema_is_named(self):
        data = plans.to_json(planned()).replace(b'"schema": 1', b'"schema": 99')
        with pytest.raises(InstallerError) as caught:
            plans.from_json(data, "plan.json")
        assert caught.value.problem.where == "$.schema"

"""The maintainer's tools: a claim that the accounting contradicts is found, and hub and registry fill in the rest."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml

from installer import resources
from installer.adapters.hub import HuggingFaceHub
from installer.adapters.oci import OciRegistry
from installer.domain import registry as registries
from installer.domain.problems import (
    CapabilityTooLow,
    EvidenceNotReproduced,
    InstallerError,
    LicenceTagMissing,
    MalformedFile,
    Problem,
    UnknownName,
)
from installer.domain.registry import Flag, Profile, Registry
from installer.domain.units import to_gib
from installer.steps import registry_tools
from tests.builders import shipped_registry
from tests.rig.hub import LocalHub, tiny_checkpoint
from tests.rig.rig import Rig

SHIPPED = shipped_registry()
PROFILE = "qwen3.6-27b-nvfp4-64k"


def with_profile(**changes: object) -> Registry:
    profile = msgspec.structs.replace(SHIPPED.profiles[PROFILE], **changes)
    return msgspec.structs.replace(SHIPPED, profiles={PROFILE: profile})


# --- check ----------------------------------------------------------------------------------------------------------


def test_the_shipped_registry_is_in_order() -> None:
    assert registry_tools.check(SHIPPED) == ()


def test_a_measurement_that_cannot_fit_is_found_with_its_figures() -> None:
    first = SHIPPED.profiles[PROFILE].evidence[0]
    small = msgspec.structs.replace(first, card="RTX 5080", memory_gib=15.92)
    problem, *_ = registry_tools.check(with_profile(evidence=(small,)))
    assert isinstance(problem, EvidenceNotReproduced)
    assert (problem.profile, problem.card, problem.source) == (PROFILE, "RTX 5080", first.source)
    assert to_gib(problem.available_bytes) < 15 < 20 < to_gib(problem.needed_bytes)


def test_a_measurement_that_the_profile_itself_rules_out_is_found() -> None:
    old = msgspec.structs.replace(SHIPPED.profiles[PROFILE].evidence[0], capability="8.6")
    (problem,) = registry_tools.check(with_profile(evidence=(old,)))
    assert isinstance(problem, CapabilityTooLow)


def test_a_measurement_without_its_class_of_card_is_found() -> None:
    vague = msgspec.structs.replace(SHIPPED.profiles[PROFILE].evidence[0], memory_gib=None)
    (problem,) = registry_tools.check(with_profile(evidence=(vague,)))
    assert isinstance(problem, MalformedFile)


def test_what_is_only_documented_or_not_served_is_not_held_against_the_accounting() -> None:
    first = SHIPPED.profiles[PROFILE].evidence[0]
    documented = msgspec.structs.replace(first, kind="documented", memory_gib=8)
    small = msgspec.structs.replace(first, memory_gib=8)
    assert registry_tools.check(with_profile(evidence=(documented,))) == ()
    assert registry_tools.check(with_profile(evidence=(small,), backend="vllm-omni")) == ()


def test_an_argument_that_a_field_says_is_not_repeated() -> None:
    repeated = Flag(flag="--max-model-len", value=1, reason="why_not")
    (problem,) = registry_tools.check(with_profile(flags=(repeated,)))
    assert isinstance(problem, MalformedFile)
    assert "--max-model-len" in problem.reason


def test_a_release_that_lacks_what_every_plan_says_is_found() -> None:
    flags = {release: names - {"--max-num-seqs"} for release, names in SHIPPED.flags.items()}
    problems = registry_tools.check(msgspec.structs.replace(SHIPPED, flags=flags))
    assert {problem.where for problem in problems} == {"$.flags.0.33.0", "$.flags.0.19.1"}


def test_wsl2_is_judged_with_what_it_hides() -> None:
    def free(profile: Profile, *, wsl2: bool) -> int:
        row = msgspec.structs.replace(profile.evidence[0], wsl2=wsl2)
        facts = registry_tools.machine_of(row)
        assert facts.behind_wsl2 is wsl2
        from installer.domain.memory import budget

        room = budget(facts, facts.nvidia.gpus[0])
        assert room is not None
        return room.free_bytes

    profile = SHIPPED.profiles[PROFILE]
    assert free(profile, wsl2=True) < free(profile, wsl2=False)


# --- writing --------------------------------------------------------------------------------------------------------


def test_the_shipped_files_are_as_refresh_writes_them() -> None:
    texts = resources.registry_texts()
    assert registry_tools.written(texts, SHIPPED) == texts


def test_writing_keeps_every_value_and_the_first_remarks(tmp_path: Path) -> None:
    texts = resources.registry_texts()
    one_file = {"all.yaml": "# Mine.\n" + "".join(texts.pop(name) for name in ("models.yaml", "images.yaml"))}
    mixed = texts | one_file
    fresh = registry_tools.written(mixed, registries.parse(mixed))
    assert registries.parse(fresh) == SHIPPED
    assert fresh["all.yaml"].startswith("# Mine.\n")
    assert fresh["profiles.yaml"] == mixed["profiles.yaml"]


# --- refresh --------------------------------------------------------------------------------------------------------


REPO = "org/tiny"
FILES = tiny_checkpoint(hidden=128, layers=4)


def texts_for(rig: Rig | None = None, licence: str = "apache-2.0") -> dict[str, str]:
    """Return a small registry: one model of the local hub, the rig's server image, and one that is not published."""
    chosen = SHIPPED.profiles["cpu-trial"]
    model = msgspec.structs.replace(SHIPPED.model_of(chosen), repo=REPO, licence=licence, checkpoint_bytes=1)
    image = msgspec.structs.replace(SHIPPED.images["vllm-0.33.0"], compressed_bytes=1)
    whole = msgspec.structs.replace(
        SHIPPED,
        models={"tiny": model},
        profiles={"tiny": msgspec.structs.replace(chosen, model="tiny", image="vllm", flags=())},
        images={"vllm": image, "ours": SHIPPED.images["diffusers-0.42.1"]} if rig else {"vllm": image},
        flags={"0.33.0": SHIPPED.flags["0.33.0"]},
    )
    document = msgspec.to_builtins(whole)
    document["flags"] = {release: sorted(names) for release, names in document["flags"].items()}
    return {f"{section}.yaml": yaml.safe_dump({section: content}) for section, content in document.items()}


class NoImages:
    """An image registry that nobody gets to."""

    def resolve(self, *_: object) -> None:
        raise AssertionError("not asked before every licence is known")


def refused(hub: LocalHub, texts: dict[str, str]) -> Problem:
    with pytest.raises(InstallerError) as caught:
        registry_tools.refresh(texts, HuggingFaceHub(hub.endpoint), NoImages(), lambda _: None)  # type: ignore[arg-type]
    return caught.value.problem


@pytest.mark.parametrize(
    "card",
    [
        None,
        {},
        {"license": None},
        {"license": ""},
        {"license": "other"},
        {"license": ["apache-2.0", "mit"]},
        {"tags": ["x"]},
    ],
)
def test_a_checkpoint_without_one_licence_stops_it(card: dict[str, object] | None) -> None:
    with LocalHub() as hub:
        hub.add(REPO, FILES, card=card)
        assert refused(hub, texts_for()) == LicenceTagMissing(repos=(REPO,))


def test_a_licence_that_the_registry_does_not_know_stops_it() -> None:
    with LocalHub() as hub:
        hub.add(REPO, FILES, card={"license": "other", "license_name": "my-own"})
        problem = refused(hub, texts_for())
    assert isinstance(problem, UnknownName)
    assert (problem.field, problem.value) == ("licence", "my-own")


def test_a_card_of_another_form_is_malformed() -> None:
    with LocalHub() as hub:
        hub.add(REPO, FILES, card={"license": 7})
        assert isinstance(refused(hub, texts_for()), MalformedFile)


def test_commit_files_sizes_licence_and_digests_are_filled_in_and_stay(rig: Rig) -> None:
    told: list[str] = []
    texts = texts_for(rig)
    with LocalHub() as hub:
        commit = hub.add(REPO, FILES, card={"license": ["nvidia-open-model-license"]})
        doors = HuggingFaceHub(hub.endpoint), OciRegistry(mirror=rig.mirror())
        fresh = registry_tools.refresh(texts, *doors, told.append)
        assert registry_tools.refresh(fresh, *doors, told.append) == fresh

    registry = registries.parse(fresh)
    model, release = registry.models["tiny"], registry.images["vllm"]
    assert (model.revision, model.licence, model.is_pinned) == (commit, "nvidia-open-model-license", True)
    sizes = {path: len(content) for path, content in FILES.items()}
    assert all(sizes[file.path] == file.size_bytes for file in model.files)
    assert model.checkpoint_bytes == sum(size for path, size in sizes.items() if path.endswith(".safetensors"))
    assert release.digest == rig.registry.digest(release.repo, release.tag)
    assert release.platforms["linux/amd64"].startswith("sha256:")
    assert release.compressed_bytes > 1
    assert registry.images["ours"] == SHIPPED.images["diffusers-0.42.1"]
    assert fresh["profiles.yaml"] == texts["profiles.yaml"]
    assert any(commit in line for line in told)

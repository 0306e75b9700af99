"""Files that a person may have written, changed or received: answers, recorded machines, registries."""

from __future__ import annotations

import json
from functools import cache, partial
from typing import Any

import msgspec
import yaml
from hypothesis import strategies as st

from installer import resources
from installer.domain import checks, compose
from installer.domain import choices as answers
from installer.domain import facts as machines
from installer.domain import plan as plans
from installer.domain import registry as registries
from installer.domain.choices import Choices
from installer.domain.facts import Facts
from installer.domain.offers import offers
from installer.domain.plan import Plan, Refusal
from installer.domain.registry import Registry
from installer.steps import registry_tools
from tests.builders import MACHINES, ROOT, recorded, shipped_registry, sources
from tests.fuzz.broken import as_yaml, broken_json, broken_yaml, cut_up, mutated, relined
from tests.fuzz.command import slipway
from tests.fuzz.kit import KEY, LANGUAGES, TOKEN, keeps_quiet, shown, survives, target, told, written
from tests.fuzz.scratch import fresh

PROFILE = "qwen3.6-27b-nvfp4-64k"
MACHINE = "rtx-5090-linux"

# --- answers ---------------------------------------------------------------------------------------------------------

ANSWERS = (
    json.loads((ROOT / "tests" / "answers" / "5090.json").read_text("utf-8")),
    {"stack": "chat", "profile": PROFILE, "gpu_uuid": "GPU-1", "context": 4096, "folder": "/m", "port": 8000},
    {"stack": "images", "references": 2, "vram_budget_gib": 12.5, "accept_licenses": ["a"], "language": "de"},
    {"docker_image_pin_digest": "sha256:" + "0" * 64, "autostart": True, "profile": None, "folder": "~/models"},
)
WITH_SECRETS = tuple(
    f"{line}\nport: 8000\n"
    for secret in (TOKEN, KEY)
    for line in (
        *(f"hf_token: {secret}", f'hf_token: "{secret}', f"hf_token: '{secret}", f"hf_token: !!int {secret}"),
        *(f"hf_token: [{secret}", f"hf_token: {secret}: {secret}", f"hf_token: *{secret}", f"hf_token: !{secret} x"),
        *(f"hf_token: &{secret}", f"- {secret}", f"{secret}", f"hf_token: | {secret}", f"%{secret}"),
        *(f"port: {secret}", f"hf_token: {secret}\thf_token: @", f"hf_token: !!bool {secret}"),
        *(
            f"hf_token: {{{secret}",
            f"hf_token: !!timestamp {secret}",
            f"hf_token:\n\t{secret}",
            f"hf_token: !!binary {secret}",
        ),
    )
)
ANSWER_TEXTS = st.one_of(
    broken_yaml([as_yaml(document) for document in ANSWERS]).map(lambda text: text.encode("utf-8", "surrogatepass")),
    broken_json(ANSWERS),
    cut_up(st.sampled_from(WITH_SECRETS).map(str.encode)),
    relined(st.sampled_from(WITH_SECRETS)).map(lambda text: text.encode("utf-8", "surrogatepass")),
)


@target(100, data=ANSWER_TEXTS)
def test_answers(data: bytes) -> None:
    file = fresh("answers") / "answers.yaml"
    file.write_bytes(data)
    found = survives(lambda: answers.from_text(data, "answers.yaml"))
    if found is not None:
        survives(
            lambda: _planned(recorded(MACHINE), shipped_registry(), msgspec.structs.replace(found, profile=PROFILE))
        )


@target(12, data=ANSWER_TEXTS)
def test_answers_of_a_command(data: bytes) -> None:
    folder = fresh("answers")
    (folder / "answers").write_bytes(data)
    quickly = ["--yes", "--json", "--dry-run", "--dry-run-speed", "1e9", "--machine", MACHINE]
    slipway(["install", *quickly, "--home", str(folder / "home"), "--answers", str(folder / "answers")])


def _planned(facts: Facts, registry: Registry, choices: Choices) -> None:
    """Go all the way from choices to a compose file, and say everything on the way."""
    chosen = plans.choose_profile(facts, registry, choices)
    if isinstance(chosen, Refusal):
        for problem in chosen.problems:
            told(problem)
        return
    known = sources(chosen.profile, registry)
    made = plans.decide(facts, registry, known, choices, slipway="0.1.0")
    if isinstance(made, Refusal):
        for problem in made.problems:
            told(problem)
        return
    assert plans.from_json(plans.to_json(made), "plan.json") == made
    _rendered(made)


def _rendered(plan: Plan) -> None:
    text = compose.render(plan).text
    keeps_quiet(text)
    assert yaml.safe_load(text)["name"] == plan.project


# --- recorded machines -----------------------------------------------------------------------------------------------

RECORDED = tuple(json.loads((ROOT / "tests" / "machines" / f"{name}.json").read_text("utf-8")) for name in MACHINES)


@target(80, data=broken_json(RECORDED))
def test_a_recorded_machine(data: bytes) -> None:
    facts = survives(lambda: machines.from_json(data, "machine.json"))
    if facts is None:
        return
    written(machines.to_json(facts))
    survives(lambda: _judged(facts, shipped_registry()))
    survives(lambda: _planned(facts, shipped_registry(), Choices(profile=PROFILE)))


def _judged(facts: Facts, registry: Registry) -> None:
    """Judge every profile, and say everything that can be said of the machine."""
    for problem in checks.machine(facts):
        told(problem)
    for offer in offers(facts, registry):
        written(offer)
        for text in LANGUAGES:
            shown(text.reason(offer.reason))
            shown(text.extent(offer))
            shown(text.evidence(offer.evidence, untested=offer.untested))


@target(
    12,
    data=broken_json(RECORDED),
    verb=st.sampled_from(("detect", "offers", "")),
    language=st.sampled_from(["de", "en"]),
)
def test_a_recorded_machine_of_a_command(data: bytes, verb: str, language: str) -> None:
    folder = fresh("machine")
    (folder / "machine").write_bytes(data)
    common = ["--machine", str(folder / "machine"), "--home", str(folder / "home"), "--language", language]
    slipway([*common, verb] if verb else common)
    if verb:
        slipway([*common, verb, "--json"])


# --- the registry ----------------------------------------------------------------------------------------------------

TEXTS = resources.registry_texts()
SMALL = tuple(name for name in TEXTS if not name.startswith("flags"))


@cache
def _document(name: str) -> Any:
    return yaml.safe_load(TEXTS[name])


@st.composite
def registry_texts(draw: st.DrawFn) -> dict[str, str]:
    """The files of the registry, one of which is broken."""
    name = draw(st.sampled_from(SMALL))
    if draw(st.booleans()):
        return TEXTS | {name: as_yaml(draw(mutated(st.just(_document(name)))))}
    return TEXTS | {name: draw(relined(st.just(TEXTS[name])))}


@target(30, texts=registry_texts(), machine=st.sampled_from(MACHINES))
def test_the_registry(texts: dict[str, str], machine: str) -> None:
    registry = survives(lambda: registries.parse(texts))
    if registry is None:
        return
    survives(lambda: _judged(recorded(machine), registry))
    for problem in survives(lambda: registry_tools.check(registry)) or ():
        told(problem)
    for name in list(registry.profiles)[:4]:
        survives(partial(_planned, recorded(machine), registry, Choices(profile=name)))


@target(5, texts=registry_texts())
def test_the_registry_of_a_command(texts: dict[str, str]) -> None:
    folder = fresh("registry")
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    slipway(["registry", "check", "--json", "--registry", str(folder), "--home", str(folder / "home")])

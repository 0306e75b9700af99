"""The wizard without a window: where one may go, what a choice changes, and what is never lost."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from installer.domain import choices as choice_rules
from installer.domain.choices import Choices
from installer.domain.memory import Verdict
from installer.domain.plan import Present
from installer.domain.problems import InstallerError
from installer.steps import flow as flows
from installer.steps import read
from installer.steps.bookmark import Bookmark, Page
from installer.steps.flow import Flow, standing
from installer.steps.home import Home
from tests.builders import MACHINES, recorded, shipped_registry
from tests.steps.kit import rehearsal

REGISTRY = shipped_registry()
BIG_ENOUGH = "rtx-5090-linux"


def begun(machine: str = BIG_ENOUGH, **choices: Any) -> Any:
    return flows.seen(flows.opened(REGISTRY, None, Choices(**choices)), recorded(machine))


def resolved(tmp_path: Path, flow: Any) -> Any:
    """Ask the dry run's registry and hub, as the window does."""
    stage = rehearsal(tmp_path, card=BIG_ENOUGH, profile=flow.choices.profile)
    found = read.sources(flow.facts, flow.registry, flow.choices.profile, flow.choices, stage.ports, stage.home)
    return flows.resolved(flow, found, Present())


def at(page: Page, flow: Flow) -> Any:
    while flow.page is not page:
        after = flows.forward(flow)
        assert after.page is not flow.page, standing(flow)
        flow = after
    return flow


def test_it_begins_at_the_first_page_with_what_is_recommended():
    flow = begun()
    assert flow.page is Page.WELCOME
    assert flow.choices.profile == flow.recommended.profile


def test_nothing_is_left_before_the_machine_was_read():
    flow = flows.forward(flows.opened(REGISTRY, None, Choices()))
    assert (flow.page, flows.forward(flow).page) == (Page.CARD, Page.CARD)


@pytest.mark.parametrize("machine", ["engine-down", "podman-socket"])
def test_without_an_engine_the_docker_page_holds_and_says_why(machine: str):
    flow = at(Page.DOCKER, begun(machine))
    assert flows.forward(flow).page is Page.DOCKER
    assert standing(flow).problem.family == "docker"


def test_a_profile_that_does_not_fit_holds_and_says_why():
    flow = begun("rtx-4060-8gb")
    refused = next(o for o in flow.offers if o.verdict is Verdict.NO)
    chosen = flows.chose(flow, profile=refused.profile)
    assert (standing(chosen, Page.MODEL).valid, standing(chosen, Page.MODEL).problem) == (False, refused.reason)


def test_the_way_to_the_summary_and_back(tmp_path: Path):
    flow = at(Page.SUMMARY, resolved(tmp_path, begun()))
    assert standing(flow).valid
    assert flow.plan.profile == flow.choices.profile
    for page in reversed(flows.PAGES[: flows.PAGES.index(Page.SUMMARY)]):
        flow = flows.back(flow)
        assert flow.page is page


def test_another_profile_drops_what_was_known_of_the_first(tmp_path: Path):
    flow = resolved(tmp_path, begun())
    other = next(o.profile for o in flow.offers if o.verdict is Verdict.FITS and o.profile != flow.choices.profile)
    changed = flows.chose(flow, profile=other)
    assert (changed.sources, changed.plan) == (None, None)
    assert flows.needs_sources(changed)
    assert not standing(changed, Page.VERSION).valid


def test_another_port_is_planned_at_once_and_asks_nobody(tmp_path: Path):
    flow = flows.chose(resolved(tmp_path, begun()), port=8123)
    assert (flow.plan.port, flows.needs_sources(flow)) == (8123, False)


def test_a_named_digest_has_to_be_asked_for(tmp_path: Path):
    flow = flows.chose(resolved(tmp_path, begun()), docker_image_pin_digest=f"sha256:{'0' * 64}")
    assert flows.needs_sources(flow)
    unpinned = flows.chose(resolved(tmp_path, begun()), docker_image_pin_digest="")
    assert not unpinned.plan.pinned


def test_a_longer_context_is_judged_before_anything_is_asked():
    flow = begun()
    longest = REGISTRY.model_of(REGISTRY.profile(flow.choices.profile)).native_context
    assert not standing(flows.chose(flow, context=longest), Page.MODEL).valid
    assert standing(flows.chose(flow, context=16384), Page.MODEL).valid


def test_another_profile_has_its_own_context():
    flow = flows.chose(begun(), context=16384)
    other = next(o.profile for o in flow.offers if o.verdict is Verdict.FITS and o.profile != flow.choices.profile)
    assert flows.chose(flow, profile=other).choices.context is None


def test_a_licence_that_asks_for_consent_holds_the_summary_alone(tmp_path: Path):
    name = begun().choices.profile
    model = REGISTRY.model_of(REGISTRY.profile(name))
    asks = msgspec.structs.replace(REGISTRY.licences[model.licence], free=False)
    licences = {**REGISTRY.licences, model.licence: asks}
    asking = dataclasses.replace(begun(), registry=msgspec.structs.replace(REGISTRY, licences=licences))
    flow = resolved(tmp_path, asking)
    assert standing(flow, Page.OPTIONS).valid
    assert not standing(flow, Page.SUMMARY).valid
    assert standing(flows.chose(flow, accept_licenses=(model.licence,)), Page.SUMMARY).valid


def test_a_card_that_is_gone_is_chosen_no_more():
    flow = begun("two-cards-16-and-32gb")
    flow = flows.chose(flow, gpu_uuid=flow.facts.nvidia.gpus[1].uuid)
    assert flows.seen(flow, recorded(BIG_ENOUGH)).choices.gpu_uuid is None


def test_a_value_that_cannot_be_leaves_everything_as_it_was():
    flow = begun()
    with pytest.raises(InstallerError):
        flows.chose(flow, port=80)
    assert flow.choices.port is None


def test_a_bookmark_opens_where_one_was_but_never_in_the_installation(tmp_path: Path):
    home = Home(tmp_path)
    home.save_bookmark(Bookmark(page=Page.INSTALLATION, choices=Choices(profile="qwen3.6-27b-nvfp4-64k", port=8123)))
    kept = home.bookmark()
    flow = flows.seen(flows.opened(REGISTRY, kept, Choices()), recorded(BIG_ENOUGH))
    assert flow.choices == kept.choices
    assert flows.on_to(flow, kept.page).page is Page.VERSION
    assert flows.on_to(resolved(tmp_path / "other", flow), kept.page).page is Page.SUMMARY


@pytest.mark.parametrize("content", ["", "[]", "{", '{"page": "nowhere", "choices": {}}'])
def test_a_bookmark_that_cannot_be_read_is_none(tmp_path: Path, content: str):
    (tmp_path / "wizard.json").write_text(content)
    assert Home(tmp_path).bookmark() is None


def test_a_bookmark_of_a_profile_that_is_no_more_keeps_the_rest():
    kept = Bookmark(page=Page.MODEL, choices=Choices(profile="gone", context=2048, port=8123))
    flow = flows.opened(REGISTRY, kept, Choices())
    assert (flow.choices.profile, flow.choices.context, flow.choices.port) == (None, None, 8123)


MOVES = st.one_of(
    st.sampled_from([flows.forward, flows.back]),
    st.builds(lambda page: lambda flow: flows.back_to(flow, page), st.sampled_from(list(Page))),
    st.builds(lambda page: lambda flow: flows.on_to(flow, page), st.sampled_from(list(Page))),
    st.builds(lambda name: lambda flow: flows.seen(flow, recorded(name)), st.sampled_from(list(MACHINES))),
    st.builds(lambda name: lambda flow: flows.chose(flow, profile=name), st.sampled_from(list(REGISTRY.profiles))),
    st.builds(lambda size: lambda flow: flows.chose(flow, context=size), st.sampled_from([None, 4096, 262144])),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(MOVES, max_size=12))
def test_whatever_a_person_does_the_choices_hold_and_no_page_is_skipped(moves):
    flow = flows.opened(REGISTRY, None, Choices())
    for move in moves:
        before = flow
        flow = move(flow)
        choice_rules.check(flow.choices)
        if flows.PAGES.index(flow.page) > flows.PAGES.index(before.page):
            passed = flows.PAGES[flows.PAGES.index(before.page) : flows.PAGES.index(flow.page)]
            assert all(standing(before, page).valid for page in passed)

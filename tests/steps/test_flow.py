"""The wizard without a window: which page lets go, what a choice changes, and what is never lost."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from installer.domain import choices as choice_rules
from installer.domain import problems as p
from installer.domain.choices import Choices
from installer.domain.facts import Folder
from installer.domain.memory import Verdict
from installer.domain.plan import Plan, Present
from installer.domain.problems import InstallerError
from installer.domain.sources import FolderWeights, VolumeWeights
from installer.domain.units import gib
from installer.steps import flow as flows
from installer.steps import resolving
from installer.steps.flow import PAGES, Answer, Bookmark, Flow, Page, standing
from installer.steps.home import Home
from tests.builders import MACHINES, digest_of, recorded, shipped_registry
from tests.steps.kit import rehearsal
from tests.steps.wizard import (
    LARGE,
    LICENSED,
    OTHER,
    SMALL,
    answer,
    at,
    began,
    heavier,
    installed,
    plan_of,
    status,
    walked,
    with_used,
)

PINNED = digest_of("an image that was named")


def other_than(profile: str, flow: Flow) -> str:
    fitting = (each.profile for each in flow.offers if each.verdict is Verdict.FITS)
    return next(name for name in fitting if name != profile)


# --- one page after the other --------------------------------------------------------------------------------------


def test_a_person_goes_from_welcome_to_done_and_every_page_asks_for_what_it_needs() -> None:
    flow = flows.opened(shipped_registry())
    assert standing(flow).valid, "the welcome waits for nothing"
    flow = flows.forward(flow)
    assert (standing(flow).valid, standing(flow).reason) == (False, None), "the card is still being read"
    assert flows.forward(flow) == flow
    flow = walked(flows.seen(flow, recorded("rtx-5090-linux")), Page.VERSION)
    assert (standing(flow).valid, flows.needs_sources(flow)) == (False, True)
    flow = walked(flow, Page.INSTALLATION)
    assert flows.forward(flow) == flow, "only its end leads on from an installation"
    assert flow.plan is not None
    done = flows.ended(flow, installed(flow.plan))
    assert (done.page, done.installed and done.installed.plan) == (Page.DONE, flow.plan)
    assert flows.forward(done) == flows.back(done) == done


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if page is not Page.DONE])
def test_back_takes_the_page_that_was_before(page: Page) -> None:
    flow = at(page)
    assert flows.back(flow).page is flow.history[-1]
    assert flows.go_back_to(flow, Page.WELCOME).page is Page.WELCOME
    assert flows.go_back_to(flow, page) == flow


def test_nobody_jumps_ahead() -> None:
    flow = at(Page.CARD)
    assert flows.go_back_to(flow, Page.MODEL) == flow


def test_nobody_has_to_choose_a_model_to_go_on_but_who_goes_on_has_chosen_it() -> None:
    flow = at(Page.MODEL)
    assert (flow.choices.profile, flow.profile) == (None, LARGE)
    assert flows.forward(flow).choices.profile == LARGE


@pytest.mark.parametrize(
    ("machine", "page", "kind"),
    [
        ("engine-down", Page.DOCKER, p.EngineDown),
        ("podman-socket", Page.DOCKER, p.EngineIsPodman),
    ],
)
def test_a_page_that_holds_says_why(machine: str, page: Page, kind: type[p.Problem]) -> None:
    flow = began(machine)
    while (after := flows.forward(flow)) != flow:
        flow = after
    assert flow.page is page
    assert isinstance(standing(flow).reason, kind)


def test_without_a_card_one_may_go_on_to_the_trial_and_is_told() -> None:
    flow = at(Page.CARD, "no-nvidia-card")
    assert standing(flow).valid
    assert standing(flow).reason is not None
    assert at(Page.MODEL, "no-nvidia-card").profile == "cpu-trial"


def test_where_nothing_fits_the_model_page_says_so() -> None:
    seen = recorded("no-nvidia-card")
    little = msgspec.structs.replace(seen, engine=msgspec.structs.replace(seen.engine, memory_bytes=gib(2)))
    flow = flows.seen(flows.opened(shipped_registry()), little)
    assert flow.profile is None
    assert isinstance(standing(flow, Page.MODEL).reason, p.NoNvidiaDriver | p.NoGpu | p.NothingFits)


def test_a_profile_that_does_not_fit_holds_with_the_offer_s_own_reason() -> None:
    flow = flows.chose(at(Page.MODEL, "rtx-4060-8gb"), profile=LARGE)
    assert flow.offered is not None
    assert not standing(flow).valid
    assert standing(flow).reason == flow.offered.reason
    assert flows.forward(flow) == flow


def test_a_checkpoint_that_is_larger_than_the_registry_says_leads_back_to_the_models() -> None:
    flow = at(Page.VERSION)
    flow = flows.resolved(flow, heavier(flow, gib(40)))
    assert flow.page is Page.MODEL
    assert isinstance(standing(flow).reason, p.DoesNotFit)


def test_an_image_that_wants_a_newer_driver_holds_on_the_version_page() -> None:
    flow = at(Page.VERSION)
    known = answer(flow).sources
    newer = msgspec.structs.replace(known, image=msgspec.structs.replace(known.image, requires_cuda="cuda>=99.0"))
    flow = flows.resolved(flow, answer(flow, sources=newer))
    assert (flow.page, type(standing(flow).reason)) == (Page.VERSION, p.DriverTooOld)


def test_a_full_disk_holds_on_the_options_page() -> None:
    flow = began()
    assert flow.facts is not None
    full = msgspec.structs.replace(flow.facts, weights_folder=Folder(path="/small", free_bytes=10))
    flow = flows.seen(flow, full)
    with pytest.raises(AssertionError, match="options does not let go"):
        walked(flow, Page.SUMMARY)
    flow = walked(flow, Page.OPTIONS)
    full_disk = standing(flow).reason
    assert isinstance(full_disk, p.DiskFull)
    assert flows.page_to_mend(at(Page.INSTALLATION), full_disk) is Page.OPTIONS


def test_a_licence_that_asks_for_consent_is_shown_with_its_plan_and_holds_only_the_last_step() -> None:
    flow = at(Page.SUMMARY, profile=LICENSED)
    licence = shipped_registry().licence_of(shipped_registry().profile(LICENSED)).id
    assert isinstance(standing(flow).reason, p.LicenceNotAccepted)
    assert flow.plan is not None
    assert flow.plan.choices.accept_licenses == (), "what is shown holds no consent"
    agreed = flows.chose(flow, accept_licenses=(licence,))
    assert standing(agreed).valid
    assert agreed.plan is not None
    assert agreed.plan.choices.accept_licenses == (licence,)


# --- what is carried out -------------------------------------------------------------------------------------------


def test_what_is_installed_is_what_the_summary_showed() -> None:
    """What Slipway decided is named in the plan, so that a reading in between changes nothing; the port stays open."""
    flow = flows.opened(shipped_registry(), default_folder="/home/user/models")
    seen = recorded("two-cards-16-and-32gb")
    there = msgspec.structs.replace(seen.weights_folder, path="/home/user/models")
    plan = walked(flows.seen(flow, msgspec.structs.replace(seen, weights_folder=there)), Page.SUMMARY).plan
    assert plan is not None
    assert plan.gpu is not None
    assert (plan.choices.profile, plan.choices.gpu_uuid) == (plan.profile, plan.gpu.uuid)
    assert (plan.choices.folder, plan.choices.port) == ("/home/user/models", None)


def test_the_dry_run_s_network_answers_the_wizard_and_its_plan_installs(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path, profile=None)

    def asked(flow: Flow) -> Answer:
        assert flow.facts is not None
        assert flow.profile is not None
        return resolving.ask(flow.facts, flow.registry, flow.profile, flow.choices, stage.ports, stage.home)

    flow = flows.seen(flows.opened(stage.registry, default_folder=str(stage.home.models)), stage.facts())
    while flow.page is not Page.INSTALLATION:
        flow = flows.forward(flows.resolved(flow, asked(flow)) if flows.needs_sources(flow) else flow)
    assert flow.plan is not None
    stage.choices = flow.plan.choices
    done = flows.ended(flow, stage.install())
    assert done.plan is not None
    assert (done.page, done.plan.profile, done.plan.image) == (Page.DONE, flow.plan.profile, flow.plan.image)
    assert asked(flow).present == Present(image=True, weights_bytes=flow.plan.weights.size_bytes)


# --- a choice changes what follows ---------------------------------------------------------------------------------


def test_another_profile_drops_what_was_said_of_the_first_and_what_belonged_to_it() -> None:
    flow = at(Page.SUMMARY, context=32768, docker_image_pin_digest=PINNED)
    assert flow.plan is not None
    flow = flows.chose(flows.go_back_to(flow, Page.MODEL), profile=other_than(LARGE, flow))
    assert (flow.answer, flow.plan, flow.refusal) == (None, None, None)
    assert (flow.choices.context, flow.choices.docker_image_pin_digest) == (None, "current")
    assert flows.needs_sources(flows.forward(flow))


def test_not_to_pin_is_a_wish_about_every_image() -> None:
    flow = flows.chose(at(Page.MODEL), docker_image_pin_digest="")
    assert flows.chose(flow, profile=other_than(LARGE, flow)).choices.docker_image_pin_digest == ""


def test_choosing_the_recommended_profile_by_name_changes_nothing_else() -> None:
    flow = at(Page.SUMMARY)
    again = flows.chose(flows.go_back_to(flow, Page.MODEL), profile=LARGE)
    assert again.plan == flow.plan


def test_a_context_belongs_to_the_profile_that_it_was_chosen_for() -> None:
    flow = flows.chose(at(Page.MODEL), context=32768)
    assert (flow.choices.profile, flow.choices.context) == (LARGE, 32768)
    assert flow.offered is not None
    assert flow.offered.context == 32768
    longest = flow.registry.model_of(flow.registry.profile(LARGE)).native_context
    too_long = flows.chose(flow, context=longest)
    assert not standing(too_long).valid
    assert too_long.offered is not None
    assert not too_long.offered.recommended, "what does not fit is not recommended"


@pytest.mark.parametrize(
    ("change", "asks"),
    [({"port": 8123}, False), ({"autostart": True}, False), ({"docker_image_pin_digest": ""}, False)],
)
def test_an_option_is_planned_at_once_and_the_network_is_not_asked(change: dict[str, Any], asks: bool) -> None:
    before = at(Page.OPTIONS)
    flow = flows.chose(before, **change)
    assert flow.page is Page.OPTIONS
    assert flow.plan not in (None, before.plan)
    assert flows.needs_sources(flow) is asks


def test_a_digest_that_is_named_or_named_no_more_has_to_be_asked_for() -> None:
    flow = flows.chose(at(Page.VERSION), docker_image_pin_digest=PINNED)
    assert flows.needs_sources(flow)
    flow = flows.resolved(flow, answer(flow))
    assert standing(flow).valid
    assert flows.needs_sources(flows.chose(flow, docker_image_pin_digest="current"))


def test_an_answer_that_comes_too_late_changes_nothing() -> None:
    flow = at(Page.VERSION)
    late = answer(flow)
    changed = flows.chose(flow, docker_image_pin_digest=PINNED)
    assert flows.resolved(changed, late) == changed


def test_another_folder_is_read_before_it_is_planned_and_the_page_stays() -> None:
    flow = at(Page.OPTIONS)
    flow = flows.resolved(flow, answer(flow, present=Present(image=True, weights_bytes=5_000_700)))
    moved = flows.chose(flow, folder="/elsewhere")
    assert (flows.needs_reading(moved), standing(moved).valid) == (True, False)
    assert moved.facts is not None
    there = msgspec.structs.replace(moved.facts, weights_folder=Folder(path="/elsewhere", free_bytes=gib(500)))
    moved = flows.seen(moved, there)
    assert (moved.page, standing(moved).valid) == (Page.OPTIONS, True)
    assert moved.present == Present(image=True, weights_bytes=0), "what lies in the other folder is not here"
    assert flows.needs_sources(moved), "what lies here already has to be looked for"
    assert moved.plan is not None
    assert moved.plan.place == FolderWeights(folder="/elsewhere")


def test_a_port_that_a_person_named_is_looked_at_and_one_that_is_taken_is_not_installed() -> None:
    flow = at(Page.OPTIONS)
    assert not flows.needs_port_look(flow), "what Slipway proposes was free"
    flow = flows.chose(flow, port=8123)
    assert flows.needs_port_look(flow)
    taken = flows.port_looked_at(flow, 8123, "nginx (812)")
    assert not flows.needs_port_look(taken)
    assert standing(taken) == flows.Standing(valid=False, reason=p.PortTaken(port=8123, owner="nginx (812)"))
    assert standing(flows.chose(taken, port=8124)).valid
    assert standing(flows.port_looked_at(taken, 8123, None)).valid
    ours = dataclasses.replace(taken, running=plan_of(port=8123))
    assert standing(ours).valid, "our own server leaves it before another one starts"
    late = flows.port_looked_at(walked(flow, Page.SUMMARY), 8123, "")
    assert late.page is Page.OPTIONS


def gated(flow: Flow, **changes: Any) -> Answer:
    """What the hub says of a model that only accounts which agreed to its terms may fetch."""
    known = answer(flow)
    weights = msgspec.structs.replace(known.sources.weights, gated=True)
    return answer(flow, sources=msgspec.structs.replace(known.sources, weights=weights), **changes)


def test_a_gated_model_is_not_installed_without_a_token() -> None:
    flow = at(Page.OPTIONS)
    assert not flows.asks_for_token(flow)
    flow = flows.resolved(flow, gated(flow))
    assert flows.asks_for_token(flow)
    lacking = p.TokenNeeded(repo=flow.sources.weights.repo, had_token=False, gated=True)
    assert standing(flow) == flows.Standing(valid=False, reason=lacking)
    known = flows.token_known(flow, True)
    assert standing(known).valid
    assert flows.asks_for_token(known), "it may be the wrong one"
    assert flows.page_to_mend(flows.forward(known), lacking) is Page.OPTIONS
    total = flow.sources.weights.size_bytes
    here = flows.resolved(flow, gated(flow, present=Present(weights_bytes=total)))
    assert (standing(here).valid, flows.asks_for_token(here)) == (True, False), "nothing has to be fetched any more"


@pytest.mark.parametrize(
    "refused",
    [
        p.TokenNeeded(repo="a/b", had_token=False),
        p.AccessNotGranted(repo="a/b", gated=False),
        p.BadToken(),
    ],
    ids=lambda value: value.kind,
)
def test_a_token_lets_the_network_be_asked_again_where_it_was_refused_for_want_of_one(refused: p.AnyProblem) -> None:
    flow = flows.unresolved(at(Page.VERSION), refused)
    assert flows.asks_for_token(flow)
    assert not flows.needs_sources(flow)
    assert flows.needs_sources(flows.token_known(flow, True))
    down = flows.unresolved(at(Page.VERSION), p.Unreachable(host="huggingface.co"))
    assert flows.token_known(down, True).not_resolved == down.not_resolved
    assert flows.removed(flows.token_known(flow, True)).has_token, "a token outlives an installation"


def test_another_card_is_judged_anew() -> None:
    flow = at(Page.CARD, "two-cards-16-and-32gb")
    assert flow.facts is not None
    small, large = sorted(flow.facts.nvidia.gpus, key=lambda gpu: gpu.memory.total_bytes)
    assert flow.profile == LARGE
    flow = flows.chose(flow, gpu_uuid=small.uuid)
    assert flow.profile != LARGE
    assert flow.offered is not None
    assert flow.offered.gpu_uuid == small.uuid
    late = flows.go_back_to(walked(flow, Page.OPTIONS), Page.CARD)
    back_again = flows.chose(flows.chose(late, profile=None), gpu_uuid=large.uuid)
    assert (back_again.profile, back_again.answer) == (LARGE, None)


def test_a_card_that_is_gone_is_no_choice_any_more() -> None:
    flow = at(Page.CARD, "two-cards-16-and-32gb")
    assert flow.facts is not None
    flow = flows.chose(flow, gpu_uuid=flow.facts.nvidia.gpus[1].uuid)
    flow = flows.seen(walked(flow, Page.OPTIONS), recorded("rtx-5090-linux"))
    assert (flow.page, flow.choices.gpu_uuid, flow.card_gone) == (Page.CARD, None, True)
    assert not flows.forward(flow).card_gone, "it was seen"


def test_a_card_that_is_gone_since_the_last_time_opens_its_page() -> None:
    left = at(Page.SUMMARY, "two-cards-16-and-32gb", gpu_uuid=UUIDS[1])
    flow = flows.seen(flows.opened(shipped_registry(), flows.bookmark(left)), recorded("rtx-5090-linux"))
    assert (flow.page, flow.goal, flow.card_gone) == (Page.CARD, None, True)


def test_memory_that_is_taken_meanwhile_leads_back_to_the_page_that_no_longer_lets_go() -> None:
    flow = flows.seen(at(Page.OPTIONS), recorded("rtx-4060-8gb"))
    assert flow.page is Page.MODEL
    assert standing(flow).reason is not None


@pytest.mark.parametrize(
    ("change", "kind"),
    [({"port": 80}, p.BadChoice), ({"context": 1}, p.BadChoice), ({"profile": "nobody-knows"}, p.UnknownName)],
)
def test_a_value_that_cannot_be_taken_is_refused(change: dict[str, Any], kind: type[p.Problem]) -> None:
    with pytest.raises(InstallerError) as caught:
        flows.chose(at(Page.OPTIONS), **change)
    assert isinstance(caught.value.problem, kind)


def test_during_an_installation_only_the_language_changes() -> None:
    flow = at(Page.INSTALLATION)
    assert flows.chose(flow, port=8123, language="en").choices == msgspec.structs.replace(flow.choices, language="en")
    assert flows.seen(flow, recorded("rtx-4060-8gb")) == flow, "a server that is starting takes no page away"
    assert flows.resolved(flow, answer(at(Page.SUMMARY))) == flow


# --- what went wrong -----------------------------------------------------------------------------------------------


def test_a_network_that_could_not_be_asked_is_the_reason_and_is_not_asked_again_by_itself() -> None:
    gone = p.Unreachable(host="hub.example", detail="")
    flow = flows.unresolved(at(Page.VERSION), gone)
    assert standing(flow) == flows.Standing(valid=False, reason=gone)
    assert not flows.needs_sources(flow)
    assert flows.seen(flow, recorded("rtx-5090-linux")).not_resolved == gone, "a look at the card mends no line"
    assert standing(flows.resolved(flow, answer(flow))).valid


def test_a_machine_that_could_not_be_read_is_told_and_what_was_read_before_stays() -> None:
    broken = p.Bug(error="OSError")
    assert standing(flows.unread(flows.opened(shipped_registry()), broken), Page.CARD).reason == broken
    flow = flows.unread(at(Page.CARD), broken)
    assert standing(flow) == flows.Standing(valid=True, reason=broken)


def test_a_failed_installation_keeps_everything_and_leads_where_it_can_be_mended() -> None:
    flow = at(Page.INSTALLATION)
    taken = p.PortTaken(port=8000, owner="")
    flow = flows.failed(flow, taken)
    assert standing(flow) == flows.Standing(valid=False, reason=taken)
    page = flows.page_to_mend(flow, taken)
    assert page is Page.OPTIONS
    mended = walked(flows.chose(flows.go_back_to(flow, page), port=8123), Page.INSTALLATION)
    assert (mended.failure, mended.plan and mended.plan.port) == (None, 8123)


@pytest.mark.parametrize(
    ("problem", "page"),
    [
        (p.NotWritable(path="/models"), Page.OPTIONS),
        (p.DoesNotFit(profile=LARGE, gpu="", needed_bytes=1, available_bytes=0, limit="weights"), Page.MODEL),
        (p.NotEnoughFreeMemory(gpu="", free_bytes=0, total_bytes=1, needed_bytes=1), Page.CARD),
        (p.EngineDown(endpoint=""), Page.DOCKER),
        (p.LicenceNotAccepted(profile=LARGE, licence="x"), Page.SUMMARY),
        (p.TokenNeeded(repo="a/b", had_token=False), Page.OPTIONS),
        (p.RegistryDenied(image="a/b"), Page.VERSION),
        (p.Bug(error="KeyError"), None),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_problem_names_the_page_on_which_it_is_mended(problem: p.AnyProblem, page: Page | None) -> None:
    assert flows.page_to_mend(at(Page.INSTALLATION), problem) is page
    assert flows.page_to_mend(at(Page.WELCOME), problem) is None, "only a page behind can be gone back to"


# --- what is installed ---------------------------------------------------------------------------------------------


def with_something_installed() -> tuple[Flow, Plan]:
    plan = plan_of(profile=OTHER, port=8123, language="de")
    flow = flows.opened(shipped_registry(), Bookmark(page=Page.WELCOME, choices=Choices(language="de")))
    return flows.found(flow, status(plan)), plan


def test_an_installation_that_is_there_opens_the_overview_in_place_of_the_wizard() -> None:
    flow, _ = with_something_installed()
    assert flow.at_overview
    assert flows.forward(flow) == flow
    assert flows.bookmark(flow) == Bookmark(page=Page.WELCOME, choices=Choices(language="de"))


def test_changing_the_model_opens_its_page_with_what_is_installed_and_leads_back_to_the_overview() -> None:
    flow, plan = with_something_installed()
    flow = flows.change_model(flows.seen(flow, recorded("rtx-5090-linux")), plan)
    assert (flow.at_overview, flow.page, flow.profile) == (False, Page.MODEL, OTHER)
    assert (flow.choices.port, flow.choices.language) == (8123, "de")
    while flow.history:
        flow = flows.back(flow)
    left = flows.back(flow)
    assert (left.at_overview, left.choices) == (True, Choices(language="de"))


def test_another_model_is_judged_as_if_our_own_server_were_stopped() -> None:
    """It holds nearly the whole card, and will be stopped before the other one starts."""
    flow, plan = with_something_installed()
    assert plan.fit is not None
    busy = with_used(recorded("rtx-5090-linux"), round(plan.fit.budget.total_bytes * plan.settings.utilisation))
    assert flows.seen(flow, busy).profile != LARGE
    flow = flows.change_model(flows.seen(flow, busy, running=plan), plan)
    assert (flow.page, flow.running) == (Page.MODEL, plan)
    assert flow.recommended is not None
    assert flow.recommended.profile == LARGE


def test_after_an_uninstall_it_begins_anew_in_the_same_language() -> None:
    flow, _ = with_something_installed()
    flow = flows.removed(flows.seen(flow, recorded("rtx-5090-linux")))
    assert (flow.status, flow.at_overview, flow.page) == (None, False, Page.WELCOME)
    assert flow.choices == Choices(language="de")
    assert flows.needs_reading(flow)


def test_who_is_in_the_wizard_is_not_taken_out_of_it() -> None:
    _, plan = with_something_installed()
    busy = flows.found(at(Page.MODEL), status(plan))
    assert (busy.at_overview, busy.status is not None) == (False, True)
    done = flows.ended(at(Page.INSTALLATION), installed(plan))
    assert not flows.found(done, status(plan)).at_overview
    assert flows.to_overview(flows.found(done, status(plan))).at_overview


# --- after a crash or a reboot -------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_it_opens_where_it_was_as_soon_as_what_the_page_needs_is_known(page: Page, tmp_path: Path) -> None:
    home = Home(tmp_path)
    left = flows.ended(at(Page.INSTALLATION), installed(plan_of())) if page is Page.DONE else at(page)
    left = flows.chose(left, language="de")
    home.save_bookmark(flows.bookmark(left))
    flow = flows.opened(shipped_registry(), home.bookmark())
    assert (flow.page, flow.choices.language) == (Page.WELCOME, "de")
    assert flows.bookmark(flow) == flows.bookmark(left), "a second crash loses nothing either"
    flow = flows.seen(flow, recorded("rtx-5090-linux"))
    if flows.needs_sources(flow):
        flow = flows.resolved(flow, answer(flow))
    assert flow.page is (Page.WELCOME if page is Page.DONE else page)
    assert flow.goal is None
    if page is not Page.DONE:
        assert flow.choices == left.choices


def test_a_bookmark_leads_no_further_than_the_machine_allows_and_then_not_behind_a_person_s_back() -> None:
    left = flows.bookmark(at(Page.SUMMARY))
    flow = flows.seen(flows.opened(shipped_registry(), left), recorded("engine-down"))
    assert (flow.page, flow.goal) == (Page.DOCKER, None)
    assert flow.choices == left.choices
    assert flows.seen(flow, recorded("rtx-5090-linux")).page is Page.DOCKER


def test_a_person_who_moves_meanwhile_is_not_led_on() -> None:
    flow = flows.seen(flows.opened(shipped_registry(), flows.bookmark(at(Page.SUMMARY))), recorded("rtx-5090-linux"))
    assert (flow.page, flow.goal) == (Page.VERSION, Page.SUMMARY)
    moved = flows.back(flow)
    assert flows.seen(moved, recorded("rtx-5090-linux")).page is Page.MODEL


def test_a_bookmark_wins_over_the_overview_since_somebody_was_in_the_middle_of_something() -> None:
    plan = plan_of()
    flow = flows.opened(shipped_registry(), flows.bookmark(at(Page.MODEL, profile=SMALL)))
    assert not flows.found(flow, status(plan)).at_overview


def test_answers_that_are_given_count_and_not_the_bookmark() -> None:
    kept = Bookmark(page=Page.SUMMARY, choices=Choices(port=8123, language="de"))
    flow = flows.opened(shipped_registry(), kept, Choices(profile=SMALL))
    assert (flow.choices, flow.goal) == (Choices(profile=SMALL, language="de"), None)
    with pytest.raises(InstallerError):
        flows.opened(shipped_registry(), None, Choices(profile="nobody-knows"))


def test_a_profile_that_the_registry_no_longer_has_is_dropped_and_the_rest_stays() -> None:
    kept = Bookmark(page=Page.SUMMARY, choices=Choices(profile="gone", context=2048, port=8123))
    flow = flows.seen(flows.opened(shipped_registry(), kept), recorded("rtx-5090-linux"))
    assert flow.choices == Choices(port=8123)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b"\xff", b'{"page": "nowhere", "choices": {}}', b'{"page": "card", "choices": {"port": 80}}'],
)
def test_a_bookmark_that_cannot_be_used_is_ignored_and_kept_aside(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "wizard.json").write_bytes(content)
    assert Home(tmp_path).bookmark() is None
    assert not (tmp_path / "wizard.json").exists()
    assert (tmp_path / "wizard.json.broken").read_bytes() == content


# --- whatever a person does ----------------------------------------------------------------------------------------

Move = Callable[[Flow], Flow]


def _answered(flow: Flow) -> Flow:
    return flows.resolved(flow, answer(flow)) if flow.profile and flow.facts else flow


def _ended(flow: Flow) -> Flow:
    return flows.ended(flow, installed(flow.plan)) if flow.plan else flow


def _chosen(**changes: Any) -> Move:
    return lambda flow: flows.chose(flow, **changes)


UUIDS = [gpu.uuid for gpu in recorded("two-cards-16-and-32gb").nvidia.gpus]
INSTALLED = plan_of(profile=OTHER)
CHANGES = st.one_of(
    st.fixed_dictionaries({"profile": st.sampled_from([None, *shipped_registry().profiles])}),
    st.fixed_dictionaries({"gpu_uuid": st.sampled_from([None, *UUIDS])}),
    st.fixed_dictionaries({"context": st.sampled_from([None, 4096, 32768, 262144])}),
    st.fixed_dictionaries({"docker_image_pin_digest": st.sampled_from(["", "current", PINNED])}),
    st.fixed_dictionaries({"folder": st.sampled_from([None, "/elsewhere"])}),
    st.fixed_dictionaries({"port": st.sampled_from([None, 8123])}),
    st.fixed_dictionaries({"language": st.sampled_from(["de", "en"])}),
    st.fixed_dictionaries({"accept_licenses": st.sampled_from([(), ("nvidia-open-model-license",)])}),
)
MOVES: st.SearchStrategy[Move] = st.one_of(
    st.sampled_from([flows.forward, flows.forward, flows.forward, _answered, flows.back, _ended, flows.to_overview]),
    st.sampled_from(MACHINES).map(lambda name: lambda flow: flows.seen(flow, recorded(name))),
    st.sampled_from(PAGES).map(lambda page: lambda flow: flows.go_back_to(flow, page)),
    CHANGES.map(lambda change: _chosen(**change)),
    st.sampled_from(
        [
            lambda flow: flows.unresolved(flow, p.Unreachable(host="", detail="")),
            lambda flow: flows.unread(flow, p.Bug(error="")),
            lambda flow: flows.failed(flow, p.Interrupted()),
            lambda flow: flows.found(flow, status(INSTALLED)),
            lambda flow: flows.change_model(flow, INSTALLED),
            flows.removed,
        ]
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([None, *PAGES]), st.lists(MOVES, max_size=25))
def test_whatever_a_person_does_no_page_stands_on_one_that_holds(left: Page | None, moves: list[Move]) -> None:
    kept = Bookmark(page=left, choices=Choices(profile=LARGE)) if left else None
    flow = flows.seen(flows.opened(shipped_registry(), kept), recorded("two-cards-16-and-32gb"))
    for move in moves:
        flow = move(flow)
        choice_rules.check(flow.choices)
        held = [page for page in flow.history if not standing(flow, page).valid]
        assert held == [], f"at {flow.page}"
        assert flow.answer is None or flow.answer.sources.profile == flow.profile
        if flow.plan is not None and flow.page is not Page.DONE:
            assert flow.plan.profile == flow.profile
            assert flow.plan.choices.accept_licenses == flow.choices.accept_licenses
        assert not (flow.at_overview and flow.status is None)
        assert flows.bookmark(flow).page is not Page.DONE


def test_docker_desktop_keeps_weights_in_a_volume_whatever_the_folder_is() -> None:
    flow = at(Page.SUMMARY, "rtx-5090-wsl2")
    assert flow.plan is not None
    assert isinstance(flow.plan.place, VolumeWeights)


def test_the_folder_of_a_person_whom_nobody_knows_is_refused() -> None:
    flow = at(Page.OPTIONS)
    with pytest.raises(InstallerError) as raised:
        flows.chose(flow, folder="~nobody-of-that-name/models")
    assert isinstance(raised.value.problem, p.BadChoice)

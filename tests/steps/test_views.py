"""What the window draws, as values: nothing is left out, nothing is counted twice, and every figure is the oracle's."""

from __future__ import annotations

import msgspec
import pytest

from installer.domain import checks, compose
from installer.domain import problems as p
from installer.domain.facts import Facts, GpuProcess, Missing
from installer.domain.plan import Present, Refusal, decide
from installer.domain.units import GB, MIB, gib
from installer.steps import flow as flows
from installer.steps.flow import Flow, Page
from installer.steps.views import DiffLine, GpuCard, Requirement, gpu_cards, requirements_of, summary
from installer.steps.views.docker import requirements
from tests.builders import MACHINES, recorded, shipped_registry
from tests.steps.wizard import LARGE, LICENSED, answer, at, began, plan_of, with_used

# --- Graphics card -------------------------------------------------------------------------------------------------


def only(flow: Flow) -> GpuCard:
    (card,) = gpu_cards(flow)
    return card


@pytest.mark.parametrize("machine", MACHINES)
def test_every_card_is_shown_with_what_the_driver_tells(machine: str) -> None:
    flow = began(machine)
    assert flow.facts is not None
    for card, gpu in zip(gpu_cards(flow), flow.facts.nvidia.gpus, strict=True):
        assert (card.uuid, card.name) == (gpu.uuid, gpu.name)
        if card.total_bytes is None or card.free_bytes is None or card.used_bytes is None:
            assert card.missing is not None
        else:
            assert card.used_bytes + card.free_bytes == card.total_bytes
            assert card.usable_bytes is not None
            assert card.usable_bytes <= card.free_bytes
    assert sum(card.chosen for card in gpu_cards(flow)) <= 1


def test_what_has_to_be_freed_for_the_better_model_is_told_to_the_byte() -> None:
    """6 GiB in use let a smaller model fit; what keeps the better one from it is other programs only."""
    seen = with_used(recorded("rtx-5090-linux"), gib(6))
    flow = flows.seen(flows.opened(shipped_registry()), seen)
    assert flow.profile != LARGE
    card = only(flow)
    assert card.wanted is not None
    assert (card.wanted.profile, card.to_free_bytes > 0) == (LARGE, True)
    freed = flows.seen(flow, with_used(recorded("rtx-5090-linux"), gib(6) - card.to_free_bytes))
    assert (freed.profile, only(freed).to_free_bytes) == (LARGE, 0)
    short_of_one = flows.seen(flow, with_used(recorded("rtx-5090-linux"), gib(6) - card.to_free_bytes + MIB))
    assert short_of_one.profile != LARGE


def test_where_freeing_does_not_help_nobody_is_asked_to_free() -> None:
    flow = flows.chose(began("rtx-4060-8gb"), profile=LARGE)
    assert only(flow).wanted is not None
    assert only(flow).to_free_bytes == 0


def test_programs_that_hold_memory_come_largest_first_and_what_is_not_told_is_not_made_up() -> None:
    seen = recorded("rtx-5090-linux")
    processes = (
        GpuProcess(pid=1, name="compositor", used_bytes=gib(0.5)),
        GpuProcess(pid=2, name="game", used_bytes=gib(3)),
        GpuProcess(pid=3, name=Missing.NO_PERMISSION, used_bytes=Missing.NOT_SUPPORTED),
    )
    card = only(flows.seen(flows.opened(shipped_registry()), with_card(seen, processes=processes)))
    assert card.holders is not None
    assert [(each.name, each.used_bytes) for each in card.holders] == [
        ("game", gib(3)),
        ("compositor", gib(0.5)),
        (None, None),
    ]
    untold = only(flows.seen(flows.opened(shipped_registry()), with_card(seen, processes=Missing.NOT_SUPPORTED)))
    assert untold.holders is None


def with_card(facts: Facts, **changes: object) -> Facts:
    (gpu,) = facts.nvidia.gpus
    gpus = (msgspec.structs.replace(gpu, **changes),)
    return msgspec.structs.replace(facts, nvidia=msgspec.structs.replace(facts.nvidia, gpus=gpus))


def test_a_sleeping_card_is_marked_and_a_split_one_says_that_it_is_not_served() -> None:
    asleep = with_card(recorded("rtx-5090-laptop-24gb"), asleep=True)
    assert only(flows.seen(flows.opened(shipped_registry()), asleep)).asleep
    assert isinstance(only(began("h100-mig")).problem, p.MigNotServed)


def test_memory_that_our_own_server_holds_counts_as_free_and_the_card_says_that_it_is_ours() -> None:
    plan = plan_of()
    assert plan.fit is not None
    busy = with_used(recorded("rtx-5090-linux"), round(plan.fit.budget.total_bytes * plan.settings.utilisation))
    flow = flows.seen(flows.opened(shipped_registry()), busy, running=plan)
    assert (only(flow).ours, only(flow).to_free_bytes, flow.profile) == (True, 0, LARGE)


# --- Docker --------------------------------------------------------------------------------------------------------


def row(rows: tuple[Requirement, ...], name: str) -> Requirement:
    return next(each for each in rows if each.name == name)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_problem_of_the_machine_stands_in_one_row_and_no_row_invents_one(machine: str) -> None:
    rows = requirements_of(began(machine))
    facts = recorded(machine)
    shown = [each.problem for each in rows if each.problem is not None]
    assert set(checks.machine(facts)) <= set(shown)
    assert len(shown) == len(set(shown))
    for each in rows:
        assert (each.state == "problem") == (each.problem is not None)


def test_what_blocks_is_required_and_what_does_not_is_advice() -> None:
    for machine in MACHINES:
        flow = began(machine)
        holds = not flows.standing(flow, Page.DOCKER).valid
        rows = requirements_of(flow)
        blocked = any(row(rows, name).state == "problem" for name in ("engine", "compose"))
        assert holds == blocked, machine
    assert row(requirements(recorded("no-nvidia-card")), "driver").weight == "advice"
    assert row(requirements(recorded("rtx-3090-old-driver")), "driver").weight == "required"


def test_what_is_not_known_is_inconclusive_and_never_fine() -> None:
    down = requirements(recorded("engine-down"))
    assert row(down, "toolkit").state == "unknown"
    assert row(requirements(recorded("rtx-5090-wsl2")), "toolkit").state == "unknown", (
        "Docker Desktop announces nothing"
    )
    assert row(requirements(recorded("rtx-5090-linux")), "toolkit").state == "ok"
    seen = recorded("rtx-5090-linux")
    engine = msgspec.structs.replace(seen.engine, memory_bytes=None, data_root_free_bytes=None)
    folder = msgspec.structs.replace(seen.weights_folder, free_bytes=None)
    odd = msgspec.structs.replace(seen.compose, version="from source")
    blind = requirements(msgspec.structs.replace(seen, engine=engine, weights_folder=folder, compose=odd))
    assert {row(blind, name).state for name in ("memory", "image_disk", "model_disk", "compose")} == {"unknown"}


def test_the_disks_are_held_against_the_profile_in_force() -> None:
    seen = recorded("rtx-5090-linux")
    little = msgspec.structs.replace(seen, weights_folder=msgspec.structs.replace(seen.weights_folder, free_bytes=GB))
    flow = flows.seen(flows.opened(shipped_registry()), little)
    disk = row(requirements_of(flow), "model_disk")
    model = flow.registry.model_of(flow.registry.profile(LARGE))
    assert (disk.there_bytes, disk.needed_bytes) == (GB, model.checkpoint_bytes)
    assert disk.problem == p.DiskFull(
        where=seen.weights_folder.path, needed_bytes=model.checkpoint_bytes, free_bytes=GB
    )
    assert row(requirements(little), "model_disk").state == "ok", "without a profile nothing is needed yet"
    volumes = requirements_of(began("rtx-5090-wsl2"))
    assert "model_disk" not in {each.name for each in volumes}, "Docker Desktop keeps weights on its own disk"


# --- Summary -------------------------------------------------------------------------------------------------------


def test_the_summary_says_what_goes_where_and_what_is_left() -> None:
    flow = at(Page.OPTIONS)
    flow = flows.resolved(flow, answer(flow, present=Present(weights_bytes=4_000_000)))
    seen = summary(flow)
    assert seen is not None
    assert (seen.image_bytes, seen.weights_bytes) == (10_000_000, 1_000_700)
    store, folder = seen.disks
    assert (store.engine, store.needed_bytes) == (True, 30_000_000), "an image is unpacked"
    assert (folder.where, folder.needed_bytes) == (seen.folder, 1_000_700)
    assert folder.free_bytes is not None
    assert folder.after_bytes == folder.free_bytes - 1_000_700
    here = flows.resolved(flow, answer(flow, present=Present(image=True, weights_bytes=5_000_700)))
    again = summary(here)
    assert again is not None
    assert again.download_bytes == 0


def test_on_docker_desktop_everything_goes_onto_docker_s_disk() -> None:
    seen = summary(at(Page.SUMMARY, "rtx-5090-wsl2"))
    assert seen is not None
    assert seen.folder is None
    (store,) = seen.disks
    assert (store.engine, store.needed_bytes) == (True, 30_000_000 + 5_000_700)


def test_the_compose_file_is_the_plan_s_and_is_held_against_the_one_on_disk() -> None:
    flow = at(Page.SUMMARY)
    first = summary(flow)
    assert first is not None
    assert first.plan == flow.plan
    text = compose.render(first.plan).text
    assert (first.compose_name, first.on_disk, first.changes) == ("docker-compose.vllm.yml", False, False)
    assert [line.text for line in first.lines] == text.splitlines()
    same = summary(flow, on_disk=text.encode())
    assert same is not None
    assert (same.on_disk, same.changes) == (True, False)
    other = summary(flows.chose(flow, port=8123), on_disk=text.encode())
    assert other is not None
    assert DiffLine(change="new", text='      - "127.0.0.1:8123:8000"') in other.lines
    assert DiffLine(change="gone", text='      - "127.0.0.1:8000:8000"') in other.lines
    assert [line.text for line in other.lines if line.change != "gone"] == compose.render(other.plan).text.splitlines()


def test_a_plan_that_waits_for_consent_is_shown_and_would_still_be_refused() -> None:
    flow = at(Page.SUMMARY, profile=LICENSED)
    seen = summary(flow)
    assert seen is not None
    assert seen.needs_consent
    assert flow.facts is not None
    assert isinstance(
        decide(flow.facts, flow.registry, answer(flow).sources, seen.plan.choices, slipway="0.1.0"), Refusal
    )
    agreed = summary(flows.chose(flow, accept_licenses=(seen.licence.id,)))
    assert agreed is not None
    assert not agreed.needs_consent


def test_without_a_plan_there_is_nothing_to_show() -> None:
    assert summary(at(Page.MODEL)) is None
    assert gpu_cards(flows.opened(shipped_registry())) == ()
    assert requirements_of(flows.opened(shipped_registry())) == ()

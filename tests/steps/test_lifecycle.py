"""Looking after an installation, and two of them in one home."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import pytest

from installer.adapters.dryrun import dry_run_ports
from installer.domain.problems import CardHeldByStack, ContainerNotOurs, EngineTimedOut, InstallerError, NotInstalled
from installer.domain.registry import Registry
from installer.domain.units import gib
from installer.steps import lifecycle
from installer.steps.events import Finished, Skipped, Started, Step
from installer.steps.lifecycle import Removal
from tests.steps.kit import SHIPPED, SMALL_PROFILE, JumpingClock, Rehearsal, machine, rehearsal, with_card_bytes

SECOND_PROFILE = "second-stack"


def two_stacks() -> Registry:
    """The shipped registry with one more profile, which serves the same model in the stack `images`."""
    profile = msgspec.structs.replace(SHIPPED.profiles[SMALL_PROFILE], stack="images")
    return msgspec.structs.replace(SHIPPED, profiles={**SHIPPED.profiles, SECOND_PROFILE: profile})


@pytest.fixture
def stage(tmp_path: Path) -> Rehearsal:
    installed = rehearsal(tmp_path)
    installed.install()
    return installed


def on_a_card_of(gibibytes: int, tmp_path: Path) -> tuple[Rehearsal, Rehearsal]:
    """Two stacks of one home, on a card of this size."""
    seen = with_card_bytes(machine("rtx-pro-6000", tmp_path / "models"), gib(gibibytes))
    registry = two_stacks()
    # A small share each, so that both have room where both may run.
    for name in (SMALL_PROFILE, SECOND_PROFILE):
        registry.profiles[name] = msgspec.structs.replace(registry.profiles[name], utilisation=0.4)
    chat = rehearsal(tmp_path, seen=seen, registry=registry)
    choices = msgspec.structs.replace(chat.choices, stack="images", profile=SECOND_PROFILE)
    return chat, dataclasses.replace(chat, choices=choices)


# --- one stack -------------------------------------------------------------------------------------------------------


def test_the_status_says_what_serves_and_where(stage: Rehearsal) -> None:
    seen = lifecycle.status(stage.job())
    plan = stage.home.stack("chat").installed()
    assert (seen.state, seen.profile, seen.context) == ("serving", plan.profile, plan.settings.context)
    assert seen.endpoint == f"http://127.0.0.1:{plan.port}/v1"
    assert seen.image_digest == plan.image.index_digest
    assert seen.pinned
    assert seen.proof is not None
    assert seen.container == stage.container()


def test_stopping_frees_the_card_and_starting_serves_again(stage: Rehearsal) -> None:
    (busy,) = stage.facts().nvidia.gpus
    stage.run(lifecycle.stop)
    assert lifecycle.status(stage.job()).state == "stopped"
    (idle,) = stage.facts().nvidia.gpus
    assert idle == stage.recorded.nvidia.gpus[0] != busy
    before = stage.container()
    stage.run(lifecycle.start_again)
    assert stage.told.steps(Finished) == [Step.GATE, Step.START]
    assert lifecycle.status(stage.job()).state == "serving"
    after = stage.container()
    assert after.id == before.id
    assert after.started_at != before.started_at


def test_stopping_and_starting_twice_does_nothing(stage: Rehearsal) -> None:
    stage.run(lifecycle.start_again)
    assert stage.told.steps(Started) == []
    stage.run(lifecycle.stop)
    stage.run(lifecycle.stop)
    assert stage.told.steps(Skipped) == [Step.STOP]


def test_starting_asks_no_registry(stage: Rehearsal) -> None:
    stage.run(lifecycle.stop)
    offline = dataclasses.replace(stage.ports, images=None, hub=None)  # type: ignore[arg-type]
    dataclasses.replace(stage, ports=offline).run(lifecycle.start_again)
    assert lifecycle.status(stage.job()).state == "serving"


def test_a_proof_counts_for_one_start_only(stage: Rehearsal) -> None:
    first = lifecycle.status(stage.job()).proof
    stage.run(lifecycle.stop)
    stage.run(lifecycle.start_again)
    stage.install()
    assert stage.told.steps(Started) == [Step.SMOKE]
    second = lifecycle.status(stage.job()).proof
    assert first is not None
    assert second is not None
    assert first.start.started_at != second.start.started_at


def test_proving_again_asks_again_and_starts_what_is_stopped(stage: Rehearsal) -> None:
    stage.run(lifecycle.prove_again)
    assert stage.told.steps(Started) == [Step.SMOKE]
    stage.run(lifecycle.stop)
    report = stage.run(lifecycle.prove_again)
    assert stage.told.steps(Started) == [Step.GATE, Step.START, Step.SMOKE]
    assert "failed" not in {check.outcome for check in report.checks}


def test_nothing_can_be_asked_of_a_stack_that_is_not_installed(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path)
    for work in (lifecycle.status, lifecycle.stop, lifecycle.start_again, lifecycle.prove_again):
        with pytest.raises(InstallerError) as caught:
            work(stage.job())
        assert caught.value.problem == NotInstalled(stack="chat", home=str(stage.folder))


def test_a_container_that_is_gone_is_missing_and_made_again(stage: Rehearsal) -> None:
    stage.ports.stack.down(str(stage.file("docker-compose.vllm.yml")))
    assert lifecycle.status(stage.job()).state == "missing"
    stage.run(lifecycle.start_again)
    assert lifecycle.status(stage.job()).state == "serving"


def test_a_strangers_container_is_left_alone(stage: Rehearsal) -> None:
    ours = stage.container()
    stranger = msgspec.structs.replace(ours, fingerprint="", name="slipway-chat-server-1")

    class WithAStranger:
        def __getattr__(self, name: str) -> object:
            return getattr(stage.ports.engine, name)

        def containers(self, project: str) -> tuple[object, ...]:
            return (stranger,)

    ports = dataclasses.replace(stage.ports, engine=WithAStranger())  # type: ignore[arg-type]
    other = dataclasses.replace(stage, ports=ports)
    for work in (lifecycle.stop, lifecycle.start_again):
        with pytest.raises(InstallerError) as caught:
            other.run(work)
        assert caught.value.problem == ContainerNotOurs(name="slipway-chat-server-1")
    assert stage.container() == ours


def test_waiting_for_an_engine_that_never_comes_ends(tmp_path: Path) -> None:
    seen = machine("engine-down", tmp_path)
    ports = dry_run_ports(seen, SHIPPED, clock=JumpingClock())
    stage = rehearsal(tmp_path)
    problem = stage.fails(lambda: lifecycle.wait_for_engine(ports, stage.cancel))
    assert problem == EngineTimedOut(endpoint=seen.engine.endpoint, seconds=lifecycle.WAIT_FOR_ENGINE_SECONDS)


# --- uninstalling ----------------------------------------------------------------------------------------------------


def uninstall(
    stage: Rehearsal, stack: str = "chat", *, keep_weights: bool = False, keep_image: bool = False
) -> Removal:
    what = lifecycle.removal(stage.job(stack), stage.home, keep_weights=keep_weights, keep_image=keep_image)
    stage.run(lambda job: lifecycle.uninstall(job, what), stack)
    return what


def test_uninstalling_leaves_nothing_that_was_made(stage: Rehearsal) -> None:
    plan = stage.home.stack("chat").installed()
    what = uninstall(stage)
    assert (what.keeps_image, what.keeps_weights) == (False, False)
    assert what.image_bytes == plan.image.size_bytes
    assert plan.weights.folder in what.weights
    assert stage.container() is None
    assert not stage.ports.engine.has_image(plan.image)
    assert not stage.ports.engine.has_image(plan.helper)
    assert stage.ports.hub.missing_bytes(plan.weights, plan.place) == plan.weights.size_bytes
    assert not (stage.folder / "chat").exists()


def test_uninstalling_tells_how_it_went_to_the_end(stage: Rehearsal) -> None:
    uninstall(stage)
    assert stage.told.steps(Finished) == [Step.REMOVE]
    assert stage.told.outcome == "ok"


@pytest.mark.parametrize("keep", ["image", "weights"])
def test_what_shall_stay_stays(stage: Rehearsal, keep: str) -> None:
    plan = stage.home.stack("chat").installed()
    uninstall(stage, keep_image=keep == "image", keep_weights=keep == "weights")
    assert stage.ports.engine.has_image(plan.image) is (keep == "image")
    missing = stage.ports.hub.missing_bytes(plan.weights, plan.place)
    assert (missing == 0) is (keep == "weights")


def test_what_was_there_before_is_not_ours_to_remove(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path)
    plan = stage.plan(stage.job())
    stage.ports.engine.pull(plan.image, lambda _, __: None, stage.cancel)
    stage.ports.hub.fetch(plan.weights, plan.place, lambda _, __: None, stage.cancel)
    stage.install()
    what = uninstall(stage)
    assert (what.keeps_image, what.keeps_weights) == (True, True)
    assert stage.ports.engine.has_image(plan.image)
    assert stage.ports.hub.missing_bytes(plan.weights, plan.place) == 0


def test_after_uninstalling_everything_can_be_installed_again(stage: Rehearsal) -> None:
    uninstall(stage)
    stage.install()
    assert stage.told.outcome == "ok"
    assert stage.told.steps(Skipped) == []


# --- two stacks in one home ------------------------------------------------------------------------------------------


def test_below_48_gb_one_stack_holds_the_card_at_a_time(tmp_path: Path) -> None:
    chat, images = on_a_card_of(40, tmp_path)
    chat.install()
    problem = images.fails()
    assert problem == CardHeldByStack(stack="images", other="chat")
    assert problem.command == "slipway stop --stack chat"
    assert chat.container("chat").health == "healthy"
    chat.run(lifecycle.stop)
    images.install()
    assert images.told.outcome == "ok"
    assert chat.fails(lambda: chat.run(lifecycle.start_again)) == CardHeldByStack(stack="chat", other="images")


def test_from_48_gb_on_both_serve_on_ports_of_their_own(tmp_path: Path) -> None:
    chat, images = on_a_card_of(94, tmp_path)
    first, second = chat.install(), images.install()
    assert first.plan.port != second.plan.port
    assert chat.container("chat").health == images.container("images").health == "healthy"
    assert [check.figure.split(",")[0] for check in second.report.checks][1] == SECOND_PROFILE
    assert (chat.folder / "images" / "docker-compose.images.yml").exists()
    assert (chat.folder / "images" / "images.env").exists()


def test_uninstalling_one_stack_keeps_what_the_other_uses(tmp_path: Path) -> None:
    chat, images = on_a_card_of(94, tmp_path)
    plan = chat.install().plan
    images.install()
    what = uninstall(chat)
    assert (what.keeps_image, what.keeps_weights) == (True, True)
    assert chat.ports.engine.has_image(plan.image)
    assert chat.ports.hub.missing_bytes(plan.weights, plan.place) == 0
    assert images.container("images").health == "healthy"
    assert lifecycle.status(images.job()).state == "serving"


def test_uninstalling_one_stack_leaves_the_helper_by_which_the_other_starts(tmp_path: Path) -> None:
    chat, images = on_a_card_of(94, tmp_path)
    plan = images.install().plan
    chat.choices = msgspec.structs.replace(chat.choices, profile="cpu-trial")
    other = chat.install().plan
    images.run(lifecycle.stop, "images")
    assert other.image != plan.image
    uninstall(images, "images")
    assert not chat.ports.engine.has_image(plan.image)
    assert chat.ports.engine.has_image(other.helper)


def test_whichever_stack_goes_last_takes_along_what_was_made(tmp_path: Path) -> None:
    chat, images = on_a_card_of(94, tmp_path)
    plan = chat.install().plan
    images.install()
    uninstall(chat)
    uninstall(images, "images")
    assert not chat.ports.engine.has_image(plan.image)
    assert chat.ports.hub.missing_bytes(plan.weights, plan.place) == plan.weights.size_bytes

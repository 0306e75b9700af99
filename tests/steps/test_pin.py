"""Pinning what is installed, and letting its tag decide again."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from installer.domain.plan import Plan
from installer.domain.problems import EditedByHand, InstallerError, NotInstalled, PinNotProved
from installer.steps import lifecycle, pin
from installer.steps.events import Started, Step
from tests.steps.kit import Rehearsal, rehearsal


@pytest.fixture
def stage(tmp_path: Path) -> Rehearsal:
    """An installation that follows its tag."""
    installed = rehearsal(tmp_path)
    installed.choices = msgspec.structs.replace(installed.choices, docker_image_pin_digest="")
    installed.install()
    return installed


def kept(stage: Rehearsal) -> Plan:
    return stage.home.stack("chat").installed()


def compose_file(stage: Rehearsal) -> str:
    return stage.home.stack("chat").path("docker-compose.vllm.yml").read_text()


def test_a_pin_names_the_digest_that_runs_and_a_later_install_keeps_it(stage: Rehearsal) -> None:
    plan = pin.pin(stage.job())
    assert plan == kept(stage)
    assert plan.pinned
    assert plan.choices.docker_image_pin_digest == plan.image.index_digest
    assert plan.image.by_digest in compose_file(stage)
    assert lifecycle.status(stage.job()).pinned


def test_without_a_pin_the_file_names_the_tag_again(stage: Rehearsal) -> None:
    followed = compose_file(stage)
    pin.pin(stage.job())
    plan = pin.unpin(stage.job())
    assert (plan.pinned, plan.choices.docker_image_pin_digest) == (False, "")
    assert compose_file(stage) == followed


def test_the_server_that_runs_is_left_alone_and_stays_proved(stage: Rehearsal) -> None:
    before = stage.container()
    for change in (pin.pin, pin.unpin, pin.unpin):
        change(stage.job())
        lifecycle.start_again(stage.job())
        assert stage.container() == before
        assert pin.proved(kept(stage), stage.home.stack("chat"))
        assert Step.STOP not in stage.told.steps(Started)


def test_an_image_with_which_no_proof_passed_is_pinned_only_when_that_is_known(stage: Rehearsal) -> None:
    (stage.home.stack("chat").path("smoke.json")).unlink()
    with pytest.raises(InstallerError) as refused:
        pin.pin(stage.job())
    assert refused.value.problem == PinNotProved(image=kept(stage).image.by_digest)
    assert not kept(stage).pinned
    assert pin.pin(stage.job(), unproved=True).pinned


def test_a_file_that_a_person_changed_is_not_lost_to_a_pin(stage: Rehearsal) -> None:
    path = stage.home.stack("chat").path("docker-compose.vllm.yml")
    path.write_text(path.read_text() + "# mine\n")
    with pytest.raises(InstallerError) as refused:
        pin.pin(stage.job())
    assert isinstance(refused.value.problem, EditedByHand)
    assert not kept(stage).pinned
    assert "# mine" in path.read_text()


@pytest.mark.parametrize("change", [pin.pin, pin.unpin])
def test_nothing_is_pinned_where_nothing_is_installed(change: object, tmp_path: Path) -> None:
    with pytest.raises(InstallerError) as refused:
        change(rehearsal(tmp_path).job())  # type: ignore[operator]
    assert isinstance(refused.value.problem, NotInstalled)

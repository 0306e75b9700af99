"""The pin where an installation is over: on the last page if it was left off, and in the overview."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from installer.domain.problems import PinNotProved
from installer.ui.pages.done import DonePage
from installer.ui.pages.overview import OverviewPage
from installer.ui.pages.pin_card import PinCard
from tests.ui.kit import Window, opened


def installed(qtbot: QtBot, home: Path, pin: str) -> Window:
    window = opened(qtbot, home)
    window.shell.conductor.choose(docker_image_pin_digest=pin)
    window.install()
    return window


def cards(window: Window) -> list[PinCard]:
    return window.shown(PinCard)


def tick(window: Window) -> None:
    (card,) = cards(window)
    card.pin.box.click()
    window.until(lambda: not window.shell.conductor.busy)
    window.settle()


def kept_pin(window: Window) -> bool:
    return window.shell.conductor.stack.installed().pinned


def test_a_pin_that_was_left_off_is_offered_again_and_stays_to_be_seen(qtbot: QtBot, tmp_path: Path) -> None:
    window = installed(qtbot, tmp_path, "")
    assert isinstance(window.shell.current, DonePage)
    tick(window)
    assert kept_pin(window)
    (card,) = cards(window)
    assert card.pin.box.isChecked()
    tick(window)
    assert not kept_pin(window)


def test_who_pinned_before_is_not_asked_on_the_last_page(qtbot: QtBot, tmp_path: Path) -> None:
    window = installed(qtbot, tmp_path, "current")
    assert cards(window) == []


def test_the_overview_shows_the_pin_and_changes_it(qtbot: QtBot, tmp_path: Path) -> None:
    window = installed(qtbot, tmp_path, "")
    window.shell.next.click()
    window.until(lambda: isinstance(window.shell.current, OverviewPage) and not window.shell.conductor.busy)
    tick(window)
    assert kept_pin(window)
    assert any("festgelegt" in words for words in window.words())


def test_a_pin_that_is_refused_leaves_the_box_as_it_was(qtbot: QtBot, tmp_path: Path) -> None:
    window = installed(qtbot, tmp_path, "")
    window.shell.conductor.stack.path("smoke.json").unlink()
    tick(window)
    assert isinstance(window.shell.conductor.problem, PinNotProved)
    (card,) = cards(window)
    assert not card.pin.box.isChecked()

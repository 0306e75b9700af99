"""What stands around every page: why one may not go on, the language, the way to the overview, the text's size."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from installer import doors
from installer.domain.choices import Choices
from installer.domain.facts import Facts
from installer.domain.problems import InstallerError, Unreachable
from installer.steps import read
from installer.steps.bookmark import Bookmark, Page
from installer.steps.home import Home
from installer.ui import text_size, theme
from installer.ui.app import open_window
from installer.ui.options import Options
from installer.ui.palette import LIGHT
from installer.ui.widgets.file_view import FileView
from tests.builders import recorded
from tests.steps.wizard import LICENSED
from tests.ui.kit import Window, name_of, opened


def as_far_as_it_goes(window: Window) -> None:
    window.rest()
    while window.shell.next.isEnabled() and window.page is not Page.SUMMARY:
        window.go_on()


@pytest.mark.parametrize(
    "machine", ["engine-down", "podman-socket", "no-nvidia-card", "h100-mig", "rtx-5090-wsl2", "t4"]
)
def test_whoever_may_not_go_on_is_told_why(qtbot: QtBot, tmp_path: Path, machine: str) -> None:
    window = opened(qtbot, tmp_path, machine=machine)
    as_far_as_it_goes(window)
    why = window.shell._why
    assert why.isVisible() == (not window.shell.next.isEnabled())
    if why.isVisible():
        assert why.text() in window.words()
        assert window.shell.next.accessibleDescription() == why.text()


def test_consent_that_is_missing_is_said_beside_the_button(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    window.shell.conductor.choose(profile=LICENSED)
    window.go_to(Page.SUMMARY)
    page: Any = window.shell.current
    assert "NVIDIA GeForce RTX 5090" in window.words(), "one agrees to what one has read"
    assert "Lizenz" in window.shell._why.text()
    page._licence.box.click()
    window.rest()
    assert (window.shell.next.isEnabled(), window.shell._why.isVisible()) == (True, False)
    page._licence.box.click()
    window.rest()
    assert not window.shell.next.isEnabled()


def test_a_network_that_is_gone_is_said_and_asked_again_on_request(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(qtbot, tmp_path)
    window.go_to(Page.MODEL)

    def gone(*_: object) -> None:
        raise InstallerError(Unreachable(host="hub.example", detail=""))

    with monkeypatch.context() as broken:
        broken.setattr(read, "sources", gone)
        window.go_on()
        assert (window.page, bool(window.problem), window.shell._why.isVisible()) == (Page.VERSION, True, True)
    window.shell.current.mend()
    window.rest()
    assert window.shell.next.isEnabled()
    assert not window.problem


def test_a_problem_leads_to_the_page_on_which_it_is_mended(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path, fail="weights:disk_full")
    window.install()
    window.shell.current.mend()
    window.rest()
    assert window.page is Page.OPTIONS


@pytest.mark.parametrize("page", [Page.CARD, Page.VERSION, Page.SUMMARY])
def test_it_opens_at_the_very_page_where_it_was(qtbot: QtBot, tmp_path: Path, page: Page) -> None:
    first = opened(qtbot, tmp_path)
    first.go_to(page)
    again = opened(qtbot, tmp_path)
    again.rest()
    assert again.page is page


def test_on_a_machine_that_lost_its_engine_it_opens_as_far_as_it_can_and_says_why(qtbot: QtBot, tmp_path: Path) -> None:
    first = opened(qtbot, tmp_path)
    first.shell.conductor.choose(port=8123)
    first.go_to(Page.SUMMARY)
    again = opened(qtbot, tmp_path, machine="engine-down")
    assert (again.page, again.choices.port) == (Page.DOCKER, 8123)
    assert again.shell._why.isVisible()


def test_the_language_can_be_changed_on_every_page_and_is_remembered(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path, language=None)
    window.shell.conductor.set_language("de")
    window.go_to(Page.OPTIONS)
    box = window.shell._language
    assert name_of(box)
    box.setCurrentIndex(box.findData("en"))
    box.activated.emit(box.currentIndex())
    window.rest()
    assert "Options" in window.words()
    again = opened(qtbot, tmp_path, language=None)
    again.rest()
    assert (again.page, again.shell.conductor.text.language) == (Page.OPTIONS, "en")
    assert again.shell._language.currentText() == "English"


def test_a_language_chosen_while_the_machine_is_read_stays(qtbot: QtBot, tmp_path: Path) -> None:
    Home(tmp_path).save_bookmark(Bookmark(page=Page.WELCOME, choices=Choices(language="de")))
    theme.use(theme.Theme(LIGHT))
    shell = open_window(Options(home=str(tmp_path), machine="rtx-5090-linux", dry_run=True))
    qtbot.addWidget(shell)
    shell.conductor.set_language("en")
    shell.show()
    window = Window(qtbot, shell)
    window.rest()
    assert (shell.conductor.text.language, window.choices.language) == ("en", "en")


def test_from_another_model_one_gets_back_to_the_overview(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    window.install()
    window.go_on()
    window.until(lambda: window.shell.conductor.status is not None)
    assert not window.shell._overview.isVisible()
    page: Any = window.shell._page(None)
    page._change.click()
    window.rest()
    assert window.page is Page.MODEL
    window.shell._overview.click()
    window.rest()
    assert window.shell.current is page
    assert window.shell.conductor.status is not None
    assert window.shell.conductor.status.state == "serving"


def asleep(facts: Facts) -> Facts:
    gpus = tuple(msgspec.structs.replace(gpu, asleep=True) for gpu in facts.nvidia.gpus)
    return msgspec.structs.replace(facts, nvidia=msgspec.structs.replace(facts.nvidia, gpus=gpus))


@pytest.mark.parametrize(("as_it_is", "reads"), [(asleep, False), (lambda facts: facts, True)])
def test_a_sleeping_card_is_not_read_by_itself_and_it_is_said(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_it_is: Callable[[Facts], Facts], reads: bool
) -> None:
    monkeypatch.setattr(doors, "machine", lambda _: as_it_is(recorded("rtx-5090-laptop-24gb")))
    window = opened(qtbot, tmp_path, machine="rtx-5090-laptop-24gb")
    window.go_to(Page.CARD)
    assert any("schlief" in text for text in window.words()) is not reads
    before = window.shell.conductor.flow
    window.shell.conductor.look_at_cards()
    assert window.shell.conductor._looking is reads
    window.until(lambda: not window.shell.conductor._looking)
    assert (window.shell.conductor.flow is before) is not reads


def test_where_it_is_is_written_down_beside_the_window_and_the_last_place_wins(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(qtbot, tmp_path)
    disk, written, save = threading.Event(), [], Home.save_bookmark

    def slow(home: Home, bookmark: Any) -> None:
        written.append(threading.current_thread() is threading.main_thread())
        disk.wait(10)
        save(home, bookmark)

    monkeypatch.setattr(Home, "save_bookmark", slow)
    for port in range(8101, 8110):
        window.shell.conductor.choose(port=port)
    disk.set()
    window.rest()
    kept = window.shell.conductor.home.bookmark()
    assert kept is not None
    assert kept.choices.port == 8109
    assert written == [False, False], "one while the others came, and the newest of them"


def test_what_is_still_to_be_written_is_written_when_the_window_closes(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    for port in range(8101, 8110):
        window.shell.conductor.choose(port=port)
    window.shell.close()
    kept = Home(tmp_path).bookmark()
    assert kept is not None
    assert kept.choices.port == 8109


def test_what_changes_in_the_compose_file_is_marked_by_signs_too(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    window.install()
    window.go_on()
    window.until(lambda: window.shell.conductor.status is not None)
    window.shell.conductor.change_model()
    window.shell.conductor.choose(port=8123)
    window.go_to(Page.SUMMARY)
    page: Any = window.shell.current
    page._more.click()
    window.settle()
    file: FileView = page._file
    window.until(lambda: file.visibleRegion().boundingRect().height() == file.height())
    lines = file.toPlainText().splitlines()
    assert any(line.startswith("+") and "8123" in line for line in lines)
    assert any(line.startswith("\N{MINUS SIGN}") and "8000" in line for line in lines)
    grounds = {mark.format.background().color().name() for mark in file.extraSelections()}
    assert {QColor(LIGHT.new_line).name(), QColor(LIGHT.gone_line).name()} <= grounds


@pytest.mark.parametrize(
    ("points", "desktop", "gnomes", "factor"),
    [
        (9.0, "", "1", 1.0),
        (9.0, "KDE", "1", 1.0),
        (15.0, "KDE", "1", 1.5),
        (11.0, "ubuntu:GNOME", "1.25", 1.25),
        (11.0, "GNOME", "no such key", 1.0),
        (18.0, "", "1", 2.0),
        (40.0, "", "1", 2.0),
    ],
)
def test_the_systems_text_size_is_ours(points: float, desktop: str, gnomes: str, factor: float) -> None:
    assert text_size.factor(points, desktop, gnomes) == pytest.approx(factor)


def test_larger_text_makes_a_larger_window_where_there_is_room(qtbot: QtBot, tmp_path: Path) -> None:
    theme.set_text_scale(1.5)
    window = opened(qtbot, tmp_path)
    room = window.shell.screen().availableSize()
    assert window.shell.size() == QSize(1440, 1020).boundedTo(room).expandedTo(QSize(860, 600))


def test_a_chosen_card_that_was_taken_out_is_said_on_its_page(qtbot: QtBot, tmp_path: Path) -> None:
    first = opened(qtbot, tmp_path, machine="two-cards-16-and-32gb")
    first.shell.conductor.choose(gpu_uuid=recorded("two-cards-16-and-32gb").nvidia.gpus[1].uuid)
    first.go_to(Page.OPTIONS)
    again = opened(qtbot, tmp_path, machine="rtx-4060-8gb")
    page: Any = again.shell.current
    assert (again.page, page._gone.isVisible()) == (Page.CARD, True)
    again.go_on()
    again.shell.conductor.back()
    assert not page._gone.isVisible()

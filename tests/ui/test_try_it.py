"""Trying what runs: a question, a picture, the answer as it streams, and the report to keep."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from pytestqt.qtbot import QtBot

from installer import resources
from installer.adapters import dryrun_server
from installer.adapters.dryrun import RecordedMedia
from installer.domain.problems import InstallerError, UrlNotPublic
from installer.resources import PROOF_CLIP
from installer.ui.pages.done import DonePage
from installer.ui.pages.overview import OverviewPage
from installer.ui.pages.try_it import TryIt
from tests.ui.kit import FASTEST, Window, opened

SECONDS_A_WORD = 0.5
NO_MEDIA = "qwen3-14b-awq-16gb"


def installed(qtbot: QtBot, home: Path, language: str = "en", profile: str | None = None) -> Window:
    window = opened(qtbot, home, language=language)
    if profile:
        window.shell.conductor.choose(profile=profile)
    window.install()
    return window


def try_it(window: Window) -> TryIt:
    page = window.shell.current
    assert isinstance(page, DonePage | OverviewPage)
    return page.try_it


def asked(window: Window, question: str) -> TryIt:
    there = try_it(window)
    there.question.setText(question)
    window.bot.keyClick(there.question, Qt.Key.Key_Return)
    window.until(lambda: not there.asking.running)
    window.settle()
    return there


def dropped(there: TryIt, file: Path) -> bool:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(file))])
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    entered = QDragEnterEvent(QPoint(5, 5), Qt.DropAction.CopyAction, data, buttons, keys)
    entered.ignore()
    there.dragEnterEvent(entered)
    if entered.isAccepted():
        there.dropEvent(QDropEvent(QPoint(5, 5), Qt.DropAction.CopyAction, data, buttons, keys))
    return entered.isAccepted()


@pytest.mark.parametrize("language", ["de", "en"])
def test_return_asks_and_the_answer_streams_with_its_figures(qtbot: QtBot, tmp_path: Path, language: str) -> None:
    window = installed(qtbot, tmp_path, language)
    page = window.shell.current
    there = asked(window, "Warum ist der Himmel blau?")
    assert window.shell.current is page
    assert "Warum ist der Himmel blau?" in there.answer.toPlainText()
    figures = " ".join(window.words())
    assert {"de": "Erster Token nach", "en": "First token after"}[language] in figures


def test_the_overview_asks_too_where_the_server_serves(qtbot: QtBot, tmp_path: Path) -> None:
    window = installed(qtbot, tmp_path)
    window.go_on()
    window.until(lambda: window.shell.conductor.status is not None and not window.shell.conductor.busy)
    assert "What can you do?" in asked(window, "What can you do?").answer.toPlainText()
    there = try_it(window)
    window.shell.conductor.keeper.stop()
    window.until(lambda: not there.isVisible() and not window.shell.conductor.busy)


def test_a_picture_that_is_dropped_goes_along_once_it_was_read(qtbot: QtBot, tmp_path: Path) -> None:
    window = installed(qtbot, tmp_path / "home")
    there = try_it(window)
    assert there.asking.reads_pictures
    file = tmp_path / "Bild äöü.png"
    Image.new("RGB", (64, 48), "red").save(file)
    with qtbot.waitSignal(there.asking.pictured):
        assert dropped(there, file)
    assert "64 × 48" in asked(window, "What is it?").answer.toPlainText().replace("\N{NO-BREAK SPACE}", " ")
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n")
    with qtbot.waitSignal(there.asking.failed):
        dropped(there, broken)
    assert any("broken.png" in words for words in window.words())


def test_a_model_that_reads_no_pictures_takes_none(qtbot: QtBot, tmp_path: Path) -> None:
    window = installed(qtbot, tmp_path / "home", profile=NO_MEDIA)
    there = try_it(window)
    file = tmp_path / "picture.png"
    Image.new("RGB", (8, 8)).save(file)
    assert not dropped(there, file)
    assert not [words for words in window.words() if "picture" in words.casefold() and "add" in words.casefold()]


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_video_goes_along_by_file_or_by_address_and_a_refusal_is_explained(
    qtbot: QtBot, tmp_path: Path, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = installed(qtbot, tmp_path / "home", language)
    there = try_it(window)
    assert dropped(there, resources.file("assets", *PROOF_CLIP))
    assert there.video.text().endswith("red-square.mp4")
    assert "12" in asked(window, "What moves?").answer.toPlainText()
    there.video.setText("https://example.org/a.mp4")
    assert "12" in asked(window, "What moves?").answer.toPlainText()

    def refused(*_: object) -> None:
        raise InstallerError(UrlNotPublic(url="https://example.org/a.mp4", status=403))

    monkeypatch.setattr(RecordedMedia, "fetched", refused)
    asked(window, "What moves?")
    title = {"de": "Diese URL ist nicht öffentlich abrufbar", "en": "This URL is not publicly accessible"}[language]
    assert title in window.words()


def test_an_answer_can_be_stopped_and_closing_waits_for_none(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = installed(qtbot, tmp_path)
    there = try_it(window)
    monkeypatch.setattr(dryrun_server, "PIECE_SECONDS", FASTEST * SECONDS_A_WORD)
    there.question.setText("Tell me a long story")
    there.ask()
    qtbot.waitSignal(there.asking.told).wait()
    assert "Stop answering" in window.words()
    with qtbot.waitSignal(there.asking.stopped):
        there.asking.stop()
    assert "Stopped." in window.words()
    there.ask()
    assert window.shell.conductor.close(5)


def test_the_report_is_saved_where_the_person_wants_it(qtbot: QtBot, tmp_path: Path) -> None:
    window = installed(qtbot, tmp_path / "home")
    keeper = window.shell.conductor.keeper
    with qtbot.waitSignal(keeper.report_saved):
        keeper.save_report(str(tmp_path / "report.md"))
    text = (tmp_path / "report.md").read_text("utf-8")
    key = keeper.installed_key()
    assert key
    assert key not in text
    assert str(tmp_path) not in text
    assert any("report.md" in words for words in window.words())

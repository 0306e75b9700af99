"""Looking an error up: paste, file, the server's log; what it means stands below."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QAbstractButton, QLabel
from pytestqt.qtbot import QtBot

from installer.steps.bookmark import Page
from installer.ui.pages.lookup import LookupPage
from installer.ui.widgets.cards import ProblemCard
from tests.ui.kit import Window, opened

FREE = (
    "ValueError: Free memory on device cuda:0 (30.12/31.84 GiB) on startup is less than desired GPU memory "
    "utilization (0.95, 30.25 GiB)."
)


def cards(window: Window, lookup: LookupPage) -> list[str]:
    window.settle()
    return [card.accessibleDescription() for card in lookup.findChildren(ProblemCard) if card.isVisible()]


def said(window: Window, lookup: LookupPage) -> str:
    window.settle()
    return "\n".join(label.text() for label in lookup.findChildren(QLabel) if label.isVisible())


@pytest.mark.parametrize(("language", "figure"), [("de", "30,12"), ("en", "30.12")])
def test_a_pasted_error_gets_cause_and_remedy(qtbot: QtBot, tmp_path: Path, language: str, figure: str) -> None:
    window = opened(qtbot, tmp_path, language=language)
    lookup = window.shell.look_up()
    assert not lookup.look.isEnabled()
    lookup.pasted.setPlainText(FREE)
    lookup.look.click()
    window.until(lambda: bool(cards(window, lookup)))
    (card,) = cards(window, lookup)
    assert figure in card
    lookup.pasted.setPlainText("INFO:     Application startup complete.")
    lookup.look.click()
    window.until(lambda: not cards(window, lookup))


def test_it_opens_over_any_page_and_leads_back_there(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path, language="en")
    window.go_to(Page.MODEL)
    page, choices = window.shell.current, window.choices
    lookup = window.shell.look_up()
    lookup.read(FREE)
    window.until(lambda: bool(cards(window, lookup)))
    window.shell.conductor.set_language("de")
    assert "30,12" in cards(window, lookup)[0]
    assert window.shell.next.text() == "Zurück"
    window.shell.next.click()
    assert (window.shell.current, window.choices.profile) == (page, choices.profile)


def test_a_file_in_another_encoding_is_read_too(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path / "home", language="en")
    path = tmp_path / "log.txt"
    path.write_bytes(FREE.encode("utf-16"))
    lookup = window.shell.look_up()
    lookup.read_file(str(path))
    window.until(lambda: bool(cards(window, lookup)))
    assert any("30.12" in card for card in cards(window, lookup))
    lookup.read_file(str(tmp_path / "gone.txt"))
    window.until(lambda: "gone.txt" in said(window, lookup))


def test_what_nobody_knows_is_said_to_be_unknown(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path, language="en")
    lookup = window.shell.look_up()
    lookup.read("RuntimeError: the flux capacitor failed")
    window.until(lambda: bool(cards(window, lookup)))
    assert "unknown" in said(window, lookup).casefold()


def test_what_is_installed_offers_its_log(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path, language="en")
    assert "Take the server's log" not in buttons(window.shell.look_up())
    window.shell.next.click()
    window.install()
    window.go_on()
    window.until(lambda: window.shell.conductor.status is not None and not window.shell.conductor.busy)
    lookup = window.shell.look_up()
    assert "Take the server's log" in buttons(lookup)
    next(button for button in lookup.findChildren(QAbstractButton) if "log" in button.text()).click()
    window.until(lambda: bool(lookup.pasted.toPlainText()))


def buttons(lookup: LookupPage) -> list[str]:
    return [button.text().strip() for button in lookup.findChildren(QAbstractButton) if button.isVisible()]

"""A window over a dry run, and what a person does with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QSlider,
    QWidget,
)
from pytestqt.qtbot import QtBot

from installer.steps.bookmark import Page
from installer.ui import theme
from installer.ui.app import open_window
from installer.ui.options import Options
from installer.ui.palette import LIGHT, Palette
from installer.ui.shell import Shell

W = TypeVar("W", bound=QWidget)

FASTEST = 2000.0
WAIT_MS = 20_000
LANGUAGES = ("de", "en")


class Window:
    """One opened window; every method waits until what it asks for has happened."""

    def __init__(self, bot: QtBot, shell: Shell) -> None:
        self.bot = bot
        self.shell = shell

    @property
    def page(self) -> Page:
        flow = self.shell.conductor.flow
        assert flow is not None
        return flow.page

    @property
    def choices(self) -> Any:
        return self.shell.conductor.flow.choices

    def until(self, holds: Callable[[], bool]) -> None:
        self.bot.waitUntil(holds, timeout=WAIT_MS)

    def settle(self) -> None:
        """Let what was just put into the window be laid out and shown."""
        for _ in range(3):
            QApplication.processEvents()

    def rest(self) -> None:
        """Wait until nothing is being done, and where the wizard is has been written down."""
        conductor = self.shell.conductor
        self.until(lambda: conductor.flow is not None and not conductor.busy and conductor.keeps_up)

    def go_on(self) -> None:
        self.until(self.shell.next.isEnabled)
        self.shell.next.click()
        self.rest()

    def go_to(self, page: Page) -> None:
        while self.page is not page:
            before = self.page
            self.go_on()
            assert self.page is not before, self.problem

    def install(self) -> None:
        self.go_to(Page.SUMMARY)
        self.go_on()

    @property
    def problem(self) -> str:
        """What the card above the page says, "" where there is none."""
        card = self.shell.current.problem_card
        return card.accessibleName() if card.isVisible() else ""

    def shown(self, kind: type[W]) -> list[W]:
        return [each for each in self.shell.findChildren(kind) if each.isVisible()]

    def words(self) -> list[str]:
        """Everything that can be read in the window now."""
        self.settle()
        found = [label.text() for label in self.shown(QLabel)]
        found += [button.text() for button in self.shown(QAbstractButton)]
        found += [box.currentText() for box in self.shown(QComboBox)]
        found += [line.placeholderText() for line in self.shown(QLineEdit)]
        return [text.strip().replace("\u200b", "") for text in found if text.strip()]

    def controls(self) -> list[QWidget]:
        self.settle()
        kinds = (QAbstractButton, QComboBox, QLineEdit, QPlainTextEdit, QSlider)
        return [each for each in self.shown(QWidget) if isinstance(each, kinds)]


def name_of(widget: QWidget) -> str:
    """What a screen reader is told."""
    return QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name)


def opened(
    bot: QtBot,
    home: Path,
    *,
    machine: str = "rtx-5090-linux",
    language: str | None = "de",
    fail: str | None = None,
    palette: Palette = LIGHT,
    speed: float = FASTEST,
) -> Window:
    """A window that is shown and has read its machine."""
    theme.use(theme.Theme(palette))
    given = Options(home=str(home), machine=machine, dry_run=True, speed=speed, language=language, fail=fail)
    shell = open_window(given)
    bot.addWidget(shell)
    shell.show()
    window = Window(bot, shell)
    window.rest()
    return window

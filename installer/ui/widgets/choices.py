"""Choices as cards: a radio button with everything that a person weighs beside it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QCheckBox, QRadioButton, QWidget

from installer.ui.widgets.basics import Icon, Label, column, restyle, row
from installer.ui.widgets.cards import Card

BESIDE_RADIO = 42
"""Where the name beside the radio button begins."""


class ChoiceCard(Card):
    """One choice of several. The radio button is the control; a click anywhere on the card is one on it.

    `box` takes what is shown below the head line.
    """

    def __init__(self) -> None:
        super().__init__("choice")
        self.radio = QRadioButton()
        self.radio.installEventFilter(self)
        self.radio.toggled.connect(self._mark)
        self.mark = VerdictMark()
        self._name = Label("heading")
        head = row(self.radio, self._name, self.mark, spacing=6)
        head.setStretch(1, 1)
        self.box.addLayout(head)
        self.body = column(margins=(BESIDE_RADIO, 0, 0, 0))
        self.box.addLayout(self.body)

    def say(self, name: str, description: str) -> None:
        """Give the choice its name, and to a screen reader everything that is on the card."""
        self._name.setText(name)
        self.radio.setAccessibleName(name)
        self.radio.setAccessibleDescription(description)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose by a click anywhere."""
        if self.radio.isEnabled():
            self.radio.click()
            self.radio.setFocus()
        super().mousePressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show on the card that its control has the focus."""
        if watched is self.radio and event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.setProperty("focused", event.type() is QEvent.Type.FocusIn)
            restyle(self)
        return super().eventFilter(watched, event)

    def _mark(self, chosen: bool) -> None:
        self.setProperty("chosen", chosen)
        restyle(self)


class CheckLine(QWidget):
    """A check box whose words wrap; a click on them is one on the box."""

    def __init__(self, on_click: Callable[[bool], object]) -> None:
        super().__init__()
        self.box = QCheckBox()
        self.box.clicked.connect(on_click)
        self._words = Label()
        line = row(self.box, self._words)
        line.setStretch(1, 1)
        self.setLayout(line)

    def say(self, words: str, description: str = "") -> None:
        """Give the box its words, and a screen reader what stands below them."""
        self._words.setText(words)
        self.box.setAccessibleName(words)
        self.box.setAccessibleDescription(description)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.box.isEnabled():
            self.box.click()
            self.box.setFocus()


_MARKS = {
    "fits": ("circle-check", "good"),
    "tight": ("triangle-alert", "warn"),
    "no": ("circle-x", "bad"),
    "blocked": ("ban", "muted"),
    "ok": ("circle-check", "good"),
    "problem": ("circle-x", "bad"),
    "advice": ("info", "warn"),
    "unknown": ("circle-question-mark", "muted"),
    "waiting": ("circle", "muted"),
    "busy": ("circle-dot", "accent"),
}


class VerdictMark(Label):
    """A verdict as icon and word, never as a colour alone."""

    def __init__(self) -> None:
        super().__init__()
        self.icon = Icon(size=16)
        self.word = Label("strong")
        self.word.setWordWrap(False)
        self._row = row(self.icon, self.word, spacing=6)
        self.setLayout(self._row)

    def show_verdict(self, kind: str, word: str) -> None:
        """Show one of fits, tight, no, blocked, ok, problem, advice, unknown, waiting, busy with its word."""
        name, colour = _MARKS[kind]
        self.icon.show_as(name, colour)
        self.word.say(word)
        self.setMinimumWidth(self._row.sizeHint().width())

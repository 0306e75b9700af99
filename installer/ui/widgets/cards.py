"""Cards: a frame around what belongs together, and the one that says what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtWidgets import QFrame, QPlainTextEdit, QVBoxLayout

from installer.text import ProblemText
from installer.ui.widgets.basics import Button, Icon, Label, add, breakable, column, restyle, row
from installer.ui.widgets.copying import CopyField
from installer.ui.widgets.wrapping import wrapping

INSIDE = 16


class Card(QFrame):
    """A frame; what belongs together goes into its `box`."""

    def __init__(self, part: str = "card") -> None:
        super().__init__()
        self.setProperty("part", part)
        self.box: QVBoxLayout = column(margins=(INSIDE, INSIDE, INSIDE, INSIDE))
        self.setLayout(self.box)


@dataclass(frozen=True)
class ProblemWords:
    """The words around a Problem: what to press, what to copy, what is technical."""

    action: str
    details: str
    command: str
    copy: str
    copied: str


class ProblemCard(Card):
    """What is wrong in one sentence, what to do in another, a button that does it, and the technical text on demand."""

    def __init__(self, on_action: Callable[[], object]) -> None:
        super().__init__("problem")
        self.setAccessibleName("problem")
        self._icon = Icon("triangle-alert", "bad")
        self._title = Label("strong")
        self._sentence, self._remedy = Label(), Label()
        self._command = CopyField()
        self._action = Button(on_click=on_action)
        self._more = Button("quiet", "chevron-down", on_click=self._turn)
        self._technical = QPlainTextEdit()
        self._technical.setReadOnly(True)
        self._technical.setMaximumHeight(140)
        self._technical.hide()
        head = row(self._icon, self._title)
        head.setStretch(1, 1)
        self.box.addLayout(head)
        add(self.box, self._sentence, self._remedy, self._command)
        self.box.addWidget(wrapping(self._action, self._more))
        self.box.addWidget(self._technical)

    def show_problem(
        self, said: ProblemText, words: ProblemWords, command: str | None, technical: tuple[str, ...], *, advice: bool
    ) -> None:
        """Say a problem; advice is drawn in another colour and with another icon."""
        self.setProperty("part", "advice" if advice else "problem")
        restyle(self)
        self._icon.show_as("info" if advice else "triangle-alert", "warn" if advice else "bad")
        self.setAccessibleName(said.title)
        self.setAccessibleDescription(f"{said.sentence} {said.remedy}")
        self._title.say(said.title)
        self._sentence.say(breakable(said.sentence))
        self._remedy.say(breakable(said.remedy))
        self._command.setVisible(bool(command))
        self._command.say(words.command, words.copy, words.copied)
        self._command.show_value(command or "")
        self._action.setVisible(bool(words.action))
        self._action.say(words.action)
        self._more.setVisible(bool(technical))
        self._more.say(words.details)
        self._technical.setAccessibleName(words.details)
        text = "\n".join(technical)
        if self._technical.toPlainText() != text:
            self._technical.setPlainText(text)
            self._technical.hide()

    def _turn(self) -> None:
        self._technical.setVisible(not self._technical.isVisible())

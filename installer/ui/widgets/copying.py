"""Something to copy: a command or an address in its own box, with a button that says that it was done."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from installer.ui.widgets.basics import Button, add

SHOWN_MS = 1500
SHORTEST = 64


class CopyField(QWidget):
    """One line that can be selected and copied. A secret is hidden until it is asked for."""

    def __init__(self, *, secret: bool = False) -> None:
        super().__init__()
        self.line = QLineEdit()
        self.line.setReadOnly(True)
        self.line.setMinimumWidth(SHORTEST)
        self.reveal = Button(icon="eye", on_click=self._turn)
        self.reveal.setCheckable(True)
        self.reveal.setVisible(secret)
        self.button = Button(icon="copy", on_click=self._copy)
        self._copied = self._copy_words = self._show = self._hide = ""
        if secret:
            self.line.setEchoMode(QLineEdit.EchoMode.Password)
        box = QHBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        add(box, self.line, self.reveal, self.button)
        box.setStretch(0, 1)

    def say(self, name: str, copy: str, copied: str, show: str = "", hide: str = "") -> None:
        """Give the line its name and the buttons their words."""
        self.line.setAccessibleName(name)
        self._copy_words, self._copied, self._show, self._hide = copy, copied, show, hide
        self.button.say(copy, f"{copy}: {name}")
        self._name_reveal()

    def show_value(self, value: str) -> None:
        """Show what can be copied."""
        if self.line.text() != value:
            self.line.setText(value)
            self.line.setCursorPosition(0)

    def _turn(self) -> None:
        shown = self.reveal.isChecked()
        self.line.setEchoMode(QLineEdit.EchoMode.Normal if shown else QLineEdit.EchoMode.Password)
        self._name_reveal()

    def _name_reveal(self) -> None:
        words = self._hide if self.reveal.isChecked() else self._show
        self.reveal.setAccessibleName(f"{words}: {self.line.accessibleName()}")
        self.reveal.setToolTip(words)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.line.text())
        name = self.button.accessibleName()
        self.button.say(self._copied, name)
        QTimer.singleShot(SHOWN_MS, self.button, lambda: self.button.say(self._copy_words, name))

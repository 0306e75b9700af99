"""A line that saves something where the person wants it, and says where it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from PySide6.QtCore import SignalInstance
from PySide6.QtWidgets import QFileDialog, QWidget

from installer.text import Text
from installer.ui.widgets.basics import Button, Label, breakable, column
from installer.ui.widgets.wrapping import wrapping

REPORT, BUNDLE = "slipway-report.md", "slipway-bundle.zip"


class SaveLine(QWidget):
    """`save` is given the path that was chosen, `file` is the name that is proposed, `saved` tells the path later."""

    def __init__(self, save: Callable[[str], object], file: str, saved: SignalInstance) -> None:
        super().__init__()
        self._save, self._file = save, file
        self._button = Button("quiet", "download", on_click=self._choose)
        self._saved = Label("caption")
        self._text: Text | None = None
        self._path = ""
        box = column(4)
        box.addWidget(wrapping(self._button))
        box.addWidget(self._saved)
        self.setLayout(box)
        saved.connect(self._take)
        self._saved.hide()

    def say(self, text: Text, label: str) -> None:
        """Say everything in a language; `label` is what the button says."""
        self._text = text
        self._button.say(label)
        self._show()

    def _choose(self) -> None:
        kinds = f"*{PurePath(self._file).suffix}"
        path, _ = QFileDialog.getSaveFileName(self, self._button.accessibleName(), self._file, kinds)
        if path:
            self._save(path)

    def _take(self, path: str) -> None:
        self._path = path
        self._show()

    def _show(self) -> None:
        if self._text and self._path:
            self._saved.say(self._text.gettext("Saved: {file}", file=breakable(self._path)))

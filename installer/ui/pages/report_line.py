"""A line that saves the report of an installation, and says where it is."""

from __future__ import annotations

from PySide6.QtWidgets import QFileDialog, QWidget

from installer.text import Text
from installer.ui.keeper import Keeper
from installer.ui.widgets.basics import Button, Label, breakable, column
from installer.ui.widgets.wrapping import wrapping

FILE = "slipway-report.md"


class ReportLine(QWidget):
    """What is saved holds no key, no token and no folder, so that it can be handed on."""

    def __init__(self, keeper: Keeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._save = Button("quiet", "download", on_click=self._choose)
        self._saved = Label("caption")
        self._text: Text | None = None
        self._path = ""
        box = column(4)
        box.addWidget(wrapping(self._save))
        box.addWidget(self._saved)
        self.setLayout(box)
        keeper.report_saved.connect(self._take)
        self._saved.hide()

    def say(self, text: Text) -> None:
        """Say everything in a language."""
        self._text = text
        self._save.say(text.gettext("Save report …"))
        self._show()

    def _choose(self) -> None:
        path, _ = QFileDialog.getSaveFileName(self, self._save.accessibleName(), FILE, "Markdown (*.md)")
        if path:
            self._keeper.save_report(path)

    def _take(self, path: str) -> None:
        self._path = path
        self._show()

    def _show(self) -> None:
        if self._text and self._path:
            self._saved.say(self._text.gettext("Saved: {file}", file=breakable(self._path)))

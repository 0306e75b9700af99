"""The checks of a proof: how each ended, what it is called, what it found, and how long it took."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from installer.steps.smoke import Check
from installer.text import Text
from installer.ui.widgets.basics import Label, breakable
from installer.ui.widgets.choices import VerdictMark

NAME_SHARE, FOUND_SHARE = 5, 6
_STATES = {"passed": "ok", "failed": "problem", "not_applicable": "unknown"}
_TOP = Qt.AlignmentFlag.AlignTop


class Checks(QWidget):
    """A row for each check; how one ended stands there in words where it did not pass."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(1, NAME_SHARE)
        self._grid.setColumnStretch(2, FOUND_SHARE)
        self._rows: list[tuple[VerdictMark, Label, Label]] = []

    def show_checks(self, checks: tuple[Check, ...], text: Text) -> None:
        """Show these checks, in this order."""
        while len(self._rows) < len(checks):
            self._add()
        for index, widgets in enumerate(self._rows):
            for widget in widgets:
                widget.setVisible(index < len(checks))
        for check, (mark, name, found) in zip(checks, self._rows, strict=False):
            mark.show_verdict(_STATES[check.outcome], "")
            name.setText(breakable(text.check_name(check)))
            found.setText(breakable(text.check_found(check)))
        self.setAccessibleName("; ".join(text.check(check) for check in checks))

    def _add(self) -> None:
        at = len(self._rows)
        mark, name, found = VerdictMark(), Label(), Label("caption")
        for column, widget in enumerate((mark, name, found)):
            self._grid.addWidget(widget, at, column, _TOP)
        self._rows.append((mark, name, found))

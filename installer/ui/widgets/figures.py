"""Figures: names at the left, values at the right."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from installer.ui.widgets.basics import Label, breakable

NAME_SHARE, VALUE_SHARE = 2, 5


class Figures(QWidget):
    """A table of two columns without lines."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnStretch(0, NAME_SHARE)
        self._grid.setColumnStretch(1, VALUE_SHARE)
        self._rows: list[tuple[Label, Label]] = []

    def show_rows(self, rows: tuple[tuple[str, str], ...]) -> None:
        """Show these rows, in this order."""
        while len(self._rows) < len(rows):
            self._add()
        for index, (name, value) in enumerate(self._rows):
            shown = index < len(rows)
            name.setVisible(shown)
            value.setVisible(shown)
            if shown:
                name.setText(breakable(rows[index][0]))
                value.setText(breakable(rows[index][1]))
        self.setAccessibleName("; ".join(f"{name}: {value}" for name, value in rows))

    def _add(self) -> None:
        name, value = Label("caption"), Label()
        at = len(self._rows)
        self._grid.addWidget(name, at, 0, Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(value, at, 1)
        self._rows.append((name, value))

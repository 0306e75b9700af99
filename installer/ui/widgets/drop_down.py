"""A choice of few in one line, which opens below itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QComboBox

from installer.ui import icons, theme
from installer.ui.widgets.basics import ICON, colour_of

BESIDE = 8


class DropDown(QComboBox):
    """Its options come as pairs of value and words. `on_choice` is told the value that a person chose."""

    def __init__(self, options: tuple[tuple[str, str], ...], on_choice: Callable[[Any], object]) -> None:
        super().__init__()
        for value, words in options:
            self.addItem(words, value)
        self.activated.connect(lambda _: on_choice(self.currentData()))
        theme.current().changed.connect(self.update)

    def show_value(self, value: str) -> None:
        """Show which one is in force."""
        self.setCurrentIndex(self.findData(value))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the arrow as well, in the colour of the theme in force: a style sheet cannot."""
        super().paintEvent(event)
        size = theme.scaled_icon(ICON)
        arrow = icons.pixmap("chevron-down", colour_of("muted"), size)
        QPainter(self).drawPixmap(self.width() - BESIDE - size, (self.height() - size) // 2, arrow)

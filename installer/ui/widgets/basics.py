"""The small parts: labels by their role, buttons, icons, rules, boxes."""

from __future__ import annotations

import re
from collections.abc import Callable

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QStyle,
    QVBoxLayout,
    QWidget,
)

from installer.ui import icons, theme
from installer.ui.palette import Palette

ICON = 16
"""The size of an icon on a button; like all icons it grows with the text."""

GAP = "\N{EN SPACE}"
"""Between an icon and the words beside it; Qt leaves too little."""


class Label(QLabel):
    """A text that wraps. `part` is its role in the style sheet: title, lead, heading, caption, strong, code."""

    def __init__(self, part: str = "", text: str = "") -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        if part:
            self.setProperty("part", part)

    def say(self, text: str) -> None:
        """Show a text; nothing to say takes no room."""
        self.setText(text)
        self.setVisible(bool(text))


class Icon(QLabel):
    """A drawing in one of the palette's colours; redrawn when the theme changes. Its meaning is said beside it.

    It grows with the text.
    """

    def __init__(self, name: str = "", colour: str = "text", size: int = 18, *, grows: bool = True) -> None:
        super().__init__()
        self._name, self._colour, self._size = name, colour, theme.scaled_icon(size) if grows else size
        self.setFixedSize(self._size, self._size)
        theme.current().changed.connect(self._draw)
        self._draw()

    def show_as(self, name: str, colour: str) -> None:
        """Draw another icon."""
        self._name, self._colour = name, colour
        self._draw()

    def _draw(self) -> None:
        if self._name:
            self.setPixmap(icons.pixmap(self._name, colour_of(self._colour), self._size))


def colour_of(token: str) -> str:
    """Return a colour of the theme in force by its name in the palette."""
    palette: Palette = theme.current().palette
    return str(getattr(palette, token))


class Button(QPushButton):
    """A button. `part` is primary, quiet, filter, step, or none for a plain one."""

    def __init__(self, part: str = "", icon: str = "", on_click: Callable[[], object] | None = None) -> None:
        super().__init__()
        self._icon = icon
        if part:
            self.setProperty("part", part)
        self.setIconSize(QSize(theme.scaled_icon(ICON), theme.scaled_icon(ICON)))
        self.setAutoDefault(False)
        if on_click is not None:
            self.clicked.connect(lambda _=False: on_click())
        theme.current().changed.connect(self._draw)
        self._draw()

    def say(self, text: str, description: str = "") -> None:
        """Give the button its words, and a longer name for a screen reader where the words need company."""
        self.setText(f"{GAP}{text}" if self._icon else text)
        self.setAccessibleName(description or text)

    def _draw(self) -> None:
        if self._icon:
            colour = "accent" if self.property("part") == "quiet" else "text"
            self.setIcon(QIcon(icons.icon(self._icon, colour_of(colour), theme.scaled_icon(ICON))))


ZERO_WIDTH_SPACE = "\N{ZERO WIDTH SPACE}"


def breakable(text: str) -> str:
    """Let a path, an address or a name of an image wrap behind its marks."""
    return re.sub(r"([/:@_-])(?=\S)", rf"\1{ZERO_WIDTH_SPACE}", text)


class Rule(QFrame):
    """A thin line between two things."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("part", "rule")


def column(spacing: int = theme.GRID, margins: tuple[int, int, int, int] = (0, 0, 0, 0)) -> QVBoxLayout:
    """Return an empty column."""
    box = QVBoxLayout()
    box.setSpacing(spacing)
    box.setContentsMargins(*margins)
    return box


def row(*widgets: QWidget, spacing: int = theme.GRID) -> QHBoxLayout:
    """Return a row of widgets."""
    box = QHBoxLayout()
    box.setSpacing(spacing)
    box.setContentsMargins(0, 0, 0, 0)
    for widget in widgets:
        box.addWidget(widget)
    return box


def add(box: QBoxLayout, *widgets: QWidget) -> None:
    """Put widgets into a box, one after the other."""
    for widget in widgets:
        box.addWidget(widget)


def clear(box: QBoxLayout) -> None:
    """Remove everything from a box."""
    while (item := box.takeAt(0)) is not None:
        inner = item.layout()
        if isinstance(inner, QBoxLayout):
            clear(inner)
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()


def restyle(widget: QWidget) -> None:
    """Let a changed property take effect on a widget's looks."""
    style: QStyle = widget.style()
    style.unpolish(widget)
    style.polish(widget)
    widget.update()

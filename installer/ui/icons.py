"""Icons: vector drawings in the colour that they are for, sharp on every screen."""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from installer import resources


@cache
def _drawing(name: str) -> str:
    return resources.file("assets", "icons", f"{name}.svg").read_text("utf-8")


def pixmap(name: str, colour: str, size: int, ratio: float | None = None) -> QPixmap:
    """Return an icon of `size` logical pixels in a colour (#RRGGBB)."""
    scale = ratio or _ratio()
    drawn = QPixmap(QSize(round(size * scale), round(size * scale)))
    drawn.fill(Qt.GlobalColor.transparent)
    svg = _drawing(name).replace("currentColor", colour)
    painter = QPainter(drawn)
    QSvgRenderer(QByteArray(svg.encode())).render(painter, QRectF(drawn.rect()))
    painter.end()
    drawn.setDevicePixelRatio(scale)
    return drawn


def icon(name: str, colour: str, size: int = 16) -> QIcon:
    """Return an icon for a button."""
    return QIcon(pixmap(name, colour, size))


def _ratio() -> float:
    return max((screen.devicePixelRatio() for screen in QGuiApplication.screens()), default=1.0)

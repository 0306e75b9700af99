"""The card's memory as a bar: its parts told apart by colour, by hatching and by a legend in words."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from installer.ui import theme
from installer.ui.widgets.basics import Label, colour_of, column

_HATCHING = {
    "weights": Qt.BrushStyle.SolidPattern,
    "kv": Qt.BrushStyle.BDiagPattern,
    "overhead": Qt.BrushStyle.Dense5Pattern,
    "hidden": Qt.BrushStyle.DiagCrossPattern,
    "used": Qt.BrushStyle.SolidPattern,
}
_COLOURS = {"weights": "weights", "kv": "kv", "overhead": "overhead", "hidden": "hidden", "used": "accent"}


@dataclass(frozen=True)
class Segment:
    """One part of the memory: weights, kv, overhead, hidden, used or free, its bytes, and its words for the legend."""

    kind: str
    size_bytes: int
    words: str


class MemoryBar(QWidget):
    """Parts of one whole, with a legend. A screen reader is read the legend."""

    def __init__(self) -> None:
        super().__init__()
        self._stripe = _Stripe()
        self._legend = Label("caption")
        box = column(4)
        box.addWidget(self._stripe)
        box.addWidget(self._legend)
        self.setLayout(box)

    def show_segments(self, segments: tuple[Segment, ...], total_bytes: int) -> None:
        """Show parts of `total_bytes`; what is not named stays empty."""
        self._stripe.set(segments, total_bytes)
        legend = " · ".join(segment.words for segment in segments if segment.size_bytes > 0)
        self._legend.say(legend)
        self.setAccessibleName(legend)


class _Stripe(QWidget):
    HEIGHT = 14

    def __init__(self) -> None:
        super().__init__()
        self._segments: tuple[Segment, ...] = ()
        self._total = 1
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.current().changed.connect(self.update)

    def set(self, segments: tuple[Segment, ...], total_bytes: int) -> None:
        self._segments, self._total = segments, max(1, total_bytes)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(240, self.HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = QRectF(0.5, 0.5, self.width() - 1, self.height() - 1)
        outline = QPainterPath()
        outline.addRoundedRect(whole, 4, 4)
        painter.fillPath(outline, QColor(colour_of("window")))
        painter.save()
        painter.setClipPath(outline)
        left = 0.0
        for segment in self._segments:
            width = self.width() * segment.size_bytes / self._total
            if segment.kind != "free" and width > 0:
                self._fill(painter, segment.kind, QRectF(left, 0, width, self.height()))
            left += width
        painter.restore()
        painter.setPen(QPen(QColor(colour_of("control")), 1))
        painter.drawPath(outline)

    def _fill(self, painter: QPainter, kind: str, area: QRectF) -> None:
        colour = QColor(colour_of(_COLOURS[kind]))
        painter.fillRect(area, colour)
        pattern = _HATCHING[kind]
        if pattern is not Qt.BrushStyle.SolidPattern:
            over = QColor(colour_of("surface"))
            over.setAlpha(150)
            painter.fillRect(area, QBrush(over, pattern))
        painter.setPen(QPen(QColor(colour_of("surface")), 1))
        painter.drawLine(area.topRight(), area.bottomRight())

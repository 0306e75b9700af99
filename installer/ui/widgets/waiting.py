"""Waiting: a quiet line that something is being done; it comes after a moment and stays long enough to be read."""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer, QPointF, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from installer.ui import theme
from installer.ui.icons import pixmap
from installer.ui.widgets.basics import ICON, Label, colour_of, row

SHOW_AFTER_MS, STAY_MS, TURN_MS = 100, 1000, 80


class Waiting(QWidget):
    """Shown after 0.1 s of work and then for a second at least."""

    def __init__(self) -> None:
        super().__init__()
        self._wheel, self._words = _Wheel(), Label("caption")
        box = row(self._wheel, self._words)
        box.setStretch(1, 1)
        self.setLayout(box)
        self._since = QElapsedTimer()
        self._later = QTimer(self, singleShot=True, timerType=Qt.TimerType.PreciseTimer)
        self._later.timeout.connect(self._settle)
        self._busy = False
        self.hide()

    def say(self, words: str) -> None:
        """Say what is being done."""
        self._words.setText(words)
        self.setAccessibleName(words)

    def show_busy(self, busy: bool) -> None:
        """Begin or end."""
        if busy == self._busy:
            return
        self._busy = busy
        left = STAY_MS - self._since.elapsed() if self.isVisible() else 0
        self._later.start(SHOW_AFTER_MS if busy else max(0, left))

    def _settle(self) -> None:
        if self._busy:
            self._since.start()
        self.setVisible(self._busy)


class _Wheel(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._size = theme.scaled_icon(ICON)
        self.setFixedSize(self._size, self._size)
        self._angle = 0
        self._timer = QTimer(self, interval=TURN_MS)
        self._timer.timeout.connect(self._turn)
        theme.current().changed.connect(self.update)

    def showEvent(self, event: object) -> None:
        self._timer.start()

    def hideEvent(self, event: object) -> None:
        self._timer.stop()

    def _turn(self) -> None:
        self._angle = (self._angle + 30) % 360
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        middle = self._size / 2
        painter.translate(middle, middle)
        painter.rotate(self._angle)
        painter.drawPixmap(QPointF(-middle, -middle), pixmap("refresh-cw", colour_of("accent"), self._size))

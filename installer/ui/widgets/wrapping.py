"""A row that goes on below where it has no room left: for buttons beside each other in any language and text size."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QSizePolicy, QWidget

from installer.ui import theme


class WrappingRow(QLayout):
    """Lays its widgets out from left to right and then from top to bottom, each as large as it likes to be."""

    def __init__(self, *widgets: QWidget, spacing: int = theme.GRID) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self.setSpacing(spacing)
        self.setContentsMargins(0, 0, 0, 0)
        for widget in widgets:
            self.addWidget(widget)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._lay_out(QRect(0, 0, width, 0), move=False)

    def setGeometry(self, area: QRect) -> None:
        super().setGeometry(area)
        self._lay_out(area, move=True)

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        size = QSize()
        for item in self._shown():
            size = size.expandedTo(item.minimumSize())
        return size

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _lay_out(self, area: QRect, *, move: bool) -> int:
        """Place everything, or only say how high it would be."""
        at, height = area.topLeft(), 0
        for item in self._shown():
            size = item.sizeHint()
            if at.x() > area.left() and at.x() + size.width() > area.right() + 1:
                at = QPoint(area.left(), at.y() + height + self.spacing())
                height = 0
            if move:
                item.setGeometry(QRect(at, QSize(min(size.width(), area.width()), size.height())))
            at = QPoint(at.x() + size.width() + self.spacing(), at.y())
            height = max(height, size.height())
        return at.y() + height - area.top()


def wrapping(*widgets: QWidget) -> QWidget:
    """Return widgets in a row that wraps."""
    holder = QWidget()
    policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
    policy.setHeightForWidth(True)
    holder.setSizePolicy(policy)
    holder.setLayout(WrappingRow(*widgets))
    return holder

"""A file as it will be, with what changes in the one that is there: by signs, and by colour beside them."""

from __future__ import annotations

from PySide6.QtGui import QColor, QFont, QFontMetrics, QShowEvent, QTextCharFormat, QTextCursor, QTextFormat
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit

from installer.steps.views import DiffLine
from installer.ui import theme
from installer.ui.widgets.basics import colour_of

SIGNS = {"same": " ", "new": "+", "gone": "\N{MINUS SIGN}"}
LOOKS = {"new": ("new_line", "good"), "gone": ("gone_line", "bad")}
"""Ground and sign."""

MOST_LINES = 18


class FileView(QPlainTextEdit):
    """A text that can be read and copied. Where nothing changes there are no signs, and it is the file itself."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: tuple[DiffLine, ...] = ()
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        theme.current().changed.connect(self._mark)

    def show_lines(self, lines: tuple[DiffLine, ...]) -> None:
        """Show these lines."""
        if lines == self._lines:
            return
        self._lines = lines
        changes = any(line.change != "same" for line in lines)
        shown = (f"{SIGNS[line.change]} {line.text}" if changes else line.text for line in lines)
        self.setPlainText("\n".join(shown))
        self._mark()
        self._fit_height()

    def showEvent(self, event: QShowEvent) -> None:
        """Begin where the first line changes."""
        super().showEvent(event)
        self._go_to_first_change()

    def _fit_height(self) -> None:
        height = QFontMetrics(self.font()).lineSpacing() * min(MOST_LINES, max(6, len(self._lines)))
        self.setMinimumHeight(height + 2 * theme.GRID + 2)

    def _go_to_first_change(self) -> None:
        first = next((at for at, line in enumerate(self._lines) if line.change != "same"), 0)
        self.setTextCursor(QTextCursor(self.document().findBlockByNumber(first)))
        self.centerCursor()

    def _mark(self) -> None:
        """Give the changed lines their ground; the sign before each of them says the same."""
        marks = []
        for at, line in enumerate(self._lines):
            if line.change == "same":
                continue
            ground, sign = LOOKS[line.change]
            whole, first = QTextCharFormat(), QTextCharFormat()
            whole.setBackground(QColor(colour_of(ground)))
            whole.setProperty(QTextFormat.Property.FullWidthSelection, True)
            first.setForeground(QColor(colour_of(sign)))
            first.setFontWeight(QFont.Weight.Bold)
            marks += [self._selection(at, whole, 0), self._selection(at, first, 1)]
        self.setExtraSelections(marks)

    def _selection(self, line: int, look: QTextCharFormat, length: int) -> QTextEdit.ExtraSelection:
        """Return a look for the first `length` characters of a line."""
        cursor = QTextCursor(self.document().findBlockByNumber(line))
        cursor.movePosition(QTextCursor.MoveOperation.Right, QTextCursor.MoveMode.KeepAnchor, length)
        selection = QTextEdit.ExtraSelection()
        selection.cursor, selection.format = cursor, look
        return selection

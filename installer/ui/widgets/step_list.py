"""The list of steps at the left: where one is, what is behind, what is to come. It goes back and never forward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtGui import QFont, QFontMetrics, QIcon
from PySide6.QtWidgets import QWidget

from installer.ui import icons, theme
from installer.ui.widgets.basics import ICON, Button, colour_of, column, restyle

GAP = "\N{FOUR-PER-EM SPACE}"
"""Between an icon and its name."""

AROUND = 30
"""Padding and border of a step, and what Qt leaves beside its icon."""


class StepList(QWidget):
    """One button a step, by its id; those behind the current one can be pressed."""

    def __init__(self, steps: tuple[str, ...], go_back_to: Callable[[str], object]) -> None:
        super().__init__()
        self._steps = steps
        self._now = steps[0]
        self._may_go_back = True
        self._names: dict[str, str] = {}
        self._states = ("", "", "")
        self._buttons = {step: Button("step", on_click=partial(go_back_to, step)) for step in steps}
        box = column(2)
        for button in self._buttons.values():
            box.addWidget(button)
        self.setLayout(box)
        theme.current().changed.connect(self._draw)

    def say(self, names: dict[str, str], states: tuple[str, str, str]) -> None:
        """Name the steps; `states` are the words for done, current and to come, for a screen reader."""
        self._names, self._states = names, states
        for step, name in names.items():
            self._buttons[step].setText(f"{GAP}{name}")
        self._draw()
        self.setMinimumWidth(self._widest())

    def _widest(self) -> int:
        """Return the width of the longest name when it is the current one: the list is as wide on every page."""
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        longest = max(QFontMetrics(font).horizontalAdvance(each.text()) for each in self._buttons.values())
        return longest + theme.scaled_icon(ICON) + AROUND

    def show_step(self, now: str, *, may_go_back: bool) -> None:
        """Show where one is."""
        self._now, self._may_go_back = now, may_go_back
        self._draw()

    def _draw(self) -> None:
        at = self._steps.index(self._now)
        for index, button in enumerate(self._buttons.values()):
            name, colour, state = self._looks(index - at)
            button.setIcon(QIcon(icons.icon(name, colour_of(colour), theme.scaled_icon(ICON))))
            button.setEnabled(index == at or (index < at and self._may_go_back))
            button.setProperty("now", index == at)
            button.setAccessibleName(f"{button.text().strip()}, {state}")
            restyle(button)

    def _looks(self, ahead: int) -> tuple[str, str, str]:
        done, now, later = self._states
        if ahead < 0:
            return "check", "good", done
        return ("circle-dot", "accent", now) if ahead == 0 else ("circle", "muted", later)

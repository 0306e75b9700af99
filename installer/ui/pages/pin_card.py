"""The pin: whether every start uses exactly this image, with what that means."""

from __future__ import annotations

from collections.abc import Callable

from installer.text import Text
from installer.ui.widgets.basics import Label, add
from installer.ui.widgets.cards import Card
from installer.ui.widgets.choices import CheckLine


class PinCard(Card):
    """`chose` is told what a person ticks. `pin` is the line with the box."""

    def __init__(self, chose: Callable[[bool], None]) -> None:
        super().__init__()
        self._meaning = Label("caption")
        self.pin = CheckLine(chose)
        add(self.box, self.pin, self._meaning)

    def say(self, text: Text) -> None:
        """Say it in the language in force."""
        self._meaning.setText(text.pin_meaning())
        self.pin.say(text.gettext("Pin to current version"), self._meaning.text())

    def show_pinned(self, pinned: bool) -> None:
        """Show how it stands."""
        self.pin.box.setChecked(pinned)

"""The token for the hub: asked for where a model needs one, and kept in the system's store if the person says so."""

from __future__ import annotations

from PySide6.QtWidgets import QLineEdit

from installer.steps.flow import asks_for_token
from installer.ui.conductor import Conductor
from installer.ui.widgets.basics import Label, add
from installer.ui.widgets.cards import Card
from installer.ui.widgets.choices import CheckLine
from installer.ui.workroom import problem_of


class TokenCard(Card):
    """Hidden where nobody asks for a token. What is typed is shown nowhere and goes to the hub only."""

    def __init__(self, conductor: Conductor) -> None:
        super().__init__()
        self._conductor = conductor
        self._name, self._words, self._kept = Label("heading"), Label("caption"), Label("caption")
        self.field = QLineEdit()
        self.field.setEchoMode(QLineEdit.EchoMode.Password)
        self.field.editingFinished.connect(self._use)
        self.keep = CheckLine(self._keep_or_forget)
        add(self.box, self._name, self.field, self._words, self.keep, self._kept)
        self._used = ""
        self._is_kept: bool | None = None

    def show_flow(self) -> None:
        """Say everything in the language in force, where a token is asked for."""
        flow, text = self._conductor.flow, self._conductor.text
        self.setVisible(flow is not None and asks_for_token(flow))
        _ = text.gettext
        self._name.setText(text.choice_name("hf_token"))
        self.field.setAccessibleName(self._name.text())
        known = flow is not None and flow.has_token
        self.field.setPlaceholderText(_("there is one, and it is used") if known else "")
        self._words.setText(_("It is used for the download only and never reaches the server."))
        self.keep.say(_("Keep it in the system's store for secrets"))
        self.keep.setVisible(bool(self._used) or not known)  # one that was there before is kept elsewhere
        self._say_kept()

    def _say_kept(self) -> None:
        _ = self._conductor.text.gettext
        said = {True: _("The store keeps the token."), False: _("The store does not have the token any more.")}
        self._kept.say("" if self._is_kept is None else said[self._is_kept])

    def _use(self) -> None:
        typed = self.field.text().strip()
        if typed in ("", self._used):
            return
        before, self._used = self._used, typed
        self._conductor.use_token(typed)
        if self._conductor.secrets.hf_token != typed:
            self._used = before
        elif self.keep.box.isChecked():
            self._keep_or_forget(True)

    def _keep_or_forget(self, kept: bool) -> None:
        """Let the system's store keep the token or forget it, on a thread: the store may ask to be unlocked."""
        room = self._conductor
        if not self._used:  # nothing was typed yet
            return

        def done(_: object) -> None:
            self._is_kept = kept
            self._say_kept()

        def refused(error: BaseException) -> None:
            self.keep.box.setChecked(not kept)
            room.show_problem(problem_of(error))

        room.bridge.run(room.keep_token if kept else room.forget_token, done, refused)

"""Overview: what is installed, how it does, and everything that can be done with it."""

from __future__ import annotations

from PySide6.QtWidgets import QPlainTextEdit

from installer.domain.problems import AnyProblem
from installer.steps.lifecycle import Status
from installer.ui.conductor import Conductor
from installer.ui.keeper import RUNS
from installer.ui.pages.base import PageWidget
from installer.ui.pages.save_line import REPORT, SaveLine
from installer.ui.pages.try_it import TryIt
from installer.ui.widgets.basics import Button, Label, add, breakable, row
from installer.ui.widgets.cards import Card
from installer.ui.widgets.checks import Checks
from installer.ui.widgets.choices import CheckLine, VerdictMark
from installer.ui.widgets.copying import CopyField
from installer.ui.widgets.figures import Figures
from installer.ui.widgets.wrapping import wrapping

_MARKS = {"serving": "ok", "starting": "busy", "stopped": "waiting", "failed": "problem", "missing": "problem"}


class OverviewPage(PageWidget):
    """Shown in place of the wizard where something is installed."""

    def __init__(self, conductor: Conductor) -> None:
        super().__init__(conductor)
        self._keeper = conductor.keeper
        self._card = Card()
        self._mark = VerdictMark()
        self._name = Label("heading")
        head = row(self._name, self._mark)
        head.setStretch(0, 1)
        self._figures = Figures()
        self._address, self._key = CopyField(), CopyField(secret=True)
        self._address_name, self._key_name = Label("caption"), Label("caption")
        self._digest, self._digest_name = CopyField(), Label("caption")
        self._card.box.addLayout(head)
        add(self._card.box, self._figures, self._address_name, self._address, self._key_name, self._key)
        add(self._card.box, self._digest_name, self._digest)
        self._start = Button("primary", on_click=self._keeper.start)
        self._stop = Button("", "square", on_click=self._keeper.stop)
        self._prove = Button("", "list-checks", on_click=self._keeper.prove_again)
        self._change = Button("", "settings-2", on_click=conductor.change_model)
        actions = wrapping(self._start, self._stop, self._prove, self._change)
        self._logs = Button("quiet", "file-text", on_click=self._turn_logs)
        self._look_up = Button("quiet", "search", on_click=self.lookup_wanted.emit)
        self._show_checks = Button("quiet", "list-checks", on_click=self.show_proof)
        self.proof, self._checks = Card(), Checks()
        self.proof.box.addWidget(self._checks)
        self.proof.hide()
        self._log = QPlainTextEdit()
        self._log.setReadOnly(True)
        self._log.setMinimumHeight(200)
        self._log.hide()
        self._remove = Button("quiet", "trash-2", on_click=self._begin_removal)
        self._removal, self._removal_words = Card("problem"), Label()
        self._keep_weights, self._keep_image = CheckLine(self._ask_again), CheckLine(self._ask_again)
        self._really = Button("", on_click=self._uninstall)
        self._rather_not = Button("", on_click=self._end_removal)
        foot = wrapping(self._really, self._rather_not)
        add(self._removal.box, self._removal_words, self._keep_weights, self._keep_image)
        self._removal.box.addWidget(foot)
        self._removal.hide()
        self.body.addWidget(self._card)
        self.body.addWidget(actions)
        self.try_it = TryIt(conductor)
        self.body.addWidget(self.try_it)
        self._report = SaveLine(self._keeper.save_report, REPORT, self._keeper.report_saved)
        self.body.addWidget(self._report)
        add(self.body, wrapping(self._show_checks, self._logs, self._look_up), self.proof, self._log)
        add(self.body, wrapping(self._remove), self._removal)
        self._keeper.removal_changed.connect(self.refresh)
        self._keeper.log_told.connect(self._log.setPlainText)

    @property
    def error(self) -> AnyProblem | None:
        return self.conductor.problem

    def look_again(self) -> None:
        self._keeper.look_after()

    def retranslate(self) -> None:
        _ = self.text.gettext
        self.title.setText(_("Overview"))
        self.lead.setText(_("This is installed on this computer."))
        copy = (_("Copy"), _("Copied"))
        self._address_name.setText(_("Address"))
        self._address.say(_("Address"), *copy)
        self._digest_name.setText(_("Digest of the image"))
        self._digest.say(_("Digest of the image"), *copy)
        self._key_name.setText(self.text.choice_name("api_key"))
        self._key.say(self.text.choice_name("api_key"), *copy, _("Show"), _("Hide"))
        self._start.say(_("Start"))
        self._stop.say(_("Stop and free the graphics card"))
        self._prove.say(_("Test again"))
        self._change.say(_("Change model"))
        self.try_it.say(self.text)
        self._report.say(self.text, _("Save report …"))
        self._show_checks.say(_("Show the proof"))
        self._logs.say(_("Show the server's log"))
        self._look_up.say(_("Look up an error"))
        self._log.setAccessibleName(_("Log"))
        self._remove.say(_("Uninstall"))
        self._keep_weights.say(_("Keep the model"))
        self._keep_image.say(_("Keep the image"))
        self._really.say(_("Remove now"))
        self._rather_not.say(_("Keep everything"))

    def show_flow(self) -> None:
        status = self.conductor.status
        if status is None:
            return
        serves, runs = status.state == "serving", status.state in RUNS
        self._name.setText(breakable(status.profile))
        self._mark.show_verdict(_MARKS[status.state], self.text.state(status.state))
        self._figures.show_rows(self._rows(status))
        self._address.show_value(status.endpoint)
        self._digest.show_value(status.image_digest)
        key = self._keeper.installed_key()
        for widget in (self._key_name, self._key):
            widget.setVisible(key is not None)
        self._key.show_value(key or "")
        self._start.setVisible(not runs)
        self._stop.setVisible(runs)
        self._prove.setVisible(serves)
        self.try_it.setVisible(serves)
        self.try_it.show_buttons()
        for button in (self._start, self._stop, self._prove, self._change, self._remove, self._really):
            button.setEnabled(not self.busy)
        self._show_checks.setVisible(status.proof is not None)
        self._checks.show_checks(status.proof.checks if status.proof else (), self.text)
        self.proof.setVisible(not self.proof.isHidden() and status.proof is not None)
        self._show_removal()

    def show_busy(self) -> None:
        super().show_busy()
        self.show_flow()

    def _rows(self, status: Status) -> tuple[tuple[str, str], ...]:
        _, text = self.text.gettext, self.text
        pinned = _("pinned") if status.pinned else _("follows its tag")
        rows = [
            (_("Model"), status.model),
            (_("Context"), text.tokens(status.context)),
            (_("Image"), f"{status.image.split('@')[0]} ({pinned})"),
            (_("Proved"), text.date(status.proof.at) if status.proof else "–"),
        ]
        if status.figures:
            rows += [(name, f"{seen} ({said})") for name, seen, said in text.compared(status.figures)]
        return tuple(rows)

    def show_proof(self) -> None:
        """Show the checks of the last proof, or hide them again."""
        self.proof.setVisible(self.proof.isHidden())

    def _turn_logs(self) -> None:
        self._log.setVisible(not self._log.isVisible())
        if self._log.isVisible():
            self._keeper.read_log()

    def _begin_removal(self) -> None:
        self._removal.show()
        self._ask_removal()

    def _end_removal(self) -> None:
        self._removal.hide()

    def _ask_again(self, _: bool) -> None:
        self._ask_removal()

    def _ask_removal(self) -> None:
        self._keeper.ask_removal(**self._kept())

    def _uninstall(self) -> None:
        self._keeper.uninstall(**self._kept())

    def _kept(self) -> dict[str, bool]:
        return {"keep_weights": self._keep_weights.box.isChecked(), "keep_image": self._keep_image.box.isChecked()}

    def _show_removal(self) -> None:
        what = self._keeper.removal
        self._really.setEnabled(what is not None and not self.busy)
        if what is None:
            return
        _, text = self.text.gettext, self.text
        gone = [_("the container")]
        if not what.keeps_image:
            gone.append(_("the image ({size})", size=text.gb(what.image_bytes)))
        if not what.keeps_weights:
            gone.append(_("the model ({size})", size=text.gb(what.weights_bytes)))
        gone.append(_("Slipway's files of this installation"))
        self._removal_words.setText(_("This will be removed: {things}.", things=text.listed(gone)))

"""Look up an error: a person pastes a log, an error or an answer, and is told what it means and what helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtWidgets import QFileDialog, QPlainTextEdit

from installer import doors
from installer.domain.pasted import PASTED, Reading
from installer.domain.problems import AnyProblem, CauseUnknown
from installer.ui.conductor import Conductor, problem_of
from installer.ui.pages.base import PageWidget, problem_words
from installer.ui.widgets.basics import Button, Label, add, clear, column
from installer.ui.widgets.cards import ProblemCard
from installer.ui.widgets.wrapping import wrapping


class LookupPage(PageWidget):
    """Stands beside the wizard, and opens from any page: what is looked up changes nothing and is sent nowhere."""

    def __init__(self, conductor: Conductor, leave: Callable[[], object]) -> None:
        super().__init__(conductor)
        self._leave = leave
        self.pasted = QPlainTextEdit()
        self.pasted.setMinimumHeight(160)
        self.pasted.setTabChangesFocus(True)
        self.pasted.textChanged.connect(self._show_buttons)
        self.look = Button("", "search", on_click=lambda: self.read(self.pasted.toPlainText()))
        self._file = Button("", "folder", on_click=self._choose_file)
        self._log = Button("", "file-text", on_click=conductor.read_log)
        self._reading: Reading | None = None
        self._found = column(12)
        self.body.addWidget(self.pasted)
        self.body.addWidget(wrapping(self.look, self._file, self._log))
        self.body.addLayout(self._found)
        conductor.log_told.connect(self._take_log)

    @property
    def valid(self) -> bool:
        return True

    @property
    def error(self) -> AnyProblem | None:
        return None

    def primary(self) -> str:
        return self.text.gettext("Back")

    def apply(self) -> None:
        self._leave()

    def retranslate(self) -> None:
        _ = self.text.gettext
        self.title.setText(_("Look up an error"))
        self.lead.setText(
            _("Paste a log, an error message or an answer, or choose a file. It is read here and sent nowhere.")
        )
        self.pasted.setAccessibleName(_("Text of the error"))
        self.look.say(_("Look up"))
        self._file.say(_("Choose a file …"))
        self._log.say(_("Take the server's log"))
        if self._reading is not None:
            self.show_reading(self._reading)

    def show_flow(self) -> None:
        self._show_buttons()

    def _show_buttons(self) -> None:
        self.look.setEnabled(bool(self.pasted.toPlainText().strip()) and self.flow is not None)
        self._file.setEnabled(self.flow is not None)
        self._log.setVisible(self.conductor.status is not None)

    def read(self, text: str) -> None:
        """Look a text up; what it means is shown below it."""
        self._look_up(lambda: text.encode(errors="replace"), PASTED)

    def read_file(self, path: str) -> None:
        """Look a file up, whatever its encoding; a picture is judged by its pixels."""
        self._look_up(lambda: doors.read_bytes(path), path)

    def _look_up(self, data: Callable[[], bytes], name: str) -> None:
        flow = self.flow
        if flow is not None:
            self.conductor.bridge.run(
                lambda: doors.diagnosed(data(), name, flow.registry),
                self.show_reading,
                lambda error: self.show_reading(Reading(problems=(problem_of(error),))),
            )

    def show_reading(self, reading: Reading) -> None:
        """Show every Problem that was found, or say that there is none."""
        self._reading = reading
        _ = self.text.gettext
        row = self.flow.registry.fingerprints.get(reading.fingerprint) if self.flow else None
        clear(self._found)
        add(self._found, *(self._card(problem) for problem in reading.problems))
        if not reading.problems:
            self._found.addWidget(Label("strong", _("Nothing in it points to a fault that Slipway knows.")))
        if row:
            self._found.addWidget(Label("caption", _("How this is known: {source}", source=row.source)))

    def _card(self, problem: AnyProblem) -> ProblemCard:
        said = self.text.problem(problem)
        if not isinstance(problem, CauseUnknown):
            said = replace(said, remedy=f"{said.remedy} {self.text.treatment(problem.treatment)}".strip())
        card = ProblemCard(self.mend)
        words = problem_words(self.text, "")
        card.show_problem(said, words, problem.command, problem.technical, advice=problem.advice)
        return card

    def _choose_file(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, self.title.text())
        if path:
            self.read_file(path)

    def _take_log(self, log: str) -> None:
        if self.isVisible():
            self.pasted.setPlainText(log)
            self.read(log)

"""Installation: the steps as they go, one bar for all bytes, the log on demand, and a card if something is wrong."""

from __future__ import annotations

import time
from collections import deque
from typing import assert_never

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPlainTextEdit, QProgressBar, QWidget

from installer.domain.problems import AnyProblem, Interrupted
from installer.steps import events
from installer.steps.bookmark import Page
from installer.steps.events import INSTALL_STEPS, Event, Step
from installer.text import Text
from installer.ui.conductor import Conductor
from installer.ui.pages.base import PageWidget
from installer.ui.pages.save_line import BUNDLE, SaveLine
from installer.ui.widgets.basics import Button, Label, Rule, add, column, row
from installer.ui.widgets.cards import Card
from installer.ui.widgets.choices import VerdictMark
from installer.ui.widgets.wrapping import wrapping

SPEED_SECONDS = 10.0
"""The speed is that of the last seconds: an average over an hour says nothing about now."""

MOST_LOG_LINES = 2000


class InstallationPage(PageWidget):
    """The eighth page. It shows events and keeps nothing that the flow has."""

    page = Page.INSTALLATION

    def __init__(self, conductor: Conductor) -> None:
        super().__init__(conductor)
        self._bytes: dict[Step, tuple[int, int]] = {}
        self._speed = _Speed()
        overall = Card()
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._amount = Label("caption")
        overall.box.addWidget(self._bar)
        overall.box.addWidget(self._amount)
        steps = Card()
        self._rows: dict[Step, _StepRow] = {}
        for step in INSTALL_STEPS:
            if self._rows:
                steps.box.addWidget(Rule())
            self._rows[step] = _StepRow()
            steps.box.addWidget(self._rows[step])
        self._more = Button("quiet", "file-text", on_click=self._turn)
        self._log = QPlainTextEdit()
        self._log.setReadOnly(True)
        self._log.setMaximumBlockCount(MOST_LOG_LINES)
        self._log.setMinimumHeight(160)
        self._log.hide()
        self._bundle = SaveLine(conductor.keeper.save_bundle, BUNDLE, conductor.keeper.bundle_saved)
        add(self.body, overall, steps, wrapping(self._more), self._log, self._bundle)
        conductor.event_told.connect(self._take)

    @property
    def error(self) -> AnyProblem | None:
        """Say why the installation ended; that the person ended it is no problem."""
        found = super().error
        return None if isinstance(found, Interrupted) else found

    def primary(self) -> str:
        return self.text.gettext("Next") if self.valid else self.text.gettext("Try again")

    def apply(self) -> None:
        if self.valid:
            super().apply()
        else:
            self.conductor.install()

    def look_again(self) -> None:
        self.conductor.install()

    def again_label(self, problem: AnyProblem) -> str:
        """Say that one may try again, which goes on where this ended, whatever it was."""
        return self.text.gettext("Try again")

    def retranslate(self) -> None:
        _ = self.text.gettext
        self.title.setText(_("Installation"))
        self._bar.setAccessibleName(_("Downloaded so far"))
        self._more.say(_("Show the log"))
        self._log.setAccessibleName(_("Log"))
        self._bundle.say(self.text, _("Save everything about this failure …"))
        for step, widget in self._rows.items():
            widget.say(step, self.text)
        self._show_amount()

    def show_flow(self) -> None:
        _ = self.text.gettext
        self._bundle.setVisible(self.error is not None and not self.busy)
        if self.busy:
            self.lead.setText(_("This may take a while."))
        elif self.valid:
            self.lead.setText(_("Everything is in place and has been proved."))
        else:
            self.lead.setText(_("It is not finished. What was downloaded stays, and trying again goes on from there."))

    def begin(self) -> None:
        """Show every step as still to come."""
        self._bytes, self._speed = {}, _Speed()
        self._log.clear()
        for step, widget in self._rows.items():
            widget.show_state("waiting")
            widget.say(step, self.text)
        self._show_amount()

    def _take(self, event: Event) -> None:
        match event:
            case events.Progress(step=step, done=done, total=total):
                self._bytes[step] = (done, total)
                self._speed.seen(sum(each for each, _ in self._bytes.values()))
                self._show_amount()
                if step in self._rows:
                    self._rows[step].show_amount(done, total, self.text)
            case events.Started(step=step):
                self._to(step, "busy")
            case events.Skipped(step=step):
                self._to(step, "ok", skipped=True)
            case events.Finished(step=step, seconds=seconds):
                self._to(step, "ok", seconds=seconds)
            case events.Failed(step=step):
                self._to(step, "problem")
            case events.Notice(step=step, notice=notice):
                self._tell(self.text.note(notice))
                if step in self._rows and not isinstance(notice, events.Measured):
                    self._rows[step].tell(self.text.note(notice))
            case events.Proved(report=report):
                for check in report.checks:
                    self._tell(self.text.check(check))
            case events.Settled():
                self._speed = _Speed()
                self._show_amount()
            case _:
                assert_never(event)

    def _to(self, step: Step, state: str, *, skipped: bool = False, seconds: float | None = None) -> None:
        said = self.text.step(step)
        words = {"busy": said.present, "ok": said.skipped if skipped else said.done, "problem": said.noun}[state]
        took = "" if seconds is None else f" ({self.text.duration(seconds)})"
        self._tell(words + took)
        if step in self._rows:
            self._rows[step].show_state(state, words, took.strip(" ()"))

    def _tell(self, line: str) -> None:
        self._log.appendPlainText(line)

    def _show_amount(self) -> None:
        done = sum(each for each, _ in self._bytes.values())
        total = sum(each for _, each in self._bytes.values())
        self._bar.setVisible(total > 0)
        self._amount.setVisible(total > 0)
        if not total:
            return
        self._bar.setRange(0, 1000)
        self._bar.setValue(1000 * done // total)
        text = self.text
        words = [text.gettext("{done} of {total}", done=text.gb(done), total=text.gb(total))]
        speed = self._speed.bytes_per_second
        if speed and done < total:
            words.append(text.gettext("{speed} per second", speed=text.gb(round(speed))))
            words.append(text.gettext("{time} left", time=text.duration((total - done) / speed)))
        self._amount.setText(" · ".join(words))
        self._bar.setAccessibleDescription(self._amount.text())

    def _turn(self) -> None:
        self._log.setVisible(not self._log.isVisible())


class _Speed:
    """Bytes per second over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def seen(self, done: int) -> None:
        now = time.monotonic()
        self._seen.append((now, done))
        while now - self._seen[0][0] > SPEED_SECONDS:
            self._seen.popleft()

    @property
    def bytes_per_second(self) -> float:
        if len(self._seen) < 2:
            return 0.0
        (began, first), (ended, last) = self._seen[0], self._seen[-1]
        return (last - first) / (ended - began) if ended > began else 0.0


class _StepRow(QWidget):
    """One step: how it does, what it does, and how far it is."""

    def __init__(self) -> None:
        super().__init__()
        self._state = "waiting"
        self._mark = VerdictMark()
        self._name, self._note = Label(), Label("caption")
        self._note.hide()
        self._amount = Label("caption")
        self._amount.setWordWrap(False)
        self._amount.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        words = column(2)
        words.addWidget(self._name)
        words.addWidget(self._note)
        box = row(self._mark, spacing=10)
        box.addLayout(words)
        box.addWidget(self._amount)
        box.setStretch(1, 1)
        self.setLayout(box)
        self.show_state("waiting")

    def say(self, step: Step, text: Text) -> None:
        """Name the step; what it told while it ran stays as it was told."""
        if self._state == "waiting":
            self._name.setText(text.step(step).noun)
            self.setAccessibleName(self._name.text())

    def show_state(self, state: str, words: str = "", amount: str = "") -> None:
        """Show waiting, busy, ok or problem, with what is being done and how long it took."""
        self._state = state
        self._mark.show_verdict(state, "")
        if words:
            self._name.setText(words)
            self.setAccessibleName(words)
        self._amount.setText(amount)
        if state != "busy":
            self._note.hide()

    def show_amount(self, done: int, total: int, text: Text) -> None:
        """Show how far it is."""
        self._amount.setText(text.percent(done / total) if total else "")

    def tell(self, sentence: str) -> None:
        """Show a sentence below the step while it runs."""
        self._note.say(sentence)

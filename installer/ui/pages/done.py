"""Done: the proof with its figures, where the server is, how to use it, and how to stop it."""

from __future__ import annotations

from PySide6.QtWidgets import QPlainTextEdit

from installer.steps.bookmark import Page
from installer.ui.conductor import Conductor
from installer.ui.pages.base import PageWidget
from installer.ui.pages.save_line import REPORT, SaveLine
from installer.ui.pages.snippets import curl, openai_python
from installer.ui.pages.try_it import TryIt
from installer.ui.widgets.basics import Button, Label, add, breakable
from installer.ui.widgets.cards import Card
from installer.ui.widgets.checks import Checks
from installer.ui.widgets.copying import CopyField
from installer.ui.widgets.figures import Figures
from installer.ui.widgets.wrapping import wrapping


class DonePage(PageWidget):
    """The last page."""

    page = Page.DONE

    def __init__(self, conductor: Conductor) -> None:
        super().__init__(conductor)
        self._proof, self._proof_name = Card(), Label("heading")
        self._proof.box.addWidget(self._proof_name)
        self._checks = Checks()
        self._proof.box.addWidget(self._checks)
        self._memory = Figures()
        self._proof.box.addWidget(self._memory)
        self._use, self._use_name = Card(), Label("heading")
        self._address, self._key = CopyField(), CopyField(secret=True)
        self._address_name, self._key_name = Label("caption"), Label("caption")
        self._use.box.addWidget(self._use_name)
        add(self._use.box, self._address_name, self._address, self._key_name, self._key)
        self._curl = Button("filter", on_click=self._show_snippet)
        self._python = Button("filter", on_click=self._show_snippet)
        for button in (self._curl, self._python):
            button.setCheckable(True)
            button.setAutoExclusive(True)
        self._curl.setChecked(True)
        self._snippet = QPlainTextEdit()
        self._snippet.setReadOnly(True)
        self._snippet.setMinimumHeight(150)
        self._snippet.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._use.box.addWidget(wrapping(self._curl, self._python))
        self._use.box.addWidget(self._snippet)
        self._context = Label("caption")
        self._stop = Label("caption")
        self._report = SaveLine(conductor.keeper.save_report, REPORT, conductor.keeper.report_saved)
        self._proof.box.addWidget(self._report)
        self.try_it = TryIt(conductor)
        add(self.body, self._proof, self.try_it, self._use)
        self.body.addWidget(self._context)
        self.body.addWidget(self._stop)

    def primary(self) -> str:
        return self.text.gettext("Finish")

    def apply(self) -> None:
        self.conductor.to_overview()

    def retranslate(self) -> None:
        _ = self.text.gettext
        self.title.setText(_("Done"))
        self._proof_name.setText(_("Proved with real requests"))
        self._report.say(self.text, _("Save report …"))
        self.try_it.say(self.text)
        self._use_name.setText(_("How to use it"))
        copy = (_("Copy"), _("Copied"))
        self._address_name.setText(_("Address"))
        self._address.say(_("Address"), *copy)
        self._key_name.setText(self.text.choice_name("api_key"))
        self._key.say(self.text.choice_name("api_key"), *copy, _("Show"), _("Hide"))
        self._curl.say("curl")
        self._python.say("OpenAI Python")
        self._snippet.setAccessibleName(_("Example"))
        self._stop.setText(_("Finish leads to the overview. There you can stop the server and free the card."))

    def show_flow(self) -> None:
        done = self.flow.installed if self.flow else None
        if done is None:
            return
        plan = done.plan
        text, _ = self.text, self.text.gettext
        self.lead.setText(_("{profile} runs on this computer and answers.", profile=breakable(plan.profile)))
        self._checks.show_checks(done.report.checks, text)
        figures = self.conductor.keeper.figures()
        rows = text.compared(figures) if figures else ()
        self._memory.show_rows(tuple((name, f"{seen} ({said})") for name, seen, said in rows))
        self._address.show_value(plan.endpoint)
        key = self.conductor.keeper.api_key(plan)
        for widget in (self._key_name, self._key):
            widget.setVisible(key is not None)
        self._key.show_value(key or "")
        self._context.setText(self.text.context_of(plan))
        self.try_it.show_buttons()
        self._show_snippet()

    def _show_snippet(self) -> None:
        done = self.flow.installed if self.flow else None
        if done is None:
            return
        made = openai_python if self._python.isChecked() else curl
        question = self.text.gettext("What can you do?")
        text = made(done.plan.endpoint, done.plan.profile, question, needs_key=done.plan.needs_key)
        self._snippet.setPlainText(text)

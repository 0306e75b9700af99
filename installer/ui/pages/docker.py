"""Docker: everything that is required or advised, each with its state, what to do, and a command to copy."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from installer.domain.problems import AnyProblem
from installer.steps.bookmark import Page
from installer.steps.views import Requirement, requirements_of
from installer.text import Text
from installer.text import views as words
from installer.ui.conductor import Conductor
from installer.ui.pages.base import PageWidget
from installer.ui.widgets.basics import Button, Label, Rule, breakable, clear, column, row
from installer.ui.widgets.cards import Card
from installer.ui.widgets.choices import VerdictMark
from installer.ui.widgets.copying import CopyField


class DockerPage(PageWidget):
    """The third page."""

    page = Page.DOCKER

    def __init__(self, conductor: Conductor) -> None:
        super().__init__(conductor)
        card = Card()
        self._rows = column(10)
        card.box.addLayout(self._rows)
        self._shown: tuple[tuple[Requirement, ...], str] | None = None
        self.body.addWidget(card)
        self._again = Button("", "refresh-cw", on_click=conductor.look_again)
        foot = row(self._again)
        foot.addStretch(1)
        self.body.addLayout(foot)

    @property
    def error(self) -> AnyProblem | None:
        """The rows say what is wrong, each in its place; only what failed while looking stands above them."""
        return self.conductor.problem

    def retranslate(self) -> None:
        self.title.setText(self.text.gettext("Docker"))
        self._again.say(self.text.gettext("Check again"))

    def show_flow(self) -> None:
        if self.flow is None or self.flow.facts is None:
            return
        shown = (requirements_of(self.flow), self.text.language)
        if shown == self._shown:
            return
        self._shown = shown
        self.lead.setText(words.requirements_lead(shown[0], self.text))
        clear(self._rows)
        for each in shown[0]:
            if self._rows.count():
                self._rows.addWidget(Rule())
            self._rows.addWidget(_RequirementRow(each, self.text))


class _RequirementRow(QWidget):
    def __init__(self, requirement: Requirement, text: Text) -> None:
        super().__init__()
        mark = VerdictMark()
        word = words.requirement_state(requirement, text)
        mark.show_verdict(_mark(requirement), word)
        name = Label("strong", words.requirement_name(requirement, text))
        head = row(name, mark)
        head.setStretch(0, 1)
        self.box = column(4)
        self.box.addLayout(head)
        self.setLayout(self.box)
        self.setAccessibleName(f"{name.text()}: {word}")
        if requirement.problem is None:
            self.box.addWidget(Label("caption", breakable(words.requirement_sentence(requirement, text))))
        else:
            self._show(requirement.problem, text)

    def _show(self, problem: AnyProblem, text: Text) -> None:
        said = text.problem(problem)
        for sentence in (said.sentence, said.remedy):
            self.box.addWidget(Label("", sentence))
        if problem.command:
            field = CopyField()
            field.say(text.gettext("Command"), text.gettext("Copy"), text.gettext("Copied"))
            field.show_value(problem.command)
            self.box.addWidget(field)


def _mark(requirement: Requirement) -> str:
    """Return the icon: what blocks nothing is no fault."""
    advises = requirement.state == "problem" and requirement.weight == "advice"
    return "advice" if advises else requirement.state

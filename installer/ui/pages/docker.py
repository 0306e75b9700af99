"""Docker: everything that is required or advised, each with its state, what to do, and a command to copy."""

from __future__ import annotations

from installer.domain.problems import AnyProblem
from installer.steps.bookmark import Page
from installer.steps.views import Requirement, requirements
from installer.text import Text
from installer.ui.conductor import Conductor
from installer.ui.pages.base import PageWidget
from installer.ui.widgets.basics import Button, Label, clear, column, row
from installer.ui.widgets.cards import Card
from installer.ui.widgets.choices import VerdictMark
from installer.ui.widgets.copying import CopyField


class DockerPage(PageWidget):
    """The third page."""

    page = Page.DOCKER

    def __init__(self, conductor: Conductor) -> None:
        super().__init__(conductor)
        self._rows = column(12)
        self._shown: tuple[tuple[Requirement, ...], str] | None = None
        self.body.addLayout(self._rows)
        self._again = Button("", "refresh-cw", on_click=conductor.look_again)
        foot = row(self._again)
        foot.addStretch(1)
        self.body.addLayout(foot)

    @property
    def error(self) -> AnyProblem | None:
        """The rows say what is wrong, each in its place; only what failed while looking stands above them."""
        return self.conductor.problem

    def retranslate(self) -> None:
        _ = self.text.gettext
        self.title.setText(_("Docker"))
        self.lead.setText(_("The models run in containers. This is what they need on this computer."))
        self._again.say(_("Check again"))

    def show_flow(self) -> None:
        if self.flow is None or self.flow.facts is None:
            return
        shown = (requirements(self.flow.facts), self.text.language)
        if shown == self._shown:
            return
        self._shown = shown
        clear(self._rows)
        for each in shown[0]:
            self._rows.addWidget(_RequirementCard(each, self.text))


class _RequirementCard(Card):
    def __init__(self, requirement: Requirement, text: Text) -> None:
        super().__init__()
        mark = VerdictMark()
        word = requirement_word(requirement, text)
        mark.show_verdict(requirement.state, word)
        name = Label("heading", requirement_name(requirement, text))
        head = row(name, mark)
        head.setStretch(0, 1)
        self.box.addLayout(head)
        if requirement.figure:
            self.box.addWidget(Label("caption", requirement.figure))
        self.setAccessibleName(f"{name.text()}: {word}")
        if requirement.problem is not None:
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


def requirement_name(requirement: Requirement, text: Text) -> str:
    """Return what is required."""
    _ = text.gettext
    return {
        "engine": _("Container engine"),
        "compose": _("Docker Compose"),
        "driver": _("Graphics driver"),
        "toolkit": _("Containers reach the graphics card"),
    }[requirement.name]


def requirement_word(requirement: Requirement, text: Text) -> str:
    """Return the state of a requirement in a word or two."""
    _ = text.gettext
    return {
        "ok": _("In order"),
        "problem": _("Required"),
        "unknown": _("Cannot be told"),
    }[requirement.state]

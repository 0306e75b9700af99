"""What every page has: title, lead, a place for the problem, room for its content, and its answers to the footer."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from installer.domain.problems import Action, AnyProblem
from installer.steps.bookmark import Page
from installer.steps.flow import GO, WAIT, Flow, Standing, page_to_mend, standing
from installer.text import Text
from installer.ui import theme
from installer.ui.conductor import Conductor
from installer.ui.widgets.basics import Label, column
from installer.ui.widgets.cards import ProblemCard, ProblemWords
from installer.ui.widgets.waiting import Waiting

MARGIN, WIDEST = 32, 720


class PageWidget(QWidget):
    """A page of the wizard. `body` takes its content."""

    lookup_wanted = Signal()
    page: ClassVar[Page | None] = None

    def __init__(self, conductor: Conductor) -> None:
        super().__init__()
        self.conductor = conductor
        self.setProperty("part", "page")
        self.title, self.lead = Label("title"), Label("lead")
        self.title.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.waiting = Waiting()
        self._awaited = ""
        self.problem_card = ProblemCard(self.mend)
        self.problem_card.hide()
        self.body: QVBoxLayout = column(12)
        self._content = content = _Content()
        content.setProperty("part", "content")
        content.setMaximumWidth(theme.scaled(WIDEST) + 2 * MARGIN)
        inside = column(16, (MARGIN, MARGIN, MARGIN, MARGIN))
        heading = column(6)
        heading.addWidget(self.title)
        heading.addWidget(self.lead)
        inside.addLayout(heading)
        inside.addWidget(self.waiting)
        inside.addWidget(self.problem_card)
        inside.addLayout(self.body)
        inside.addStretch(1)
        content.setLayout(inside)
        self._scroll = scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(content)
        box = column(0)
        box.addWidget(scroll)
        self.setLayout(box)

    @property
    def text(self) -> Text:
        """Return the language in force."""
        return self.conductor.text

    @property
    def flow(self) -> Flow | None:
        """Return the flow, None until the machine was read for the first time."""
        return self.conductor.flow

    @property
    def valid(self) -> bool:
        """Say whether one may go on from here."""
        return self.standing.valid

    @property
    def busy(self) -> bool:
        """Say whether something is being done that this page waits for."""
        return bool(self.conductor.busy)

    @property
    def error(self) -> AnyProblem | None:
        """Return what stands against going on, or None."""
        if self.conductor.problem is not None:
            return self.conductor.problem
        return self.standing.reason

    @property
    def standing(self) -> Standing:
        """Return whether one may go on from here, and why not; where nothing is asked one may."""
        if self.page is None:
            return GO
        return WAIT if self.flow is None else standing(self.flow, self.page)

    def why(self) -> str:
        """Say in a few words why one may not go on, "" where one may or where something is just being done."""
        if self.valid or self.busy:
            return ""
        reason = self.standing.reason or self.conductor.problem
        return self.text.problem(reason).title if reason else self.text.gettext("The computer was not looked at yet")

    def primary(self) -> str:
        """Return what the primary button says here."""
        return self.text.gettext("Next")

    def apply(self) -> None:
        """Go on."""
        self.conductor.forward()

    def mend(self) -> None:
        """Do what the problem's button says: go where it can be mended, else look again."""
        page = self._page_to_mend()
        if page is not None:
            self.conductor.back_to(page)
        else:
            self.look_again()

    def look_again(self) -> None:
        """Look again whether the problem is still there."""
        self.conductor.look_again()

    def _page_to_mend(self) -> Page | None:
        """Return the earlier page on which a person can do something about the problem that is shown, or None."""
        problem = self.error
        return page_to_mend(self.flow, problem) if self.flow and problem else None

    def mend_label(self, problem: AnyProblem) -> str:
        """Return what the problem's button says, "" where a button could do nothing."""
        _ = self.text.gettext
        page = self._page_to_mend()
        if page is not None:
            return _("Go to {page}", page=self.text.quote(page_name(page, self.text)))
        return self.again_label(problem)

    def again_label(self, problem: AnyProblem) -> str:
        """Return what the button says that looks again."""
        _ = self.text.gettext
        return {
            Action.CHECK_AGAIN: _("Check again"),
            Action.FREE_MEMORY: _("Check again"),
            Action.INSTALL: _("Check again"),
            Action.START: _("Check again"),
            Action.TRY_AGAIN: _("Try again"),
        }.get(problem.action, "")

    def reveal(self, widget: QWidget) -> None:
        """Scroll until a part of the page can be seen whole; `ensureWidgetVisible` would only care for its cursor."""
        for corner in (widget.rect().bottomLeft(), widget.rect().topLeft()):
            at = widget.mapTo(self._content, corner)
            self._scroll.ensureVisible(at.x(), at.y(), 0, MARGIN)

    def retranslate(self) -> None:
        """Say everything anew in the language in force."""

    def show_flow(self) -> None:
        """Draw the flow as it is now."""

    def refresh(self) -> None:
        """Draw everything: words, flow, problem, waiting."""
        self.retranslate()
        if self.flow is not None:
            self.show_flow()
        self.show_problem(self.error)
        self.show_busy()

    def show_problem(self, problem: AnyProblem | None) -> None:
        """Show what stands against going on, or nothing."""
        self.problem_card.setVisible(problem is not None and not self.busy)
        if problem is None:
            return
        said = self.text.problem(problem)
        words = problem_words(self.text, self.mend_label(problem))
        self.problem_card.show_problem(said, words, problem.command, problem.technical, advice=problem.advice)

    def show_busy(self) -> None:
        """Show that something is being done."""
        self._awaited = self.conductor.busy or self._awaited
        self.waiting.say(busy_words(self.text, self._awaited))
        self.waiting.show_busy(bool(busy_words(self.text, self.conductor.busy)))


class _Content(QWidget):
    """As high as its width asks for: a scroll area does not ask that of texts that wrap."""

    def minimumSizeHint(self) -> QSize:
        layout = self.layout()
        if layout is None or self.width() == 0:
            return super().minimumSizeHint()
        return QSize(layout.minimumSize().width(), layout.minimumHeightForWidth(self.width()))

    def resizeEvent(self, event: object) -> None:
        self.updateGeometry()


def page_name(page: Page, text: Text) -> str:
    """Return what a page is called in the list of steps."""
    _ = text.gettext
    return {
        Page.WELCOME: _("Welcome"),
        Page.CARD: _("Graphics card"),
        Page.DOCKER: _("Docker"),
        Page.MODEL: _("Model"),
        Page.VERSION: _("Version"),
        Page.OPTIONS: _("Options"),
        Page.SUMMARY: _("Summary"),
        Page.INSTALLATION: _("Installation"),
        Page.DONE: _("Done"),
    }[page]


def problem_words(text: Text, action: str) -> ProblemWords:
    """Return the words around any problem."""
    _ = text.gettext
    return ProblemWords(action=action, details=_("Details"), command=_("Command"), copy=_("Copy"), copied=_("Copied"))


def busy_words(text: Text, busy: str) -> str:
    """Say what is being done."""
    _ = text.gettext
    return {
        "reading": _("The computer is being looked at …"),
        "resolving": _("The registry and the hub are being asked …"),
        "starting": _("The server is being started …"),
        "stopping": _("The server is being stopped …"),
        "pinning": _("The compose file is being written …"),
        "proving": _("The server is being proved with real requests …"),
        "removing": _("The installation is being removed …"),
    }.get(busy, "")

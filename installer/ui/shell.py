"""The shell: step list, page, footer. It asks the page what the footer says, and the conductor to move."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QCloseEvent, QIcon, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QLineEdit,
    QMainWindow,
    QMessageBox,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QWidget,
)

from installer.domain.problems import RelaxRefused
from installer.steps.bookmark import Page
from installer.ui import theme
from installer.ui.conductor import Conductor
from installer.ui.icons import pixmap
from installer.ui.languages import LANGUAGES
from installer.ui.pages.base import PageWidget, page_name
from installer.ui.pages.card import CardPage
from installer.ui.pages.docker import DockerPage
from installer.ui.pages.done import DonePage
from installer.ui.pages.installation import InstallationPage
from installer.ui.pages.lookup import LookupPage
from installer.ui.pages.model import ModelPage
from installer.ui.pages.options import OptionsPage
from installer.ui.pages.overview import OverviewPage
from installer.ui.pages.summary import SummaryPage
from installer.ui.pages.version import VersionPage
from installer.ui.pages.welcome import WelcomePage
from installer.ui.widgets.basics import Button, Icon, Label, add, column, row
from installer.ui.widgets.drop_down import DropDown
from installer.ui.widgets.step_list import StepList

SIZE, SMALLEST = QSize(960, 680), QSize(860, 600)
SIDE_WIDTH = 232
BESIDE_STEP = 11
"""Where the icons of the steps begin."""

PAGES: tuple[type[PageWidget], ...] = (
    WelcomePage,
    CardPage,
    DockerPage,
    ModelPage,
    VersionPage,
    OptionsPage,
    SummaryPage,
    InstallationPage,
    DonePage,
)
WAIT_AT_CLOSE_SECONDS = 20.0


class Shell(QMainWindow):
    """The window."""

    def __init__(self, conductor: Conductor) -> None:
        super().__init__()
        self.conductor = conductor
        self.setMinimumSize(SMALLEST)
        self.resize(self._size_for_the_text())
        self.setWindowIcon(QIcon(pixmap("slipway", "text", 64)))
        self._steps = StepList(tuple(Page), lambda step: conductor.back_to(Page(step)))
        self._pages: dict[Page | None, PageWidget] = {}
        self._stack = QStackedWidget()
        self._lookup: LookupPage | None = None
        self._language = DropDown(LANGUAGES, conductor.set_language)
        self._why = Label("caption")
        self._why.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._cancel = Button(on_click=self._ask_to_leave)
        self._overview = Button("quiet", "chevron-left", on_click=conductor.to_overview)
        self._back = Button(on_click=conductor.back)
        self.next = Button("primary", on_click=self._go_on)
        self.next.setDefault(True)
        self._has_arrived = True
        self._lay_out()
        for signal in (conductor.flow_changed, conductor.busy_changed, conductor.problem_changed):
            signal.connect(self.refresh)
        conductor.text_changed.connect(self.retranslate)
        conductor.question.connect(self._ask)
        for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            QShortcut(QKeySequence(key), self, self._return_pressed)
        QShortcut(QKeySequence("Alt+Left"), self, conductor.back)
        self.retranslate()

    def _size_for_the_text(self) -> QSize:
        """Return a size that grows with the text, as far as the screen has room."""
        wanted = QSize(theme.scaled(SIZE.width()), theme.scaled(SIZE.height()))
        return wanted.boundedTo(self.screen().availableSize()).expandedTo(SMALLEST)

    def _lay_out(self) -> None:
        self._name = Label("heading", "Slipway")
        self._name.setWordWrap(False)
        brand = row(Icon("slipway", "text", 28, grows=False), self._name, spacing=10)
        brand.addStretch(1)
        side = QWidget()
        side.setProperty("part", "side")
        side.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        side.setMinimumWidth(SIDE_WIDTH)
        side.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Expanding)
        left = column(16, (12, 20, 12, 12))
        left.addLayout(brand)
        left.addWidget(self._steps)
        left.addStretch(1)
        languages = row(Icon("globe", "muted", 16), self._language, spacing=0)
        languages.setContentsMargins(BESIDE_STEP, 0, 0, 0)
        languages.setStretch(1, 1)
        left.addLayout(languages)
        side.setLayout(left)
        footer = QWidget()
        footer.setProperty("part", "footer")
        footer.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        buttons = row(self._cancel, self._overview)
        buttons.addStretch(1)
        add(buttons, self._back, self.next)
        foot = column(8, (32, 14, 32, 14))
        foot.addWidget(self._why)
        foot.addLayout(buttons)
        footer.setLayout(foot)
        self._footer = footer
        right = column(0)
        right.addWidget(self._stack, 1)
        right.addWidget(footer)
        whole = row(side, spacing=0)
        whole.addLayout(right, 1)
        central = QWidget()
        central.setLayout(whole)
        self.setCentralWidget(central)

    @property
    def current(self) -> PageWidget:
        """Return the page that is shown."""
        widget = self._stack.currentWidget()
        assert isinstance(widget, PageWidget)
        return widget

    def _page(self, name: Page | None) -> PageWidget:
        """Return a page by its name, None being the overview; it is made when it is shown for the first time."""
        if name not in self._pages:
            kind = OverviewPage if name is None else next(each for each in PAGES if each.page is name)
            self._pages[name] = kind(self.conductor)
            self._pages[name].lookup_wanted.connect(self.look_up)
            self._stack.addWidget(self._pages[name])
        return self._pages[name]

    def retranslate(self) -> None:
        """Say everything anew in the language in force."""
        _ = self.conductor.text.gettext
        self._cancel.say(_("Cancel"))
        self._back.say(_("Back"))
        states = (_("done"), _("current step"), _("to come"))
        self._steps.say({page.value: page_name(page, self.conductor.text) for page in Page}, states)
        self._overview.say(_("To the overview"))
        self._language.setAccessibleName(_("Language"))
        self._language.show_value(self.conductor.text.language)
        for page in (*self._pages.values(), *((self._lookup,) if self._lookup else ())):
            page.refresh()
        self.refresh()

    def refresh(self) -> None:
        """Show the page of the flow, the overview or what is looked up, and what the footer may do there."""
        before = self._stack.currentWidget()
        overview = self.conductor.status is not None
        page = self.conductor.flow.page if self.conductor.flow else Page.WELCOME
        shown = self._lookup or self._page(None if overview else page)
        self._stack.setCurrentWidget(shown)
        self._steps.setVisible(not overview)
        self._footer.setVisible(not overview or self._lookup is not None)
        may_go_back = not self.conductor.busy and page is not Page.DONE and self._lookup is None
        self._steps.show_step(page.value, may_go_back=may_go_back)
        shown.refresh()
        # Where windows are listed, in a task bar and by a screen reader, the page's name says how far one is.
        self.setWindowTitle(f"{shown.title.text()} – Slipway")
        if shown is not before:
            self._arrive(shown)
        self._show_footer(shown, page)

    def look_up(self) -> LookupPage:
        """Open the place where an error can be pasted, over whatever is shown."""
        if self._lookup is None:
            self._lookup = LookupPage(self.conductor, self._end_looking_up)
            self._stack.addWidget(self._lookup)
            self.refresh()
            self._lookup.pasted.setFocus()
        return self._lookup

    def _end_looking_up(self) -> None:
        if self._lookup is not None:
            self._stack.removeWidget(self._lookup)
            self._lookup.deleteLater()
            self._lookup = None
            self.refresh()

    def _show_footer(self, shown: PageWidget, page: Page) -> None:
        looking_up = shown is self._lookup
        installing = self.conductor.busy == "installing" and not looking_up
        if installing and self.next.hasFocus():
            self._stack.setFocus()  # nothing is to be pressed by accident while it installs
        self.next.say(shown.primary())
        may_try_again = page is Page.INSTALLATION and not installing
        may_wait = page is Page.WELCOME and self.conductor.flow is None
        may_go_on = (shown.valid or may_try_again) and (may_wait or not self.conductor.busy)
        self.next.setEnabled(looking_up or may_go_on)
        self.next.setVisible(not installing)
        self._back.setVisible(page not in (Page.WELCOME, Page.DONE) and not installing and not looking_up)
        self._back.setEnabled(not self.conductor.busy)
        has_overview = self.conductor.flow is not None and self.conductor.flow.status is not None
        self._overview.setVisible(has_overview and not (installing or looking_up or page is Page.DONE))
        self._overview.setEnabled(not self.conductor.busy)
        self._cancel.setVisible(not (looking_up or page is Page.DONE or self._overview.isVisibleTo(self)))
        why = shown.why() if self.next.isVisibleTo(self) and not self.next.isEnabled() else ""
        self._why.say(why)
        self.next.setAccessibleDescription(why)
        if self._has_arrived and self.next.isEnabled():
            self._has_arrived = False
            self.next.setFocus()

    def _arrive(self, shown: PageWidget) -> None:
        """Begin a page: Return goes on as soon as one may."""
        if isinstance(shown, InstallationPage):
            shown.begin()
        self._has_arrived = True

    def _return_pressed(self) -> None:
        """Press the button that has the focus, ask what is typed as a question, else take what was typed and go on."""
        focused = self.focusWidget()
        if isinstance(focused, QPushButton):
            focused.click()
            return
        if isinstance(focused, QLineEdit) and focused.property("part") == "question":
            focused.returnPressed.emit()
            return
        if isinstance(focused, QLineEdit):
            focused.clearFocus()
        if self.conductor.problem is None:
            self._go_on()

    def _go_on(self) -> None:
        if self.next.isEnabled() and self.next.isVisible():
            self.current.apply()

    def _ask(self, problem: RelaxRefused) -> None:
        _ = self.conductor.text.gettext
        said = self.conductor.text.problem(problem)
        box = self._question(said.sentence, _("Go on with the smaller value"), _("End the installation"))
        self.conductor.answer(box)

    def _ask_to_leave(self) -> None:
        if self.conductor.busy == "installing":
            if self._really_end():
                self.conductor.cancel()
        else:
            self.close()

    def _really_end(self) -> bool:
        _ = self.conductor.text.gettext
        return self._question(
            _("End the installation? What was downloaded stays, and the next try goes on from there."),
            _("End the installation"),
            _("Go on installing"),
        )

    def _question(self, sentence: str, yes: str, no: str) -> bool:
        box = QMessageBox(self)
        box.setWindowTitle("Slipway")
        box.setText(sentence)
        agree = box.addButton(yes, QMessageBox.ButtonRole.AcceptRole)
        stay = box.addButton(no, QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(stay)
        box.setEscapeButton(stay)
        box.exec()
        return box.clickedButton() is agree

    def closeEvent(self, event: QCloseEvent) -> None:
        """Ask where something would be lost, end what goes on, wait for it, and only then close."""
        if self.conductor.busy == "installing" and not self._really_end():
            event.ignore()
            return
        self.conductor.close(WAIT_AT_CLOSE_SECONDS)
        theme.forget()
        event.accept()

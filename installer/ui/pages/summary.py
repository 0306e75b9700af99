"""Summary: everything that was chosen, what will be downloaded, and the file that will be written."""

from __future__ import annotations

from PySide6.QtCore import QTimer

from installer.domain.plan import Plan
from installer.domain.problems import AnyProblem, LicenceNotAccepted
from installer.steps.bookmark import Page
from installer.steps.views import Summary, summary
from installer.text import views as words
from installer.ui.conductor import Conductor
from installer.ui.pages.base import PageWidget
from installer.ui.widgets.basics import Button, Label, add, breakable
from installer.ui.widgets.cards import Card
from installer.ui.widgets.choices import CheckLine
from installer.ui.widgets.figures import Figures
from installer.ui.widgets.file_view import FileView
from installer.ui.widgets.wrapping import wrapping

LAID_OUT_MS = 50
"""Until the page has given the file its room."""


class SummaryPage(PageWidget):
    """The seventh page; its button begins."""

    page = Page.SUMMARY

    def __init__(self, conductor: Conductor) -> None:
        super().__init__(conductor)
        self._card = Card()
        self._figures = Figures()
        self._context = Label("caption")
        add(self._card.box, self._figures, self._context)
        self._licence_card = Card()
        self._licence = CheckLine(self._agreed)
        self._licence_words = Label("caption")
        add(self._licence_card.box, self._licence, self._licence_words)
        self._file_card = Card()
        self._file_name, self._file_change = Label("heading"), Label("caption")
        self._more = Button("quiet", "file-text", on_click=self._turn)
        self._file = FileView()
        self._file.hide()
        add(self._file_card.box, self._file_name, self._file_change, wrapping(self._more), self._file)
        add(self.body, self._card, self._licence_card, self._file_card)

    @property
    def error(self) -> AnyProblem | None:
        """The licence has a card of its own, so that it is no problem here."""
        found = super().error
        return None if isinstance(found, LicenceNotAccepted) else found

    def primary(self) -> str:
        return self.text.gettext("Install")

    def apply(self) -> None:
        self.conductor.install()

    def retranslate(self) -> None:
        _ = self.text.gettext
        self.title.setText(_("Summary"))
        self.lead.setText(_("This will be installed. Until here nothing has been changed."))
        self._file_name.setText(_("Compose file"))
        self._file.setAccessibleName(_("Compose file"))
        self._name_turn()

    def show_flow(self) -> None:
        flow = self.flow
        plan = flow.plan if flow else None
        seen = summary(flow, on_disk=self.conductor.compose_on_disk(plan)) if flow and plan else None
        for widget in (self._card, self._licence_card, self._file_card):
            widget.setVisible(seen is not None)
        if seen is not None:
            self._show(seen)

    def _show(self, seen: Summary) -> None:
        self._figures.show_rows(self._rows(seen))
        self._context.setText(self.text.context_of(seen.plan))
        self._show_licence(seen)
        self._file_change.setText(words.file_change(seen, self.text))
        self._file.show_lines(seen.lines)

    def _rows(self, seen: Summary) -> tuple[tuple[str, str], ...]:
        _, text, plan = self.text.gettext, self.text, seen.plan
        pinned = _("pinned") if plan.pinned else _("follows its tag")
        return (
            (_("Model"), f"{seen.model} ({seen.publisher}, {seen.quantization})"),
            (_("Graphics card"), text.card(plan.gpu.name) if plan.gpu else _("none, on the processor")),
            (_("Context"), text.tokens_of(plan.settings.context, plan.native_context)),
            (_("Image"), f"{plan.image.by_tag} ({pinned})"),
            (_("Download"), words.downloads(seen, text)),
            (_("Folder"), seen.folder or _("Docker's disk")),
            (_("Disk afterwards"), "\n".join(words.left_on(disk, text) for disk in seen.disks)),
            (_("Address"), plan.endpoint),
            (_("Takes"), self._takes(plan)),
        )

    def _takes(self, plan: Plan) -> str:
        expected = self.conductor.expected(plan)
        if expected is not None:
            return self.text.estimate(expected)
        return self.text.gettext("The download depends on your line. The first start takes several minutes more.")

    def _show_licence(self, seen: Summary) -> None:
        _, licence = self.text.gettext, seen.licence
        self._licence_card.setVisible(not licence.free)
        self._licence.say(_("I agree to the licence {licence}", licence=licence.name), licence.url)
        self._licence_words.setText(breakable(licence.url))
        self._licence.box.setChecked(not seen.needs_consent)

    def _agreed(self, agreed: bool) -> None:
        flow = self.flow
        if flow is None or flow.profile is None:
            return
        licence = flow.registry.licence_of(flow.registry.profile(flow.profile)).id
        others = tuple(each for each in flow.choices.accept_licenses if each != licence)
        self.conductor.choose(accept_licenses=(*others, licence) if agreed else others)

    def _turn(self) -> None:
        self._file.setVisible(not self._file.isVisible())
        if self._file.isVisible():
            QTimer.singleShot(LAID_OUT_MS, self._file, lambda: self.reveal(self._file))
        self._name_turn()

    def _name_turn(self) -> None:
        _ = self.text.gettext
        self._more.say(_("Hide the compose file") if self._file.isVisible() else _("Show the compose file"))

"""Summary: everything that was chosen, what will be downloaded, and the file that will be written."""

from __future__ import annotations

from PySide6.QtWidgets import QPlainTextEdit

from installer.domain.plan import Plan
from installer.domain.problems import AnyProblem, LicenceNotAccepted
from installer.steps.bookmark import Page
from installer.steps.flow import Flow
from installer.ui.conductor import Conductor
from installer.ui.pages.base import PageWidget
from installer.ui.widgets.basics import Button, Label, breakable
from installer.ui.widgets.cards import Card
from installer.ui.widgets.choices import CheckLine
from installer.ui.widgets.figures import Figures
from installer.ui.widgets.wrapping import wrapping


class SummaryPage(PageWidget):
    """The seventh page; its button begins."""

    page = Page.SUMMARY

    def __init__(self, conductor: Conductor) -> None:
        super().__init__(conductor)
        card = Card()
        self._figures = Figures()
        card.box.addWidget(self._figures)
        self._context = Label("caption")
        card.box.addWidget(self._context)
        self._licence_card = Card()
        self._licence = CheckLine(self._agreed)
        self._licence_words = Label("caption")
        self._licence_card.box.addWidget(self._licence)
        self._licence_card.box.addWidget(self._licence_words)
        self._more = Button("quiet", "file-text", on_click=self._turn)
        self._file = QPlainTextEdit()
        self._file.setReadOnly(True)
        self._file.setMinimumHeight(280)
        self._file.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._file.hide()
        self.body.addWidget(card)
        self.body.addWidget(self._licence_card)
        self.body.addWidget(wrapping(self._more))
        self.body.addWidget(self._file)

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
        self._more.say(_("Show the compose file"))
        self._file.setAccessibleName(_("Compose file"))

    def show_flow(self) -> None:
        flow = self.flow
        if flow is None or flow.facts is None:
            return
        self._show_licence(flow)
        plan = flow.plan
        self._more.setVisible(plan is not None)
        if plan is None:
            return
        self._figures.show_rows(self._rows(flow, plan))
        self._context.setText(self.text.context_of(plan))
        text = self.conductor.compose_preview(plan)
        if self._file.toPlainText() != text:
            self._file.setPlainText(text)

    def _rows(self, flow: Flow, plan: Plan) -> tuple[tuple[str, str], ...]:
        _, text = self.text.gettext, self.text
        model = flow.registry.model_of(flow.registry.profile(plan.profile))
        pinned = _("pinned") if plan.pinned else _("follows its tag")
        image = 0 if flow.present.image else plan.image.size_bytes
        weights = plan.weights.size_bytes - flow.present.weights_bytes
        return (
            (_("Model"), f"{model.name} ({model.publisher}, {model.quantization})"),
            (_("Graphics card"), text.card(plan.gpu.name) if plan.gpu else _("none, on the processor")),
            (_("Context"), text.tokens_of(plan.settings.context, plan.native_context)),
            (_("Image"), f"{plan.image.by_tag} ({pinned})"),
            (
                _("Download"),
                _(
                    "{all}: image {image}, model {model}",
                    all=text.gb(image + weights),
                    image=text.gb(image),
                    model=text.gb(weights),
                ),
            ),
            (_("Folder"), plan.choices.folder or (flow.facts.weights_folder.path if flow.facts else "")),
            (_("Address"), plan.endpoint),
            (_("Takes"), _("The download depends on your line. The first start takes several minutes more.")),
        )

    def _show_licence(self, flow: Flow) -> None:
        chosen = flow.choices.profile
        licence = flow.registry.licence_of(flow.registry.profile(chosen)) if chosen else None
        needed = licence is not None and not licence.free
        self._licence_card.setVisible(needed)
        if licence is None or not needed:
            return
        _ = self.text.gettext
        self._licence.say(_("I agree to the licence {licence}", licence=licence.name), licence.url)
        self._licence_words.setText(breakable(licence.url))
        self._licence.box.setChecked(licence.id in flow.choices.accept_licenses)

    def _agreed(self, agreed: bool) -> None:
        flow = self.flow
        if flow is None or flow.choices.profile is None:
            return
        licence = flow.registry.licence_of(flow.registry.profile(flow.choices.profile)).id
        others = tuple(each for each in flow.choices.accept_licenses if each != licence)
        self.conductor.choose(accept_licenses=(*others, licence) if agreed else others)

    def _turn(self) -> None:
        self._file.setVisible(not self._file.isVisible())

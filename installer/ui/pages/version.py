"""Version: which image it is, how large and how old, and whether it is pinned to exactly this one."""

from __future__ import annotations

from installer.domain.choices import PIN_CURRENT
from installer.domain.problems import AnyProblem
from installer.steps.bookmark import Page
from installer.ui.conductor import Conductor
from installer.ui.pages.base import PageWidget
from installer.ui.pages.pin_card import PinCard
from installer.ui.pages.token_card import TokenCard
from installer.ui.widgets.cards import Card
from installer.ui.widgets.copying import CopyField
from installer.ui.widgets.figures import Figures


class VersionPage(PageWidget):
    """The fifth page."""

    page = Page.VERSION

    def __init__(self, conductor: Conductor) -> None:
        super().__init__(conductor)
        self._card = Card()
        self._figures = Figures()
        self._digest = CopyField()
        self._card.box.addWidget(self._figures)
        self._card.box.addWidget(self._digest)
        self._pin_card = PinCard(self._chose)
        self.token_card = TokenCard(conductor)
        self.body.addWidget(self.token_card)
        self.body.addWidget(self._card)
        self.body.addWidget(self._pin_card)

    def look_again(self) -> None:
        self.conductor.resolve()

    def again_label(self, problem: AnyProblem) -> str:
        """Asking again is what helps here, whatever failed."""
        return self.text.gettext("Try again")

    def retranslate(self) -> None:
        _ = self.text.gettext
        self.title.setText(_("Version"))
        self.lead.setText(_("This image would be installed."))
        self._digest.say(_("Digest of the image"), _("Copy"), _("Copied"))
        self._pin_card.say(self.text)

    def show_flow(self) -> None:
        flow = self.flow
        known = flow.sources if flow else None
        self.token_card.show_flow()
        if known is not None:  # the next page asks for it
            self.token_card.hide()
        self._card.setVisible(known is not None)
        self._pin_card.pin.setEnabled(known is not None)
        if flow is None or known is None:
            return
        _, text, image = self.text.gettext, self.text, known.image
        release = flow.registry.image_of(flow.registry.profile(known.profile))
        self._figures.show_rows(
            (
                (_("Image"), image.by_tag),
                (_("Release"), f"vLLM {release.version}"),
                (_("Made on"), text.date(image.created) if image.created else text.date(release.released)),
                (_("Size"), text.gb(image.size_bytes)),
                (_("Known since"), text.date(known.resolved_at)),
            )
        )
        self._digest.show_value(image.index_digest)
        self._pin_card.show_pinned(flow.choices.docker_image_pin_digest != "")

    def _chose(self, pinned: bool) -> None:
        self.conductor.choose(docker_image_pin_digest=PIN_CURRENT if pinned else "")

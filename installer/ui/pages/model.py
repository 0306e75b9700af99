"""Model: what runs on this card and how sure that is, what does not and why, and the context on demand."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QButtonGroup, QSlider, QVBoxLayout

from installer.domain.memory import Verdict
from installer.domain.offers import Offer
from installer.domain.registry import Task
from installer.steps.bookmark import Page
from installer.steps.flow import Flow
from installer.steps.views import parts
from installer.text import Text
from installer.ui.conductor import Conductor
from installer.ui.pages.base import PageWidget
from installer.ui.widgets.basics import Button, Label, add, clear, column
from installer.ui.widgets.choices import ChoiceCard
from installer.ui.widgets.memory_bar import MemoryBar, Segment
from installer.ui.widgets.wrapping import wrapping

STEP = 1024
SETTLE_MS = 120
TASKS: tuple[Task, ...] = ("vision", "chat", "image")


class ModelPage(PageWidget):
    """The fourth page. The filter shows one task at a time; a profile is chosen by its card."""

    page = Page.MODEL

    def __init__(self, conductor: Conductor) -> None:
        super().__init__(conductor)
        self._task: Task | None = None
        self._filters: dict[Task, Button] = {}
        group = QButtonGroup(self)
        for task in TASKS:
            button = Button("filter", on_click=partial(self._show_task, task))
            button.setCheckable(True)
            group.addButton(button)
            self._filters[task] = button
        self.body.addWidget(wrapping(*self._filters.values()))
        self._list = column(12)
        self.body.addLayout(self._list)
        self._group = QButtonGroup(self)
        self._cards: dict[str, _ProfileCard] = {}
        self._others = Button("quiet", "chevron-down", on_click=self._turn_others)
        self._others_shown = False
        self._rest = column(12)
        self.body.addWidget(wrapping(self._others))
        self.body.addLayout(self._rest)
        self._drawn: tuple[object, ...] = ()

    def retranslate(self) -> None:
        _ = self.text.gettext
        self.title.setText(_("Model"))
        self.lead.setText(_("Choose what shall run here. Every verdict counts the memory that is free now."))
        names = {"vision": _("Chat with pictures and video"), "chat": _("Chat"), "image": _("Make pictures")}
        for task, button in self._filters.items():
            button.say(names[task])

    def show_flow(self) -> None:
        flow = self.flow
        if flow is None or not flow.offers:
            return
        if self._task is None:
            chosen = flow.profile
            self._task = flow.registry.profiles[chosen].task if chosen else TASKS[0]
        self._filters[self._task].setChecked(True)
        drawn = (flow.offers, self._task, self.text.language)
        if drawn != self._drawn:
            self._drawn = drawn
            self._rebuild(flow)
        for name, card in self._cards.items():
            shown = flow.offered if name == flow.profile and flow.offered else card.offer
            card.show_offer(shown, flow, self.text, chosen=name == flow.profile)

    def _rebuild(self, flow: Flow) -> None:
        for box in (self._list, self._rest):
            clear(box)
        self._cards = {}
        of_task = [each for each in flow.offers if flow.registry.profiles[each.profile].task == self._task]
        possible = [each for each in of_task if each.verdict in (Verdict.FITS, Verdict.TIGHT)]
        others = [each for each in of_task if each not in possible]
        self._show_cards(possible, self._list)
        if self._others_shown:
            self._show_cards(others, self._rest)
        self._others.setVisible(bool(others))
        self._others.say(
            self.text.ngettext(
                "{count} profile does not run here: why", "{count} profiles do not run here: why", len(others)
            )
        )

    def _show_task(self, task: Task) -> None:
        self._task = task
        self._others_shown = False
        self.show_flow()

    def _show_cards(self, offers: list[Offer], box: QVBoxLayout) -> None:
        for offer in offers:
            card = _ProfileCard(offer, self.conductor)
            self._group.addButton(card.radio)
            self._cards[offer.profile] = card
            box.addWidget(card)

    def _turn_others(self) -> None:
        self._others_shown = not self._others_shown
        self._drawn = ()
        self.show_flow()


class _ProfileCard(ChoiceCard):
    """One profile: name, verdict, facts, memory, context; the rest on demand."""

    def __init__(self, offer: Offer, conductor: Conductor) -> None:
        super().__init__()
        self.offer = offer
        self._conductor = conductor
        self._facts, self._reason, self._extent = Label("caption"), Label("caption"), Label()
        self._bar = MemoryBar()
        self._more = Button("quiet", "chevron-down", on_click=self._turn)
        self._slider = QSlider(Qt.Orientation.Horizontal)
        self._slider.setSingleStep(1)
        self._slider.setPageStep(8)
        self._settle = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settle.timeout.connect(self._choose_context)
        self._slider.valueChanged.connect(self._moved)
        self._limit, self._flags = Label("caption"), Label("caption")
        foot = wrapping(self._more)
        add(self.body, self._facts, self._bar, self._reason, self._extent)
        self.body.addWidget(foot)
        for widget in (self._slider, self._limit, self._flags):
            self.body.addWidget(widget)
            widget.hide()
        self.radio.clicked.connect(lambda _=False: conductor.choose(profile=self.offer.profile))
        possible = offer.verdict in (Verdict.FITS, Verdict.TIGHT)
        self.radio.setEnabled(possible)
        self._more.setVisible(possible)

    def show_offer(self, offer: Offer, flow: Flow, text: Text, *, chosen: bool) -> None:
        _ = text.gettext
        model = flow.registry.model_of(flow.registry.profiles[offer.profile])
        name = f"{model.name}  ·  {model.quantization}"
        word = text.verdict(offer.verdict)
        if offer.recommended:
            word = _("{verdict}, recommended", verdict=word)
        self.mark.show_verdict(offer.verdict.value, word)
        self._facts.say(_facts(offer, flow, text))
        self._reason.say(" ".join(part for part in (text.reason(offer.reason), text.levers(offer)) if part))
        self._extent.say(_extent(offer, model.native_context, text))
        self._show_bar(offer, text)
        self._more.say(_("Details"), _("Details of {profile}", profile=offer.profile))
        self.radio.setChecked(chosen)
        self.say(name, f"{word}. {self._facts.text()}. {self._reason.text()}")
        self._limit.setText(
            text.context_copy(
                offer.context, model.native_context, reads_media=flow.registry.profiles[offer.profile].reads_media
            )
        )
        self._flags.setText(_flag_lines(offer, flow, text))
        self._show_slider(offer, model.native_context, text)

    def _show_bar(self, offer: Offer, text: Text) -> None:
        self._bar.setVisible(offer.fit is not None)
        if offer.fit is None:
            return
        segments = tuple(
            Segment(part.kind, part.size_bytes, f"{text.term(part.kind)} {text.gib(part.size_bytes)}")
            for part in parts(offer.fit)
        )
        whole = max(offer.fit.budget.total_bytes, sum(s.size_bytes for s in segments))
        self._bar.show_segments(segments, whole)

    def _show_slider(self, offer: Offer, native: int, text: Text) -> None:
        self._slider.blockSignals(True)
        self._slider.setRange(2, max(2, native // STEP))
        if not self._settle.isActive():
            self._slider.setValue(offer.context // STEP)
        self._slider.blockSignals(False)
        self._slider.setAccessibleName(text.choice_name("context"))
        self._slider.setAccessibleDescription(text.tokens_of(offer.context, native) if native else "")
        self._slider.setEnabled(self.radio.isChecked())

    def _turn(self) -> None:
        shown = not self._flags.isVisible()
        for widget in (self._limit, self._flags):
            widget.setVisible(shown)
        self._slider.setVisible(shown and self.offer.context > 0)

    def _moved(self) -> None:
        self._settle.start()

    def _choose_context(self) -> None:
        self._conductor.choose(context=self._slider.value() * STEP)


def _facts(offer: Offer, flow: Flow, text: Text) -> str:
    profile = flow.registry.profiles[offer.profile]
    model = flow.registry.model_of(profile)
    licence = flow.registry.licence_of(profile)
    image = flow.registry.image_of(profile)
    words = [
        model.publisher,
        licence.name if licence.free else text.gettext("{licence} (asks for your consent)", licence=licence.name),
        text.gettext("download {size}", size=text.gb(model.checkpoint_bytes + image.compressed_bytes)),
        text.evidence(offer.evidence, untested=offer.untested),
    ]
    return " · ".join(words)


def _extent(offer: Offer, native: int, text: Text) -> str:
    if not offer.context:
        return text.extent(offer)
    return text.gettext("Context {limit}", limit=text.tokens_of(offer.context, native))


def _flag_lines(offer: Offer, flow: Flow, text: Text) -> str:
    flags = flow.registry.profiles[offer.profile].flags
    return "\n".join(f"{flag.flag} {_value(flag.value)}: {text.flag_reason(flag.reason)}" for flag in flags)


def _value(value: object) -> str:
    return "" if value is True else str(value)

"""Graphics card: one card per GPU with what is used and free, who holds it, and which one shall be used."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QButtonGroup

from installer.domain.facts import Nvidia
from installer.domain.problems import AnyProblem
from installer.steps.bookmark import Page
from installer.steps.flow import Flow
from installer.steps.views import GpuCard, gpu_cards
from installer.text import Text
from installer.text import views as words
from installer.ui.conductor import Conductor
from installer.ui.pages.base import PageWidget
from installer.ui.widgets.basics import Button, Icon, Label, add, clear, column, row
from installer.ui.widgets.cards import Card
from installer.ui.widgets.choices import ChoiceCard
from installer.ui.widgets.memory_bar import MemoryBar, Segment

LOOK_EVERY_MS = 3000


class CardPage(PageWidget):
    """The second page. While it is shown, the card's memory is read every few seconds, off the window's thread."""

    page = Page.CARD

    def __init__(self, conductor: Conductor) -> None:
        super().__init__(conductor)
        self._gone, self._gone_words = Card("advice"), Label()
        line = row(Icon("info", "warn"), self._gone_words)
        line.setStretch(1, 1)
        self._gone.box.addLayout(line)
        self._cards = column(12)
        self.body.addWidget(self._gone)
        self.body.addLayout(self._cards)
        self._group = QButtonGroup(self)
        self._shown: dict[str, _GpuCard] = {}
        self._again = Button("", "refresh-cw", on_click=conductor.look_again)
        foot = row(self._again)
        foot.addStretch(1)
        self._driver = Label("caption")
        self.body.addLayout(foot)
        self.body.addWidget(self._driver)
        self._timer = QTimer(self, interval=LOOK_EVERY_MS)
        self._timer.timeout.connect(conductor.look_at_cards)

    def showEvent(self, event: object) -> None:
        self._timer.start()

    def hideEvent(self, event: object) -> None:
        self._timer.stop()

    def retranslate(self) -> None:
        _ = self.text.gettext
        self.title.setText(_("Graphics card"))
        self._again.say(_("Check again"))
        self._gone_words.setText(_("The card that was chosen is not there any more. Check the choice here."))

    def show_flow(self) -> None:
        flow = self.flow
        if flow is None or flow.facts is None:
            return
        gpus = gpu_cards(flow)
        if tuple(self._shown) != tuple(gpu.uuid for gpu in gpus):
            self._rebuild(gpus)
        for gpu in gpus:
            self._shown[gpu.uuid].show_gpu(gpu, flow, self.text, only=len(gpus) == 1)
        self._gone.setVisible(flow.card_gone)
        self.lead.say(self._lead(gpus))
        self._driver.say(self._driver_words(flow.facts.nvidia))

    def show_problem(self, problem: AnyProblem | None) -> None:
        """One button that checks again is enough: the problem has its own."""
        super().show_problem(problem)
        self._again.setVisible(problem is None or not self.mend_label(problem))

    def _lead(self, gpus: tuple[GpuCard, ...]) -> str:
        if not gpus:
            return self.text.gettext("Without an NVIDIA card only the small trial on the processor can run.")
        free = gpus[0].usable_bytes if len(gpus) == 1 else None
        if free is None:
            return self.text.gettext("Choose the card that shall do the work.")
        return self.text.gettext(
            "{card} has {free} of graphics memory free.", card=self.text.card(gpus[0].name), free=self.text.gib(free)
        )

    def _driver_words(self, nvidia: Nvidia) -> str:
        if not nvidia.driver_version:
            return ""
        if nvidia.cuda_version is None:
            return self.text.gettext("NVIDIA driver {version}", version=nvidia.driver_version)
        cuda = "{}.{}".format(*nvidia.cuda_version)
        return self.text.gettext("NVIDIA driver {version} (CUDA {cuda})", version=nvidia.driver_version, cuda=cuda)

    def _rebuild(self, gpus: tuple[GpuCard, ...]) -> None:
        clear(self._cards)
        self._shown = {}
        for gpu in gpus:
            card = _GpuCard()
            card.radio.clicked.connect(lambda _=False, uuid=gpu.uuid: self.conductor.choose(gpu_uuid=uuid))
            self._group.addButton(card.radio)
            self._cards.addWidget(card)
            self._shown[gpu.uuid] = card


class _GpuCard(ChoiceCard):
    def __init__(self) -> None:
        super().__init__()
        self.mark.hide()
        self._facts, self._holders, self._notes = Label("caption"), Label("caption"), column(6)
        self._bar = MemoryBar()
        self._said: tuple[str, ...] = ()
        add(self.body, self._facts, self._bar, self._holders)
        self.body.addLayout(self._notes)

    def show_gpu(self, gpu: GpuCard, flow: Flow, text: Text, *, only: bool) -> None:
        """Show a card as it was read last; the only one there is needs no choosing."""
        self._bar.setVisible(gpu.total_bytes is not None)
        if gpu.total_bytes is not None:
            self._bar.show_segments(_segments(gpu, text), gpu.total_bytes)
        self._facts.say(" · ".join(_facts(gpu, text)))
        self._holders.say(words.holders(gpu, text))
        self._show_notes(tuple(_notes(gpu, flow, text)))
        self.say(gpu.name, f"{self._facts.text()}. {self._bar.accessibleName()} {' '.join(self._said)}")
        self.radio.setChecked(gpu.chosen or only)

    def _show_notes(self, notes: tuple[str, ...]) -> None:
        if notes == self._said:
            return
        self._said = notes
        clear(self._notes)
        for note in notes:
            line = row(Icon("info", "accent", 16), Label("", note))
            line.setStretch(1, 1)
            self._notes.addLayout(line)


def _facts(gpu: GpuCard, text: Text) -> Iterator[str]:
    if gpu.total_bytes is not None:
        yield text.gettext("{total} in all", total=text.gib(gpu.total_bytes))
    elif gpu.missing is not None:
        yield text.missing(gpu.missing)
    if gpu.capability is not None:
        yield text.gettext("compute capability {version}", version=gpu.capability)


def _segments(gpu: GpuCard, text: Text) -> tuple[Segment, ...]:
    used, free = gpu.used_bytes or 0, gpu.free_bytes or 0
    return (
        Segment("used", used, text.gettext("{size} used", size=text.gib(used))),
        Segment("free", free, text.gettext("{size} free", size=text.gib(free))),
    )


def _notes(gpu: GpuCard, flow: Flow, text: Text) -> Iterator[str]:
    if gpu.problem is not None:
        yield text.problem(gpu.problem).sentence
    wanted = flow.registry.profile(gpu.wanted.profile) if gpu.wanted else None
    yield from words.card_notes(gpu, flow.registry.model_of(wanted).name if wanted else "", text)

"""Graphics card: one card per GPU with what is used and free, who holds it, and which one shall be used."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QButtonGroup

from installer.domain import checks
from installer.domain.facts import Gpu, GpuMemory, Missing
from installer.domain.memory import budget
from installer.domain.problems import AnyProblem
from installer.steps.bookmark import Page
from installer.ui.conductor import Conductor
from installer.ui.pages.base import PageWidget
from installer.ui.widgets.basics import Button, Label, add, clear, column, row
from installer.ui.widgets.choices import ChoiceCard
from installer.ui.widgets.memory_bar import MemoryBar, Segment

LOOK_EVERY_MS = 3000


class CardPage(PageWidget):
    """The second page. While it is shown, the card's memory is read every few seconds, off the window's thread."""

    page = Page.CARD

    def __init__(self, conductor: Conductor) -> None:
        super().__init__(conductor)
        self._cards = column(12)
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

    @property
    def error(self) -> AnyProblem | None:
        """Say what is wrong with card or driver; without one, the trial on the processor is still possible."""
        if self.conductor.problem is not None or self.flow is None or self.flow.facts is None:
            return self.conductor.problem
        found = checks.nvidia(self.flow.facts)
        return found[0] if found else None

    def retranslate(self) -> None:
        _ = self.text.gettext
        self.title.setText(_("Graphics card"))
        self._again.say(_("Check again"))

    def show_flow(self) -> None:
        facts = self.flow.facts if self.flow else None
        if facts is None or self.flow is None:
            return
        gpus = facts.nvidia.gpus
        if tuple(self._shown) != tuple(gpu.uuid for gpu in gpus):
            self._rebuild(gpus)
        chosen = self.flow.choices.gpu_uuid or (self.flow.offered.gpu_uuid if self.flow.offered else None)
        for gpu in gpus:
            self._shown[gpu.uuid].show_gpu(self, gpu, chosen=gpu.uuid == chosen, only=len(gpus) == 1)
        self.lead.say(self._lead(gpus))
        self._driver.say(self._driver_words())

    def _lead(self, gpus: tuple[Gpu, ...]) -> str:
        if not gpus:
            return self.text.gettext("Without an NVIDIA card only the small trial on the processor can run.")
        facts = self.flow.facts if self.flow else None
        room = budget(facts, gpus[0]) if facts and len(gpus) == 1 else None
        if room is None:
            return self.text.gettext("Choose the card that shall do the work.")
        return self.text.gettext(
            "{card} has {free} of graphics memory free.",
            card=self.text.card(gpus[0].name),
            free=self.text.gib(room.free_bytes),
        )

    def _driver_words(self) -> str:
        nvidia = self.flow.facts.nvidia if self.flow and self.flow.facts else None
        if nvidia is None or not nvidia.driver_version:
            return ""
        cuda = ".".join(map(str, nvidia.cuda_version or ()))
        return self.text.gettext("NVIDIA driver {version} (CUDA {cuda})", version=nvidia.driver_version, cuda=cuda)

    def _rebuild(self, gpus: tuple[Gpu, ...]) -> None:
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
        self._facts, self._holders = Label("caption"), Label("caption")
        self._bar = MemoryBar()
        add(self.body, self._facts, self._bar, self._holders)

    def show_gpu(self, page: CardPage, gpu: Gpu, *, chosen: bool, only: bool) -> None:
        text, _ = page.text, page.text.gettext
        capability = gpu.compute_capability
        shown = "" if isinstance(capability, Missing) else f"{capability[0]}.{capability[1]}"
        words = [_("compute capability {version}", version=shown)] if shown else []
        if isinstance(gpu.memory, GpuMemory):
            total = gpu.memory.total_bytes
            words.insert(0, _("{total} in all", total=text.gib(total)))
            self._bar.show_segments(_segments(gpu.memory, page), total)
        else:
            words.insert(0, text.missing(gpu.memory))
            self._bar.setVisible(False)
        self._facts.say(" · ".join(words))
        holders = checks.holders(gpu)
        self._holders.say(_("Memory held by: {programs}", programs=text.listed(holders)) if holders else "")
        self.say(gpu.name, f"{self._facts.text()}. {self._bar.accessibleName()}")
        self.radio.setChecked(chosen or only)


def _segments(memory: GpuMemory, page: CardPage) -> tuple[Segment, ...]:
    _, text = page.text.gettext, page.text
    used = memory.total_bytes - memory.free_bytes
    return (
        Segment("used", used, _("{size} used", size=text.gib(used))),
        Segment("free", memory.free_bytes, _("{size} free", size=text.gib(memory.free_bytes))),
    )

"""Asking the server that is installed, from the window: one question at a time, its answer told piece by piece."""

from __future__ import annotations

import contextlib

from PySide6.QtCore import QObject, Signal

from installer.domain.problems import Cancelled
from installer.steps import ask as asking
from installer.steps.cancel import Cancel
from installer.steps.ports import Delta, Picture
from installer.ui.workroom import Workroom, problem_of


class Asking(QObject):
    """What `slipway ask` does, for a widget. Every signal comes in the window's thread."""

    told = Signal(object)
    answered = Signal(object)
    stopped = Signal()
    failed = Signal(object)
    pictured = Signal(object)
    remarked = Signal(str)

    def __init__(self, room: Workroom) -> None:
        super().__init__(room)
        self._room = room
        self._cancel = Cancel()
        self.running = False
        room.closing.connect(self.stop)

    @property
    def reads_pictures(self) -> bool:
        """Say whether the profile that is installed takes pictures."""
        plan = self._room.stack.plan()
        return plan is not None and plan.settings.reads_media

    @property
    def reads_videos(self) -> bool:
        """Say whether the profile that is installed takes videos."""
        plan = self._room.stack.plan()
        return plan is not None and plan.takes_video

    def look_at(self, path: str) -> None:
        """Read a picture file, to be sent with the next question; `pictured` tells it."""
        room = self._room
        room.bridge.run(lambda: asking.picture(path, room.stack, room.ports), self.pictured.emit, self._fail)

    def ask(self, question: str, shown: Picture | None, video: str = "") -> None:
        """Ask, with a picture or the file or address of a video; what is going on already goes on."""
        if self.running:
            return
        room, cancel = self._room, Cancel()
        self.running, self._cancel = True, cancel

        def tell(piece: Delta) -> None:
            room.bridge.tell(lambda: self.told.emit(piece))

        def remark(said: str) -> None:
            room.bridge.tell(lambda: self.remarked.emit(said))

        def work() -> asking.Answer:
            stack, ports = room.stack, room.ports
            with asking.video(video, stack, ports, cancel) if video else contextlib.nullcontext() as clip:
                sampling = asking.sampling(clip, stack.installed()) if clip else None
                if sampling and sampling.cut:
                    remark(room.text.video_sampled(sampling))
                return asking.ask(
                    question,
                    stack,
                    ports,
                    cancel,
                    tell,
                    shown,
                    clip,
                    lambda odd: remark(room.text.problem(odd).sentence),
                )

        def take(answer: asking.Answer) -> None:
            self.running = False
            self.answered.emit(answer)

        room.bridge.run(work, take, self._fail)

    def stop(self) -> None:
        """End the answer that comes now; the server stops working on it."""
        self._cancel.set()

    def _fail(self, error: BaseException) -> None:
        self.running = False
        if isinstance(error, Cancelled):
            self.stopped.emit()
        else:
            self.failed.emit(problem_of(error))

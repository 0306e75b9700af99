"""The verb `ask`: a question to the installed server, answered as it streams."""

from __future__ import annotations

import contextlib

from installer import doors
from installer.cli.session import Session, to_plain
from installer.cli.worker import cancellable
from installer.domain.problems import AnyProblem
from installer.steps import ask as asking
from installer.steps.home import StackHome
from installer.steps.listening import Answer
from installer.steps.ports import Delta, Picture


def ask(session: Session) -> int:
    """Ask and show the answer on standard output; what the model thinks and what was measured go to stderr."""
    stack = session.installed_stack()
    asked = session.arguments.question
    question = doors.read_text("-") if asked == "-" else asked
    shown = asking.picture(session.arguments.picture, stack, session.ports) if session.arguments.picture else None
    if shown and shown.original and not session.output.as_json:
        session.output.aside(session.text.picture_scaled(shown))
    telling = _Telling(session)
    answer = cancellable(lambda: _asked(session, stack, question, shown, telling), session.cancel)
    telling.end(answer, shown)
    return 0


def _asked(session: Session, stack: StackHome, question: str, shown: Picture | None, telling: _Telling) -> Answer:
    named, ports, cancel = session.arguments.video, session.ports, session.cancel
    with asking.video(named, stack, ports, cancel) if named else contextlib.nullcontext() as clip:
        sampling = asking.sampling(clip, stack.installed()) if clip else None
        if sampling and sampling.cut:
            telling.aside(session.text.video_sampled(sampling))
        return asking.ask(question, stack, ports, cancel, telling.tell, shown, clip, telling.remark)


class _Telling:
    """Prints the pieces of one answer."""

    def __init__(self, session: Session) -> None:
        self._out = session.output
        self._text = session.text
        self._thinking = False

    def aside(self, sentence: str) -> None:
        """Print a sentence that is no part of the answer."""
        if not self._out.as_json:
            self._out.aside(sentence)

    def remark(self, problem: AnyProblem) -> None:
        """Print what is odd about the way of a video."""
        if self._out.as_json:
            self._out.json_line({"event": "remark", "problem": to_plain(problem)})
        else:
            words = self._text.problem(problem)
            self._out.aside(f"{words.sentence} {words.remedy}")

    def tell(self, piece: Delta) -> None:
        """Print one piece; an empty line parts what was thought from what is said."""
        if not (piece.content or piece.reasoning):
            return
        if self._out.as_json:
            self._out.json_line({"event": "delta", "content": piece.content, "reasoning": piece.reasoning})
            return
        if piece.reasoning:
            self._thinking = True
            self._out.aside_piece(piece.reasoning)
        if piece.content and self._thinking:
            self._thinking = False
            self._out.aside_piece("\n\n")
        if piece.content:
            self._out.piece(piece.content)

    def end(self, answer: Answer, shown: Picture | None) -> None:
        """Print how it ended and what was measured."""
        if self._out.as_json:
            size = None if shown is None else {"width": shown.width, "height": shown.height, "original": shown.original}
            self._out.json_line({"event": "answered", **dict(to_plain(answer)), "picture": size})  # type: ignore[call-overload]
            return
        self._out.line()
        for sentence in (self._text.answer_ended(answer), self._text.answer_figures(answer)):
            if sentence:
                self._out.aside(sentence)

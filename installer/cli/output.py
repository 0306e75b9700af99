"""What the command line prints: sentences for a person, JSON for a program; sentences about failures go to stderr."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any, assert_never

import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table

from installer.domain import problems
from installer.domain.problems import AnyProblem
from installer.steps import events
from installer.steps.events import Event, Step
from installer.text import Text

WIDEST_TEXT = 100
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters but for tab and line feed: a model may write any, and a terminal obeys them."""


def _wrapped(sentence: str, width: int) -> list[str]:
    """Break at plain spaces only: the no-break space between a figure and its unit holds."""
    lines, line = [], ""
    for word in sentence.split(" "):
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line] if line else lines


class Output:
    """Prints in one language, for a person or for a program."""

    def __init__(self, text: Text, *, as_json: bool) -> None:
        self.text = text
        self.as_json = as_json
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
        self._console = Console(highlight=False, soft_wrap=True)
        self._errors = Console(stderr=True, highlight=False, soft_wrap=True)
        self._settled = False
        self._bars: Progress | None = None
        self._tasks: dict[Step, TaskID] = {}

    def json(self, value: Any) -> None:
        """Print a value as one JSON document."""
        sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")

    def json_line(self, value: dict[str, Any]) -> None:
        """Print a value as one line of JSON, at once."""
        sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def line(self, sentence: str = "") -> None:
        """Print one line for a person."""
        if not self.as_json:
            self._console.print(sentence, markup=False)

    def piece(self, text: str) -> None:
        """Print a piece of a text that streams, at once. What would steer a terminal is taken out."""
        sys.stdout.write(_STEERING.sub("", text))
        sys.stdout.flush()

    def aside_piece(self, text: str) -> None:
        """Print such a piece beside the answer: to stderr."""
        self._errors.print(_STEERING.sub("", text), style="dim", markup=False, end="")

    def heading(self, words: str) -> None:
        """Print one bold line for a person."""
        if not self.as_json:
            self._console.print(words, style="bold", markup=False)

    def aside(self, sentence: str) -> None:
        """Say something beside the answer: to stderr, for a person and a program alike."""
        self._errors.print(sentence, style="dim", markup=False)

    def paragraph(self, sentence: str) -> None:
        """Print a sentence for a person, indented and wrapped between words but never inside a figure."""
        width = max(40, min(self._console.width, WIDEST_TEXT) - 2)
        for line in _wrapped(sentence, width):
            self.line(f"  {line}")

    def table(self, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
        """Print a table for a person."""
        names = tuple(headings)
        table = Table(box=None, pad_edge=False, show_header=any(names), header_style="bold")
        for heading in names:
            table.add_column(heading, overflow="fold")
        for row in rows:
            table.add_row(*row)
        self._console.print(table)

    def ask(self, question: str) -> bool:
        """Ask a yes-or-no question; anything but a clear yes is a no."""
        self._console.print(f"{question} ", end="", markup=False)
        return sys.stdin.readline().strip().casefold() in ("j", "ja", "y", "yes")

    def problem(self, problem: AnyProblem) -> None:
        """Print a Problem: what happened and what to do."""
        if self.as_json and not self._settled:
            self.json_line({"problem": self.problem_json(problem)})
        self._spoken(problem)

    def _spoken(self, problem: AnyProblem) -> None:
        said = self.text.problem(problem)
        self._errors.print(said.title, style="bold", markup=False)
        for sentence in (said.sentence, said.remedy):
            for line in _wrapped(sentence, max(40, min(self._errors.width, WIDEST_TEXT))):
                self._errors.print(line, markup=False)
        if problem.command:
            self._errors.print(f"  {problem.command}", markup=False)
        for line in problem.technical:
            self._errors.print(f"  | {line}", style="dim", markup=False)

    def problem_json(self, problem: AnyProblem) -> dict[str, object]:
        """Return a Problem as JSON with its sentences."""
        said = self.text.problem(problem)
        return problems.to_json(problem) | {
            "title": said.title,
            "sentence": said.sentence,
            "remedy": said.remedy,
            "command": problem.command,
        }

    def event(self, event: Event) -> None:
        """Print one event of a run as it happens."""
        if self.as_json:
            self._settled = isinstance(event, events.Settled)
            self.json_line(self._event_json(event))
        else:
            self._event_line(event)

    def _event_json(self, event: Event) -> dict[str, Any]:
        values: dict[str, Any] = msgspec.to_builtins(event)
        problem = getattr(event, "problem", None)
        if problem is not None:
            values["problem"] = self.problem_json(problem)
        if isinstance(event, events.Notice):
            values["sentence"] = self.text.note(event.notice)
        return values

    def _event_line(self, event: Event) -> None:
        match event:
            case events.Started(step=step):
                self.line(self.text.step(step).present)
            case events.Progress(step=step, done=done, total=total):
                self._bar(step, done, total)
            case events.Notice(notice=notice):
                self.line("  " + self.text.note(notice))
            case events.Skipped(step=step):
                self.line(self.text.skipped(step))
            case events.Finished(step=step, seconds=seconds):
                self._end_bar(step)
                self.line(f"  {self.text.step(step).done} ({self.text.duration(seconds)})")
            case events.Failed(step=step):
                self._end_bar(step)
            case events.Proved(report=report):
                for check in report.checks:
                    self.line("  " + self.text.check(check))
            case events.Settled():
                self._end_bars()
            case _:
                assert_never(event)

    def _bar(self, step: Step, done: int, total: int) -> None:
        if not self._console.is_terminal:
            return
        if self._bars is None:
            self._bars = Progress(
                TextColumn("  {task.description}"),
                BarColumn(),
                TextColumn("{task.fields[amount]}"),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._bars.start()
        amount = f"{self.text.gb(done)} / {self.text.gb(total)}"
        if step not in self._tasks:
            self._tasks[step] = self._bars.add_task(self.text.step(step).noun, total=total, amount=amount)
        self._bars.update(self._tasks[step], completed=done, total=total, amount=amount)

    def _end_bar(self, step: Step) -> None:
        task = self._tasks.pop(step, None)
        if self._bars is not None and task is not None:
            self._bars.remove_task(task)
        if not self._tasks:
            self._end_bars()

    def _end_bars(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
            self._tasks.clear()

"""What every target shares: how it is run, what may come of it, and what must not.

Whatever comes in, the product answers with a value or with a Problem. A Problem has words in both languages and goes
into JSON and events; none of it repeats a secret that was planted, and nothing takes longer than a person waits.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TypeVar

import msgspec
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from installer.domain import problems
from installer.domain.problems import AnyProblem, Bug, Cancelled, InstallerError
from installer.steps.events import Event, Failed, Step
from installer.text import Text

T = TypeVar("T")

TOKEN = "hf_PlantedByTheFuzzer0123456789"
KEY = "planted-key-of-the-fuzzer-42"
SECRETS = (TOKEN, KEY)
LIMIT_SECONDS = 30
"""So long only a hang takes, also on a busy machine."""

CPU_SECONDS = 5
"""What no single example takes of this process; time that other processes took does not count."""

LONGEST_SENTENCE = 4000
LANGUAGES = (Text("en"), Text("de"))

# The gate looks at the same examples every time: a new one is found by `make fuzz`, and not by whoever changes a word.
GATE = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)


@dataclass(frozen=True)
class Target:
    """A check over what strategies give it; `examples` are those of the gate."""

    name: str
    check: Callable[..., None]
    strategies: Mapping[str, SearchStrategy[Any]]
    examples: int


@dataclass
class Targets:
    """All that were defined so far, in their order."""

    known: list[Target] = field(default_factory=list)

    def __call__(self, examples: int, **strategies: SearchStrategy[Any]) -> Callable[[Callable[..., None]], Any]:
        """Make a test of the gate from a check, and a target of the longer run."""

        def made(check: Callable[..., None]) -> Any:
            name = f"{check.__module__.rpartition('.')[2]}.{check.__name__}"
            self.known.append(Target(name, check, strategies, examples))
            return settings(GATE, max_examples=examples)(given(**strategies)(check))

        return made


target = Targets()


class Hang(BaseException):
    """Not an Exception, so that nothing swallows it."""


@contextlib.contextmanager
def limited(seconds: float = LIMIT_SECONDS) -> Iterator[None]:
    """Interrupt what does not end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def hang(number: int, frame: FrameType | None) -> None:
        raise Hang(f"signal {number}: still at work after {seconds:.0f} s, or {CPU_SECONDS} s of the processor's time")

    before = [(number, signal.signal(number, hang)) for number in (signal.SIGALRM, signal.SIGVTALRM)]
    signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        for number, handler in before:
            signal.signal(number, handler)


def survives(call: Callable[[], T]) -> T | None:
    """Return what a call returns, or None where it ends in a Problem that can be told; anything else is a fault."""
    with limited():
        try:
            return call()
        except InstallerError as error:
            told(error.problem)
        except Cancelled:
            pass
        return None


def told(problem: AnyProblem) -> None:
    """Tell a Problem in every way there is."""
    assert not isinstance(problem, Bug)
    for text in LANGUAGES:
        said = text.problem(problem)
        for part in (said.title, said.sentence, said.remedy):
            assert part.strip()
            shown(part)
    written(problems.to_json(problem))
    keeps_quiet("\n".join((*problem.technical, problem.command or "")))
    recorded(Failed(at="2026-12-01T00:00:00Z", step=Step.START, problem=problem))


def shown(sentence: str) -> None:
    """A sentence stands on a line of a terminal or in a window: no control characters, and not endless."""
    keeps_quiet(sentence)
    assert len(sentence) <= LONGEST_SENTENCE, f"{len(sentence)} characters"
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in sentence), ascii(sentence)


def written(value: object) -> None:
    """A value goes out as JSON, as text in UTF-8."""
    keeps_quiet(json.dumps(msgspec.to_builtins(value), ensure_ascii=False))


def recorded(event: Event) -> None:
    """An event goes into the record."""
    keeps_quiet(msgspec.json.encode(event).decode())


def keeps_quiet(text: str) -> None:
    """A text can be written as UTF-8, and no secret is in it."""
    text.encode()
    for secret in SECRETS:
        assert secret not in text, "a secret is repeated"

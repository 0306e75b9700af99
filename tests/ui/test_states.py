"""States of pages that a walk through a rehearsal does not meet: room for every word, a name for every control."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from PIL import Image
from pytestqt.qtbot import QtBot

from installer.domain.facts import Proxy
from installer.domain.problems import PortTaken
from installer.steps import flow as flows
from installer.steps.bookmark import Page
from installer.ui import theme
from installer.ui.pages.done import DonePage
from tests.ui.kit import Window, name_of, opened
from tests.ui.test_quality import cut_texts


def states_of(window: Window, folder: Path) -> Iterator[str]:
    window.go_to(Page.OPTIONS)
    conductor = window.shell.conductor
    before = conductor.flow
    assert before is not None
    assert before.facts is not None
    assert before.answer is not None
    weights = msgspec.structs.replace(before.answer.sources.weights, gated=True)
    sources = msgspec.structs.replace(before.answer.sources, weights=weights)
    conductor._set(flows.resolved(before, replace(before.answer, sources=sources)))
    yield "token asked for"
    proxy = Proxy(https="http://proxy.example:3128", reaches_loopback=True)
    host = msgspec.structs.replace(before.facts.host, proxy=proxy)
    conductor._set(replace(before, facts=msgspec.structs.replace(before.facts, host=host)))
    yield "proxies in force"
    conductor.show_problem(PortTaken(port=8000, owner="Windows (7990–8089)"))
    yield "port taken"
    window.install()
    yield from answers_of(window, folder)


def answers_of(window: Window, folder: Path) -> Iterator[str]:
    page = window.shell.current
    assert isinstance(page, DonePage)
    there = page.try_it
    Image.new("1", (4200, 4200)).save(folder / "large.png")
    with window.bot.waitSignal(there.asking.pictured):
        there.asking.look_at(str(folder / "large.png"))
    there.question.setText("Donaudampfschifffahrtsgesellschaft? " * 20)
    there.ask()
    window.until(lambda: not there.asking.running)
    yield "answered"
    with window.bot.waitSignal(there.asking.failed):
        there.asking.look_at(str(folder / "nothing.png"))
    yield "no such picture"


@pytest.mark.parametrize("language", ["de", "en"])
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_every_word_has_room_and_every_control_a_name(
    qtbot: QtBot, tmp_path: Path, scale: float, language: str
) -> None:
    theme.set_text_scale(scale)
    window = opened(qtbot, tmp_path / "home", language=language)
    window.shell.resize(window.shell.minimumSize())
    wrong = []
    for state in states_of(window, tmp_path):
        window.settle()
        wrong += [f"{state}: {text}" for text in cut_texts(window)]
        wrong += [f"{state}: unnamed {each}" for each in window.controls() if not name_of(each).strip()]
    assert wrong == []

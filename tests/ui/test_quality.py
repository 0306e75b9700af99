"""What can be measured of the window: names, words, room for the words, contrast. `docs/window.md` has the table.

Every page is looked at in both languages and at the text sizes 100, 150 and 200 %.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from itertools import chain
from pathlib import Path

import pytest
from PySide6.QtWidgets import QAbstractButton, QLabel, QScrollArea
from pytestqt.qtbot import QtBot

from installer.steps.bookmark import Page
from installer.text import Text
from installer.ui import theme
from installer.ui.palette import DARK, LIGHT, Palette, contrast
from installer.ui.widgets.cards import ProblemCard
from tests.ui.kit import Window, name_of, opened

SCALES = (1.0, 1.5, 2.0)
TEXT, SHAPE = 4.5, 3.0
"""WCAG 2.2 AA: contrast of text, and of what is no text but has a meaning."""


def pages_of(window: Window) -> Iterator[str]:
    """Go through the wizard and stop at each page as it looks when it is done."""
    for page in (each for each in Page if each not in (Page.INSTALLATION, Page.DONE)):
        window.go_to(page)
        window.settle()
        yield page.value
    window.install()
    window.settle()
    yield Page.DONE.value
    window.go_on()
    window.until(lambda: window.shell.conductor.status is not None and not window.shell.conductor.busy)
    window.settle()
    yield "overview"
    lookup = window.shell.look_up()
    lookup.read("max_num_seqs (256) exceeds available Mamba cache blocks (184)")
    window.until(lambda: any(card.isVisible() for card in lookup.findChildren(ProblemCard)))
    window.settle()
    yield "lookup"


@pytest.mark.parametrize("language", ["de", "en"])
def test_every_control_has_a_name_for_a_screen_reader(qtbot: QtBot, tmp_path: Path, language: str) -> None:
    window = opened(qtbot, tmp_path, language=language)
    unnamed = [
        f"{page}: {type(control).__name__} {control.property('part') or ''}"
        for page in pages_of(window)
        for control in window.controls()
        if not name_of(control).strip()
    ]
    assert unnamed == []


@pytest.mark.parametrize("language", ["de", "en"])
@pytest.mark.parametrize("scale", SCALES)
def test_every_text_has_the_room_that_it_needs(qtbot: QtBot, tmp_path: Path, language: str, scale: float) -> None:
    theme.set_text_scale(scale)
    window = opened(qtbot, tmp_path, language=language)
    window.shell.resize(window.shell.minimumSize())
    cut = [f"{page}: {text}" for page in pages_of(window) for text in cut_texts(window)]
    assert cut == []


def cut_texts(window: Window) -> Iterator[str]:
    window.settle()
    for label in window.shown(QLabel):
        text = label.text()
        if not text or not label.pixmap().isNull():
            continue
        if label.wordWrap():
            if label.height() + 1 < label.heightForWidth(label.width()):
                yield f"too low: {text}"
            widest = max(label.fontMetrics().horizontalAdvance(word) for word in re.split(r"[ \n\u200b]", text))
            if widest > label.width() + 1:
                yield f"too narrow: {text}"
        elif label.fontMetrics().horizontalAdvance(text) > label.width() + 1:
            yield f"too narrow: {text}"
    for button in window.shown(QAbstractButton):
        if button.width() < button.minimumSizeHint().width() or button.height() < button.minimumSizeHint().height():
            yield f"button: {button.text()}"
    for area in window.shown(QScrollArea):
        if area.widget().width() > area.viewport().width():
            yield f"wider than the window: {area.widget().width()} > {area.viewport().width()}"


class Pseudo(Text):
    """A language in which everything that is translated is bracketed."""

    def __init__(self) -> None:
        super().__init__("en")
        plain = self._catalogue

        class Bracketed:
            def gettext(self, message: str) -> str:
                return f"⟦{plain.gettext(message)}⟧"

            def ngettext(self, one: str, many: str, count: int) -> str:
                return f"⟦{plain.ngettext(one, many, count)}⟧"

        self._catalogue = Bracketed()  # type: ignore[assignment]


DATA = re.compile(
    r"^(Slipway|Deutsch|English|curl|OpenAI Python|Docker|\d+(\.\d+)*%?|[\w./-]+:[\w.:/-]+|vLLM [\d.]+|/[\w./ -]+"
    r"|Ubuntu .*|NVIDIA GeForce .*|https?://\S+|[\w.-]+/[\w.-]+|[a-z0-9.]+(-[a-z0-9.]+)+|[\d.]+\s(G|M)i?B"
    r"|\d{1,2}\s\w+ \d{4}|“.*”, [\d.]+\s(min|s))$"
)
"""Texts that are no sentences of ours: names, figures, paths, addresses, what a server said and in which time."""


def test_no_sentence_bypasses_the_translation(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path, language="en")
    window.shell.conductor.text = Pseudo()
    window.shell.conductor.text_changed.emit()
    models = window.shell.conductor.flow.registry.models.values()
    names = {f"{model.name}  ·  {model.quantization}" for model in models}
    names |= {f"{model.name} ({model.publisher}, {model.quantization})" for model in models}
    leaks = {
        text
        for _ in pages_of(window)
        for text in window.words()
        if "⟦" not in text and text not in names and not DATA.match(text)
    }
    assert leaks == set()


def test_no_english_stands_in_a_german_window(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path, language="de")
    english = english_only()
    leaks = {text for _ in pages_of(window) for text in window.words() if text in english}
    assert leaks == set()


def english_only() -> set[str]:
    import polib

    catalogue = polib.pofile(str(Path(__file__).parents[2] / "i18n" / "de" / "LC_MESSAGES" / "slipway.po"))
    german = set(chain.from_iterable((e.msgstr, *e.msgstr_plural.values()) for e in catalogue))
    return {e.msgid for e in catalogue if e.msgid not in german}


def pairs(p: Palette) -> Iterator[tuple[str, str, str, float]]:
    """Every pair of colours that meet in the window, and the contrast that it needs."""
    for ground in ("window", "surface", "selected"):
        for ink in ("text", "muted", "good", "warn", "bad", "accent"):
            yield ink, ground, "text", TEXT
        for shape in ("control", "accent"):
            yield shape, ground, "shape", SHAPE
    yield "on_accent", "accent", "text", TEXT
    for ground, sign in (("new_line", "good"), ("gone_line", "bad")):
        yield sign, ground, "text", TEXT
        yield "text", ground, "text", TEXT
    for part in ("weights", "kv", "hidden"):
        yield part, "window", "shape", SHAPE


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast_is_enough_everywhere(palette: Palette) -> None:
    weak = [
        f"{ink} on {ground}: {contrast(getattr(palette, ink), getattr(palette, ground)):.2f} < {needed}"
        for ink, ground, _, needed in pairs(palette)
        if contrast(getattr(palette, ink), getattr(palette, ground)) < needed
    ]
    assert weak == []


def test_contrast_is_that_of_the_definition() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21.0)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)
    assert all(re.fullmatch(r"#[0-9A-F]{6}", getattr(p, f.name)) for p in (LIGHT, DARK) for f in fields(p))

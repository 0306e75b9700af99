#!/usr/bin/env python3
"""Pictures of every page, in both languages and both themes, under `docs/screens`: a dry run over a recorded machine.

`tools/screens.py [FOLDER] [--machine NAME] [--language de] [--theme light] [--size 960x680]`
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PIL import Image
from PySide6.QtWidgets import QApplication

from installer.steps.bookmark import Page
from installer.steps.events import Event, Progress, Step
from installer.ui import theme
from installer.ui.app import open_window
from installer.ui.options import Options
from installer.ui.pages.done import DonePage
from installer.ui.pages.overview import OverviewPage
from installer.ui.palette import DARK, LIGHT
from installer.ui.shell import Shell
from installer.ui.widgets.cards import ProblemCard

ROOT = Path(__file__).resolve().parents[1]
HOME = "/tmp/slipway-demo"
FASTEST = 1000.0
PATIENCE_SECONDS = 60.0
PASTED = (
    "ValueError: Free memory on device cuda:0 (30.12/31.84 GiB) on startup is less than desired GPU memory "
    "utilization (0.95, 30.25 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
)


def main(argv: list[str]) -> int:
    given = argparse.ArgumentParser()
    given.add_argument("folder", nargs="?", default=str(ROOT / "docs" / "screens"))
    given.add_argument("--machine", default="rtx-5090-linux")
    given.add_argument("--language", choices=("de", "en"))
    given.add_argument("--theme", choices=("light", "dark"))
    given.add_argument("--size", default="960x680")
    asked = given.parse_args(argv)
    application = QApplication([])
    for language in (asked.language,) if asked.language else ("de", "en"):
        for name in (asked.theme,) if asked.theme else ("light", "dark"):
            theme.use(theme.Theme(LIGHT if name == "light" else DARK))
            shell = open_window(
                Options(home=HOME, machine=asked.machine, dry_run=True, speed=FASTEST, language=language)
            )
            width, height = map(int, asked.size.split("x"))
            shell.resize(width, height)
            shell.show()
            walk(application, shell, Path(asked.folder), f"{language}-{name}")
            shell.close()
            shutil.rmtree(HOME, ignore_errors=True)
    return 0


def walk(application: QApplication, shell: Shell, folder: Path, suffix: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)

    def shot(name: str) -> None:
        for _ in range(3):
            application.processEvents()
        picture = folder / f"{name}-{suffix}.png"
        shell.grab().save(str(picture))
        Image.open(picture).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(picture, optimize=True)

    def until(holds: Callable[[], bool]) -> None:
        began = time.monotonic()
        while not holds():
            application.processEvents()
            time.sleep(0.01)
            if time.monotonic() - began > PATIENCE_SECONDS:
                raise SystemExit(f"waited in vain on {shell.current.page}: {shell.conductor.problem}")

    until(lambda: shell.conductor.flow is not None and not shell.conductor.busy)
    half = halfway(shell)
    for page in (each for each in Page if each is not Page.INSTALLATION):
        until(lambda page=page: shell.conductor.flow.page is page and not shell.conductor.busy)  # type: ignore[misc]
        shot(f"{list(Page).index(page) + 1}-{page.value}")
        if page is Page.DONE:
            try_it(shell, until)
            shot("try-it")
            break
        if page is Page.SUMMARY:
            shell.next.click()
            until(lambda: {Step.IMAGE, Step.WEIGHTS} <= half)
            shot("8-installation")
            continue
        shell.next.click()
    shell.next.click()
    until(lambda: shell.conductor.status is not None and not shell.conductor.busy)
    shot("overview")
    overview = shell.current
    assert isinstance(overview, OverviewPage)
    overview.show_proof()
    application.processEvents()
    overview.reveal(overview.proof)
    shot("overview-proof")
    lookup = shell.look_up()
    lookup.pasted.setPlainText(PASTED)
    lookup.look.click()
    until(lambda: any(card.isVisible() for card in lookup.findChildren(ProblemCard)))
    shot("lookup")


def halfway(shell: Shell) -> set[Step]:
    """Return a set that fills with the steps whose download is half done."""
    steps: set[Step] = set()

    def take(event: Event) -> None:
        if isinstance(event, Progress) and 2 * event.done > event.total:
            steps.add(event.step)

    shell.conductor.event_told.connect(take)
    return steps


def try_it(shell: Shell, until: Callable[[Callable[[], bool]], None]) -> None:
    """Ask about a picture on the last page, and show where the answer stands."""
    page = shell.current
    assert isinstance(page, DonePage)
    there = page.try_it
    with TemporaryDirectory() as folder:
        picture = Path(folder, "square.png")
        drawn = Image.new("RGB", (640, 400), "#3A6EA5")
        drawn.paste("#F4C542", (230, 110, 410, 290))
        drawn.save(picture)
        pictured: list[object] = []
        there.asking.pictured.connect(pictured.append)
        there.asking.look_at(str(picture))
        until(lambda: bool(pictured))
    there.question.setText(shell.conductor.text.gettext("What can you do?"))
    there.ask()
    until(lambda: not there.asking.running)
    page.reveal(there)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

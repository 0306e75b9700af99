"""The token for the hub in the window: asked for where it is needed, kept where the person says so, shown nowhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from installer import doors
from installer.adapters.dryrun_sources import SimulatedHub
from installer.domain.problems import InstallerError, NoTokenStore
from installer.domain.sources import WeightsSource
from installer.steps.bookmark import Page
from installer.ui.pages.token_card import TokenCard
from tests.ui.kit import Window, opened

TOKEN = "hf_neverShowThis0123456789"


@pytest.fixture
def gated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model of the rehearsal is one that wants a token."""
    resolve = SimulatedHub.resolve

    def closed(hub: SimulatedHub, repo: str, revision: str) -> WeightsSource:
        return msgspec.structs.replace(resolve(hub, repo, revision), gated=True)

    monkeypatch.setattr(SimulatedHub, "resolve", closed)


class Store:
    """The system's store for secrets, which may say no."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kept: list[str] = []
        self.refuses = False
        monkeypatch.setattr(doors, "store_token", self.keep)
        monkeypatch.setattr(doors, "forget_token", self.kept.clear)

    def keep(self, token: str) -> None:
        if self.refuses:
            raise InstallerError(NoTokenStore(state="none"))
        self.kept.append(token)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    return Store(monkeypatch)


def card(window: Window) -> TokenCard:
    page: Any = window.shell.current
    found = page.token_card
    assert isinstance(found, TokenCard)
    return found


def typed(window: Window, token: str) -> TokenCard:
    there = card(window)
    there.field.setText(token)
    there.field.editingFinished.emit()
    window.rest()
    return there


def test_nobody_is_asked_for_a_token_that_nothing_needs(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    window.go_to(Page.OPTIONS)
    assert not card(window).isVisible()


@pytest.mark.usefixtures("gated")
def test_a_gated_model_asks_for_a_token_and_goes_on_with_one(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path, language="en")
    window.go_to(Page.VERSION)
    assert not card(window).isVisible()
    window.go_to(Page.OPTIONS)
    window.settle()
    assert card(window).isVisible()
    assert window.problem == "Sign-in needed"
    assert not window.shell.next.isEnabled()
    typed(window, f" {TOKEN}\n")
    assert window.problem == ""
    assert window.shell.conductor.secrets.hf_token == TOKEN
    assert TOKEN not in " ".join(window.words())
    window.go_to(Page.SUMMARY)
    written = [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert written == []


@pytest.mark.usefixtures("gated")
def test_what_cannot_be_a_token_is_said_and_changes_nothing(qtbot: QtBot, tmp_path: Path, store: Store) -> None:
    window = opened(qtbot, tmp_path, language="en")
    window.go_to(Page.OPTIONS)
    card(window).keep.box.setChecked(True)
    typed(window, "zwei Wörter")
    assert window.problem == "Token not valid"
    assert window.shell.conductor.secrets.hf_token is None
    assert store.kept == []


def test_a_hub_that_shows_nothing_without_a_token_is_asked_again_with_one(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path, language="en", fail="resolve:token_needed")
    while window.page is not Page.VERSION:
        window.go_on()
    assert window.problem == "Sign-in needed"
    assert card(window).isVisible()
    typed(window, TOKEN)
    assert window.problem == ""
    assert not card(window).isVisible()
    window.go_to(Page.SUMMARY)


@pytest.mark.usefixtures("gated")
def test_the_store_keeps_the_token_only_if_the_person_says_so(
    qtbot: QtBot, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(qtbot, tmp_path, language="en")
    window.go_to(Page.OPTIONS)
    card(window).keep.box.click()
    assert "The store keeps the token." not in window.words(), "there is none yet"
    there = typed(window, TOKEN)
    window.until(lambda: "The store keeps the token." in window.words())
    assert store.kept == [], "a rehearsal keeps nothing"
    there.keep.box.click()
    window.until(lambda: "The store does not have the token any more." in window.words())
    conductor = window.shell.conductor
    monkeypatch.setattr(conductor, "options", replace(conductor.options, dry_run=False))
    there.keep.box.click()
    window.until(lambda: store.kept == [TOKEN])
    store.refuses = True
    there.keep.box.click()
    window.until(lambda: store.kept == [])
    there.keep.box.click()
    window.until(lambda: window.problem != "")
    assert not there.keep.box.isChecked()

"""The wizard as a person goes through it, over a dry run: from the first page to the proof, and what may go wrong."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from installer.domain import proxy
from installer.domain.facts import Proxy
from installer.domain.problems import EngineDown, InstallerError
from installer.steps import lifecycle
from installer.steps.bookmark import Page
from installer.ui.pages.overview import OverviewPage
from installer.ui.palette import DARK
from tests.ui.kit import LANGUAGES, Window, name_of, opened


@pytest.mark.parametrize("language", LANGUAGES)
def test_from_welcome_to_done_and_the_overview(qtbot: QtBot, tmp_path: Path, language: str) -> None:
    window = opened(qtbot, tmp_path, language=language)
    window.install()
    assert window.page is Page.DONE
    done = window.shell.conductor.flow.installed
    assert all(check.outcome != "failed" for check in done.report.checks)
    window.go_on()
    window.until(lambda: window.shell.conductor.status is not None)
    assert window.shell.conductor.status.state == "serving"
    assert window.shell.current is window.shell._page(None)
    shown = window.shell.conductor.text.check_name(done.report.checks[-1])
    assert shown not in window.words()
    page = window.shell.current
    assert isinstance(page, OverviewPage)
    page.show_proof()
    assert shown in window.words()


def test_the_whole_way_by_keyboard_alone(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    for _ in range(len(Page)):
        if window.page is Page.DONE:
            break
        window.until(window.shell.next.isEnabled)
        qtbot.keyClick(window.shell, Qt.Key.Key_Return)
        window.rest()
    assert window.page is Page.DONE


def test_every_control_can_be_reached_by_tab(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    window.go_to(Page.OPTIONS)
    wanted = {c for c in window.controls() if c.isEnabled() and c.focusPolicy() & Qt.FocusPolicy.TabFocus}
    window.shell.activateWindow()
    window.shell.next.setFocus()
    reached = set()
    for _ in range(3 * len(wanted)):
        reached.add(QApplication.focusWidget())
        qtbot.keyClick(QApplication.focusWidget() or window.shell, Qt.Key.Key_Tab)
    assert wanted <= reached, [name_of(each) for each in wanted - reached]


def test_an_installation_opens_the_overview_the_next_time(qtbot: QtBot, tmp_path: Path) -> None:
    opened(qtbot, tmp_path).install()
    again = opened(qtbot, tmp_path)
    again.until(lambda: again.shell.conductor.status is not None)
    assert again.shell.current is again.shell._page(None)


def test_what_was_chosen_is_there_after_a_crash(qtbot: QtBot, tmp_path: Path) -> None:
    first = opened(qtbot, tmp_path)
    first.go_to(Page.OPTIONS)
    first.shell.conductor.choose(port=8123, docker_image_pin_digest="")
    first.rest()
    again = opened(qtbot, tmp_path)
    again.until(lambda: again.page is Page.OPTIONS)
    again.rest()
    again.go_to(Page.SUMMARY)
    assert (again.choices.port, again.choices.docker_image_pin_digest) == (8123, "")
    assert not again.shell.conductor.flow.plan.pinned


def test_the_language_changes_at_once_and_is_remembered(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path, language=None)
    window.shell.conductor.set_language("en")
    assert "Welcome" in window.words()
    window.shell.conductor.set_language("de")
    assert "Willkommen" in window.words()
    assert "Welcome" not in window.words()
    window.go_to(Page.CARD)
    again = opened(qtbot, tmp_path, language=None)
    assert again.shell.conductor.text.language == "de"


ENDS = (
    "image:disk_full",
    "weights:wrong_content",
    "start:never_healthy",
    "smoke:not_answering",
    "probe:driver_too_old",
)


@pytest.mark.parametrize("kind", ENDS)
def test_a_failure_is_a_card_and_trying_again_goes_on(qtbot: QtBot, tmp_path: Path, kind: str) -> None:
    window = opened(qtbot, tmp_path, fail=kind)
    window.install()
    assert window.page is Page.INSTALLATION
    assert window.problem
    window.go_on()
    window.until(lambda: window.page is Page.DONE)


def test_cancelling_ends_at_once_and_the_next_try_goes_on(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(qtbot, tmp_path, speed=30.0)
    window.go_to(Page.SUMMARY)
    window.shell.next.click()
    window.until(lambda: bool(window.shell.conductor.busy))
    monkeypatch.setattr(window.shell, "_really_end", lambda: True)
    window.shell._ask_to_leave()
    window.rest()
    assert (window.page, window.problem) == (Page.INSTALLATION, "")
    assert window.shell.next.isEnabled()


def test_closing_while_it_works_asks_first(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = opened(qtbot, tmp_path, speed=30.0)
    window.go_to(Page.SUMMARY)
    window.shell.next.click()
    window.until(lambda: bool(window.shell.conductor.busy))
    monkeypatch.setattr(window.shell, "_really_end", lambda: False)
    assert not window.shell.close()
    monkeypatch.setattr(window.shell, "_really_end", lambda: True)
    assert window.shell.close()
    assert window.shell.conductor.bridge.wait(0)


@pytest.mark.parametrize(
    ("machine", "page"),
    [("engine-down", Page.DOCKER), ("podman-socket", Page.DOCKER), ("engine-without-nvidia-toolkit", Page.DOCKER)],
)
def test_what_is_missing_is_said_with_a_remedy(qtbot: QtBot, tmp_path: Path, machine: str, page: Page) -> None:
    window = opened(qtbot, tmp_path, machine=machine)
    while window.page is not page:
        window.go_on()
    said = " ".join(window.words())
    assert "Erforderlich" in said
    assert "Erneut prüfen" in said


def test_without_an_engine_one_cannot_go_on(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path, machine="engine-down")
    window.go_to(Page.DOCKER)
    assert not window.shell.next.isEnabled()


def test_a_profile_that_does_not_fit_says_why_and_cannot_be_chosen(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path, machine="rtx-4060-8gb")
    window.go_to(Page.MODEL)
    page: Any = window.shell.current
    page._others.click()
    window.settle()
    refused = [card for card in page._cards.values() if not card.radio.isEnabled()]
    assert refused
    assert all(card.isVisible() and card._reason.text() for card in refused)


def test_a_longer_context_is_judged_while_it_is_chosen(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    window.go_to(Page.MODEL)
    page: Any = window.shell.current
    card = page._cards[window.shell.conductor.flow.profile]
    card._more.click()
    card._slider.setValue(card._slider.maximum())
    window.until(lambda: window.choices.context == card._slider.maximum() * 1024)
    assert not window.shell.next.isEnabled()
    assert window.problem
    card._slider.setValue(16)
    window.until(lambda: window.choices.context == 16 * 1024)
    assert window.shell.next.isEnabled()


def test_stop_start_and_uninstall_from_the_overview(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    window.install()
    window.go_on()
    window.until(lambda: window.shell.conductor.status is not None)
    page: Any = window.shell._page(None)
    page._stop.click()
    window.until(lambda: not window.shell.conductor.busy and window.shell.conductor.status.state == "stopped")
    page._start.click()
    window.until(lambda: not window.shell.conductor.busy and window.shell.conductor.status.state == "serving")
    page._remove.click()
    window.until(page._really.isEnabled)
    page._really.click()
    window.until(lambda: window.shell.conductor.status is None and not window.shell.conductor.busy)
    assert window.page is Page.WELCOME
    assert not (tmp_path / "chat").exists()


def test_light_and_dark_differ_and_both_open(qtbot: QtBot, tmp_path: Path) -> None:
    light = mean_lightness(opened(qtbot, tmp_path / "a"))
    dark = mean_lightness(opened(qtbot, tmp_path / "b", palette=DARK))
    assert light > 200 > 90 > dark


def mean_lightness(window: Window) -> int:
    """Of all pixels, 0 to 255."""
    whole = window.shell.grab().toImage()
    one = whole.scaled(1, 1, Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation)
    return one.pixelColor(0, 0).lightness()


def test_a_second_window_says_that_the_first_one_installs(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    window.go_to(Page.SUMMARY)
    with window.shell.conductor.home.held():
        window.go_on()
    assert (window.page, bool(window.problem)) == (Page.INSTALLATION, True)


def test_a_fault_of_ours_is_shown_as_one(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window: Window = opened(qtbot, tmp_path)

    def broken(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(window.shell.conductor, "_looked", broken)
    window.shell.conductor.look_again()
    window.until(lambda: bool(window.problem))
    assert window.shell.conductor.problem.kind == "bug"


def test_return_presses_what_has_the_focus_and_never_installs_by_accident(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    window.go_to(Page.SUMMARY)
    window.shell._back.setFocus()
    qtbot.keyClick(window.shell, Qt.Key.Key_Return)
    window.rest()
    assert window.page is Page.OPTIONS


def test_a_port_that_cannot_be_keeps_a_person_on_the_page(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    window.go_to(Page.OPTIONS)
    page: Any = window.shell.current
    window.shell.activateWindow()
    page._port.setFocus()
    page._port.setText("80")
    qtbot.keyClick(window.shell, Qt.Key.Key_Return)
    window.settle()
    assert (window.page, bool(window.problem), window.choices.port) == (Page.OPTIONS, True, None)


def test_a_port_that_was_only_shown_stays_free_to_change(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    window.go_to(Page.OPTIONS)
    page: Any = window.shell.current
    page._port.editingFinished.emit()
    assert window.choices.port is None
    page._port.setText("8123")
    page._port.editingFinished.emit()
    assert window.choices.port == 8123


def test_an_installation_whose_engine_is_down_says_so_and_opens_when_it_is_up(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(qtbot, tmp_path).install()

    def down(*_: object) -> None:
        raise InstallerError(EngineDown(endpoint="unix:///var/run/docker.sock"))

    with monkeypatch.context() as broken:
        broken.setattr(lifecycle, "status", down)
        window = opened(qtbot, tmp_path)
        assert (window.page, bool(window.problem)) == (Page.WELCOME, True)
    window.shell.current.mend()
    window.until(lambda: window.shell.conductor.status is not None)
    assert window.shell.current is window.shell._page(None)


def test_another_model_is_judged_as_if_ours_were_stopped(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    before = {each.profile: each.verdict for each in window.shell.conductor.flow.offers}
    window.install()
    window.go_on()
    window.until(lambda: window.shell.conductor.status is not None)
    page: Any = window.shell._page(None)
    page._change.click()
    window.rest()
    assert window.page is Page.MODEL
    assert {each.profile: each.verdict for each in window.shell.conductor.flow.offers} == before
    window.shell.conductor.look_again()
    window.rest()
    assert {each.profile: each.verdict for each in window.shell.conductor.flow.offers} == before


def test_what_is_ticked_last_is_kept(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = opened(qtbot, tmp_path)
    window.install()
    window.go_on()
    window.until(lambda: window.shell.conductor.status is not None)
    page: Any = window.shell._page(None)
    page._remove.click()
    window.rest()
    page._keep_weights.box.setChecked(True)  # as if it were ticked while something else was being done
    removed = []
    monkeypatch.setattr(lifecycle, "uninstall", lambda job, what: removed.append(what))
    page._really.click()
    window.rest()
    assert [what.keeps_weights for what in removed] == [True]


def test_an_answer_that_came_too_late_answers_no_later_question(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    window.shell.conductor.cancel()
    window.shell.conductor.look_again()
    assert window.shell.conductor._answer.empty()
    window.rest()


def test_a_token_does_not_make_a_rehearsal_forget_its_world(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path)
    world = window.shell.conductor._ports
    window.shell.conductor.use_token("")
    window.shell.conductor.use_token("hf_new")
    assert window.shell.conductor._ports is world
    assert window.shell.conductor.secrets.hf_token == "hf_new"


def test_the_summary_says_how_long_the_download_will_take(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path, language="en")
    window.go_to(Page.SUMMARY)
    window.until(lambda: any("per second" in words for words in window.words()))


def test_a_port_that_is_taken_is_said_before_anything_is_downloaded(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(qtbot, tmp_path, language="en")
    window.go_to(Page.OPTIONS)
    page: Any = window.shell.current
    owners = {8123: "Windows (8090–8189)"}
    monkeypatch.setattr(window.shell.conductor.ports.machine, "port_owner", owners.get)
    page._port.setText("8123")
    page._port.editingFinished.emit()
    window.until(lambda: window.problem == "Port taken")
    assert any("Windows (8090–8189)" in words for words in window.words())
    assert not window.shell.next.isEnabled()
    owners.clear()
    page.mend()
    window.until(lambda: window.problem == "")
    window.go_to(Page.SUMMARY)
    assert window.choices.port == 8123


def test_the_options_show_the_proxies_in_force(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path, language="en")
    window.go_to(Page.OPTIONS)
    assert "Proxies in force" not in window.words()
    flow = window.shell.conductor.flow
    assert flow is not None
    assert flow.facts is not None
    host = msgspec.structs.replace(flow.facts.host, proxy=Proxy(https="http://proxy.example:3128"))
    facts = msgspec.structs.replace(flow.facts, host=host)
    window.shell.conductor.flow = replace(flow, facts=facts)
    window.shell.refresh()
    words = " ".join(window.words())
    assert "Proxies in force" in words
    assert "http://proxy.example:3128\nTo change it: the variables HTTPS_PROXY and NO_PROXY." in words
    assert "To change it: /etc/docker/daemon.json" not in words
    said = window.shell.conductor.text.problem(proxy.advice(facts)[0])
    assert {said.title, said.sentence, said.remedy} <= set(window.words())


def test_a_failed_installation_can_be_saved_as_one_archive(qtbot: QtBot, tmp_path: Path) -> None:
    window = opened(qtbot, tmp_path / "home", language="en", fail="start:container_exited")
    window.install()
    assert "Save everything about this failure …" in window.words()
    keeper = window.shell.conductor.keeper
    with qtbot.waitSignal(keeper.bundle_saved):
        keeper.save_bundle(str(tmp_path / "bundle.zip"))
    assert any("bundle.zip" in words for words in window.words())
    with zipfile.ZipFile(tmp_path / "bundle.zip") as archive:
        assert "chat/failed-start.log" in archive.namelist()
    window.go_on()
    assert "Save everything about this failure …" not in window.words()

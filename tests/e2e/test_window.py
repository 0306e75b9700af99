"""From a double-click to *Done*, as a person does it: a real window, a real engine, by keyboard and mouse alone."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from configparser import ConfigParser, SectionProxy
from contextlib import suppress
from pathlib import Path

import pytest
import requests
import yaml

from installer.resources import folder as resource_folder
from installer.steps.home import Home
from installer.text import Language, Text
from tests.builders import ROOT
from tests.e2e.world import World
from tests.rig.desktop import Desktop, missing
from tests.rig.process import free_port, wait_for
from tests.rig.screen_reader import Element, ScreenReader

DESKTOP_FILE = resource_folder("assets") / "slipway.desktop"
PATIENCE_S = 180


class Person:
    """Somebody who sees the screen and has keyboard and mouse, and speaks the language that the window speaks."""

    def __init__(self, desktop: Desktop, reader: ScreenReader, language: Language) -> None:
        self.desktop = desktop
        self.reader = reader
        self.text = Text(language)

    def waits_for_page(self, name: str) -> None:
        """Wait until the window's title names a page."""
        title = f"{self.text.gettext(name)} – Slipway"
        wait_for(lambda: self.desktop.title == title, PATIENCE_S, f"{title} instead of {self.desktop.title}", every=0.2)

    def sees(self, role: str, name: str, holds: Callable[[Element], bool] = lambda element: element.enabled) -> Element:
        return self.reader.until(role, name, holds, PATIENCE_S)

    def goes_on(self, button: str, to: str) -> None:
        """Press Return once the button has the focus, which it gets as soon as one may go on."""
        self.sees("push button", self.text.gettext(button), lambda element: element.enabled and element.focused)
        self.desktop.press("Return")
        self.waits_for_page(to)

    def clicks(self, role: str, name: str) -> None:
        self.desktop.click(*self.reader.middle_of(self.sees(role, name)))

    def tabs_to(self, role: str, name: str) -> None:
        """Press Tab until an element has the focus, each time once the last one had its effect."""
        met: list[Element] = []
        here = self.focus_elsewhere(met)
        while (here.role, here.name) != (role, name):
            assert here not in met, f"Tab does not lead to {name}, but round {[element.name for element in met]}"
            met.append(here)
            self.desktop.press("Tab")
            here = self.focus_elsewhere(met)

    def focus_elsewhere(self, met: list[Element]) -> Element:
        """Wait until something else has the focus than was met last; return it."""
        found: list[Element] = []

        def elsewhere() -> bool:
            found[:] = [element for element in self.reader.shown() if element.focused]
            return len(found) == 1 and found != met[-1:]

        wait_for(elsewhere, PATIENCE_S, "another focus", every=0.1)
        return found[0]


class Launched:
    """Slipway as a package installs it, a program on the PATH, started by a file manager through its desktop file."""

    def __init__(self, folder: Path) -> None:
        self._pid, self._code, self._errors = folder / "pid", folder / "code", folder / "errors"
        self.programs = folder / "bin"
        self.programs.mkdir()
        program = self.programs / "slipway"
        here = shlex.quote(str(folder))
        program.write_text(
            "#!/bin/sh\n"
            f"export PYTHONPATH={shlex.quote(str(ROOT))}\n"
            f'{shlex.quote(sys.executable)} -m installer "$@" 2> {here}/errors &\n'
            f"echo $! > {here}/pid\n"
            "wait $!\n"
            f"echo $? > {here}/ended && mv {here}/ended {here}/code\n"
        )
        program.chmod(0o755)

    def double_click(self, environment: dict[str, str]) -> None:
        """Let GIO start the desktop file, as GNOME's, Cinnamon's and XFCE's file managers do.

        A desktop does not tell Qt to draw nowhere, as the tests of the window beside this one do.
        """
        search = f"{self.programs}{os.pathsep}{environment['PATH']}"
        its_own = {name: value for name, value in environment.items() if name != "QT_QPA_PLATFORM"} | {"PATH": search}
        subprocess.run(["gio", "launch", str(DESKTOP_FILE)], env=its_own, check=True, timeout=60)

    @property
    def errors(self) -> str:
        return self._errors.read_text("utf-8") if self._errors.exists() else ""

    def ended(self) -> int:
        """Wait for the end; return the exit code."""
        wait_for(self._code.exists, PATIENCE_S, "the end of Slipway")
        return int(self._code.read_text())

    def end(self) -> None:
        """End it if it still runs."""
        if self._pid.exists() and not self._code.exists():
            with suppress(ProcessLookupError):
                os.kill(int(self._pid.read_text()), signal.SIGKILL)


@pytest.fixture
def desktop_programs() -> None:
    reason = missing()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(f"the window's tests may not skip under CI=true: {reason}", pytrace=False)
    if reason:
        pytest.skip(reason)


@pytest.fixture
def desktop(needs_root: None, desktop_programs: None) -> Iterator[Desktop]:
    with Desktop() as started:
        yield started


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[Launched]:
    program = Launched(tmp_path)
    yield program
    program.end()


@pytest.fixture
def person(desktop: Desktop) -> Iterator[Person]:
    with ScreenReader(desktop.bus) as reader:
        yield Person(desktop, reader, "en")


def test_from_a_double_click_to_done(world: World, person: Person, launched: Launched, tmp_path: Path) -> None:
    world.registry, world.extra = None, {"LANG": "C.UTF-8"}
    port = free_port()
    launched.double_click(world.environment | person.desktop.environment)
    try:
        installs(person, port)
        assert is_served(world, port)
        person.goes_on("Finish", to="Overview")
        person.desktop.press("alt+F4")
        assert launched.ended() == 0
    except BaseException:
        person.desktop.picture(tmp_path / "screen.png")
        print(f"The screen: {tmp_path / 'screen.png'}\nSlipway said: {launched.errors}")
        raise
    # Qt says of a desktop without a portal that it has none.
    assert [line for line in launched.errors.splitlines() if line and "host portal" not in line] == []
    assert is_served(world, port), "the server outlives the window"


def installs(person: Person, port: int) -> None:
    """Go through every page, by keyboard where it leads on and by mouse where one would point at something."""
    person.waits_for_page("Welcome")
    assert person.desktop.windows_of(entry()["StartupWMClass"]), "the panel does not know whose window it is"
    person.clicks("radio button", "Deutsch")
    person.text = Text("de")
    person.waits_for_page("Welcome")
    person.clicks("push button", person.text.gettext("Next"))
    person.waits_for_page("Graphics card")
    person.sees("radio button", "NVIDIA GeForce RTX 5090")
    person.goes_on("Next", to="Docker")
    person.goes_on("Next", to="Model")
    person.sees("radio button", "Qwen3.6 27B  ·  NVFP4", lambda element: element.checked)
    person.goes_on("Next", to="Version")
    person.sees("check box", person.text.gettext("Pin to current version"), lambda element: element.checked)
    person.goes_on("Next", to="Options")
    person.tabs_to("text", person.text.choice_name("port"))
    person.desktop.press("ctrl+a")
    person.desktop.type(str(port))
    person.clicks("push button", person.text.gettext("Next"))
    person.waits_for_page("Summary")
    person.goes_on("Install", to="Done")


def is_served(world: World, port: int) -> bool:
    """Say whether the container runs that the compose file describes, with the proof that was kept."""
    (container,) = world.containers()
    stack = Home(world.home).stack("chat")
    proof = stack.proof()
    file = yaml.safe_load(stack.path("docker-compose.vllm.yml").read_text("utf-8"))
    assert container["State"]["Health"]["Status"] == "healthy"
    assert file["services"]["server"]["ports"] == [f"127.0.0.1:{port}:8000"]
    assert file["services"]["server"]["image"] == container["Config"]["Image"]
    assert proof is not None
    assert "failed" not in {check.outcome for check in proof.checks}
    return requests.get(f"http://127.0.0.1:{port}/health", timeout=30).ok


# --- the desktop file ------------------------------------------------------------------------------------------------


def entry() -> SectionProxy:
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(DESKTOP_FILE, "utf-8")
    return parser["Desktop Entry"]


def test_the_desktop_file_starts_what_is_installed_and_speaks_german() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert entry()["Exec"] in project["scripts"]
    assert (DESKTOP_FILE.parent / "icons" / f"{entry()['Icon']}.svg").exists()
    said = {name for name in entry() if name in ("GenericName", "Comment", "Keywords")}
    assert {f"{name}[de]" for name in said} <= set(entry())
    assert all(entry()[name] != entry()[f"{name}[de]"] for name in said)


def test_the_desktop_file_is_what_the_specification_asks_for(desktop_programs: None) -> None:
    checked = subprocess.run(["desktop-file-validate", str(DESKTOP_FILE)], capture_output=True, text=True, timeout=60)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")

"""A desktop of its own: X server, window manager and message bus, with hands on its keyboard and its mouse."""

from __future__ import annotations

import atexit
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Self

from PIL import Image

from .process import RigError, end, require, short_temp_dir, wait_for

_PROGRAMS = ("Xvfb", "xdotool", "jwm", "dbus-daemon", "gio", "desktop-file-validate")
_SIZE = "1280x900x24"
_JWM = """\
<?xml version="1.0"?>
<JWM>
  <Key mask="A" key="F4">close</Key>
</JWM>
"""


class Desktop:
    """What a person sits at. `environment` makes a program open its windows here."""

    def __init__(self) -> None:
        self._root = short_temp_dir("desk")
        self._processes: list[subprocess.Popen[bytes]] = []
        self._display = ""
        self.bus = ""

    @property
    def environment(self) -> dict[str, str]:
        """The variables of this desktop's session, to be added to others."""
        return {
            "DISPLAY": self._display,
            "DBUS_SESSION_BUS_ADDRESS": self.bus,
            "XDG_RUNTIME_DIR": str(self._root),
            "XDG_SESSION_TYPE": "x11",
            "XDG_CURRENT_DESKTOP": "JWM",
        }

    def start(self) -> Self:
        """Start all three; return once a window can be opened."""
        atexit.register(self.stop)
        self._display = f":{self._tell_display()}"
        bus = self._run("dbus-daemon", "--session", "--nofork", "--print-address=1", stdout=subprocess.PIPE)
        self.bus = _first_line(bus, "dbus-daemon")
        config = self._root / "jwmrc"
        config.write_text(_JWM, "utf-8")
        manager = self._run("jwm", "-f", str(config))
        wait_for(self._has_window_manager, 30, "jwm", lambda: manager.poll() is None)
        return self

    def stop(self) -> None:
        """End what was started, the last first."""
        atexit.unregister(self.stop)
        while self._processes:
            process = self._processes.pop()
            end(process)
            if process.stdout is not None:
                process.stdout.close()
        shutil.rmtree(self._root, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # What a person does

    def press(self, *keys: str) -> None:
        """Press keys, such as `Return` or `alt+F4`, in the window that has the focus."""
        self._do("key", *keys)

    def type(self, words: str) -> None:
        """Type words."""
        self._do("type", words)

    def click(self, x: int, y: int) -> None:
        """Move the mouse there and click."""
        self._do("mousemove", "--sync", str(x), str(y), "click", "1")

    # What a person sees

    @property
    def title(self) -> str:
        """The title of the window that is in use; "" where there is none."""
        return self._asked("getactivewindow", "getwindowname")

    def windows_of(self, program: str) -> list[str]:
        """The windows that are shown and belong to a program, as the panel finds them."""
        return self._asked("search", "--onlyvisible", "--class", f"^{program}$").split()

    def picture(self, file: Path) -> None:
        """Keep what is on the screen as a PNG."""
        dump = (self._root / "Xvfb_screen0").read_bytes()
        # Xvfb keeps its screen as an X window dump (X11/XWDFile.h): a head of 32-bit numbers, a colour table, rows.
        head = struct.unpack(">25I", dump[:100])
        size, width, height, row_bytes, colours = head[0], head[4], head[5], head[12], head[19]
        rows = dump[size + 12 * colours :][: row_bytes * height]
        Image.frombytes("RGB", (width, height), rows, "raw", "BGRX", row_bytes).save(file)

    # How

    def _tell_display(self) -> str:
        """Let the X server take a number that is free, and tell it."""
        reading, writing = os.pipe()
        with os.fdopen(reading) as told:
            screen = ("-screen", "0", _SIZE, "-nolisten", "tcp", "-fbdir", str(self._root))
            self._run("Xvfb", "-displayfd", str(writing), *screen, pass_fds=(writing,))
            os.close(writing)
            number = told.readline().strip()
        if not number:
            raise RigError("Xvfb: the process ended")
        return number

    def _run(
        self, program: str, *arguments: str, stdout: int = subprocess.DEVNULL, pass_fds: tuple[int, ...] = ()
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [require(program, program), *arguments], env=self._variables, stdin=subprocess.DEVNULL, stdout=stdout,
            stderr=subprocess.DEVNULL, pass_fds=pass_fds, start_new_session=True,
        )  # fmt: skip
        self._processes.append(process)
        return process

    def _has_window_manager(self) -> bool:
        return self._asked("get_num_desktops") != ""

    def _do(self, *arguments: str) -> None:
        done = self._xdotool(*arguments)
        if done.returncode != 0:
            raise RigError(f"xdotool {' '.join(arguments)}: {done.stderr.strip()}")

    def _asked(self, *arguments: str) -> str:
        done = self._xdotool(*arguments)
        return done.stdout.strip() if done.returncode == 0 else ""

    def _xdotool(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["xdotool", *arguments], env=self._variables, capture_output=True, encoding="utf-8", timeout=60, check=False
        )

    @property
    def _variables(self) -> dict[str, str]:
        foreign = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "AT_SPI_BUS_ADDRESS")
        return {name: value for name, value in os.environ.items() if name not in foreign} | self.environment


def missing() -> str:
    """Why this machine cannot have such a desktop; empty when it can."""
    absent = [program for program in _PROGRAMS if shutil.which(program) is None]
    return f"not installed: {', '.join(absent)} (tests/rig/install-debian.sh installs them)" if absent else ""


def _first_line(process: subprocess.Popen[bytes], what: str) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().decode().strip()
    if not line:
        raise RigError(f"{what}: the process ended")
    return line

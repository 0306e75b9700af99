"""The bridge brings everything into the window's thread, in order, and nothing after the end."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

from pytestqt.qtbot import QtBot

from installer.ui.bridge import Bridge

EVENTS = 5000

CLOSED_IN_THE_MIDDLE = f"""
import threading
from typing import Any
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QLabel
from installer.ui.bridge import Bridge

app = QApplication([])
window, bridge, seen = QLabel(), Bridge(), []
window.show()

def work():
    for number in range({EVENTS}):
        bridge.tell(lambda number=number: (seen.append(number), window.setText(str(number))))

bridge.run(work, lambda _: app.quit(), lambda error: app.exit(3))
if %s:
    QTimer.singleShot(1, lambda: (bridge.close(), window.close(), app.quit()))
QTimer.singleShot(30000, lambda: app.exit(4))
code = app.exec()
assert seen == list(range(len(seen))), "out of order"
print(len(seen))
raise SystemExit(code)
"""


def ran(closes_early: bool) -> subprocess.CompletedProcess[str]:
    code = CLOSED_IN_THE_MIDDLE % closes_early
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_thousands_of_events_arrive_in_order_and_the_process_lives() -> None:
    ended = ran(closes_early=False)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, str(EVENTS), "")


def test_closing_in_the_middle_ends_the_process_in_good_order() -> None:
    ended = ran(closes_early=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_results_and_failures_come_back_in_the_windows_thread(qtbot: QtBot) -> None:
    bridge = Bridge()
    told: list[Any] = []
    bridge.run(lambda: 1, lambda result: told.append((result, threading.current_thread())), told.append)

    def fails() -> None:
        raise KeyError("x")

    bridge.run(fails, told.append, lambda error: told.append((type(error), threading.current_thread())))
    qtbot.waitUntil(lambda: len(told) == 2, timeout=20_000)
    assert {what for what, _ in told} == {1, KeyError}
    assert {thread for _, thread in told} == {threading.main_thread()}


def test_nothing_comes_back_after_the_end(qtbot: QtBot) -> None:
    bridge, go = Bridge(), threading.Event()
    told: list[Any] = []
    bridge.run(lambda: go.wait(20), told.append, told.append)
    bridge.close()
    go.set()
    assert bridge.wait(20)
    qtbot.wait(20)
    assert told == []

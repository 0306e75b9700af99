"""The window beside a bare one of the same toolkit: start to the first page, and how long it is ever deaf.

Prints ratios measured in the same run. The dry run goes from the first page to the proof.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

ROUNDS = 7
RATIO_TARGET, DEAF_TARGET_MS = 1.6, 50.0
HEARTBEAT_MS = 1

BARE = """
from PySide6.QtWidgets import QApplication, QLabel
app = QApplication([])
label = QLabel("x")
label.show()
app.processEvents()
print("ready", flush=True)
"""

OURS = """
import sys, tempfile
from PySide6.QtWidgets import QApplication
from installer.ui import theme
from installer.ui.app import open_window
from installer.ui.options import Options
app = QApplication([])
theme.use(theme.Theme())
shell = open_window(Options(home=tempfile.mkdtemp(), machine="rtx-5090-linux", dry_run=True, speed=1000.0))
shell.show()
while not shell.next.isEnabled():
    app.processEvents()
print("ready", flush=True)
"""


def main() -> int:
    bare, ours = [], []
    started(OURS)  # the first run compiles, as an installation does once
    for _ in range(ROUNDS):
        bare.append(started(BARE))
        ours.append(started(OURS))
    ratio = statistics.median(o / b for o, b in zip(ours, bare, strict=True))
    print(f"start to the first page: {statistics.median(ours):.2f} s, a bare window {statistics.median(bare):.2f} s")
    print(f"gui: start ratio {ratio:.2f}, target {RATIO_TARGET}: {'met' if ratio <= RATIO_TARGET else 'MISSED'}")
    deaf = deafest_ms()
    met = "met" if deaf <= DEAF_TARGET_MS else "MISSED"
    print(f"gui: longest block {deaf:.0f} ms, target {DEAF_TARGET_MS:.0f}: {met}")
    print(f"gui: memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    return 0


def started(code: str) -> float:
    """Start a process with a window and return the seconds until it says that it is ready."""
    began = time.perf_counter()
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=compiled) as child:
        assert child.stdout is not None
        child.stdout.readline()
        taken = time.perf_counter() - began
        child.kill()
    return taken


def deafest_ms() -> float:
    """Go through a whole dry-run installation, and return the longest time between two heartbeats of the event loop."""
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    from installer.steps.bookmark import Page
    from installer.ui import theme
    from installer.ui.app import open_window
    from installer.ui.options import Options

    application = QApplication([])
    theme.use(theme.Theme())
    with tempfile.TemporaryDirectory() as home:
        shell = open_window(Options(home=home, machine="rtx-5090-linux", dry_run=True, speed=200.0))
        shell.show()
        longest, last = 0.0, time.perf_counter()

        def beat() -> None:
            nonlocal longest, last
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
            flow = shell.conductor.flow
            if flow is not None and flow.page is Page.DONE:
                application.quit()
            elif shell.next.isEnabled() and shell.next.isVisible():
                shell.next.click()

        timer = QTimer(interval=HEARTBEAT_MS)
        timer.timeout.connect(beat)
        timer.start()
        application.exec()
        timer.stop()
        shell.close()
    return 1000 * longest


if __name__ == "__main__":
    sys.exit(main())

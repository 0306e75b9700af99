"""Keeping the computer awake while something long goes on: a download of an hour survives no standby."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator

END_SECONDS = 5.0

ES_CONTINUOUS, ES_SYSTEM_REQUIRED = 0x80000000, 0x00000001
"""winbase.h, for SetThreadExecutionState: until it is taken back, the system may not sleep for want of input."""


class SystemAwake:
    """Asks the system not to sleep: logind on Linux, the power manager on Windows."""

    @contextlib.contextmanager
    def held(self) -> Iterator[bool]:
        """Keep the system awake inside; yield whether it can be asked at all."""
        if sys.platform == "win32":
            with _windows() as asked:
                yield asked
            return
        command = shutil.which("systemd-inhibit")
        if command is None:
            yield False
            return
        with _inhibited(command) as asked:
            yield asked


@contextlib.contextmanager
def _inhibited(command: str) -> Iterator[bool]:
    """Hold an inhibitor lock as long as a child reads our end of a pipe: it ends with us, however we end."""
    what = [command, "--what=sleep:idle", "--mode=block", "--who=Slipway", "--why=Installing", "cat"]
    try:
        child = subprocess.Popen(what, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        assert child.stdin is not None
        with contextlib.suppress(OSError):
            child.stdin.close()
        try:
            child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


@contextlib.contextmanager
def _windows() -> Iterator[bool]:
    import ctypes

    state = ctypes.WinDLL("kernel32").SetThreadExecutionState  # type: ignore[attr-defined, unused-ignore]
    state(ES_CONTINUOUS | ES_SYSTEM_REQUIRED)
    try:
        yield True
    finally:
        state(ES_CONTINUOUS)

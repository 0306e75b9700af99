"""Keeping the computer awake while something long goes on: a download of an hour survives no standby."""

from __future__ import annotations

import contextlib
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

ANSWER_SECONDS = 3.0
END_SECONDS = 5.0

ES_CONTINUOUS, ES_SYSTEM_REQUIRED = 0x80000000, 0x00000001
"""winbase.h, for SetThreadExecutionState: until it is taken back, the system may not sleep for want of input."""

_HOLD = ("sh", "-c", "echo held; exec cat >/dev/null")
"""What runs under the lock: it says that the lock is there, and ends with its input, also when we are killed."""


class SystemAwake:
    """Asks the system not to sleep: logind on Linux, the power manager on Windows; implements `Awake`."""

    def held(self) -> AbstractContextManager[bool]:
        """Keep the system awake inside; yield whether it agreed."""
        if sys.platform == "win32":
            import ctypes

            return by_execution_state(ctypes.windll.kernel32.SetThreadExecutionState)
        elif sys.platform == "linux":  # noqa: RET505 - type checkers follow the platform only through a chain
            return by_logind()
        else:
            return contextlib.nullcontext(False)


@contextlib.contextmanager
def by_execution_state(set_state: Callable[[int], int]) -> Iterator[bool]:
    """Ask Windows; the state belongs to this thread and ends with it. 0 means that Windows refused."""
    agreed = set_state(ES_CONTINUOUS | ES_SYSTEM_REQUIRED) != 0
    try:
        yield agreed
    finally:
        if agreed:
            set_state(ES_CONTINUOUS)


@contextlib.contextmanager
def by_logind() -> Iterator[bool]:
    """Ask logind through systemd-inhibit, which fails where there is none or where this session may not."""
    child = _inhibitor()
    if child is None:
        yield False
        return
    try:
        yield _says_held(child)
    finally:
        _end(child)


def _inhibitor() -> subprocess.Popen[bytes] | None:
    program = shutil.which("systemd-inhibit")
    if program is None:
        return None
    command = [program, "--what=sleep:idle", "--mode=block", "--who=Slipway", "--why=Installing", *_HOLD]
    pipe = subprocess.PIPE
    try:
        # In a session of its own: Ctrl-C is for us, who still have to take down what was started.
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True)
    except OSError:
        return None


def _says_held(child: subprocess.Popen[bytes]) -> bool:
    """Wait until the lock is there or refused. A bus that does not answer is not waited for."""
    assert child.stdout is not None
    ready, _, _ = select.select([child.stdout], [], [], ANSWER_SECONDS)
    return bool(ready) and bool(child.stdout.readline())


def _end(child: subprocess.Popen[bytes]) -> None:
    """Let the lock go: its holder ends with its input, and is ended where it does not."""
    with child:
        assert child.stdin is not None
        with contextlib.suppress(OSError):
            child.stdin.close()
        try:
            child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()

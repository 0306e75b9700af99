"""Child processes: an argument list in, bytes out, under a time limit, and ended as a whole family."""

from __future__ import annotations

import contextlib
import locale
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from installer.domain import decoding
from installer.steps.cancel import Cancel

_GRACE_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A child that ended by itself."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def output(self) -> str:
        """Return what it wrote to standard output. Programs write in whatever encoding their system has."""
        return text_of(self.stdout)

    @property
    def errors(self) -> str:
        """Return what it wrote to standard error."""
        return text_of(self.stderr)


def text_of(data: bytes) -> str:
    """Return what a program wrote as text: UTF-8, UTF-16, or the system's own code page (wsl.exe, nvidia-smi)."""
    return decoding.plain(data, locale.getencoding())


def run(
    command: Sequence[str],
    *,
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    cancel: Cancel | None = None,
) -> Finished:
    """Run a program to its end.

    Raises OSError if it cannot be started, TimeoutError after `timeout_s` seconds, Cancelled if the person stops.
    """
    child = subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=None if environment is None else dict(environment),
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        start_new_session=True,
    )
    with child, _ended_on(cancel, child):
        try:
            stdout, stderr = child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            _end_family(child, now=True)
            raise TimeoutError(f"{Path(command[0]).name} did not end within {timeout_s:g} s") from error
        except BaseException:
            _end_family(child, now=True)
            raise
    return Finished(code=child.returncode, stdout=stdout, stderr=stderr)


@contextlib.contextmanager
def _ended_on(cancel: Cancel | None, child: subprocess.Popen[bytes]) -> Iterator[None]:
    if cancel is None:
        yield
        return
    last_word = threading.Timer(_GRACE_S, _end_family, (child,), {"now": True})
    last_word.daemon = True

    def ask_to_end() -> None:
        if child.poll() is None:
            _end_family(child, now=False)
            last_word.start()

    try:
        with cancel.waking(ask_to_end):
            yield
    finally:
        last_word.cancel()


def _end_family(child: subprocess.Popen[bytes], *, now: bool) -> None:
    """End a child and what it started: the docker program runs Compose as a child of its own."""
    if sys.platform == "win32":
        # Windows has no signal for a process without a console; taskkill ends the tree.
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(child.pid)], capture_output=True, check=False, timeout=10)
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL if now else signal.SIGTERM)

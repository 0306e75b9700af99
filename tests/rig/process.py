"""What the modules of the rig share: short temporary folders, free ports, ending a process."""

from __future__ import annotations

import contextlib
import getpass
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

AT_ONCE_S = 10.0
"""Ample for what happens at once on a busy machine, and far below the 30 s and more that it would take otherwise."""


class RigError(RuntimeError):
    """A part of the rig did not do what the tests rely on."""


def short_temp_dir(prefix: str) -> Path:
    """A new folder directly below the system's temporary folder: a unix socket path has 107 bytes, not more."""
    return Path(tempfile.mkdtemp(prefix=f"slw-{prefix}-", dir=_shortest_temp_root()))


def _shortest_temp_root() -> str:
    root = tempfile.gettempdir()
    return root if len(root) <= 40 else "/tmp"


_FIRST_PORT, _LAST_PORT = 20000, 32000
"""Below the range from which Linux takes ports for outgoing connections: none of those comes in between."""

_held_ports: list[FileLock] = []


def free_port() -> int:
    """A TCP port on 127.0.0.1 that nobody listens on and that no other test run gets until this process ends.

    Asking the system for any free port is not enough: what it gives away is free again until the server has started.
    """
    folder = Path(tempfile.gettempdir()) / f"slw-ports-{getpass.getuser()}"
    folder.mkdir(exist_ok=True)
    while True:
        port = secrets.randbelow(_LAST_PORT - _FIRST_PORT) + _FIRST_PORT
        claim = FileLock(folder / str(port), blocking=False)
        try:
            claim.acquire()
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except (Timeout, OSError):
            claim.release()
            continue
        _held_ports.append(claim)
        return port


def wait_for(
    ready: Callable[[], bool],
    seconds: float,
    what: str,
    alive: Callable[[], bool] = lambda: True,
    *,
    every: float = 0.05,
) -> None:
    """Poll ``ready`` until it is true; raise RigError when the time is over or ``alive`` turns false."""
    deadline = time.monotonic() + seconds
    while not ready():
        if not alive():
            raise RigError(f"{what}: the process ended")
        if time.monotonic() > deadline:
            raise RigError(f"{what}: not ready after {seconds:.0f} s")
        time.sleep(every)


def end(process: subprocess.Popen[bytes] | None, seconds: float = 15) -> None:
    """SIGTERM, a while, SIGKILL: for a process that the rig itself started."""
    if process is None or process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tail(path: Path, lines: int = 30) -> str:
    """The last lines of a log, for a message."""
    with contextlib.suppress(OSError):
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    return ""


def require(program: str, package: str) -> str:
    """The path of a program, or RigError that names the Debian package."""
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin")
    if found is None:
        raise RigError(f"{program} is not installed (Debian package {package}; see tests/rig/install-debian.sh)")
    return found

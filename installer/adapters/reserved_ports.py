"""The port ranges that Windows keeps for itself (Hyper-V and WSL2 take new ones at every start).

Nobody listens on them and nobody else can either: Docker fails there with error 10013. A range with a star is another
matter: an administrator set it, and a program that asks for such a port by its number gets it (Microsoft, KB 812873).
`netsh` writes its headings in the system's language and code page, so that only lines that are two numbers are read.
"""

from __future__ import annotations

import re
import sys

from installer.adapters import processes

_COMMAND = ("netsh", "interface", "ipv4", "show", "excludedportrange", "protocol=tcp")
_LIMIT_S = 5.0
_RANGE = re.compile(rb"^[ \t]*(\d{1,5})[ \t]+(\d{1,5})[ \t]*$", re.MULTILINE)


def read() -> tuple[range, ...]:
    """Return the ranges, none where this is not Windows or they cannot be read."""
    if sys.platform == "win32":
        try:
            return parse(processes.run(_COMMAND, timeout_s=_LIMIT_S).stdout)
        except OSError:
            return ()
    return ()


def parse(output: bytes) -> tuple[range, ...]:
    """Return Windows' own ranges that `netsh` lists, in whatever language; UTF-16 has a zero beside each digit."""
    lines = output.replace(b"\x00", b"").replace(b"\r", b"")
    found = ((int(first), int(last)) for first, last in _RANGE.findall(lines))
    return tuple(range(first, last + 1) for first, last in found if 0 < first <= last <= 65535)

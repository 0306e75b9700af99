"""What Linux tells in /proc: memory, and who listens on a port. Empty answers where there is no /proc."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from installer.domain.units import KIB

_PROC = Path("/proc")

_LISTENING = "0A"

# All addresses and 127.0.0.1, alone and mapped into IPv6, as /proc/net/tcp writes them: words in the machine's order.
_LOOPBACK_OR_ANY = {
    "00000000",
    "0100007F",
    "0" * 32,
    "0000000000000000FFFF00000100007F",
}


def memory(proc: Path = _PROC) -> tuple[int | None, int | None]:
    """Return total and available bytes of memory, each None where it is not listed."""
    try:
        listed = (proc / "meminfo").read_text(errors="replace")
    except OSError:
        return None, None
    kib = dict(re.findall(r"^(\w+):\s+(\d+) kB$", listed, re.MULTILINE))
    total, available = kib.get("MemTotal"), kib.get("MemAvailable")
    return int(total) * KIB if total else None, int(available) * KIB if available else None


def listener(port: int, proc: Path = _PROC) -> str:
    """Return the program that listens on a port at 127.0.0.1, such as "nginx (812)"; "" where that cannot be told."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port, proc)}
    if not sockets:
        return ""
    for process in proc.glob("[0-9]*"):
        if _holds(process, sockets):
            return f"{_name(process)} ({process.name})"
    return ""


def _listening_inodes(port: int, proc: Path) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            rows = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            address, _, port_hex = fields[1].partition(":")
            if fields[3] == _LISTENING and int(port_hex, 16) == port and address in _LOOPBACK_OR_ANY:
                yield fields[9]


def _holds(process: Path, sockets: set[str]) -> bool:
    """Say whether one of these sockets is open in a process; processes of other users do not tell."""
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:
        return False
    return any(_target(descriptor) in sockets for descriptor in descriptors)


def _target(descriptor: Path) -> str:
    """Follow a descriptor, which may be closed by now."""
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text(errors="replace").strip()
    except OSError:
        return ""

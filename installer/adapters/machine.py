"""The computer itself: system and memory, room in a folder, ports."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from installer.adapters import pci, proc, proxies, reserved_ports
from installer.domain import environment
from installer.domain.facts import Host

_LAST_PORT = 65535

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

# Windows and macOS let a program bind 127.0.0.1 beside another one that has all addresses; Linux does not.
_WILDCARDS = ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::"))
_ADDRESSES = ((socket.AF_INET, "127.0.0.1"), *(() if sys.platform == "linux" else _WILDCARDS))

_NO_SUCH_ADDRESS = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}


class LocalMachine:
    """The `Machine` port for the computer that this runs on; `reserved` reads the ports that the system keeps."""

    def __init__(self, reserved: Callable[[], tuple[range, ...]] = reserved_ports.read) -> None:
        self._reserved = reserved

    def host(self) -> Host:
        """Read system, memory and WSL2. `architecture` is in the words of container platforms: amd64, arm64."""
        system, release, machine = platform.system(), platform.release(), platform.machine().lower()
        total, available = _memory()
        return Host(
            system=system,
            release=release,
            architecture=_ARCHITECTURES.get(machine, machine),
            ram_total_bytes=total,
            ram_available_bytes=available,
            wsl2=system == "Linux" and is_wsl2(release),
            desktop_session=_desktop_session(system),
            nvidia_cards=pci.nvidia_cards() if system == "Linux" else (),
            variables=tuple((flaw.variable, flaw.flaw) for flaw in environment.flaws(os.environ)),
            proxy=proxies.ours(),
        )

    def folder_free(self, path: str) -> tuple[int | None, bool]:
        """Return the free bytes at a folder (or its nearest parent), and whether it can be written.

        (None, False) where not even the drive is there. A folder that exists is tried by writing a nameless file.
        """
        folder = Path(path).absolute()
        nearest = next((place for place in (folder, *folder.parents) if _exists(place)), None)
        if nearest is None:
            return None, False
        try:
            free_bytes: int | None = shutil.disk_usage(nearest).free
        except OSError:
            free_bytes = None
        return free_bytes, _writable(nearest, itself=nearest == folder)

    def free_ports(self, first: int, count: int) -> tuple[int, ...]:
        """Return the first ports from `first` on that nobody listens on at 127.0.0.1; fewer where the numbers end.

        Those that the system keeps for itself are left out.
        """
        reserved, free = self._reserved(), list[int]()
        for port in range(first, _LAST_PORT + 1):
            if len(free) == count:
                break
            if not any(port in kept for kept in reserved) and _is_free(port):
                free.append(port)
        return tuple(free)

    def port_owner(self, port: int) -> str | None:
        """Return None for a free port, otherwise the program that holds it, such as "nginx (812)".

        Windows with the range for one that it keeps for itself; "" where nobody can be named: another user's program,
        or not Linux.
        """
        kept = next((kept for kept in self._reserved() if port in kept), None)
        if kept is not None:
            return f"Windows ({kept.start}–{kept.stop - 1})"
        return None if _is_free(port) else proc.listener(port)


def is_wsl2(kernel_release: str) -> bool:
    """Tell WSL2's kernel by its name. WSL1's ends in `-Microsoft`; it has no graphics card and no Docker Engine."""
    return "microsoft" in kernel_release.casefold() and not kernel_release.endswith("-Microsoft")


def _desktop_session(system: str) -> bool:
    if system != "Linux":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _memory() -> tuple[int | None, int | None]:
    """Return total and available bytes of memory, each None where the system does not tell."""
    if sys.platform == "win32":
        return _windows_memory()
    elif sys.platform == "linux":  # noqa: RET505 - type checkers follow the platform only through a chain
        return proc.memory()
    else:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), None


if sys.platform == "win32":
    import ctypes

    class _MemoryStatus(ctypes.Structure):
        """MEMORYSTATUSEX of sysinfoapi.h."""

        _fields_ = (
            ("length", ctypes.c_uint32),
            ("load_percent", ctypes.c_uint32),
            ("total_physical", ctypes.c_uint64),
            ("available_physical", ctypes.c_uint64),
            ("total_page_file", ctypes.c_uint64),
            ("available_page_file", ctypes.c_uint64),
            ("total_virtual", ctypes.c_uint64),
            ("available_virtual", ctypes.c_uint64),
            ("available_extended_virtual", ctypes.c_uint64),
        )

    def _windows_memory() -> tuple[int | None, int | None]:
        status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
        if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
            return None, None
        return status.total_physical, status.available_physical


def _exists(place: Path) -> bool:
    try:
        return place.exists()
    except OSError:
        return False


def _writable(place: Path, *, itself: bool) -> bool:
    """Say whether files can be made below a place. Only a folder of the person's own choice is written to."""
    if not place.is_dir():
        return False
    if not itself:
        return os.access(place, os.W_OK | os.X_OK)
    try:
        with tempfile.TemporaryFile(dir=place):
            return True
    except OSError:
        return False


def _is_free(port: int) -> bool:
    return all(_can_bind(family, address, port) for family, address in _ADDRESSES)


def _can_bind(family: socket.AddressFamily, address: str, port: int) -> bool:
    """Try to take a port and give it back. A range that Windows keeps for itself refuses as WSAEACCES: taken, too."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if sys.platform == "win32":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
            elif sys.platform == "linux":
                # As Docker does: a server that was just stopped leaves connections in TIME_WAIT that block nobody.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
            return True
    except OSError as error:
        return error.errno in _NO_SUCH_ADDRESS

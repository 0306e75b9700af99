"""The computer is read for real: this one's memory, real folders, real listeners on 127.0.0.1."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from installer.adapters import proc
from installer.adapters.machine import LocalMachine, is_wsl2
from installer.domain.units import GIB, MIB

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux' /proc")


@contextmanager
def listener(address: str, family: socket.AddressFamily = socket.AF_INET) -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket(family) as server:
        server.bind((address, 0))
        server.listen()
        yield server.getsockname()[1]


def test_the_host_has_memory_and_some_of_it_is_available() -> None:
    host = LocalMachine().host()
    assert host.system == platform.system()
    assert host.ram_total_bytes
    assert host.ram_total_bytes > 256 * MIB
    if host.ram_available_bytes is not None:
        assert 0 < host.ram_available_bytes < host.ram_total_bytes


@pytest.mark.parametrize(("machine", "architecture"), [("x86_64", "amd64"), ("AMD64", "amd64"), ("aarch64", "arm64")])
def test_the_architecture_is_named_as_container_platforms_name_it(
    machine: str, architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert LocalMachine().host().architecture == architecture


@pytest.mark.parametrize(
    ("release", "wsl2"),
    [
        ("6.6.87.2-microsoft-standard-WSL2", True),
        ("5.15.167.4-Microsoft-custom", True),
        ("4.4.0-19041-Microsoft", False),
        ("6.14.0-36-generic", False),
    ],
)
def test_wsl2_is_told_from_wsl1_and_from_linux(release: str, wsl2: bool) -> None:
    assert is_wsl2(release) is wsl2


@on_linux
def test_a_desktop_session_is_one_of_x11_or_wayland(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setenv("WAYLAND_DISPLAY", "")
    assert not LocalMachine().host().desktop_session
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert LocalMachine().host().desktop_session


def test_meminfo_is_read_in_bytes(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:       33554432 kB\nMemFree: 12 kB\nMemAvailable:   16777216 kB\n")
    assert proc.memory(tmp_path) == (32 * GIB, 16 * GIB)


def test_what_meminfo_does_not_list_is_unknown_and_not_zero(tmp_path: Path) -> None:
    assert proc.memory(tmp_path) == (None, None)
    (tmp_path / "meminfo").write_text("MemTotal:       33554432 kB\n")
    assert proc.memory(tmp_path) == (32 * GIB, None)


def test_a_folder_is_tried_and_left_empty(tmp_path: Path) -> None:
    free_bytes, writable = LocalMachine().folder_free(str(tmp_path))
    assert free_bytes
    assert writable
    assert list(tmp_path.iterdir()) == []


def test_a_folder_yet_to_be_made_is_judged_by_its_parent_and_not_made(tmp_path: Path) -> None:
    free_bytes, writable = LocalMachine().folder_free(str(tmp_path / "not" / "yet"))
    assert free_bytes
    assert writable
    assert list(tmp_path.iterdir()) == []


def test_below_a_file_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        free_bytes, writable = LocalMachine().folder_free(str(place))
        assert free_bytes
        assert not writable


@on_linux
def test_a_file_system_that_refuses_files_is_not_writable() -> None:
    """Its permission bits say yes to root; only the try tells."""
    assert LocalMachine().folder_free("/proc")[1] is False


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can ask as somebody else")
def test_only_a_folder_that_is_open_to_the_user_is_writable() -> None:
    """Asked as an ordinary user: for root every folder is open."""
    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        open_folder, closed_folder = Path(root, "open"), Path(root, "closed")
        open_folder.mkdir()
        open_folder.chmod(0o777)
        closed_folder.mkdir(mode=0o755)
        places = [open_folder, open_folder / "new", closed_folder, closed_folder / "new"]
        asked = subprocess.run([sys.executable, "-c", _ASK_AS_NOBODY, *places], capture_output=True, text=True)
    assert asked.stdout.split() == ["True", "True", "False", "False"], asked.stderr


_ASK_AS_NOBODY = """
import os, sys
from installer.adapters.machine import LocalMachine
os.setgid(65534), os.setuid(65534)
print(*(LocalMachine().folder_free(place)[1] for place in sys.argv[1:]))
"""


def test_free_ports_begin_at_the_first_and_skip_those_in_use() -> None:
    with listener("127.0.0.1") as taken:
        free = LocalMachine().free_ports(taken, 3)
        assert len(free) == 3
        assert taken not in free
        assert list(free) == sorted(free)
    assert LocalMachine().free_ports(taken, 1) == (taken,)


def test_free_ports_end_where_the_numbers_end() -> None:
    assert all(port <= 65535 for port in LocalMachine().free_ports(65534, 10))


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_in_use_on_loopback_or_on_all_addresses_is_taken(address: str) -> None:
    with listener(address) as port:
        assert LocalMachine().port_owner(port) is not None
    assert LocalMachine().port_owner(port) is None


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_a_port_in_use_on_all_addresses_of_ipv6_is_taken() -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        assert LocalMachine().port_owner(server.getsockname()[1]) is not None


@on_linux
def test_the_owner_of_a_port_is_named_with_its_pid() -> None:
    with listener("127.0.0.1") as port:
        owner = LocalMachine().port_owner(port)
    assert owner
    assert f"({os.getpid()})" in owner


@on_linux
def test_a_server_that_just_stopped_does_not_hold_its_port() -> None:
    """Its closed connection waits for a minute (TIME_WAIT) and keeps nobody out."""
    with listener("127.0.0.1") as port:
        pass
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen()
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = server.accept()
            accepted.close()
            client.recv(1)
    assert LocalMachine().port_owner(port) is None

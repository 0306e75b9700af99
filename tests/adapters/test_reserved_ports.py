"""The ranges that Windows keeps for itself, as netsh writes them in two languages, and a port inside one."""

from __future__ import annotations

import pytest

from installer.adapters import reserved_ports
from installer.adapters.machine import LocalMachine

ENGLISH = """
Protocol tcp Port Exclusion Ranges

Start Port    End Port
----------    --------
      7990        8089
      8090        8189
     50000       50059     *

* - Administered port exclusions.

"""
GERMAN = """
Protokoll tcp Portausschlussbereiche

Startport    Endport
----------   --------
      7990        8089
      8090        8189
     50000       50059     *

* - Verwaltete Portausschlüsse.

"""
RANGES = (range(7990, 8090), range(8090, 8190))
"""The third has a star: who asks for one of its ports by number gets it."""


@pytest.mark.parametrize("text", [ENGLISH, GERMAN], ids=["English", "German"])
@pytest.mark.parametrize("encoding", ["cp850", "cp1252", "utf-8", "utf-16-le"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_ranges_are_read_in_any_language_and_code_page(text: str, encoding: str, ending: str) -> None:
    assert reserved_ports.parse(text.replace("\n", ending).encode(encoding)) == RANGES


@pytest.mark.parametrize(
    "output",
    [
        b"",
        b"\xff\xfe\x00",
        b"The following command was not found: 12 13 14.",
        b"9 1\n0 5\n70000 80000\n123456 1\n1 x\n",
    ],
)
def test_lines_that_are_no_ranges_say_nothing(output: bytes) -> None:
    assert reserved_ports.parse(output) == ()


def test_nothing_is_reserved_where_there_is_no_windows() -> None:
    assert reserved_ports.read() == ()


def test_a_reserved_port_is_not_offered_and_says_who_has_it() -> None:
    machine = LocalMachine(reserved=lambda: RANGES)
    free = machine.free_ports(8000, 2)
    assert free[0] >= 8190
    assert machine.port_owner(8000) == "Windows (7990–8089)"
    assert machine.port_owner(free[0]) is None

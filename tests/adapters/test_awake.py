"""The computer is kept awake exactly as long as something is installed, and nothing depends on it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from installer.adapters.awake import SystemAwake

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="logind is Linux's")


@pytest.fixture
def inhibitor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `systemd-inhibit` that writes down its process and what it was asked, and then does as the real one."""
    told = tmp_path / "told"
    program = tmp_path / "systemd-inhibit"
    program.write_text(f'#!/bin/sh\necho "$$ $*" > {told}.new; mv {told}.new {told}\nexec cat\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return told


def when_told(told: Path) -> tuple[int, str]:
    until = time.monotonic() + 10
    while not told.exists() and time.monotonic() < until:
        time.sleep(0.01)
    pid, _, asked = told.read_text().partition(" ")
    return int(pid), asked


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_sleep_and_idle_are_held_off_inside_and_only_there(inhibitor: Path) -> None:
    with SystemAwake().held() as asked:
        pid, words = when_told(inhibitor)
        assert asked
        assert lives(pid)
        assert "--what=sleep:idle --mode=block" in words
    assert not lives(pid)


def test_a_failure_inside_lets_the_computer_sleep_again(inhibitor: Path) -> None:
    def fail() -> None:
        with SystemAwake().held():
            when_told(inhibitor)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not lives(when_told(inhibitor)[0])


def test_without_logind_it_goes_on_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with SystemAwake().held() as asked:
        assert not asked


def test_one_that_cannot_be_started_keeps_nothing_from_going_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "systemd-inhibit"
    program.write_bytes(b"\x7fELF nothing that runs")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with SystemAwake().held() as asked:
        assert not asked

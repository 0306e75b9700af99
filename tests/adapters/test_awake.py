"""Standby is kept off by a real child under a stand-in for systemd-inhibit, and by calls that Windows would get."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from installer.adapters import awake
from installer.adapters.awake import ES_CONTINUOUS, ES_SYSTEM_REQUIRED, SystemAwake, by_execution_state, by_logind
from tests.rig.process import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="logind is Linux'")

GRANTS = """#!/bin/sh
echo "$$ $*" > "$INHIBITOR"
while [ "${1#--}" != "$1" ]; do shift; done
exec "$@"
"""
REFUSES = "#!/bin/sh\necho 'Failed to inhibit: Access denied' >&2\nexit 1\n"
HANGS = '#!/bin/sh\necho "$$" > "$INHIBITOR"\nexec sleep 60\n'


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where systemd-inhibit is looked for first; its own notes are in the file beside it."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("INHIBITOR", str(tmp_path / "noted"))
    return tmp_path / "systemd-inhibit"


def install(program: Path, script: str) -> Path:
    program.write_text(script)
    program.chmod(0o755)
    return program.with_name("noted")


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_lock_is_held_inside_and_let_go_after(program: Path) -> None:
    noted = install(program, GRANTS)
    with SystemAwake().held() as agreed:
        assert agreed
        pid, arguments = noted.read_text().split(" ", 1)
        assert "--what=sleep:idle" in arguments
        assert "--mode=block" in arguments
        assert "--who=Slipway" in arguments
        assert lives(int(pid))
    assert not lives(int(pid))


def test_it_is_let_go_after_a_failure_too(program: Path) -> None:
    noted = install(program, GRANTS)
    with pytest.raises(KeyboardInterrupt), by_logind():
        raise KeyboardInterrupt
    assert not lives(int(noted.read_text().split()[0]))


def test_a_refusal_is_said_and_nothing_fails(program: Path) -> None:
    install(program, REFUSES)
    with by_logind() as agreed:
        assert agreed is False


def test_a_bus_that_does_not_answer_is_not_waited_for(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = install(program, HANGS)
    monkeypatch.setattr(awake, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(awake, "END_SECONDS", 0.2)
    began = time.monotonic()
    with by_logind() as agreed:
        assert agreed is False
    assert time.monotonic() - began < 5
    assert not lives(int(noted.read_text()))


def test_without_the_program_nothing_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with SystemAwake().held() as agreed:
        assert agreed is False


def test_a_slipway_that_is_killed_leaves_no_lock_behind(program: Path) -> None:
    noted = install(program, GRANTS)
    code = "import time; from installer.adapters.awake import by_logind\nwith by_logind():\n time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait_for(noted.exists, 10, "the lock")
        time.sleep(0.2)
        pid = int(noted.read_text().split()[0])
        child.send_signal(signal.SIGKILL)
    finally:
        child.kill()
        child.wait()
    wait_for(lambda: not lives(pid), 5, "the lock's end")


@pytest.mark.parametrize(("before", "calls"), [(ES_CONTINUOUS, 2), (0, 1)])
def test_windows_is_told_for_this_thread_and_told_again_after(before: int, calls: int) -> None:
    told: list[int] = []

    def set_state(state: int) -> int:
        told.append(state)
        return before

    with by_execution_state(set_state) as agreed:
        assert agreed is (before != 0)
        assert told == [ES_CONTINUOUS | ES_SYSTEM_REQUIRED]
    assert told[1:] == [ES_CONTINUOUS][: calls - 1]

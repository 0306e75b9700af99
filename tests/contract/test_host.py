"""What every driver, computer and clock does; the real ones need no rig."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from pathlib import Path

import pytest
from PIL import Image

from installer.adapters.autostart import SessionAutostart
from installer.adapters.awake import SystemAwake
from installer.adapters.clock import SystemClock
from installer.adapters.dryrun import dry_run_ports
from installer.adapters.machine import LocalMachine
from installer.adapters.nvml import NvmlGpus
from installer.adapters.pictures import PictureFiles
from installer.domain.facts import NvidiaState
from installer.domain.problems import Cancelled, InstallerError, PictureUnreadable
from installer.steps.cancel import Cancel
from installer.steps.ports import Autostart, Awake, Clock, Gpus, Machine, Pictures
from tests.rig.process import AT_ONCE_S
from tests.steps.kit import SHIPPED, machine

MACHINES = ["rtx-5090-linux", "no-nvidia-card", "rtx-5090-wsl2", "real"]


@pytest.fixture(params=MACHINES)
def gpus(request: pytest.FixtureRequest, tmp_path: Path) -> Gpus:
    real = request.param == "real"
    return NvmlGpus() if real else dry_run_ports(machine(request.param, tmp_path), SHIPPED).gpus


@pytest.fixture(params=MACHINES)
def computer(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    real = request.param == "real"
    return LocalMachine() if real else dry_run_ports(machine(request.param, tmp_path), SHIPPED).machine


@pytest.fixture(params=["dry run", "real"])
def clock(request: pytest.FixtureRequest, tmp_path: Path) -> Clock:
    real = request.param == "real"
    return SystemClock() if real else dry_run_ports(machine(MACHINES[0], tmp_path), SHIPPED).clock


@pytest.fixture(params=["dry run", "real"])
def autostart(request: pytest.FixtureRequest, tmp_path: Path) -> Autostart:
    real = request.param == "real"
    folder = tmp_path / "autostart"
    return SessionAutostart(folder=folder) if real else dry_run_ports(machine(MACHINES[0], tmp_path), SHIPPED).autostart


@pytest.fixture(params=["dry run", "real"])
def awake(request: pytest.FixtureRequest, tmp_path: Path) -> Awake:
    real = request.param == "real"
    return SystemAwake() if real else dry_run_ports(machine(MACHINES[0], tmp_path), SHIPPED).awake


@pytest.fixture(params=["dry run", "real"])
def pictures(request: pytest.FixtureRequest, tmp_path: Path) -> Pictures:
    real = request.param == "real"
    return PictureFiles() if real else dry_run_ports(machine(MACHINES[0], tmp_path), SHIPPED).pictures


def test_the_drivers_state_is_always_part_of_the_answer(gpus: Gpus) -> None:
    seen = gpus.read()
    assert isinstance(seen.state, NvidiaState)
    if seen.state is not NvidiaState.READ:
        assert seen.gpus == ()
    assert len({gpu.uuid for gpu in seen.gpus}) == len(seen.gpus)


def test_the_computer_says_what_it_is(computer: Machine) -> None:
    host = computer.host()
    assert host.system
    assert host.architecture in ("amd64", "arm64")
    assert host.ram_total_bytes is None or host.ram_total_bytes > 0
    assert "@" not in host.proxy.http + host.proxy.https


def test_a_folder_that_is_not_there_yet_has_room(computer: Machine, tmp_path: Path) -> None:
    free_bytes, writable = computer.folder_free(str(tmp_path / "new" / "models"))
    assert free_bytes is None or free_bytes > 0
    assert writable


def test_free_ports_are_free_and_in_their_order(computer: Machine) -> None:
    ports = computer.free_ports(8000, 3)
    assert len(ports) == 3
    assert list(ports) == sorted(set(ports))
    assert ports[0] >= 8000
    assert [computer.port_owner(port) for port in ports] == [None] * 3


def test_a_wait_ends_at_once_when_the_person_cancels(clock: Clock) -> None:
    cancel = Cancel()
    threading.Timer(0.05, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        clock.wait(60, cancel)
    assert time.monotonic() - began < AT_ONCE_S
    with pytest.raises(Cancelled):
        clock.wait(60, cancel)


def test_time_goes_on_while_waiting(clock: Clock) -> None:
    before = clock.monotonic()
    clock.wait(0.05, Cancel())
    assert clock.monotonic() - before >= 0.04


def test_now_is_a_date_in_utc(clock: Clock) -> None:
    now = datetime.fromisoformat(clock.now())
    assert now.utcoffset() is not None
    assert clock.now().endswith("Z")


def test_an_entry_can_be_made_and_removed_more_than_once(autostart: Autostart) -> None:
    assert "slipway-chat" in autostart.enable("chat")
    assert autostart.enable("chat") == autostart.enable("chat")
    autostart.disable("chat")
    autostart.disable("chat")


def test_standby_is_kept_off_more_than_once_and_also_where_that_cannot_be(awake: Awake) -> None:
    for _ in range(2):
        with awake.held() as agreed, awake.held():
            assert agreed in (True, False)


def test_a_picture_is_read_and_what_is_none_is_refused(pictures: Pictures, tmp_path: Path) -> None:
    Image.new("RGB", (40, 20), "red").save(tmp_path / "red.png")
    seen = pictures.read(str(tmp_path / "red.png"), 200)
    assert (seen.width, seen.height, seen.original) == (20, 10, (40, 20))
    (tmp_path / "words.png").write_text("words")
    with pytest.raises(InstallerError) as caught:
        pictures.read(str(tmp_path / "words.png"), 200)
    assert isinstance(caught.value.problem, PictureUnreadable)

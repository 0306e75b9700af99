"""The home: one run at a time, files that are whole or old, and a list of what was made."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from installer.domain.problems import AlreadyRunning, DiskFull, InstallerError, MalformedFile, NotInstalled, NotWritable
from installer.steps.events import Finished, Progress, Started, Step
from installer.steps.home import BACKUPS_KEPT, Created, Home, back_up, write_atomically
from tests.steps.kit import rehearsal

root_only = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="mounting needs root")
TINY_DISK_BYTES = 64 * 1024
HOLDER = """
import pathlib, sys
from installer.steps.home import Home
with Home(pathlib.Path(sys.argv[1])).held():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "Jürgen Müller" / "slipway")


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={TINY_DISK_BYTES}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine lets nobody mount a tmpfs")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def problem_of(work: Callable[[], object]) -> object:
    with pytest.raises(InstallerError) as caught:
        work()
    return caught.value.problem


# --- one run at a time -----------------------------------------------------------------------------------------------


def test_a_home_is_held_by_one_run_at_a_time_and_names_who_holds_it(home: Home) -> None:
    command = [sys.executable, "-c", HOLDER, str(home.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == b"held"
        problem = problem_of(lambda: home.held().__enter__())
        assert problem == AlreadyRunning(pid=other.pid, home=str(home.folder))
        other.kill()
    with home.held():
        pass


def test_a_home_is_free_again_after_a_failure(home: Home) -> None:
    with pytest.raises(ZeroDivisionError), home.held():
        raise ZeroDivisionError
    with home.held():
        assert (home.folder / "lock.pid").read_text().strip() == str(os.getpid())


def test_two_threads_of_one_process_do_not_share_a_home(home: Home) -> None:
    found: list[object] = []
    with home.held():
        thread = threading.Thread(target=lambda: found.append(problem_of(lambda: home.held().__enter__())))
        thread.start()
        thread.join()
    assert found == [AlreadyRunning(pid=os.getpid(), home=str(home.folder))]


# --- files that are whole or old -------------------------------------------------------------------------------------


def test_a_file_gets_its_mode_before_its_name(tmp_path: Path) -> None:
    path = tmp_path / "new" / "vllm.env"
    write_atomically(path, "KEY='ü'\n", mode=0o600)
    assert path.read_text("utf-8") == "KEY='ü'\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["vllm.env"]


@root_only
def test_a_full_disk_leaves_the_old_content_and_no_rest(tiny_disk: Path) -> None:
    path = tiny_disk / "plan.json"
    write_atomically(path, "old")
    problem = problem_of(lambda: write_atomically(path, b"x" * (2 * TINY_DISK_BYTES)))
    assert isinstance(problem, DiskFull)
    assert problem.where == str(path)
    assert path.read_text() == "old"
    assert [p.name for p in tiny_disk.iterdir()] == ["plan.json"]


@root_only
def test_an_installation_on_a_full_disk_says_so(tiny_disk: Path) -> None:
    stage = rehearsal(tiny_disk)
    (tiny_disk / "filler").write_bytes(b"x" * (TINY_DISK_BYTES - 4096))
    problem = stage.fails()
    assert isinstance(problem, DiskFull)
    assert not problem.engine
    (tiny_disk / "filler").unlink()
    stage.install()
    assert stage.told.outcome == "ok"


@root_only
def test_a_disk_that_fills_up_while_events_are_recorded_is_named(tiny_disk: Path) -> None:
    stack = Home(tiny_disk).stack("chat")
    (tiny_disk / "chat").mkdir()
    (tiny_disk / "filler").write_bytes(b"x" * TINY_DISK_BYTES)
    problem = problem_of(lambda: stack.append(Started(at="2026-11-02T09:00:00Z", step=Step.PROBE)))
    assert isinstance(problem, DiskFull)


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Let root be somebody who may not write; others are that already."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")
def test_a_folder_that_is_closed_to_us_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with as_nobody():
        problem = problem_of(lambda: write_atomically(tmp_path / "plan.json", "x"))
    assert isinstance(problem, NotWritable)
    assert problem.reason


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "chat").write_text("")
    problem = problem_of(lambda: write_atomically(tmp_path / "chat" / "plan.json", "x"))
    assert isinstance(problem, NotWritable)
    assert problem.path.startswith(str(tmp_path / "chat"))


def test_five_backups_are_kept_and_the_newest_is_number_one(tmp_path: Path) -> None:
    path = tmp_path / "docker-compose.vllm.yml"
    for number in range(BACKUPS_KEPT + 2):
        write_atomically(path, f"edition {number}", mode=0o640)
        assert back_up(path).name == "docker-compose.vllm.yml.1.bak"
    backups = {p.name: p.read_text() for p in tmp_path.glob("*.bak")}
    assert backups == {f"{path.name}.{n}.bak": f"edition {BACKUPS_KEPT + 2 - n}" for n in range(1, BACKUPS_KEPT + 1)}
    assert stat.S_IMODE((tmp_path / f"{path.name}.1.bak").stat().st_mode) == 0o640


# --- what was made, decided and told ---------------------------------------------------------------------------------


def test_what_was_made_is_listed_once_in_its_order(home: Home) -> None:
    stack = home.stack("chat")
    for kind, name in (("image", "a@sha256:1"), ("weights", "b"), ("image", "a@sha256:1")):
        stack.note_created(kind, name)
    assert stack.created() == (Created(kind="image", name="a@sha256:1"), Created(kind="weights", name="b"))
    assert home.stack("images").created() == ()


def test_nothing_is_lost_of_what_is_noted_at_the_same_time(home: Home) -> None:
    stack, names = home.stack("chat"), [f"name {n}" for n in range(20)]
    with ThreadPoolExecutor(max_workers=len(names)) as pool:
        list(pool.map(lambda name: stack.note_created("image", name), names))
    assert {made.name for made in stack.created()} == set(names)


def test_nothing_is_installed_in_a_new_home(home: Home) -> None:
    assert home.stack("chat").plan() is None
    problem = problem_of(home.stack("chat").installed)
    assert problem == NotInstalled(stack="chat", home=str(home.folder))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"schema": 1}', b"null"])
@pytest.mark.parametrize("name", ["plan.json", "created.json"])
def test_a_damaged_file_is_named_with_its_path(home: Home, name: str, content: bytes) -> None:
    stack = home.stack("chat")
    write_atomically(stack.path(name), content)
    problem = problem_of(stack.plan if name == "plan.json" else stack.created)
    assert isinstance(problem, MalformedFile)
    assert problem.path == str(stack.path(name))


def test_what_the_network_said_can_be_read_back(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path)
    plan = stage.plan(stage.job())
    sources = stage.home.last_sources(plan.profile)
    assert sources is not None
    assert (sources.image, sources.weights) == (plan.image, plan.weights)
    assert stage.home.last_sources("another") is None


def test_the_record_holds_every_event_but_progress_and_the_run_before(home: Home) -> None:
    stack, at = home.stack("chat"), "2026-11-02T09:00:00Z"
    stack.begin_record()
    stack.append(Started(at=at, step=Step.IMAGE))
    stack.append(Progress(at=at, step=Step.IMAGE, done=1, total=2))
    stack.append(Finished(at=at, step=Step.IMAGE, seconds=1.5))
    lines = [json.loads(line) for line in stack.path("events.jsonl").read_text().splitlines()]
    assert [(line["event"], line["step"]) for line in lines] == [("started", "image"), ("finished", "image")]
    stack.begin_record()
    assert not stack.path("events.jsonl").exists()
    assert len(stack.path("events.previous.jsonl").read_text().splitlines()) == 2

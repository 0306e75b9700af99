"""Fetching weights from a real server on 127.0.0.1: whole, resumed, cancelled at once, and never a wrong byte."""

from __future__ import annotations

import dataclasses
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from installer.adapters import store
from installer.adapters.download import Patience
from installer.adapters.hub import HuggingFaceHub
from installer.domain.problems import (
    Cancelled,
    CaptivePortal,
    DiskFull,
    NotWritable,
    Problem,
    RateLimited,
    ServerError,
    Stalled,
    Truncated,
    Unreachable,
    WrongContent,
)
from installer.domain.sources import FolderWeights
from installer.steps.cancel import Cancel
from tests.adapters.hub_kit import (
    BIG,
    EAGER,
    FILES,
    REPO,
    fetch,
    folder_of,
    hub_of,
    only,
    place_fixture,
    refusal,
    server_fixture,
    until,
)
from tests.rig.hub import LocalHub
from tests.rig.process import AT_ONCE_S, free_port

__all__ = ["place_fixture", "server_fixture"]

# --- what is fetched


def test_every_file_arrives_whole_and_progress_never_falls(server: LocalHub, place: FolderWeights) -> None:
    hub = hub_of(server)
    weights = hub.resolve(REPO, "main")
    assert hub.missing_bytes(weights, place) == weights.size_bytes

    seen = fetch(hub, weights, place)

    assert seen == sorted(seen)
    assert seen[-1] == (weights.size_bytes, weights.size_bytes)
    for file in weights.files:
        assert (folder_of(weights, place) / file.path).read_bytes() == FILES[file.path]
    assert not list(folder_of(weights, place).glob("*.part"))
    assert hub.missing_bytes(weights, place) == 0


def test_a_second_run_asks_the_network_for_nothing_and_reads_no_weights(
    server: LocalHub, place: FolderWeights, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = hub_of(server)
    weights = hub.resolve(REPO, "main")
    fetch(hub, weights, place)
    asked = len(server.asked)
    monkeypatch.setattr(store.OpenFile, "advance", lambda *_: pytest.fail("read again"))

    assert fetch(hub, weights, place) == [(weights.size_bytes, weights.size_bytes)]
    assert hub.missing_bytes(weights, place) == 0
    assert len(server.asked) == asked


def test_a_file_that_was_changed_is_noticed_and_fetched_again(server: LocalHub, place: FolderWeights) -> None:
    hub = hub_of(server)
    weights = hub.resolve(REPO, "main")
    fetch(hub, weights, place)
    changed = folder_of(weights, place) / BIG
    with changed.open("r+b") as file:
        file.seek(5000)
        file.write(b"tampered")

    assert hub.missing_bytes(weights, place) == len(FILES[BIG])
    fetch(hub, weights, place)
    assert changed.read_bytes() == FILES[BIG]


def test_files_that_were_put_there_by_hand_are_checked_and_kept(server: LocalHub, place: FolderWeights) -> None:
    hub = hub_of(server)
    weights = hub.resolve(REPO, "main")
    folder = folder_of(weights, place)
    folder.mkdir(parents=True)
    for file in weights.files:
        (folder / file.path).write_bytes(FILES[file.path])

    assert hub.missing_bytes(weights, place) == 0
    fetch(hub, weights, place)
    assert not server.content_requests(BIG)


def test_an_empty_file_and_one_in_a_subfolder(server: LocalHub, place: FolderWeights) -> None:
    server.add("org/odd", {"vae/config.json": b"{}", "merges.txt": b"", "vae/a b+ü.safetensors": bytes(5000)})
    hub = hub_of(server)
    weights = hub.resolve("org/odd", "main")
    fetch(hub, weights, place)
    folder = folder_of(weights, place)
    assert (folder / "merges.txt").read_bytes() == b""
    assert (folder / "vae" / "a b+ü.safetensors").read_bytes() == bytes(5000)


def test_removing_gives_the_space_back_and_leaves_what_is_not_ours(server: LocalHub, place: FolderWeights) -> None:
    hub = hub_of(server)
    weights = hub.resolve(REPO, "main")
    fetch(hub, weights, place)
    foreign = folder_of(weights, place) / "my-notes.txt"
    foreign.write_text("mine")

    assert hub.remove(weights, place) >= weights.size_bytes
    assert list(folder_of(weights, place).iterdir()) == [foreign]
    foreign.unlink()
    fetch(hub, weights, place)
    hub.remove(weights, place)
    assert list(Path(place.folder).iterdir()) == []


# --- a line that breaks


def test_a_line_that_drops_again_and_again_costs_no_byte_twice(server: LocalHub, place: FolderWeights) -> None:
    hub = hub_of(server)
    weights = only(hub.resolve(REPO, "main"), BIG)
    server.fault(BIG, drop=100_000, times=3)
    fetch(hub, weights, place)
    offsets = [asked.first_byte for asked in server.content_requests(BIG)]
    assert len(offsets) == 4
    assert offsets == sorted(offsets)
    assert offsets[-1] >= 200_000
    assert (folder_of(weights, place) / BIG).read_bytes() == FILES[BIG]


def test_a_download_that_was_killed_is_resumed(server: LocalHub, place: FolderWeights) -> None:
    server.fault(BIG, bytes_per_s=200_000)
    hub = hub_of(server)
    weights = only(hub.resolve(REPO, "main"), BIG)
    part = folder_of(weights, place) / f"{BIG}.part"
    child = subprocess.Popen(
        [sys.executable, "-c", _DOWNLOADER, server.endpoint, REPO, place.folder],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        until(lambda: part.exists() and part.stat().st_size > 50_000)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    server.heal()
    kept = part.stat().st_size
    assert hub.missing_bytes(weights, place) == weights.size_bytes - kept

    seen = fetch(hub, weights, place)

    assert server.content_requests(BIG)[-1].headers["range"] == f"bytes={kept}-"
    assert seen[0] == (kept, weights.size_bytes)
    assert (folder_of(weights, place) / BIG).read_bytes() == FILES[BIG]


_DOWNLOADER = """
import sys
from installer.adapters.hub import HuggingFaceHub
from installer.domain.sources import FolderWeights
from installer.steps.cancel import Cancel
endpoint, repo, folder = sys.argv[1:]
hub = HuggingFaceHub(endpoint)
hub.fetch(hub.resolve(repo, "main"), FolderWeights(folder=folder), lambda done, total: None, Cancel())
"""


def test_a_part_with_wrong_bytes_is_found_by_its_checksum(server: LocalHub, place: FolderWeights) -> None:
    hub = hub_of(server)
    weights = only(hub.resolve(REPO, "main"), BIG)
    folder = folder_of(weights, place)
    folder.mkdir(parents=True)
    (folder / f"{BIG}.part").write_bytes(b"\0" * 30_000)
    fetch(hub, weights, place)
    assert [asked.first_byte for asked in server.content_requests(BIG)] == [30_000, 0]
    assert (folder / BIG).read_bytes() == FILES[BIG]


@pytest.mark.parametrize("trouble", ["ignores ranges", "part is longer than the file"])
def test_a_part_that_cannot_be_resumed_starts_over(server: LocalHub, place: FolderWeights, trouble: str) -> None:
    hub = hub_of(server)
    weights = only(hub.resolve(REPO, "main"), BIG)
    folder = folder_of(weights, place)
    folder.mkdir(parents=True)
    if trouble == "ignores ranges":
        server.fault(BIG, ignore_range=True)
        (folder / f"{BIG}.part").write_bytes(FILES[BIG][:40_000])
    else:
        (folder / f"{BIG}.part").write_bytes(FILES[BIG] + b"more")
    seen = fetch(hub, weights, place)
    assert seen == sorted(seen)
    assert (folder / BIG).read_bytes() == FILES[BIG]


def test_a_range_that_the_server_cannot_satisfy_starts_over(server: LocalHub, place: FolderWeights) -> None:
    hub = hub_of(server)
    weights = only(hub.resolve(REPO, "main"), BIG)
    folder = folder_of(weights, place)
    folder.mkdir(parents=True)
    (folder / f"{BIG}.part").write_bytes(FILES[BIG][:40_000])
    server.fault(BIG, status=416, times=1)
    fetch(hub, weights, place)
    assert [asked.first_byte for asked in server.content_requests(BIG)] == [40_000, 0]
    assert (folder / BIG).read_bytes() == FILES[BIG]


def test_a_server_error_and_a_rate_limit_are_waited_out(server: LocalHub, place: FolderWeights) -> None:
    hub = hub_of(server)
    weights = only(hub.resolve(REPO, "main"), BIG, "config.json")
    server.fault(BIG, status=503, times=2)
    server.fault("config.json", status=429, retry_after="1", times=1)
    began = time.monotonic()
    fetch(hub, weights, place)
    assert time.monotonic() - began >= 1
    assert hub.missing_bytes(weights, place) == 0


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"cut": 0}, Truncated),
        ({"drop": 0}, Truncated),
        ({"stall": 1000}, Stalled),
        ({"slow_header_s": 5}, Stalled),
        ({"status": 500}, ServerError),
        ({"status": 403}, ServerError),
        ({"status": 429}, RateLimited),
        ({"status": 429, "retry_after": "86400"}, RateLimited),
        ({"portal": True}, CaptivePortal),
        ({"wrong_bytes": True}, WrongContent),
    ],
    ids=str,
)
def test_trouble_that_does_not_pass_is_named(
    server: LocalHub, place: FolderWeights, fault: dict[str, object], kind: type[Problem]
) -> None:
    hub = hub_of(server, patience=dataclasses.replace(EAGER, stall_s=0.2) if kind is Stalled else EAGER)
    weights = only(hub.resolve(REPO, "main"), BIG)
    server.fault(BIG, **fault)
    with refusal() as problems:
        fetch(hub, weights, place)
    assert isinstance(problems[0], kind)
    assert not (folder_of(weights, place) / BIG).exists()
    if kind is WrongContent:
        assert not (folder_of(weights, place) / f"{BIG}.part").exists()
        assert len(server.content_requests(BIG)) == 2


def test_a_stalled_line_is_left_and_taken_up_again(server: LocalHub, place: FolderWeights) -> None:
    hub = hub_of(server, patience=dataclasses.replace(EAGER, stall_s=1))
    weights = only(hub.resolve(REPO, "main"), BIG)
    server.fault(BIG, stall=80_000, times=1)
    fetch(hub, weights, place)
    assert [asked.first_byte for asked in server.content_requests(BIG)][:2] == [0, 80_000]


def test_a_host_that_is_not_there(place: FolderWeights) -> None:
    hub = HuggingFaceHub(f"http://127.0.0.1:{free_port()}", patience=EAGER)
    with refusal() as problems:
        hub.resolve(REPO, "main")
    assert isinstance(problems[0], Unreachable)
    assert str(errno.ECONNREFUSED) in problems[0].detail


# --- cancelling


@pytest.mark.parametrize("fault", [{"stall": 50_000}, {"slow_header_s": 30}, {"bytes_per_s": 10_000}], ids=str)
def test_a_cancel_ends_a_download_at_once(server: LocalHub, place: FolderWeights, fault: dict[str, object]) -> None:
    hub = hub_of(server, patience=Patience())
    weights = hub.resolve(REPO, "main")
    server.fault(BIG, **fault)
    cancel = Cancel()
    ended: list[bool] = []

    def download() -> None:
        with pytest.raises(Cancelled):
            hub.fetch(weights, place, lambda *_: None, cancel)
        ended.append(True)

    thread = threading.Thread(target=download)
    thread.start()
    until(lambda: bool(server.content_requests(BIG)))
    time.sleep(0.2)
    cancel.set()
    thread.join(AT_ONCE_S)
    assert ended


def test_a_cancel_ends_the_wait_for_a_rate_limit(server: LocalHub, place: FolderWeights) -> None:
    hub = hub_of(server)
    weights = only(hub.resolve(REPO, "main"), BIG)
    server.fault(BIG, status=429, retry_after="300")
    cancel = Cancel()
    threading.Timer(0.3, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        hub.fetch(weights, place, lambda *_: None, cancel)
    assert time.monotonic() - began < AT_ONCE_S


# --- the disk


def test_a_disk_that_is_too_small_is_found_before_the_first_byte(
    server: LocalHub, place: FolderWeights, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = hub_of(server)
    weights = hub.resolve(REPO, "main")
    usage = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with refusal() as problems:
        fetch(hub, weights, place)
    assert problems == [DiskFull(where=place.folder, needed_bytes=weights.size_bytes, free_bytes=1000)]
    assert not server.content_requests(BIG)


@pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid() != 0, reason="mounts a small disk")
def test_a_disk_that_fills_up_on_the_way_says_how_much_is_missing(
    server: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = hub_of(server)
    weights = only(hub.resolve(REPO, "main"), BIG)
    size = len(FILES[BIG]) // 2 // 4096 * 4096
    usage = shutil.disk_usage("/")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(tmp_path)], check=True)
    try:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)  # what another program then took
        with refusal() as problems:
            fetch(hub, weights, FolderWeights(folder=str(tmp_path)))
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)
    problem = problems[0]
    assert isinstance(problem, DiskFull)
    assert problem.where == str(tmp_path)
    assert problem.needed_bytes is not None
    assert len(FILES[BIG]) - size <= problem.needed_bytes < len(FILES[BIG])


def test_a_folder_that_cannot_be_written(server: LocalHub, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    hub = hub_of(server)
    weights = hub.resolve(REPO, "main")
    with refusal() as problems:
        fetch(hub, weights, FolderWeights(folder=str(tmp_path / "file")))
    assert isinstance(problems[0], NotWritable)
    assert not server.content_requests(BIG)

"""The hub against a real server on 127.0.0.1: what is listed, fetched, resumed, refused and never said."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from huggingface_hub import HfApi

from installer.adapters import store
from installer.adapters.download import Patience
from installer.adapters.hub import HuggingFaceHub, clean_token
from installer.domain.problems import (
    AccessNotGranted,
    BadToken,
    Cancelled,
    CaptivePortal,
    DiskFull,
    InstallerError,
    MalformedFile,
    NotWritable,
    Problem,
    RateLimited,
    RepoUnknown,
    ServerError,
    Stalled,
    TokenNeeded,
    Truncated,
    Unreachable,
    WrongContent,
)
from installer.domain.sources import FolderWeights, WeightsSource
from installer.steps.cancel import Cancel
from tests.rig.hub import LocalHub, tiny_checkpoint
from tests.rig.process import free_port

REPO = "org/tiny"
BIG = "model-00001-of-00002.safetensors"
SECRET = "hf_ThisIsTheTokenThatNobodyMaySee"
EAGER = Patience(first_wait_s=0.01, longest_wait_s=0.02, stall_s=0.5, connect_s=2)
FILES = tiny_checkpoint(hidden=128, layers=4)


@pytest.fixture(name="server")
def _server() -> Iterator[LocalHub]:
    with LocalHub() as hub:
        hub.add(REPO, FILES, tags=("v1",))
        yield hub


@pytest.fixture(name="place")
def _place(tmp_path: Path) -> FolderWeights:
    return FolderWeights(folder=str(tmp_path / "models"))


def hub_of(server: LocalHub, token: str | None = None, patience: Patience = EAGER) -> HuggingFaceHub:
    return HuggingFaceHub(server.endpoint, token, patience=patience)


def fetch(hub: HuggingFaceHub, weights: WeightsSource, place: FolderWeights) -> list[tuple[int, int]]:
    seen: list[tuple[int, int]] = []
    hub.fetch(weights, place, lambda done, total: seen.append((done, total)), Cancel())
    return seen


def folder_of(weights: WeightsSource, place: FolderWeights) -> Path:
    return Path(place.folder, weights.folder)


def only(weights: WeightsSource, *paths: str) -> WeightsSource:
    return msgspec.structs.replace(weights, files=tuple(file for file in weights.files if file.path in paths))


@contextlib.contextmanager
def refusal() -> Iterator[list[Problem]]:
    """Expect an InstallerError; its Problem is the list's only item."""
    caught: list[Problem] = []
    with pytest.raises(InstallerError) as raised:
        yield caught
    caught.append(raised.value.problem)


# --- what is listed


def test_the_listing_is_the_one_that_the_hubs_own_library_reads(server: LocalHub) -> None:
    weights = hub_of(server).resolve(REPO, "v1")

    theirs = HfApi(endpoint=server.endpoint).model_info(REPO, revision="v1", files_metadata=True, token=False)
    assert weights.commit == theirs.sha
    assert theirs.siblings is not None
    listed = {
        sibling.rfilename: (sibling.size, sibling.lfs.sha256 if sibling.lfs else None, sibling.blob_id)
        for sibling in theirs.siblings
    }
    for file in weights.files:
        size, sha256, blob_id = listed[file.path]
        assert (file.size_bytes, file.sha256) == (size, sha256)
        assert file.git_blob_id == (None if sha256 else blob_id)
    assert set(listed) - {file.path for file in weights.files} == {"README.md", ".gitattributes"}
    assert weights.checkpoint_bytes == sum(len(FILES[path]) for path in FILES if path.endswith(".safetensors"))


@pytest.mark.parametrize("name", ["../../outside.json", "C:\\outside.json", "a\n.json"])
def test_a_listing_with_a_name_that_leaves_the_folder_is_refused(server: LocalHub, name: str) -> None:
    server.add("org/evil", {**FILES, name: b"{}"})
    with refusal() as problems:
        hub_of(server).resolve("org/evil", "main")
    assert isinstance(problems[0], MalformedFile)
    assert "rfilename" in problems[0].where


def test_a_plan_with_a_name_that_leaves_the_folder_writes_nothing(
    server: LocalHub, place: FolderWeights, tmp_path: Path
) -> None:
    weights = hub_of(server).resolve(REPO, "main")
    file = msgspec.structs.replace(weights.files[0], path="../../../outside.json")
    with refusal() as problems:
        fetch(hub_of(server), msgspec.structs.replace(weights, files=(file,)), place)
    assert isinstance(problems[0], MalformedFile)
    assert not list(tmp_path.rglob("outside*"))


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
        _until(lambda: part.exists() and part.stat().st_size > 50_000)
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
    hub = hub_of(server, patience=dataclasses.replace(EAGER, stall_s=0.2))
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
    hub = hub_of(server)
    weights = only(hub.resolve(REPO, "main"), BIG)
    server.fault(BIG, stall=80_000, times=1)
    fetch(hub, weights, place)
    assert [asked.first_byte for asked in server.content_requests(BIG)] == [0, 80_000]


def test_a_host_that_is_not_there(place: FolderWeights) -> None:
    hub = HuggingFaceHub(f"http://127.0.0.1:{free_port()}", patience=EAGER)
    with refusal() as problems:
        hub.resolve(REPO, "main")
    assert isinstance(problems[0], Unreachable)
    assert str(errno.ECONNREFUSED) in problems[0].detail


# --- cancelling


@pytest.mark.parametrize("fault", [{"stall": 50_000}, {"slow_header_s": 30}, {"bytes_per_s": 20_000}], ids=str)
def test_a_cancel_ends_a_download_at_once(server: LocalHub, place: FolderWeights, fault: dict[str, object]) -> None:
    hub = hub_of(server, patience=Patience())
    weights = hub.resolve(REPO, "main")
    server.fault(BIG, **fault)
    cancel = Cancel()
    ended: list[float] = []

    def download() -> None:
        with pytest.raises(Cancelled):
            hub.fetch(weights, place, lambda *_: None, cancel)
        ended.append(time.monotonic())

    thread = threading.Thread(target=download)
    thread.start()
    _until(lambda: bool(server.content_requests(BIG)))
    time.sleep(0.2)
    began = time.monotonic()
    cancel.set()
    thread.join(5)
    assert ended
    assert ended[0] - began < 1


def test_a_cancel_ends_the_wait_for_a_rate_limit(server: LocalHub, place: FolderWeights) -> None:
    hub = hub_of(server)
    weights = only(hub.resolve(REPO, "main"), BIG)
    server.fault(BIG, status=429, retry_after="300")
    cancel = Cancel()
    threading.Timer(0.3, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        hub.fetch(weights, place, lambda *_: None, cancel)
    assert time.monotonic() - began < 1.3


# --- who may read


@pytest.mark.parametrize(
    ("token", "gated", "expected"),
    [
        (None, True, TokenNeeded(repo="org/closed", had_token=False)),
        ("hf_other", True, AccessNotGranted(repo="org/closed", gated=True)),
        ("hf_other", False, AccessNotGranted(repo="org/closed", gated=False)),
    ],
)
def test_the_three_ways_to_be_kept_out(server: LocalHub, token: str | None, gated: bool, expected: Problem) -> None:
    server.add("org/closed", FILES, token=SECRET, gated=gated)
    with refusal() as problems:
        hub_of(server, token).resolve("org/closed", "main")
    assert problems == [expected]


def test_a_repository_that_is_not_there_looks_like_a_private_one(server: LocalHub) -> None:
    with refusal() as problems:
        hub_of(server, SECRET).resolve("org/nothing", "main")
    assert problems == [TokenNeeded(repo="org/nothing", had_token=True)]


@pytest.mark.parametrize(("repo", "revision"), [(REPO, "v9"), ("../api", "main"), ("a/b/c", "main")])
def test_an_unknown_revision_or_an_impossible_name(server: LocalHub, repo: str, revision: str) -> None:
    with refusal() as problems:
        hub_of(server).resolve(repo, revision)
    assert problems == [RepoUnknown(repo=repo, revision=revision)]


def test_the_token_goes_to_the_hub_and_not_to_the_host_that_it_sends_us_on_to(
    server: LocalHub, place: FolderWeights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login someone password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    server.add("org/closed", FILES, token=SECRET)
    hub = hub_of(server, f"  {SECRET}\r\n")
    weights = hub.resolve("org/closed", "main")
    fetch(hub, weights, place)
    assert {asked.headers.get("authorization") for asked in server.asked if asked.host == "hub"} == {f"Bearer {SECRET}"}
    assert {asked.headers.get("authorization") for asked in server.asked if asked.host == "cdn"} == {None}


def test_the_token_is_in_no_error_no_file_and_no_output(
    server: LocalHub, place: FolderWeights, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    server.add("org/closed", FILES, token=SECRET)
    hub = hub_of(server, SECRET)
    weights = hub.resolve("org/closed", "main")
    server.fault(BIG, status=500)
    with pytest.raises(InstallerError) as raised:
        fetch(hub, weights, place)
    said = [repr(raised.value), repr(raised.value.problem), repr(hub), caplog.text, *capfd.readouterr()]
    written = [path.read_bytes() for path in Path(place.folder).rglob("*") if path.is_file()]
    assert not any(SECRET in text for text in said)
    assert not any(SECRET.encode() in content for content in written)


@pytest.mark.parametrize("token", ["hf_a b", "hf_ä", "hf_a\nhf_b", "hf_\x7f", "“hf_a”"])
def test_a_token_that_cannot_be_one_is_refused_without_repeating_it(server: LocalHub, token: str) -> None:
    with refusal() as problems:
        hub_of(server, token).resolve(REPO, "main")
    assert problems == [BadToken()]
    assert token not in repr(problems[0])
    assert not server.asked


@pytest.mark.parametrize("text", [None, "", " \r\n"])
def test_no_token_is_no_header(server: LocalHub, text: str | None) -> None:
    assert clean_token(text) is None
    hub_of(server, text).resolve(REPO, "main")
    assert "authorization" not in server.asked[0].headers


# --- a network that answers with something else


def test_a_sign_in_page_instead_of_the_listing(server: LocalHub) -> None:
    server.fault(on="api", portal=True)
    with refusal() as problems:
        hub_of(server).resolve(REPO, "main")
    assert isinstance(problems[0], CaptivePortal)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"status": 502}, ServerError),
        ({"status": 429, "retry_after": "7"}, RateLimited),
        ({"status": 511}, CaptivePortal),
    ],
    ids=str,
)
def test_a_listing_that_is_refused(server: LocalHub, fault: dict[str, object], kind: type[Problem]) -> None:
    server.fault(on="api", **fault)
    with refusal() as problems:
        hub_of(server).resolve(REPO, "main")
    assert isinstance(problems[0], kind)
    if isinstance(problems[0], RateLimited):
        assert problems[0].retry_after_s == 7


def test_one_server_error_before_the_listing_is_forgiven(server: LocalHub) -> None:
    server.fault(on="api", status=503, times=1)
    assert hub_of(server).resolve(REPO, "main").files


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


# --- helpers


def _until(ready: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.01)

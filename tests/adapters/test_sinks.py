"""A volume of a real engine, filled through the helper container by the same code as a folder."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from docker import DockerClient

from installer.adapters.hub import HuggingFaceHub
from installer.adapters.sinks import LABEL, OpenFile, Volumes
from installer.domain.problems import Cancelled, DiskFull, EngineLost, InstallerError, MalformedFile
from installer.domain.sources import VolumeWeights
from installer.steps.cancel import Cancel
from tests.rig.engine import PrivateEngine
from tests.rig.hub import LocalHub, tiny_checkpoint
from tests.rig.process import AT_ONCE_S, wait_for
from tests.rig.rig import Rig

FILES = tiny_checkpoint(hidden=128, layers=4)
BIG = "model-00001-of-00002.safetensors"
SECRET = "hf_ThisIsTheTokenThatNobodyMaySee"


@pytest.fixture(name="client")
def _client(rig: Rig) -> Iterator[DockerClient]:
    client = rig.engine.client()
    client.images.pull(rig.images.helper.pinned)
    yield client
    client.close()


@pytest.fixture(name="volumes")
def _volumes(rig: Rig, client: DockerClient) -> Volumes:
    return Volumes(client=lambda: client)


@pytest.fixture(name="place")
def _place(client: DockerClient, rig: Rig) -> Iterator[VolumeWeights]:
    yield VolumeWeights(volume="slipway-weights", helper=rig.images.helper.pinned)
    wait_for(lambda: not _helpers(client), 20, "the end of the helper containers")
    for volume in client.volumes.list():
        volume.remove(force=True)


@pytest.fixture(name="server")
def _server() -> Iterator[LocalHub]:
    with LocalHub() as hub:
        hub.add("org/tiny", FILES, token=SECRET)
        yield hub


def _helpers(client: DockerClient) -> list[object]:
    return list(client.api.containers(all=True, filters={"label": LABEL}))


def test_a_volume_is_filled_like_a_folder(
    server: LocalHub, volumes: Volumes, client: DockerClient, place: VolumeWeights, rig: Rig
) -> None:
    hub = HuggingFaceHub(server.endpoint, SECRET, volumes=volumes)
    weights = hub.resolve("org/tiny", "main")
    assert hub.missing_bytes(weights, place) == weights.size_bytes
    assert not client.volumes.list()

    server.fault(BIG, cut=200_000, times=1)
    seen: list[tuple[int, int]] = []
    hub.fetch(weights, place, lambda done, total: seen.append((done, total)), Cancel())

    assert seen == sorted(seen)
    assert seen[-1] == (weights.size_bytes, weights.size_bytes)
    assert [asked.first_byte for asked in server.content_requests(BIG)] == [0, 200_000]
    assert hub.missing_bytes(weights, place) == 0
    script = f"cd /models/{weights.folder} && sha256sum *.safetensors && grep -rlc {SECRET} /models || true"
    listed = client.containers.run(
        rig.images.helper.pinned, ["sh", "-c", script], volumes={place.volume: {"bind": "/models"}}, remove=True
    ).decode()
    for file in weights.files:
        if file.path.endswith(".safetensors"):
            assert f"{file.sha256}  {file.path}" in listed
    assert len(listed.splitlines()) == 2

    asked = len(server.asked)
    hub.fetch(weights, place, lambda *_: None, Cancel())
    assert len(server.asked) == asked
    assert hub.remove(weights, place) >= weights.size_bytes
    assert hub.missing_bytes(weights, place) == weights.size_bytes


def test_the_token_is_not_in_the_container(
    server: LocalHub, volumes: Volumes, client: DockerClient, place: VolumeWeights
) -> None:
    with volumes.open(place, "org--tiny/commit", Cancel()) as sink:
        sink.write("a.json", b"{}")
        described = [str(container.attrs) for container in client.containers.list(filters={"label": LABEL})]
    assert len(described) == 1
    assert "'NetworkMode': 'none'" in described[0]
    assert SECRET not in described[0]


def test_a_cancel_ends_a_volume_download_at_once_and_the_rest_is_resumed(
    server: LocalHub, volumes: Volumes, place: VolumeWeights
) -> None:
    hub = HuggingFaceHub(server.endpoint, SECRET, volumes=volumes)
    weights = hub.resolve("org/tiny", "main")
    fault = server.fault(BIG, stall=100_000)
    cancel, ended = Cancel(), []

    def download() -> None:
        with pytest.raises(Cancelled):
            hub.fetch(weights, place, lambda *_: None, cancel)
        ended.append(True)

    thread = threading.Thread(target=download)
    thread.start()
    wait_for(lambda: bool(server.content_requests(BIG)), 20, "the download")
    time.sleep(1)
    cancel.set()
    thread.join(AT_ONCE_S)
    assert ended

    fault.times = 0
    missing = hub.missing_bytes(weights, place)
    assert missing < weights.size_bytes
    hub.fetch(weights, place, lambda *_: None, Cancel())
    assert hub.missing_bytes(weights, place) == 0


def test_names_and_errors_come_back_over_the_wire(volumes: Volumes, place: VolumeWeights) -> None:
    with volumes.open(place, "org--tiny/commit", Cancel()) as sink:
        assert sink.free_bytes() > 0
        assert sink.read("nothing.json") == b""
        with pytest.raises(InstallerError) as raised:
            sink.write("../../etc/passwd", b"")
        assert isinstance(raised.value.problem, MalformedFile)


def test_an_engine_that_goes_away_is_named(volumes: Volumes, place: VolumeWeights, client: DockerClient) -> None:
    with volumes.open(place, "org--tiny/commit", Cancel()) as sink:
        sink.write("a.json", b"{}")
        for container in client.containers.list(filters={"label": LABEL}):
            container.kill()
        with pytest.raises(InstallerError) as raised:
            sink.read("a.json")
    assert isinstance(raised.value.problem, EngineLost)


def test_a_slipway_that_was_killed_leaves_no_container(rig: Rig, client: DockerClient, place: VolumeWeights) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, rig.engine.host, rig.images.helper.pinned, place.volume],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    assert _helpers(client)
    child.kill()
    child.communicate()
    wait_for(lambda: not _helpers(client), 20, "the end of the helper container")


_HOLDER = """
import sys, time, docker
from installer.adapters.sinks import Volumes
from installer.domain.sources import VolumeWeights
from installer.steps.cancel import Cancel
host, image, volume = sys.argv[1:]
volumes = Volumes(client=lambda: docker.DockerClient(base_url=host))
with volumes.open(VolumeWeights(volume=volume, helper=image), "org--tiny/commit", Cancel()) as sink:
    sink.write("a.json", b"{}")
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_the_disk_of_the_engine_fills_up(server: LocalHub, rig: Rig) -> None:
    with PrivateEngine(data_root_size_mb=400) as engine:
        client = engine.client()
        client.images.pull(rig.images.helper.pinned)
        volumes = Volumes(client=lambda: client)
        with (
            volumes.open(
                VolumeWeights(volume="weights", helper=rig.images.helper.pinned), "org--tiny/commit", Cancel()
            ) as sink,
            sink.part("big", "sha256", 1 << 40) as part,
        ):
            raised = _fill(part)
        client.close()
    problem = raised.problem
    assert isinstance(problem, DiskFull)
    assert problem.engine
    assert problem.where == "weights"


def _fill(part: OpenFile) -> InstallerError:
    for _ in range(1000):
        try:
            part.append(bytes(16 << 20))
        except InstallerError as error:
            return error
    raise AssertionError("the disk did not fill up")

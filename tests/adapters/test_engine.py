"""The engine's adapter against a real Docker Engine and a real registry; other states over small fake sockets."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from installer.adapters import helper_probe
from installer.adapters.engine import DockerEngine
from installer.adapters.engine_images import anchor_of
from installer.adapters.engine_probe import reading_of
from installer.domain.facts import CudaMemory, EngineState
from installer.domain.problems import (
    Cancelled,
    DigestGone,
    DiskFull,
    EngineDown,
    EngineLost,
    EngineNoPermission,
    EngineTimedOut,
    GpuNotInContainer,
    NoSuchPlatform,
    NvidiaToolkitMissing,
    Stalled,
    UnknownName,
    Unreachable,
)
from installer.domain.sources import ImageSource
from installer.steps.cancel import Cancel
from tests.rig import images
from tests.rig.engine import PrivateEngine
from tests.rig.images import push_helper, push_standin
from tests.rig.images.layers import compile_c
from tests.rig.process import wait_for
from tests.rig.rig import Rig
from tests.rig.throttle import Throttle

from .engine_kit import GPU, Reports, problem_in, source, use

NOBODY = Reports()
OTHER = "GPU-aaaaaaaa-2222-3333-4444-555555555555"


@pytest.fixture
def engine(private_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch) -> DockerEngine:
    use(private_engine, monkeypatch)
    return DockerEngine()


def fresh(rig: Rig, name: str, ballast: tuple[int, ...] = (400_000, 200_000)) -> ImageSource:
    """An image with layers that no engine has."""
    return source(rig.registry, push_standin(rig.registry, namespace=name, salt=name, ballast=ballast))


# --- facts ---------------------------------------------------------------------------------------------------------


def test_a_running_engine_tells_what_it_is(engine: DockerEngine, private_engine: PrivateEngine) -> None:
    facts = engine.facts()
    assert (facts.state, facts.endpoint, facts.context) == (EngineState.RUNNING, private_engine.host, "default")
    assert (facts.os_type, facts.docker_desktop, facts.rootless) == ("linux", False, False)
    assert tuple(int(part) for part in facts.api_version.split(".")) >= (1, 41)
    assert "runc" in facts.runtimes
    assert facts.memory_bytes is not None and facts.memory_bytes > 1 << 30
    assert facts.data_root == str(private_engine.data_root)
    assert facts.data_root_free_bytes is not None and facts.data_root_free_bytes > 1 << 20


def test_a_context_is_followed_to_its_engine(private_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # fmt: skip
    use(private_engine, monkeypatch)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    (tmp_path / "config.json").write_text("{}")
    make = ["docker", "context", "create", "there", "--docker", f"host={private_engine.host}"]
    subprocess.run(make, check=True, capture_output=True)
    named = DockerEngine("there").facts()
    assert (named.state, named.context, named.endpoint) == (EngineState.RUNNING, "there", private_engine.host)
    assert DockerEngine().facts().endpoint == "unix:///nowhere/docker.sock"  # DOCKER_HOST wins, as in Docker's own CLI
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setenv("DOCKER_CONTEXT", "there")
    assert DockerEngine().facts().context == "there"
    monkeypatch.delenv("DOCKER_CONTEXT")
    (tmp_path / "config.json").write_text('{"currentContext": "there"}')
    assert DockerEngine().facts().endpoint == private_engine.host
    problem = problem_in(lambda: DockerEngine("gone").containers("x"))
    assert isinstance(problem, UnknownName)
    assert "there" in problem.known
    assert DockerEngine("gone").facts().state is EngineState.FAILED


Answer = Callable[[str], bytes | None]


@contextlib.contextmanager
def fake_engine(path: Path, answer: Answer) -> Iterator[str]:
    """A unix socket that answers each request with a JSON body, or, for None, never."""
    held: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while request := connection.recv(65536):
                body = answer(request.split(b" ")[1].decode())
                if body is None:
                    return
                head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                held.append(connection)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    listener = socket.socket(socket.AF_UNIX)
    with listener:
        listener.bind(str(path))
        listener.listen()
        threading.Thread(target=accept, daemon=True).start()
        yield f"unix://{path}"
        listener.shutdown(socket.SHUT_RDWR)
    for connection in held:
        connection.close()


PODMAN = {
    "Version": "4.9.3",
    "ApiVersion": "1.41",
    "Components": [{"Name": "Podman Engine", "Version": "4.9.3", "Details": {}}],
}
DESKTOP = {"OperatingSystem": "Docker Desktop", "OSType": "linux", "KernelVersion": "6.6.87.2-microsoft-standard-WSL2"}
NEW_ENGINE = {
    "OperatingSystem": "Ubuntu 26.04",
    "OSType": "linux",
    "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"],
    "CDISpecDirs": ["/etc/cdi"],
    "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=all"}],
}


def answering(info: dict[str, object], version: dict[str, object]) -> Answer:
    return lambda path: json.dumps(info if path.endswith("/info") else version).encode()


def test_podman_is_not_taken_for_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_engine(tmp_path / "s", answering({}, PODMAN)) as url:
        monkeypatch.setenv("DOCKER_HOST", url)
        facts = DockerEngine().facts()
    assert (facts.state, facts.version, facts.endpoint) == (EngineState.PODMAN, "4.9.3", url)


def test_what_newer_engines_and_docker_desktop_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version: dict[str, object] = {"Version": "29.1.0", "ApiVersion": "1.52", "Components": [{"Name": "Engine"}]}
    with fake_engine(tmp_path / "s", answering(NEW_ENGINE, version)) as url:
        monkeypatch.setenv("DOCKER_HOST", url)
        rootless = DockerEngine().facts()
    assert (rootless.rootless, rootless.cdi_devices, rootless.nvidia_ready) == (True, ("nvidia.com/gpu=all",), True)
    with fake_engine(tmp_path / "d", answering({**DESKTOP, "DockerRootDir": "/"}, version)) as url:
        monkeypatch.setenv("DOCKER_HOST", url)
        desktop = DockerEngine().facts()
    assert (desktop.docker_desktop, desktop.nvidia_ready) == (True, True)
    assert desktop.data_root_free_bytes is None  # its disk is the virtual machine's, not this one's


def test_an_engine_that_takes_the_connection_and_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    with fake_engine(tmp_path / "s", lambda _: None) as url:
        monkeypatch.setenv("DOCKER_HOST", url)
        began = time.monotonic()
        assert DockerEngine(timeout_s=0.3).facts().state is EngineState.TIMED_OUT
        assert time.monotonic() - began < 2


def test_no_socket_is_down_where_docker_is_installed_and_not_installed_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert DockerEngine().facts().state is EngineState.DOWN
    assert isinstance(problem_in(lambda: DockerEngine().containers("x")), EngineDown)
    (tmp_path / "docker").unlink()
    assert DockerEngine().facts().state is EngineState.NOT_INSTALLED


def test_a_socket_that_nobody_serves_any_more_is_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(tmp_path / "s"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/s")
    monkeypatch.setattr("installer.adapters.engine_facts.docker_program", lambda: "/usr/bin/docker")
    assert DockerEngine().facts().state is EngineState.DOWN


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_a_socket_that_refuses_this_user_is_no_permission(private_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    use(private_engine, monkeypatch)
    monkeypatch.setenv("DOCKER_CONFIG", "/nonexistent")
    DockerEngine().facts()  # whatever has to be imported is, before root's files cannot be read any more
    os.seteuid(65534)
    try:
        state = DockerEngine().facts().state
        problem = problem_in(lambda: DockerEngine().containers("x"))
    finally:
        os.seteuid(0)
    assert state is EngineState.NO_PERMISSION
    assert problem == EngineNoPermission(endpoint=private_engine.host)


def test_the_docker_library_is_not_imported_before_an_engine_is_asked() -> None:
    script = "import sys, installer.adapters.engine, installer.adapters.stack; print('docker' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- pull ----------------------------------------------------------------------------------------------------------


def test_a_pull_reports_every_byte_once_and_the_digest_is_there_afterwards(engine: DockerEngine, rig: Rig) -> None:
    with Throttle(rig.registry.port, rate=4_000_000) as slow:
        pushed = push_standin(rig.registry, namespace="bytes", salt="bytes", ballast=(1_500_000, 700_000))
        image = source(rig.registry, pushed, slow.address)
        assert not engine.has_image(image)
        reports = Reports()
        engine.pull(image, reports, Cancel())
    assert engine.has_image(image)
    assert {total for _, total in reports.seen} == {image.size_bytes}
    assert all(earlier[0] <= later[0] for earlier, later in pairwise(reports.seen))
    assert (reports.seen[0][0], reports.seen[-1][0]) == (0, image.size_bytes)
    assert len({done for done, _ in reports.seen}) > 5, "the bar moved, and did not only jump"


def test_pulling_what_is_there_ends_full_and_fetches_nothing(engine: DockerEngine, rig: Rig) -> None:
    image = fresh(rig, "again")
    engine.pull(image, NOBODY, Cancel())
    rig.registry.clear_log()
    reports = Reports()
    engine.pull(image, reports, Cancel())
    assert reports.seen[-1] == (image.size_bytes, image.size_bytes)
    assert rig.registry.blob_requests("again/vllm/vllm-openai") == []


def test_the_anchor_holds_the_image_through_a_prune(engine: DockerEngine, rig: Rig, private_engine: PrivateEngine) -> None:  # fmt: skip
    image = fresh(rig, "anchored")
    engine.pull(image, NOBODY, Cancel())
    prune = ["docker", "image", "prune", "--force"]
    subprocess.run(prune, env=private_engine.env, check=True, capture_output=True)
    assert engine.has_image(image)
    assert anchor_of(image) == f"slipway.local/anchored/vllm/vllm-openai:v0.33.0-{image.index_digest[7:19]}"


def test_removing_an_image_takes_its_anchor_along_and_says_what_it_freed(engine: DockerEngine, rig: Rig) -> None:
    image = fresh(rig, "removed")
    engine.pull(image, NOBODY, Cancel())
    assert engine.remove_image(image) > 600_000
    assert not engine.has_image(image)
    assert engine.remove_image(image) == 0


def test_an_image_that_carries_the_publishers_tag_goes_as_a_whole(engine: DockerEngine, rig: Rig, private_engine: PrivateEngine) -> None:  # fmt: skip
    image = fresh(rig, "tagged")
    engine.pull(image, NOBODY, Cancel())
    with contextlib.closing(private_engine.client()) as client:
        assert image.by_tag not in client.images.get(image.by_digest).tags
        engine.tag(image)
        assert image.by_tag in client.images.get(image.by_digest).tags
    assert engine.remove_image(image) > 0
    assert not engine.has_image(image)


def test_a_tag_that_a_person_gave_an_image_stays_theirs(engine: DockerEngine, rig: Rig, private_engine: PrivateEngine) -> None:  # fmt: skip
    image = fresh(rig, "theirs")
    engine.pull(image, NOBODY, Cancel())
    with contextlib.closing(private_engine.client()) as client:
        client.images.get(image.by_digest).tag("my/own", "name")
        assert engine.remove_image(image) == 0
        assert client.images.get("my/own:name").tags == ["my/own:name"]


def test_another_digest_under_the_same_tag_is_another_image(engine: DockerEngine, rig: Rig) -> None:
    image = fresh(rig, "moved")
    engine.pull(image, NOBODY, Cancel())
    newer = source(rig.registry, push_standin(rig.registry, namespace="moved", salt="newer", ballast=(1000,)))
    assert newer.tag == image.tag
    assert engine.has_image(image) and not engine.has_image(newer)


def test_a_pull_is_cancelled_at_once_and_the_engine_stops_fetching(engine: DockerEngine, rig: Rig) -> None:
    pushed = push_standin(rig.registry, namespace="cancel", salt="cancel", ballast=(4_000_000,))
    with Throttle(rig.registry.port, rate=400_000) as slow:
        image = source(rig.registry, pushed, slow.address)
        cancel, pressed = Cancel(), []

        def press() -> None:
            pressed.append(time.monotonic())
            threading.Thread(target=cancel.set).start()

        with pytest.raises(Cancelled):
            engine.pull(image, Reports(mark=300_000, passed=press), cancel)
        assert time.monotonic() - pressed[0] < 1
        wait_for(lambda: slow.open_connections == 0, 10, "the engine to let go of the registry")
    assert not engine.has_image(image)


@pytest.mark.parametrize("stage", ["before the manifest came", "in a layer"])
def test_a_stalled_pull_is_cancelled_at_once(engine: DockerEngine, rig: Rig, stage: str) -> None:
    name = f"stall{len(stage)}"
    pushed = push_standin(rig.registry, namespace=name, salt=name, ballast=(3_000_000,))
    with Throttle(rig.registry.port, rate=1_000_000) as line:
        image = source(rig.registry, pushed, line.address)
        cancel = Cancel()
        if stage == "in a layer":
            reports = Reports(mark=100_000, passed=lambda: (line.stall(), threading.Timer(0.5, cancel.set).start()))
        else:
            line.stall()
            threading.Timer(0.5, cancel.set).start()
            reports = Reports()
        began = time.monotonic()
        with pytest.raises(Cancelled):
            engine.pull(image, reports, cancel)
        assert time.monotonic() - began < 2.5


def test_a_pull_that_stands_still_is_given_up(engine: DockerEngine, rig: Rig) -> None:
    pushed = push_standin(rig.registry, namespace="quiet", salt="quiet", ballast=(2_000_000,))
    with Throttle(rig.registry.port, rate=1_000_000) as line:
        image = source(rig.registry, pushed, line.address)
        reports = Reports(mark=100_000, passed=line.stall)
        problem = problem_in(lambda: DockerEngine(stall_s=1).pull(image, reports, Cancel()))
    assert problem == Stalled(what=image.repository, seconds=1)


def test_a_digest_that_the_registry_lost_is_named_with_its_tag(engine: DockerEngine, rig: Rig) -> None:
    image = fresh(rig, "gone")
    rig.registry.delete_manifest("gone/vllm/vllm-openai", image.index_digest)
    problem = problem_in(lambda: engine.pull(image, NOBODY, Cancel()))
    assert problem == DigestGone(image=image.repository, digest=image.index_digest, tag="v0.33.0")


def test_an_image_for_other_processors_only_is_refused(engine: DockerEngine, rig: Rig) -> None:
    from msgspec.structs import replace

    image = replace(fresh(rig, "riscv"), platform="linux/riscv64")
    problem = problem_in(lambda: engine.pull(image, NOBODY, Cancel()))
    assert isinstance(problem, NoSuchPlatform)
    assert problem.platform == "linux/riscv64"


def test_a_registry_that_is_not_there_is_unreachable(engine: DockerEngine, rig: Rig) -> None:
    from msgspec.structs import replace

    image = replace(fresh(rig, "nowhere"), repository="127.0.0.1:9/nowhere/vllm")
    problem = problem_in(lambda: engine.pull(image, NOBODY, Cancel()))
    assert isinstance(problem, Unreachable)
    assert problem.host == "127.0.0.1:9"


def test_a_missing_credential_helper_does_not_stop_a_public_pull(engine: DockerEngine, rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    (tmp_path / "config.json").write_text('{"credsStore": "desktop.exe"}')
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    image = fresh(rig, "credentials")
    engine.pull(image, NOBODY, Cancel())
    assert engine.has_image(image)


def test_a_full_data_root_is_named_with_what_is_left(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    image = fresh(rig, "full", ballast=(30_000_000, 30_000_000))
    with PrivateEngine(data_root_size_mb=40) as small:
        use(small, monkeypatch)
        problem = problem_in(lambda: DockerEngine().pull(image, NOBODY, Cancel()))
        assert isinstance(problem, DiskFull)
        assert (problem.where, problem.engine) == (str(small.data_root), True)
        assert problem.free_bytes is not None and problem.free_bytes < 40 << 20


@pytest.mark.parametrize("end", [PrivateEngine.kill, PrivateEngine.halt], ids=["killed", "stopped"])
def test_an_engine_that_goes_away_in_a_pull_is_lost(rig: Rig, monkeypatch: pytest.MonkeyPatch, end: Callable[[PrivateEngine], None]) -> None:  # fmt: skip
    name = f"lost-{end.__name__}"
    pushed = push_standin(rig.registry, namespace=name, salt=name, ballast=(4_000_000,))
    with PrivateEngine() as mortal, Throttle(rig.registry.port, rate=500_000) as slow:
        use(mortal, monkeypatch)
        image = source(rig.registry, pushed, slow.address)
        reports = Reports(mark=200_000, passed=lambda: threading.Thread(target=end, args=(mortal,)).start())
        problem = problem_in(lambda: DockerEngine().pull(image, reports, Cancel()))
    assert isinstance(problem, EngineLost)
    assert problem.operation == "pull"


# --- probe ---------------------------------------------------------------------------------------------------------


def helper(rig: Rig, name: str, **stub: str) -> ImageSource:
    return source(rig.registry, push_helper(rig.registry, namespace=name, env=stub))


def no_probe_left(private_engine: PrivateEngine) -> bool:
    with contextlib.closing(private_engine.client()) as client:
        return client.containers.list(all=True, filters={"label": "app.slipway.role=probe"}) == []


def test_the_probe_reads_cudas_memory_and_the_engines_disk(engine: DockerEngine, rig: Rig, private_engine: PrivateEngine) -> None:  # fmt: skip
    image = helper(rig, "reads", STUB_CUDA_FREE_BYTES="30123456789", STUB_CUDA_TOTAL_BYTES="33665843200")
    reading = engine.probe(image, GPU, Cancel())
    assert reading.cuda == CudaMemory(total_bytes=33_665_843_200, free_bytes=30_123_456_789)
    disk = os.statvfs(private_engine.data_root)
    assert abs(reading.data_root_free_bytes - disk.f_bavail * disk.f_frsize) < 1 << 30
    assert no_probe_left(private_engine)
    assert engine.has_image(image)


def test_without_a_card_the_probe_reads_the_disk_alone(engine: DockerEngine, rig: Rig) -> None:
    reading = engine.probe(helper(rig, "disk"), None, Cancel())
    assert reading.cuda is None
    assert reading.data_root_free_bytes > 0


@pytest.mark.parametrize("code", [100, 804])
def test_cudas_own_error_code_is_kept(engine: DockerEngine, rig: Rig, private_engine: PrivateEngine, code: int) -> None:
    image = helper(rig, f"code{code}", STUB_CUDA_INIT_ERROR=str(code))
    problem = problem_in(lambda: engine.probe(image, GPU, Cancel()))
    assert problem == GpuNotInContainer(gpu=GPU, cuda_error=code, detail="cuInit")
    assert no_probe_left(private_engine)


@pytest.mark.parametrize(
    ("there", "found"), [((OTHER, GPU), True), ((OTHER, OTHER.replace("a", "b")), False), ((OTHER,), True)]
)
def test_among_several_cards_the_one_with_the_uuid_counts(needs_root: None, tmp_path: Path, there: tuple[str, ...], found: bool) -> None:  # fmt: skip
    compile_c([Path(images.__file__).parent / "helper/libcuda.c"], tmp_path / "libcuda.so.1", "-shared", "-fPIC")
    environment = {"LD_LIBRARY_PATH": str(tmp_path), "NVIDIA_VISIBLE_DEVICES": ",".join(there)}
    command = [sys.executable, helper_probe.__file__, GPU]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    if found:
        assert reading_of(done.returncode, done.stdout, done.stderr, GPU).cuda is not None
    else:
        problem = problem_in(lambda: reading_of(done.returncode, done.stdout, done.stderr, GPU))
        assert problem == GpuNotInContainer(gpu=GPU, cuda_error=None, detail="cuDeviceGet")


def test_an_engine_without_nvidias_toolkit_says_so(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    with PrivateEngine(nvidia=False) as plain:
        use(plain, monkeypatch)
        image = helper(rig, "plain")
        problem = problem_in(lambda: DockerEngine().probe(image, GPU, Cancel()))
        assert isinstance(problem, NvidiaToolkitMissing)
        assert "runc" in problem.runtimes and not problem.docker_desktop
        assert no_probe_left(plain)
        assert DockerEngine().probe(image, None, Cancel()).cuda is None


def test_a_probe_that_hangs_is_ended_and_removed(engine: DockerEngine, rig: Rig, private_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr("installer.adapters.engine_probe._source", lambda: "import time; time.sleep(600)")
    problem = problem_in(lambda: DockerEngine(probe_s=1).probe(helper(rig, "disk"), GPU, Cancel()))
    assert problem == EngineTimedOut(endpoint=private_engine.host, seconds=1)
    assert no_probe_left(private_engine)
    cancel = Cancel()
    threading.Timer(1, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        engine.probe(helper(rig, "disk"), GPU, cancel)
    assert time.monotonic() - began < 3
    assert no_probe_left(private_engine)

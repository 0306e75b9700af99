"""What an engine tells of itself: a real one, and small fake sockets for what no machine here has."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from installer.adapters.engine import DockerEngine
from installer.domain.facts import EngineState, Proxy
from installer.domain.problems import (
    EngineDown,
    EngineNoPermission,
    UnknownName,
)
from tests.rig.engine import PrivateEngine
from tests.rig.process import AT_ONCE_S

from .engine_kit import problem_in, use


@pytest.fixture
def engine(private_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch) -> DockerEngine:
    use(private_engine, monkeypatch)
    return DockerEngine()


def test_a_running_engine_tells_what_it_is(engine: DockerEngine, private_engine: PrivateEngine) -> None:
    facts = engine.facts()
    assert (facts.state, facts.endpoint, facts.context) == (EngineState.RUNNING, private_engine.host, "default")
    assert (facts.os_type, facts.docker_desktop, facts.rootless) == ("linux", False, False)
    assert tuple(int(part) for part in facts.api_version.split(".")) >= (1, 41)
    assert "runc" in facts.runtimes
    assert facts.memory_bytes is not None
    assert facts.memory_bytes > 1 << 30
    assert facts.data_root == str(private_engine.data_root)
    assert facts.data_root_free_bytes is not None
    assert facts.data_root_free_bytes > 1 << 20


def test_a_context_is_followed_to_its_engine(
    private_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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


def answering(info: Mapping[str, object], version: Mapping[str, object]) -> Answer:
    return lambda path: json.dumps(info if path.endswith("/info") else version).encode()


def test_podman_is_not_taken_for_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_engine(tmp_path / "s", answering({}, PODMAN)) as url:
        monkeypatch.setenv("DOCKER_HOST", url)
        facts = DockerEngine().facts()
    assert (facts.state, facts.version, facts.endpoint) == (EngineState.PODMAN, "4.9.3", url)


def test_what_newer_engines_and_docker_desktop_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = {"Version": "29.1.0", "ApiVersion": "1.52", "Components": [{"Name": "Engine"}]}
    with fake_engine(tmp_path / "s", answering(NEW_ENGINE, version)) as url:
        monkeypatch.setenv("DOCKER_HOST", url)
        rootless = DockerEngine().facts()
    assert (rootless.rootless, rootless.cdi_devices, rootless.nvidia_ready) == (True, ("nvidia.com/gpu=all",), True)
    with fake_engine(tmp_path / "d", answering({**DESKTOP, "DockerRootDir": "/"}, version)) as url:
        monkeypatch.setenv("DOCKER_HOST", url)
        desktop = DockerEngine().facts()
    assert (desktop.docker_desktop, desktop.nvidia_ready) == (True, True)
    assert desktop.data_root_free_bytes is None  # its disk is the virtual machine's, not this one's


def test_an_engine_that_takes_the_connection_and_says_nothing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_engine(tmp_path / "s", lambda _: None) as url:
        monkeypatch.setenv("DOCKER_HOST", url)
        began = time.monotonic()
        assert DockerEngine(timeout_s=0.3).facts().state is EngineState.TIMED_OUT
        assert time.monotonic() - began < AT_ONCE_S


def test_no_socket_is_down_where_docker_is_installed_and_not_installed_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_a_socket_that_refuses_this_user_is_no_permission(
    private_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_the_engines_own_proxy_is_told_without_its_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = {**DESKTOP, "HttpProxy": "http://user:secret@proxy.corp:3128", "HttpsProxy": "", "NoProxy": "localhost"}

    def answer(path: str) -> bytes:
        return json.dumps(info if path.endswith("/info") else {"Version": "29.1.3", "ApiVersion": "1.52"}).encode()

    with fake_engine(tmp_path / "s", answer) as host:
        monkeypatch.setenv("DOCKER_HOST", host)
        seen = DockerEngine().facts().proxy
    assert seen == Proxy(http="http://proxy.corp:3128", no_proxy="localhost", reaches_loopback=False)

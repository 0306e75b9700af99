"""A real Docker Engine of our own: Debian's dockerd, started by hand, that touches no other engine on the machine."""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Self

import docker

from .process import RigError, end, require, short_temp_dir, tail, wait_for

_HOOK = "nvidia-container-runtime-hook"


class PrivateEngine:
    """One dockerd with its own socket, data, containerd, bridge and address pool.

    ``nvidia=True`` puts an executable ``nvidia-container-runtime-hook`` before dockerd's PATH; that is all that the
    engine looks for before it accepts a GPU request, so ``--gpus`` and Compose's reservation run without a GPU.
    ``data_root_size_mb`` puts the data root on a tmpfs of that size, for tests of a full disk.

    Published ports work on 127.0.0.1 only (docker-proxy serves them): the engine is told to leave the host's packet
    filter alone, because a second dockerd would otherwise flush the chains of the first.
    """

    def __init__(self, *, nvidia: bool = True, data_root_size_mb: int | None = None) -> None:
        self._root = short_temp_dir("eng")
        self._nvidia = nvidia
        self._tmpfs_mb = data_root_size_mb
        self._bridge = f"slw{secrets.token_hex(4)}"
        self._process: subprocess.Popen[bytes] | None = None
        self.log = self._root / "dockerd.log"
        self.data_root = self._root / "d"
        self._exec_root = self._root / "x"
        self._pid_file = self._root / "pid"
        self._socket = self._root / "s"
        self._network = _free_network()

    @property
    def host(self) -> str:
        """The engine's address, as DOCKER_HOST wants it."""
        return f"unix://{self._socket}"

    @property
    def env(self) -> dict[str, str]:
        """This process's environment with this engine as the Docker host and an empty client configuration."""
        cleaned = {key: value for key, value in os.environ.items() if not key.startswith(("DOCKER_", "COMPOSE_"))}
        return {**cleaned, "DOCKER_HOST": self.host, "DOCKER_CONFIG": str(self._root / "cfg")}

    @property
    def hook_folder(self) -> Path:
        """Where the hook lies: on a PATH that has it, NVIDIA's toolkit is installed beside this engine."""
        return self._root / "bin"

    @property
    def running(self) -> bool:
        """Whether dockerd is alive."""
        return self._process is not None and self._process.poll() is None

    def answers(self) -> bool:
        """Whether the engine replies to a ping."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(5)
            try:
                probe.connect(str(self._socket))
                probe.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
                return b" 200 " in probe.recv(64)
            except OSError:
                return False

    def client(self, timeout: int = 60) -> docker.DockerClient:
        """A docker-py client for this engine; close it when done."""
        return docker.DockerClient(base_url=self.host, timeout=timeout)

    def start(self) -> Self:
        """Start dockerd and wait until it answers."""
        if os.geteuid() != 0:
            raise RigError("a private Docker Engine needs root")
        atexit.register(self.stop)
        for folder in (self.data_root, self._exec_root, self._root / "cfg", self._root / "bin"):
            folder.mkdir(exist_ok=True)
        (self._root / "daemon.json").write_text("{}\n")  # a machine-wide daemon.json is not for us
        if self._nvidia:
            hook = self._root / "bin" / _HOOK
            hook.write_text("#!/bin/sh\nexit 0\n")
            hook.chmod(0o755)
        if self._tmpfs_mb and not os.path.ismount(self.data_root):
            _run("mount", "-t", "tmpfs", "-o", f"size={self._tmpfs_mb}m", "tmpfs", str(self.data_root))
        self._add_bridge()
        self._spawn()
        return self

    def kill(self) -> None:
        """SIGKILL, as a crash: the socket stays behind, and the containers live on without an engine."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._end_containerd()

    def halt(self) -> None:
        """Stop dockerd as ``systemctl stop docker`` does; data and images stay for ``restart``."""
        end(self._process, 30)

    def restart(self) -> None:
        """Start dockerd again over the same data, after ``kill``, ``halt`` or while it runs."""
        self.halt()
        self._spawn()

    def stop(self) -> None:
        """Remove all containers, end the engine and leave nothing behind.  May be called twice."""
        atexit.unregister(self.stop)
        if not self._root.exists():
            return
        with contextlib.suppress(Exception):
            if not self.running:
                self._spawn()  # a killed engine leaves containers running; only it can end them cleanly
            self._sweep()
        end(self._process, 30)
        self._end_containerd()
        self._process = None
        self._remove_bridges()
        _unmount_below(self._root)
        shutil.rmtree(self._root, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _spawn(self) -> None:
        self._socket.unlink(missing_ok=True)
        self._pid_file.unlink(missing_ok=True)
        command = [
            require("dockerd", "docker.io"),
            f"--host={self.host}",
            f"--data-root={self.data_root}",
            f"--exec-root={self._exec_root}",
            f"--pidfile={self._pid_file}",
            f"--bridge={self._bridge}",
            f"--default-address-pool=base={self._network}.128.0/17,size=24",
            "--iptables=false",
            "--ip6tables=false",
            "--shutdown-timeout=5",
            f"--config-file={self._root / 'daemon.json'}",
        ]
        path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"
        if self._nvidia:
            path = f"{self._root / 'bin'}:{path}"
        elif shutil.which(_HOOK, path=path):
            raise RigError(f"{_HOOK} is on the PATH: this machine cannot show an engine without it")
        environment = {key: value for key, value in os.environ.items() if "PROXY" not in key.upper()}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env={**environment, "PATH": path}, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        try:
            wait_for(self.answers, 30, "dockerd", lambda: self.running)
        except RigError as error:
            raise RigError(f"{error}\n{tail(self.log)}") from None

    def _sweep(self) -> None:
        client = self.client(timeout=20)
        try:
            for container in client.containers.list(all=True):
                container.remove(force=True, v=True)
            client.networks.prune()
        finally:
            client.close()

    def _end_containerd(self) -> None:
        """containerd dies with dockerd; but where PID 1 reaps late its pid still answers and dockerd would wait."""
        pid_file = self._exec_root / "containerd" / "containerd.pid"
        with contextlib.suppress(OSError, ValueError):
            pid = int(pid_file.read_text())
            pid_file.unlink()
            if str(self._exec_root).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)

    def _add_bridge(self) -> None:
        ip = require("ip", "iproute2")
        _run(ip, "link", "add", self._bridge, "type", "bridge")
        _run(ip, "addr", "add", f"{self._network}.0.1/17", "dev", self._bridge)
        _run(ip, "link", "set", self._bridge, "up")

    def _remove_bridges(self) -> None:
        ip = require("ip", "iproute2")
        listed = subprocess.run([ip, "-o", "-4", "addr"], capture_output=True, text=True, check=False).stdout
        ours = {line.split()[1] for line in listed.splitlines() if f" {self._network}." in line}
        for link in ours:
            subprocess.run([ip, "link", "del", link], capture_output=True, check=False)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RigError(f"{' '.join(command)}: {done.stderr.strip()}")


def _free_network() -> str:
    """Two octets of a 10.x/16 that no interface of this machine has, so that engines do not share addresses."""
    ip = require("ip", "iproute2")
    taken = subprocess.run([ip, "-o", "-4", "addr"], capture_output=True, text=True, check=False).stdout
    while True:
        network = f"10.{100 + secrets.randbelow(150)}"
        if f" {network}." not in taken:
            return network


def _unmount_below(root: Path) -> None:
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((m for m in mounts if m.startswith(f"{root}/")), key=len, reverse=True):
        subprocess.run(["umount", "-l", mount], capture_output=True, check=False)

"""Servers that other people wrote, each in an environment that `make proof` builds, and who of them really answered."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from tests.builders import ROOT
from tests.rig.process import RigError, end, free_port, tail, wait_for

START_SECONDS = 600.0
PROOF_SECONDS = 900.0
MODEL = "slipway/tiny"
VLLM = "vllm.entrypoints.openai.api_server"
TRANSFORMERS = "transformers.cli.transformers"
"""What the program `transformers` runs, and can be run where the package lies in a folder of its own."""
LISTENS = "0A"
"""The state of a listening socket in /proc/net/tcp, in the kernel's numbers."""


@dataclass(frozen=True)
class Served:
    """A server that runs: its process, where it listens, and what it has logged."""

    process: int
    port: int
    log: Path

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class Proof:
    """What `slipway smoke --endpoint` said of a server: its exit code, and every check by its name."""

    code: int
    checks: dict[str, dict[str, Any]]

    @property
    def failed(self) -> dict[str, str]:
        return {name: check["detail"] for name, check in self.checks.items() if check["outcome"] == "failed"}


def proof_of(base: str, *given: str) -> Proof:
    """Let the command line prove the server at this address. Raises RigError where it tells no report."""
    command = [sys.executable, "-m", "installer", "smoke", "--endpoint", base, "--json", *given]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PROOF_SECONDS)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    reports = [event["report"] for event in events if event.get("event") == "proved"]
    if not reports:
        raise RigError(f"no report, exit code {done.returncode}: {done.stdout}{done.stderr}")
    return Proof(done.returncode, {check["name"]: check for check in reports[-1]["checks"]})


def environment(name: str) -> Path | None:
    """The Python of an environment that `make proof` builds, or None where it was not built."""
    python = Path(os.environ.get("SLIPWAY_PROOF_ENVIRONMENTS", ROOT)) / name / "bin" / "python"
    return python if python.exists() else None


def tiny_model(python: Path, folder: Path, *, taught: bool = True) -> Path:
    """Write the tiny model with the torch of this Python; teaching it takes a few minutes."""
    given = [] if taught else ["--untrained"]
    command = ["nice", str(python), "-m", "tests.proof.tiny_model", str(folder), *given]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RigError(f"no model: {done.stderr[-2000:]}")
    return folder


def taught_model(python: Path) -> Path:
    """The tiny model that knows the answers; kept for the next run until a question or its making changes."""
    asks = sorted((ROOT / "installer" / "steps" / "smoke").glob("*.py"))
    texts = [path.read_bytes() for path in (ROOT / "tests" / "proof" / "tiny_model.py", *asks)]
    kept = ROOT / ".cache" / "proof" / hashlib.sha256(b"".join(texts)).hexdigest()[:16]
    if not kept.exists():
        draft = kept.with_name(f"{kept.name}-{os.getpid()}")
        tiny_model(python, draft).rename(kept)
    return kept


def transformers_command(python: Path, port: int, device: str) -> list[str]:
    """The command line of `transformers serve` with the model in its cache, see `in_hub_cache`."""
    return [
        str(python), "-m", TRANSFORMERS, "serve", MODEL, "--host", "127.0.0.1", "--port", str(port), "--device", device,
        "--log-level", "info",
    ]  # fmt: skip


def in_hub_cache(model: Path, home: Path) -> dict[str, str]:
    """Put a model where Hugging Face's library keeps what it has downloaded; return the environment that finds it."""
    kept = home / "hub" / f"models--{MODEL.replace('/', '--')}"
    commit = "1" * 40
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text(commit)
    shutil.copytree(model, kept / "snapshots" / commit)
    return {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1"}


@contextmanager
def transformers_serve(python: Path, model: Path, home: Path, *, device: str = "cpu") -> Iterator[Served]:
    """Serve a model with `transformers serve` until the end of the block."""
    port = free_port()
    found = in_hub_cache(model, home)
    with started(transformers_command(python, port, device), port, home / "serve.log", found) as served:
        yield served


@contextmanager
def started(command: Sequence[str], port: int, log: Path, environment: Mapping[str, str]) -> Iterator[Served]:
    """Start a server, wait until it is healthy, and end it afterwards. Raises RigError with the end of its log."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["nice", *command],
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=os.environ | dict(environment),
        )
    try:
        wait_for(
            lambda: _healthy(port), START_SECONDS, " ".join(command[1:3]), lambda: process.poll() is None, every=0.5
        )
        yield Served(process.pid, port, log)
    except RigError as error:
        raise RigError(f"{error}\n{tail(log)}") from error
    finally:
        end(process)


def owner_of(port: int) -> int:
    """The process that listens on this port of this computer, as the kernel says."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    (inode,) = {row[9] for row in rows if row[3] == LISTENS and int(row[1].split(":")[1], 16) == port}
    (owner,) = {int(link.parts[2]) for link in _descriptors() if _leads_to(link, f"socket:[{inode}]")}
    return owner


def command_of(process: int) -> list[str]:
    """The command line of a process."""
    return Path(f"/proc/{process}/cmdline").read_text().rstrip("\0").split("\0")


def libraries_of(process: int) -> set[str]:
    """The files that a process has mapped into its memory."""
    lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    return {line.split(maxsplit=5)[5] for line in lines if "/" in line}


def _descriptors() -> Iterator[Path]:
    return Path("/proc").glob("[0-9]*/fd/*")


def _leads_to(link: Path, target: str) -> bool:
    try:
        return str(link.readlink()) == target
    except OSError:
        return False


def _healthy(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/health", timeout=5).status_code == 200
    except requests.RequestException:
        return False

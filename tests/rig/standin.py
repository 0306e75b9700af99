"""The stand-in for vLLM as a process of this computer: what needs no container is tried in milliseconds."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import requests

from installer.domain.addresses import own_server
from tests.rig.images.layers import HERE, compile_c
from tests.rig.process import AT_ONCE_S, RigError, free_port, wait_for

MODEL = "small-model"


@functools.cache
def program() -> Path:
    """Compile it once per run."""
    folder = Path(tempfile.mkdtemp(prefix="slw-standin-"))
    compile_c(sorted((HERE / "standin").glob("*.c")), folder / "vllm", "-pthread")
    return folder / "vllm"


@dataclass(frozen=True)
class Standin:
    """One that serves."""

    base: str
    log_file: Path
    process: subprocess.Popen[bytes]

    def log(self) -> str:
        """What it has written so far."""
        return self.log_file.read_text("utf-8", "replace")


@contextlib.contextmanager
def standin(
    folder: Path, *arguments: str, fail: str = "", context: int = 8192, key: str = "", template_bytes: int = 0
) -> Iterator[Standin]:
    """Start one with these arguments beside its own, wait until it serves, and end it."""
    port = free_port()
    own = ("--served-model-name", MODEL, "--host", "127.0.0.1", "--port", str(port), "--max-model-len", str(context))
    switches = {"STANDIN_FAIL": fail, "STANDIN_TEMPLATE_BYTES": str(template_bytes)}
    environment = os.environ | {"STANDIN_LOAD_SECONDS": "0", "VLLM_API_KEY": key} | switches
    file = folder / f"standin-{port}.log"
    with file.open("wb") as out:
        command = [str(program()), "serve", "org/model", *own, *arguments]
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    served = Standin(own_server(port), file, process)
    try:
        wait_for(lambda: _answers(served), AT_ONCE_S, "the stand-in")
        yield served
    finally:
        process.kill()
        process.wait()


def _answers(served: Standin) -> bool:
    if served.process.poll() is not None:
        raise RigError(served.log())
    with contextlib.suppress(requests.ConnectionError), requests.Session() as session:
        session.trust_env = False
        return session.get(f"{served.base}/version", timeout=AT_ONCE_S).ok
    return False

"""A whole world for the command line: private engine, registry, hub and graphics driver, and Slipway as a process."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import docker
import msgspec

from installer.domain.problems import AnyProblem
from installer.text import Text
from tests.adapters.engine_kit import add_compose
from tests.builders import ROOT
from tests.rig.checkpoint import tiny_checkpoint
from tests.rig.hub import LocalHub
from tests.rig.process import free_port
from tests.rig.rig import Rig

ANSWERS = ROOT / "tests" / "answers" / "5090.json"
MODEL = "nvidia/Qwen3.6-27B-NVFP4"
TOKEN = "hf_plantedSecretTokenForTheTest"
KEY = "planted-secret-key-for-the-test"
VERIFIED = ".slipway-verified.json"
QUICK = "quick"
"""The namespace of images whose stand-in loads at once."""


@dataclass
class Ended:
    """A process of Slipway that ended."""

    code: int
    events: list[dict[str, Any]]
    stderr: str
    seconds: float = 0.0
    stdout: str = ""

    def named(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("event") == name]

    def steps(self, name: str) -> list[str]:
        return [event["step"] for event in self.named(name)]

    @property
    def problem(self) -> dict[str, Any]:
        problems = [event["problem"] for event in self.events if event.get("problem")]
        assert problems, (self.code, self.stderr, self.events[-3:])
        return problems[-1]


@dataclass
class World:
    """One home on the rig. `namespace` chooses the variant of the images."""

    rig: Rig
    hub: LocalHub
    home: Path
    nvml: Mapping[str, str]
    namespace: str = ""
    extra: dict[str, str] = field(default_factory=dict)
    registry: Path | None = None
    """Another registry than the built-in one."""
    port: int | None = None
    """A port that is asked for; without one Slipway chooses."""

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        return {
            **inherited,
            **{name: self.nvml[name] for name in ("LD_LIBRARY_PATH", "STUB_NVML_FILE")},
            **self.rig.engine.env,
            "PATH": f"{self.rig.engine.hook_folder}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home.parent),
            "SLIPWAY_HOME": str(self.home),
            "SLIPWAY_REGISTRY_MIRROR": self.rig.mirror(self.namespace),
            "HF_ENDPOINT": self.hub.endpoint,
            "SLIPWAY_DEBUG": "1",
            **self.extra,
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return start(arguments, self.environment)

    def slipway(self, *arguments: str, timeout: float = 120) -> Ended:
        return slipway(arguments, self.environment, timeout=timeout)

    def install(self, *more: str, stdin: str = "") -> Ended:
        return slipway(self.installing(*more), self.environment, stdin=stdin)

    def installing(self, *more: str) -> tuple[str, ...]:
        """The command line of an installation."""
        registry = ("--registry", str(self.registry)) if self.registry else ()
        port = ("--port", str(self.port)) if self.port else ()
        return ("install", "--answers", str(ANSWERS), "--yes", "--json", *registry, *port, *more)

    def containers(self) -> list[Any]:
        with closing(docker.DockerClient(base_url=self.rig.engine.host)) as client:
            found = client.containers.list(all=True, filters={"label": "com.docker.compose.project=slipway-chat"})
            return [container.attrs for container in found]

    def all_containers(self) -> list[Any]:
        """Every container of the engine, whoever made it."""
        with closing(docker.DockerClient(base_url=self.rig.engine.host)) as client:
            return [container.attrs for container in client.containers.list(all=True)]

    def half_written(self, models: Path | None = None, *, killed: bool = False) -> list[str]:
        """Everything in the home that is not whole: drafts, files that cannot be read, weights with wrong bytes.

        A process that was killed may leave a draft, and a compose file without its hash.
        """
        files = [path for path in self.home.rglob("*") if path.is_file()]
        if killed:
            files = [path for path in files if not path.name.startswith(".") and path.suffix != ".yml"]
        wrong = [str(path) for path in files if not _is_whole(path)]
        for path in (models or self.home / "models").rglob("*"):
            kept = path.name.endswith(".part") or path.name == VERIFIED
            if path.is_file() and not kept and path.read_bytes() != checkpoint().get(path.name):
                wrong.append(str(path))
        return wrong

    def holders_of(self, secret: str) -> list[str]:
        """Files of the home that hold a secret, but for the private env file."""
        files = [path for path in self.home.rglob("*") if path.is_file() and path.name != "vllm.env"]
        return [str(path) for path in files if secret.encode() in path.read_bytes()]

    def stop_all(self) -> None:
        """Remove every container and volume; images stay."""
        with closing(docker.DockerClient(base_url=self.rig.engine.host)) as client:
            for container in client.containers.list(all=True):
                container.remove(force=True, v=True)
            for volume in client.volumes.list():
                volume.remove(force=True)
            for network in client.networks.list(names=["slipway-"]):
                network.remove()

    def forget_image(self) -> None:
        """Remove the images of the server, so that the next run pulls them; the helper's stays."""
        with closing(docker.DockerClient(base_url=self.rig.engine.host)) as client:
            for image in client.images.list():
                if any("vllm" in name for name in (*image.tags, *(image.attrs["RepoDigests"] or ()))):
                    client.images.remove(str(image.id), force=True)

    def clean(self) -> None:
        """Remove every container, volume and image, so that the next test pulls for real."""
        self.stop_all()
        with closing(docker.DockerClient(base_url=self.rig.engine.host)) as client:
            for image in client.images.list(all=True):
                client.images.remove(str(image.id), force=True)


def made_world(rig: Rig, hub: LocalHub, driver: dict[str, str], folder: Path, registry: Path | None) -> World:
    """A home on a rig, with secrets planted."""
    add_compose(Path(rig.engine.env["DOCKER_CONFIG"]))
    made = World(rig, hub, folder / "Jürgen Müller" / "slipway", driver, namespace=QUICK, registry=registry)
    made.port = free_port()
    made.extra = {"HF_TOKEN": TOKEN, "SLIPWAY_API_KEY": KEY}
    made.home.parent.mkdir()
    return made


def at_once(failure: str = "") -> dict[str, str]:
    """The environment of a stand-in that does not take its time, and fails if it shall."""
    return {"STANDIN_LOAD_SECONDS": "0.1"} | ({"STANDIN_FAIL": failure} if failure else {})


def watched(world: World, watch: Callable[[dict[str, Any], subprocess.Popen[str]], object], *more: str) -> Ended:
    """Install, and let `watch` do something at an event."""
    process = world.start(*world.installing(*more))
    assert process.stdout is not None
    assert process.stderr is not None
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            watch(json.loads(line), process)
        said = process.stderr.read()
        code = process.wait(60)
    finally:
        process.kill()
        process.communicate()
    return Ended(code, [json.loads(line) for line in lines], said, stdout="".join(lines))


@cache
def checkpoint() -> Mapping[str, bytes]:
    """The files of the model that the hub of these tests serves."""
    return tiny_checkpoint(hidden=128)


def _is_whole(path: Path) -> bool:
    """Say whether a file of the home is no draft, and can be read if it is JSON or YAML."""
    if path.name.startswith(".") and not path.name.endswith(".sha256") and path.name != VERIFIED:
        return False
    try:
        if path.suffix == ".json":
            json.loads(path.read_bytes())
        elif path.suffix == ".jsonl":
            [json.loads(line) for line in path.read_bytes().splitlines()]
        elif path.suffix == ".yml":
            written = path.with_name(f".{path.name}.sha256").read_text().strip()
            return hashlib.sha256(path.read_bytes()).hexdigest() == written
    except (ValueError, FileNotFoundError):
        return False
    return True


def quick_registry(folder: Path) -> Path:
    """The built-in registry without health programs: the host asks, which is quicker than Docker's own interval."""
    shutil.copytree(ROOT / "installer" / "registry", folder)
    images = folder / "images.yaml"
    text, changed = re.subn(r"(?m)^(\s+health:).*$", r"\1 null", images.read_text("utf-8"))
    assert changed
    images.write_text(text, "utf-8")
    return folder


def start(arguments: Iterable[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start Slipway; what it says is read as UTF-8, whatever this machine's locale is."""
    return subprocess.Popen(
        [sys.executable, "-m", "installer", *arguments],
        cwd=ROOT,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def slipway(
    arguments: Iterable[str], environment: Mapping[str, str], *, stdin: str = "", timeout: float = 120
) -> Ended:
    """Run Slipway to its end."""
    began = time.monotonic()
    process = start(arguments, environment)
    try:
        out, err = process.communicate(stdin, timeout=timeout)
    finally:
        process.kill()
    return Ended(process.returncode, parse(out), err, time.monotonic() - began, out)


def words(problem: Mapping[str, Any]) -> list[str]:
    """Title, sentence and remedy of a problem that was told as JSON, in English and in German."""
    spoken = ("family", "exit_code", "advice", "title", "sentence", "remedy", "command")
    value = msgspec.convert({name: problem[name] for name in problem if name not in spoken}, type=AnyProblem)
    said = [Text(language).problem(value) for language in ("en", "de")]
    return [part for one in said for part in (one.title, one.sentence, one.remedy)]


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content, every folder with none."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"" for p in sorted(folder.rglob("*"))}


def parse(out: str) -> list[dict[str, Any]]:
    """Read JSON lines; what is no line of JSON (one document over many lines) is read whole; words are nothing."""
    try:
        return [json.loads(line) for line in out.splitlines() if line.strip()]
    except json.JSONDecodeError:
        pass
    try:
        document = json.loads(out)
    except json.JSONDecodeError:
        return []
    return document if isinstance(document, list) else [document]

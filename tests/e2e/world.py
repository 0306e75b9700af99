"""A whole world for the command line: private engine, registry, hub and graphics driver, and Slipway as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker

from tests.builders import ROOT
from tests.rig.hub import LocalHub
from tests.rig.rig import Rig

ANSWERS = ROOT / "tests" / "answers" / "5090.json"
MODEL = "nvidia/Qwen3.6-27B-NVFP4"
TOKEN = "hf_plantedSecretTokenForTheTest"
KEY = "planted-secret-key-for-the-test"


@dataclass
class Ended:
    """A process of Slipway that ended."""

    code: int
    events: list[dict[str, Any]]
    stderr: str
    seconds: float = 0.0

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
        command = [sys.executable, "-m", "installer", *arguments]
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def slipway(self, *arguments: str, timeout: float = 120) -> Ended:
        import time

        began = time.monotonic()
        process = self.start(*arguments)
        out, err = process.communicate(timeout=timeout)
        return Ended(process.returncode, parse(out), err, time.monotonic() - began)

    def install(self, *more: str) -> Ended:
        return self.slipway("install", "--answers", str(ANSWERS), "--yes", "--json", *more)

    def containers(self) -> list[Any]:
        with closing(docker.DockerClient(base_url=self.rig.engine.host)) as client:
            found = client.containers.list(all=True, filters={"label": "com.docker.compose.project=slipway-chat"})
            return [container.attrs for container in found]

    def clean(self) -> None:
        """Remove every container, volume and image, so that the next test pulls for real."""
        with closing(docker.DockerClient(base_url=self.rig.engine.host)) as client:
            for container in client.containers.list(all=True):
                container.remove(force=True, v=True)
            for volume in client.volumes.list():
                volume.remove(force=True)
            for network in client.networks.list(names=["slipway-"]):
                network.remove()
            for image in client.images.list(all=True):
                client.images.remove(str(image.id), force=True)


def parse(out: str) -> list[dict[str, Any]]:
    """Read JSON lines; what is no line of JSON (one document over many lines) is read whole."""
    try:
        return [json.loads(line) for line in out.splitlines() if line.strip()]
    except json.JSONDecodeError:
        document = json.loads(out)
        return document if isinstance(document, list) else [document]

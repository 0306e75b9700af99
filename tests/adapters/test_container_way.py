"""A real container fetches the clip from this computer; one that cannot says what stands in between."""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from installer import resources
from installer.adapters import container_way
from installer.adapters.engine import DockerEngine
from installer.adapters.media import VideoFiles
from installer.domain.addresses import HOST_IN_CONTAINER
from installer.domain.problems import HostNotReached, InstallerError
from installer.resources import PROOF_CLIP
from installer.steps.cancel import Cancel
from tests.rig.engine import PrivateEngine
from tests.rig.images import push_helper
from tests.rig.rig import Rig

from .engine_kit import source, use

SLEEP = "import time; time.sleep(60)"
FILES = VideoFiles()
CLIP = FILES.read(str(resources.file("assets", *PROOF_CLIP)))


@dataclass(frozen=True)
class Containers:
    """Two that run the same: one knows this computer by name, as the compose file makes it, and one does not."""

    client: Any
    knowing: str
    ignorant: str


@pytest.fixture
def containers(rig: Rig, private_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Containers]:
    use(private_engine, monkeypatch)
    image = source(rig.registry, push_helper(rig.registry, namespace="way"))
    DockerEngine().pull(image, lambda _, __: None, Cancel())
    with contextlib.closing(private_engine.client()) as client:
        made = [
            client.containers.run(image.by_digest, ["-c", SLEEP], entrypoint="python3", detach=True, extra_hosts=known)
            for known in ({HOST_IN_CONTAINER: "host-gateway"}, {})
        ]
        yield Containers(client.api, *(str(one.id) for one in made))
        for one in made:
            one.remove(force=True)


def refusal(container: str) -> HostNotReached:
    with pytest.raises(InstallerError) as raised, FILES.offered(CLIP, container, Cancel()):
        pass
    problem = raised.value.problem
    assert isinstance(problem, HostNotReached)
    return problem


def test_the_container_fetches_the_clip_byte_for_byte(containers: Containers) -> None:
    with FILES.offered(CLIP, containers.knowing, Cancel()) as url:
        script = "import hashlib as h, sys; from urllib.request import urlopen as o; "
        script += "print(h.sha256(o(sys.argv[1]).read()).hexdigest())"
        made = containers.client.exec_create(containers.knowing, ["python3", "-c", script, url])
        seen = containers.client.exec_start(made["Id"]).decode().strip()
        _, _, data = FILES.inline(CLIP).partition(",")
    assert seen == hashlib.sha256(base64.b64decode(data)).hexdigest()


def test_what_stands_in_between_is_told_apart(containers: Containers, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = refusal(containers.ignorant)
    assert (unknown.tried, unknown.address) == (True, "")
    assert "gaierror" in unknown.detail
    monkeypatch.setattr(container_way, "host_address", lambda _: "127.0.0.1")
    blocked = refusal(containers.knowing)
    assert blocked.tried
    assert blocked.address.startswith("127.0.0.1:")
    assert not refusal("0" * 64).tried

"""From nothing to a served model on a real engine, by the command line alone: one installation, looked at from all
sides, with the registry that is shipped.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator

import pytest
import requests
import yaml

from installer.steps import smoke
from tests.e2e.world import KEY, MODEL, TOKEN, Ended, World, checkpoint, made_world
from tests.rig.hub import LocalHub
from tests.rig.nvml import UUID
from tests.rig.rig import Rig

IMAGE = "vllm/vllm-openai"
INSTALL_STEPS = ["probe", "image", "weights", "files", "gate", "start", "smoke"]


@pytest.fixture(scope="module")
def world(rig: Rig, driver: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with LocalHub() as hub:
        hub.add(MODEL, checkpoint())
        made = made_world(rig, hub, driver, tmp_path_factory.mktemp("proof"), registry=None)
        made.namespace = ""
        made.clean()
        yield made
        made.clean()


@pytest.fixture(scope="module")
def first(world: World) -> Ended:
    """The first run, from nothing."""
    run = world.install()
    assert run.code == 0, run.stderr
    return run


def test_an_installation_ends_with_a_proof_and_a_healthy_container(world: World, first: Ended) -> None:
    assert first.events[-1]["outcome"] == "ok"
    assert sorted(first.steps("finished")) == sorted(INSTALL_STEPS)
    (proved,) = first.named("proved")
    outcomes = {check["name"]: check["outcome"] for check in proved["report"]["checks"]}
    assert list(outcomes) == [name for name, _ in smoke.CHECKS]
    assert {name for name, outcome in outcomes.items() if outcome != "passed"} == {"kernel"}
    assert "65536" in proved["report"]["checks"][1]["figure"]

    (container,) = world.containers()
    assert container["State"]["Health"]["Status"] == "healthy"
    (request,) = container["HostConfig"]["DeviceRequests"]
    assert request["DeviceIDs"] == [UUID]
    digest = container["Config"]["Labels"]["app.slipway.image-digest"]
    assert container["Config"]["Image"].endswith(f"@{digest}")
    assert {b["HostIp"] for binds in container["HostConfig"]["PortBindings"].values() for b in binds} == {"127.0.0.1"}


def test_a_second_run_has_nothing_to_do(world: World, first: Ended) -> None:
    (container,) = world.containers()
    world.rig.registry.clear_log()
    second = world.install()
    assert second.code == 0, second.stderr
    assert second.steps("skipped") == INSTALL_STEPS
    assert second.steps("started") == []
    assert second.seconds < first.seconds
    assert world.rig.registry.blob_requests(IMAGE) == []
    assert [c["Id"] for c in world.containers()] == [container["Id"]]


def test_progress_of_both_downloads_reaches_its_total(first: Ended) -> None:
    for step in ("image", "weights"):
        reported = [(e["done"], e["total"]) for e in first.named("progress") if e["step"] == step]
        assert reported == sorted(reported)
        assert reported[-1][0] == reported[-1][1] > 0


def test_no_secret_is_anywhere_but_in_the_private_env_file(world: World, first: Ended) -> None:
    env_file = world.home / "chat" / "vllm.env"
    assert stat.S_IMODE(env_file.stat().st_mode) == 0o600
    assert KEY in env_file.read_text()
    for secret in (TOKEN, KEY):
        assert secret not in first.stdout + first.stderr
        assert world.holders_of(secret) == []
    assert any(asked.headers.get("authorization", "").endswith(TOKEN) for asked in world.hub.asked)


def test_the_served_model_answers_with_the_key_and_not_without(world: World, first: Ended) -> None:
    compose = yaml.safe_load((world.home / "chat" / "docker-compose.vllm.yml").read_text())
    port = compose["services"]["server"]["ports"][0].split(":")[1]
    url = f"http://127.0.0.1:{port}/v1/models"
    assert requests.get(url, timeout=5).status_code == 401
    answer = requests.get(url, timeout=5, headers={"Authorization": f"Bearer {KEY}"})
    assert answer.json()["data"][0]["max_model_len"] == 65536


def test_the_hub_s_model_is_the_one_of_the_registry(world: World, first: Ended) -> None:
    asked = {one.path.split("/resolve/")[0].strip("/") for one in world.hub.asked if "/resolve/" in one.path}
    assert asked == {MODEL}

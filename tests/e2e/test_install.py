"""From nothing to a served model on a real engine, by the command line alone."""

from __future__ import annotations

import stat

import pytest
import requests
import yaml

from tests.e2e.world import KEY, MODEL, TOKEN, World

IMAGE = "vllm/vllm-openai"
INSTALL_STEPS = ["probe", "image", "weights", "files", "gate", "start", "smoke"]


def test_an_installation_ends_with_a_proof_and_a_healthy_container_and_a_second_run_has_nothing_to_do(world: World):
    first = world.install()
    assert first.code == 0, first.stderr
    assert first.events[-1]["outcome"] == "ok"
    assert sorted(first.steps("finished")) == sorted(INSTALL_STEPS)
    (proved,) = first.named("proved")
    assert [(c["name"], c["outcome"]) for c in proved["report"]["checks"]] == [
        ("health", "passed"),
        ("models", "passed"),
        ("completion", "passed"),
    ]
    assert "65536" in proved["report"]["checks"][1]["figure"]

    (container,) = world.containers()
    assert container["State"]["Health"]["Status"] == "healthy"
    (request,) = container["HostConfig"]["DeviceRequests"]
    assert request["DeviceIDs"] == [world_uuid()]
    digest = container["Config"]["Labels"]["app.slipway.image-digest"]
    assert container["Config"]["Image"].endswith(f"@{digest}")
    assert {b["HostIp"] for binds in container["HostConfig"]["PortBindings"].values() for b in binds} == {"127.0.0.1"}

    world.rig.registry.clear_log()
    second = world.install()
    assert second.code == 0, second.stderr
    assert second.steps("skipped") == INSTALL_STEPS
    assert second.steps("started") == []
    assert second.seconds < first.seconds
    assert world.rig.registry.blob_requests(IMAGE) == []
    assert [c["Id"] for c in world.containers()] == [container["Id"]]


def world_uuid() -> str:
    from tests.rig.nvml import UUID

    return UUID


def test_progress_of_both_downloads_reaches_its_total(world: World):
    run = world.install()
    for step in ("image", "weights"):
        reported = [(e["done"], e["total"]) for e in run.named("progress") if e["step"] == step]
        assert reported == sorted(reported)
        assert reported[-1][0] == reported[-1][1] > 0


def test_too_little_memory_in_the_container_stops_before_a_layer_of_the_big_image_is_asked_for(world: World):
    world.namespace = "too-little"
    world.rig.variant(world.namespace, helper={"STUB_CUDA_FREE_BYTES": str(6 << 30)})
    world.rig.registry.clear_log()
    run = world.install()
    assert run.code == 10
    assert run.problem["kind"] == "not_enough_free_memory"
    assert run.problem["free_bytes"] == 6 << 30
    assert world.rig.registry.blob_requests(f"{world.namespace}/library/python") != []
    # The configuration of an image is a blob as well, and is read when its sources are resolved.
    layers = set(world.rig.registry.blob_requests(f"{world.namespace}/{IMAGE}"))
    assert len(layers) <= 1
    assert world.containers() == []


def test_no_secret_is_anywhere_but_in_the_private_env_file(world: World):
    world.extra = {"HF_TOKEN": TOKEN, "SLIPWAY_API_KEY": KEY}
    run = world.install()
    assert run.code == 0, run.stderr
    env_file = world.home / "chat" / "vllm.env"
    assert stat.S_IMODE(env_file.stat().st_mode) == 0o600
    assert KEY in env_file.read_text()
    said = "".join(map(str, run.events)) + run.stderr
    for secret in (TOKEN, KEY):
        assert secret not in said
        holders = [
            p for p in world.home.rglob("*") if p.is_file() and p != env_file and secret.encode() in p.read_bytes()
        ]
        assert holders == []
    assert any(asked.headers.get("authorization", "").endswith(TOKEN) for asked in world.hub.asked)


def test_the_served_model_answers_with_the_key_and_not_without(world: World):
    world.extra = {"SLIPWAY_API_KEY": KEY}
    world.install()
    compose = yaml.safe_load((world.home / "chat" / "docker-compose.vllm.yml").read_text())
    port = compose["services"]["server"]["ports"][0].split(":")[1]
    url = f"http://127.0.0.1:{port}/v1/models"
    assert requests.get(url, timeout=5).status_code == 401
    answer = requests.get(url, timeout=5, headers={"Authorization": f"Bearer {KEY}"})
    assert answer.json()["data"][0]["max_model_len"] == 65536


def test_a_rolling_tag_is_followed_only_where_the_person_wants_it(world: World):
    run = world.install("--docker-image-pin-digest", "")
    assert run.code == 0, run.stderr
    (container,) = world.containers()
    assert container["Config"]["Image"] == f"{world.rig.mirror()}/{IMAGE}:v0.33.0"


class TestLadder:
    def test_a_cache_that_is_too_small_is_mended_by_a_shorter_context_and_said(self, world: World):
        world.namespace = "kv-too-small"
        world.rig.variant(world.namespace, standin={"STANDIN_FAIL": "kv_too_small:34736"})
        run = world.install()
        assert run.code == 0, run.stderr
        changes = [e["notice"]["change"] for e in run.named("notice") if e["notice"]["note"] == "relaxed"]
        assert [(c["field"], c["old"], c["new"]) for c in changes] == [("context", "65536", "32768")]

    def test_a_chosen_context_is_not_shortened_silently(self, world: World):
        world.namespace = "kv-too-small-chosen"
        world.rig.variant(world.namespace, standin={"STANDIN_FAIL": "kv_too_small:34736"})
        run = world.install("--context", "60000")
        assert (run.code, run.problem["kind"]) == (50, "relax_refused")
        assert run.problem["possible"] == "32768"
        assert world.containers() == []

    def test_graphs_that_do_not_fit_are_given_up(self, world: World):
        world.namespace = "graph-oom"
        world.rig.variant(world.namespace, standin={"STANDIN_FAIL": "graph_oom"})
        run = world.install()
        assert run.code == 0, run.stderr
        changes = [e["notice"]["change"]["field"] for e in run.named("notice") if e["notice"]["note"] == "relaxed"]
        assert changes == ["graph_sizes", "enforce_eager"]


@pytest.mark.parametrize(
    ("failure", "code", "kind"),
    [
        ("exit", 50, "container_exited"),
        ("killed", 50, "container_killed"),
        ("never_healthy", 50, "never_healthy"),
        ("no_cache_blocks", 50, "no_cache_blocks"),
        ("wrong_word", 60, "smoke_failed"),
        ("empty_content", 60, "smoke_failed"),
        ("wrong_length", 60, "smoke_failed"),
        ("http_500", 60, "smoke_failed"),
    ],
)
def test_a_server_that_fails_is_named_and_nothing_large_is_lost(world: World, failure: str, code: int, kind: str):
    world.namespace = failure.replace("_", "-")
    world.rig.variant(world.namespace, standin={"STANDIN_FAIL": failure})
    run = world.install("--patience", "12")
    assert (run.code, run.problem["kind"]) == (code, kind), run.stderr
    assert run.problem["sentence"]
    assert run.problem["remedy"]
    again = world.install("--patience", "12")
    assert {"image", "weights"} <= set(again.steps("skipped"))


def test_look_after_it_status_stop_start_smoke_logs_uninstall(world: World):
    assert world.install().code == 0
    assert world.slipway("status", "--json").events[0]["state"] == "serving"
    assert world.slipway("stop", "--json").code == 0
    assert world.slipway("status", "--json").events[0]["state"] == "stopped"
    world.rig.registry.clear_log()
    assert world.slipway("start", "--json").code == 0
    assert world.rig.registry.blob_requests(IMAGE) == []
    assert world.slipway("smoke", "--json").named("proved")
    removed = world.slipway("uninstall", "--yes", "--json")
    assert removed.code == 0, removed.stderr
    assert world.containers() == []
    assert not (world.home / "chat").exists()
    assert list(world.home.rglob("*.safetensors")) == []
    gone = world.slipway("status", "--json")
    assert (gone.code, gone.problem["kind"]) == (2, "not_installed")


def test_weights_and_image_stay_if_the_person_wants_to_keep_them(world: World):
    assert world.install().code == 0
    assert world.slipway("uninstall", "--yes", "--json", "--keep-weights", "--keep-image").code == 0
    assert list(world.home.rglob("*.safetensors"))
    again = world.install()
    assert {"image", "weights"} <= set(again.steps("skipped"))


def test_a_file_that_a_person_edited_is_not_overwritten_silently(world: World):
    assert world.install().code == 0
    file = world.home / "chat" / "docker-compose.vllm.yml"
    edited = file.read_text() + "# mine\n"
    file.write_text(edited)
    refused = world.install()
    assert (refused.code, refused.problem["kind"]) == (2, "edited_by_hand")
    assert "# mine" in refused.problem["diff"]
    assert file.read_text() == edited
    assert world.install("--overwrite").code == 0
    assert "# mine" not in file.read_text()
    assert any("# mine" in backup.read_text() for backup in file.parent.glob("*.bak"))


def test_the_hub_s_model_is_the_one_of_the_registry(world: World):
    world.install()
    assert {asked.path.split("/resolve/")[0].strip("/") for asked in world.hub.asked if "/resolve/" in asked.path} == {
        MODEL
    }

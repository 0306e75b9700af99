"""What may come of an installation on a real engine besides a proof, and looking after one that is there."""

from __future__ import annotations

import signal
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.e2e.world import KEY, QUICK, World, at_once, slipway, watched
from tests.rig.images import Images

IMAGE = "vllm/vllm-openai"


def variant(world: World, namespace: str, failure: str = "", salt: str = "", **helper: str) -> Images:
    """Choose images that fail in a certain way."""
    world.namespace = namespace
    return world.rig.variant(namespace, standin=at_once(failure), helper=helper, salt=salt)


def relaxed(world: World) -> list[dict[str, Any]]:
    run = world.install()
    assert run.code == 0, run.stderr
    return [e["notice"]["change"] for e in run.named("notice") if e["notice"]["note"] == "relaxed"]


def test_too_little_memory_in_the_container_stops_before_a_layer_of_the_big_image_is_asked_for(world: World):
    variant(world, "too-little", salt="too-little", STUB_CUDA_FREE_BYTES=str(6 << 30))
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


def test_a_rolling_tag_is_followed_only_where_the_person_wants_it(world: World):
    run = world.install("--docker-image-pin-digest", "")
    assert run.code == 0, run.stderr
    (container,) = world.containers()
    assert container["Config"]["Image"] == f"{world.rig.mirror(QUICK)}/{IMAGE}:v0.33.0"


class TestLadder:
    def test_a_cache_that_is_too_small_is_mended_by_a_shorter_context_and_said(self, world: World):
        variant(world, "kv-too-small", "kv_too_small:34736")
        changes = relaxed(world)
        assert [(c["field"], c["old"], c["new"]) for c in changes] == [("context", "65536", "32768")]

    def test_a_chosen_context_is_not_shortened_silently(self, world: World):
        variant(world, "kv-too-small-chosen", "kv_too_small:34736")
        run = world.install("--context", "60000")
        assert (run.code, run.problem["kind"]) == (50, "relax_refused")
        assert run.problem["possible"] == "32768"
        assert world.containers() == []

    def test_graphs_that_do_not_fit_are_given_up(self, world: World):
        variant(world, "graph-oom", "graph_oom")
        assert [change["field"] for change in relaxed(world)] == ["graph_sizes", "enforce_eager"]


@pytest.mark.parametrize(
    ("failure", "code", "kind", "patience"),
    [
        ("exit", 50, "container_exited", "60"),
        ("killed", 50, "container_killed", "60"),
        ("never_healthy", 50, "never_healthy", "2"),
        ("no_cache_blocks", 50, "no_cache_blocks", "60"),
        ("wrong_word", 60, "smoke_failed", "60"),
        ("empty_content", 60, "smoke_failed", "60"),
        ("wrong_length", 60, "smoke_failed", "60"),
        ("http_500", 60, "smoke_failed", "60"),
    ],
)
def test_a_server_that_fails_is_named_and_nothing_large_is_lost(
    world: World, failure: str, code: int, kind: str, patience: str
):
    variant(world, failure.replace("_", "-"), failure)
    run = world.install("--patience", patience)
    assert (run.code, run.problem["kind"]) == (code, kind), run.stderr
    assert run.problem["sentence"]
    assert run.problem["remedy"]
    again = watched(world, interrupt_at_the_start, "--patience", patience)
    assert {"image", "weights"} <= set(again.steps("skipped"))


def interrupt_at_the_start(event: dict[str, Any], process: subprocess.Popen[str]) -> None:
    """End a run once it has looked for image and weights; how it fails was seen already."""
    if event.get("step") == "files":
        process.send_signal(signal.SIGINT)


def image_is_there(world: World) -> bool:
    with closing(world.rig.engine.client()) as client:
        return any(IMAGE in name for image in client.images.list() for name in image.attrs["RepoDigests"] or ())


def test_look_after_it_status_stop_start_smoke_logs_uninstall(world: World):
    world.forget_image()
    assert world.install().code == 0
    assert world.slipway("status", "--json").events[0]["state"] == "serving"
    assert world.slipway("stop", "--json").code == 0
    assert world.slipway("status", "--json").events[0]["state"] == "stopped"
    world.rig.registry.clear_log()
    assert world.slipway("start", "--json").code == 0
    assert world.rig.registry.blob_requests(f"{QUICK}/{IMAGE}") == []
    assert world.slipway("smoke", "--json").named("proved")
    assert world.slipway("logs").stdout
    removed = world.slipway("uninstall", "--yes", "--json")
    assert removed.code == 0, removed.stderr
    assert world.containers() == []
    assert not image_is_there(world)
    assert not (world.home / "chat").exists()
    assert list(world.home.rglob("*.safetensors")) == []
    gone = world.slipway("status", "--json")
    assert (gone.code, gone.problem["kind"]) == (2, "not_installed")


def test_what_was_installed_is_asked(world: World, tmp_path: Path):
    assert world.install().code == 0
    answered = world.slipway("ask", "Grüße 🦊, wie geht es?", "--json").events
    assert len(answered) > 3, "it streams"
    assert (answered[-1]["content"], answered[-1]["finish"]) == ("Grüße 🦊, wie geht es?", "stop")
    assert answered[-1]["generated_tokens"] > 0
    Image.new("RGB", (64, 48), "red").save(tmp_path / "red.png")
    seen = world.slipway("ask", "Which colour?", "--picture", str(tmp_path / "red.png"), "--json")
    assert (seen.events[-1]["content"], seen.events[-1]["picture"]["width"]) == ("red", 64)
    too_long = slipway(("ask", "-", "--json"), world.environment, stdin="word " * 70_000)
    assert (too_long.code, too_long.problem["kind"], too_long.problem["limit_tokens"]) == (2, "beyond_context", 65536)
    env = world.home / "chat" / "vllm.env"
    env.write_text(env.read_text().replace(KEY, "another-key"))
    assert world.slipway("ask", "Hello?", "--json").problem["status"] == 401
    assert world.slipway("stop", "--json").code == 0
    stopped = world.slipway("ask", "Hello?", "--json")
    assert (stopped.code, stopped.problem["kind"], stopped.problem["command"]) == (
        50,
        "server_not_running",
        "slipway start",
    )


def test_weights_and_image_stay_if_the_person_wants_to_keep_them(world: World):
    world.forget_image()
    assert world.install().code == 0
    assert world.slipway("uninstall", "--yes", "--json", "--keep-weights", "--keep-image").code == 0
    assert world.containers() == []
    assert list(world.home.rglob("*.safetensors"))
    assert image_is_there(world)
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

"""What goes wrong outside Slipway: each fault has its own Problem, leaves nothing half, and the next run goes on."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any

import pytest

from tests.e2e.world import KEY, MODEL, QUICK, TOKEN, Ended, World, at_once, checkpoint, made_world, watched, words
from tests.rig.engine import PrivateEngine
from tests.rig.hub import LocalHub
from tests.rig.rig import Rig
from tests.rig.throttle import Throttle

IMAGE = "vllm/vllm-openai"
SHARD = "model-00001-of-00002.safetensors"
NO_DIGEST = "sha256:" + "0" * 64
MB = 1_000_000


def fails(world: World, code: int, kind: str, *more: str, run: Ended | None = None) -> dict[str, Any]:
    """Install, and check everything that holds for every failure; return the problem."""
    ended = run or world.install(*more)
    problem = ended.problem
    assert (ended.code, problem["kind"]) == (code, kind), (problem, ended.stderr[-2000:])
    assert problem["exit_code"] == code
    assert all(words(problem))
    assert problem["title"] in ended.stderr
    assert "Traceback" not in ended.stderr
    if ended.named("started"):
        assert ended.events[-1]["outcome"] == "failed"
    assert world.containers() == []
    assert world.half_written() == []
    for secret in (TOKEN, KEY):
        assert secret not in ended.stdout + ended.stderr
        assert world.holders_of(secret) == []
    return problem


def completes(world: World, *more: str, reusing: tuple[str, ...] = ()) -> Ended:
    """Install, now that nothing is wrong any more; what was whole before is not fetched again."""
    ended = world.install(*more)
    assert ended.code == 0, (ended.problem, ended.stderr[-2000:])
    assert set(reusing) <= set(ended.steps("skipped"))
    assert world.half_written() == []
    assert list(world.home.rglob("*.part")) == []
    return ended


def interrupt_at(step: str) -> Callable[[dict[str, Any], subprocess.Popen[str]], None]:
    def interrupt(event: dict[str, Any], process: subprocess.Popen[str]) -> None:
        if event.get("step") == step:
            process.send_signal(signal.SIGINT)

    return interrupt


def is_at_half(event: dict[str, Any], step: str) -> bool:
    return event["event"] == "progress" and event["step"] == step and event["done"] * 2 > event["total"]


# --- port and engine -------------------------------------------------------------------------------------------------


def test_a_port_that_somebody_else_holds(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        world.port = listener.getsockname()[1]
        problem = fails(world, 50, "port_taken")
        assert problem["port"] == world.port
        assert f"({os.getpid()})" in problem["owner"]
        assert problem["owner"] in problem["sentence"]
    completes(world, reusing=("image", "weights"))


def test_a_port_that_slipway_chose_and_somebody_took_meanwhile(world: World) -> None:
    world.port = None
    assert watched(world, interrupt_at("probe")).code == 130
    file = world.home / "chat" / "plan.json"
    plan = json.loads(file.read_text("utf-8"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        file.write_text(json.dumps(plan | {"port": taken}), "utf-8")
        completes(world)
    (container,) = world.containers()
    (binding,) = container["HostConfig"]["PortBindings"].values()
    assert int(binding[0]["HostPort"]) > taken


def test_a_container_that_carries_our_project_s_name_and_is_not_ours(world: World) -> None:
    helper = world.rig.images.helper
    with closing(world.rig.engine.client()) as client:
        client.images.pull(f"{helper.address}/{helper.repository}", tag=helper.tag)
        stranger = client.containers.create(
            helper.reference, labels={"com.docker.compose.project": "slipway-chat"}, name="stranger"
        )
        run = world.install()
        (untouched,) = world.containers()
        assert untouched["Id"] == stranger.id
        stranger.remove()
    assert fails(world, 50, "container_not_ours", run=run)["name"] == "stranger"
    completes(world)


@contextmanager
def podman(socket_path: Path) -> Iterator[str]:
    """The part of Podman's service that says who it is."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = [{"Name": "Podman Engine", "Version": "5.4.2"}, {"Name": "Conmon", "Version": "2.1.12"}]
            body = json.dumps({"Version": "5.4.2", "ApiVersion": "1.41", "Components": parts}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def address_string(self) -> str:
            return "unix"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nobody reads it."""

    class Server(ThreadingMixIn, UnixStreamServer):
        daemon_threads = True

    with Server(str(socket_path), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"unix://{socket_path}"
        server.shutdown()


def test_podman_takes_gpu_requests_and_ignores_them_and_is_refused(world: World, tmp_path: Path) -> None:
    with podman(tmp_path / "s") as endpoint:
        world.extra["DOCKER_HOST"] = endpoint
        problem = fails(world, 20, "engine_is_podman")
        assert (problem["endpoint"], problem["version"]) == (endpoint, "5.4.2")
    del world.extra["DOCKER_HOST"]
    completes(world)


def test_an_engine_without_nvidia_s_toolkit_is_refused_before_anything_is_pulled(
    quick: Rig, hub: LocalHub, driver: dict[str, str], tmp_path: Path, profiles: Path
) -> None:
    with PrivateEngine(nvidia=False) as engine:
        bare = made_world(Rig(engine, quick.registry, quick.images), hub, driver, tmp_path, profiles)
        quick.registry.clear_log()
        problem = fails(bare, 20, "nvidia_toolkit_missing")
        assert "nvidia-ctk" in problem["command"]
        assert quick.registry.blob_requests(f"{QUICK}/{IMAGE}") == []
        assert quick.registry.blob_requests(f"{QUICK}/library/python") == []


def test_an_engine_that_dies_half_way_through_the_pull(world: World) -> None:
    world.namespace = "lost-engine"
    world.rig.variant(world.namespace, standin=at_once(), salt="lost")
    with Throttle(world.rig.registry.port) as throttle:
        world.extra["SLIPWAY_REGISTRY_MIRROR"] = f"{throttle.address}/{world.namespace}"

        def kill_at_half(event: dict[str, Any], _: object) -> None:
            throttle.rate = 4 * MB if event.get("step") == "image" else None
            if is_at_half(event, "image"):
                world.rig.engine.kill()

        try:
            run = watched(world, kill_at_half)
        finally:
            world.rig.engine.restart()
        fails(world, 20, "engine_lost", run=run)
        assert "weights" in run.steps("finished")
        throttle.rate = None
        completes(world, reusing=("weights",))


# --- the image registry ----------------------------------------------------------------------------------------------


def test_a_pinned_digest_that_does_not_exist(world: World) -> None:
    problem = fails(world, 30, "digest_gone", "--docker-image-pin-digest", NO_DIGEST)
    assert problem["digest"] == NO_DIGEST
    completes(world)


def test_a_pinned_digest_that_was_deleted_between_plan_and_pull(world: World) -> None:
    world.namespace = "gone"
    pushed = world.rig.variant(world.namespace, standin=at_once(), salt="gone").standin
    pinned = f"--docker-image-pin-digest={pushed.digest}"

    # Once the engine has begun to pull it knows the manifest and asks for layers only.
    assert watched(world, interrupt_at("probe"), pinned).code == 130
    media, manifest = world.rig.registry.manifest(pushed.repository, pushed.digest)
    world.rig.registry.delete_manifest(pushed.repository, pushed.digest)
    assert fails(world, 30, "digest_gone", pinned)["digest"] == pushed.digest
    world.rig.registry.put_manifest(pushed.repository, pushed.tag, media, manifest)
    completes(world)


def test_a_tag_that_moved_on_before_the_pull_is_followed(world: World) -> None:
    """Nobody named a digest, the one of the plan was never pulled, and its registry has forgotten it."""
    world.namespace = "moved"
    pushed = world.rig.variant(world.namespace, standin=at_once(), salt="moved").standin
    assert watched(world, interrupt_at("probe")).code == 130
    media, manifest = world.rig.registry.manifest(pushed.repository, pushed.digest)
    newer = json.dumps(json.loads(manifest) | {"annotations": {"built": "again"}}).encode()
    world.rig.registry.put_manifest(pushed.repository, pushed.tag, media, newer)
    world.rig.registry.delete_manifest(pushed.repository, pushed.digest)
    completes(world)
    kept = json.loads((world.home / "chat" / "plan.json").read_bytes())["image"]
    assert kept["index_digest"] == f"sha256:{hashlib.sha256(newer).hexdigest()}"


# --- the hub ---------------------------------------------------------------------------------------------------------


def test_a_hub_that_wants_a_token_takes_it_from_standard_input(world: World) -> None:
    world.hub.add(MODEL, checkpoint(), token=TOKEN)
    del world.extra["HF_TOKEN"]
    assert fails(world, 30, "token_needed")["had_token"] is False
    fails(world, 30, "access_not_granted", run=world.install("--hf-token-file", "-", stdin="hf_another\n"))
    fails(world, 30, "bad_token", run=world.install("--hf-token-file", "-", stdin="zwei Wörter\n"))
    ended = world.install("--hf-token-file", "-", stdin=f"{TOKEN}\n")
    assert ended.code == 0, ended.stderr
    assert TOKEN not in ended.stdout + ended.stderr
    assert world.holders_of(TOKEN) == []


def test_a_gated_model_whose_licence_was_not_accepted(world: World) -> None:
    world.hub.add(MODEL, checkpoint(), token="hf_of_somebody_else", gated=True)
    problem = fails(world, 30, "access_not_granted")
    assert (problem["repo"], problem["gated"]) == (MODEL, True)
    world.hub.add(MODEL, checkpoint())
    completes(world)


def healed(hub: LocalHub) -> None:
    hub.fault(SHARD, times=1, status=429, retry_after="1")
    hub.fault(SHARD, times=1, cut=20_000)
    hub.fault(SHARD, times=1, drop=40_000)
    hub.fault(SHARD, times=1, wrong_bytes=True)


def test_a_hub_that_is_busy_and_cuts_off_and_garbles_is_borne_with(world: World) -> None:
    healed(world.hub)
    completes(world)
    offsets = [asked.first_byte for asked in world.hub.content_requests(SHARD)]
    assert len(offsets) >= 4
    assert any(offsets)


HUB_FAULTS: dict[str, tuple[Callable[[LocalHub], object], str, dict[str, object]]] = {
    "busy for long": (lambda hub: hub.fault(SHARD, status=429, retry_after="7200"), "rate_limited", {}),
    "a sign-in page for a file": (lambda hub: hub.fault(SHARD, portal=True), "captive_portal", {}),
    "a sign-in page for the list": (lambda hub: hub.fault(on="api", portal=True), "captive_portal", {}),
    "wrong bytes": (lambda hub: hub.fault(SHARD, wrong_bytes=True), "wrong_content", {"file": SHARD}),
    "refused": (lambda hub: hub.fault(SHARD, on="hub", status=403, error_code="GatedRepo"), "access_not_granted", {}),
    "gone": (lambda hub: hub.fault(SHARD, on="hub", status=404), "repo_unknown", {"file": SHARD}),
    "always cut off": (
        lambda hub: hub.fault(SHARD, cut=5),
        "truncated",
        {"file": SHARD, "expected_bytes": len(checkpoint()[SHARD])},
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", HUB_FAULTS)
def test_a_hub_that_does_not_get_better(case: str, world: World) -> None:
    break_it, kind, figures = HUB_FAULTS[case]
    break_it(world.hub)
    problem = fails(world, 30, kind)
    assert {name: problem[name] for name in figures} == figures
    assert SHARD not in {path.name for path in world.home.rglob("*")}
    world.hub.heal()
    whole = list(world.home.rglob("*.safetensors"))
    before = len(world.hub.content_requests(whole[0].name)) if whole else 0
    completes(world)
    assert not whole or len(world.hub.content_requests(whole[0].name)) == before


# --- disks -----------------------------------------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of its own at a folder; rights do not stop root, but a mount does."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


def test_a_disk_for_the_weights_that_is_too_small_or_read_only(world: World, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "512k") as disk:
        where = ("--folder", str(disk / "models"))
        problem = fails(world, 40, "disk_full", *where)
        assert 0 < problem["free_bytes"] < problem["needed_bytes"]
        assert problem["engine"] is False
        remount(disk, "ro,size=16m")
        assert fails(world, 40, "not_writable", *where)["path"].startswith(str(disk))
        remount(disk, "rw,size=16m")
        completes(world, *where)
        assert world.half_written(disk / "models") == []


def test_a_disk_that_fills_while_the_weights_come(world: World, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "2m") as disk:
        where = ("--folder", str(disk / "models"))
        world.hub.fault(bytes_per_s=600_000)

        def fill_at_half(event: dict[str, Any], _: object) -> None:
            if is_at_half(event, "weights"):
                fill(disk / "filler")

        run = watched(world, fill_at_half, *where)
        problem = fails(world, 40, "disk_full", run=run)
        assert problem["needed_bytes"] > problem["free_bytes"]
        assert str(disk) in problem["where"]
        assert world.half_written(disk / "models") == []
        world.hub.heal()
        (disk / "filler").unlink()
        completes(world, *where)
        assert list(disk.rglob("*.part")) == []


def fill(file: Path, leaving: int = 0) -> None:
    """Take all of a disk's room but so many bytes; others may write meanwhile."""
    with suppress(OSError), file.open("ab", buffering=0) as filler:
        while (status := os.statvfs(file.parent)).f_bavail * status.f_frsize > leaving:
            filler.write(bytes(64 * 1024))


def test_a_home_that_is_full_or_read_only_keeps_what_it_had(world: World, tmp_path: Path) -> None:
    world.home.mkdir()
    with small_disk(world.home, "1m"):
        where = ("--folder", str(tmp_path / "models"))
        fill(world.home / "filler")
        assert fails(world, 40, "disk_full", *where)["where"].startswith(str(world.home))
        remount(world.home, "ro")
        assert fails(world, 40, "not_writable", *where)["path"].startswith(str(world.home))
        remount(world.home, "rw")
        (world.home / "filler").unlink()
        completes(world, *where)
        world.stop_all()


@pytest.mark.slow
def test_an_engine_whose_disk_is_full(
    quick: Rig, hub: LocalHub, driver: dict[str, str], tmp_path: Path, profiles: Path
) -> None:
    with PrivateEngine(data_root_size_mb=400) as engine, Throttle(quick.registry.port) as throttle:
        tight = made_world(Rig(engine, quick.registry, quick.images), hub, driver, tmp_path, profiles)
        tight.extra["SLIPWAY_REGISTRY_MIRROR"] = f"{throttle.address}/{QUICK}"
        filler = engine.data_root / "filler"
        fill(filler, leaving=20 * MB)
        quick.registry.clear_log()
        problem = fails(tight, 40, "disk_full")
        assert (problem["engine"], problem["where"]) == (True, str(engine.data_root))
        assert problem["free_bytes"] < problem["needed_bytes"]
        assert len(set(quick.registry.blob_requests(f"{QUICK}/{IMAGE}"))) <= 1
        filler.unlink()

        def fill_at_half(event: dict[str, Any], _: object) -> None:
            if event.get("step") == "image" and event["event"] == "started":
                throttle.rate = 4 * MB
                fill(filler, leaving=60 * MB)
            elif is_at_half(event, "image"):
                fill(filler)

        run = watched(tight, fill_at_half)
        problem = fails(tight, 40, "disk_full", run=run)
        assert (problem["engine"], problem["where"]) == (True, str(engine.data_root))
        filler.unlink()
        throttle.rate = None
        completes(tight, reusing=("weights",))

"""Ended at any event of an installation, by Ctrl-C or a kill: what is whole stays, and the next run goes on.

Two engines of their own share the work: most of the time of a run is waiting.
"""

from __future__ import annotations

import json
import queue
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from installer.adapters import engine_probe
from installer.adapters.engine import DockerEngine
from installer.steps.cancel import Cancel
from tests.adapters.engine_kit import add_compose, source, use
from tests.e2e.world import MODEL, Ended, World, checkpoint, quick_registry
from tests.rig.engine import PrivateEngine
from tests.rig.hub import LocalHub
from tests.rig.process import free_port
from tests.rig.registry import LocalRegistry
from tests.rig.rig import Rig
from tests.rig.throttle import Throttle

pytestmark = pytest.mark.slow

EVENTS = [
    *("started probe", "notice probe", "finished probe"),
    *("started image", "first progress image", "middle progress image", "finished image"),
    *("started weights", "first progress weights", "middle progress weights", "finished weights"),
    *("started files", "finished files", "started gate", "finished gate"),
    *("started start", "notice start", "finished start", "started smoke", "proved", "finished smoke", "settled"),
]
DEPENDS_ON_THE_MACHINE = "notice probe"
AT_THE_END = ("finished start", "started smoke", "proved", "finished smoke", "settled")
"""So close to the end that a signal may come too late."""
WITH_A_SERVER = ("started smoke", "proved", "finished smoke", "settled")
"""Here the next run finds a server that it did not start, and that a Ctrl-C does not take away."""
INTERRUPTED = (
    *("notice probe", "middle progress image", "middle progress weights", "started files", "started gate"),
    *("started start", "notice start", "started smoke", "settled"),
)
"""One in each step; a dry run is cancelled after every event that there is (tests/steps/test_install.py)."""
NAMESPACE = "kills"
LOADS_FOR_SECONDS = "0.9"
IMAGE_BYTES_PER_S = 5_000_000
FILE_BYTES_PER_S = 250_000
LANES = 2


@dataclass
class Names:
    """Names events: of a step's progress only the first and the middle one have names."""

    seen: list[str] = field(default_factory=list)

    def of(self, event: dict[str, Any]) -> str:
        kind, step = event["event"], event.get("step", "")
        name = f"{kind} {step}".strip()
        if kind == "progress":
            name = f"first {name}"
            if name in self.seen:
                at_half = event["done"] * 2 >= event["total"] > event["done"]
                name = f"middle progress {step}" if at_half else ""
        new = name not in self.seen
        self.seen.append(name)
        return name if new else ""


@dataclass
class Lane:
    """An engine, a hub and a home of their own, over lines that can be made slow."""

    world: World
    line: Throttle

    def fresh(self, name: str) -> None:
        """Go back to where nothing is installed; images and weights stay where the event comes after them."""
        self.world.stop_all()
        step = name.rpartition(" ")[2]
        if step in ("probe", "image", "weights"):
            self.world.forget_image()
            shutil.rmtree(self.world.home, ignore_errors=True)
        shutil.rmtree(self.world.home / "chat", ignore_errors=True)

    def killed_at(self, name: str, number: signal.Signals) -> tuple[Ended, bool]:
        """Install, and send a signal at an event; also say whether that event came."""
        self.line.rate = IMAGE_BYTES_PER_S if name.endswith("progress image") else None
        self.world.hub.heal()
        if name.endswith("progress weights"):
            self.world.hub.fault(bytes_per_s=FILE_BYTES_PER_S)
        process = self.world.start(*self.world.installing())
        assert process.stdout is not None
        assert process.stderr is not None
        names, lines, sent = Names(), [], False
        try:
            for line in process.stdout:
                lines.append(line)
                if names.of(json.loads(line)) == name:
                    process.send_signal(number)
                    sent = True
            said = process.stderr.read()
            code = process.wait(60)
        finally:
            process.kill()
            process.communicate()
            self.line.rate = None
            self.world.hub.heal()
        return Ended(code, [json.loads(line) for line in lines if line.endswith("\n")], said), sent

    def install(self) -> Ended:
        return self.world.install()

    def has_only_ours(self) -> bool:
        """Say whether every container of the engine says by its labels that it is ours."""
        labels = [container["Config"]["Labels"] for container in self.world.all_containers()]
        return all("app.slipway.fingerprint" in one or one.get("app.slipway.role") == "probe" for one in labels)

    def reuses(self, before: Ended, after: Ended) -> bool:
        """Say whether a run did not fetch again what the one before it had whole."""
        whole = {"image", "weights"} & {*before.steps("finished"), *before.steps("skipped")}
        return whole <= set(after.steps("skipped"))


def survive(lane: Lane, name: str) -> None:
    """Kill a run at an event, interrupt the next one at the same event, and let the third end."""
    lane.fresh(name)
    killed, sent = lane.killed_at(name, signal.SIGKILL)
    if not sent and name == DEPENDS_ON_THE_MACHINE:
        return
    assert (sent, killed.code) == (True, -signal.SIGKILL) or name in AT_THE_END, killed.stderr
    assert lane.world.half_written(killed=True) == []
    assert lane.has_only_ours()

    ended = killed
    if name in INTERRUPTED:
        ended = interrupt(lane, name, killed)

    after = lane.install()
    assert after.code == 0, after.stderr
    assert lane.reuses(ended, after)
    assert lane.world.half_written() == []
    assert list(lane.world.home.rglob("*.part")) == []
    (container,) = lane.world.containers()
    assert container["State"]["Running"]


def started_before(ended: Ended) -> bool:
    """Say whether a run found the server of an earlier one: that one is not its own to take down."""
    return any((event["event"], event.get("step")) == ("skipped", "start") for event in ended.events)


def interrupt(lane: Lane, name: str, killed: Ended) -> Ended:
    """Press Ctrl-C at the same event of the next run; what that run started is gone, what was whole stays."""
    if name in WITH_A_SERVER:
        killed = lane.install()
        assert killed.code == 0, killed.stderr
        lane.world.stop_all()
    ended, sent = lane.killed_at(name, signal.SIGINT)
    assert lane.reuses(killed, ended)
    if not sent or started_before(ended):  # what this event is about was whole already
        may_end_with = (130, 0) if sent else (0,)  # with a server that is ready, a signal may come too late
        assert ended.code in may_end_with, ended.stderr
        lane.fresh(name)
        ended, sent = lane.killed_at(name, signal.SIGINT)
    assert sent
    was_too_late = name in AT_THE_END and ended.events[-1].get("outcome") == "ok"
    assert ended.code == 130 or (was_too_late and ended.code == 0), ended.stderr
    assert "Traceback" not in ended.stderr
    assert lane.world.half_written() == []
    if not was_too_late:
        assert (ended.problem["kind"], ended.events[-1]["outcome"]) == ("interrupted", "cancelled")
        assert lane.world.all_containers() == []
    return ended


@pytest.fixture(scope="module")
def lanes(
    registry: LocalRegistry, rig: Rig, driver: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[queue.SimpleQueue[Lane]]:
    folder = tmp_path_factory.mktemp("kills")
    profiles = quick_registry(folder / "registry")
    rig.variant(NAMESPACE, standin={"STANDIN_LOAD_SECONDS": LOADS_FOR_SECONDS})
    free: queue.SimpleQueue[Lane] = queue.SimpleQueue()
    with ExitStack() as stack:
        for number in range(LANES):
            engine = stack.enter_context(PrivateEngine())
            line = stack.enter_context(Throttle(registry.port))
            hub = stack.enter_context(LocalHub())
            hub.add(MODEL, checkpoint())
            add_compose(Path(engine.env["DOCKER_CONFIG"]))
            own = Rig(engine, registry, rig.images)
            world = World(own, hub, folder / str(number) / "slipway", driver, registry=profiles, port=free_port())
            world.extra["SLIPWAY_REGISTRY_MIRROR"] = f"{line.address}/{NAMESPACE}"
            world.home.parent.mkdir()
            free.put(Lane(world, line))
        yield free


@pytest.fixture(scope="module")
def survived(lanes: queue.SimpleQueue[Lane], request: pytest.FixtureRequest) -> Iterator[dict[str, Future[None]]]:
    """Every event that was asked for, at work on a lane."""

    def on_a_lane(name: str) -> None:
        lane = lanes.get()
        try:
            survive(lane, name)
        finally:
            lanes.put(lane)

    asked = [
        item.callspec.params["name"]
        for item in request.session.items
        if hasattr(item, "callspec") and item.path == request.path
    ]
    with ThreadPoolExecutor(LANES) as pool:
        yield {name: pool.submit(on_a_lane, name) for name in asked}


@pytest.mark.parametrize("name", EVENTS)
def test_an_installation_that_is_ended_at_an_event_can_be_gone_on_with(
    name: str, survived: dict[str, Future[None]]
) -> None:
    survived[name].result(timeout=280)


def test_an_installation_has_no_other_events(lanes: queue.SimpleQueue[Lane], survived: object) -> None:
    lane = lanes.get(timeout=280)
    try:
        lane.fresh("started probe")
        names = Names()
        lane.line.rate = IMAGE_BYTES_PER_S
        lane.world.hub.fault(bytes_per_s=FILE_BYTES_PER_S)
        for event in lane.install().events:
            names.of(event)
        assert {*names.seen, DEPENDS_ON_THE_MACHINE} - {""} == set(EVENTS)
    finally:
        lane.line.rate = None
        lane.world.hub.heal()
        lanes.put(lane)


# --- what only a kill leaves -----------------------------------------------------------------------------------------


@pytest.fixture
def lane(lanes: queue.SimpleQueue[Lane], survived: object) -> Iterator[Lane]:
    lane = lanes.get(timeout=280)
    lane.fresh("started gate")
    yield lane
    lanes.put(lane)


def test_a_server_that_still_starts_is_waited_for_and_not_measured_against_itself(lane: Lane, rig: Rig) -> None:
    """On a real card the probe would find the memory taken: by the very container that is coming up."""
    rig.variant("kills-slow", standin={"STANDIN_LOAD_SECONDS": "6"})
    mirror = lane.world.extra["SLIPWAY_REGISTRY_MIRROR"]
    lane.world.extra["SLIPWAY_REGISTRY_MIRROR"] = f"{lane.line.address}/kills-slow"
    try:
        assert lane.killed_at("notice start", signal.SIGKILL)[1]
        (before,) = lane.world.containers()
        after = lane.install()
    finally:
        lane.world.extra["SLIPWAY_REGISTRY_MIRROR"] = mirror
    assert after.code == 0, after.stderr
    assert after.steps("started") == ["start", "smoke"]
    assert [container["Id"] for container in lane.world.containers()] == [before["Id"]]


def test_a_draft_that_a_kill_left_is_removed_by_the_next_run(lane: Lane) -> None:
    drafts = [lane.world.home / name / ".plan.json.x1y2z3.draft" for name in ("chat", "sources")]
    for draft in drafts:
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(b'{"half')
    assert lane.install().code == 0
    assert not any(draft.exists() for draft in drafts)


def test_a_kill_between_compose_file_and_its_hash_is_not_taken_for_an_edit(lane: Lane) -> None:
    assert lane.install().code == 0
    (lane.world.home / "chat" / ".docker-compose.vllm.yml.sha256").unlink()
    assert lane.install().code == 0
    lane.world.port = free_port()
    again = lane.install()
    assert again.code == 0, again.stderr


def test_a_helper_container_that_a_kill_left_is_removed_once_nobody_can_wait_for_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(rig.engine, monkeypatch)
    helper = source(rig.registry, rig.images.helper)
    DockerEngine().probe(helper, None, Cancel())
    with closing(rig.engine.client()) as client:
        left = client.containers.create(rig.images.helper.pinned, labels=engine_probe.LABELS)
        DockerEngine().probe(helper, None, Cancel())
        assert client.containers.list(all=True) == [left]
        monkeypatch.setattr(engine_probe, "FORGOTTEN_AFTER_S", -1)
        DockerEngine().probe(helper, None, Cancel())
        assert client.containers.list(all=True) == []
        for image in client.images.list():
            client.images.remove(str(image.id), force=True)

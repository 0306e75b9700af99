"""What only a dry run promises: nothing real is touched, it is quick, always the same, and fails on request."""

from __future__ import annotations

import dataclasses
import socket
import subprocess
import threading
import time
from pathlib import Path

import msgspec
import pytest

from installer.adapters.dryrun import dry_run_ports
from installer.adapters.dryrun_failures import known
from installer.domain.facts import GpuMemory, GpuProcess
from installer.domain.problems import BadChoice, snake_case
from installer.domain.problems import kinds as problem_kinds
from installer.domain.sources import FolderWeights
from installer.steps import read
from installer.steps.cancel import Cancel
from installer.steps.events import Step
from tests.adapters.engine_kit import Reports, problem_in
from tests.contract.subjects import PLATFORM, PROFILE
from tests.steps.kit import LARGE_PROFILE, MACHINES, SHIPPED, SMALL_PROFILE, machine, rehearsal

RECORDED = sorted(path.stem for path in MACHINES.glob("*.json"))


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_a_speed_that_cannot_be_is_refused(tmp_path: Path, speed: float) -> None:
    problem = problem_in(lambda: dry_run_ports(machine("t4", tmp_path), SHIPPED, speed=speed))
    assert isinstance(problem, BadChoice)
    assert problem.field == "dry_run_speed"


@pytest.mark.parametrize("fail", ["", "image", "image:nothing", "nowhere:disk_full", "image:disk_full:twice"])
def test_a_failure_that_is_not_known_is_refused_with_those_that_are(tmp_path: Path, fail: str) -> None:
    problem = problem_in(lambda: dry_run_ports(machine("t4", tmp_path), SHIPPED, fail=fail))
    assert problem == BadChoice(field="dry_run_fail", value=fail, limit=", ".join(known()))
    assert "image:disk_full" in known()


def test_failures_are_named_by_their_step() -> None:
    assert {one.partition(":")[0] for one in known()} <= {*Step, "resolve"}
    assert (
        len({snake_case(kind.__name__) for kind in problem_kinds()} & {one.partition(":")[2] for one in known()}) > 25
    )


def test_a_whole_installation_at_a_thousand_times_the_speed_takes_seconds(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path, card="rtx-5090-linux", profile=LARGE_PROFILE)
    stage.ports = dry_run_ports(stage.recorded, SHIPPED, speed=1000)
    began = time.monotonic()
    stage.install()
    assert time.monotonic() - began < 60
    assert stage.told.outcome == "ok"


def test_nothing_real_is_asked_and_nothing_is_written_outside_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a dry run touched the world")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "bind", refuse)
    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    stage = rehearsal(tmp_path, autostart=True)
    stage.install()
    assert {path.name for path in tmp_path.iterdir()} == {"home"}
    assert {path.name for path in (tmp_path / "home").iterdir()} == {"chat", "sources", "lock", "calibrations.json"}


@pytest.mark.parametrize("name", RECORDED)
def test_every_recorded_machine_reads_as_it_was_recorded(tmp_path: Path, name: str) -> None:
    recorded = machine(name, tmp_path)
    seen = read.facts(dry_run_ports(recorded, SHIPPED), str(tmp_path))
    for part in ("nvidia", "engine", "compose", "host", "weights_folder"):
        assert getattr(seen, part) == getattr(recorded, part)
    assert seen.ports.free == recorded.ports.free[: read.PORTS_OFFERED]


@pytest.mark.parametrize("name", sorted(SHIPPED.profiles))
def test_sources_have_the_sizes_of_the_registry_and_are_always_the_same(tmp_path: Path, name: str) -> None:
    profile = SHIPPED.profile(name)
    release, model = SHIPPED.image_of(profile), SHIPPED.model_of(profile)
    first, second = (dry_run_ports(machine("t4", tmp_path), SHIPPED) for _ in range(2))
    image = first.images.resolve(release, PLATFORM)
    weights = first.hub.resolve(model.repo, model.revision)
    assert image.size_bytes == release.compressed_bytes
    assert weights.checkpoint_bytes == model.checkpoint_bytes
    assert image == second.images.resolve(release, PLATFORM)
    assert weights == second.hub.resolve(model.repo, model.revision)


def test_two_transfers_share_the_line(tmp_path: Path) -> None:
    def seconds_for(*, both: bool) -> float:
        ports = dry_run_ports(machine("rtx-5090-linux", tmp_path), SHIPPED, speed=200)
        image = ports.images.resolve(SHIPPED.image_of(SHIPPED.profile(PROFILE)), PLATFORM)
        model = SHIPPED.model_of(SHIPPED.profile(LARGE_PROFILE))
        weights = ports.hub.resolve(model.repo, model.revision)
        stop = Cancel()
        other = threading.Thread(
            target=ports.hub.fetch, args=(weights, FolderWeights(folder="/models"), Reports(), stop), daemon=True
        )
        if both:
            other.start()
        began = ports.clock.monotonic()
        ports.engine.pull(image, Reports(), Cancel())
        took = ports.clock.monotonic() - began
        if both:
            other.join()
        return took

    alone = seconds_for(both=False)
    assert alone == pytest.approx(100, rel=0.5)
    assert seconds_for(both=True) > 1.5 * alone


def test_a_server_that_runs_takes_its_share_of_the_card(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path)
    plan = stage.install().plan
    (before,), (after,) = stage.recorded.nvidia.gpus, stage.facts().nvidia.gpus
    assert plan.gpu is not None
    reading = stage.ports.engine.probe(plan.helper, plan.gpu.uuid, Cancel())
    assert plan.fit is not None
    assert reading.cuda is not None
    share = plan.fit.budget.total_bytes * plan.settings.utilisation
    assert isinstance(before.memory, GpuMemory)
    assert isinstance(after.memory, GpuMemory)
    assert before.memory.free_bytes - after.memory.free_bytes == pytest.approx(share)
    assert reading.cuda.free_bytes == pytest.approx(plan.fit.budget.free_bytes - share, abs=1)
    assert isinstance(after.processes, tuple)
    assert [process.name for process in after.processes if process not in before.processes] == ["VLLM::EngineCore"]
    assert all(isinstance(process, GpuProcess) for process in after.processes)


def test_what_was_pulled_takes_room_on_the_disks(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path)
    plan, before = stage.install().plan, stage.recorded
    after = stage.facts()
    assert before.engine.data_root_free_bytes is not None
    assert after.engine.data_root_free_bytes is not None
    assert before.engine.data_root_free_bytes - after.engine.data_root_free_bytes >= 3 * plan.image.size_bytes
    assert before.weights_folder.free_bytes is not None
    assert after.weights_folder.free_bytes == before.weights_folder.free_bytes - plan.weights.size_bytes


def test_an_engine_that_was_recorded_as_down_does_nothing(tmp_path: Path) -> None:
    ports = dry_run_ports(machine("engine-down", tmp_path), SHIPPED)
    image = ports.images.resolve(SHIPPED.image_of(SHIPPED.profile(PROFILE)), PLATFORM)
    assert problem_in(lambda: ports.engine.pull(image, Reports(), Cancel())).kind == "engine_down"
    assert problem_in(lambda: ports.engine.containers("slipway-chat")).kind == "engine_down"


def test_a_card_that_was_not_recorded_is_not_in_the_container(tmp_path: Path) -> None:
    ports = dry_run_ports(machine("no-nvidia-card", tmp_path), SHIPPED, speed=1000)
    helper = ports.images.resolve(SHIPPED.helper, PLATFORM)
    problem = problem_in(lambda: ports.engine.probe(helper, "GPU-not-here", Cancel()))
    assert problem.kind == "gpu_not_in_container"


def test_a_machine_without_a_card_installs_the_trial(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path, card="no-nvidia-card", profile=None)
    done = stage.install()
    assert done.plan.profile == "cpu-trial"
    assert done.plan.gpu is None
    assert stage.told.outcome == "ok"


def test_another_conversation_is_told_that_nobody_was_asked(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path)
    plan = stage.install().plan
    key = stage.file("vllm.env").read_text().partition("'")[2].partition("'")[0]
    body: dict[str, object] = {"model": SMALL_PROFILE, "messages": [{"role": "user", "content": "Who are you?"}]}
    answer = stage.ports.server.post(plan.base, "/v1/chat/completions", body, 60, key)
    assert b"dry run" in answer.body


def test_changes_to_a_machine_stay_in_its_own_dry_run(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path)
    stage.install()
    other = dry_run_ports(stage.recorded, SHIPPED)
    assert other.engine.containers("slipway-chat") == ()
    assert msgspec.to_builtins(other.gpus.read()) == msgspec.to_builtins(stage.recorded.nvidia)
    assert dataclasses.replace(stage, ports=other).container() is None

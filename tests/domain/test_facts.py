"""Recorded machines are the same values as live ones, and a broken file is told by its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from installer.domain.facts import (
    CudaMemory,
    EngineState,
    Facts,
    GpuMemory,
    Missing,
    NvidiaState,
    from_json,
    to_json,
)
from installer.domain.problems import InstallerError, MalformedFile
from installer.domain.units import to_gib

MACHINES = sorted((Path(__file__).parents[1] / "machines").glob("*.json"))


def machine(name: str) -> Facts:
    return from_json((Path(__file__).parents[1] / "machines" / f"{name}.json").read_bytes(), name)


def document(name: str = "rtx-4090") -> dict[str, Any]:
    """A recorded machine as plain JSON values, to be spoiled."""
    values: dict[str, Any] = to_json(machine(name))
    return values


def malformed(text: str | bytes) -> MalformedFile:
    with pytest.raises(InstallerError) as caught:
        from_json(text, "machine.json")
    problem = caught.value.problem
    assert isinstance(problem, MalformedFile)
    assert problem.path == "machine.json"
    assert problem.reason
    return problem


def assert_holds(written: Any, recorded: Any) -> None:
    """All that was recorded is written again; what Slipway learnt to read since stands beside it."""
    if isinstance(recorded, dict):
        for name, value in recorded.items():
            assert_holds(written[name], value)
    else:
        assert written == recorded


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_a_recorded_machine_reads_back_as_it_was_written(path: Path) -> None:
    recorded = from_json(path.read_bytes(), str(path))
    assert recorded.recorded
    assert_holds(json.loads(json.dumps(to_json(recorded))), json.loads(path.read_bytes()))
    assert from_json(json.dumps(to_json(recorded))) == recorded


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_the_figures_of_a_recorded_card_add_up(path: Path) -> None:
    for gpu in from_json(path.read_bytes()).nvidia.gpus:
        if isinstance(gpu.memory, GpuMemory):
            parts = gpu.memory.free_bytes + gpu.memory.used_bytes + gpu.memory.reserved_bytes
            assert parts == gpu.memory.total_bytes
        if isinstance(gpu.memory, GpuMemory) and gpu.cuda:
            assert gpu.cuda.free_bytes <= gpu.cuda.total_bytes <= gpu.memory.total_bytes


def test_no_two_recorded_cards_share_a_uuid() -> None:
    uuids = [gpu.uuid for path in MACHINES for gpu in from_json(path.read_bytes()).nvidia.gpus]
    assert len(uuids) == len(set(uuids))


def test_the_recorded_states_are_told_apart() -> None:
    assert machine("no-nvidia-card").nvidia.state is NvidiaState.NO_DRIVER
    assert machine("engine-down").engine.state is EngineState.DOWN
    assert machine("podman-socket").engine.state is EngineState.PODMAN
    assert not machine("engine-without-nvidia-toolkit").engine.nvidia_ready
    assert machine("rtx-4090").engine.nvidia_ready


def test_wsl2_keeps_memory_that_nvml_shows_as_free() -> None:
    facts = machine("rtx-5090-wsl2")
    [gpu] = facts.nvidia.gpus
    assert facts.behind_wsl2
    assert isinstance(gpu.memory, GpuMemory)
    assert gpu.cuda
    assert round(to_gib(gpu.memory.free_bytes), 2) == 30.89
    assert round(to_gib(gpu.cuda.total_bytes), 2) == 31.84
    assert round(to_gib(gpu.cuda.free_bytes), 2) == 30.12


def test_a_missing_figure_stays_one_of_the_missing_states_after_reading() -> None:
    [gb10] = machine("gb10").nvidia.gpus
    assert gb10.memory is Missing.NOT_SUPPORTED
    assert gb10.driver_model is Missing.NOT_SUPPORTED
    [windows] = machine("rtx-5090-wsl2").nvidia.gpus
    assert windows.driver_model == "WDDM"
    assert not isinstance(windows.processes, Missing)
    assert windows.processes[0].name is Missing.NO_PERMISSION
    assert {process.used_bytes for process in windows.processes} == {Missing.NOT_SUPPORTED}


def test_cuda_figures_go_to_the_card_that_they_belong_to() -> None:
    facts = machine("two-cards-16-and-32gb")
    small, large = facts.nvidia.gpus
    seen = CudaMemory(total_bytes=33, free_bytes=32)
    told = facts.with_cuda(large.uuid, seen)
    assert [gpu.cuda for gpu in told.nvidia.gpus] == [None, seen]
    assert told.gpu(small.uuid) == small
    assert told.gpu("GPU-nobody") is None


@pytest.mark.parametrize(
    ("place", "value", "where"),
    [
        (("nvidia", "gpus", 0, "memory", "total_bytes"), "24 GB", "$.nvidia.gpus[0].memory.total_bytes"),
        (("nvidia", "gpus", 0, "memory"), "unknown", "$.nvidia.gpus[0].memory"),
        (("nvidia", "gpus", 0, "processes", 0, "used_bytes"), None, "$.nvidia.gpus[0].processes[0].used_bytes"),
        (("nvidia", "cuda_version"), "13.0", "$.nvidia.cuda_version"),
        (("engine", "state"), "asleep", "$.engine.state"),
        (("ports", "free"), ["http"], "$.ports.free[0]"),
        (("schema",), 2, "$.schema"),
    ],
)
def test_a_wrong_value_is_told_by_its_place(place: tuple[str | int, ...], value: object, where: str) -> None:
    spoiled = document()
    inside: Any = spoiled
    for step in place[:-1]:
        inside = inside[step]
    inside[place[-1]] = value
    assert malformed(json.dumps(spoiled)).where == where


def test_a_key_too_many_is_told_by_name_and_place() -> None:
    spoiled = document()
    spoiled["nvidia"]["gpus"][0]["vram"] = 24
    problem = malformed(json.dumps(spoiled))
    assert problem.where == "$.nvidia.gpus[0]"
    assert "vram" in problem.reason


def test_a_key_too_few_is_told_by_name_and_place() -> None:
    spoiled = document()
    del spoiled["nvidia"]["gpus"][0]["uuid"]
    problem = malformed(json.dumps(spoiled))
    assert problem.where == "$.nvidia.gpus[0]"
    assert "uuid" in problem.reason


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"name,memory\n4090,24",
        b"[]",
        b"[" * 100_000,
        '{"nvidia": "\ud800"}',
        b'{"recorded": "\xff\xfe", "nvidia": {}}',
        pytest.param(json.dumps(to_json(machine("t4"))).encode("utf-16"), id="utf-16"),
        pytest.param(json.dumps(to_json(machine("t4"))).encode()[:-9], id="cut"),
    ],
)
def test_what_is_no_machine_is_malformed(text: str | bytes) -> None:
    assert malformed(text).where.startswith("$")


@pytest.mark.parametrize("text", ["\ufeff", b"\xef\xbb\xbf"], ids=["text", "bytes"])
def test_a_byte_order_mark_is_no_fault(text: str | bytes) -> None:
    written = json.dumps(to_json(machine("t4")))
    marked = text + written if isinstance(text, str) else text + written.encode()
    assert from_json(marked) == machine("t4")

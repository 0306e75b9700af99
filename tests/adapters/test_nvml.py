"""The driver is read through the real nvidia-ml-py and a library of our own in NVML's place."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from installer.adapters.nvml import FROZEN_ARGUMENT, NvmlGpus
from installer.domain.facts import (
    Facts,
    Gpu,
    GpuMemory,
    GpuProcess,
    Missing,
    Nvidia,
    NvidiaState,
    from_json,
)
from installer.domain.units import GIB, MIB
from tests.rig.images.layers import compile_c
from tests.rig.nvml import RTX_5090, build_nvml, machine, write_machine
from tests.rig.process import AT_ONCE_S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the stub library is built for Linux")

MACHINES = sorted((Path(__file__).parents[1] / "machines").glob("*.json"))
SECOND = {**RTX_5090, "uuid": "GPU-00000000-0000-4000-8000-000000000002", "name": "NVIDIA GeForce RTX 5080"}
DRIVER_MODELS = {"WDDM": 0, "TCC": 1, "MCDM": 2}

Read = Callable[..., Nvidia]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_nvml(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def stub_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "machine.txt"
    monkeypatch.setenv("STUB_NVML_FILE", str(file))
    return file


@pytest.fixture
def read(library: Path, stub_file: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Read a machine of the stub as the product does; our own process took its library path at its start."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))

    def read_machine(*gpus: Mapping[str, Any], timeout_s: float = 30, **more: Any) -> Nvidia:
        write_machine(stub_file, machine(*gpus, **more))
        return NvmlGpus(timeout_s).read()

    return read_machine


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Read what a shell script says in the child's place, called as a frozen build calls itself."""

    def read_script(script: str, timeout_s: float = 30) -> Nvidia:
        program = tmp_path / "slipway"
        program.write_text(f'#!/bin/sh\n[ "$*" = "{FROZEN_ARGUMENT}" ] || exit 2\n{script}\n')
        program.chmod(0o755)
        monkeypatch.setattr(sys, "frozen", True, raising=False)
        monkeypatch.setattr(sys, "executable", str(program))
        return NvmlGpus(timeout_s).read()

    return read_script


def only(nvidia: Nvidia) -> Gpu:
    assert nvidia.state is NvidiaState.READ, nvidia
    [gpu] = nvidia.gpus
    return gpu


def processes(nvidia: Nvidia) -> tuple[GpuProcess, ...]:
    listed = only(nvidia).processes
    assert not isinstance(listed, Missing)
    return listed


# The recorded machines


def as_stub(gpu: Gpu) -> dict[str, Any]:
    """Turn a recorded card into the stub's terms; what is missing there is not written."""
    told: dict[str, Any] = {"name": gpu.name, "uuid": gpu.uuid, "mig": int(gpu.mig_enabled)}
    if isinstance(gpu.memory, GpuMemory):
        told |= {"total": gpu.memory.total_bytes, "free": gpu.memory.free_bytes, "reserved": gpu.memory.reserved_bytes}
    if not isinstance(gpu.compute_capability, Missing):
        told["capability"] = ".".join(map(str, gpu.compute_capability))
    if not isinstance(gpu.driver_model, Missing):
        told["driver_model"] = DRIVER_MODELS[gpu.driver_model]
    if not isinstance(gpu.processes, Missing):
        told["processes"] = [
            {
                "pid": process.pid,
                "kind": "graphics",
                "name": None if isinstance(process.name, Missing) else process.name,
                "used": None if isinstance(process.used_bytes, Missing) else process.used_bytes,
            }
            for process in gpu.processes
        ]
    return told


def as_nvml_tells(facts: Facts) -> Nvidia:
    """The recorded part of NVML, without CUDA's figures; the stub has one answer for all that it cannot name."""

    def without_cuda(gpu: Gpu) -> Gpu:
        listed = gpu.processes
        if not isinstance(listed, Missing):
            listed = tuple(
                msgspec.structs.replace(p, name=Missing.NOTHING_THERE) if isinstance(p.name, Missing) else p
                for p in listed
            )
        return msgspec.structs.replace(gpu, cuda=None, processes=listed)

    return msgspec.structs.replace(facts.nvidia, gpus=tuple(without_cuda(gpu) for gpu in facts.nvidia.gpus))


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_a_recorded_machine_reads_as_it_was_recorded(path: Path, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = from_json(path.read_bytes(), str(path))
    if facts.nvidia.state is NvidiaState.NO_DRIVER:
        monkeypatch.delenv("LD_LIBRARY_PATH")
    major, minor = facts.nvidia.cuda_version or (0, 0)
    seen = read(*map(as_stub, facts.nvidia.gpus), driver=facts.nvidia.driver_version, cuda=major * 1000 + minor * 10)
    assert seen == as_nvml_tells(facts)


# States of the driver


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (3, NvidiaState.NOT_SUPPORTED),
        (4, NvidiaState.NO_PERMISSION),
        (9, NvidiaState.NOT_LOADED),
        (10, NvidiaState.TIMED_OUT),
        (12, NvidiaState.NO_DRIVER),
        (15, NvidiaState.GPU_LOST),
        (18, NvidiaState.LIBRARY_MISMATCH),
        (999, NvidiaState.FAILED),
    ],
)
def test_why_nvml_does_not_come_up_is_told_by_its_code(code: int, state: NvidiaState, read: Read) -> None:
    seen = read(RTX_5090, returns={"nvmlInit_v2": code})
    assert seen.state is state
    assert seen.gpus == ()
    assert str(code) in seen.detail


def test_no_library_is_no_driver(stub_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert NvmlGpus().read().state is NvidiaState.NO_DRIVER


def test_a_driver_without_a_card_is_no_device_and_keeps_its_version(read: Read) -> None:
    seen = read(driver="590.48.01", cuda=13010)
    assert (seen.state, seen.driver_version, seen.cuda_version) == (NvidiaState.NO_DEVICE, "590.48.01", (13, 1))


def test_a_driver_that_does_not_tell_its_versions_is_still_read(read: Read) -> None:
    seen = read(RTX_5090, returns={"nvmlSystemGetCudaDriverVersion": 12, "nvmlSystemGetDriverVersion": 999})
    assert only(seen).uuid == RTX_5090["uuid"]
    assert (seen.driver_version, seen.cuda_version) == (None, None)


def test_an_older_driver_is_asked_in_its_older_ways(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = {
        "nvmlSystemGetCudaDriverVersion_v2": "not_there_1",
        "nvmlDeviceGetMemoryInfo_v2": "not_there_2",
        "nvmlDeviceGetDriverModel_v2": "not_there_3",
        "nvmlDeviceGetComputeRunningProcesses_v3": "nvmlDeviceGetComputeRunningProcesses_v2",
        "nvmlDeviceGetGraphicsRunningProcesses_v3": "nvmlDeviceGetGraphicsRunningProcesses_v2",
    }
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build_with(tmp_path, "", *(f"-D{k}={v}" for k, v in older.items()))))
    seen = read({**RTX_5090, "driver_model": 0, "processes": [{"pid": 7, "used": 70}]}, cuda=12020)
    gpu = only(seen)
    assert seen.cuda_version == (12, 2)
    assert isinstance(gpu.memory, GpuMemory)
    assert gpu.memory.reserved_bytes == 0
    assert gpu.driver_model == "WDDM"
    assert [process.used_bytes for process in processes(seen)] == [70]


def test_cuda_version_is_asked_the_older_way_where_libcuda_is_not_there(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = "nvmlSystemGetCudaDriverVersion_v2"
    wants_libcuda = f"#undef {newer}\nint {newer}(int *version) {{ *version = 0; return 12; }}"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build_with(tmp_path, wants_libcuda, f"-D{newer}=not_there")))
    assert read(RTX_5090, cuda=13010).cuda_version == (13, 1)


# A driver that hangs or crashes


def stub_readers(stub_file: Path) -> list[str]:
    """The processes that read this stub file, by the environment that they were started with."""
    wanted = f"STUB_NVML_FILE={stub_file}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                found.append(process.name)
        except OSError:
            continue
    return found


def test_a_driver_that_hangs_is_given_up_at_the_limit_and_its_reader_is_dead(read: Read, stub_file: Path) -> None:
    seen: list[Nvidia] = []
    began = time.monotonic()
    reader = threading.Thread(target=lambda: seen.append(read(RTX_5090, hang="nvmlInit", timeout_s=1.5)))
    reader.start()
    while not stub_readers(stub_file):
        assert reader.is_alive()
    reader.join()
    assert 1.5 <= time.monotonic() - began < AT_ONCE_S
    assert seen[0].state is NvidiaState.TIMED_OUT
    assert stub_readers(stub_file) == []


def test_what_was_known_before_the_driver_hung_is_kept(read: Read) -> None:
    hanging = {**SECOND, "processes": [{"pid": 7, "used": 1}]}
    seen = read(RTX_5090, hanging, hang="nvmlSystemGetProcessName", timeout_s=2.5)
    assert seen.state is NvidiaState.TIMED_OUT
    assert seen.driver_version == "580.95.05"
    assert [gpu.uuid for gpu in seen.gpus] == [RTX_5090["uuid"]]


def build_with(folder: Path, code: str, *options: str) -> Path:
    """The stub library with some more C in it, or some names of it replaced; returns its folder."""
    source = folder / "more.c"
    source.write_text(f"#include <stdlib.h>\n{code}\n")
    stub = Path(__file__).parents[1] / "rig" / "nvml" / "nvml.c"
    compile_c([stub, source], folder / "libnvidia-ml.so.1", "-shared", "-fPIC", *options)
    return folder


@pytest.mark.parametrize("code", ["abort();", "_Exit(3);"])
def test_a_driver_that_crashes_takes_only_the_child_with_it(
    code: str, read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_loading = f"__attribute__((constructor)) static void fall(void) {{ {code} }}"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build_with(tmp_path, at_loading)))
    seen = read(RTX_5090)
    assert seen.state is NvidiaState.FAILED
    assert ("-6" if "abort" in code else "3") in seen.detail


def test_a_driver_that_crashes_on_unloading_was_read(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_unloading = "__attribute__((destructor)) static void fall(void) { abort(); }"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build_with(tmp_path, at_unloading)))
    assert only(read(RTX_5090)).uuid == RTX_5090["uuid"]


def test_a_reader_that_hangs_after_its_last_word_was_read(stand_in: Read) -> None:
    assert stand_in("""echo '{"line":"done"}'; exec sleep 60""", timeout_s=1).state is NvidiaState.NO_DEVICE


def test_why_the_reader_could_not_start_is_told(stand_in: Read) -> None:
    seen = stand_in("echo Traceback >&2; echo \"ModuleNotFoundError: No module named 'pynvml'\" >&2; exit 1")
    assert seen.state is NvidiaState.FAILED
    assert "No module named 'pynvml'" in seen.detail


def test_no_reader_at_all_is_a_failure_and_not_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert NvmlGpus().read().state is NvidiaState.FAILED


def test_what_a_library_prints_on_its_own_is_passed_over(stand_in: Read) -> None:
    seen = stand_in(
        """printf 'NVML: hello \\377\\n{"line":"driver","version":"580","cuda":[13,0]}\\n[1]\\n{"line":"done"}\\n'"""
    )
    assert (seen.state, seen.driver_version) == (NvidiaState.NO_DEVICE, "580")


def test_half_a_line_is_not_taken_for_an_answer(stand_in: Read) -> None:
    seen = stand_in("""printf '{"line":"driver","version":"580","cuda":[13,0]}\\n{"line":"do'""")
    assert seen.state is NvidiaState.FAILED
    assert seen.driver_version == "580"


# Cards


def test_free_is_what_the_driver_can_give_and_reserved_is_apart(read: Read) -> None:
    memory = only(read({**RTX_5090, "total": 32 * GIB, "reserved": 500 * MIB, "free": 30 * GIB})).memory
    assert memory == GpuMemory(
        total_bytes=32 * GIB, free_bytes=30 * GIB, used_bytes=2 * GIB - 500 * MIB, reserved_bytes=500 * MIB
    )


@pytest.mark.parametrize("code", [13, 25])
def test_an_older_driver_tells_memory_without_the_reserved_part(code: int, read: Read) -> None:
    card = {**RTX_5090, "total": 24 * GIB, "reserved": GIB, "free": 20 * GIB}
    memory = only(read(card, returns={"nvmlDeviceGetMemoryInfo_v2": code})).memory
    assert memory == GpuMemory(total_bytes=24 * GIB, free_bytes=20 * GIB, used_bytes=4 * GIB)


@pytest.mark.parametrize(
    ("code", "missing"),
    [(3, Missing.NOT_SUPPORTED), (4, Missing.NO_PERMISSION), (6, Missing.NOTHING_THERE)],
)
def test_what_the_driver_does_not_tell_is_missing_and_never_zero(code: int, missing: Missing, read: Read) -> None:
    questions = [
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetCudaComputeCapability",
        "nvmlDeviceGetDriverModel_v2",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetMigMode",
    ]
    gpu = only(read({**RTX_5090, "returns": dict.fromkeys(questions, code)}))
    assert [gpu.memory, gpu.compute_capability, gpu.driver_model, gpu.processes] == [missing] * 4
    assert gpu.mig_enabled is False


def test_only_a_card_that_cannot_tell_its_memory_shares_the_computers(read: Read) -> None:
    shared = {key: value for key, value in RTX_5090.items() if key not in ("total", "free", "reserved")}
    refused = {**SECOND, "returns": {"nvmlDeviceGetMemoryInfo": 4, "nvmlDeviceGetMemoryInfo_v2": 4}}
    assert [gpu.unified_memory for gpu in read(shared, refused).gpus] == [True, False]


@pytest.mark.parametrize("broken", [{"lost": 1}, {"returns": {"nvmlDeviceGetHandleByIndex_v2": 4}}])
@pytest.mark.parametrize("which", [0, 1])
def test_one_lost_card_does_not_lose_the_other(which: int, broken: Mapping[str, Any], read: Read) -> None:
    cards = [dict(RTX_5090), dict(SECOND)]
    cards[which] |= broken
    seen = read(*cards)
    gpu = only(seen)
    assert (gpu.index, gpu.uuid) == (1 - which, cards[1 - which]["uuid"])
    assert f"card {which}:" in seen.detail


@pytest.mark.parametrize("code", [15, 16], ids=["lost", "needs a reset"])
def test_a_card_that_is_lost_in_the_middle_of_the_questions_is_lost(code: int, read: Read) -> None:
    seen = read(RTX_5090, {**SECOND, "returns": {"nvmlDeviceGetMigMode": code}})
    assert only(seen).uuid == RTX_5090["uuid"]
    assert f"card 1: NVML error {code}" in seen.detail


@pytest.mark.parametrize(
    ("broken", "state"),
    [
        ({"lost": 1}, NvidiaState.GPU_LOST),
        ({"returns": {"nvmlDeviceGetHandleByIndex_v2": 4}}, NvidiaState.NO_PERMISSION),
        ({"returns": {"nvmlDeviceGetHandleByIndex_v2": 999}}, NvidiaState.FAILED),
    ],
)
def test_when_no_card_answers_the_state_says_why(broken: Mapping[str, Any], state: NvidiaState, read: Read) -> None:
    assert read({**RTX_5090, **broken}).state is state


def test_a_single_strange_answer_costs_neither_the_card_nor_its_trace(read: Read) -> None:
    seen = read({**RTX_5090, "returns": {"nvmlDeviceGetComputeRunningProcesses_v3": 999}})
    assert only(seen).memory is not Missing.NOTHING_THERE
    assert re.search(r"card 0: nvmlDeviceGetComputeRunningProcesses\w*: NVML error 999", seen.detail)


@pytest.mark.parametrize(("number", "model"), [(0, "WDDM"), (1, "TCC"), (2, "MCDM")])
def test_the_driver_model_of_windows_has_its_name(number: int, model: str, read: Read) -> None:
    assert only(read({**RTX_5090, "driver_model": number})).driver_model == model


def test_a_name_of_any_bytes_is_read(read: Read, stub_file: Path) -> None:
    """Rewritten behind the stub's own writer, which takes text only."""
    write_machine(stub_file, machine({**RTX_5090, "name": "NVIDIA @", "processes": [{"pid": 5, "name": "@exe"}]}))
    stub_file.write_bytes(stub_file.read_bytes().replace(b"@", b"\xff\xc3"))
    seen = NvmlGpus(30).read()
    assert only(seen).name == "NVIDIA \ufffd\ufffd"
    assert processes(seen)[0].name == "\ufffd\ufffdexe"


# Processes


def test_memory_of_processes_is_not_told_under_wddm(read: Read) -> None:
    told = {"driver_model": 0, "processes": [{"pid": 6120, "name": r"C:\Windows\explorer.exe", "used": None}]}
    assert processes(read({**RTX_5090, **told})) == (
        GpuProcess(pid=6120, name=r"C:\Windows\explorer.exe", used_bytes=Missing.NOT_SUPPORTED),
    )


def test_a_process_that_computes_and_draws_is_listed_once(read: Read) -> None:
    both = [
        {"pid": 90, "kind": "graphics", "name": "blender", "used": 700},
        {"pid": 90, "kind": "compute", "name": "blender", "used": 900},
        {"pid": 91, "kind": "compute", "name": "python", "used": None},
        {"pid": 91, "kind": "graphics", "name": "python", "used": 5},
        {"pid": 12, "kind": "graphics", "name": "Xorg", "used": 0},
    ]
    listed = processes(read({**RTX_5090, "processes": both}))
    assert [(p.pid, p.name, p.used_bytes) for p in listed] == [
        (12, "Xorg", 0),
        (90, "blender", 900),
        (91, "python", 5),
    ]


@pytest.mark.parametrize(("code", "missing"), [(4, Missing.NO_PERMISSION), (6, Missing.NOTHING_THERE)])
def test_a_process_without_a_name_is_still_listed(code: int, missing: Missing, read: Read) -> None:
    seen = read(
        {**RTX_5090, "processes": [{"pid": 4, "name": "System", "used": 3}]},
        returns={"nvmlSystemGetProcessName": code},
    )
    [process] = processes(seen)
    assert process.name is missing
    assert process.used_bytes == 3


def test_processes_are_told_where_only_one_of_the_lists_can_be_read(read: Read) -> None:
    card = {
        **RTX_5090,
        "processes": [{"pid": 12, "kind": "graphics", "name": "Xorg", "used": 8}],
        "returns": {"nvmlDeviceGetComputeRunningProcesses_v3": 3},
    }
    assert [process.pid for process in processes(read(card))] == [12]


# The child


def test_modules_in_the_working_folder_are_not_ours(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("inspect", "pynvml", "msgspec"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    assert read(RTX_5090).state is NvidiaState.READ


def test_the_driver_library_is_never_loaded_in_our_own_process() -> None:
    code = "import sys, installer.adapters.nvml; sys.exit('pynvml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0

"""Diagnosis by the words of real logs; what is not known stays unknown."""

from __future__ import annotations

import pytest

from installer.domain import diagnosis
from installer.domain.problems import (
    ContainerExited,
    ContainerKilled,
    CudaOutOfMemory,
    FreeBelowUtilisation,
    KvCacheTooSmall,
    NoCacheBlocks,
    StateBlocksTooFew,
    UnknownArgument,
)
from tests.builders import shipped_registry

TABLE = shipped_registry().known_failures()
GATE = (
    "ValueError: Free memory on device cuda:0 (30.12/31.84 GiB) on startup is less than desired GPU memory "
    "utilization (0.95, 30.25 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
)
KV = (
    "(EngineCore_DP0 pid=1094) ValueError: To serve at least one request with the models's max seq len (262144), "
    "(24.0 GiB KV cache is needed, which is larger than the available KV cache memory (3.18 GiB). Based on the "
    "available memory, the estimated maximum model length is 34736. Try increasing `gpu_memory_utilization`"
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 784.00 MiB. GPU 0 has a total capacity of 31.36 GiB"
)


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (GATE, FreeBelowUtilisation(free_gib=30.12, total_gib=31.84, utilisation=0.95, wanted_gib=30.25)),
        (
            GATE.replace(" cuda:0", ""),
            FreeBelowUtilisation(free_gib=30.12, total_gib=31.84, utilisation=0.95, wanted_gib=30.25),
        ),
        (KV, KvCacheTooSmall(context=262144, needed_gib=24.0, available_gib=3.18, possible_tokens=34736)),
        ("ValueError: No available memory for the cache blocks. Try increasing …", NoCacheBlocks()),
        (
            "ValueError: max_num_seqs (256) exceeds available Mamba cache blocks (184)",
            StateBlocksTooFew(max_num_seqs=256, blocks=184),
        ),
        ("vllm serve: error: unrecognized arguments: --swap-space 4", UnknownArgument(arguments="--swap-space 4")),
        (f"Loading safetensors checkpoint shards: 50%\n{OOM}", CudaOutOfMemory(phase="weights", tried="784.00 MiB")),
        (f"Available KV cache memory: 2.1 GiB\n{OOM}", CudaOutOfMemory(phase="graphs", tried="784.00 MiB")),
        (f"Capturing CUDA graphs (decode, FULL): 40%\n{OOM}", CudaOutOfMemory(phase="graphs", tried="784.00 MiB")),
        (f"Application startup complete.\n{OOM}", CudaOutOfMemory(phase="request", tried="784.00 MiB")),
    ],
)
def test_a_log_that_names_its_cause(log: str, expected):
    assert diagnosis.of_container(log, 1, TABLE, out_of_memory=False) == expected


def test_a_kill_from_outside_is_told_apart_from_a_crash():
    assert diagnosis.of_container("loading", 137, TABLE, out_of_memory=False) == ContainerKilled(out_of_memory=False)
    assert diagnosis.of_container("loading", 1, TABLE, out_of_memory=True) == ContainerKilled(out_of_memory=True)


def test_a_cause_in_the_log_is_told_rather_than_the_kill():
    assert isinstance(diagnosis.of_container(GATE, 137, TABLE, out_of_memory=False), FreeBelowUtilisation)


def test_an_unknown_end_keeps_the_lines_that_say_something():
    log = "INFO start\nOSError: cannot read /models/x\n" + "INFO noise\n" * 50
    problem = diagnosis.of_container(log, 1, TABLE, out_of_memory=False)
    assert problem == ContainerExited(exit_code_of_container=1, lines=("OSError: cannot read /models/x",))


@pytest.mark.parametrize(
    "line",
    [
        "INFO 12-01 [loader.py:1] Loading safetensors checkpoint shards: 100% Completed | 4/4",
        "WARNING Your GPU does not have native support for FP4 computation but FP4 quantization is being used.",
        "WARNING Weight-only FP4 compression will be used leveraging the Marlin kernel.",
        "misc dxg: dxgk: dxgkio_query_adapter_info: Ioctl failed: -22",
        "WARNING Using 'pin_memory=False' as WSL is detected.",
        "/sbin/ldconfig.real: /usr/lib/wsl/lib/libcuda.so.1 is not a symbolic link",
    ],
)
def test_harmless_lines_are_no_problem(line: str):
    assert diagnosis.of_log(line, TABLE) is None


@pytest.mark.parametrize(
    ("log", "phase"),
    [
        ("", "starting"),
        ("Starting to load model x", "weights"),
        ("Loading safetensors\nDynamo bytecode transform time: 3 s", "compile"),
        ("Model loading took 20 GiB\nAvailable KV cache memory: 4 GiB", "kv_cache"),
        ("Available KV cache memory: 4 GiB\nCapturing CUDA graphs", "graphs"),
        ("Graph capturing finished\nINFO:     Application startup complete.", "serving"),
    ],
)
def test_how_far_a_start_came(log: str, phase: str):
    assert diagnosis.phase(log) == phase

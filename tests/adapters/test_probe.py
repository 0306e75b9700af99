"""The helper container, run for real: the engine takes the GPU request, the image has a stub for NVIDIA's driver."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from installer.adapters import helper_probe
from installer.adapters.engine import DockerEngine
from installer.adapters.engine_probe import reading_of
from installer.domain.facts import CudaMemory
from installer.domain.problems import (
    Cancelled,
    EngineTimedOut,
    GpuNotInContainer,
    NvidiaToolkitMissing,
)
from installer.domain.sources import ImageSource
from installer.steps.cancel import Cancel
from tests.rig import images
from tests.rig.engine import PrivateEngine
from tests.rig.images import push_helper
from tests.rig.images.layers import compile_c
from tests.rig.process import AT_ONCE_S
from tests.rig.rig import Rig

from .engine_kit import GPU, problem_in, source, use

OTHER = "GPU-aaaaaaaa-2222-3333-4444-555555555555"


@pytest.fixture
def engine(private_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch) -> DockerEngine:
    use(private_engine, monkeypatch)
    return DockerEngine()


def helper(rig: Rig, name: str, **stub: str) -> ImageSource:
    return source(rig.registry, push_helper(rig.registry, namespace=name, env=stub))


def no_probe_left(private_engine: PrivateEngine) -> bool:
    with contextlib.closing(private_engine.client()) as client:
        return client.containers.list(all=True, filters={"label": "app.slipway.role=probe"}) == []


def test_the_probe_reads_cudas_memory_and_the_engines_disk(
    engine: DockerEngine, rig: Rig, private_engine: PrivateEngine
) -> None:
    image = helper(rig, "reads", STUB_CUDA_FREE_BYTES="30123456789", STUB_CUDA_TOTAL_BYTES="33665843200")
    reading = engine.probe(image, GPU, Cancel())
    assert reading.cuda == CudaMemory(total_bytes=33_665_843_200, free_bytes=30_123_456_789)
    disk = os.statvfs(private_engine.data_root)
    assert abs(reading.data_root_free_bytes - disk.f_bavail * disk.f_frsize) < 1 << 30
    assert no_probe_left(private_engine)
    assert engine.has_image(image)


def test_without_a_card_the_probe_reads_the_disk_alone(engine: DockerEngine, rig: Rig) -> None:
    reading = engine.probe(helper(rig, "disk"), None, Cancel())
    assert reading.cuda is None
    assert reading.data_root_free_bytes > 0


@pytest.mark.parametrize("code", [100, 804])
def test_cudas_own_error_code_is_kept(engine: DockerEngine, rig: Rig, private_engine: PrivateEngine, code: int) -> None:
    image = helper(rig, f"code{code}", STUB_CUDA_INIT_ERROR=str(code))
    problem = problem_in(lambda: engine.probe(image, GPU, Cancel()))
    assert problem == GpuNotInContainer(gpu=GPU, cuda_error=code, detail="cuInit")
    assert no_probe_left(private_engine)


@pytest.mark.parametrize(
    ("there", "found"), [((OTHER, GPU), True), ((OTHER, OTHER.replace("a", "b")), False), ((OTHER,), True)]
)
def test_among_several_cards_the_one_with_the_uuid_counts(
    needs_root: None, tmp_path: Path, there: tuple[str, ...], found: bool
) -> None:
    compile_c([Path(images.__file__).parent / "helper/libcuda.c"], tmp_path / "libcuda.so.1", "-shared", "-fPIC")
    environment = {"LD_LIBRARY_PATH": str(tmp_path), "NVIDIA_VISIBLE_DEVICES": ",".join(there)}
    command = [sys.executable, helper_probe.__file__, GPU]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    if found:
        assert reading_of(done.returncode, done.stdout, done.stderr, GPU).cuda is not None
    else:
        problem = problem_in(lambda: reading_of(done.returncode, done.stdout, done.stderr, GPU))
        assert problem == GpuNotInContainer(gpu=GPU, cuda_error=None, detail="cuDeviceGet")


def test_an_engine_without_nvidias_toolkit_says_so(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    with PrivateEngine(nvidia=False) as plain:
        use(plain, monkeypatch)
        image = helper(rig, "plain")
        problem = problem_in(lambda: DockerEngine().probe(image, GPU, Cancel()))
        assert isinstance(problem, NvidiaToolkitMissing)
        assert "runc" in problem.runtimes
        assert not problem.docker_desktop
        assert no_probe_left(plain)
        assert DockerEngine().probe(image, None, Cancel()).cuda is None


def test_a_probe_that_hangs_is_ended_and_removed(
    engine: DockerEngine, rig: Rig, private_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("installer.adapters.engine_probe._source", lambda: "import time; time.sleep(600)")
    problem = problem_in(lambda: DockerEngine(probe_s=1).probe(helper(rig, "disk"), GPU, Cancel()))
    assert problem == EngineTimedOut(endpoint=private_engine.host, seconds=1)
    assert no_probe_left(private_engine)
    cancel = Cancel()
    threading.Timer(1, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        engine.probe(helper(rig, "disk"), GPU, cancel)
    assert time.monotonic() - began < AT_ONCE_S
    assert no_probe_left(private_engine)

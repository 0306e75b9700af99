"""Images of a real Docker Engine, pulled from a real registry that is as slow, stuck or gone as a real one."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from installer.adapters.engine import DockerEngine
from installer.adapters.engine_images import anchor_of
from installer.domain.problems import (
    Cancelled,
    DigestGone,
    DiskFull,
    EngineLost,
    NoSuchPlatform,
    Stalled,
    Unreachable,
)
from installer.domain.sources import ImageSource
from installer.steps.cancel import Cancel
from tests.rig.engine import PrivateEngine
from tests.rig.images import push_standin
from tests.rig.process import AT_ONCE_S, wait_for
from tests.rig.rig import Rig
from tests.rig.throttle import Throttle

from .engine_kit import Reports, problem_in, source, use

NOBODY = Reports()


@pytest.fixture
def engine(private_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch) -> DockerEngine:
    use(private_engine, monkeypatch)
    return DockerEngine()


def fresh(rig: Rig, name: str, ballast: tuple[int, ...] = (400_000, 200_000)) -> ImageSource:
    """An image with layers that no engine has."""
    return source(rig.registry, push_standin(rig.registry, namespace=name, salt=name, ballast=ballast))


def test_a_pull_reports_every_byte_once_and_the_digest_is_there_afterwards(engine: DockerEngine, rig: Rig) -> None:
    with Throttle(rig.registry.port, rate=4_000_000) as slow:
        pushed = push_standin(rig.registry, namespace="bytes", salt="bytes", ballast=(1_500_000, 700_000))
        image = source(rig.registry, pushed, slow.address)
        assert not engine.has_image(image)
        reports = Reports()
        engine.pull(image, reports, Cancel())
    assert engine.has_image(image)
    assert {total for _, total in reports.seen} == {image.size_bytes}
    assert all(earlier[0] <= later[0] for earlier, later in pairwise(reports.seen))
    assert (reports.seen[0][0], reports.seen[-1][0]) == (0, image.size_bytes)
    assert len({done for done, _ in reports.seen}) > 5, "the bar moved, and did not only jump"


def test_pulling_what_is_there_ends_full_and_fetches_nothing(engine: DockerEngine, rig: Rig) -> None:
    image = fresh(rig, "again")
    engine.pull(image, NOBODY, Cancel())
    rig.registry.clear_log()
    reports = Reports()
    engine.pull(image, reports, Cancel())
    assert reports.seen[-1] == (image.size_bytes, image.size_bytes)
    assert rig.registry.blob_requests("again/vllm/vllm-openai") == []


def test_the_anchor_holds_the_image_through_a_prune(
    engine: DockerEngine, rig: Rig, private_engine: PrivateEngine
) -> None:
    image = fresh(rig, "anchored")
    engine.pull(image, NOBODY, Cancel())
    prune = ["docker", "image", "prune", "--force"]
    subprocess.run(prune, env=private_engine.env, check=True, capture_output=True)
    assert engine.has_image(image)
    assert anchor_of(image) == f"slipway.local/anchored/vllm/vllm-openai:v0.33.0-{image.index_digest[7:19]}"


def test_removing_an_image_takes_its_anchor_along_and_says_what_it_freed(engine: DockerEngine, rig: Rig) -> None:
    image = fresh(rig, "removed")
    engine.pull(image, NOBODY, Cancel())
    assert engine.remove_image(image) > 600_000
    assert not engine.has_image(image)
    assert engine.remove_image(image) == 0


def test_an_image_that_carries_the_publishers_tag_goes_as_a_whole(
    engine: DockerEngine, rig: Rig, private_engine: PrivateEngine
) -> None:
    image = fresh(rig, "tagged")
    engine.pull(image, NOBODY, Cancel())
    with contextlib.closing(private_engine.client()) as client:
        assert image.by_tag not in client.images.get(image.by_digest).tags
        engine.tag(image)
        assert image.by_tag in client.images.get(image.by_digest).tags
    assert engine.remove_image(image) > 0
    assert not engine.has_image(image)


def test_a_tag_that_a_person_gave_an_image_stays_theirs(
    engine: DockerEngine, rig: Rig, private_engine: PrivateEngine
) -> None:
    image = fresh(rig, "theirs")
    engine.pull(image, NOBODY, Cancel())
    with contextlib.closing(private_engine.client()) as client:
        client.images.get(image.by_digest).tag("my/own", "name")
        assert engine.remove_image(image) == 0
        assert client.images.get("my/own:name").tags == ["my/own:name"]


def test_another_digest_under_the_same_tag_is_another_image(engine: DockerEngine, rig: Rig) -> None:
    image = fresh(rig, "moved")
    engine.pull(image, NOBODY, Cancel())
    newer = source(rig.registry, push_standin(rig.registry, namespace="moved", salt="newer", ballast=(1000,)))
    assert newer.tag == image.tag
    assert engine.has_image(image)
    assert not engine.has_image(newer)


def test_a_pull_is_cancelled_at_once_and_the_engine_stops_fetching(engine: DockerEngine, rig: Rig) -> None:
    pushed = push_standin(rig.registry, namespace="cancel", salt="cancel", ballast=(4_000_000,))
    with Throttle(rig.registry.port, rate=100_000) as slow:
        image = source(rig.registry, pushed, slow.address)
        cancel, pressed = Cancel(), []

        def press() -> None:
            pressed.append(time.monotonic())
            threading.Thread(target=cancel.set).start()

        with pytest.raises(Cancelled):
            engine.pull(image, Reports(mark=50_000, passed=press), cancel)
        assert time.monotonic() - pressed[0] < AT_ONCE_S
        wait_for(lambda: slow.open_connections == 0, 10, "the engine to let go of the registry")
    assert not engine.has_image(image)


@pytest.mark.parametrize("stage", ["before the manifest came", "in a layer"])
def test_a_stalled_pull_is_cancelled_at_once(engine: DockerEngine, rig: Rig, stage: str) -> None:
    name = f"stall{len(stage)}"
    pushed = push_standin(rig.registry, namespace=name, salt=name, ballast=(3_000_000,))
    with Throttle(rig.registry.port, rate=1_000_000) as line:
        image = source(rig.registry, pushed, line.address)
        cancel = Cancel()

        def stop_moving() -> None:
            line.stall()
            threading.Timer(0.5, cancel.set).start()

        reports = Reports()
        if stage == "in a layer":
            reports = Reports(mark=100_000, passed=stop_moving)
        else:
            stop_moving()
        began = time.monotonic()
        with pytest.raises(Cancelled):
            engine.pull(image, reports, cancel)
        assert time.monotonic() - began < AT_ONCE_S


def test_a_pull_that_stands_still_is_given_up(engine: DockerEngine, rig: Rig) -> None:
    pushed = push_standin(rig.registry, namespace="quiet", salt="quiet", ballast=(2_000_000,))
    with Throttle(rig.registry.port, rate=1_000_000) as line:
        image = source(rig.registry, pushed, line.address)
        reports = Reports(mark=100_000, passed=line.stall)
        problem = problem_in(lambda: DockerEngine(stall_s=1).pull(image, reports, Cancel()))
    assert problem == Stalled(what=image.repository, seconds=1)


def test_a_digest_that_the_registry_lost_is_named_with_its_tag(engine: DockerEngine, rig: Rig) -> None:
    image = fresh(rig, "gone")
    rig.registry.delete_manifest("gone/vllm/vllm-openai", image.index_digest)
    problem = problem_in(lambda: engine.pull(image, NOBODY, Cancel()))
    assert problem == DigestGone(image=image.repository, digest=image.index_digest, tag="v0.33.0")


def test_an_image_for_other_processors_only_is_refused(engine: DockerEngine, rig: Rig) -> None:
    from msgspec.structs import replace

    image = replace(fresh(rig, "riscv"), platform="linux/riscv64")
    problem = problem_in(lambda: engine.pull(image, NOBODY, Cancel()))
    assert isinstance(problem, NoSuchPlatform)
    assert problem.platform == "linux/riscv64"


def test_a_registry_that_is_not_there_is_unreachable(engine: DockerEngine, rig: Rig) -> None:
    from msgspec.structs import replace

    image = replace(fresh(rig, "nowhere"), repository="127.0.0.1:9/nowhere/vllm")
    problem = problem_in(lambda: engine.pull(image, NOBODY, Cancel()))
    assert isinstance(problem, Unreachable)
    assert problem.host == "127.0.0.1:9"


def test_a_missing_credential_helper_does_not_stop_a_public_pull(
    engine: DockerEngine, rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text('{"credsStore": "desktop.exe"}')
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    image = fresh(rig, "credentials")
    engine.pull(image, NOBODY, Cancel())
    assert engine.has_image(image)


def test_a_full_data_root_is_named_with_what_is_left(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    image = fresh(rig, "full", ballast=(30_000_000, 30_000_000))
    with PrivateEngine(data_root_size_mb=40) as small:
        use(small, monkeypatch)
        problem = problem_in(lambda: DockerEngine().pull(image, NOBODY, Cancel()))
        assert isinstance(problem, DiskFull)
        assert (problem.where, problem.engine) == (str(small.data_root), True)
        assert problem.free_bytes is not None
        assert problem.free_bytes < 40 << 20


@pytest.mark.parametrize("end", [PrivateEngine.kill, PrivateEngine.halt], ids=["killed", "stopped"])
def test_an_engine_that_goes_away_in_a_pull_is_lost(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, end: Callable[[PrivateEngine], None]
) -> None:
    name = f"lost-{end.__name__}"
    pushed = push_standin(rig.registry, namespace=name, salt=name, ballast=(4_000_000,))
    with PrivateEngine() as mortal, Throttle(rig.registry.port, rate=500_000) as slow:
        use(mortal, monkeypatch)
        image = source(rig.registry, pushed, slow.address)
        reports = Reports(mark=200_000, passed=lambda: threading.Thread(target=end, args=(mortal,)).start())
        problem = problem_in(lambda: DockerEngine().pull(image, reports, Cancel()))
    assert isinstance(problem, EngineLost)
    assert problem.operation == "pull"

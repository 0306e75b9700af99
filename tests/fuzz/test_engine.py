"""What the driver's library, a container engine and Slipway's own files say, and what goes into a Compose file."""

from __future__ import annotations

import json
import os
import struct
from functools import cache
from typing import Any
from unittest import mock

import msgspec
import pytest
import yaml
from hypothesis import strategies as st

from installer.adapters import engine_images, engine_probe, nvml
from installer.adapters.engine import DockerEngine
from installer.adapters.engine_endpoint import endpoint_of
from installer.domain import checks, compose, compose_reading, inspection, pasted, remarks
from installer.domain import plan as plans
from installer.domain.facts import Host, Nvidia
from installer.domain.plan import Plan
from installer.domain.progress import PullProgress
from installer.domain.sources import Layer
from installer.steps.bookmark import Bookmark
from installer.steps.cancel import Cancel
from installer.steps.home import Home
from installer.steps.smoke import SmokeReport
from tests.builders import image, planned, recorded
from tests.fuzz import planted
from tests.fuzz.broken import TEXTS, as_json, broken_json, cut_up, mutated
from tests.fuzz.command import slipway
from tests.fuzz.kit import KEY, TOKEN, keeps_quiet, survives, target, told, written
from tests.fuzz.scratch import fresh
from tests.fuzz.test_words import CONTAINER, IMAGE, INFO, LOGS
from tests.fuzz.wire import FINE, Request, Spoiled, in_turn, spoiled, wire

# docker-py leaves the files of a context, and the connections of answers that were cut, to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

# --- NVML ------------------------------------------------------------------------------------------------------------

GIB = 1024**3


@cache
def nvml_lines() -> tuple[Any, ...]:
    """Lines of the child that reads NVML, as documents."""
    gpu = recorded("rtx-5090-linux").nvidia.gpus[0]
    lines = (
        nvml.Driver(version="580.95.05", cuda=(13, 0)),
        nvml.Card(gpu=gpu),
        nvml.Card(gpu=recorded("h100-mig").nvidia.gpus[0]),
        nvml.Refused(code=999, text=f"HF_TOKEN={TOKEN}"),
        nvml.LostCard(index=1, code=15, text="GPU is lost"),
        nvml.Remark(text="NVML error 3 (Not Supported)"),
        nvml.Done(),
    )
    return tuple(json.loads(msgspec.json.encode(line)) for line in lines)


NVML_OUTPUT = st.lists(
    st.one_of(
        st.deferred(lambda: cut_up(st.sampled_from(nvml_lines()).map(as_json))),
        st.deferred(lambda: broken_json(nvml_lines(), 2)),
        st.binary(max_size=20),
    ),
    max_size=6,
)


@target(120, lines=NVML_OUTPUT, complaint=st.binary(max_size=30), status=st.sampled_from((None, 0, 1, -11, 2**40)))
def test_nvml(lines: list[bytes], complaint: bytes, status: int | None) -> None:
    done = msgspec.json.encode(nvml.Done())
    seen = survives(lambda: nvml.understood(b"\n".join((*lines, done)), complaint, status))
    assert isinstance(seen, Nvidia)
    written(seen)
    for problem in survives(lambda: pasted.of_cards(seen, Host(system="Windows"))) or ():
        told(problem)
    facts = msgspec.structs.replace(recorded("rtx-5090-wsl2"), nvidia=seen)
    for problem in survives(lambda: (*checks.machine(facts), *remarks.all_of(facts))) or ():
        told(problem)


# --- a container engine ----------------------------------------------------------------------------------------------

VERSION: dict[str, Any] = {
    "Version": "29.1.3",
    "ApiVersion": "1.52",
    "MinAPIVersion": "1.44",
    "Components": [{"Name": "Engine", "Version": "29.1.3"}],
}
LISTED: dict[str, Any] = {"Id": "0" * 64, "Created": 1764547200, "Names": ["/a"]}
EVENTS: tuple[dict[str, Any], ...] = (
    {"status": "Pulling from vllm/vllm-openai", "id": "v1"},
    {"status": "Downloading", "progressDetail": {"current": 100, "total": 6_000_000}, "id": "0" * 12},
    {"status": "Download complete", "progressDetail": {}, "id": "0" * 12},
    {"status": "Pull complete", "progressDetail": {"hidecounts": True}, "id": "0" * 12},
    {"errorDetail": {"message": "no space left on device"}, "error": "no space left on device"},
    {"error": f"Get https://me:{KEY}@registry.example/v2/: dial tcp: no such host", "errorDetail": {"code": 401}},
    {"stream": "x"},
)
DIE: dict[str, Any] = {"Type": "container", "Action": "die", "Actor": {"Attributes": {"exitCode": "137"}}}


def frames(text: str, broken: int) -> bytes:
    """Write a container's output as the engine multiplexes it: eight bytes of head, then the line."""
    parts = []
    for at, line in enumerate(text.encode("utf-8", "replace").splitlines(keepends=True)):
        length = len(line) if at != broken else len(line) * 1000 + 3
        parts.append(struct.pack(">BxxxL", 1 + at % 2, length) + line)
    return b"".join(parts)


@st.composite
def engine_bodies(draw: st.DrawFn) -> dict[str, bytes]:
    """What an engine answers, by the last part of what it was asked; one or two answers are broken."""
    plain: dict[str, Any] = {
        "version": VERSION,
        "info": INFO,
        "json": [LISTED],
        "inspect": CONTAINER,
        "image": IMAGE,
        "df": {"LayersSize": 5},
    }
    bodies = {name: as_json(document) for name, document in plain.items()}
    for name in draw(st.lists(st.sampled_from(sorted(plain)), min_size=1, max_size=2)):
        bodies[name] = draw(cut_up(mutated(st.just(plain[name])).map(as_json)))
    lines = draw(st.lists(st.one_of(broken_json(EVENTS, 1), st.sampled_from(EVENTS).map(as_json)), max_size=5))
    bodies["pull"] = b"\r\n".join(lines)
    bodies["logs"] = frames(draw(LOGS), draw(st.integers(-1, 5)))
    bodies["events"] = draw(broken_json((DIE,)))
    return bodies


def answer_to(request: Request, bodies: dict[str, bytes]) -> bytes:
    """Choose the answer that fits a request to the engine's API."""
    path = request.path.partition("?")[0]
    places = (
        ("/images/create", "pull"),
        ("/system/df", "df"),
        ("/logs", "logs"),
        ("/events", "events"),
        ("/version", "version"),
        ("/info", "info"),
        ("/containers/json", "json"),
    )
    named = next((name for place, name in places if path.endswith(place)), None)
    if named is None:
        named = "image" if "/images/" in path else "inspect"
    return bodies[named]


@target(25, bodies=engine_bodies(), spoils=st.lists(spoiled(), max_size=4), whole=st.integers(0, 3))
def test_an_engine(bodies: dict[str, bytes], spoils: list[Spoiled], whole: int) -> None:
    next_spoil = in_turn([FINE] * whole + spoils)
    wire().script = lambda request: next_spoil().around(answer_to(request, bodies))
    engine = DockerEngine(timeout_s=3, stall_s=3)
    with mock.patch.dict(os.environ, {"DOCKER_HOST": f"tcp://{wire().address}"}):
        os.environ.pop("DOCKER_CONTEXT", None)
        facts = survives(engine.facts)
        assert facts is not None
        written(facts)
        for problem in survives(lambda: pasted.of_engine(facts, "Linux")) or ():
            told(problem)
        written(survives(lambda: engine.containers("slipway-chat")))
        survives(lambda: engine.has_image(image()))
        survives(lambda: engine.pull(image(), _steps, Cancel()))
        survives(lambda: engine.logs("0" * 64, 5))
        survives(lambda: list(engine.follow_logs("0" * 64, Cancel())))
        survives(lambda: engine.remove_image(image()))


def _steps(done: int, total: int) -> None:
    assert 0 <= done <= total


@target(
    80,
    events=st.lists(st.one_of(mutated(st.sampled_from(EVENTS)), st.sampled_from(EVENTS)), max_size=12),
    announced=st.booleans(),
)
def test_a_pull_stream(events: list[Any], announced: bool) -> None:
    layers = (Layer(digest="sha256:" + "0" * 64, size_bytes=6_000_000),)
    progress = PullProgress.of(layers if announced else ())
    for event in events:
        if not isinstance(event, dict):
            continue
        keeps_quiet(str(survives(lambda event=event: engine_images.error_in(event)) and ""))  # type: ignore[misc]
        after = progress.after(event)
        assert progress.done <= after.done <= after.total
        progress = after
    written(progress)


PROBED: dict[str, Any] = {"disk_free_bytes": 5 * GIB, "cuda": {"total_bytes": 32 * GIB, "free_bytes": 30 * GIB}}
REFUSED: dict[str, Any] = {"disk_free_bytes": 5 * GIB, "cuda": None, "failed_call": "cuInit", "code": 803}


@target(
    60,
    stdout=broken_json((PROBED, REFUSED)),
    before=LOGS,
    code=st.sampled_from((0, 1, 137)),
    gpu=st.sampled_from((None, "GPU-1")),
)
def test_a_probe(stdout: bytes, before: str, code: int, gpu: str | None) -> None:
    noise = before.encode("utf-8", "replace")
    reading = survives(lambda: engine_probe.reading_of(code, noise + b"\n" + stdout, noise, gpu))
    if reading is not None:
        written(reading)


INSPECTED = (CONTAINER, IMAGE, INFO, VERSION, CONTAINER["State"])


@target(60, document=planted.into(mutated(st.sampled_from(INSPECTED))))
def test_an_inspection(document: Any) -> None:
    if not isinstance(document, dict):
        return
    seen = survives(lambda: inspection.container_of(document))
    assert seen is not None
    for problem in (
        survives(lambda: inspection.of_container(seen)),
        survives(lambda: inspection.of_image(document)),
    ):
        if problem is not None:
            told(problem)
    survives(lambda: inspection.health_of(document))
    survives(lambda: inspection.is_podman(document))
    engine = survives(lambda: inspection.engine_of(document, document))
    assert engine is not None
    for problem in survives(lambda: pasted.of_engine(engine, "Windows")) or ():
        told(problem)


CONTEXT_FILES = ({"currentContext": "mine", "auths": {"a": {"auth": TOKEN}}, "credsStore": "no-such-helper"},)
CONTEXT_META = (
    {"Name": "mine", "Metadata": {}, "Endpoints": {"docker": {"Host": "tcp://127.0.0.1:1", "SkipTLSVerify": False}}},
)


@target(
    40,
    config=broken_json(CONTEXT_FILES),
    meta=broken_json(CONTEXT_META),
    host=st.one_of(st.none(), st.sampled_from(TEXTS)),
)
def test_a_context(config: bytes, meta: bytes, host: str | None) -> None:
    folder = fresh("docker")
    (folder / "config.json").write_bytes(config)
    name = "4f3a8d2a0a8f4a3b"
    (folder / "contexts" / "meta" / name).mkdir(parents=True)
    (folder / "contexts" / "meta" / name / "meta.json").write_bytes(meta)
    around = {"DOCKER_CONFIG": str(folder), "HOME": str(folder)}
    if host is not None and "\0" not in host and host.isascii():
        around["DOCKER_HOST"] = host
    with mock.patch.dict(os.environ, around):
        found = survives(lambda: endpoint_of(None))
        survives(lambda: endpoint_of("mine"))
    if found is not None:
        assert isinstance(found.url, str)


# --- Compose values --------------------------------------------------------------------------------------------------


@cache
def plan_documents() -> tuple[Any, ...]:
    """Plans as they are kept."""
    return tuple(json.loads(plans.to_json(planned(profile=name))) for name in ("qwen3.6-27b-nvfp4-64k",))


@target(80, data=st.deferred(lambda: broken_json(plan_documents(), 2)))
def test_a_plan_and_its_compose_file(data: bytes) -> None:
    plan = survives(lambda: plans.from_json(data, "plan.json"))
    if plan is None:
        return
    file = survives(lambda: compose.render(plan))
    if file is None:
        return
    _holds_the_plan(file.text, plan)
    for problem in survives(lambda: compose_reading.of_compose(file.text)) or ():
        told(problem)
    assert plans.from_json(plans.to_json(plan), "plan.json") == plan


def _holds_the_plan(text: str, plan: Plan) -> None:
    text.encode()
    service = yaml.safe_load(text)["services"]["server"]
    assert all(isinstance(item, str) for item in service["command"])
    assert service["command"][0].replace("$$", "$") == plan.model_path
    for name, value in plan.environment.items():
        if value:
            assert service["environment"][name.replace("$", "$$")].replace("$$", "$") == value
    alone = "".join(str(part) for part in (service["command"], service["environment"])).replace("$$", "")
    assert "$" not in alone, "Compose would put a variable in"


KEYS = st.one_of(
    st.sampled_from(TEXTS),
    st.text(min_size=8, max_size=20),
    st.just(KEY),
    st.sampled_from(TEXTS).map(lambda text: KEY + text),
)


@target(60, key=KEYS)
def test_a_key_in_an_env_file(key: str) -> None:
    text = survives(lambda: compose.env_text(key))
    if text is not None:
        assert compose.key_from_env(text) == key


# --- the files of a home ---------------------------------------------------------------------------------------------

HOME_FILES = (
    "wizard.json",
    "calibrations.json",
    "registry.json",
    "chat/plan.json",
    "chat/smoke.json",
    "chat/figures.json",
    "chat/created.json",
    "lock.pid",
)
KEPT: tuple[Any, ...] = (
    {"page": "model", "choices": {"profile": "x"}},
    [{"gpu_uuid": "GPU-1", "wsl2": False, "profile": "x", "shift_bytes": 5, "starts": 1}],
    [{"kind": "image", "name": "vllm/vllm-openai@sha256:0"}, {"kind": "folder", "name": "/tmp/nothing-here"}],
    {"start": {}, "at": "2026-12-01T00:00:00Z", "checks": [{"name": "health", "outcome": "passed", "seconds": 0.1}]},
    {"start": "a b", "predicted": {}, "logged": {"kv_bytes": 5}},
)
CONTENTS = st.one_of(broken_json(KEPT), st.deferred(lambda: broken_json(plan_documents(), 2)))


@target(
    60,
    name=st.sampled_from(HOME_FILES),
    data=CONTENTS,
)
def test_files_of_a_home(name: str, data: bytes) -> None:
    folder = fresh("home")
    (folder / "chat").mkdir()
    (folder / name).write_bytes(data)
    home = Home(folder)
    chat = home.stack("chat")
    for read in (home.bookmark, home.calibrations, chat.plan, chat.proof, chat.figures):
        found = survives(read)
        if isinstance(found, Bookmark | SmokeReport):
            written(found)
    survives(chat.created)


@target(
    8,
    name=st.sampled_from(HOME_FILES),
    data=CONTENTS,
    verb=st.sampled_from(("status", "offers", "smoke", "stop")),
)
def test_files_of_a_home_of_a_command(name: str, data: bytes, verb: str) -> None:
    folder = fresh("home")
    (folder / "chat").mkdir()
    (folder / name).write_bytes(data)
    quickly = ["--machine", "rtx-5090-linux", "--dry-run"] if verb != "offers" else ["--machine", "rtx-5090-linux"]
    slipway([verb, *quickly, "--home", str(folder), "--json"])

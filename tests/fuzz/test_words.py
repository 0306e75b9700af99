"""What programs and people say: pastes, logs, messages of engines, answers, driver tables, environments, pictures."""

from __future__ import annotations

import io
import json
import random
from functools import cache
from typing import Any

import msgspec
import yaml
from hypothesis import strategies as st

from installer import resources
from installer.adapters import engine_errors, known_failures, pictures
from installer.domain import (
    answers,
    calibration,
    checks,
    compose_reading,
    diagnosis,
    environment,
    fingerprints,
    nvidia_smi,
    pasted,
    pixels,
    remarks,
    strict_yaml,
    transfer,
)
from installer.domain.answers import Answer
from installer.domain.compose import render
from installer.domain.facts import Facts, Host, Nvidia, NvidiaState
from installer.domain.fingerprints import Fingerprint, Situation, Table
from installer.domain.ladder import relax
from installer.domain.plan import Plan
from installer.domain.problems import AnyProblem
from installer.domain.redaction import detail_of, redacted
from installer.domain.sightings import FINDERS, relevant_lines
from tests.builders import MACHINES, ROOT, image, planned, recorded
from tests.fuzz import planted
from tests.fuzz.broken import TEXTS, as_yaml, broken_json, broken_yaml, cut_up, mutated
from tests.fuzz.command import slipway
from tests.fuzz.kit import KEY, LANGUAGES, SECRETS, TOKEN, keeps_quiet, shown, survives, target, told, written
from tests.fuzz.scratch import fresh

ROWS: dict[str, Any] = yaml.safe_load(resources.registry_texts()["fingerprints.yaml"])["fingerprints"]
EXAMPLES = tuple(row["example"] for row in ROWS.values())
STARTS = tuple(
    line
    for file in sorted((ROOT / "tests" / "field" / "starts").glob("*.log"))
    for line in file.read_text("utf-8").splitlines()
)


def texts_in(value: Any) -> list[str]:
    """Every text in a document."""
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inside for text in texts_in(one)]


FIELD = tuple(
    dict.fromkeys(
        text
        for name in ("cases", "more")
        for line in (ROOT / "tests" / "field" / f"{name}.jsonl").read_text("utf-8").splitlines()
        for text in texts_in(json.loads(line)["input"])
    )
)
"""What the field cases hold as text: logs, files, tables, messages."""

FIGURES = ("0", "-0", "9" * 400, "1.2.3", ".", "-", "1e999", "nan", "inf", "1,5", "²", "٣", "", "0x10", "9" * 5000)
PIECES = (
    "\n", "A", "a_", "-", "--a", "://", "https://", "a.", "1.", "x ", " ", "\t", "\r", '"', "'", "(", "[", "=", "@",
    "é",
    "KEY=", "KEY=[", "KEY='", "token", "error ", "1/2 ", "hf_", "sk-", "Bearer ", "--key ", "/a", "\\", "{",
    "GPU ", "exec: ", "0.0.0.0:",
)  # fmt: skip
LONG = tuple((piece * 60_000)[:60_000] for piece in PIECES)
"""Lines that a program may write without an end, and that make a careless pattern count for hours."""

NOISE = ("\r", "\x1b[31m", "\x1b[0K", "\0", "\ufeff", "\ufffd", "\u2028", "\x85", "[/b]", "{field}", "%s")


@st.composite
def log_lines(draw: st.DrawFn, most: int = 8) -> list[str]:
    """Lines of a log: known ones, also with other figures, harmless ones, noise, secrets, at times an endless one."""
    known = st.sampled_from(EXAMPLES + FIELD)
    kinds = st.one_of(
        known,
        known.flatmap(other_figures),
        known.flatmap(lambda text: st.integers(0, len(text)).map(lambda at: text[:at])),
        st.sampled_from(STARTS),
        planted.lines(),
        st.text(max_size=40),
        st.sampled_from(TEXTS[:-1]),
    )
    lines = draw(st.lists(kinds, max_size=most))
    if draw(st.integers(0, 19)) == 7:  # hypothesis likes the ends of a range
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(LONG)))
    if draw(st.integers(0, 4)) == 0:
        lines.append(draw(st.sampled_from(NOISE)) + draw(known))
    return lines


@st.composite
def other_figures(draw: st.DrawFn, text: str) -> str:
    """The same words with other numbers in them."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    words = text.split(" ")
    for at in (at for at, word in enumerate(words) if any(sign.isdigit() for sign in word)):
        if chance.random() < 0.4:
            words[at] = "".join(
                chance.choice(FIGURES) if sign.isdigit() and chance.random() < 0.5 else sign for sign in words[at]
            )
    return " ".join(words)


LOGS = log_lines().map("\n".join)
RELEASES = st.sampled_from(("", "0.19.1", "0.33.0", "0.24", "nightly", "v1", "²", "1" * 300, "0.33.0rc1+cu130"))
SITUATIONS = st.builds(
    Situation,
    origin=st.sampled_from((None, "server", "engine", "hub", "driver", "window", "system")),
    release=RELEASES,
    platform=st.sampled_from((None, "linux", "windows", "wsl2")),
    known=st.dictionaries(
        st.sampled_from(
            ("image", "endpoint", "gpu", "operation", "phase", "free_bytes", "port", "weights_gib", "release")
        ),
        st.one_of(st.sampled_from(TEXTS), st.integers(), st.floats(), st.none(), st.booleans()),
        max_size=3,
    ),
)


@cache
def table() -> Table:
    """The table that comes with Slipway."""
    return known_failures.table()


@cache
def a_plan() -> Plan:
    """A plan that a failed start may change."""
    return planned()


# --- logs and messages -----------------------------------------------------------------------------------------------


@target(
    25, log=LOGS, code=st.sampled_from((0, 1, 2, 135, 137, 139, -1, 255)), killed=st.booleans(), situation=SITUATIONS
)
def test_a_log(log: str, code: int, killed: bool, situation: Situation) -> None:
    def look() -> AnyProblem:
        return diagnosis.of_container(log, code, table(), out_of_memory=killed, situation=situation)

    problem = survives(look)
    assert problem is not None
    told(problem)
    found = survives(lambda: diagnosis.of_message(log, table(), situation))
    if found is not None and found.problem is not None:
        told(found.problem)
    keeps_quiet("\n".join(relevant_lines(log)))
    keeps_quiet(detail_of(log))
    written(survives(lambda: calibration.read_log(log)))
    _climbed(problem)


def _climbed(problem: AnyProblem) -> None:
    """Change the plan for a failure as long as there is a rung; every change is one that can be kept and written."""
    plan = a_plan()
    for _ in range(8):
        changed = survives(lambda plan=plan: relax(plan, problem, consent=True))  # type: ignore[misc]
        if not isinstance(changed, Plan):
            break
        assert changed != plan
        keeps_quiet(render(changed).text)
        plan = changed


@target(25, text=LOGS, operation=st.sampled_from(("pull", "up", "probe", "")), named=st.booleans())
def test_a_message_of_an_engine(text: str, operation: str, named: bool) -> None:
    asked = engine_errors.Asked(operation=operation, image=image() if named else None, endpoint="unix:///x")
    problem = survives(lambda: engine_errors.problem_of(text, asked))
    assert problem is not None
    told(problem)
    told(checks.completed(problem, recorded("rtx-5090-wsl2")))


@target(40, text=LOGS)
def test_secrets_are_taken_out(text: str) -> None:
    keeps_quiet(survives(lambda: redacted(text)) or "")
    for find in FINDERS.values():
        keeps_quiet(str(survives(lambda find=find: find(text, text))))  # type: ignore[misc]


@st.composite
def broken_rows(draw: st.DrawFn) -> dict[str, Any]:
    """A few rows of the table, as somebody may have written them."""
    names = draw(st.lists(st.sampled_from(sorted(ROWS)), min_size=1, max_size=3, unique=True))
    document = draw(mutated(st.just({name: ROWS[name] for name in names})))
    return {"fingerprints": document}


@target(40, document=broken_rows(), log=LOGS, situation=SITUATIONS)
def test_a_table_of_fingerprints(document: dict[str, Any], log: str, situation: Situation) -> None:
    def read() -> Table:
        values = strict_yaml.mapping("fingerprints.yaml", as_yaml(document))
        try:
            rows = msgspec.convert(values["fingerprints"], type=dict[str, Fingerprint])
        except msgspec.ValidationError:
            return Table({})
        return fingerprints.parse(rows, "fingerprints.yaml")

    found = survives(read)
    if found is None:
        return
    problem = survives(lambda: found.cause(f"{log}\n{EXAMPLES[0]}", situation))
    if problem is not None:
        told(problem)


# --- pastes ----------------------------------------------------------------------------------------------------------

CONTAINER: dict[str, Any] = {
    "Id": "0" * 64,
    "Name": "/slipway-chat-server-1",
    "RestartCount": 0,
    "State": {
        "Status": "exited",
        "ExitCode": 137,
        "OOMKilled": False,
        "Error": 'exec: "vllm": executable file not found in $PATH',
        "StartedAt": "2026-12-01T00:00:00Z",
        "Health": {
            "Status": "unhealthy",
            "FailingStreak": 3,
            "Log": [
                {"ExitCode": 1, "Output": 'exec: "curl": executable file not found in $PATH'},
                {"Output": "status 503"},
            ],
        },
    },
    "Config": {"Image": "vllm/vllm-openai:v1", "Env": ["PATH=/usr/bin", f"HF_TOKEN={TOKEN}"], "Labels": {"a": "b"}},
    "HostConfig": {"ShmSize": 67108864},
}
IMAGE: dict[str, Any] = {
    "Id": "sha256:" + "0" * 64,
    "RepoTags": ["vllm/vllm-omni:v1"],
    "RepoDigests": ["vllm/vllm-omni@sha256:" + "0" * 64],
    "Config": {"Entrypoint": None, "Cmd": ["vllm", "serve"], "Env": [f"VLLM_API_KEY={KEY}"]},
}
INFO: dict[str, Any] = {
    "OSType": "linux",
    "OperatingSystem": "Docker Desktop",
    "ServerVersion": "29.1.3",
    "Architecture": "x86_64",
    "KernelVersion": "6.6.87.2-microsoft-standard-WSL2",
    "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"],
    "Runtimes": {"runc": {"path": "runc"}, "nvidia": {"path": "nvidia-container-runtime"}},
    "CDISpecDirs": ["/etc/cdi"],
    "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}],
    "MemTotal": 33000000000,
    "DockerRootDir": "/var/lib/docker",
    "HttpProxy": f"http://me:{KEY}@proxy.example:3128",
}
COMPLETION: dict[str, Any] = {
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": None, "reasoning": "hm"}, "finish_reason": "length"}
    ],
    "usage": {"completion_tokens": 16},
}
ERRORS: tuple[dict[str, Any], ...] = (
    {"error": {"message": "The model does not exist", "type": "NotFoundError", "code": 404}},
    {"error": "Repository not found"},
    {"errors": [{"code": "TOOMANYREQUESTS", "message": "slow down"}, {"code": "DENIED"}]},
    {"object": "error", "message": "max_tokens is too large"},
)
DOCUMENTS = (CONTAINER, IMAGE, INFO, COMPLETION, *ERRORS)
MACHINES_RECORDED = tuple(
    json.loads((ROOT / "tests" / "machines" / f"{name}.json").read_text("utf-8")) for name in MACHINES
)

SPOILED_COMPOSE = """\
services:
  vllm:
    image: vllm/vllm-openai:latest
    command: [serve, --dtype auto, '{"a": 1']
    environment: [HF_TOKEN=, A=$B]
    ports: [8000, 99999]
    volumes: ['C:\\x:/models']
    deploy: {resources: {reservations: {devices: [{count: 1, device_ids: [0]}]}}}
"""
SECRET_COMPOSE = f"""\
services:
  x:
    image: a
    command: [--api-key {KEY}, '--api-key', '{KEY}', --hf-token={TOKEN}]
    environment: {{HF_TOKEN: {TOKEN}, VLLM_API_KEY: {KEY}, B: true}}
"""
COMPOSE_FILES = (render(planned()).text, SPOILED_COMPOSE)
TABLE_OF_CARDS = """\
index, name, memory.total [MiB], memory.free [MiB], compute_cap, mig.mode.current
0, NVIDIA GeForce RTX 5090, 32607 MiB, 31000 MiB, 12.0, [N/A]
1, GRID A100-20C, [N/A], [Unknown Error], 8.0, Enabled
"""
BANNER = """\
| NVIDIA-SMI 580.95.05  Driver Version: 580.95.05  CUDA Version: 13.0 |
| 0  NVIDIA GeForce RTX 4090  Off |
"""
A_CARD = "0, GPU-1, NVIDIA RTX, 32607, 31000, 1000, 607, 12.0, 580.95.05, [N/A], [N/A]\n"
DRIVER_TABLES = (TABLE_OF_CARDS, BANNER, A_CARD)
CONTEXTS = (
    "NAME              DESCRIPTION   DOCKER ENDPOINT\ndefault                         unix:///var/run/docker.sock\n"
    "desktop-linux *   Docker        unix:///home/me/.docker/desktop/docker.sock\n"
)
HEADS = (
    "HTTP/1.1 401 Unauthorized\nx-error-code: GatedRepo\nretry-after: 5",
    "< HTTP/2 429\n< retry-after: ²\n< ratelimit: x",
    "HTTP/1.1 503 x\nContent-Type: text/html\nX-Repo-Commit: 1",
    "HTTP/1.1 99999999999999999999 x",
    f"HTTP/1.1 407 x\nProxy-Authenticate: Basic realm=x\nAuthorization: Bearer {KEY}",
)
ENV_FILES = (
    f"HF_TOKEN={TOKEN}\nVLLM_API_KEY='{KEY}'\nHTTP_PROXY=http://me:{KEY}@p:1\nNO_PROXY=[::1,http://[\nHOME=C:\\?\n",
    f"export HF_TOKEN= {TOKEN} \nset NO_PROXY=localhost,a:b:c,[x]:y,a\u2100b:1\n$env:APPDATA=\ufffd\n# note\n",
)


@st.composite
def pasted_texts(draw: st.DrawFn) -> str:
    """A text of one of the forms that people paste, or a log."""
    match draw(st.sampled_from(("log", "json", "machine", "compose", "cards", "http", "env", "contexts", "field"))):
        case "json":
            documents = planted.into(mutated(st.sampled_from(DOCUMENTS)))
            return json.dumps(draw(st.one_of(documents, documents.map(lambda one: [one, one]))))
        case "machine":
            return json.dumps(draw(mutated(st.sampled_from(MACHINES_RECORDED))))
        case "compose":
            return draw(st.one_of(broken_yaml(COMPOSE_FILES), st.just(SECRET_COMPOSE)))
        case "cards":
            return draw(st.sampled_from(DRIVER_TABLES).flatmap(other_figures))
        case "http":
            body = draw(st.one_of(st.sampled_from(ERRORS).map(json.dumps), LOGS))
            return f"{draw(st.sampled_from(HEADS).flatmap(other_figures))}\n\n{body}"
        case "env":
            return draw(st.sampled_from(ENV_FILES))
        case "contexts":
            return draw(st.sampled_from((CONTEXTS,)).flatmap(other_figures))
        case "field":
            return draw(st.sampled_from(FIELD))
        case _:
            return draw(LOGS)


def as_bytes(text: str, encoding: str) -> bytes:
    """Write a text as a program of some system would."""
    return text.encode(encoding, "surrogatepass" if encoding.startswith("utf") else "replace")


ENCODINGS = (
    "utf-8",
    "utf-8",
    "utf-8",
    "utf-8-sig",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "cp1252",
    "cp850",
    "utf-7",
)
PASTES = st.one_of(
    st.builds(as_bytes, pasted_texts(), st.sampled_from(ENCODINGS)),
    st.builds(as_bytes, pasted_texts().map(lambda text: text.replace("\n", "\r\n")), st.just("utf-8")),
    st.builds(lambda text, rest: as_bytes(text, "utf-8") + rest, pasted_texts(), st.binary(max_size=30)),
    st.binary(max_size=200),
    broken_json(DOCUMENTS),
)


@target(
    60,
    data=PASTES,
    name=st.sampled_from((pasted.PASTED, "docker-compose.yml", ".env", "a\udcffb", "\x1b[31m", "x" * 400)),
    ansi=st.sampled_from(("cp1252", "cp932", "utf-8", "no such page", "\0", "", "rot13", "hex", "idna", "cp65001")),
    situation=st.one_of(st.none(), SITUATIONS),
)
def test_a_paste(data: bytes, name: str, ansi: str, situation: Situation | None) -> None:
    reading = survives(lambda: pasted.read(data, table(), name=name, ansi=ansi, situation=situation))
    assert reading is not None
    written(reading.lines)
    for problem in reading.problems:
        told(problem)
    assert reading.treatment in (None, *(problem.treatment for problem in reading.problems))
    assert not reading.fingerprint or reading.fingerprint in ROWS
    for problem in survives(lambda: compose_reading.of_file(name, data)) or ():
        told(problem)


@target(10, data=PASTES, as_file=st.booleans(), as_json=st.booleans(), language=st.sampled_from(("de", "en")))
def test_a_paste_of_a_command(data: bytes, as_file: bool, as_json: bool, language: str) -> None:
    folder = fresh("paste")
    (folder / "paste").write_bytes(data)
    source = str(folder / "paste") if as_file else "-"
    common = ["--home", str(folder / "home"), "--language", language, *(["--json"] if as_json else [])]
    slipway(["diagnose", source, *common], given=data)


@target(40, data=broken_json(MACHINES_RECORDED))
def test_remarks_on_a_machine(data: bytes) -> None:
    facts = survives(lambda: msgspec.json.decode(data, type=Facts)) if _is_facts(data) else None
    if facts is None:
        return
    for problem in (*remarks.all_of(facts), *(one for gpu in facts.nvidia.gpus if (one := remarks.leftovers(gpu)))):
        told(problem)


def _is_facts(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=Facts)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


# --- answers over HTTP -----------------------------------------------------------------------------------------------

HEADER_NAMES = (
    "content-type",
    "retry-after",
    "x-error-code",
    "x-repo-commit",
    "www-authenticate",
    "proxy-authenticate",
    "location",
)
URLS = st.one_of(
    st.sampled_from(("https://huggingface.co/api/models/a/b?x=1", f"https://me:{KEY}@hub.example/a?token={TOKEN}", "")),
    st.sampled_from(TEXTS),
    st.sampled_from(TEXTS).map(lambda text: f"https://{text}"),
)
ANSWERS = st.builds(
    Answer,
    status=st.one_of(st.sampled_from((0, 200, 206, 401, 403, 404, 407, 416, 429, 500, 503, 511, 999)), st.integers()),
    url=URLS,
    headers=st.dictionaries(
        st.sampled_from(HEADER_NAMES),
        st.one_of(st.sampled_from(("text/html", "GatedRepo", "5")), st.sampled_from(TEXTS)),
        max_size=3,
    ),
    body=st.one_of(
        broken_json((COMPLETION, *ERRORS)), st.binary(max_size=40), LOGS.map(lambda text: as_bytes(text, "utf-8"))
    ),
    had_token=st.booleans(),
    retry_after_s=st.one_of(st.none(), st.sampled_from((0, 5, 10**12, -1))),
)


@target(
    40, answer=ANSWERS, log=LOGS, name=st.one_of(st.just("org/model"), st.sampled_from(TEXTS)), pinned=st.booleans()
)
def test_an_answer(answer: Answer, log: str, name: str, pinned: bool) -> None:
    digest = "sha256:" + "0" * 64 if pinned else None
    for look in (
        lambda: answers.of_anyone(answer),
        lambda: answers.of_hub(answer, "huggingface.co", name, name, name),
        lambda: answers.of_registry(answer, name, name, digest),
        lambda: answers.of_server(answer, log, table()),
    ):
        problem = survives(look)
        if problem is not None:
            told(problem)


MEASURED = st.floats(0, 1e12)


@target(20, points=st.lists(st.tuples(MEASURED, MEASURED), max_size=6), total=MEASURED)
def test_a_transfer(points: list[tuple[float, float]], total: float) -> None:
    problem = survives(lambda: transfer.stalled("x", points, total))
    if problem is not None:
        told(problem)


# --- the driver's tables and the environment -------------------------------------------------------------------------


@target(
    60,
    text=st.sampled_from(DRIVER_TABLES).flatmap(other_figures),
    field=st.sampled_from(TEXTS),
    encoding=st.sampled_from(ENCODINGS),
)
def test_what_nvidia_smi_prints(text: str, field: str, encoding: str) -> None:
    data = as_bytes(f"{text}0, GPU-1, {field}, 1, 2, {field}, {field}, {field}, {field}, {field}, {field}\n", encoding)
    seen = survives(lambda: nvidia_smi.banner(data)) or Nvidia(state=NvidiaState.READ)
    cards = survives(lambda: nvidia_smi.cards(data))
    assert cards is not None
    version = survives(lambda: nvidia_smi.driver_version(data))
    nvidia = msgspec.structs.replace(seen, gpus=cards, driver_version=version or seen.driver_version)
    written(nvidia)
    for problem in survives(lambda: pasted.of_cards(nvidia, Host(system="Linux"))) or ():
        told(problem)


NAMES = (
    *environment.TOKENS,
    *environment.PROXIES,
    *environment.FOLDERS,
    *("NO_PROXY", "no_proxy", "http_proxy", "straße", "ı"),
)
ENVIRONMENTS = st.dictionaries(
    st.sampled_from(NAMES),
    st.one_of(
        st.sampled_from(TEXTS),
        st.sampled_from((TOKEN, f" {KEY}", f"http://me:{KEY}@p:1", "localhost,http://[", "[x]:y")),
    ),
    max_size=6,
)


@target(80, variables=ENVIRONMENTS)
def test_an_environment(variables: dict[str, str]) -> None:
    for problem in survives(lambda: environment.flaws(variables)) or ():
        told(problem)


@target(10, variables=ENVIRONMENTS, verb=st.sampled_from(("offers", "plan", "status", "diagnose")))
def test_an_environment_of_a_command(variables: dict[str, str], verb: str) -> None:
    usable = {name: value for name, value in variables.items() if "\0" not in value and value.isascii()}
    usable.pop("HOME", None)
    home = str(fresh("environment") / "home")
    more = {"diagnose": ["-"], "plan": ["--offline"]}.get(verb, [])
    ended = slipway([verb, *more, "--machine", "rtx-5090-linux", "--home", home, "--json"], usable)
    assert not any(secret in ended.out for secret in SECRETS)


# --- pictures --------------------------------------------------------------------------------------------------------


@cache
def drawn() -> tuple[bytes, ...]:
    """Small pictures of each kind that a server may send."""
    from PIL import Image

    found = []
    for mode, size, form in (
        *(
            ("RGB", (8, 8), "PNG"),
            ("RGBA", (3, 5), "PNG"),
            ("L", (1, 1), "PNG"),
            ("P", (4, 4), "PNG"),
            ("1", (9, 2), "PNG"),
        ),
        *(
            ("RGB", (16, 8), "JPEG"),
            ("CMYK", (8, 8), "JPEG"),
            ("RGB", (8, 8), "WEBP"),
            ("I;16", (4, 4), "PNG"),
            ("LA", (2, 9), "PNG"),
        ),
    ):
        file = io.BytesIO()
        noise = random.Random(1).randbytes(size[0] * size[1] * 4)
        plain = Image.frombytes("RGBA", size, noise)
        (Image.new(mode, size) if mode == "I;16" else plain.convert(mode)).save(file, form)
        found.append(file.getvalue())
    return tuple(found)


@target(80, data=st.deferred(lambda: cut_up(st.sampled_from(drawn()))), byte=st.integers(0, 255), at=st.integers(0, 60))
def test_a_picture(data: bytes, byte: int, at: int) -> None:
    spoiled = data[:at] + bytes([byte]) + data[at + 1 :]
    for one in (data, spoiled):
        picture = survives(lambda one=one: pictures.decoded(one, "picture.png"))  # type: ignore[misc]
        if picture is None:
            continue
        seen = pixels.measured(picture)
        written(seen)
        flaw = survives(lambda seen=seen: pixels.flaw(seen, (8, 8)))  # type: ignore[misc]
        if flaw is not None:
            told(flaw)
            for text in LANGUAGES:
                shown(text.problem(flaw).sentence)


@target(
    40,
    width=st.integers(0, 9),
    height=st.integers(0, 9),
    mode=st.sampled_from(("L", "LA", "RGB", "RGBA")),
    fill=st.integers(0, 255),
)
def test_pixels_of_any_size(width: int, height: int, mode: str, fill: int) -> None:
    data = bytes([fill]) * (width * height * len(mode))
    picture = pixels.Pixels(width=width, height=height, mode=mode, data=data)
    flaw = pixels.flaw(pixels.measured(picture))
    assert flaw is not None
    told(flaw)

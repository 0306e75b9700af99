"""What other programs and people wrote: whatever stands in it, there is an answer, soon, and no secret in it.

`tests/fuzz` looks for more of these; here stands what it found, one example of each kind.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from installer.domain import (
    addresses,
    answers,
    calibration,
    choices,
    decoding,
    diagnosis,
    facts,
    figures,
    inspection,
    nvidia_smi,
    pasted,
    pixels,
)
from installer.domain.answers import Answer
from installer.domain.choices import Choices
from installer.domain.facts import GpuMemory, Missing
from installer.domain.figures import decimal, natural, whole
from installer.domain.pixels import Pixels
from installer.domain.problems import (
    BadChoice,
    CauseUnknown,
    ContainerExited,
    EngineFailed,
    FreeBelowUtilisation,
    ImageUnusable,
    InstallerError,
    MalformedFile,
    NotWritable,
    kinds,
)
from installer.domain.progress import PullProgress
from installer.domain.redaction import redacted
from installer.domain.sightings import relevant_lines
from installer.steps.home import Home
from installer.steps.smoke import Check
from installer.text import Text
from tests.builders import shipped_registry

TABLE = shipped_registry().known_failures()
SECRET = "planted-key-0123456789"
GATE = (
    "ValueError: Free memory on device cuda:0 (30.12/31.84 GiB) on startup is less than desired GPU memory "
    "utilization (0.95, 30.25 GiB). Decrease GPU memory utilization"
)
MUCH_TOO_LONG = "9" * 5000
"""Python refuses to read a number of more than 4300 digits, with a ValueError."""

# --- secrets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        f"INFO non-default args: {{'api_key': ['{SECRET}'], 'model': '/models/m'}} error",
        f"Namespace(api_key=['{SECRET}'], error=1)",
        f'{{"api_key": ["{SECRET}"], "error": 1}}',
        f'error: "{{\\"api_key\\": \\"{SECRET}\\"}}"',
        f"  - --api-key\n  - {SECRET}\n  error",
        f"['--api-key', '{SECRET}'] failed",
        f"VLLM_API_KEY='{SECRET}' failed",
        f"Authorization: Bearer {SECRET} denied",
        f"https://me:{SECRET}@proxy.example:3128 refused",
        f"https://store.example/blob?X-Amz-Signature={SECRET} not found",
    ],
)
def test_a_secret_is_taken_out_of_what_is_shown_and_the_rest_stays(line: str) -> None:
    assert SECRET not in redacted(line)
    assert SECRET not in "\n".join(relevant_lines(line))
    assert any(word in redacted(line) for word in ("error", "failed", "denied", "refused", "not found"))


def test_a_word_that_only_looks_like_the_name_of_a_secret_stays() -> None:
    line = "--tokenizer /models/m --max-num-batched-tokens 8192 monkey business"
    assert redacted(line) == line


def test_no_problem_keeps_a_secret_whoever_makes_it() -> None:
    told = EngineFailed(operation="pull", detail=f"HF_TOKEN={SECRET}")
    many = ContainerExited(exit_code_of_container=1, lines=("error", f"--api-key {SECRET}"))
    assert SECRET not in repr((told, many, *told.technical, *many.technical))
    assert many.lines[0] == "error"


@pytest.mark.parametrize(
    "text",
    [
        f"hf_token: {SECRET}: {SECRET}",
        f'hf_token: "{SECRET}',
        f"hf_token: [{SECRET}",
        f"hf_token: !!int {SECRET}",
        f"hf_token: *{SECRET}",
    ],
)
def test_a_file_with_a_secret_in_the_wrong_place_is_refused_without_it(text: str) -> None:
    with pytest.raises(InstallerError) as caught:
        choices.from_text(text, "answers.yaml")
    assert isinstance(caught.value.problem, MalformedFile)
    assert SECRET not in repr(caught.value.problem)


# --- how long it takes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", ["A", "-", "a_", "://", "https://", "token", "\n", "\r", "KEY=[", "a/", "error "])
def test_a_line_without_an_end_is_read_in_no_time(piece: str) -> None:
    """Before patterns began where a word begins, a line of 60 kB took minutes; ten times the usual is allowed."""
    began = time.process_time()
    pasted.read((piece * 60_000)[:60_000].encode(), TABLE)
    assert time.process_time() - began < 5


def test_a_cause_in_the_middle_of_an_endless_line_is_still_found() -> None:
    bar = "Loading safetensors checkpoint shards:  50% Completed\r" * 100
    for at in (0, 1234, 1950, 5000):
        line = f"{bar[:at]}{GATE}{bar}"
        assert isinstance(diagnosis.of_log(line, TABLE), FreeBelowUtilisation), at


def test_a_document_that_is_nested_without_an_end_is_no_document() -> None:
    for text in ('{"a":' * 50_000, "[{" * 50_000):
        assert pasted.read(text.encode(), TABLE).problems == ()
        with pytest.raises(InstallerError):
            facts.from_json(text)


# --- figures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 12), ("0", 0), ("", None), ("²", None), ("٣", None), ("-1", None), ("1.5", None), (MUCH_TOO_LONG, None)],
)
def test_a_whole_number_is_one_in_plain_digits(text: str, number: int | None) -> None:
    assert whole(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.5", 1.5),
        ("-1", -1),
        ("1.2.3", None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("٣", None),
        (".", None),
    ],
)
def test_a_decimal_is_finite(text: str, number: float | None) -> None:
    assert decimal(text) == number


@pytest.mark.parametrize("value", [True, -1, 2**64, 1.5, "1", None, math.inf, [1]])
def test_what_is_no_natural_number_of_a_document_is_none(value: object) -> None:
    assert natural(value) is None


@pytest.mark.parametrize("figure", [MUCH_TOO_LONG, "9" * 400, "1.2.3"])
def test_a_log_with_an_absurd_figure_is_told_without_it(figure: str) -> None:
    log = f"Model loading took {figure} GiB\nGPU KV cache size: {figure} tokens\n" + GATE.replace("30.12", figure)
    read = calibration.read_log(log)
    assert (read.model_bytes, read.kv_tokens, read.free_bytes) == (None, None, None)
    problem = diagnosis.of_container(log, 1, TABLE, out_of_memory=False)
    assert all(map(figures.is_figure, msgspec.structs.astuple(problem)))


@pytest.mark.parametrize("field", ["²", "inf", "nan", MUCH_TOO_LONG, "-5", "1.2.3", "12.²"])
def test_a_field_of_nvidia_smi_that_is_no_figure_is_missing(field: str) -> None:
    row = f"{field}, GPU-1, NVIDIA RTX, {field}, 1, 1, {field}, {field}, 580.95, [N/A], [N/A]"
    (card,) = nvidia_smi.cards(row.encode())
    assert isinstance(card.memory, Missing)
    assert isinstance(card.compute_capability, Missing)
    nvidia_smi.banner(f"Driver Version: {field} CUDA Version: {field}.0".encode())


def test_a_card_whose_reserved_memory_is_no_figure_is_still_read() -> None:
    (card,) = nvidia_smi.cards(b"0, GPU-1, NVIDIA RTX, 32607, 31000, 1000, inf, 12.0, 580.95, [N/A], [N/A]")
    assert isinstance(card.memory, GpuMemory)


@pytest.mark.parametrize("wait", ["²", MUCH_TOO_LONG, "-1", "1.5"])
def test_a_wait_that_nobody_can_wait_is_none(wait: str) -> None:
    assert addresses.seconds_in(wait) is None
    assert pasted.read(f"HTTP/1.1 429 x\nretry-after: {wait}\n\n".encode(), TABLE).problems


# --- documents of another form ---------------------------------------------------------------------------------------

ODD: tuple[Any, ...] = (None, 5, "x", [], [5], {}, {"x": 5}, True, math.inf, "²")


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_dockers_documents_may_be_of_any_form(odd: Any) -> None:
    for document in ({"State": odd, "HostConfig": odd}, {"State": {"ExitCode": odd, "Health": odd}}, {"Config": odd}):
        inspection.of_container(inspection.container_of(document))
        inspection.of_image({"RepoDigests": odd, "RepoTags": odd, "Config": {"Cmd": odd}} | document)
    names = ("SecurityOptions", "Runtimes", "CDISpecDirs", "DiscoveredDevices", "MemTotal", "OSType", "Components")
    info = dict.fromkeys(names, odd)
    engine = inspection.engine_of(info, info)
    assert engine.memory_bytes in (None, 5)
    inspection.is_podman(info)
    assert json.dumps(msgspec.to_builtins(engine))


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_an_event_of_a_pull_may_be_of_any_form(odd: Any) -> None:
    event = {"id": "a" * 12, "status": odd, "progressDetail": {"current": odd, "total": odd}}
    assert PullProgress.of(()).after(event).total in (0, 5)
    assert PullProgress.of(()).after(event | {"status": "Downloading"}).done in (0, 5)


@pytest.mark.parametrize("url", ["http://[", "http://a:b/", "//", "", "http://me:secret@["])
def test_an_answer_from_what_is_no_address_is_told(url: str) -> None:
    problem = answers.of_anyone(Answer(status=500, url=url))
    assert problem is not None
    assert "secret" not in repr(problem)


@pytest.mark.parametrize("page", ["no such page", "rot13", "hex", "idna", "\0", ""])
def test_bytes_in_a_code_page_that_is_none_are_read_as_the_western_one(page: str) -> None:
    assert decoding.text_of("Größe".encode("cp1252"), page).text == "Größe"


@pytest.mark.parametrize(("width", "height"), [(0, 0), (0, 5), (5, 0)])
def test_a_picture_without_a_pixel_is_unusable(width: int, height: int) -> None:
    empty = Pixels(width=width, height=height, mode="RGB", data=b"")
    assert isinstance(pixels.flaw(pixels.measured(empty)), ImageUnusable)


# --- texts that no file and no terminal takes ------------------------------------------------------------------------

HALF = "caf\udce9"
"""What Python makes of a Latin-1 name on a system in UTF-8."""


def test_a_problem_about_a_path_that_is_not_in_utf_8_can_be_written() -> None:
    assert "caf?" in msgspec.json.encode(NotWritable(path=f"/{HALF}", reason="")).decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("folder", "/models\n"),
        ("folder", "/\x1b[31m"),
        ("folder", f"/{HALF}"),
        ("profile", "a\0b"),
        ("context", 10**30),
        ("vram_budget_gib", math.inf),
        ("vram_budget_gib", math.nan),
    ],
)
def test_an_answer_that_no_file_could_hold_is_refused(field: str, value: object) -> None:
    with pytest.raises(InstallerError) as caught:
        choices.check(msgspec.structs.replace(Choices(), **{field: value}))
    assert isinstance(caught.value.problem, BadChoice)
    msgspec.json.encode(caught.value.problem).decode()


@pytest.mark.parametrize("language", ["de", "en"])
def test_what_a_server_said_is_shown_without_control_characters(language: Any) -> None:
    check = Check(name="models", outcome="failed", seconds=0, detail="max_model_len \x1b[31m\x00\x7f")
    assert not set("\x1b\x00\x7f") & set(Text(language).check(check))


def test_the_folder_of_a_person_whom_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InstallerError) as caught:
        Home(tmp_path).weights_folder("~nobody-of-that-name/models")
    assert isinstance(caught.value.problem, BadChoice)


def test_every_kind_of_problem_cleans_its_texts() -> None:
    assert all(kind.__post_init__ is kinds()[0].__post_init__ for kind in kinds())


def test_an_unknown_failure_keeps_the_lines_without_secrets() -> None:
    reading = pasted.read(f"something failed: api_key={SECRET}".encode(), TABLE)
    (problem,) = reading.problems
    assert isinstance(problem, CauseUnknown)
    assert problem.lines == ("something failed: api_key=…",)


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://localhost:8000/v1/", "http://127.0.0.1:8000"),
        ("HTTP://LocalHost", "http://127.0.0.1"),
        ("https://far.example/llm/v1", "https://far.example/llm"),
        ("http://[::1]:9/v1", "http://[::1]:9"),
        *((bad, None) for bad in ("", "127.0.0.1:8000", "ftp://x", "http://", "http://[", "http://a:b", "http://a:")),
        *((bad, None) for bad in ("http://u:p@x", "http://x?key=1", "http://x#y", "http://a b", "http://x:99999")),
    ],
)
def test_the_address_of_a_server_is_taken_as_people_write_it(given: str, base: str | None) -> None:
    assert addresses.base_of(given) == base

"""Both languages say everything, with the figures that a person needs, in their own marks, and never a secret."""

from __future__ import annotations

import itertools
import re
import types
import typing
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from installer import resources
from installer.domain import choices, diagnosis, plan
from installer.domain import problems as p
from installer.domain import registry as registries
from installer.domain.facts import Missing
from installer.domain.memory import Limit, Verdict
from installer.domain.offers import RoomEnough, RoomTight, RunsWithoutGpu
from installer.domain.registry import Evidence
from installer.domain.settings import Settings
from installer.domain.units import GB, GIB, MIB
from installer.steps import events
from installer.steps.events import Step
from installer.steps.smoke import Check
from installer.text import Language, Text, choose_language
from installer.text.numbers import NBSP
from tools import i18n

LANGUAGES: tuple[Language, ...] = ("de", "en")
DE, EN = Text("de"), Text("en")
GERMAN = polib.pofile(str(i18n.po_path("de")))
HUGE = 2**62


MAY_BE_EMPTY = ("driver", "driver_cuda", "endpoint", "gpu", "image", "path", "platform", "system", "version", "where")
"""Texts without a default that the code that makes Problems cannot always name."""


def values_of(hint: Any, *, may_be_empty: bool) -> list[Any]:
    """Return values of a type that a person might meet: usual, emptiest, and far too large."""
    if isinstance(hint, types.UnionType):
        return [value for part in typing.get_args(hint) for value in values_of(part, may_be_empty=may_be_empty)]
    if typing.get_origin(hint) is tuple:
        return [("first", "second"), (), tuple(f"name{number}" for number in range(40))]
    known: dict[Any, list[Any]] = {
        str: ["text", "" if may_be_empty else "t", "x" * 500 + "\n\x1b[31mline"],
        int: [7, 0, HUGE],
        float: [12.5, 0.0, 1e12],
        bool: [False, True],
        types.NoneType: [None],
    }
    return known[hint]


def instances_of(kind: type[p.Problem]) -> Iterator[p.AnyProblem]:
    """Make a kind with usual values, with all at their emptiest, and with each field at each of its values."""
    values = {
        field.name: values_of(field.type, may_be_empty=field.default == "" or field.name in MAY_BE_EMPTY)
        for field in msgspec.structs.fields(kind)
    }
    usual = {name: choice[0] for name, choice in values.items()}
    rows = [usual, {name: choice[1] for name, choice in values.items()}]
    rows += [usual | {name: value} for name, choice in values.items() for value in choice]
    for row in rows:
        yield kind(**row)  # type: ignore[misc]


SPECIAL: tuple[p.AnyProblem, ...] = (
    *(p.GpuMemoryUnknown(gpu="RTX 5090", state=state.value) for state in Missing),
    *(
        p.DoesNotFit(profile="a", gpu="RTX 5090", needed_bytes=9 * GIB, available_bytes=8 * GIB, limit=limit.value)
        for limit in Limit
    ),
    p.CapabilityTooLow(profile="a", capability="8.6", needed="<= 8.0"),
    p.CapabilityTooLow(profile="a", capability=Missing.NOT_SUPPORTED.value, needed="8.0"),
    *(p.EngineNotInstalled(system=system) for system in ("Windows", "Linux", "Darwin")),
    p.GpuNotInContainer(gpu="GPU-1", cuda_error=804),
    *(p.CudaOutOfMemory(phase=phase) for phase in ("weights", "profiling", "graphs", "sampler", "request")),
    p.UnknownName(field="context", value="remote", known=("default",)),
    *(
        p.BadChoice(field=field, value="1", limit=limit)
        for field, limit in itertools.product(
            (field.name for field in msgspec.structs.fields(choices.Choices)),
            ("1024..65535", ">= 256", "<= 262144", "> 0", "GPU-…", "chat"),
        )
    ),
)
EVERY_KIND = p.kinds()


def spoken(text: Text, problem: p.AnyProblem) -> tuple[str, str, str]:
    words = text.problem(problem)
    return words.title, words.sentence, words.remedy


def check_form(said: str) -> None:
    assert said.strip() == said != ""
    assert not re.search(r"[{}\x00-\x1f]", said), said
    assert "  " not in said, said
    assert "!" not in said, said
    assert not re.search(r"„“|“”|\(\)", said), said


# --- every Problem -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", EVERY_KIND, ids=lambda kind: kind.__name__)
def test_every_kind_has_words_in_both_languages_whatever_its_fields_hold(kind: type[p.Problem]) -> None:
    for problem in instances_of(kind):
        german, english = spoken(DE, problem), spoken(EN, problem)
        for said in (*german, *english):
            check_form(said)
        assert all(one != other for one, other in zip(german, english, strict=True)), german
        for title in (german[0], english[0]):
            assert len(title) <= 48, title
            assert not title.endswith(".")
        for sentence in (*german[1:], *english[1:]):
            assert sentence[-1] in ".…", sentence


@pytest.mark.parametrize("text", [DE, EN], ids=LANGUAGES)
def test_states_of_one_kind_that_mean_different_things_are_told_apart(text: Text) -> None:
    for problem in SPECIAL:
        for said in spoken(text, problem):
            check_form(said)
    assert len({text.problem(problem).remedy for problem in SPECIAL[:3]}) == 3
    by_limit = {text.problem(problem).sentence for problem in SPECIAL if isinstance(problem, p.DoesNotFit)}
    assert len(by_limit) == len(Limit)
    hub = (
        p.TokenNeeded(repo="a/b", had_token=False),
        p.TokenNeeded(repo="a/b", had_token=True),
        p.TokenNeeded(repo="a/b", had_token=False, gated=True),
        p.AccessNotGranted(repo="a/b", gated=True),
        p.AccessNotGranted(repo="a/b", gated=False),
    )
    assert len({text.problem(problem).remedy for problem in hub}) == len(hub)


def test_under_wsl2_the_driver_of_windows_is_meant_and_none_is_installed_inside() -> None:
    old = p.DriverTooOld(driver="551.78", driver_cuda="12.4", image="vllm", image_cuda="13.0", wsl2=True)
    for problem in (old, p.NoNvidiaDriver(wsl2=True)):
        assert "innerhalb von WSL keinen Treiber" in DE.problem(problem).remedy
        assert "Install no driver inside WSL" in EN.problem(problem).remedy
        assert "Windows" in DE.problem(problem).remedy
    memory = p.NotEnoughHostMemory(memory_bytes=16 * GIB, needed_bytes=30 * GIB, wsl2=True)
    assert ".wslconfig" in DE.problem(memory).remedy


def test_a_remedy_speaks_of_a_command_where_there_is_one() -> None:
    for problem in itertools.chain.from_iterable(instances_of(kind) for kind in EVERY_KIND):
        spoken_of = "gezeigten Befehl" in DE.problem(problem).remedy, "command shown" in EN.problem(problem).remedy
        assert spoken_of == (problem.command is not None, problem.command is not None), problem.kind


FIGURES: tuple[tuple[p.AnyProblem, tuple[str, ...]], ...] = (
    (
        p.NotEnoughFreeMemory(
            gpu="RTX 5090", free_bytes=30 * GIB, total_bytes=32 * GIB, needed_bytes=30 * GIB + 130 * MIB + 1
        ),
        (f"131{NBSP}MiB", f"30,00{NBSP}GiB", f"30,13{NBSP}GiB", f"32,00{NBSP}GiB", "RTX 5090"),
    ),
    (
        p.FreeBelowUtilisation(free_gib=30.12, total_gib=31.84, utilisation=0.95, wanted_gib=30.25),
        (f"95{NBSP}%", f"30,12{NBSP}GiB", f"31,84{NBSP}GiB", f"30,25{NBSP}GiB", f"134{NBSP}MiB"),
    ),
    (p.PortTaken(port=8000, owner="portainer"), ("8000", "portainer")),
    (p.AlreadyRunning(pid=4711, home="/home/a"), ("4711", "/home/a")),
    (p.DigestGone(image="vllm/vllm-openai", digest="sha256:0123456789abcdef" + 48 * "0", tag="v1"), ("0123456789ab",)),
    (p.DriverTooOld(driver="551.78", driver_cuda="12.4", image="v", image_cuda="13.0"), ("551.78", "12.4", "13.0")),
    (p.CapabilityTooLow(profile="a", capability="7.5", needed="8.0"), ("7.5", "8.0")),
    (
        p.DiskFull(where="/data", needed_bytes=50 * GB, free_bytes=20 * GB),
        (f"50,0{NBSP}GB", f"20,0{NBSP}GB", f"30,0{NBSP}GB", "/data"),
    ),
    (
        p.KvCacheTooSmall(context=65536, needed_gib=5.5, available_gib=2.25, possible_tokens=26816),
        (f"65.536{NBSP}Token", f"5,50{NBSP}GiB", f"2,25{NBSP}GiB", f"26.816{NBSP}Token"),
    ),
    (p.StateBlocksTooFew(max_num_seqs=256, blocks=31), ("256", "31")),
    (p.CudaOutOfMemory(phase="graphs", tried="784.00 MiB"), (f"784,00{NBSP}MiB", "CUDA-Graphen")),
    (p.ContainerExited(exit_code_of_container=139), ("139",)),
    (p.NeverHealthy(phase="weights", seconds=900), (f"15{NBSP}min", "Gewichte")),
    (p.RelaxRefused(field="context", chosen="32768", possible="16384"), ("32.768", "16.384", "Kontext")),
    (p.RateLimited(host="huggingface.co", retry_after_s=90), (f"1{NBSP}min 30{NBSP}s", "huggingface.co")),
    (p.Truncated(file="model.safetensors", got_bytes=GB, expected_bytes=5 * GB), (f"1,0{NBSP}GB", f"5,0{NBSP}GB")),
    (p.WrongContent(file="f", expected=64 * "a", got=64 * "b"), (12 * "a", 12 * "b")),
    (p.GpuNotInContainer(gpu="GPU-1", cuda_error=999), ("999",)),
    (p.ServerError(host="ghcr.io", status=503), ("ghcr.io", "503")),
    (p.NoSuchPlatform(image="v", platform="linux/arm64", platforms=("linux/amd64",)), ("linux/arm64", "linux/amd64")),
    (p.BadChoice(field="port", value="80", limit="1024..65535"), ("80", "1024", "65535")),
    (p.BadChoice(field="context", value="300000", limit="<= 262144"), ("300000", "262.144")),
    (p.SmokeFailed(checks=("health", "completion")), ("2", "Server ist bereit", "Frage")),
    (
        p.LicenceNotAccepted(profile="a", licence="qwen", url="https://a.example/licence"),
        ("https://a.example/licence",),
    ),
)


@pytest.mark.parametrize(("problem", "figures"), FIGURES, ids=lambda value: getattr(value, "kind", ""))
def test_a_sentence_names_the_figures_of_its_problem(problem: p.AnyProblem, figures: tuple[str, ...]) -> None:
    said = " ".join(spoken(DE, problem))
    assert [figure for figure in figures if figure not in said] == []


@pytest.mark.parametrize("text", [DE, EN], ids=LANGUAGES)
@pytest.mark.parametrize("field", ["api_key", "hf_token"])
def test_a_secret_is_never_said(text: Text, field: str) -> None:
    said = spoken(text, p.BadChoice(field=field, value="hunter2 hunter2", limit="8..512"))
    assert "hunter2" not in " ".join(said)
    typed = p.BadArguments(detail=f"argument --{field}: invalid int value: 'hunter2'")
    assert "hunter2" not in " ".join(spoken(text, typed))
    assert f"--{field}" in text.problem(typed).sentence


@pytest.mark.parametrize("text", [DE, EN], ids=LANGUAGES)
def test_no_literal_context_limit_is_said(text: Text) -> None:
    said = text.context_copy(40_000, 100_000)
    assert set(re.findall(r"\d[\d.,]{3,}\d", said)) == {text.number(40_000), text.number(100_000)}
    assert "400" in said
    check_form(said)
    whole = text.context_copy(100_000, 100_000, reads_media=False)
    assert whole != text.context_copy(100_000, 100_000)
    assert text.context_copy(40_000, 100_000, graphics_card=False) != said
    check_form(whole)


# --- every other word ----------------------------------------------------------------------------------------------


def test_every_step_note_phase_and_verdict_is_said_in_both_languages() -> None:
    problem = p.MemoryHiddenByWsl2(gpu="RTX 5090", hidden_bytes=GIB)
    changes = [
        plan.Relaxation(field="context", old="32768", new="16384", because="kv_cache_too_small"),
        plan.Relaxation(field="utilisation", old="0.94", new="0.9", because="free_below_utilisation"),
        plan.Relaxation(field="max_num_seqs", old="8", new="2", because="no_cache_blocks"),
        plan.Relaxation(field="max_num_batched_tokens", old="8192", new="2048", because="no_cache_blocks"),
        plan.Relaxation(field="graph_sizes", old="()", new="(1, 2, 4)", because="cuda_out_of_memory"),
        plan.Relaxation(field="enforce_eager", old="False", new="True", because="cuda_out_of_memory"),
    ]
    notes: list[events.Note] = [
        events.Recomputed(free_bytes=GIB, total_bytes=2 * GIB, old_utilisation=0.9, new_utilisation=0.85),
        *(events.Relaxed(change=change, attempt=2) for change in changes),
        *(events.Phase(name=name) for name in ("starting", *(name for name, _ in diagnosis.PHASES))),
        events.Advice(problem=problem),
        events.BackedUp(path="a.yml", backup="a.yml.1.bak"),
    ]

    def said(text: Text) -> list[str]:
        steps = [text.step(step) for step in Step]
        return [
            *(words for step in steps for words in (step.present, step.done, step.skipped)),
            *(text.note(note) for note in notes),
            *(text.verdict(verdict) for verdict in Verdict),
            *(text.limit(limit) for limit in Limit),
            *(text.missing(missing) for missing in Missing),
            *(text.term(name) for name in ("weights", "kv", "base", "activations", "sampler", "encoder", "overhead")),
            *(text.state(name) for name in ("serving", "starting", "stopped", "failed", "missing")),
            *(text.choice(field.name) for field in msgspec.structs.fields(choices.Choices)),
            *(text.evidence(kind, untested=True) for kind in ("measured", "documented", "derived")),
            text.evidence("measured", untested=False),
        ]

    german, english = said(DE), said(EN)
    for sentence in (*german, *english):
        check_form(sentence)
        assert not re.search(r"\b[a-z]+_[a-z_]+\b", sentence), sentence
    assert [one for one, other in zip(german, english, strict=True) if one == other] == []
    assert len(set(german)) == len(german)


@pytest.mark.parametrize("text", [DE, EN], ids=LANGUAGES)
def test_the_reason_of_an_offer_names_need_share_and_what_is_free(text: Text) -> None:
    room = RoomEnough(
        gpu="RTX 5090", needed_bytes=25 * GIB, share_bytes=26 * GIB, free_bytes=30 * GIB, utilisation=0.85
    )
    tight = RoomTight(
        gpu="",
        needed_low_bytes=24 * GIB,
        needed_high_bytes=27 * GIB,
        share_bytes=26 * GIB,
        free_bytes=30 * GIB,
        utilisation=0.85,
        limit=Limit.KV_CACHE,
    )
    trial = RunsWithoutGpu(needed_bytes=5 * GIB, memory_bytes=16 * GIB)
    for reason, figures in ((room, (25, 26, 30)), (tight, (24, 27, 26, 30)), (trial, (5, 16))):
        said = text.reason(reason)
        check_form(said)
        assert all(text.gib(figure * GIB) in said for figure in figures)
    assert text.limit(Limit.KV_CACHE) in text.reason(tight)
    blocked = p.MigNotServed(gpu="H100")
    assert text.reason(blocked) == text.problem(blocked).sentence


def test_a_check_shows_its_name_its_outcome_and_its_figure() -> None:
    passed = Check(name="models", outcome="passed", seconds=0.42, figure="qwen, 65536")
    failed = Check(name="completion", outcome="failed", seconds=3.0, detail="empty content")
    assert DE.check(passed) == f"Modell und Kontext stimmen: bestanden („qwen, 65536“), 0,4{NBSP}s"
    assert "nicht bestanden („empty content“)" in DE.check(failed)
    assert "not passed (“empty content”)" in EN.check(failed)


def test_a_row_of_evidence_names_card_version_and_source() -> None:
    row = Evidence(kind="measured", card="RTX 5090", version="0.27.1", source="club-3090")
    assert DE.evidence_of(row) == "gemessen, RTX 5090, vLLM 0.27.1 (Quelle: club-3090)"
    assert EN.evidence_of(Evidence(kind="derived", source="here")) == "calculated (source: here)"


def test_every_argument_of_plan_and_registry_has_its_reason_in_both_languages() -> None:
    settings = Settings(
        context=1,
        utilisation=0.9,
        max_num_seqs=1,
        max_num_batched_tokens=1,
        kv_cache_dtype="fp8",
        enforce_eager=True,
        cpu_offload_gib=4,
        graph_sizes=(1,),
        reads_media=True,
    )
    whole = SimpleNamespace(settings=settings, profile="a", container_port=8000, gpu=object(), takes_video=True)
    registry = registries.parse(resources.registry_texts())
    used = {flag.reason for flag in plan._settings_as_flags(whole)}  # type: ignore[arg-type]
    used |= {flag.reason for profile in registry.profiles.values() for flag in profile.flags}
    assert {reason for reason in used if DE.flag_reason(reason) == reason} == set()
    assert {reason for reason in used if DE.flag_reason(reason) == EN.flag_reason(reason)} == set()
    assert DE.flag_reason("nobody_wrote_this") == "nobody_wrote_this"


# --- the catalogue -------------------------------------------------------------------------------------------------


def test_the_catalogues_are_in_step_with_the_source_and_compiled() -> None:
    assert i18n.main(["--check"]) == 0, "run: make i18n"


def test_no_message_is_empty_fuzzy_or_left_over() -> None:
    untranslated = [entry.msgid for entry in GERMAN if not entry.translated()]
    assert untranslated == []
    assert GERMAN.fuzzy_entries() == []
    assert GERMAN.obsolete_entries() == []


def fields_in(message: str) -> list[str]:
    return sorted(re.findall(r"\{\w*\}", message))


def test_a_translation_has_the_fields_of_its_message() -> None:
    unequal = [
        (entry.msgid, translation)
        for entry in GERMAN
        for translation in (entry.msgstr_plural.values() if entry.msgid_plural else [entry.msgstr])
        if fields_in(translation) != fields_in(entry.msgid)
    ]
    assert unequal == []


def test_messages_keep_to_the_marks_of_their_language() -> None:
    for entry in GERMAN:
        for german in entry.msgstr_plural.values() if entry.msgid_plural else [entry.msgstr]:
            assert not re.search(r"[!\"']|  |\.\.\.|^\s|\s$", german), german
            assert german.count("„") == german.count("“"), german
        assert not re.search(r"[!\"]|  |\.\.\.|^\s|\s$", entry.msgid), entry.msgid
        assert entry.msgid.count("“") == entry.msgid.count("”"), entry.msgid


NOT_GERMAN = (
    r"Image\b", r"Download", r"VRAM", r"Tokens\b", r"gepinnt", r"\bpinnen", r"\bLog\b", r"Log-?[Dd]atei", r"\bHost\b",
    r"Flag", r"Error", r"Feature", r"Setup", r"\bcheck", r"\bGPU\b(?!-)", r"\bRAM\b", r"Overhead",
    r"\bStack", r"Smoke", r"Login\b", r"\bUser\b", r"Verzeichnis", r"\bDetails\b", r"stoppen", r"\b[Dd]u\b",
    r"\bDein(e[mnrs]?)?\b",
)  # fmt: skip


def test_german_uses_the_words_of_the_glossary() -> None:
    strange = [
        (word, translation)
        for entry in GERMAN
        for translation in (entry.msgstr_plural.values() if entry.msgid_plural else [entry.msgstr])
        for word in NOT_GERMAN
        if re.search(word, re.sub(r"\{\w+\}", "", translation))
    ]
    assert strange == []


def test_fields_may_be_filled_by_the_voice_or_by_its_caller() -> None:
    message = "Docker has {memory}."
    assert DE.gettext(message, memory="1") == DE.gettext(message).format(memory="1") == "Docker hat 1."
    assert EN.gettext("{not a message") == "{not a message"


def test_a_value_with_braces_is_shown_as_it_is() -> None:
    said = DE.problem(p.UnknownName(field="profile", value="{0} {path}", known=("{x}",)))
    assert "{0} {path}" in said.sentence
    assert "{x}" in said.remedy


# --- numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "german", "english"),
    [
        (lambda t: t.number(0), "0", "0"),
        (lambda t: t.number(-0.001, 2), "0,00", "0.00"),
        (lambda t: t.number(-1234.5, 1), "−1.234,5", "−1,234.5"),
        (lambda t: t.number(999.996, 2), "1.000,00", "1,000.00"),
        (lambda t: t.gib(round(30.12 * GIB)), f"30,12{NBSP}GiB", f"30.12{NBSP}GiB"),
        (lambda t: t.gib(0), f"0,00{NBSP}GiB", f"0.00{NBSP}GiB"),
        (lambda t: t.gib(-GIB), f"−1,00{NBSP}GiB", f"−1.00{NBSP}GiB"),
        (lambda t: t.mib(MIB + 1), f"2{NBSP}MiB", f"2{NBSP}MiB"),
        (lambda t: t.mib(5000 * MIB), f"5.000{NBSP}MiB", f"5,000{NBSP}MiB"),
        (lambda t: t.gb(21_900_000_000), f"21,9{NBSP}GB", f"21.9{NBSP}GB"),
        (lambda t: t.gb(0), f"0{NBSP}GB", f"0{NBSP}GB"),
        (lambda t: t.gb(999_999_999), f"1,0{NBSP}GB", f"1.0{NBSP}GB"),
        (lambda t: t.gb(12_400_000), f"12{NBSP}MB", f"12{NBSP}MB"),
        (lambda t: t.gb(512), f"0,5{NBSP}kB", f"0.5{NBSP}kB"),
        (lambda t: t.gb(-3 * GB), f"−3,0{NBSP}GB", f"−3.0{NBSP}GB"),
        (lambda t: t.tokens(65536), f"65.536{NBSP}Token", f"65,536{NBSP}tokens"),
        (lambda t: t.tokens(1), f"1{NBSP}Token", f"1{NBSP}token"),
        (lambda t: t.tokens_of(65536, 262144), f"65.536 von 262.144{NBSP}Token", f"65,536 of 262,144{NBSP}tokens"),
        (lambda t: t.percent(0.85), f"85{NBSP}%", "85%"),
        (lambda t: t.percent(0.29), f"29{NBSP}%", "29%"),
        (lambda t: t.duration(0.04), f"0{NBSP}s", f"0{NBSP}s"),
        (lambda t: t.duration(7), f"7{NBSP}s", f"7{NBSP}s"),
        (lambda t: t.duration(0.42), f"0,4{NBSP}s", f"0.4{NBSP}s"),
        (lambda t: t.duration(9.97), f"10{NBSP}s", f"10{NBSP}s"),
        (lambda t: t.duration(59.6), f"1{NBSP}min 0{NBSP}s", f"1{NBSP}min 0{NBSP}s"),
        (lambda t: t.duration(3780), f"1{NBSP}h 3{NBSP}min", f"1{NBSP}h 3{NBSP}min"),
        (lambda t: t.date("2026-12-01T03:14:00Z"), f"1.{NBSP}Dezember 2026", f"1{NBSP}December 2026"),
        (lambda t: t.date("yesterday"), "yesterday", "yesterday"),
        (lambda t: t.figure("2.00 GiB"), f"2,00{NBSP}GiB", f"2.00{NBSP}GiB"),
        (lambda t: t.figure("a lot"), "a lot", "a lot"),
    ],
)
def test_numbers_are_written_as_the_language_has_it(call: Any, german: str, english: str) -> None:
    assert call(DE) == german
    assert call(EN) == english


@given(st.floats(min_value=-1e15, max_value=1e15), st.integers(min_value=0, max_value=3))
def test_a_number_can_be_read_back(value: float, decimals: int) -> None:
    german, english = DE.number(value, decimals), EN.number(value, decimals)
    assert german.translate(str.maketrans(",.", ".,")) == english
    assert float(english.replace(",", "").replace("−", "-")) == pytest.approx(round(value, decimals), abs=10**-decimals)


@given(st.integers(min_value=0, max_value=HUGE))
def test_what_must_be_freed_is_never_understated(size: int) -> None:
    shown = int(EN.mib(size).split(NBSP)[0].replace(",", ""))
    assert shown * MIB >= size > (shown - 1) * MIB


# --- the choice of the language ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "environ", "system", "language"),
    [
        ("en", {"SLIPWAY_LANGUAGE": "de", "LANG": "de_DE.UTF-8"}, "de_DE", "en"),
        (None, {"SLIPWAY_LANGUAGE": "de", "LC_ALL": "en_GB.UTF-8"}, "en_US", "de"),
        (None, {"SLIPWAY_LANGUAGE": "fr", "LANG": "de_AT.UTF-8"}, None, "de"),
        (None, {"LC_ALL": "en_US.UTF-8", "LC_MESSAGES": "de_DE", "LANG": "de_DE"}, None, "en"),
        (None, {"LC_MESSAGES": "de_CH.UTF-8", "LANG": "en_US"}, None, "de"),
        (None, {"LC_ALL": "", "LANG": "de_DE@euro"}, None, "de"),
        (None, {"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "de_DE", "en"),
        (None, {"LANG": "fr_FR.UTF-8"}, None, "en"),
        (None, {}, "de_AT", "de"),
        (None, {}, "German_Germany.1252", "de"),
        (None, {}, "delaware", "en"),
        (None, {}, "en_US", "en"),
        (None, {"LC_NUMERIC": "de_DE.UTF-8"}, "fr_FR", "en"),
        (None, {"LANG": "de"}, None, "de"),
    ],
)
def test_the_language_is_the_first_that_was_asked_for(
    argument: str | None, environ: dict[str, str], system: str | None, language: str
) -> None:
    assert choose_language(argument, environ, system) == language


def test_two_languages_live_side_by_side() -> None:
    german, english = Text("de"), Text("en")
    assert german.verdict(Verdict.FITS) == "Passt"
    assert english.verdict(Verdict.FITS) == "Fits"
    assert german.verdict(Verdict.FITS) == "Passt"

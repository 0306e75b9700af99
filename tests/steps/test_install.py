"""The whole story over a dry run: what a person is told, what is left behind, and what a second run does."""

from __future__ import annotations

import contextlib
import dataclasses
import stat
from pathlib import Path

import msgspec
import pytest
import yaml

from installer.adapters.dryrun import RecordedAwake
from installer.adapters.dryrun_failures import known
from installer.domain import compose
from installer.domain.compose import key_from_env
from installer.domain.facts import CudaMemory
from installer.domain.problems import (
    ContainerExited,
    DiskFull,
    EditedByHand,
    InstallerError,
    NotEnoughFreeMemory,
    PortTaken,
    RelaxRefused,
)
from installer.steps import install as installing
from installer.steps import lifecycle
from installer.steps.events import (
    INSTALL_STEPS,
    Advice,
    Again,
    BackedUp,
    Failed,
    Finished,
    Proved,
    Recomputed,
    Relaxed,
    Settled,
    Skipped,
    Started,
    Step,
)
from installer.steps.job import Secrets
from tests.steps.kit import LARGE_PROFILE, Rehearsal, Told, machine, rehearsal

MOST_EVENTS = 90
KEY = "planted-key-0123456789"
TOKEN = "hf_plantedtoken0123456789"


@pytest.fixture
def stage(tmp_path: Path) -> Rehearsal:
    return rehearsal(tmp_path)


def test_an_installation_ends_with_a_proof_and_a_server_that_answers(stage: Rehearsal) -> None:
    done = stage.install()
    assert {check.outcome for check in done.report.checks} == {"passed", "not_applicable"}
    assert stage.told.of(Proved)[-1].report == done.report
    assert stage.told.events[-1] == stage.told.of(Settled)[0]
    assert stage.told.outcome == "ok"
    assert set(stage.told.steps(Finished)) == set(INSTALL_STEPS)
    assert stage.ports.server.get(done.plan.base, "/health", 5).status == 200


def test_steps_come_in_their_order_and_each_that_begins_ends(stage: Rehearsal) -> None:
    stage.install()
    started, finished = stage.told.steps(Started), stage.told.steps(Finished)
    in_line = [step for step in INSTALL_STEPS if step is not Step.WEIGHTS]
    assert [step for step in started if step is not Step.WEIGHTS] == in_line
    assert [step for step in finished if step is not Step.WEIGHTS] == in_line
    assert started.index(Step.PROBE) < started.index(Step.WEIGHTS) < started.index(Step.FILES)


@pytest.mark.parametrize("step", [Step.IMAGE, Step.WEIGHTS])
def test_progress_only_grows_and_reaches_what_the_plan_said(stage: Rehearsal, step: Step) -> None:
    plan = stage.install().plan
    reports = stage.told.progress(step)
    size_bytes = plan.image.size_bytes if step is Step.IMAGE else plan.weights.size_bytes
    assert reports == sorted(set(reports))
    assert reports[-1] == (size_bytes, size_bytes)
    assert len(reports) > 10


def test_a_second_run_finds_everything_done(stage: Rehearsal) -> None:
    first = stage.install()
    container, files = stage.container(), snapshot(stage.folder / "chat")
    second = stage.install()
    assert stage.told.steps(Skipped) == list(INSTALL_STEPS)
    assert stage.told.steps(Started) == []
    assert second == first
    assert stage.container() == container
    assert snapshot(stage.folder / "chat") == files


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file but the record of events, with its mode and content."""
    files = [path for path in folder.iterdir() if not path.name.startswith("events")]
    return {path.name: (stat.S_IMODE(path.stat().st_mode), path.read_bytes()) for path in files}


@pytest.mark.parametrize("index", range(1, MOST_EVENTS + 1))
def test_a_run_that_is_cancelled_anywhere_can_be_gone_on_with(stage: Rehearsal, index: int) -> None:
    cancelled = stage.cancelled_after(lambda told: len(told.events) == index)
    assert stage.told.outcome == ("cancelled" if cancelled else "ok")
    assert cancelled or index >= len(stage.told.events) - 1
    assert stage.told.of(Failed) == []
    if cancelled and Step.START not in stage.told.steps(Finished):
        assert stage.container() is None
    stage.install()
    assert stage.told.outcome == "ok"
    assert stage.container().health == "healthy"


def test_the_events_of_a_run_are_fewer_than_the_cancelled_ones(stage: Rehearsal) -> None:
    stage.install()
    assert len(stage.told.events) < MOST_EVENTS


def test_what_came_before_a_cancel_is_not_fetched_again(stage: Rehearsal) -> None:
    def half_of_the_weights(told: Told) -> bool:
        reports = told.progress(Step.WEIGHTS)
        return bool(reports) and reports[-1][0] * 2 >= reports[-1][1]

    assert stage.cancelled_after(half_of_the_weights)
    stage.install()
    (first, total), *_ = stage.told.progress(Step.WEIGHTS)
    assert first * 2 >= total


# --- failures --------------------------------------------------------------------------------------------------------

MENDED_BY_THE_LADDER = {
    "start:free_below_utilisation",
    "start:graphs_out_of_memory",
    "start:kv_cache_too_small",
    "start:no_cache_blocks",
    "start:port_taken",
    "start:profiling_out_of_memory",
    "start:state_blocks_too_few",
    "start:unknown_argument",
}
MENDED_BY_PATIENCE = {"image:stalled", "image:unreachable"}
BEHIND = {
    "probe:too_little_memory": "not_enough_free_memory",
    "start:killed": "container_killed",
    "start:weights_out_of_memory": "cuda_out_of_memory",
    "smoke:not_answering": "not_answering",
    "smoke:empty_answer": "smoke_failed",
    "smoke:server_error": "smoke_failed",
    "smoke:wrong_context": "smoke_failed",
    "smoke:wrong_model": "smoke_failed",
    "smoke:wrong_word": "smoke_failed",
}
EXIT_CODES = {
    "not_enough_free_memory": 10,
    "gpu_not_in_container": 10,
    "nvidia_toolkit_missing": 20,
    "engine_lost": 20,
    "digest_gone": 30,
    "token_needed": 30,
    "wrong_content": 30,
    "disk_full": 40,
    "port_taken": 50,
    "container_exited": 50,
    "container_killed": 50,
    "never_healthy": 50,
    "smoke_failed": 60,
    "not_answering": 60,
}


@pytest.mark.parametrize("asked", [one for one in known() if one not in MENDED_BY_THE_LADDER | MENDED_BY_PATIENCE])
def test_a_failure_is_told_with_its_kind_and_trying_again_works(tmp_path: Path, asked: str) -> None:
    step, _, kind = asked.partition(":")
    stage = rehearsal(tmp_path, fail=asked)
    problem = stage.fails()
    assert problem.kind == BEHIND.get(asked, kind)
    assert problem.exit_code == EXIT_CODES.get(problem.kind, problem.exit_code)
    if step != "resolve":
        assert stage.told.of(Settled)[-1].problem == problem
        failed = stage.told.of(Failed)[-1]
        assert (failed.step, failed.problem) == (Step(step), problem)
    stage.install()
    assert stage.told.outcome == "ok"


@pytest.mark.parametrize("asked", sorted(MENDED_BY_PATIENCE))
def test_a_pull_that_a_passing_fault_broke_goes_on_and_says_so(tmp_path: Path, asked: str) -> None:
    stage = rehearsal(tmp_path, fail=asked)
    stage.install()
    (again,) = [note for note in stage.told.notes if isinstance(note, Again)]
    assert (again.problem.kind, again.attempt) == (asked.partition(":")[2], 2)
    assert stage.told.outcome == "ok"


@pytest.mark.parametrize("asked", ["start:container_exited", "start:never_healthy"])
def test_a_failed_start_is_taken_down_and_image_and_weights_stay(tmp_path: Path, asked: str) -> None:
    stage = rehearsal(tmp_path, fail=asked)
    stage.fails()
    assert stage.container() is None
    stage.install()
    assert stage.told.steps(Skipped)[:2] == [Step.IMAGE, Step.WEIGHTS]


def test_a_port_that_the_person_named_is_not_exchanged(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path, fail="start:port_taken", port=8000)
    problem = stage.fails()
    assert (problem.kind, problem.exit_code) == ("port_taken", 50)
    assert stage.container() is None


@pytest.mark.parametrize("asked", ["smoke:wrong_word", "smoke:not_answering"])
def test_a_server_that_fails_its_proof_stays_to_be_looked_at(tmp_path: Path, asked: str) -> None:
    stage = rehearsal(tmp_path, fail=asked)
    stage.fails()
    assert stage.container().health == "healthy"
    assert not stage.file("smoke.json").exists()
    stage.install()
    assert stage.told.steps(Started) == [Step.SMOKE]


def test_an_exited_container_says_its_last_lines(tmp_path: Path) -> None:
    problem = rehearsal(tmp_path, fail="start:container_exited").fails()
    assert isinstance(problem, ContainerExited)
    assert problem.exit_code_of_container == 1
    assert any("RuntimeError" in line for line in problem.lines)


def test_too_little_memory_in_the_container_stops_before_anything_large_is_pulled(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path, fail="probe:too_little_memory")
    problem = stage.fails()
    assert isinstance(problem, NotEnoughFreeMemory)
    assert problem.short_bytes > 0
    assert stage.told.steps(Started) == [Step.PROBE]
    plan = stage.home.stack("chat").installed()
    assert not stage.ports.engine.has_image(plan.image)
    assert stage.ports.hub.missing_bytes(plan.weights, plan.place) == plan.weights.size_bytes


def test_no_room_on_the_engines_own_disk_stops_before_anything_large_is_pulled(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path, fail="probe:disk_full")
    problem = stage.fails()
    assert isinstance(problem, DiskFull)
    assert problem.engine
    assert stage.told.steps(Started) == [Step.PROBE]


def test_weights_that_are_there_need_no_room_a_second_time(tmp_path: Path) -> None:
    seen = machine("rtx-5090-wsl2", tmp_path / "models")
    stage = rehearsal(tmp_path, seen=seen, profile=LARGE_PROFILE)
    plan = stage.plan(stage.job())
    needed = 3 * plan.image.size_bytes + plan.weights.size_bytes
    engine = msgspec.structs.replace(seen.engine, data_root_free_bytes=needed + 1_000_000_000)
    stage = rehearsal(
        tmp_path,
        seen=msgspec.structs.replace(seen, engine=engine),
        profile=LARGE_PROFILE,
        fail="image:registry_denied",
    )
    stage.ports.engine.probe(plan.helper, None, stage.cancel)
    stage.ports.hub.fetch(plan.weights, plan.place, lambda _, __: None, stage.cancel)
    assert stage.fails().kind == "registry_denied"
    stage.install()
    assert stage.told.outcome == "ok"


def test_a_port_that_somebody_took_is_named(tmp_path: Path) -> None:
    problem = rehearsal(tmp_path, port=8003, fail="start:port_taken").fails()
    assert problem == PortTaken(port=8003)


# --- the ladder ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ("start:kv_cache_too_small", "context"),
        ("start:graphs_out_of_memory", "graph_sizes"),
        ("start:no_cache_blocks", "max_num_batched_tokens"),
        ("start:port_taken", "port"),
        ("start:profiling_out_of_memory", "max_num_batched_tokens"),
    ],
)
def test_a_start_that_a_lower_setting_mends_is_tried_again(tmp_path: Path, asked: str, field: str) -> None:
    stage = rehearsal(tmp_path, card="rtx-5090-linux", profile=LARGE_PROFILE, fail=asked)
    done = stage.install()
    (relaxed,) = [note for note in stage.told.notes if isinstance(note, Relaxed)]
    assert (relaxed.change.field, relaxed.attempt) == (field, 1)
    assert stage.told.steps(Failed) == [Step.START]
    assert stage.told.steps(Started).count(Step.START) == 2
    assert stage.told.outcome == "ok"
    assert stage.home.stack("chat").installed() == done.plan
    assert done.plan.relaxed == (relaxed.change,)


def test_a_mended_start_is_remembered_by_the_next_run(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path, card="rtx-5090-linux", profile=LARGE_PROFILE, fail="start:kv_cache_too_small")
    first = stage.install()
    stage.install()
    assert stage.told.steps(Started) == []
    assert stage.home.stack("chat").installed() == first.plan


def test_a_share_that_was_lowered_stays_lowered(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path, card="rtx-5090-linux", profile=LARGE_PROFILE, fail="start:free_below_utilisation")
    first = stage.install()
    (relaxed,) = first.plan.relaxed
    assert relaxed.field == "utilisation"
    stage.run(lifecycle.stop)
    again = stage.install()
    assert again.plan.settings == first.plan.settings
    assert stage.container().fingerprint == compose.fingerprint(first.plan)


def test_a_context_that_the_person_chose_is_lowered_only_with_consent(tmp_path: Path) -> None:
    stage = rehearsal(
        tmp_path, card="rtx-5090-linux", profile=LARGE_PROFILE, context=40960, fail="start:kv_cache_too_small"
    )
    problem = stage.fails()
    assert isinstance(problem, RelaxRefused)
    assert (problem.exit_code, problem.field, problem.chosen) == (50, "context", "40960")
    assert stage.container() is None


def test_with_consent_the_smaller_context_is_taken(tmp_path: Path) -> None:
    stage = rehearsal(
        tmp_path, card="rtx-5090-linux", profile=LARGE_PROFILE, context=40960, fail="start:kv_cache_too_small"
    )
    asked: list[RelaxRefused] = []

    def agrees(problem: RelaxRefused) -> bool:
        asked.append(problem)
        return True

    stage.agrees = agrees
    done = stage.install()
    assert [problem.possible for problem in asked] == [str(done.plan.settings.context)]
    assert 2048 <= done.plan.settings.context < 40960


def test_cudas_own_figure_is_told_where_it_changes_the_share(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path, card="rtx-5090-linux", profile=LARGE_PROFILE)
    job = stage.job()
    plan = stage.plan(job)
    assert plan.fit is not None
    (gpu,) = job.facts.nvidia.gpus
    tighter = CudaMemory(total_bytes=plan.fit.budget.total_bytes, free_bytes=int(plan.fit.budget.free_bytes * 0.86))
    other = rehearsal(tmp_path, seen=stage.recorded.with_cuda(gpu.uuid, tighter), profile=LARGE_PROFILE)
    install_job = other.job()
    install_job.run.settle(lambda: installing.install(plan, dataclasses.replace(install_job, facts=job.facts)))
    (said,) = [note for note in other.told.notes if isinstance(note, Recomputed)]
    assert said.new_utilisation < said.old_utilisation == plan.settings.utilisation


def test_memory_that_wsl2_hides_is_said_and_blocks_nothing(tmp_path: Path) -> None:
    stage = rehearsal(tmp_path, card="rtx-5090-wsl2", profile=LARGE_PROFILE)
    stage.install()
    assert "memory_hidden_by_wsl2" in [note.problem.kind for note in stage.told.notes if isinstance(note, Advice)]


# --- files -----------------------------------------------------------------------------------------------------------

COMPOSE = "docker-compose.vllm.yml"


def edit(stage: Rehearsal) -> str:
    path = stage.file(COMPOSE)
    path.write_text(path.read_text() + "# mine\n")
    return path.read_text()


def test_an_edited_file_is_not_lost_and_the_difference_is_shown(stage: Rehearsal) -> None:
    stage.install()
    mine = edit(stage)
    problem = stage.fails()
    assert isinstance(problem, EditedByHand)
    assert "-# mine" in problem.diff.splitlines()
    assert stage.file(COMPOSE).read_text() == mine
    assert stage.container() is not None, "what runs is not touched"


def test_an_edited_file_is_kept_beside_the_new_one_where_that_was_asked_for(stage: Rehearsal) -> None:
    stage.install()
    ours = stage.file(COMPOSE).read_text()
    mine = edit(stage)
    stage.overwrite = True
    stage.install()
    (note,) = [note for note in stage.told.notes if isinstance(note, BackedUp)]
    assert Path(note.backup).read_text() == mine
    assert stage.file(COMPOSE).read_text() == ours


def test_a_file_that_is_gone_is_written_again(stage: Rehearsal) -> None:
    stage.install()
    stage.file(COMPOSE).unlink()
    stage.install()
    assert stage.told.steps(Started) == [Step.FILES]


def test_the_key_is_private_and_stays_the_same(stage: Rehearsal) -> None:
    stage.install()
    env = stage.file("vllm.env")
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    key = key_from_env(env.read_text())
    assert key is not None
    assert len(key) >= 32
    stage.choices = msgspec.structs.replace(stage.choices, context=4096)
    stage.install()
    assert key_from_env(env.read_text()) == key


def test_an_env_file_that_others_can_read_is_closed_again(stage: Rehearsal) -> None:
    stage.install()
    env = stage.file("vllm.env")
    env.chmod(0o644)
    stage.install()
    assert stat.S_IMODE(env.stat().st_mode) == 0o600


@pytest.mark.parametrize("fail", [None, "start:container_exited", "smoke:wrong_word", "weights:token_needed"])
def test_no_secret_leaves_the_env_file(tmp_path: Path, fail: str | None) -> None:
    stage = rehearsal(tmp_path, fail=fail)
    stage.secrets = Secrets(api_key=KEY, hf_token=TOKEN)
    with contextlib.suppress(InstallerError):
        stage.install()
    assert not holds_a_secret(b"".join(map(msgspec.json.encode, stage.told.events)))
    assert not holds_a_secret(repr(stage.job()).encode())
    holders = [p.name for p in stage.folder.rglob("*") if p.is_file() and holds_a_secret(p.read_bytes())]
    assert holders in ([], ["vllm.env"])
    assert (stage.file("events.jsonl")).stat().st_size > 0


def holds_a_secret(data: bytes) -> bool:
    return KEY.encode() in data or TOKEN.encode() in data


def test_a_key_that_compose_would_misread_is_refused_without_being_repeated(stage: Rehearsal) -> None:
    stage.secrets = Secrets(api_key="it's bad, $HOME")
    problem = stage.fails()
    assert problem.kind == "bad_choice"
    assert "HOME" not in str(msgspec.to_builtins(problem))


@pytest.mark.parametrize(("pin", "separator"), [("current", "@sha256:"), ("", ":v0.33.0")])
def test_the_file_names_the_digest_or_the_tag(tmp_path: Path, pin: str, separator: str) -> None:
    stage = rehearsal(tmp_path, docker_image_pin_digest=pin)
    done = stage.install()
    service = yaml.safe_load(stage.file(COMPOSE).read_text())["services"]["server"]
    assert service["image"].startswith(f"vllm/vllm-openai{separator}")
    assert service["labels"]["app.slipway.image-digest"] == done.plan.image.index_digest
    assert stage.container().image == service["image"]


def test_a_pinned_digest_is_the_one_that_is_pulled(tmp_path: Path) -> None:
    digest = f"sha256:{'5' * 64}"
    done = rehearsal(tmp_path, docker_image_pin_digest=digest).install()
    assert done.plan.image_reference.endswith(f"@{digest}")


def test_another_choice_stops_the_old_server_and_starts_a_new_one(stage: Rehearsal) -> None:
    stage.install()
    old = stage.container()
    stage.choices = msgspec.structs.replace(stage.choices, context=4096)
    done = stage.install()
    assert stage.told.steps(Finished)[:2] == [Step.STOP, Step.PROBE]
    assert stage.container().id != old.id
    assert "4096" in done.report.checks[1].figure


def test_a_server_that_a_killed_run_left_starting_is_waited_for(stage: Rehearsal) -> None:
    first = stage.install()
    file = str(stage.file(COMPOSE))
    stage.ports.stack.down(file)
    stage.ports.stack.up(file, stage.cancel)
    stage.ports.clock.wait(3, stage.cancel)
    left = stage.container()
    assert (left.status, left.health) == ("running", "starting")
    second = stage.install()
    assert second.plan == first.plan
    assert stage.container().id == left.id
    assert stage.told.steps(Started) == [Step.START, Step.SMOKE]


def test_making_another_plan_stops_nothing(stage: Rehearsal) -> None:
    first = stage.install().plan
    stage.choices = msgspec.structs.replace(stage.choices, context=4096)
    second = stage.plan(stage.job())
    assert second.settings.context == 4096
    assert second.port == first.port
    assert stage.container().health == "healthy"


@pytest.mark.parametrize("fail", [None, "image:disk_full"])
def test_the_computer_is_kept_awake_while_it_installs_and_not_longer(tmp_path: Path, fail: str | None) -> None:
    stage = rehearsal(tmp_path, fail=fail)
    awake = stage.ports.awake
    assert isinstance(awake, RecordedAwake)
    seen: list[tuple[str, int]] = []
    stage.on_event = lambda told: seen.append((type(told.events[-1]).__name__, awake.now))
    with contextlib.suppress(InstallerError):
        stage.install()
    assert {now for kind, now in seen if kind != "Settled"} == {1}
    assert seen[-1] == ("Settled", 0)
    assert awake.asked == 1

"""A run tells what it does in order, throttled, and ends at once and in one way when it is cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from installer.domain.ladder import MOST_RETRIES
from installer.domain.plan import Plan, Refusal, Relaxation
from installer.domain.problems import (
    AnyProblem,
    Bug,
    Cancelled,
    InstallerError,
    KvCacheTooSmall,
    NeverHealthy,
    NoCacheBlocks,
    RelaxRefused,
    Stalled,
    Unreachable,
)
from installer.steps.cancel import Cancel
from installer.steps.events import Event, Failed, Finished, Progress, Relaxed, Settled, Skipped, Started, Step
from installer.steps.ports import Report
from installer.steps.run import PROGRESS_EVERY_SECONDS, Run
from tests.steps.kit import JumpingClock, Told, rehearsal

PATIENCE_S = 30.0


class Stage:
    """A run over a clock that jumps, with what it told."""

    def __init__(self) -> None:
        self.clock = JumpingClock()
        self.cancel = Cancel()
        self.told = Told()
        self.run = Run(self.tell, self.cancel, self.clock)

    def tell(self, event: Event) -> None:
        self.told.events.append(event)

    @property
    def kinds(self) -> list[type]:
        return [type(event) for event in self.told.events]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def raising(problem: AnyProblem) -> Callable[[Report, Cancel], None]:
    def work(_: Report, __: Cancel) -> None:
        raise InstallerError(problem)

    return work


# --- one step --------------------------------------------------------------------------------------------------------


def test_a_step_begins_ends_and_says_how_long_it_took(stage: Stage) -> None:
    def work(_: Report, cancel: Cancel) -> str:
        stage.clock.wait(2.5, cancel)
        return "done"

    assert stage.run.step(Step.PROBE, work) == "done"
    assert stage.kinds == [Started, Finished]
    assert stage.told.of(Finished)[0].seconds == 2.5


def test_a_step_that_fails_says_why_and_does_not_end(stage: Stage) -> None:
    problem = Unreachable(host="hub")
    with pytest.raises(InstallerError):
        stage.run.step(Step.WEIGHTS, raising(problem))
    assert stage.kinds == [Started, Failed]
    assert stage.told.of(Failed)[0].problem == problem


def test_progress_never_goes_back_and_the_last_figure_always_comes(stage: Stage) -> None:
    def work(report: Report, _: Cancel) -> None:
        for done in (0, 50, 20, 60, 60, 100):
            report(done, 100)
            stage.clock.wait(1, Cancel())

    stage.run.step(Step.IMAGE, work)
    assert [event.done for event in stage.told.of(Progress)] == [0, 50, 60, 100]


def test_progress_is_told_ten_times_a_second_at_most(stage: Stage) -> None:
    def work(report: Report, _: Cancel) -> None:
        for done in range(1001):
            report(done, 1000)
            stage.clock.wait(0.001, Cancel())

    stage.run.step(Step.IMAGE, work)
    told = stage.told.of(Progress)
    assert len(told) <= 1 / PROGRESS_EVERY_SECONDS + 2
    assert told[-1].done == 1000


def test_nothing_begins_after_a_cancel(stage: Stage) -> None:
    stage.cancel.set()
    with pytest.raises(Cancelled):
        stage.run.step(Step.PROBE, lambda _, __: pytest.fail("begun"))
    assert stage.told.events == []


def test_work_that_did_not_notice_the_cancel_does_not_count_as_finished(stage: Stage) -> None:
    with pytest.raises(Cancelled):
        stage.run.step(Step.PROBE, lambda _, __: stage.cancel.set())
    assert stage.kinds == [Started]


# --- side by side ----------------------------------------------------------------------------------------------------


def test_steps_side_by_side_give_their_results_in_the_order_of_asking(stage: Stage) -> None:
    second_is_done = threading.Event()

    def first(_: Report, __: Cancel) -> str:
        assert second_is_done.wait(PATIENCE_S)
        return "first"

    def second(_: Report, __: Cancel) -> str:
        second_is_done.set()
        return "second"

    assert stage.run.together((Step.IMAGE, first), (Step.WEIGHTS, second)) == ("first", "second")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_first_failure_cancels_the_other_and_is_the_one_that_is_told(stage: Stage, order: tuple[int, int]) -> None:
    waiting, ended = threading.Event(), []

    def patient(_: Report, cancel: Cancel) -> None:
        waiting.set()
        try:
            cancel.wait(PATIENCE_S)
        except Cancelled:
            ended.append("cancelled")
            raise

    def failing(_: Report, __: Cancel) -> None:
        assert waiting.wait(PATIENCE_S)
        raise InstallerError(Stalled(what="layer", seconds=60))

    pairs = ((Step.IMAGE, failing), (Step.WEIGHTS, patient))
    with pytest.raises(InstallerError) as caught:
        stage.run.together(pairs[order[0]], pairs[order[1]])
    assert caught.value.problem == Stalled(what="layer", seconds=60)
    assert ended == ["cancelled"]
    assert stage.told.steps(Failed) == [Step.IMAGE]
    assert not stage.cancel.is_set, "the run itself was not cancelled"


def test_a_cancel_ends_both(stage: Stage) -> None:
    both = threading.Barrier(3)

    def work(_: Report, cancel: Cancel) -> None:
        both.wait(PATIENCE_S)
        cancel.wait(PATIENCE_S)

    def press() -> None:
        both.wait(PATIENCE_S)
        stage.cancel.set()

    threading.Thread(target=press).start()
    with pytest.raises(Cancelled):
        stage.run.together((Step.IMAGE, work), (Step.WEIGHTS, work))
    assert stage.told.of(Failed) == []


def test_a_failure_that_comes_of_the_cancel_is_a_cancel(stage: Stage) -> None:
    def torn(_: Report, cancel: Cancel) -> None:
        stage.cancel.set()
        raise InstallerError(Unreachable(host="hub"))

    with pytest.raises(Cancelled):
        stage.run.together((Step.WEIGHTS, torn))


def test_events_come_one_at_a_time(stage: Stage) -> None:
    inside, overlaps = threading.Lock(), []

    def tell(event: Event) -> None:
        if not inside.acquire(blocking=False):
            overlaps.append(event)
            return
        threading.Event().wait(0.001)
        inside.release()

    run = Run(tell, Cancel(), stage.clock)

    def work(report: Report, cancel: Cancel) -> None:
        for done in range(20):
            report(done, 20)
            stage.clock.wait(1, cancel)

    run.together((Step.IMAGE, work), (Step.WEIGHTS, work))
    assert overlaps == []


# --- the ladder ------------------------------------------------------------------------------------------------------


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    made = rehearsal(tmp_path)
    return made.plan(made.job())


def lowered(plan: Plan, problem: AnyProblem) -> Plan:
    step = Relaxation(field="context", old="2", new="1", because=problem.kind)
    return msgspec.structs.replace(plan, relaxed=(*plan.relaxed, step))


def test_a_start_is_tried_three_more_times_at_most(stage: Stage, plan: Plan) -> None:
    attempts: list[Plan] = []

    def attempt(tried: Plan) -> None:
        attempts.append(tried)
        raise InstallerError(NoCacheBlocks())

    with pytest.raises(InstallerError) as caught:
        stage.run.ladder(plan, attempt, lowered, Step.START)
    assert caught.value.problem == NoCacheBlocks()
    assert len(attempts) == 1 + MOST_RETRIES == 4
    assert [note.attempt for note in stage.told.notes if isinstance(note, Relaxed)] == [1, 2, 3]
    assert len(attempts[-1].relaxed) == 3


def test_the_plan_that_started_is_returned(stage: Stage, plan: Plan) -> None:
    def attempt(tried: Plan) -> str:
        if len(tried.relaxed) < 2:
            raise InstallerError(NoCacheBlocks())
        return "container"

    started, container = stage.run.ladder(plan, attempt, lowered, Step.START)
    assert container == "container"
    assert len(started.relaxed) == 2


def test_a_failure_that_nothing_mends_is_raised_as_it_is(stage: Stage, plan: Plan) -> None:
    problem = NeverHealthy(phase="weights", seconds=900)

    def attempt(_: Plan) -> None:
        raise InstallerError(problem)

    with pytest.raises(InstallerError) as caught:
        stage.run.ladder(plan, attempt, lambda _, failure: Refusal(problems=(failure,)), Step.START)
    assert caught.value.problem == problem
    assert stage.told.notes == []


def test_a_value_that_nobody_agreed_to_is_what_the_run_ends_with(stage: Stage, plan: Plan) -> None:
    failure = KvCacheTooSmall(context=9, needed_gib=2, available_gib=1, possible_tokens=4)
    refused = RelaxRefused(field="context", chosen="9", possible="4")

    def attempt(_: Plan) -> None:
        raise InstallerError(failure)

    with pytest.raises(InstallerError) as caught:
        stage.run.ladder(plan, attempt, lambda _, problem: Refusal(problems=(refused, problem)), Step.START)
    assert caught.value.problem == refused


def test_a_cancel_is_not_taken_for_a_failed_start(stage: Stage, plan: Plan) -> None:
    attempts: list[Plan] = []

    def attempt(tried: Plan) -> None:
        attempts.append(tried)
        raise Cancelled

    with pytest.raises(Cancelled):
        stage.run.ladder(plan, attempt, lowered, Step.START)
    assert len(attempts) == 1


# --- how a run ends --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "outcome", "kind"),
    [
        (None, "ok", None),
        (InstallerError(Unreachable(host="hub")), "failed", "unreachable"),
        (Cancelled(), "cancelled", "interrupted"),
        (ZeroDivisionError("secret"), "failed", "bug"),
    ],
)
def test_every_run_settles_once_and_its_failure_goes_on(
    stage: Stage, ending: BaseException | None, outcome: str, kind: str | None
) -> None:
    def work() -> None:
        if ending is not None:
            raise ending

    if ending is None:
        stage.run.settle(work)
    else:
        with pytest.raises(type(ending)):
            stage.run.settle(work)
    (settled,) = stage.told.of(Settled)
    assert settled.outcome == outcome
    assert (settled.problem.kind if settled.problem else None) == kind
    assert b"secret" not in msgspec.json.encode(settled)
    if kind == "bug":
        assert isinstance(settled.problem, Bug)
        assert settled.problem.error == "ZeroDivisionError"
        assert settled.problem.where.startswith(f"{Path(__file__).name}:")


def test_a_skipped_step_is_only_that(stage: Stage) -> None:
    stage.run.skip(Step.IMAGE)
    assert stage.kinds == [Skipped]


# --- the token -------------------------------------------------------------------------------------------------------


def test_a_cancel_wakes_who_waits_in_a_blocking_read() -> None:
    cancel, woken = Cancel(), threading.Event()
    threading.Timer(0.02, cancel.set).start()

    def read() -> None:
        assert woken.wait(PATIENCE_S)
        raise OSError("the socket was shut down")

    with pytest.raises(Cancelled), cancel.waking(woken.set):
        read()


def test_an_error_without_a_cancel_stays_an_error() -> None:
    with pytest.raises(OSError, match="really"), Cancel().waking(lambda: None):
        raise OSError("really")


def test_a_childs_cancel_does_not_reach_its_parent_and_the_parents_reaches_it() -> None:
    parent = Cancel()
    one, other = parent.child(), parent.child()
    one.set()
    assert (parent.is_set, other.is_set) == (False, False)
    parent.set()
    assert other.is_set
    assert parent.child().is_set

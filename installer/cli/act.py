"""Verbs that change something: install, start, stop, smoke, uninstall."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from installer import doors
from installer.cli.look import summary
from installer.cli.session import Session
from installer.cli.worker import cancellable
from installer.domain import checks, compose
from installer.domain.choices import Choices
from installer.domain.plan import Plan
from installer.domain.problems import AnyProblem, ConsentNeeded, InstallerError, RelaxRefused
from installer.steps import attach, lifecycle, speed
from installer.steps import install as installing
from installer.steps.home import Home, StackHome
from installer.steps.install import Installed
from installer.steps.job import Job
from installer.steps.planning import plan_to_install
from installer.steps.run import Run


def install(session: Session) -> int:
    """Plan, ask, install, prove."""
    with _home_of_this_run(session) as home, _held_for_installing(session, home) as stack:
        job = session.job(stack, session.facts())
        job = replace(job, agrees=lambda problem: _agrees(session, problem))
        job, plan = cancellable(lambda: plan_to_install(_with_folder(session), job, home), session.cancel)
        _agree_to_install(session, plan, stack)
        stack.begin_record()
        done = cancellable(lambda: job.run.settle(lambda: installing.install(plan, job)), session.cancel)
        _tell_how_to_use(session, done, job)
    return 0


@contextlib.contextmanager
def _home_of_this_run(session: Session) -> Iterator[Home]:
    """Yield the home; a dry run gets one of its own that goes away, unless a folder was named for it."""
    if not session.is_dry_run or session.arguments.home:
        yield session.home
        return
    with tempfile.TemporaryDirectory(prefix="slipway-dry-run-") as folder:
        yield Home(Path(folder))


@contextlib.contextmanager
def _held_for_installing(session: Session, home: Home) -> Iterator[StackHome]:
    """Hold the home once all that was given can be read: a run that is refused for it writes nothing."""
    session.read_what_was_given()
    stack = home.stack(session.choices.stack)
    stack.plan()
    with home.held():
        yield stack


@contextlib.contextmanager
def _held(session: Session) -> Iterator[None]:
    """Hold the home of what is installed. Raises the problems of `installed_stack` with nothing written."""
    session.read_what_was_given()
    session.installed_stack()
    with session.home.held():
        yield


def _with_folder(session: Session) -> Choices:
    return msgspec.structs.replace(session.choices, folder=session.weights_folder)


def _agree_to_install(session: Session, plan: Plan, stack: StackHome) -> None:
    if session.arguments.yes:
        return
    if session.output.as_json or not sys.stdin.isatty():
        raise InstallerError(ConsentNeeded(stack=stack.name))
    summary(session, plan)
    _say_how_long(session, plan)
    session.output.line()
    question = session.text.gettext("Download {size} and install? [y/N]").format(
        size=session.text.gb(plan.download_bytes)
    )
    if not session.output.ask(question):
        session.cancel.set()
        session.cancel.check()


def _say_how_long(session: Session, plan: Plan) -> None:
    expected = cancellable(lambda: speed.estimate(plan, session.ports, session.cancel), session.cancel)
    if expected is not None:
        session.output.line()
        session.output.paragraph(session.text.estimate(expected))


def _agrees(session: Session, problem: RelaxRefused) -> bool:
    """Ask whether a value below the chosen one may be taken; `--yes` never says so."""
    if session.arguments.yes or session.output.as_json or not sys.stdin.isatty():
        return False
    session.output.line(session.text.problem(problem).sentence)
    return session.output.ask(session.text.gettext("Go on with the smaller value? [y/N]"))


def _tell_how_to_use(session: Session, done: Installed, job: Job) -> None:
    text, out, plan = session.text, session.output, done.plan
    out.line()
    if session.is_dry_run:
        out.paragraph(text.gettext("This was a dry run: nothing was downloaded, started or changed."))
        return
    key_file = job.home.path(compose.env_name(plan.stack))
    out.line(text.gettext("It runs: {endpoint}, model {model}").format(endpoint=plan.endpoint, model=plan.profile))
    if plan.needs_key:
        out.line(text.gettext("The API key is in {path}").format(path=key_file))
    out.line()
    out.paragraph(text.context_of(plan))


def start_stack(session: Session) -> int:
    """Start what is installed and wait until it serves."""
    with _held(session):
        if session.arguments.wait_engine:
            cancellable(lambda: lifecycle.wait_for_engine(session.ports, session.cancel), session.cancel)
        job = _job(session)
        cancellable(lambda: job.run.settle(lambda: lifecycle.start_again(job)), session.cancel)
    return 0


def stop_stack(session: Session) -> int:
    """Stop the stack and free the card."""
    with _held(session):
        job = _job(session)
        cancellable(lambda: job.run.settle(lambda: lifecycle.stop(job)), session.cancel)
    return 0


def smoke(session: Session) -> int:
    """Prove it again, or prove the server at an address."""
    if session.arguments.endpoint:
        return _prove_elsewhere(session)
    with _held(session):
        job = _job(session)
        cancellable(lambda: job.run.settle(lambda: lifecycle.prove_again(job)), session.cancel)
    return 0


def _prove_elsewhere(session: Session) -> int:
    target = attach.target_at(session.arguments.endpoint)
    key = doors.secret_in("--key-file", session.arguments.key_file)
    run = Run(session.output.event, session.cancel, session.ports.clock)
    cancellable(lambda: run.settle(lambda: attach.prove(target, key, session.ports, run)), session.cancel)
    return 0


def uninstall(session: Session) -> int:
    """Show what goes and what stays, ask, remove."""
    with _held(session):
        job = _job(session, recorded=False)
        what = lifecycle.removal(
            job,
            session.home,
            keep_weights=session.arguments.keep_weights,
            keep_image=session.arguments.keep_image,
        )
        _show_removal(session, what)
        if not session.arguments.yes:
            if session.output.as_json or not sys.stdin.isatty():
                raise InstallerError(ConsentNeeded(stack=job.home.name))
            if not session.output.ask(session.text.gettext("Remove all this? [y/N]")):
                return 0
        cancellable(lambda: job.run.settle(lambda: lifecycle.uninstall(job, what)), session.cancel)
    return 0


def _show_removal(session: Session, what: lifecycle.Removal) -> None:
    text, _ = session.text, session.text.gettext
    stays, goes = _("stays"), _("goes")
    if session.output.as_json:
        return
    session.output.table(
        ("", "", ""),
        [
            (_("Container"), what.project, goes),
            (_("Image"), f"{what.image}, {text.gb(what.image_bytes)}", stays if what.keeps_image else goes),
            (_("Model"), f"{what.weights}, {text.gb(what.weights_bytes)}", stays if what.keeps_weights else goes),
            (_("Files"), ", ".join(what.files), goes),
        ],
    )


def _job(session: Session, *, recorded: bool = True) -> Job:
    stack = session.home.stack(session.arguments.stack)
    stack.installed()
    job = session.job(stack, session.facts(), recorded=recorded)
    blocking: tuple[AnyProblem, ...] = checks.engine(job.facts) + checks.compose(job.facts)
    if blocking:
        raise InstallerError(blocking[0])
    return job

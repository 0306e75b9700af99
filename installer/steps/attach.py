"""Proving a server that somebody else started: nothing of it is ours but the questions."""

from __future__ import annotations

from installer.domain import addresses
from installer.domain.problems import BadChoice, InstallerError
from installer.steps import smoke
from installer.steps.events import Advice, Proved, Step
from installer.steps.ports import Ports
from installer.steps.run import Run
from installer.steps.smoke import SmokeReport, Start, Target

EXAMPLE = addresses.own_server(8000)


def target_at(endpoint: str) -> Target:
    """Return what is known of a server by its address alone. Raises InstallerError(BadChoice)."""
    base = addresses.base_of(endpoint)
    if base is None:
        raise InstallerError(BadChoice(field="endpoint", value=addresses.shown(endpoint), limit=EXAMPLE))
    return Target(base=base)


def prove(target: Target, key: str | None, ports: Ports, run: Run) -> SmokeReport:
    """Prove it, and tell the report. Raises InstallerError with what the proof found; nothing is kept."""
    return run.step(
        Step.SMOKE,
        lambda _, cancel: _told(smoke.run(target, Start(), ports.server, ports.clock, key, cancel), run),
    )


def _told(report: SmokeReport, run: Run) -> SmokeReport:
    run.emit(Proved(at=report.at, report=report))
    for remark in report.remarks:
        run.notice(Step.SMOKE, Advice(problem=remark))
    problem = smoke.problem(report)
    if problem:
        raise InstallerError(problem)
    return report

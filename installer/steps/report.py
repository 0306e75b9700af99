"""The report of an installation: what runs, how that was proved, and its memory beside what was predicted.

Made for handing on: its words (`installer.text.report`) name no key, no token, no folder and no serial number.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from installer import __version__
from installer.domain import compose
from installer.domain.calibration import StartFigures
from installer.domain.facts import Facts
from installer.domain.plan import Plan
from installer.steps.home import StackHome, write_atomically
from installer.steps.smoke import SmokeReport


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of one stack; `proof` and `figures` are None where the plan as it is now was not proved.

    `facts` are of the computer as it is now.
    """

    made_at: str
    slipway: str
    facts: Facts
    plan: Plan
    proof: SmokeReport | None
    figures: StartFigures | None


def of(home: StackHome, made_at: str, facts: Facts) -> Report:
    """Gather the report of a stack. Raises InstallerError(NotInstalled, MalformedFile)."""
    plan = home.installed()
    proof = home.proof()
    proved = proof is not None and proof.start.fingerprint == compose.fingerprint(plan)
    return Report(
        made_at=made_at,
        slipway=__version__,
        facts=facts,
        plan=plan,
        proof=proof if proved else None,
        figures=home.figures() if proved else None,
    )


def save(path: str, text: str) -> Path:
    """Write a report where the person wants it; return the file. Raises InstallerError(NotWritable, DiskFull)."""
    file = Path(path).expanduser().absolute()
    write_atomically(file, text)
    return file

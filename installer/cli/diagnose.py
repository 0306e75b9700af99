"""The verb `diagnose`: what a person pasted, and what Slipway makes of it."""

from __future__ import annotations

from typing import Any

from installer import doors
from installer.cli.session import Session
from installer.domain import pasted
from installer.domain.pasted import Reading
from installer.domain.problems import CauseUnknown


def diagnose(session: Session) -> int:
    """Read a file or standard input, as bytes in whatever encoding, and say cause and remedy; 0 whatever it says."""
    path = session.arguments.source
    name = pasted.PASTED if path == "-" else path
    reading = doors.diagnosed(doors.read_bytes(path), name, session.registry)
    _tell(session, reading)
    return 0


def _tell(session: Session, reading: Reading) -> None:
    out, text = session.output, session.text
    row = session.registry.fingerprints.get(reading.fingerprint)
    if out.as_json:
        out.json(_json(session, reading, row.source if row else ""))
        return
    if not reading.problems:
        out.line(text.gettext("Nothing in it points to a fault that Slipway knows."))
        return
    for problem in reading.problems:
        said = text.problem(problem)
        out.heading(said.title)
        out.paragraph(said.sentence)
        out.paragraph(said.remedy)
        if problem.command:
            out.line(f"    {problem.command}")
        if not isinstance(problem, CauseUnknown):
            out.paragraph(text.treatment(problem.treatment))
        for line in problem.technical:
            out.line(f"  | {line}")
        out.line()
    if row:
        out.line(text.gettext("How this is known: {source}", source=row.source))


def _json(session: Session, reading: Reading, source: str) -> dict[str, Any]:
    treatment = reading.treatment
    return {
        "problems": [session.output.problem_json(problem) for problem in reading.problems],
        "treatment": treatment.value if treatment else "ok",
        "unknown": reading.unknown,
        "fingerprint": reading.fingerprint,
        "source": source,
        "encoding": reading.encoding,
        "lines": list(reading.lines),
    }

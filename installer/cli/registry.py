"""The verb `registry`: show which one is in force, check it, ask hub and image registry anew, fetch a signed one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from installer import doors
from installer.cli.session import Session
from installer.domain import registry as registries
from installer.domain.problems import UsageProblem
from installer.steps import kept_registry, registry_tools
from installer.steps.home import write_atomically


def registry(session: Session) -> int:
    """Do what stands after `registry`; without it, show the registry in force."""
    return ACTIONS[session.arguments.action](session)


def show(session: Session) -> int:
    """Show which registry is in force, where it is from and until when."""
    found, out, text, _ = session.registry_in_force, session.output, session.text, session.text.gettext
    fetched = None if found.expired else found.fetched
    if out.as_json:
        out.json(
            {
                "revision": found.registry.revision,
                "profiles": len(found.registry.profiles),
                "fetched": fetched is not None,
                "expires": fetched.expires if fetched else None,
            }
        )
        return 0
    origin = _("built in")
    if session.arguments.registry:
        origin = session.arguments.registry
    elif fetched:
        origin = _("fetched, valid until {date}").format(date=text.date(fetched.expires))
    rows = [
        (_("Registry"), found.registry.revision),
        (_("Origin"), origin),
        (_("Profiles"), text.number(len(found.registry.profiles))),
    ]
    out.table(("", ""), rows)
    return 0


def check(session: Session) -> int:
    """Hold every profile against its evidence and its release; what is wrong is a usage error."""
    found = session.registry
    wrong = registry_tools.check(found)
    if session.output.as_json:
        session.output.json(
            {
                "revision": found.revision,
                "profiles": len(found.profiles),
                "problems": [session.output.problem_json(problem) for problem in wrong],
            }
        )
        return UsageProblem.exit_code if wrong else 0
    for problem in wrong:
        session.output.problem(problem)
    if not wrong:
        _ = session.text.gettext
        measured = sum(row.kind == "measured" for profile in found.profiles.values() for row in profile.evidence)
        said = _("{profiles} profiles are in order, {measured} measurements among their evidence.")
        session.output.line(
            said.format(profiles=session.text.number(len(found.profiles)), measured=session.text.number(measured))
        )
    return UsageProblem.exit_code if wrong else 0


def refresh(session: Session) -> int:
    """Write the registry's files with what hub and image registry say now; nothing is written if one of them fails."""
    texts = doors.registry_texts(session.arguments.registry)
    folder = Path(session.arguments.out)
    fresh = registry_tools.refresh(texts, session.ports.hub, session.ports.images, session.output.line)
    changed = [name for name, text in fresh.items() if text != texts[name]]
    for name, text in fresh.items():
        write_atomically(folder / name, text)
    if session.output.as_json:
        session.output.json({"folder": str(folder), "files": list(fresh), "changed": changed})
    return 0


def fetch(session: Session) -> int:
    """Take over a signed registry that is not expired and not recalled; later calls use it until it expires."""
    source, key = session.arguments.source, session.arguments.key
    signed = doors.signed_registry(source, key)
    taken = kept_registry.accepted(signed, kept_registry.kept(session.home), doors.now(), source)
    kept_registry.save(session.home, signed)
    if session.output.as_json:
        values = {"revision": taken.revision, "expires": signed.payload.expires, "profiles": len(taken.profiles)}
        session.output.json(values | {"key": signed.key})
        return 0
    said = session.text.gettext("The registry {revision} is used from now on, until {date}.")
    session.output.line(said.format(revision=taken.revision, date=session.text.date(signed.payload.expires)))
    return 0


def schema(session: Session) -> int:
    """Print the JSON schema of the whole registry, as its files say it together."""
    session.output.json(registries.schema())
    return 0


ACTIONS: Mapping[str | None, Callable[[Session], int]] = {
    None: show,
    "check": check,
    "refresh": refresh,
    "fetch": fetch,
    "schema": schema,
}

"""Verbs that only look: detect, offers, plan, status, logs, and the overview without a verb."""

from __future__ import annotations

import contextlib
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from installer import doors
from installer.cli.session import Session, to_plain
from installer.domain import checks, compose, proxy
from installer.domain import facts as fact_files
from installer.domain import plan as plans
from installer.domain.facts import Facts, Gpu, GpuProcess, Missing
from installer.domain.memory import Fit, Verdict
from installer.domain.offers import Offer, longest_context_here, offers
from installer.domain.plan import Plan, Refusal
from installer.domain.problems import InstallerError, WindowNotAvailable
from installer.steps import bundle, lifecycle, report, start
from installer.steps.home import write_atomically
from installer.steps.planning import planned
from installer.text import machine


def detect(session: Session) -> int:
    """Show what this machine has."""
    facts = session.facts()
    if session.output.as_json:
        session.output.json(fact_files.to_json(facts))
        return 0
    _show_machine(session, facts)
    _show_problems(session, facts)
    return 0


def _show_problems(session: Session, facts: Facts) -> None:
    for problem in (*checks.machine(facts), *proxy.advice(facts)):
        session.output.line()
        session.output.problem(problem)


def _show_machine(session: Session, facts: Facts) -> None:
    out, text, _ = session.output, session.text, session.text.gettext
    rows = []
    for gpu in facts.nvidia.gpus:
        rows.append((_("Graphics card"), f"{machine.card(facts, gpu, text)} ({gpu.uuid})"))
        rows += [(_("Memory held by"), _holder(session, process)) for process in _processes(gpu)]
    if facts.nvidia.driver_version:
        rows.append((_("NVIDIA driver"), machine.driver(facts.nvidia)))
    engine = facts.engine
    rows.append((_("Container engine"), machine.engine(engine)))
    rows.append((_("Docker context"), f"{engine.context} {engine.endpoint}".strip() or "–"))
    rows.append(("Compose", facts.compose.version or "–"))
    if facts.host.ram_total_bytes:
        rows.append((_("Memory"), text.gib(facts.host.ram_total_bytes)))
    if engine.memory_bytes:
        rows.append((_("Memory of the engine"), text.gib(engine.memory_bytes)))
    if engine.data_root_free_bytes is not None:
        rows.append((_("Room for images"), f"{text.gb(engine.data_root_free_bytes)} ({engine.data_root})"))
    if facts.weights_folder.free_bytes is not None:
        rows.append((_("Room for models"), f"{text.gb(facts.weights_folder.free_bytes)} ({facts.weights_folder.path})"))
    for name, shown in ((_("Proxy"), facts.host.proxy.shown), (_("Proxy of Docker"), engine.proxy.shown)):
        if shown:
            rows.append((name, shown))
    rows.append((_("Free ports"), ", ".join(map(str, facts.ports.free))))
    out.table(("", ""), rows)


def _processes(gpu: Gpu) -> tuple[GpuProcess, ...]:
    return () if isinstance(gpu.processes, Missing) else gpu.processes


def _holder(session: Session, process: GpuProcess) -> str:
    name = "?" if isinstance(process.name, Missing) else process.name
    held = session.text.missing(process.used_bytes) if isinstance(process.used_bytes, Missing) else None
    return f"{name} ({process.pid}), {held or session.text.gib(int(process.used_bytes))}"


def show_offers(session: Session) -> int:
    """Show every profile with its verdict and why."""
    facts = session.facts()
    found = offers(facts, session.registry, session.arguments.gpu_uuid)
    if session.output.as_json:
        session.output.json([_offer_json(session, facts, offer) for offer in found])
        return 0
    for offer in found:
        _show_offer(session, offer)
    return 0


def _show_offer(session: Session, offer: Offer) -> None:
    text, out = session.text, session.output
    mark = "★" if offer.recommended else " "
    evidence = text.evidence(offer.evidence, untested=offer.untested)
    out.heading(f"{mark} {offer.profile}")
    out.line(f"  {text.verdict(offer.verdict)} · {text.extent(offer)} · {evidence}")
    for sentence in (text.reason(offer.reason), text.levers(offer), text.own_starts(offer)):
        if sentence:
            out.paragraph(sentence)
    out.line()


def _offer_json(session: Session, facts: Facts, offer: Offer) -> dict[str, Any]:
    values: dict[str, Any] = dict(to_plain(offer))  # type: ignore[call-overload]
    values |= {"sentence": session.text.reason(offer.reason), "help": session.text.levers(offer)}
    return values if offer.fit is None else values | {"room": _room_json(session, facts, offer, offer.fit)}


def _room_json(session: Session, facts: Facts, offer: Offer, fit: Fit) -> dict[str, object]:
    """Return the answers to the questions the other way round: highest shares, longest context, bytes to free."""
    return {
        "utilisation_max": fit.budget.utilisation_max,
        "utilisation_safe": fit.budget.utilisation_safe,
        "longest_context": longest_context_here(facts, session.registry, offer),
        "to_free_bytes": 0 if fit.verdict is Verdict.FITS else fit.to_free_bytes,
    }


def write_plan(session: Session) -> int:
    """Write the plan and a preview of the compose file, and nothing else."""
    facts = session.facts()
    plan = planned(facts, session.registry, session.choices, session.ports, session.home)
    if isinstance(plan, Refusal):
        raise InstallerError(plan.problems[0])
    folder = Path(session.arguments.out)
    rendered = compose.render(plan)
    write_atomically(folder / "plan.json", plans.to_json(plan))
    write_atomically(folder / rendered.name, rendered.text)
    if session.output.as_json:
        session.output.json(to_plain(plan))
    else:
        summary(session, plan)
        session.output.line()
        session.output.line(str(folder / rendered.name))
    return 0


def summary(session: Session, plan: Plan) -> None:
    """Show what a plan will do."""
    text, _ = session.text, session.text.gettext
    rows = [
        (_("Profile"), plan.profile),
        (_("Model"), f"{plan.weights.repo} @ {plan.weights.commit[:12]}, {text.gb(plan.weights.size_bytes)}"),
        (_("Image"), f"{plan.image_reference}, {text.gb(plan.image.size_bytes)}"),
        (_("Graphics card"), f"{plan.gpu.name} ({plan.gpu.uuid})" if plan.gpu else "–"),
        (_("Context"), text.tokens_of(plan.settings.context, plan.native_context)),
        (_("Address"), plan.endpoint),
        (_("Known since"), text.date(plan.resolved_at)),
    ]
    session.output.table(("", ""), rows)
    session.output.line()
    session.output.table(
        (_("Argument"), _("Value"), _("Why")),
        [(flag.flag, str(flag.value), text.flag_reason(flag.reason)) for flag in plan.arguments],
    )


def status(session: Session) -> int:
    """Show what is installed and whether it serves."""
    stack = session.installed_stack()
    seen = lifecycle.status(session.job(stack, session.facts()))
    if session.output.as_json:
        session.output.json(to_plain(seen))
        return 0
    text, _ = session.text, session.text.gettext
    pinned = _("pinned") if seen.pinned else _("follows its tag")
    rows = [
        (_("State"), text.state(seen.state)),
        (_("Profile"), seen.profile),
        (_("Model"), seen.model),
        (_("Context"), text.tokens(seen.context)),
        (_("Address"), seen.endpoint),
        (_("Image"), f"{seen.image} ({pinned})"),
        (_("Compose file"), seen.compose_file),
        (_("Proved"), text.date(seen.proof.at) if seen.proof else "–"),
    ]
    if seen.figures:
        rows += [(name, f"{told} ({said})") for name, told, said in text.compared(seen.figures)]
    session.output.table(("", ""), rows)
    return 0


def no_window(_: Session) -> int:
    """Say why no window opens: where one can, it is opened before any verb is read."""
    raise InstallerError(WindowNotAvailable(detail=why_no_window()))


def why_no_window() -> str:
    """Return what keeps Qt from being loaded, in its own words."""
    try:
        import_module("PySide6.QtWidgets")
    except ImportError as error:
        return str(error)
    return ""


def write_report(session: Session) -> int:
    """Write what runs, its proof and its memory as Markdown, into a file or to standard output."""
    stack = session.installed_stack()
    stack.installed()  # what is not installed is said before the machine is read
    made = report.of(stack, doors.now(), session.facts())
    words, path = session.text.report(made), session.arguments.file
    if path == "-":
        sys.stdout.write(words)
        return 0
    written = str(report.save(path, words))
    if session.output.as_json:
        session.output.json({"file": written})
    session.output.line(written)
    return 0


def write_bundle(session: Session) -> int:
    """Pack what somebody needs who looks into a failure, whether something is installed or not."""
    facts = session.facts()
    made = bundle.files(session.home, facts, doors.now(), _server_log(session, facts))
    written = str(bundle.save(session.arguments.file, made))
    if session.output.as_json:
        session.output.json({"file": written, "holds": sorted(made)})
    session.output.line(written)
    return 0


def _server_log(session: Session, facts: Facts) -> bytes:
    """Return the log of the container that is there; nothing where there is none, or nobody to ask."""
    with contextlib.suppress(InstallerError):
        stack = session.installed_stack()
        container = start.current_container(stack.installed(), session.job(stack, facts))
        return session.ports.engine.logs(container.id) if container else b""
    return b""


def logs(session: Session) -> int:
    """Show the server's log."""
    stack = session.installed_stack()
    job = session.job(stack, session.facts())
    container = start.current_container(stack.installed(), job)
    if container is None:
        session.output.line(session.text.gettext("There is no container; start it with: slipway start"))
        return 0
    if session.arguments.follow:
        for line in session.ports.engine.follow_logs(container.id, session.cancel):
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()
        return 0
    sys.stdout.buffer.write(session.ports.engine.logs(container.id, session.arguments.tail))
    sys.stdout.buffer.flush()
    return 0


def overview(session: Session) -> int:
    """Say what this machine has, what is missing or recommended, and what to type next."""
    out, _ = session.output, session.text.gettext
    facts = session.facts()
    _show_machine(session, facts)
    _show_problems(session, facts)
    best = next((offer for offer in offers(facts, session.registry) if offer.recommended), None)
    out.line()
    if best is None:
        out.line(_("Nothing can be installed here yet. Try all steps without changing anything:"))
        out.line("  slipway install --dry-run --machine rtx-5090-linux --yes")
        return 0
    out.line(_("Recommended: {profile}").format(profile=best.profile))
    out.line(session.text.reason(best.reason))
    out.line(_("Install it with:"))
    out.line(f"  slipway install --profile {best.profile}")
    return 0

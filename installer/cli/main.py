"""From arguments to an exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from installer.cli import act, arguments, ask, diagnose, look, registry, token
from installer.cli.output import Output
from installer.cli.session import Session
from installer.domain.problems import AnyProblem, Bug, Cancelled, InstallerError, Interrupted
from installer.text import Text, choose_language

VERBS: Mapping[str | None, Callable[[Session], int]] = {
    None: look.overview,
    "detect": look.detect,
    "offers": look.show_offers,
    "plan": look.write_plan,
    "status": look.status,
    "logs": look.logs,
    "install": act.install,
    "window": look.no_window,
    "start": act.start_stack,
    "stop": act.stop_stack,
    "ask": ask.ask,
    "smoke": act.smoke,
    "pin": act.pin_stack,
    "unpin": act.unpin_stack,
    "report": look.write_report,
    "bundle": look.write_bundle,
    "uninstall": act.uninstall,
    "registry": registry.registry,
    "diagnose": diagnose.diagnose,
    "token": token.token,
}


def run(argv: list[str]) -> int:
    """Do what the command line asks; return the exit code. This is the only place where a failure becomes words."""
    text = Text(choose_language(_named_language(argv), os.environ))
    output = Output(text, as_json="--json" in argv)
    try:
        parsed = arguments.parse(argv, text)
        session = Session(parsed, output)
        _speak_the_language_of_the_answers(session, argv)
        return VERBS[parsed.verb](session)
    except InstallerError as error:
        return _fail(output, error.problem)
    except (Cancelled, KeyboardInterrupt):
        return _fail(output, Interrupted())
    except Exception as error:
        if os.environ.get("SLIPWAY_DEBUG"):
            raise
        return _fail(output, Bug.of(error))


def _speak_the_language_of_the_answers(session: Session, argv: list[str]) -> None:
    if getattr(session.arguments, "answers", None) and not _named_language(argv) and session.choices.language:
        session.output.text = Text(session.choices.language)


def _named_language(argv: list[str]) -> str | None:
    """Find `--language` before the whole line is read, so that its own errors are in that language."""
    for index, word in enumerate(argv):
        if word.startswith("--language="):
            return word.partition("=")[2]
        if word == "--language" and index + 1 < len(argv):
            return argv[index + 1]
    return None


def _fail(output: Output, problem: AnyProblem) -> int:
    output.problem(problem)
    return problem.exit_code

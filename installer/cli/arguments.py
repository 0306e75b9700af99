"""The command line: verbs and flags. The flags of a choice are made from `Choices`, so that the two never differ."""

from __future__ import annotations

import argparse
import re
import types
import typing
from typing import Any, Literal, NoReturn

import msgspec

from installer import __version__, doors
from installer.domain.choices import Choices
from installer.domain.problems import BadArguments, InstallerError
from installer.steps.home import STACKS
from installer.text import Text


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InstallerError(BadArguments(detail=_flags_in(message)))


def _flags_in(message: str) -> str:
    """Keep the names of flags from argparse's message: it repeats values, and one of them may be a secret."""
    return ", ".join(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", message)) or "…"


def parse(argv: list[str], text: Text) -> argparse.Namespace:
    """Read the command line. Raises InstallerError(BadArguments), which never repeats a value."""
    arguments, unknown = parser(text).parse_known_args(argv)
    if unknown:
        flags = [word.split("=", 1)[0] for word in unknown if word.startswith("-")]
        raise InstallerError(BadArguments(detail=", ".join(flags) or "…"))
    return arguments


def parser(text: Text) -> argparse.ArgumentParser:
    """Return the parser, with its help in the language of `text`."""
    _ = text.gettext
    root = _Parser(prog="slipway", description=_("Installs local AI and proves that it works."), allow_abbrev=False)
    root.add_argument("--version", action="version", version=f"slipway {__version__}")
    _add_common(root, text)
    _add_machine(root, text)
    # A verb's own default would overwrite what stood before the verb.
    common = _group(argument_default=argparse.SUPPRESS)
    _add_common(common, text)
    verbs = root.add_subparsers(dest="verb", metavar=_("command"), parser_class=_Parser)

    def verb(name: str, help_text: str, *parents: _Parser) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=help_text, parents=[common, *parents], allow_abbrev=False)

    machine = _group(argument_default=argparse.SUPPRESS)
    _add_machine(machine, text)
    stack, choices, secrets = _stack(text), _choices(text), _secrets(text)
    verb("detect", _("show what this machine has"), machine)
    offers = verb("offers", _("show what runs on this machine, and why the rest does not"), machine)
    offers.add_argument("--gpu-uuid", metavar="GPU-…", help=_("judge this card only"))
    plan = verb("plan", _("write the plan and a preview of the compose file"), machine, choices, _dry_run(text))
    plan.add_argument("--out", required=True, metavar=_("FOLDER"), help=_("where plan and preview are written"))
    install = verb("install", _("install, start and prove"), machine, choices, secrets, _dry_run(text))
    install.add_argument("--yes", action="store_true", help=_("ask nothing; accepts no licence and no smaller value"))
    install.add_argument("--overwrite", action="store_true", help=_("replace a compose file that was edited by hand"))
    _patience(install, text)
    verb("window", _("open the window"), machine, _dry_run(text), _answers(text))
    verb("status", _("show what is installed and whether it serves"), stack)
    start = verb("start", _("start what is installed"), stack)
    start.add_argument("--wait-engine", action="store_true", help=_("wait until Docker is up"))
    _patience(start, text)
    verb("stop", _("stop it and free the graphics memory"), stack)
    logs = verb("logs", _("show the server's log"), stack)
    logs.add_argument("--follow", action="store_true", help=_("go on until Ctrl-C"))
    logs.add_argument("--tail", type=int, metavar="N", help=_("only the last N lines"))
    ask = verb("ask", _("ask the installed server a question"), stack)
    ask.add_argument("question", metavar=_("QUESTION"), help=_("the question, - for stdin"))
    explained = _("a picture to go with it, for profiles that read pictures")
    ask.add_argument("--picture", "--image", metavar=_("FILE"), help=explained)
    shown = _("the file or the address of a video that goes along")
    ask.add_argument("--video", metavar=_("FILE|URL"), help=shown)
    pin = verb("pin", _("start from exactly this image from now on, whatever its tag becomes"), stack)
    pin.add_argument("--unproved", action="store_true", help=_("also an image with which no proof has passed"))
    verb("unpin", _("let the tag say which image it is"), stack)
    smoke = verb("smoke", _("prove it again with real requests"), stack, secrets)
    _elsewhere(smoke, text)
    report = verb("report", _("write down what runs, how it was proved, and its memory"), stack)
    report.add_argument("file", metavar=_("FILE"), help=_("where the report (Markdown) is written, - for stdout"))
    packed = verb("bundle", _("pack what somebody needs who looks into a failure"), stack)
    packed.add_argument("file", metavar=_("FILE"), help=_("where the archive (ZIP) is written"))
    uninstall = verb("uninstall", _("remove what Slipway made"), stack)
    uninstall.add_argument("--yes", action="store_true", help=_("ask nothing"))
    uninstall.add_argument("--keep-weights", action="store_true", help=_("leave the model's files"))
    uninstall.add_argument("--keep-image", action="store_true", help=_("leave the container image"))
    diagnose = verb("diagnose", _("say what a log, an error or an answer means, and what to do"))
    diagnose.add_argument("source", metavar=_("FILE|-"), help=_("a file, or - for standard input"))
    _registry(verb("registry", _("show, check, renew or fetch the registry of models and profiles")), common, text)
    _token(verb("token", _("keep a Hugging Face token in the system's store for secrets, or remove it")), common, text)
    return root


def _token(verb: argparse.ArgumentParser, common: _Parser, text: Text) -> None:
    _ = text.gettext
    actions = verb.add_subparsers(dest="action", metavar=_("action"), parser_class=_Parser, required=True)
    store = actions.add_parser("store", help=_("keep it"), parents=[common], allow_abbrev=False)
    explained = _("file with the Hugging Face token, - for stdin")
    store.add_argument("--hf-token-file", metavar=_("FILE"), default="-", help=explained)
    actions.add_parser("forget", help=_("remove it"), parents=[common], allow_abbrev=False)


def _registry(verb: argparse.ArgumentParser, common: _Parser, text: Text) -> None:
    _ = text.gettext
    actions = verb.add_subparsers(dest="action", metavar=_("action"), parser_class=_Parser)

    def action(name: str, help_text: str) -> argparse.ArgumentParser:
        return actions.add_parser(name, help=help_text, parents=[common], allow_abbrev=False)

    action("check", _("hold every profile against its evidence and its release"))
    refresh = action("refresh", _("for maintainers: ask hub and image registry for commits, sizes, licences, digests"))
    refresh.add_argument("--out", required=True, metavar=_("FOLDER"), help=_("where the new files are written"))
    fetch = action("fetch", _("take over a signed registry, until it expires"))
    fetch.add_argument("source", metavar=_("FILE|URL"), help=_("the signed registry"))
    fetch.add_argument("--key", required=True, metavar=_("FILE"), help=_("the publisher's public key (Ed25519, PEM)"))
    action("schema", _("print the JSON schema of the registry"))


def _group(argument_default: str | None = None) -> _Parser:
    return _Parser(add_help=False, allow_abbrev=False, argument_default=argument_default)


def _add_common(group: _Parser, text: Text) -> None:
    _ = text.gettext
    group.add_argument("--json", action="store_true", help=_("print JSON"))
    group.add_argument("--home", metavar=_("FOLDER"), help=_("where Slipway keeps its files"))
    group.add_argument("--registry", metavar=_("FOLDER"), help=_("another registry than the built-in one"))
    group.add_argument("--language", choices=("de", "en"), help=_("language of the sentences"))


def _add_machine(group: _Parser, text: Text) -> None:
    explained = text.gettext("a recorded machine: a file, or the name of one that comes with Slipway")
    group.add_argument("--machine", metavar=text.gettext("FILE"), help=explained)


def _stack(text: Text) -> _Parser:
    group = _group()
    group.add_argument("--stack", choices=STACKS, default="chat", help=text.gettext("which of the two stacks"))
    return group


def _dry_run(text: Text) -> _Parser:
    _ = text.gettext
    group = _group()
    group.add_argument("--dry-run", action="store_true", help=_("go through all steps and change nothing"))
    group.add_argument("--dry-run-speed", type=float, default=1.0, metavar="X", help=_("how much faster than real"))
    failing = _("let a step fail; one of {kinds}").format(kinds=", ".join(doors.dry_run_failures()))
    group.add_argument("--dry-run-fail", metavar=_("STEP:KIND"), help=failing)
    return group


def _secrets(text: Text) -> _Parser:
    _ = text.gettext
    group = _group()
    group.add_argument("--hf-token-file", metavar=_("FILE"), help=_("file with the Hugging Face token, - for stdin"))
    group.add_argument("--api-key-file", metavar=_("FILE"), help=_("file with the API key, - for stdin"))
    return group


def _elsewhere(verb: argparse.ArgumentParser, text: Text) -> None:
    """Add the flags for a server that somebody else started."""
    _ = text.gettext
    explained = _("address of any server that already runs, such as http://127.0.0.1:8000")
    verb.add_argument("--endpoint", metavar="URL", help=explained)
    verb.add_argument("--key-file", metavar=_("FILE"), help=_("file with that server's key, - for stdin"))


def _patience(verb: argparse.ArgumentParser, text: Text) -> None:
    verb.add_argument(
        "--patience",
        type=float,
        metavar="S",
        help=text.gettext("give up when neither log nor health moves for so many seconds"),
    )


def _answers(text: Text) -> _Parser:
    group = _group()
    group.add_argument("--answers", metavar=text.gettext("FILE"), help=text.gettext("answers (YAML or JSON)"))
    return group


def _choices(text: Text) -> _Parser:
    """Make one flag per field of Choices; a flag that is not given leaves the answers file's value."""
    group = _answers(text)
    hints = typing.get_type_hints(Choices)
    for field in msgspec.structs.fields(Choices):
        if field.name == "language":
            continue
        flag = "--" + field.name.replace("_", "-")
        group.add_argument(flag, dest=f"choice_{field.name}", help=text.choice(field.name), **_kind(hints[field.name]))
    return group


def _kind(hint: Any) -> dict[str, Any]:
    plain = [part for part in typing.get_args(hint) if part is not types.NoneType] if _is_optional(hint) else [hint]
    kind = plain[0]
    if typing.get_origin(kind) is Literal:
        return {"choices": typing.get_args(kind)}
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    if typing.get_origin(kind) is tuple:
        return {"action": "append", "metavar": "ID"}
    return {"type": kind, "metavar": kind.__name__.upper()}


def _is_optional(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType) and types.NoneType in typing.get_args(hint)


def chosen(arguments: argparse.Namespace, answers: Choices) -> Choices:
    """Return the answers with every flag that was given laid over them."""
    given = {
        name.removeprefix("choice_"): tuple(value) if isinstance(value, list) else value
        for name, value in vars(arguments).items()
        if name.startswith("choice_") and value is not None
    }
    if arguments.language is not None:
        given["language"] = arguments.language
    return msgspec.structs.replace(answers, **given)

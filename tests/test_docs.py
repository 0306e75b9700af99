"""What the documents say can be typed, opened and looked up."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from installer import resources
from installer.cli import arguments
from installer.cli.main import VERBS
from installer.domain import choices as choice_files
from installer.domain import problems
from installer.text import Text
from tests.builders import ROOT, shipped_registry

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
TEXTS = {name: (ROOT / name).read_text("utf-8") for name in DOCUMENTS}
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IN_LINE = re.compile(r"`([^`\n]+)`")
SHELL_OPERATORS = {"|", ">", "<", "&&", ";"}


def blocks(text: str, *languages: str) -> list[str]:
    return [body for language, body in FENCED.findall(text) if language in languages]


def prose(text: str) -> str:
    return FENCED.sub("", text)


def commands(text: str, program: str) -> list[list[str]]:
    """Return the words behind a program's name, from shell blocks and from code in a line."""
    lines = [line.removeprefix("$ ") for block in blocks(text, "sh", "console") for line in block.splitlines()]
    found = [line for line in [*lines, *IN_LINE.findall(prose(text))] if re.match(rf"{program}( |$)", line)]
    return [words(line)[1:] for line in found]


def words(line: str) -> list[str]:
    """Split a line as a shell does, up to the first operator."""
    split = shlex.split(line, comments=True)
    end = next((at for at, word in enumerate(split) if word in SHELL_OPERATORS), len(split))
    return split[:end]


def slipway_commands() -> list[list[str]]:
    everything = "\n".join(TEXTS.values())
    through_make = [
        shlex.split(word.removeprefix("ARGS="))
        for target, *options in commands(everything, "make")
        for word in options
        if target == "run" and word.startswith("ARGS=")
    ]
    return [*(line for line in commands(everything, "slipway") if line != ["…"]), *through_make]


@pytest.mark.parametrize("line", slipway_commands(), ids=" ".join)
def test_a_command_line_can_be_typed(line: list[str]) -> None:
    if len(line) == 1 and line[0] in VERBS:
        return  # only named
    parsed = arguments.parse(line, Text("en"))
    assert parsed.verb in VERBS
    assert getattr(parsed, "choice_profile", None) in {None, *shipped_registry().profiles}
    assert getattr(parsed, "machine", None) in {None, *resources.recorded_machines()}


def test_the_readme_shows_every_verb() -> None:
    assert {line[0] for line in commands(TEXTS["README.md"], "slipway") if line} >= VERBS.keys() - {None}


def test_the_answers_file_is_one() -> None:
    (example,) = blocks(TEXTS["README.md"], "yaml")
    answers = choice_files.from_text(example, "README.md")
    assert answers.profile in shipped_registry().profiles
    assert set(yaml.safe_load(example)) <= set(answers.__struct_fields__)


def test_exit_codes_are_those_of_the_families() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w*) ?\| .+ \|$", TEXTS["README.md"], re.MULTILINE)
    assert [int(code) for code, _ in rows] == sorted(int(code) for code, _ in rows)
    families = {(kind.exit_code, kind.family) for kind in problems.kinds()}
    assert {(int(code), family) for code, family in rows} == families | {(0, "")}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_linked_exists(name: str) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)\)", TEXTS[name])
    missing = [target for target in targets if "://" not in target and not (ROOT / target).exists()]
    assert missing == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_profiles_that_are_named_exist(name: str) -> None:
    profiles = set(shipped_registry().profiles)
    makers = "|".join(sorted({profile.split("-")[0].rstrip("0123456789.") for profile in profiles}))
    named = set(re.findall(rf"(?<![\w/.-])(?:{makers})[\w.]*-[\w.-]*\w", TEXTS[name]))
    assert named <= profiles


@pytest.mark.parametrize("name", DOCUMENTS)
def test_make_targets_that_are_named_exist(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", makefile, re.MULTILINE))
    assert {line[0] for line in commands(TEXTS[name], "make") if line} <= targets


def test_variables_that_are_named_are_read_somewhere() -> None:
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "installer").rglob("*.py"))
    named = set(re.findall(r"\b(?:SLIPWAY|HF)_[A-Z_]+", TEXTS["README.md"]))
    assert named
    assert [variable for variable in named if f'"{variable}"' not in source] == []


def test_functions_in_the_picture_exist() -> None:
    picture = (ROOT / "docs" / "flow.svg").read_text("utf-8")
    called = re.findall(r">(?:\w+\.)?(\w+)\(\)<", picture)
    source = "\n".join(path.read_text("utf-8") for path in Path(ROOT / "installer").rglob("*.py"))
    assert called
    assert [name for name in called if f"def {name}(" not in source] == []

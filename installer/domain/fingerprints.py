"""Fingerprints: which words mean which Problem, as data. Pure: text in, value out.

A row is a pattern whose named groups are fields of the Problem. A field that no group captures is looked for in the
rest of the message, then in what the caller knows, then in the row's own `fields`; a row whose Problem would lack a
field does not apply. A row without a Problem is of lines that look bad and are harmless.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from installer.domain import problems
from installer.domain.figures import decimal, is_figure, whole
from installer.domain.problems import AnyProblem, InstallerError, MalformedFile, Problem, snake_case
from installer.domain.redaction import redacted
from installer.domain.sightings import FINDERS, in_pieces, telling_lines
from installer.domain.units import GB, GIB, KIB, MIB

Origin = Literal["server", "engine", "hub", "driver", "window", "system"]
"""Where words come from: a served container's log, the container engine, the hub, the driver, a window, the rest."""

Platform = Literal["linux", "windows", "wsl2"]
LadderStep = Literal[
    "lower_utilisation",
    "shorter_context",
    "smaller_working_set",
    "fewer_graphs",
    "fewer_sequences",
    "cache_in_16_bits",
    "segments_then_share",
    "driver_libraries_first",
    "more_patience",
    "without_argument",
    "next_port",
    "once_more",
]

UNITS: dict[str, int] = {"kB": 1000, "MB": 1000**2, "GB": GB, "KiB": KIB, "MiB": MIB, "GiB": GIB, "min": 60}
"""What a group named `needed_bytes__MB` is multiplied by."""

FORMS: dict[str, Callable[[str], object]] = {
    "cuda": lambda text: None if (number := whole(text)) is None else f"{number // 1000}.{number % 1000 // 10}",
    "count": whole,
    "name": str,
}
"""Other marks behind a group's name: CUDA's 12020 is 12.2; a field that stands in two branches needs two names."""

_FROM_THE_TEXT_FIRST = ("host", "endpoint", "url", "port", "tried", "detail")
"""Fields of which the message knows better than whoever asked; of the others the one who asked knows better."""


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One row. `problem` is the kind as JSON writes it; without one the words are harmless.

    `releases` are those of the server (PEP 440), "" for all. `step` is what the ladder does about it. Of several rows
    that match, the one with the highest `priority` counts. `source` says how this is known.
    """

    pattern: str
    problem: str | None = None
    fields: dict[str, Any] = {}
    origin: Origin
    releases: str = ""
    platforms: tuple[Platform, ...] = ()
    step: LadderStep | None = None
    priority: int = 50
    source: str
    example: str


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What is known beside the words; what is not known rules no row out.

    `known` are fields that a Problem may ask for: image, endpoint, gpu, operation.
    """

    origin: Origin | None = None
    release: str = ""
    platform: Platform | None = None
    known: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A row that matched, the Problem that it means (None: harmless), and the lines that it matched in."""

    name: str
    row: Fingerprint
    problem: AnyProblem | None
    start: int
    lines: str


class Table:
    """All rows, compiled, the most particular first."""

    def __init__(self, rows: Mapping[str, Fingerprint]) -> None:
        self.rows = dict(sorted(rows.items(), key=lambda pair: -pair[1].priority))
        self._patterns = {name: re.compile(row.pattern, re.MULTILINE) for name, row in self.rows.items()}

    @cached_property
    def _causes(self) -> tuple[str, ...]:
        return tuple(name for name, row in self.rows.items() if row.problem is not None)

    @cached_property
    def _harmless(self) -> tuple[str, ...]:
        return tuple(name for name, row in self.rows.items() if row.problem is None)

    def find(self, text: str, situation: Situation | None = None) -> Found | None:
        """Return the most particular cause that a text names; of equals the one that stands first in it."""
        return next(iter(self.all(text, situation)), None)

    def all(self, text: str, situation: Situation | None = None) -> list[Found]:
        """Return every cause that a text names, the most particular first; rows never see a secret."""
        situation = situation or Situation()
        text = in_pieces(redacted(text))
        found = (self._match(name, text, situation) for name in self._causes)
        return sorted((one for one in found if one), key=lambda one: (-one.row.priority, one.start))

    def cause(self, text: str, situation: Situation | None = None) -> AnyProblem | None:
        """Return the Problem that a text names, or None."""
        found = self.find(text, situation)
        return found.problem if found else None

    def without_harmless(self, text: str) -> str:
        """Return a text without the lines that look bad and are known to be harmless."""
        patterns = [self._patterns[name] for name in self._harmless]
        lines = ((line, in_pieces(line)) for line in text.splitlines())
        return "\n".join(line for line, pieces in lines if not any(pattern.search(pieces) for pattern in patterns))

    def unexplained(self, text: str) -> bool:
        """Say whether lines that name something gone wrong are left when the harmless ones are taken out."""
        return bool(telling_lines(self.without_harmless(text).splitlines()))

    def _match(self, name: str, text: str, situation: Situation) -> Found | None:
        row = self.rows[name]
        if not _applies(row, situation):
            return None
        match = self._patterns[name].search(text)
        if match is None:
            return None
        lines = text[text.rfind("\n", 0, match.start()) + 1 : _end_of_line(text, match.end())]
        made = _made(row, match, text, lines, situation)
        return Found(name=name, row=row, problem=made, start=match.start(), lines=lines) if made else None


def parse(rows: Mapping[str, Fingerprint], path: str) -> Table:
    """Check every row and compile the table.

    Raises InstallerError(MalformedFile) for a pattern that is none, a kind or field that does not exist, an example
    that its own row does not match, and two rows of one priority that both match an example.
    """
    for name, row in rows.items():
        reason = _wrong(row)
        if reason:
            raise InstallerError(MalformedFile(path=path, where=f"$.fingerprints.{name}", reason=reason))
    return Table(rows)


def of_kind(kind: str) -> type[Problem]:
    """Return a kind of Problem by the name that JSON has for it. Raises LookupError."""
    return _KINDS[kind]


_KINDS: dict[str, type[Problem]] = {snake_case(one.__name__): one for one in problems.kinds()}


def _wrong(row: Fingerprint) -> str | None:
    try:
        pattern = re.compile(row.pattern, re.MULTILINE)
    except re.error as error:
        return f"no pattern: {error}"
    try:
        SpecifierSet(row.releases)
    except InvalidSpecifier:
        return f"no range of releases: {row.releases!r}"
    if not pattern.search(row.example):
        return "does not match its own example"
    if row.problem is None:
        return "harmless rows have no fields and no step" if row.fields or row.step else None
    if row.problem not in _KINDS:
        return f"no kind of Problem: {row.problem!r}"
    fields = {one.name for one in msgspec.structs.fields(_KINDS[row.problem])}
    named = {group.partition("__")[0] for group in pattern.groupindex} | set(row.fields)
    units = {unit for group in pattern.groupindex for _, sep, unit in [group.partition("__")] if sep}
    if named - fields:
        return f"{row.problem} has no field {', '.join(sorted(named - fields))}"
    unknown = units - set(UNITS) - set(FORMS)
    if unknown:
        return f"no unit: {', '.join(sorted(unknown))}"
    match = pattern.search(row.example)
    assert match is not None
    made = _made(row, match, row.example, row.example, Situation(known=WHAT_ADAPTERS_KNOW))
    return None if made else "its example does not give all fields of the Problem"


WHAT_ADAPTERS_KNOW: Mapping[str, object] = {
    "image": "vllm/vllm-openai:v1",
    "tag": "v1",
    "digest": "sha256:" + "0" * 64,
    "platform": "linux/amd64",
    "endpoint": "",
    "host": "registry-1.docker.io",
    "gpu": "",
    "operation": "pull",
}
"""What adapters know when they ask; an example need not repeat it."""


def _applies(row: Fingerprint, situation: Situation) -> bool:
    if situation.origin is not None and row.origin not in (situation.origin, "system"):
        return False
    if row.platforms and situation.platform is not None and situation.platform not in row.platforms:
        return False
    if not row.releases or not situation.release:
        return True
    try:
        return SpecifierSet(row.releases).contains(Version(situation.release), prereleases=True)
    except InvalidVersion:
        return True


def _made(row: Fingerprint, match: re.Match[str], text: str, lines: str, situation: Situation) -> AnyProblem | None:
    kind = _KINDS[str(row.problem)]
    captured = _captured(match)
    values: dict[str, object] = {}
    for one in msgspec.structs.fields(kind):
        value = captured.get(one.name)
        for source in _sources(one.name, text, lines, situation) if value is None else ():
            value = source if value is None else value
        if value is None and one.name in row.fields:
            values[one.name] = row.fields[one.name]
        elif value is not None:
            values[one.name] = value
        elif one.required:
            return None
    try:
        made: Any = msgspec.convert(values, type=kind, strict=False)
    except msgspec.ValidationError:
        return None
    problem: AnyProblem = made
    return problem if all(map(is_figure, msgspec.structs.astuple(problem))) else None


def _captured(match: re.Match[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for group, value in match.groupdict().items():
        name, _, unit = group.partition("__")
        seen = None if value is None else _in_form(value, unit)
        if seen is not None:
            found[name] = seen
    return found


def _in_form(value: str, mark: str) -> object:
    """Return a captured text as its field has it; None for a figure that cannot be one."""
    if mark in UNITS:
        figure = decimal(value)
        return None if figure is None else round(figure * UNITS[mark])
    return FORMS[mark](value) if mark else redacted(value.strip())


def _sources(name: str, text: str, lines: str, situation: Situation) -> tuple[object, ...]:
    seen = FINDERS[name](text, lines) if name in FINDERS else None
    known = situation.known.get(name)
    if name == "release":
        known = situation.release or None
    if name == "wsl2" and situation.platform is not None:
        known = situation.platform == "wsl2"
    return (seen, known) if name in _FROM_THE_TEXT_FIRST else (known, seen)


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end

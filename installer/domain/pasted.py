"""What a person pasted: a log, an error, an answer, Docker's JSON, a Compose file, a driver's table. Pure: bytes in.

Its form is told by what it is, never by a file's name; then the same rules judge it that judge a running installation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from installer.domain import answers, checks, compose_reading, environment, facts, inspection, nvidia_smi, remarks
from installer.domain.addresses import seconds_in
from installer.domain.answers import Answer
from installer.domain.decoding import ANSI, text_of
from installer.domain.facts import Compose, ComposeState, Engine, Facts, Folder, Gpu, Host, Nvidia, NvidiaState
from installer.domain.fingerprints import Situation, Table
from installer.domain.problems import (
    AnyProblem,
    CauseUnknown,
    ComposeFlaw,
    ContainerExited,
    DesktopWithoutGpu,
    ForeignEncoding,
    InstallerError,
    Treatment,
)
from installer.domain.sightings import relevant_lines
from installer.domain.strict_json import NOT_OF_THAT_FORM

PASTED = "stdin"
_GRAVEST_FIRST = (Treatment.FAIL_FAST, Treatment.BLOCK, Treatment.RETRY, Treatment.ADAPT, Treatment.WARN)
_ASSIGNMENT = re.compile(r"(?:export |set |\$env:)?([A-Za-z_]\w*)\s?=\s?(.*)")
_STATUS_LINE = re.compile(r"(?:< )?HTTP/[\d.]+ (\d{3})")
_HEADER = re.compile(r"(?:< )?([A-Za-z][\w-]*): (.*)")
_CONTEXT = re.compile(r"^(?P<name>\S+?) ?(?P<current>\*)?\s.*?(?P<endpoint>(?:unix|npipe|tcp|ssh)://\S+)", re.MULTILINE)
_LINUX_DESKTOP = re.compile(r"unix:///(?!Users/)\S*/\.docker/desktop/")
_QUERY = re.compile(r"^[^\S\n]*index[^\S\n]*,.*name.*$", re.MULTILINE)


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, the gravest first; nothing where nothing in it points to a fault.

    `fingerprint` names the row that told the first one, where a row did; `lines` are those that say most.
    """

    problems: tuple[AnyProblem, ...] = ()
    fingerprint: str = ""
    encoding: str = "UTF-8"
    lines: tuple[str, ...] = ()

    @property
    def treatment(self) -> Treatment | None:
        """Return what Slipway does about the gravest of them; None where there is nothing to do."""
        return strongest(self.problems)

    @property
    def unknown(self) -> bool:
        """Say whether something went wrong for a reason that nobody knows."""
        return any(isinstance(problem, CauseUnknown) for problem in self.problems)


def strongest(problems: tuple[AnyProblem, ...]) -> Treatment | None:
    """Return the gravest treatment among Problems, or None."""
    treatments = {problem.treatment for problem in problems}
    return next((treatment for treatment in _GRAVEST_FIRST if treatment in treatments), None)


def read(
    data: bytes, table: Table, *, name: str = PASTED, ansi: str = ANSI, situation: Situation | None = None
) -> Reading:
    """Say what a paste tells. `name` is its file or program, `ansi` the code page of the system that it is from."""
    decoded = text_of(data, ansi)
    text = decoded.text.replace("\r\n", "\n")
    found = table.find(text, situation)
    by_words = (found.problem,) if found and found.problem else ()
    told = tuple(dict.fromkeys((*_by_form(text, table), *by_words, *_line_ends(name, decoded.text))))
    if decoded.foreign:
        told = (*told, ForeignEncoding(source=name, encoding=decoded.encoding))
    lines = relevant_lines(table.without_harmless(text))
    known = any(not isinstance(problem, ForeignEncoding | ContainerExited) for problem in told)
    if not known and table.unexplained(text):
        told = (CauseUnknown(lines=lines), *told)
    ordered = sorted(told, key=lambda problem: _GRAVEST_FIRST.index(problem.treatment))
    first_is_the_rows = bool(found and ordered and ordered[0] == found.problem)
    return Reading(
        problems=tuple(ordered),
        fingerprint=found.name if found and first_is_the_rows else "",
        encoding=decoded.encoding,
        lines=lines,
    )


def _line_ends(name: str, text: str) -> tuple[AnyProblem, ...]:
    """Say that a file for Linux has the line ends of Windows; what was pasted as text has those of the clipboard."""
    for_linux = compose_reading.is_compose(text) or _assignments(text)
    if name == PASTED or "\r\n" not in text or not for_linux:
        return ()
    return (ComposeFlaw(flaw="line_ends", place=name),)


def _by_form(text: str, table: Table) -> Iterator[AnyProblem]:
    """Yield what the form of a paste tells beside its words."""
    document = _json(text)
    if document is not None:
        yield from _of_document(document, text, table)
    elif _STATUS_LINE.match(text):
        yield from _of_http(text, table)
    elif compose_reading.is_compose(text):
        yield from compose_reading.of_compose(text)
    else:
        yield from _of_variables(text)
        yield from _of_contexts(text)
        yield from _of_driver_table(text)


def _json(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[{")):
        return None
    try:
        return msgspec.json.decode(text.strip())
    except NOT_OF_THAT_FORM:
        return None


def _of_document(document: Any, text: str, table: Table) -> Iterator[AnyProblem]:
    for one in document if isinstance(document, list) else [document]:
        if not isinstance(one, dict):
            continue
        if "nvidia" in one and "engine" in one:
            yield from _of_facts(text)
        elif "choices" in one:
            seen = answers.of_completion(one)
            yield from (seen,) if seen else ()
        elif "OSType" in one or "OperatingSystem" in one:
            yield from of_engine(inspection.engine_of(one, {}), "Windows" if _on_windows(one) else "Linux")
        elif "RepoDigests" in one:
            seen = inspection.of_image(one)
            yield from (seen,) if seen else ()
        elif "State" in one or "HostConfig" in one:
            container = inspection.container_of(one)
            seen = table.cause(container.error, Situation(origin="engine")) or inspection.of_container(container)
            yield from (seen,) if seen else ()


def _on_windows(info: Mapping[str, Any]) -> bool:
    """Say whether Docker Desktop's machine is WSL2's, so that it runs on Windows."""
    return "wsl2" in str(info.get("KernelVersion") or "").casefold() or info.get("OSType") == "windows"


def _of_facts(text: str) -> Iterator[AnyProblem]:
    try:
        seen = facts.from_json(text)
    except InstallerError as error:
        yield error.problem
        return
    yield from (*checks.machine(seen), *remarks.all_of(seen))


def of_engine(engine: Engine, system: str) -> tuple[AnyProblem, ...]:
    """Return what an engine's own facts tell, on a machine of which nothing else is known but that it has a card."""
    seen = machine(engine=engine, host=Host(system=system))
    return checks.engine(seen) or checks.way_to_the_card(seen)


def of_cards(nvidia: Nvidia, host: Host, engine: Engine | None = None) -> tuple[AnyProblem, ...]:
    """Return what a reading of the driver tells, on a machine whose engine is in order."""
    running = engine or Engine(state=facts.EngineState.RUNNING, os_type="linux", runtimes=("nvidia",))
    seen = machine(engine=running, host=host, nvidia=nvidia)
    return (*checks.nvidia(seen), *remarks.all_of(seen))


def machine(engine: Engine, host: Host, nvidia: Nvidia | None = None) -> Facts:
    """Return facts of a machine of which only this much is known."""
    return Facts(
        nvidia=nvidia or Nvidia(state=NvidiaState.READ),
        engine=engine,
        compose=Compose(state=ComposeState.READY),
        host=host,
        weights_folder=Folder(path="", free_bytes=None),
    )


def _of_http(text: str, table: Table) -> Iterator[AnyProblem]:
    head, _, body = text.partition("\n\n")
    status = _STATUS_LINE.match(head)
    headers = {found[1].lower(): found[2].strip() for line in head.splitlines()[1:] if (found := _HEADER.match(line))}
    answer = Answer(
        status=int(status[1]) if status else 0,
        headers=headers,
        body=body.encode(),
        retry_after_s=seconds_in(headers.get("retry-after", "")),
    )
    from_hub = "x-error-code" in headers or "x-repo-commit" in headers
    seen = (
        answers.of_hub(answer, "", "", "")
        if from_hub
        else answers.of_anyone(answer) or answers.cause_behind(answer, "", table)
    )
    yield from (seen,) if seen else ()


def _of_variables(text: str) -> Iterator[AnyProblem]:
    yield from environment.flaws(_assignments(text))


def _assignments(text: str) -> dict[str, str]:
    """Read an env file, or what `set` and `env` print; nothing where a line is no assignment."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    matches = [found for line in lines if (found := _ASSIGNMENT.fullmatch(line))]
    return {found[1]: found[2] for found in matches} if len(matches) == len(lines) else {}


def _of_contexts(text: str) -> Iterator[AnyProblem]:
    """Read what `docker context ls` prints."""
    listed = list(_CONTEXT.finditer(text))
    current = next((one for one in listed if one["current"]), None)
    if current is not None and _LINUX_DESKTOP.match(current["endpoint"]):
        others = [one["name"] for one in listed if not one["current"] and one["endpoint"].startswith("unix://")]
        yield DesktopWithoutGpu(context=current["name"], other=next(iter(others), ""))


def _of_driver_table(text: str) -> Iterator[AnyProblem]:
    """Read a table of nvidia-smi under the names of its columns."""
    head = _QUERY.search(text)
    if head is None:
        return
    columns = [column.split("[")[0].strip() for column in head[0].split(",")]
    gpus: tuple[Gpu, ...] = nvidia_smi.cards(text[head.end() :].encode(), columns)
    if gpus:
        yield from of_cards(Nvidia(state=NvidiaState.READ, gpus=gpus), Host(system="Linux"))

"""Reading other people's Compose files, env files and arguments: what in them will not do what it says.

Slipway's own file has none of this: one argument per item, JSON as JSON, dollar signs doubled, long volumes, texts in
quotes, UTF-8 without a mark, line ends of Linux. A test holds every file that it renders against these rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from installer.domain import strict_yaml
from installer.domain.decoding import text_of
from installer.domain.problems import AnyProblem, ComposeFlaw, ForeignEncoding, InstallerError, VariableFlaw
from installer.domain.redaction import redacted

_TWO_IN_ONE = re.compile(r"--[\w-]+\s+\S")
_LONE_DOLLAR = re.compile(r"(?<!\$)\$(?:\w)")
_ONLY_A_VARIABLE = re.compile(r"\$\{[^}]*\}|\$\w+")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_SERVES_BY_ITSELF = "vllm/vllm-openai"
_HAS_NO_PROGRAM = "vllm/vllm-omni"
_PROGRAM = ("vllm", "serve", "python", "python3")
_LAST_PORT = 65535


def of_file(path: str, data: bytes) -> tuple[AnyProblem, ...]:
    """Return what is odd about the bytes of a file and, where it is a Compose file, about what stands in it."""
    decoded = text_of(data)
    found: list[AnyProblem] = []
    if decoded.foreign:
        found.append(ForeignEncoding(source=path, encoding=decoded.encoding))
    elif "\r\n" in decoded.text:
        found.append(ComposeFlaw(flaw="line_ends", place=path))
    return (*found, *(of_compose(decoded.text) if is_compose(decoded.text) else ()))


def is_compose(text: str) -> bool:
    """Say whether a text is a Compose file."""
    return re.search(r"^services:\s*$", text, re.MULTILINE) is not None


def of_compose(text: str) -> tuple[AnyProblem, ...]:
    """Return what in a Compose file will not do what it says; nothing where it is no YAML."""
    try:
        document = strict_yaml.mapping("", text)
    except InstallerError:
        return ()
    services = document.get("services")
    return tuple(
        flaw
        for name, service in (services.items() if isinstance(services, dict) else ())
        if isinstance(service, dict)
        for flaw in _of_service(f"services.{name}", service)
    )


def of_arguments(arguments: Sequence[str], place: str = "command") -> tuple[AnyProblem, ...]:
    """Return what is odd about a program's arguments: two in one, JSON that is none."""
    found: list[AnyProblem] = []
    for before, argument in zip(("", *arguments), arguments, strict=False):
        if _TWO_IN_ONE.match(argument) and "=" not in argument.split()[0]:
            found.append(ComposeFlaw(flaw="not_split", place=place, value=redacted(argument)))
        value = argument.partition("=")[2] if argument.startswith("--") else argument
        flag = argument.partition("=")[0] if argument.startswith("--") else before
        if _is_broken_json(value):
            found.append(
                ComposeFlaw(flaw="not_json", place=flag if flag.startswith("--") else place, value=redacted(value))
            )
    return tuple(found)


def _is_broken_json(value: str) -> bool:
    bare = value.strip().strip("'\"\\")
    if not bare.startswith(("{", "[{")):
        return False
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return True
    return False


def _of_service(place: str, service: Mapping[str, Any]) -> Iterator[AnyProblem]:
    command = service.get("command")
    if isinstance(command, list):
        yield from _of_command(f"{place}.command", service, [str(item) for item in command])
    yield from _of_environment(f"{place}.environment", service.get("environment"))
    for volume in _listed(service.get("volumes")):
        if isinstance(volume, str) and _DRIVE.match(volume):
            yield ComposeFlaw(flaw="short_volume", place=f"{place}.volumes", value=volume)
    for port in _listed(service.get("ports")):
        if isinstance(port, int) and not 0 < port <= _LAST_PORT:
            yield ComposeFlaw(flaw="not_text", place=f"{place}.ports", value=str(port))
    for device in _devices(service):
        yield from _of_device(f"{place}.deploy.resources.reservations.devices", device)


def _of_command(place: str, service: Mapping[str, Any], command: list[str]) -> Iterator[AnyProblem]:
    image, first = str(service.get("image") or ""), command[0] if command else ""
    if "entrypoint" not in service and image.startswith(_SERVES_BY_ITSELF) and first in _PROGRAM:
        yield ComposeFlaw(flaw="program_repeated", place=place, value=first)
    if "entrypoint" not in service and image.startswith(_HAS_NO_PROGRAM) and first not in _PROGRAM:
        yield ComposeFlaw(flaw="program_missing", place=place, value=first)
    yield from of_arguments(command, place)
    if any(_interpolates(item) for item in command):
        yield ComposeFlaw(flaw="interpolated", place=place, value="$")


def _of_environment(place: str, environment: object) -> Iterator[AnyProblem]:
    for name, value in _pairs(environment):
        if isinstance(value, bool):
            yield ComposeFlaw(flaw="not_text", place=f"{place}.{name}", value=str(value).lower())
        elif isinstance(value, str) and _interpolates(value):
            yield ComposeFlaw(flaw="interpolated", place=f"{place}.{name}", value="$")
        elif value == "" and name.endswith("TOKEN"):
            yield VariableFlaw(variable=name, flaw="empty")


def _interpolates(value: str) -> bool:
    """Say whether Compose would put something else in a value's middle; a value that is one variable means that."""
    return _LONE_DOLLAR.search(value) is not None and not _ONLY_A_VARIABLE.fullmatch(value)


def _pairs(environment: object) -> Iterator[tuple[str, object]]:
    if isinstance(environment, dict):
        yield from ((str(name), value) for name, value in environment.items())
    for entry in _listed(environment):
        name, equals, value = str(entry).partition("=")
        if equals:
            yield name, value


def _of_device(place: str, device: Mapping[str, Any]) -> Iterator[AnyProblem]:
    ids = device.get("device_ids")
    if "count" in device and ids is not None:
        yield ComposeFlaw(flaw="exclusive_keys", place=place, value="count, device_ids")
    for one in _listed(ids):
        if not isinstance(one, str):
            yield ComposeFlaw(flaw="not_text", place=f"{place}.device_ids", value=str(one))


def _devices(service: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    value: object = service
    for key in ("deploy", "resources", "reservations", "devices"):
        value = value.get(key) if isinstance(value, dict) else None
    yield from (device for device in _listed(value) if isinstance(device, dict))


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []

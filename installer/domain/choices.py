"""Choices: what a person decides. One field is one command-line flag, one key of the answers file and one widget.

It never holds a secret.
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal

import msgspec

from installer.domain import strict_yaml
from installer.domain.one_line import is_one_line, printable
from installer.domain.problems import BadChoice, InstallerError, MalformedFile
from installer.domain.registry import StackName
from installer.domain.strict_json import NOT_OF_THAT_FORM

PIN_CURRENT = "current"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
MOST_TOKENS = 100_000_000
"""A hundred times the longest context of any model."""

ONE_LINE = "…"
"""The form of a text that can be a name or a path: printable, and half of no letter."""

_GPU_UUID = re.compile(r"GPU-[0-9A-Za-z-]+")


class Choices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All decisions; None means that Slipway decides.

    `context` is in tokens, `vram_budget_gib` in GiB. `docker_image_pin_digest` is `current` (the digest that the tag
    has now), a digest, or empty (the tag, which its publisher may move).
    """

    stack: StackName = "chat"
    profile: str | None = None
    gpu_uuid: str | None = None
    context: int | None = None
    references: int | None = None
    vram_budget_gib: float | None = None
    folder: str | None = None
    port: int | None = None
    docker_image_pin_digest: str = PIN_CURRENT
    accept_licenses: tuple[str, ...] = ()
    autostart: bool = False
    language: Literal["de", "en"] | None = None


def from_text(text: str | bytes, path: str) -> Choices:
    """Read an answers file, JSON or YAML.

    Raises InstallerError with MalformedFile or BadChoice.
    """
    values = _values(text, path)
    try:
        choices = msgspec.convert({} if values is None else values, type=Choices)
    except msgspec.ValidationError as error:
        raise InstallerError(MalformedFile.of(path, error)) from error
    check(choices)
    return choices


def _values(text: str | bytes, path: str) -> Any:
    """Read JSON as JSON: YAML takes most of it, but no letter that JSON writes as two escapes."""
    try:
        return msgspec.json.decode(text)
    except NOT_OF_THAT_FORM:
        return strict_yaml.value(path, text)


def check(choices: Choices) -> None:
    """Check every choice by itself. Raises InstallerError(BadChoice) for the first that cannot be taken."""
    texts = (("profile", choices.profile), ("folder", choices.folder), *_each("accept_licenses", choices))
    limits: tuple[tuple[str, object, bool, str], ...] = (
        *((name, text, text is None or is_one_line(text), ONE_LINE) for name, text in texts),
        ("port", choices.port, choices.port is None or 1024 <= choices.port <= 65535, "1024..65535"),
        ("context", choices.context, choices.context is None or choices.context >= 256, ">= 256"),
        ("context", choices.context, choices.context is None or choices.context <= MOST_TOKENS, f"<= {MOST_TOKENS}"),
        ("references", choices.references, choices.references is None or 1 <= choices.references <= 4, "1..4"),
        (
            "vram_budget_gib",
            choices.vram_budget_gib,
            choices.vram_budget_gib is None or 0 < choices.vram_budget_gib < math.inf,
            "> 0",
        ),
        (
            "gpu_uuid",
            choices.gpu_uuid,
            choices.gpu_uuid is None or bool(_GPU_UUID.fullmatch(choices.gpu_uuid)),
            "GPU-…",
        ),
        (
            "docker_image_pin_digest",
            choices.docker_image_pin_digest,
            choices.docker_image_pin_digest in ("", PIN_CURRENT)
            or bool(_DIGEST.fullmatch(choices.docker_image_pin_digest)),
            "current, sha256:<64 hex>, or empty",
        ),
    )
    for field, value, holds, limit in limits:
        if not holds:
            raise InstallerError(BadChoice(field=field, value=printable(str(value)), limit=limit))


def _each(field: str, choices: Choices) -> tuple[tuple[str, str], ...]:
    return tuple((field, one) for one in getattr(choices, field))


def pinned_digest(choices: Choices) -> str | None:
    """Return the digest that was named, or None for `current` and for the tag."""
    pin = choices.docker_image_pin_digest
    return pin if pin.startswith("sha256:") else None

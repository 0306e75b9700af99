"""Choices: what a person decides. One field is one command-line flag, one key of the answers file and one widget.

It never holds a secret.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec
import yaml

from installer.domain.problems import BadChoice, InstallerError, MalformedFile
from installer.domain.registry import StackName

PIN_CURRENT = "current"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
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
    try:
        values = yaml.safe_load(text)
        choices = msgspec.convert({} if values is None else values, type=Choices)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise InstallerError(MalformedFile(path=path, where="$", reason=reason)) from error
    except (msgspec.ValidationError, UnicodeDecodeError) as error:
        raise InstallerError(MalformedFile.of(path, error)) from error
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        # PyYAML's constructors let these through: a date that no calendar has, `!!bool perhaps`, endless nesting.
        raise InstallerError(MalformedFile(path=path, where="$", reason=f"not YAML: {error}")) from error
    check(choices)
    return choices


def check(choices: Choices) -> None:
    """Check every choice by itself. Raises InstallerError(BadChoice) for the first that cannot be taken."""
    limits: tuple[tuple[str, object, bool, str], ...] = (
        ("port", choices.port, choices.port is None or 1024 <= choices.port <= 65535, "1024..65535"),
        ("context", choices.context, choices.context is None or choices.context >= 256, ">= 256"),
        ("references", choices.references, choices.references is None or 1 <= choices.references <= 4, "1..4"),
        (
            "vram_budget_gib",
            choices.vram_budget_gib,
            choices.vram_budget_gib is None or choices.vram_budget_gib > 0,
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
            raise InstallerError(BadChoice(field=field, value=str(value), limit=limit))


def pinned_digest(choices: Choices) -> str | None:
    """Return the digest that was named, or None for `current` and for the tag."""
    pin = choices.docker_image_pin_digest
    return pin if pin.startswith("sha256:") else None

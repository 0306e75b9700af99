"""A fetched registry: whether it may be taken over, where it is kept, and until when it is used.

Its signature was checked when it was fetched. Kept is what was in it, beside everything else of this person's home;
from its expiry on, the built-in one is used again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from installer.domain import registry as registries
from installer.domain.problems import InstallerError, MalformedFile, RegistryExpired, RegistryRecalled
from installer.domain.registry import Registry
from installer.domain.strict_json import decoded
from installer.steps.home import Home, read_bytes, write_atomically

FILE = "registry.json"


class Payload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a publisher signs: the registry's files by name, when they were issued and expire, what is recalled.

    Dates are ISO 8601 with a zone; `recalled` lists revisions of registries that nobody should use any more.
    """

    revision: str
    issued: str
    expires: str
    recalled: tuple[str, ...] = ()
    files: dict[str, str]


class Signed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A payload whose signature was checked, and the fingerprint of the key that made it."""

    payload: Payload
    key: str


def accepted(signed: Signed, kept: Signed | None, now: str, path: str) -> Registry:
    """Return the registry inside, if it may be taken over now.

    What the same key signed before still counts: its recall list, and that nothing older follows.
    Raises RegistryExpired, RegistryRecalled, MalformedFile.
    """
    payload = signed.payload
    issued, expires = _date(payload.issued, path, "issued"), _date(payload.expires, path, "expires")
    if _date(now, "", "now") >= expires:
        raise InstallerError(RegistryExpired(path=path, revision=payload.revision, expired=payload.expires))
    if payload.revision in payload.recalled:
        raise InstallerError(RegistryRecalled(path=path, revision=payload.revision, recalled_by=payload.revision))
    if kept is not None and kept.key == signed.key:
        older = issued < _date(kept.payload.issued, FILE, "issued")
        if older or payload.revision in kept.payload.recalled:
            by = kept.payload.revision
            raise InstallerError(RegistryRecalled(path=path, revision=payload.revision, recalled_by=by))
    return _parsed(payload, path)


def save(home: Home, signed: Signed) -> None:
    """Keep a registry that was accepted. Raises NotWritable, DiskFull."""
    write_atomically(home.folder / FILE, msgspec.json.format(msgspec.json.encode(signed), indent=1) + b"\n")


def kept(home: Home) -> Signed | None:
    """Return what was fetched last, expired or not, or None. Raises MalformedFile, NotWritable."""
    path = home.folder / FILE
    content = read_bytes(path)
    return None if content is None else decoded(content, Signed, str(path))


class InForce(msgspec.Struct, frozen=True, kw_only=True):
    """The registry to use, and what was fetched last: `expired` tells that the built-in one took its place."""

    registry: Registry
    fetched: Payload | None = None
    expired: bool = False


def in_force(home: Home, built_in: Callable[[], Registry], now: str) -> InForce:
    """Return the fetched registry until it expires, then the built-in one again.

    Raises MalformedFile for one that cannot be read, RegistryRecalled where the built-in one must not be used either.
    """
    signed = kept(home)
    if signed is None:
        return InForce(registry=built_in())
    path, fetched = str(home.folder / FILE), signed.payload
    if _date(now, "", "now") < _date(fetched.expires, path, "expires"):
        return InForce(registry=_parsed(fetched, path), fetched=fetched)
    own = built_in()
    if own.revision in fetched.recalled:
        raise InstallerError(RegistryRecalled(path="", revision=own.revision, recalled_by=fetched.revision))
    return InForce(registry=own, fetched=fetched, expired=True)


def _parsed(payload: Payload, path: str) -> Registry:
    registry = registries.parse(payload.files)
    if registry.revision != payload.revision:
        reason = f"{payload.revision} was signed, {registry.revision} is inside"
        raise InstallerError(MalformedFile(path=path, where="$.revision", reason=reason))
    return registry


def _date(text: str, path: str, field: str) -> datetime:
    try:
        date = datetime.fromisoformat(text)
    except ValueError as error:
        raise InstallerError(MalformedFile(path=path, where=f"$.{field}", reason="expected a date")) from error
    if date.tzinfo is None:
        raise InstallerError(MalformedFile(path=path, where=f"$.{field}", reason="expected a date with its zone"))
    return date

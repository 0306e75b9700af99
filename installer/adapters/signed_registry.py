"""A registry that somebody signed: one JSON file with the registry's files, and an Ed25519 signature over them.

Signed are the bytes of the payload, which also holds the dates and the recall list. No key is known here: the person
names the public one. `cryptography` is an optional package (`slipway[signing]`), needed for signatures only.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from installer.adapters import http
from installer.domain import addresses
from installer.domain.problems import (
    FileUnreadable,
    InstallerError,
    MalformedFile,
    ServerError,
    SignatureInvalid,
    SigningNotInstalled,
)
from installer.domain.strict_json import decoded
from installer.steps.kept_registry import Payload, Signed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FORMAT = 1


class _Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file itself: `payload` and `signature` are base64, so that there is one way only to read what was signed."""

    format: int
    payload: str
    signature: str


def read(source: str) -> bytes:
    """Return a signed registry from a file or an http(s) address.

    Raises FileUnreadable, Unreachable, TlsNotTrusted, CaptivePortal, RateLimited, ServerError.
    """
    if addresses.split(source).scheme not in ("http", "https"):
        return _bytes_of(source)
    with http.new_session(source) as session:
        response = http.ask(session, source)
        if response.status_code != 200:
            raise InstallerError(ServerError(host=addresses.host_of(source), status=response.status_code))
        return response.content


def unpack(data: bytes, key_file: str, path: str) -> Signed:
    """Check the signature and return what was signed; not a byte of it is looked at before.

    Raises SignatureInvalid, MalformedFile, FileUnreadable (the key), SigningNotInstalled.
    """
    key = _public_key(key_file)
    envelope = decoded(data, _Envelope, path)
    try:
        payload = base64.b64decode(envelope.payload, validate=True)
        signature = base64.b64decode(envelope.signature, validate=True)
    except ValueError as error:  # binascii's own, and the one for text that is not ASCII
        raise InstallerError(MalformedFile(path=path, where="$.payload", reason="expected base64")) from error
    if envelope.format != FORMAT:
        raise InstallerError(MalformedFile(path=path, where="$.format", reason=f"expected {FORMAT}"))
    if not _verified(key, signature, payload):
        raise InstallerError(SignatureInvalid(path=path))
    return Signed(payload=decoded(payload, Payload, path), key=_fingerprint(key))


def pack(payload: Payload, private_key_pem: bytes) -> bytes:
    """Return a payload as a signed file. Raises ValueError for a key that is not Ed25519 in PEM without a password."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(private_key_pem, password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("not an Ed25519 key")
    content = msgspec.json.encode(payload)
    envelope = _Envelope(
        format=FORMAT,
        payload=base64.b64encode(content).decode(),
        signature=base64.b64encode(key.sign(content)).decode(),
    )
    return msgspec.json.format(msgspec.json.encode(envelope), indent=2) + b"\n"


def _public_key(path: str) -> Ed25519PublicKey:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError as error:
        raise InstallerError(SigningNotInstalled()) from error
    try:
        key = load_pem_public_key(_bytes_of(path))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InstallerError(MalformedFile(path=path, where="$", reason="not a public key in PEM")) from error
    if not isinstance(key, Ed25519PublicKey):
        raise InstallerError(MalformedFile(path=path, where="$", reason="not an Ed25519 key"))
    return key


def _verified(key: Ed25519PublicKey, signature: bytes, payload: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, payload)
    except InvalidSignature:
        return False
    return True


def _fingerprint(key: Ed25519PublicKey) -> str:
    return "sha256:" + hashlib.sha256(key.public_bytes_raw()).hexdigest()


def _bytes_of(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InstallerError(FileUnreadable(path=path, reason=reason)) from error

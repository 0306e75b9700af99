"""A signed registry: what the named key signed is taken, anything else is an error, and keys are made here only."""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from installer.adapters import signed_registry
from installer.domain.problems import (
    CaptivePortal,
    FileUnreadable,
    InstallerError,
    MalformedFile,
    Problem,
    ServerError,
    SignatureInvalid,
    SigningNotInstalled,
    Unreachable,
)
from installer.steps.kept_registry import Payload

PAYLOAD = Payload(
    revision="2027.1.1",
    issued="2027-01-01T00:00:00+00:00",
    expires="2027-03-01T00:00:00+00:00",
    files={"a.yaml": "ä: 1\n"},
)


class Signer:
    """A publisher's key pair, as files."""

    def __init__(self, folder: Path, name: str = "publisher") -> None:
        key = Ed25519PrivateKey.generate()
        self.private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self.public = str(folder / f"{name}.pem")
        Path(self.public).write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))

    def signed(self, payload: Payload = PAYLOAD) -> bytes:
        return signed_registry.pack(payload, self.private)


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer(tmp_path)


def refused(data: bytes, key: str) -> Problem:
    with pytest.raises(InstallerError) as caught:
        signed_registry.unpack(data, key, "x.json")
    return caught.value.problem


def test_what_the_key_signed_comes_out_as_it_went_in(signer: Signer) -> None:
    signed = signed_registry.unpack(signer.signed(), signer.public, "x.json")
    assert signed.payload == PAYLOAD
    assert signed.key.startswith("sha256:")


def test_another_key_does_not_do(signer: Signer, tmp_path: Path) -> None:
    assert refused(signer.signed(), Signer(tmp_path, "other").public) == SignatureInvalid(path="x.json")


@pytest.mark.parametrize("field", ["payload", "signature"])
def test_one_changed_bit_is_enough_to_refuse_it(signer: Signer, field: str) -> None:
    envelope = json.loads(signer.signed())
    content = bytearray(base64.b64decode(envelope[field]))
    for place in (0, len(content) // 2, len(content) - 1):
        changed = bytearray(content)
        changed[place] ^= 1
        data = json.dumps(envelope | {field: base64.b64encode(changed).decode()}).encode()
        assert isinstance(refused(data, signer.public), SignatureInvalid)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"format": 1, "payload": "?", "signature": ""}',
        b'{"format": 2, "payload": "", "signature": ""}',
    ],
)
def test_what_is_no_signed_registry_is_malformed(signer: Signer, data: bytes) -> None:
    assert isinstance(refused(data, signer.public), MalformedFile)


def test_an_empty_signature_is_no_signature(signer: Signer) -> None:
    envelope = json.loads(signer.signed()) | {"signature": ""}
    assert isinstance(refused(json.dumps(envelope).encode(), signer.public), SignatureInvalid)


def test_a_key_that_is_none_is_said(signer: Signer, tmp_path: Path) -> None:
    other_kind = tmp_path / "ec.pem"
    other_kind.write_bytes(
        generate_private_key(SECP256R1()).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    private = tmp_path / "private.pem"
    private.write_bytes(signer.private)
    for path in (other_kind, private):
        problem = refused(signer.signed(), str(path))
        assert isinstance(problem, MalformedFile)
        assert problem.path == str(path)
    assert isinstance(refused(signer.signed(), str(tmp_path / "none.pem")), FileUnreadable)


def test_without_the_optional_package_nothing_is_taken_unchecked(
    signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = signer.signed()
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    problem = refused(data, signer.public)
    assert isinstance(problem, SigningNotInstalled)
    assert problem.exit_code == 2


# --- where it comes from --------------------------------------------------------------------------------------------


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        kinds = {"/good": (200, "application/json", b"{}"), "/page": (200, "text/html", b"<html>")}
        status, kind, body = kinds.get(self.path, (404, "text/plain", b""))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_it_is_read_from_a_file_or_an_address(address: str, tmp_path: Path) -> None:
    file = tmp_path / "signed.json"
    file.write_bytes(b"{}")
    assert signed_registry.read(str(file)) == b"{}" == signed_registry.read(f"{address}/good")


def test_what_does_not_come_is_a_problem_of_its_kind(address: str, tmp_path: Path) -> None:
    cases = {
        f"{address}/none": ServerError,
        f"{address}/page": CaptivePortal,
        "http://127.0.0.1:1/x": Unreachable,
        str(tmp_path / "none.json"): FileUnreadable,
    }
    for source, kind in cases.items():
        with pytest.raises(InstallerError) as caught:
            signed_registry.read(source)
        assert isinstance(caught.value.problem, kind)

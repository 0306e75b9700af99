"""`slipway registry`, as it is typed: check, schema, and a signed registry that is taken over or refused."""

from __future__ import annotations

import io
import json
import os
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from installer.cli.main import run
from installer.domain.registry import schema
from installer.steps.kept_registry import FILE
from tests.rig.hub import LocalHub
from tests.steps.test_registry_tools import FILES, REPO, texts_for
from tools import sign_registry

ROOT = Path(__file__).parents[2]


class Desk:
    """One person's home, a publisher's key pair, and what the command said."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        key = Ed25519PrivateKey.generate()
        self.private, self.public = folder / "private.pem", folder / "public.pem"
        self.private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self.public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        self.said = self.complained = ""

    def slipway(self, *arguments: str) -> int:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        environment = {**os.environ, "SLIPWAY_HOME": str(self.home), "SLIPWAY_LANGUAGE": "en", "COLUMNS": "200"}
        with mock.patch.dict(os.environ, environment, clear=True), redirect_stdout(out), redirect_stderr(err):
            code = run(list(arguments))
            out.flush()
            err.flush()
            self.said, self.complained = out.buffer.getvalue().decode(), err.buffer.getvalue().decode()
        return code

    def json(self, *arguments: str) -> Any:
        code = self.slipway("registry", *arguments, "--json")
        return code, json.loads(self.said)

    def registry(self, **replaced: str) -> Path:
        """Return a copy of the built-in registry with texts replaced in its files."""
        folder = self.folder / f"registry-{len(list(self.folder.iterdir()))}"
        shutil.copytree(ROOT / "installer" / "registry", folder)
        for old, new in replaced.items():
            for file in folder.glob("*.yaml"):
                file.write_text(file.read_text("utf-8").replace(old.replace("__", ": "), new), "utf-8")
        return folder

    def signed(self, registry: Path, expires: str = "2099-01-01", *recalled: str) -> str:
        file = self.folder / f"{registry.name}.json"
        recall = [word for revision in recalled for word in ("--recall", revision)]
        command = ["--key", str(self.private), "--registry", str(registry), "--expires", expires, "--out", str(file)]
        assert sign_registry.main([*command, *recall]) == 0
        return str(file)

    def fetch(self, source: str) -> tuple[int, Any]:
        return self.json("fetch", source, "--key", str(self.public))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_built_in_registry_is_checked(desk: Desk) -> None:
    code, said = desk.json("check")
    assert (code, said["problems"]) == (0, [])
    assert said["profiles"] >= 24
    assert desk.slipway("registry", "check") == 0
    assert "in order" in desk.said
    assert not desk.home.exists()


def test_a_claim_that_does_not_hold_is_told_and_fails(desk: Desk) -> None:
    folder = desk.registry(resident_bytes__21904333210="resident_bytes: 33904333210")
    code, said = desk.json("check", "--registry", str(folder))
    assert code == 2
    assert {problem["kind"] for problem in said["problems"]} == {"evidence_not_reproduced"}
    assert all(problem["sentence"] and problem["remedy"] for problem in said["problems"])
    assert desk.slipway("registry", "check", "--registry", str(folder)) == 2
    assert "qwen3.6-27b-nvfp4-64k" in desk.complained


def test_the_schema_is_printed(desk: Desk) -> None:
    assert desk.slipway("registry", "schema") == 0
    assert json.loads(desk.said) == json.loads(json.dumps(schema()))


def test_a_signed_registry_is_used_by_later_calls(desk: Desk) -> None:
    newer = desk.registry(revision__2026="revision: 2027")
    code, said = desk.fetch(desk.signed(newer))
    assert (code, said["revision"], said["expires"][:10]) == (0, "2027.12.1", "2099-01-01")
    code, said = desk.json()
    assert (said["revision"], said["fetched"]) == ("2027.12.1", True)
    assert desk.json("--registry", str(ROOT / "installer" / "registry"))[1]["revision"] == "2026.12.1"
    assert desk.slipway("registry") == 0
    assert "1 January 2099" in desk.said.replace("\N{NO-BREAK SPACE}", " ")


def test_one_that_expired_meanwhile_gives_way_to_the_built_in_one_and_that_is_said(desk: Desk) -> None:
    newer = desk.registry(revision__2026="revision: 2027")
    assert desk.fetch(desk.signed(newer))[0] == 0
    kept = desk.home / FILE
    kept.write_text(kept.read_text("utf-8").replace("2099-01-01", "2020-01-01"), "utf-8")
    code, said = desk.json()
    assert (code, said["revision"], said["fetched"]) == (0, "2026.12.1", False)
    assert "expired" in desk.complained


@pytest.mark.parametrize("case", ["expired", "recalled", "changed", "another key"])
def test_what_must_not_be_trusted_is_an_error_and_changes_nothing(desk: Desk, case: str) -> None:
    kinds = {"expired": "registry_expired", "recalled": "registry_recalled"}
    newer = desk.registry(revision__2026="revision: 2027")
    source = desk.signed(
        newer, "2020-01-01" if case == "expired" else "2099-01-01", "2027.12.1" if case == "recalled" else "0"
    )
    if case == "changed":
        file = Path(source)
        envelope = json.loads(file.read_text())
        file.write_text(
            json.dumps(envelope | {"payload": envelope["payload"][:-8] + "AAAA" + envelope["payload"][-4:]})
        )
    if case == "another key":
        other = Ed25519PrivateKey.generate().public_key()
        desk.public.write_bytes(other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    code, said = desk.fetch(source)
    assert (code, said["problem"]["kind"]) == (2, kinds.get(case, "signature_invalid"))
    assert not desk.home.exists()
    assert desk.json()[1]["revision"] == "2026.12.1"


def test_an_address_that_nobody_answers_is_a_network_error(desk: Desk) -> None:
    code, said = desk.fetch("http://127.0.0.1:1/registry.json")
    assert (code, said["problem"]["kind"]) == (30, "unreachable")


def test_a_refresh_that_fails_writes_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, out = desk.folder / "small", desk.folder / "out"
    folder.mkdir()
    for name, text in texts_for().items():
        (folder / name).write_text(text, "utf-8")
    with LocalHub() as hub:
        hub.add(REPO, FILES)
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        code, said = desk.json("refresh", "--registry", str(folder), "--out", str(out))
    assert (code, said["problem"]["kind"]) == (2, "licence_tag_missing")
    assert said["problem"]["repos"] == [REPO]
    assert not out.exists()


@pytest.mark.parametrize("arguments", [("fetch", "x.json"), ("refresh",), ("polish",)])
def test_a_command_that_lacks_something_is_a_usage_error(desk: Desk, arguments: tuple[str, ...]) -> None:
    assert desk.slipway("registry", *arguments) == 2


def test_no_key_is_part_of_this_repository() -> None:
    places = [ROOT / name for name in ("installer", "assets", "compose", "tools", "docs")]
    files = [
        file
        for place in places
        for file in place.rglob("*")
        if file.is_file() and file.suffix in (".pem", ".key", ".pub")
    ]
    assert files == []

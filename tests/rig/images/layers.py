"""Image layers as cached files: tar, gzip, and the two digests that an image needs of each."""

from __future__ import annotations

import fcntl
import functools
import gzip
import hashlib
import io
import json
import random
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.rig.process import RigError, require

HERE = Path(__file__).parent
CACHE = HERE.parents[2] / ".cache" / "rig"


@dataclass(frozen=True)
class Layer:
    """One compressed layer on disk."""

    file: Path
    digest: str
    diff_id: str
    size: int


def standin_layers(salt: str, sizes: tuple[int, ...]) -> tuple[Layer, ...]:
    """Random ballast, so that a pull has something to show, and the program on top."""
    ballast = tuple(_ballast(salt, index, size) for index, size in enumerate(sizes))
    return (*ballast, _program())


def helper_layers() -> tuple[Layer, ...]:
    """Debian with Python, and the stub libcuda."""
    return (_rootfs(), _libcuda())


def architecture() -> str:
    """This machine's name for itself in an image (amd64, arm64)."""
    return _output("dpkg", "--print-architecture")


def compile_c(sources: list[Path], target: Path, *options: str) -> None:
    """gcc with all warnings as errors."""
    strict = ("-O2", "-Wall", "-Wextra", "-Werror")
    command = [require("gcc", "gcc"), *strict, *options, "-o", str(target), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RigError(f"gcc: {done.stderr}")


def _ballast(salt: str, index: int, size: int) -> Layer:
    seed = f"{salt}/{index}/{size}"

    def write(tar: Path) -> None:
        _tar(tar, {f"usr/lib/standin/weights{index}.bin": random.Random(seed).randbytes(size)}, {})

    return _cached(f"ballast {seed}", write)


def _program() -> Layer:
    sources = sorted((HERE / "standin").glob("*.[ch]"))

    def write(tar: Path) -> None:
        binary = tar.with_suffix(".bin")
        compile_c([s for s in sources if s.suffix == ".c"], binary, "-s", "-static", "-pthread")
        files = {"usr/bin/vllm": binary.read_bytes(), "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n"}
        _tar(tar, files, {"usr/bin/curl": "vllm"}, ("root", "tmp", "vllm-workspace"))

    return _cached(f"standin {_hash_files(sources)}", write)


def _libcuda() -> Layer:
    source = HERE / "helper" / "libcuda.c"
    folder = f"usr/lib/{_output('gcc', '-print-multiarch')}"

    def write(tar: Path) -> None:
        library = tar.with_suffix(".so")
        compile_c([source], library, "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1")
        _tar(tar, {f"{folder}/libcuda.so.1": library.read_bytes()}, {})

    return _cached(f"libcuda {folder} {_hash_files([source])}", write)


def _rootfs() -> Layer:
    script = HERE / "helper" / "rootfs.sh"
    suite, mirror = suite_and_mirror()

    def write(tar: Path) -> None:
        require("debootstrap", "debootstrap")
        with tempfile.TemporaryDirectory(dir=tar.parent) as folder:
            command = ["sh", str(script), f"{folder}/rootfs", suite, mirror, str(tar)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RigError(f"the helper image's debootstrap failed: {(done.stdout + done.stderr)[-2000:]}")

    return _cached(f"rootfs {suite} {architecture()} {_hash_files([script])}", write)


def suite_and_mirror() -> tuple[str, str]:
    """The suite of this system and the mirror that apt uses for it."""
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    suite = release.get("VERSION_CODENAME", "").strip('"')
    listed = _output("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(SITE)", "Created-By: Packages")
    for line in listed.splitlines():
        release_name, component, site = line.split(" ", 2)
        if release_name == suite and component == "main":
            return suite, site
    raise RigError(f"apt has no source for {suite or 'this system'}: run apt-get update")


def _cached(inputs: str, write: Callable[[Path], None]) -> Layer:
    """The layer made from ``inputs``: from the cache, or written by ``write`` and kept there."""
    key = hashlib.sha256(inputs.encode()).hexdigest()[:20]
    file, facts = CACHE / f"{key}.tar.gz", CACHE / f"{key}.json"
    if not facts.exists():
        with _locked(key):
            if not facts.exists():
                _write_layer(file, facts, inputs, write)
    known = json.loads(facts.read_text())
    return Layer(file, known["digest"], known["diff_id"], known["size"])


def _write_layer(file: Path, facts: Path, inputs: str, write: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        tar, packed = Path(folder) / "layer.tar", Path(folder) / "layer.tar.gz"
        write(tar)
        with tar.open("rb") as plain, packed.open("wb") as out, gzip.GzipFile("", "wb", 1, out, mtime=0) as zipped:
            shutil.copyfileobj(plain, zipped, 1 << 20)
        known = {"inputs": inputs, "digest": _sha256(packed), "diff_id": _sha256(tar), "size": packed.stat().st_size}
        packed.replace(file)
    draft = facts.with_suffix(".draft")
    draft.write_text(json.dumps(known))
    draft.replace(facts)


@contextmanager
def _locked(key: str) -> Iterator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    with (CACHE / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _tar(target: Path, files: Mapping[str, bytes], links: Mapping[str, str], folders: tuple[str, ...] = ()) -> None:
    parents = {str(parent) for name in (*files, *links) for parent in Path(name).parents if str(parent) != "."}
    with tarfile.open(target, "w") as tar:
        for name in sorted({*parents, *folders}):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(entry)
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
        for name, goal in links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, goal
            tar.addfile(entry)


def _hash_files(files: list[Path]) -> str:
    return hashlib.sha256(b"".join(file.name.encode() + file.read_bytes() for file in files)).hexdigest()


def _sha256(file: Path) -> str:
    with file.open("rb") as data:
        return f"sha256:{hashlib.file_digest(data, 'sha256').hexdigest()}"


@functools.cache
def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

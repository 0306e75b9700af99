"""The header of a video over HTTP, as an application behind Slipway's server reads it: ffprobe in a container, this
computer's server of one file outside; index in front and at the end, small and large, near and far away.

Runs in a private engine, in an image of debootstrap with Debian's ffmpeg. Needs root and what
`tests/rig/install-debian.sh` installs. RUNS sets how often each is read.
"""

from __future__ import annotations

import itertools
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docker.errors import DockerException

from installer import resources
from installer.adapters.container_way import host_address
from installer.adapters.one_file import served
from installer.resources import PROOF_CLIP
from tests.rig.engine import PrivateEngine
from tests.rig.images.layers import suite_and_mirror
from tests.rig.rig import missing

RUNS = int(os.environ.get("RUNS", "20"))
BUDGET_S = 2.0
MEGABYTES = (1, 10, 100, 500)
DELAYS_S = (0.0, 0.02, 0.1)
PLACES = ("front", "end")
IMAGE = "slipway/ffprobe"
HEAD_BYTES = 8
READ = """
for _ in $(seq "$2"); do
    began=$(date +%s%N)
    timeout 60 ffprobe -v error -show_entries format=duration -of csv=p=0 "$1" > /tmp/seen || exit 1
    ended=$(date +%s%N)
    echo "$((ended - began)) $(cat /tmp/seen)"
done
"""


def main() -> int:
    """Print the table; figures are no verdict."""
    if reason := missing():
        print(f"ffprobe: not measured, {reason}")
        return 0
    with PrivateEngine() as engine, tempfile.TemporaryDirectory(prefix="slipway-bench-") as folder:
        os.environ |= {name: engine.env[name] for name in ("DOCKER_HOST", "DOCKER_CONFIG")}
        client = engine.client(600).api
        try:
            build(client, Path(folder))
            container = started(client)
            print(f"container {container[:12]}, {said(client, container, 'ffprobe', '-version').splitlines()[0]}")
            address = host_address(None)
            if address is None:
                print("ffprobe: not measured, the engine has no address for containers")
                return 1
            table(client, container, address, Path(folder))
        finally:
            client.close()
    return 0


def build(client: Any, folder: Path) -> None:
    """Make the image, and say what that took."""
    began = time.monotonic()
    suite, mirror = suite_and_mirror()
    root = folder / "root"
    command = ["debootstrap", "--variant=minbase", "--include=ffmpeg", suite, str(root), mirror]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    archive = folder / "root.tar"
    skipped = [f"--exclude=./{name}" for name in ("proc/*", "sys/*", "dev/*", "var/cache/apt/archives/*.deb")]
    subprocess.run(["tar", "-C", str(root), *skipped, "-cf", str(archive), "."], check=True)
    with archive.open("rb") as data:
        client.import_image_from_data(data, repository=IMAGE)
    print(
        f"image of debootstrap ({suite}) with ffmpeg: {archive.stat().st_size / 1e6:.0f} MB, made in "
        f"{time.monotonic() - began:.0f} s"
    )
    archive.unlink()


def started(client: Any) -> str:
    """Start the container; the engine's end removes it."""
    host = client.create_host_config(extra_hosts={"host.docker.internal": "host-gateway"})
    made = client.create_container(IMAGE, command=["sleep", "3600"], host_config=host)
    client.start(made["Id"])
    return str(made["Id"])


def said(client: Any, container: str, *command: str) -> str:
    """Run a program in the container and return what it printed."""
    made = client.exec_create(container, list(command), stderr=False)
    output: bytes = client.exec_start(made["Id"])
    if client.exec_inspect(made["Id"])["ExitCode"] != 0:
        raise DockerException(f"{command[0]}: {output.decode(errors='replace')[-200:]}")
    return output.decode(errors="replace")


def table(client: Any, container: str, address: str, folder: Path) -> None:
    """Measure every combination."""
    print(f"{RUNS} runs each; ms until ffprobe ended; budget {BUDGET_S:.0f} s at p95")
    print(f"{'index':<7}{'MB':>5}{'delay ms':>10}{'p50':>8}{'p95':>8}{'most':>8}  within")
    worst = 0.0
    for place, size in itertools.product(PLACES, MEGABYTES):
        file = folder / f"{place}-{size}.mp4"
        write(file, place, size * 1_000_000)
        for delay_s in DELAYS_S:
            times = sorted(read(client, container, address, file, delay_s))
            p50, p95 = statistics.median(times), times[math.ceil(0.95 * len(times)) - 1]
            worst = max(worst, p95)
            within = "yes" if p95 <= BUDGET_S else "no"
            print(f"{place:<7}{size:>5}{1000 * delay_s:>10.0f}{1000 * p50:>8.0f}{1000 * p95:>8.0f}"
                  f"{1000 * times[-1]:>8.0f}  {within}", flush=True)  # fmt: skip
        file.unlink()
    print(f"largest p95: {worst:.2f} s")


def read(client: Any, container: str, address: str, file: Path, delay_s: float) -> Iterator[float]:
    """Yield how long ffprobe took, in seconds, its own start included; the length must be the clip's."""
    with served(file, "video/mp4", address, delay_s=delay_s) as serving:
        url = f"http://host.docker.internal:{serving.port}{serving.path}"
        lines = said(client, container, "sh", "-c", READ, "read", url, str(RUNS)).splitlines()
    for line in lines:
        nanoseconds, seconds = line.split()
        assert float(seconds) == 4.0, line
        yield int(nanoseconds) / 1e9


def write(file: Path, place: str, size: int) -> None:
    """Write the clip padded to a size (a hole on disk), with its index in front or at the end."""
    boxes = dict(boxes_of(resources.file("assets", *PROOF_CLIP).read_bytes()))
    padding = size - sum(map(len, boxes.values()))
    free = padding.to_bytes(4, "big") + b"free"
    with file.open("wb") as out:
        if place == "front":
            out.write(boxes["ftyp"] + boxes["moov"] + boxes["free"] + boxes["mdat"] + free)
            out.truncate(size)
        else:
            out.write(boxes["ftyp"] + boxes["free"] + free)
            out.seek(padding - HEAD_BYTES, os.SEEK_CUR)
            moved = padding - len(boxes["moov"])
            out.write(boxes["mdat"] + with_chunks_moved(boxes["moov"], moved))
    assert file.stat().st_size == size


def boxes_of(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the top-level boxes by name (ISO/IEC 14496-12)."""
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 8].decode(), data[at : at + length]
        at += length


def with_chunks_moved(index: bytes, by: int) -> bytes:
    """Return a `moov` whose chunk offsets (`stco`) point further down."""
    at = index.index(b"stco") + 8
    count = int.from_bytes(index[at : at + 4], "big")
    changed = bytearray(index)
    for entry in range(at + 4, at + 4 + 4 * count, 4):
        offset = int.from_bytes(index[entry : entry + 4], "big") + by
        changed[entry : entry + 4] = offset.to_bytes(4, "big")
    return bytes(changed)


if __name__ == "__main__":
    sys.exit(main())

"""Make the clip that proves a server sees videos: a red square that moves from left to right, as H.264 in MP4.

Needs Debian's ffmpeg. The clip is kept under assets/video; the index stands in front, so that a server can begin before
the last byte is there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CLIP = Path(__file__).parent.parent / "assets" / "video" / "red-square.mp4"
SECONDS, RATE = 4, 8
SCENE = (
    f"color=white:s=320x240:r={RATE}:d={SECONDS}[ground];"
    f"color=red:s=88x88:r={RATE}:d={SECONDS}[square];"
    "[ground][square]overlay=x=12+52*t:y=76:shortest=1,format=yuv420p"
)


def main() -> int:
    """Write the clip anew; the same ffmpeg gives the same bytes."""
    command = ["ffmpeg", "-v", "error", "-y", "-filter_complex", SCENE, "-c:v", "libx264", "-profile:v", "baseline"]
    exact = ["-threads", "1", "-g", str(RATE), "-fflags", "+bitexact", "-flags:v", "+bitexact", "-map_metadata", "-1"]
    done = subprocess.run([*command, *exact, "-movflags", "+faststart", str(CLIP)], check=False)
    if done.returncode == 0:
        print(f"wrote: {CLIP.name}, {CLIP.stat().st_size} bytes")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())

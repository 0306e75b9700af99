"""Which NVIDIA driver runs which CUDA: the first version of each, from the release notes of the CUDA toolkit.

docs.nvidia.com/cuda/cuda-toolkit-release-notes, "CUDA Toolkit and Corresponding Driver Versions", the rows of each
first release (GA). Since 13.0 the toolkit brings no driver for Windows and the table names none; vLLM's own documents
ask for the branch R580 for CUDA 13.
"""

from __future__ import annotations

_LINUX = {
    "12.8": "570.26",
    "12.9": "575.51.03",
    "13.0": "580.65.06",
    "13.1": "590.44.01",
    "13.2": "595.45.04",
}
_WINDOWS = {"12.8": "570.65", "12.9": "576.02", "13.0": "580"}


def minimum_driver(cuda: str, *, windows: bool) -> str:
    """Return the first driver for a CUDA version such as 13.0, "" where that is not known."""
    return (_WINDOWS if windows else _LINUX).get(".".join(cuda.split(".")[:2]), "")

"""A driver that is too old is told with the version that is needed, where NVIDIA names one."""

from __future__ import annotations

import pytest

from installer.domain.driver_versions import minimum_driver
from installer.domain.problems import DriverTooOld
from installer.text import Text
from tests.builders import shipped_registry


def too_old(cuda: str, *, windows: bool) -> DriverTooOld:
    return DriverTooOld(driver="551.78", driver_cuda="12.4", image="vllm", image_cuda=cuda, wsl2=windows)


@pytest.mark.parametrize(
    ("cuda", "windows", "needed"),
    [
        ("12.8", False, "570.26"),
        ("12.8", True, "570.65"),
        ("12.9", False, "575.51.03"),
        ("13.0", False, "580.65.06"),
        ("13.0.2", False, "580.65.06"),
        ("13.0", True, "580"),
        ("13.9", False, ""),
        ("13.9", True, ""),
    ],
)
def test_the_first_driver_of_a_cuda_version(cuda: str, windows: bool, needed: str) -> None:
    assert minimum_driver(cuda, windows=windows) == needed
    problem = too_old(cuda, windows=windows)
    assert problem.needed_driver == needed
    for language in ("de", "en"):
        remedy = Text(language).problem(problem).remedy
        assert (f"ersion {needed} (CUDA {cuda})" in remedy) == bool(needed)
        assert f"CUDA {cuda}" in remedy


def test_every_image_of_the_registry_has_a_driver_with_a_number() -> None:
    needed = {image.cuda for image in shipped_registry().images.values() if image.cuda}
    assert [cuda for cuda in needed for windows in (False, True) if not minimum_driver(cuda, windows=windows)] == []

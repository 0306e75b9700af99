"""The whole rig in one value: engine, registry and the default images."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from .engine import PrivateEngine
from .images import Images, build_and_push
from .registry import LocalRegistry

_PROGRAMS = ("dockerd", "docker-registry", "debootstrap", "gcc", "ip")
_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"


@dataclass(frozen=True)
class Rig:
    """An engine, a registry, and both images in it (without a namespace)."""

    engine: PrivateEngine
    registry: LocalRegistry
    images: Images

    def mirror(self, namespace: str = "") -> str:
        """The value of SLIPWAY_REGISTRY_MIRROR for the images of ``namespace``."""
        return f"{self.registry.address}/{namespace}" if namespace else self.registry.address

    def variant(
        self,
        namespace: str,
        *,
        standin: Mapping[str, str] | None = None,
        helper: Mapping[str, str] | None = None,
        salt: str = "",
    ) -> Images:
        """Push both images under ``namespace`` with these environment overrides, and layers of their own if salted."""
        return build_and_push(self.registry, namespace=namespace, standin_env=standin, helper_env=helper, salt=salt)


def missing() -> str:
    """Why this machine cannot run the rig; empty when it can."""
    if not sys.platform.startswith("linux"):
        return "the private Docker Engine needs Linux"
    if os.geteuid() != 0:
        return "the private Docker Engine needs root"
    absent = [program for program in _PROGRAMS if shutil.which(program, path=_PATH) is None]
    return f"not installed: {', '.join(absent)} (tests/rig/install-debian.sh installs them)" if absent else ""

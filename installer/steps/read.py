"""Reading: one look at the whole machine, and one at what only the network knows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from installer.domain.choices import Choices, pinned_digest
from installer.domain.facts import Calibration, Facts, Folder
from installer.domain.facts import Ports as FreePorts
from installer.domain.problems import InstallerError, NotResolvedYet, Unreachable
from installer.domain.registry import Registry
from installer.domain.sources import Sources
from installer.steps.home import Home
from installer.steps.ports import Ports

FIRST_PORT = 8000
PORTS_OFFERED = 5
_PLATFORMS = {"x86_64": "linux/amd64", "amd64": "linux/amd64", "aarch64": "linux/arm64", "arm64": "linux/arm64"}


def facts(ports: Ports, weights_folder: str, calibrations: tuple[Calibration, ...] = ()) -> Facts:
    """Read driver, engine, Compose, host, disk and ports at the same time.

    Each reading has its own limit and tells its state in the answer, so that one that hangs hides none of the others.
    `calibrations` are what earlier starts on this machine taught.
    """
    with ThreadPoolExecutor(max_workers=5) as pool:
        nvidia = pool.submit(ports.gpus.read)
        engine = pool.submit(ports.engine.facts)
        compose = pool.submit(ports.stack.compose)
        host = pool.submit(ports.machine.host)
        folder = pool.submit(ports.machine.folder_free, weights_folder)
        free_ports = ports.machine.free_ports(FIRST_PORT, PORTS_OFFERED)
        free_bytes, writable = folder.result()
        return Facts(
            nvidia=nvidia.result(),
            engine=engine.result(),
            compose=compose.result(),
            host=host.result(),
            weights_folder=Folder(path=weights_folder, free_bytes=free_bytes, writable=writable),
            ports=FreePorts(free=free_ports),
            calibrations=calibrations,
        )


def platform(seen: Facts) -> str:
    """Return the image platform of the engine, such as linux/amd64."""
    architecture = seen.engine.architecture or seen.host.architecture
    return _PLATFORMS.get(architecture.lower(), f"linux/{architecture.lower()}")


def sources(seen: Facts, registry: Registry, profile: str, choices: Choices, ports: Ports, home: Home) -> Sources:
    """Ask registry and hub for digests, sizes and files of a profile, and keep the answer in the home.

    Without network the last answer stands, if there is one for the same pin; its date is in it. Raises the problems
    of `ImageRegistry.resolve` and `Hub.resolve`, and NotResolvedYet.
    """
    digest = pinned_digest(choices)
    model = registry.model_of(registry.profile(profile))
    try:
        resolved = Sources(
            profile=profile,
            image=ports.images.resolve(registry.image_of(registry.profile(profile)), platform(seen), digest),
            helper=ports.images.resolve(registry.helper, platform(seen), registry.helper.digest),
            weights=ports.hub.resolve(model.repo, model.revision),
            resolved_at=ports.clock.now(),
        )
    except InstallerError as error:
        if not isinstance(error.problem, Unreachable):
            raise
        return _last_sources(profile, digest, home, error)
    home.save_sources(resolved)
    return resolved


def _last_sources(profile: str, digest: str | None, home: Home, unreachable: InstallerError) -> Sources:
    last = home.last_sources(profile)
    if last is None:
        raise unreachable
    if digest is not None and digest != last.image.index_digest:
        raise InstallerError(NotResolvedYet(profile=profile)) from unreachable
    return last

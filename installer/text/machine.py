"""Words for a computer as it was read: cards, driver, engine, memory. Nothing here tells whose computer it is."""

from __future__ import annotations

from installer.domain.facts import Engine, EngineState, Facts, Gpu, GpuMemory, Missing, Nvidia
from installer.domain.memory import budget
from installer.text import names
from installer.text.voice import Voice

Row = tuple[str, str]


def card(facts: Facts, gpu: Gpu, t: Voice) -> str:
    """Return a card with its memory and compute capability, without its serial number."""
    capability = gpu.compute_capability
    shown = "" if isinstance(capability, Missing) else f", CC {capability[0]}.{capability[1]}"
    return f"{gpu.name}, {_memory(facts, gpu, t)}{shown}"


def _memory(facts: Facts, gpu: Gpu, t: Voice) -> str:
    room = budget(facts, gpu)
    if isinstance(gpu.memory, GpuMemory):
        return t.gettext(
            "{free} of {total} free", free=t.gib(gpu.memory.free_bytes), total=t.gib(gpu.memory.total_bytes)
        )
    if room:
        return t.gettext("{free} free, shared with the computer", free=t.gib(room.free_bytes))
    return names.missing(gpu.memory, t)


def driver(nvidia: Nvidia) -> str:
    """Return the driver's version and the newest CUDA that it runs, "" where there is none."""
    if not nvidia.driver_version:
        return ""
    cuda = ".".join(map(str, nvidia.cuda_version or ()))
    return f"{nvidia.driver_version} (CUDA {cuda})"


def engine(seen: Engine) -> str:
    """Return what the container engine calls itself."""
    return f"{seen.operating_system} {seen.version}".strip() or "–"


def rows(facts: Facts, t: Voice) -> list[Row]:
    """Return what a stranger needs to know of a computer to help: no name, serial number, address or folder."""
    host, seen = facts.host, facts.engine
    system = f"{host.system} ({host.architecture})" if host.architecture else host.system
    said = [(t.gettext("System"), f"{system}, WSL2" if facts.behind_wsl2 else system)]
    if host.ram_total_bytes:
        said.append((t.gettext("Memory"), t.gib(host.ram_total_bytes)))
    said += [(t.gettext("Graphics card"), card(facts, gpu, t)) for gpu in facts.nvidia.gpus]
    said.append((t.gettext("NVIDIA driver"), driver(facts.nvidia) or facts.nvidia.state.value))
    said.append(
        (t.gettext("Container engine"), engine(seen) if seen.state is EngineState.RUNNING else seen.state.value)
    )
    said.append(("Compose", facts.compose.version or facts.compose.state.value))
    if seen.memory_bytes:
        said.append((t.gettext("Memory of the engine"), t.gib(seen.memory_bytes)))
    if seen.data_root_free_bytes is not None:
        said.append((t.gettext("Room for images"), t.gb(seen.data_root_free_bytes)))
    if facts.weights_folder.free_bytes is not None:
        said.append((t.gettext("Room for models"), t.gb(facts.weights_folder.free_bytes)))
    return said

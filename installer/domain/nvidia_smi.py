"""What nvidia-smi prints: its table of CSV, and the head of its banner. Pure: bytes in, facts out.

NVML is the better source. This one answers where NVML's library cannot be loaded, and it is what people paste.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from installer.domain.decoding import text_of
from installer.domain.facts import Gpu, GpuMemory, Missing, Nvidia, NvidiaState
from installer.domain.figures import decimal, whole
from installer.domain.units import MIB, MOST

COLUMNS = (
    "index",
    "uuid",
    "name",
    "memory.total",
    "memory.free",
    "memory.used",
    "memory.reserved",
    "compute_cap",
    "driver_version",
    "driver_model.current",
    "mig.mode.current",
)
"""What is asked for, in this order."""

_BANNER = re.compile(r"(?:Driver|KMD) Version:\s*(?P<driver>\d{1,5}\.\d{1,5}(?:\.\d{1,5})?)\b")
_CUDA = re.compile(r"CUDA(?: UMD)? Version:\s*(\d{1,3})\.(\d{1,3})\b")
"""610 and later write "CUDA UMD Version" (vllm issue 47749)."""

_MISSING = {
    "[n/a]": Missing.NOT_SUPPORTED,
    "n/a": Missing.NOT_SUPPORTED,
    "[not supported]": Missing.NOT_SUPPORTED,
    "[insufficient permissions]": Missing.NO_PERMISSION,
    "": Missing.NOTHING_THERE,
    "[unknown error]": Missing.NOTHING_THERE,
    "[gpu is lost]": Missing.NOTHING_THERE,
}


def banner(data: bytes, ansi: str = "cp1252") -> Nvidia | None:
    """Return driver and CUDA version from the banner, whatever its language; None where it is none."""
    text = text_of(data, ansi).text
    cuda, driver = _CUDA.search(text), _BANNER.search(text)
    if cuda is None and driver is None:
        return None
    return Nvidia(
        state=NvidiaState.READ,
        driver_version=driver["driver"] if driver else None,
        cuda_version=(int(cuda[1]), int(cuda[2])) if cuda else None,
    )


def cards(data: bytes, columns: Sequence[str] = COLUMNS, ansi: str = "cp1252") -> tuple[Gpu, ...]:
    """Return the cards of a table without units; a line that has not as many fields as columns is no card."""
    found = []
    for line in text_of(data, ansi).text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == len(columns) and fields[0] != columns[0]:
            found.append(_card(dict(zip(columns, fields, strict=True))))
    return tuple(found)


def driver_version(data: bytes, columns: Sequence[str] = COLUMNS) -> str | None:
    """Return the driver's version from the first line of a table."""
    for line in text_of(data).text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == len(columns) and "driver_version" in columns:
            return fields[columns.index("driver_version")]
    return None


def _card(row: dict[str, str]) -> Gpu:
    memory = _memory(row)
    return Gpu(
        index=whole(row.get("index", "")) or 0,
        uuid=row.get("uuid", ""),
        name=row.get("name", ""),
        memory=memory,
        compute_capability=_capability(row.get("compute_cap", "")),
        driver_model=_text(row.get("driver_model.current", "[n/a]")),
        mig_enabled=row.get("mig.mode.current", "").casefold() == "enabled",
        unified_memory=memory is Missing.NOT_SUPPORTED,
        processes=Missing.NOT_SUPPORTED,
    )


def _memory(row: dict[str, str]) -> GpuMemory | Missing:
    total = _mebibytes(row.get("memory.total", ""))
    if isinstance(total, Missing):
        return total
    used, free = _mebibytes(row.get("memory.used", "")), _mebibytes(row.get("memory.free", ""))
    reserved = _mebibytes(row.get("memory.reserved", ""))
    known_reserved = 0 if isinstance(reserved, Missing) else reserved
    known_used = used if not isinstance(used, Missing) else 0
    return GpuMemory(
        total_bytes=total,
        free_bytes=free if not isinstance(free, Missing) else max(0, total - known_used - known_reserved),
        used_bytes=known_used,
        reserved_bytes=known_reserved,
    )


def _mebibytes(field: str) -> int | Missing:
    """Read a figure, with or without its unit, with a comma or a dot before its decimals."""
    missing = _MISSING.get(field.casefold())
    if missing is not None:
        return missing
    figure = decimal(field.removesuffix("MiB").strip().replace(",", "."))
    if figure is None or not 0 <= figure * MIB <= MOST:
        return Missing.NOTHING_THERE
    return round(figure * MIB)


def _capability(field: str) -> tuple[int, int] | Missing:
    major, minor = map(whole, field.partition(".")[::2])
    if major is not None and minor is not None:
        return major, minor
    return _MISSING.get(field.casefold(), Missing.NOTHING_THERE)


def _text(field: str) -> str:
    return _MISSING.get(field.casefold(), field)

"""From the input of a field case to the product's own types: one function per kind of input, and no judgement in any.

A key that an input lacks is a value that nobody read. Whatever an input holds as text goes the way of a paste.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from installer.adapters import engine_errors, known_failures, nvml, oci, pci
from installer.domain import (
    answers,
    checks,
    compose_reading,
    environment,
    inspection,
    pasted,
    pixels,
    remarks,
    transfer,
)
from installer.domain.answers import Answer
from installer.domain.facts import (
    Engine,
    EngineState,
    Gpu,
    GpuMemory,
    GpuProcess,
    Host,
    Missing,
    Nvidia,
    NvidiaState,
    PciCard,
)
from installer.domain.fingerprints import Situation
from installer.domain.problems import AnyProblem, CauseUnknown, EngineFailed, InstallerError
from installer.domain.units import GIB, MIB
from installer.steps import smoke
from installer.steps.cancel import Cancel
from installer.steps.ports import Delta, ServerAnswer

Input = Mapping[str, Any]
Seen = tuple[AnyProblem, ...]
TABLE = known_failures.table()
TEXTS = (
    "text",
    "stdout",
    "stderr",
    "output",
    "error",
    "warning",
    "log",
    "container_log_tail",
    "exc",
    "exception",
    "df_shm",
)
A_CARD = "NVIDIA RTX"
UNITS = {"_gib": GIB, "_mib": MIB, "_gb": 10**9, "_mb": 10**6, "_bytes": 1}


def look(case: Input) -> Seen:
    """Return what the product says of an input, the gravest first."""
    found = TRANSLATORS.get(case["kind"], anything)(case)
    known = [problem for problem in found if not isinstance(problem, CauseUnknown | EngineFailed)]
    return tuple(dict.fromkeys(known or found))


def words(case: Input, *keys: str) -> str:
    """Return the texts of an input, each on lines of its own."""
    values = (case.get(key) for key in keys or TEXTS)
    return "\n".join(value for value in values if isinstance(value, str) and value)


def paste(text: str | bytes, case: Input, name: str = pasted.PASTED) -> Seen:
    data = text if isinstance(text, bytes) else text.encode()
    ansi = case.get("locale") or "cp1252"
    return pasted.read(data, TABLE, name=name, ansi=ansi, situation=situation(case)).problems if data.strip() else ()


def situation(case: Input) -> Situation:
    known = {name: case[name] for name in ("driver", "weights_gib", "gpu", "image") if name in case}
    capability = case.get("cc")
    if capability:
        known["capability"] = ".".join(map(str, capability))
    return Situation(release=release(str(case.get("image", ""))), platform=platform(case), known=known)


def platform(case: Input) -> Any:
    if case.get("wsl"):
        return "wsl2"
    system = str(case.get("os", "")).casefold()
    return next((name for name in ("windows", "linux", "wsl2") if system.startswith(name)), None)


def release(image: str) -> str:
    """Return the version in an image's name, if one stands there."""
    parts = image.replace(":", " ").replace("-", " ").split()
    return next((part.lstrip("v") for part in parts if part.lstrip("v")[:1].isdigit() and part.count(".") == 2), "")


def log(case: Input) -> Seen:
    return paste(words(case), case)


def docker_error(case: Input) -> Seen:
    problem = engine_errors.problem_of(words(case), engine_errors.Asked(operation="up"))
    nvidia = Nvidia(state=NvidiaState.READ, driver_version=case.get("driver"))
    here = pasted.machine(Engine(state=EngineState.RUNNING), host(case), nvidia)
    return (checks.completed(problem, here), *paste(words(case, "version"), case))


def output(case: Input) -> Seen:
    name = " ".join(case.get("cmd") or ["?"][:1])
    if "timeout_s" in case:
        return pasted.of_cards(nvml.understood(b"", b"", None), Host(system="Linux"))
    raw = case.get("stdout_hex") or case.get("hex") or case.get("stderr_hex")
    data = bytes.fromhex(raw) if raw else words(case).encode()
    return paste(data, case, name)


def outputs(case: Input) -> Seen:
    """Read several programs' answers as a person would paste them: each behind its command."""
    listed = next((value for key, value in case.items() if key != "kind" and isinstance(value, dict | list)), {})
    pairs = listed.items() if isinstance(listed, dict) else ((one.get("cmd"), one) for one in listed)
    session = "\n".join(f"$ {command}\n{said(answer)}" for command, answer in pairs)
    return paste(f"{session}\n{words(case)}", case)


def said(answer: Any) -> str:
    return "\n".join(strings(answer))


def strings(value: Any) -> Iterator[str]:
    """Yield every text in a document, with the names that lead to it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (f"{key}: {inner}",) if isinstance(inner, int | float) else ()
            yield from strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)


def anything(case: Input) -> Seen:
    return paste("\n".join(strings({key: value for key, value in case.items() if key != "kind"})), case)


# --- the driver ------------------------------------------------------------------------------------------------------


def nvml_reading(case: Input) -> Seen:
    """Let the cards come as the child process would write them."""
    cards = [nvml.Card(gpu=gpu(device, index)) for index, device in enumerate(case["devices"])]
    driver = nvml.Driver(version=case.get("driver"), cuda=None)
    lines = b"\n".join(msgspec.json.encode(line) for line in (driver, *cards, nvml.Done()))
    seen = nvml.understood(lines, b"", 0)
    found = pasted.of_cards(seen, host(case))
    if case.get("docker_ps") == []:
        left = [remarks.leftovers(one) for one in seen.gpus]
        found += tuple(one for one in left if one is not None)
    return (*found, *paste(words(case), case))


def host(case: Input) -> Host:
    system = str(case.get("os", "")).split(" ")[0] or "Linux"
    memory = quantity(case, "ram", "ram_total", "system_ram", "host_ram", "mem_total", "memtotal")
    kernel = str(case.get("kernel", ""))
    return Host(system=system, release=kernel, ram_total_bytes=memory, wsl2=bool(case.get("wsl")))


def gpu(device: Input, index: int) -> Gpu:
    raw = device.get("name_hex")
    name = bytes.fromhex(raw).decode(errors="replace") if raw else str(device.get("name", A_CARD))
    capability = device.get("cc") or device.get("compute_capability")
    seen = memory(device)
    return Gpu(
        index=device.get("index", index),
        uuid=device.get("uuid", f"GPU-{index}"),
        name=name,
        memory=seen,
        compute_capability=tuple(capability) if capability else Missing.NOTHING_THERE,
        mig_enabled=is_on(device.get("mig") or device.get("mig_mode") or device.get("mig_enabled")),
        unified_memory=seen is Missing.NOT_SUPPORTED,
        processes=tuple(process(one) for one in device.get("processes", ())),
    )


def is_on(value: Any) -> bool:
    return value is True or str(value).casefold() in ("enabled", "1", "on") or isinstance(value, list | dict)


def memory(device: Input) -> GpuMemory | Missing:
    total = quantity(device, "total", "memory_total", "mem_total")
    if total is None:
        return missing(device)
    used, free = quantity(device, "used", "memory_used"), quantity(device, "free", "memory_free")
    reserved = quantity(device, "reserved") or 0
    known_used = used if used is not None else total - reserved - free if free is not None else 0
    known_free = free if free is not None else total - reserved - known_used
    return GpuMemory(total_bytes=total, free_bytes=known_free, used_bytes=known_used, reserved_bytes=reserved)


def missing(device: Input) -> Missing:
    """Return which of NVML's three states an input writes down, in whatever of its spellings."""
    spelt = json.dumps({key: value for key, value in device.items() if "mem" in key or "total" in key}).casefold()
    plain = spelt.replace("_", " ")
    if "permission" in plain:
        return Missing.NO_PERMISSION
    return Missing.NOT_SUPPORTED if "not supported" in plain or "n/a" in plain else Missing.NOTHING_THERE


def process(one: Input) -> GpuProcess:
    used = quantity(one, "used", "used_memory")
    return GpuProcess(
        pid=one["pid"], name=str(one.get("name") or ""), used_bytes=Missing.NOT_SUPPORTED if used is None else used
    )


def quantity(values: Input, *names: str) -> int | None:
    """Return a figure as bytes, by its name and the unit behind it."""
    for name in names:
        for suffix, factor in UNITS.items():
            value = values.get(name + suffix)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return round(value * factor)
    return None


def smi_table(case: Input) -> Seen:
    return paste(f"{case.get('header', '')}\n{words(case)}", case)


def sysfs(case: Input) -> Seen:
    """Lay the files out in a folder, as the kernel does."""
    files = {key: value for key, value in flat(case) if "/" in key and isinstance(value, str)}
    with tempfile.TemporaryDirectory() as folder:
        for path, value in files.items():
            device, name = place_of(path)
            target = Path(folder, device, *name)
            target.parent.mkdir(parents=True, exist_ok=True)
            if name[-1] == "driver":
                target.symlink_to(Path("/sys/bus/pci/drivers") / Path(value).name)
            else:
                target.write_text(value)
            for file, usual in (("vendor", "0x10de"), ("class", "0x030000")):
                if not (target.parents[len(name) - 1] / file).exists() and file not in {Path(p).name for p in files}:
                    (target.parents[len(name) - 1] / file).write_text(usual)
        cards: tuple[PciCard, ...] = pci.nvidia_cards(Path(folder))
    state = NvidiaState.READ if any(card.driver in ("", "nvidia") for card in cards) else NvidiaState.NO_DRIVER
    found = pasted.of_cards(Nvidia(state=state, gpus=some_card(state)), Host(system="Linux", nvidia_cards=cards))
    return (*found, *paste(words(case), case))


def some_card(state: NvidiaState) -> tuple[Gpu, ...]:
    whole = GpuMemory(total_bytes=8 * GIB, free_bytes=8 * GIB, used_bytes=0)
    card = Gpu(index=0, uuid="GPU-0", name="NVIDIA", memory=whole, compute_capability=(8, 9))
    return (card,) if state is NvidiaState.READ else ()


def place_of(path: str) -> tuple[str, tuple[str, ...]]:
    """Split a path below a device into the device and what lies in it."""
    parts = [part for part in path.split("/") if part]
    at = next((index for index, part in enumerate(parts) if part.count(":") == 2), 0)
    return parts[at], tuple(parts[at + 1 :]) or ("vendor",)


def flat(values: Input) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from flat({inner if "/" in inner else f"{key}/{inner}": one for inner, one in value.items()})
        else:
            yield key, value


# --- the machine -----------------------------------------------------------------------------------------------------


def machine(case: Input) -> Seen:
    """Read a computer, or what somebody measured on one, as facts."""
    wsl2 = bool(case.get("wsl")) or str(case.get("os", "")).startswith("Windows")
    total = quantity(case, "gpu_total", "total", "vram_total", "vram", "card_total")
    free = quantity(case, "free", "gpu_free", "vram_free", "container_free")
    hidden = (quantity(case, "wsl_overhead", "overhead", "hidden") or 0) if wsl2 else 0
    engine_memory = quantity(case, "wsl_mem_total", "mem_total", "docker_mem_total", "ram", "wsl_ram")
    whole = total or hidden * 2
    there = GpuMemory(total_bytes=whole, free_bytes=whole if free is None else free, used_bytes=0) if whole else None
    card = Gpu(
        index=0,
        uuid="GPU-0",
        name=str(case.get("gpu", A_CARD)),
        memory=there or Missing.NOTHING_THERE,
        compute_capability=Missing.NOTHING_THERE,
    )
    engine = Engine(
        state=EngineState.RUNNING,
        os_type="linux",
        runtimes=("nvidia",),
        docker_desktop=wsl2,
        memory_bytes=engine_memory,
    )
    here = Host(system="Windows" if wsl2 else "Linux")
    nvidia = Nvidia(state=NvidiaState.READ, driver_version=case.get("driver"), gpus=(card,))
    found = [*(pasted.of_cards(nvidia, here, engine) if there else ())]
    found += [*checks.hidden_by_wsl2(card.name, hidden), *folder(case), *paste(words(case), case)]
    return tuple(found)


def folder(case: Input) -> Seen:
    speeds = [value for key, value in case.items() if "mb" in key.casefold() and isinstance(value, int | float)]
    path = str(case.get("path") or case.get("mount") or case.get("folder") or "")
    system = str(case.get("fstype") or case.get("fs") or case.get("filesystem") or "")
    slow = remarks.slow_disk(path, system, round(min(speeds) * 10**6) if speeds and not total_only(case) else None)
    return (slow,) if slow else ()


def total_only(case: Input) -> bool:
    return not any("s" in key.casefold().rsplit("mb", 1)[-1] for key in case if "mb" in key.casefold())


def contexts(case: Input) -> Seen:
    info = json.dumps(case.get("docker_info") or {})
    return (*paste(words(case, "text"), case), *paste(info, case), *paste(words(case, "error"), case))


def info(case: Input) -> Seen:
    document = case.get("json") or case.get("info") or {key: value for key, value in case.items() if key != "kind"}
    return (*paste(json.dumps(document), case), *paste(words(case), case))


def inspected(case: Input) -> Seen:
    document = case.get("json") or case.get("inspect") or {}
    one = document[0] if isinstance(document, list) and document else document
    found = list(paste(json.dumps(one), case))
    names = tuple(one.get("RepoDigests") or ())
    pinned = case.get("pinned") or case.get("pinned_digest") or case.get("expected_digest") or one.get("Id")
    other = inspection.other_digest(str(pinned), str(one.get("Id")), names) if names else None
    return (*found, *((other,) if other else ()), *paste(words(case), case))


# --- registry, hub, server -------------------------------------------------------------------------------------------


def registry(case: Input) -> Seen:
    reference = str(case.get("ref") or case.get("image") or "")
    name, _, digest = reference.partition("@")
    if "status" in case:
        body = json.dumps(case.get("body") or {}).encode()
        answer = Answer(status=case["status"], url=f"https://{name}", body=body)
        seen = answers.of_registry(answer, name, str(case.get("tag", "")), digest or None)
        return (seen,) if seen else ()
    index = case.get("index") or case
    digests = tuple(entry["digest"] for entry in index.get("manifests", ()))
    pinned = str(case.get("pinned") or case.get("pinned_digest") or digest)
    pin = inspection.platform_pin(pinned, str(case.get("index_digest", "")), digests)
    try:
        oci.choose(json.dumps(index).encode(), str(case.get("platform") or "linux/amd64"), reference)
    except InstallerError as error:
        return (error.problem,)
    return (*((pin,) if pin else ()), *paste(words(case), case))


def http_answer(case: Input) -> Seen:
    url = str(case.get("url") or "")
    headers = {str(key).lower(): str(value) for key, value in (case.get("headers") or {}).items()}
    body = case.get("body")
    raw = body.encode() if isinstance(body, str) else b"" if body is None else json.dumps(body).encode()
    wait = headers.get("retry-after", "")
    answer = Answer(
        status=case["status"],
        url=url,
        headers=headers,
        body=raw,
        had_token=case.get("whoami_status") == 200 or bool(case.get("token")),
        retry_after_s=int(wait) if wait.isdigit() else None,
    )
    place = urlsplit(url)
    if place.netloc and not place.netloc.startswith(("127.", "localhost")):
        seen = answers.of_hub(answer, answer.host, repository(place.path), "main")
        return (seen, *paste(words(case, "log"), case)) if seen else paste(words(case), case)
    tail = words(case, "container_log_tail", "log", "error")
    seen = answers.of_server(answer, tail, TABLE, situation(case))
    return (seen,) if seen else ()


def repository(path: str) -> str:
    parts = [part for part in path.removeprefix("/api/models").split("/") if part]
    return "/".join(parts[:2])


class Played:
    """A server that gives the answers of an input, one after the other, and the last one for ever."""

    def __init__(self, steps: Sequence[Input]) -> None:
        self.steps = steps
        self.asked = 0

    def answer(self, path: str) -> ServerAnswer:
        mine = [step for step in self.steps if path in str(step.get("request") or step.get("url") or step.get("path"))]
        step = mine[min(self.asked, len(mine) - 1)] if mine else {"status": 200, "body": {}}
        self.asked += "completions" in path
        status = step.get("status")
        silent = not isinstance(status, int) or bool(step.get("timeout") or step.get("timeout_s"))
        body = step.get("body")
        raw = body.encode() if isinstance(body, str) else json.dumps(body or {}).encode()
        seconds = float(str(step.get("timeout_s") or step.get("seconds") or smoke.FIRST_ANSWER_SECONDS))
        return ServerAnswer(status=0 if silent or not isinstance(status, int) else status, body=raw, seconds=seconds)

    def get(
        self, base: str, path: str, timeout_s: float, key: str | None = None, cancel: Cancel | None = None
    ) -> ServerAnswer:
        return self.answer(path)

    def post(
        self,
        base: str,
        path: str,
        body: dict[str, object],
        timeout_s: float,
        key: str | None = None,
        cancel: Cancel | None = None,
    ) -> ServerAnswer:
        return self.answer(path)

    def stream(
        self, base: str, path: str, body: dict[str, object], quiet_s: float, key: str | None, cancel: Cancel
    ) -> Generator[Delta]:
        """No input has an answer that streams."""
        yield from ()


class Still:
    """A clock by which nobody waits."""

    def now(self) -> str:
        return "2026-12-01T00:00:00Z"

    def monotonic(self) -> float:
        return 0.0

    def wait(self, seconds: float, cancel: Cancel) -> None:
        return


def sequence(case: Input) -> Seen:
    steps = next((value for value in case.values() if isinstance(value, list)), [])
    served = Played([step for step in steps if isinstance(step, dict)])
    tail = words(case, "container_log_tail", "log")

    def why(answer: ServerAnswer) -> AnyProblem | None:
        return answers.cause_behind(Answer(status=answer.status, body=answer.body), tail, TABLE)

    target = smoke.Target(base="http://127.0.0.1:8000", model="m")
    report = smoke.run(target, smoke.Start(), served, Still(), None, Cancel(), why, names=smoke.BASIC)
    problem = smoke.problem(report)
    return (*((problem,) if problem else ()), *report.remarks)


# --- files, arguments, the rest --------------------------------------------------------------------------------------


def compose_text(case: Input) -> Seen:
    found = list(compose_reading.of_compose(case["text"]))
    said_of_it = words(case, "error", "warning")
    if said_of_it:
        found.append(engine_errors.problem_of(said_of_it, engine_errors.Asked(operation="check")))
    return tuple(found)


def arguments(case: Input) -> Seen:
    return (*compose_reading.of_arguments(case["argv"]), *paste(words(case), case))


def file_bytes(case: Input) -> Seen:
    data = bytes.fromhex(case["hex"]) if "hex" in case else str(case.get("text", "")).encode()
    found = list(compose_reading.of_file(str(case.get("path", "")), data))
    return (*found, *paste(data, case, str(case.get("path") or pasted.PASTED)), *paste(words(case, "error"), case))


def variables(case: Input) -> Seen:
    return (*environment.flaws(case.get("env") or {}), *paste(words(case), case))


def progress(case: Input) -> Seen:
    what = next((key for key in case if key not in ("kind", "points", "total")), "")
    seen = transfer.stalled(what, case["points"], case["total"])
    return (seen,) if seen else ()


def picture(case: Input) -> Seen:
    """Judge a picture by the figures that an input has of it; what it does not have was not measured."""
    alike = case.get("neighbour_correlation", case.get("neighbor_correlation"))
    transparent = next((case[key] for key in case if "transparent" in key or "alpha_zero" in key), None)
    opaque = next((case[key] for key in case if "opaque" in key), None)
    alpha = case.get("alpha_mean")
    if opaque is None and transparent is not None:
        opaque = 1 - share(transparent)
    if opaque is None and alpha is not None:
        opaque = alpha / 255
    seen = pixels.Statistics(
        width=case.get("width", 0),
        height=case.get("height", 0),
        mean=case.get("mean"),
        deviation=case.get("std"),
        opaque_share=None if opaque is None else share(opaque),
        roughness=None if alike is None else 1 - alike,
        psnr_db=case.get("psnr", case.get("psnr_db")),
    )
    found = pixels.flaw(seen)
    return (*((found,) if found else ()), *paste(words(case), case))


def share(value: float) -> float:
    return value / 100 if value > 1 else float(value)


TRANSLATORS: Mapping[str, Callable[[Input], Seen]] = {
    "log": log,
    "docker_error": docker_error,
    "cmd_output": output,
    "cmd_outputs": outputs,
    "nvml": nvml_reading,
    "nvidia_smi_csv": smi_table,
    "sysfs": sysfs,
    "host": machine,
    "observations": machine,
    "fs_state": machine,
    "docker_contexts": contexts,
    "docker_info": info,
    "docker_inspect": inspected,
    "registry": registry,
    "http_response": http_answer,
    "http_sequence": sequence,
    "compose_yaml": compose_text,
    "argv": arguments,
    "file_bytes": file_bytes,
    "env": variables,
    "progress": progress,
    "image_stats": picture,
}
"""Every other kind of input is a paste of all its texts."""

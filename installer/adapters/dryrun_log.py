"""What a server of a dry run writes while it starts, in the words of vLLM's own log (0.33), and when.

Seconds are simulated ones since the start.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from installer.domain.units import to_gib

LOAD_BYTES_PER_SECOND = 2_000_000_000
SHARDS = 5
SHARE_THAT_FITS = 0.75
"""Which share of the asked context a failing start says that there is room for."""

OVERHEAD_GIB = 2.5
"""What a start of a dry run takes besides weights and cache."""

FAULTS = (
    "container_exited",
    "free_below_utilisation",
    "graphs_out_of_memory",
    "killed",
    "kv_cache_too_small",
    "never_healthy",
    "no_cache_blocks",
    "profiling_out_of_memory",
    "state_blocks_too_few",
    "unknown_argument",
    "weights_out_of_memory",
)
"""How a start can go wrong."""

KILLED = 137
CORE = "(EngineCore pid=113)"
SERVER = "(APIServer pid=1)"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a server was told, and how large its weights and its card are."""

    model: str
    arguments: tuple[str, ...]
    version: str
    weights_bytes: int
    card_bytes: int

    def value(self, flag: str, otherwise: str = "") -> str:
        """Return the value that stands behind a flag."""
        words = self.arguments
        return next((words[at + 1] for at, word in enumerate(words[:-1]) if word == flag), otherwise)

    @property
    def context(self) -> int:
        """Return the longest context in tokens."""
        return int(self.value("--max-model-len", "4096"))

    @property
    def utilisation(self) -> float:
        """Return the share of the card; none without a card."""
        return float(self.value("--gpu-memory-utilization", "0"))

    @property
    def eager(self) -> bool:
        """Say whether there are no CUDA graphs."""
        return "--enforce-eager" in self.arguments


@dataclass(kw_only=True)
class Script:
    """The lines with their time, when the server answers, and when and how it ends by itself, if it does."""

    lines: list[tuple[float, str]] = field(default_factory=list)
    serves_at: float | None = None
    ends_at: float | None = None
    exit_code: int = 0
    out_of_memory: bool = False

    def say(self, after_s: float, line: str) -> None:
        """Write a line so long after the one before."""
        before = self.lines[-1][0] if self.lines else 0.0
        self.lines.append((before + after_s, line))

    def end(self, exit_code: int, *, out_of_memory: bool = False) -> Script:
        """End the process after the last line."""
        self.ends_at = self.lines[-1][0] + 0.5
        self.exit_code, self.out_of_memory = exit_code, out_of_memory
        return self

    def fail(self, line: str) -> Script:
        """End as vLLM does when its engine fails: a traceback, and code 1."""
        self.say(0.2, f"{CORE} ERROR [core.py:1436] EngineCore failed to start.")
        self.say(0.0, f"{CORE} {line}")
        self.say(0.5, f"{SERVER} RuntimeError: Engine core initialization failed. See root cause above.")
        return self.end(1)


def script(asked: Asked, fault: str | None) -> Script:
    """Return what happens after a start; `fault` is one of FAULTS."""
    told = Script()
    told.say(1.0, f"{SERVER} INFO [utils.py:299] vLLM API server version {asked.version}")
    if fault == "unknown_argument":
        told.say(0.5, f"vllm serve: error: unrecognized arguments: {asked.arguments[-2]}")
        return told.end(2)
    told.say(2.0, f"{CORE} INFO [core.py:112] Initializing a V1 LLM engine with config: model='{asked.model}'")
    if fault == "free_below_utilisation":
        return told.fail(_free_below(asked))
    told.say(1.5, f"{CORE} INFO [gpu_model_runner.py:5104] Starting to load model {asked.model}...")
    if fault == "never_healthy":
        return told
    if fault == "killed":
        return told.end(KILLED, out_of_memory=True)
    if fault == "weights_out_of_memory":
        return told.fail(_out_of_memory("2.00 GiB"))
    _load(told, asked)
    if fault == "container_exited":
        return told.fail("RuntimeError: The dry run was asked to let this start fail.")
    if not asked.eager:
        told.say(4.0, f"{CORE} INFO [backends.py:905] Dynamo bytecode transform time: 3.98 s")
        told.say(16.0, f"{CORE} INFO [monitor.py:34] torch.compile takes 19.87 s in total")
    if fault == "profiling_out_of_memory":
        told.say(0.5, f"{CORE} INFO [backends.py:910] Compiling a graph for compile range (1, 2048)")
        return told.fail(_out_of_memory("1.50 GiB"))
    return _cache_and_graphs(told, asked, fault)


def _load(told: Script, asked: Asked) -> None:
    seconds = max(1.0, asked.weights_bytes / LOAD_BYTES_PER_SECOND)
    for shard in range(1, SHARDS + 1):
        percent = 100 * shard // SHARDS
        told.say(
            seconds / SHARDS,
            f"{CORE} Loading safetensors checkpoint shards: {percent}% Completed | {shard}/{SHARDS}",
        )
    told.say(0.2, f"{CORE} INFO [default_loader.py:501] Loading weights took {seconds:.2f} seconds")
    loaded = f"{to_gib(asked.weights_bytes):.2f} GiB memory and {seconds:.6f} seconds"
    told.say(0.3, f"{CORE} INFO [gpu_model_runner.py:5149] Model loading took {loaded}")


def _cache_and_graphs(told: Script, asked: Asked, fault: str | None) -> Script:
    left = max(0.5, to_gib(asked.card_bytes) * asked.utilisation - to_gib(asked.weights_bytes) - OVERHEAD_GIB)
    if fault == "no_cache_blocks":
        return told.fail("ValueError: No available memory for the cache blocks.")
    told.say(3.0, f"{CORE} INFO [gpu_worker.py:759] Available KV cache memory: {left:.2f} GiB")
    if fault == "kv_cache_too_small":
        return told.fail(_cache_too_small(asked, left))
    told.say(0.5, f"{CORE} INFO [kv_cache_utils.py:2327] GPU KV cache size: {2 * asked.context:,} tokens")
    if fault == "state_blocks_too_few":
        sequences = int(asked.value("--max-num-seqs", "1"))
        return told.fail(
            f"ValueError: max_num_seqs ({sequences}) exceeds available Mamba cache blocks ({sequences // 2}). "
            "Each decode sequence requires one Mamba cache block."
        )
    if not asked.eager:
        told.say(1.0, f"{CORE} Capturing CUDA graphs (decode, FULL): 0%")
        if fault == "graphs_out_of_memory":
            return told.fail(_out_of_memory("512.00 MiB"))
        told.say(4.0, f"{CORE} INFO [gpu_model_runner.py:6582] Graph capturing finished in 4 secs, took 0.36 GiB")
    told.say(1.0, f"{SERVER} INFO:     Started server process [1]")
    told.say(0.5, f"{SERVER} INFO:     Application startup complete.")
    told.serves_at = told.lines[-1][0]
    return told


def _free_below(asked: Asked) -> str:
    total = to_gib(asked.card_bytes)
    wanted, free = total * asked.utilisation, total * (asked.utilisation - 0.02)
    return (
        f"ValueError: Free memory on device cuda:0 ({free:.2f}/{total:.2f} GiB) on startup is less than desired GPU "
        f"memory utilization ({asked.utilisation}, {wanted:.2f} GiB). Decrease GPU memory utilization or reduce GPU "
        "memory used by other processes."
    )


def _cache_too_small(asked: Asked, left_gib: float) -> str:
    possible = int(asked.context * SHARE_THAT_FITS)
    return (
        f"ValueError: To serve at least one request with the model's max seq len ({asked.context}), "
        f"({left_gib / SHARE_THAT_FITS:.2f} GiB KV cache is needed, which is larger than the available KV cache memory "
        f"({left_gib:.2f} GiB). Based on the available memory, the estimated maximum model length is {possible}."
    )


def _out_of_memory(tried: str) -> str:
    return f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU 0 has 0.1 GiB free."

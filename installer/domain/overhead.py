"""What vLLM uses besides weights and KV cache: named terms, each a band with the place that it was read from.

A term has a least, a likely and a most. What varies by itself is added in quadrature around the likely sum, as it is
improbable that everything is at its worst at once. Bands were set per kind of term, not per run; the figures behind
them are public logs of vLLM 0.6 to 0.31 on cards of 4 to 96 GB, and vLLM's own code, read in 0.19.1 to 0.32.0:
vllm/v1/worker/gpu_worker.py (what is profiled and when), vllm/v1/worker/gpu/ (the second model runner),
vllm/config/vllm.py (which model takes it) and vllm/utils/mem_utils.py (what counts). All results are bytes.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Sequence

import msgspec

from installer.domain.registry import Architecture
from installer.domain.settings import Settings
from installer.domain.units import GIB, Balance, gib

DEFAULT_SEQUENCES, DEFAULT_BATCHED_TOKENS = 256, 2048
"""What vLLM's API server takes on cards below 70 GiB where no flag says otherwise (0.19.1 to 0.33)."""

LARGE_CARD_BYTES, LARGEST_CARD_BYTES = 70 * GIB, 160 * GIB
LARGE_SEQUENCES, LARGE_BATCHED_TOKENS, LARGEST_BATCHED_TOKENS = 1024, 8192, 16384

MOST_GRAPH_SEQUENCES = 512
"""vLLM captures graphs for twice the sequences at most, and for no more than this (vllm/config/vllm.py)."""

GRAPH_SIZES = (1, 2, 4, *range(8, 256, 8), *range(256, MOST_GRAPH_SEQUENCES + 1, 16))
"""The batch sizes that graphs are captured for; the default of 256 sequences takes all 51 of them."""

GRAPHS_ABOVE_ESTIMATE_BYTES = gib(0.05)
GRAPHS_OF_STATES_ABOVE_ESTIMATE_BYTES = gib(0.42)
"""How far CUDA graphs may exceed vLLM's estimate of them.

Models of attention alone stayed below it (0.09 of 0.13 GiB, 0.24 of 0.58, 0.94 of 1.94, 4.13 of 4.99). With layers
that keep a state it was too low every time: 0.73 for 0.36, 0.49 for 0.40, 2.0 for 1.59, 1.82 for 1.45.
"""

STATE_CHUNK_TOKENS = 64

COLD_COMPILE_BYTES = gib(0.85)
"""What a first start adds to the profile run and a second does not, as the compiler tunes its kernels there.

0.8 to 0.87 GiB of activations against 0.15 (4B, 0.27.1), 0.67 against 0.22 (3B, 0.29), 1.06 for a 0.5B (0.26).
"""

LONG_PROMPT_TOKENS = 32768
"""Before the V1 engine a longer context than this was cut into chunks (vllm/engine/arg_utils.py, 0.6 and 0.7)."""

Release = tuple[int, int]
CHUNKS_OF_2048: Release = (0, 7)
V1_ENGINE: Release = (0, 8)
GRAPHS_COUNTED: Release = (0, 20)
FLASHINFER_SAMPLER: Release = (0, 20)
SECOND_RUNNER: Release = (0, 22)
SECOND_RUNNER_OF_ALL_DENSE: Release = (0, 25)
ALL_CONSUMPTION_COUNTED: Release = (0, 27)
LARGEST_CARDS_TOLD_APART: Release = (0, 28)
SECOND_RUNNER_COUNTS: Release = (0, 29)


class Term(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One named part of the overhead: the least, what is likely, and the most that it takes."""

    name: str
    low_bytes: Balance
    likely_bytes: Balance
    high_bytes: Balance


def default_utilisation(release: str) -> float:
    """Return the share that a server of this release takes where no flag says otherwise (vllm/config/cache.py)."""
    return 0.92 if release_of(release) >= GRAPHS_COUNTED else 0.90


def default_batch(total_bytes: int, release: str, *, a100: bool = False) -> tuple[int, int]:
    """Return the sequences and the tokens of one step that a server takes where no flag says otherwise.

    Source: `get_batch_defaults` in vllm/engine/arg_utils.py; an A100 takes the small ones whatever its size.
    """
    if total_bytes >= LARGEST_CARD_BYTES and release_of(release) >= LARGEST_CARDS_TOLD_APART:
        return LARGE_SEQUENCES, LARGEST_BATCHED_TOKENS
    if total_bytes >= LARGE_CARD_BYTES and release_of(release) >= V1_ENGINE and not a100:
        return LARGE_SEQUENCES, LARGE_BATCHED_TOKENS
    return DEFAULT_SEQUENCES, DEFAULT_BATCHED_TOKENS


@functools.cache
def release_of(release: str) -> Release:
    """Return a release such as "v0.33.0" as two numbers."""
    major, minor, *_ = (*release.removeprefix("v").split("."), "0")
    return int(major), int(minor)


def least(terms: Sequence[Term]) -> int:
    """Return the least that the terms take together; never below nothing."""
    spread = math.hypot(*[term.likely_bytes - term.low_bytes for term in terms])
    return max(0, sum([term.likely_bytes for term in terms]) - math.ceil(spread))


def most(terms: Sequence[Term]) -> int:
    """Return the most that the terms take together."""
    spread = math.hypot(*[term.high_bytes - term.likely_bytes for term in terms])
    return sum([term.likely_bytes for term in terms]) + math.ceil(spread)


def inside_the_share(
    architecture: Architecture, settings: Settings, *, wsl2: bool, graphs_counted: bool
) -> tuple[Term, ...]:
    """Return what vLLM subtracts from its share before the rest becomes KV cache."""
    runners = _runners(settings, wsl2=wsl2, graphs_counted=graphs_counted)
    terms = [_base(settings), _peak(_profiled(architecture, settings, runners))]
    if graphs_counted and not settings.enforce_eager:
        terms.append(_graphs(architecture, settings))
    return tuple(terms)


def beside_the_share(
    architecture: Architecture, settings: Settings, *, wsl2: bool, graphs_counted: bool
) -> tuple[Term, ...]:
    """Return what is taken after the KV cache was made, from what the share leaves free of the card.

    CUDA graphs that are not counted lie here whole; those that are counted were only estimated, and what they exceed
    that by lies here. Then the sampler is warmed up. What the profile run had needed at its peak came out of the share
    and is free again by then, so only what exceeds it is asked of the rest of the card.
    """
    runners = _runners(settings, wsl2=wsl2, graphs_counted=graphs_counted)
    profiled = _profiled(architecture, settings, runners)
    graphs = () if settings.enforce_eager else (_graphs_beside(architecture, settings, graphs_counted=graphs_counted),)
    if runners[-1]:
        taken, freed = (*graphs, _warm_up(architecture, settings)), _peak(profiled)
    else:
        *others, sampler = profiled
        taken, freed = graphs, _beyond("spare", (_peak(tuple(others)),), sampler)
    return (_beyond("graphs" if graphs else "sampler", taken, freed),) if taken else ()


def _graphs_beside(architecture: Architecture, settings: Settings, *, graphs_counted: bool) -> Term:
    if not graphs_counted:
        return _graphs(architecture, settings)
    above = GRAPHS_OF_STATES_ABOVE_ESTIMATE_BYTES if _keeps_state(architecture) else GRAPHS_ABOVE_ESTIMATE_BYTES
    return Term(name="graphs", low_bytes=0, likely_bytes=0, high_bytes=above)


def _warm_up(architecture: Architecture, settings: Settings) -> Term:
    """Return what the second runner's warm-up of the sampler takes, which its profile run left out.

    It makes a copy of the logits in 32 bits, one of their probabilities and two more to cut and to sort them
    (vllm/v1/worker/gpu/warmup.py and sample/sampler.py): a 4B had room for 3.6 copies and died, a Gemma 4 E4B too.
    """
    rows = min(settings.max_num_seqs, settings.max_num_batched_tokens // 2)
    copy = rows * architecture.vocab_size * 4
    return Term(name="sampler", low_bytes=round(3.5 * copy), likely_bytes=round(4.2 * copy), high_bytes=5 * copy)


def _beyond(name: str, taken: tuple[Term, ...], freed: Term) -> Term:
    """Return what several terms take together beyond the room that another one leaves them; never below nothing."""
    given_back = Term(
        name=freed.name,
        low_bytes=-freed.high_bytes,
        likely_bytes=-freed.likely_bytes,
        high_bytes=-freed.low_bytes,
    )
    together = (*taken, given_back)
    return Term(
        name=name,
        low_bytes=least(together),
        likely_bytes=max(0, sum(term.likely_bytes for term in together)),
        high_bytes=max(0, most(together)),
    )


def graphs_may_be_counted(architecture: Architecture, settings: Settings, *, wsl2: bool) -> tuple[bool, ...]:
    """Say whether CUDA graphs come out of vLLM's share; both where the release alone does not tell.

    Up to 0.19 they do not. The second model runner of 0.22 to 0.28 estimates them as nothing. It was the default for
    a few dense families up to 0.24 and for all models without experts and states from 0.25; since 0.29 it is for all,
    and estimates them. Under WSL2 it needs pinned memory.
    """
    release = release_of(settings.release)
    if release < GRAPHS_COUNTED:
        return (False,)
    if settings.second_runner is not None and SECOND_RUNNER <= release < SECOND_RUNNER_COUNTS:
        return (not settings.second_runner,)
    if not SECOND_RUNNER <= release < SECOND_RUNNER_COUNTS or _keeps_state(architecture):
        return (True,)
    if wsl2 and not settings.wsl2_pins_memory:
        return (True,)
    kinds = {group.kind for group in architecture.layer_groups}
    if architecture.experts_per_token:
        return (True, False) if "mla" in kinds else (True,)
    if release < SECOND_RUNNER_OF_ALL_DENSE:
        return (True,) if "sliding" in kinds or settings.reads_media else (True, False)
    return (True, False) if settings.reads_media or wsl2 else (False,)


def _runners(settings: Settings, *, wsl2: bool, graphs_counted: bool) -> tuple[bool, ...]:
    """Say whether it is the second model runner: False, True, or both where nothing tells."""
    release = release_of(settings.release)
    if release < SECOND_RUNNER:
        return (False,)
    if release < SECOND_RUNNER_COUNTS:
        return (not graphs_counted,)
    if settings.second_runner is not None:
        return (settings.second_runner,)
    if wsl2:
        return (False, True) if settings.wsl2_pins_memory else (False,)
    return (True,)


def _keeps_state(architecture: Architecture) -> bool:
    return any(group.kind == "linear" for group in architecture.layer_groups)


def _base(settings: Settings) -> Term:
    """Return what lies outside the tensors: kernels, workspaces, the allocator's leftovers.

    0.01 to 0.35 GiB in public logs up to 0.26. Since 0.27 everything that is gone from the card counts, also what
    loading and the compiler leave reserved: 0.15 to 0.34 GiB in most logs, up to 0.74; more in one of a 14B whose
    weights are not told.
    """
    if release_of(settings.release) < ALL_CONSUMPTION_COUNTED:
        return Term(name="base", low_bytes=gib(0.01), likely_bytes=gib(0.15), high_bytes=gib(0.4))
    if settings.enforce_eager:
        return Term(name="base", low_bytes=gib(0.07), likely_bytes=gib(0.25), high_bytes=gib(0.45))
    return Term(name="base", low_bytes=gib(0.1), likely_bytes=gib(0.4), high_bytes=gib(0.9))


@functools.lru_cache(maxsize=4)
def _profiled(architecture: Architecture, settings: Settings, runners: tuple[bool, ...]) -> tuple[Term, ...]:
    """Return what the profile run goes through, one after the other; kept, as it is asked for twice in a row."""
    parts = (_forward(architecture, settings), _sampler(architecture, settings, runners))
    return (_encoder(architecture), *parts) if settings.reads_media else parts


def _peak(profiled: tuple[Term, ...]) -> Term:
    """Return the most that the profile run needs at once: only the largest part counts, and gives its name."""
    return Term(
        name=max(profiled, key=lambda term: term.likely_bytes).name,
        low_bytes=max(term.low_bytes for term in profiled),
        likely_bytes=max(term.likely_bytes for term in profiled),
        high_bytes=max(term.high_bytes for term in profiled),
    )


def _forward(architecture: Architecture, settings: Settings) -> Term:
    """Return the forward pass of one full batch, 2 bytes an element.

    A pass holds three rows of the feed-forward layer and three of the hidden size at once, to the hundredth in logs
    (2.07 and 2.99 GiB for 20,000 and 29,000 tokens of an 8B, 0.27 for 2048 of a 7B, 0.5 for 8192 of a 1.5B). Every
    active expert adds rows of its own, which its kernels copy once more.
    """
    low, likely, high = _row_elements(architecture)
    tokens = batch_tokens(settings)
    cold = 0
    if not settings.enforce_eager and release_of(settings.release) >= GRAPHS_COUNTED:
        cold = COLD_COMPILE_BYTES
    return Term(
        name="activations",
        low_bytes=round(2 * tokens * low),
        likely_bytes=round(2 * tokens * likely) + cold // 3,
        high_bytes=round(2 * tokens * high) + _chunk_states(architecture, settings) + cold,
    )


def _row_elements(architecture: Architecture) -> tuple[float, float, float]:
    """Return the elements that one token takes at once: the least, what is likely, the most.

    Where the width of the feed-forward layer is not known it is taken for 2.7 (14B) to 5.3 times (7B) the hidden size.
    """
    hidden, width, experts = architecture.hidden_size, architecture.intermediate_size, architecture.experts_per_token
    if not width:
        return hidden * (12 + experts), hidden * (14.5 + 4 * experts), hidden * (20 + 6 * experts)
    if experts:
        expert = 3 * width + hidden
        return (
            3 * hidden + experts * 0.7 * expert,
            3 * hidden + experts * 1.5 * expert,
            4 * hidden + experts * 3 * expert,
        )
    if _keeps_state(architecture):
        return 2 * (width + hidden), 3 * (width + hidden), 1.15 * (3 * width + 4 * hidden)
    return 2.85 * (width + hidden), 3 * (width + hidden), 1.15 * (3 * width + 4 * hidden)


def _chunk_states(architecture: Architecture, settings: Settings) -> int:
    """Return the states that one linear layer keeps during a prefill: one for each chunk of 64 tokens."""
    state = max((group.state_bytes for group in architecture.layer_groups if group.kind == "linear"), default=0)
    return state * batch_tokens(settings) // STATE_CHUNK_TOKENS


def batch_tokens(settings: Settings) -> int:
    """Return the tokens of one step. Before the V1 engine (0.8) a prompt was cut only where the context is long."""
    release = release_of(settings.release)
    if release >= V1_ENGINE:
        return settings.max_num_batched_tokens
    if settings.context > LONG_PROMPT_TOKENS:
        return 512 if release < CHUNKS_OF_2048 else DEFAULT_BATCHED_TOKENS
    return max(settings.max_num_batched_tokens, settings.context)


def _sampler(architecture: Architecture, settings: Settings, runners: tuple[bool, ...]) -> Term:
    """Return the choice of tokens for all sequences at once: copies of the logits, 4 bytes an element.

    Compiled, the first runner took 9.65 copies (three logs of 0.10 to 0.14), about 8 (0.19) and 6.5 to 10 with
    FlashInfer's kernels (since 0.20); eager 1.9 to 3, and 4 where layers keep a state. The second runner does not cut
    the logits in its profile run: half a copy to two. The V0 engine took 9.8 and 12.2, or nearly nothing.
    """
    copy = min(settings.max_num_seqs, settings.max_num_batched_tokens) * architecture.vocab_size * 4
    bands = [_sampler_copies(settings, second=each, states=_keeps_state(architecture)) for each in runners]
    return Term(
        name="sampler",
        low_bytes=round(copy * min(band[0] for band in bands)),
        likely_bytes=round(copy * sum(band[1] for band in bands) / len(bands)),
        high_bytes=round(copy * max(band[2] for band in bands)),
    )


def _sampler_copies(settings: Settings, *, second: bool, states: bool) -> tuple[float, float, float]:
    release = release_of(settings.release)
    if second:
        return 0.5, 1.5, 2.2
    if release < V1_ENGINE:
        return 0.0, 9.8, 12.5
    if settings.enforce_eager:
        return (1.5, 3.0, 4.2) if states else (1.5, 2.2, 3.2)
    return (6.0, 7.5, 10.0) if release >= FLASHINFER_SAMPLER else (7.0, 9.0, 10.0)


def _encoder(architecture: Architecture) -> Term:
    """Return the vision tower's profile run with the largest item, or with as many as one batch holds.

    1.8 to 1.9 GiB for the tower of Qwen3-VL to Qwen3.6 with a picture of 16,384 tokens, in three logs of 0.26 to 0.29:
    four rows of its feed-forward layer for 65,536 patches. Nearly nothing in the first source document's run.
    """
    known = architecture.encoder_bytes
    if not known:
        return Term(name="encoder", low_bytes=gib(0.1), likely_bytes=gib(1.2), high_bytes=gib(2.1))
    return Term(name="encoder", low_bytes=gib(0.1), likely_bytes=round(0.8 * known), high_bytes=round(1.1 * known))


def _graphs(architecture: Architecture, settings: Settings) -> Term:
    """Return the CUDA graphs: a part for the pool and one for each layer and captured size.

    With all 51 sizes 0.4 GiB were logged for 24 layers, 0.52 to 0.86 for 28 to 42, 1.11 to 1.59 for 64; 0.23 and 0.24
    for 32 with the second runner of 0.29 and later; 0.05 to 0.4 with 1 to 8 sequences. With LoRA adapters each is
    captured a second time (`cudagraph_specialize_lora` in vllm/config/compilation.py): 1.28 for 36 layers.
    """
    share = min(1.0, graph_count(settings) / len(GRAPH_SIZES)) * (2 if settings.serves_adapters else 1)
    layers = (sum(group.layers for group in architecture.layer_groups) + architecture.layers_without_cache) * share
    low = 0.004 if release_of(settings.release) >= SECOND_RUNNER_COUNTS else 0.009
    return Term(
        name="graphs",
        low_bytes=gib(0.04 + low * layers),
        likely_bytes=gib(0.06 + 0.0155 * layers),
        high_bytes=gib(0.2 + 0.024 * layers),
    )


def graph_count(settings: Settings) -> int:
    """Return how many sizes vLLM captures: those asked for, or 1, 2, 4 and steps of 8 and 16 up to the limit."""
    if settings.graph_sizes:
        return len(settings.graph_sizes)
    rows = settings.max_num_seqs * (1 + settings.speculative_tokens)
    largest = min(2 * rows, MOST_GRAPH_SEQUENCES, settings.max_num_batched_tokens)
    return bisect.bisect_right(GRAPH_SIZES, largest)

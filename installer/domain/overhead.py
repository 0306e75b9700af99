"""What vLLM uses besides weights and KV cache: named terms, each a band with the place that it was read from.

A term has a least, a likely and a most. What varies by itself is added in quadrature around the likely sum, as it is
improbable that everything is at its worst at once. Bands were set per kind of term, not per run; the figures behind
them are public logs of vLLM 0.6 to 0.31 on cards of 4 to 48 GB. All results are bytes.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Sequence

import msgspec

from installer.domain.registry import Architecture
from installer.domain.settings import Settings
from installer.domain.units import gib

DEFAULT_SEQUENCES, DEFAULT_BATCHED_TOKENS = 256, 2048
"""What vLLM's API server takes on cards below 70 GiB where no flag says otherwise (0.19.1 to 0.33)."""

MOST_GRAPH_SEQUENCES = 512
"""vLLM captures graphs for twice the sequences at most, and for no more than this (vllm/config/vllm.py)."""

GRAPH_SIZES = (1, 2, 4, *range(8, 256, 8), *range(256, MOST_GRAPH_SEQUENCES + 1, 16))
"""The batch sizes that graphs are captured for; the default of 256 sequences takes all 51 of them."""

GRAPHS_ABOVE_ESTIMATE_BYTES = gib(0.37)
"""vLLM estimated 0.36 GiB of CUDA graphs where they took 0.73, and 0.13 where they took 0.09."""

STATE_CHUNK_TOKENS = 64

Release = tuple[int, int]
V1_ENGINE: Release = (0, 8)
GRAPHS_COUNTED: Release = (0, 20)
SECOND_RUNNER: Release = (0, 22)
SECOND_RUNNER_COUNTS: Release = (0, 29)
ALL_CONSUMPTION_COUNTED: Release = (0, 28)


class Term(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One named part of the overhead: the least, what is likely, and the most that it takes."""

    name: str
    low_bytes: int
    likely_bytes: int
    high_bytes: int


def default_utilisation(release: str) -> float:
    """Return the share that a server of this release takes where no flag says otherwise (vllm/config/cache.py)."""
    return 0.92 if release_of(release) >= GRAPHS_COUNTED else 0.90


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
    """Return what vLLM subtracts from its share before the rest becomes KV cache.

    The forward pass and the sampler are profiled one after the other, so that only the larger one counts.
    """
    forward, sampler = _activations(architecture, settings), _sampler(architecture, settings)
    terms = [_base(settings), max(forward, sampler, key=lambda term: term.likely_bytes)]
    if settings.reads_media:
        terms.append(_encoder())
    if graphs_counted and not settings.enforce_eager:
        terms.append(_graphs(architecture, settings, wsl2=wsl2))
    return tuple(terms)


def beside_the_share(
    architecture: Architecture, settings: Settings, *, wsl2: bool, graphs_counted: bool
) -> tuple[Term, ...]:
    """Return what is taken after the KV cache was made, from what the share leaves free of the card.

    CUDA graphs that are not counted lie here whole. Those that are counted were only estimated.
    """
    if settings.enforce_eager:
        return ()
    graphs = _graphs(architecture, settings, wsl2=wsl2)
    if not graphs_counted:
        return (graphs,)
    return (Term(name="graphs", low_bytes=0, likely_bytes=0, high_bytes=GRAPHS_ABOVE_ESTIMATE_BYTES),)


def graphs_may_be_counted(architecture: Architecture, settings: Settings, *, wsl2: bool) -> tuple[bool, ...]:
    """Say whether CUDA graphs come out of vLLM's share; both where the release alone does not tell.

    Up to 0.19 they do not. The second model runner of 0.22 to 0.28 estimates them as nothing; it is the default for
    dense models only, and under WSL2 it does not start before 0.30, as it needs pinned memory.
    """
    release = release_of(settings.release)
    if release < GRAPHS_COUNTED:
        return (False,)
    dense = all(group.kind == "full" for group in architecture.layer_groups) and not architecture.experts_per_token
    if SECOND_RUNNER <= release < SECOND_RUNNER_COUNTS and dense and not wsl2 and not settings.reads_media:
        return (True, False)
    return (True,)


def _base(settings: Settings) -> Term:
    """Return what lies outside the tensors: kernels, workspaces, the allocator's leftovers.

    0.07 to 0.37 GiB in public logs. Since 0.28 everything that is gone from the card counts, also what the compiler's
    warm-up leaves reserved: up to 1.25 GiB.
    """
    compiled = not settings.enforce_eager
    if compiled and release_of(settings.release) >= ALL_CONSUMPTION_COUNTED:
        return Term(name="base", low_bytes=gib(0.1), likely_bytes=gib(0.4), high_bytes=gib(1.2))
    return Term(name="base", low_bytes=gib(0.07), likely_bytes=gib(0.2), high_bytes=gib(0.4))


def _activations(architecture: Architecture, settings: Settings) -> Term:
    """Return the forward pass of one full batch: rows of the hidden size, 2 bytes an element.

    A pass holds three rows of the feed-forward layer and four of the hidden size at once. That layer is 2.7 (14B) to
    5.3 times (7B) as wide as the hidden size, 3.5 times in most models; 0.27 GiB were measured for 2048 tokens of a 7B,
    which are 20 rows. Every active expert adds rows of its own: 35B-A3B used 3 GiB and more with 8192 tokens.
    """
    row = batch_tokens(settings) * architecture.hidden_size * 2
    states = _chunk_states(architecture, settings)
    experts = architecture.experts_per_token
    return Term(
        name="activations",
        low_bytes=row * (12 + experts),
        likely_bytes=round(row * (14.5 + 4 * experts)),
        high_bytes=row * (20 + 6 * experts) + states,
    )


def _chunk_states(architecture: Architecture, settings: Settings) -> int:
    """Return the states that one linear layer keeps during a prefill: one for each chunk of 64 tokens."""
    state = max((group.state_bytes for group in architecture.layer_groups if group.kind == "linear"), default=0)
    return state * batch_tokens(settings) // STATE_CHUNK_TOKENS


def batch_tokens(settings: Settings) -> int:
    """Return the tokens of one step. Before the V1 engine (0.8) a prompt was never cut, so that it is the context."""
    if release_of(settings.release) < V1_ENGINE:
        return max(settings.max_num_batched_tokens, settings.context)
    return settings.max_num_batched_tokens


def _sampler(architecture: Architecture, settings: Settings) -> Term:
    """Return the choice of tokens for all sequences at once: copies of the logits, 4 bytes an element.

    1.7 to 3.5 copies in eager runs (0.5B to 27B); 5.4 to 9 in compiled ones (1.03 to 1.54 GiB for vocabularies of
    152,000 to 248,000 and 256 sequences).
    """
    copy = settings.max_num_seqs * architecture.vocab_size * 4
    low, likely, high = (1.0, 2.0, 4.0) if settings.enforce_eager else (5.0, 7.0, 9.0)
    return Term(
        name="sampler",
        low_bytes=round(copy * low),
        likely_bytes=round(copy * likely),
        high_bytes=round(copy * high),
    )


def _encoder() -> Term:
    """Return the vision tower's profile run with the largest item.

    Nearly nothing in the first source document's run, 0.91 GiB for the 27B of vllm-recipes, and more
    with a Mistral 24B (2.75 GiB for everything).
    """
    return Term(name="encoder", low_bytes=0, likely_bytes=gib(0.5), high_bytes=gib(1.4))


def _graphs(architecture: Architecture, settings: Settings, *, wsl2: bool) -> Term:
    """Return the CUDA graphs: a part for the pool and one for each layer and captured size.

    With all 51 sizes 0.4 GiB were logged for 24 layers, 0.52 to 0.86 for 28 to 42, 1.11 to 1.59 for 64; 0.05 to 0.4
    with 1 to 8 sequences. Under WSL2 models of 8B to 14B needed 1.64 to 1.94 GiB in all, against 1.03 to 1.46 on Linux.
    """
    share = min(1.0, graph_count(settings) / len(GRAPH_SIZES))
    layers = sum(group.layers for group in architecture.layer_groups) * share
    under_wsl2 = share if wsl2 else 0.0
    return Term(
        name="graphs",
        low_bytes=gib(0.05 + 0.011 * layers + 0.2 * under_wsl2),
        likely_bytes=gib(0.1 + 0.015 * layers + 0.4 * under_wsl2),
        high_bytes=gib(0.25 + 0.026 * layers + 0.6 * under_wsl2),
    )


def graph_count(settings: Settings) -> int:
    """Return how many sizes vLLM captures: those asked for, or 1, 2, 4 and steps of 8 and 16 up to the limit."""
    if settings.graph_sizes:
        return len(settings.graph_sizes)
    rows = settings.max_num_seqs * (1 + settings.speculative_tokens)
    largest = min(2 * rows, MOST_GRAPH_SEQUENCES, settings.max_num_batched_tokens)
    return bisect.bisect_right(GRAPH_SIZES, largest)

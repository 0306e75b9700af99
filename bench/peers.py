"""The rules of other tools, as they are: each sees the same weights, cache, total, free memory and share, all in GiB.

Where a rule does not ask for a figure it is not given one. Sources: GPUStack 47277d79 (policies/utils.py), llmfit
1.1.17, kvfit 0.3.0 and modelinfo-cli 1.4.4, and vLLM's own formula with a constant overhead, as web calculators use it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One run as a rule of thumb sees it. `kv` is one sequence of full length."""

    weights: float
    kv: float
    total: float
    free: float
    share: float


def weights_and_a_fifth(q: Question) -> bool:
    return 1.2 * q.weights + 2 <= q.share * q.total and q.free / q.total >= q.share


def weights_and_cache_in_all(q: Question) -> bool:
    return q.weights + q.kv + 0.5 <= q.total


def weights_and_cache_in_share(q: Question) -> bool:
    return q.weights + q.kv <= q.share * q.total


def constant_overhead(q: Question) -> bool:
    return q.free >= q.share * q.total and q.weights + q.kv + 1.2 <= q.share * q.total


RULES: dict[str, Callable[[Question], bool]] = {
    "weights * 1.2 + 2 <= util * total, free gate": weights_and_a_fifth,
    "weights + KV + 0.5 <= total": weights_and_cache_in_all,
    "weights + KV <= util * total": weights_and_cache_in_share,
    "vLLM's formula, overhead 1.2": constant_overhead,
}

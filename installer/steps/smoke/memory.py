"""Check of the card's memory: what was predicted beside what is in use, and whether the cache holds one request."""

from __future__ import annotations

from installer.domain.calibration import read_log
from installer.steps.smoke.asked import Asked, Failed, NotApplicable, figures


def memory(asked: Asked) -> str:
    """Compare; more than was predicted is a figure and no failure, for the server works."""
    logged = read_log(asked.evidence.log())
    if logged.concurrency is not None and logged.concurrency < 1 and logged.context is not None:
        raise Failed(f"the cache holds {logged.kv_tokens} tokens, a request may have {logged.context}")
    used = asked.evidence.used_bytes()
    if used is None and logged.kv_tokens is None:
        raise NotApplicable("memory_unknown")
    return figures(predicted_bytes=asked.target.predicted_bytes, used_bytes=used, cache_tokens=logged.kv_tokens)

"""How often the oracle is right about public runs, beside the rules of other tools on the same rows.

`make bench-fit RUNS=FILE` takes any file of the shape of `bench/data/vram-runs.jsonl`.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

import msgspec

from bench import peers, runs
from bench.models import model_of, weights_of_checkpoint
from installer.domain.kv_cache import kv_bytes_per_sequence, layout
from installer.domain.kv_layers import CannotLayOut
from installer.domain.memory import Fit, Limit, Verdict, agreed, judge_gate, judge_start
from installer.domain.registry import Architecture
from installer.domain.settings import Settings
from installer.domain.units import gib, to_gib

EXCLUDED = {"v111": "its own figures contradict each other"}


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One run with the oracle's word, and what really happened."""

    run: runs.Run
    verdict: Verdict
    limit: Limit
    fit: Fit | None
    ready: bool
    outcome: str

    @property
    def grade(self) -> str:
        if self.verdict is Verdict.TIGHT:
            return "tight"
        if (self.verdict is Verdict.FITS) is self.ready:
            return "right"
        return "false fit" if self.verdict is Verdict.FITS else "false refusal"


def main(argv: list[str]) -> int:
    path = Path(argv[0]) if argv else runs.DATA / "vram-runs.jsonl"
    rows, broken = runs.read_all(path)
    judged, left_out = judged_rows(rows)
    left_out += broken
    for each in judged:
        print(_line(each))
    print("\nnot judged")
    for name, reason in left_out:
        print(f"  {name:<8}{reason}")
    print()
    _print_peers(judged)
    print()
    _print_errors("KV tokens from the logged GiB", kv_token_errors(rows))
    _print_errors("KV cache in GiB, likely against logged", kv_errors(rows))
    _print_errors("weights without the run's own figure", weights_errors(rows))
    print(f"\n{summary(judged)}")
    return 0


def judged_rows(rows: list[dict[str, Any]]) -> tuple[list[Judged], list[tuple[str, str]]]:
    """Ask the oracle about every row that tells enough; return also those that do not, with the reason."""
    judged, left_out = [], []
    for row in rows:
        known = runs.stripped(row)
        reason = EXCLUDED.get(row["id"]) or runs.why_not(known) or _no_outcome(row)
        if reason:
            left_out.append((row["id"], reason))
        else:
            judged.append(ask(runs.translated(known), row))
    return judged, left_out


def _no_outcome(row: dict[str, Any]) -> str | None:
    outcome = row.get("outcome") or ""
    return None if outcome.startswith(("ready", "fail")) else "its outcome is not known"


def ask(run: runs.Run, row: dict[str, Any]) -> Judged:
    fit = oracle(run)
    gates = {judge_gate(settings.utilisation, run.room) for settings in run.settings}
    gate = gates.pop() if len(gates) == 1 else Verdict.TIGHT
    refused = Limit.FREE_MEMORY if gate is Verdict.NO else Limit.WEIGHTS
    return Judged(
        run=run,
        verdict=fit.verdict if fit else gate,
        limit=fit.limit if fit else refused,
        fit=fit,
        ready=row["outcome"].startswith("ready"),
        outcome=row["outcome"],
    )


def oracle(run: runs.Run) -> Fit | None:
    """Ask the product for every value that the run leaves open; None where nothing is known of the model."""
    if run.weights is None or not run.possible:
        return None
    sizes = dict.fromkeys((run.weights.low_bytes, run.weights.high_bytes))
    try:
        return agreed(
            tuple(
                judge_start(architecture, size, settings, run.room)
                for architecture, settings in run.possible
                for size in sizes
            )
        )
    except CannotLayOut:
        return None


def summary(judged: list[Judged]) -> str:
    grades = [each.grade for each in judged]
    return (
        f"fit: judged {len(grades)} right {grades.count('right')} false_fits {grades.count('false fit')} "
        f"false_refusals {grades.count('false refusal')} tight {grades.count('tight')}"
    )


def _line(each: Judged) -> str:
    need = each.fit.estimate if each.fit else None
    figures = (
        f"share {to_gib(each.fit.share_bytes):6.2f} weights {to_gib(need.weights_bytes):6.2f} "
        f"kv {to_gib(need.kv_bytes):5.2f} overhead {to_gib(need.overhead_low_bytes):4.2f}"
        f"..{to_gib(need.overhead_high_bytes):4.2f}"
        if each.fit and need
        else f"{'the gate alone':<61}"
    )
    limit = "" if each.limit is Limit.NONE else each.limit.value
    return f"{each.run.id:<6}{each.verdict.value:<6}{limit:<13}{each.outcome:<20}{each.grade:<14}{figures}"


def _print_peers(judged: list[Judged]) -> None:
    print(f"{'on the same rows':<48}{'judged':>7}{'right':>7}{'false fits':>12}{'false refusals':>16}{'tight':>7}")
    ours = [each.grade for each in judged]
    _print_rule("this oracle", len(ours), [ours.count(g) for g in ("right", "false fit", "false refusal", "tight")])
    for name, rule in peers.RULES.items():
        answers = [(rule(question), each.ready) for each in judged if (question := question_of(each))]
        right = sum(said is ready for said, ready in answers)
        fits = sum(said and not ready for said, ready in answers)
        _print_rule(name, len(answers), [right, fits, len(answers) - right - fits, 0])


def _print_rule(name: str, count: int, figures: list[int]) -> None:
    right, fits, refusals, tight = figures
    print(f"{name:<48}{count:>7}{right:>7}{fits:>12}{refusals:>16}{tight:>7}")


def question_of(each: Judged) -> peers.Question | None:
    """Give the rules the weights, as the oracle knows them; without a model they have nothing to say."""
    run = each.run
    if not run.known or run.weights is None:
        return None
    architecture, settings = run.possible[-1]
    return peers.Question(
        weights=to_gib(run.weights.high_bytes),
        kv=to_gib(kv_bytes_per_sequence(architecture, settings)),
        total=to_gib(run.room.total_bytes),
        free=to_gib(run.room.free_bytes),
        share=settings.utilisation,
    )


# --- errors of the single figures ------------------------------------------------------------------------------------


def kv_token_errors(rows: list[dict[str, Any]]) -> list[tuple[str, float]]:
    """Return how far the tokens of the logged GiB are from the logged tokens, as shares.

    A log tells GiB in hundredths: what that rounding explains is no error.
    """
    found = []
    for row in rows:
        flags = row["flags"]
        plain = not flags.get("speculative") and "turboquant" not in str(flags.get("kv_cache_dtype"))
        if row.get("kv_avail_gib") and row.get("kv_tokens") and model_of(row.get("model")) and plain:
            known = runs.stripped(row) | {"vram_total_gib": row.get("vram_total_gib") or 24}
            releases = runs.releases_of(row.get("vllm")) or (runs.LAST_WITH_OLD_LOG, *runs.UNKNOWN_RELEASE)
            possible = [each for name in releases for each in runs.translated(known | {"vllm": name}).possible]
            found.append((row["id"], min(_token_error(row, *each) for each in possible)))
    return found


def _token_error(row: dict[str, Any], architecture: Architecture, settings: Settings) -> float:
    laid_out = layout(architecture, settings)
    least, most = (laid_out.logged_tokens(gib(row["kv_avail_gib"] + rounding)) for rounding in (-0.005, 0.005))
    logged = row["kv_tokens"]
    return max(0, least - logged, logged - most) / logged


def kv_errors(rows: list[dict[str, Any]]) -> list[tuple[str, float]]:
    """Return how far the likely KV cache is from the logged one, in GiB: the error of the whole overhead."""
    found = []
    for row in rows:
        known = runs.stripped(row)
        if not row.get("kv_avail_gib") or not row.get("model_load_gib") or runs.why_not(known):
            continue
        run = runs.translated(known)
        fit = oracle(run)
        if fit and run.known:
            likely = sum(term.likely_bytes for term in fit.estimate.terms)
            left = to_gib(fit.share_bytes - fit.estimate.weights_bytes - likely)
            found.append((row["id"], abs(left - row["kv_avail_gib"])))
    return found


def weights_errors(rows: list[dict[str, Any]]) -> list[tuple[str, float]]:
    """Return how far a checkpoint's known size, or the upper bound for its kind, is from what was loaded, as shares."""
    found = []
    for row in rows:
        weights = weights_of_checkpoint(row.get("model"), row.get("quant"), runs.cards(row))
        if weights and row.get("model_load_gib"):
            found.append((row["id"], abs(to_gib(weights.high_bytes) / row["model_load_gib"] - 1)))
    return found


def _print_errors(name: str, errors: list[tuple[str, float]]) -> None:
    values = sorted(value for _, value in errors)
    if not values:
        print(f"{name:<42} none")
        return
    p95 = values[min(len(values) - 1, round(0.95 * (len(values) - 1)))]
    worst = max(errors, key=lambda error: error[1])
    exact = sum(value == 0 for value in values)
    print(
        f"{name:<42} n {len(values):<4} exact {exact:<4} median {statistics.median(values):.4f}  p95 {p95:.4f}  "
        f"worst {worst[1]:.4f} ({worst[0]})"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

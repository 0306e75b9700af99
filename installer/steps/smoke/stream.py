"""Check of an answer that streams: when its first token comes, and how fast the rest."""

from __future__ import annotations

from installer.domain.problems import AnswerRefused, InstallerError, NotAnswering
from installer.steps.listening import heard
from installer.steps.smoke.asked import COMPLETIONS, FIRST_ANSWER_SECONDS, Asked, Failed, figures

PROMPT = "Count from 1 to 40, with a comma after each number."
TOKENS = 128


def stream(asked: Asked) -> str:
    """Measure an answer piece by piece; all generated tokens count, those of the thinking too."""
    body = asked.body(PROMPT, TOKENS, stream=True, stream_options={"include_usage": True})
    pieces = asked.server.stream(asked.target.base, COMPLETIONS, body, FIRST_ANSWER_SECONDS, asked.key, asked.cancel)
    try:
        answer = heard(pieces, asked.clock)
    except InstallerError as error:
        problem = error.problem
        if isinstance(problem, NotAnswering):
            asked.silent_seconds = problem.seconds
        said = f"HTTP {problem.status}: {problem.detail}" if isinstance(problem, AnswerRefused) else problem.kind
        raise Failed(said) from error
    if answer.first_token_seconds is None:
        raise Failed(f"no piece of text, finish_reason {answer.finish}")
    return figures(
        first_token_ms=round(1000 * answer.first_token_seconds),
        tokens_per_second=answer.tokens_per_second,
        tokens=answer.generated_tokens,
    )

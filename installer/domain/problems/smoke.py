"""The proof by real requests."""

from __future__ import annotations

from installer.domain.problems.base import Action, Problem


class SmokeProblem(Problem, frozen=True, kw_only=True):
    """The server is up and does not do what it is there for."""

    family = "smoke"
    exit_code = 60
    action = Action.TRY_AGAIN


class SmokeFailed(SmokeProblem, frozen=True, kw_only=True):
    """One or more checks failed; their names, in the order they ran."""

    checks: tuple[str, ...]
    details: tuple[str, ...] = ()

    @property
    def technical(self) -> tuple[str, ...]:
        """Return what each failed check found."""
        return tuple(f"{name}: {found}" for name, found in zip(self.checks, self.details, strict=False))


class NotAnswering(SmokeProblem, frozen=True, kw_only=True):
    """Healthy, but a request gets no answer."""

    seconds: float

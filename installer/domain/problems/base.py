"""What a Problem is, whatever its family."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from installer.domain.one_line import without_halves
from installer.domain.redaction import redacted

if TYPE_CHECKING:
    from installer.domain.problems import AnyProblem


class Action(StrEnum):
    """What a person can do about a Problem; a window draws a button from it."""

    CORRECT_INPUT = "correct_input"
    CHECK_AGAIN = "check_again"
    TRY_AGAIN = "try_again"
    FREE_MEMORY = "free_memory"
    CHOOSE_ANOTHER = "choose_another"
    INSTALL = "install"
    START = "start"
    SIGN_IN = "sign_in"
    CONSENT = "consent"
    REPORT = "report"


class Treatment(StrEnum):
    """What Slipway does about a Problem by itself, before a person is asked."""

    BLOCK = "block"
    """Stop, with cause and remedy."""

    FAIL_FAST = "fail_fast"
    """End a start or a proof that is still running: waiting longer changes nothing."""

    RETRY = "retry"
    """Do the same once more: it passes."""

    ADAPT = "adapt"
    """Change the plan or the file, or go around it: nobody has to do anything."""

    WARN = "warn"
    """Say it and go on."""


def snake_case(name: str) -> str:
    """Return a class name as a JSON kind: `DiskFull` is `disk_full`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Tagged(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=snake_case):
    """A value that says in its JSON which kind it is."""

    @property
    def kind(self) -> str:
        """Return the kind as it is written in JSON."""
        return snake_case(type(self).__name__)


class Problem(Tagged, frozen=True, kw_only=True):
    """A failure or an advice. `exit_code` and `family` belong to the kind, `advice` means that nothing is blocked.

    `treated` is what Slipway does about this kind; where that hangs on the figures, `treatment` is overridden.
    """

    family: ClassVar[str] = "bug"
    exit_code: ClassVar[int] = 1
    action: ClassVar[Action] = Action.REPORT
    advice: ClassVar[bool] = False
    treated: ClassVar[Treatment] = Treatment.BLOCK

    def __post_init__(self) -> None:
        """Keep secrets out, and halves of letters: a path that is not in UTF-8 has some, and no terminal takes them."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            clean = _clean(value)
            if clean != value:
                msgspec.structs.force_setattr(self, name, clean)

    @property
    def treatment(self) -> Treatment:
        """Return what Slipway does about this Problem by itself."""
        if self.advice and self.treated is Treatment.BLOCK:
            return Treatment.WARN
        return self.treated

    @property
    def command(self) -> str | None:
        """Return a command that a person can copy to mend this, or None."""
        return None

    @property
    def technical(self) -> tuple[str, ...]:
        """Return lines for whoever wants to look closer, as they were seen and in no language of ours."""
        detail = getattr(self, "detail", "")
        return tuple(str(detail).splitlines())


def _clean(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_clean, value))
    return redacted(without_halves(value)) if isinstance(value, str) else value


class InstallerError(Exception):
    """Carries a Problem up to the one place that shows it."""

    def __init__(self, problem: AnyProblem) -> None:
        super().__init__(problem.kind)
        self.problem = problem


class Cancelled(BaseException):
    """The person stopped the run. Not an Exception, so that no handler swallows it."""


class Interrupted(Problem, frozen=True, kw_only=True):
    """The person stopped the run."""

    family = "cancelled"
    exit_code = 130
    action = Action.TRY_AGAIN


class Bug(Problem, frozen=True, kw_only=True):
    """A fault of Slipway's own."""

    error: str
    where: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Bug:
        """Name the place and the kind of a fault; its message may hold anything and is not repeated."""
        trace, where = error.__traceback__, ""
        while trace is not None:
            where = f"{PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
            trace = trace.tb_next
        return cls(error=type(error).__name__, where=where)

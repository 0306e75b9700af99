"""A session: one call of the command line, with what every verb needs."""

from __future__ import annotations

import argparse
from functools import cached_property

import msgspec

from installer import doors
from installer.cli.arguments import chosen
from installer.cli.output import Output
from installer.domain import choices as choice_files
from installer.domain.choices import Choices
from installer.domain.facts import Facts
from installer.domain.problems import InstallerError, NotInstalled
from installer.domain.registry import Registry
from installer.steps import read
from installer.steps.cancel import Cancel
from installer.steps.events import Event
from installer.steps.home import Home, StackHome
from installer.steps.job import Job, Secrets
from installer.steps.kept_registry import InForce
from installer.steps.ports import Ports
from installer.steps.run import Run
from installer.text import Text


class Session:
    """Arguments, language, home, registry and doors of one call; each is made when it is first needed."""

    def __init__(self, arguments: argparse.Namespace, output: Output) -> None:
        self.arguments = arguments
        self.output = output
        self.cancel = Cancel()

    @property
    def text(self) -> Text:
        """Return the language of this call."""
        return self.output.text

    @cached_property
    def home(self) -> Home:
        """Return the home of this installation."""
        return doors.home(self.arguments.home)

    @cached_property
    def registry_in_force(self) -> InForce:
        """Return the registry and where it is from; one that has expired is told. Raises InstallerError."""
        found = doors.registry(self.arguments.registry, self.home)
        if found.expired and found.fetched:
            said = self.text.gettext(
                "The registry that was fetched has expired. The one that comes with Slipway is used."
            )
            self.output.aside(said)
        return found

    @property
    def registry(self) -> Registry:
        """Return the registry. Raises InstallerError(MalformedFile, RegistryRecalled)."""
        return self.registry_in_force.registry

    @cached_property
    def choices(self) -> Choices:
        """Return answers and flags together, checked. Raises InstallerError(MalformedFile, BadChoice)."""
        path = self.arguments.answers
        answers = choice_files.from_text(doors.read_text(path), path) if path else Choices()
        choices = chosen(self.arguments, answers)
        choice_files.check(choices)
        return choices

    @cached_property
    def secrets(self) -> Secrets:
        """Return the secrets that were given to this call."""
        given = self.arguments
        return doors.secrets(
            getattr(given, "hf_token_file", None),
            getattr(given, "api_key_file", None),
            ask_store=hasattr(given, "answers"),  # only what takes choices asks the hub
        )

    @cached_property
    def recorded(self) -> Facts | None:
        """Return the recorded machine that was named, or None."""
        path = getattr(self.arguments, "machine", None)
        return doors.machine(path) if path else None

    def installed_stack(self) -> StackHome:
        """Return the stack that was named, before anything else is read.

        Raises InstallerError(NotInstalled, MalformedFile), AlreadyRunning where its first installation is under way.
        """
        stack = self.home.stack(self.arguments.stack)
        try:
            stack.installed()
        except InstallerError as error:
            if isinstance(error.problem, NotInstalled):
                self.home.refuse_if_held()
            raise
        return stack

    def read_what_was_given(self) -> None:
        """Read registry, recorded machine and secrets now. Raises the Problem of the first that cannot be read."""
        _ = self.registry, self.recorded, self.secrets

    @property
    def is_dry_run(self) -> bool:
        """Say whether nothing may be changed."""
        return bool(getattr(self.arguments, "dry_run", False))

    @cached_property
    def ports(self) -> Ports:
        """Return the doors: real ones, or those of a dry run over the recorded machine or this one."""
        if not self.is_dry_run:
            return doors.real(self.secrets)
        recorded = self.recorded or read.facts(doors.real(self.secrets), self.weights_folder)
        return doors.dry_run(recorded, self.registry, self.arguments.dry_run_speed, self.arguments.dry_run_fail)

    @property
    def weights_folder(self) -> str:
        """Return where weights would lie."""
        return self.home.weights_folder(self.choices.folder if hasattr(self.arguments, "answers") else None)

    def facts(self) -> Facts:
        """Return the recorded machine, or read this one."""
        if self.recorded is not None and not self.is_dry_run:
            return self.recorded
        return read.facts(self.ports, self.weights_folder, self.home.calibrations())

    def job(self, stack: StackHome, facts: Facts, *, recorded: bool = True) -> Job:
        """Return a job for one stack whose events are printed, and recorded in its folder."""

        def emit(event: Event) -> None:
            if recorded:
                stack.append(event)
            self.output.event(event)

        patience = getattr(self.arguments, "patience", None)
        return Job(
            ports=self.ports,
            run=Run(emit, self.cancel, self.ports.clock),
            home=stack,
            registry=self.registry,
            facts=facts,
            secrets=self.secrets,
            overwrite=bool(getattr(self.arguments, "overwrite", False)),
            patience_s={} if patience is None else dict.fromkeys(PHASES, patience),
        )


PHASES = ("starting", "weights", "compile", "kv_cache", "graphs", "serving")


def to_plain(value: object) -> object:
    """Return a frozen value as plain JSON values."""
    return msgspec.to_builtins(value)

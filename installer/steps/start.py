"""Starting: files, gate, Compose, and waiting until the server serves, judged by log and state, not by a clock."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import math
import os
import secrets as random
from collections.abc import Iterator
from pathlib import Path

from installer.domain import checks, compose, decoding, diagnosis, remarks
from installer.domain.checks import holders
from installer.domain.facts import CudaMemory, Facts
from installer.domain.fingerprints import Situation
from installer.domain.plan import Plan
from installer.domain.problems import (
    AnyProblem,
    Cancelled,
    CardHeldByStack,
    ContainerNameTaken,
    ContainerNotOurs,
    EditedByHand,
    EngineLost,
    HealthProgramMissing,
    InstallerError,
    NeverHealthy,
    NotEnoughFreeMemory,
    PortTaken,
    Treatment,
)
from installer.domain.redaction import redacted
from installer.domain.units import GB
from installer.steps.cancel import Cancel
from installer.steps.events import Advice, BackedUp, Phase, Step
from installer.steps.home import STACKS, StackHome, back_up, read_bytes, write_atomically
from installer.steps.job import Job
from installer.steps.ports import ContainerState

POLL_SECONDS = 0.5
TAIL_LINES = 400
BOTH_STACKS_FROM_BYTES = 48 * GB
"""From here on two stacks may hold one card at the same time."""

PATIENCE_SECONDS = {
    "starting": 600.0,
    "weights": 900.0,
    "compile": 2700.0,
    "kv_cache": 1200.0,
    "graphs": 1200.0,
    "serving": 300.0,
}
"""How long log and health may stand still in each phase; one public first start compiled for 37 minutes in silence."""

STILL_AFTER_A_CAUSE_SECONDS = 20.0
"""Once the log names a cause that no waiting cures and goes silent, a container that lives on is only stuck."""

HOPELESS = (Treatment.BLOCK, Treatment.FAIL_FAST, Treatment.ADAPT, Treatment.RETRY)
"""What a cause in the log of a start that stands still is treated as; advice is not among it."""


def current_container(plan: Plan, job: Job) -> ContainerState | None:
    """Return the stack's container, if there is one. Raises InstallerError(ContainerNotOurs) for a stranger's."""
    found = job.ports.engine.containers(plan.project)
    stranger = next((container for container in found if not container.fingerprint), None)
    if stranger:
        raise InstallerError(ContainerNotOurs(name=stranger.name))
    return found[0] if found else None


def running(plan: Plan, job: Job) -> ContainerState | None:
    """Return the container if it runs exactly this plan, whether it serves yet or not."""
    container = current_container(plan, job)
    if container is None or container.status != "running" or container.restart_count:
        return None
    return container if container.fingerprint == compose.fingerprint(plan) else None


def serving(plan: Plan, job: Job) -> ContainerState | None:
    """Return the container if it runs exactly this plan and serves."""
    container = running(plan, job)
    return container if container and _is_healthy(container, plan, job) else None


def stop_outdated(plan: Plan, job: Job) -> None:
    """Stop our own container if it runs another plan or comes up again and again: its memory is there to be judged."""
    container = current_container(plan, job)
    if container is None or container.status not in ("running", "restarting") or running(plan, job):
        return
    file = job.home.path(compose.file_name(plan.stack))
    job.run.step(Step.STOP, lambda _, __: job.ports.stack.stop(str(file)))


def start(plan: Plan, job: Job) -> ContainerState:
    """Write the files, pass the gate, start and wait until it serves; what this started is taken down on a failure."""
    write_files(plan, job)
    there = serving(plan, job)
    if there:
        job.run.skip(Step.GATE)
        job.run.skip(Step.START)
        return there
    _pass_gate(plan, job)
    return job.run.step(Step.START, lambda _, cancel: _up(plan, job, cancel))


def write_files(plan: Plan, job: Job) -> None:
    """Write compose file, env file and plan where they differ; a file that was replaced is kept beside it.

    Raises InstallerError(EditedByHand, MalformedFile, NotWritable, DiskFull).
    """
    rendered = compose.render(plan)
    path = job.home.path(rendered.name)
    key = key_for(plan, job)
    env = None if key is None else compose.env_text(key).encode()
    env_path = job.home.path(rendered.env_name)
    text = rendered.text.encode()
    same_file = read_bytes(path) == text and not edited_by_hand(job.home, path, text)
    same_env = env is None or (read_bytes(env_path) == env and _is_private(env_path))
    if same_file and same_env:
        job.run.skip(Step.FILES)
    else:
        job.run.step(Step.FILES, lambda _, __: _replace(path, rendered.text, env_path, env, job))
    job.home.save_plan(plan)


def _replace(path: Path, text: str, env_path: Path, env: bytes | None, job: Job) -> None:
    old = read_bytes(path)
    if old is not None and old != text.encode():
        if edited_by_hand(job.home, path, old) and not job.overwrite:
            raise InstallerError(EditedByHand(path=str(path), diff=difference(old, text)))
        job.run.notice(Step.FILES, BackedUp(path=str(path), backup=str(back_up(path))))
    for created in (path, env_path) if env else (path,):
        job.home.note_created("file", created.name)
    if env is not None:
        write_atomically(env_path, env, mode=0o600)
    write_atomically(path, text)
    write_atomically(_hash_path(path), hashlib.sha256(text.encode()).hexdigest() + "\n")
    job.ports.stack.check(str(path))


def edited_by_hand(home: StackHome, path: Path, content: bytes) -> bool:
    """Say whether a compose file is not the one that we wrote last."""
    known = read_bytes(_hash_path(home.path(path.name)))
    return known is None or known.decode().strip() != hashlib.sha256(content).hexdigest()


def difference(old: bytes, new: str) -> str:
    """Return a unified diff from the file on disk to the one that would replace it."""
    lines = difflib.unified_diff(
        old.decode(errors="replace").splitlines(), new.splitlines(), "on disk", "new", lineterm="", n=2
    )
    return "\n".join(lines)


def _hash_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.sha256")


def _is_private(path: Path) -> bool:
    """Windows has no such bits: there the folder below the user's profile is what keeps others out."""
    return os.name != "posix" or path.stat().st_mode & 0o077 == 0


def key_for(plan: Plan, job: Job) -> str | None:
    """Return the API key: the one that was given, else the one that is there, else a new one."""
    if not plan.needs_key:
        return None
    if job.secrets.api_key is not None:
        return job.secrets.api_key
    text = read_bytes(job.home.path(compose.env_name(plan.stack)))
    known = compose.key_from_env(text.decode(errors="replace")) if text else None
    if known is None:
        known = random.token_urlsafe(32)
    return known


def _pass_gate(plan: Plan, job: Job) -> None:
    """Measure once more right before the start: a window opened meanwhile is enough to fail vLLM's own gate.

    What a killed run left starting has its memory already.
    """
    if plan.gpu is None or running(plan, job):
        job.run.skip(Step.GATE)
        return
    uuid = plan.gpu.uuid

    def measure(_: object, cancel: Cancel) -> None:
        _card_is_ours(plan, job)
        reading = job.ports.engine.probe(plan.helper, uuid, cancel)
        if reading.cuda is not None:
            _check_gate_and_leftovers(plan, job, reading.cuda)

    job.run.step(Step.GATE, measure)


def _check_gate_and_leftovers(plan: Plan, job: Job, cuda: CudaMemory) -> None:
    """Name the workers of a server that is gone, where it is they who hold the memory that is missing."""
    try:
        check_gate(plan, job.facts, cuda)
    except InstallerError:
        gpu = job.facts.gpu(plan.gpu.uuid) if plan.gpu else None
        left = remarks.leftovers(gpu) if gpu else None
        if left is not None and not _any_of_ours_runs(job):
            raise InstallerError(left) from None
        raise


def _any_of_ours_runs(job: Job) -> bool:
    engine = job.ports.engine
    return any(one.status == "running" for stack in STACKS for one in engine.containers(f"slipway-{stack}"))


def check_gate(plan: Plan, facts: Facts, cuda: CudaMemory) -> None:
    """Apply vLLM's own start gate. Raises InstallerError(NotEnoughFreeMemory) with the bytes that are short."""
    needed = math.ceil(cuda.total_bytes * plan.settings.utilisation)
    if cuda.free_bytes >= needed or plan.gpu is None:
        return

    gpu = facts.gpu(plan.gpu.uuid)
    raise InstallerError(
        NotEnoughFreeMemory(
            gpu=plan.gpu.name,
            free_bytes=cuda.free_bytes,
            total_bytes=cuda.total_bytes,
            needed_bytes=needed,
            holders=holders(gpu) if gpu else (),
        )
    )


def _port_is_free(plan: Plan, job: Job) -> None:
    owner = job.ports.machine.port_owner(plan.port)
    ours = current_container(plan, job)
    if owner is not None and not (ours and ours.status in ("running", "restarting")):
        raise InstallerError(PortTaken(port=plan.port, owner=owner))


def _card_is_ours(plan: Plan, job: Job) -> None:
    """Below 48 GB one stack holds the card at a time."""
    total = plan.fit.budget.total_bytes if plan.fit else 0
    other = next(name for name in STACKS if name != plan.stack)
    if total >= BOTH_STACKS_FROM_BYTES or not _shares_the_card(plan, job.home.beside(other).plan()):
        return
    if any(container.status == "running" for container in job.ports.engine.containers(f"slipway-{other}")):
        raise InstallerError(CardHeldByStack(stack=plan.stack, other=other))


def _shares_the_card(plan: Plan, other: Plan | None) -> bool:
    return other is None or (plan.gpu is not None and other.gpu is not None and plan.gpu.uuid == other.gpu.uuid)


def _up(plan: Plan, job: Job, cancel: Cancel) -> ContainerState:
    _port_is_free(plan, job)
    file = str(job.home.path(compose.file_name(plan.stack)))
    job.home.note_created("project", plan.project)
    try:
        _created(file, job, cancel)
        return wait_until_serving(plan, job, cancel)
    except InstallerError:
        _keep_log(plan, job)
        _take_down(file, job)
        raise
    except BaseException:
        _take_down(file, job)
        raise


def _keep_log(plan: Plan, job: Job) -> None:
    """Keep what a server said that did not start: its container is taken down, and its log with it."""
    with contextlib.suppress(InstallerError):
        container = current_container(plan, job)
        if container is not None:
            said = decoding.plain(job.ports.engine.logs(container.id))
            job.home.save_failed_log("\n".join(redacted(line) for line in said.splitlines()) + "\n")


def _created(file: str, job: Job, cancel: Cancel) -> None:
    """Create and start; what a run that was killed left half made under our own name is made anew, once."""
    try:
        job.ports.stack.up(file, cancel)
    except InstallerError as error:
        if not isinstance(error.problem, ContainerNameTaken):
            raise
        job.ports.stack.down(file)
        job.ports.stack.up(file, cancel)


@contextlib.contextmanager
def taken_down_on_cancel(plan: Plan, job: Job) -> Iterator[None]:
    """Take down what was started inside if the person cancels, also between the start and the end of its proof.

    A server that fails its proof stays to be looked at.
    """
    before = running(plan, job)
    try:
        yield
    except Cancelled:
        with contextlib.suppress(InstallerError):
            now = current_container(plan, job)
            if now is not None and (before is None or before.id != now.id):
                _take_down(str(job.home.path(compose.file_name(plan.stack))), job)
        raise


def _take_down(file: str, job: Job) -> None:
    """Remove what this run started; the failure that led here is the one to tell, not one of the clean-up."""
    try:
        job.ports.stack.down(file)
    except InstallerError:
        return


def wait_until_serving(plan: Plan, job: Job, cancel: Cancel) -> ContainerState:
    """Wait until the container is healthy; end at once when it ends, and when nothing moves for too long."""
    clock = job.ports.clock
    watch = _Watch(plan, job)
    while True:
        container = current_container(plan, job)
        if container is None:
            raise InstallerError(EngineLost(operation="start"))
        text = watch.look(container)
        if container.status in ("exited", "dead", "restarting") or container.restart_count:
            raise InstallerError(watch.why_it_ended(container, text))
        if _is_healthy(container, plan, job):
            return container
        watch.give_up_if_hopeless(text)
        clock.wait(POLL_SECONDS, cancel)


def situation_of(plan: Plan) -> Situation:
    """Return what is known of a plan's server when its log is read."""
    return diagnosis.serving(
        release=plan.settings.release,
        wsl2=plan.wsl2,
        weights_bytes=plan.weights_bytes,
        share_bytes=round(plan.fit.budget.total_bytes * plan.settings.utilisation) if plan.fit else None,
    )


class _Watch:
    """What a start has said so far: how far it came, since when it stands still, and why it will not go on."""

    def __init__(self, plan: Plan, job: Job) -> None:
        self._job = job
        self._table = job.registry.known_failures()
        self._situation = situation_of(plan)
        self._log, self._phase = b"", ""
        self._moved_at = job.ports.clock.monotonic()
        self._told_of_health = False
        self._judged = b""

    def look(self, container: ContainerState) -> str:
        """Read the log, tell the phase that it reached, and return it."""
        log = self._job.ports.engine.logs(container.id, TAIL_LINES)
        text = decoding.plain(log)
        if log != self._log:
            self._log, self._moved_at = log, self._job.ports.clock.monotonic()
        reached = diagnosis.phase(text)
        if reached != self._phase and container.status == "running":
            self._phase = reached
            self._job.run.notice(Step.START, Phase(name=reached))
        if container.missing_health_program and not self._told_of_health:
            self._told_of_health = True
            problem = HealthProgramMissing(program=container.missing_health_program)
            self._job.run.notice(Step.START, Advice(problem=problem))
        return text

    def why_it_ended(self, container: ContainerState, log: str) -> AnyProblem:
        """Say why a container ended: the engine's own error first, for then it never ran."""
        refused = self._table.cause(container.error, Situation(origin="engine")) if container.error else None
        found = refused or diagnosis.of_container(
            log,
            container.exit_code,
            self._table,
            out_of_memory=container.out_of_memory,
            host_memory_bytes=self._job.facts.engine.memory_bytes,
            situation=self._situation,
        )
        return checks.completed(found, self._job.facts)

    def give_up_if_hopeless(self, log: str) -> None:
        """End a start that stands still: soon where its log names a cause, else after what its phase may take."""
        still = self._job.ports.clock.monotonic() - self._moved_at
        if still > STILL_AFTER_A_CAUSE_SECONDS and self._judged != self._log:
            self._judged = self._log
            cause = diagnosis.of_log(log, self._table, self._situation)
            if cause is not None and cause.treatment in HOPELESS:
                raise InstallerError(cause)
        reached = diagnosis.phase(log)
        if still > self._job.patience_s.get(reached, PATIENCE_SECONDS[reached]):
            lines = diagnosis.relevant_lines(self._table.without_harmless(log))
            raise InstallerError(NeverHealthy(phase=reached, seconds=round(still), lines=lines))


def _is_healthy(container: ContainerState, plan: Plan, job: Job) -> bool:
    """Trust Docker's word; ask from the host where the image has no health program or that program itself fails."""
    if container.status != "running":
        return False
    if container.health == "healthy":
        return True
    if container.health == "starting":
        return False
    return job.ports.server.get(plan.base, "/health", timeout_s=5.0).status == 200

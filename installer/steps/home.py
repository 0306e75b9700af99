"""The home: where Slipway keeps what it decided, did and created. One installation per home, one run at a time.

```
<home>/chat/plan.json              the last plan, with every digest and argument
<home>/chat/docker-compose.vllm.yml, vllm.env (0600: the key's only place on disk)
<home>/chat/created.json           what this installation created, for uninstall
<home>/chat/smoke.json             the last proof, and of which container
<home>/chat/figures.json           what the last start told of its memory, beside what was predicted
<home>/chat/events.jsonl           what the last runs told
<home>/chat/failed-start.log       what the server said before the last start that failed, without secrets
<home>/wizard.json                 where the wizard was left, and what was chosen so far
<home>/calibrations.json           what the starts on each card taught
<home>/sources/<profile>.json      what the network said last
<home>/models/<repo>/<commit>/     weights, unless they lie elsewhere
```
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
from filelock import FileLock, Timeout

from installer.domain import choices as choice_rules
from installer.domain import plan as plans
from installer.domain.calibration import StartFigures
from installer.domain.choices import ONE_LINE
from installer.domain.facts import Calibration
from installer.domain.plan import Plan
from installer.domain.problems import AlreadyRunning, BadChoice, DiskFull, InstallerError, NotInstalled, NotWritable
from installer.domain.sources import Sources
from installer.domain.strict_json import decoded
from installer.steps.bookmark import Bookmark
from installer.steps.events import Event, Progress
from installer.steps.smoke import SmokeReport

BACKUPS_KEPT = 5
DRAFT = ".draft"
"""How a file ends that is still being written; a dot begins its name."""

V = TypeVar("V")


class Created(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that an installation made: image, weights, volume, project or file, by its name in the world."""

    kind: str
    name: str


def full_path(named: str) -> str:
    """Return the whole path of a folder that a person named, with ~ for their own.

    Raises InstallerError(BadChoice) for the folder of a person whom this computer does not know (`~name`).
    """
    try:
        return str(Path(named).expanduser().absolute())
    except RuntimeError as error:
        raise InstallerError(BadChoice(field="folder", value=named, limit=ONE_LINE)) from error


FAILED_START_LOG = "failed-start.log"


class Home:
    """The folder of one installation."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def models(self) -> Path:
        """Return where weights lie unless the person chose another folder."""
        return self.folder / "models"

    def weights_folder(self, named: str | None) -> str:
        """Return where weights lie: in the folder that a person named, as a whole path, else in the home.

        Raises InstallerError(BadChoice) for the folder of a person whom this computer does not know (`~name`).
        """
        return full_path(named) if named else str(self.models)

    def stack(self, name: str) -> StackHome:
        """Return the part of the home that belongs to one stack."""
        return StackHome(self.folder / name, name)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the home for one run. Raises InstallerError(AlreadyRunning) at once if another holds it."""
        make_folder(self.folder)
        lock = FileLock(self.folder / "lock")
        holder = self.folder / "lock.pid"
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise InstallerError(AlreadyRunning(pid=_read_pid(holder), home=str(self.folder))) from error
        except OSError as error:
            raise _write_failed(self.folder, error) from error
        try:
            self._remove_drafts()
            write_atomically(holder, f"{os.getpid()}\n")
            yield
        finally:
            holder.unlink(missing_ok=True)
            lock.release()

    def refuse_if_held(self) -> None:
        """Raise InstallerError(AlreadyRunning) if a run holds the home now; nothing is written."""
        if not (self.folder / "lock").is_file():
            return
        with contextlib.suppress(OSError):
            try:
                FileLock(self.folder / "lock").acquire(timeout=0).lock.release()
            except Timeout as error:
                pid = _read_pid(self.folder / "lock.pid")
                raise InstallerError(AlreadyRunning(pid=pid, home=str(self.folder))) from error

    def _remove_drafts(self) -> None:
        """Remove what a run that was killed in the middle of a write left behind."""
        for folder in (self.folder, *(path for path in self.folder.iterdir() if path.is_dir())):
            for draft in folder.glob(f".*{DRAFT}"):
                with contextlib.suppress(OSError):
                    draft.unlink()

    def bookmark(self) -> Bookmark | None:
        """Return where the wizard was left, or None; a file that cannot be used is kept aside as `.broken`."""
        path = self.folder / "wizard.json"
        try:
            found = _read(path, Bookmark)
            if found is not None:
                choice_rules.check(found.choices)
        except InstallerError:
            with contextlib.suppress(OSError):
                path.replace(path.with_name(f"{path.name}.broken"))
            return None
        return found

    def save_bookmark(self, bookmark: Bookmark) -> None:
        """Keep where the wizard is. Raises InstallerError(NotWritable or DiskFull)."""
        write_atomically(self.folder / "wizard.json", _json(bookmark))

    def calibrations(self) -> tuple[Calibration, ...]:
        """Return what the starts on this machine taught; a file that cannot be read taught nothing."""
        try:
            return _read(self.folder / "calibrations.json", tuple[Calibration, ...]) or ()
        except InstallerError:
            return ()

    def save_calibrations(self, learnt: tuple[Calibration, ...]) -> None:
        """Keep what the starts on this machine taught."""
        write_atomically(self.folder / "calibrations.json", _json(learnt))

    def save_sources(self, sources: Sources) -> None:
        """Keep what the network said, for a plan that is made offline."""
        write_atomically(self._sources_path(sources.profile), _json(sources))

    def last_sources(self, profile: str) -> Sources | None:
        """Return what the network said last of a profile, or None."""
        return _read(self._sources_path(profile), Sources)

    def _sources_path(self, profile: str) -> Path:
        return self.folder / "sources" / f"{profile}.json"


class StackHome:
    """The files of one stack."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self._journal = threading.Lock()

    @property
    def home(self) -> Home:
        """Return the home that this stack belongs to."""
        return Home(self.folder.parent)

    def beside(self, stack: str) -> StackHome:
        """Return the other stack of the same home."""
        return self.home.stack(stack)

    def plan(self) -> Plan | None:
        """Return the last plan, or None. Raises InstallerError(MalformedFile)."""
        text = read_bytes(self.folder / "plan.json")
        return None if text is None else plans.from_json(text, str(self.folder / "plan.json"))

    def installed(self) -> Plan:
        """Return the last plan. Raises InstallerError(NotInstalled) where there is none."""
        plan = self.plan()
        if plan is None:
            raise InstallerError(NotInstalled(stack=self.name, home=str(self.folder.parent)))
        return plan

    def save_plan(self, plan: Plan) -> None:
        """Keep the plan."""
        write_atomically(self.folder / "plan.json", plans.to_json(plan))

    def proof(self) -> SmokeReport | None:
        """Return the last proof that passed, or None; one that cannot be read proves nothing."""
        try:
            return _read(self.folder / "smoke.json", SmokeReport)
        except InstallerError:
            return None

    def save_failed_log(self, text: str) -> None:
        """Keep what a server said before it failed to start; its container goes."""
        write_atomically(self.folder / FAILED_START_LOG, text)

    def save_proof(self, report: SmokeReport) -> None:
        """Keep a proof that passed."""
        write_atomically(self.folder / "smoke.json", _json(report))

    def figures(self) -> StartFigures | None:
        """Return what the last start told of its memory, or None; a file that cannot be read tells nothing."""
        try:
            return _read(self.folder / "figures.json", StartFigures)
        except InstallerError:
            return None

    def save_figures(self, figures: StartFigures) -> None:
        """Keep what a start told of its memory."""
        write_atomically(self.folder / "figures.json", _json(figures))

    def created(self) -> tuple[Created, ...]:
        """Return what this installation made, oldest first."""
        return _read(self.folder / "created.json", tuple[Created, ...]) or ()

    def note_created(self, kind: str, name: str) -> None:
        """Write down a thing before it is made: a kill in between leaves it findable."""
        made = Created(kind=kind, name=name)
        with self._journal:  # image and weights are fetched side by side
            known = self.created()
            if made not in known:
                write_atomically(self.folder / "created.json", _json((*known, made)))

    def begin_record(self) -> None:
        """Begin a new record of events and keep the one before."""
        make_folder(self.folder)
        record = self.folder / "events.jsonl"
        if record.exists():
            with _writing(record):
                record.replace(self.folder / "events.previous.jsonl")

    def append(self, event: Event) -> None:
        """Add an event to the stack's record; progress is left out, it would be most of it.

        Where the stack is no more, as at the end of an uninstall, nothing is recorded.
        """
        if isinstance(event, Progress) or not self.folder.is_dir():
            return
        with _writing(self.folder), (self.folder / "events.jsonl").open("ab") as record:
            record.write(msgspec.json.encode(event) + b"\n")

    def path(self, name: str) -> Path:
        """Return the path of one file of this stack."""
        return self.folder / name


def make_folder(folder: Path) -> None:
    """Create a folder and its parents. Raises InstallerError(NotWritable or DiskFull)."""
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)


def write_atomically(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file so that a reader sees the old content or the new, also after a power cut.

    Raises InstallerError(NotWritable or DiskFull); the old content stays then.
    """
    data = content.encode() if isinstance(content, str) else content
    make_folder(path.parent)
    with _writing(path):
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=DRAFT)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), mode)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


def back_up(path: Path) -> Path:
    """Keep a copy of a file beside it under a number, the newest being 1, five at most."""

    def numbered(number: int) -> Path:
        return path.with_name(f"{path.name}.{number}.bak")

    with _writing(path):
        for number in range(BACKUPS_KEPT - 1, 0, -1):
            if numbered(number).exists():
                numbered(number).replace(numbered(number + 1))
    write_atomically(numbered(1), path.read_bytes(), mode=path.stat().st_mode & 0o777)
    return numbered(1)


def read_bytes(path: Path) -> bytes | None:
    """Return a file's content, or None where there is none. Raises InstallerError(NotWritable) if it is closed."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InstallerError(NotWritable(path=str(path), reason=error.strerror or "")) from error


def _read(path: Path, kind: type[V]) -> V | None:
    text = read_bytes(path)
    return None if text is None else decoded(text, kind, str(path))


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _read_pid(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut; Windows has no such call and needs none."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    with contextlib.suppress(OSError):
        os.fsync(descriptor)
    os.close(descriptor)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _write_failed(path, error) from error


def _write_failed(path: Path, error: OSError) -> InstallerError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InstallerError(DiskFull(where=str(path), needed_bytes=None, free_bytes=None))
    return InstallerError(NotWritable(path=str(path), reason=error.strerror or type(error).__name__))

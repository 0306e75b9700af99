"""The token in the system's store: the real keyring package over stores that keep, refuse, or are not there."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail, null
from keyring.errors import KeyringLocked, PasswordDeleteError

from installer import doors
from installer.domain.problems import BadChoice, BadToken, InstallerError, NoTokenStore
from tests.adapters.engine_kit import problem_in

TOKEN = "hf_aTokenThatIsKept"


class InMemory(KeyringBackend):
    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError("not found")


class OfItsOwnKind(InMemory):
    """A store behind which something broke that keyring does not know."""

    def set_password(self, service: str, username: str, password: str) -> None:
        raise LookupError(password)


class Locked(InMemory):
    def get_password(self, service: str, username: str, *_: str) -> str | None:
        raise KeyringLocked(f"{service} {TOKEN}")

    set_password = delete_password = get_password  # type: ignore[assignment]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemory]:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    before = keyring.get_keyring()
    backend = InMemory()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


def test_a_token_is_kept_given_out_replaced_and_forgotten(store: InMemory) -> None:
    doors.store_token(f" {TOKEN}\n")
    assert list(store.kept.values()) == [TOKEN]
    assert doors.secrets(None, None, ask_store=True).hf_token == TOKEN
    assert doors.secrets(None, None, ask_store=False).hf_token is None
    doors.store_token("hf_another")
    assert doors.secrets(None, None, ask_store=True).hf_token == "hf_another"
    assert doors.forget_token() is True
    assert doors.forget_token() is False
    assert doors.secrets(None, None, ask_store=True).hf_token is None


def test_what_is_no_token_is_not_kept(store: InMemory) -> None:
    assert isinstance(problem_in(lambda: doors.store_token("hf_with a space")), BadToken)
    assert isinstance(problem_in(lambda: doors.store_token(" \n")), BadChoice)
    assert store.kept == {}


@pytest.mark.parametrize(
    ("backend", "state"),
    [(fail.Keyring(), "none"), (null.Keyring(), "none"), (Locked(), "refused"), (OfItsOwnKind(), "refused")],
)
def test_a_session_without_a_store_says_so_and_works_without(
    store: InMemory, backend: KeyringBackend, state: str
) -> None:
    keyring.set_keyring(backend)
    with pytest.raises(InstallerError) as caught:
        doors.store_token(TOKEN)
    assert caught.value.problem == NoTokenStore(state=state)
    assert TOKEN not in str(caught.value)
    assert doors.secrets(None, None, ask_store=True).hf_token is None


def test_without_the_package_it_is_said_how_to_get_it(store: InMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    for work in (lambda: doors.store_token(TOKEN), doors.forget_token):
        problem = problem_in(work)
        assert problem == NoTokenStore(state="not_installed")
        assert problem.command == 'pip install "slipway[keyring]"'
    assert doors.secrets(None, None, ask_store=True).hf_token is None

"""What registry and hub share: waiting times that a host names, which host is this computer, what may be shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
import requests

from installer.adapters import http
from installer.domain import addresses


def answer(**headers: str) -> requests.Response:
    made = requests.Response()
    made.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    return made


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry_After": "120"}, 120),
        ({"Retry_After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"RateLimit": '"api";r=0;t=55'}, 55),
        ({"Retry_After": "3", "RateLimit": '"api";r=0;t=55'}, 3),
        ({"Retry_After": "soon"}, None),
        ({}, None),
    ],
)
def test_how_long_a_host_asks_to_wait(headers: dict[str, str], seconds: int | None) -> None:
    assert http.retry_after(answer(**headers)) == seconds


def test_a_date_is_a_waiting_time_too() -> None:
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert http.retry_after(answer(Retry_After=in_a_minute)) in range(57, 62)


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1:5000", True), ("localhost", True), ("[::1]:5000", True), ("127.8.8.8", True),
        ("10.0.0.1", False), ("localhost.example.org", False), ("registry-1.docker.io", False),
    ],
)  # fmt: skip
def test_which_host_is_this_computer(host: str, here: bool) -> None:
    assert http.is_loopback(host) is here


def test_what_is_shown_of_an_address_holds_no_signature_and_no_password() -> None:
    assert addresses.shown("https://me:secret@cdn.example/a?X-Signature=s") == "https://cdn.example/a"


def test_a_proxys_password_is_in_no_problem() -> None:
    session = http.new_session("https://example.org")
    session.proxies = {"https": "http://me:secret@127.0.0.1:9"}
    with pytest.raises(requests.RequestException) as raised:
        session.get("https://example.org", timeout=2)
    session.close()
    assert "secret" not in repr(http.problem_of(raised.value, "https://example.org"))

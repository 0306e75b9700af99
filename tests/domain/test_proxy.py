"""What may be shown of a proxy, and what is said where only one side has one."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from installer.domain import facts as fact_files
from installer.domain import proxy
from installer.domain.facts import Facts, Proxy
from installer.domain.problems import EngineWithoutProxy, LoopbackThroughProxy, ProxyInEngineOnly
from tests.builders import MACHINES, recorded

OURS = Proxy(http="http://proxy.corp:3128", https="http://proxy.corp:3128")
NONE = Proxy()
FORWARDER = Proxy(http="http.docker.internal:3128", https="http.docker.internal:3128")


def machine(here: Proxy, there: Proxy, name: str = "rtx-5090-linux") -> Facts:
    seen = recorded(name)
    return msgspec.structs.replace(
        seen,
        host=msgspec.structs.replace(seen.host, proxy=here),
        engine=msgspec.structs.replace(seen.engine, proxy=there),
    )


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("", ""),
        ("proxy.corp:3128", "proxy.corp:3128"),
        ("http://proxy.corp:3128/", "http://proxy.corp:3128"),
        ("http://user:secret@proxy.corp:3128", "http://proxy.corp:3128"),
        ("user:secret@proxy.corp:3128", "proxy.corp:3128"),
        ("socks5h://us@er:se://cret@[::1]:1080", "[::1]:1080"),
        ("http://user:sec#ret/?@proxy.corp:3128/path?token=secret", "http://proxy.corp:3128"),
    ],
)
def test_name_and_password_are_cut(url: str, shown: str) -> None:
    assert proxy.without_credentials(url) == shown


@given(st.text(st.characters(exclude_characters="h", exclude_categories=["Cs"]), max_size=20))
def test_no_password_is_ever_shown(password: str) -> None:
    shown = proxy.without_credentials(f"http://user:{password}SECRET@host:1")
    assert "SECRET" not in shown
    assert shown.endswith("host:1")


SIDES = {
    "neither": (NONE, NONE, ()),
    "both": (OURS, OURS, ()),
    "only here": (OURS, NONE, (EngineWithoutProxy(proxy=OURS.https),)),
    "only there": (NONE, OURS, (ProxyInEngineOnly(proxy=OURS.https),)),
    "a forwarder that is always there": (OURS, FORWARDER, ()),
    "a forwarder and none here": (NONE, FORWARDER, ()),
}


@pytest.mark.parametrize("case", SIDES)
def test_a_proxy_on_one_side_only_is_said(case: str) -> None:
    here, there, expected = SIDES[case]
    assert proxy.advice(machine(here, there)) == expected
    assert all(problem.advice for problem in expected)


def test_a_docker_that_does_not_run_is_not_blamed() -> None:
    assert proxy.advice(machine(OURS, NONE, "engine-down")) == ()


def test_docker_desktop_has_a_place_of_its_own_for_it() -> None:
    (said,) = proxy.advice(machine(OURS, NONE, "rtx-5090-wsl2"))
    assert said == EngineWithoutProxy(proxy=OURS.https, docker_desktop=True)


def test_a_loopback_that_goes_through_the_proxy_is_said() -> None:
    through = msgspec.structs.replace(OURS, reaches_loopback=True, no_proxy=".corp")
    assert proxy.advice(machine(through, OURS)) == (LoopbackThroughProxy(proxy=OURS.http, no_proxy=".corp"),)


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_that_was_recorded_before_is_still_read_and_gets_no_advice(name: str) -> None:
    assert proxy.advice(recorded(name)) == ()


def test_proxies_travel_with_a_recorded_machine() -> None:
    seen = machine(OURS, FORWARDER)
    assert fact_files.from_json(msgspec.json.encode(fact_files.to_json(seen))) == seen

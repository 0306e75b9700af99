"""The proxies of this user, read as requests reads them, and never with a name or a password."""

from __future__ import annotations

import pytest

from installer.adapters import proxies
from installer.domain.facts import Proxy

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def _no_proxy_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


SET = {
    "nothing": ({}, Proxy(reaches_loopback=False)),
    "one for https": (
        {"HTTPS_PROXY": "http://user:p%40ss@proxy.corp:3128/"},
        Proxy(https="http://proxy.corp:3128", reaches_loopback=False),
    ),
    "one for all": (
        {"all_proxy": "socks5h://proxy.corp:1080"},
        Proxy(http="socks5h://proxy.corp:1080", https="socks5h://proxy.corp:1080", reaches_loopback=True),
    ),
    "no exceptions": (
        {"http_proxy": "proxy.corp:3128", "no_proxy": ".corp"},
        Proxy(http="proxy.corp:3128", no_proxy=".corp", reaches_loopback=True),
    ),
    "the loopback excepted": (
        {"http_proxy": "http://proxy.corp:3128", "no_proxy": "localhost,127.0.0.1"},
        Proxy(http="http://proxy.corp:3128", no_proxy="localhost,127.0.0.1", reaches_loopback=False),
    ),
    "everything excepted": (
        {"https_proxy": "http://proxy.corp:3128", "no_proxy": "*"},
        Proxy(no_proxy="*", reaches_loopback=False),
    ),
    "the hub excepted": (
        {"https_proxy": "http://proxy.corp:3128", "no_proxy": "huggingface.co"},
        Proxy(no_proxy="huggingface.co", reaches_loopback=False),
    ),
}


@pytest.mark.parametrize("case", SET)
def test_what_is_in_force_for_the_weights_is_told(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variables, expected = SET[case]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxies.ours() == expected

"""No secret reaches a log line or a message to people, however it is written."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest
from django.urls import URLResolver, get_resolver

from labsite import logs
from labsite.redact import hide_secrets

TOKEN = f"lab_{'Ab3-_' * 8}xyz"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Authorization: Bearer s3cret", id="header"),
        pytest.param("authorization=Basic s3cret==", id="basic"),
        pytest.param("https://me:s3cret@host/x failed", id="url"),
        pytest.param("https://:s3cret@host/x failed", id="url without a name"),
        pytest.param("https://s3cret@host/x failed", id="url with a bare token"),
        pytest.param("https://me:a@s3cret@host/x", id="password with an at"),
        pytest.param("https://me:a/s3cret@host/x", id="password with a slash"),
        pytest.param("https://me:a/b@s3cret@host/x", id="password with both"),
        pytest.param('{"token": "s3cret", "name": "x"}', id="json"),
        pytest.param("{'password': 'two s3cret words'}", id="repr"),
        pytest.param("LAB_SECRET_KEY=s3cret", id="setting"),
        pytest.param("postgres:///db?password=s3cret", id="query"),
        pytest.param("GET /invite/4/s3cret/", id="invite"),
        pytest.param("the bearer s3cret-of-some-length came", id="bearer alone"),
    ],
)
def test_a_secret_is_hidden(text: str) -> None:
    assert "s3cret" not in hide_secrets(text)
    assert "[hidden]" in hide_secrets(text)


def test_our_own_tokens_are_known_anywhere() -> None:
    assert hide_secrets(f"asked with {TOKEN}!") == "asked with lab_[hidden]!"


def test_every_address_that_is_a_secret_is_hidden() -> None:
    """Whatever has a token in its path: whoever reads the log could use it."""
    found = [route for route in _routes(get_resolver()) if "token>" in route]
    assert len(found) >= 3
    for route in found:
        address = "/" + re.sub(r"<[^>]+>", "7", re.sub(r"<[^>]*token>", "s3cret", route))
        assert "s3cret" not in hide_secrets(f'"GET {address} HTTP/1.1" 200'), route


def _routes(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for one in resolver.url_patterns:
        route = before + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from _routes(one, route)
        else:
            yield route


@pytest.mark.parametrize(
    "text",
    [
        "https://forge.example/@scope/pkg is unknown",
        "mail to anna@example.org",
        "password authentication failed for user anna",
        "the token is revoked",
        "cookie lab_session is missing",
        "run 7 of https://forge.example/shop.git died",
    ],
)
def test_other_words_stay(text: str) -> None:
    assert hide_secrets(text) == text


def test_a_log_line_hides_what_its_extras_hold() -> None:
    logger = logging.getLogger("test")
    event = {
        "event": "x",
        "argv": ["git", "https://me:s3cret@host"],
        "headers": {"token": "s3cret"},
    }
    event |= {"count": 3, "gone": None}
    told = logs._redact(logger, "info", event)
    assert "s3cret" not in str(told)
    assert told["count"] == 3
    assert told["gone"] is None

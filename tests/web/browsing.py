"""A real browser for page tests. Each test gets its own context, logged in, and fails on console errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, Page

from tests.chromium import browser

__all__ = ["OpenPage", "browser", "open_page"]

# The test server of Django speaks no WebSocket, and refusals are what some tests are about.
EXPECTED = ("WebSocket", "ws:error", "the server responded with a status of", "ERR_", "htmx:error")

OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, live_server: Any) -> Iterator[OpenPage]:
    """Opens a path as a user, in a context of its own: `open_page("/", anna, width=390)`."""
    errors: list[str] = []
    contexts = []

    def open_as(
        path: str, user: User, *, width: int = 1440, clock: bool = False, **options: Any
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, base_url=live_server.url, **options
        )
        contexts.append(context)
        client = Client()
        client.force_login(user)
        name = django_settings.SESSION_COOKIE_NAME
        context.add_cookies(
            [{"name": name, "value": client.cookies[name].value, "url": live_server.url}]
        )
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        if clock:
            page.clock.install()
        page.goto(path)
        return page

    yield open_as
    for context in contexts:
        context.close()
    assert [error for error in errors if not any(known in error for known in EXPECTED)] == []

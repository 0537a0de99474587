"""A real browser for page tests. Each test gets its own context, logged in, and fails on console errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, Page

from tests.fakes import START
from tests.patience import BROWSER_PATIENCE

# The test server of Django speaks no WebSocket, and refusals are what some tests are about.
EXPECTED = ("WebSocket", "ws:error", "the server responded with a status of", "ERR_", "htmx:error")

OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, page_server: Any) -> Iterator[OpenPage]:
    """Opens a path as a user, in a context of its own: `open_page("/", anna, width=390)`.

    With `clock=True` the page's time stands still until the test moves it on (`page.clock.run_for`):
    nothing lapses, fades or refreshes meanwhile, however slow the machine is.
    """
    errors: list[str] = []
    contexts = []

    def open_as(
        path: str, user: User, *, width: int = 1440, clock: bool = False, **options: Any
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            base_url=page_server.url,
            **{"service_workers": "block", **options},
        )
        contexts.append(context)
        client = Client()
        client.force_login(user)
        name = django_settings.SESSION_COOKIE_NAME
        context.add_cookies(
            [{"name": name, "value": client.cookies[name].value, "url": page_server.url}]
        )
        page = context.new_page()
        page.set_default_timeout(BROWSER_PATIENCE)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        if clock:
            page.clock.install(time=START - timedelta(days=1))
            page.clock.pause_at(START)
        page.goto(path)
        return page

    yield open_as
    for context in contexts:
        context.close()
    assert [error for error in errors if not any(known in error for known in EXPECTED)] == []

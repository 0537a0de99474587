"""A real browser in front of the served product."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.patience import BROWSER_PATIENCE
from tests.web.daphne_fixture import Served

Tab = Callable[..., Page]


@pytest.fixture
def tab(browser: Browser, served: Served) -> Iterator[Tab]:
    """`tab(path, cookie=…)`: a page in a browser profile of its own.

    What the browser complains about on its console is in `page.complaints`.
    """
    profiles: list[BrowserContext] = []

    def go(path: str = "/", cookie: str = "", **options: object) -> Page:
        # A service worker asks for pages where `page.route` does not see it; tests of it allow it.
        options = {"service_workers": "block", **options}
        profile = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        profiles.append(profile)
        if cookie:
            profile.add_cookies(served.browser_cookies(cookie))
        page = profile.new_page()
        page.set_default_timeout(BROWSER_PATIENCE)
        page.complaints = []
        page.on(
            "console",
            lambda message: (
                page.complaints.append(message.text) if message.type == "error" else None
            ),
        )
        page.goto(f"{served.base_url}{path}")
        return page

    yield go
    for profile in profiles:
        profile.close()

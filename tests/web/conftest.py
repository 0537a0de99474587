"""Fixtures of the page tests."""

from __future__ import annotations

from tests.web.browser_fixture import tab
from tests.web.browsing import browser, open_page
from tests.web.daphne_fixture import prepared_state, served
from tests.web.live_fixture import live_server
from tests.web.people import anna, vera

__all__ = ["anna", "browser", "live_server", "open_page", "prepared_state", "served", "tab", "vera"]

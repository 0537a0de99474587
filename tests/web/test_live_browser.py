"""What an open page makes of bad moments and of news, in a real browser before real daphne.

One server for all of them: each is at home with what the ones before left behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.web.browser_fixture import Tab
from tests.web.daphne_fixture import Served, serving

LIVE = "#link-state:has-text('live')"
EXPIRE = "from django.contrib.sessions.models import Session\nSession.objects.all().delete()"
PROJECT = """
from datetime import UTC, datetime
from trackers.builtin import store
Settings.objects.update_or_create(pk=1, defaults={"refresh_seconds": 1})
project = Project.objects.create(name="demo", slug="demo", state="ready", source="/x", tracker="builtin",
                                 tracker_root=store.create_root("demo"), created_at=datetime.now(UTC))
result = project.pk
"""


@pytest.fixture(scope="module")
def served(prepared_state: Path) -> Iterator[Served]:
    with serving(prepared_state) as made:
        yield made


@pytest.fixture(scope="module")
def project(served: Served) -> int:
    """A project with labsite's own tracker, on pages that refresh each second."""
    return int(served.do(PROJECT))


def test_a_log_in_that_expired_is_made_again_on_the_page_and_what_was_typed_is_kept(
    served: Served, tab: Tab, project: int
) -> None:
    page = tab(f"/projects/{project}/issues/new", served.cookie())
    page.wait_for_selector(LIVE)
    page.fill("#title", "Half an issue")
    page.fill("#body", "written with care")
    served.do(EXPIRE)
    banner = page.locator("#banner")
    expect(banner).to_contain_text("You are logged out. What you typed on this page is kept")
    expect(page.locator("#link-state")).to_have_text("logged out")
    assert page.input_value("#body") == "written with care"
    page.get_by_role("button", name="Write issue").click()
    again = page.get_by_role("dialog", name="Log in again")
    expect(again.get_by_label("Name")).to_have_value("anna")
    again.get_by_label("Password").fill("not this one")
    again.get_by_role("button", name="Log in").click()
    expect(again.get_by_role("alert")).to_contain_text("do not belong together")
    again.get_by_label("Password").fill("correct horse battery")
    again.get_by_role("button", name="Log in").click()
    expect(again).to_have_count(0)
    expect(banner).not_to_contain_text("logged out")
    page.wait_for_selector(LIVE)
    page.get_by_role("button", name="Write issue").click()
    page.wait_for_url("**/issues/1/")
    expect(page.locator("main")).to_contain_text("written with care")


def test_the_link_tells_how_it_is_now_and_an_unread_error_stops_nothing(
    served: Served, tab: Tab, project: int
) -> None:
    page = tab("/", served.cookie())
    state, dot = page.locator("#link-state"), page.locator(".side .brand .dot")
    page.wait_for_selector(LIVE)
    expect(dot).to_have_class("dot live")
    page.route("**/live", lambda route: route.fulfill(status=503, body="later"))
    expect(state).to_have_text("refresh failed (503), trying again")
    expect(dot).to_have_class("dot bad")
    page.unroute("**/live")
    expect(state).to_have_text("live")
    page.context.set_offline(True)
    expect(state).to_contain_text(re.compile("not reachable|reconnecting"))
    page.context.set_offline(False)
    expect(state).to_have_text("live")
    page.route("**/start", lambda route: route.fulfill(status=500, body="Traceback"))
    page.locator("#start-menu summary").click()
    page.locator(f"#start-{project}").click()
    expect(page.get_by_role("alert")).to_contain_text("answered with an error (500)")
    with page.expect_request("**/live"):
        pass
    expect(page.get_by_role("alert")).to_contain_text("answered with an error (500)")
    served.kill()
    expect(state).to_have_text(re.compile("not reachable|reconnecting"))
    expect(dot).not_to_have_class("dot live")
    served.start()
    expect(state).to_have_text("live", timeout=15_000)
    expect(dot).to_have_class("dot live")

"""What an open page makes of bad moments and of news, in a real browser before real daphne.

One server for all of them: each is at home with what the ones before left behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.house.product import until
from tests.web.browser_fixture import Tab
from tests.web.daphne_fixture import Served, serving

LIVE = "#link-state:has-text('live')"
EXPIRE = "from django.contrib.sessions.models import Session\nSession.objects.all().delete()"
AGAIN = "**/login/again"
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
    expect(again.get_by_label("Password")).to_be_focused()
    again.get_by_label("Password").fill("not this one")
    again.get_by_role("button", name="Log in").click()
    expect(again.get_by_role("alert")).to_contain_text("Wrong name or password")
    page.route(AGAIN, lambda route: route.fulfill(response=route.fetch(), status=429))
    again.get_by_label("Password").fill("nor this one")
    again.get_by_role("button", name="Log in").click()
    expect(again.get_by_label("Password")).to_have_value("")
    expect(again.get_by_role("alert")).to_contain_text("Wrong name or password")
    page.unroute(AGAIN)
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
    expect(state).to_have_text("live")
    expect(dot).to_have_class("dot live")


NEWS = """
from datetime import UTC, datetime, timedelta
from django.contrib.auth.models import User
now = datetime.now(UTC)
project = Project.objects.get(name="demo")
watch = WatchSession.objects.create(project=project, opened_by="bob", opened_at=now, next_poll_at=now)
run = Run.objects.create(project=project, host="local", issue_key="70", issue_title="Seventy", state="working",
                         session="demo~1~afk-70", branch="afk/70", slot=1, requested_at=now, started_at=now)
Rescue.objects.create(project=project, branch="afk/9", why="discarded", at=now, expires_at=now + timedelta(days=1))
User.objects.create_user("newcomer")
Settings.objects.update(run_budget_minutes=17)
store.create_issue(project.tracker_root, title="Eighty", body="", author="bob", labels=["ready-for-agent"], at=now)
Project.objects.filter(name="late").update(state="ready", tracker="builtin", tracker_root=store.create_root("late"))
tell("the news is here", run=run, watch_id=watch.pk, by="bob")
"""


def test_every_page_shows_news_without_a_reload_and_leaves_alone_what_is_in_use(
    served: Served, tab: Tab, project: int
) -> None:
    late = served.do("""
result = Project.objects.create(name="late", slug="late", state="cloning", source="/y",
                                created_at=datetime.now(UTC)).pk
""")
    page = tab("/", served.cookie())
    at = f"/projects/{project}"
    expected = {
        "/history/": "1 run started or ended",
        "/audit/": "the news is here",
        "/people/": "newcomer",
        "/settings/": "17 min",
        f"{at}/parked/": "afk/9",
        f"{at}/waiting": "Eighty",
        f"{at}/watch/": "bob",
        f"/projects/{late}/": "New watch session",
    }
    pages = {path: page.context.new_page() for path in expected}
    for path, one in pages.items():
        one.goto(f"{served.base_url}{path}")
        one.evaluate("window.isSamePage = true")
        expect(one.locator("main")).not_to_contain_text(expected[path])
    typed = {
        "/audit/": "[name=text]",
        f"{at}/watch/": "#watch-form [name=limit]",
    }
    for path, field in typed.items():
        pages[path].locator(field).fill("12")
    chosen = pages["/settings/"].locator("[name=effort]").select_option(index=1)
    pages[f"/projects/{late}/"].get_by_role("link", name="Issues", exact=True).focus()
    served.do(NEWS)
    for path, one in pages.items():
        one.bring_to_front()
        expect(one.locator("main")).to_contain_text(expected[path])
        assert one.evaluate("window.isSamePage") is True, path
    for path, field in typed.items():
        expect(pages[path].locator(field)).to_have_value("12")
    expect(pages["/settings/"].locator("[name=effort]")).to_have_value(chosen[0])
    focused = "document.activeElement.textContent.trim()"
    assert pages[f"/projects/{late}/"].evaluate(focused) == "Issues"


OVERTAKEN = """() => {
  const read = Response.prototype.text;
  Response.prototype.text = async function () {
    const said = await read.call(this);
    if (this.url.endsWith("/people/live") && said.includes("overtaken") && !window.isOvertaken) {
      window.isOvertaken = true;
      document.dispatchEvent(new CustomEvent("htmx:before:ws:message", { detail: { message: {} } }));
    }
    return said;
  };
}"""


def test_an_answer_that_a_push_overtook_is_asked_for_again(
    served: Served, tab: Tab, project: int
) -> None:
    """A push comes while the answer is read: the answer is dropped, and its tag with it.

    The push holds the frame of the page alone, the answer also the rows; with its tag the page would
    be told for ever that nothing has changed.
    """
    page = tab("/people/", served.cookie())
    expect(page.locator("#link-state")).to_have_text("live")
    page.evaluate(OVERTAKEN)
    served.do("""
from django.contrib.auth.models import User
User.objects.create_user("overtaken")
tell("more news")
""")
    until(lambda: page.evaluate("window.isOvertaken"))
    expect(page.locator("main")).to_contain_text("overtaken")

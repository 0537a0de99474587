"""Pushes and the login door as a person sees them, in a real browser before real daphne."""

from __future__ import annotations

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from tests.web.browser_fixture import Tab
from tests.web.daphne_fixture import Served
from tests.web.test_feed_served import PROJECT

LIVE = "#link-state:has-text('live')"


@pytest.fixture
def run(served: Served) -> int:
    """A run, on pages that refresh so seldom that only a push can have changed them."""
    number = int(served.do(PROJECT))
    served.do("Settings.objects.update_or_create(pk=1, defaults={'refresh_seconds': 60})")
    return number


def _shows(page: Page, text: str) -> None:
    expect(page.locator("main")).to_contain_text(text)


def _hears_only_pushes(page: Page) -> None:
    """To every refresh the answer is that nothing has changed."""
    page.route("**/live", lambda route: route.fulfill(status=304))


@pytest.mark.row("X-06", level="browser")
def test_what_the_worker_writes_appears_without_a_reload(
    served: Served, tab: Tab, run: int
) -> None:
    cookie = served.cookie()
    pages = [tab("/", cookie), tab(f"/runs/{run}/", cookie), tab("/projects/1/", cookie)]
    for page in pages:
        page.wait_for_selector(LIVE)
        _hears_only_pushes(page)
        page.evaluate("window.isSamePage = true")
    served.do("tell('the checkpoint is reached', run=run)")
    for page in pages:
        _shows(page, "the checkpoint is reached")
        assert page.evaluate("window.isSamePage") is True


@pytest.mark.row("X-06", level="browser")
def test_a_refresh_that_was_asked_for_before_a_push_does_not_undo_it(
    served: Served, tab: Tab, run: int
) -> None:
    page = tab(f"/runs/{run}/", served.cookie())
    page.wait_for_selector(LIVE)
    held: list[tuple[Route, APIResponse]] = []
    page.route("**/live", lambda route: held.append((route, route.fetch())))
    # So that the answer is a whole one and not "nothing has changed".
    served.do("Settings.objects.update(session_cap=7)")
    page.evaluate("htmx.trigger('#live', 'lab:refresh')")
    while not held:  # the callback runs while the page waits
        page.wait_for_timeout(50)
    route, answer = held[0]
    assert "hx-partial" in answer.text()
    served.do("tell('the checkpoint is reached', run=run)")
    _shows(page, "the checkpoint is reached")
    with page.expect_response("**/live"):
        route.fulfill(response=answer)
    page.wait_for_timeout(300)
    _shows(page, "the checkpoint is reached")
    page.unroute("**/live")
    with page.expect_response("**/live") as asked:
        page.evaluate("htmx.trigger('#live', 'lab:refresh')")
    assert asked.value.status in (200, 304)
    _shows(page, "the checkpoint is reached")


@pytest.mark.row("X-07", level="browser")
def test_a_browser_that_was_away_is_shown_the_three_events(
    served: Served, tab: Tab, run: int
) -> None:
    page = tab(f"/runs/{run}/", served.cookie())
    page.wait_for_selector(LIVE)
    _hears_only_pushes(page)
    page.evaluate("window.isSamePage = true")
    served.kill()
    page.wait_for_selector("#link-state:has-text('reconnecting')")
    for text in ("first missed", "second missed", "third missed"):
        served.do(f"tell({text!r}, run=run)")
    served.start()
    for text in ("first missed", "second missed", "third missed"):
        _shows(page, text)
        assert page.get_by_text(text, exact=True).count() == 1
    assert page.evaluate("window.isSamePage") is True


@pytest.mark.row("X-10", level="browser")
def test_a_tab_that_was_logged_out_elsewhere_says_so(served: Served, tab: Tab, run: int) -> None:
    cookie = served.cookie()
    page = tab(f"/runs/{run}/", cookie)
    page.wait_for_selector(LIVE)
    other = page.context.new_page()
    other.goto(served.base_url)
    other.click("text=Log out")
    other.wait_for_url("**/login/**")
    served.do("tell('not for the one who left', run=run)")
    expect(page.locator("#banner")).to_contain_text("You are logged out")
    assert "not for the one who left" not in page.content()


@pytest.mark.row("LAB-132", level="browser")
def test_the_first_account_login_and_logout_work_without_javascript(
    served: Served, tab: Tab
) -> None:
    token = served.do("from runs.people import setup\nresult = setup.link_token(lab.paths)")
    page = tab("/", java_script_enabled=False)
    _shows(page, "Nobody has an account yet")
    page.goto(f"{served.base_url}/setup/{token}/")
    page.fill("#id_name", "ada")
    page.fill("#id_password", "short")
    page.fill("#id_again", "short")
    page.click("main button")
    _shows(page, "at least 10 characters")
    page.fill("#id_password", "a rather long secret")
    page.fill("#id_again", "a rather long secret")
    page.click("main button")
    page.wait_for_url(f"{served.base_url}/")
    page.click("text=Log out")
    page.wait_for_url("**/login/")
    page.goto(f"{served.base_url}/runs/")
    page.fill("#id_username", "ada")
    page.fill("#id_password", "wrong")
    page.click("main button")
    _shows(page, "Wrong name or password")
    page.fill("#id_password", "a rather long secret")
    page.click("main button")
    page.wait_for_url(f"{served.base_url}/runs/")
    page.goto(f"{served.base_url}/setup/{token}/")
    _shows(page, "does not work any more")


@pytest.mark.row("X-08", level="browser")
def test_the_budget_is_tuned_in_admin_and_told_on_the_timeline(
    served: Served, tab: Tab, run: int
) -> None:
    cookie = served.cookie()
    overview = tab("/", cookie)
    overview.wait_for_selector(LIVE)
    page = tab("/admin/runs/settings/", cookie)
    page.fill("#id_run_budget_minutes", "0")
    page.click("input[name=_save]")
    expect(page.locator(".errorlist")).to_contain_text("greater than or equal to 1")
    page.fill("#id_run_budget_minutes", "30")
    page.click("input[name=_save]")
    expect(page.locator(".messagelist")).to_contain_text("successfully")
    _shows(overview, "run budget (minutes) changed from 45 to 30")
    assert page.complaints == []


def test_neither_login_nor_admin_breaks_the_content_policy(
    served: Served, tab: Tab, run: int
) -> None:
    cookie = served.cookie()
    assert tab("/login/").complaints == []
    for path in (
        "/admin/",
        "/admin/runs/run/",
        f"/admin/runs/run/{run}/change/",
        "/admin/runs/agentprofile/add/",
    ):
        page = tab(path, cookie)
        page.wait_for_load_state("networkidle")
        assert page.complaints == []


@pytest.mark.row("X-05", level="browser")
def test_a_token_is_in_the_source_of_no_page(served: Served, tab: Tab, run: int) -> None:
    served.do("Project.objects.update(token='ghp_very-secret')")
    page = tab("/", served.cookie())
    for path in (
        "/",
        "/projects/1/",
        f"/runs/{run}/",
        "/settings/",
        "/admin/runs/project/1/change/",
    ):
        page.goto(f"{served.base_url}{path}")
        assert "very-secret" not in page.content()
        assert "gAAAA" not in page.content()

"""Pushes and the login door as a person sees them, in a real browser before real daphne."""

from __future__ import annotations

import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from tests.house.product import until as wait_until
from tests.web.browser_fixture import Tab
from tests.web.daphne_fixture import Served
from tests.web.test_feed_served import PROJECT

LIVE = "#link-state:has-text('live')"


@pytest.fixture(scope="module")
def served(once_served: Served) -> Served:
    return once_served


@pytest.fixture
def run(served: Served) -> int:
    """A run, on pages that refresh so seldom that only a push can have changed them."""
    number = int(served.do(PROJECT))
    served.do("Settings.objects.update_or_create(pk=1, defaults={'refresh_seconds': 60})")
    return number


def _shows(page: Page, text: str) -> None:
    expect(page.locator("main")).to_contain_text(text)


def _project_of(served: Served, run: int) -> int:
    return int(served.do(f"result = Run.objects.get(pk={run}).project_id"))


def _hears_only_pushes(page: Page) -> None:
    """To every refresh the answer is that nothing has changed."""
    page.route("**/live", lambda route: route.fulfill(status=304))


@pytest.mark.quick("a push on an open page")
@pytest.mark.row("X-06", level="browser")
def test_what_the_worker_writes_appears_without_a_reload(
    served: Served, tab: Tab, run: int
) -> None:
    cookie = served.cookie()
    project = _project_of(served, run)
    pages = [tab("/", cookie), tab(f"/runs/{run}/", cookie), tab(f"/projects/{project}/", cookie)]
    for page in pages:
        page.wait_for_selector(LIVE)
        _hears_only_pushes(page)
        page.evaluate("window.isSamePage = true")
    served.do("tell('the checkpoint is reached', run=run)")
    for page in pages:
        _shows(page, "the checkpoint is reached")
        assert page.evaluate("window.isSamePage") is True


@pytest.mark.row("LAB-130", level="browser")
def test_a_page_that_is_pushed_to_asks_no_more_by_the_clock(
    served: Served, tab: Tab, run: int
) -> None:
    cookie = served.cookie()
    served.do("Settings.objects.update(refresh_seconds=4)")
    project = _project_of(served, run)
    pages = {}
    for address in ("/", f"/projects/{project}/"):
        page = tab("/settings/", cookie)
        page.clock.install()
        page.goto(served.base_url + address)
        page.wait_for_selector(LIVE)
        asked: list[str] = []
        under_way: set[str] = set()
        for told, does in (
            ("request", lambda one, asked=asked: asked.append(one.url)),
            ("request", lambda one, under_way=under_way: under_way.add(one.url)),
            ("requestfinished", lambda one, under_way=under_way: under_way.discard(one.url)),
        ):
            page.on(told, does)
        for _ in range(12):
            page.clock.run_for(10_000)
            while under_way:  # its time limit would be over at once on the page's clock
                page.evaluate("0")
        assert len(asked) <= 3, asked
        asked.clear()
        pages[address] = page, asked
    served.do("tell('the checkpoint is reached', run=run)")
    # What it has of its own a page asks for when it hears of something.
    _shows(pages["/"][0], "the checkpoint is reached")
    page, asked = pages[f"/projects/{project}/"]
    for _ in range(100):
        page.clock.run_for(200)
        page.wait_for_timeout(50)
        if any("/live" in url for url in asked):
            break
    assert any("/live" in url for url in asked)


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
    served.do("tell('the next checkpoint is reached', run=run)")
    _shows(page, "the next checkpoint is reached")
    with page.expect_response("**/live"):
        route.fulfill(response=answer)
    page.wait_for_timeout(300)
    _shows(page, "the next checkpoint is reached")
    page.unroute("**/live")
    with page.expect_response("**/live") as asked:
        page.evaluate("htmx.trigger('#live', 'lab:refresh')")
    assert asked.value.status in (200, 304)
    _shows(page, "the next checkpoint is reached")


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


@pytest.mark.row("X-09", level="browser")
def test_a_page_whose_socket_failed_opens_another_and_is_shown_what_it_missed(
    served: Served, tab: Tab, run: int
) -> None:
    page = tab(f"/runs/{run}/", served.cookie())
    page.wait_for_selector(LIVE)
    _hears_only_pushes(page)
    page.evaluate("window.isSamePage = true")
    served.kill()
    sql = "from django.db import connection; connection.cursor().execute"
    served.do(f"{sql}('ALTER TABLE django_session RENAME TO away')")
    try:
        closed: list[object] = []
        # Only one that was let in says what it shows.
        page.on(
            "websocket",
            lambda one: one.on(
                "framesent", lambda _: one.on("close", lambda it: closed.append(it))
            ),
        )
        served.start()
        wait_until(lambda: page.evaluate("true") and closed)
        page.wait_for_selector("#link-state:has-text('reconnecting')")
    finally:
        served.do(f"{sql}('ALTER TABLE away RENAME TO django_session')")
    served.do("tell('told after the failure', run=run)")
    _shows(page, "told after the failure")
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
    token = served.do("""
from django.contrib.auth.models import User
from runs.people import setup
User.objects.all().delete()
result = setup.link_token(lab.paths)
""")
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
    page.wait_for_url(f"{served.base_url}/history/")
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
    project = _project_of(served, run)
    page = tab("/", served.cookie())
    for path in (
        "/",
        f"/projects/{project}/",
        f"/runs/{run}/",
        "/settings/",
        f"/admin/runs/project/{project}/change/",
    ):
        page.goto(f"{served.base_url}{path}")
        assert "very-secret" not in page.content()
        assert "gAAAA" not in page.content()


def test_a_refresh_does_not_bring_the_welcome_back_while_the_demo_is_on_its_way(
    own_served: Served, browser: Browser
) -> None:
    """There is a project by then, for which a refresh makes the welcome way."""
    context = browser.new_context(service_workers="block")
    context.add_cookies(own_served.browser_cookies(own_served.cookie()))
    page = context.new_page()
    page.goto(own_served.base_url)
    held: list[tuple[Route, APIResponse]] = []
    page.route("**/demo/", lambda route: held.append((route, route.fetch())))
    page.get_by_role("button", name="Try the demo").click()
    while not held:  # the callback runs while the page waits
        page.wait_for_timeout(50)
    with page.expect_response("**/live?first=1"):
        page.evaluate("htmx.trigger(document.getElementById('live'), 'lab:refresh')")
    page.wait_for_timeout(300)
    route, answer = held[0]
    route.fulfill(response=answer)
    page.wait_for_url("**/projects/*/")
    context.close()

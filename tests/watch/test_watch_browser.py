"""Watch sessions as a person sees them: pushed before real daphne, confirmed, and easy on the eye."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from runs.models import Validation, WatchSession
from runs.watch.session import Terms
from tests.fakes import START, World
from tests.watch.test_validate_again import FailedDay
from tests.watch.test_watch_pages import a_result
from tests.watch.watch_day import Day
from tests.web.browser_fixture import Tab
from tests.web.browsing import OpenPage
from tests.web.daphne_fixture import Served
from tests.web.looking import looks
from tests.web.test_feed_browser import LIVE

IDLE = "Idle: no ready issues. Polling in 60s..."
# A session with an empty queue, and the tick of a worker that finds it so.
OPEN = """
from datetime import UTC, datetime
from runs.watch.session import Terms
from runs import tick; from runs.watch import acts as watches
from trackers.builtin import store
project = Project.objects.create(name="demo", slug="demo", state="ready", source="/x", tracker="builtin",
                                 tracker_root=store.create_root("demo"), created_at=datetime.now(UTC))
Settings.objects.update_or_create(pk=1, defaults={"refresh_seconds": 60})
result = project.pk
"""
BEGIN = """
project = Project.objects.get()
session = watches.open(lab, project, Terms(is_watching=True, every=10), "anna")
result = session.pk
"""
TICK = """
report = tick.tick(lab)
result = list(Notice.objects.filter(kind="watch.idle").values_list("text", flat=True))
"""


@pytest.mark.row("MALA-W-14", "MALA-W-16", "X-18", level="browser")
def test_an_idle_notice_is_pushed_to_the_open_page(served: Served, tab: Tab) -> None:
    project = served.do(OPEN)
    page = tab(f"/projects/{project}/", served.cookie())
    page.wait_for_selector(LIVE)
    page.evaluate("window.isSamePage = true")
    served.do(BEGIN)
    card = page.locator("#project-watch")
    expect(card).to_contain_text("working")
    expect(page.locator("#watch-form")).to_be_hidden()
    assert served.do(TICK) == [IDLE]
    expect(card).to_contain_text(IDLE)
    assert page.evaluate("window.isSamePage") is True
    assert page.complaints == []


@pytest.mark.quick("a watch session in a real browser")
@pytest.mark.django_db(transaction=True)
@pytest.mark.row("MALA-W-40", "MALA-W-51", level="browser")
def test_a_session_is_opened_and_killed_without_a_reload(
    open_page: OpenPage, operator: User, world: World
) -> None:
    day = Day(world, "1", "2")
    page = open_page(f"/projects/{day.project.pk}/", operator, clock=True)
    page.evaluate("window.isSamePage = true")
    page.get_by_text("New watch session").click()
    page.get_by_label("Maximum issues").fill("0")
    page.get_by_role("button", name="Start a watch session").click()
    expect(page.locator("#id_limit_error")).to_have_text("Error: --max-issues must be at least 1")
    page.get_by_label("Maximum issues").fill("9")
    page.get_by_role("button", name="Start a watch session").click()
    expect(page.locator("#project-watch")).to_contain_text("0 of at most 9")
    expect(page.locator("#watch-form")).to_be_hidden()
    day.tick()
    page.clock.run_for(5000)
    expect(page.locator("#watch-kill-will")).to_contain_text("2 active runs")
    page.locator("#watch-kill").click()
    expect(page.locator("#watch-kill")).to_contain_text("Press again: kill 2 runs")
    assert day.session.request == 0
    page.locator("#watch-kill").click()
    expect(page.locator("#banner")).to_contain_text("It was killed")
    assert day.session.request == 3
    assert page.evaluate("window.isSamePage") is True


@pytest.mark.django_db(transaction=True)
@pytest.mark.row("LAB-132", level="browser")
def test_it_works_without_scripts(open_page: OpenPage, operator: User, world: World) -> None:
    day = Day(world, "1")
    page = open_page(f"/projects/{day.project.pk}/", operator, java_script_enabled=False)
    page.get_by_text("New watch session").click()
    page.get_by_role("button", name="Start a watch session").click()
    page.wait_for_url("**/watch/*/")
    page.get_by_role("button", name="Abort").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Abort watch session")
    page.get_by_role("button", name="Abort it").click()
    expect(page.locator("#banner")).to_contain_text("It was aborted")
    assert day.session.request == 2


@pytest.mark.django_db(transaction=True)
def test_every_page_on_watch_sessions_is_accessible_and_fits(
    open_page: OpenPage, operator: User, world: World
) -> None:
    day = Day(world, "1", "2")
    home = f"/projects/{day.project.pk}/"
    page = open_page(home, operator)
    wrong = looks(page, "watch-form")
    day.opens(Terms(is_watching=True, limit=9, every=2))
    Validation.objects.create(
        project=day.project, session=day.session, number=1, count=2, host="local", minutes=30,
        most_fixers=2, mark="m", began_at=START, commands=[["make", "lint"], ["make", "t" * 90], ["x"]],
        results=[a_result("0-1.txt"), a_result("0-2.txt", status=2, tail="red " * 60)],
        state="failed", ended_at=START, reason="make test failed with exit status 2",
    )  # fmt: skip
    WatchSession.objects.update(held="No agent is chosen.", version=99)
    for name, address in {
        "watch-project": home,
        "watch-session": f"{home}watch/{day.session.pk}/",
        "watch-session-older": f"{home}watch/{day.session.pk}/?runs=2&validations=2",
        "watch-overview": "/",
        "watch-list": f"{home}watch/",
        "watch-checks": f"{home}validation/",
    }.items():
        page.goto(address)
        wrong += looks(page, name)
    ended = {"phase": "ended", "code": 1, "reason": "validation failed", "ended_at": START}
    WatchSession.objects.update(**ended)
    page.goto(f"{home}watch/{day.session.pk}/")
    wrong += looks(page, "watch-session-failed")
    assert wrong == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.row("C-54", level="browser")
def test_a_failed_session_is_validated_again_without_scripts(
    open_page: OpenPage, operator: User, world: World
) -> None:
    day = FailedDay(world)
    address = f"/projects/{day.project.pk}/watch/{day.session.pk}/"
    page = open_page(address, operator, java_script_enabled=False)
    page.get_by_role("button", name="Validate again").click()
    expect(page.locator("#banner")).to_contain_text("Started validation 2.")
    expect(page.locator("#watch-validations")).to_contain_text("asked for by anna")
    assert page.get_by_role("button", name="Validate again").count() == 0

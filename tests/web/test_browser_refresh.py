"""The rhythm of refreshes, and what a refresh leaves alone, in a real browser."""

from __future__ import annotations

import itertools
import statistics
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, Route, expect

from runs.core.states import NoticeKind
from runs.models import Run, Settings
from tests import make
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.browsing import OpenPage

pytestmark = pytest.mark.django_db(transaction=True)

HIDE = """hidden => {
  Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
  document.dispatchEvent(new Event("visibilitychange"));
}"""

# Which regions had a node or a text changed by an answer; ages that tick meanwhile are no answer's.
WATCH = """() => {
  window.touched = new Set();
  let isSwapping = false;
  const heard = (records) => { if (isSwapping) records.forEach(one => window.touched.add(
    (one.target.closest ? one.target : one.target.parentElement).closest(
      "main > *[id], .split > *[id], .stack > *[id], .head *[id]")?.id
  )); };
  const watch = new MutationObserver(heard);
  watch.observe(document.querySelector("main"), {subtree: true, childList: true, characterData: true});
  document.addEventListener("htmx:before:swap", () => { heard(watch.takeRecords()); isSwapping = true; }, true);
  document.addEventListener("htmx:after:swap", () => { heard(watch.takeRecords()); isSwapping = false; }, true);
}"""

# When the page asked for a refresh, by its own clock, and whether an answer is still to come.
NOTE = """() => {
  const isLive = ({detail: {ctx}}) => ctx.sourceElement?.id === "live";
  window.refreshes = [];
  window.isUnderWay = false;
  document.addEventListener("htmx:before:request", (event) => {
    if (isLive(event)) { window.refreshes.push(Date.now()); window.isUnderWay = true; }
  });
  document.addEventListener("htmx:finally:request", (event) => {
    if (isLive(event)) window.isUnderWay = false;
  });
}"""


STEP = 0.5  # seconds; less than there is between two refreshes


class Counted:
    """An open page whose time the test moves on, and its refreshes.

    Next to none goes by while a refresh is under way: how long an answer takes does not matter.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        page.evaluate(NOTE)

    def now(self) -> float:
        """Seconds by the page's clock."""
        return float(self.page.evaluate("Date.now()")) / 1000

    def times(self, since: float = 0.0) -> list[float]:
        """When the page asked for a refresh, since a moment by its clock."""
        moments = [float(at) / 1000 for at in self.page.evaluate("window.refreshes")]
        return [at for at in moments if at >= since]

    def rhythm(self, seconds: float) -> float:
        """Seconds of the page's time between two refreshes that follow each other, as a rule."""
        since = self.now()
        self.during(seconds)
        return statistics.median(after - at for at, after in itertools.pairwise(self.times(since)))

    def during(self, seconds: float) -> int:
        """How many refreshes the page asked for while this much of its time went by."""
        since = self.now()
        for _ in range(int(seconds / STEP)):
            self._step()
        return len(self.times(since))

    def once(self) -> None:
        """Let the page's time go by until it has refreshed once more."""
        since = self.now()
        while not self.times(since):
            assert self.now() < since + 20, "it does not refresh"
            self._step()

    def _step(self) -> None:
        self.page.clock.run_for(int(STEP * 1000))
        while self.page.evaluate("window.isUnderWay"):
            self.page.wait_for_timeout(25)
            self.page.clock.run_for(1)  # what htmx puts off to the next moment


@pytest.fixture
def project(world: World) -> Any:
    rows.a_tick(world)
    return rows.a_tracked_project()


@pytest.fixture
def a_live_run(world: World, project: Any) -> Run:
    run = make.a_run(project, "7")
    world.live(run)
    return run


@pytest.mark.row("LAB-130", level="browser")
def test_an_open_page_refreshes_about_every_four_seconds(
    open_page: OpenPage, operator: User, a_live_run: Run
) -> None:
    counted = Counted(open_page("/", operator, clock=True))
    assert 4 <= counted.rhythm(20) <= 5


@pytest.mark.row("LAB-130", level="browser")
def test_after_an_action_it_refreshes_about_every_second_for_ten(
    open_page: OpenPage, operator: User, a_live_run: Run
) -> None:
    page = open_page("/", operator, clock=True)
    counted = Counted(page)
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Press again").click()
    expect(page.locator("#banner .banner")).to_contain_text("Stopped")
    assert 1 <= counted.rhythm(7) <= 1.25
    counted.during(5)
    assert 4 <= counted.rhythm(16) <= 5


@pytest.mark.row("LAB-130", level="browser")
def test_while_something_starts_it_refreshes_about_every_second(
    open_page: OpenPage, operator: User, world: World, project: Any
) -> None:
    make.a_run(project, "7", state="starting", started_at=None)
    counted = Counted(open_page("/", operator, clock=True))
    assert 1 <= counted.rhythm(10) <= 1.25


@pytest.mark.row("LAB-130", level="browser")
def test_a_hidden_tab_does_not_refresh_and_a_shown_one_does_at_once(
    open_page: OpenPage, operator: User, a_live_run: Run
) -> None:
    page = open_page("/", operator, clock=True)
    counted = Counted(page)
    page.evaluate(HIDE, True)
    assert counted.during(20) == 0
    shown = counted.now()
    page.evaluate(HIDE, False)
    counted.during(0.5)
    assert len(counted.times(shown)) == 1


@pytest.mark.row("LAB-130", level="browser")
def test_an_armed_confirm_holds_refreshes_back_until_it_lapses(
    open_page: OpenPage, operator: User, world: World, project: Any
) -> None:
    for number in (1, 2):
        world.sessions.appear(make.a_run(project, str(number), slot=number).session)
    page = open_page(f"/projects/{project.pk}/", operator, clock=True)
    counted = Counted(page)
    button = page.locator("#stop-all")
    pressed = counted.now()
    button.click()
    expect(button).to_have_text("Press again: stop 2 sessions")
    counted.during(7)
    assert counted.times(pressed)[0] >= pressed + 5
    expect(button).to_have_text("Stop all")
    assert Run.objects.active().count() == 2
    button.click()
    button.click()
    expect(page.locator("#banner")).to_contain_text("Stopped 2 sessions of demo")
    assert not Run.objects.active().exists()


@pytest.mark.row("LAB-130", level="browser")
def test_a_running_request_holds_refreshes_back(
    open_page: OpenPage, operator: User, a_live_run: Run
) -> None:
    page = open_page("/", operator, clock=True)
    counted = Counted(page)
    held: list[Route] = []
    page.route("**/stop", lambda route: held.append(route))
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Press again").click()
    assert counted.during(9) == 0
    assert len(held) == 1
    held[0].continue_()
    expect(page.locator("#banner")).to_contain_text("Stopped")
    assert counted.during(2) >= 1


@pytest.mark.row("LAB-130", level="browser")
def test_the_setting_changes_the_rhythm(
    open_page: OpenPage, operator: User, a_live_run: Run
) -> None:
    Settings.current()
    Settings.objects.update(refresh_seconds=10)
    counted = Counted(open_page("/", operator, clock=True))
    assert counted.during(21) == 2


@pytest.mark.row("LAB-131", level="browser")
def test_refreshes_keep_typed_text_caret_and_focus(
    open_page: OpenPage, operator: User, world: World, project: Any
) -> None:
    page = open_page("/projects/new", operator, clock=True)
    counted = Counted(page)
    field = page.get_by_label("Name")
    field.fill("half a name")
    page.get_by_label("Access token").fill("typed too")
    field.focus()
    page.evaluate("document.activeElement.setSelectionRange(4, 6)")
    for n in range(3):
        rows.a_tracked_project(f"news-{n}")
        rows.tell(world, "something new", NoticeKind.PROJECT_READY)
        counted.once()
        expect(page.locator("#nav-projects")).to_contain_text(f"news-{n}")
    assert field.input_value() == "half a name"
    assert page.get_by_label("Access token").input_value() == "typed too"
    caret = "[document.activeElement.name, document.activeElement.selectionStart, document.activeElement.selectionEnd]"
    assert page.evaluate(caret) == ["name", 4, 6]


@pytest.mark.row("LAB-131", level="browser")
def test_refreshes_keep_an_open_menu_and_the_focus_in_it(
    open_page: OpenPage, operator: User, world: World, project: Any
) -> None:
    page = open_page("/", operator, clock=True)
    counted = Counted(page)
    page.locator("#start-menu summary").click()
    page.locator(f"#start-{project.pk}").focus()
    rows.a_ready_issue(project, "A new one")
    rows.tell(world, "Issue written", NoticeKind.ISSUE_CHANGED, project=project, issue_key="1")
    counted.once()
    expect(page.locator(f"#start-{project.pk}")).to_contain_text("1 ready")
    expect(page.locator("#start-menu .list")).to_be_visible()
    assert page.evaluate("document.activeElement.id") == f"start-{project.pk}"
    page.keyboard.press("Escape")
    expect(page.locator("#start-menu .list")).not_to_be_visible()


@pytest.mark.row("LAB-131", level="browser")
def test_refreshes_keep_open_what_was_unfolded_while_more_joins_it(
    open_page: OpenPage, operator: User, world: World, project: Any
) -> None:
    for key in ("1", "2", "3"):
        make.a_run(project, key, outcome="died", reason="exit status 1")
    page = open_page("/", operator, clock=True)
    counted = Counted(page)
    told = page.locator("#needs-you")
    told.get_by_text("Exit status 1.").click()
    expect(told.get_by_role("link", name="demo #2")).to_be_visible()
    late = make.a_run(project, "4", outcome="died", reason="exit status 1")
    rows.tell(world, "the session ended", NoticeKind.RUN_ENDED, run=late, outcome="died")
    counted.once()
    expect(told).to_contain_text("4 runs died")
    expect(told.get_by_role("link", name="demo #4")).to_be_visible()


@pytest.mark.row("LAB-131", level="browser")
def test_refreshes_keep_a_filter_and_a_comment_that_is_being_written(
    open_page: OpenPage, operator: User, world: World, project: Any
) -> None:
    import dataclasses

    from trackers import registry

    world.lab = dataclasses.replace(world.lab, tracker_for=registry.tracker)
    number = rows.a_ready_issue(project, "Add retries")
    page = open_page(f"/projects/{project.pk}/issues/", operator, clock=True)
    counted = Counted(page)
    page.locator("input[name=text]").fill("retr")
    rows.a_ready_issue(project, "Another one")
    rows.tell(world, "Issue written", NoticeKind.ISSUE_CHANGED, project=project, issue_key="2")
    counted.once()
    expect(page.locator("main")).to_contain_text("Another one")
    assert page.locator("input[name=text]").input_value() == "retr"
    page = open_page(f"/projects/{project.pk}/issues/{number}/", operator, clock=True)
    counted = Counted(page)
    page.locator("textarea").first.fill("half a comm")
    rows.tell(
        world, "Labels are now", NoticeKind.ISSUE_CHANGED, project=project, issue_key=str(number)
    )
    counted.once()
    assert page.locator("textarea").first.input_value() == "half a comm"


def test_a_refresh_leaves_what_is_unchanged_alone(
    open_page: OpenPage, operator: User, world: World, a_live_run: Run
) -> None:
    """Nothing flickers: only the part that has news is touched, although all parts arrive."""
    page = open_page("/", operator, clock=True)
    counted = Counted(page)
    counted.during(2)
    page.evaluate(WATCH)
    rows.tell(world, "something new", NoticeKind.PROJECT_READY, project=a_live_run.project)
    page.evaluate("htmx.trigger(document.getElementById('live'), 'lab:refresh')")
    expect(page.locator("#activity")).to_contain_text("something new")
    assert page.evaluate("[...window.touched]") == ["activity"]


def test_the_terminal_follows_only_a_reader_at_its_end(
    open_page: OpenPage, operator: User, world: World, a_live_run: Run
) -> None:
    session = a_live_run.session
    lines = [f"line {n}" for n in range(200)]
    world.sessions.text[session] = "\n".join(lines)
    page = open_page(f"/runs/{a_live_run.pk}/terminal/", operator, clock=True)
    counted = Counted(page)
    left = "(() => {const s = document.getElementById('screen'); return s.scrollHeight - s.clientHeight - s.scrollTop})()"
    assert page.evaluate(left) < 2
    world.sessions.text[session] = "\n".join([*lines, "more", "and more"])
    counted.once()
    expect(page.locator("#screen")).to_contain_text("and more")
    assert page.evaluate(left) < 2
    page.evaluate("document.getElementById('screen').scrollTop = 100")
    world.sessions.text[session] = "\n".join([*lines, "more", "and more", "and the last"])
    counted.once()
    expect(page.locator("#screen")).to_contain_text("and the last")
    assert page.evaluate("document.getElementById('screen').scrollTop") == 100


@pytest.mark.row("X-15", level="browser")
def test_times_are_local_and_ages_never_negative(
    open_page: OpenPage, operator: User, world: World, a_live_run: Run
) -> None:
    rows.tell(world, "first output", run=a_live_run)
    page = open_page(f"/runs/{a_live_run.pk}/", operator, timezone_id="Asia/Tokyo")
    expect(page.locator("#timeline time").first).to_have_text("21:00:00")
    world.clock.forward(minutes=5)
    page.goto("/")
    expect(page.locator(f"#run-{a_live_run.pk} .clock b")).to_have_text("5 min")
    expect(page.locator("#tick-age")).to_have_text("Last tick 5 min ago")
    world.clock.forward(hours=-1)
    page.goto("/")
    expect(page.locator(f"#run-{a_live_run.pk} .clock b")).to_have_text("0 s")
    expect(page.locator("#tick-age")).to_have_text("Last tick 0 s ago")


def test_ages_tick_without_asking_the_server(
    open_page: OpenPage, operator: User, world: World, a_live_run: Run
) -> None:
    Settings.current()
    Settings.objects.update(refresh_seconds=60)
    page = open_page("/", operator, clock=True)
    counted = Counted(page)
    age = page.locator(f"#run-{a_live_run.pk} .clock b")
    meter = "document.querySelector('progress.meter').value"
    before = counted.now()
    was, stood = int(age.inner_text().removesuffix(" s")), int(page.evaluate(meter))
    assert counted.during(10) == 0
    shown, stands = int(age.inner_text().removesuffix(" s")), int(page.evaluate(meter))
    went_by = counted.now() - before
    assert 9 <= shown - was <= went_by + 1
    assert 9 <= stands - stood <= went_by + 1

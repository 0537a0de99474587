"""Actions with and without JavaScript, errors in plain words, and the small manners of buttons."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from runs.core.states import AnswerCode, ProjectState
from runs.kept import removal
from runs.models import Project, Run, Settings, StartRequest
from tests import make
from tests.chromium import press_twice
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.browsing import OpenPage
from tests.web.people import confirm_everybody

pytestmark = pytest.mark.django_db(transaction=True)

STYLES = pytest.mark.parametrize(
    "with_script", [pytest.param(True, id="htmx"), pytest.param(False, id="no JavaScript")]
)


@dataclass(frozen=True)
class Act:
    """One action: how its scene is set, where its button is, and what must be read afterwards."""

    name: str
    scene: Callable[[World], str]
    button: str
    said: str
    fails: bool = False
    presses: int = 1


def _a_run(world: World) -> str:
    run = make.a_run(rows.a_tracked_project(), "7")
    world.live(run)
    return f"/runs/{run.pk}/"


def _two_runs(world: World) -> str:
    project = rows.a_tracked_project()
    for number in (1, 2):
        world.sessions.appear(make.a_run(project, str(number), slot=number).session)
    return f"/projects/{project.pk}/"


def _startable(code: AnswerCode, text: str) -> Callable[[World], str]:
    def scene(world: World) -> str:
        project = rows.a_tracked_project()
        rows.answer_starts(world, code, text)
        return f"/projects/{project.pk}/"

    return scene


def _started(world: World) -> str:
    project = rows.a_tracked_project()
    rows.answer_starts(world, AnswerCode.STARTED, "", make.a_run(project, "7"))
    return f"/projects/{project.pk}/"


def _failed_project(world: World) -> str:
    project = rows.a_tracked_project(state=ProjectState.FAILED, error="no such host")
    return f"/projects/{project.pk}/"


def _settings(world: World) -> str:
    Settings.current()
    Settings.objects.update(agent=make.an_agent(model_names=["big"]))
    return "/settings/"


ACTS = [
    Act("stop on the run page", _a_run, "#stop", "neither success nor failure", presses=2),
    Act("stop all", _two_runs, "#stop-all", "Stopped 2 sessions of demo", presses=2),
    Act("start", _started, "#start", "takes issue 7 of demo"),
    Act("start, nothing ready", _startable(AnswerCode.NOTHING_READY, "Nothing is ready."), "#start", "Nothing is ready.", fails=True),
    Act("start, git failed", _startable(AnswerCode.SEAM_FAILED, "git said no."), "#start", "git said no.", fails=True),
    Act("start, no tracker", _startable(AnswerCode.NO_TRACKER, "No tracker."), "#start", "No tracker.", fails=True),
    Act("settings", _settings, "#settings-form .btn", "from now on"),
]  # fmt: skip


@pytest.mark.row("LAB-132", level="browser")
@STYLES
@pytest.mark.parametrize("act", [pytest.param(act, id=act.name) for act in ACTS])
def test_every_action_works_in_both_styles(
    open_page: OpenPage, operator: User, world: World, act: Act, with_script: bool
) -> None:
    page = open_page(act.scene(world), operator, java_script_enabled=with_script, clock=with_script)
    statuses = _answers(page)
    page.locator(act.button).click()
    if act.presses > 1:
        assert statuses in ([], [200])
        sure = page.locator(act.button) if with_script else page.locator("main .btn.danger")
        sure.click()
    banner = page.locator("#banner .banner")
    expect(banner).to_contain_text(act.said)
    if with_script:
        assert (statuses[0] >= 400) == act.fails
        page.get_by_role("button", name="Dismiss").click()
        expect(banner).to_have_count(0)
    else:
        assert statuses[-1] == 303
        expect(page.get_by_role("button", name="Dismiss")).not_to_be_visible()


@pytest.mark.row("LAB-132", level="browser")
@STYLES
def test_a_failed_project_is_retried_and_removed_in_both_styles(
    open_page: OpenPage, operator: User, world: World, with_script: bool
) -> None:
    page = open_page(_failed_project(world), operator, java_script_enabled=with_script)
    expect(page.locator("#project-state")).to_contain_text("no such host")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#project-head")).to_contain_text("cloning")
    Project.objects.update(state=ProjectState.FAILED)
    page.reload()
    confirm_everybody()
    page.get_by_role("link", name="Remove project").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Remove demo?")
    page.get_by_role("button", name="Remove project").click()
    expect(page.locator("#nav-projects")).to_contain_text("being removed")
    removal.carry_out(world.lab, Project.objects.get().pk)
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Welcome")


@pytest.mark.row("LAB-132", "X-18", level="browser")
@STYLES
def test_a_project_is_added_in_both_styles(
    open_page: OpenPage, operator: User, world: World, tmp_path: Any, with_script: bool
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    world.repos.urls[str(folder)] = "main"
    page = open_page("/", operator, java_script_enabled=with_script)
    page.locator("main").get_by_role("link", name="Add project").click()
    page.wait_for_url("**/projects/new")  # all of it is there, its scripts too
    field = page.get_by_label("Repository")
    field.fill("/no/such/folder")
    page.get_by_label("Access token").fill("kept while typing")
    page.get_by_role("button", name="Add project").click()
    expect(page.locator("#id_source_error")).to_contain_text("There is no folder")
    assert field.input_value() == "/no/such/folder"
    if with_script:
        assert page.get_by_label("Access token").input_value() == "kept while typing"
    field.fill(str(folder))
    page.get_by_role("button", name="Add project").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("shop")
    expect(page.locator("#project-head")).to_contain_text("cloning")


@pytest.mark.quick("Stop in a real browser")
@pytest.mark.row("LAB-46", level="browser")
def test_stop_in_a_list_shows_the_outcome_without_a_reload(
    open_page: OpenPage, operator: User, world: World
) -> None:
    _a_run(world)
    run = Run.objects.get()
    page = open_page("/", operator)
    page.evaluate("window.same = true")
    press_twice(page.get_by_role("button", name="Stop demo #7"))
    expect(page.locator("#stats")).to_contain_text("0 of 6")
    expect(page.locator("#activity")).to_contain_text("stopped")
    expect(page.locator(f"#run-{run.pk}")).to_have_count(0)
    assert page.evaluate("window.same")


def test_an_answer_that_never_comes_is_said_in_plain_words(
    open_page: OpenPage, operator: User, world: World
) -> None:
    page = open_page(_a_run(world), operator)
    page.route("**/stop", lambda route: route.abort())
    press_twice(page.locator("#stop"))
    expect(page.get_by_role("alert")).to_contain_text("labsite did not answer")


@pytest.mark.parametrize(
    ("status", "text"),
    [(500, "answered with an error (500)"), (403, "too old"), (404, "no longer there")],
)
def test_an_error_without_words_of_its_own_gets_some(
    open_page: OpenPage, operator: User, world: World, status: int, text: str
) -> None:
    page = open_page(_a_run(world), operator)
    page.route(
        "**/stop",
        lambda route: route.fulfill(
            status=status, body="<h1>Traceback</h1>", content_type="text/html"
        ),
    )
    press_twice(page.locator("#stop"))
    expect(page.get_by_role("alert")).to_contain_text(text)
    expect(page.locator("main")).not_to_contain_text("Traceback")
    expect(page.locator("#steps")).to_be_visible()


def test_a_refresh_that_fails_says_so_quietly_and_goes_on(
    open_page: OpenPage, operator: User, world: World
) -> None:
    page = open_page(_a_run(world), operator)
    page.route("**/live", lambda route: route.abort())
    page.evaluate("htmx.trigger(document.getElementById('live'), 'lab:refresh')")
    expect(page.locator("#link-state")).to_contain_text("not reachable")
    expect(page.locator("#banner .banner")).to_have_count(0)


def test_the_attach_command_is_copied(open_page: OpenPage, operator: User, world: World) -> None:
    may = ["clipboard-read", "clipboard-write"]
    page = open_page(f"{_a_run(world)}terminal/", operator, permissions=may, clock=True)
    page.get_by_role("button", name="Copy attach command").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    command = page.locator("#attach").inner_text()
    assert page.evaluate("navigator.clipboard.readText()") == command
    assert "demo~1~afk-7" in command


def _answers(page: Page) -> list[int]:
    """The status of each POST's answer, in order."""
    statuses: list[int] = []
    page.on(
        "response",
        lambda answer: statuses.append(answer.status) if answer.request.method == "POST" else None,
    )
    return statuses


@pytest.mark.parametrize("place", ["/projects/{0}/", "/projects/{0}/issues/2/"])
def test_the_start_button_of_an_issue_names_that_issue(
    open_page: OpenPage, operator: User, world: World, place: str
) -> None:
    """A press sends no name of its button's own accord: its form is another place of the page."""
    project = rows.a_tracked_project()
    for _ in range(2):
        rows.a_ready_issue(project, "Add retries")
    rows.answer_starts(world, AnswerCode.NOTHING_READY, "Nothing is ready.")
    page = open_page(place.format(project.pk), operator)
    page.get_by_role("button", name=re.compile(r"Start (demo )?(#2|this issue)")).first.click()
    expect(page.locator("#banner")).to_contain_text("Nothing is ready.")
    assert StartRequest.objects.get().wanted_key == "2"


@pytest.mark.parametrize("what", ["link", "button"])
def test_a_press_counts_although_the_page_moves_before_the_release(
    open_page: OpenPage, operator: User, world: World, what: str
) -> None:
    """The banner of an answer comes in above what somebody is just pressing."""
    page = open_page(_a_run(world), operator)
    link = page.locator("#main").get_by_role("link", name="runs", exact=True)
    target = link if what == "link" else page.locator("#stop")
    before = target.bounding_box()
    assert before is not None
    page.mouse.move(before["x"] + 5, before["y"] + 5)
    page.mouse.down()
    page.evaluate("document.getElementById('banner').style = 'display: block; height: 300px'")
    after = target.bounding_box()
    assert after is not None and after["y"] > before["y"] + 200
    page.mouse.up()
    if what == "link":
        expect(page).to_have_url(re.compile(r"/history/\?project=\d+$"))
    else:
        expect(target).to_have_text("Press again: stop")


@pytest.mark.parametrize("what", ["#stop", "#start"])
def test_a_button_that_its_answer_takes_away_leaves_the_focus_to_what_was_done(
    open_page: OpenPage, operator: User, world: World, what: str
) -> None:
    page = open_page(_a_run(world) if what == "#stop" else _started(world), operator, clock=True)
    page.locator(what).focus()
    page.keyboard.press("Enter")
    if what == "#stop":
        page.keyboard.press("Enter")
    banner = page.locator("#banner .banner")
    expect(banner).to_be_visible()
    if what == "#stop":
        expect(banner).to_be_focused()
        page.clock.run_for(30_000)
        expect(banner).to_be_visible()
        page.locator("h1").click()
    else:
        expect(page.locator("body :focus")).to_have_count(1)
    page.clock.run_for(13_000)
    expect(banner).to_have_count(0)


def test_a_drag_is_not_a_press(open_page: OpenPage, operator: User, world: World) -> None:
    page = open_page(_a_run(world), operator)
    at = page.locator("#stop").bounding_box()
    assert at is not None
    page.mouse.move(at["x"] + 5, at["y"] + 5)
    page.mouse.down()
    page.mouse.move(at["x"] + 5, at["y"] + 200)
    page.mouse.up()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert Run.objects.get().state == "working"

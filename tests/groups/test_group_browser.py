"""A task group as a person sees it: checkpoints pushed before real daphne, pressed, easy on the eye."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from runs.groups.terms import Decision, TaskStatus
from runs.models import Monitor, Project, Task, TaskGroup
from tests import make
from tests.fakes import World
from tests.groups.group_desk import a_checkpoint, a_monitor, a_wave
from tests.web.browser_fixture import Tab
from tests.web.browsing import OpenPage
from tests.web.daphne_fixture import Served
from tests.web.looking import looks
from tests.web.test_feed_browser import LIVE

# A group of four tasks, watched; nothing refreshes by itself, so what is seen was pushed.
BEGIN = """
from datetime import UTC, datetime, timedelta
from django.db.models import F
from runs.groups import acts as groups, workers as hiring, monitors, tasks; from runs import tick
from trackers.builtin import store
Settings.objects.update_or_create(pk=1, defaults={"refresh_seconds": 60})
project = Project.objects.create(name="demo", slug="demo", state="ready", source="/x", tracker="builtin",
                                 tracker_root=store.create_root("demo"), created_at=datetime.now(UTC))
new = [tasks.NewTask(subject) for subject in ("Plan", "Write", "Test", "Ship")]
group = groups.make(lab, project, "wave", new=new, by="anna")
monitors.start(lab, group, by="anna")
def claims(key, worker):
    tasks.claim(lab, group, hiring.worker_of(group, worker, is_new=True), key=key, by="")
def completes(key, worker):
    claims(key, worker)
    tasks.complete(lab, group, key, worker=hiring.worker_of(group, worker), by="")
def passes(minutes=0):
    # Time inside a monitor counts from its start: a start so much earlier is so much later now.
    now = lab.now()
    earlier = F("started_at") - timedelta(minutes=minutes)
    Monitor.objects.running().update(started_at=earlier, pass_at=now, look_at=now)
    tick.tick(lab)
result = [project.pk, group.pk]
"""


def heading(number: int) -> str:
    return f"Checkpoint {number} — Work"


@pytest.mark.row("RUNE-37", "X-18", level="browser")
def test_checkpoints_a_stalled_task_and_its_release_are_pushed_in_order(
    served: Served, tab: Tab
) -> None:
    project, group = served.do(BEGIN)
    page = tab(f"/projects/{project}/groups/{group}/", served.cookie())
    page.wait_for_selector(LIVE)
    page.evaluate("window.isSamePage = true")
    newest = page.locator("#group-checkpoints article").first
    bar = page.locator("#group-progress progress")

    served.do("completes('1', 'fa-1'); passes()")
    expect(newest).to_contain_text(heading(1))
    expect(newest).to_contain_text("Progress: 1/4 (25%)")
    expect(newest).to_contain_text("Active: none")
    expect(newest).to_contain_text("CONTINUE")
    expect(bar).to_have_js_property("value", 25)

    served.do("completes('2', 'fa-1'); claims('3', 'fa-2'); passes()")
    expect(newest).to_contain_text(heading(2))
    expect(newest).to_contain_text("Progress: 2/4 (50%)")
    expect(newest).to_contain_text("Active: Test")
    expect(page.locator("#group-workers")).to_contain_text("fa-2 #3 Test")

    served.do("passes(minutes=6)")
    expect(newest).to_contain_text(heading(3))
    # Real minutes count too: a busy machine may need one for what this test does.
    expect(newest).to_contain_text(re.compile(r"Blockers: #3 Test \(stale >[6-9]min\)"))
    expect(newest).to_contain_text("INVESTIGATE")
    stalled = page.locator("#group-blockers")
    expect(stalled).to_contain_text("#3 Test, with fa-2")
    expect(stalled).to_contain_text("It is given back at")

    served.do("passes(minutes=5)")
    expect(stalled).to_be_hidden()
    expect(page.locator("#group-feed")).to_contain_text("task #3 stalled (>10min) — auto-releasing")
    expect(page.locator("#group-tasks li", has_text="Test")).to_contain_text("pending")

    served.do("completes('3', 'fa-3'); passes()")
    expect(newest).to_contain_text(heading(4))
    expect(newest).to_contain_text("Progress: 3/4 (75%)")

    served.do("completes('4', 'fa-1'); passes()")
    expect(newest).to_contain_text(heading(5))
    expect(newest).to_contain_text("Progress: 4/4 (100%)")
    expect(newest).to_contain_text("COMPLETE")
    expect(page.locator("#group-result")).to_contain_text("Work completed: 4/4")
    expect(page.locator(".milestones li.told")).to_have_count(4)
    assert page.evaluate("window.isSamePage") is True
    assert page.complaints == []


def a_desk(world: World) -> tuple[Project, TaskGroup]:
    world.tracker.add_root("demo")
    project = make.a_project()
    return project, a_wave(project, world.lab)


@pytest.mark.quick("a task group in a real browser")
@pytest.mark.django_db(transaction=True)
def test_a_group_is_made_watched_and_settled(
    open_page: OpenPage, operator: User, world: World
) -> None:
    world.tracker.add_root("demo")
    project = make.a_project()
    page = open_page(f"/projects/{project.pk}/groups/", operator, clock=True)
    page.get_by_role("link", name="New task group").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("New task group")
    page.get_by_label("Name").fill("a b")
    page.get_by_role("textbox", name="Tasks").fill("Write it\nTest it")
    page.get_by_role("button", name="Make the group").click()
    expect(page.locator("#id_name_error")).to_contain_text("letters, digits")
    page.get_by_label("Name").fill("wave")
    page.get_by_role("button", name="Make the group").click()
    page.wait_for_url("**/groups/*/")
    page.evaluate("window.isSamePage = true")
    page.get_by_role("button", name="Start a monitor").click()
    expect(page.locator("#monitor-stop")).to_be_visible()
    assert Monitor.objects.get().preset == "work"
    page.get_by_text("Add tasks", exact=True).click()
    page.get_by_label("New tasks").fill("Ship it")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#group-tasks")).to_contain_text("Ship it")
    expect(page.get_by_label("New tasks")).to_have_value("")
    page.get_by_role("button", name="Complete task 1").click()
    page.get_by_role("button", name="Press again: completed").click()
    expect(page.locator("#group-tasks li", has_text="Write it")).to_contain_text("completed")
    assert Task.objects.get(key="1").status == TaskStatus.COMPLETED
    assert page.evaluate("window.isSamePage") is True
    page.locator("#group-delete").click()
    page.get_by_role("button", name="Press again: delete").click()
    page.wait_for_url("**/groups/")
    assert not TaskGroup.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.row("LAB-132", level="browser")
def test_it_works_without_scripts(open_page: OpenPage, operator: User, world: World) -> None:
    project, group = a_desk(world)
    Monitor.objects.all().delete()
    home = f"/projects/{project.pk}/groups/{group.pk}/"
    page = open_page(home, operator, java_script_enabled=False)
    page.get_by_role("link", name="With other options").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Start a monitor")
    page.get_by_role("link", name="review").click()
    expect(page.get_by_label("Minutes until it is given back")).to_be_disabled()
    page.get_by_role("button", name="Start the monitor").click()
    page.wait_for_url(f"**{home}")
    assert Monitor.objects.get().label == "Review"
    page.get_by_role("button", name="Give back task 2").click()
    expect(page.locator("#banner")).to_contain_text("Task #2 is free again")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Delete wave?")
    page.get_by_role("link", name="Keep it").click()
    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.locator("#banner")).to_contain_text("The group is closed.")


@pytest.mark.django_db(transaction=True)
def test_every_page_on_groups_is_accessible_and_fits(
    open_page: OpenPage, operator: User, world: World
) -> None:
    project, group = a_desk(world)
    long = "A subject that says a lot and goes on and on " * 5
    Task.objects.filter(key="2").update(subject=long[:256])
    Task.objects.filter(key="3").update(note="handed back since " + "x" * 200)
    monitor = Monitor.objects.get()
    a_checkpoint(monitor, 2, active=[long], blockers=[f"#2 {long}"], decision=Decision.INVESTIGATE)
    done = make.a_group(project, "x" * 128, tasks=3, closed_at=world.clock.now)
    a_monitor(done, state="timed out", timed_out=True, completed=["1"], incomplete=["2", "3"])
    folder = world.lab.paths.signals(project.slug, group.name)
    assert folder
    world.clock.forward(minutes=6)
    home = f"/projects/{project.pk}/groups/"
    addresses = {
        "groups": home,
        "group": f"{home}{group.pk}/",
        "group-ended": f"{home}{done.pk}/",
        "group-new": f"{home}new",
        "group-from-issues": f"{home}from-issues",
        "group-monitor": f"{home}{group.pk}/monitor?preset=review",
        "group-tasks": f"{home}{group.pk}/tasks/",
        "group-feed": f"{home}{group.pk}/feed",
        "group-project": f"/projects/{project.pk}/",
        "group-overview": "/",
    }
    wrong: list[object] = []
    page = open_page(home, operator)
    for name, address in addresses.items():
        page.goto(address)
        wrong += looks(page, name)
    assert wrong == []

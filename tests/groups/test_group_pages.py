"""Task groups on the pages: progress, checkpoints, blockers, workers, result, feed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from runs.core.states import NoticeKind
from runs.groups import rows as group_feed
from runs.groups.terms import Decision, MonitorState, TaskStatus
from runs.models import Monitor, Notice, Project, Task, TaskGroup
from runs.web import fragments
from tests import make
from tests.fakes import START, World
from tests.groups.group_desk import BUSY, a_checkpoint, a_monitor, a_wave, tell
from tests.watch.test_watch_pages import part, words
from tests.web.people import text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(world: World) -> Project:
    world.tracker.add_root("demo")
    return make.a_project()


def at(group: TaskGroup, *more: str) -> str:
    return "/".join((f"/projects/{group.project_id}/groups/{group.pk}", *more, ""))


def page_of(client: Client, group: TaskGroup) -> str:
    return text_of(client.get(at(group)))


def later(world: World, **length: float) -> None:
    world.clock.forward(**length)


@pytest.mark.row("RUNE-36", level="contract")
def test_a_checkpoint_is_a_card_in_the_words_of_the_template(
    anna: Client, world: World, project: Project
) -> None:
    group = a_wave(project, world.lab)
    monitor = Monitor.objects.get()
    a_checkpoint(
        monitor,
        2,
        completed=2,
        percentage=50,
        active=["Write <b>docs</b>", "Part 4"],
        blockers=["#4 Part 4 (stale >6min)"],
        decision=Decision.INVESTIGATE,
    )
    a_checkpoint(monitor, 3, completed=4, percentage=100, decision=Decision.COMPLETE)
    shown = page_of(anna, group).partition('id="group-checkpoints"')[2].partition("</section>")[0]
    cards = re.findall(r"<article.*?</article>", shown, re.DOTALL)
    assert [re.search(r"<h3[^>]*>(.*?)</h3>", card)[1] for card in cards] == [  # type: ignore[index]
        "Checkpoint 3 — Work",
        "Checkpoint 2 — Work",
        "Checkpoint 1 — Work",
    ]
    assert "&lt;b&gt;docs" in cards[1]
    lines = [words(line) for line in re.findall(r"<p>.*?</p>", cards[1])]
    assert lines == [
        "Progress: 2/4 (50%)",
        "Active: Write &lt;b&gt;docs&lt;/b&gt;, Part 4",
        "Blockers: #4 Part 4 (stale &gt;6min)",
        "Decision: INVESTIGATE",
    ]
    done = [words(line) for line in re.findall(r"<p>.*?</p>", cards[0])]
    assert done == ["Progress: 4/4 (100%)", "Active: none", "Decision: COMPLETE"]


@pytest.mark.row("RUNE-21", "RUNE-22", level="contract")
def test_the_bar_shows_which_milestones_are_reached_and_told(
    anna: Client, world: World, project: Project
) -> None:
    group = a_wave(project, world.lab)
    Task.objects.filter(key__in="23").update(
        status=TaskStatus.COMPLETED, owner="x", completed_at=START
    )
    shown = page_of(anna, group).partition('id="group-progress"')[2].partition("</section>")[0]
    assert '<progress class="meter" max="100" value="75"' in shown
    assert 'aria-label="3 of 4 tasks completed"' in shown
    marks = [words(mark) for mark in re.findall(r"<li.*?</li>", shown)]
    assert marks == [
        "25% told by a checkpoint",
        "50% reached",
        "75% reached",
        "100% ahead",
    ]
    assert "3/4 completed (75%)" in words(shown)


@pytest.mark.row("RUNE-26", "RUNE-39", "RUNE-09", level="contract")
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "It is given back at 12:10:00 UTC , so that another worker can take it."),
        ({"release_seconds": None}, "only warned of: nothing gives it back until a person does"),
        ({"release_seconds": 300}, "It is given back at the next look."),
    ],
)
def test_a_blocker_says_since_when_and_what_comes_of_it(
    anna: Client, world: World, project: Project, fields: dict[str, Any], said: str
) -> None:
    group = a_wave(project, world.lab, **fields)
    later(world, minutes=5)
    assert 'id="group-blockers" class="card" aria-labelledby="blockers-title" hidden' in page_of(
        anna, group
    )
    later(world, minutes=1)
    shown = part(page_of(anna, group), "group-blockers")
    assert "#2 Part 2 , with fa-2 In progress for 6 min , first seen so at 12:00:00 UTC" in shown
    assert said in shown
    Task.objects.filter(key="2").update(status="completed", completed_at=START)
    assert "blocker-" not in page_of(anna, group)


@pytest.mark.row("C-21", level="contract")
def test_a_stalled_task_of_an_issue_says_that_it_follows_its_run(
    anna: Client, world: World, project: Project
) -> None:
    run = make.a_run(project, "7")
    group = a_wave(project, world.lab)
    Task.objects.filter(key="2").update(issue_key="7", run=run, owner=f"run-{run.pk}")
    later(world, minutes=11)
    shown = page_of(anna, group)
    assert "It stands for issue #7 and follows its run" in part(shown, "group-blockers")
    assert f'<a class="btn" href="/runs/{run.pk}/">' in shown


@pytest.mark.row("RUNE-87", level="contract")
def test_workers_with_what_they_do_and_why_one_was_sent_back(
    anna: Client, world: World, project: Project
) -> None:
    group = a_wave(project, world.lab)
    shown = part(page_of(anna, group), "group-workers")
    assert "fa-2 #2 Part 2" in shown
    assert "fa-3 nothing at the moment Sent back 0 s ago : out/fa-3.md has 12 bytes" in shown


@pytest.mark.row("RUNE-49", "RUNE-02", "RUNE-05", "RUNE-18", "RUNE-48", level="contract")
@pytest.mark.parametrize(
    ("state", "completed", "incomplete", "said"),
    [
        (
            MonitorState.TIMED_OUT,
            ["1", "3"],
            ["2"],
            "timed out Work completed with partial results: 2/3 "
            "Completed 2: #1, #3 Incomplete 1: #2 Timed out yes",
        ),
        (
            MonitorState.TIMED_OUT,
            ["1", "2", "3"],
            [],
            "timed out Work completed with partial results: 3/3 "
            "Completed 3: #1, #2, #3 Incomplete 0 Timed out yes",
        ),
        (
            MonitorState.COMPLETE,
            ["1", "2", "3"],
            [],
            "complete Work completed: 3/3 Completed 3: #1, #2, #3 Incomplete 0 Timed out no",
        ),
    ],
)
def test_the_result_is_told_with_exactly_three_things(
    anna: Client,
    world: World,
    project: Project,
    state: MonitorState,
    completed: list[str],
    incomplete: list[str],
    said: str,
) -> None:
    group = make.a_group(project, tasks=3)
    a_monitor(
        group,
        state=state,
        timed_out=state == MonitorState.TIMED_OUT,
        completed=completed,
        incomplete=incomplete,
    )
    assert part(page_of(anna, group), "group-result") == f"Result {said}"


@pytest.mark.row("C-25", "RUNE-04", level="contract")
def test_a_monitor_that_failed_says_why_and_has_no_result(
    anna: Client, world: World, project: Project
) -> None:
    group = make.a_group(project, tasks=1)
    a_monitor(group, state=MonitorState.ERROR, error="no such table: <task>")
    shown = page_of(anna, group)
    assert "It failed: no such table: &lt;task&gt; No result was recorded" in part(
        shown, "group-monitor"
    )
    assert 'aria-labelledby="result-title" hidden' in shown


@pytest.mark.row("RUNE-01", level="contract")
def test_the_monitor_shows_the_values_in_effect(
    anna: Client, world: World, project: Project
) -> None:
    group = a_wave(project, world.lab)
    shown = part(page_of(anna, group), "group-monitor")
    assert "Label Work Preset work Expects 4 completed" in shown
    assert "Looks every 30 s Next look 12:00:30 UTC Times out 12:30:00 UTC" in shown
    assert "Stalled after 5 min Given back after 10 min" in shown
    Monitor.objects.update(timeout_seconds=None, release_seconds=None, is_fast=True)
    shown = part(page_of(anna, group), "group-monitor")
    assert "every 30 s, at its signals every 5 s" in shown
    assert "Times out never" in shown
    assert "Given back never by itself" in shown


def test_empty_pages_say_what_a_group_is(anna: Client, project: Project) -> None:
    shown = text_of(anna.get(f"/projects/{project.pk}/groups/"))
    assert "One piece of work, cut into tasks" in shown
    assert "Several agents can share one piece of work" in text_of(
        anna.get(f"/projects/{project.pk}/")
    )
    group = make.a_group(project)
    shown = page_of(anna, group)
    assert "Nobody watches this group." in part(shown, "group-monitor")
    assert "There is no task yet." in part(shown, "group-tasks")
    assert "Nobody has taken a task yet." in part(shown, "group-workers")
    assert 'value="0"' in shown


def test_the_list_and_the_project_page_show_how_far_each_is(
    anna: Client, world: World, project: Project
) -> None:
    group = a_wave(project, world.lab)
    make.a_group(project, "old", closed_at=START, tasks=1)
    shown = text_of(anna.get(f"/projects/{project.pk}/groups/"))
    listed = words(shown.partition('id="group-rows"')[2])
    assert listed.index("wave watched 1/4 completed, 1 in progress") < listed.index("old closed")
    assert f'href="{at(group)}"' in shown
    card = part(text_of(anna.get(f"/projects/{project.pk}/")), "project-groups")
    assert "wave watched 1/4 completed, 1 in progress" in card
    assert "old" not in card


def test_the_list_of_groups_and_of_tasks_is_paged(anna: Client, project: Project) -> None:
    group = make.a_group(project, tasks=51)
    for number in range(51):
        make.a_group(project, f"g{number}")
    first = text_of(anna.get(f"/projects/{project.pk}/groups/"))
    second = text_of(anna.get(f"/projects/{project.pk}/groups/?page=2"))
    assert (first.count("group-line"), second.count("group-line")) == (50, 2)
    assert 'rel="next" href="?page=2"' in first
    assert "All 51" in page_of(anna, group)
    assert text_of(anna.get(at(group, "tasks"))).count('<li id="task-') == 50
    last = text_of(anna.get(f"{at(group, 'tasks')}?page=2"))
    assert last.count('<li id="task-') == 1
    assert "Part 51" in last


@pytest.mark.row("RUNE-13", "RUNE-38", level="contract")
def test_the_feed_tells_once_what_passes_repeat(
    anna: Client, world: World, project: Project
) -> None:
    group = make.a_group(project)
    progress, warning = "Work progress: 1/4 tasks", "Work: task #2 may be stalled (>5min)"
    for _ in range(3):
        tell(world.lab, group, NoticeKind.MONITOR_PROGRESS, progress)
        tell(world.lab, group, NoticeKind.MONITOR_WARNED, warning)
    tell(world.lab, group, NoticeKind.TASK_COMPLETED, "task #2 was completed", by="fa-2")
    tell(world.lab, group, NoticeKind.MONITOR_PROGRESS, progress)
    told = group_feed.folded(Notice.objects.filter(group=group).order_by("-pk"))
    assert [(one.notice.text, one.times) for one in told] == [
        (progress, 1),
        ("task #2 was completed", 1),
        (warning, 3),
        (progress, 3),
    ]
    shown = part(page_of(anna, group), "group-feed")
    assert f"{warning.replace('>', '&gt;')} ×3" in shown


def test_older_entries_are_a_page_away(anna: Client, world: World, project: Project) -> None:
    group = make.a_group(project)
    for number in range(203):
        tell(world.lab, group, NoticeKind.TASK_ADDED, f"entry {number:03}")
    shown = page_of(anna, group)
    assert "entry 003" in shown
    assert "entry 002" not in shown
    address = re.search(r'href="([^"]+feed\?before=\d+)"', shown)
    assert address is not None
    older = text_of(anna.get(address[1]))
    assert [f"entry 00{n}" in older for n in range(4)] == [True, True, True, False]
    assert anna.get(f"{at(group)}feed?before=x").status_code == 200


@pytest.mark.row("RUNE-37", level="contract")
def test_what_is_told_of_a_group_is_pushed_to_its_page(world: World, project: Project) -> None:
    group = a_wave(project, world.lab)
    notice = tell(world.lab, group, NoticeKind.MONITOR_CHECKPOINT, "Checkpoint 1 — Work")
    assert f"group:{group.pk}" in fragments.topics_of(notice)
    pushed = fragments.regions(f"group:{group.pk}", True)
    assert pushed is not None
    assert "Checkpoint 1 — Work" in pushed["group-checkpoints"]
    assert set(fragments.GROUP) <= set(pushed)
    assert fragments.regions("group:99", True) is None
    repeated = tell(world.lab, group, NoticeKind.MONITOR_PROGRESS, "Work progress: 1/4 tasks")
    assert fragments.topics_of(repeated) == {f"group:{group.pk}"}


def test_a_refresh_is_304_until_something_is_told(
    anna: Client, world: World, project: Project
) -> None:
    group = a_wave(project, world.lab)
    for address in (f"{at(group)}live", f"/projects/{project.pk}/groups/live"):
        tag = anna.get(address, headers={"HX-Request": "true"})["HX-PTag"]
        headers = {"HX-Request": "true", "HX-PTag": tag}
        assert anna.get(address, headers=headers).status_code == 304
        tell(world.lab, group, NoticeKind.TASK_ADDED, "a task more")
        assert anna.get(address, headers=headers).status_code == 200


def test_groups_of_other_projects_are_not_here(
    anna: Client, world: World, project: Project
) -> None:
    group = a_wave(project, world.lab)
    other = make.a_project("other")
    for more in ("", "tasks/", "feed"):
        assert anna.get(f"/projects/{other.pk}/groups/{group.pk}/{more}").status_code == 404
    assert anna.get(f"/projects/{project.pk}/groups/99/").status_code == 404
    assert anna.get("/projects/987654321/groups/").status_code == 404


def test_an_entry_of_a_group_leads_to_its_page(
    anna: Client, world: World, project: Project
) -> None:
    group = a_wave(project, world.lab)
    assert f'<a href="{at(group)}"><b>demo</b></a>' in text_of(anna.get("/"))


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 30])
def test_pages_on_groups_cost_a_fixed_number_of_queries(
    anna: Client, world: World, project: Project, count: int, django_assert_num_queries: Any
) -> None:
    group = a_wave(project, world.lab, size=count + 4)
    for number in range(count):
        make.a_group(project, f"g{number}", tasks=1)
        Task.objects.create(
            group=group, key=f"b{number}", subject="b", status=BUSY, owner="z", claimed_at=START
        )
        a_checkpoint(Monitor.objects.get(), number + 2)
        tell(world.lab, group, NoticeKind.TASK_ADDED, f"n{number}")
    later(world, minutes=6)
    anna.get("/")  # notes that she is here, for the next minutes
    Project.objects.update(queue_asked_at=world.clock.now)  # else its page has it asked again
    with django_assert_num_queries(2 + 12):
        page_of(anna, group)
    with django_assert_num_queries(8):
        anna.get(f"/projects/{project.pk}/groups/")
    with django_assert_num_queries(8):
        anna.get(at(group, "tasks"))
    with django_assert_num_queries(2 + 13):
        anna.get(f"/projects/{project.pk}/")

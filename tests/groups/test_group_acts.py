"""What people do with task groups on the pages: forms with errors at the field, acts, refusals."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from runs.groups.signal_rules import Crash, Inscription, SentBack
from runs.groups.terms import Decision, MonitorState, TaskStatus
from runs.models import Monitor, MonitorPreset, Notice, Project, Task, TaskGroup
from tests import make
from tests.fakes import START, World
from tests.groups.group_desk import BUSY, a_checkpoint, a_monitor, a_wave
from tests.groups.test_group_pages import at, page_of
from tests.watch.test_watch_pages import part, words
from tests.web.people import hx, text_of

pytestmark = pytest.mark.django_db(transaction=True)

FORM = {
    "preset": "work",
    "label": "Mine",
    "poll": "20",
    "stale": "1.5",
    "timeout": "",
    "release": "3",
    "expected": "7",
    "has_checkpoints": "on",
}


@pytest.fixture
def project(world: World) -> Project:
    world.tracker.add_root("demo")
    for key, labels in (("3", ["wave"]), ("5", ["wave"]), ("8", [])):
        world.tracker.add_issue("demo", f"Issue {key}", key, labels=labels)
    return make.a_project()


def error_of(html: str, field: str) -> str:
    return words(html.partition(f'id="id_{field}_error">')[2].partition("</p>")[0])


def new(project: Project, name: str = "new") -> str:
    return f"/projects/{project.pk}/groups/{name}"


def test_a_group_is_made_of_lines(anna: Client, project: Project) -> None:
    shown = text_of(anna.get(new(project)))
    assert "work: times out after 30 min, gives back after 10 min, checkpoints" in shown
    assert "review: times out after 10 min, only warns" in shown
    sent = {"name": "wave-1", "preset": "review", "tasks": "Write it\n\n  Test it \n"}
    answer = anna.post(new(project), sent)
    group = TaskGroup.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (303, at(group))
    assert (group.name, group.preset, group.made_by) == ("wave-1", "review", "anna")
    assert list(group.tasks.values_list("key", "subject")) == [("1", "Write it"), ("2", "Test it")]


@pytest.mark.parametrize(
    ("sent", "field", "said"),
    [
        ({"name": ""}, "name", "Write a name."),
        ({"name": "../x"}, "name", "letters, digits, _ and - only"),
        ({"name": "a b"}, "name", "letters, digits, _ and - only"),
        ({"name": "x" * 129}, "name", "at most 128 characters"),
        ({"name": "taken"}, "name", "has an open task group taken"),
        ({"preset": "none"}, "preset", "Select a valid choice"),
    ],
)
def test_what_does_not_fit_is_said_at_its_field(
    anna: Client, project: Project, sent: dict[str, str], field: str, said: str
) -> None:
    make.a_group(project, "taken")
    answer = anna.post(new(project), {"name": "new", "preset": "work", "tasks": "a\nb", **sent})
    assert answer.status_code == 422
    assert said in error_of(text_of(answer), field)
    assert "a\nb</textarea>" in text_of(answer)
    assert TaskGroup.objects.count() == 1


@pytest.mark.parametrize(
    ("chosen", "keys"),
    [
        ({"label": "wave"}, ["3", "5"]),
        ({"issues": "#8, 3"}, ["3", "8"]),
        ({"label": "wave", "issues": "8"}, ["3", "5", "8"]),
    ],
)
def test_a_group_is_made_of_issues(
    anna: Client, project: Project, chosen: dict[str, str], keys: list[str]
) -> None:
    shown = text_of(anna.get(new(project, "from-issues")))
    assert 'value="ready-for-agent"' in shown
    sent = {"name": "wave", "preset": "work", "label": "", "milestone": "", "issues": "", **chosen}
    assert anna.post(new(project, "from-issues"), sent).status_code == 303
    assert sorted(Task.objects.values_list("issue_key", flat=True)) == keys
    shown = page_of(anna, TaskGroup.objects.get())
    assert "Issue 3" in shown
    assert "data-confirm" not in part(shown, "group-tasks")


def test_issues_that_are_not_there_are_said_at_the_field(anna: Client, project: Project) -> None:
    sent = {"name": "wave", "preset": "work", "issues": "99"}
    answer = anna.post(new(project, "from-issues"), sent)
    assert answer.status_code == 422
    assert "#99" in error_of(text_of(answer), "issues")
    sent["issues"] = ""
    answer = anna.post(new(project, "from-issues"), sent)
    assert "nothing to make a group of" in error_of(text_of(answer), "issues")
    assert not TaskGroup.objects.exists()


@pytest.mark.parametrize("is_htmx", [True, False])
def test_tasks_are_added(anna: Client, project: Project, is_htmx: bool) -> None:
    group = make.a_group(project)
    send: Any = hx if is_htmx else Client.post
    answer = send(anna, f"{at(group)}add", {"tasks": "One\nTwo"})
    assert answer.status_code == (200 if is_htmx else 303)
    if is_htmx:
        assert 'hx-target="#group-tasks"' in text_of(answer)
        assert 'hx-target="#task-form"' in text_of(answer)
        assert "2 tasks added." in text_of(answer)
    assert group.tasks.count() == 2
    wrong = send(anna, f"{at(group)}add", {"tasks": " "})
    assert wrong.status_code == 422
    assert error_of(text_of(wrong), "tasks_2") == "Write a task."
    TaskGroup.objects.update(closed_at=START)
    wrong = send(anna, f"{at(group)}add", {"tasks": "Three"})
    assert "is closed" in error_of(text_of(wrong), "tasks_2")
    assert group.tasks.count() == 2


@pytest.mark.parametrize("is_htmx", [True, False])
def test_a_person_completes_and_gives_back(
    anna: Client, world: World, project: Project, is_htmx: bool
) -> None:
    group = a_wave(project, world.lab)
    send: Any = hx if is_htmx else Client.post
    busy, free = Task.objects.get(key="2"), Task.objects.get(key="3")
    for task, act, said in ((busy, "hand-back", "Task #2 is free"), (free, "complete", "Task #3")):
        answer = send(anna, f"{at(group)}tasks/{task.pk}/{act}")
        assert answer.status_code == (200 if is_htmx else 303)
        if is_htmx:
            assert said in text_of(answer)
            assert 'hx-target="#group-tasks"' in text_of(answer)
    statuses = dict(Task.objects.values_list("key", "status"))
    assert (statuses["2"], statuses["3"]) == (TaskStatus.PENDING, TaskStatus.COMPLETED)
    again = hx(anna, f"{at(group)}tasks/{free.pk}/hand-back")
    assert again.status_code == 409
    assert "Nothing was changed" in text_of(again)


@pytest.mark.postgres
@pytest.mark.row("RUNE-01", "RUNE-06", level="contract")
def test_a_monitor_is_started_by_one_press_or_with_options(
    anna: Client, world: World, project: Project
) -> None:
    group = make.a_group(project, tasks=2)
    assert 'id="monitor-start"' in page_of(anna, group)
    answer = hx(anna, f"{at(group)}monitor", {"quick": "yes"})
    assert 'hx-target="#group-monitor"' in text_of(answer)
    monitor = Monitor.objects.get()
    assert (monitor.label, monitor.expected, monitor.started_by) == ("Work", 2, "anna")
    assert (monitor.poll_seconds, monitor.release_seconds) == (30, 600)
    again = hx(anna, f"{at(group)}monitor", {"quick": "yes"})
    assert again.status_code == 409
    assert "running monitor" in text_of(again)
    assert 'id="monitor-stop"' in page_of(anna, group)
    assert anna.post(f"{at(group)}monitor/stop").status_code == 303
    assert Monitor.objects.get().state == MonitorState.STOPPED
    assert "No monitor was running" in text_of(hx(anna, f"{at(group)}monitor/stop"))
    assert anna.post(f"{at(group)}monitor", FORM).headers["Location"] == at(group)
    monitor = Monitor.objects.latest("pk")
    assert (monitor.label, monitor.poll_seconds, monitor.stale_seconds) == ("Mine", 20, 90)
    assert (monitor.timeout_seconds, monitor.release_seconds) == (None, 180)
    assert (monitor.expected, monitor.has_checkpoints) == (7, True)
    shown = part(page_of(anna, group), "group-monitor")
    assert "Label Mine" in shown
    assert "Looks every 20 s" in shown
    assert "Stalled after 1.5 min Given back after 3 min" in shown


@pytest.mark.row("RUNE-51", "RUNE-52", "RUNE-53", "RUNE-54", "RUNE-55", "RUNE-56", level="contract")
@pytest.mark.parametrize(
    ("name", "label", "timeout", "release", "has_checkpoints"),
    [
        ("review", "Review", "10", None, False),
        ("audit", "Audit", "15", None, False),
        ("work", "Work", "30", "10", True),
        ("mend", "Mend", "15", "10", False),
        ("plan", "Plan Research", "", "", False),
        ("forge", "Forge", "", "5", False),
    ],
)
def test_the_form_begins_with_what_the_preset_has(
    anna: Client,
    project: Project,
    name: str,
    label: str,
    timeout: str,
    release: str | None,
    has_checkpoints: bool,
) -> None:
    group = make.a_group(project)
    shown = text_of(anna.get(f"{at(group)}monitor?preset={name}"))
    fields = dict(re.findall(r'<input type="text" name="(\w+)" value="([^"]*)"', shown))
    assert (fields["label"], fields["stale"], fields["poll"]) == (label, "5", "30")
    assert fields.get("timeout", "") == timeout
    assert fields.get("release", "") == (release or "")
    release_field = re.search(r'<input[^>]* name="release"[^>]*>', shown)
    assert release_field is not None
    assert ("disabled" in release_field[0]) is (release is None)
    assert ('id="id_has_checkpoints" checked' in shown) is has_checkpoints


@pytest.mark.row("RUNE-45", level="contract")
@pytest.mark.parametrize("by", ["preset", "group"])
def test_what_is_unique_is_never_given_back(anna: Client, project: Project, by: str) -> None:
    group = make.a_group(project, preset="audit" if by == "group" else "work", tasks=1)
    preset = "review" if by == "preset" else "work"
    shown = text_of(anna.get(f"{at(group)}monitor?preset={preset}"))
    assert "Never here: what a worker finds is its own" in shown
    anna.post(f"{at(group)}monitor", {**FORM, "preset": preset})
    assert Monitor.objects.get().release_seconds is None


@pytest.mark.row("RUNE-60", level="contract")
def test_what_an_admin_tuned_is_what_the_form_begins_with(anna: Client, project: Project) -> None:
    MonitorPreset.objects.complete().filter(name="work").update(poll_seconds=7, stale_seconds=90)
    shown = text_of(anna.get(f"{at(make.a_group(project))}monitor"))
    assert 'name="poll" value="7"' in shown
    assert 'name="stale" value="1.5"' in shown


@pytest.mark.parametrize(
    ("field", "sent", "said"),
    [
        ("label", "", "Write a label."),
        ("poll", "0", "at least 1"),
        ("poll", "x", "Write a number of seconds."),
        ("stale", "", "Write a number of minutes."),
        ("stale", "0", "more than a second"),
        ("timeout", "nan", "Write a number of minutes."),
        ("release", "-1", "more than a second"),
        ("expected", "-1", "less than 0"),
    ],
)
def test_an_option_that_does_not_fit_is_said_at_its_field(
    anna: Client, project: Project, field: str, sent: str, said: str
) -> None:
    group = make.a_group(project, tasks=1)
    answer = anna.post(f"{at(group)}monitor", {**FORM, field: sent})
    assert answer.status_code == 422
    assert said in error_of(text_of(answer), field)
    assert text_of(answer).count('class="error"') == 1
    assert not Monitor.objects.exists()


@pytest.mark.postgres
def test_a_group_that_is_watched_or_closed_is_refused_in_words(
    anna: Client, world: World, project: Project
) -> None:
    group = a_wave(project, world.lab)
    assert "running monitor" in text_of(anna.post(f"{at(group)}monitor", FORM))
    Monitor.objects.all().delete()
    assert "There is no preset x." in text_of(anna.post(f"{at(group)}monitor", {**FORM, "preset": "x"}))  # fmt: skip
    TaskGroup.objects.update(closed_at=START)
    assert "closed or gone. Nothing was started." in text_of(anna.post(f"{at(group)}monitor", FORM))


def test_a_group_is_closed_and_deleted(anna: Client, world: World, project: Project) -> None:
    group = a_wave(project, world.lab)
    answer = hx(anna, f"{at(group)}close")
    assert 'hx-target="#group-end"' in text_of(answer)
    assert "The group is closed." in text_of(answer)
    assert Monitor.objects.get().state == MonitorState.STOPPED
    assert "closed before" in text_of(hx(anna, f"{at(group)}close"))
    shown = page_of(anna, group)
    for gone in ("monitor-start", "task-form", "group-close", "labctl task"):
        assert gone not in shown
    asked = anna.post(f"{at(group)}delete")
    assert (asked.status_code, TaskGroup.objects.count()) == (200, 1)
    assert "are gone then" in text_of(asked)
    answer = anna.post(f"{at(group)}delete", {"sure": "yes"})
    assert answer.headers["Location"] == f"/projects/{project.pk}/groups/"
    assert not TaskGroup.objects.exists()
    assert Notice.objects.filter(text="task group wave was deleted", by="anna").exists()


def test_deleting_by_htmx_leads_to_the_list(anna: Client, project: Project) -> None:
    group = make.a_group(project)
    answer = hx(anna, f"{at(group)}delete", {"sure": "yes"})
    assert answer.headers["HX-Redirect"] == f"/projects/{project.pk}/groups/"


def test_who_may_only_look_sees_it_and_can_do_nothing(
    vera: Client, world: World, project: Project
) -> None:
    group = a_wave(project, world.lab)
    task = Task.objects.get(key="2")
    shown = page_of(vera, group)
    assert "Part 2" in shown
    for hidden in ("data-confirm", "task-form", "monitor-stop", "group-delete"):
        assert hidden not in shown
    for act in ("add", "close", "delete", "monitor", "monitor/stop", f"tasks/{task.pk}/complete"):
        answer = vera.post(f"{at(group)}{act}", {"sure": "yes", "tasks": "x", "quick": "yes"})
        assert answer.status_code == 403
    assert vera.post(new(project), {"name": "x", "preset": "work"}).status_code == 403
    assert vera.get(new(project)).status_code == 403
    assert TaskGroup.objects.get().is_open


def test_acts_on_what_is_elsewhere_or_gone_are_404(
    anna: Client, world: World, project: Project
) -> None:
    group, other = a_wave(project, world.lab), make.a_group(project, "other")
    task = Task.objects.get(key="2")
    assert anna.post(f"{at(other)}tasks/{task.pk}/complete").status_code == 404
    assert anna.post(f"/projects/{project.pk + 1}/groups/{group.pk}/close").status_code == 404
    assert Task.objects.get(key="2").status == BUSY


@pytest.mark.row("RUNE-31", level="contract")
def test_an_investigate_needs_somebody_while_it_stands(
    anna: Client, world: World, project: Project
) -> None:
    group = a_wave(project, world.lab)
    world.clock.forward(minutes=6)
    assert "group wave" not in part(text_of(anna.get("/")), "needs-you")
    a_checkpoint(Monitor.objects.get(), 2, decision=Decision.INVESTIGATE)
    shown = text_of(anna.get("/"))
    assert (
        "demo group wave: 1 task is stalled #2 Part 2. Given back by itself after a while."
        in part(shown, "needs-you")
    )
    assert f'<a class="btn" href="{at(group)}">Open group' in shown
    anna.post(f"{at(group)}tasks/{Task.objects.get(key='2').pk}/complete")
    assert "group wave" not in part(text_of(anna.get("/")), "needs-you")


@pytest.mark.parametrize("count", [1, 9])
def test_what_groups_need_costs_two_queries_and_without_any_none(
    anna: Client, world: World, count: int, django_assert_num_queries: Any
) -> None:
    for number in range(count):
        a_wave(make.a_project(f"p{number}"), world.lab)
    world.clock.forward(minutes=6)
    anna.get("/")
    with django_assert_num_queries(2 + 5):
        anna.get("/")
    for monitor in Monitor.objects.all():
        a_checkpoint(monitor, 2, decision=Decision.INVESTIGATE)
    with django_assert_num_queries(2 + 7):
        shown = part(text_of(anna.get("/")), "needs-you")
    assert shown.count("group wave") == min(count, 7)  # and one row for the worker


def test_what_is_released_or_stopped_needs_nobody(
    anna: Client, world: World, project: Project
) -> None:
    a_wave(project, world.lab, release_seconds=None)
    a_checkpoint(Monitor.objects.get(), 2, decision=Decision.INVESTIGATE)
    world.clock.forward(minutes=6)
    shown = part(text_of(anna.get("/")), "needs-you")
    assert "Nothing is given back until a person does." in shown
    Task.objects.filter(key="2").update(status="pending", owner="", claimed_at=None)
    assert "group wave" not in part(text_of(anna.get("/")), "needs-you")
    Task.objects.filter(key="2").update(status="in_progress", owner="x", claim=1, claimed_at=START)
    assert "group wave" in part(text_of(anna.get("/")), "needs-you")
    Monitor.objects.update(state="stopped", ended_at=START, look_at=None)
    assert "group wave" not in part(text_of(anna.get("/")), "needs-you")


@pytest.mark.row("C-25", level="contract")
def test_a_monitor_that_failed_needs_somebody_until_another_is_started(
    anna: Client, world: World, project: Project
) -> None:
    group = make.a_group(project, tasks=1)
    a_monitor(group, state=MonitorState.ERROR, error="the table is gone", expected=1)
    shown = part(text_of(anna.get("/")), "needs-you")
    assert "demo group wave: its monitor failed the table is gone. No result was recorded" in shown
    anna.post(f"{at(group)}monitor", {"quick": "yes"})
    assert "its monitor failed" not in part(text_of(anna.get("/")), "needs-you")


@pytest.mark.row("RUNE-81", level="contract")
def test_a_crashed_writer_is_a_warning_on_the_page(
    anna: Client, world: World, project: Project
) -> None:
    group = a_wave(project, world.lab)
    folder = world.lab.paths.signals(project.slug, group.name)
    world.signals.prepare(folder, 4, Inscription("work", "", ""))
    there = world.signals.folders[folder]
    there.crashes["2"] = Crash("2", "it was killed while it wrote")
    there.sent_back["fa-2"] = SentBack("fa-2", "out/fa-2.md is missing", "2026-07-30T12:00:00Z")
    shown = part(page_of(anna, group), "group-monitor")
    assert "A signal writer crashed at task #2: it was killed while it wrote." in shown
    assert "out/fa-2.md is missing" in part(page_of(anna, group), "group-workers")
    there.sent_back["fa-2"] = replace(there.sent_back["fa-2"], is_over=True)
    assert "out/fa-2.md is missing" not in part(page_of(anna, group), "group-workers")
    world.signals.broken = "no such disk"
    assert page_of(anna, group)

"""Signal folders of task groups: set up, kept in step, taken over, taken away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import call_command

from runs import sweep
from runs.core.effects import RunEnd, RunStart
from runs.core.ports import SeamError
from runs.core.states import NoticeKind, Outcome
from runs.groups import acts as groups
from runs.groups import issue_tasks, signal_folders, signal_import, tasks
from runs.groups.acts import NewWorker
from runs.groups.fast_path import AllDone
from runs.groups.signal_rules import Crash, Output, SentBack, Signal
from runs.groups.tasks import NewTask
from runs.groups.terms import TaskStatus
from runs.models import Notice, Project, Task, TaskGroup, Worker
from tests import make
from tests.fake_signals import FakeFolder
from tests.fakes import World
from tests.web.people import confirmed
from tests.world.stories import passing

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def stored(django_capture_on_commit_callbacks):  # type: ignore[no-untyped-def]
    """Runs what is to happen once something is stored."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


@pytest.fixture
def project(world: World) -> Project:
    world.tracker.add_root("demo")
    return make.a_project()


@pytest.fixture
def group(world: World, project: Project, stored) -> TaskGroup:  # type: ignore[no-untyped-def]
    new = [NewTask("Read the parser"), NewTask("Read the lexer")]
    workers = [NewWorker("ann", "ann.md"), NewWorker("bob")]
    with stored():
        return groups.make(
            world.lab,
            project,
            "review-7",
            preset="review",
            new=new,
            workers=workers,
            output_dir="out",
            by="anna",
        )


def folder(world: World, group: TaskGroup) -> Path:
    return world.lab.paths.signals(group.project.slug, group.name)


def there(world: World, group: TaskGroup) -> FakeFolder:
    return world.signals.folders[folder(world, group)]


def told(group: TaskGroup, kind: NoticeKind) -> list[str]:
    rows = Notice.objects.filter(group=group, kind=kind).order_by("pk")
    return list(rows.values_list("text", flat=True))


@pytest.mark.row("RUNE-64", level="contract")
def test_a_new_group_has_its_folder_before_anybody_works(world, group):
    agreed = there(world, group).inscription
    assert there(world, group).expected == 2
    assert (agreed.workflow, agreed.output_dir, agreed.tasks) == ("review", "out", ("1", "2"))
    assert agreed.workers == (Output("ann", "ann.md"), Output("bob", ""))
    assert group.signals and TaskGroup.objects.get().signals


@pytest.mark.row("RUNE-65", "RUNE-86", level="contract")
def test_where_signals_are_off_or_the_disk_is_full_the_group_works_without(
    world, project, stored, caplog
):
    project.signals = False
    with stored():
        off = groups.make(world.lab, project, "off", new=[NewTask("a")], by="anna")
    world.signals.broken = "No space left on device"
    project.signals = True
    with stored():
        full = groups.make(world.lab, project, "full", new=[NewTask("a")], by="anna")
    assert "could not be used" in caplog.text
    for group in (off, full):
        with stored():
            tasks.complete(world.lab, group, "1", by="anna")
        assert not group.signals
        assert signal_import.absorb(world.lab, group) == 0
    assert world.signals.folders == {}


@pytest.mark.row("RUNE-66", "RUNE-67", level="contract")
def test_whoever_completes_a_task_leaves_its_signal(world, group, stored):
    with stored():
        tasks.complete(world.lab, group, "1", by="anna")
    assert there(world, group).signals["1"] == Signal(
        "1", "anna", "Read the parser", "2026-11-21T12:00:00Z"
    )
    assert there(world, group).sentinel is None
    with stored():
        tasks.complete(world.lab, group, "2", by="anna")
    assert there(world, group).sentinel == AllDone(2, "2026-11-21T12:00:00Z")
    assert world.bell.looks[-1] == group.project.slug


@pytest.mark.row("RUNE-86", level="contract")
def test_signals_are_on_until_an_admin_switches_them_off(admin_client, project):
    client = confirmed(admin_client)
    page = client.get(f"/admin/runs/project/{project.pk}/change/").content.decode()
    assert project.signals
    assert re.search(r'name="signals"[^>]*checked', page)


def test_a_disk_that_fills_up_loses_no_completion(world, group, stored, caplog):
    world.signals.broken = "No space left on device"
    with stored():
        task = tasks.complete(world.lab, group, "1", by="anna")
    assert task.status == TaskStatus.COMPLETED
    assert "No space left" in caplog.text or "could not be used" in caplog.text


def test_a_run_that_succeeds_leaves_the_signal_of_its_task(world, project, stored):
    run = make.a_run(project, "5")
    new = [NewTask("Issue", key="5", issue_key="5"), NewTask("More")]
    with stored():
        group = groups.make(world.lab, project, "mixed", new=new, by="anna")
        issue_tasks.started(world.lab, RunStart(run.pk, project.pk, run.issue_key))
    assert there(world, group).inscription.tasks == ("1",)
    with stored():
        end = RunEnd(
            run.pk, Outcome.SUCCEEDED, None, did_start=True, was_claimed=True, is_loop=False
        )
        issue_tasks.ended(world.lab, end)
    assert there(world, group).signals["5"].worker == f"run-{run.pk}"


def test_more_tasks_are_waited_for(world, group, stored):
    with stored():
        tasks.add(world.lab, group, [NewTask("Read the printer")], by="anna")
    assert (there(world, group).expected, there(world, group).inscription.tasks) == (
        3,
        ("1", "2", "3"),
    )


@pytest.mark.row("RUNE-80", level="contract")
def test_a_group_that_ends_takes_its_folder_along(world, group, stored):
    with stored():
        groups.close(world.lab, group, by="anna")
    assert world.signals.folders == {}


@pytest.mark.row("RUNE-80", "RUNE-65", level="contract")
def test_all_folders_can_be_removed_twice_and_groups_go_on(world, group, stored, capsys):
    for _ in range(2):
        call_command("clean_signals")
    assert "1 open task group is" in capsys.readouterr().out
    assert world.signals.folders == {}
    group.refresh_from_db()
    with stored():
        tasks.complete(world.lab, group, "1", by="anna")
    assert not group.signals
    world.signals.broken = "a disk"
    with pytest.raises(SystemExit):
        call_command("clean_signals")


def test_the_sweep_takes_what_no_open_group_has(world, group):
    project = group.project
    for name in ("gone", "review-7"):
        path = world.lab.paths.signals(project.slug, name)
        world.signals.folders.setdefault(path, FakeFolder(1, there(world, group).inscription))
    signal_folders.sweep(world.lab, project)
    assert [path.name for path in world.signals.folders] == ["review-7"]
    world.signals.broken = "a disk"
    with pytest.raises(SeamError):
        signal_folders.sweep(world.lab, project)
    sweep.carry_out(world.lab, project.pk)  # one step that fails keeps the others not waiting


def test_what_a_deleted_project_left_goes_at_the_next_start_or_sweep(world, group):
    other = make.a_project("other")
    for name in ("wave", "wide"):
        path = world.lab.paths.signals("other", name)
        world.signals.prepare(path, 1, there(world, group).inscription)
    signal_folders.sweep_gone(world.lab)
    assert len(world.signals.folders) == 3
    other.delete()
    world.signals.stuck.add(world.lab.paths.signals("other", "wide"))
    with pytest.raises(SeamError):  # a disk that fails in the middle
        signal_folders.sweep(world.lab, group.project)
    assert sorted(path.name for path in world.signals.folders) == ["review-7", "wide"]
    world.signals.stuck.clear()
    for _ in range(2):
        signal_folders.sweep(world.lab, group.project)
    assert [path.name for path in world.signals.folders] == ["review-7"]


def test_the_start_takes_what_a_deleted_project_left(world, group):
    path = world.lab.paths.signals("other", "wave")
    world.signals.prepare(path, 1, there(world, group).inscription)
    under_way = passing(world)
    sweep.reconcile(under_way, {})
    assert (under_way.errors, path in world.signals.folders) == ([], False)


@pytest.mark.row("RUNE-66", level="contract")
def test_what_hooks_left_completes_tasks_once(world, group, stored):
    world.signals.write(folder(world, group), Signal("1", "bob", "x", "2026-11-21T11:00:00Z"))
    world.signals.write(folder(world, group), Signal("17", "bob", "x", "2026-11-21T11:00:00Z"))
    with stored():
        assert signal_import.absorb(world.lab, group) == 1
        assert signal_import.absorb(world.lab, group) == 0
    task = Task.objects.get(key="1")
    assert (task.status, task.owner) == (TaskStatus.COMPLETED, "bob")
    assert len(told(group, NoticeKind.TASK_COMPLETED)) == 1
    assert there(world, group).signals["1"].at == "2026-11-21T11:00:00Z"


def test_a_folder_that_cannot_be_read_completes_nothing(world, group):
    world.signals.write(folder(world, group), Signal("1", "bob", "x", "now"))
    world.signals.broken = "a disk"
    assert signal_import.absorb(world.lab, group) == 0
    assert Task.objects.get(key="1").status == TaskStatus.PENDING


def test_a_hook_completes_no_task_that_follows_a_run(world, project, stored):
    new = [NewTask("Issue", key="5", issue_key="5")]
    with stored():
        group = groups.make(world.lab, project, "issues", new=new, by="anna")
    world.signals.write(folder(world, group), Signal("5", "bob", "x", "now"))
    assert signal_import.absorb(world.lab, group) == 0
    assert Task.objects.get(key="5").status == TaskStatus.PENDING


@pytest.mark.row("RUNE-87", level="contract")
def test_a_signal_whose_worker_left_nothing_is_not_accepted(world, group, stored):
    run = make.a_run(group.project, worktree="/w/7")
    Worker.objects.filter(group=group, name="ann").update(run=run)
    world.signals.write(folder(world, group), Signal("1", "ann", "x", "now"))
    world.signals.outputs[(Path(run.worktree), "ann")] = "out/ann.md is missing."
    for _ in range(2):
        assert signal_import.absorb(world.lab, group) == 0
    assert Task.objects.get(key="1").status == TaskStatus.PENDING
    assert told(group, NoticeKind.TASK_SENT_BACK) == [
        "task #1 was not accepted from ann: out/ann.md is missing."
    ]
    assert Worker.objects.get(name="ann").sent_back_why == "out/ann.md is missing."
    world.signals.outputs.clear()
    assert signal_import.absorb(world.lab, group) == 1
    assert Worker.objects.get(name="ann").sent_back_why == ""


@pytest.mark.row("RUNE-87", level="contract")
def test_a_worker_that_a_hook_sent_back_is_told_with_the_reason_once(world, group):
    back = there(world, group).sent_back
    back["ann"] = SentBack("ann", "out/ann.md is missing.", "now")
    for _ in range(2):
        signal_import.absorb(world.lab, group)
    assert told(group, NoticeKind.TASK_SENT_BACK) == ["ann was sent back: out/ann.md is missing."]
    assert Worker.objects.get(name="ann").sent_back_at == world.clock.now
    back["ann"] = SentBack("ann", "out/ann.md is missing.", "now", is_over=True)
    signal_import.absorb(world.lab, group)
    assert Worker.objects.get(name="ann").sent_back_why == ""


@pytest.mark.row("RUNE-81", level="contract")
def test_a_hook_that_crashed_is_told_at_its_task_once(world, group):
    there(world, group).crashes["1"] = Crash("1", "No space left on device")
    for _ in range(2):
        signal_import.absorb(world.lab, group)
    note = "A hook crashed before its signal was there (No space left on device); the task may be done."
    assert Task.objects.get(key="1").note == note
    assert told(group, NoticeKind.MONITOR_WARNED) == [f"task #1: {note}"]


@pytest.mark.row("RUNE-79", level="contract")
def test_groups_that_no_monitor_watches_are_caught_up_with(world, group, stored):
    with stored():
        other = groups.make(world.lab, group.project, "other", new=[NewTask("a")], by="anna")
    world.signals.write(folder(world, group), Signal("1", "bob", "x", "now"))
    with stored():
        assert signal_import.catch_up(world.lab, group.project) == 1
    assert Task.objects.get(group=other).status == TaskStatus.PENDING
    assert there(world, other).sentinel is None

"""Task groups and their tasks: made, claimed, completed, handed back, following runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from django.db import transaction

from runs.core.effects import RunStart
from runs.core.ports import SeamError
from runs.core.states import NoticeKind, Outcome
from runs.groups import acts as groups
from runs.groups import issue_tasks, tasks
from runs.groups import workers as hiring
from runs.groups.acts import Chosen, GroupRefused, NameTaken, NewWorker
from runs.groups.signal_files import SignalFolders
from runs.groups.task_rules import MOST_WORKERS
from runs.groups.tasks import NewTask, TaskRefused
from runs.groups.terms import MonitorState, TaskStatus
from runs.lifecycle import outcomes
from runs.models import Monitor, Notice, Project, Task, TaskGroup, Worker
from tests import make
from tests.fakes import World
from trackers.base import Ability, NotFound

pytestmark = pytest.mark.django_db

WORDS = "These are more than fifty bytes of findings, as asked for."


@pytest.fixture
def project(world: World) -> Project:
    world.tracker.add_root("demo")
    return make.a_project()


@pytest.fixture
def group(world: World, project: Project) -> TaskGroup:
    new = [NewTask("Read the parser"), NewTask("Read the lexer")]
    return groups.make(world.lab, project, "review-7", new=new, by="anna")


def _told(group: TaskGroup) -> list[str]:
    return list(Notice.objects.filter(group=group).order_by("pk").values_list("kind", flat=True))


def _code(error: pytest.ExceptionInfo[TaskRefused]) -> str:
    return error.value.code


def test_a_group_is_made_with_its_tasks_and_told(group: TaskGroup) -> None:
    assert [(t.key, t.subject) for t in group.tasks.all()] == [
        ("1", "Read the parser"),
        ("2", "Read the lexer"),
    ]
    assert _told(group) == [NoticeKind.GROUP_MADE, NoticeKind.TASK_ADDED]
    assert Notice.objects.filter(group=group, by="anna").count() == 2


@pytest.mark.row("RUNE-74", level="contract")
@pytest.mark.parametrize("name", ["", "../x", "a b", "x" * 129, "a/b", "a.b", "ä", "a\nb"])
def test_a_name_that_could_not_be_a_folder_makes_nothing(
    world: World, project: Project, name: str
) -> None:
    with pytest.raises(GroupRefused) as refused:
        groups.make(world.lab, project, name, by="anna")
    assert set(refused.value.fields) == {"name"}
    assert not TaskGroup.objects.exists()
    assert not Notice.objects.exists()


@pytest.mark.row("RUNE-74", level="contract")
@pytest.mark.parametrize("key", ["../x", "a b", "x" * 129, "a.done"])
def test_a_task_whose_key_could_not_be_a_file_is_not_added(
    world: World, group: TaskGroup, key: str
) -> None:
    with pytest.raises(TaskRefused) as refused:
        tasks.add(world.lab, group, [NewTask("fine"), NewTask("x", key=key)], by="anna")
    assert _code(refused) == "invalid"
    assert group.tasks.count() == 2


def test_everything_wrong_with_a_group_is_told_at_once(world: World, project: Project) -> None:
    with pytest.raises(GroupRefused) as refused:
        groups.make(
            world.lab,
            project,
            "a b",
            preset="hope",
            workers=[NewWorker("x", "../y")],
            output_dir="/etc",
            by="anna",
        )
    assert set(refused.value.fields) == {"name", "preset", "workers", "output_dir"}


@pytest.mark.postgres
def test_of_one_name_one_group_is_open(world: World, group: TaskGroup, project: Project) -> None:
    with pytest.raises(NameTaken):
        groups.make(world.lab, project, "review-7", by="anna")
    assert groups.close(world.lab, group, "anna")
    assert not groups.close(world.lab, group, "anna")
    again = groups.make(world.lab, project, "review-7", by="anna")
    assert groups.open_of(project, "review-7") == again


@pytest.mark.row("RUNE-03", level="contract")
def test_a_group_that_is_not_there_is_not_found(project: Project) -> None:
    with pytest.raises(NotFound):
        groups.open_of(project, "nobody")


def test_closing_stops_the_monitor_and_refuses_acts(world: World, group: TaskGroup) -> None:
    worker = hiring.worker_of(group, "ash", is_new=True)
    tasks.claim(world.lab, group, worker, by="ash")
    monitor = _a_monitor(world, group)
    assert groups.close(world.lab, group, "anna")
    monitor.refresh_from_db()
    assert (monitor.state, monitor.ended_by) == (MonitorState.STOPPED, "anna")
    for act in (
        lambda: tasks.claim(world.lab, group, worker, key="2", by="ash"),
        lambda: tasks.claim(
            world.lab, group, hiring.worker_of(group, "rowan", is_new=True), by="rowan"
        ),
        lambda: tasks.complete(world.lab, group, "1", worker=worker, by="ash"),
        lambda: tasks.hand_back(world.lab, group, "1", worker=worker, by="ash"),
        lambda: tasks.add(world.lab, group, [NewTask("x")], by="ash"),
    ):
        with pytest.raises(TaskRefused) as refused:
            act()
        assert _code(refused) == "closed"


def test_a_deleted_group_leaves_a_line_on_the_project(world: World, group: TaskGroup) -> None:
    _a_monitor(world, group)
    groups.delete(world.lab, group, "anna")
    assert not TaskGroup.objects.exists()
    assert not Monitor.objects.exists()
    assert Notice.objects.get().text == "task group review-7 was deleted"


def test_tasks_are_claimed_one_after_the_other(world: World, group: TaskGroup) -> None:
    ash, rowan = (
        hiring.worker_of(group, "ash", is_new=True),
        hiring.worker_of(group, "rowan", is_new=True),
    )
    first = tasks.claim(world.lab, group, ash, by="ash")
    again = tasks.claim(world.lab, group, ash, by="ash")
    second = tasks.claim(world.lab, group, rowan, by="rowan")
    assert first is not None and again == first, "an answer that was lost takes no second task"
    assert second is not None and second.key == "2"
    assert (first.owner, first.claim, first.status) == ("ash", 1, TaskStatus.IN_PROGRESS)
    willow = hiring.worker_of(group, "willow", is_new=True)
    assert tasks.claim(world.lab, group, willow, by="willow") is None


@pytest.mark.row("RUNE-41", level="contract")
def test_a_task_that_was_given_back_belongs_to_whoever_takes_it(
    world: World, group: TaskGroup
) -> None:
    ash, rowan = (
        hiring.worker_of(group, "ash", is_new=True),
        hiring.worker_of(group, "rowan", is_new=True),
    )
    tasks.claim(world.lab, group, ash, key="1", by="ash")
    tasks.hand_back(world.lab, group, "1", note="it stalled", by="anna")
    with pytest.raises(TaskRefused) as refused:
        tasks.complete(world.lab, group, "1", worker=ash, by="ash")
    assert _code(refused) == "not_yours"
    taken = tasks.claim(world.lab, group, rowan, key="1", by="rowan")
    assert taken is not None and taken.claim == 2
    for act in (tasks.complete, tasks.hand_back):
        with pytest.raises(TaskRefused) as refused:
            act(world.lab, group, "1", worker=ash, by="ash")
        assert _code(refused) == "not_yours"
        assert "rowan" in str(refused.value)
    taken.refresh_from_db()
    assert (taken.owner, taken.status, taken.claim) == ("rowan", TaskStatus.IN_PROGRESS, 2)
    done = tasks.complete(world.lab, group, "1", worker=rowan, by="rowan")
    assert done.completed_at == world.clock.now


def test_a_completed_task_stays_completed(world: World, group: TaskGroup) -> None:
    ash = hiring.worker_of(group, "ash", is_new=True)
    tasks.claim(world.lab, group, ash, key="1", by="ash")
    done = tasks.complete(world.lab, group, "1", worker=ash, by="ash")
    assert tasks.complete(world.lab, group, "1", worker=ash, by="ash") == done
    with pytest.raises(TaskRefused) as refused:
        tasks.hand_back(world.lab, group, "1", by="anna")
    assert _code(refused) == "done"
    assert _told(group).count(NoticeKind.TASK_COMPLETED) == 1


def test_a_person_completes_what_nobody_has(world: World, group: TaskGroup) -> None:
    done = tasks.complete(world.lab, group, "2", by="anna")
    assert (done.owner, done.status) == ("anna", TaskStatus.COMPLETED)


def test_a_signal_completes_a_task_once(world: World, group: TaskGroup) -> None:
    task = tasks.find(group, "1")
    assert tasks.signalled(world.lab, task, "ash")
    assert not tasks.signalled(world.lab, tasks.find(group, "1"), "rowan")
    assert tasks.find(group, "1").owner == "ash"


def test_a_workers_name_belongs_to_its_run(world: World, group: TaskGroup) -> None:
    first, second = make.a_run(group.project, "1"), make.a_run(group.project, "2", slot=2)
    hiring.worker_of(group, "ash", first, is_new=True)
    with pytest.raises(TaskRefused) as refused:
        hiring.worker_of(group, "ash", second, is_new=True)
    assert _code(refused) == "not_yours"
    outcomes.record(world.lab, first, Outcome.DIED, "gone")
    assert hiring.worker_of(group, "ash", second, is_new=True).run == second


@pytest.mark.row("RUNE-87", level="contract")
def test_a_task_counts_only_with_its_workers_output(
    world: World, project: Project, tmp_path: Path
) -> None:
    lab = replace(world.lab, signals=SignalFolders())
    group = groups.make(
        lab,
        project,
        "audit-1",
        preset="audit",
        new=[NewTask("Read it")],
        workers=[NewWorker("ash", "ash.md")],
        output_dir="out/",
        by="anna",
    )
    ash = hiring.worker_of(group, "ash", make.a_run(project, "1", worktree=str(tmp_path)))
    tasks.claim(lab, group, ash, by="ash")
    file = tmp_path / "out" / "ash.md"
    file.parent.mkdir()
    for text, word in ((None, "missing"), ("short", "5 bytes"), (WORDS, "not sealed")):
        if text is not None:
            file.write_text(text)
        with pytest.raises(TaskRefused) as refused:
            tasks.complete(lab, group, "1", worker=ash, by="ash")
        assert _code(refused) == "no_output"
        assert word in str(refused.value)
        assert word in Worker.objects.get(name="ash").sent_back_why
        assert tasks.find(group, "1").status == TaskStatus.IN_PROGRESS
    assert _told(group).count(NoticeKind.TASK_SENT_BACK) == 3
    file.write_text(f"{WORDS}\nSEAL: ash")
    assert tasks.complete(lab, group, "1", worker=ash, by="ash").status == "completed"
    assert Worker.objects.get(name="ash").sent_back_why == ""


@pytest.mark.row("RUNE-87", level="contract")
def test_an_output_that_could_not_be_looked_at_proves_nothing(
    world: World, project: Project
) -> None:
    group = groups.make(
        world.lab,
        project,
        "work-1",
        new=[NewTask("Read it")],
        workers=[NewWorker("ash", "ash.md")],
        by="anna",
    )
    ash = hiring.worker_of(group, "ash", is_new=True)
    tasks.claim(world.lab, group, ash, by="ash")
    with pytest.raises(TaskRefused):  # no run, so no worktree
        tasks.complete(world.lab, group, "1", worker=ash, by="ash")
    ash = hiring.worker_of(group, "ash", make.a_run(project, "1", worktree="/w/demo-1"))
    world.signals.broken = "the disk is gone"
    with pytest.raises(SeamError):
        tasks.complete(world.lab, group, "1", worker=ash, by="ash")
    assert tasks.find(group, "1").status == TaskStatus.IN_PROGRESS


@pytest.mark.row("C-21", level="contract")
def test_a_task_of_an_issue_follows_its_runs(world: World, project: Project) -> None:
    for key in ("5", "6", "7", "8"):
        world.tracker.add_issue("demo", f"Issue {key}", key, labels=["v2"] if key != "8" else [])
    make.a_run(project, "5", outcome=Outcome.SUCCEEDED)
    active = make.a_run(project, "6")
    make.a_run(project, "7", outcome=Outcome.DIED)
    group = groups.from_issues(world.lab, project, "v2", Chosen(label="v2"), by="anna")
    assert _standing(group) == {"5": "completed", "6": "in_progress", "7": "pending"}
    with pytest.raises(TaskRefused) as refused:
        tasks.claim(
            world.lab, group, hiring.worker_of(group, "ash", is_new=True), key="7", by="ash"
        )
    assert _code(refused) == "follows_run"
    assert (
        tasks.claim(world.lab, group, hiring.worker_of(group, "ash", is_new=True), by="ash") is None
    )
    assert outcomes.record(world.lab, active, Outcome.TIMED_OUT, "too long")
    assert _standing(group)["6"] == "pending"
    assert "timed out" in tasks.find(group, "6").note
    again = make.a_run(project, "6")
    with transaction.atomic():
        issue_tasks.started(world.lab, RunStart(again.pk, project.pk, again.issue_key))
    assert tasks.find(group, "6").owner == f"run-{again.pk}"
    assert outcomes.record(world.lab, again, Outcome.SUCCEEDED, "a pull request")
    assert _standing(group) == {"5": "completed", "6": "completed", "7": "pending"}


def test_a_selection_of_issues_is_whole_or_nothing(world: World, project: Project) -> None:
    world.tracker.add_issue("demo", "Issue 5", "5")
    with pytest.raises(GroupRefused) as refused:
        groups.from_issues(world.lab, project, "some", Chosen(keys=["5", "#99"]), by="anna")
    assert "#99" in refused.value.fields["issues"]
    with pytest.raises(GroupRefused):
        groups.from_issues(world.lab, project, "some", Chosen(label="none"), by="anna")
    made = groups.from_issues(world.lab, project, "some", Chosen(keys=["#5"]), by="anna")
    assert _standing(made) == {"5": "pending"}


def test_a_group_is_made_of_a_milestone_where_the_tracker_has_them(
    world: World, project: Project
) -> None:
    world.tracker.add_issue("demo", "Issue 5", "5", milestone="Version 2")
    world.tracker.add_issue("demo", "Issue 6", "6", milestone="Version 3")
    chosen = Chosen(milestone="Version 2")
    made = groups.from_issues(world.lab, project, "two", chosen, by="anna")
    assert _standing(made) == {"5": "pending"}
    world.tracker.abilities -= {Ability.MILESTONES}
    with pytest.raises(GroupRefused) as refused:
        groups.from_issues(world.lab, project, "three", chosen, by="anna")
    assert set(refused.value.fields) == {"milestone"}


def _standing(group: TaskGroup) -> dict[str, str]:
    return dict(Task.objects.filter(group=group).values_list("issue_key", "status"))


def _a_monitor(world: World, group: TaskGroup) -> Monitor:
    now = world.clock.now
    return Monitor.objects.create(
        group=group, host="local", expected=2, started_at=now, look_at=now
    )


@pytest.mark.row("RUNE-74", "RUNE-75", level="contract")
def test_sizes_have_limits(world: World, project: Project, group: TaskGroup) -> None:
    lab = world.lab
    (long,) = tasks.add(lab, group, [NewTask("x" * 300, key="k" * 128)], by="anna")
    (empty,) = tasks.add(lab, group, [NewTask(" \n ", key="e")], by="anna")
    assert (len(long.subject), empty.subject) == (256, "Task e")
    for wrong in (
        [NewTask("x")] * (tasks.MOST_TASKS - 3),
        [NewTask("x", description="y" * 10_001)],
        [],
    ):
        with pytest.raises(TaskRefused) as refused:
            tasks.add(lab, group, wrong, by="anna")
        assert _code(refused) == "invalid"
    many = [NewWorker(f"w{number}") for number in range(MOST_WORKERS + 1)]
    for more in ({"workers": many}, {"workers": many[:1] * 2}, {"output_dir": "x" * 501}):
        with pytest.raises(GroupRefused) as said:
            groups.make(lab, project, "other", by="anna", **more)  # type: ignore[arg-type]
        assert set(said.value.fields) == set(more)
    assert (TaskGroup.objects.count(), Task.objects.count()) == (1, 4)

"""Tasks of a group: added, claimed, completed with what they have to leave, handed back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from runs.core import writing
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.groups import signal_folders
from runs.groups.signal_rules import Inscription, Output
from runs.groups.task_rules import (
    NAME_RULE,
    NOTHING,
    TEXT_CHARACTERS,
    Act,
    Standing,
    free_keys,
    is_so_already,
    refusal,
)
from runs.groups.terms import NAME_CHARACTERS, TaskStatus, is_name, subject_of
from runs.models import Task, TaskGroup, Worker
from runs.timeline import announce
from trackers.base import NotFound


def lacking(lab: Lab, group: TaskGroup, worker: Worker) -> str:
    """What a worker's output lacks, in words; empty when none is asked or it is accepted.

    Raises SeamError when the file is there and could not be read: that is no answer.
    """
    if not worker.output_file:
        return ""
    if worker.run is None or not worker.run.worktree:
        return (
            f"{worker.name} has to leave {worker.output_file}, and no run is known whose worktree "
            "could hold it."
        )
    wanted = Inscription(
        workflow=group.preset,
        timestamp=group.made_at.isoformat(),
        output_dir=group.output_dir,
        workers=(Output(worker.name, worker.output_file),),
    )
    return lab.signals.lacking(Path(worker.run.worktree), wanted, worker.name)


MOST_TASKS = 2_000


class TaskRefused(ActRefused):
    """The act was not done, and nothing was changed; `code` is for programs, `fields` say where."""


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to be added; without a key it gets the next free number."""

    subject: str
    key: str = ""
    description: str = ""
    issue_key: str = ""

    @property
    def name(self) -> str:
        """The key as it was asked for; empty for a number."""
        return self.key.strip().removeprefix("#")


def find(group: TaskGroup, key: str) -> Task:
    """One task. Raises NotFound."""
    found = Task.objects.filter(group=group, key=key.removeprefix("#")).first()
    if found is None:
        raise NotFound(f"There is no task #{writing.one_line(key)} in group {group.name}.")
    found.group = group
    return found


def add(lab: Lab, group: TaskGroup, new: Sequence[NewTask], *, by: str) -> list[Task]:
    """Add tasks to an open group, all or none. Raises TaskRefused."""
    with transaction.atomic():
        # One adder at a time: the next free number is looked for and taken.
        held = TaskGroup.objects.select_for_update(no_key=True).filter(pk=group.pk, closed_at=None)
        if not list(held.values_list("pk")):
            raise closed(group)
        made = _fit(group, new)
        Task.objects.bulk_create(made)
        what = f"task {made[0]} was" if len(made) == 1 else f"{len(made)} tasks were"
        text = f"{what} added to {group.name}"
        announce.tell(lab, NoticeKind.TASK_ADDED, text, group=group, by=by)
        signal_folders.expect(lab, group)
    return made


def claim(lab: Lab, group: TaskGroup, worker: Worker, *, key: str = "", by: str) -> Task | None:
    """Take the named task for a worker, else the first that is free; None when none is.

    Asked again without a key, a worker gets what it has: a request is sent again when its answer
    was lost. Raises TaskRefused, NotFound.
    """
    if key:
        while True:
            task = find(group, key)
            if not _may(Act.CLAIM, task, worker) or _take(lab, task, worker, by):
                return task
            _still_open(group)
    own = Task.objects.filter(group=group, status=TaskStatus.IN_PROGRESS, owner=worker.name)
    mine = own.filter(issue_key="").first()
    while mine is None:  # who loses one to somebody else looks for the next
        _still_open(group)
        free = Task.objects.filter(group=group, status=TaskStatus.PENDING, issue_key="").first()
        if free is None:
            return None
        free.group = group
        if _take(lab, free, worker, by):
            return free
    return mine


def complete(
    lab: Lab, group: TaskGroup, key: str, *, worker: Worker | None = None, by: str
) -> Task:
    """Complete a task: a worker its own after a look at its output, a person any.

    Raises TaskRefused, NotFound, SeamError.
    """
    while True:
        task = find(group, key)
        if not _may(Act.COMPLETE, task, worker):
            return task
        if worker is not None:
            _look_at_output(lab, task, worker, by)
        if _finish(lab, task, by, worker.name if worker else task.owner or by):
            return task
        _still_open(group)


def signalled(lab: Lab, task: Task, owner: str) -> bool:
    """Complete a task because its signal is there; False when it is completed already.

    The first word counts, whoever has the task by now.
    """
    is_open = task.status != TaskStatus.COMPLETED
    return is_open and _finish(lab, task, "", owner or task.owner, has_signal=True)


def hand_back(
    lab: Lab,
    group: TaskGroup,
    key: str,
    *,
    worker: Worker | None = None,
    note: str = "",
    by: str,
) -> Task:
    """Give a task back, so that another can take it. Raises TaskRefused, NotFound."""
    note = writing.body(note)[:TEXT_CHARACTERS]
    while True:
        task = find(group, key)
        if not _may(Act.HAND_BACK, task, worker):
            return task
        with transaction.atomic():
            free = {"status": TaskStatus.PENDING, "owner": "", "claimed_at": None, "note": note}
            if won := _as_read(task).update(**free):
                said = f": {writing.one_line(note)}" if note else ""
                text = f"task {task} was handed back by {task.owner}{said}"
                announce.tell(lab, NoticeKind.TASK_HANDED_BACK, text, group=group, by=by)
        if won:
            task.refresh_from_db()
            return task
        _still_open(group)


def _may(act: Act, task: Task, worker: Worker | None) -> bool:
    """Whether there is something to do; False when it was done before. Raises TaskRefused."""
    name = None if worker is None else worker.name
    standing = Standing(task.key, TaskStatus(task.status), task.owner, task.issue_key)
    if is_so_already(act, standing, name):
        return False
    if no := refusal(act, standing, name):
        raise TaskRefused(no.text, code=no.code)
    return True


def _take(lab: Lab, task: Task, worker: Worker, by: str) -> bool:
    with transaction.atomic():
        won = _as_read(task).update(
            status=TaskStatus.IN_PROGRESS,
            owner=worker.name,
            claim=F("claim") + 1,
            claimed_at=lab.now(),
            run=worker.run_id,
            note="",
        )
        if won:
            text = f"task {task} was taken by {worker.name}"
            announce.tell(lab, NoticeKind.TASK_CLAIMED, text, group=task.group, by=by)
    if won:
        task.refresh_from_db()
    return bool(won)


def _finish(lab: Lab, task: Task, by: str, owner: str, *, has_signal: bool = False) -> bool:
    """Store a completion if the task is as it was read; its signal follows unless it was first."""
    with transaction.atomic():
        owner = owner[:NAME_CHARACTERS]
        done = {"status": TaskStatus.COMPLETED, "completed_at": lab.now(), "note": ""}
        if won := _as_read(task).update(owner=owner, **done):
            sent_back = Worker.objects.filter(group=task.group_id, name=owner)
            sent_back.exclude(sent_back_at=None).update(sent_back_at=None, sent_back_why="")
            text = f"task {task} was completed by {owner or 'its signal'}"
            announce.tell(lab, NoticeKind.TASK_COMPLETED, text, group=task.group, by=by)
        if won and not has_signal:
            task.owner = owner
            signal_folders.completed(lab, task)
    if won:
        task.refresh_from_db()
    return bool(won)


def _look_at_output(lab: Lab, task: Task, worker: Worker, by: str) -> None:
    """Refuse what a worker has not finished, and keep the reason with it."""
    why = lacking(lab, task.group, worker)
    if not why:
        return
    with transaction.atomic():
        Worker.objects.filter(pk=worker.pk).update(sent_back_at=lab.now(), sent_back_why=why)
        text = f"task {task} was not accepted from {worker.name}: {why}"
        announce.tell(lab, NoticeKind.TASK_SENT_BACK, text, group=task.group, by=by)
    raise TaskRefused(f"Task #{task.key} was not accepted. {why}", code="no_output")


def _as_read(task: Task) -> QuerySet[Task]:
    """The row if nobody has changed it since it was read, in a group that is open.

    No join: with one, PostgreSQL would test the status of the version that it saw first.
    """
    same = {"status": task.status, "claim": task.claim, "owner": task.owner}
    is_open = Exists(TaskGroup.objects.filter(pk=OuterRef("group_id"), closed_at=None))
    return Task.objects.filter(is_open, pk=task.pk, **same)


def _fit(group: TaskGroup, new: Sequence[NewTask]) -> list[Task]:
    """New tasks as rows, keys given out. Raises TaskRefused."""
    there: Mapping[str, str] = dict(
        Task.objects.filter(group=group).values_list("key", "issue_key")
    )
    if not new or len(there) + len(new) > MOST_TASKS:
        text = f"Add at least one task; a group has at most {MOST_TASKS:,}. Nothing was added."
        raise TaskRefused(text, code="invalid", field="tasks")
    named = {key for one in new if (key := one.name)}
    taken, issues, made = set(there), set(there.values()), list[Task]()
    numbers = free_keys(taken | named)
    for one in new:
        key = one.name or next(numbers)
        wrong = ""
        if not is_name(key):
            wrong = f"A task's key {NAME_RULE}."
        elif key in taken:
            wrong = f"There is a task #{key} already."
        elif one.issue_key and one.issue_key in issues:
            wrong = f"There is a task for issue {one.issue_key} already."
        elif len(one.description) > TEXT_CHARACTERS:
            wrong = f"What a task says has at most {TEXT_CHARACTERS:,} characters."
        if wrong:
            raise TaskRefused(f"{wrong} Nothing was added.", code="invalid", field="tasks")
        taken.add(key)
        issues.add(one.issue_key)
        subject, text = subject_of(writing.clean(one.subject), key), writing.body(one.description)
        row = Task(group=group, key=key, subject=subject, description=text)
        row.issue_key = one.issue_key
        made.append(row)
    return made


def _still_open(group: TaskGroup) -> None:
    if not TaskGroup.objects.filter(pk=group.pk, closed_at=None).exists():
        raise closed(group)


def closed(group: TaskGroup) -> TaskRefused:
    """Why nothing is done in a group that is closed or gone."""
    return TaskRefused(f"Task group {group.name} is closed. {NOTHING}", code="closed")


def newest_like(group: TaskGroup, new: Sequence[NewTask]) -> list[Task]:
    """The newest tasks of a group if they say the same as these; else none.

    An agent's command sends a request again when it did not hear the answer.
    """
    rows = list(Task.objects.filter(group=group).order_by("-pk")[: len(new)])[::-1]
    if len(rows) < len(new):
        return []
    is_same = all(
        one.name in ("", row.key) and row.subject == subject_of(one.subject, row.key)
        for one, row in zip(new, rows, strict=True)
    )
    return rows if is_same else []

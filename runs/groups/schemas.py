"""Task groups, their tasks, workers and monitors as the API takes and tells them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from django.db.models import Count, Q, QuerySet
from pydantic import BaseModel, Field

from runs.api.given import BIGGEST_NUMBER, NO_NUL, WHOLE, Given, Paging, absent
from runs.groups import acts
from runs.groups import tasks as group_tasks
from runs.groups.task_rules import MOST_WORKERS, TEXT_CHARACTERS
from runs.groups.tasks import MOST_TASKS
from runs.groups.terms import Decision, MonitorState, TaskStatus
from runs.models import Checkpoint as CheckpointRow
from runs.models import Monitor as MonitorRow
from runs.models import MonitorPreset, TaskGroup
from runs.models import Task as TaskRow
from runs.models import Worker as WorkerRow

Word = Annotated[str, Field(max_length=200, pattern=NO_NUL)]
Line = Annotated[str, Field(max_length=2_000, pattern=NO_NUL)]
Text = Annotated[str, Field(max_length=TEXT_CHARACTERS, pattern=NO_NUL)]
Path = Annotated[str, Field(max_length=500, pattern=NO_NUL)]
Seconds = Annotated[int, Field(ge=1, le=BIGGEST_NUMBER), WHOLE]
Count0 = Annotated[int, Field(ge=0, le=BIGGEST_NUMBER), WHOLE]
OPTIONS = (
    *("label", "poll_seconds", "stale_seconds", "timeout_seconds", "release_seconds"),
    "has_checkpoints",
)


class NewTask(Given):
    """A task. Without `key` it gets the next free number; the subject is cut to 256 letters."""

    subject: Line
    key: Word = ""
    description: Text = ""


class NewWorker(Given):
    """`output_file` has to be there, in the worktree of its run, before a task counts."""

    name: Word
    output_file: Path = ""


class NewGroup(Given):
    """A group with its first tasks. `output_dir` is where workers leave their output files."""

    name: Word
    preset: Word = "work"
    tasks: Annotated[list[NewTask], Field(max_length=MOST_TASKS)] = []
    workers: Annotated[list[NewWorker], Field(max_length=MOST_WORKERS)] = []
    output_dir: Path = ""


class GroupOfIssues(Given):
    """A group of open issues: those named, those with a label, those of a milestone."""

    name: Word
    preset: Word = "work"
    issues: Annotated[list[Word], Field(max_length=MOST_TASKS)] = []
    label: Word = ""
    milestone: Word = ""


class MoreTasks(Given):
    tasks: Annotated[list[NewTask], Field(min_length=1, max_length=MOST_TASKS)]


class ClaimGiven(Given):
    """Who takes a task; without `key` the first one that is free."""

    worker: Word
    key: Word = ""


class ByWorker(Given):
    """`worker`: it acts on what it has. Empty: the token's owner, who may act on any."""

    worker: Word = ""


class HandBack(ByWorker):
    note: Text = ""


class NewMonitor(Given):
    """What is left out comes from the preset, by default the group's own; null is *none*.

    `expected` is by default how many tasks there are.
    """

    preset: Word | None = None
    expected: Count0 | None = None
    label: Annotated[str, Field(max_length=80, pattern=NO_NUL)] = "Monitor"
    poll_seconds: Seconds = 30
    stale_seconds: Seconds = 300
    timeout_seconds: Seconds | None = None
    release_seconds: Seconds | None = None
    has_checkpoints: Annotated[bool, Field(strict=True)] = False

    def options(self) -> dict[str, object]:
        """Only what was said."""
        return {name: getattr(self, name) for name in OPTIONS if name in self.model_fields_set}


class GroupFilter(Paging):
    state: Literal["open", "closed", "all"] = "open"


class TaskFilter(Paging):
    status: TaskStatus | None = absent()


class Task(BaseModel):
    """`claim` counts how often it was taken. One with an `issue` follows the runs of that issue."""

    key: str
    subject: str
    description: str
    status: TaskStatus
    owner: str
    claim: int
    claimed_at: datetime | None
    completed_at: datetime | None
    issue: str
    run: int | None
    note: str


class Tasks(BaseModel):
    items: list[Task]
    next: int | None


class Worker(BaseModel):
    """`sent_back_why`: what its output lacked when it last said that a task was done."""

    name: str
    run: int | None
    output_file: str
    sent_back_at: datetime | None
    sent_back_why: str


class Workers(BaseModel):
    items: list[Worker]


class Group(BaseModel):
    id: int
    project: int
    name: str
    preset: str
    output_dir: str
    signals: bool
    made_at: datetime
    made_by: str
    closed_at: datetime | None
    completed: int
    total: int


class Groups(BaseModel):
    items: list[Group]
    next: int | None


class Result(BaseModel):
    """What a monitor's end tells, and nothing else."""

    completed: list[str]
    incomplete: list[str]
    timed_out: bool


class Options(BaseModel):
    """Null: no timeout; tasks are never given back."""

    label: str
    poll_seconds: int
    stale_seconds: int
    timeout_seconds: int | None
    release_seconds: int | None
    has_checkpoints: bool


class Preset(Options):
    name: str
    is_unique: bool


class Presets(BaseModel):
    items: list[Preset]


class Monitor(Options):
    """`result` is there once it has ended complete or timed out; `error` when its listing failed."""

    id: int
    group: int
    preset: str
    expected: int
    state: MonitorState
    is_fast: bool
    started_at: datetime
    started_by: str
    ended_at: datetime | None
    ended_by: str
    error: str
    result: Result | None


class Monitors(BaseModel):
    items: list[Monitor]
    next: int | None


class Checkpoint(BaseModel):
    n: int
    at: datetime
    label: str
    completed: int
    total: int
    percentage: int
    active: list[str]
    blockers: list[str]
    decision: Decision


class Checkpoints(BaseModel):
    items: list[Checkpoint]
    next: int | None


def new_tasks(given: Sequence[NewTask]) -> list[group_tasks.NewTask]:
    return [group_tasks.NewTask(one.subject, one.key, one.description) for one in given]


def new_workers(given: Sequence[NewWorker]) -> list[acts.NewWorker]:
    return [acts.NewWorker(one.name, one.output_file) for one in given]


def counted(rows: QuerySet[TaskGroup]) -> QuerySet[Any, Any]:
    """Groups with how many of their tasks are completed, in the same query."""
    is_done = Q(tasks__status=TaskStatus.COMPLETED)
    return rows.annotate(total=Count("tasks"), completed=Count("tasks", filter=is_done))


def group(row: Any) -> Group:
    """A group of `counted`."""
    same = ("name", "preset", "output_dir", "signals", "made_at", "made_by", "closed_at")
    facts = {name: getattr(row, name) for name in (*same, "completed", "total")}
    return Group(id=row.pk, project=row.project_id, **facts)


def task(row: TaskRow) -> Task:
    same = ("key", "subject", "description", "status", "owner", "claim", "note")
    facts = {name: getattr(row, name) for name in (*same, "claimed_at", "completed_at")}
    return Task(issue=row.issue_key, run=row.run_id, **facts)


def worker(row: WorkerRow) -> Worker:
    same = ("name", "output_file", "sent_back_at", "sent_back_why")
    return Worker(run=row.run_id, **{name: getattr(row, name) for name in same})


def preset(row: MonitorPreset) -> Preset:
    return Preset(**{name: getattr(row, name) for name in (*OPTIONS, "name", "is_unique")})


def monitor(row: MonitorRow) -> Monitor:
    same = ("preset", "expected", "state", "is_fast", "error", *OPTIONS)
    times = ("started_at", "started_by", "ended_at", "ended_by")
    facts: dict[str, Any] = {name: getattr(row, name) for name in (*same, *times)}
    return Monitor(id=row.pk, group=row.group_id, result=result(row), **facts)


def result(row: MonitorRow) -> Result | None:
    told = row.result
    if told is None:
        return None
    return Result(
        completed=list(told.completed),
        incomplete=list(told.incomplete),
        timed_out=told.timed_out,
    )


def checkpoint(row: CheckpointRow) -> Checkpoint:
    same = ("n", "at", "label", "completed", "total", "percentage", "active", "blockers")
    return Checkpoint(
        decision=Decision(row.decision), **{name: getattr(row, name) for name in same}
    )

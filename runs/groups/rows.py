"""What lines of a task group's page show: tasks, workers, blockers, the result, what was told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from runs.core.ports import Lab, SeamError
from runs.core.states import NoticeKind
from runs.groups import monitor_rules
from runs.groups.signal_rules import Crash, SentBack
from runs.groups.stall_rules import Fate, stalls
from runs.groups.terms import MonitorState, TaskFacts, TaskStatus
from runs.models import Monitor, Notice, Task, TaskGroup, Worker
from runs.web import addresses

KEYS = 20
_TONES: Mapping[str, str] = {TaskStatus.IN_PROGRESS: "live", TaskStatus.COMPLETED: "good"}


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task as its line shows it."""

    task: Task

    @property
    def url(self) -> str:
        """The run in which it is done, if one is known."""
        return addresses.of("runs:run", self.task.run_id) if self.task.run_id else ""

    @property
    def status(self) -> TaskStatus:
        return TaskStatus(self.task.status)

    @property
    def tone(self) -> str:
        return _TONES.get(self.task.status, "")

    @property
    def is_ours(self) -> bool:
        """Whether people and workers decide over it; a task with an issue follows its runs."""
        return not self.task.issue_key


@dataclass(frozen=True, slots=True)
class Blocker:
    """A stalled task: since when nobody saw it move, and what comes of it."""

    row: TaskRow
    since: datetime
    fate: Fate
    until: datetime | None


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker with what it does now, and why it was sent back last."""

    worker: Worker
    doing: Sequence[Task]
    why: str = ""
    sent_back_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """What a monitor's end told."""

    monitor: Monitor
    said: str
    completed: Sequence[str]
    incomplete: Sequence[str]

    @property
    def keys_completed(self) -> str:
        return _keys(self.completed)

    @property
    def keys_incomplete(self) -> str:
        return _keys(self.incomplete)


@dataclass(frozen=True, slots=True)
class Files:
    """What signal files tell of a group and no table does."""

    crashes: Sequence[Crash] = ()
    sent_back: Sequence[SentBack] = ()


def files_of(lab: Lab, group: TaskGroup) -> Files:
    """Crashed writers and workers that were sent back; could not tell is nothing."""
    if not group.is_open:
        return Files()
    folder = lab.paths.signals(group.project.slug, group.name)
    try:
        sent_back = [one for one in lab.signals.sent_back(folder) if not one.is_over]
        return Files(lab.signals.crashed(folder), sent_back)
    except SeamError:
        return Files()


def ended(monitor: Monitor | None) -> Ended | None:
    """The result of a monitor; None while it runs, and after an end that has none."""
    found = monitor.result if monitor is not None else None
    if monitor is None or found is None:
        return None
    if found.timed_out:
        said = monitor_rules.partial(monitor.options, found, monitor.expected)
    else:
        said = f"{monitor.label} completed: {len(found.completed)}/{monitor.expected}"
    return Ended(monitor, said, found.completed, found.incomplete)


def workers(
    rows: Sequence[Worker], tasks: Sequence[TaskRow], sent_back: Sequence[SentBack]
) -> Sequence[WorkerRow]:
    """Each worker with its tasks; what the files say of it counts where the table says nothing."""
    said = {one.worker: one for one in sent_back}
    return [_worker(worker, tasks, said.get(worker.name)) for worker in rows]


def blockers(monitor: Monitor | None, tasks: Sequence[TaskRow], now: datetime) -> Sequence[Blocker]:
    """Tasks that are stalled now, by the clocks of the monitor that runs."""
    if monitor is None or monitor.state != MonitorState.RUNNING:
        return ()
    rows = {row.task.pk: row for row in tasks}
    began, facts = monitor.started_at, [facts_of(row.task) for row in tasks]
    return [
        Blocker(
            rows[one.task.pk],
            began + one.seen,
            one.fate,
            began + one.until if one.until is not None else None,
        )
        for one in stalls(monitor.options, monitor.memory, facts, now - began)
    ]


def facts_of(task: Task) -> TaskFacts:
    """A task as the rules take it; one that follows a run is never given back."""
    return TaskFacts(
        task.pk,
        task.key,
        task.subject,
        TaskStatus(task.status),
        task.claim,
        is_releasable=not task.issue_key,
    )


def _worker(worker: Worker, tasks: Sequence[TaskRow], file: SentBack | None) -> WorkerRow:
    doing = [
        row.task
        for row in tasks
        if row.status is TaskStatus.IN_PROGRESS and row.task.owner == worker.name
    ]
    if worker.sent_back_why or file is None:
        return WorkerRow(worker, doing, worker.sent_back_why, worker.sent_back_at)
    return WorkerRow(worker, doing, file.why, _moment(file.at))


def _moment(text: str) -> datetime | None:
    """A moment as a file says it; a worker may have written anything."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _keys(keys: Sequence[str]) -> str:
    """The first keys of many, as a line."""
    more = f" and {len(keys) - KEYS} more" if len(keys) > KEYS else ""
    return ", ".join(f"#{key}" for key in keys[:KEYS]) + more


REPEATED = (NoticeKind.MONITOR_PROGRESS, NoticeKind.MONITOR_WARNED)


@dataclass(slots=True)
class Told:
    """An entry, how often in a row it was said, and since when: the newest of its like."""

    notice: Notice
    times: int = 1
    since: datetime | None = None


def folded(notices: Iterable[Notice]) -> Sequence[Told]:
    """Entries, newest first. Equal words of passes that changed nothing come as one."""
    found: list[Told] = []
    passing: dict[str, Told] = {}
    for notice in notices:
        is_repeated = notice.kind in REPEATED
        if not is_repeated:
            passing = {}
        elif notice.text in passing:
            passing[notice.text].times += notice.times or 1
            passing[notice.text].since = notice.since or notice.at
            continue
        told = Told(notice, notice.times or 1, notice.since)
        if is_repeated:
            passing[notice.text] = told
        found.append(told)
    return found

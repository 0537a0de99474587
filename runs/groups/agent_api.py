"""What an agent may do with its project's task groups: make one, share its tasks out, work on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from django.http import HttpRequest, JsonResponse
from pydantic import Field

from runs.agents.agent_api import answer, name_of
from runs.agents.api_door import door, shaped, texts
from runs.groups import acts, issue_tasks, monitors, schemas, tasks, workers
from runs.models import Monitor, Run, Task, TaskGroup, Worker
from runs.web.refusals import Denied
from runs.wiring import lab


class NewGroup(schemas.NewGroup):
    """What `labctl group create` sends: tasks, or a choice of issues."""

    issues: Annotated[list[schemas.Word], Field(max_length=tasks.MOST_TASKS)] = []
    label: schemas.Word = ""
    milestone: schemas.Word = ""


def _list(request: HttpRequest, run: Run) -> JsonResponse:
    rows = TaskGroup.objects.filter(project=run.project_id, closed_at=None).order_by("name")
    return answer(groups=[_told(schemas.group(row)) for row in schemas.counted(rows)])


def _make(request: HttpRequest, run: Run) -> JsonResponse:
    """One that this run made before is answered as it is: a lost answer makes an agent ask again."""
    given = shaped(request, NewGroup)
    try:
        made = _made(run, given)
    except acts.NameTaken:
        made = acts.open_of(run.project, given.name)
        if made.made_by != name_of(run):
            raise
    return answer(status=201, **_shown(made))


def _made(run: Run, given: NewGroup) -> TaskGroup:
    by, chosen = name_of(run), acts.Chosen(given.issues, given.label, given.milestone)
    if given.issues or given.label or given.milestone:
        return acts.from_issues(lab(), run.project, given.name, chosen, preset=given.preset, by=by)
    return acts.make(
        lab(),
        run.project,
        given.name,
        preset=given.preset,
        new=schemas.new_tasks(given.tasks),
        workers=schemas.new_workers(given.workers),
        output_dir=given.output_dir,
        by=by,
    )


def _show(request: HttpRequest, run: Run, name: str) -> JsonResponse:
    return answer(**_shown(acts.open_of(run.project, name)))


def _close(request: HttpRequest, run: Run, name: str) -> JsonResponse:
    """An agent closes what it made; a person anything, on the group's page."""
    found = acts.open_of(run.project, name)
    if found.made_by != name_of(run):
        text = f"Task group {name} was made by {found.made_by}. Ask a person to close it."
        raise Denied(409, "not_yours", text)
    acts.close(lab(), found, name_of(run))
    return answer(name=found.name)


def _watch(request: HttpRequest, run: Run, name: str) -> JsonResponse:
    """Start a monitor; one that this run started before is answered as it is."""
    given = shaped(request, schemas.NewMonitor)
    found = acts.open_of(run.project, name)
    try:
        made = monitors.start(
            lab(),
            found,
            by=name_of(run),
            preset=given.preset,
            given=given.options(),
            expected=given.expected,
        )
    except monitors.AlreadyWatched as error:
        made = error.monitor
        if made.started_by != name_of(run):
            raise
    return answer(status=201, **_told(schemas.monitor(made)))


def _tasks(request: HttpRequest, run: Run, name: str) -> JsonResponse:
    rows = Task.objects.filter(group=acts.open_of(run.project, name))
    return answer(tasks=[_told(schemas.task(row)) for row in rows])


def _add(request: HttpRequest, run: Run, name: str) -> JsonResponse:
    """The very same tasks as the newest are kept once: an agent asks again when it heard nothing."""
    new = schemas.new_tasks(shaped(request, schemas.MoreTasks).tasks)
    found = acts.open_of(run.project, name)
    made = tasks.newest_like(found, new) or tasks.add(lab(), found, new, by=name_of(run))
    return answer(status=201, tasks=_all(made))


def _claim(request: HttpRequest, run: Run, name: str) -> JsonResponse:
    sent = texts(request, "key", "worker")
    found = acts.open_of(run.project, name)
    worker = _worker(found, run, sent["worker"], is_new=True)
    task = tasks.claim(lab(), found, worker, key=sent["key"], by=name_of(run))
    return answer(task=None if task is None else _told(schemas.task(task)))


def _done(request: HttpRequest, run: Run, name: str, key: str) -> JsonResponse:
    sent = texts(request, "worker")
    found = acts.open_of(run.project, name)
    worker = _worker(found, run, sent["worker"])
    task = tasks.complete(lab(), found, key, worker=worker, by=name_of(run))
    return answer(task=_told(schemas.task(task)))


def _release(request: HttpRequest, run: Run, name: str, key: str) -> JsonResponse:
    sent = texts(request, "worker", "note")
    found = acts.open_of(run.project, name)
    worker = _worker(found, run, sent["worker"])
    by = name_of(run)
    task = tasks.hand_back(lab(), found, key, worker=worker, note=sent["note"], by=by)
    return answer(task=_told(schemas.task(task)))


groups_door = door(GET=_list, POST=_make)
group = door(GET=_show)
close = door(POST=_close)
watch = door(POST=_watch)
tasks_door = door(GET=_tasks, POST=_add)
claim = door(POST=_claim)
done = door(POST=_done)
release = door(POST=_release)


def _worker(group: TaskGroup, run: Run, name: str, *, is_new: bool = False) -> Worker:
    """Whoever an agent says that it is; by default its run."""
    return workers.worker_of(group, name or issue_tasks.owner_of(run), run, is_new=is_new)


def _shown(group: TaskGroup) -> dict[str, Any]:
    row = schemas.counted(TaskGroup.objects.filter(pk=group.pk)).get()
    newest = Monitor.objects.filter(group=group).order_by("-pk").first()
    return {
        **_told(schemas.group(row)),
        "tasks": _all(Task.objects.filter(group=group)),
        "monitor": None if newest is None else _told(schemas.monitor(newest)),
    }


def _all(rows: Sequence[Task] | Any) -> list[dict[str, Any]]:
    return [_told(schemas.task(row)) for row in rows]


def _told(shape: Any) -> dict[str, Any]:
    return dict(shape.model_dump(mode="json"))

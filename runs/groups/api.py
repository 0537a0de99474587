"""Task groups over the API: made, listed, closed; their tasks and workers."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from ninja import Path, Query, Status

from runs.api import replies, showing
from runs.api.asked import BIGGEST_ID, NO_NUL
from runs.api.ids import ProjectId
from runs.api.router import Router
from runs.groups import acts as groups
from runs.groups import schemas as shapes
from runs.groups import tasks
from runs.groups import workers as hiring
from runs.models import Task, TaskGroup, Worker
from runs.projects.api import project_of
from runs.web.access import username
from runs.web.refusals import Denied
from runs.wiring import lab
from trackers.base import NotFound

router = Router(tags=["Task groups"])

GroupId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
TaskKey = Annotated[str, Path(max_length=200, pattern=NO_NUL)]
AT = "/{int:project_id}/groups"
ONE = f"{AT}/{{int:group_id}}"
CLOSED = "This group was closed already. Nothing was changed."
NOTHING_FREE = "No task of this group is free. Nothing was changed."


@router.get(AT, response=replies.look(shapes.Groups), summary="List task groups")
def group_list(
    request: HttpRequest, project_id: ProjectId, wanted: Query[shapes.GroupFilter]
) -> shapes.Groups:
    """Newest first; without `state` the open ones."""
    rows = TaskGroup.objects.filter(project=project_of(project_id)).order_by("-pk")
    if wanted.state != "all":
        rows = rows.filter(closed_at__isnull=wanted.state == "open")
    if wanted.cursor is not None:
        rows = rows.filter(pk__lt=wanted.cursor)
    page, last = showing.cut(list(shapes.counted(rows)[: wanted.limit + 1]), wanted.limit)
    return shapes.Groups(items=[shapes.group(row) for row in page], next=last.pk if last else None)


@router.post(AT, response=replies.given(shapes.Group, 201), summary="Make a task group")
def group_make(
    request: HttpRequest, project_id: ProjectId, given: shapes.NewGroup
) -> Status[shapes.Group]:
    """All of it or nothing; of one name a project has one open group."""
    made = groups.make(
        lab(),
        project_of(project_id),
        given.name,
        preset=given.preset,
        new=shapes.new_tasks(given.tasks),
        workers=shapes.new_workers(given.workers),
        output_dir=given.output_dir,
        by=username(request),
    )
    return Status(201, _shown(made))


@router.post(
    f"{AT}/from-issues",
    response=replies.given(shapes.Group, 201),
    summary="Make a task group of issues",
)
def group_of_issues(
    request: HttpRequest, project_id: ProjectId, given: shapes.GroupOfIssues
) -> Status[shapes.Group]:
    """One task for each chosen open issue; it follows the issue's runs, and nobody gives it back."""
    chosen = groups.Chosen(given.issues, given.label, given.milestone)
    project = project_of(project_id)
    made = groups.from_issues(
        lab(), project, given.name, chosen, preset=given.preset, by=username(request)
    )
    return Status(201, _shown(made))


@router.get(ONE, response=replies.look(shapes.Group), summary="Show a task group")
def group_show(request: HttpRequest, project_id: ProjectId, group_id: GroupId) -> shapes.Group:
    return _shown(group_of(project_id, group_id))


@router.post(f"{ONE}/close", response=replies.act(shapes.Group), summary="Close a task group")
def group_close(request: HttpRequest, project_id: ProjectId, group_id: GroupId) -> shapes.Group:
    """Its monitor stops; tasks stay as they are, and take no more acts."""
    found = group_of(project_id, group_id)
    if not groups.close(lab(), found, username(request)):
        raise Denied(409, "closed", CLOSED)
    return _shown(found)


@router.delete(ONE, response=replies.act(None, 204), summary="Delete a task group")
def group_delete(request: HttpRequest, project_id: ProjectId, group_id: GroupId) -> Status[None]:
    """Gone with its tasks, its monitors and all that was told of them. No run is touched."""
    groups.delete(lab(), group_of(project_id, group_id), username(request))
    return Status(204, None)


@router.get(f"{ONE}/workers", response=replies.look(shapes.Workers), summary="List workers")
def worker_list(request: HttpRequest, project_id: ProjectId, group_id: GroupId) -> shapes.Workers:
    """Who works on a group, by name, and why a worker was sent back."""
    rows = Worker.objects.filter(group=group_of(project_id, group_id))
    return shapes.Workers(items=[shapes.worker(row) for row in rows])


@router.get(f"{ONE}/tasks", response=replies.look(shapes.Tasks), summary="List tasks")
def task_list(
    request: HttpRequest, project_id: ProjectId, group_id: GroupId, wanted: Query[shapes.TaskFilter]
) -> shapes.Tasks:
    """In the order in which they were added."""
    rows = Task.objects.filter(group=group_of(project_id, group_id)).order_by("pk")
    if wanted.status is not None:
        rows = rows.filter(status=wanted.status)
    if wanted.cursor is not None:
        rows = rows.filter(pk__gt=wanted.cursor)
    page, last = showing.cut(list(rows[: wanted.limit + 1]), wanted.limit)
    return shapes.Tasks(items=[shapes.task(row) for row in page], next=last.pk if last else None)


@router.post(f"{ONE}/tasks", response=replies.given(shapes.Tasks, 201), summary="Add tasks")
def task_add(
    request: HttpRequest, project_id: ProjectId, group_id: GroupId, given: shapes.MoreTasks
) -> Status[shapes.Tasks]:
    """All of them or none."""
    group = group_of(project_id, group_id)
    made = tasks.add(lab(), group, shapes.new_tasks(given.tasks), by=username(request))
    return Status(201, shapes.Tasks(items=[shapes.task(row) for row in made], next=None))


@router.post(f"{ONE}/claim", response=replies.given(shapes.Task), summary="Claim a task")
def task_claim(
    request: HttpRequest, project_id: ProjectId, group_id: GroupId, given: shapes.ClaimGiven
) -> shapes.Task:
    """Take the named task, else the first that is free; a worker that has one gets that again."""
    group = group_of(project_id, group_id)
    worker = hiring.worker_of(group, given.worker, is_new=True)
    found = tasks.claim(lab(), group, worker, key=given.key, by=username(request))
    if found is None:
        raise Denied(409, "nothing_free", NOTHING_FREE)
    return shapes.task(found)


@router.get(f"{ONE}/tasks/{{key}}", response=replies.look(shapes.Task), summary="Show a task")
def task_show(
    request: HttpRequest, project_id: ProjectId, group_id: GroupId, key: TaskKey
) -> shapes.Task:
    return shapes.task(tasks.find(group_of(project_id, group_id), key))


@router.post(
    f"{ONE}/tasks/{{key}}/complete", response=replies.given(shapes.Task), summary="Complete a task"
)
def task_complete(
    request: HttpRequest,
    project_id: ProjectId,
    group_id: GroupId,
    key: TaskKey,
    given: shapes.ByWorker,
) -> shapes.Task:
    """Of a worker with an output file it is accepted only when the file is there and finished."""
    group = group_of(project_id, group_id)
    worker = hiring.worker_of(group, given.worker) if given.worker else None
    found = tasks.complete(lab(), group, key, worker=worker, by=username(request))
    return shapes.task(found)


@router.post(
    f"{ONE}/tasks/{{key}}/release", response=replies.given(shapes.Task), summary="Give a task back"
)
def task_release(
    request: HttpRequest,
    project_id: ProjectId,
    group_id: GroupId,
    key: TaskKey,
    given: shapes.HandBack,
) -> shapes.Task:
    """It is free again, and whoever takes it starts anew. A completed one stays completed."""
    group = group_of(project_id, group_id)
    worker = hiring.worker_of(group, given.worker) if given.worker else None
    found = tasks.hand_back(lab(), group, key, worker=worker, note=given.note, by=username(request))
    return shapes.task(found)


def group_of(project_id: int, group_id: int) -> TaskGroup:
    """A group of this project, open or not. Raises NotFound."""
    project = project_of(project_id)
    found = TaskGroup.objects.filter(pk=group_id, project=project).first()
    if found is None:
        raise NotFound(f"There is no task group {group_id} in this project.")
    found.project = project
    return found


def _shown(group: TaskGroup) -> shapes.Group:
    return shapes.group(shapes.counted(TaskGroup.objects.filter(pk=group.pk)).get())

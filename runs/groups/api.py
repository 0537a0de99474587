"""Task groups over the API: made, listed, closed; their tasks and workers."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from ninja import Path, Query, Status

from runs.api import replies, showing
from runs.api.asked import BIGGEST_ID, NO_NUL, ProjectId
from runs.api.router import Router
from runs.groups import acts, schemas, tasks, workers
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


@router.get(AT, response=replies.look(schemas.Groups), summary="List task groups")
def group_list(
    request: HttpRequest, project_id: ProjectId, wanted: Query[schemas.GroupFilter]
) -> schemas.Groups:
    """Newest first; without `state` the open ones."""
    rows = TaskGroup.objects.filter(project=project_of(project_id))
    if wanted.state != "all":
        rows = rows.filter(closed_at__isnull=wanted.state == "open")
    page, cursor = showing.page(schemas.counted(rows), wanted)
    return schemas.Groups(items=[schemas.group(row) for row in page], next=cursor)


@router.post(AT, response=replies.given(schemas.Group, 201), summary="Make a task group")
def group_make(
    request: HttpRequest, project_id: ProjectId, given: schemas.NewGroup
) -> Status[schemas.Group]:
    """All of it or nothing; of one name a project has one open group."""
    made = acts.make(
        lab(),
        project_of(project_id),
        given.name,
        preset=given.preset,
        new=schemas.new_tasks(given.tasks),
        workers=schemas.new_workers(given.workers),
        output_dir=given.output_dir,
        by=username(request),
    )
    return Status(201, _shown(made))


@router.post(
    f"{AT}/from-issues",
    response=replies.given(schemas.Group, 201),
    summary="Make a task group of issues",
)
def group_of_issues(
    request: HttpRequest, project_id: ProjectId, given: schemas.GroupOfIssues
) -> Status[schemas.Group]:
    """One task for each chosen open issue; it follows the issue's runs, and nobody gives it back."""
    chosen = acts.Chosen(given.issues, given.label, given.milestone)
    project = project_of(project_id)
    made = acts.from_issues(
        lab(), project, given.name, chosen, preset=given.preset, by=username(request)
    )
    return Status(201, _shown(made))


@router.get(ONE, response=replies.look(schemas.Group), summary="Show a task group")
def group_show(request: HttpRequest, project_id: ProjectId, group_id: GroupId) -> schemas.Group:
    return _shown(group_of(project_id, group_id))


@router.post(f"{ONE}/close", response=replies.act(schemas.Group), summary="Close a task group")
def group_close(request: HttpRequest, project_id: ProjectId, group_id: GroupId) -> schemas.Group:
    """Its monitor stops; tasks stay as they are, and take no more acts."""
    found = group_of(project_id, group_id)
    if not acts.close(lab(), found, username(request)):
        raise Denied(409, "closed", CLOSED)
    return _shown(found)


@router.delete(ONE, response=replies.act(None, 204), summary="Delete a task group")
def group_delete(request: HttpRequest, project_id: ProjectId, group_id: GroupId) -> Status[None]:
    """Gone with its tasks, its monitors and all that was told of them. No run is touched."""
    acts.delete(lab(), group_of(project_id, group_id), username(request))
    return Status(204, None)


@router.get(f"{ONE}/workers", response=replies.look(schemas.Workers), summary="List workers")
def worker_list(request: HttpRequest, project_id: ProjectId, group_id: GroupId) -> schemas.Workers:
    """Who works on a group, by name, and why a worker was sent back."""
    rows = Worker.objects.filter(group=group_of(project_id, group_id))
    return schemas.Workers(items=[schemas.worker(row) for row in rows])


@router.get(f"{ONE}/tasks", response=replies.look(schemas.Tasks), summary="List tasks")
def task_list(
    request: HttpRequest,
    project_id: ProjectId,
    group_id: GroupId,
    wanted: Query[schemas.TaskFilter],
) -> schemas.Tasks:
    """In the order in which they were added."""
    rows = Task.objects.filter(group=group_of(project_id, group_id))
    if wanted.status is not None:
        rows = rows.filter(status=wanted.status)
    page, cursor = showing.page(rows, wanted, "pk")
    return schemas.Tasks(items=[schemas.task(row) for row in page], next=cursor)


@router.post(f"{ONE}/tasks", response=replies.given(schemas.Tasks, 201), summary="Add tasks")
def task_add(
    request: HttpRequest, project_id: ProjectId, group_id: GroupId, given: schemas.MoreTasks
) -> Status[schemas.Tasks]:
    """All of them or none."""
    group = group_of(project_id, group_id)
    made = tasks.add(lab(), group, schemas.new_tasks(given.tasks), by=username(request))
    return Status(201, schemas.Tasks(items=[schemas.task(row) for row in made], next=None))


@router.post(f"{ONE}/claim", response=replies.given(schemas.Task), summary="Claim a task")
def task_claim(
    request: HttpRequest, project_id: ProjectId, group_id: GroupId, given: schemas.ClaimGiven
) -> schemas.Task:
    """Take the named task, else the first that is free; a worker that has one gets that again."""
    group = group_of(project_id, group_id)
    worker = workers.worker_of(group, given.worker, is_new=True)
    found = tasks.claim(lab(), group, worker, key=given.key, by=username(request))
    if found is None:
        raise Denied(409, "nothing_free", NOTHING_FREE)
    return schemas.task(found)


@router.get(f"{ONE}/tasks/{{key}}", response=replies.look(schemas.Task), summary="Show a task")
def task_show(
    request: HttpRequest, project_id: ProjectId, group_id: GroupId, key: TaskKey
) -> schemas.Task:
    return schemas.task(tasks.find(group_of(project_id, group_id), key))


@router.post(
    f"{ONE}/tasks/{{key}}/complete", response=replies.given(schemas.Task), summary="Complete a task"
)
def task_complete(
    request: HttpRequest,
    project_id: ProjectId,
    group_id: GroupId,
    key: TaskKey,
    given: schemas.ByWorker,
) -> schemas.Task:
    """Of a worker with an output file it is accepted only when the file is there and finished."""
    group = group_of(project_id, group_id)
    worker = workers.worker_of(group, given.worker) if given.worker else None
    found = tasks.complete(lab(), group, key, worker=worker, by=username(request))
    return schemas.task(found)


@router.post(
    f"{ONE}/tasks/{{key}}/release", response=replies.given(schemas.Task), summary="Give a task back"
)
def task_release(
    request: HttpRequest,
    project_id: ProjectId,
    group_id: GroupId,
    key: TaskKey,
    given: schemas.HandBack,
) -> schemas.Task:
    """It is free again, and whoever takes it starts anew. A completed one stays completed."""
    group = group_of(project_id, group_id)
    worker = workers.worker_of(group, given.worker) if given.worker else None
    found = tasks.hand_back(lab(), group, key, worker=worker, note=given.note, by=username(request))
    return schemas.task(found)


def group_of(project_id: int, group_id: int) -> TaskGroup:
    """A group of this project, open or not. Raises NotFound."""
    project = project_of(project_id)
    found = TaskGroup.objects.filter(pk=group_id, project=project).first()
    if found is None:
        raise NotFound(f"There is no task group {group_id} in this project.")
    found.project = project
    return found


def _shown(group: TaskGroup) -> schemas.Group:
    return schemas.group(schemas.counted(TaskGroup.objects.filter(pk=group.pk)).get())

"""Monitors of task groups over the API: presets, start, show, stop, checkpoints."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from ninja import Path, Query, Status

from runs.api import replies, showing
from runs.api.asked import BIGGEST_ID, Paging, ProjectId
from runs.api.router import Router
from runs.groups import monitors, schemas
from runs.groups.api import ONE, GroupId, group_of
from runs.models import Checkpoint, Monitor
from runs.web.access import username
from runs.web.refusals import Denied
from runs.wiring import lab
from trackers.base import NotFound

router = Router(tags=["Monitors"])
presets = Router(tags=["Monitors"])

MonitorId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
MONITOR = f"{ONE}/monitors/{{int:monitor_id}}"
ENDED = "This monitor had ended already. Nothing was changed."


@presets.get("", response=replies.look(schemas.Presets), summary="List monitor presets")
def preset_list(request: HttpRequest) -> schemas.Presets:
    """The options of each kind of work as they are in force."""
    return schemas.Presets(items=[schemas.preset(row) for row in monitors.presets()])


@router.get(f"{ONE}/monitors", response=replies.look(schemas.Monitors), summary="List monitors")
def monitor_list(
    request: HttpRequest, project_id: ProjectId, group_id: GroupId, wanted: Query[Paging]
) -> schemas.Monitors:
    """The monitors of a group, newest first; of those one runs at most."""
    rows = Monitor.objects.filter(group=group_of(project_id, group_id))
    page, cursor = showing.page(rows, wanted)
    return schemas.Monitors(items=[schemas.monitor(row) for row in page], next=cursor)


@router.post(
    f"{ONE}/monitors", response=replies.given(schemas.Monitor, 201), summary="Start a monitor"
)
def monitor_start(
    request: HttpRequest, project_id: ProjectId, group_id: GroupId, given: schemas.NewMonitor
) -> Status[schemas.Monitor]:
    """Watch a group to its end."""
    group = group_of(project_id, group_id)
    made = monitors.start(
        lab(),
        group,
        by=username(request),
        preset=given.preset,
        given=given.options(),
        expected=given.expected,
    )
    return Status(201, schemas.monitor(made))


@router.get(MONITOR, response=replies.look(schemas.Monitor), summary="Show a monitor")
def monitor_show(
    request: HttpRequest, project_id: ProjectId, group_id: GroupId, monitor_id: MonitorId
) -> schemas.Monitor:
    """`result` tells completed, incomplete and timed out, once there is one."""
    return schemas.monitor(_monitor_of(project_id, group_id, monitor_id))


@router.post(f"{MONITOR}/stop", response=replies.act(schemas.Monitor), summary="Stop a monitor")
def monitor_stop(
    request: HttpRequest, project_id: ProjectId, group_id: GroupId, monitor_id: MonitorId
) -> schemas.Monitor:
    """It ends without a result; tasks and workers go on."""
    found = _monitor_of(project_id, group_id, monitor_id)
    if not monitors.stop(lab(), found, username(request)):
        raise Denied(409, "already_ended", ENDED)
    return schemas.monitor(found)


@router.get(
    f"{MONITOR}/checkpoints", response=replies.look(schemas.Checkpoints), summary="List checkpoints"
)
def checkpoint_list(
    request: HttpRequest,
    project_id: ProjectId,
    group_id: GroupId,
    monitor_id: MonitorId,
    wanted: Query[Paging],
) -> schemas.Checkpoints:
    """What a monitor told at milestones and new blockers, the newest first."""
    rows = Checkpoint.objects.filter(monitor=_monitor_of(project_id, group_id, monitor_id))
    page, cursor = showing.page(rows, wanted, "-n")
    return schemas.Checkpoints(items=[schemas.checkpoint(row) for row in page], next=cursor)


def _monitor_of(project_id: int, group_id: int, monitor_id: int) -> Monitor:
    group = group_of(project_id, group_id)
    found = Monitor.objects.filter(pk=monitor_id, group=group).first()
    if found is None:
        raise NotFound(f"There is no monitor {monitor_id} of this group.")
    found.group = group
    return found

"""Issues that are not started by themselves for now, after a start that failed or was stopped.

One issue that cannot start keeps no other from starting. When starts of several issues fail and
none works in between, the trouble is not theirs, and the project as a whole waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import F

from runs.core.ports import Lab
from runs.core.states import Outcome
from runs.dispatch import streak
from runs.models import Project, Run, StartWait

SETTLED = timedelta(seconds=30)  # how long a start has to hold to count as one that worked


def failed(lab: Lab, run: Run) -> None:
    """An automatic start came to nothing: the issue waits longer with each, in the transaction."""
    now = lab.now()
    Project.objects.hold(run.project_id)  # first, as Reset and a start do, or they deadlock
    row, _ = StartWait.objects.get_or_create(project_id=run.project_id, issue_key=run.issue_key)
    rows = StartWait.objects.filter(pk=row.pk)
    rows.update(
        failed=F("failed") + 1, failed_at=now, retry_at=now + streak.wait_after(row.failed + 1)
    )
    others = StartWait.objects.filter(project=run.project_id, failed__gt=0).exclude(pk=row.pk)
    worked_at = _worked_at(run.project_id, now)
    if worked_at is not None:
        others = others.filter(failed_at__gt=worked_at)
    number = others.count()
    if number:
        wait = now + streak.wait_after(number)
        Project.objects.filter(pk=run.project_id).update(retry_at=wait)


def stopped(run: Run, by: str) -> None:
    """A person stopped a start: the issue waits until a person starts it, or for Reset."""
    StartWait.objects.update_or_create(
        project_id=run.project_id, issue_key=run.issue_key, defaults={"stopped_by": by}
    )


def forget(project_id: int, key: str = "") -> int:
    """A start of the issue worked, or a person wants it again; all of a project without a key."""
    rows = StartWait.objects.filter(project=project_id)
    return (rows.filter(issue_key=key) if key else rows).delete()[0]


def of(projects: Sequence[Project]) -> Mapping[int, Mapping[str, StartWait]]:
    """The issues of these projects that wait, by project and key. One query."""
    found: dict[int, dict[str, StartWait]] = defaultdict(dict)
    for row in StartWait.objects.filter(project__in=[project.pk for project in projects]):
        found[row.project_id][row.issue_key] = row
    return found


def _worked_at(project_id: int, now: datetime) -> datetime | None:
    """When a start of the project last worked for more than a moment."""
    rows = Run.objects.filter(project=project_id, started_at__lte=now - SETTLED)
    rows = rows.exclude(outcome=Outcome.FAILED).order_by("-pk")
    return rows.values_list("started_at", flat=True).first()

"""The switch for work that goes on by itself, and Reset of the failure streak."""

from __future__ import annotations

from django.db import transaction

from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind, ProjectState
from runs.forges import cadence
from runs.models import Project
from runs.projects import start_waits
from runs.timeline import announce
from runs.watch import acts as watch_acts


class AutoRefused(ActRefused):
    """The project cannot be worked on by itself; the text says why."""


def switch(lab: Lab, project: Project, *, is_on: bool, by: str) -> bool:
    """Turn automatic work on or off; False when it was so already.

    The streak stays as it is. Raises AutoRefused when there is nothing to drive.
    """
    if is_on:
        _check(project)
    with transaction.atomic():
        rows = Project.objects.filter(pk=project.pk, is_auto=not is_on)
        fresh: dict[str, object] = {"retry_at": None} if is_on else {}
        changed = rows.update(is_auto=is_on, **fresh)
        if changed:
            text = "automatic work was turned on" if is_on else "automatic work was turned off"
            announce.tell(lab, NoticeKind.AUTO_CHANGED, text, project=project, by=by)
            watch_acts.switched(lab, project, is_on=is_on, by=by)
            if is_on:
                transaction.on_commit(lambda: lab.bell.look(project.slug), robust=True)
    return bool(changed)


def reset(lab: Lab, project: Project, *, by: str) -> bool:
    """Set the streak to zero, leave the switch as it is, and look for work now.

    False when there was nothing to reset. Raises AutoRefused when there is nothing to drive.
    """
    _check(project)
    with transaction.atomic():
        Project.objects.hold(project.pk)
        before = Project.objects.only("streak", "retry_at").get(pk=project.pk)
        waited = start_waits.forget(project.pk)
        if not before.streak and before.retry_at is None and not waited:
            return False
        rows = Project.objects.filter(pk=project.pk)
        rows.update(streak=0, last_failure=None, retry_at=None)
        cadence.wake(lab, project.pk)
        text = f"the failure streak was reset from {before.streak} to 0"
        if not before.streak:
            text = "issues whose start failed or was stopped may start by themselves again"
        announce.tell(lab, NoticeKind.STREAK_RESET, text, project=project, by=by)
        transaction.on_commit(lambda: lab.bell.look(project.slug), robust=True)
    return True


def _check(project: Project) -> None:
    """Only what labsite can drive: a cloned repository with a tracker."""
    if project.state != ProjectState.READY:
        raise AutoRefused(f"{ProjectState(project.state).not_ready} Nothing was changed.")
    if not project.tracker:
        raise AutoRefused("This project has no tracker that labsite can read. Nothing was changed.")

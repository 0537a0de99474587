"""How sessions end that people drive: by a person, under the guarded rule, or by themselves."""

from __future__ import annotations

from pathlib import Path

from django.db import transaction

from runs.core import lease
from runs.core.ports import Lab, SeamError
from runs.core.states import NoticeKind, PersonState
from runs.kept import counts, teardown
from runs.models import ManualSession, Project
from runs.timeline import announce


def stop(lab: Lab, row: ManualSession, by: str) -> bool:
    """End a session and tidy by the guarded rule; False when it had ended already.

    What could not be tidied becomes a warning on the row and never fails the act.
    """
    if not end(lab, row, f"ended by {by}", by=by, is_torn_down=True):
        return False
    if lease.is_here(lab, row.host):
        settle(lab, row)
    return True


def stop_all(lab: Lab, project: Project, by: str) -> int:
    """Stop every session of a project that a person drives."""
    rows = ManualSession.objects.filter(project=project, ended_at=None).select_related("project")
    return sum([stop(lab, row, by) for row in rows])


def settle(lab: Lab, row: ManualSession) -> None:
    """End what is left of an ended session; tried again until its session is gone."""
    try:
        lab.sessions.kill(row.session, row.mark)
    except SeamError as error:
        text = f"The session could not be ended yet: {error}. It is tried again."
        ManualSession.objects.filter(pk=row.pk).update(warning=text)
        return
    lab.sessions.forget(folder(lab, row))
    warning = ""
    if row.is_torn_down and row.fork_point:
        piece = teardown.Piece(row.branch, Path(row.worktree), row.fork_point)
        warning = teardown.tear_down(
            lab, row.project, piece, why="its session was ended", by=row.by
        ).warning
    elif row.warning:
        warning = row.warning
    rows = ManualSession.objects.filter(pk=row.pk, settled_at=None)
    if rows.update(settled_at=lab.now(), warning=warning):
        row.refresh_from_db()
        counts.take(lab, row.project)


def end(
    lab: Lab,
    row: ManualSession,
    text: str,
    *,
    by: str = "",
    is_torn_down: bool = False,
    warning: str = "",
) -> bool:
    """Write the end down if nobody has; whoever wins settles it."""
    with transaction.atomic():
        won = ManualSession.objects.filter(pk=row.pk, ended_at=None).update(
            state=PersonState.ENDED,
            ended_at=lab.now(),
            is_torn_down=is_torn_down,
            warning=warning,
        )
        if won:
            said = text if warning else f"session {row.session}: {text}"
            announce.tell(lab, NoticeKind.SESSION_ENDED, said, project=row.project, by=by)
    row.refresh_from_db()
    return bool(won)


def folder(lab: Lab, row: ManualSession) -> Path:
    """The private folder of a session."""
    return lab.paths.run_folders / f"person-{row.pk}"

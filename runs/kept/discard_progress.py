"""Discards that take long are carried out by the worker, and their page shows how far they are.

Work with large files has to be stored before it is removed, which may take minutes. The row is
there from the press to the end; one that failed stays, with the reason, until the next press.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from django.db import IntegrityError, InterfaceError, OperationalError, transaction

from runs.core import connections, naming
from runs.core.ports import Lab, SeamError
from runs.kept import counts, discard, owners
from runs.kept.discard import Discarded, DiscardRefused
from runs.models import Discarding, Project

logger = logging.getLogger(__name__)

LARGE = 64 * 1024 * 1024
TAKEN_WITHIN = timedelta(minutes=2)
TOLD_EVERY = timedelta(seconds=1)
NO_DATABASE = (OperationalError, InterfaceError)
_CARRIED_OUT: set[tuple[str, int]] = set()  # what this process is at, whatever its rows say


def begin(lab: Lab, project: Project, branch: str, by: str) -> Discarded | Discarding:
    """Discard at once what is small, and have the worker discard what is large.

    Raises DiscardRefused and SeamError as `discard.discard` does.
    """
    weight = _weight(lab, project, branch)
    _refuse_second(project, branch)
    if weight is not None and weight < LARGE:
        done = discard.discard(lab, project, branch, by)
        Discarding.objects.filter(project=project, branch=branch).delete()
        return done
    discard.check(lab, project, branch)
    try:
        with transaction.atomic():
            Discarding.objects.filter(project=project, branch=branch).exclude(error="").delete()
            row = Discarding.objects.create(
                project=project, branch=branch, by=by, total=weight or 0, asked_at=lab.now()
            )
    except IntegrityError:  # somebody pressed in the same moment
        _refuse_second(project, branch)
        raise
    lab.queue.discard(row.pk)
    return row


def of(project: Project) -> Sequence[Discarding]:
    """What is being discarded, and what could not be."""
    return list(Discarding.objects.filter(project=project).order_by("pk"))


def carry_out(lab: Lab, pk: int) -> None:
    """Discard what was asked for. Safe to call twice; killed in the middle, it is begun again."""
    key = (lab.process, pk)
    if key in _CARRIED_OUT:
        return
    _CARRIED_OUT.add(key)
    try:
        mine = Discarding.objects.filter(pk=pk, error="", process="")
        if mine.update(process=lab.process):
            _carry_out(lab, pk)
    finally:
        _CARRIED_OUT.discard(key)


def _carry_out(lab: Lab, pk: int) -> None:
    row = Discarding.objects.select_related("project").get(pk=pk)
    why = ""
    try:
        discard.discard(lab, row.project, row.branch, row.by, _told(lab, row.pk))
    except (DiscardRefused, SeamError) as error:
        why = str(error)
    except NO_DATABASE as error:
        logger.warning("a discard lost the database", extra={"error": str(error)})
        why = "the database went away meanwhile. Discard it again to go on where it stopped"
    except Exception as error:
        logger.exception("a discard failed by a mistake of ours", extra={"branch": row.branch})
        why = f"labsite made a mistake ({type(error).__name__}); see its log"
    connections.renew()
    rows = Discarding.objects.filter(pk=pk, process=lab.process)
    try:
        if why:
            rows.update(error=why, process="")
        else:
            rows.delete()
    except NO_DATABASE as error:  # `tend` begins it again
        logger.warning("the end of a discard was not stored", extra={"error": str(error)})
        connections.renew()


def tend(lab: Lab) -> None:
    """Ask again for what no worker carries out any more."""
    for row in Discarding.objects.filter(error=""):
        is_lost = not row.process and lab.now() - row.asked_at > TAKEN_WITHIN
        if row.process and lab.is_process_alive(row.process) is False:
            is_lost = True
        if row.process == lab.process and (row.process, row.pk) not in _CARRIED_OUT:
            is_lost = True  # its end could not be stored
        same = Discarding.objects.filter(pk=row.pk, error="", process=row.process)
        if is_lost and same.update(process="", asked_at=lab.now()):
            lab.queue.discard(row.pk)


def _refuse_second(project: Project, branch: str) -> None:
    """Raise DiscardRefused while the same branch is being discarded."""
    if Discarding.objects.filter(project=project, branch=branch, error="").exists():
        text = f"{branch} is being discarded already. Its page shows how far it is."
        raise DiscardRefused(text, code="owned")


def _weight(lab: Lab, project: Project, branch: str) -> int | None:
    """Bytes that have to be stored first; None when they could not be counted soon."""
    if not naming.is_managed(branch):
        return 0
    repo = project.repo(lab.paths)
    known = owners.remembered(project)
    try:
        found = (one for one in counts.everything(lab, project, known) if one.name == branch)
        path: Path | None = next((counts.worktree_of(lab, one, known) for one in found), None)
        return lab.repos.weight(repo, path) if path is not None else 0
    except SeamError as error:
        logger.info("kept work was not weighed", extra={"branch": branch, "error": str(error)})
        return None


def _told(lab: Lab, pk: int) -> Callable[[int], None]:
    """Store how many bytes are there, at most once a second."""
    next_at: datetime | None = None

    def tell(done: int) -> None:
        nonlocal next_at
        now = lab.now()
        if next_at is None or now >= next_at or next_at - now > TOLD_EVERY:
            next_at = now + TOLD_EVERY
            Discarding.objects.filter(pk=pk).update(done=done)

    return tell

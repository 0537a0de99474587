"""Writes the timeline. Every push and every "what happened" comes from here."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.models import Notice, Project, Run, TaskGroup


def tell(
    lab: Lab,
    kind: NoticeKind,
    text: str,
    *,
    project: Project | None = None,
    run: Run | None = None,
    group: TaskGroup | None = None,
    watch_id: int | None = None,
    issue_key: str = "",
    by: str = "",
    outcome: str = "",
) -> Notice:
    """Write one timeline row in the caller's transaction; browsers are woken after its commit.

    What is told of a run is told of its watch session too. Raises TransactionManagementError
    outside a transaction: a row that is not tied to its change could tell of something that never
    happened. No secret that labsite knows is in its text.
    """
    _refuse_loose()
    notice = Notice.objects.create(
        at=lab.now(),
        kind=kind,
        project=_project(project, run, group),
        run=run,
        group=group,
        watch_id=run.watch_id if run is not None else watch_id,
        issue_key=run.issue_key if run is not None else issue_key,
        text=lab.mask(text),
        by=by,
        outcome=outcome,
        is_news=kind.is_news,
    )
    transaction.on_commit(lambda: lab.bell.timeline(), robust=True)
    return notice


def tell_all(lab: Lab, told: Sequence[tuple[NoticeKind, str, TaskGroup]]) -> None:
    """`tell` for several things of groups that nobody did by hand, in their order, at once."""
    _refuse_loose()
    if not told:
        return
    now = lab.now()
    Notice.objects.bulk_create(
        Notice(
            at=now,
            kind=kind,
            project_id=group.project_id,
            group=group,
            text=lab.mask(text),
            is_news=kind.is_news,
        )
        for kind, text, group in told
    )
    transaction.on_commit(lambda: lab.bell.timeline(), robust=True)


def _refuse_loose() -> None:
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError(
            "a notice is written in the transaction of its change"
        )


def _project(project: Project | None, run: Run | None, group: TaskGroup | None) -> Project | None:
    if run is not None:
        return run.project
    return group.project if group is not None else project

"""Writes the timeline. Every push and every "what happened" comes from here."""

from __future__ import annotations

from django.db import transaction

from runs.domain.ports import Lab
from runs.domain.states import NoticeKind
from runs.models import Notice, Project, Run


def tell(
    lab: Lab,
    kind: NoticeKind,
    text: str,
    *,
    project: Project | None = None,
    run: Run | None = None,
    issue_key: str = "",
    by: str = "",
    outcome: str = "",
) -> Notice:
    """Write one timeline row in the caller's transaction; browsers are woken after its commit.

    Raises TransactionManagementError outside a transaction: a row that is not tied to its
    change could tell of something that never happened.
    """
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError(
            "a notice is written in the transaction of its change"
        )
    notice = Notice.objects.create(
        at=lab.now(),
        kind=kind,
        project=run.project if run is not None else project,
        run=run,
        issue_key=run.issue_key if run is not None else issue_key,
        text=text,
        by=by,
        outcome=outcome,
        is_news=kind.is_news,
    )
    transaction.on_commit(lambda: lab.bell.timeline(), robust=True)
    return notice

"""What a project wants started by itself: what its open watch session may start still."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from runs.core.database import prepared_with_keys
from runs.core.states import Outcome
from runs.dispatch.eligibility import Want
from runs.models import LoopIssue, Project, Run, WatchSession
from runs.watch.session import Request


def of(projects: Sequence[Project]) -> Mapping[int, Want]:
    """The want of each project, in two queries. The only place that knows what stands behind it."""
    found = {project.pk: Want() for project in projects}
    if len(projects) == 1:  # the pass that a person who pressed Start waits for
        sessions = _sessions_of().rows(keys=[projects[0].pk])
    else:
        sessions = list(_sessions(Q(project__in=found)))
    done = _done([pk for pk, _, is_auto, *_ in sessions if not is_auto])
    for pk, project, _, limit, completed, begun in sessions:
        most = None if limit is None else max(0, limit - completed - begun)
        found[project] = Want(is_on=True, without=frozenset(done[pk]), most=most)
    return found


@prepared_with_keys(1)
def _sessions_of(_now: datetime, project: int) -> QuerySet[Any, Any]:
    return _sessions(Q(project=project))


def _sessions(of_projects: Q) -> QuerySet[Any, Any]:
    """The open sessions of these projects that may start something, with what they have begun."""
    rows = WatchSession.objects.open().filter(of_projects, request=Request.NONE, reason="")
    columns = ("pk", "project_id", "is_auto", "limit", "completed", "begun")
    found: QuerySet[Any, Any] = with_begun(rows).values_list(*columns)
    return found


def with_active(rows: QuerySet[WatchSession]) -> QuerySet[Any, Any]:
    """Sessions with `active`, the number of their own runs that have no outcome.

    Read in one statement with the counters, so that a run is in one of the two.
    """
    own = Run.objects.active().filter(watch=OuterRef("pk")).order_by()
    count = own.values("watch").annotate(number=Count("pk")).values("number")
    return rows.annotate(active=Coalesce(Subquery(count), 0))


def with_begun(rows: QuerySet[WatchSession]) -> QuerySet[Any, Any]:
    """Sessions with `begun`, the number of issues that their active runs have had.

    That is one a run, but in a loop that stays as many as it took and did not give back; what a loop
    before it had completed was counted with that. In one statement with the counters.
    """
    own = Run.objects.active().filter(watch=OuterRef("pk"), loop__issues=None).order_by()
    took = LoopIssue.objects.filter(loop__run__watch=OuterRef("pk"), loop__run__outcome="")
    mine = took.exclude(end=LoopIssue.End.GIVEN_BACK).exclude(end=LoopIssue.End.COMPLETED, turns=0)
    counts = [
        Coalesce(Subquery(some.values(by).annotate(number=Count("pk")).values("number")), 0)
        for some, by in ((own, "watch"), (mine.order_by(), "loop__run__watch"))
    ]
    return rows.annotate(begun=counts[0] + counts[1])


def _done(sessions: Sequence[int]) -> Mapping[int, set[str]]:
    """The issues that sessions of people have worked on.

    A claim that was lost leaves its issue eligible. What the switch opened may take an
    issue again that was given back: it has no end at which a person would look at the rest.
    """
    done: dict[int, set[str]] = defaultdict(set)
    if sessions:
        lost = Q(outcome=Outcome.FAILED, claimed_at=None)
        rows = Run.objects.filter(watch__in=sessions).exclude(lost).order_by()
        took = LoopIssue.objects.filter(loop__run__watch__in=sessions).order_by()
        kept = took.exclude(end=LoopIssue.End.GIVEN_BACK)
        for session, key in rows.values_list("watch_id", "issue_key").union(
            kept.values_list("loop__run__watch_id", "issue_key")
        ):
            done[session].add(key)
    return done

"""What waits for a person beyond runs: open pull requests, and parked work that was never pushed."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from django.db.models import Count, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Left

from runs.domain.needing import PullNeeds
from runs.models.kept import Parked
from trackers.base import PullState
from trackers.builtin.models import PullRequest

if TYPE_CHECKING:
    from runs.models import Project
    from runs.web.board import Board

MOST = 30
SHOWN_TITLE = 200


def with_unpushed(rows: QuerySet[Project]) -> QuerySet[Project]:
    """Projects with `unpushed` commits on so many branches, `parked_ahead`; as last counted."""
    ahead = Parked.objects.filter(project=OuterRef("pk"), unpushed__gt=0).order_by()

    def of(what: Any) -> Subquery:
        return Subquery(ahead.values("project").annotate(told=what).values("told"))

    return rows.annotate(unpushed=of(Sum("unpushed")), parked_ahead=of(Count("pk")))


def pulls(picture: Board) -> list[PullNeeds]:
    """The newest open pull requests of the built-in trackers. One query."""
    by_root = {
        int(one.tracker_root): one
        for one in picture.projects
        if one.tracker == "builtin" and one.tracker_root.isdigit()
    }
    return [
        PullNeeds(by_root[root].pk, by_root[root].name, number, title)
        for root, number, title in _open(by_root)
    ]


def _open(roots: Collection[int]) -> QuerySet[PullRequest, tuple[int, int, str]]:
    rows = PullRequest.objects.filter(state=PullState.OPEN, root__in=roots)
    newest = rows.annotate(shown=Left("title", SHOWN_TITLE)).order_by("-created_at")
    return newest.values_list("root", "number", "shown")[:MOST]

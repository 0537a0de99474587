"""What waits beside the runs: ready issues, open pull requests, and parked work never pushed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from django.db.models import (
    Case,
    CharField,
    Count,
    F,
    OuterRef,
    PositiveIntegerField,
    Q,
    QuerySet,
    Subquery,
    Sum,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast, Concat

from runs.core.database import prepared
from runs.core.states import ProjectState, TrackerKind
from runs.dispatch import blocking
from runs.followups.red_check_rules import WatchState, name_checks
from runs.kept.models import Parked
from runs.models import Project, PullChecks
from runs.overview.need_facts import PullNeeds
from runs.pulls import proofs
from trackers.base import PullState
from trackers.builtin.models import Issue, PullRequest

READY_LIMIT = 400
MOST = 200
SHOWN_TITLE = 200
COLUMNS = ("place", "root", "number", "title", "label", "pull", "text")


@dataclass(frozen=True, slots=True)
class Ready:
    """An open issue that carries the ready label, with what is known to keep it from starting.

    `url` is its address where it is elsewhere, `pull` the number of its open pull request, and
    `blockers` the open issues that its text names.
    """

    project: Project
    key: str
    title: str
    url: str = ""
    pull: int | None = None
    blockers: Sequence[str] = ()

    def why(self, claim: str) -> str:
        """Why it cannot start, in a few words, where `claim` is what an earlier run left of it."""
        if claim and self.pull is not None:
            return f"pull request #{self.pull} open"
        return claim or (f"waits for #{self.blockers[0]}" if self.blockers else "")


def with_unpushed(rows: QuerySet[Project]) -> QuerySet[Project]:
    """Projects with `unpushed` commits on so many branches, `parked_ahead`; as last counted."""
    ahead = Parked.objects.filter(project=OuterRef("pk"), unpushed__gt=0).order_by()

    def of(what: Any) -> Subquery:
        return Subquery(ahead.values("project").annotate(told=what).values("told"))

    return rows.annotate(unpushed=of(Sum("unpushed")), parked_ahead=of(Count("pk")))


def of_trackers(
    projects: Sequence[Project], *, with_pulls: bool
) -> tuple[list[Ready], list[PullNeeds]]:
    """What waits in these projects: one query for built-in trackers, none for the others.

    Open issues with their project's ready label, in the order of the launch pass; with
    `with_pulls` the newest open pull requests too. Of other trackers what was heard last.
    """
    ready, pulls = _of_builtin(projects, with_pulls=with_pulls)
    elsewhere = [one for one in projects if one.tracker not in ("", TrackerKind.BUILTIN)]
    heard = [
        Ready(one, str(key), str(title), str(url), _pull_of(one, str(key), heads))
        for one in elsewhere
        if one.state == ProjectState.READY
        for heads in [{str(head): int(number) for number, head, *_ in one.pulls_seen}]
        for key, title, url in one.queue_seen
    ]
    if heard:
        ready = sorted([*ready, *heard], key=_number)
    if with_pulls:
        red = _describe_red_checks(elsewhere)
        pulls += [
            PullNeeds(
                *(one.pk, one.name, int(number), str(title), str(url)),
                red=red.get((one.pk, int(number)), ""),
            )
            for one in elsewhere
            for number, _, title, url in one.pulls_seen
        ]
        pulls += [
            PullNeeds(one.pk, one.name, int(number), str(title), str(url), is_closed=True)
            for one in projects
            for number, _, title, url in one.pulls_closed
        ]
    return ready, pulls


def _describe_red_checks(projects: Sequence[Project]) -> Mapping[tuple[int, int], str]:
    """By project and number, why the checks of a pull request need a person.

    One query; none where no project sends red checks back.
    """
    some = [one.pk for one in projects if one.sends_back_red_checks and one.pulls_seen]
    if not some:
        return {}
    rows = PullChecks.objects.filter(state=WatchState.RED, run__project__in=some)
    newest_last = rows.order_by("run_id").values_list(
        "run__project_id", "run__pull_number", "failed", "reason"
    )
    return {
        (project, number): f"{name_checks(failed)} failed; {reason.rstrip('.')}."
        for project, number, failed, reason in newest_last
        if number is not None
    }


def _pull_of(project: Project, key: str, heads: Mapping[str, int]) -> int | None:
    """The pull request that was heard of for one of the branches of an issue."""
    return next((heads[one] for one in project.branches_for(key) if one in heads), None)


def _number(ready: Ready) -> int:
    """Lowest number first across projects; words keep their tracker's own order, at the end."""
    key = ready.key
    return int(key) if key.isascii() and key.isdigit() else READY_LIMIT**3


def _of_builtin(
    projects: Sequence[Project], *, with_pulls: bool
) -> tuple[list[Ready], list[PullNeeds]]:
    by_root = {
        int(one.tracker_root): one
        for one in projects
        if one.tracker == TrackerKind.BUILTIN and one.tracker_root.isdigit()
    }
    usable = {root: one for root, one in by_root.items() if one.state == ProjectState.READY}
    if not (by_root if with_pulls else usable):
        return [], []
    terms = tuple(
        _Terms(root, one.ready_label, tuple(one.claim_prefixes)) for root, one in usable.items()
    )
    listed = _listed(terms, tuple(by_root) if with_pulls else None).rows()
    mine = [row for row in listed if row[0] and row[4] == usable[row[1]].ready_label]
    named = {(row[1], int(key)) for row in mine for key in blocking.references(row[6])}
    still_open = _still_open(named)
    ready = [
        Ready(
            usable[root],
            str(number),
            title,
            pull=pull,
            blockers=[key for key in blocking.references(text) if (root, int(key)) in still_open],
        )
        for _, root, number, title, _, pull, text in mine
    ]
    opened = [
        (by_root[root], number, title[:SHOWN_TITLE], branch)
        for place, root, number, title, *_, branch in reversed(listed)
        if not place
    ]
    failed = proofs.load_failures([(project, branch) for project, _, _, branch in opened])
    pulls = [
        PullNeeds(project.pk, project.name, number, title, red=failed.get((project.pk, branch), ""))
        for project, number, title, branch in opened
    ]
    return ready, pulls


def _still_open(named: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those of the issues, by root and number, that are open. One query; none when none is named."""
    if not named:
        return set()
    roots, numbers = {root for root, _ in named}, {number for _, number in named}
    rows = Issue.objects.filter(is_open=True, root__in=roots, number__in=numbers)
    return set(rows.values_list("root", "number"))


class _Terms(NamedTuple):
    """What tells the ready issues and the claims of one project on the built-in tracker."""

    root: int
    label: str
    prefixes: tuple[str, ...]


@prepared
def _listed(
    _now: datetime, terms: Sequence[_Terms], roots: Collection[int] | None
) -> QuerySet[Any, Any]:
    """Ready issues, and the open pull requests of these roots; None: no pull requests."""
    rows = _ready(terms)
    if roots is not None:
        rows = rows.union(_open(roots), all=True)
    return rows.order_by("place", "number", "root")[: READY_LIMIT + MOST]


def _by_prefix(terms: Iterable[_Terms]) -> Sequence[tuple[str, list[int]]]:
    """The roots whose claims begin with each prefix."""
    found: dict[str, list[int]] = {}
    for one in terms:
        for prefix in one.prefixes:
            found.setdefault(prefix, []).append(one.root)
    return list(found.items())


def _claims_as(prefix: str, roots: Collection[int]) -> Q:
    """Pull requests of the outer issue's branch with this prefix."""
    head = Concat(Value(prefix), Cast(OuterRef("number"), CharField()))
    return Q(head=head, root__in=roots)


def _ready(terms: Sequence[_Terms]) -> QuerySet[Any, Any]:
    """Issues that carry the ready label of any of these projects."""
    roots, labels = {one.root for one in terms}, {one.label for one in terms}
    rows = Issue.objects.filter(is_open=True, root__in=roots, labels__name__in=labels)
    heads = reduce(or_, (_claims_as(*one) for one in _by_prefix(terms)), Q(pk__in=()))
    pulls = PullRequest.objects.filter(heads, root=OuterRef("root"), state=PullState.OPEN)
    # The text alone of those that name a blocker: there may be hundreds of long ones.
    text = Case(
        When(body__icontains="blocked", then=F("body")),
        default=Value(""),
        output_field=TextField(),
    )
    shown = rows.annotate(
        place=Value(1),
        label=F("labels__name"),
        pull=Subquery(pulls.order_by("-number").values("number")[:1]),
        text=text,
    )
    return shown.order_by().values_list(*COLUMNS)


def _open(roots: Collection[int]) -> QuerySet[Any, Any]:
    """The newest open pull requests, in the columns of ready issues; `text` is their branch."""
    rows = PullRequest.objects.filter(state=PullState.OPEN, root__in=roots)
    newest = PullRequest.objects.filter(pk__in=rows.order_by("-created_at").values("pk")[:MOST])
    shown = newest.annotate(
        place=Value(0),
        label=Value("", CharField()),
        pull=Value(None, PositiveIntegerField()),
        text=Cast(F("head"), TextField()),
    )
    return shown.order_by().values_list(*COLUMNS)

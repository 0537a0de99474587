"""Reads of the built-in tracker for its own pages: a page of rows, one issue, one pull request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Count, IntegerField, Model, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Left

from trackers.base import NotFound, PullState
from trackers.builtin.models import Issue, IssueComment, Label, PullComment, PullRequest
from trackers.builtin.store import root_id

PAGE = 50
SHOWN_TITLE = 400

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Page(Generic[Row]):
    """Some rows of a longer list. Titles come cut as `shown_title`, bodies not at all."""

    rows: Sequence[Row]
    number: int
    has_next: bool


def issues(
    root: str, *, is_open: bool, label: str = "", text: str = "", page: int = 1
) -> Page[Issue]:
    """One page of issues, newest first; `text` is looked for in number, title and body."""
    return _page(_issues(root, is_open, label, text), page)


def issues_below(
    root: str,
    *,
    is_open: bool | None = None,
    label: str = "",
    text: str = "",
    below: int | None = None,
    limit: int,
) -> Sequence[Issue]:
    """At most `limit` issues with full titles, newest first, whose number is below one."""
    rows = _issues(root, is_open, label, text).defer("body").order_by("-number")
    return list((rows if below is None else rows.filter(number__lt=below))[:limit])


def issue_counted(root: str, number: int) -> Issue:
    """One issue with its labels and the number of its comments. Raises NotFound."""
    found = _issues(root).filter(number=number).first()
    if found is None:
        raise NotFound(f"There is no issue {number}.")
    return found


def comments(root: str, number: int, *, after: int, limit: int) -> Sequence[IssueComment]:
    """At most `limit` comments on an issue after one by id, oldest first. Raises NotFound."""
    rows = IssueComment.objects.filter(issue__root_id=root_id(root), issue__number=number)
    found = list(rows.filter(pk__gt=after).order_by("pk")[:limit])
    if not found and not Issue.objects.filter(root_id=root_id(root), number=number).exists():
        raise NotFound(f"There is no issue {number}.")
    return found


def pulls(root: str, *, is_open: bool, page: int = 1) -> Page[PullRequest]:
    """One page of pull requests, newest first: the open ones, or the merged and closed ones."""
    rows = PullRequest.objects.filter(root_id=root_id(root))
    state = Q(state=PullState.OPEN)
    return _page(rows.filter(state if is_open else ~state), page)


def issue(root: str, number: int) -> Issue:
    """One issue with labels and comments. Raises NotFound."""
    comments = Prefetch("comments", IssueComment.objects.order_by("id"))
    rows = Issue.objects.filter(root_id=root_id(root), number=number)
    found = rows.prefetch_related("labels", comments).first()
    if found is None:
        raise NotFound(f"There is no issue {number}.")
    return found


def pulls_below(
    root: str, *, is_open: bool | None = None, below: int | None = None, limit: int
) -> Sequence[PullRequest]:
    """At most `limit` pull requests without their texts, newest first, below a number."""
    rows = PullRequest.objects.filter(root_id=root_id(root)).defer("body").order_by("-number")
    if is_open is not None:
        state = Q(state=PullState.OPEN)
        rows = rows.filter(state if is_open else ~state)
    return list((rows if below is None else rows.filter(number__lt=below))[:limit])


def pull(root: str, number: int) -> PullRequest:
    """One pull request. Raises NotFound."""
    found = PullRequest.objects.filter(root_id=root_id(root), number=number).first()
    if found is None:
        raise NotFound(f"There is no pull request {number}.")
    return found


def open_pull_of(root: str, heads: Sequence[str]) -> int | None:
    """The number of the newest open pull request of these branches."""
    rows = PullRequest.objects.filter(root_id=root_id(root), state=PullState.OPEN, head__in=heads)
    return rows.order_by("-number").values_list("number", flat=True).first()


def pull_comments(
    pull: PullRequest, *, after: int = 0, limit: int | None = None
) -> Sequence[PullComment]:
    """The comments of a pull request after one by id, oldest first; all, or at most `limit`."""
    return list(PullComment.objects.filter(pull=pull, pk__gt=after).order_by("id")[:limit])


def titles(root: str, numbers: Sequence[int]) -> Mapping[int, str]:
    """The titles of these issues, cut."""
    rows = Issue.objects.filter(root_id=root_id(root), number__in=numbers)
    return dict(rows.annotate(cut=Left("title", SHOWN_TITLE)).values_list("number", "cut"))


def labels(root: str) -> Sequence[str]:
    """Every label of a tracker by name."""
    return list(Label.objects.filter(root_id=root_id(root)).values_list("name", flat=True))


def issue_counts(root: str) -> tuple[int, int]:
    """How many issues are open, and how many closed."""
    return _counts(Issue.objects.filter(root_id=root_id(root)), Q(is_open=True))


def pull_counts(root: str) -> tuple[int, int]:
    """How many pull requests are open, and how many are not."""
    rows = PullRequest.objects.filter(root_id=root_id(root))
    return _counts(rows, Q(state=PullState.OPEN))


def _issues(
    root: str, is_open: bool | None = None, label: str = "", text: str = ""
) -> QuerySet[Issue]:
    """Issues with labels and the number of comments, narrowed."""
    rows = Issue.objects.filter(root_id=root_id(root))
    if is_open is not None:
        rows = rows.filter(is_open=is_open)
    if label:
        rows = rows.filter(labels__name=label)
    if text:
        rows = rows.filter(_says(text))
    counted = (
        IssueComment.objects.filter(issue=OuterRef("pk"))
        .order_by()
        .values("issue")
        .annotate(number=Count("pk"))
        .values("number")
    )
    return rows.annotate(
        comment_count=Coalesce(Subquery(counted, output_field=IntegerField()), 0),
    ).prefetch_related("labels")


def _counts(rows: QuerySet[Row], is_open: Q) -> tuple[int, int]:
    found = rows.order_by().aggregate(
        opened=Count("pk", filter=is_open), ended=Count("pk", filter=~is_open)
    )
    return found["opened"], found["ended"]


def _says(text: str) -> Q:
    found = Q(title__icontains=text) | Q(body__icontains=text)
    number = text.removeprefix("#")
    return (
        found | Q(number=int(number))
        if number.isascii() and number.isdigit() and len(number) < 10
        else found
    )


def _page(rows: QuerySet[Row], page: int) -> Page[Row]:
    """One row more than shown is read, which tells whether there is a next page."""
    start = (page - 1) * PAGE
    shown = rows.annotate(shown_title=Left("title", SHOWN_TITLE)).defer("title", "body")
    found: list[Row] = list(shown.order_by("-number")[start : start + PAGE + 1])
    return Page(found[:PAGE], page, has_next=len(found) > PAGE)

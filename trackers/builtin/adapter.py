"""The adapter of the built-in tracker; the reference for every other adapter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import DatabaseError
from django.db.models import Case, F, FilteredRelation, Prefetch, Q, TextField, Value, When

from trackers import base
from trackers.base import (
    Ability,
    BaseTracker,
    Finding,
    NewIssue,
    NewPull,
    NotFound,
    Pull,
    PullState,
    Refused,
    TrackerError,
    Unreachable,
)
from trackers.builtin import store
from trackers.builtin.models import Issue, IssueComment, Label, PullRequest, Root

_PULL = ("number", "head", "state", "title", "base", "body", "head_commit", "created_at")
_STATES = frozenset(state.value for state in PullState)


class BuiltinTracker(BaseTracker):
    """Issues and pull requests in labsite's own database. A root is the key of a `Root` row."""

    kind = "builtin"
    # Its pull requests are merged by `runs.pulls.merging`, since only git can do that here.
    abilities = frozenset(
        {
            Ability.LOCAL,
            Ability.PULLS,
            Ability.COMMENT,
            Ability.LABEL,
            Ability.CLOSE,
            Ability.CREATE_ISSUE,
            Ability.CREATE_LABEL,
            Ability.CREATE_PULL,
        }
    )

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def queues(self, labels: Mapping[str, str]) -> Mapping[str, Sequence[base.Issue] | None]:
        """The ready issues of all roots in two queries, without comments and other labels."""
        roots = _numbered(labels)
        wanted = Q(root_id__in=roots, labels__name__in=set(labels.values()))
        rows = _rows(wanted, "labels__name")
        return _by_root(
            labels,
            roots,
            (
                (root, _row_issue(row, row["labels__name"]))
                for row in rows
                if row["labels__name"] == labels[root := roots[row["root_id"]]]
            ),
        )

    def still_open(
        self, keys: Mapping[str, Collection[str]]
    ) -> Mapping[str, Sequence[base.Issue] | None]:
        """Those of the named issues that are open, of all roots in two queries."""
        roots = _numbered(keys)
        numbers = {int(k) for asked in keys.values() for k in asked if _is_number(k)}
        rows = _rows(Q(root_id__in=roots, number__in=numbers))
        return _by_root(
            keys,
            roots,
            (
                (root, _row_issue(row))
                for row in rows
                if str(row["number"]) in keys[root := roots[row["root_id"]]]
            ),
        )

    def open_issues(self, root: str) -> Sequence[base.Issue]:
        """Every open issue, lowest number first."""
        return self._open(root)

    def open_count(self, root: str) -> int:
        """How many issues are open."""
        key = store.root_id(root)
        count = Issue.objects.filter(root_id=key, is_open=True).count()
        if not count and not Root.objects.filter(pk=key).exists():
            raise Refused("This project has no tracker of its own in labsite.")
        return count

    def issue(self, root: str, key: str) -> base.Issue:
        """One issue with its comments. Raises NotFound."""
        comments = Prefetch("comments", IssueComment.objects.order_by("id"))
        rows = Issue.objects.filter(root_id=store.root_id(root), number=number_of(key))
        for row in rows.prefetch_related("labels", comments):
            return _issue(row, with_text=True)
        raise NotFound(f"There is no issue {key}.")

    def pulls(self, heads: Mapping[str, Collection[str]]) -> Mapping[str, Sequence[Pull] | None]:
        """Pull requests of these heads, of all roots in one query.

        A root without a row is None ("could not tell"), never empty: the left join tells them
        apart without a second query.
        """
        asked = {store.root_id(root): root for root in heads if root.isascii() and root.isdigit()}
        wanted = {head for branches in heads.values() for head in branches}
        found: dict[str, list[Pull] | None] = dict.fromkeys(heads)
        for row in _pull_rows(asked, wanted):
            root = asked[row["pk"]]
            mine = found.setdefault(root, None)
            if mine is None:
                mine = found[root] = []
            pull = _pull(row)
            if pull is not None and pull.head in heads[root]:
                mine.append(pull)
        return found

    def pull(self, root: str, number: int) -> Pull:
        """One pull request. Raises NotFound."""
        rows = PullRequest.objects.filter(root_id=store.root_id(root), number=number)
        for row in rows:
            return _row_pull(row)
        raise NotFound(f"There is no pull request {number}.")

    def comment(self, root: str, key: str, author: str, body: str) -> None:
        """Store a comment. Raises NotFound."""
        store.add_comment(root, number_of(key), author=author, body=body, at=self._now())

    def add_label(self, root: str, key: str, label: str) -> None:
        """Let an issue carry a label. Raises NotFound, Refused for a label that is not there."""
        store.change_labels(root, number_of(key), add=[label], by="labsite", at=self._now())

    def remove_label(self, root: str, key: str, label: str) -> None:
        """Take a label off an issue. Raises NotFound."""
        store.change_labels(root, number_of(key), remove=[label], by="labsite", at=self._now())

    def close(self, root: str, key: str) -> None:
        """Close an issue. Raises NotFound."""
        store.set_open(root, number_of(key), is_open=False, at=self._now())

    def create_issue(self, root: str, new: NewIssue) -> base.Issue:
        """Store an issue. Raises Refused for a label that is not there."""
        number = store.create_issue(
            root,
            title=new.title,
            body=new.body,
            author=new.author,
            labels=new.labels,
            at=self._now(),
        )
        return self.issue(root, str(number))

    def labels(self, root: str) -> Collection[str]:
        """The labels of a root."""
        rows = Label.objects.filter(root_id=store.root_id(root))
        return frozenset(rows.values_list("name", flat=True))

    def create_label(self, root: str, label: str) -> None:
        """Store a label."""
        Label.objects.get_or_create(root_id=store.root_id(root), name=label)

    def examine(self, root: str, label: str) -> Sequence[Finding]:
        """Only its row can be missing."""
        try:
            count = self.open_count(root)
        except TrackerError as error:
            return [Finding("issues", False, str(error))]
        return [Finding("issues", True, f"labsite keeps the issues itself; {count} are open.")]

    def create_pull(self, root: str, new: NewPull) -> Pull:
        """Store a pull request. Raises Refused when its branch has an open one."""
        at = self._now()
        number = store.create_pull(root, new, at=at)
        return Pull(
            number=number,
            head=new.head,
            state=PullState.OPEN,
            title=new.title,
            base=new.base,
            body=new.body,
            head_commit=new.head_commit,
            created_at=at,
        )

    def _open(self, root: str) -> Sequence[base.Issue]:
        """Open issues without their bodies, which a list never shows."""
        key = store.root_id(root)
        rows = Issue.objects.filter(root_id=key, is_open=True).order_by("number")
        issues = [_issue(row) for row in rows.defer("body").prefetch_related("labels")]
        if not issues and not Root.objects.filter(pk=key).exists():
            raise Refused("This project has no tracker of its own in labsite.")
        return issues


def number_of(key: str) -> int:
    """The number that a key stands for. Raises NotFound for anything else."""
    if not _is_number(key):
        raise NotFound(f"There is no issue {key[:60]}.")
    return int(key)


def _is_number(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) <= 9


def _issue(row: Issue, *, with_text: bool = False) -> base.Issue:
    comments = row.comments.all() if with_text else ()
    return base.Issue(
        key=str(row.number),
        title=row.title,
        body=row.body if with_text else "",
        author=row.author,
        labels=tuple(sorted(label.name for label in row.labels.all())),
        is_open=row.is_open,
        comments=tuple(base.Comment(author=c.author, body=c.body) for c in comments),
    )


def _numbered(roots: Iterable[str]) -> dict[int, str]:
    """The roots that can be ours by their keys."""
    return {int(r): r for r in roots if r.isascii() and r.isdigit() and len(r) <= 18}


def _rows(which: Q, *more: str) -> Iterator[dict[str, Any]]:
    """Open issues, lowest number first; a text only where it may name what the issue waits for."""
    names_others = When(body__icontains="blocked", then=F("body"))
    text = Case(names_others, default=Value(""), output_field=TextField())
    rows = Issue.objects.filter(which, is_open=True).annotate(text=text).order_by("number")
    shown = ("root_id", "number", "title", "text", "author", "labelled_by")
    yield from rows.values(*shown, *more)


def _by_root(
    asked: Iterable[str], roots: Mapping[int, str], issues: Iterable[tuple[str, base.Issue]]
) -> Mapping[str, Sequence[base.Issue] | None]:
    """The issues of each root; None for a root without a row."""
    found: dict[str, list[base.Issue] | None] = dict.fromkeys(asked)
    for key in Root.objects.filter(pk__in=roots).values_list("pk", flat=True):
        found[roots[key]] = []
    for root, issue in issues:
        mine = found[root]
        if mine is not None:
            mine.append(issue)
    return found


def _row_issue(row: Mapping[str, Any], label: str = "") -> base.Issue:
    return base.Issue(
        key=str(row["number"]),
        title=row["title"],
        body=row["text"],
        author=row["author"],
        labels=(label,) if label else (),
        ready_by=row["labelled_by"].get(label) if label else None,
    )


def _pull_rows(roots: Collection[int], heads: Collection[str]) -> Iterator[dict[str, Any]]:
    """At least one row for each root that exists; its pull fields are empty when it has none."""
    rows = (
        Root.objects.filter(pk__in=roots)
        .annotate(asked=FilteredRelation("pulls", condition=Q(pulls__head__in=heads)))
        .values("pk", *(f"asked__{name}" for name in _PULL))
    )
    try:
        # Unordered: asked for an order, SQLite walks each root's whole history instead of the heads.
        yield from rows.order_by()
    except DatabaseError as error:
        raise Unreachable("The database did not answer.") from error


def _pull(row: Mapping[str, Any]) -> Pull | None:
    """The pull request of a row, or None where there is none or it makes no sense."""
    values = {name: row[f"asked__{name}"] for name in _PULL}
    if values["state"] not in _STATES or not values["head"]:
        return None
    return Pull(**{**values, "state": PullState(values["state"])})


def _row_pull(row: PullRequest) -> Pull:
    values = {name: getattr(row, name) for name in (*_PULL, "merge_commit")}
    return Pull(**{**values, "state": PullState(values["state"])})

"""Writes of the built-in tracker. Times are passed in; the rules are in `runs`.

Every function runs inside the caller's transaction when there is one, so that a change and its
timeline entry are one. The root's row is the counter of numbers: two writers never get the same.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F, Q

from trackers.base import NewPull, NotFound, Place, PullState, Refused
from trackers.builtin.models import Issue, IssueComment, Label, PullComment, PullRequest, Root

SEEDED_LABELS = ("ready-for-agent", "bug", "enhancement", "question", "documentation")


def create_root(name: str) -> str:
    """Make the tracker of one project with its first labels; returns the root for the adapter."""
    with transaction.atomic():
        root = Root.objects.create(name=name[:60])
        Label.objects.bulk_create(Label(root=root, name=label) for label in SEEDED_LABELS)
    return str(root.pk)


def drop_root(root: str) -> None:
    """Remove the tracker of a project that was never usable, with all that it holds."""
    Root.objects.filter(pk=root_id(root)).delete()


def root_id(root: str) -> int:
    """The primary key that a root stands for. Raises Refused for anything but a number."""
    if not (root.isascii() and root.isdigit()) or len(root) > 18:
        raise Refused("This project has no tracker of its own in labsite.")
    return int(root)


def create_issue(
    root: str, *, title: str, body: str, author: str, labels: Collection[str], at: datetime
) -> int:
    """Store an open issue and return its number. Raises Refused for a label that is not there."""
    with transaction.atomic():
        number = _next_number(root)
        issue = Issue.objects.create(
            root_id=root_id(root),
            number=number,
            title=title,
            body=body,
            author=author,
            labelled_by=dict.fromkeys(labels, author),
            created_at=at,
            updated_at=at,
        )
        issue.labels.set(_labels(root, labels))
    return number


class Changed(Exception):
    """An issue was changed by somebody else since it was read."""


def edit_issue(
    root: str,
    number: int,
    *,
    title: str | None = None,
    body: str | None = None,
    was: tuple[str, str] | None = None,
    at: datetime,
) -> str | None:
    """Replace title, body or both; None keeps what is there. Raises NotFound.

    With `was`, the title and body that were read, it raises Changed when there are others.
    Returns the title as it is now, or None when nothing changed.
    """
    with transaction.atomic():
        issue = _issue(root, number)
        if was is not None and was != (issue.title, issue.body):
            raise Changed
        new = issue.title if title is None else title, issue.body if body is None else body
        if (issue.title, issue.body) == new:
            return None
        rows = Issue.objects.filter(pk=issue.pk)
        if was is not None:
            rows = rows.filter(title=issue.title, body=issue.body)
        if not rows.update(title=new[0], body=new[1], updated_at=at):
            raise Changed
    return new[0]


def add_comment(root: str, number: int, *, author: str, body: str, at: datetime) -> None:
    """Store a comment. Raises NotFound."""
    with transaction.atomic():
        issue = _issue(root, number)
        IssueComment.objects.create(issue=issue, author=author, body=body, at=at)
        Issue.objects.filter(pk=issue.pk).update(updated_at=at)


def set_open(root: str, number: int, *, is_open: bool, at: datetime) -> bool:
    """Open or close; False when it was so already. Raises NotFound."""
    with transaction.atomic():
        issue = _issue(root, number)
        changed = Issue.objects.filter(pk=issue.pk, is_open=not is_open).update(
            is_open=is_open, updated_at=at
        )
    return bool(changed)


def set_labels(root: str, number: int, *, labels: Collection[str], by: str, at: datetime) -> bool:
    """Make these the issue's labels; False when they were. Raises NotFound, Refused.

    Who set a label that is there already is not changed.
    """
    with transaction.atomic():
        issue = _issue(root, number)
        wanted = _labels(root, labels)
        names = {label.name for label in wanted}
        before = {label.name for label in issue.labels.all()}
        if names == before:
            return False
        issue.labels.set(wanted)
        kept = {name: who for name, who in issue.labelled_by.items() if name in names & before}
        setters = {**dict.fromkeys(names - before, by), **kept}
        Issue.objects.filter(pk=issue.pk).update(labelled_by=setters, updated_at=at)
    return True


def change_labels(
    root: str,
    number: int,
    *,
    add: Collection[str] = (),
    remove: Collection[str] = (),
    by: str,
    at: datetime,
) -> bool:
    """Add and take off labels; False when nothing changed. Raises NotFound, Refused."""
    with transaction.atomic():
        names = {label.name for label in _issue(root, number).labels.all()}
        labels = (names | set(add)) - set(remove)
        return set_labels(root, number, labels=labels, by=by, at=at)


def create_pull(root: str, new: NewPull, *, at: datetime) -> int:
    """Store an open pull request and return its number. Raises Refused for a second one."""
    try:
        with transaction.atomic():
            number = _next_number(root)
            PullRequest.objects.create(
                root_id=root_id(root),
                number=number,
                head=new.head,
                base=new.base,
                head_commit=new.head_commit,
                base_commit=new.base_commit,
                title=new.title,
                body=new.body,
                author=new.author,
                state=PullState.OPEN,
                created_at=at,
                updated_at=at,
            )
    except IntegrityError as error:
        raise Refused(f"There is already an open pull request for {new.head}.") from error
    return number


def close_pull(root: str, number: int, *, at: datetime) -> bool:
    """Close an open pull request; False when it was not open. Raises NotFound."""
    rows = PullRequest.objects.filter(root_id=root_id(root), number=number)
    if rows.filter(state=PullState.OPEN).update(state=PullState.CLOSED, updated_at=at):
        return True
    if not rows.exists():
        raise NotFound(f"There is no pull request {number}.")
    return False


def reopen_pull(root: str, number: int, *, at: datetime) -> bool:
    """Open a closed pull request again; False when it was not closed. Raises NotFound, Refused."""
    rows = PullRequest.objects.filter(root_id=root_id(root), number=number)
    try:
        with transaction.atomic():
            if rows.filter(state=PullState.CLOSED).update(state=PullState.OPEN, updated_at=at):
                return True
    except IntegrityError as error:
        raise Refused("There is an open pull request of the same branch already.") from error
    if not rows.exists():
        raise NotFound(f"There is no pull request {number}.")
    return False


def begin_merge(
    root: str,
    number: int,
    *,
    by: str,
    commit: str,
    base: str,
    ends: tuple[str, str],
    at: datetime,
    lapsed: datetime,
) -> bool:
    """Note that a merge begins; False when another one is under way, or it is not open.

    `ends` are the commits that it compares, base first. A note from before `lapsed` was left by
    somebody who was interrupted, and gives way.
    """
    rows = PullRequest.objects.filter(root_id=root_id(root), number=number, state=PullState.OPEN)
    free = rows.filter(Q(merge_at=None) | Q(merge_at__lt=lapsed))
    return bool(
        free.update(
            merge_by=by,
            merge_commit=commit,
            merge_at=at,
            base=base,
            base_commit=ends[0],
            head_commit=ends[1],
        )
    )


def drop_merge(root: str, number: int, *, commit: str) -> None:
    """Remove the note of a merge that did not happen."""
    rows = PullRequest.objects.filter(root_id=root_id(root), number=number, merge_commit=commit)
    rows.exclude(state=PullState.MERGED).update(merge_by="", merge_commit="", merge_at=None)


def finish_merge(root: str, number: int, *, by: str, commit: str, at: datetime) -> bool:
    """Mark as merged, whatever it was before: the branch says so. False when it was already."""
    rows = PullRequest.objects.filter(root_id=root_id(root), number=number)
    return bool(
        rows.exclude(state=PullState.MERGED).update(
            state=PullState.MERGED, merge_by=by, merge_commit=commit, merge_at=at, updated_at=at
        )
    )


def close_issues(root: str, numbers: Collection[int], *, at: datetime) -> list[int]:
    """Close those of these issues that are open; returns their numbers."""
    rows = Issue.objects.filter(root_id=root_id(root), number__in=numbers, is_open=True)
    found = sorted(rows.select_for_update().values_list("number", flat=True))
    rows.filter(number__in=found).update(is_open=False, updated_at=at)
    return found


def keep_ends(root: str, number: int, *, base_commit: str, head_commit: str) -> None:
    """Store which commits a pull request compares, for when its branches have moved."""
    rows = PullRequest.objects.filter(root_id=root_id(root), number=number)
    rows.update(base_commit=base_commit, head_commit=head_commit)


def add_pull_comment(
    root: str, number: int, *, author: str, body: str, at: datetime, place: Place | None = None
) -> int:
    """Store a comment, on a line when there is a place, and return its key. Raises NotFound."""
    where = asdict(place) if place is not None else {}
    with transaction.atomic():
        pulls = PullRequest.objects.select_for_update()
        pull = pulls.filter(root_id=root_id(root), number=number).only("pk").first()
        if pull is None:
            raise NotFound(f"There is no pull request {number}.")
        made = PullComment.objects.create(pull=pull, author=author, body=body, at=at, **where)
        PullRequest.objects.filter(pk=pull.pk).update(updated_at=at)
    return made.pk


def _next_number(root: str) -> int:
    """Take the next number. The update locks the root's row until the transaction ends."""
    rows = Root.objects.filter(pk=root_id(root))
    if not rows.update(next_number=F("next_number") + 1):
        raise Refused("This project has no tracker of its own in labsite.")
    return rows.values_list("next_number", flat=True).get() - 1


def _labels(root: str, names: Collection[str]) -> list[Label]:
    """The label rows of these names. Raises Refused for one that is not there."""
    if not names:
        return []
    found = list(Label.objects.filter(root_id=root_id(root), name__in=set(names)))
    missing = sorted(set(names) - {label.name for label in found})
    if missing:
        raise Refused(f"There is no label “{missing[0]}” in this project.")
    return found


def _issue(root: str, number: int) -> Issue:
    """The issue, locked until the transaction ends. Raises NotFound."""
    issue = Issue.objects.select_for_update().filter(root_id=root_id(root), number=number).first()
    if issue is None:
        raise NotFound(f"There is no issue {number}.")
    return issue

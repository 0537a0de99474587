"""Verbs on the comments of a pull request, on the whole of it or on one line of its diff."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction

from runs.core import writing
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import ForgeKind, NoticeKind, TrackerKind
from runs.issues import remote
from runs.models import Notice, Project, Run
from runs.projects import sending
from runs.pulls import comparing, patches
from runs.timeline import announce
from trackers.account import awaited
from trackers.base import Ability, Place, Refused, Side
from trackers.builtin import queries, store
from trackers.builtin.models import PullComment, PullRequest

QUOTE = 400
SAME_WORDS = timedelta(minutes=5)
SHOWN_PATH = 60


class PullRefused(ActRefused):
    """Nothing was stored or opened; `field` is what is wrong, `text` says so and what to do."""


def comment(
    lab: Lab,
    project: Project,
    number: int,
    *,
    body: str,
    by: str,
    run: Run | None = None,
    path: str = "",
    line: int | None = None,
    side: str = Side.NEW,
    commit: str = "",
) -> int:
    """Comment on a pull request, or on one line of its diff; returns the comment's key.

    `commit` is the head at which the line was seen. The same words of the same author at the same
    place, sent again, are kept once. Raises PullRefused, NotFound, Refused, SeamError.
    """
    try:
        body = writing.comment(body)
    except writing.WrongText as error:
        raise PullRefused(error.text, field=error.field) from error
    if project.tracker != TrackerKind.BUILTIN:
        if path or line is not None:
            raise PullRefused(
                "Lines of this pull request are commented on at its tracker.", field="line"
            )
        return _comment_elsewhere(lab, project, number, body, by, run)
    pull = queries.pull(project.tracker_root, number)
    place = None
    if path or line is not None:
        place = _place(lab, project, pull, path, line, side, commit)
    with transaction.atomic():
        Project.objects.hold(project.pk)
        last = queries.pull_comments(pull)[-1:]
        if [_said(one) for one in last] == [(by, body, path, line if place else None)]:
            return last[0].pk
        key = store.add_pull_comment(
            project.tracker_root, number, author=by, body=body, at=lab.now(), place=place
        )
        where = f" on {writing.one_line(path, SHOWN_PATH)}:{line}" if place else ""
        text = f"comment on pull request {number}{where}: {writing.one_line(body)}"
        announce.tell(lab, NoticeKind.PULL_COMMENTED, text, project=project, run=run, by=by)
    return key


def _comment_elsewhere(
    lab: Lab, project: Project, number: int, body: str, by: str, run: Run | None
) -> int:
    """A pull request of a forge is commented on as its issue of the same number."""
    if project.tracker not in list(ForgeKind):
        raise Refused("This project keeps its pull requests on a tracker of its own.")
    tracker = remote.able(lab, project, Ability.COMMENT)
    words = remote.signed(project, body, by)
    kind, text = (
        NoticeKind.PULL_COMMENTED,
        f"comment on pull request {number}: {writing.one_line(body)}",
    )
    lately = Notice.objects.filter(
        project=project, kind=kind, text=text, by=by, at__gt=lab.now() - SAME_WORDS
    )
    with awaited(), sending.alone(lab, project, "pull comment", str(number), words):
        if lately.exists():
            return number
        tracker.comment(project.tracker_root, str(number), by, words)
        with transaction.atomic():
            announce.tell(lab, kind, text, project=project, run=run, by=by)
    return number


def comments(project: Project, number: int) -> Sequence[PullComment]:
    """The comments of a pull request, oldest first. Raises NotFound, Refused."""
    if project.tracker != TrackerKind.BUILTIN:
        return ()
    return queries.pull_comments(queries.pull(project.tracker_root, number))


def _said(comment: PullComment) -> tuple[str, str, str, int | None]:
    return comment.author, comment.body, comment.path, comment.line


def _place(
    lab: Lab,
    project: Project,
    pull: PullRequest,
    path: str,
    line: int | None,
    side: str,
    commit: str,
) -> Place:
    """The line as the diff shows it. Raises PullRefused when it does not show it, SeamError."""
    ends = comparing.ends_of(lab, project, pull)
    if commit and commit != ends.head:
        raise PullRefused(
            "The branch has moved on since this page was made, so the line may be another one. "
            "Load the page again; your words are kept in the field.",
            field="line",
        )
    found = comparing.between(lab, project, ends) if ends.are_known else None
    if found is None or found.error:
        raise PullRefused(
            f"{found.error if found else ends.note} Nothing was stored.", field="line"
        )
    change = next((one for one in found.files if one.path == path), None)
    if change is None:
        raise PullRefused("The pull request does not change this file.", field="path")
    if side not in list(Side):
        raise PullRefused("A line is on the old or on the new side.", field="side")
    patch = comparing.patch_of(lab, project, change)
    quote = patches.line_at(patch, line or 0, is_old=side == Side.OLD)
    if quote is None:
        raise PullRefused(
            f"The diff does not show the {side} line {line or ''} of this file.", field="line"
        )
    return Place(path, line or 0, Side(side), ends.head, writing.clean(quote)[:QUOTE])

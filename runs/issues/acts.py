"""Verbs on issues: each changes the built-in tracker and tells the timeline in one transaction."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

from runs.core import writing
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind
from runs.issues import remote
from runs.models import Project, Run
from runs.settings import edits
from runs.timeline import announce
from trackers.base import Ability, Refused
from trackers.builtin import queries, store
from trackers.builtin.models import Issue


class IssueRefused(ActRefused):
    """What was typed cannot be kept; `field` says where, `text` what to do."""


def create(
    lab: Lab, project: Project, *, title: str, body: str = "", labels: Collection[str] = (), by: str
) -> int:
    """Write a new open issue and return its number. Raises IssueRefused."""
    title, body = _texts(title, body)
    root = root_of(project)
    with transaction.atomic():
        try:
            number = store.create_issue(
                root, title=title, body=body, author=by, labels=labels, at=lab.now()
            )
        except Refused as error:
            raise IssueRefused(str(error), field="labels") from error
        _tell(lab, project, number, f"issue written: {writing.one_line(title)}", by)
    return number


def edit(
    lab: Lab,
    project: Project,
    number: int,
    *,
    title: str | None = None,
    body: str | None = None,
    by: str,
    seen: str = "",
) -> bool:
    """Replace title, body or both; None keeps what is there. False when nothing changed.

    `seen` is the mark of what was edited. Raises IssueRefused, NotFound, and ChangedMeanwhile when
    something else is stored by now.
    """
    kept = _texts("-" if title is None else title, body or "")
    title = None if title is None else kept[0]
    body = None if body is None else kept[1]
    with transaction.atomic():
        root, new = root_of(project), {"title": title, "body": body}
        was = _as_seen(root, number, seen) if seen else None
        try:
            edited = store.edit_issue(root, number, **new, was=was, at=lab.now())
        except store.Changed as error:
            raise edits.ChangedMeanwhile(("title", "body")) from error
        if edited is not None:
            _tell(lab, project, number, f"issue edited: {writing.one_line(edited)}", by)
    return edited is not None


def comment(
    lab: Lab, project: Project, key: str, *, body: str, by: str, run: Run | None = None
) -> None:
    """Comment on an issue, as a user or as a run's agent. Raises IssueRefused, TrackerError.

    The very same words as the newest comment of the same author are kept once: an agent's
    command sends again when it did not hear the answer.
    """
    tracker = lab.tracker_for(project.tracker)
    if tracker is None or Ability.COMMENT not in tracker.abilities:
        raise IssueRefused(
            "This project's tracker does not take comments from labsite.", field="comment"
        )
    try:
        body = writing.comment(body)
    except writing.WrongText as error:
        raise IssueRefused(error.text, field=error.field) from error
    if Ability.LOCAL not in tracker.abilities:
        remote.comment(lab, project, key, body=body, by=by, run=run)
        return
    with transaction.atomic():
        Project.objects.hold(project.pk)
        issue = tracker.issue(project.tracker_root, key)
        if [(c.author, c.body) for c in issue.comments[-1:]] == [(by, body)]:
            return
        tracker.comment(project.tracker_root, issue.key, by, body)
        announce.tell(
            lab,
            NoticeKind.ISSUE_COMMENTED,
            f"comment: {writing.one_line(body)}",
            project=project,
            run=run if run is not None and run.issue_key == issue.key else None,
            issue_key=issue.key,
            by=by,
        )


def set_open(lab: Lab, project: Project, number: int, *, is_open: bool, by: str) -> bool:
    """Open or close an issue; False when it was so already. Raises NotFound."""
    with transaction.atomic():
        changed = store.set_open(root_of(project), number, is_open=is_open, at=lab.now())
        if changed:
            _tell(lab, project, number, "issue opened again" if is_open else "issue closed", by)
    return changed


def set_labels(
    lab: Lab,
    project: Project,
    number: int,
    *,
    labels: Collection[str],
    by: str,
    was: Collection[str] | None = None,
) -> bool:
    """Make these the labels of an issue; False when they were. Raises IssueRefused, NotFound.

    `was` are the labels that a form showed: then only what differs from them is added and taken away,
    and what somebody else did to others meanwhile stays.
    """
    root = root_of(project)
    with transaction.atomic():
        Project.objects.hold(project.pk)
        if was is not None:
            now = {label.name for label in queries.issue(root, number).labels.all()}
            labels = sorted((now - (set(was) - set(labels))) | (set(labels) - set(was)))
        try:
            changed = store.set_labels(root, number, labels=labels, by=by, at=lab.now())
        except Refused as error:
            raise IssueRefused(str(error), field="labels") from error
        if changed:
            words = ", ".join(sorted(set(labels))) or "none"
            _tell(lab, project, number, f"labels are now: {words}", by)
    return changed


def root_of(project: Project) -> str:
    """The built-in tracker of a project. Raises Refused for a project that has another one."""
    if project.tracker != "builtin":
        raise Refused("This project keeps its issues on a tracker of its own.")
    return project.tracker_root


def mark(issue: Issue) -> str:
    """The mark of what an issue says."""
    return edits.mark({"title": issue.title, "body": issue.body})


def _as_seen(root: str, number: int, seen: str) -> tuple[str, str]:
    """What the issue says, when that is what was seen. Raises ChangedMeanwhile, NotFound."""
    now = queries.issue(root, number)
    edits.check(seen, {"title": now.title, "body": now.body})
    return now.title, now.body


def _texts(title: str, body: str) -> tuple[str, str]:
    try:
        return writing.title(title), writing.body(body)
    except writing.WrongText as error:
        raise IssueRefused(error.text, field=error.field) from error


def _tell(lab: Lab, project: Project, number: int, text: str, by: str) -> None:
    announce.tell(
        lab, NoticeKind.ISSUE_CHANGED, text, project=project, issue_key=str(number), by=by
    )

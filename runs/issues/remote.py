"""Verbs on issues of trackers that have to be waited for: written there first, then told here.

Nothing is asked over the network inside a transaction. The very same words go there once: while
they are being sent a row says so, and whoever comes after looks at the tracker first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import IntegrityError, transaction

from runs.core import writing
from runs.core.ports import Lab
from runs.core.states import ForgeKind, NoticeKind
from runs.forges import cadence
from runs.models import Project, Run, Sent
from runs.timeline import announce
from trackers.account import awaited
from trackers.base import Ability, Issue, NewIssue, Refused, Tracker, Unreachable

GIVEN_UP = timedelta(minutes=1)
STEP_SECONDS, STEPS = 0.2, 100


def comment(
    lab: Lab, project: Project, key: str, *, body: str, by: str, run: Run | None = None
) -> bool:
    """Comment on an issue; False when it is its newest comment already. Raises TrackerError."""
    tracker = able(lab, project, Ability.COMMENT)
    words = signed(project, body, by)
    with awaited(), alone(lab, project, "comment", key, words):
        issue = tracker.issue(project.tracker_root, key)
        if [one.body.strip() for one in issue.comments[-1:]] == [words.strip()]:
            return False
        tracker.comment(project.tracker_root, issue.key, by, words)
    mine = run if run is not None and run.issue_key == issue.key else None
    with transaction.atomic():
        announce.tell(
            lab,
            NoticeKind.ISSUE_COMMENTED,
            f"comment: {writing.one_line(body)}",
            project=project,
            run=mine,
            issue_key=issue.key,
            by=by,
        )
    return True


def create(
    lab: Lab, project: Project, *, title: str, body: str = "", labels: Collection[str] = (), by: str
) -> Issue:
    """Write a new open issue. Raises writing.WrongText, TrackerError."""
    tracker = able(lab, project, Ability.CREATE_ISSUE)
    title, body = writing.title(title), writing.body(body)
    new = NewIssue(title, signed(project, body, by), tuple(labels), by)
    with awaited(), alone(lab, project, "issue", title, body):
        issue = tracker.create_issue(project.tracker_root, new)
    _tell(lab, project, issue.key, f"issue written: {writing.one_line(title)}", by)
    return issue


def close(lab: Lab, project: Project, key: str, *, by: str) -> None:
    """Close an issue; no error when it is closed. Raises TrackerError."""
    tracker = able(lab, project, Ability.CLOSE)
    _write(lab, project, key, "issue closed", by, lambda root: tracker.close(root, key))


def add_label(lab: Lab, project: Project, key: str, label: str, *, by: str) -> None:
    """Let an issue carry a label. Raises TrackerError."""
    tracker = able(lab, project, Ability.LABEL)
    text = f"label added: {writing.one_line(label)}"
    _write(lab, project, key, text, by, lambda root: tracker.add_label(root, key, label))


def remove_label(lab: Lab, project: Project, key: str, label: str, *, by: str) -> None:
    """Take a label off an issue. Raises TrackerError."""
    tracker = able(lab, project, Ability.LABEL)
    text = f"label removed: {writing.one_line(label)}"
    _write(lab, project, key, text, by, lambda root: tracker.remove_label(root, key, label))


def able(lab: Lab, project: Project, ability: Ability) -> Tracker:
    """The project's tracker if it declares an ability. Raises Refused."""
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    if tracker is None:
        raise Refused("This project has no tracker that labsite can read.")
    if ability not in tracker.abilities:
        raise Refused(f"This project's tracker cannot do that: {ability.replace('_', ' ')}.")
    return tracker


def signed(project: Project, body: str, by: str) -> str:
    """The words with who wrote them: a forge shows only the account of labsite."""
    if not by or project.tracker not in list(ForgeKind):
        return body
    return f"{body.rstrip()}\n\n_{writing.one_line(by)}, through labsite_".strip()


@contextmanager
def alone(lab: Lab, project: Project, *words: str) -> Iterator[None]:
    """While nobody else sends the same; who died in the middle counts for a minute.

    Raises Unreachable when somebody takes too long.
    """
    digest = hashlib.sha256("\n".join(words).encode()).hexdigest()
    row = _begin(lab, project, digest)
    try:
        yield
    finally:
        Sent.objects.filter(pk=row.pk).delete()


def _begin(lab: Lab, project: Project, digest: str) -> Sent:
    for _ in range(STEPS):
        Sent.objects.filter(begun_at__lt=lab.now() - GIVEN_UP).delete()
        try:
            with transaction.atomic():
                return Sent.objects.create(project=project, digest=digest, begun_at=lab.now())
        except IntegrityError:
            lab.pause(STEP_SECONDS)
    raise Unreachable("The same words are being sent just now. Ask again in a moment.")


def _write(
    lab: Lab, project: Project, key: str, text: str, by: str, act: Callable[[str], None]
) -> None:
    with awaited():
        act(project.tracker_root)
    _tell(lab, project, key, text, by)


def _tell(lab: Lab, project: Project, key: str, text: str, by: str) -> None:
    with transaction.atomic():
        announce.tell(lab, NoticeKind.ISSUE_CHANGED, text, project=project, issue_key=key, by=by)
        cadence.wake(lab, project.pk)
        transaction.on_commit(lambda: lab.bell.look(project.slug), robust=True)

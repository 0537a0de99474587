"""Verbs on issues of trackers that have to be waited for: written there first, then told here.

Nothing is asked over the network inside a transaction. The very same words go there once: while
they are being sent a row says so, and whoever comes after looks at the tracker first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta

from django.db import transaction

from runs.core import writing
from runs.core.ports import Lab
from runs.core.states import ForgeKind, NoticeKind
from runs.forges import cadence
from runs.models import Project, Run
from runs.projects import sending
from runs.timeline import announce
from trackers.account import awaited
from trackers.base import Ability, Issue, NewIssue, Refused, Tracker

SIGNED = ", through labsite_"
MOST_TITLE = 100
PROMPT = "Prompt"  # the title of a text without words
GIVEN_UP = timedelta(minutes=1)
STEP_SECONDS, STEPS = 0.2, 100


def comment(
    lab: Lab, project: Project, key: str, *, body: str, by: str, run: Run | None = None
) -> bool:
    """Comment on an issue; False when it is its newest comment already. Raises TrackerError."""
    tracker = able(lab, project, Ability.COMMENT)
    words = signed(project, body, by)
    with awaited(), sending.alone(lab, project, "comment", key, words):
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
    with awaited(), sending.alone(lab, project, "issue", title, body):
        issue = tracker.create_issue(project.tracker_root, new)
    _tell(lab, project, issue.key, f"issue written: {writing.one_line(title)}", by)
    return issue


def of_prompt(
    lab: Lab, project: Project, prompt: str, *, labels: Collection[str] = (), by: str
) -> Issue:
    """Write an issue that holds a prompt, masked. Raises as `create`."""
    title, body = title_of(lab, prompt), lab.mask(prompt)
    return create(lab, project, title=title, body=body, labels=labels, by=by)


def title_of(lab: Lab, prompt: str) -> str:
    """The title of the issue that holds a prompt: its first line with words, masked."""
    lines = (line.strip("# ") for line in lab.mask(prompt).splitlines())
    return writing.one_line(next(filter(None, lines), PROMPT), MOST_TITLE)


def holds(lab: Lab, project: Project, issue: Issue, prompt: str) -> bool:
    """Whether an issue was written of this very prompt, whoever wrote it."""
    body, words = writing.clean(issue.body).strip(), writing.clean(lab.mask(prompt)).strip()
    by = body.removeprefix(words).strip().removeprefix("_").removesuffix(SIGNED)
    return body == signed(project, words, by).strip()


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
    return f"{body.rstrip()}\n\n_{writing.one_line(by)}{SIGNED}".strip()


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

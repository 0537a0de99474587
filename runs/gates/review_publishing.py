"""What reviewers found, as comments on the pull request and as one issue. Once, and best effort.

What cannot be written there changes no decision: it stands on the run's page.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence

from django.db import transaction

from runs.core import writing
from runs.core.ports import Lab, SeamError
from runs.core.refusal import ActRefused
from runs.core.states import NoticeKind, TrackerKind
from runs.gates.hold import Hold
from runs.issues import acts as issues
from runs.issues import remote
from runs.pulls import acts as pulls
from runs.pulls import comments
from runs.reviewers import rules
from runs.reviewers.rules import Finding, Vote
from runs.timeline import announce
from trackers.base import Pull, PullState, Side, TrackerError
from trackers.builtin.models import PullComment

logger = logging.getLogger(__name__)

COMMENTS, ISSUE = "review_comments", "review_issue"
MOST_COMMENTS = 40
# An issue with low findings, by which one about them is known.
_TITLE = re.compile(r"Review of issue .+: \d+ low-priority findings? \(run \d+, attempt \d+\)")
Said = tuple[str, str, str, int | None]
_TROUBLE = (ActRefused, TrackerError, SeamError, writing.WrongText)


def publish(lab: Lab, hold: Hold, votes: Sequence[Vote], *, tracks_low: bool) -> None:
    """Write what was found where people look for it. Raises LostError."""
    try:
        _comment(lab, hold, votes)
    except _TROUBLE as error:
        _tell(lab, hold, f"findings were not written to the pull request: {error}")
    if not tracks_low or not list(rules.low(votes)):
        return
    try:
        _track(lab, hold, votes)
    except _TROUBLE as error:
        _tell(lab, hold, f"no issue was written for the low-priority findings: {error}")


def _comment(lab: Lab, hold: Hold, votes: Sequence[Vote]) -> None:
    """Comments on lines, where the tracker is ours: others know none of their lines here.

    What a reviewer was not given is said first, since no findings would read as approved in full.
    """
    partial = [one for one in votes if rules.is_partial(one)]
    found = [
        (vote.reviewer, one)
        for vote in votes
        for one in vote.findings
        if one.is_blocking or not one.is_astray
    ]
    project = hold.run.project
    if not (found or partial) or project.tracker != TrackerKind.BUILTIN:
        return
    pull = pulls.of_run(lab, hold.run)
    if pull is None or pull.state is not PullState.OPEN:
        return
    there = {_said(one): one.pk for one in pulls.comments(project, pull.number)}
    keys = dict(hold.attempt.artifacts.get(COMMENTS) or {})
    for vote in partial:
        name, author = f"{vote.reviewer}/part", f"reviewer {vote.reviewer}"
        if name in keys:
            continue
        body = writing.comment(f"Commit {hold.attempt.commit[:12]} was {vote.reason}.")
        keys[name] = there.get((author, body, "", None)) or comments.comment(
            lab, project, pull.number, body=body, by=author, run=hold.run
        )
        hold.store(artifacts={**hold.attempt.artifacts, COMMENTS: keys})
    for number, (reviewer, one) in enumerate(found[:MOST_COMMENTS]):
        name, author = f"{reviewer}/{number}", f"reviewer {reviewer}"
        if name in keys:
            continue
        keys[name] = _there(there, author, one) or _write(lab, hold, pull, author, one)
        hold.store(artifacts={**hold.attempt.artifacts, COMMENTS: keys})


def _said(comment: PullComment) -> Said:
    return comment.author, comment.body, comment.path, comment.line


def _there(there: Mapping[Said, int], author: str, one: Finding) -> int | None:
    """The comment that says it already: of this attempt before a crash, or of an earlier one."""
    on_line = (author, _body(one, is_placed=True), one.path, one.line)
    on_all = (author, _body(one, is_placed=False), "", None)
    return there.get(on_line) or there.get(on_all)


def _write(lab: Lab, hold: Hold, pull: Pull, author: str, one: Finding) -> int:
    """On its line where the diff shows it, else on the whole pull request."""
    project, run = hold.run.project, hold.run
    if one.line is not None and not one.is_astray:
        try:
            return comments.comment(
                lab,
                project,
                pull.number,
                body=_body(one, is_placed=True),
                by=author,
                run=run,
                path=one.path,
                line=one.line,
                side=Side.NEW,
                commit=hold.attempt.commit,
            )
        except pulls.PullRefused as error:
            logger.info("a finding has no line in the diff", extra={"error": str(error)})
    body = _body(one, is_placed=False)
    return comments.comment(lab, project, pull.number, body=body, by=author, run=run)


def _body(one: Finding, *, is_placed: bool) -> str:
    where = "" if is_placed or not one.place else f"`{one.place}`: "
    return writing.comment(f"**P{one.priority}** {where}{one.title}\n\n{one.body}".strip())


def _track(lab: Lab, hold: Hold, votes: Sequence[Vote]) -> None:
    """One issue with an attempt's low findings, without any label: a person decides about it.

    On a tracker where an issue without a label is ready too, an agent takes it up at once. So work
    on such an issue writes none: reviews and agents would go on with each other for ever.
    """
    if hold.attempt.artifacts.get(ISSUE):
        return
    run = hold.run
    if _TITLE.fullmatch(run.issue_title):
        text = "no issue is written for low-priority findings on work on such an issue"
        _tell(lab, hold, text)
        return
    name = f"(run {run.pk}, attempt {hold.attempt.number})"
    found = list(rules.low(votes))
    many = f"{len(found)} low-priority finding{'' if len(found) == 1 else 's'}"
    title = f"Review of issue {run.issue_key}: {many} {name}"
    key = _issue_named(lab, hold, title)
    if key is None:
        key = _create(lab, hold, title, _issue_body(hold, found))
    hold.store(artifacts={**hold.attempt.artifacts, ISSUE: key})
    _tell(lab, hold, f"low-priority findings were written down as issue {key}")


def _issue_named(lab: Lab, hold: Hold, title: str) -> str | None:
    """The issue that a killed predecessor wrote."""
    project = hold.run.project
    tracker = lab.tracker_for(project.tracker)
    if tracker is None:
        return None
    rows = tracker.open_issues(project.tracker_root)
    return next((one.key for one in rows if one.title == title), None)


def _create(lab: Lab, hold: Hold, title: str, body: str) -> str:
    project = hold.run.project
    if project.tracker == TrackerKind.BUILTIN:
        return str(issues.create(lab, project, title=title, body=body, by="labsite"))
    return remote.create(lab, project, title=title, body=body, by="labsite").key


def _issue_body(hold: Hold, found: Sequence[tuple[str, Finding]]) -> str:
    rows = [
        f"- P{one.priority} {f'`{one.place}` ' if one.place else ''}{one.title} ({reviewer})\n"
        + "\n".join(f"  > {line}" for line in one.body.splitlines())
        for reviewer, one in found
    ]
    return (
        f"Reviewers of commit {hold.attempt.commit} for issue {hold.run.issue_key} found what did "
        "not keep it from being accepted. These are their words, checked by nobody.\n\n"
        + "\n".join(rows)
    )


def _tell(lab: Lab, hold: Hold, text: str) -> None:
    with transaction.atomic():
        announce.tell(lab, NoticeKind.GATE_STEP, text, run=hold.run)

"""What a review says to the agent whose pull request is to be changed: its comments, as text.

The person who asks decides; what others commented is quoted, and nothing in it is an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from runs.core.ports import Lab
from runs.core.states import Outcome, TrackerKind
from runs.followups import rules
from runs.models import Project, Run, StartRequest
from runs.projects import comment_rules
from runs.pulls import comments as pull_comments
from trackers import plain
from trackers.account import awaited
from trackers.base import Comment

# How what an agent writes is signed, here and on a forge; the review is what others wrote.
_AGENT = re.compile(r".+, run \d+")
_SIGNED = re.compile(r"\n_[^\n]+, run \d+, through labsite_\s*\Z")


def told(lab: Lab, run: Run, number: int, text: str) -> str:
    """The request with what was commented on pull request `number`; empty when there is nothing to tell.

    Raises TrackerError.
    """
    said = said_of(lab, run, number)
    if not text and not said:
        return ""
    chosen = comment_rules.choose(said, run.project.readers)
    trusted, others = _trusted(run.project, chosen.kept)
    is_ours = run.project.tracker == TrackerKind.BUILTIN
    review = rules.review(number, text, trusted, left_out=others, is_ours=is_ours)
    left_out = chosen.describe_left_out()
    return f"{review}\n\n{left_out}" if left_out else review


def said_of(lab: Lab, run: Run, number: int) -> Sequence[Comment]:
    """What others commented since changes were last made, oldest first. Raises TrackerError.

    A comment whose time is not told counts as new: told twice is better than never.
    """
    since = _since(run)
    if run.project.tracker == TrackerKind.BUILTIN:
        found = _kept(run.project, number)
    else:
        found = _elsewhere(lab, run.project, number)
    return [one for one in found if since is None or one.at is None or one.at >= since]


def _since(run: Run) -> datetime | None:
    """When the changes were asked for that were made last on this branch; None for none yet."""
    asked = StartRequest.objects.filter(
        project=run.project_id, wants_changes=True, run__branch=run.branch, run__pk__lte=run.pk
    )
    asked = asked.filter(run__outcome=Outcome.SUCCEEDED).order_by("-run_id")
    return asked.values_list("run__requested_at", flat=True).first()


def _trusted(project: Project, said: Sequence[Comment]) -> tuple[list[Comment], int]:
    """The comments of those who are trusted in the project, and how many others wrote."""
    names = project.trusted_names
    found = [one for one in said if not names or one.author.casefold() in names]
    return found, len(said) - len(found)


def _kept(project: Project, number: int) -> Iterator[Comment]:
    for one in pull_comments.comments(project, number):
        if _AGENT.fullmatch(one.author):
            continue
        side = " (the old side)" if one.side == "old" else ""
        place = f"{one.path}:{one.line}{side}" if one.path else ""
        yield Comment(one.author, one.body, one.at, place, one.quote)


def _elsewhere(lab: Lab, project: Project, number: int) -> Iterator[Comment]:
    tracker = lab.tracker_for(project.tracker)
    if tracker is None:
        return
    with awaited():
        found = tracker.pull_comments(project.tracker_root, number)
    for one in found:
        if plain.text(one.body).strip() and not _SIGNED.search(one.body):
            yield one

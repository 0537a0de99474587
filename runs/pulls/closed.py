"""Pull requests of runs that somebody closed without merging: their issues stay claimed until a
person decides. Kept with the project for pages; what a tracker tells and git has is asked anew."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from django.db import transaction

from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.models import Project, Run
from runs.timeline import announce
from trackers.base import Pull, PullState, best_pull

MOST, TITLE, URL = 30, 200, 500


def note(lab: Lab, project: Project, pulls: Sequence[Pull]) -> None:
    """Keep which of these were closed without merging while their branch still claims the issue.

    `pulls` are all of the branches that claim issues, in any state. What is new is told once.
    """
    delivered = _delivered(project, {one.head for one in pulls})
    found = (best_pull(pulls, head) for head in sorted(delivered))
    closed = [one for one in found if one is not None and one.state is PullState.CLOSED]
    rows = [_shown(one) for one in closed if one.number == delivered[one.head]][:MOST]
    before = {entry[0] for entry in project.pulls_closed}
    if rows == project.pulls_closed:
        return
    project.pulls_closed = rows
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(pulls_closed=rows)
        for number, head, *_ in rows:
            if number not in before:
                text = f"pull request {number} of {head} was closed without merging"
                announce.tell(lab, NoticeKind.PULL_CHANGED, text, project=project)


def keep_only(lab: Lab, project: Project, branches: Collection[str]) -> None:
    """Forget what no branch claims any more; `branches` are those that are parked now."""
    before = Project.objects.values_list("pulls_closed", flat=True).get(pk=project.pk)
    rows = [entry for entry in before if entry[1] in branches]
    if rows != before:
        project.pulls_closed = rows
        Project.objects.filter(pk=project.pk).update(pulls_closed=rows)
        lab.bell.timeline()


def _delivered(project: Project, heads: Collection[str]) -> Mapping[str, int]:
    """The pull request with which the newest run of each branch ended; none while it works."""
    rows = Run.objects.filter(project=project, branch__in=heads).order_by("pk")
    newest = {
        branch: number if outcome else None
        for branch, number, outcome in rows.values_list("branch", "pull_number", "outcome")
    }
    return {branch: number for branch, number in newest.items() if number is not None}


def _shown(pull: Pull) -> list[object]:
    return [pull.number, pull.head[:TITLE], pull.title[:TITLE], pull.url[:URL]]

"""Whether the gates of a project can prove anything, asked before an agent works for nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from runs.models import CheckCommand, CheckTerms, Project, Reviewer
from runs.validation import specs
from runs.validation.specs import Command, Scope, Switch

NO_REVIEWER = (
    "The gates ask for a review and no reviewer is set. Add one, turn the review off, or let it be "
    "skipped without reviewers."
)


def lacking(project: Project) -> str:
    """What the gates of a project lack, as a sentence; empty where they can prove changed code."""
    return of([project])[project.pk]


def of(projects: Sequence[Project]) -> Mapping[int, str]:
    """The same of several projects, by project.

    No query where none has gates, else two or three for all of them.
    """
    found = {project.pk: "" for project in projects}
    gated = [one.pk for one in projects if one.has_gates]
    if not gated:
        return found
    limits = {one.project_id: one for one in CheckTerms.objects.filter(project__in=gated)}
    commands: dict[int, list[Command]] = defaultdict(list)
    for row in CheckCommand.objects.filter(project__in=gated):
        commands[row.project_id].append(row.command())
    unreviewed = []
    for pk in gated:
        limit = limits.get(pk) or CheckTerms(project_id=pk)
        terms = limit.terms(tuple(commands[pk]))
        missing = specs.lacking(terms, Scope.PER_ISSUE)
        if missing:
            found[pk] = missing[0]
        elif Switch.REVIEW not in terms.disabled and not limit.skip_without_reviewers:
            unreviewed.append(pk)
    if unreviewed:
        rows = Reviewer.objects.filter(project__in=unreviewed, is_on=True)
        have = set(rows.values_list("project_id", flat=True))
        found |= {pk: NO_REVIEWER for pk in unreviewed if pk not in have}
    return found

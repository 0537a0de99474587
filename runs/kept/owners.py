"""Whose a managed branch is: what a live or starting session owns is nobody else's to touch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Q

from runs.core import naming
from runs.core.ports import Sighting
from runs.core.states import Outcome
from runs.models import Fixer, ManualSession, Project, Rescue, Run


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the newest run of a branch left in the database; empty where there was none."""

    fork_point: str = ""
    worktree: str = ""
    outcome: str = ""
    run_id: int | None = None

    @property
    def keeps_worktree(self) -> bool:
        """Whether the worktree stays for inspection, clean or not."""
        return bool(self.outcome) and self.outcome != Outcome.SUCCEEDED


def owned(project: Project, sightings: Mapping[str, Sighting] | None = None) -> frozenset[str]:
    """Branches of runs that have not been settled, starting ones included.

    With `sightings` also those of sessions that were found in tmux and are no rows yet.
    """
    return in_use(project, sightings)[0]


def in_use(
    project: Project, sightings: Mapping[str, Sighting] | None = None
) -> tuple[frozenset[str], frozenset[str]]:
    """What `owned` counts, and its worktrees, whatever branch an agent has checked out there."""
    parsed = [naming.parse_session(name, project.keys) for name in sightings or {}]
    found = {
        naming.branch_for(name.key) for name in parsed if name and name.project == project.slug
    }
    runs = Run.objects.filter(Q(outcome="") | Q(settled_at=None), project=project)
    people = ManualSession.objects.filter(project=project, settled_at=None)
    fixers = Fixer.objects.filter(project=project, settled_at=None)
    rows = [
        row for some in (runs, people, fixers) for row in some.values_list("branch", "worktree")
    ]
    trees = {path for _, path in rows if path}
    branches = found | {branch for branch, _ in rows}
    return frozenset(branches), frozenset(trees | {os.path.realpath(path) for path in trees})


def remembered(project: Project) -> Mapping[str, Remembered]:
    """What is remembered of each branch by its newest run, its session or its fixer."""
    rows = (
        Run.objects.filter(project=project)
        .order_by("pk")
        .values_list("branch", "fork_point", "worktree", "outcome", "pk")
    )
    people = ManualSession.objects.filter(project=project)
    driven = people.values_list("branch", "fork_point", "worktree")
    mended = Fixer.objects.filter(project=project).values_list("branch", "fork_point", "worktree")
    found = {row[0]: Remembered(row[1], row[2]) for row in (*driven, *mended)}
    return found | {row[0]: Remembered(row[1], row[2], row[3], row[4]) for row in rows}


def restored(project: Project) -> frozenset[str]:
    """Branches that a person brought back, which therefore stay until they are discarded."""
    rows = Rescue.objects.filter(project=project).exclude(restored_as="")
    return frozenset(rows.values_list("restored_as", flat=True))

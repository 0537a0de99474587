"""Whose a managed branch is: what a live or starting session owns is nobody else's to touch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Q

from runs.core import naming
from runs.core.ports import Sighting
from runs.core.states import Outcome
from runs.kept.teardown_rules import ENDED_WELL
from runs.models import Fixer, LoopIssue, ManualSession, Project, Rescue, Run

_EMPTY = (Outcome.NO_CHANGE, Outcome.OBSOLETE)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the newest run of a branch left in the database; empty where there was none.

    `worktree`: its path, or its name among labsite's worktrees.
    `closed_empty`: it had nothing to deliver and labsite closed its issue, so that its branch
    claims nothing any more.
    """

    fork_point: str = ""
    worktree: str = ""
    outcome: str = ""
    run_id: int | None = None
    closed_empty: bool = False

    @property
    def keeps_worktree(self) -> bool:
        """Whether the worktree stays for inspection, clean or not."""
        return bool(self.outcome) and self.outcome not in ENDED_WELL


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
        branch
        for name in parsed
        if name and name.project == project.slug
        for branch in project.branches_for(name.key)
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
    """What is remembered of each branch by its newest run, its session, its fixer or its restore."""
    rows = (
        Run.objects.filter(project=project)
        .order_by("pk")
        .values_list("branch", "fork_point", "worktree", "outcome", "pk", "closed_at")
    )
    names = ("branch", "fork_point", "worktree")
    people = ManualSession.objects.filter(project=project).order_by().values_list(*names)
    mended = Fixer.objects.filter(project=project).order_by().values_list(*names)
    found = _restored(project)
    found |= {row[0]: Remembered(row[1], row[2]) for row in people.union(mended, all=True)}
    # The run of a loop that stays names its newest branch alone; the ones before were completed.
    before = LoopIssue.objects.filter(loop__run__project=project, end=LoopIssue.End.COMPLETED)
    found |= {
        branch: Remembered(fork, "", Outcome.SUCCEEDED, run_id)
        for branch, fork, run_id in before.values_list("branch", "fork_point", "loop__run_id")
    }
    return found | {
        branch: Remembered(fork, tree, outcome, pk, bool(closed) and outcome in _EMPTY)
        for branch, fork, tree, outcome, pk, closed in rows
    }


def _restored(project: Project) -> dict[str, Remembered]:
    """Where a restore put worktrees: git tells no branch of one that stands on another commit."""
    rows = Rescue.objects.filter(project=project, had_worktree=True).exclude(restored_as="")
    keys = {
        name: naming.without_prefix(name, project.claim_prefixes)
        for name in rows.values_list("restored_as", flat=True)
    }
    return {
        name: Remembered(worktree=naming.worktree_name(project.slug, key))
        for name, key in keys.items()
    }


def restored(project: Project) -> frozenset[str]:
    """Branches that a person brought back, which therefore stay until they are discarded."""
    rows = Rescue.objects.filter(project=project).exclude(restored_as="")
    return frozenset(rows.values_list("restored_as", flat=True))

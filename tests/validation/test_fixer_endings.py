"""How fixers end, and when their starts are given up. With fakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs.kept import teardown
from runs.machine.git import CHECKOUT
from runs.models import Fixer, Validation, WatchSession
from runs.validation import fixer_endings, fixers
from tests import make
from tests.fakes import World

pytestmark = pytest.mark.django_db


def _a_fixer(world: World, **fields: Any) -> Fixer:
    """A fixer with its worktree."""
    project, now = make.a_project(), world.clock.now
    repo, tree = project.repo(world.lab.paths), world.lab.paths.worktrees / "demo-fix-1"
    world.repos.add_worktree(repo, tree, "lab/fix-1", "a" * 40)
    validation = Validation.objects.create(
        project=project,
        session=WatchSession.objects.create(project=project, opened_at=now),
        number=1,
        count=1,
        host="local",
        minutes=5,
        most_fixers=1,
        began_at=now,
    )
    return Fixer.objects.create(
        validation=validation,
        project=project,
        host="local",
        number=1,
        session="fix-1",
        mark="mark",
        branch="lab/fix-1",
        worktree=str(tree),
        fork_point="a" * 40,
        asked_at=now,
        **fields,
    )


@pytest.mark.parametrize("commits", [0, 1])
def test_work_in_a_submodule_keeps_the_worktree_and_the_fixer_is_settled(
    world: World, commits: int
) -> None:
    fixer = _a_fixer(world, end="delivered", ended_at=world.clock.now)
    tree = Path(fixer.worktree)
    world.repos.trees[tree].commits = commits
    world.repos.submodule_work.add(tree)
    assert fixer_endings.settle(world.lab, fixer)
    assert fixer.settled_at is not None
    assert fixer.warning == teardown.SUBMODULES
    assert tree.is_dir()


def test_a_start_that_may_still_check_files_out_is_not_given_up(world: World) -> None:
    fixer = _a_fixer(world, launcher="boot:9:9")
    world.clock.forward(seconds=2 * CHECKOUT, minutes=5)
    fixers._watch(world.lab, fixer)
    assert Fixer.objects.get().end == ""
    world.clock.forward(minutes=15)
    fixers._watch(world.lab, fixer)
    assert Fixer.objects.get().end == "did not start"

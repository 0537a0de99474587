"""How fixers end, with fakes."""

from __future__ import annotations

import pytest

from runs.kept import teardown
from runs.models import Fixer, Validation, WatchSession
from runs.validation import fixer_endings
from tests import make
from tests.fakes import World

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("commits", [0, 1])
def test_work_in_a_submodule_keeps_the_worktree_and_the_fixer_is_settled(
    world: World, commits: int
) -> None:
    project, now = make.a_project(), world.clock.now
    repo, tree = project.repo(world.lab.paths), world.lab.paths.worktrees / "demo-fix-1"
    world.repos.add_worktree(repo, tree, "lab/fix-1", "a" * 40)
    world.repos.trees[tree].commits = commits
    world.repos.submodule_work.add(tree)
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
    fixer = Fixer.objects.create(
        validation=validation,
        project=project,
        host="local",
        number=1,
        mark="mark",
        branch="lab/fix-1",
        worktree=str(tree),
        fork_point="a" * 40,
        asked_at=now,
        end="delivered",
        ended_at=now,
    )
    assert fixer_endings.settle(world.lab, fixer)
    assert fixer.settled_at is not None
    assert fixer.warning == teardown.SUBMODULES
    assert tree.is_dir()

"""Many short random days against the real rules, with everything outside faked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import hypothesis
import pytest
from django.db import connection
from hypothesis import strategies as some

from labsite.database import chosen
from runs.core.ports import Lab
from runs.models import Run, Settings
from tests import emptying, make
from tests.fakes import World
from tests.walk import walk
from tests.walk.walk import OFTEN, TIMES, Walk

pytestmark = pytest.mark.django_db(transaction=True)

CAP, PROJECTS, ISSUES = 2, 2, 3
# What an order of events breaks rests on the rules; on PostgreSQL a few of the days are enough.
DAYS = (3 if chosen() else 16) * TIMES


class FakeHands:
    """Agents that work in the fakes' dictionaries."""

    def __init__(self, world: World) -> None:
        self.world = world

    def die(self, run: Run) -> None:
        self.world.sessions.end(run.session, 1)

    def scribble(self, run: Run) -> None:
        self.world.repos.trees[Path(run.worktree)].is_dirty = True

    def commit(self, run: Run) -> None:
        tree = self.world.repos.trees[Path(run.worktree)]
        tree.is_dirty, tree.commits = False, tree.commits + 1

    def deliver(self, run: Run) -> None:
        self.world.tracker.add_pull(run.project.tracker_root, run.branch)

    def misbehave(self, run: Run, how: int) -> None:
        """Its branch gets another name."""
        tree = self.world.repos.trees[Path(run.worktree)]
        heads = self.world.repos.heads[run.project.repo(self.world.lab.paths)]
        if tree.branch in heads:
            name = f"other-{run.pk}"
            heads[name] = heads.pop(tree.branch)
            tree.branch = name

    def flashing(self, how: int) -> AbstractContextManager[None]:
        return nullcontext()

    def forward(self, minutes: int) -> None:
        self.world.clock.forward(minutes=minutes)

    def merge(self, lab: Lab, which: int) -> None:
        pulls = [pull for shelf in self.world.tracker.shelves.values() for pull in shelf.pulls]
        if pulls:
            pull = pulls[which % len(pulls)]
            pull["state"] = "merged"
            self.world.repos.merged_into.setdefault("main", set()).add(pull["head"])

    def lost(self) -> Iterator[str]:
        """Nothing yet: the fakes hold no content."""
        return iter(())


def a_walk(folder: Path) -> Walk:
    world = World(folder)
    walk.prepare()
    Settings.objects.update(session_cap=CAP)
    Settings.objects.update(agent=make.an_agent("a"))
    for name in "ab"[:PROJECTS]:
        make.a_project(name)
        world.tracker.add_root(name)
        for _ in range(ISSUES):
            world.tracker.add_issue(name, "Do it", labels=["ready-for-agent"])
    return Walk(world.lab, FakeHands(world))


steps = some.lists(
    some.tuples(
        some.sampled_from([name for name, share in OFTEN.items() for _ in range(share)]),
        some.integers(0, 5),
        some.sampled_from([0] * 40 + list(range(1, 41))),
    ),
    min_size=25,
    max_size=50,
)


@pytest.mark.long
@hypothesis.settings(max_examples=DAYS, derandomize=True, deadline=None)
@hypothesis.given(steps=steps)
def test_no_order_of_events_breaks_a_promise(
    steps: list[tuple[str, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    emptying.empty(connection)
    day = a_walk(tmp_path_factory.mktemp("walk"))
    for name, which, fuse in steps:
        day.act(name, which, fuse)
    day.rest()

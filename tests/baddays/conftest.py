"""Worlds that misbehave, and one check after every test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runs.models import Project, Run
from tests.baddays import invariants
from tests.real import RealWorld, git
from tests.story.conftest import story, with_anna
from tests.world.stories import start

__all__ = ["story", "with_anna"]


class BadDay:
    """A project with working runs on real tmux and git, and what their agents had made so far."""

    def __init__(self, real: RealWorld) -> None:
        self.real = real
        self.project = real.project()
        self.work = invariants.Work()

    def run(self, key: str = "7", project: Project | None = None) -> Run:
        """A working run with a commit that only its branch has and a file that nobody committed."""
        run = start(self.real, project or self.project, key)
        tree = Path(run.worktree)
        (tree / f"work-{key}.txt").write_text(f"work on {key}\n")
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", f"feat: work on {key}")
        (tree / f"unsaved-{key}.txt").write_text(f"not committed, of {key}\n")
        self.work = invariants.Work.of(self.real.paths)
        return run

    def again(self, run: Run) -> Run:
        return Run.objects.select_related("project").get(pk=run.pk)

    def servers(self) -> list[int]:
        """Process ids of this world's tmux server, asked of tmux itself."""
        return [int(pid) for pid in self.real.tmux("display-message", "-p", "#{pid}").split()]

    def check(self) -> None:
        """The day is over: all promises hold two ticks later."""
        invariants.check(self.real.lab, self.work, settle=self.real.work)


@pytest.fixture
def day(real: RealWorld, request: pytest.FixtureRequest) -> Iterator[BadDay]:
    """A bad day on the real outside, whose promises are checked when the test is over."""
    made = BadDay(real)
    yield made
    if not request.node.stash.get(FAILED, False):
        made.check()


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Iterator[Callable[[], None]]:
    """A test that failed already is not made to fail a second time by the check."""
    report = yield
    if call.when == "call" and report.failed:  # type: ignore[attr-defined]
        item.stash[FAILED] = True
    return report

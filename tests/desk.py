"""An agent's desk for tests: a run with its worktree, without a session."""

from __future__ import annotations

from pathlib import Path

from runs.core import tokens
from runs.models import Project, Run
from runs.pulls import acts as pulls
from tests import make
from tests.real import RealWorld, git
from trackers.base import Pull


class Desk:
    """A run with a real worktree, as its agent sees it, on the built-in tracker."""

    def __init__(self, real: RealWorld) -> None:
        self.real = real
        self.project: Project = real.project(tracker="builtin")
        self.repo = self.project.repo(real.paths)
        self.tree: Path = real.paths.worktrees / "demo-7"
        fork = real.repos.upstream(self.repo, "main")
        real.repos.add_worktree(self.repo, self.tree, "afk/7", fork)
        self.token = tokens.new_token()
        self.run: Run = make.a_run(
            self.project,
            fork_point=fork,
            worktree=str(self.tree),
            agent="Test agent",
            token_hash=tokens.hash_token(self.token),
        )
        real.bell.looks.clear()

    def commit(self, text: str = "hello again\n") -> str:
        (self.tree / "hello.txt").write_text(text)
        git(self.tree, "commit", "-qam", "feat: greet again")
        return git(self.tree, "rev-parse", "HEAD")

    def push(self, *flags: str) -> None:
        git(self.tree, "push", "-q", *flags, "origin", "afk/7")

    def ask(self, **fields: str) -> Pull:
        given = {"title": "Add retries", "by": "Test agent, run 1", **fields}
        return pulls.create(self.real.lab, self.run, **given)  # type: ignore[arg-type]

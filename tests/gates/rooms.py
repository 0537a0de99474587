"""A run at the gates of a real project: its branch, its attempt, and the hold on that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db import transaction

from runs.core import tokens
from runs.core.ports import Lab
from runs.core.states import Claim, JobKind, RunState
from runs.gates.hold import ATTEMPTS, Hold
from runs.jobs import runner as jobs
from runs.models import Attempt, Job, Run
from runs.validation import specs
from runs.validation.specs import Command, Coverage, Kind, Scope, Terms
from tests import make
from tests.real import RealWorld, git


def command(name: str, *argv: str, kind: Kind = Kind.TEST, **more: Any) -> Command:
    return Command(name, argv, kind, **more)


def sh(name: str, line: str, kind: Kind = Kind.TEST, **more: Any) -> Command:
    """A command that a shell reads, as a person writes it for labsite."""
    return Command(name, ("sh", "-c", line), kind, **more)


def take_over(lab: Lab, attempt: Attempt, is_stopping: Any = lambda: False) -> Hold:
    """Request the job of an attempt and claim it, also from whoever has it."""
    with transaction.atomic():
        job = jobs.request(lab, ATTEMPTS, attempt.pk, host=attempt.host)
    Job.objects.filter(pk=job.pk).update(owner="", beat_at=None)
    claimed = jobs.claim(lab, JobKind.ATTEMPT, attempt.pk)
    assert claimed is not None
    return Hold(lab, attempt, claimed, is_stopping)


class Claimed:
    """A project with gates and runs whose agents said that they are done."""

    def __init__(self, real: RealWorld, *commands: Command, **terms: Any) -> None:
        self.real, self.lab = real, real.lab
        self.project = real.project()
        self.terms = Terms(commands, coverage=Coverage(enabled=False))
        self.terms = replace(self.terms, **terms)
        self.repo = self.project.repo(real.paths)
        self.base = git(self.repo, "rev-parse", "refs/remotes/origin/main")

    def commit(self, key: str, files: dict[str, str]) -> str:
        """The worktree and branch of a run with these files in its one commit."""
        path = self.tree(key)
        if not path.exists():
            self.lab.repos.add_worktree(self.repo, path, f"afk/{key}", self.base)
        for name, text in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text)
        git(path, "add", "-A")
        git(path, "commit", "-q", "--allow-empty", "-m", f"feat: {key}")
        return git(path, "rev-parse", "HEAD")

    def tree(self, key: str):  # type: ignore[no-untyped-def]
        """The agent's own worktree."""
        return self.real.paths.worktrees / f"demo-{key}"

    def run(self, key: str = "7") -> Run:
        found = Run.objects.filter(issue_key=key).first()
        return found or make.a_run(
            self.project,
            key,
            slot=Run.objects.count() + 1,
            state=RunState.CHECKING,
            checking_at=self.lab.now(),
        )

    def hold(self, key: str = "7", commit: str = "", number: int = 1, **fields: Any) -> Hold:
        """A new attempt at a commit, that this process works on."""
        spec = specs.to_json(specs.effective(self.terms, Scope.PER_ISSUE))
        keep = self.terms.worktrees.keep_on_failure
        attempt = Attempt.objects.create(
            run=self.run(key),
            project=self.project,
            host=self.lab.host,
            number=number,
            claim=Claim.DONE,
            commit=commit or self.commit(key, {"new.txt": "new\n"}),
            base=self.base,
            spec={**spec, "keep_worktrees": keep},
            mark=tokens.new_mark(),
            began_at=self.lab.now(),
            **fields,
        )
        return take_over(self.lab, attempt)

"""A run whose commit stands at the review of its first attempt, with real git around it."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from runs.core.states import Claim, Gate, GateTurn, NoticeKind, RunState
from runs.gates import review
from runs.gates.hold import Hold
from runs.gates.rules import Decision
from runs.issues import acts as issues
from runs.machine import processes
from runs.models import Attempt, CheckTerms, Notice, Review, Reviewer
from tests import make
from tests.gates.rooms import take_over
from tests.real import RealWorld, git
from trackers.base import NewPull
from trackers.builtin import store

OK = "print('{\"findings\": []}')"
CODE = "def total(rows):\n    return sum(rows[:-1])\n"


def answer(*findings: tuple[int, str, int | None, str]) -> str:
    """A program that prints these findings."""
    rows = [
        {"priority": p, "path": path, "line": line, "title": title, "body": f"About {title}."}
        for p, path, line, title in findings
    ]
    return f"print({json.dumps({'findings': rows})!r})"


class Desk:
    """A run of issue 1 whose commit adds total.py, at the review of its first attempt."""

    def __init__(
        self, real: RealWorld, files: dict[str, str] | None = None, body: str = "Add total()."
    ) -> None:
        self.real, self.lab = real, real.lab
        self.project = real.project(tracker="builtin")
        key = issues.create(real.lab, self.project, title="Sum up", body=body, labels=[], by="anna")
        self.repo = self.project.repo(real.paths)
        self.checkout = real.folder / "demo-checkout"
        base = git(self.checkout, "rev-parse", "HEAD")
        commit = self.push(files or {"total.py": CODE})
        self.run = make.a_run(
            self.project,
            str(key),
            state=RunState.CHECKING,
            checking_at=real.lab.now(),
            gate_turn=GateTurn.NONE,
            fork_point=base,
        )
        self.terms = CheckTerms.objects.create(project=self.project)
        self.attempt = self.attempted(commit, base)

    def push(self, files: dict[str, str]) -> str:
        """Origin's branch of the run gets one more commit."""
        git(self.checkout, "checkout", "-q", "-B", "afk/1")
        for name, text in files.items():
            (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
            (self.checkout / name).write_text(text)
        git(self.checkout, "add", "-A")
        git(self.checkout, "commit", "-q", "-m", "feat: sum up")
        git(self.checkout, "push", "-q", "-f", "origin", "afk/1")
        self.real.repos.fetch(self.repo)
        return git(self.checkout, "rev-parse", "HEAD")

    def attempted(self, commit: str, base: str, number: int = 1) -> Attempt:
        return Attempt.objects.create(
            run=self.run,
            project=self.project,
            host="local",
            number=number,
            gate=Gate.REVIEW,
            claim=Claim.DONE,
            commit=commit,
            base=base,
            mark=f"gates-of-a-test-{os.getpid()}-{self.run.pk}-{number}",
            began_at=self.lab.now(),
        )

    def reviewer(self, name: str, code: str = OK, **fields: Any) -> Reviewer:
        """A command that is a line of Python."""
        fields.setdefault("command", [sys.executable, "-c", code])
        position = Reviewer.objects.count()
        return Reviewer.objects.create(project=self.project, name=name, position=position, **fields)

    def hold(self, is_stopping: Any = lambda: False) -> Hold:
        rows = Attempt.objects.select_related("run__project", "run__watch")
        return take_over(self.lab, rows.get(pk=self.attempt.pk), is_stopping)

    def judge(self) -> Decision:
        return review.judge(self.lab, self.hold())

    def reviews(self) -> dict[str, Review]:
        return {one.reviewer: one for one in Review.objects.filter(attempt=self.attempt)}

    def pull(self) -> int:
        """The pull request of the run's branch."""
        base = git(self.checkout, "rev-parse", "main")
        new = NewPull("afk/1", "main", "Sum up", "", "agent", self.attempt.commit, base)
        return store.create_pull(self.project.tracker_root, new, at=self.lab.now())

    def told(self) -> list[str]:
        rows = Notice.objects.filter(kind=NoticeKind.GATE_STEP, run=self.run).order_by("pk")
        return list(rows.values_list("text", flat=True))

    def is_tidy(self) -> bool:
        """Whether nothing is left of any reviewer."""
        left = list(self.real.paths.reviews.glob("*")) if self.real.paths.reviews.exists() else []
        listed = git(self.repo, "worktree", "list")
        return (
            not left
            and str(self.real.paths.reviews) not in listed
            and not processes.marked(self.attempt.mark)
        )

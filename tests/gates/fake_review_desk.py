"""A run at the review of its first attempt, with fakes around it: commands that give what they are told."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from runs.core.states import Claim, Gate, NoticeKind, RunState
from runs.gates import review
from runs.gates.hold import Hold
from runs.gates.rules import Decision
from runs.models import Attempt, CheckTerms, Notice, Review, Reviewer
from runs.validation.command_rules import Checked
from tests import make
from tests.fakes import World
from tests.gates.rooms import take_over
from tests.pulls import review_desk

BLOCKING = {"priority": 1, "path": "", "line": None, "title": "Wrong", "body": "It is wrong."}


class FakeReviewDesk(review_desk.Review):
    """The pull request of a run on the fake git, and reviewers that are commands by their name."""

    def __init__(self, world: World, after: Mapping[str, str] = review_desk.AFTER) -> None:
        super().__init__(world, after=after)
        self.lab = world.lab
        self.run = make.a_run(
            self.project, "1", state=RunState.CHECKING, checking_at=self.lab.now()
        )
        self.terms = CheckTerms.objects.create(project=self.project)
        self.attempt = self.attempted(1)

    def attempted(self, number: int) -> Attempt:
        """An attempt that this process has; those before it have ended."""
        Attempt.objects.filter(ended_at=None).update(state="failed", ended_at=self.lab.now())
        self.attempt = Attempt.objects.create(
            run=self.run,
            project=self.project,
            host="local",
            number=number,
            gate=Gate.REVIEW,
            claim=Claim.DONE,
            commit=self.head,
            base=self.base,
            mark=secrets.token_hex(8),
            began_at=self.lab.now(),
        )
        return self.attempt

    def reviewer(self, name: str, *findings: dict[str, Any], seconds: float = 1.0) -> Reviewer:
        """A command that answers these findings after so many seconds."""
        self.world.checks.answers[name] = Checked(0, seconds, json.dumps({"findings": findings}))
        position = Reviewer.objects.count()
        return Reviewer.objects.create(
            project=self.project, name=name, command=[name], position=position
        )

    def hold(self) -> Hold:
        rows = Attempt.objects.select_related("run__project", "run__watch")
        return take_over(self.lab, rows.get(pk=self.attempt.pk))

    def judge(self) -> Decision:
        return review.judge(self.lab, self.hold())

    def reviews(self) -> dict[str, Review]:
        return {one.reviewer: one for one in Review.objects.filter(attempt=self.attempt)}

    def asked(self) -> list[str]:
        """Who was started, in order."""
        return [one.argv[0] for one in self.world.checks.ran]

    def told(self) -> list[str]:
        rows = Notice.objects.filter(kind=NoticeKind.GATE_STEP, run=self.run).order_by("pk")
        return list(rows.values_list("text", flat=True))

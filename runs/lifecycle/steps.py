"""The way of a run in five steps: claimed, worktree, agent, delivery, clean-up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from runs.core.budgets import Spent
from runs.core.states import Outcome, RunState, WorktreeFate
from runs.gate_pages import check_words
from runs.gates import levels
from runs.models import Run
from runs.web import words
from trackers.keys import KeyRule

Mark = Literal["", "now", "done", "bad"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `at` is when it was done; `counts`: the browser counts on from `at`."""

    name: str
    mark: Mark
    note: str = ""
    at: datetime | None = None
    counts: bool = False
    is_held: bool = False

    @property
    def tone(self) -> str:
        if self.is_held:
            return "warn"
        return {"now": "live", "done": "good", "bad": "bad"}.get(self.mark, "")


def of(run: Run, spent: Spent) -> list[Step]:
    """The steps of a run as far as they are known; an adopted one has no claim and no worktree."""
    return [_claim(run), _worktree(run), _agent(run, spent), _pull(run), _reaped(run)]


def _claim(run: Run) -> Step:
    if run.is_adopted:
        return Step("Adopted", "done", at=run.requested_at)
    if run.claimed_at is not None:
        return Step("Claimed", "done", at=run.claimed_at)
    if run.is_active:
        return Step("Claimed", "now", "fetching origin")
    return Step("Claimed", "bad", "claim given back")


def _worktree(run: Run) -> Step:
    if run.is_adopted and not run.worktree:
        return Step("Worktree", "", "None (never created)")
    if run.claimed_at is None:
        return Step("Worktree", "", "not made" if not run.is_active else "waiting")
    fates = {
        WorktreeFate.KEPT.value: "kept",
        WorktreeFate.REMOVED.value: "removed",
        WorktreeFate.GONE.value: "moved or removed by somebody",
    }
    return Step("Worktree", "done", fates.get(run.worktree_fate, f"on {run.branch}"))


def _agent(run: Run, spent: Spent) -> Step:
    if run.is_waiting:
        return Step("Waits for you", "now", "", run.waits_at, is_held=True)
    if run.state == RunState.WORKING:
        limit = f"of {words.duration(spent.limit)}"
        return Step("Agent working", "now", limit, run.counted_from, counts=True)
    if run.is_checking:
        return Step("Agent worked", "done", words.duration(spent.used))
    if run.is_held:
        return Step("Agent held", "now", f"{words.duration(spent.used)} used", is_held=True)
    if run.did_start and not run.is_resuming:
        bad = run.outcome in (Outcome.DIED, Outcome.TIMED_OUT, Outcome.FAILED)
        return Step("Agent worked", "bad" if bad else "done", words.duration(spent.used))
    if run.is_active:
        is_next = run.claimed_at is not None
        begun = "starting after the set-up" if run.setup is not None else "starting"
        return Step("Agent", "now" if is_next else "", begun if is_next else "waiting")
    return Step("Agent", "bad", "did not start")


def _pull(run: Run) -> Step:
    if check_words.is_gated(run):
        return _checks(run)
    if run.project.keys is KeyRule.WORD:
        return _delivery(run)
    if run.pull_number is not None:
        return Step("Pull request", "done", f"number {run.pull_number}")
    return Step("Pull request", "", "waiting" if run.is_active else "none")


def _checks(run: Run) -> Step:
    """Where gates prove the work: where they stand, and what they said last."""
    if run.is_checking:
        return Step("Checks", "now", check_words.where(run))
    if run.outcome in levels.PROVEN and run.attempts:
        proven = (
            f"passed on {run.accepted_commit[:7]}" if run.accepted_commit else "no change needed"
        )
        if run.outcome == Outcome.SUCCEEDED and not run.accepted_commit:
            proven = "passed, discarded since"
        return Step("Checks", "done", proven)
    if run.is_active and run.attempts:
        return Step("Checks", "", f"attempt {run.attempts} failed, its agent mends it")
    if run.attempts:
        bad = run.outcome == Outcome.FAILED
        return Step("Checks", "bad" if bad else "", f"not passed in {_times(run.attempts)}")
    return Step("Checks", "", "waiting" if run.is_active else "none")


def _times(number: int) -> str:
    return "1 attempt" if number == 1 else f"{number} attempts"


def _delivery(run: Run) -> Step:
    """Where commits are the done signal: what they prove so far."""
    if run.outcome == Outcome.SUCCEEDED:
        return Step("Delivered", "done", run.proven)
    so_far = run.proven or (f"{run.commits} committed" if run.commits else "")
    return Step("Delivery", "", so_far or ("waiting" if run.is_active else "none"))


def _reaped(run: Run) -> Step:
    if run.settled_at is not None:
        return Step("Cleaned up", "done", "slot free", run.settled_at)
    if run.is_active:
        return Step("Clean-up", "", "waiting")
    if any(one is not None and not one["is_over"] for one in (run.setup_after, run.setup_removal)):
        return Step("Clean-up", "now", "running the project's commands")
    if run.outcome == Outcome.SUCCEEDED and run.is_one_shot:
        return Step("Clean-up", "now", "when the agent has ended")
    return Step("Clean-up", "now", "in progress")

"""Which runs are asked for, again and again, by the names that the product has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from runs.core.states import RunState
from runs.overview.attention_rules import BAD

if TYPE_CHECKING:
    from runs.lifecycle.models import Run  # noqa: F401  (named in a text below)

# Written as the index has it, so that databases use it.
NEEDS_SOMEBODY = ~Q(outcome="") & (Q(outcome__in=[o.value for o in BAD]) | ~Q(warning=""))
UNSEEN = Q(seen_until=None) & NEEDS_SOMEBODY


# Whose tracker labsite has still to tell that the issue is closed, or that its gates failed.
TO_TELL = Q(close_asked_at__isnull=False, closed_at=None) | Q(
    note_asked_at__isnull=False, noted_at=None
)


# What the row of a run shows and decides by, on every page and in every push. A row that is read so
# and asked for another column would read it by itself, in a query of its own.
_ROW = (
    *("project", "issue_key", "issue_title", "profile", "watch", "mark", "slot", "is_adopted"),
    *("continues", "amends", "nudged_at", "branch"),
    *("state", "outcome", "reason", "warning", "last_line", "trouble", "budget_seconds"),
    *("started_at", "interrupted_at", "ended_at", "settled_at", "look_asked_at", "seen_until"),
    *("held_at", "rested_seconds", "resumed_at", "resume_failures", "retry_at", "resumes"),
    *("agent_state", "agent_note", "agent_until", "began_at", "turn_ended_at"),
    *("waits", "waits_at", "waits_note", "waited_seconds", "budget_stopped_at"),
    *("answered_by", "answered_at", "turn_interrupted_at"),
    *("tokens_in", "tokens_out", "cost_usd", "spent_days"),
    *("proven", "pull_number", "pull_state", "mirrored", "worktree_fate"),
    *("checking_at", "gate_turn", "claim", "attempts", "accepted_commit"),
    *("close_asked_at", "closed_at", "is_loop", "own_budget_seconds"),
    *("issue_closed_at", "allowed_by"),
)
# And what the list of all runs and its downloads say beyond it.
_PAST = (
    *("agent", "model", "effort", "agent_model", "started_by", "requested_at", "took_seconds"),
    *("pull_url", "project__name"),
)


class RunQuerySet(models.QuerySet["Run"]):
    def active(self) -> RunQuerySet:
        """Runs without an outcome, starting ones included."""
        return self.filter(outcome="")

    def begun(self) -> RunQuerySet:
        """Without starts that failed, which nobody can go on with."""
        return self.filter(Q(outcome="") | Q(started_at__isnull=False))

    def working(self) -> RunQuerySet:
        """Runs whose session was seen alive once and that have no outcome."""
        return self.filter(outcome="", state=RunState.WORKING)

    def held(self) -> RunQuerySet:
        """Runs that wait for their agent's account, without a session."""
        return self.filter(outcome="", state=RunState.HELD)

    def checking(self) -> RunQuerySet:
        """Runs whose agent is done and whose gates are at work."""
        return self.filter(outcome="", state=RunState.CHECKING)

    def starting(self) -> RunQuerySet:
        """Runs that hold issue and slot while their session is being made."""
        return self.filter(outcome="", state=RunState.STARTING)

    def unseen(self) -> RunQuerySet:
        """Ended runs under *Needs you* that nobody has opened or dismissed."""
        return self.filter(UNSEEN)

    def unsettled(self) -> RunQuerySet:
        """Ended runs whose session or worktree has not been dealt with yet."""
        return self.exclude(outcome="").filter(settled_at=None)

    def light(self) -> RunQuerySet:
        """Without the texts that may be long: the task, what came after it, and the last words."""
        return self.defer("prompt", "follow_up", "last_words", "gate_message")

    def rows(self) -> RunQuerySet:
        """With the columns that a row shows and no others."""
        return self.only(*_ROW)

    def past(self) -> RunQuerySet:
        """With those that History shows, and the names of their projects."""
        return self.select_related("project").only(*_ROW, *_PAST)

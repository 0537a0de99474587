"""Runs: one agent's work on one issue, from start to outcome."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

from runs.agents.models import AgentProfile
from runs.core import budgets, naming, writing
from runs.core.database import QuickRows
from runs.core.paths import Paths
from runs.core.states import Claim, GateTurn, Outcome, RunKind, RunState, Wait, WorktreeFate
from runs.lifecycle.querysets import TO_TELL, UNSEEN, RunQuerySet
from runs.projects.models import Project
from runs.settings.models import Settings
from runs.setup.models import CommandResults
from runs.spending.limit_rules import Meter
from runs.transcript.models import AgentTold
from runs.watch.models import WatchSession


class Run(AgentTold, CommandResults, QuickRows):
    """One run. `outcome` is written once, by `runs.lifecycle.outcomes.record` alone."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="runs")
    host = models.CharField(max_length=100)
    issue_key = models.CharField(max_length=60)
    issue_title = models.TextField(blank=True)
    kind = models.CharField(
        max_length=10, choices=[(k.value, k.value) for k in RunKind], default=RunKind.MANUAL
    )
    is_adopted = models.BooleanField(default=False)
    is_loop = models.BooleanField(
        default=False, help_text="Its session runs one turn of an agent after the other."
    )
    own_budget_seconds = models.PositiveIntegerField(
        null=True, blank=True, help_text="The wall time that it may take; empty: its project's."
    )
    state = models.CharField(max_length=10, choices=[(s.value, s.value) for s in RunState])
    outcome = models.CharField(
        max_length=16, blank=True, choices=[(o.value, o.words) for o in Outcome], default=""
    )
    reason = models.TextField(blank=True, help_text="Why the outcome is what it is, in a sentence.")
    session = models.CharField(max_length=200)
    slot = models.PositiveIntegerField(null=True, blank=True)
    branch = models.CharField(max_length=80)
    worktree = models.CharField(max_length=500, blank=True)
    fork_point = models.CharField(max_length=64, blank=True)
    agent = models.CharField(max_length=60, blank=True)
    profile = models.ForeignKey(
        AgentProfile, null=True, blank=True, on_delete=models.SET_NULL, related_name="runs"
    )
    model = models.CharField(max_length=100, blank=True)
    effort = models.CharField(max_length=40, blank=True)
    prompt = models.TextField(blank=True)
    started_by = models.CharField(max_length=150, blank=True)
    watch = models.ForeignKey(
        WatchSession,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="runs",
        help_text="The watch session that started it.",
    )
    continues = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="continued_by",
        help_text="The ended run whose branch and worktree it goes on with.",
    )
    follow_up = models.TextField(
        blank=True, default="", help_text="What a person told its agent to go on with."
    )
    amends = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The pull request that was open when it went on, which it adds commits to.",
    )
    nudged_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When its agent was asked to deliver, since it had stopped without.",
    )
    head_before = models.CharField(
        max_length=64,
        blank=True,
        default="",
        help_text="Where its branch stood when it went on.",
    )
    mark = models.CharField(
        max_length=64,
        blank=True,
        editable=False,
        help_text="What the session and every process of the run carry; no other run has it.",
    )
    token_hash = models.CharField(max_length=64, blank=True, db_index=True, editable=False)

    requested_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(
        null=True, blank=True, help_text="The budget clock starts here (C-19)."
    )
    interrupted_at = models.DateTimeField(
        null=True, blank=True, help_text="A person aborted; it has ten seconds to end by itself."
    )
    held_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when it waits for the agent's account."
    )
    rested_seconds = models.PositiveIntegerField(
        default=0, help_text="Time in *held* so far, which the budget does not count."
    )
    waited_seconds = models.PositiveIntegerField(
        default=0, help_text="Time in which it waited for a person, in waits that are over."
    )
    budget_stopped_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when its wait for a person stops its budget."
    )
    resumed_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was last put into *starting* again."
    )
    resume_failures = models.PositiveIntegerField(
        default=0, help_text="Tries in a row to start it again in which its agent never came up."
    )
    vain_resumes = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Times in a row that it was refused right after a start."
    )
    retry_at = models.DateTimeField(
        null=True, blank=True, help_text="Not started again before, after a try that failed."
    )
    resumes = models.PositiveIntegerField(
        default=0, help_text="How often its agent was started again after it was held."
    )
    ended_at = models.DateTimeField(null=True, blank=True)
    took_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The wall time that counted, once it has ended; empty when it never started.",
    )
    settled_at = models.DateTimeField(null=True, blank=True)
    launcher = models.CharField(
        max_length=200, blank=True, help_text="The process that carries out the start."
    )
    launch_deadline = models.DateTimeField(null=True, blank=True)

    head = models.CharField(max_length=64, blank=True)
    commits = models.PositiveIntegerField(default=0)
    last_line = models.CharField(max_length=300, blank=True)
    last_output_at = models.DateTimeField(null=True, blank=True)
    screen_mark = models.CharField(
        max_length=16, blank=True, default="", editable=False, help_text="A digest of its screen."
    )
    screen_at = models.DateTimeField(
        null=True, blank=True, help_text="When its screen was first seen as it is."
    )
    waits = models.CharField(
        max_length=12,
        blank=True,
        default="",
        choices=[(w.value, w.value or "for nobody") for w in Wait],
        help_text="For what of a person's it waits.",
    )
    waits_at = models.DateTimeField(null=True, blank=True)
    waits_note = models.CharField(max_length=300, blank=True, default="")
    answer = models.CharField(
        max_length=300, blank=True, default="", help_text="What a person answered to that."
    )
    answered_by = models.CharField(max_length=150, blank=True, default="")
    answered_at = models.DateTimeField(null=True, blank=True)
    answered_mark = models.CharField(
        max_length=16, blank=True, default="", help_text="Of which dialog a choice was taken."
    )
    turn_interrupted_at = models.DateTimeField(
        null=True, blank=True, help_text="When a person interrupted the turn that was its last."
    )
    turn_interrupted_by = models.CharField(max_length=150, blank=True, default="")
    last_words = models.TextField(
        blank=True, help_text="The end of the screen when the program ended."
    )
    exit_status = models.IntegerField(null=True, blank=True)
    exit_signal = models.IntegerField(null=True, blank=True)
    exited_at = models.DateTimeField(null=True, blank=True)
    look_asked_at = models.DateTimeField(
        null=True, blank=True, help_text="When its agent said that it is done (labctl done)."
    )
    proven = models.CharField(
        max_length=200, blank=True, help_text="What its commits proved at the last look."
    )
    pull_number = models.PositiveIntegerField(null=True, blank=True)
    pull_url = models.CharField(max_length=500, blank=True)
    pull_state = models.CharField(
        max_length=10, blank=True, default="", help_text="As its tracker told it last."
    )
    mirrored = models.CharField(
        max_length=10, blank=True, default="", help_text="What was last written on the tracker."
    )
    worktree_fate = models.CharField(
        max_length=10,
        blank=True,
        default="",
        choices=[(f.value, f.value or "not settled") for f in WorktreeFate],
    )
    warning = models.TextField(blank=True, help_text="What the reap could not do.")
    seen_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Until when it stands under Needs you; empty: until somebody has opened it.",
    )
    budget_seconds = models.PositiveIntegerField(
        null=True, blank=True, help_text="The budget that was in force when it ended."
    )
    checking_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Since when its gates are at work, which its budget leaves out.",
    )
    gate_turn = models.CharField(
        max_length=10,
        blank=True,
        default="",
        choices=[(t.value, t.value or "at work") for t in GateTurn],
        help_text="What the next tick does with it while it is checking.",
    )
    claim = models.CharField(
        max_length=10,
        blank=True,
        default="",
        choices=[(c.value, c.value) for c in Claim],
        help_text="What its agent says of its issue.",
    )
    claim_reason = models.CharField(max_length=2000, blank=True, default="")
    attempts = models.PositiveIntegerField(
        default=0, help_text="How often its work went through the gates of its project."
    )
    accepted_commit = models.CharField(
        max_length=64, blank=True, default="", help_text="The commit that its gates passed."
    )
    close_asked_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when labsite is to close its issue."
    )
    closed_at = models.DateTimeField(
        null=True, blank=True, help_text="When labsite closed its issue."
    )
    note_asked_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Since when its tracker is to be told that its gates failed for the last time.",
    )
    noted_at = models.DateTimeField(
        null=True, blank=True, help_text="When its tracker was told so."
    )
    tracker_retry_at = models.DateTimeField(
        null=True, blank=True, help_text="Its tracker is not asked again before."
    )
    gate_message = models.TextField(
        blank=True, default="", help_text="What its agent was told when a gate failed last."
    )
    gate_told_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was told so: an earlier end of a turn is none."
    )

    limits_told = models.CharField(
        max_length=120,
        blank=True,
        default="",
        editable=False,
        help_text="Of which limits its agent was told that they are near.",
    )

    issue_closed_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When its issue was first seen closed while its agent worked.",
    )
    allowed_by = models.CharField(
        max_length=150,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Who said that it goes on though its issue was closed.",
    )
    server = models.CharField(
        max_length=100,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The tmux server that its session was started on.",
    )

    # What this process read of its screen in this tick: whether at all, and whether it shows a dialog.
    is_screen_read = False
    shows_dialog: bool | None = None
    # Whether it printed its result long ago and its program runs all the same, as this tick sees it.
    has_lingered = False
    # The limit of tokens or money that it had reached when this tick began.
    over: Meter | None = None

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        permissions = [("act", "Can start and stop runs, add projects, write issues")]
        constraints = [
            models.CheckConstraint(
                name="run_ended_iff_outcome",
                condition=(
                    Q(outcome="", ended_at=None) & ~Q(state=RunState.ENDED)
                    | ~Q(outcome="") & Q(ended_at__isnull=False, state=RunState.ENDED)
                ),
            ),
            models.CheckConstraint(
                name="run_outcome_known", condition=Q(outcome__in=["", *(o.value for o in Outcome)])
            ),
            models.CheckConstraint(
                name="run_settled_only_after_outcome", condition=Q(settled_at=None) | ~Q(outcome="")
            ),
            models.CheckConstraint(
                name="run_held_has_time",
                condition=~Q(state=RunState.HELD) | Q(held_at__isnull=False),
            ),
            models.CheckConstraint(
                name="run_waits_has_time", condition=Q(waits="") | Q(waits_at__isnull=False)
            ),
            models.CheckConstraint(
                name="run_checking_has_time",
                condition=~Q(state=RunState.CHECKING) | Q(checking_at__isnull=False),
            ),
            models.UniqueConstraint(
                name="run_one_active_per_issue",
                fields=["project", "issue_key"],
                condition=Q(outcome=""),
            ),
            models.UniqueConstraint(
                name="run_one_active_per_session",
                fields=["host", "session"],
                condition=Q(outcome=""),
            ),
        ]
        indexes = [
            models.Index(name="run_active", fields=["host", "state"], condition=Q(outcome="")),
            models.Index(
                name="run_unsettled", fields=["host"], condition=~Q(outcome="") & Q(settled_at=None)
            ),
            # Whoever comes back is told what ended meanwhile.
            models.Index(name="run_ended", fields=["-ended_at", "-id"], condition=~Q(outcome="")),
            # History: the filters that leave out most, each in the order of its first page.
            *(
                models.Index(
                    name=f"run_ended_{name}",
                    fields=[column, "ended_at", "id"],
                    condition=~Q(outcome=""),
                )
                for name, column in (
                    *(("project", "project"), ("how", "outcome"), ("agent", "agent")),
                    *(("model", "model"), ("by", "started_by")),
                )
            ),
            *(
                models.Index(
                    name=f"run_by_{name}",
                    fields=[column, "id"],
                    condition=~Q(outcome=""),
                )
                for name, column in (("took", "took_seconds"), ("cost", "cost_usd"))
            ),
            *(
                models.Index(
                    name=f"run_project_{name}",
                    fields=["project", column, "id"],
                    condition=~Q(outcome=""),
                )
                for name, column in (("took", "took_seconds"), ("cost", "cost_usd"))
            ),
            models.Index(name="run_unseen", fields=["-id"], condition=UNSEEN),
            models.Index(name="run_recent", fields=["project", "-id"]),
            # What was used on a day, or later by a clock that went wrong.
            models.Index(
                name="run_spent", fields=["spent_on"], condition=Q(spent_on__isnull=False)
            ),
            models.Index(name="run_of_issue", fields=["project", "issue_key"]),
            models.Index(name="run_to_close", fields=["host"], condition=TO_TELL),
        ]

    def __str__(self) -> str:
        return f"{self.project_id} #{self.issue_key} ({self.outcome or self.state})"

    @property
    def is_active(self) -> bool:
        return not self.outcome

    @property
    def is_held(self) -> bool:
        """Whether it waits for its agent's account."""
        return not self.outcome and self.state == RunState.HELD

    @property
    def is_checking(self) -> bool:
        """Whether the gates of its project are proving its work."""
        return not self.outcome and self.state == RunState.CHECKING

    @property
    def is_waiting(self) -> bool:
        """Whether it works and waits for a person."""
        return self.state == RunState.WORKING and bool(self.waits)

    def has_changed_since(self, at: datetime | None) -> bool:
        """Whether its screen was seen to change after a moment."""
        return at is not None and self.screen_at is not None and self.screen_at > at

    @property
    def is_resuming(self) -> bool:
        """Whether it is being started again, so that nothing of it may be undone."""
        return self.state == RunState.STARTING and self.did_start

    @property
    def takes_up(self) -> bool:
        """Whether it goes on with earlier work: it was held, asked again or told what failed, or
        continues a run that had ended."""
        is_later = bool(self.resumes) or self.nudged_at is not None or self.was_reentered
        return is_later or self.continues_id is not None

    @property
    def is_gated(self) -> bool:
        """Whether gates prove its end; with a pull request to add to, or adopted, it ends by that."""
        return self.project.has_gates and self.amends is None and not self.is_adopted

    @property
    def was_reentered(self) -> bool:
        """Whether its agent was told in its session what failed at a gate."""
        return self.gate_told_at is not None

    @property
    def is_nudged_only(self) -> bool:
        """Whether it was started again for nothing but the question why it had not delivered."""
        return self.nudged_at is not None and self.nudged_at == self.resumed_at

    @property
    def did_start(self) -> bool:
        """Whether a session was ever seen alive; a failed start is not a failed run."""
        return self.started_at is not None

    @property
    def short_title(self) -> str:
        """The issue's title on one line, cut for a row."""
        return writing.one_line(self.issue_title, 160)

    def marker(self, paths: Paths) -> str:
        """What every process of it carries; unique across state folders, empty of an adopted one."""
        if self.mark or self.is_adopted:
            return self.mark
        return naming.marker(str(paths.state), self.pk)  # started before marks were stored

    def spent(self, now: datetime, budget: timedelta) -> budgets.Spent:
        """Wall time used and allowed; stands still while it is held and once it has ended.

        `budget` is the one in force now; one that has ended shows the one it had.
        """
        had = self.budget_seconds
        return budgets.Spent(self.age(now), budget if had is None else timedelta(seconds=had))

    @property
    def counted_from(self) -> datetime | None:
        """From when a clock counts that leaves out what the budget does not count."""
        if self.started_at is None:
            return None
        return self.started_at + timedelta(seconds=self.rested_seconds)

    @property
    def is_counting(self) -> bool:
        """Whether its budget is used up as time passes."""
        stops = (self.budget_stopped_at, self.checking_at)
        return self.is_active and not self.is_held and not any(stops)

    def waited(self, now: datetime) -> timedelta:
        """The time in which it waited for a person, with the wait that goes on now."""
        over = timedelta(seconds=self.waited_seconds)
        since = self.waits_at if self.waits and self.waits != Wait.QUIET else None
        return over + budgets.age(self.ended_at or now, since)

    def budget(self, settings: Settings) -> timedelta:
        """The wall time that it may take: its own, or that of its project, which is loaded."""
        if self.own_budget_seconds is not None:
            return timedelta(seconds=self.own_budget_seconds)
        return self.project.budget(settings)

    def age(self, now: datetime) -> timedelta:
        """The wall time that counts: not *held*, not *checking*, no waits that stop the budget."""
        until = self.ended_at or now
        for stopped_at in (self.held_at, self.budget_stopped_at, self.checking_at):
            until = until if stopped_at is None else min(until, stopped_at)
        rested = timedelta(seconds=self.rested_seconds)
        return max(budgets.ZERO, budgets.age(until, self.started_at) - rested)

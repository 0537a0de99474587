"""Loop runs: how a project wants them, what each loop has counted, its turns, and what people tell it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from runs.agents.models import EFFORT_CHARACTERS, MODEL_CHARACTERS, AgentProfile
from runs.core.paths import Paths
from runs.core.states import AgentMode, LoopState
from runs.lifecycle.models import Run
from runs.loops import rules
from runs.loops.roles import Role
from runs.loops.rules import End
from runs.projects.models import Project

_FROM_ONE = [MinValueValidator(1)]
_ENDS = [(end.value, end.value) for end in End]
# While an agent works or is about to, a loop waits for its runner alone.
_OPEN = Q(end="")


class LoopTerms(models.Model):
    """Whether runs of a project are loops, and how these end; no row: they are not.

    A loop takes its terms when it begins and keeps them.
    """

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="loop_terms")
    is_on = models.BooleanField("work in loops", default=False)
    profile = models.ForeignKey(
        AgentProfile,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        help_text="The one-shot agent of each turn. Empty: the project's own.",
    )
    completion = models.CharField("completion word", max_length=100, default="LOOP_COMPLETE")
    cancellation = models.CharField("word that cancels", max_length=100, blank=True, default="")
    required = models.JSONField(
        "events before completion", default=list, blank=True, help_text="Topics, as a list."
    )
    max_turns = models.PositiveIntegerField(
        "most turns", null=True, blank=True, default=50, validators=_FROM_ONE
    )
    max_seconds = models.PositiveIntegerField(
        "most time in seconds", null=True, blank=True, default=14_400, validators=_FROM_ONE
    )
    max_cost = models.DecimalField(
        "most US dollars", null=True, blank=True, max_digits=12, decimal_places=2
    )
    max_turn_seconds = models.PositiveIntegerField(
        "most time of one turn in seconds", null=True, blank=True, validators=_FROM_ONE
    )
    failures = models.PositiveIntegerField("failed turns in a row", default=3, validators=_FROM_ONE)
    redispatches = models.PositiveIntegerField(
        "tasks begun again after they were given up", default=3, validators=_FROM_ONE
    )
    malformed = models.PositiveIntegerField(
        "unreadable events in a row", default=3, validators=_FROM_ONE
    )
    same_event = models.PositiveIntegerField(
        "same event in a row", default=3, validators=[MinValueValidator(2)]
    )
    recoveries = models.PositiveIntegerField("turns without an event in a row", default=3)
    blocks = models.PositiveIntegerField(
        "times that a task may be blocked", default=3, validators=_FROM_ONE
    )
    cooldown_seconds = models.PositiveIntegerField(
        default=0, validators=[MaxValueValidator(86_400)], help_text="Before each next turn."
    )
    is_persistent = models.BooleanField("one loop stays", default=False)
    is_strict = models.BooleanField(
        "no completion with open tasks", default=False, help_text="Off: it is only told."
    )
    may_idle = models.BooleanField(
        "idle without work", default=True, help_text="Off: each look for work costs a turn."
    )
    idle_seconds = models.PositiveIntegerField(default=300, validators=_FROM_ONE)
    pause_seconds = models.PositiveIntegerField(
        "pause between issues in seconds", default=30, validators=[MaxValueValidator(86_400)]
    )
    has_tasks = models.BooleanField("tasks", default=True)
    has_memories = models.BooleanField("memories", default=True)
    resets_notes = models.BooleanField("empty scratchpad for each issue", default=True)
    cleans_up = models.BooleanField("clean up between issues", default=True)
    check_in_seconds = models.PositiveIntegerField(
        "check-in every … seconds", null=True, blank=True, validators=_FROM_ONE
    )
    answer_seconds = models.PositiveIntegerField(
        "time to answer a question", default=600, validators=_FROM_ONE
    )

    class Meta:
        verbose_name = "loop settings"
        verbose_name_plural = "loop settings"
        constraints = [
            models.CheckConstraint(
                name="loop_terms_limits_from_one",
                condition=Q(failures__gte=1, redispatches__gte=1, malformed__gte=1)
                & Q(same_event__gte=2, blocks__gte=1, idle_seconds__gte=1),
            ),
            models.CheckConstraint(
                name="loop_terms_cost_positive",
                condition=Q(max_cost=None) | Q(max_cost__gt=0),
            ),
        ]

    def __str__(self) -> str:
        return f"loop settings of {self.project_id}"

    def find_turn_agent(self, general: AgentProfile | None) -> AgentProfile | None:
        """The agent of its turns: one that ends by itself, or None. `general` is that of all projects."""
        chosen = self.profile or self.project.agent or general
        return chosen if chosen is not None and chosen.mode == AgentMode.ONE_SHOT else None

    def terms(self, *, has_roles: bool) -> rules.Terms:
        """These terms as the rules read them."""
        limits = rules.Limits(
            turns=self.max_turns,
            runtime=None if self.max_seconds is None else timedelta(seconds=self.max_seconds),
            cost=self.max_cost,
            failures=self.failures,
            redispatches=self.redispatches,
            malformed=self.malformed,
            same_event=self.same_event,
            recoveries=self.recoveries,
            blocks=self.blocks,
        )
        return rules.Terms(
            limits=limits,
            completion=self.completion,
            cancellation=self.cancellation,
            required=tuple(self.required),
            is_persistent=self.is_persistent,
            is_strict=self.is_strict,
            may_idle=self.may_idle,
            has_roles=has_roles,
        )


class LoopRole(models.Model):
    """One role of a project's loops: who takes which events, and what it is told."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="loop_roles")
    position = models.PositiveIntegerField(default=0)
    name = models.CharField(max_length=60)
    instructions = models.TextField(max_length=20_000)
    subscriptions = models.JSONField(default=list, help_text="Topics such as build.done or build.*")
    publishes = models.JSONField(default=list, blank=True, help_text="Topics that it ends with.")
    profile = models.ForeignKey(
        AgentProfile,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        help_text="Empty: the loop's own agent.",
    )
    model = models.CharField(max_length=MODEL_CHARACTERS, blank=True, default="")
    effort = models.CharField(max_length=EFFORT_CHARACTERS, blank=True, default="")

    class Meta:
        ordering = ["project", "position", "id"]
        constraints = [
            models.UniqueConstraint(name="loop_role_name_once", fields=["project", "name"]),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def role(self) -> Role:
        """It as the rules read it; its profile by id."""
        return Role(
            self.name,
            self.instructions,
            tuple(self.subscriptions),
            tuple(self.publishes),
            str(self.profile_id or ""),
            self.model,
            self.effort,
        )


class Loop(models.Model):
    """The loop of one run. `generation` grows with each restart, and turns are counted anew in it.

    `terms` and `roles` are those of its project when it began. `number` is the turn that was ordered
    last, 0 before the first. `pending` are events that no turn was given yet. `notes`: the scratchpad
    of the loop that it goes on with, or what notes begin with after an issue. `version` grows with each change; whoever stores one names the version it read.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="loop")
    terms = models.JSONField(default=dict)
    roles = models.JSONField(default=list)
    objective = models.TextField(blank=True, default="")
    notes = models.TextField(blank=True, default="")
    notes_number = models.PositiveIntegerField(
        default=0, help_text="How often its notes were begun anew between two issues."
    )
    are_notes_new = models.BooleanField(
        default=False, help_text="The next turn begins with new notes."
    )
    state = models.CharField(
        max_length=10,
        choices=[(s.value, s.value) for s in LoopState],
        default=LoopState.BETWEEN,
    )
    generation = models.PositiveIntegerField(default=1, validators=_FROM_ONE)
    number = models.PositiveIntegerField(default=0)
    counters = models.JSONField(default=dict)
    pending = models.JSONField(default=list)
    limits_told = models.JSONField(default=list)
    not_before = models.DateTimeField(
        null=True, blank=True, help_text="The next turn waits until then."
    )
    why = models.CharField(max_length=300, blank=True, default="")
    began_at = models.DateTimeField(null=True, blank=True)
    checked_in_at = models.DateTimeField(null=True, blank=True)
    stop_asked_by = models.CharField(max_length=150, blank=True, default="")
    stop_asked_at = models.DateTimeField(null=True, blank=True)
    restart_asked_by = models.CharField(max_length=150, blank=True, default="")
    restart_asked_at = models.DateTimeField(null=True, blank=True)
    end = models.CharField(max_length=16, blank=True, default="", choices=_ENDS)
    exit_code = models.PositiveIntegerField(
        null=True, blank=True, help_text="Of the loop; none where nobody told."
    )
    ended_at = models.DateTimeField(null=True, blank=True)
    version = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="loop_ended_iff_reason",
                condition=(
                    Q(_OPEN, ended_at=None, exit_code=None) & ~Q(state=LoopState.ENDED)
                    | ~_OPEN & Q(ended_at__isnull=False, state=LoopState.ENDED)
                ),
            ),
            models.CheckConstraint(
                name="loop_state_known", condition=Q(state__in=[s.value for s in LoopState])
            ),
            models.CheckConstraint(
                name="loop_end_known", condition=Q(end__in=["", *(e.value for e in End)])
            ),
        ]
        indexes = [models.Index(name="loop_open", fields=["run"], condition=_OPEN)]

    def __str__(self) -> str:
        return f"loop of run {self.run_id} ({self.end or self.state})"

    def folder(self, paths: Paths) -> Path:
        """Where its runner keeps notes, events and what each turn printed."""
        return paths.run_folder(self.run_id) / "loop"


class LoopIssue(models.Model):
    """One issue that a loop that stays works on, from its claim to the completion word.

    Open while `ended_at` is empty, one at a time. Its branch is there, and the worktree on it, from
    `moved_at` on. What it took is summed up when it ends; None: a turn did not tell it.
    """

    class End(models.TextChoices):
        COMPLETED = "completed", "completed"
        GIVEN_BACK = "given_back", "given back"
        WITH_LOOP = "with_loop", "ended with its loop"

    loop = models.ForeignKey(Loop, on_delete=models.CASCADE, related_name="issues")
    position = models.PositiveIntegerField(validators=_FROM_ONE)
    issue_key = models.CharField(max_length=60)
    title = models.TextField(blank=True, default="")
    branch = models.CharField(max_length=80)
    fork_point = models.CharField(max_length=64, blank=True, default="")
    objective = models.TextField(blank=True, default="", help_text="The issue, as it was read.")
    taken_at = models.DateTimeField()
    moved_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    end = models.CharField(max_length=12, blank=True, default="", choices=End)
    note = models.CharField(max_length=300, blank=True, default="", help_text="Why it was left.")
    turns = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(null=True, blank=True)
    tokens_in = models.BigIntegerField(null=True, blank=True)
    tokens_out = models.BigIntegerField(null=True, blank=True)
    cost = models.DecimalField(null=True, blank=True, max_digits=16, decimal_places=6)
    pull_number = models.PositiveIntegerField(null=True, blank=True)
    pull_url = models.CharField(max_length=500, blank=True, default="")
    mirrored = models.CharField(
        max_length=10, blank=True, default="", help_text="What was last written on the tracker."
    )

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(name="loop_issue_position_once", fields=["loop", "position"]),
            models.UniqueConstraint(
                name="loop_issue_one_open", fields=["loop"], condition=Q(ended_at=None)
            ),
            models.CheckConstraint(
                name="loop_issue_ended_iff_end",
                condition=Q(end="", ended_at=None) | ~Q(end="") & Q(ended_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.issue_key} of loop {self.loop_id} ({self.end or 'open'})"

    @property
    def is_open(self) -> bool:
        return self.ended_at is None


class LoopTurn(models.Model):
    """One call of an agent, and what it left. `facts` are all that its prompt was composed of.

    It runs while `ended_at` is empty. `was_refused`: its agent's account was turned away, so that it
    counts as no turn. `used_…` are what was used of the limits when it had ended; None where nobody
    counted it, as of a turn that was not run.
    """

    loop = models.ForeignKey(Loop, on_delete=models.CASCADE, related_name="turns")
    generation = models.PositiveIntegerField(validators=_FROM_ONE)
    number = models.PositiveIntegerField(validators=_FROM_ONE)
    role = models.CharField(max_length=60)
    profile = models.ForeignKey(AgentProfile, null=True, blank=True, on_delete=models.SET_NULL)
    agent = models.CharField(max_length=60, blank=True, default="")
    model = models.CharField(max_length=MODEL_CHARACTERS, blank=True, default="")
    output = models.CharField(max_length=20, blank=True, default="")
    issue_key = models.CharField(max_length=60, blank=True, default="")
    issue = models.ForeignKey(
        LoopIssue, null=True, blank=True, on_delete=models.SET_NULL, related_name="worked"
    )
    facts = models.JSONField(default=dict)
    ordered_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    exit_signal = models.IntegerField(null=True, blank=True)
    trouble = models.TextField(blank=True, default="")
    was_refused = models.BooleanField(default=False)
    events = models.JSONField(default=list)
    malformed = models.PositiveIntegerField(default=0)
    dropped = models.PositiveIntegerField(default=0)
    answer = models.TextField(blank=True, default="", help_text="The end of what it printed.")
    tokens_in = models.BigIntegerField(null=True, blank=True)
    tokens_out = models.BigIntegerField(null=True, blank=True)
    cost = models.DecimalField(null=True, blank=True, max_digits=16, decimal_places=6)
    head_before = models.CharField(max_length=64, blank=True, default="")
    head = models.CharField(max_length=64, blank=True, default="")
    commits = models.PositiveIntegerField(default=0)
    told = models.JSONField(default=list, help_text="What the rules said after it, in sentences.")
    used_turns = models.PositiveIntegerField(null=True, blank=True)
    used_seconds = models.FloatField(null=True, blank=True)
    used_cost = models.DecimalField(null=True, blank=True, max_digits=16, decimal_places=6)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(name="loop_turn_once", fields=["loop", "generation", "number"]),
            models.UniqueConstraint(
                name="loop_turn_one_running", fields=["loop"], condition=Q(ended_at=None)
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.number} of loop {self.loop_id}"

    @property
    def name(self) -> str:
        """The folder of its files."""
        return f"{self.generation}-{self.number}"

    def folder(self, paths: Paths) -> Path:
        """Where its prompt, its output and its events lie."""
        return self.loop.folder(paths) / self.name


class LoopMemory(models.Model):
    """What agents of a project's loops keep for all later runs."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="loop_memories")
    run = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="loop_memories"
    )
    text = models.TextField(max_length=4000)
    by = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "loop memories"
        indexes = [models.Index(name="loop_memory_newest", fields=["project", "-id"])]

    def __str__(self) -> str:
        return self.text[:60]


class LoopTask(models.Model):
    """A task that an agent keeps for the turns of one loop."""

    class State(models.TextChoices):
        READY = "ready", "ready"
        OPEN = "open", "blocked"
        CLOSED = "closed", "closed"

    loop = models.ForeignKey(Loop, on_delete=models.CASCADE, related_name="tasks")
    number = models.PositiveIntegerField(validators=_FROM_ONE)
    text = models.TextField(max_length=2000)
    state = models.CharField(max_length=10, choices=State, default=State.READY)
    note = models.CharField(max_length=300, blank=True, default="")
    at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(name="loop_task_number_once", fields=["loop", "number"]),
        ]

    def __str__(self) -> str:
        return f"{self.number} ({self.state})"


class LoopGuidance(models.Model):
    """What a person told a loop; it stands in each prompt until an agent has acknowledged it."""

    loop = models.ForeignKey(Loop, on_delete=models.CASCADE, related_name="guidance")
    text = models.TextField(max_length=4000)
    by = models.CharField(max_length=150)
    at = models.DateTimeField()
    given_in = models.ForeignKey(LoopTurn, null=True, blank=True, on_delete=models.SET_NULL)
    acknowledged_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "loop guidance"
        indexes = [
            models.Index(
                name="loop_guidance_open", fields=["loop"], condition=Q(acknowledged_at=None)
            )
        ]

    def __str__(self) -> str:
        return self.text[:60]

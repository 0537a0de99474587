"""Projects: a git repository with its tracker, its settings and its runs."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F

from runs.agents.models import AgentProfile
from runs.core import naming
from runs.core.database import QuickRows
from runs.core.encrypted import SecretField
from runs.core.paths import Paths
from runs.core.states import ClosedIssue, CompletionPolicy, Mirror, ProjectState
from runs.dispatch import streak
from runs.forges.models import Forge, Seen
from runs.hosts import rules as host_rules
from runs.projects.checkout_fields import SUBMODULES, CheckoutFields
from runs.projects.claim_names import ClaimNames
from runs.projects.comment_rules import Readers
from runs.settings import committers
from runs.spending import limit_fields
from runs.validation.command_rules import UnfitCommands, read_commands
from trackers.keys import KeyRule, rule_of

if TYPE_CHECKING:
    from runs.settings.models import Settings


def fit_commands(text: str) -> None:
    """Refuse a list of commands that could not be run as it is written."""
    try:
        read_commands(text)
    except UnfitCommands as error:
        raise ValidationError(str(error)) from error


def fit_label(text: str) -> None:
    """Refuse what no host can have as a label."""
    try:
        found = host_rules.read_labels([text])
    except ValueError as error:
        raise ValidationError(str(error)) from error
    if found != (text,):
        raise ValidationError("Use small letters.")


class ProjectQuerySet(models.QuerySet["Project"]):
    def usable(self) -> ProjectQuerySet:
        """Projects whose reference repository is complete."""
        return self.filter(state=ProjectState.READY)

    def hold(self, pk: int) -> None:
        """Let nobody else hold this project until the transaction ends.

        For a look and a write that belong together; on SQLite nobody else writes anyway.
        """
        list(self.select_for_update(no_key=True).filter(pk=pk).values_list("pk"))

    def recent_first(self) -> ProjectQuerySet:
        """Last opened on top, never-opened ones alphabetical below."""
        return self.order_by(F("last_opened_at").desc(nulls_last=True), "name")


class Project(CheckoutFields, ClaimNames, Seen, QuickRows):
    """A repository that runs are started for. `slug` is its part of session and folder names."""

    name = models.CharField(max_length=60, unique=True)
    slug = models.CharField(max_length=60, unique=True, editable=False)
    state = models.CharField(
        max_length=12,
        choices=[(s.value, s.value) for s in ProjectState],
        default=ProjectState.CLONING,
    )
    source = models.CharField(
        max_length=500, help_text="What the operator typed: a path or a clone URL."
    )
    url = models.CharField(max_length=500, blank=True, help_text="The URL that is origin.")
    is_hosted = models.BooleanField(
        default=False,
        help_text="The source has no origin; labsite keeps a bare repository as its origin.",
    )
    home = models.CharField(
        max_length=100,
        blank=True,
        default="",
        editable=False,
        help_text="The host that clones it first, and keeps its origin where labsite does.",
    )
    token = SecretField(blank=True, default="", editable=False)
    default_branch = models.CharField(max_length=200, blank=True)
    clone_progress = models.CharField(max_length=200, blank=True)
    clone_deadline = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    warning = models.TextField(blank=True, help_text="What could not be read at the last look.")
    origin_warning = models.TextField(
        blank=True, default="", editable=False, help_text="Why git could not read origin last."
    )
    silent_since = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="Since when its tracker gives no answer, where that passes by itself.",
    )
    tracker = models.CharField(max_length=20, blank=True, default="builtin")
    tracker_root = models.CharField(max_length=500, blank=True)
    builtin_root = models.CharField(
        max_length=20,
        blank=True,
        default="",
        editable=False,
        help_text="What labsite kept itself, while the project's issues are elsewhere.",
    )
    forge = models.ForeignKey(Forge, null=True, blank=True, on_delete=models.PROTECT)
    ready_label = models.CharField(
        max_length=60,
        blank=True,
        default="ready-for-agent",
        help_text="Issues with this label may be started. Empty, on beads: whatever bd calls ready.",
    )
    working_label = models.CharField(
        max_length=60, blank=True, default="", help_text="Set while a run works. Empty: none."
    )
    mirror = models.CharField(
        max_length=10,
        choices=[(m.value, m.label) for m in Mirror],
        default=Mirror.OFF,
        help_text="What labsite writes on the tracker by itself. Nothing depends on it.",
    )
    policy = models.CharField(
        "completion policy",
        max_length=14,
        choices=[(p.value, p.label) for p in CompletionPolicy],
        default=CompletionPolicy.PULL_REQUEST,
        help_text="What proves that a run is done. Gates: evidence, clean room, review, run level.",
    )
    hook_secret = SecretField(blank=True, default="", editable=False)
    agent = models.ForeignKey(AgentProfile, null=True, blank=True, on_delete=models.SET_NULL)
    waits_stop_budget = models.BooleanField(
        "waits stop the budget",
        default=False,
        help_text="The budget of a run does not count the time in which its agent says that it waits for you.",
    )
    run_budget_minutes = models.PositiveIntegerField(
        "run budget (minutes)",
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(10080)],
        help_text="Empty: the general run budget.",
    )
    disk_quota_mb = models.PositiveIntegerField(
        "disk quota (MB)",
        null=True,
        blank=True,
        help_text="Worktrees and repository together; warns at 80 %, removes nothing. "
        "Empty: the general quota; 0: none.",
    )
    run_tokens_limit = limit_fields.tokens(
        "tokens of a run", "Empty: the general limit; 0: none.", may_be_empty=True
    )
    run_cost_limit = limit_fields.money(
        "money of a run", "Empty: the general limit; 0: none.", may_be_empty=True
    )
    day_tokens_limit = limit_fields.tokens(
        "tokens of a day", "Of all runs of this project on one day of UTC. 0: no limit."
    )
    day_cost_limit = limit_fields.money(
        "money of a day", "Of all runs of this project on one day of UTC. 0: no limit."
    )
    parked = models.PositiveIntegerField(
        null=True, blank=True, editable=False, help_text="Parked branches as last counted."
    )
    disk_bytes = models.BigIntegerField(null=True, blank=True, editable=False)
    disk_warned = models.BooleanField(default=False, editable=False)
    swept_at = models.DateTimeField(null=True, blank=True, editable=False)
    on_closed_issue = models.CharField(
        "when somebody closes its issue",
        max_length=10,
        choices=[(one.value, one.label) for one in ClosedIssue],
        default=ClosedIssue.GO_ON,
        db_default=ClosedIssue.GO_ON.value,
        help_text="While an agent works on an issue that is closed elsewhere. You are told in each "
        "case. Asked means under Needs you, until you answer. A run that is stopped keeps worktree "
        "and branch.",
    )
    issues_of_runs_asked_at = models.DateTimeField(null=True, blank=True, editable=False)
    sends_back_red_checks = models.BooleanField(
        "red checks go back to the agent",
        default=False,
        db_default=False,
        help_text=(
            "When checks of the forge fail on a delivered pull request, its agent is told and mends "
            "it on the same branch, at most three times."
        ),
    )
    no_checks_minutes = models.PositiveIntegerField(
        "no checks after (minutes)",
        default=30,
        db_default=30,
        validators=[MinValueValidator(1), MaxValueValidator(1440)],
        help_text="A pull request on which nothing has run for so long is said to have no checks.",
    )
    merges_only_passed = models.BooleanField(
        "merge only what passed",
        default=False,
        db_default=False,
        help_text=(
            "A pull request of the built-in tracker is merged only when the project's checks have "
            "passed on its newest commit. Off: whoever merges is told and asked."
        ),
    )
    is_badge_public = models.BooleanField(
        "public badge",
        default=False,
        help_text="Everybody who has its address sees the badge, without logging in.",
    )
    last_opened_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    is_auto = models.BooleanField(
        "works by itself", default=False, help_text="Ready issues are started without a click."
    )
    committer = committers.committer_field(
        "Author and committer of what the agents of this project commit, such as Anna Berg "
        "<anna@example.org>."
    )
    parallel_runs = models.PositiveIntegerField(
        "parallel automatic runs",
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text="Most automatic runs of this project at a time. From 1 to 100.",
    )
    checks = models.TextField(
        "validation commands",
        blank=True,
        default="",
        max_length=20_000,
        validators=[fit_commands],
        help_text="One a line, in this order, each run without a shell in a clean worktree. The "
        "first that fails ends the validation. Empty: nothing is checked.",
    )
    check_minutes = models.PositiveIntegerField(
        "time limit of a command (minutes)",
        default=30,
        validators=[MinValueValidator(1), MaxValueValidator(1440)],
        help_text="A validation command that takes longer is ended and has failed. From 1 to 1440.",
    )
    setup = models.TextField(
        "set-up commands",
        blank=True,
        default="",
        db_default="",
        max_length=20_000,
        validators=[fit_commands],
        help_text="One a line, in this order, each run without a shell in every new worktree before "
        "its agent starts, and in every worktree in which work is checked. When one fails, the "
        "agent is not started. Example: npm ci",
    )
    setup_again = models.TextField(
        "commands before each further run",
        blank=True,
        default="",
        db_default="",
        max_length=20_000,
        validators=[fit_commands],
        help_text="One a line, run in a worktree that is there already each time an agent starts in "
        "it again: resumed, followed up, or after a pause. When one fails, the agent is not started "
        "and the worktree stays as it is. Example: docker compose up -d",
    )
    setup_after = models.TextField(
        "commands after a run",
        blank=True,
        default="",
        db_default="",
        max_length=20_000,
        validators=[fit_commands],
        help_text="One a line, run in its worktree once a run has ended and its agent is gone. All "
        "are run; one that fails is told on the run and changes nothing. They know how it ended "
        "(LAB_OUTCOME). Example: docker compose stop",
    )
    setup_removal = models.TextField(
        "commands before a worktree is removed",
        blank=True,
        default="",
        db_default="",
        max_length=20_000,
        validators=[fit_commands],
        help_text="One a line, run once in the worktree of a run before it is removed. One that "
        "fails is told, and the worktree is removed all the same, unless they left work in it. "
        "Example: docker compose down --volumes",
    )
    setup_minutes = models.PositiveIntegerField(
        "time limit of a set-up command (minutes)",
        default=10,
        db_default=10,
        validators=[MinValueValidator(1), MaxValueValidator(1440)],
        help_text="A command of this page that takes longer is ended and has failed. From 1 to 1440.",
    )
    fix_attempts = models.PositiveIntegerField(
        "fixer attempts",
        default=2,
        validators=[MaxValueValidator(10)],
        help_text="How often an agent may try to mend a failed validation. From 0 to 10.",
    )
    signals = models.BooleanField(
        "completion by signal files",
        default=True,
        help_text=(
            "Monitors of task groups notice the end within seconds by files that workers leave. "
            "Off: they list the tasks, which takes up to half a minute longer."
        ),
    )
    host_label = models.CharField(
        "host label",
        max_length=40,
        blank=True,
        default="",
        validators=[fit_label],
        help_text="Its runs go to hosts with this label alone, such as gpu. Empty: to any host.",
    )
    weight = models.PositiveIntegerField(
        "weight",
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text="Its share of free slots beside other projects' automatic work. From 1 to 100.",
    )
    priority_labels = models.TextField(
        "priority labels",
        blank=True,
        default="",
        max_length=1000,
        help_text="Labels of issues separated by commas, the most urgent first. Empty: priority:high "
        "goes first and priority:low last.",
    )
    trusted = models.TextField(
        "trusted authors",
        blank=True,
        default="",
        help_text=(
            "Names, separated by commas or spaces. Only issues that one of them wrote or marked as "
            "ready are started without a click. Empty: anyone's."
        ),
    )
    reads_outsiders = models.BooleanField(
        "comments of everybody",
        default=False,
        db_default=False,
        help_text="Agents and reviewers are given everybody's comments on issues and pull requests. "
        "Off: only those of trusted authors and of people who belong to the repository: on GitHub "
        "its owners, collaborators and members of its organisation, on Gitea and Forgejo those who "
        "may write.",
    )
    streak = models.PositiveIntegerField(
        default=0, help_text="Failed runs in a row; written by outcomes.record and by Reset alone."
    )
    last_failure = models.ForeignKey(
        "runs.Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    retry_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="No automatic start before: starts of several issues failed, git hung, or a loop "
        "has just ended.",
    )
    poll_seconds = models.PositiveIntegerField(
        "seconds between looks for ready issues",
        null=True,
        blank=True,
        validators=[MinValueValidator(5), MaxValueValidator(86_400)],
        help_text="Empty: the general setting.",
    )
    kicked_at = models.DateTimeField(
        null=True, blank=True, help_text="Somebody wants the next launch pass to come now."
    )
    claimable = models.PositiveIntegerField(
        null=True, blank=True, help_text="Startable issues at the last sweep; a hint, no truth."
    )
    blocked = models.PositiveIntegerField(
        null=True, blank=True, help_text="Ready issues that waited for others at the last sweep."
    )
    counted_by = models.CharField(
        max_length=200, blank=True, default="", help_text="The process that counted them."
    )

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="project_runs_at_least_one", condition=models.Q(parallel_runs__gte=1)
            ),
            models.CheckConstraint(
                name="project_streak_not_negative",
                condition=models.Q(streak__gte=0),
            ),
            # Elsewhere no label would mean every open issue.
            models.CheckConstraint(
                name="project_needs_ready_label",
                condition=~models.Q(ready_label="") | models.Q(tracker="beads"),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def budget(self, settings: Settings) -> timedelta:
        """The wall time that a run of this project may take."""
        if self.run_budget_minutes:
            return timedelta(minutes=self.run_budget_minutes)
        return settings.run_budget

    @property
    def no_checks_after(self) -> timedelta:
        """For how long a pull request without checks may have some that are yet to begin."""
        return timedelta(minutes=self.no_checks_minutes)

    @property
    def poll_interval(self) -> timedelta | None:
        """How long apart its ready issues are asked for; None: as the settings say."""
        return timedelta(seconds=self.poll_seconds) if self.poll_seconds else None

    @property
    def commands(self) -> list[list[str]]:
        """The validation commands as argument lists."""
        return read_commands(self.checks)

    @property
    def setup_commands(self) -> list[list[str]]:
        """Return the commands that prepare a worktree, as argument lists; submodules come first."""
        first = [list(SUBMODULES)] if self.has_submodules else []
        return [*first, *read_commands(self.setup)]

    @property
    def git_token(self) -> str:
        """The credential of git over https: its own, or that of its forge."""
        if self.token or self.forge_id is None or self.forge is None:
            return cast("str", self.token)
        return self.forge.git_token(self.url)

    @property
    def is_paused(self) -> bool:
        """Whether too many runs failed in a row for anything to start by itself."""
        return streak.is_paused(self.streak)

    @property
    def warnings(self) -> list[str]:
        """What is the matter with its tracker and its repository, in sentences."""
        return [text for text in (self.warning, self.origin_warning) if text]

    @property
    def trusted_names(self) -> Collection[str]:
        """Whose issues may start by themselves; empty when anyone's may."""
        return frozenset(name.casefold() for name in re.split(r"[\s,;]+", self.trusted) if name)

    @property
    def readers(self) -> Readers:
        """Whose comments its agents and reviewers are given."""
        return Readers(self.trusted_names, self.reads_outsiders)

    @property
    def priorities(self) -> tuple[str, ...]:
        """The labels of its urgent issues, in order."""
        names = (name.strip().casefold() for name in self.priority_labels.split(","))
        return tuple(name for name in names if name)

    @property
    def job(self) -> host_rules.Job:
        """What it asks of the host of a run."""
        return host_rules.Job(self.slug, self.host_label, self.is_hosted)

    @property
    def keys(self) -> KeyRule:
        """What the keys of its tracker look like."""
        return rule_of(self.tracker)

    def claimed_key(self, branch: str) -> str | None:
        """The issue that a branch claims; None for any other branch."""
        return naming.claimed_key(branch, self.keys, self.claim_prefixes)

    @property
    def has_gates(self) -> bool:
        """Whether gates prove what its runs deliver."""
        return self.policy == CompletionPolicy.GATES

    def repo(self, paths: Paths) -> Path:
        """The bare reference repository; its heads are the claims."""
        return paths.repos / f"{self.slug}.git"

    def origin(self, paths: Paths) -> Path:
        """The product's own origin for a project whose path has none."""
        return paths.origins / f"{self.slug}.git"

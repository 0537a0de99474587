"""The one row of tunable numbers: budgets, intervals, caps. Read anew at every tick."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from runs.agents.models import AgentProfile
from runs.core.database import prepared
from runs.core.encrypted import SecretField
from runs.settings import committers
from runs.spending import limit_fields


def _number(
    default: int, low: int, high: int, label: str, help_text: str
) -> models.PositiveIntegerField[int, int]:
    return models.PositiveIntegerField(
        label,
        default=default,
        validators=[MinValueValidator(low), MaxValueValidator(high)],
        help_text=f"{help_text} From {low} to {high}.",
    )


class Settings(models.Model):
    """Everything that an admin may tune. There is exactly one row, with primary key 1."""

    tick_seconds = _number(
        30, 5, 600, "reaper interval (seconds)", "How often every run is looked at."
    )
    launch_seconds = _number(
        45, 5, 3600, "launch interval (seconds)", "How often automatic work is started."
    )
    watch_seconds = _number(
        60, 5, 3600, "watch interval (seconds)", "How often a watch session asks for ready issues."
    )
    run_budget_minutes = _number(
        45,
        1,
        10080,
        "run budget (minutes)",
        "Wall time after which a run without a pull request times out.",
    )
    session_cap = _number(6, 1, 500, "session cap", "Most live sessions at once.")
    git_timeout_seconds = _number(60, 1, 3600, "git timeout (seconds)", "Limit of one git command.")
    nofile_limit = _number(
        16384,
        0,
        1048576,
        "open files per session",
        "File-descriptor limit of an agent; 0 leaves it alone.",
    )
    refresh_seconds = _number(
        4, 1, 60, "page refresh (seconds)", "How often an open page asks for news."
    )
    sweep_minutes = _number(
        10, 1, 1440, "sweep interval (minutes)", "How often merged work is collected."
    )
    quiet_minutes = _number(
        15,
        0,
        10080,
        "quiet screen (minutes)",
        "After how long without a change of its screen an agent counts as waiting for you; 0: never.",
    )
    rescue_days = _number(
        14, 1, 365, "rescues kept (days)", "How long what was rescued can be restored."
    )
    output_days = _number(
        30, 1, 3650, "output kept (days)", "How long the folder of an ended run is kept."
    )
    recording_mb = _number(
        20,
        0,
        1000,
        "recording of a run (MB)",
        "How much of its screen is kept; of more the middle is cut. 0: none is recorded.",
    )
    fold_days = _number(
        7,
        1,
        3650,
        "monitor passes one by one (days)",
        "After so long equal passes of a task group's monitor become one entry of the timeline that "
        "says how often. Nothing else of the timeline is ever folded or removed.",
    )
    delivery_days = _number(
        90,
        1,
        3650,
        "sent notices kept (days)",
        "How long is kept what was sent to notification channels, and what became of it. The "
        "timeline keeps what it told of.",
    )
    people_percent = _number(
        40,
        0,
        95,
        "share of the quota for people (percent)",
        "Of what a forge allows in an hour, so much is left alone by questions that nobody waits for.",
    )
    disk_quota_mb = models.PositiveIntegerField(
        "disk quota (MB)",
        default=20480,
        help_text="Of each project, its worktrees and repository together. Warns at 80 %, "
        "removes nothing. 0: none.",
    )
    run_tokens_limit = limit_fields.tokens("tokens of a run", "Of each run. 0: no limit.")
    run_cost_limit = limit_fields.money("money of a run", "Of each run. 0: no limit.")
    day_tokens_limit = limit_fields.tokens(
        "tokens of a day", "Of all runs together on one day of UTC. 0: no limit."
    )
    day_cost_limit = limit_fields.money(
        "money of a day", "Of all runs together on one day of UTC. 0: no limit."
    )
    agent = models.ForeignKey(
        AgentProfile,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        help_text="The agent for new sessions, unless a project names its own.",
    )
    model = models.CharField(
        max_length=100, blank=True, help_text="Empty: the agent's own default."
    )
    effort = models.CharField(
        max_length=40, blank=True, help_text="Empty: the agent's own default."
    )
    public_address = models.URLField(
        max_length=200,
        blank=True,
        help_text=(
            "Where people reach labsite, such as https://lab.example.org. Notices to the outside "
            "link to it; empty: they carry no link."
        ),
    )
    ping_url = SecretField(
        "ping address",
        blank=True,
        default="",
        help_text=(
            "Asked for after each healthy tick, at most once a minute, so that a watcher outside "
            "notices when labsite is dead. Stored encrypted."
        ),
    )
    committer = committers.committer_field(
        "Author and committer of what agents commit, such as Anna Berg <anna@example.org>. Empty: "
        "as git is set up for the user that runs labsite, and labsite where it knows nobody."
    )
    nudges = models.BooleanField(
        "ask agents that stop",
        default=True,
        help_text=(
            "An agent that stops without a pull request is asked once, in its own session, to open it "
            "or to say why not, before it counts as dead or waits for you."
        ),
    )
    ping_failures = models.BooleanField(
        "ping failures too",
        default=False,
        help_text="After a tick with errors ask for the same address with /fail after it.",
    )

    class Meta:
        verbose_name = "settings"
        verbose_name_plural = "settings"
        constraints = [
            models.CheckConstraint(condition=models.Q(pk=1), name="settings_is_one_row"),
            models.CheckConstraint(
                condition=models.Q(
                    run_budget_minutes__gte=1, tick_seconds__gte=1, session_cap__gte=1
                ),
                name="settings_numbers_are_positive",
            ),
        ]

    def __str__(self) -> str:
        return "Settings"

    @property
    def run_budget(self) -> timedelta:
        return timedelta(minutes=self.run_budget_minutes)

    @property
    def tick_interval(self) -> timedelta:
        return timedelta(seconds=self.tick_seconds)

    @property
    def launch_interval(self) -> timedelta:
        return timedelta(seconds=self.launch_seconds)

    @property
    def watch_interval(self) -> timedelta:
        return timedelta(seconds=self.watch_seconds)

    @classmethod
    def current(cls) -> Settings:
        """The settings in force; made with their defaults when missing."""
        rows: list[Settings] = _current().rows()
        return rows[0] if rows else cls.objects.get_or_create(pk=1)[0]


@prepared
def _current(_now: datetime) -> models.QuerySet[Settings]:
    return Settings.objects.select_related("agent").filter(pk=1)

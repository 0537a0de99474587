"""What a run's agent said of itself, as columns of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from decimal import Decimal
from typing import Any, cast

from django.db import connection, models

from runs.core.states import AgentMode, AgentState, OutputKind, Trouble, Wait
from runs.spending import day_rules
from runs.spending.day_rules import Used
from runs.transcript import token_usage
from runs.transcript.record import Reading
from runs.transcript.reports import Report

TOLD = tuple(field.name for field in fields(Report))


class AgentTold(models.Model):
    """How the agent's program is read, and what its lines told so far. None and empty: not told.

    `output_read` and `output_skips` say how far into its record that reaches, so that a worker
    that was restarted goes on where the last one ended.
    """

    mode = models.CharField(
        max_length=20,
        choices=[(m.value, m.value) for m in AgentMode],
        default=AgentMode.INTERACTIVE,
    )
    output = models.CharField(
        max_length=20,
        blank=True,
        default="",
        choices=[(k.value, k.value or "plain") for k in OutputKind],
    )
    resume_argv = models.JSONField(default=list, blank=True)
    agent_session = models.CharField(max_length=100, blank=True, default="")
    agent_model = models.CharField(max_length=100, blank=True, default="")
    agent_state = models.CharField(
        max_length=20,
        blank=True,
        default="",
        choices=[(s.value, s.words or "unknown") for s in AgentState],
    )
    agent_note = models.CharField(max_length=300, blank=True, default="")
    agent_until = models.DateTimeField(null=True, blank=True)
    turns = models.BigIntegerField(null=True, blank=True)
    tokens_in = models.BigIntegerField(null=True, blank=True)
    tokens_cached = models.BigIntegerField(null=True, blank=True)
    tokens_out = models.BigIntegerField(null=True, blank=True)
    cost_usd = models.DecimalField(null=True, blank=True, max_digits=16, decimal_places=6)
    result_subtype = models.CharField(max_length=100, blank=True, default="")
    is_error = models.BooleanField(default=False)
    api_status = models.BigIntegerField(null=True, blank=True)
    began_at = models.DateTimeField(
        null=True, blank=True, help_text="When its program was first heard of at its task."
    )
    turn_ended_at = models.DateTimeField(
        null=True, blank=True, help_text="When it last waited for a next word; none while it works."
    )
    trouble = models.CharField(
        max_length=12,
        blank=True,
        default="",
        choices=[(t.value, t.value or "none") for t in Trouble],
        help_text="The trouble of its account that ended its last turn.",
    )
    asks = models.CharField(
        max_length=12,
        blank=True,
        default="",
        choices=[(w.value, w.value or "nothing") for w in Wait],
        help_text="What its hooks said that it asks a person.",
    )
    asked_at = models.DateTimeField(null=True, blank=True)
    question = models.CharField(max_length=300, blank=True, default="")
    link_waits = models.BooleanField(
        default=False, help_text="The link into the agent's own page is still being looked for."
    )
    deep_link = models.CharField(max_length=700, blank=True, default="")
    message_id = models.CharField(max_length=100, blank=True, default="")
    used_tokens = models.JSONField(default=list, blank=True, editable=False)
    context_tokens = models.BigIntegerField(
        null=True, blank=True, help_text="What its last message was given."
    )
    context_window = models.BigIntegerField(
        null=True, blank=True, help_text="What its model takes at most."
    )
    background_agents = models.PositiveIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="How many agents it says are at work in the background.",
    )
    own_usage = models.JSONField(
        default=dict, blank=True, editable=False, help_text="What was read of its own records."
    )
    spent_days = models.JSONField(
        default=list, blank=True, editable=False, help_text="What it used on which day."
    )
    spent_on = models.DateField(
        null=True, blank=True, editable=False, help_text="The last of these days."
    )
    output_read = models.BigIntegerField(default=0)
    output_skips = models.BooleanField(default=False)

    class Meta:
        abstract = True

    @property
    def reading(self) -> Reading:
        """What was read so far, to go on from there."""
        words = ("agent_state", "trouble", "used_tokens")
        told = {name: getattr(self, name) for name in TOLD if name not in words}
        state, trouble = AgentState(self.agent_state), Trouble(self.trouble)
        spent = token_usage.from_json(self.used_tokens)
        report = Report(agent_state=state, trouble=trouble, used_tokens=spent, **told)
        return Reading(report, self.output_read, self.output_skips)

    @property
    def used(self) -> Used:
        """What it used so far, as far as it was told."""
        return Used(day_rules.tokens(self.tokens_in, self.tokens_out), self.cost_usd)

    @property
    def is_one_shot(self) -> bool:
        return self.mode == AgentMode.ONE_SHOT

    @property
    def state_of_agent(self) -> AgentState:
        return AgentState(self.agent_state)


def columns(reading: Reading, run: AgentTold, at: datetime) -> dict[str, object]:
    """The columns that keep a reading of a run; what is new in it counts for the day of `at`."""
    told: dict[str, object] = {name: getattr(reading.report, name) for name in TOLD}
    told["used_tokens"] = token_usage.to_json(reading.report.used_tokens)
    told |= {"output_read": reading.output_read, "output_skips": reading.output_skips}
    return told | days(told, run, at)


def days(told: Mapping[str, Any], run: AgentTold, at: datetime) -> dict[str, object]:
    """On which day counts what these columns tell beyond what the run's row does."""
    number = day_rules.tokens(told["tokens_in"], told["tokens_out"])
    after = Used(number, cast("Decimal | None", told["cost_usd"]))
    found = day_rules.noted(run.spent_days, run.used, after, day_rules.day_of(at))
    return {"spent_days": found, "spent_on": day_rules.newest(found)}


def statement(model: type[models.Model], names: Sequence[str]) -> str:
    """For a crowd of working runs; values come as parameters, and last the run's id."""
    columns = ", ".join(f"{name} = %s" for name in names)
    return (
        f"UPDATE {model._meta.db_table} SET {columns} "  # noqa: S608  (names of our own columns)
        "WHERE id = %s AND outcome = '' AND state = 'working'"
    )


def keep(model: type[models.Model], rows: Mapping[int, Mapping[str, object]]) -> int:
    """Keep the same columns of many working runs, by their ids; how many rows that were.

    One prepared statement for a crowd, as for the lines of screens.
    """
    if not rows:
        return 0
    names = list(next(iter(rows.values())))
    fields = [model._meta.get_field(name) for name in names]
    values = [
        [*(field.get_db_prep_save(told[field.name], connection) for field in fields), ident]  # type: ignore[union-attr]
        for ident, told in rows.items()
    ]
    with connection.cursor() as cursor:
        cursor.executemany(statement(model, names), values)
        return max(0, int(cursor.rowcount))

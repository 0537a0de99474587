"""What a run's agent said of itself, as columns of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from django.db import models

from runs.core.states import AgentMode, AgentState, OutputKind, Trouble, Wait
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
    def is_one_shot(self) -> bool:
        return self.mode == AgentMode.ONE_SHOT

    @property
    def state_of_agent(self) -> AgentState:
        return AgentState(self.agent_state)


def columns(reading: Reading) -> Mapping[str, object]:
    """The columns that keep a reading."""
    told = {name: getattr(reading.report, name) for name in TOLD}
    told["used_tokens"] = token_usage.to_json(reading.report.used_tokens)
    return {**told, "output_read": reading.output_read, "output_skips": reading.output_skips}

"""Reads on in what agents write of themselves, for turns, tokens and context of those that print none.

Interactive Claude Code and Codex, and Codex in one shot, which prints its tokens only at its end.
Where they stand is kept on the run; nothing is remembered in a process.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

from runs.core import lenient_json
from runs.core.ports import Lab
from runs.core.states import OutputKind
from runs.models import Run
from runs.transcript import models, own_record, usage_rules
from runs.transcript.record_rules import OwnRecord
from runs.transcript.usage_rules import Usage

logger = logging.getLogger(__name__)

PIECE = 4 * lenient_json.LINE_LIMIT
OF_ONE = 2 * PIECE  # at a look
AT_A_LOOK = 8 * PIECE
AT_THE_END = 32 * PIECE


def tells(run: Run) -> bool:
    """Whether anything of a run is to be read here. What is printed is heard elsewhere."""
    return run.output != OutputKind.CLAUDE and not run.is_adopted


def listen(lab: Lab, runs: Sequence[Run]) -> int:
    """Keep what is new of working runs; how many have something new.

    One look reads a bounded number of bytes of each and of all; the rest is there at the next.
    """
    left, now = AT_A_LOOK, lab.now()
    heard: dict[int, Mapping[str, object]] = {}
    for run in runs:
        if left <= 0 or not tells(run):
            continue
        try:
            usage, size = _hear(lab, run, min(left, OF_ONE))
        except Exception:  # an agent writes these lines: none may keep others from being read
            logger.exception("an agent's own record was not read", extra={"run_id": run.pk})
            continue
        left -= size
        if size:
            heard[run.pk] = columns(usage, run, now)
            for name, value in heard[run.pk].items():
                setattr(run, name, value)
    return models.keep(Run, heard)


def last_numbers(lab: Lab, run: Run) -> dict[str, object]:
    """The columns of a run that has ended, to the end of its records; empty where nothing is new."""
    if not tells(run):
        return {}
    try:
        usage, size = _hear(lab, run, AT_THE_END)
    except Exception:  # as above: an end is settled all the same
        logger.exception("an agent's own record was not read", extra={"run_id": run.pk})
        return {}
    # What Codex prints at its end is the sum of its thread, with what runs before this one used.
    return columns(usage, run, run.ended_at or lab.now()) if size or usage.is_told else {}


def columns(usage: Usage, run: Run, at: datetime) -> dict[str, object]:
    """The columns that keep what was read; what is new in it counts for the day of `at`."""
    total = usage.spent.total
    told: dict[str, object] = {
        "own_usage": usage_rules.to_json(usage),
        "turns": usage.turns if usage.turns else run.turns,
        "tokens_in": total.into if usage.is_told else run.tokens_in,
        "tokens_cached": total.cached if usage.is_told else run.tokens_cached,
        "tokens_out": total.out if usage.is_told else run.tokens_out,
        "agent_model": usage.model or run.agent_model,
        "context_tokens": usage.context if usage.context is not None else run.context_tokens,
        "context_window": usage.window or run.context_window,
    }
    return told | models.days({**told, "cost_usd": run.cost_usd}, run, at)


def _hear(lab: Lab, run: Run, limit: int) -> tuple[Usage, int]:
    """What the run's records have told by now, and how many bytes that cost; 0: nothing is new."""
    usage, left = usage_rules.from_json(run.own_usage), limit
    began = [at.timestamp() for at in (run.requested_at, run.started_at) if at is not None]
    for record in own_record.find(lab, run):
        while left > 0 and usage.may_read(record):
            after, size = _piece(lab, usage, record, min(began, default=0.0), min(left, PIECE))
            if after == usage:
                break
            usage, left = after, left - max(1, size)
    return usage, limit - left


def _piece(
    lab: Lab, usage: Usage, record: OwnRecord, since: float, limit: int
) -> tuple[Usage, int]:
    """The next piece of one record, from its start where it became another one."""
    place = usage.place(record, since)
    found = lab.records.read(record, usage_rules.start(place), limit + usage_rules.MARKED)
    if found is not None and not usage_rules.is_same(place, found.data, found.size):
        place = usage_rules.rewritten(place)
        found = lab.records.read(record, 0, limit)
    if found is None:
        return usage, 0
    return usage_rules.read(usage, record, place, found.data), len(found.data)

"""Trying an agent: the steps of a trial and how each of them stands. Pure."""

from __future__ import annotations

from enum import StrEnum


class TrialState(StrEnum):
    """Where a trial stands. *Waiting*: the worker has not taken it yet."""

    WAITING = "waiting"
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def is_over(self) -> bool:
        return self not in OPEN


OPEN = (TrialState.WAITING, TrialState.RUNNING)

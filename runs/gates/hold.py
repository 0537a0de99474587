"""This process's hold on one attempt: whether it is still ours, and the only way to write to it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from runs.core import database
from runs.core.database import NO_DATABASE
from runs.core.ports import Lab
from runs.core.states import RunState
from runs.models import Attempt

__all__ = ["NO_DATABASE", "Hold", "Lost", "PostponedError"]

BEAT_EVERY = timedelta(seconds=15)
WAITS = "the database does not answer, and what a gate said waits for it"


class Lost(Exception):
    """The attempt is not ours to go on with: it was ended or taken over, or this process ends."""


class PostponedError(Exception):
    """A gate cannot be asked before a time that is known; neither the work nor the machine is at fault.

    Its text is for a person. `is_new`: nobody has been told yet.
    """

    def __init__(self, why: str, at: datetime, *, is_new: bool) -> None:
        super().__init__(why)
        self.at, self.is_new = at, is_new


class Hold:
    """An attempt that this process works on; read with its run and project."""

    def __init__(self, lab: Lab, attempt: Attempt, is_stopping: Callable[[], bool]) -> None:
        self.attempt = attempt
        self.run = attempt.run
        self._lab = lab
        self._is_stopping = is_stopping
        self._next: datetime = lab.now() + BEAT_EVERY

    def goes_on(self) -> bool:
        """Whether to go on; asked every second or so. A silent database has taken nothing away."""
        if self._is_stopping():
            return False
        try:
            if self._lab.now() < self._next:
                return bool(self._mine().exists())
            self._next = self._lab.now() + BEAT_EVERY
            return bool(self._mine().update(beat_at=self._lab.now()))
        except NO_DATABASE:
            database.renew_connection()
            return True

    def store(self, **columns: Any) -> None:
        """Write columns of the attempt, also on the row in memory. Raises Lost."""
        if not self._mine().update(**columns):
            raise Lost
        for name, value in columns.items():
            setattr(self.attempt, name, value)

    def patiently(self, act: Callable[[], object]) -> None:
        """Do what writes, again while the database does not answer: what was proven is not lost by that.

        Raises what the act raises; the database's error after minutes, or once this process ends.
        """
        attempt = self.attempt.pk
        database.patiently(self._lab, act, self._is_stopping, WAITS, attempt=attempt)

    def _mine(self) -> Any:
        """The attempt while it runs, is ours, and nobody stopped its run."""
        rows = Attempt.objects.running().filter(pk=self.attempt.pk, runner=self._lab.process)
        return rows.filter(
            losses=self.attempt.losses, run__outcome="", run__state=RunState.CHECKING
        )

"""This process's hold on one attempt: its job, and the only way to write to it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from runs.core.ports import Lab
from runs.core.states import JobKind, RunState
from runs.jobs.runner import HeldJob, JobSpec
from runs.models import Attempt, Job

WAITS = "the database does not answer, and what a gate said waits for it"
ATTEMPTS = JobSpec(JobKind.ATTEMPT, lambda queue, number: queue.check(number), waits=WAITS)


class PostponedError(Exception):
    """A gate cannot be asked before a time that is known; neither the work nor the machine is at fault.

    Its text is for a person. `is_new`: nobody has been told yet.
    """

    def __init__(self, why: str, at: datetime, *, is_new: bool) -> None:
        super().__init__(why)
        self.at, self.is_new = at, is_new


class Hold(HeldJob):
    """An attempt that this process works on, while it runs and nobody stopped its run.

    It is read with its run and project.
    """

    def __init__(
        self, lab: Lab, attempt: Attempt, job: Job, is_stopping: Callable[[], bool]
    ) -> None:
        running = Attempt.objects.running().filter(pk=attempt.pk)
        rows = running.filter(run__outcome="", run__state=RunState.CHECKING)
        super().__init__(lab, ATTEMPTS, job, rows, is_stopping)
        self.attempt = attempt
        self.run = attempt.run

    def store(self, **columns: Any) -> None:
        """Write columns of the attempt, also on the row in memory. Raises LostError."""
        super().store(**columns)
        for name, value in columns.items():
            setattr(self.attempt, name, value)

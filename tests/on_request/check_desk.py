"""An agent's desk in a project whose gates have commands, with somebody who works the queue."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connection

from runs.core.states import CompletionPolicy
from runs.models import CheckCommand, CheckRun, Project, Run
from runs.on_request import check_runner
from runs.validation.specs import Kind
from tests.desk import Desk
from tests.patience import PATIENCE
from tests.real import RealWorld


class CheckDesk(Desk):
    """A run with a real worktree in a project with gates; its commands are shell scripts."""

    def __init__(self, real: RealWorld, **scripts: str) -> None:
        super().__init__(real)
        Project.objects.filter(pk=self.project.pk).update(policy=CompletionPolicy.GATES)
        Run.objects.filter(pk=self.run.pk).update(worktree=str(self.tree), mark="lab-of-the-agent")
        self.project.refresh_from_db()
        self.run.refresh_from_db()
        for name, script in scripts.items():
            self.command(name, script)

    def command(self, name: str, script: str, kind: Kind = Kind.TEST, **fields: object) -> None:
        CheckCommand.objects.create(
            project=self.project,
            position=CheckCommand.objects.count(),
            name=name,
            argv=["sh", "-c", script],
            kind=kind,
            **fields,
        )

    def work(self, is_stopping: Callable[[], bool] = lambda: False) -> CheckRun:
        """Carry out what was asked of the queue; the last check."""
        queue = self.real.queue.check_runs
        while queue:
            check_runner.carry_out(self.real.lab, queue.pop(0), is_stopping)
        return CheckRun.objects.latest("pk")

    def worker(self) -> threading.Thread:
        """A worker that carries out the next check that is asked for."""

        def wait() -> None:
            try:
                self.real.until(lambda: bool(self.real.queue.check_runs), PATIENCE)
                self.work()
            finally:
                connection.close()

        thread = threading.Thread(target=wait)
        thread.start()
        return thread

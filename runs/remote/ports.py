"""What processes ask of each other: work that may take long, and wake-ups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Queue(Protocol):
    """Long work is asked for here; each is also a row that a tick can find again."""

    def on(self, host: str) -> Queue:
        """The same for the worker of the host that a row names, which may be another machine."""

    def launch(self, run_id: int) -> None:
        """Carry out a run in *starting*."""

    def clone(self, project_id: int) -> None:
        """Carry out the clone of a new project, or the removal of one."""

    def open(self, session_id: int) -> None:
        """Carry out the start of a session that a person drives."""

    def deliver(self, delivery_id: int) -> None:
        """Send one notice to the outside, and what else is due."""

    def ping(self, healthy: bool) -> None:
        """Tell whoever watches labsite from outside how the last tick went."""

    def validate(self, validation_id: int) -> None:
        """Put a validation together and run its commands."""

    def check(self, attempt_id: int) -> None:
        """Take an attempt of a run through the gates of its project."""

    def check_run(self, check_id: int) -> None:
        """Run commands in an agent's worktree on its behalf (`labctl check`)."""

    def after_run(self, run_id: int) -> None:
        """Run a project's commands after a run, or before its worktree is removed."""

    def fix(self, fixer_id: int) -> None:
        """Carry out the start of a fixer."""

    def sweep(self, project_id: int) -> None:
        """Fetch a project and collect what was merged."""

    def discard(self, discarding_id: int) -> None:
        """Carry out a discard that takes long."""

    def refresh(self, project_id: int) -> None:
        """Ask a project's tracker again what is ready and what waits for a review."""

    def mirror(self, run_id: int) -> None:
        """Write on the tracker how a run stands, best effort."""

    def check_agent(self, profile_id: int) -> None:
        """Look whether an agent's program is there, which version, and logged in."""

    def try_agent(self, trial_id: int) -> None:
        """Carry out a trial of an agent."""


class Bell(Protocol):
    """Hints between processes. They carry no data, and losing one costs only time."""

    def timeline(self) -> None:
        """Tell every web process that the timeline has something new."""

    def look(self, project: str) -> None:
        """Ask the worker for a tick of one project (its session name part) now."""


class Elsewhere(Protocol):
    """What the worker of another host does as a whole. Every answer may raise SeamError."""

    def records(self, run_id: int) -> Sequence[Mapping[str, object]]:
        """The records of a run's conversation, without where they lie."""

    def read(self, run_id: int, name: str, start: int, limit: int) -> Any:
        """A piece of one of them; None when it is not there."""

    def parked(self, project_id: int, page: int) -> Mapping[str, Any]:
        """A page of what it keeps of a project."""

    def discard(
        self, project_id: int, branch: str, by: str, even_accepted: bool
    ) -> Mapping[str, str]:
        """Discard what it keeps; what came of it, or why it was refused."""

    def restore(self, rescue_id: int, by: str) -> Mapping[str, str]:
        """Bring back what it rescued; its name, or why it was refused."""

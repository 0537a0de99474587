"""What a clean room is: where commands are run, who keeps what happens, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from runs.core.ports import SeamError
from runs.models import Project
from runs.validation.command_rules import Checked
from runs.validation.specs import Command, Kind


class Lost(Exception):
    """The commands are not ours to go on with: somebody called them off, or this process ends."""


class NoWorktree(SeamError):
    """The clean worktree could not be made; nothing was run."""


@dataclass(frozen=True, slots=True)
class Room:
    """Where commands are run, and on what.

    `base` is what the commit began at: lock files and changed lines are compared with it. What is
    printed goes into files of `folder` that begin with `attempt`. Empty folders between `path` and
    `root` are removed with the worktree. `is_plain`: results have the shape of a validation without
    a spec, one file of output a command.
    """

    project: Project
    commit: str
    base: str
    path: Path
    folder: Path
    mark: str
    attempt: int = 0
    root: Path | None = None
    keep_on_failure: bool = False
    is_plain: bool = False

    @property
    def setup(self) -> tuple[Command, ...]:
        """Return the commands that prepare the worktree before anything is proved in it."""
        minutes = self.project.setup_minutes
        commands = enumerate(self.project.setup_commands, start=1)
        return tuple(
            Command(f"set-up {number}", tuple(argv), Kind.DEPS, minutes=minutes)
            for number, argv in commands
        )


class Journal(Protocol):
    """Who keeps what happens in a clean room, and says whether to go on."""

    def goes_on(self) -> bool:
        """Whether to go on; asked every second or so."""

    def note(self, results: Sequence[Mapping[str, Any]], text: str = "") -> None:
        """Keep the results so far, and tell the text if there is one."""


@dataclass(frozen=True, slots=True)
class ByHand:
    """A journal that keeps nothing; `tell` hears what is run."""

    wanted: Callable[[], bool]
    tell: Callable[[str], None] = lambda text: None

    def goes_on(self) -> bool:
        return self.wanted()

    def note(self, results: Sequence[Mapping[str, Any]], text: str = "") -> None:
        if text:
            self.tell(text)


@dataclass(slots=True)
class Result:
    """What commands, coverage and the end-to-end run gave. It has passed without `failures`.

    `checked` are the results of the commands that were run, in their order, `results` the entries
    that are stored, those of the set-up before them. `is_fixable`: all that failed is something
    that an agent can mend. `setup_failure`: why the worktree could not be prepared.
    """

    commands: list[Command] = field(default_factory=list)
    checked: list[Checked] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    coverage: dict[str, Any] | None = None
    e2e: dict[str, Any] | None = None
    artifacts: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    is_fixable: bool = True
    setup_failure: str = ""

    @property
    def passed(self) -> bool:
        return not self.failures

    def to_json(self) -> dict[str, Any]:
        """The whole result, as it is exported."""
        return {
            "passed": self.passed,
            "failures": list(self.failures),
            "command_results": list(self.results),
            "coverage_result": self.coverage,
            "e2e_result": self.e2e,
            "duration_seconds": self.seconds,
            "artifacts": dict(self.artifacts),
        }

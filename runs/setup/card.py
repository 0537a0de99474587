"""What the page of a run shows of its project's commands: before its agent, after it, before removal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.core.ports import Lab
from runs.core.states import RunState
from runs.models import Run
from runs.setup.commands import AFTER, AGAIN, NEW, REMOVAL, Stage
from runs.watch import command_rows
from runs.watch.command_rows import CommandRow, Frame

PASSED = "passed"
TITLES = {
    NEW: "Set-up",
    AGAIN: "Set-up before this start",
    AFTER: "After the run",
    REMOVAL: "Before removal",
}


@dataclass(frozen=True, slots=True)
class SetUpCard:
    """The commands with what they gave by now, and how they stand as a whole: a word, its colour."""

    stage: Stage
    commands: Sequence[CommandRow]
    state: str
    tone: str
    text: str

    @property
    def key(self) -> str:
        """Return how ids on the page begin."""
        return self.stage.name.replace("_", "-")

    @property
    def title(self) -> str:
        return TITLES[self.stage]

    @property
    def is_open(self) -> bool:
        """Return whether the commands are shown unfolded, since they run or one failed."""
        return self.state != PASSED


def all_of(lab: Lab, run: Run) -> list[SetUpCard]:
    """Return a card for each list of commands that was run for a run."""
    found = (_before(lab, run, NEW), _before(lab, run, AGAIN), _later(lab, run, AFTER))
    return [one for one in (*found, _later(lab, run, REMOVAL)) if one is not None]


def _before(lab: Lab, run: Run, stage: Stage) -> SetUpCard | None:
    """The card of commands without which no agent starts."""
    kept = getattr(run, stage.name)
    if kept is None:
        return None
    has_passed = bool(kept["has_passed"])
    if has_passed and not kept["results"]:
        return None  # files alone
    is_running = run.state == RunState.STARTING and not has_passed
    rows = _rows(lab, run, kept, is_running=is_running)
    if is_running:
        return SetUpCard(stage, rows, "running", "info", "The agent starts when they have passed.")
    if has_passed:
        return SetUpCard(stage, rows, PASSED, "good", "They passed before the agent started.")
    text = "No agent was started, and nobody's work was touched."
    return SetUpCard(stage, rows, *_how_ended(rows), text)


def _later(lab: Lab, run: Run, stage: Stage) -> SetUpCard | None:
    """The card of commands that change nothing, whatever they give."""
    kept = getattr(run, stage.name)
    if kept is None:
        return None
    rows = _rows(lab, run, kept, is_running=not kept["is_over"])
    if not kept["is_over"]:
        text = "The worktree stays until they have ended."
        state = "running" if rows else "waiting"
        return SetUpCard(stage, rows, state, "info", text)
    if all(one.tone == "good" for one in rows):
        return SetUpCard(stage, rows, PASSED, "good", "They passed.")
    text = "The outcome and the work of the run are as they were."
    return SetUpCard(stage, rows, *_how_ended(rows), text)


def _rows(lab: Lab, run: Run, kept: Mapping[str, Any], *, is_running: bool) -> Sequence[CommandRow]:
    folder, most = lab.paths.run_folder(run.pk), command_rows.TAIL_BYTES
    frame = Frame(
        is_running=is_running,
        is_waiting=False,
        printed=lambda name: lab.checks.output(folder, name, -most, most),
    )
    return command_rows.rows([], kept["results"], frame)


def _how_ended(rows: Sequence[CommandRow]) -> tuple[str, str]:
    """The word and the colour of commands of which not all passed."""
    has_failed = any(one.tone == "bad" for one in rows)
    return ("failed", "bad") if has_failed else ("interrupted", "")

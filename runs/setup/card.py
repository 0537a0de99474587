"""What the page of a run shows of its set-up commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.core.ports import Lab
from runs.core.states import RunState
from runs.models import Run
from runs.watch import command_rows
from runs.watch.command_rows import CommandRow, Frame

PASSED = "passed"


@dataclass(frozen=True, slots=True)
class SetUpCard:
    """The commands with what they gave by now, and how they stand as a whole: a word, its colour."""

    commands: Sequence[CommandRow]
    state: str
    tone: str
    text: str

    @property
    def is_open(self) -> bool:
        """Return whether the commands are shown unfolded, since they run or one failed."""
        return self.state != PASSED


def of(lab: Lab, run: Run) -> SetUpCard | None:
    """Return the card of a run; None where no set-up command was run for it."""
    if run.setup is None:
        return None
    has_passed = bool(run.setup["has_passed"])
    is_running = run.state == RunState.STARTING and not has_passed
    folder, most = lab.paths.run_folder(run.pk), command_rows.TAIL_BYTES
    frame = Frame(
        is_running=is_running,
        is_waiting=False,
        printed=lambda name: lab.checks.output(folder, name, -most, most),
    )
    commands = command_rows.rows([], run.setup["results"], frame)
    if is_running:
        return SetUpCard(commands, "running", "info", "The agent starts when they have passed.")
    if has_passed:
        return SetUpCard(commands, PASSED, "good", "They passed before the agent started.")
    text = "No agent was started, and nobody's work was touched."
    has_failed = any(one.tone == "bad" for one in commands)
    state, tone = ("failed", "bad") if has_failed else ("interrupted", "")
    return SetUpCard(commands, state, tone, text)

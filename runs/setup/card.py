"""What the page of a run shows of its set-up commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.core.ports import Lab
from runs.core.states import RunState
from runs.models import Run
from runs.watch import command_rows
from runs.watch.command_rows import CommandRow, Frame


@dataclass(frozen=True, slots=True)
class SetUpCard:
    """The commands with what they gave by now. `is_open`: shown unfolded, since they run or failed."""

    commands: Sequence[CommandRow]
    text: str
    is_open: bool


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
    text = _describe(is_running=is_running, has_passed=has_passed)
    return SetUpCard(commands, text, is_open=not has_passed)


def _describe(*, is_running: bool, has_passed: bool) -> str:
    if is_running:
        return "The agent starts when they have passed."
    if has_passed:
        return "They passed before the agent started."
    return "They did not pass, so no agent was started. Nobody's work was touched."

"""What becomes of a worktree when its run has ended (C-03, LAB-37 to LAB-40, LAB-46)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from runs.domain.states import AgentMode, Outcome

CLOSING = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Teardown:
    """Whether the worktree is removed, and the warning to show when that was not possible."""

    remove: bool
    warning: str = ""


def teardown(outcome: Outcome, unsaved: bool | None) -> Teardown:
    """The rule: only a success with a clean worktree is tidied; unsaved work is never removed.

    `unsaved` is None when git could not say; then everything is kept (LAB-109).
    """
    if outcome is not Outcome.SUCCEEDED:
        return Teardown(remove=False)
    if unsaved is None:
        return Teardown(False, "git could not say whether the worktree is clean, so it was kept")
    if unsaved:
        return Teardown(
            False, "the worktree holds work that is not committed on its branch, so it was kept"
        )
    return Teardown(remove=True)


def may_close(outcome: Outcome, mode: str, alive: bool, since: timedelta) -> bool:
    """Whether a program that has delivered may still end by itself, for at most `CLOSING`.

    Only then a one-shot program tells its cost and turns (LAB-37 is kept a moment later).
    """
    is_closing = outcome is Outcome.SUCCEEDED and mode == AgentMode.ONE_SHOT and alive
    return is_closing and since < CLOSING

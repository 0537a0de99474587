"""What becomes of a worktree when its run has ended (C-03, LAB-37 to LAB-40, LAB-46)."""

from __future__ import annotations

from dataclasses import dataclass

from runs.domain.states import Outcome


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

"""What becomes of a worktree when its run has ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from runs.core.states import Outcome

CLOSING = timedelta(seconds=60)
# What leaves nothing to look at: delivered, or with nothing to deliver.
ENDED_WELL = (Outcome.SUCCEEDED, Outcome.NO_CHANGE, Outcome.OBSOLETE)


@dataclass(frozen=True, slots=True)
class Teardown:
    """Whether the worktree is removed, and the warning to show when that was not possible."""

    remove: bool
    warning: str = ""


def teardown(outcome: Outcome, unsaved: bool | None) -> Teardown:
    """The rule: only what ended well with a clean worktree is tidied; unsaved work never goes.

    `unsaved` is None when git could not say; then everything is kept.
    """
    if outcome not in ENDED_WELL:
        return Teardown(remove=False)
    if unsaved is None:
        return Teardown(False, "git could not say whether the worktree is clean, so it was kept")
    if unsaved:
        return Teardown(
            False, "the worktree holds work that is not committed on its branch, so it was kept"
        )
    return Teardown(remove=True)


def may_close(outcome: Outcome, is_at_it: bool, alive: bool, since: timedelta) -> bool:
    """Whether a program that has delivered may still finish by itself, for at most `CLOSING`.

    `is_at_it`: it is known to be at its task still. A one-shot program is until it ends, and only
    then tells its cost and turns; an interactive one is until its turn ends, with its last answer.
    The session ends a moment later then.
    """
    return outcome is Outcome.SUCCEEDED and is_at_it and alive and since < CLOSING


@dataclass(frozen=True, slots=True)
class MergeFacts:
    """What is known of one managed branch. None means "could not tell".

    `fork_point` is where it was made, empty when nobody stored it. `is_ancestor`: origin's default
    branch holds its tip. `merged_heads`: heads of merged pull requests of the branch.
    """

    tip: str | None
    fork_point: str
    is_ancestor: bool | None
    is_claim: bool
    merged_heads: frozenset[str] = frozenset()


def is_merged(facts: MergeFacts) -> bool | None:
    """Whether everything of a branch is in origin's default branch.

    A claim that never left its fork point was not merged, it was never worked on; where
    nobody knows its fork point, it counts as such. A branch that claims nothing has no promise to
    keep and may go as soon as it holds nothing of its own.
    """
    if facts.tip is None:
        return None
    has_moved = bool(facts.fork_point) and facts.tip != facts.fork_point
    if has_moved and facts.tip in facts.merged_heads:
        return True
    if facts.is_claim and not has_moved:
        return False
    return facts.is_ancestor


@dataclass(frozen=True, slots=True)
class Guarded:
    """What may go of a worktree and its branch, and the warning to show for what had to stay."""

    remove_worktree: bool
    delete_branch: bool
    warning: str = ""


def guarded(has_worktree: bool, unsaved: bool | None, merged: bool | None) -> Guarded:
    """The rule for whatever is no run's own business: orphans and sessions of people.

    Dirty keeps worktree and branch; clean removes the worktree, and the branch only when it is
    merged. Whatever git could not say keeps what it is about.
    """
    if has_worktree and unsaved is None:
        why = "git could not say whether the worktree is clean, so worktree and branch were kept"
        return Guarded(False, False, why)
    if has_worktree and unsaved:
        why = "the worktree holds work that is not committed on its branch, so both were kept"
        return Guarded(False, False, why)
    if merged is None:
        why = "git could not say whether the branch is merged, so it was kept"
        return Guarded(has_worktree, False, why)
    return Guarded(has_worktree, merged)


def needs_rescue(is_dirty: bool, stands_on_tip: bool, tip_stays: bool) -> bool:
    """Whether removing it would lose anything that no branch of ours or of origin still holds."""
    return is_dirty or not stands_on_tip or not tip_stays

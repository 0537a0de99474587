"""What a project holds and what is active in it, as a person is told before it is removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is lost from labsite, and what is kept in folders, when a project is removed.

    `parked`, `unpushed` and `uncommitted` (branches with changes in their worktree) are None when
    git could not say. `issues` and `pulls` are those of the built-in tracker.
    """

    parked: int | None = 0
    unpushed: int | None = 0
    uncommitted: Sequence[str] | None = ()
    rescues: int = 0
    runs: int = 0
    watch_sessions: int = 0
    groups: int = 0
    issues: int = 0
    pulls: int = 0
    is_hosted: bool = False

    @property
    def has_work(self) -> bool:
        """Whether anything may be there that origin does not have."""
        unknown = None in (self.parked, self.unpushed, self.uncommitted)
        return unknown or bool(self.unpushed or self.uncommitted or self.rescues or self.is_hosted)


def refusal(name: str, to_stop: Sequence[str]) -> str:
    """Why a project cannot be removed now and what to do first; empty when it can be."""
    if not to_stop:
        return ""
    *first, last = to_stop
    steps = f"{', '.join(first)} and {last}" if first else last
    return f"{name} is still in use, so nothing was removed. First {steps}."

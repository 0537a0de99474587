"""What rooms above the one that stores a change store with it.

`runs.wiring` puts one `Effects` together; whoever stores the change calls each in its transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runs.core.states import Outcome

if TYPE_CHECKING:
    from runs.core.ports import Lab


@dataclass(frozen=True, slots=True)
class RunStart:
    """A run that was stored: reserved, or adopted with a session that runs."""

    run_id: int
    project_id: int
    issue_key: str


@dataclass(frozen=True, slots=True)
class RunEnd:
    """A run that was ended, as its row says in the transaction of its outcome."""

    run_id: int
    outcome: Outcome
    watch_id: int | None
    did_start: bool
    was_claimed: bool
    is_loop: bool


@dataclass(frozen=True, slots=True)
class ValidationEnd:
    """A validation that has ended, of a watch session or of one run.

    `passed` is None when it proved nothing.
    """

    validation_id: int
    watch_id: int | None
    passed: bool | None


@dataclass(frozen=True, slots=True)
class IssueTaken:
    """A further issue that the launch pass claimed for a run that stays."""

    run_id: int
    issue_key: str
    title: str


@dataclass(frozen=True, slots=True)
class PushOffer:
    """What one press on a push may do: the verb, its button, what will happen, and about what."""

    verb: str
    label: str
    words: str
    about: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Effects:
    """Called in their order, in the caller's transaction; what one raises undoes the change too."""

    run_started: tuple[Callable[[Lab, RunStart], None], ...]
    run_ended: tuple[Callable[[Lab, RunEnd], None], ...]
    validation_ended: tuple[Callable[[Lab, ValidationEnd], None], ...]
    project_changed: tuple[Callable[[Lab, int], None], ...]
    """A forge told of a change in the project with this id."""
    issue_taken: tuple[Callable[[Lab, IssueTaken], None], ...] = ()
    push_offers: Callable[[Lab, int, int], Sequence[PushOffer]] = lambda _lab, _notice, _user: ()
    """What a person may do at once about the notice with this id: that of the notice, of the person."""

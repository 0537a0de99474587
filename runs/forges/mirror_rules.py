"""What is written on a tracker about a run: best effort, never read again.

Only words of ours: what an agent said, or where things lie on this machine, is never among them.
"""

from __future__ import annotations

from dataclasses import dataclass

from runs.core.states import Outcome
from runs.lifecycle.verdict import exit_words

FOLLOW_UP = "needs-followup"
_BAD = frozenset(
    {Outcome.DIED, Outcome.TIMED_OUT, Outcome.REJECTED, Outcome.LIMIT_REACHED, Outcome.FAILED}
)


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What is told of a run. Without an outcome it works. `loop_code`: how its loop ended, if it is one."""

    run: int
    branch: str
    outcome: str = ""
    pull: int | None = None
    exit_status: int | None = None
    exit_signal: int | None = None
    loop_code: int | None = None


def needs_follow_up(outcome: str) -> bool:
    """Whether a person has to look at the issue again."""
    return outcome in _BAD


def unclear(key: str) -> str:
    """What is told when nobody knows whether the mark of a start that failed was written."""
    return (
        f"{key} may be marked as in progress there, since labsite was cut short while it marked it. "
        "Where nobody works on it, set it to open."
    )


def words(told: Mirrored) -> str:
    """The comment, as a person reads it."""
    if not told.outcome:
        return f"labsite works on this: run {told.run}, branch `{told.branch}`."
    return f"Run {told.run} of labsite {_how(told)}."


def _how(told: Mirrored) -> str:
    kept = f"its branch `{told.branch}` is kept"
    match told.outcome:
        case Outcome.SUCCEEDED:
            what = f"pull request #{told.pull}" if told.pull else f"commits on `{told.branch}`"
            return f"succeeded: {what}"
        case Outcome.DIED:
            how = exit_words(told.exit_status, told.exit_signal)
            return f"died: its session {how} and nothing was delivered; {kept}"
        case Outcome.TIMED_OUT:
            return f"timed out and delivered nothing; {kept}"
        case Outcome.STOPPED:
            return f"was stopped by a person; {kept}"
        case Outcome.LIMIT_REACHED | Outcome.FAILED if told.loop_code is not None:
            how = "reached a limit" if told.outcome == Outcome.LIMIT_REACHED else "failed"
            return f"{how} (loop code {told.loop_code}); a person has to look at it, and {kept}"
    return f"ended: {Outcome(told.outcome).words}; {kept}"

"""Whether a program that has ended ever came to its task. One that did not is a start that failed."""

from __future__ import annotations

from dataclasses import dataclass

from runs.lifecycle.death_reason import exit_words

NOT_STARTED = (126, 127)  # what shells and our own launcher say of a program that cannot be run


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is known of how a program began. `tells`: it says so by itself when it was given its task.

    `began` is whether it did; `commits` are on its branch, and prove as much. None: not known.
    """

    status: int | None
    signal: int | None = None
    tells: bool = False
    began: bool = False
    commits: int = 0


def never_began(facts: Beginning) -> bool:
    """Whether it ended by itself, with an error, before it was at its task, however long that took.

    What was ended from outside says nothing of a start, and neither does a program that never
    tells: of these only the two statuses count that stand for "could not be run".
    """
    if facts.signal is not None or not facts.status or facts.commits or facts.began:
        return False
    return facts.tells or facts.status in NOT_STARTED


def why(facts: Beginning, words: str) -> str:
    """The reason of the failed start, with the program's own last words."""
    said = f" Its final output: {words}" if words else ""
    how = exit_words(facts.status, facts.signal)
    return f"did not start: the agent {how} before it began to work.{said}"

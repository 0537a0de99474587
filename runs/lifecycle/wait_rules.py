"""Whether a working run waits for a person, and in which words: pure rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from runs.core.states import Wait

# Within it a pull request that was opened last is found, and labsite's own next word is given.
IDLE_AFTER = timedelta(seconds=10)
# Until then a program is still drawing what it asks, with whatever else ran beside it.
DRAWN_AFTER = timedelta(seconds=8)
# An answer whose screen has not changed for so long may be given once more: it got lost.
LOST_AFTER = timedelta(seconds=15)
CHOICE_LINES, CHOICE_CHARACTERS = 30, 200
_CHOICE = re.compile(r"[\s│┃|❯›>]*(?P<digit>[1-9])[.)] +(?P<text>\S.*)")


@dataclass(frozen=True, slots=True)
class WaitFacts:
    """What is known of a session that is alive and has no outcome.

    `asks`, `asked_at`, `question`: what its hooks said that it asks a person, and since when.
    `turn_ended_at`: since when it has no next word; None while it works or where nothing tells.
    `is_error` and `note`: an error ended that turn, in these words. `changed_at`: when its screen
    changed last; None where that is not known. `quiet_after`: after how long without a change it
    counts as waiting; zero: never.
    """

    asks: Wait = Wait.NONE
    asked_at: datetime | None = None
    question: str = ""
    turn_ended_at: datetime | None = None
    is_error: bool = False
    note: str = ""
    changed_at: datetime | None = None
    quiet_after: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Waiting:
    """For what a run waits, since when, and what the program said of it."""

    kind: Wait = Wait.NONE
    since: datetime | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the answers that a program offers: the digit that gives it, and what it says."""

    digit: int
    text: str


def waiting(facts: WaitFacts, now: datetime) -> Waiting:
    """What the facts prove; what the program says itself comes before what its screen shows."""
    if facts.asks is not Wait.NONE and facts.asked_at is not None:
        return Waiting(facts.asks, facts.asked_at, facts.question)
    ended_at = facts.turn_ended_at
    if ended_at is not None:
        if now - ended_at < IDLE_AFTER:
            return Waiting()
        kind = Wait.ERROR if facts.is_error else Wait.IDLE
        return Waiting(kind, ended_at, facts.note if facts.is_error else "")
    changed_at = facts.changed_at
    if changed_at is not None and facts.quiet_after and now - changed_at >= facts.quiet_after:
        return Waiting(Wait.QUIET, changed_at)
    return Waiting()


def was_answered(asked_at: datetime | None, changed_at: datetime | None) -> bool:
    """Whether a screen that changes now shows that the program goes on after it had asked.

    `changed_at`: when it changed before. A question is drawn once and stands still; a program that
    goes on changes its screen again and again.
    """
    return asked_at is not None and changed_at is not None and changed_at - asked_at > DRAWN_AFTER


def choices(screen: str) -> list[Choice]:
    """What a program offers to choose from at the end of its screen, which has no colours.

    They are numbered from 1 on, one under the other; empty when it offers nothing of that form.
    """
    found: list[Choice] = []
    for line in screen.splitlines()[-CHOICE_LINES:]:
        match = _CHOICE.fullmatch(line.rstrip(" │┃|"))
        if match is None:
            continue
        digit, text = int(match["digit"]), match["text"].strip()
        if digit == 1:
            found = []
        if digit == len(found) + 1:
            found.append(Choice(digit, text[:CHOICE_CHARACTERS]))
    return found if len(found) > 1 else []


def words(kind: Wait) -> str:
    """What a run does that waits, after its name."""
    return _WORDS[kind]


def sentence(kind: Wait, agent: str, note: str) -> str:
    """For what an agent waits, with what it said of that."""
    return f"{agent or 'The agent'} {_WORDS[kind]}{f': {note}' if note else ''}"


def past(kind: Wait) -> str:
    """The same once it is over."""
    return _PAST[kind]


def advice(kind: Wait) -> str:
    """What a person can do, in a sentence."""
    return _ADVICE[kind]


_WORDS = {
    Wait.NONE: "",
    Wait.PERMISSION: "asks for a permission",
    Wait.QUESTION: "asks a question",
    Wait.IDLE: "has stopped and waits for a word",
    Wait.ERROR: "was stopped by an error",
    Wait.QUIET: "has shown nothing new for long",
}
_PAST = {
    Wait.NONE: "",
    Wait.PERMISSION: "had asked for a permission",
    Wait.QUESTION: "had asked a question",
    Wait.IDLE: "had stopped and waited for a word",
    Wait.ERROR: "had been stopped by an error",
    Wait.QUIET: "had shown nothing new for long",
}
_ADVICE = {
    Wait.NONE: "",
    Wait.PERMISSION: "Answer it on its page.",
    Wait.QUESTION: "Answer it on its page.",
    Wait.IDLE: "Tell it on its page how to go on, or stop it.",
    Wait.ERROR: "Tell it on its page to go on, or stop it.",
    Wait.QUIET: "Look at its screen: it may ask something, or work without a word.",
}

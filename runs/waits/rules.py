"""Whether a working run waits for a person, and in which words: pure rules."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from runs.core.states import Wait

# Within it a pull request that was opened last is found.
IDLE_AFTER = timedelta(seconds=10)
# Before a tracker was asked in this look, only what stands since before the last one: else delivered
# work would be told as a wait.
UNASKED_AFTER = timedelta(seconds=20)
# So long somebody else may answer a question first: another hook, or whoever is attached.
ASKED_AFTER = timedelta(seconds=3)
# A dialog that stands on a screen for so long asks a person, whatever the program and its hooks say.
DIALOG_AFTER = timedelta(seconds=6)
# A screen without a dialog that changed within this time shows work.
STILL_AFTER = timedelta(seconds=6)
# Until then a program is still drawing what it asks, with whatever else ran beside it.
DRAWN_AFTER = timedelta(seconds=8)
# A program whose screen goes on changing for so long after the end of its turn works on.
WORKS_AFTER = timedelta(seconds=20)
# An answer after which nothing changed for so long got lost on its way.
LOST_AFTER = timedelta(seconds=30)
WITH_CHOICES = (Wait.PERMISSION, Wait.QUESTION)
# Its turn is over, so a key has nothing to stop.
FOR_A_WORD = (Wait.IDLE, Wait.ERROR)
CHOICE_LINES, CHOICE_CHARACTERS, ABOVE, BELOW = 30, 200, 12, 4
_ENTER = re.compile(r"\benter\b", re.IGNORECASE)
_CURSOR = "❯›"
_UNDRAWN = str.maketrans("", "", f"│┃|{_CURSOR}")
_CHOICE = re.compile(rf"[\s│┃|]*(?P<cursor>[{_CURSOR}]?)\s*(?P<digit>[1-9])[.)] +(?P<text>\S.*)")
# Where a person writes: no program shows that below a dialog.
_PROMPT = re.compile(rf"[\s│┃|]*[{_CURSOR}>](?!\s*[1-9][.)] )")
_FRAME = re.compile(r"[\s│┃|─━═╌╭╮╰╯┌┐└┘-]*")


@dataclass(frozen=True, slots=True)
class WaitFacts:
    """What is known of a session that is alive and has no outcome.

    `asks`, `asked_at`, `question`: what its hooks said that it asks a person, and since when.
    `shows_dialog`: whether its screen offers choices with a cursor; None where it was not read.
    `turn_ended_at`: since when it has no next word, also because a person interrupted it; None
    while it works or where nothing tells.
    `is_error` and `note`: an error ended that turn, in these words. `changed_at`: when its screen
    changed last; None where that is not known. `quiet_after`: after how long without a change it
    counts as waiting; zero: never.
    """

    asks: Wait = Wait.NONE
    asked_at: datetime | None = None
    question: str = ""
    shows_dialog: bool | None = None
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


@dataclass(frozen=True, slots=True)
class Dialog:
    """What a screen offers to choose from. `mark` tells two dialogs apart.

    `cursor`: the digit of the choice that the cursor stands at, 0 without one. `wants_enter`: it says
    that Enter takes that choice, and a digit may do nothing or only move there.
    """

    choices: tuple[Choice, ...] = ()
    mark: str = ""
    cursor: int = 0
    wants_enter: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it waits for a choice, and is no list that was only written."""
        return bool(self.cursor)


def waiting(facts: WaitFacts, now: datetime) -> Waiting:
    """What the facts prove; what the program says itself comes before what its screen shows."""
    if facts.asks is not Wait.NONE and facts.asked_at is not None:
        is_waiting = _still_asks(facts, facts.asked_at, now)
        return Waiting(facts.asks, facts.asked_at, facts.question) if is_waiting else Waiting()
    changed_at, ended_at = facts.changed_at, facts.turn_ended_at
    if ended_at is not None:
        if now - ended_at < IDLE_AFTER or _works_on(changed_at, ended_at, now):
            return Waiting()
        kind = Wait.ERROR if facts.is_error else Wait.IDLE
        return Waiting(kind, ended_at, facts.note if facts.is_error else "")
    if changed_at is not None and facts.shows_dialog and now - changed_at >= DIALOG_AFTER:
        return Waiting(Wait.QUESTION, changed_at)
    if changed_at is not None and facts.quiet_after and now - changed_at >= facts.quiet_after:
        return Waiting(Wait.QUIET, changed_at)
    return Waiting()


def _still_asks(facts: WaitFacts, asked_at: datetime, now: datetime) -> bool:
    """Whether a question that hooks told of stands, and was not answered at once by somebody else."""
    is_moving = facts.changed_at is not None and now - facts.changed_at < STILL_AFTER
    return now - asked_at >= ASKED_AFTER and not (facts.shows_dialog is False and is_moving)


def _works_on(changed_at: datetime | None, ended_at: datetime, now: datetime) -> bool:
    """Whether a screen contradicts the end of a turn: a hook of its user's own sent it back to work."""
    if changed_at is None or changed_at - ended_at <= WORKS_AFTER:
        return False
    return now - changed_at < WORKS_AFTER


def went_on(interrupted_at: datetime | None, changed_at: datetime | None, now: datetime) -> bool:
    """Whether a program that a person interrupted works again, where no hook tells of its next word."""
    return interrupted_at is not None and _works_on(changed_at, interrupted_at, now)


def was_answered(asked_at: datetime | None, changed_at: datetime | None) -> bool:
    """Whether a screen that changes now shows that the program goes on after it had asked.

    `changed_at`: when it changed before. A question is drawn once and stands still; a program that
    goes on changes its screen again and again.
    """
    return asked_at is not None and changed_at is not None and changed_at - asked_at > DRAWN_AFTER


def dialog(screen: str) -> Dialog:
    """What a program offers to choose from at the end of its screen, which has no colours.

    Choices are numbered from 1 on, one under the other, two at least, and the last thing there but
    for a few hints: programs show what a person has told them as such a list too, above their prompt.
    """
    lines = screen.rstrip().splitlines()[-CHOICE_LINES:]
    found: list[Choice] = []
    begin = end = cursor = 0
    for number, line in enumerate(lines):
        match = _CHOICE.fullmatch(line.rstrip(" │┃|"))
        if match is None:
            continue
        digit, text = int(match["digit"]), match["text"].strip()
        if digit == 1:
            found, begin, cursor = [], number, 0
        if digit == len(found) + 1:
            found.append(Choice(digit, text[:CHOICE_CHARACTERS]))
            end, cursor = number, digit if match["cursor"] else cursor
    if len(found) < 2 or not _are_hints(lines[end + 1 :]):
        return Dialog()
    block = lines[max(0, begin - ABOVE) : end + 1]
    plain = "\n".join(line.translate(_UNDRAWN).strip() for line in block)
    mark = hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()[:16]
    wants_enter = any(_ENTER.search(line) for line in lines[end + 1 : end + 1 + BELOW])
    return Dialog(tuple(found), mark, cursor, wants_enter)


def _are_hints(lines: list[str]) -> bool:
    said = [line for line in lines if not _FRAME.fullmatch(line)]
    return len(said) <= BELOW and not any(_PROMPT.match(line) for line in said)


def stops_budget(kind: Wait, is_wanted: bool) -> bool:
    """Whether a wait stops the budget, where the project wants that.

    Not by a screen alone that stands still: the program may work, and would be ended by nothing.
    """
    return is_wanted and kind not in (Wait.NONE, Wait.QUIET)


def budget_words(waited: timedelta, is_stopped: bool) -> str:
    """What the waits of a run did with its budget, as the end of a sentence; empty without any."""
    minutes = int(waited.total_seconds()) // 60
    if not minutes:
        return ""
    if is_stopped:
        return f"; the {minutes} min in which it waited for a person did not count"
    return f"; in {minutes} min of them it waited for a person"


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

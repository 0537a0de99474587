"""Logging an agent in from the browser: what is read off its screen, what may be pasted, what is next.

Pure. The agent's own program asks; a person opens its link and brings back a code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from runs.core import budgets

CODE_CHARACTERS = 4096
LINK_CHARACTERS = 2000
FRESH = timedelta(seconds=30)
OPEN_FOR = timedelta(minutes=10)
CHECK_FOR = timedelta(seconds=20)
_LINK = re.compile(r"https://[^\s\"'<>`|│┃]+")


class LoginState(StrEnum):
    """Where a log-in stands. *Linked*: it shows a link and waits for the code."""

    WAITING = "waiting"
    LINKED = "linked"
    CHECKING = "checking"
    DONE = "done"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self in (LoginState.DONE, LoginState.FAILED)


def is_fresh(now: datetime, checked_at: datetime | None) -> bool:
    """Whether an answer about the login is young enough for pages and sweeps."""
    return checked_at is not None and timedelta(0) <= now - checked_at < FRESH


def find_link(screen: str, columns: int) -> str:
    """The link that a program asks a person to open; empty while there is none.

    A program that wraps lines itself cuts a long link at the edge: what fills its line goes on
    in the next one, unless that one holds several words.
    """
    lines = [line.rstrip() for line in screen.splitlines()]
    for number, line in enumerate(lines):
        found = _LINK.search(line)
        if found is None:
            continue
        link, is_full = found[0], found.end() == len(line) >= columns - 1
        for more in lines[number + 1 :]:
            word = more.strip()
            if not is_full or not word or " " in word:
                break
            link, is_full = link + word, len(more) >= columns - 1
        if len(link) <= LINK_CHARACTERS:
            return link.rstrip(".,;)")
    return ""


def fault(code: str) -> str:
    """Why this cannot be pasted into a program; empty when it can."""
    if not code:
        return "Paste the code that the page behind the link shows."
    if len(code) > CODE_CHARACTERS:
        return f"A code has at most {CODE_CHARACTERS} characters."
    if any(not letter.isprintable() for letter in code):
        return "A code holds no line breaks or other control characters."
    return ""


@dataclass(frozen=True, slots=True)
class LoginFacts:
    """What is known of a log-in. `alive` and `is_logged_in` are None when nobody could say."""

    state: LoginState
    alive: bool | None
    is_logged_in: bool | None
    now: datetime
    deadline: datetime


def step(facts: LoginFacts) -> LoginState:
    """The state that the facts prove; the same as before when they prove nothing.

    Being logged in counts only once something was done for it: somebody may log in anew.
    """
    was_tried = facts.state is LoginState.CHECKING or facts.alive is False
    if facts.state.is_over:
        return facts.state
    if was_tried and facts.is_logged_in:
        return LoginState.DONE
    if facts.alive is False and facts.is_logged_in is False:
        return LoginState.FAILED
    is_overdue = facts.now >= facts.deadline
    # A deadline further ahead than it can be set comes from a clock that was set back.
    is_odd = facts.deadline - facts.now > OPEN_FOR + budgets.JUMP
    return LoginState.FAILED if is_overdue or is_odd else facts.state

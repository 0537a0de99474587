"""How long an agent is held, and in which words. Pure.

While a profile is held nothing is started with it; at `held_until` it is tried again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from runs.core.states import Trouble

MARGIN = timedelta(minutes=1)
LONGEST = timedelta(days=8)
WORKED = timedelta(minutes=10)  # a run that lasted so long was no try in vain
# A run that is refused so soon after it was started again has not worked in between.
AT_ONCE = timedelta(minutes=3)
# An agent that works for so long is served: its program has given up trying again long before.
PROVES = timedelta(minutes=5)
FOLLOW_UP = (
    "You were interrupted because the service refused your account for a while; it accepts it "
    "again. Look at the state of the worktree, then go on with your task until it is done."
)
EARLIER_WORK = (
    "Work on this issue was begun earlier and interrupted: what it left lies in this worktree, "
    "committed and not. Look at it first (`git status`, `git log`), then go on from there."
)


@dataclass(frozen=True, slots=True)
class _Wait:
    first: timedelta
    most: timedelta


_WAITS: Mapping[Trouble, _Wait] = {
    Trouble.LIMIT: _Wait(timedelta(minutes=5), timedelta(hours=1)),
    Trouble.OVERLOAD: _Wait(timedelta(minutes=1), timedelta(minutes=30)),
    Trouble.LOGIN: _Wait(timedelta(minutes=15), timedelta(hours=6)),
    Trouble.CREDIT: _Wait(timedelta(minutes=15), timedelta(hours=6)),
    Trouble.MODEL: _Wait(timedelta(minutes=30), timedelta(hours=6)),
}
_KNOWN_TRIES = 3
_WORDS = {
    Trouble.LIMIT: "usage limit reached",
    Trouble.OVERLOAD: "service overloaded or unreachable",
    Trouble.LOGIN: "not logged in",
    Trouble.CREDIT: "no credit left",
    Trouble.MODEL: "no access to the model",
}
_WAITING = {
    Trouble.LIMIT: "waiting for {}'s usage limit",
    Trouble.OVERLOAD: "waiting for {}'s service",
    Trouble.LOGIN: "waiting for {} to be logged in",
    Trouble.CREDIT: "waiting for credit of {}",
    Trouble.MODEL: "waiting for another model of {}",
}
_HELP = {
    Trouble.LIMIT: "",
    Trouble.OVERLOAD: "",
    Trouble.LOGIN: "Log in, or correct its key.",
    Trouble.CREDIT: "Add credit, or choose another agent.",
    Trouble.MODEL: "Choose another model on the settings page.",
}


def wait(trouble: Trouble, tries: int) -> timedelta:
    """How long to wait when nobody said how long: twice as long with each try in a row, capped."""
    known = _WAITS[trouble]
    return min(known.first * (1 << min(max(tries - 1, 0), 20)), known.most)


def until(trouble: Trouble, reset: datetime | None, tries: int, now: datetime) -> datetime:
    """When to try again: a minute after a known reset, otherwise after a growing wait.

    A reset that is over or absurdly far away is not known. One that was named again and again and
    did not help is not trusted alone any more.
    """
    growing = now + wait(trouble, tries)
    if reset is None or not now < reset <= now + LONGEST:
        return growing
    known = reset + MARGIN
    return known if tries <= _KNOWN_TRIES else max(known, growing)


def is_held(hold: str, held_until: datetime | None, now: datetime) -> bool:
    """Whether an agent is held still; a time that no wait could have given is over."""
    if not hold or held_until is None:
        return False
    return now < held_until <= now + LONGEST + MARGIN


def words(trouble: Trouble) -> str:
    """The trouble in a few words."""
    return _WORDS.get(trouble, "")


def waiting(trouble: Trouble, agent: str) -> str:
    """What a held run waits for."""
    return _WAITING.get(trouble, "waiting for {}").format(agent or "its agent")


def advice(trouble: Trouble) -> str:
    """What a person can do about it; empty where only time helps."""
    return _HELP.get(trouble, "")


def clock(at: datetime, now: datetime) -> str:
    """A moment for a sentence, with its day unless that is today, in UTC."""
    return f"{at:%H:%M} UTC" if at.date() == now.date() else f"{at:%-d %b %H:%M} UTC"


def refusal(agent: str, trouble: Trouble, at: datetime, now: datetime) -> str:
    """Why nothing starts with an agent, and when it is tried again."""
    text = f"{agent}: {words(trouble)}. It is tried again at {clock(at, now)}."
    return f"{text} {advice(trouble)}".strip()


def told(agent: str, trouble: Trouble, said: str, at: datetime, now: datetime) -> str:
    """How a hold is told: what, until when, what the service said."""
    until_words = f"nothing is started with it until {clock(at, now)}"
    text = f"{agent}: {words(trouble)}; {until_words}"
    help_ = advice(trouble)
    return ". ".join(part.rstrip(".") for part in (text, help_, said) if part) + "."


@dataclass(frozen=True, slots=True)
class Next:
    """A run's next start: the argument list, the words, and whether its agent's session goes on."""

    argv: list[str]
    words: str
    is_same_session: bool = False


def asked_again(argv: Sequence[str], words: str) -> Next | None:
    """The start of a program that is told something in its own session; None where it cannot."""
    going_on = resume_argv(argv)
    return None if going_on is None else Next(going_on, words, is_same_session=True)


def start_of(
    argv: Sequence[str], task: str, session: str, *, was_held: bool = False, follow_up: str = ""
) -> Next:
    """How a run is started next.

    The first time it gets its task. One that was held, or goes on with an earlier run because of a
    `follow_up`, goes on in its own session where the program can, and gets its task again where it
    cannot, with the word that earlier work is there. The follow-up is told with each start, since
    nobody can tell whether an earlier one read it.
    """
    if not was_held and not follow_up:
        return Next(list(argv), task)
    parts = [FOLLOW_UP if was_held else "", follow_up]
    going_on = resume_argv(argv) if session else None
    if going_on is None:
        parts = [EARLIER_WORK, task, follow_up]
    words = "\n\n".join(part for part in parts if part)
    return Next(going_on or list(argv), words, is_same_session=going_on is not None)


def goes_on(argv: Sequence[str], session: str) -> bool:
    """Whether a program started like this can go on in a session of its own."""
    return bool(session) and resume_argv(argv) is not None


_CLAUDE, _CODEX = "claude", "codex"


def resume_argv(argv: Sequence[str], task: str = "{prompt}") -> list[str] | None:
    """The argument list that goes on with `{session}`; None for a program that cannot.

    Claude Code takes the session as a flag in either mode, Codex as a command of `exec`; a
    session's own id is given once only.
    """
    if not argv:
        return None
    program = argv[0].rpartition("/")[2]
    if program == _CLAUDE:
        return [argv[0], "--resume", "{session}", *_without_session(argv[1:])]
    if program == _CODEX and "exec" in argv[1:] and task in argv and "resume" not in argv:
        at = len(argv) - 1 - list(reversed(argv)).index(task)
        return [*argv[:at], "resume", "{session}", *argv[at:]]
    return None


def _without_session(argv: Sequence[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in argv:
        if skip:
            skip = False
        elif word == "--session-id":
            skip = True
        elif not word.startswith("--session-id="):
            kept.append(word)
    return kept

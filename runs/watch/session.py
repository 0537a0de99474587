"""A watch session in words: what is typed, stored and seen of it, and what a step may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum

from runs.validation.specs import UNCHANGED, Switches

POLL_EVERY = timedelta(seconds=60)
VALIDATE_EVERY = 10


class Phase(StrEnum):
    """What a session is doing, as its page says it."""

    WORKING = "working"
    IDLE = "idle"
    PAUSED = "paused"
    WAITING = "waiting for active runs"
    VALIDATING = "validating"
    DRAINING = "draining"
    ENDED = "ended"


class Request(IntEnum):
    """What a person asked for; a later one only ever outranks an earlier one."""

    NONE = 0
    DRAIN = 1
    ABORT = 2
    KILL = 3


class Reason(StrEnum):
    """Why a session ended."""

    QUEUE_EMPTY = "queue empty"
    LIMIT_REACHED = "limit reached"
    VALIDATION_FAILED = "validation failed"
    ISSUES_FAILED = "issues failed"
    POLL_FAILED = "poll failed"
    INTERRUPTED = "interrupted"


class Validation(StrEnum):
    """How the validation that the session asked for stands."""

    NONE = ""
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a session was started with. None: no limit, no validation before the end.

    `switches` turn off or set parts of the project's checks for this session alone. One that the project's switch opened asks nothing while paused and tells no idleness: nobody
    waits for it, and it may stay open for months.
    """

    is_watching: bool = False
    limit: int | None = None
    every: int | None = None
    poll_every: timedelta = POLL_EVERY
    is_auto: bool = False
    switches: Switches = UNCHANGED


@dataclass(frozen=True, slots=True)
class Session:
    """What is stored of a session.

    `unstarted` are issues that it claimed and whose agent could not be started,
    `stopped` its runs that a person stopped.
    `threshold` is the count at which the next validation is due, `validated` the one of the last.
    `ending` is why it is about to end; what was decided first stays. `idle_noted_at` is empty
    while it is not idle.
    """

    terms: Terms
    phase: Phase = Phase.WORKING
    completed: int = 0
    failed: int = 0
    unstarted: int = 0
    stopped: int = 0
    threshold: int | None = None
    validated: int = 0
    poll_failures: int = 0
    next_poll_at: datetime | None = None
    idle_noted_at: datetime | None = None
    ending: Reason | None = None
    code: int | None = None


@dataclass(frozen=True, slots=True)
class Poll:
    """The answer of one ready query: how many may start, None when it failed.

    `blocked` is the number of open issues that are not ready; None when nobody knows. `is_repeat`:
    the tracker was not asked again after a failure, so that one failure is counted once.
    """

    ready: int | None
    blocked: int | None = None
    is_repeat: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What is seen now. `poll` is there only in the step that follows a `Do.POLL`."""

    now: datetime
    active: int = 0
    poll: Poll | None = None
    validation: Validation = Validation.NONE
    request: Request = Request.NONE
    asked_at: datetime | None = None
    is_paused: bool = False


class Do(StrEnum):
    """The one act that a step asks for."""

    WAIT = "wait"
    POLL = "ask the ready queue"
    START = "start runs"
    VALIDATE = "validate"
    CANCEL = "interrupt the active runs"
    KILL = "kill the active runs"
    END = "end"


@dataclass(frozen=True, slots=True)
class Step:
    """The session as it is to be stored, the act, and a notice to tell.

    `most`: how many runs may start at most, None when only the caps bound it.
    """

    session: Session
    do: Do = Do.WAIT
    most: int | None = None
    notice: str = ""


LIMIT, EVERY = "max-issues", "validate-every"


class WrongTerms(ValueError):
    """One of the numbers cannot be used; `field` names it."""

    def __init__(self, field: str) -> None:
        self.field = field
        self.text = f"Error: --{field} must be at least 1"
        super().__init__(self.text)


def read_terms(is_watching: bool, limit: str | None, every: str | None) -> Terms:
    """The terms of a session that a person opens. Raises WrongTerms.

    Nothing typed means no limit, and a validation after every ten issues while it
    watches, at the end alone when it does not.
    """
    default = VALIDATE_EVERY if is_watching else None
    return Terms(is_watching, _number(LIMIT, limit), _number(EVERY, every) or default)


def _number(field: str, text: str | None) -> int | None:
    if text is None or not text.strip():
        return None
    try:
        number = int(text.strip())
    except ValueError:
        raise WrongTerms(field) from None
    if number < 1 or number > MOST:
        raise WrongTerms(field)
    return number


MOST = 1_000_000

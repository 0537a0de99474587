"""What agents of a loop tell: events, one JSON object a line, read as untrusted text. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from labctl.loop_events import ASK as ASK
from labctl.loop_events import MOST_PAYLOAD
from labctl.loop_events import is_topic as is_topic
from runs.core import lenient_json

MOST_EVENTS = 1000
# What waits for turns to come is no longer than a prompt can carry.
MOST_PENDING, MOST_PENDING_CHARACTERS = 200, 40_000
RESUME = "task.resume"
# With which a loop begins where a role takes one of them.
STARTS = ("loop.start", "task.start")
GUIDANCE = "human.guidance"
ABANDONED = "task.abandoned"
NO_WORDS = "It asks for a word of a person."


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that was told. `to` is the role that alone may take it; empty: whoever subscribes."""

    topic: str
    payload: str = ""
    to: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """The events of one turn in their order, and what could not be read.

    `malformed_row` is how many lines in a row could not be read at the end of the batch, after
    those of the turns before; `malformed` how many of this turn. `dropped` came after the most that
    one turn may tell.
    """

    events: tuple[Event, ...] = ()
    malformed: int = 0
    malformed_row: int = 0
    dropped: int = 0


def read(lines: Iterable[str], malformed_row: int = 0, most: int = MOST_EVENTS) -> Batch:
    """The events of a turn's lines; blank ones are no lines. `malformed_row` counts on from before.

    What comes after `most` events is counted and not read: an agent that floods costs no memory.
    """
    events: list[Event] = []
    malformed = dropped = 0
    for line in lines:
        if not line.strip():
            continue
        if len(events) + malformed >= most:
            dropped += 1
            continue
        event = _event(line)
        if event is None:
            malformed += 1
            malformed_row += 1
        else:
            events.append(event)
            malformed_row = 0
    return Batch(tuple(events), malformed, malformed_row, dropped)


def newest(found: Sequence[Event]) -> tuple[Event, ...]:
    """The newest of these events that prompts can carry, in their order."""
    kept: list[Event] = []
    room = MOST_PENDING_CHARACTERS
    for event in reversed(found[-MOST_PENDING:]):
        room -= len(event.topic) + len(event.payload)
        if room < 0 and kept:
            break
        kept.append(event)
    return tuple(reversed(kept))


def question(told: Iterable[Event]) -> str:
    """What these events ask a person, as far as a prompt can carry it; empty when they ask nothing."""
    asked = (event.payload.strip() or NO_WORDS for event in told if event.topic == ASK)
    return "\n".join(asked)[:MOST_PAYLOAD]


def subscribes(patterns: Iterable[str], event: Event) -> bool:
    """Whether one of a role's subscriptions is for an event: its topic, or a pattern like `build.*`."""
    return any(fnmatchcase(event.topic, pattern) for pattern in patterns)


def _event(line: str) -> Event | None:
    """`{"topic": …, "payload": …}`; a payload of another kind is kept as its JSON."""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or not isinstance(told.get("topic"), str):
        return None
    topic, payload = told["topic"].strip(), told.get("payload", "")
    if not is_topic(topic):
        return None
    if payload is None:
        payload = ""
    if not isinstance(payload, str):
        payload = json.dumps(payload, ensure_ascii=False)
    return Event(topic, lenient_json.text(payload)[:MOST_PAYLOAD])

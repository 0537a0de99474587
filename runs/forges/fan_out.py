"""The one door for questions to trackers about many projects: side by side, under one deadline.

Nobody waits for a slow tracker, and a mistake in one adapter keeps no other project from its work.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from concurrent.futures import TimeoutError as Overdue
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db import DatabaseError

from runs.core.ports import Lab
from trackers.base import Ability, RateLimited, Tracker, TrackerError, Unreachable

logger = logging.getLogger(__name__)

DEADLINE_SECONDS = 10.0
HANDS = 8

Value = TypeVar("Value")
Wanted = TypeVar("Wanted")
Root = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Silence:
    """Why a tracker gave no answer; `until` is when it may be asked again, if it said so.

    `is_repeat`: it was not asked anew, so that this is no further failure. `passes`: nobody has to
    do anything about it, as far as is known.
    """

    text: str
    until: datetime | None = None
    is_repeat: bool = False
    passes: bool = False


Answers = dict[Root, Value | Silence]
Question = Callable[[Tracker, Mapping[str, Wanted]], Mapping[str, Value | None]]


def ask_roots(
    lab: Lab, wanted: Mapping[Root, Wanted], question: Question[Wanted, Value]
) -> Answers[Value]:
    """One question about every root, which `wanted` names by kind; a Silence where no answer came.

    Roots of a kind that labsite cannot drive are left out.
    """
    found: Answers[Value] = {}
    for some in stream(lab, wanted, question):
        found |= some
    return found


def stream(
    lab: Lab, wanted: Mapping[Root, Wanted], question: Question[Wanted, Value]
) -> Iterator[Answers[Value]]:
    """The same, as the answers come: local trackers first, all roots of a kind at once.

    Each root of another one is asked for by itself, in a thread: it fails with its own reason and
    is late alone.
    """
    groups: dict[str, dict[str, Wanted]] = defaultdict(dict)
    for (kind, root), one in wanted.items():
        groups[kind][root] = one
    remote: dict[Root, Callable[[], Answers[Value]]] = {}
    for kind, roots in groups.items():
        tracker = lab.tracker_for(kind) if kind else None
        if tracker is None:
            continue
        if Ability.LOCAL in tracker.abilities:
            yield _asked(kind, tracker, roots, question)
            continue
        for root, one in roots.items():
            remote[kind, root] = _later(kind, tracker, {root: one}, question)
    if remote:
        yield from _side_by_side(remote)


def _later(
    kind: str, tracker: Tracker, roots: Mapping[str, Wanted], question: Question[Wanted, Value]
) -> Callable[[], Answers[Value]]:
    return lambda: _asked(kind, tracker, roots, question)


def _side_by_side(
    calls: Mapping[Root, Callable[[], Answers[Value]]],
) -> Iterator[Answers[Value]]:
    pool = ThreadPoolExecutor(min(HANDS, len(calls)), thread_name_prefix="tracker")
    asked: dict[Future[Answers[Value]], Root] = {
        pool.submit(copy_context().run, call): at for at, call in calls.items()
    }
    waiting = set(calls)
    try:
        for future in as_completed(asked, timeout=DEADLINE_SECONDS):
            waiting.discard(asked[future])
            yield future.result()
    except Overdue:
        yield {at: Silence("it gave no answer in time", passes=True) for at in waiting}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _asked(
    kind: str, tracker: Tracker, roots: Mapping[str, Wanted], question: Question[Wanted, Value]
) -> Answers[Value]:
    try:
        answer = question(tracker, roots)
    except TrackerError as error:
        return {(kind, root): _silence(error) for root in roots}
    except DatabaseError:
        raise
    except Exception as error:
        logger.exception("tracker was not asked", extra={"tracker": kind})
        text = f"labsite made a mistake ({type(error).__name__}); it is in the log"
        return {(kind, root): Silence(text) for root in roots}
    return {(kind, root): _value(tracker, root, answer.get(root)) for root in roots}


def _value(tracker: Tracker, root: str, value: Value | None) -> Value | Silence:
    if value is not None:
        return value
    error = tracker.trouble(root)
    return _silence(error) if error is not None else Silence("it could not be read")


def _silence(error: TrackerError) -> Silence:
    until = error.until if isinstance(error, RateLimited) else None
    passes = isinstance(error, Unreachable | RateLimited)
    return Silence(str(error), until, error.is_repeat, passes)

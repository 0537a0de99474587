"""Asks several trackers side by side under one deadline; nobody waits for a slow one."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from concurrent.futures import TimeoutError as Overdue
from typing import TypeVar

from django.db import DatabaseError

from runs.domain.ports import Lab
from trackers.base import Ability, Tracker, TrackerError

logger = logging.getLogger(__name__)

DEADLINE_SECONDS = 10.0

Value = TypeVar("Value")
Wanted = TypeVar("Wanted")
Answers = dict[tuple[str, str], Value | str]


def ask_roots(
    lab: Lab,
    wanted: Mapping[tuple[str, str], Wanted],
    question: Callable[[Tracker, Mapping[str, Wanted]], Mapping[str, Value | None]],
) -> Answers[Value]:
    """One question to each kind of tracker about all its roots; a text where there is no answer.

    `wanted` is named by kind and root. Local trackers are asked in this thread.
    """
    groups: dict[str, dict[str, Wanted]] = defaultdict(dict)
    for (kind, root), one in wanted.items():
        groups[kind][root] = one
    found: Answers[Value] = {}
    remote: dict[str, Callable[[], Mapping[str, Value | None]]] = {}
    for kind, roots in groups.items():
        tracker = lab.tracker_for(kind)
        if tracker is None:
            continue
        if Ability.LOCAL in tracker.abilities:
            _keep(found, kind, roots, lambda t=tracker, r=roots: question(t, r))  # type: ignore[misc]
        else:
            remote[kind] = lambda t=tracker, r=roots: question(t, r)  # type: ignore[misc]
    if remote:
        _ask_remote(found, groups, remote)
    return found


def _ask_remote(
    found: Answers[Value],
    groups: Mapping[str, Mapping[str, object]],
    calls: Mapping[str, Callable[[], Mapping[str, Value | None]]],
) -> None:
    pool = ThreadPoolExecutor(max_workers=len(calls), thread_name_prefix="queue")
    asked: dict[Future[Mapping[str, Value | None]], str] = {
        pool.submit(call): kind for kind, call in calls.items()
    }
    waiting = set(calls)
    try:
        for future in as_completed(asked, timeout=DEADLINE_SECONDS):
            kind = asked[future]
            waiting.discard(kind)
            _keep(found, kind, groups[kind], future.result)
    except Overdue:
        for kind in waiting:
            found |= {(kind, root): "it gave no answer in time" for root in groups[kind]}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _keep(
    found: Answers[Value],
    kind: str,
    roots: Sequence[str] | Mapping[str, object],
    call: Callable[[], Mapping[str, Value | None]],
) -> None:
    try:
        answer = call()
    except TrackerError as error:
        found.update({(kind, root): str(error) for root in roots})
        return
    except DatabaseError:
        raise
    except Exception as error:
        # A mistake in one adapter must not keep other projects from their work (LAB-87).
        logger.exception("tracker was not asked", extra={"tracker": kind})
        text = f"labsite made a mistake ({type(error).__name__}); it is in the log"
        found.update({(kind, root): text for root in roots})
        return
    for root in roots:
        value = answer.get(root)
        found[kind, root] = "it could not be read" if value is None else value

"""Which notices leave the house, in what words, when a failed one is tried again. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol
from urllib.parse import unquote

from runs.core.states import NoticeKind, Outcome

HIDDEN = "[hidden]"
SAME = timedelta(hours=1)
REASON_CHARACTERS = 300
TITLE_CHARACTERS, TEXT_CHARACTERS = 120, 1500
PAUSES = tuple(timedelta(minutes=m) for m in (1, 5, 15, 60, 240))
ENDED = "ended"
_PIECES = re.compile(r"[/:@?&=,#;\s]+")


@dataclass(frozen=True, slots=True)
class Push:
    """One Web Push: the device's endpoint and keys, what it is signed with, and what it says.

    `inside`: an admin named its push service, which may be inside a network.
    """

    endpoint: str
    p256dh: str
    auth: str
    private: str
    subject: str
    text: str
    topic: str = ""
    urgency: str = "high"
    ttl: int = 86400
    inside: bool = False


class Notifier(Protocol):
    """Tells people and programs outside. Every call is bounded; no error holds part of an address."""

    def check(self, url: str) -> str:
        """The name of the service that an address means. Raises UnfitAddress, SeamError."""

    def send(self, url: str, title: str, text: str) -> None:
        """Tell an address. Raises UnfitAddress when it can never work, else SeamError."""

    def push(self, push: Push) -> None:
        """Encrypt it for its device and hand it to the push service.

        Raises DeviceGone when the device takes none any more, UnfitAddress, else SeamError.
        """

    def ping(self, url: str) -> None:
        """Ask for a web address, for whoever counts how long ago that was. Raises SeamError."""


class Delivering(StrEnum):
    """Where one delivery stands. *Sending* belongs to one process until it says how it went.

    *Skipped*: the person had seen it already.
    """

    WAITING = "waiting"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Topic:
    """One kind of notice that a person may ask for, and the words beside its box."""

    key: str
    words: str
    group: str


_NEEDS = "What needs you"
_WATCH = "Watch sessions"
_GROUPS = "Task groups"
_HOUSE = "The machine and its surroundings"
_ENDS = "How runs end"
_KINDS: tuple[tuple[NoticeKind, str, str], ...] = (
    (NoticeKind.RUN_WAITS, "an agent waits for you: permission, question, no next word", _NEEDS),
    (NoticeKind.RUN_ISSUE_CLOSED, "the issue of a run was closed while its agent works", _NEEDS),
    (NoticeKind.AUTO_PAUSED, "automatic runs paused themselves", _NEEDS),
    (NoticeKind.LIMIT_REACHED, "a limit of tokens or money of the day is reached", _NEEDS),
    (NoticeKind.RUN_NEARS_LIMIT, "a run is near a limit of tokens or money", _NEEDS),
    (NoticeKind.WATCH_FAILED, "a watch session failed", _NEEDS),
    (NoticeKind.WORKFLOW_HELD, "a composite workflow waits for a person", _NEEDS),
    (NoticeKind.MONITOR_INVESTIGATE, "a task of a group is stalled: investigate", _NEEDS),
    (NoticeKind.PULL_OPENED, "a pull request waits for you", _NEEDS),
    (NoticeKind.RUN_TROUBLED, "an agent tries again or cannot go on", _NEEDS),
    (
        NoticeKind.AGENT_HELD,
        "an agent's account cannot be used: limit, overload, log-in, credit",
        _NEEDS,
    ),
    (NoticeKind.HOST_SILENT, "a machine that has runs fell silent", _NEEDS),
    (NoticeKind.LOGIN_CHANGED, "an agent was logged in or out", _NEEDS),
    (NoticeKind.VALIDATION_FIXED, "a fix of a validation waits to be merged", _NEEDS),
    (NoticeKind.LOOP_CHECK_IN, "a loop checks in, where its project wants that", _WATCH),
    (NoticeKind.WATCH_OPENED, "a watch session was opened", _WATCH),
    (NoticeKind.WATCH_ENDED, "a watch session ended without a failure", _WATCH),
    (NoticeKind.WATCH_POLL_FAILED, "a watch session could not ask its tracker", _WATCH),
    (NoticeKind.VALIDATION_PASSED, "a validation passed", _WATCH),
    (NoticeKind.VALIDATION_FAILED, "a validation failed", _WATCH),
    (NoticeKind.MONITOR_CHECKPOINT, "a checkpoint of a task group, nothing stalled", _GROUPS),
    (NoticeKind.MONITOR_ENDED, "a monitor of a task group ended", _GROUPS),
    (NoticeKind.PROJECT_WARNED, "a tracker or repository refuses", _HOUSE),
    (NoticeKind.PROJECT_FAILED, "a project could not be cloned", _HOUSE),
    (NoticeKind.DISK_WARNED, "the disk fills up", _HOUSE),
    (NoticeKind.HOST_BACK, "a machine that fell silent is back", _HOUSE),
    (NoticeKind.SESSIONS_LOST, "all sessions of a machine were lost at once", _HOUSE),
    (NoticeKind.CLOCK_SET, "the machine's clock was set", _HOUSE),
)
TOPICS: tuple[Topic, ...] = (
    *(Topic(kind.value, words, group) for kind, words, group in _KINDS),
    *(Topic(f"{ENDED}.{o.value}", f"a run ended: {o.words}", _ENDS) for o in Outcome),
)
# Quiet by default: only what stops the work until somebody comes.
AT_FIRST = (
    NoticeKind.RUN_WAITS.value,
    NoticeKind.AUTO_PAUSED.value,
    NoticeKind.LIMIT_REACHED.value,
    NoticeKind.AGENT_HELD.value,
    NoticeKind.HOST_SILENT.value,
    NoticeKind.WATCH_FAILED.value,
    NoticeKind.DISK_WARNED.value,
)


def topic_of(kind: str, outcome: str) -> str:
    """What a timeline entry is told as; empty for what is never told outside."""
    key = f"{ENDED}.{outcome}" if kind == NoticeKind.RUN_ENDED else kind
    return key if any(topic.key == key for topic in TOPICS) else ""


def is_wanted(topic: str, chosen: Collection[str], since: datetime, at: datetime) -> bool:
    """Whether an address gets it: chosen there, and not from before the address was there."""
    return bool(topic) and topic in chosen and at >= since


def sameness(kind: str, outcome: str, place: str, text: str) -> str:
    """The same for what tells the same thing of the same place, so that it is told once."""
    return hashlib.sha256("\0".join((kind, outcome, place, text)).encode()).hexdigest()


def pause(tries: int, is_final: bool = False) -> timedelta | None:
    """How long to wait after so many failed tries; None when it is given up.

    `is_final`: the address itself cannot work, so trying again is no use.
    """
    return None if is_final or tries > len(PAUSES) else PAUSES[max(0, tries - 1)]


@dataclass(frozen=True, slots=True)
class Letter:
    """What is sent."""

    title: str
    text: str


def letter(place: str, topic: str, text: str, link: str) -> Letter:
    """The words of one notice: where and what on the first line, then why, then where to look."""
    words = next((one.words for one in TOPICS if one.key == topic), "a test")
    title = f"{place}: {words}" if place else f"labsite: {words}"
    body = _plain(text, TEXT_CHARACTERS)
    return Letter(_plain(title, TITLE_CHARACTERS), f"{body}\n{link}" if link else body)


def redacted(text: str, address: str) -> str:
    """A reason that people may read: without any part of the address, on one line, cut.

    Every part counts as secret: of many services the path is the key.
    """
    scheme = address.partition(":")[0]
    pieces = {*_PIECES.split(address), *_PIECES.split(unquote(address))}
    pieces |= {unquote(piece) for piece in pieces}
    pieces -= {scheme}
    for piece in sorted((p for p in pieces if len(p) > 2), key=len, reverse=True):
        text = re.sub(re.escape(piece), HIDDEN, text, flags=re.IGNORECASE)
    return _plain(text, REASON_CHARACTERS)


def _plain(text: str, length: int) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def may_ping(now: datetime, last_at: datetime | None, was_healthy: bool, healthy: bool) -> bool:
    """At most once a minute; what turns from well to ill is told at once.

    A last ping that lies ahead can only come from a clock that was set back.
    """
    if last_at is None or (was_healthy and not healthy):
        return True
    return not timedelta(0) <= now - last_at < timedelta(minutes=1)

"""Small wordings that pages share: durations, ages, the colour of an outcome. static/app.js counts on alike."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from runs.core.states import GOOD, NoticeKind, Outcome

_BAD = {Outcome.DIED, Outcome.TIMED_OUT, Outcome.FAILED, Outcome.REJECTED}
_KIND_TONES = {
    NoticeKind.PROJECT_FAILED: "bad",
    NoticeKind.PROJECT_REMOVED: "warn",
    NoticeKind.PROJECT_WARNED: "warn",
    NoticeKind.RUN_WARNED: "warn",
    NoticeKind.RUN_TROUBLED: "warn",
    NoticeKind.RUN_WAITS: "warn",
    NoticeKind.RUN_ANSWERED: "live",
    NoticeKind.RUN_ISSUE_CLOSED: "warn",
    NoticeKind.RUN_INTERRUPTED: "warn",
    NoticeKind.RUN_GOES_ON: "live",
    NoticeKind.RUN_NEARS_LIMIT: "warn",
    NoticeKind.LIMIT_REACHED: "warn",
    NoticeKind.RUN_HELD: "warn",
    NoticeKind.RUN_RESUMED: "live",
    NoticeKind.AGENT_HELD: "warn",
    NoticeKind.AGENT_HELD_STILL: "warn",
    NoticeKind.AGENT_RELEASED: "live",
    NoticeKind.HOST_SILENT: "bad",
    NoticeKind.HOST_BACK: "live",
    NoticeKind.SESSIONS_LOST: "warn",
    NoticeKind.START_REFUSED: "warn",
    NoticeKind.CLOCK_SET: "warn",
    NoticeKind.PASSKEY_REFUSED: "warn",
    NoticeKind.AUTO_PAUSED: "bad",
    NoticeKind.DISK_WARNED: "warn",
    NoticeKind.DELIVERY_FAILED: "warn",
    NoticeKind.WORK_RESCUED: "good",
    NoticeKind.WORK_RESTORED: "good",
    NoticeKind.SESSION_STARTED: "live",
    NoticeKind.PROJECT_READY: "good",
    NoticeKind.PROJECT_RECOVERED: "good",
    NoticeKind.PULL_OPENED: "good",
    NoticeKind.RUN_STARTED: "live",
    NoticeKind.RUN_ADOPTED: "live",
    NoticeKind.WATCH_OPENED: "live",
    NoticeKind.WORKFLOW_STARTED: "live",
    NoticeKind.WORKFLOW_HELD: "bad",
    NoticeKind.WATCH_POLL_FAILED: "warn",
    NoticeKind.WATCH_FAILED: "bad",
    NoticeKind.TASK_CLAIMED: "live",
    NoticeKind.TASK_COMPLETED: "good",
    NoticeKind.TASK_RELEASED: "warn",
    NoticeKind.TASK_SENT_BACK: "warn",
    NoticeKind.MONITOR_STARTED: "live",
    NoticeKind.MONITOR_CHECKPOINT: "info",
    NoticeKind.MONITOR_INVESTIGATE: "warn",
    NoticeKind.MONITOR_WARNED: "warn",
    NoticeKind.RUN_CHECKING: "live",
    NoticeKind.RUN_REENTERED: "live",
    NoticeKind.GATE_PASSED: "good",
    NoticeKind.GATE_FAILED: "bad",
    NoticeKind.CHECKS_CHANGED: "warn",
    NoticeKind.ISSUE_CLOSED: "good",
    NoticeKind.VALIDATION_PASSED: "good",
    NoticeKind.VALIDATION_FAILED: "bad",
    NoticeKind.VALIDATION_FIXED: "good",
}


def duration(length: timedelta) -> str:
    """A length of time in at most two units, coarser as it grows; never negative."""
    seconds = max(0, int(length.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes and hours < 10 else f"{hours} h"
    days = hours // 24
    return f"{days} day" if days == 1 else f"{days} days"


def took(seconds: float | None) -> str:
    """How long a command took, to a tenth of a second below a minute; empty when that is unknown."""
    if seconds is None:
        return ""
    return f"{seconds:.1f} s" if seconds < 60 else duration(timedelta(seconds=seconds))


def threshold(length: timedelta) -> str:
    """A length that somebody set, as it was set: 20 s, 1.5 min, 90 min."""
    seconds = length.total_seconds()
    return f"{seconds:g} s" if seconds < 60 else f"{round(seconds / 60, 2):g} min"


def iso(when: datetime) -> str:
    """A moment as machines read it, to the second, in UTC."""
    return when.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def clock(when: datetime) -> str:
    """A time of day in UTC; the browser shows it in its own zone."""
    return f"{when.astimezone(UTC):%H:%M:%S} UTC"


def one_line(text: str, length: int) -> str:
    """Text of any length and shape on one line, cut for a row."""
    line = " ".join(str(text).split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def outcome_tone(outcome: str) -> str:
    """The colour class of an outcome; calm for the neutral ones."""
    if outcome in GOOD:
        return "good"
    return "bad" if outcome in _BAD else "calm"


def outcome_words(outcome: str) -> str:
    return Outcome(outcome).words if outcome else ""


_KINDS: Mapping[str, str] = {
    NoticeKind.PERSON_IN: "person logged in",
    NoticeKind.PERSON_OUT: "person logged out",
    NoticeKind.RUN_STARTING: "run requested",
    NoticeKind.RUN_REAPED: "run cleaned up",
    NoticeKind.AUTO_CHANGED: "automatic work changed",
    NoticeKind.AUTO_PAUSED: "automatic work paused",
    NoticeKind.STREAK_RESET: "automatic work resumed",
    NoticeKind.LOGIN_CHANGED: "agent login changed",
}


def kind_words(kind: str) -> str:
    """`run.checking` is for programs; a person reads words."""
    return _KINDS.get(kind) or kind.replace(".", " ").replace("_", " ")


def notice_tone(kind: str, outcome: str = "") -> str:
    """The colour class of a timeline entry."""
    if outcome:
        return outcome_tone(outcome)
    return _KIND_TONES.get(NoticeKind(kind), "calm") if kind in set(NoticeKind) else "calm"

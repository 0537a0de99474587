"""The line of a timeline entry. Entries never change, so each is rendered once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from runs.core.states import OF_HOSTS, NoticeKind
from runs.models import Notice
from runs.web import addresses, words

LINES_KEPT = 8192
TEXT_CHARACTERS = 220
LINED = (NoticeKind.MONITOR_CHECKPOINT, NoticeKind.MONITOR_INVESTIGATE)


@dataclass(frozen=True, slots=True)
class NoticeLine:
    """Everything that the line shows and nothing else, so that equal lines have equal HTML.

    `since` is its age on a page that shows ages; empty where the time of day is shown.
    """

    pk: int
    tone: str
    url: str
    about: str
    outcome: str
    text: str
    by: str
    at: str
    clock: str
    since: str
    times: int = 1
    first: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """How often in a row an entry was told, and when first."""

    times: int = 1
    since: datetime | None = None


def html(
    notice: Notice, now: datetime, *, bare: bool, near: bool = False, row: Row | None = None
) -> SafeString:
    """The line as HTML; `bare` on the page of the run itself, which needs no name and shows times.

    `near` on the page of its watch session, which names the issue alone.
    """
    shown = row or Row(notice.times or 1, notice.since)
    first = words.iso(shown.since) if shown.since is not None and shown.times > 1 else ""
    return _rendered(replace(line(notice, now, bare, near), times=shown.times, first=first))


def line(notice: Notice, now: datetime, bare: bool, near: bool = False) -> NoticeLine:
    """What the line of an entry shows at a moment."""
    url, about = ("", "") if bare else _nearby(notice) if near else _about(notice)
    return NoticeLine(
        pk=notice.pk,
        tone=words.notice_tone(notice.kind, notice.outcome),
        url=url,
        about=about,
        outcome=words.outcome_words(notice.outcome),
        text=words.one_line(_joined(notice), TEXT_CHARACTERS),
        by=notice.by if notice.by not in notice.text else "",
        at=words.iso(notice.at),
        clock=words.clock(notice.at) if bare else "",
        since="" if bare else words.duration(now - notice.at),
    )


def _about(notice: Notice) -> tuple[str, str]:
    """Where the entry leads, and the name of what it is about."""
    if notice.kind in OF_HOSTS:
        return addresses.of("runs:hosts"), "Hosts"
    if notice.project_id is None or notice.project is None:
        return "", ""
    key = f" #{notice.issue_key}" if notice.issue_key else ""
    name = f"{notice.project.name}{key}"
    if notice.run_id is not None:
        return addresses.of("runs:run", notice.run_id), name
    if notice.watch_id is not None:
        return addresses.of("runs:watch-session", notice.project_id, notice.watch_id), name
    if notice.group_id is not None:
        return addresses.of("runs:group", notice.project_id, notice.group_id), name
    return addresses.of("runs:project", notice.project_id), name


def _nearby(notice: Notice) -> tuple[str, str]:
    if notice.run_id is None:
        return "", ""
    return addresses.of("runs:run", notice.run_id), f"#{notice.issue_key}"


def _joined(notice: Notice) -> str:
    """The text; of a checkpoint its lines stay apart, though on one."""
    return " · ".join(notice.text.splitlines()) if notice.kind in LINED else notice.text


@lru_cache(maxsize=LINES_KEPT)
def _rendered(shown: NoticeLine) -> SafeString:
    return render_to_string("timeline/_notice.html", {"line": shown})

"""Template words of the product: Markdown, times that tick, colours of outcomes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from runs import wiring
from runs.forges import tracker_card
from runs.groups import card as group_card
from runs.lifecycle import rows as run_rows
from runs.models import Notice, Project
from runs.overview.board import RunRow
from runs.timeline import notice_rows
from runs.web import code, words
from runs.web import markdown as markdown_text
from trackers.base import Ability

register = template.Library()


@register.filter
def markdown(text: str) -> SafeString:
    """Text that somebody wrote, as clean HTML."""
    return markdown_text.render(text or "")


@register.filter
def visible(text: str) -> SafeString:
    """A name or a line out of a repository; what could deceive the reader is shown by its number."""
    return code.visible(str(text or ""))


@register.filter
def duration(length: timedelta | None) -> str:
    return words.duration(length) if length is not None else ""


@register.filter
def threshold(length: timedelta) -> str:
    """A length that somebody set, exactly."""
    return words.threshold(length)


@register.filter
def tone(outcome: str) -> str:
    """The colour class of an outcome."""
    return words.outcome_tone(outcome)


@register.filter
def outcome_words(outcome: str) -> str:
    return words.outcome_words(outcome)


@register.filter
def monitor_tone(state: str) -> str:
    """The colour class of how a monitor of a task group stands."""
    return group_card.tone(state)


@register.filter
def kind_words(kind: str) -> str:
    """The kind of a timeline entry as a person reads it."""
    return words.kind_words(kind)


@register.filter
def one_line(text: str, length: int = 160) -> str:
    """Text of any length and shape on one line, cut for a row."""
    return words.one_line(text, length)


@register.filter
def can_have_pulls(project: Project) -> bool:
    """Whether its tracker knows pull requests, as far as that can be told."""
    return not tracker_card.lacks(wiring.lab(), project, Ability.PULLS)


@register.simple_tag(takes_context=True)
def notice_line(
    context: template.Context,
    notice: Notice,
    bare: bool = False,
    near: bool = False,
    times: int = 1,
) -> SafeString:
    """The line of a timeline entry; `bare` on the page of its own run, `near` on its session's."""
    return notice_rows.html(notice, _now(context), bare, near, times)


@register.simple_tag(takes_context=True)
def run_row(context: template.Context, row: RunRow) -> SafeString:
    """The row of a run."""
    return run_rows.html(row, _now(context), bool(context.get("can_act")))


@register.simple_tag(takes_context=True)
def ago(context: template.Context, when: datetime | None) -> SafeString | str:
    """The age of a moment, counted on by the browser: "4 min ago"."""
    if when is None:
        return "never"
    now = _now(context)
    text = f"{words.duration(now - when)} ago"
    return format_html('<time datetime="{}" data-ago>{}</time>', words.iso(when), text)


@register.simple_tag(takes_context=True)
def since(context: template.Context, when: datetime | None) -> SafeString | str:
    """The time since a moment, counted on by the browser: "4 min"."""
    if when is None:
        return ""
    text = words.duration(_now(context) - when)
    return format_html('<time datetime="{}" data-since>{}</time>', words.iso(when), text)


@register.simple_tag
def clock(when: datetime | None) -> SafeString | str:
    """A time of day; the browser shows it in its own zone."""
    if when is None:
        return ""
    return format_html(
        '<time datetime="{}" data-clock>{}</time>', words.iso(when), words.clock(when)
    )


@register.simple_tag
def moment(when: datetime | None) -> SafeString | str:
    """A date with its time of day; the browser shows it in its own zone."""
    if when is None:
        return ""
    text = f"{when.astimezone(UTC):%-d %b %Y, %H:%M} UTC"
    return format_html('<time datetime="{}" data-moment>{}</time>', words.iso(when), text)


def _now(context: template.Context) -> datetime:
    now = context.get("now")
    if isinstance(now, datetime):
        return now
    return wiring.lab().now()

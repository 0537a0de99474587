"""Template words of the product: Markdown, times that tick, colours of outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from runs import wiring
from runs.gate_pages import check_words
from runs.groups import card as group_card
from runs.lifecycle import rows as run_rows
from runs.models import Notice, Run
from runs.overview.board import RunRow
from runs.projects import frame as frames
from runs.timeline import notice_rows
from runs.timeline.notice_rows import Row
from runs.validation import command_rules
from runs.web import code, words
from runs.web import markdown as markdown_text

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
def code_words(text: str) -> SafeString:
    """A sentence of ours as `visible` shows it, with what stands in backticks as code."""
    return code.sentence(str(text or ""))


@register.filter
def visible_lines(text: str) -> SafeString:
    """Text of several lines that a program wrote, each as `visible` shows it."""
    return SafeString("\n".join(code.visible(line) for line in str(text or "").splitlines()))


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
def run_state(run: Run) -> str:
    """Where an active run stands: "working", "checking (attempt 2): clean room"."""
    return check_words.state(run)


@register.filter
def closing(run: Run) -> check_words.Closing | None:
    """What becomes of the issue of a run whose gates passed."""
    return check_words.closing(run)


@register.filter
def took(seconds: float | None) -> str:
    """How long something took: 1.5 s, 12 min."""
    return words.took(seconds)


@register.filter
def percent(share: float) -> str:
    """A percentage to two places: 85, 81.25."""
    return f"{round(share, 2):g}"


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
def command_line(argv: Sequence[str]) -> str:
    """An argument list as a person would type it."""
    return command_rules.shown(argv)


@register.inclusion_tag("projects/_frame.html", takes_context=True)
def project_frame_here(context: template.Context) -> dict[str, Any]:
    """Name, state and tabs of the project that the page is below; nothing on other pages."""
    chrome, request = context.get("chrome"), context.get("request")
    frame = frames.of(chrome.board, chrome.project_id) if chrome and request else None
    if frame is None or request is None:
        return {}
    current = frames.current(request)
    tabs = frame.tabs(current)
    shown: dict[Any, Any] = context.flatten()
    return shown | {"frame": frame, "current_tab": current, "project_tabs": tabs}


@register.simple_tag(takes_context=True)
def notice_line(
    context: template.Context,
    notice: Notice,
    bare: bool = False,
    near: bool = False,
    times: int = 1,
    since: datetime | None = None,
) -> SafeString:
    """The line of a timeline entry; `bare` on the page of its own run, `near` on its session's.

    `times`: so often in a row, the first time at `since`.
    """
    now = _now(context)
    return notice_rows.html(notice, now, bare=bare, near=near, row=Row(times, since))


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
def hour(when: datetime | None) -> SafeString | str:
    """A time of day without seconds, such as below a plot; the browser shows it in its own zone."""
    if when is None:
        return ""
    text = f"{when.astimezone(UTC):%H:%M}"
    return format_html('<time datetime="{}" data-hour>{}</time>', words.iso(when), text)


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

"""Markdown that people and agents wrote, as HTML that cannot harm the page."""

from __future__ import annotations

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

LIMIT = 100_000

_TAGS = {"a", "blockquote", "br", "code", "del", "em", "hr", "p", "pre", "s", "strong"}
_TAGS |= {"h1", "h2", "h3", "h4", "h5", "h6", "li", "ol", "ul"}
_TAGS |= {"table", "tbody", "td", "th", "thead", "tr"}
_ATTRIBUTES = {"a": {"href", "title"}, "code": {"class"}, "ol": {"start"}}


def render(text: str) -> SafeString:
    """`text` as clean HTML: raw HTML shows as text, no style, script, image or odd link survives.

    Very long text is cut, and says so.
    """
    cut = text if len(text) <= LIMIT else f"{text[:LIMIT]}\n\n*The rest of this text was left out.*"
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(
        ["table", "strikethrough"]
    )
    parser.disable("image")
    html = nh3.clean(
        parser.render(cut),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
    )
    return mark_safe(html)  # noqa: S308  (cleaned by nh3 in the line above)

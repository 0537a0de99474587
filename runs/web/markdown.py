"""Markdown that people and agents wrote, as HTML that cannot harm the page."""

from __future__ import annotations

import re

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

LIMIT = 100_000
_TASK = re.compile(r"\[([ xX])\](?=\s|$)")

_TAGS = {"a", "blockquote", "br", "code", "del", "em", "hr", "p", "pre", "s", "strong"}
_TAGS |= {"h1", "h2", "h3", "h4", "h5", "h6", "li", "ol", "ul"}
_TAGS |= {"table", "tbody", "td", "th", "thead", "tr"}
_TAGS |= {"input"}
_ATTRIBUTES = {"input": {"type", "checked", "disabled", "aria-label"}}
_ATTRIBUTES |= {"a": {"href", "title"}, "code": {"class"}, "ol": {"start"}}


def render(text: str) -> SafeString:
    """`text` as clean HTML: raw HTML shows as text, no style, script, image or odd link survives.

    Very long text is cut, and says so.
    """
    cut = text if len(text) <= LIMIT else f"{text[:LIMIT]}\n\n*The rest of this text was left out.*"
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(
        ["table", "strikethrough"]
    )
    parser.disable("image")
    parser.core.ruler.after("inline", "tasks", _tasks)
    html = nh3.clean(
        parser.render(cut),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
    )
    return mark_safe(html)  # noqa: S308  (cleaned by nh3 in the line above)


def _tasks(state: StateCore) -> None:
    """`[ ]` and `[x]` at the beginning of a list's entry become boxes that cannot be ticked here."""
    tokens = state.tokens
    for before, paragraph, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_entry = (before.type, paragraph.type) == ("list_item_open", "paragraph_open")
        if not is_entry or inline.type != "inline" or not inline.children:
            continue
        found = _TASK.match(inline.children[0].content)
        if found is None or inline.children[0].type != "text":
            continue
        box = Token("task", "input", 0)
        box.attrs = {"type": "checkbox", "disabled": "", "aria-label": "open"}
        if found[1] != " ":
            box.attrs |= {"checked": "", "aria-label": "done"}
        inline.children[0].content = inline.children[0].content[found.end() :]
        inline.children[:0] = [box]

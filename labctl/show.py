"""Prints answers for agents: plain text, no colours, nothing that a terminal could act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

TYPE_CHECKING = False  # importing `typing` takes as long as Python itself
if TYPE_CHECKING:
    from typing import Any

# Controls, and what turns the reading order round or hides words.
_CODES = (
    *(*range(32), *range(127, 160), 0xAD, 0x061C, 0x180E, 0x200B, 0x200E, 0x200F, 0xFEFF),
    *(*range(0x2028, 0x202F), *range(0x2060, 0x2070), *range(0xFFF9, 0xFFFC)),
    *range(0xE0000, 0xE0080),
)
_HIDDEN = {code: None for code in _CODES if chr(code) not in "\n\t"}


def plain(text: object) -> str:
    """The text without control characters: an issue must not steer the terminal that shows it."""
    return str(text).translate(_HIDDEN)


def line(text: object) -> str:
    """The same on one line."""
    return " ".join(plain(text).split())


def issue(found: Mapping[str, Any]) -> str:
    """One issue with its comments."""
    parts = [
        f"#{line(found['key'])} {line(found['title'])}",
        f"state: {'open' if found['is_open'] else 'closed'}",
        f"labels: {', '.join(map(line, found['labels'])) or 'none'}",
        f"author: {line(found['author']) or 'unknown'}",
        "",
        plain(found["body"]) or "(no description)",
    ]
    for comment in found["comments"]:
        parts += ["", f"--- comment by {line(comment['author'])} ---", plain(comment["body"])]
    if found.get("left_out"):
        parts += ["", f"--- {line(found['left_out'])} ---"]
    return "\n".join(parts)


def issues(found: Sequence[Mapping[str, Any]]) -> str:
    """Open issues, one a line."""
    if not found:
        return "No open issues."
    return "\n".join(_row(one) for one in found)


def pull(found: Mapping[str, Any]) -> str:
    """One pull request."""
    parts = [
        f"Pull request #{found['number']} {line(found['title'])}",
        f"state: {line(found['state'])}",
        f"head: {line(found['head'])}",
        f"base: {line(found['base'])}",
    ]
    if found["url"]:
        parts.append(f"url: {line(found['url'])}")
    parts += ["", plain(found["body"])]
    for comment in found.get("comments", ()):
        parts += ["", f"--- comment by {line(comment['author'])}{_place(comment)} ---"]
        if comment.get("quote"):
            parts.append(f"> {line(comment['quote'])}")
        parts.append(plain(comment["body"]))
    return "\n".join(parts).rstrip()


def delivered(found: Mapping[str, Any]) -> str:
    """What labsite found when an agent said that it was done."""
    if found.get("is_done"):
        return f"labsite sees it: {line(found.get('proven'))}. You are done; stop here."
    return (
        "labsite keeps your word and looks again by itself: git or origin did not answer just now. "
        "You can stop here."
    )


def claimed(found: Mapping[str, Any]) -> str:
    """What labsite answers to a word that it checks."""
    if found.get("is_checking"):
        return line(found.get("text"))
    expects = "\n".join(f"  - {line(one)}" for one in found.get("expects", ()))
    return (
        f"{line(found.get('text'))} It expects:\n{expects}\n"
        "You can stop here. If something does not pass you are told in this session."
    )


def missing(found: Mapping[str, Any]) -> str:
    """What is missing still."""
    lacks = "\n".join(f"  there is {line(one)}" for one in found.get("missing", ()))
    return f"Not done yet:\n{lacks}\nPut that right, then run labctl done again."


def _place(comment: Mapping[str, Any]) -> str:
    if not comment.get("path"):
        return ""
    side = "" if comment.get("side") == "new" else f" ({line(comment.get('side'))})"
    return f" on {line(comment['path'])}:{line(comment.get('line'))}{side}"


def _row(one: Mapping[str, Any]) -> str:
    labels = ", ".join(map(line, one["labels"]))
    return f"#{line(one['key'])}\t{line(one['title'])}" + (f"\t[{labels}]" if labels else "")

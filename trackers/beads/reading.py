"""What `bd` prints, parsed entry by entry: one that is not understood is left out and reported.

Versions of `bd` differ: lists come bare, or in an object under `items` or `data`; one issue comes
as an object or as a list of one; fields come and go. Nothing but the key and the title is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trackers.base import Comment, Issue
from trackers.errors import NotUnderstood

WORDS = 300
UNKNOWN_PRIORITY = 9
_WRAPPERS = ("items", "data", "issues", "results")
_ENDED = frozenset({"closed", "tombstone", "done"})
_TAKEN = frozenset({"in_progress", "hooked"})
_HELD = frozenset({"blocked", "deferred", "pinned"})
_SECRET = re.compile(
    r"(?i)(://)[^/\s@]+@|\b(token|password|passwd|secret|api[_-]?key|authorization)\b(\s*[=:]\s*)\S+"
)
_HIDDEN = dict.fromkeys((*range(32), *range(127, 160)), " ")


@dataclass(frozen=True, slots=True)
class Entry:
    """One issue as `bd` told it. Statuses that are not known count as open."""

    key: str
    title: str
    body: str = ""
    author: str = ""
    status: str = ""
    kind: str = ""
    priority: int = UNKNOWN_PRIORITY
    created: str = ""
    labels: tuple[str, ...] | None = None
    comments: tuple[Comment, ...] | None = None
    blocked_by: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        return self.status not in _ENDED

    @property
    def is_startable(self) -> bool:
        """Work that nobody has taken: older versions list what is in progress as ready too.

        An epic is no work of its own: it is done when its children are.
        """
        return self.is_open and self.status not in _TAKEN and not self.is_epic

    @property
    def is_epic(self) -> bool:
        return self.kind == "epic"

    @property
    def is_free(self) -> bool:
        """Whether it can be claimed: startable, and not set aside."""
        return self.is_startable and self.status not in _HELD

    def issue(self, *, label: str = "", comments: Sequence[Comment] = ()) -> Issue:
        """The issue of this entry; `label` is one that it was asked for by."""
        labels = {*(self.labels or ()), *((label,) if label else ())}
        return Issue(
            key=self.key,
            title=self.title,
            body=self.body,
            author=self.author,
            labels=tuple(sorted(labels)),
            is_open=self.is_open,
            comments=tuple(comments),
        )


@dataclass(slots=True)
class Reading:
    """The issues of an answer, and what could not be understood."""

    entries: list[Entry] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)


def value(out: str) -> Any:
    """The JSON value that was printed, out of its wrapper. Raises NotUnderstood."""
    found = _json(out)
    if isinstance(found, dict):
        for name in _WRAPPERS:
            if isinstance(found.get(name), list | dict) and "id" not in found:
                return found[name]
        if set(found) == {"schema_version"}:
            return []
    return found


def listed(out: str) -> list[Any]:
    """The list that was printed. Raises NotUnderstood."""
    found = value(out)
    if found is None:
        return []  # Go prints an empty list of its own as null
    if not isinstance(found, list):
        raise NotUnderstood(f"bd printed something else than a list: {shown(out)}")
    return found


def read(found: Sequence[Any]) -> Reading:
    """The issues of a list, each read for itself."""
    reading = Reading()
    for number, one in enumerate(found, start=1):
        entry = entry_of(one)
        if entry is None:
            reading.unclear.append(f"entry {number} has no key or no title: {shown(json_of(one))}")
        else:
            reading.entries.append(entry)
    return reading


def entry_of(one: Any) -> Entry | None:
    """One issue, or None when it has no key or no title."""
    if not isinstance(one, Mapping):
        return None
    inner = one.get("issue")
    if isinstance(inner, Mapping) and "id" not in one:
        one = {**inner, **{name: told for name, told in one.items() if name != "issue"}}
    key, title = _text(one, "id", "key"), _text(one, "title")
    if not key or not title:
        return None
    priority = one.get("priority")
    return Entry(
        key=key,
        title=title,
        body=_body(one),
        author=_text(one, "created_by", "author", "owner"),
        status=_text(one, "status").casefold(),
        kind=_text(one, "issue_type", "type").casefold(),
        priority=priority if type(priority) is int else UNKNOWN_PRIORITY,
        created=_text(one, "created_at"),
        labels=_names(one.get("labels"), "label", "name"),
        comments=_comments(one),
        blocked_by=_names(one.get("blocked_by"), "id", "key") or (),
    )


def comments(found: Sequence[Any]) -> tuple[Comment, ...]:
    """The comments of a list, oldest first; what is no comment is left out."""
    rows = [one for one in found if isinstance(one, Mapping)]
    rows.sort(key=lambda one: _text(one, "created_at"))
    told = [(_text(one, "author", "created_by"), _text(one, "text", "body")) for one in rows]
    return tuple(Comment(author, body) for author, body in told if body)


def labels(found: Sequence[Any]) -> frozenset[str]:
    """Label names out of a list of texts or of objects."""
    return frozenset(_names(found, "label", "name") or ())


def shown(text: str) -> str:
    """What a program said, for a page or a log: one short line without secrets."""
    line = " ".join(text.translate(_HIDDEN).split())
    line = _SECRET.sub(
        lambda m: f"{m[1] or ''}{m[2] or ''}{m[3] or ''}***{'@' if m[1] else ''}", line
    )
    return line if len(line) <= WORDS else f"{line[: WORDS - 1]}…"


def json_of(one: Any) -> str:
    """A value as JSON again, for showing it."""
    return json.dumps(one, ensure_ascii=False)[: 2 * WORDS]


def _json(out: str) -> Any:
    """JSON, also when lines for people stand before it."""
    try:
        return json.loads(out)
    except (ValueError, RecursionError):
        pass
    for found in re.finditer(r"^[\[{]", out, re.MULTILINE):
        try:
            return json.loads(out[found.start() :])
        except (ValueError, RecursionError):
            continue
    raise NotUnderstood(f"bd printed something that is not JSON: {shown(out) or 'nothing'}")


def _text(one: Mapping[Any, Any], *names: str) -> str:
    for name in names:
        told = one.get(name)
        if isinstance(told, str) and told:
            return told
    return ""


def _body(one: Mapping[Any, Any]) -> str:
    """The description, and what bd keeps in fields of their own."""
    parts = [_text(one, "description", "body")]
    for name, head in (
        ("design", "Design"),
        ("acceptance_criteria", "Acceptance criteria"),
        ("notes", "Notes"),
    ):
        if told := _text(one, name):
            parts.append(f"## {head}\n\n{told}")
    return "\n\n".join(part for part in parts if part)


def _names(found: Any, *fields: str) -> tuple[str, ...] | None:
    if not isinstance(found, list):
        return None
    told = [_text(one, *fields) if isinstance(one, Mapping) else one for one in found]
    return tuple(one for one in told if isinstance(one, str) and one)


def _comments(one: Mapping[Any, Any]) -> tuple[Comment, ...] | None:
    """The comments that came with an issue; None when newer versions only counted them."""
    found = one.get("comments")
    if not isinstance(found, list) or one.get("comments_omitted"):
        return None
    return comments(found)

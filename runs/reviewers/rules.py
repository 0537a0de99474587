"""What reviewers answer, which of it counts, and what follows from their votes. Pure.

Everything in an answer is text of somebody who read untrusted text: it is checked, bounded and
cleaned, and nothing in it but priorities decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from runs.core import writing
from runs.core.states import Gate
from runs.gates.rules import Decision, Unreviewed
from trackers import plain

MOST_FINDINGS = 100
FURTHEST = 10**9 - 1  # no file has a line beyond it
PATH_CHARACTERS, TITLE_CHARACTERS, BODY_CHARACTERS = 400, 200, 2000
REASON_CHARACTERS, REASONS_CHARACTERS = 800, 4000
BLOCKING = 1  # P0 and P1 fail a review
NO_FILE = "does not match the code: there is no such file"
NOT_MATCHED = f"{NO_FILE}; not matched, so it counts"
NO_LINE = "does not match the code: the file has no such line"
NONE_AVAILABLE = "no reviewer available"
QUOTED = (
    "its answer stands word for word in the work that it reviews, so it has to name this review"
)

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["findings"],
    "properties": {
        "findings": {
            "type": "array",
            "description": "What is wrong with the commit; empty when nothing is.",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["priority", "path", "line", "title", "body"],
                "properties": {
                    "priority": {
                        "type": "integer",
                        "enum": [0, 1, 2, 3],
                        "description": "0 and 1 have to be mended, 2 and 3 need not be.",
                    },
                    "path": {
                        "type": "string",
                        "description": "Relative to the repository; empty for the whole commit.",
                    },
                    "line": {
                        "type": ["integer", "null"],
                        "description": "A line of the new file, or null.",
                    },
                    "title": {"type": "string"},
                    "body": {"type": "string"},
                },
            },
        }
    },
}
_NAMES = frozenset({"priority", "path", "line", "title", "body"})
# `./`, `/` and the like in front of a path, and `:12`, `:12:3`, `:12-14` or `#L12` behind it.
_BEFORE = re.compile(r"^(?:\.?/)+")
_LINE_AFTER = re.compile(r"(?::|#L)(\d{1,9})(?:[:-]L?\d{1,9})*$")
_FENCE_BEGINS = re.compile(r"```(?:json)?[ \t]*")
_FENCE_ENDS = re.compile(r"```[ \t]*")


class ReviewState(StrEnum):
    """How one reviewer's review stands.

    *Unavailable*: it could not be asked, for a reason that the work has no part in. *Error*: it was
    asked and gave no answer. People read both as *not reviewed*, with the reason.
    """

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"
    ERROR = "error"


class Unreadable(ValueError):
    """What a reviewer printed is no answer; the text says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `note` says what in it does not match the code; `is_astray`: not even its file.

    An astray one counts as any other: a path that was misspelt must not hide what was found.
    """

    priority: int
    path: str
    line: int | None
    title: str
    body: str
    note: str = ""

    @property
    def is_astray(self) -> bool:
        return self.note.startswith(NO_FILE)

    @property
    def is_blocking(self) -> bool:
        """Whether it keeps the commit from being accepted."""
        return self.priority <= BLOCKING

    @property
    def place(self) -> str:
        """Where it is, for a sentence; empty for one about the whole commit."""
        return self.path if self.line is None or not self.path else f"{self.path}:{self.line}"

    def to_json(self) -> dict[str, Any]:
        """As it is stored with its review."""
        return asdict(self)


def finding(stored: Mapping[str, Any]) -> Finding:
    """A stored finding."""
    kept = {name: stored[name] for name in ("priority", "path", "line", "title", "body")}
    return Finding(**kept, note=str(stored.get("note") or ""))


@dataclass(frozen=True, slots=True)
class Vote:
    """How one reviewer's review ended.

    `reason`: why it could not be asked or gave no answer; of one that answered, what of the work
    was not put before it.

    `until`: when one that is away can be asked; None where nobody knows.
    """

    reviewer: str
    state: ReviewState
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    until: datetime | None = None


def read(text: str, review: str) -> tuple[Finding, ...]:
    """Return the findings of an answer: one JSON object and nothing else, or the last fenced one.

    A fenced object counts only if it names the `review` that was asked for: what surrounds it may
    be a quotation of the very text under review, whose author cannot know that. One that stands
    alone need not, and must not name another one. Raises Unreadable.
    """
    found = _object(text.strip())
    if found is not None:
        if found.get("review", review) != review:
            raise Unreadable("its answer names another review")
        return checked(found)
    fenced = [_object(one.strip()) for one in _fenced(text)]
    named = [one for one in fenced if one is not None and one.get("review") == review]
    if named:
        return checked(named[-1])
    if not text.strip():
        raise Unreadable("it printed nothing")
    raise Unreadable("it printed text instead of one JSON object with findings")


def find_unnamed(text: str, review: str) -> str:
    """Return the object that is the whole of an answer if it does not name its review, else ""."""
    found = _object(text.strip())
    return "" if found is None or found.get("review") == review else text.strip()


def is_quoted(answer: str, text: str) -> bool:
    """Return whether an answer stands in a text that others wrote, however its lines are broken."""
    return "".join(answer.split()) in "".join(text.split())


def _fenced(text: str) -> Iterator[str]:
    """What stands in fences that are closed, each line looked at once."""
    inside: list[str] | None = None
    for line in text.split("\n"):
        if inside is None:
            inside = [] if _FENCE_BEGINS.fullmatch(line) else None
        elif _FENCE_ENDS.fullmatch(line):
            yield "\n".join(inside)
            inside = None
        else:
            inside.append(line)


def checked(found: object) -> tuple[Finding, ...]:
    """The findings of an object that was answered, most urgent first. Raises Unreadable.

    Of a finding that is not as the schema says nothing is guessed: then there is no answer. What
    else the object holds, such as a verdict, means nothing.
    """
    rows = found.get("findings") if isinstance(found, dict) else None
    if not isinstance(rows, list):
        raise Unreadable("its JSON has no list of findings")
    read_ones = [_finding(row, number) for number, row in enumerate(rows, start=1)]
    return tuple(sorted(read_ones, key=lambda one: one.priority)[:MOST_FINDINGS])


def _finding(row: object, number: int) -> Finding:
    if not isinstance(row, dict) or not row.keys() >= _NAMES - {"line"}:
        raise Unreadable(f"finding {number} lacks priority, path, title or body")
    priority, line = row["priority"], row.get("line")
    if type(priority) is not int or not 0 <= priority <= 3:
        raise Unreadable(f"finding {number} has no priority from 0 to 3")
    if line is not None and type(line) is not int:
        raise Unreadable(f"finding {number} has a line that is no number")
    if not all(isinstance(row[name], str) for name in ("path", "title", "body")):
        raise Unreadable(f"finding {number} has a path, title or body that is no text")
    return Finding(
        priority,
        _clean_line(row["path"], PATH_CHARACTERS),
        line if line is not None and abs(line) <= FURTHEST else None,
        _clean_line(row["title"], TITLE_CHARACTERS),
        _clean_text(row["body"], BODY_CHARACTERS),
    )


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _clean_line(text: str, limit: int) -> str:
    return writing.one_line(writing.clean(text), limit)


def _clean_text(text: str, limit: int) -> str:
    kept = plain.text(writing.clean(text)).strip()
    return kept if len(kept) <= limit else f"{kept[: limit - 1]}…"


def spellings(path: str, root: str) -> tuple[str, ...]:
    """The paths in the repository that a reviewer may mean, the likeliest first.

    Some write where their copy lies, what stands in a diff, a slash before it or a line after it.
    A path that leads out is none.
    """
    inside = _bare(path).removeprefix(f"{root.rstrip('/')}/")
    found = []
    for one in (inside, _LINE_AFTER.sub("", inside)):
        bare = _BEFORE.sub("", one).rstrip("/")
        found += [bare, bare[2:] if bare.startswith(("a/", "b/")) else ""]
    return tuple(dict.fromkeys(one for one in found if one and ".." not in one.split("/")))


@dataclass(frozen=True, slots=True)
class Code:
    """What is known of the files that findings name: their lines, where they could be counted.

    A file is there if it is a name in `lines`, a folder if it is in `folders`. `changed` are the
    files of the diff, those that it removes included.
    """

    lines: Mapping[str, int | None]
    changed: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()

    def named(self, names: Sequence[str]) -> str | None:
        """The file or folder that is meant by one of these names; letter case decides last."""
        known = self.changed | self.lines.keys() | self.folders
        for name in names:
            if name in known or any(one.startswith(f"{name}/") for one in self.changed):
                return name
        for name in names:
            alike = [one for one in known if one.casefold() == name.casefold()]
            if len(alike) == 1:
                return alike[0]
        return None


def matched(findings: Sequence[Finding], code: Code, root: str) -> tuple[Finding, ...]:
    """The findings, held against the code.

    One on a file that is nowhere is marked and counts as it would have: better a wrong no than a
    wrong yes. A line that is not there is taken off, since reviewers miscount.
    """
    return tuple(_matched(one, code, root) for one in findings)


def _matched(one: Finding, code: Code, root: str) -> Finding:
    if not one.path:
        return replace(one, line=None)
    path = code.named(spellings(one.path, root))
    if path is None:
        return replace(one, note=NOT_MATCHED if one.is_blocking else NO_FILE)
    line = _line_in(one.path, path) if one.line is None else one.line
    last = code.lines.get(path)
    is_beyond = line is not None and (
        line < 1 or path not in code.lines or (last is not None and line > last)
    )
    if is_beyond:
        return replace(one, path=path, line=None, note=f"{NO_LINE} ({line})")
    return replace(one, path=path, line=line)


def _line_in(said: str, path: str) -> int | None:
    """The line that stands behind a path, if any; a file may have such a name itself."""
    bare = _bare(said)
    found = None if bare.endswith(path) else _LINE_AFTER.search(bare)
    return int(found[1]) if found is not None else None


def _bare(path: str) -> str:
    return path.strip().strip("`'\"")


def state_of(findings: Sequence[Finding]) -> ReviewState:
    """What an answer means: priorities are believed, and nothing else."""
    return ReviewState.FAILED if any(one.is_blocking for one in findings) else ReviewState.PASSED


def decide(
    votes: Sequence[Vote], *, skips_without_reviewers: bool, out_of_time: str = ""
) -> Decision:
    """The decision of the gate: all who could be asked have to pass.

    Who could not be asked has no vote. Who was asked and gave no answer has not agreed, and has
    not turned the work down either: no agent can mend that. `out_of_time`: why no review of this
    run would be asked again, so that mending would not help; empty while one would.
    """
    absent = [one for one in votes if one.state is ReviewState.UNAVAILABLE]
    if len(absent) == len(votes):
        return _without(absent, is_skipped=skips_without_reviewers)
    silent = [_silence(one) for one in votes if one.state is ReviewState.ERROR]
    blocking = [_reason(vote, one) for vote, one in _blocking(votes)]
    if blocking and out_of_time:
        said = [*blocking, *silent, out_of_time]
        return Decision(Gate.REVIEW, False, bounded(said), is_retryable=False)
    if blocking:
        return Decision(Gate.REVIEW, False, bounded([*blocking, *silent]))
    if silent:
        return _not_reviewed(silent, is_skipped=False)
    notes = [f"{one.reviewer} was not available: {one.reason}" for one in absent]
    answered = [one for one in votes if one.state is ReviewState.PASSED]
    partial = [f"{one.reviewer}: {one.reason}" for one in answered if one.reason]
    is_partial = len(partial) == len(answered)
    unreviewed = Unreviewed.PART if is_partial else Unreviewed.NOTHING
    return Decision(Gate.REVIEW, True, bounded([*partial, *notes]), unreviewed=unreviewed)


def is_partial(vote: Vote) -> bool:
    """Return whether a reviewer answered without having been given all of the work."""
    return vote.state in (ReviewState.PASSED, ReviewState.FAILED) and bool(vote.reason)


def wait_until(
    votes: Sequence[Vote], latest: datetime, *, skips_without_reviewers: bool
) -> datetime | None:
    """When to ask again because all are away and one will be back by `latest`; None: decide now.

    Who would only be one more voice is not waited for, nor anybody where a review may be missing.
    """
    if skips_without_reviewers or any(one.state is not ReviewState.UNAVAILABLE for one in votes):
        return None
    first = min((one.until for one in votes if one.until is not None), default=None)
    return None if first is None or first > latest else first


def _without(absent: Sequence[Vote], *, is_skipped: bool) -> Decision:
    """None is available, or there is none at all."""
    why = "; ".join(f"{one.reviewer}: {one.reason}" for one in absent)
    text = f"{NONE_AVAILABLE} ({why})" if why else f"{NONE_AVAILABLE}: none is set up"
    return _not_reviewed([text], is_skipped=is_skipped)


def _not_reviewed(reasons: Sequence[str], *, is_skipped: bool) -> Decision:
    """Nobody agreed and nobody objected: no agent can mend that."""
    return Decision(
        Gate.REVIEW,
        passed=is_skipped,
        reasons=bounded(reasons),
        is_retryable=is_skipped,
        is_skipped=is_skipped,
        unreviewed=Unreviewed.ALL,
    )


def _blocking(votes: Sequence[Vote]) -> list[tuple[Vote, Finding]]:
    """What has to be mended, the most urgent first, whoever found it."""
    found = [
        (vote, one)
        for vote in votes
        if vote.state is ReviewState.FAILED
        for one in vote.findings
        if one.is_blocking
    ]
    return sorted(found, key=lambda pair: pair[1].priority)


def _reason(vote: Vote, one: Finding) -> str:
    where = f" {one.place}" if one.place else ""
    said = f"{one.title} - {one.body}" if one.body else one.title
    note = f" (the path {NOT_MATCHED})" if one.is_astray else ""
    text = f"{vote.reviewer}: P{one.priority}{where}{note} {said}"
    return writing.one_line(text, REASON_CHARACTERS)


def _silence(vote: Vote) -> str:
    return f"{vote.reviewer} gave no answer: {vote.reason}"


def bounded(reasons: Sequence[str]) -> tuple[str, ...]:
    """Reasons that fit into one message to an agent; how many more there are is said."""
    kept: list[str] = []
    room = REASONS_CHARACTERS - 40  # for how many more there are
    for text in (writing.one_line(one, REASON_CHARACTERS) for one in reasons):
        room -= len(text) + 1
        if room < 0:
            break
        kept.append(text)
    left = len(reasons) - len(kept)
    return (*kept, f"and {left} more") if left else tuple(kept)


def low(votes: Sequence[Vote]) -> Iterator[tuple[str, Finding]]:
    """The findings that fail nothing and are about the code, with who found them."""
    for vote in votes:
        for one in vote.findings:
            if one.priority > BLOCKING and not one.is_astray:
                yield vote.reviewer, one

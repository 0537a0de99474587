"""What an agent's own records tell of turns, tokens and context, read on from the last look. Pure.

A record only grows, until its program rewrites it: then it is read anew, and what was counted is
not counted again. What was in it before the run, of an earlier run in the same session, is not the
run's own. Everything is the agent's word: it explains and proves nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from runs.core import lenient_json
from runs.core.lenient_json import LINE_LIMIT, MOST, Entry
from runs.transcript import claude_lines, token_usage
from runs.transcript.record_rules import Form, OwnRecord
from runs.transcript.token_usage import NOTHING, Spent, Tokens

MARKED = 64  # bytes before the place by which it is known again
MOST_PLACES = 256
NONE = Tokens()
SYNTHETIC = "<synthetic>"  # the model of a message that Claude Code wrote itself


@dataclass(frozen=True, slots=True)
class Place:
    """How far one record was read, in bytes. `skips`: it is inside a line that is too long.

    `mark` tells the bytes before it. What was told at `after` or before is not counted; it is zero
    once something later was seen, since a clock may be set. `last`: the newest time that was seen.
    `before`: what a thread of Codex had used before the run. `is_again`: the record was rewritten.
    """

    read: int = 0
    skips: bool = False
    mark: str = ""
    after: float = 0.0
    last: float = 0.0
    before: Tokens = NONE
    is_again: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """What the records of a run told so far. `message`: the last one of the main agent.

    `context`: how many tokens that one was given. `window`: how many its model takes at most.
    """

    spent: Spent = NOTHING
    turns: int = 0
    message: str = ""
    model: str = ""
    context: int | None = None
    window: int | None = None
    places: tuple[tuple[str, Place], ...] = ()

    @property
    def is_told(self) -> bool:
        """Whether anything was told at all."""
        return self.spent != NOTHING

    def may_read(self, record: OwnRecord) -> bool:
        """Whether its place can be kept; what nobody keeps would be counted twice."""
        known = dict(self.places)
        return record.name in known or (len(known) < MOST_PLACES and not record.is_printed)

    def place(self, record: OwnRecord, since: float) -> Place:
        """Where to go on; a record that was not seen yet begins after what is counted already."""
        known = dict(self.places)
        if record.name in known:
            return known[record.name]
        # A session that goes on in another file may take its messages along. Those of an agent
        # that it started come while it goes on itself.
        seen = () if record.agent else (one.last for name, one in self.places if "." not in name)
        return Place(after=max(since, *seen, 0.0))


def start(place: Place) -> int:
    """From which byte to read, so that the place can be known again."""
    return max(0, place.read - MARKED)


def is_same(place: Place, data: bytes, size: int) -> bool:
    """Whether a record is still the one that was read, by what stands before the place."""
    if size < place.read:
        return False
    return not place.mark or place.mark == mark_of(data[: place.read - start(place)])


def rewritten(place: Place) -> Place:
    """Where to go on in a record that became another one: at its start, after what was counted."""
    after = max(place.after, place.last)
    return Place(after=after, last=place.last, before=place.before, is_again=True)


def read(usage: Usage, record: OwnRecord, place: Place, data: bytes) -> Usage:
    """Go on with the bytes from `start(place)` on; never raises, whatever they are.

    A line that is not complete yet is left for the next call.
    """
    known = place.read - start(place)
    *lines, rest = data[known:].split(b"\n")
    skips = place.skips
    for line in lines:
        if not skips:
            usage, place = _line(usage, record, place, line)
        skips = False
    used = len(data) - known
    if skips or len(rest) > LINE_LIMIT:
        skips = True
    else:
        used -= len(rest)
    end = known + used
    mark = mark_of(data[max(0, end - MARKED) : end])
    place = replace(place, read=place.read + used, skips=skips, mark=mark)
    return replace(usage, places=tuple({**dict(usage.places), record.name: place}.items()))


def _line(usage: Usage, record: OwnRecord, place: Place, line: bytes) -> tuple[Usage, Place]:
    tell, words = _FORMS.get(record.form, (None, ()))
    # A record is long, and few of its lines tell a number.
    if tell is None or not any(word in line for word in words):
        return usage, place
    entry = lenient_json.entry(line)
    if entry is None:
        return usage, place
    at = _time(entry)
    is_ours = not place.after or at is None or at > place.after
    if at is not None:
        place = replace(place, last=max(place.last, at), after=0.0 if is_ours else place.after)
    return tell(usage, record, place, entry, is_ours)


def _claude(
    usage: Usage, record: OwnRecord, place: Place, entry: Entry, is_ours: bool
) -> tuple[Usage, Place]:
    message = lenient_json.word(entry, "message", "id")
    tokens = claude_lines.tokens_of(lenient_json.at(entry, "message", "usage"))
    model = lenient_json.line(entry, "message", "model", limit=100)
    is_message = entry.get("type") == "assistant" and message and model != SYNTHETIC
    if not is_message or tokens is None or not is_ours:
        return usage, place
    usage = replace(usage, spent=token_usage.told(usage.spent, message, tokens))
    if record.agent or entry.get("isSidechain") is True:
        return usage, place
    turns = usage.turns + (message != usage.message)
    usage = replace(usage, turns=turns, message=message, context=tokens.into)
    return replace(usage, model=model or usage.model), place


def _codex(
    usage: Usage, record: OwnRecord, place: Place, entry: Entry, is_ours: bool
) -> tuple[Usage, Place]:
    told = lenient_json.at(entry, "payload")
    if entry.get("type") == "turn_context":
        model = lenient_json.line(told, "model", limit=100)
        return replace(usage, model=model or usage.model), place
    if entry.get("type") != "event_msg":
        return usage, place
    kind = lenient_json.at(told, "type")
    if kind in ("task_started", "turn_started") and is_ours and not record.agent:
        return replace(usage, turns=usage.turns + 1), place
    if kind == "token_count":
        return _thread(usage, record, place, lenient_json.at(told, "info"), is_ours)
    return usage, place


def _thread(
    usage: Usage, record: OwnRecord, place: Place, info: Any, is_ours: bool
) -> tuple[Usage, Place]:
    """Codex tells the sum of a whole thread each time, again and again."""
    total = codex_tokens(lenient_json.at(info, "total_token_usage"))
    if total is None:
        return usage, place
    if not is_ours:
        return usage, place if place.is_again else replace(place, before=total)
    name = f"thread:{record.session}"
    known = dict(usage.spent.listed).get(name, Tokens())
    spent = token_usage.told(usage.spent, name, _less(total, place.before).at_least(known))
    usage = replace(usage, spent=spent)
    last = codex_tokens(lenient_json.at(info, "last_token_usage"))
    window = lenient_json.count(info, "model_context_window")
    if last is not None:
        usage = replace(usage, context=last.into)
    return replace(usage, window=window or usage.window), place


def codex_tokens(told: object) -> Tokens | None:
    """What a `usage` of Codex says; it counts what came from its cache among what went in."""
    into, out = lenient_json.count(told, "input_tokens"), lenient_json.count(told, "output_tokens")
    if into is None and out is None:
        return None
    return Tokens(into or 0, lenient_json.count(told, "cached_input_tokens") or 0, out or 0)


def _less(one: Tokens, other: Tokens) -> Tokens:
    return Tokens(
        max(0, one.into - other.into),
        max(0, one.cached - other.cached),
        max(0, one.out - other.out),
    )


def _time(entry: Entry) -> float | None:
    """When a line was written, in seconds since 1970; None where it does not say."""
    said = entry.get("timestamp")
    try:
        return datetime.fromisoformat(said).timestamp() if isinstance(said, str) else None
    except (ArithmeticError, OSError, ValueError):
        return None


def mark_of(data: bytes) -> str:
    """What tells the bytes before a place."""
    return hashlib.sha256(data).hexdigest()[:16] if data else ""


def to_json(usage: Usage) -> dict[str, Any]:
    """As a column keeps it; empty when nothing was read."""
    if usage == Usage():
        return {}
    places = [
        [name, p.read, p.skips, p.mark, p.after, p.last, _listed(p.before), p.is_again]
        for name, p in usage.places
    ]
    told = [usage.turns, usage.message, usage.model, usage.context, usage.window]
    return {"spent": token_usage.to_json(usage.spent), "told": told, "places": places}


def from_json(stored: Any) -> Usage:
    """The same back; what cannot be read counts as nothing."""
    try:
        turns, message, model, context, window = stored["told"]
        places = tuple(
            (str(n), Place(int(r), bool(s), str(m), float(a), float(t), Tokens(*b), bool(g)))
            for n, r, s, m, a, t, b, g in stored["places"]
        )
        spent = token_usage.from_json(stored["spent"]) if stored["spent"] else NOTHING
        counts = (_count(context), _count(window))
        return Usage(spent, int(turns), str(message), str(model), *counts, places)
    except (KeyError, TypeError, ValueError):
        return Usage()


def _count(value: Any) -> int | None:
    return None if value is None else min(max(0, int(value)), MOST)


def _listed(tokens: Tokens) -> list[int]:
    return [tokens.into, tokens.cached, tokens.out]


_Tell = Callable[[Usage, OwnRecord, Place, Entry, bool], tuple[Usage, Place]]
# How a line is read, and what has to stand in it.
_FORMS: Mapping[str, tuple[_Tell, Sequence[bytes]]] = {
    Form.CLAUDE: (_claude, (b'"usage"',)),
    Form.CODEX: (_codex, (b'"token_count"', b"_started", b'"turn_context"')),
}

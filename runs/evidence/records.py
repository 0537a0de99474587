"""Reads what an agent's own records show since the attempt before: pieces of files, never the whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from runs.core.ports import Lab
from runs.evidence.shown_commands import LINE_BYTES, Marker, Reader, Shown
from runs.models import Run
from runs.transcript import own_record, usage_rules
from runs.transcript.record_rules import OwnRecord
from runs.transcript.usage_rules import Place

PIECE = 4 * 1024 * 1024
MOST_BYTES = 256 * 1024 * 1024  # of all records; of longer ones the end is read
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the records show, and where they end. `written_at`: when one was last added to."""

    shown: tuple[Shown, ...] = ()
    marker: Marker | None = None
    places: Mapping[str, Place] = field(default_factory=dict)
    path: str = ""
    has_record: bool = False
    written_at: datetime | None = None


def read(
    lab: Lab,
    run: Run,
    begun: Mapping[str, Place],
    words: tuple[str, ...] | None,
    goes_on: Callable[[], None],
) -> Seen:
    """What every record of a run shows after these places, of commands that hold one of the words.

    Of a record that has no place yet only what was written since the run began counts, or since
    the attempt before: a program that goes on in another file takes old lines along. `goes_on`
    raises to have it end.
    """
    records = own_record.find(lab, run)
    began = [at.timestamp() for at in (run.requested_at, run.started_at) if at is not None]
    mains = [one.last for name, one in begun.items() if "." not in name]
    since = max([min(began, default=0.0), *mains])
    shown: list[tuple[float, Shown]] = []
    marks: list[tuple[float, Marker]] = []
    places, left, written = dict(begun), MOST_BYTES, []
    for record in records:
        fresh = Place(after=0.0 if record.is_printed else since)
        place = begun.get(record.name, fresh)
        reader = Reader(record.form, not record.agent, place.after, place.last, words)
        one = _Look(lab, record, place, reader, goes_on)
        left -= one.read(max(PIECE, left))
        places[record.name] = one.place
        shown += one.reader.ended()
        if one.reader.marker is not None:
            marks.append((one.reader.marked_at, one.reader.marker))
        written += [one.written_at] if one.written_at is not None else []
    shown.sort(key=lambda pair: pair[0])
    marks.sort(key=lambda pair: pair[0])
    main = [one for one in records if not one.agent]
    return Seen(
        shown=tuple(one for _, one in shown),
        marker=marks[-1][1] if marks else None,
        places=places,
        path=os.path.join(main[-1].base, *main[-1].path) if main else "",  # noqa: PTH118
        has_record=bool(records),
        written_at=max(written, default=None),
    )


class _Look:
    """One reading of one record from a place to its end."""

    def __init__(
        self,
        lab: Lab,
        record: OwnRecord,
        place: Place,
        reader: Reader,
        goes_on: Callable[[], None],
    ) -> None:
        self.place, self.reader = place, reader
        self.written_at: datetime | None = None
        self._records, self._record, self._goes_on = lab.records, record, goes_on

    def read(self, limit: int) -> int:
        """Read on to the end, at most so much of it; how many bytes that were."""
        found = self._records.read(self._record, usage_rules.start(self.place), PIECE)
        if found is None:
            return 0
        self.written_at = found.written_at
        if not usage_rules.is_same(self.place, found.data, found.size):
            self._rewritten()
        at = begin = max(self.place.read, found.size - limit)
        is_cut, rest = at > self.place.read, b""
        while (piece := self._records.read(self._record, at, PIECE)) is not None and piece.data:
            at += len(piece.data)
            *lines, rest = (rest + piece.data).split(b"\n")
            for line in lines:
                if not is_cut:
                    self.reader.read(line)
                is_cut = False
            if len(rest) > LINE_BYTES:
                is_cut, rest = True, b""
            self._goes_on()
        self._end(at - len(rest))
        return at - begin

    def _rewritten(self) -> None:
        """It became another one: what was in it at the attempt before does not count again."""
        place = usage_rules.rewritten(self.place)
        after = _NEVER if self._record.is_printed else place.after
        self.place = replace(place, after=after)
        self.reader.after = after

    def _end(self, at: int) -> None:
        """Keep where it ends: before a line that is not complete yet."""
        begin = max(0, at - usage_rules.MARKED)
        found = self._records.read(self._record, begin, at - begin)
        mark = usage_rules.mark_of(found.data) if found is not None else ""
        known = self.place.after if self.place.after < _NEVER else 0.0
        self.place = Place(read=at, mark=mark, last=max(self.reader.last, known))


def to_json(places: Mapping[str, Place]) -> dict[str, Any]:
    """Places as an attempt keeps them."""
    return {name: [one.read, one.mark, one.last] for name, one in places.items()}


def from_json(stored: Any) -> dict[str, Place]:
    """The same back; what cannot be read counts as not there."""
    try:
        return {
            str(name): Place(read=int(read), mark=str(mark), last=float(last))
            for name, (read, mark, last) in (stored or {}).items()
        }
    except (AttributeError, TypeError, ValueError):
        return {}

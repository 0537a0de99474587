"""What the agent's own record adds to the story of its run: read once, then on from where it ended.

A record grows by megabytes, and a page is shown again and again. What was read of it stays in this
process as the few facts that are told, so that each further look reads what was written since.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from urllib.parse import urlencode

from runs.conversation import items, rules
from runs.conversation.reading import READERS, Record
from runs.conversation.rules import Kind, Message
from runs.core.ports import Lab
from runs.models import Run
from runs.run_pages import story_rules
from runs.run_pages.story_rules import Fact, Source
from runs.transcript.record_rules import OwnRecord
from runs.web import addresses

AT_ONCE = 8 * 1024 * 1024  # how much one look reads; the next one goes on there
CHUNK = 1024 * 1024
TAIL = 384 * 1024  # the newest, which is told also before all in front of it was read
LINE_BYTES = 200_000  # a longer line is passed over
OPEN_CALLS = 20  # tests whose end is waited for; each line is searched for every one
MOST_FACTS = 60  # that are no events
MOST_RECORDS = 32
LAST = 200
_EDITS = (
    b'"Edit"',
    b'"Write"',
    b'"MultiEdit"',
    b'"NotebookEdit"',
    b"apply_patch",
    b'"file_change"',
)
_RUNS = (b"test", b"tox", b"nox", b"rspec", b"phpunit", b"mocha", b"bats", b"check", b"verify")


@dataclass(frozen=True, slots=True)
class _Read:
    """A record up to the place `at`, whose last bytes are `last`; tests that have not ended are `begun`."""

    mask: Callable[[str], str]
    at: int = 0
    last: bytes = b""
    facts: Sequence[Fact] = ()
    begun: Mapping[str, tuple[str, str]] | None = None


class _Kept:
    """What this process has read, of the records that were looked at last."""

    def __init__(self) -> None:
        self._records: OrderedDict[Hashable, _Read] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, mask: Callable[[str], str]) -> _Read:
        """Nothing where another mask was in force: a secret may have become known since."""
        with self._lock:
            found = self._records.get(key)
        return found if found is not None and found.mask == mask else _Read(mask)

    def put(self, key: Hashable, read: _Read) -> None:
        with self._lock:
            self._records[key] = read
            self._records.move_to_end(key)
            while len(self._records) > MOST_RECORDS:
                self._records.popitem(last=False)


_KEPT = _Kept()


def of(lab: Lab, run: Run, own: OwnRecord, at_once: int = AT_ONCE) -> Sequence[Fact]:
    """Edits and tests that a record tells, in its order; what has no time is not told.

    At most `at_once` bytes are read beside its end. What lies between is told from the next look on.
    """
    record = Record(lab, own, is_over=run.settled_at is not None)
    size = record.size()
    if not size:
        return []
    key = (run.pk, own.base, own.path)
    read = _KEPT.get(key, lab.mask)
    if read.at > size or record.raw(read.at - len(read.last), len(read.last)) != read.last:
        read = _Read(lab.mask)  # the record was written anew
    teller = _Teller(lab, run, own, read)
    teller.read_on(record, min(size, read.at + at_once))
    if teller.at > read.at:
        _KEPT.put(key, teller.read())
    low = record.piece(None, TAIL)[0] if teller.at < size - TAIL else size
    if low < size:
        teller.at = low
        teller.read_on(record, size)
    return teller.facts


class _Teller:
    """Goes through the lines of a record and keeps what is told of them."""

    def __init__(self, lab: Lab, run: Run, own: OwnRecord, read: _Read) -> None:
        self._mask, self._run, self._own = lab.mask, run, own
        self._base = addresses.of("runs:conversation", run.pk)
        self.at, self._last = read.at, read.last
        self.facts = list(read.facts)
        self._begun = dict(read.begun or {})

    def read(self) -> _Read:
        """What is known up to here."""
        return _Read(self._mask, self.at, self._last, tuple(self.facts), dict(self._begun))

    def read_on(self, record: Record, end: int) -> None:
        """All whole lines up to the place `end`; the rest of a line that is too long counts as one."""
        while self.at < end:
            data = record.raw(self.at, min(CHUNK, end - self.at))
            whole = data.rfind(b"\n") + 1
            if not whole and len(data) < CHUNK:
                return
            data = data[: whole or CHUNK]
            for line in data.splitlines(keepends=True):
                if len(line) <= LINE_BYTES and line.endswith(b"\n") and self._may_tell(line):
                    self._line(line)
                self.at += len(line)
            self._last = data[-LAST:]
            self.facts = story_rules.thin(self.facts, MOST_FACTS)

    def _may_tell(self, raw: bytes) -> bool:
        """Looked for in the bytes: to read a line as JSON takes many times as long."""
        if any(word in raw for word in _EDITS) or any(call.encode() in raw for call in self._begun):
            return True
        return (b"ommand" in raw or b'"cmd' in raw) and any(word in raw for word in _RUNS)

    def _line(self, raw: bytes) -> None:
        query = urlencode({"record": self._own.name, "start": self.at})
        for part, message in enumerate(rules.read(raw, READERS[self._own.form], self._mask)):
            self.facts += self._told(message, f"{self._base}?{query}#m{self.at}-{part}")

    def _told(self, message: Message, place: str) -> Iterator[Fact]:
        if message.at is None:
            return
        if message.kind is Kind.CALL:
            for edit in message.edits[:1]:
                path = edit.path.removeprefix(f"{self._run.worktree}/")
                yield Fact(message.at, Source.EDIT, text=path, place=place)
            command, _ = items.input_of(message)
            if message.call and story_rules.is_test(command):
                self._begun[message.call] = (command, place)
                if len(self._begun) > OPEN_CALLS:
                    del self._begun[next(iter(self._begun))]
        elif message.kind is Kind.RESULT and message.call in self._begun:
            command, there = self._begun.pop(message.call)
            passed = _passed(message)
            yield Fact(message.at, Source.TESTS, text=command, place=there, passed=passed)


def _passed(result: Message) -> bool | None:
    if result.exit_code is not None:
        return result.exit_code == 0
    return None if result.is_failed is None else not result.is_failed

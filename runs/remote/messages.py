"""Questions to another host and their answers as signed JSON; which may be asked at all."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from runs.core.history_ports import Change, Commit
from runs.core.ports import Exit, MaybeGiven, Output, Progress, SeamError, Sighting

READS = {
    "sessions": frozenset({"look", "screens", "exit_of", "output"}),
    "repos": frozenset(
        {
            *("has", "changes", "patch", "patch_of", "commits", "tip", "tips", "subject"),
            *("progress", "upstream"),
        }
    ),
    "elsewhere": frozenset({"records", "read", "parked"}),
}
ACTS = {
    "sessions": frozenset({"say", "press", "interrupt"}),
    "elsewhere": frozenset({"discard", "restore"}),
}
# The form of messages. A question is sent in the oldest form that holds it, so that a worker of an
# older version still answers what it knows; before it is sent what a worker answers only since a
# version of labsite, the version of its host is looked at.
FORM = 1
SINCE: dict[str, tuple[int, ...]] = {"elsewhere": (0, 1, 0, 98), "upstream": (0, 1, 0, 98)}
LONGEST_WAIT = timedelta(minutes=1)
MOST_ASKED, MOST_ANSWERED = 100_000, 16_000_000
FACTS = {one.__name__: one for one in (Change, Commit, Exit, Output, Progress, Sighting)}
ERRORS = {one.__name__: one for one in (SeamError, MaybeGiven)}
_MARK = "is"
OTHER_VERSION = "it is told as another version of labsite tells it"


class Unreadable(Exception):
    """A message that nobody of this installation wrote, or that is not one."""


@dataclass(frozen=True, slots=True)
class Question:
    """One call of a method of a host's sessions or repositories."""

    id: str
    host: str
    part: str
    name: str
    args: Sequence[Any]
    more: Mapping[str, Any]
    form: int = FORM
    until: str = ""
    """Of an act: when it is too late for it, by the clock of the database, so that nobody does it later
    with a message that was kept."""

    @property
    def since(self) -> tuple[int, ...]:
        """The first version of labsite whose workers answer it; empty for what all do."""
        return SINCE.get(self.part, SINCE.get(self.name, ()))

    @property
    def values(self) -> Mapping[str, Any]:
        """What is written of it. Workers before the form was told refuse what they do not know."""
        told = {one.name: getattr(self, one.name) for one in fields(self)}
        unsaid = {"form": self.form <= 1, "until": not self.until}
        return {name: value for name, value in told.items() if not unsaid.get(name)}

    @property
    def is_act(self) -> bool:
        """Whether it changes something, and so must never happen twice."""
        return self.name in ACTS.get(self.part, ())

    def is_timely(self, now: datetime) -> bool:
        """Whether an act may still be done; one that names no time, or one far ahead, may not."""
        try:
            left = datetime.fromisoformat(self.until) - now
        except (ValueError, TypeError):
            return False
        return timedelta(0) <= left <= LONGEST_WAIT

    @property
    def is_allowed(self) -> bool:
        return self.is_act or self.name in READS.get(self.part, ())


def question(values: Mapping[str, Any]) -> Question:
    """A question as it was written, also by a version that tells more. Raises Unreadable."""
    try:
        known = {one.name: values[one.name] for one in fields(Question) if one.name in values}
        return Question(**known)
    except TypeError as error:
        raise Unreadable(f"{OTHER_VERSION}: {error}") from error


def written(secret: bytes, value: Mapping[str, Any], home: Path, most: int) -> bytes:
    """A message, signed. Paths in the state folder `home` are told as they lie in it.

    Raises SeamError for one that is too long.
    """
    text = json.dumps({key: _told(one, home) for key, one in value.items()}).encode()
    if len(text) > most:
        raise SeamError(f"the message has {len(text):,} bytes, and at most {most:,} are sent")
    return _signature(secret, text) + text


def read(secret: bytes, message: bytes, home: Path) -> dict[str, Any]:
    """What a message says, its paths in the state folder `home`. Raises Unreadable."""
    return meant(opened(secret, message), home)


def opened(secret: bytes, message: bytes) -> dict[str, Any]:
    """A message whose values stand as they were written. Raises Unreadable for a foreign one."""
    signature, text = message[:64], message[64:]
    if not hmac.compare_digest(signature, _signature(secret, text)):
        raise Unreadable("it is not signed with the key of this installation")
    try:
        return {str(key): one for key, one in json.loads(text).items()}
    except (ValueError, AttributeError, RecursionError) as error:
        raise Unreadable(f"it cannot be read: {error}") from error


def meant(values: Mapping[str, Any], home: Path) -> dict[str, Any]:
    """The values of a message. Raises Unreadable, also for a path outside the state folder `home`."""
    try:
        return {key: _meant(one, home) for key, one in values.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unreadable(f"it cannot be read: {error}") from error


def _signature(secret: bytes, text: bytes) -> bytes:
    return hmac.new(secret, text, hashlib.sha256).hexdigest().encode()


def _told(value: Any, home: Path) -> Any:
    if isinstance(value, Path):
        if value.is_relative_to(home):
            return {_MARK: "own", "path": str(value.relative_to(home))}
        return {_MARK: "path", "path": str(value)}
    if isinstance(value, bytes):
        return {_MARK: "bytes", "text": base64.b64encode(value).decode()}
    if isinstance(value, datetime):
        return {_MARK: "time", "text": value.isoformat()}
    if is_dataclass(value):
        held = {one.name: _told(getattr(value, one.name), home) for one in fields(value)}
        return {_MARK: type(value).__name__, **held}
    if isinstance(value, Mapping):
        return {_MARK: "map", "items": [[str(key), _told(one, home)] for key, one in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_told(one, home) for one in value]
    return value


def _meant(value: Any, home: Path) -> Any:
    if isinstance(value, list):
        return [_meant(one, home) for one in value]
    if not isinstance(value, dict):
        return value
    kind = value[_MARK]
    if kind in ("own", "path"):
        return _within(home / value["path"], home)
    if kind == "bytes":
        return base64.b64decode(value["text"], validate=True)
    if kind == "time":
        return datetime.fromisoformat(value["text"])
    if kind == "map":
        return {key: _meant(one, home) for key, one in value["items"]}
    return _fact(kind, {name: _meant(one, home) for name, one in value.items() if name != _MARK})


def _fact(kind: str, held: dict[str, Any]) -> Any:
    """A fact as it was told, also by a newer version, which may tell more of it."""
    if kind not in FACTS:
        raise Unreadable(f"{OTHER_VERSION}: {kind}")
    if kind == "Commit":
        held["parents"] = tuple(held["parents"])
    known = {one.name for one in fields(FACTS[kind])}
    return FACTS[kind](**{name: one for name, one in held.items() if name in known})


def _within(path: Path, home: Path) -> Path:
    """Nobody is told of files elsewhere on the machine."""
    if ".." in path.parts or not path.is_relative_to(home):
        raise Unreadable("it names a path outside the state folder")
    return path

"""The adapter of beads. A root is the absolute folder that holds `.beads`."""

from __future__ import annotations

import copy
import itertools
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TypeVar

from trackers.base import Ability, BaseTracker, Comment, Finding, Issue, NewIssue
from trackers.beads import reading
from trackers.beads.command import POLL_SECONDS, Bd, Runner
from trackers.beads.reading import Entry
from trackers.errors import NotFound, NotUnderstood, Refused, TrackerError
from trackers.keys import KeyRule, is_key, why_unfit

PAUSE = timedelta(seconds=60)
AT_ONCE = 4
WORKING, FREE = "in_progress", "open"
_SPLITS = frozenset(',"\n\r')  # bd reads lists of labels as lines of comma separated values

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class BeadsTracker(BaseTracker):
    """Issues of beads, by the `bd` command. It has no pull requests: commits show delivery."""

    kind = "beads"
    abilities = frozenset(
        {
            Ability.COMMENT,
            Ability.LABEL,
            Ability.CLOSE,
            Ability.CREATE_ISSUE,
            Ability.BLOCKERS,
            Ability.STATUS,
        }
    )

    def __init__(self, run: Runner, now: Callable[[], datetime]) -> None:
        self._bd = Bd(run)
        self._now = now
        self._lock = threading.Lock()
        self._paused: dict[str, tuple[datetime, TrackerError]] = {}

    def queues(self, labels: Mapping[str, str]) -> Mapping[str, Sequence[Issue] | None]:
        """What `bd ready` lists of each root, in its order, without what somebody works on.

        A label narrows it; without one the queue is bd's own. A root that failed is asked again
        after a minute.
        """
        return self._each(labels, lambda root: self._queue(root, labels[root]), pauses=True)

    def still_open(
        self, keys: Mapping[str, Collection[str]]
    ) -> Mapping[str, Sequence[Issue] | None]:
        """Those of the named issues that are open."""
        return self._each(
            keys, lambda root: [one for one in self._open(root) if one.key in keys[root]]
        )

    def blockers(
        self, keys: Mapping[str, Collection[str]], enough: int = 0
    ) -> Mapping[str, Mapping[str, Collection[str]] | None]:
        """What `bd blocked` says of the named issues."""
        return self._each(keys, lambda root: self._blocked(root, keys[root]))

    def open_issues(self, root: str) -> Sequence[Issue]:
        """Every open issue by priority, then the oldest, then by key."""
        return self._open(root)

    def open_count(self, root: str) -> int:
        """How many issues are not closed."""
        return len(self._open(root))

    def issue(self, root: str, key: str) -> Issue:
        """One issue with its comments. Raises NotFound."""
        entry = self._entry(root, key)
        told = entry.comments
        return entry.issue(comments=self._comments(root, key) if told is None else told)

    def comment(self, root: str, key: str, author: str, body: str) -> None:
        """Add a comment under the author's name. Raises NotFound."""
        self._entry(root, key)
        self._bd.write(root, ["comments", "add"], key, body, by=_name(author))

    def add_label(self, root: str, key: str, label: str) -> None:
        """Let an issue carry a label. Raises NotFound."""
        if label not in (self._entry(root, key).labels or ()):
            self._bd.write(root, ["label", "add"], key, label)

    def remove_label(self, root: str, key: str, label: str) -> None:
        """Take a label off an issue. Raises NotFound."""
        carried = self._entry(root, key).labels
        if carried is None or label in carried:
            self._bd.write(root, ["label", "remove"], key, label)

    def close(self, root: str, key: str) -> None:
        """Close an issue. Raises NotFound."""
        if self._entry(root, key).is_open:
            self._bd.write(root, ["close", "--reason=Closed in labsite"], key)

    def claim(self, root: str, key: str) -> None:
        """Mark an issue as in progress that nobody works on and nothing holds back.

        Raises Refused for every other, and where bd itself says no.
        """
        entry = self._entry(root, key)
        if entry.is_epic:
            raise Refused(f"{key} is an epic in bd, so it was not claimed. Start its children.")
        if not entry.is_free:
            raise Refused(f"{key} is {entry.status} in bd, so it was not claimed.")
        self._bd.write(root, ["update", f"--status={WORKING}"], key)

    def set_status(self, root: str, key: str, is_working: bool) -> None:
        """Mark a free issue as in progress, or one in progress as open; others stay as they are.

        Raises Refused for an issue that is blocked, deferred or closed and is to be worked on.
        """
        status = self._entry(root, key).status
        wanted, other = (WORKING, FREE) if is_working else (FREE, WORKING)
        if status == wanted:
            return
        if status == other:
            self._bd.write(root, ["update", f"--status={wanted}"], key)
        elif is_working:
            raise Refused(f"{key} is {status or 'in no known state'} in bd, so it was not claimed.")

    def create_issue(self, root: str, new: NewIssue) -> Issue:
        """Write an issue as a task of normal priority."""
        unfit = [label for label in new.labels if _SPLITS & set(label)]
        if unfit:
            raise Refused(f"bd cannot be given the label {reading.shown(unfit[0])}.")
        options = [f"--description={new.body}"] if new.body else []
        options += [f"--labels={','.join(new.labels)}"] if new.labels else []
        out = self._bd.write(root, ["create", *options], new.title, by=_name(new.author))
        entry = _one(reading.value(out))
        if entry is None:
            raise NotUnderstood(f"bd made an issue and told no key: {reading.shown(out)}")
        return entry.issue()

    def labels(self, root: str) -> Collection[str]:
        """The labels that some issue carries; bd has no others."""
        return reading.labels(reading.listed(self._bd.ask(root, ["label", "list-all"])))

    def examine(self, root: str, label: str) -> Sequence[Finding]:
        """Whether `bd` is there, reads the folder, and has keys that labsite can use."""
        found: list[Finding] = []
        try:
            found.append(Finding("bd", True, f"The command answers: {self._bd.version(root)}"))
            read = self._list(root)
            found.append(Finding("issues", True, f"{len(_open(read))} open issues were read."))
            found += [Finding("issues", False, text) for text in read.unclear[:3]]
            found += _unfit(_open(read))
            queue = self._queue(root, label)
        except TrackerError as error:
            return [*found, Finding("bd" if not found else "issues", False, str(error))]
        narrowed = f" with the label {label}" if label else ""
        return [*found, Finding("ready queue", True, f"{len(queue)} are ready{narrowed}.")]

    # How the answers come about.

    def _queue(self, root: str, label: str) -> list[Issue]:
        if _SPLITS & set(label):
            raise Refused(f"bd cannot be asked for the label {reading.shown(label)}.")
        options = [f"--label={label}"] if label else []
        entries = self._read(root, "ready", "--limit=0", *options).entries
        return [one.issue(label=label) for one in _unique(entries) if one.is_startable]

    def _open(self, root: str) -> list[Issue]:
        return [one.issue() for one in _open(self._list(root))]

    def _list(self, root: str) -> reading.Reading:
        return self._read(root, "list", "--limit=0")

    def _read(self, root: str, *command: str) -> reading.Reading:
        """The issues of a list that bd prints; entries that are not understood are reported."""
        out = self._bd.ask(root, command, seconds=POLL_SECONDS)
        read = reading.read(reading.listed(out))
        for text in read.unclear:
            logger.warning("bd told something unclear", extra={"root": root, "reason": text})
        return read

    def _blocked(self, root: str, keys: Collection[str]) -> Mapping[str, Collection[str]]:
        if not keys:
            return {}
        entries = self._read(root, "blocked").entries
        return {one.key: one.blocked_by for one in entries if one.key in keys and one.blocked_by}

    def _entry(self, root: str, key: str) -> Entry:
        """One issue of exactly this key: bd itself would take a part of a key for the whole."""
        if not is_key(key, KeyRule.WORD):
            raise NotFound(f"There is no issue {reading.shown(key)[:60]}.")
        out = self._bd.ask(root, ["show"], key)
        entry = _one(reading.value(out)) if out.strip() else None
        if entry is None or entry.key != key:
            raise NotFound(f"There is no issue {key}.")
        return entry

    def _comments(self, root: str, key: str) -> Sequence[Comment]:
        try:
            return reading.comments(reading.listed(self._bd.ask(root, ["comments"], key)))
        except NotUnderstood:
            return ()  # a version without comments

    def _each(
        self, roots: Iterable[str], ask: Callable[[str], Answer], *, pauses: bool = False
    ) -> dict[str, Answer | None]:
        """The answers of many roots, in parallel; None where one could not be read.

        An error that all of them share is raised, so that somebody reads its words.
        """
        wanted = list(roots)
        errors: dict[str, TrackerError] = {}

        def answer(root: str) -> Answer | None:
            try:
                return self._paced(root, ask) if pauses else _logged(root, ask)
            except TrackerError as error:
                errors[root] = error
                return None

        if len(wanted) <= 1:
            found = {root: answer(root) for root in wanted}
        else:
            with ThreadPoolExecutor(min(AT_ONCE, len(wanted)), "bd") as pool:
                found = dict(zip(wanted, pool.map(answer, wanted), strict=True))
        if len(errors) == len(wanted) and len({str(error) for error in errors.values()}) == 1:
            raise next(iter(errors.values()))
        return found

    def _paced(self, root: str, ask: Callable[[str], Answer]) -> Answer:
        """An answer, or the last error again during the pause after it."""
        with self._lock:
            until, error = self._paused.get(root, (None, None))
        if until is not None and error is not None and self._now() < until:
            again = copy.copy(error).with_traceback(None)
            again.is_repeat = True
            raise again
        try:
            found = _logged(root, ask)
        except TrackerError as new:
            with self._lock:
                self._paused[root] = (self._now() + PAUSE, new)
            raise
        with self._lock:
            self._paused.pop(root, None)
        return found


def _logged(root: str, ask: Callable[[str], Answer]) -> Answer:
    try:
        return ask(root)
    except TrackerError as error:
        logger.warning("bd gave no answer", extra={"root": root, "reason": str(error)})
        raise


def _one(found: object) -> Entry | None:
    """The one issue of an answer: an object, or a list of one."""
    return reading.entry_of(found[0] if isinstance(found, list) and found else found)


def _open(read: reading.Reading) -> list[Entry]:
    is_open = [one for one in _unique(read.entries) if one.is_open]
    return sorted(is_open, key=lambda one: (one.priority, one.created, one.key))


def _unique(entries: Sequence[Entry]) -> list[Entry]:
    """In the order given; neighbours that bd does not tell apart are sorted by key."""
    found = list({one.key: one for one in entries}.values())
    groups = itertools.groupby(found, key=lambda one: (one.priority, one.created or one.key))
    return [one for _, group in groups for one in sorted(group, key=lambda one: one.key)]


def _unfit(entries: Sequence[Entry]) -> list[Finding]:
    unfit = [(one.key, why_unfit(one.key, KeyRule.WORD)) for one in entries]
    return [
        Finding("keys", False, f"{reading.shown(key)} cannot be started: {why}.")
        for key, why in unfit
        if why
    ][:3]


def _name(author: str) -> str:
    return " ".join(author.replace("\0", " ").split())[:100] or "labsite"

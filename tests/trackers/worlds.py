"""The same small world on each tracker: what the contract tests set up, by one set of words."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest

from runs.forges.bd import BdCommand
from tests.trackers.bd import Beads, environ
from tests.trackers.forge_worlds import FORGES, MORE_FORGES
from tests.world.memory_tracker import MemoryTracker
from trackers.base import Check, CheckState, Comment, PullState, Tracker
from trackers.beads.adapter import BeadsTracker
from trackers.builtin import store
from trackers.builtin.adapter import BuiltinTracker
from trackers.builtin.models import Issue, Label, PullRequest, Root

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
READY = "ready-for-agent"


class World(Protocol):
    """One tracker, and the acts that happen on it without us."""

    tracker: Tracker

    def key(self, number: int) -> str: ...
    def root(self, name: str) -> str: ...
    def issue(
        self,
        root: str,
        number: int,
        title: str,
        *,
        labels: Sequence[str] = (),
        is_open: bool = True,
    ) -> None: ...
    def pull(self, root: str, head: str, state: str = "open") -> int: ...
    def lose(self, root: str) -> None: ...
    def break_an_issue(self, root: str) -> None: ...
    def break_a_pull(self, root: str, head: str) -> None: ...
    def remark(self, root: str, number: int, author: str, body: str) -> None: ...
    def said(self, root: str, number: int, comment: Comment) -> None: ...
    def milestone(self, root: str, number: int, title: str) -> None: ...
    def block(self, root: str, number: int, by: int) -> None: ...
    def check(self, root: str, commit: str, name: str, state: CheckState) -> None: ...


class _Numbered:
    """Keys are numbers."""

    def key(self, number: int) -> str:
        return str(number)


class MemoryWorld(_Numbered):
    """The fake."""

    def __init__(self) -> None:
        self.tracker = MemoryTracker()

    def root(self, name: str) -> str:
        return self.tracker.add_root(name)

    def issue(self, root: str, number: int, title: str, **more: Any) -> None:
        self.tracker.add_issue(root, title, key=str(number), **more)

    def pull(self, root: str, head: str, state: str = "open") -> int:
        return self.tracker.add_pull(root, head, state)

    def lose(self, root: str) -> None:
        self.tracker.fail(root)

    def break_an_issue(self, root: str) -> None:
        self.tracker.shelves[root].issues.insert(
            0, {"key": "x7", "title": "no number", "labels": [READY]}
        )

    def break_a_pull(self, root: str, head: str) -> None:
        shelf = self.tracker.shelves[root]
        shelf.pulls[:0] = [{"number": 90, "state": "open"}, {"head": head, "state": "open"}]

    def milestone(self, root: str, number: int, title: str) -> None:
        self.tracker.shelves[root].issue_entry(str(number))["milestone"] = title

    def remark(self, root: str, number: int, author: str, body: str) -> None:
        self.tracker.comment(root, str(number), author, body)

    def said(self, root: str, number: int, comment: Comment) -> None:
        entry = self.tracker.shelves[root].pull_entry(number)
        entry.setdefault("comments", []).append(asdict(comment))

    def block(self, root: str, number: int, by: int) -> None:
        before = self.tracker.shelves[root].blockers.get(str(number), ())
        self.tracker.block(root, str(number), *before, str(by))

    def check(self, root: str, commit: str, name: str, state: CheckState) -> None:
        checks = self.tracker.shelves[root].checks
        checks[commit] = (*checks.get(commit, ()), Check(name, state))


class BuiltinWorld(_Numbered):
    """labsite's own tracker, on its tables."""

    def __init__(self) -> None:
        self.tracker = BuiltinTracker(lambda: AT)

    def root(self, name: str) -> str:
        return store.create_root(name)

    def issue(
        self,
        root: str,
        number: int,
        title: str,
        *,
        labels: Sequence[str] = (),
        is_open: bool = True,
    ) -> None:
        Root.objects.filter(pk=root).update(next_number=number)
        for label in labels:
            Label.objects.get_or_create(root_id=int(root), name=label)
        given = store.create_issue(root, title=title, body="", author="ada", labels=labels, at=AT)
        assert given == number
        Issue.objects.filter(root_id=int(root), number=number).update(is_open=is_open)

    def pull(self, root: str, head: str, state: str = "open") -> int:
        number = Root.objects.get(pk=root).next_number
        Root.objects.filter(pk=root).update(next_number=number + 1)
        PullRequest.objects.create(
            root_id=int(root),
            number=number,
            head=head,
            base="main",
            title=head,
            author="ada",
            state=PullState(state),
            created_at=AT,
            updated_at=AT,
        )
        return number

    def lose(self, root: str) -> None:
        Root.objects.filter(pk=root).delete()

    def break_an_issue(self, root: str) -> None:
        """Its numbers cannot be broken: the column is a number."""

    def break_a_pull(self, root: str, head: str) -> None:
        for number, (name, state) in enumerate([("", "open"), (head, "draft?")], start=90):
            PullRequest.objects.create(
                root_id=int(root),
                number=number,
                head=name,
                base="main",
                title="broken",
                author="ada",
                state=state,
                created_at=AT,
                updated_at=AT,
            )

    def milestone(self, root: str, number: int, title: str) -> None:
        raise AssertionError("this tracker has no milestones")

    def remark(self, root: str, number: int, author: str, body: str) -> None:
        self.tracker.comment(root, str(number), author, body)

    def said(self, root: str, number: int, comment: Comment) -> None:
        raise AssertionError("labsite's own tracker tells its comments by its tables")

    def block(self, root: str, number: int, by: int) -> None:
        raise AssertionError("labsite's own tracker knows no blockers")

    def check(self, root: str, commit: str, name: str, state: CheckState) -> None:
        raise AssertionError("labsite's own tracker runs no checks")


class BeadsWorld:
    """The `bd` command, on the double of its command line."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._places: dict[str, Beads] = {}
        self.tracker = BeadsTracker(BdCommand(environ()), lambda: AT)

    def key(self, number: int) -> str:
        return f"bd-{number}"

    def root(self, name: str) -> str:
        place = Beads(self._folder / name)
        self._places[place.root] = place
        return place.root

    def issue(
        self,
        root: str,
        number: int,
        title: str,
        *,
        labels: Sequence[str] = (),
        is_open: bool = True,
    ) -> None:
        self._places[root].issue(
            self.key(number),
            title,
            labels=list(labels),
            status="open" if is_open else "closed",
            created_at=f"2026-03-01T12:{number:02}:00Z",
        )

    def pull(self, root: str, head: str, state: str = "open") -> int:
        raise AssertionError("beads has no pull requests")

    def lose(self, root: str) -> None:
        self._places[root].lose()

    def break_an_issue(self, root: str) -> None:
        self._places[root].spoil()

    def break_a_pull(self, root: str, head: str) -> None:
        """There are none."""

    def milestone(self, root: str, number: int, title: str) -> None:
        raise AssertionError("this tracker has no milestones")

    def remark(self, root: str, number: int, author: str, body: str) -> None:
        self.tracker.comment(root, self.key(number), author, body)

    def said(self, root: str, number: int, comment: Comment) -> None:
        raise AssertionError("beads has no pull requests")

    def block(self, root: str, number: int, by: int) -> None:
        self._places[root].blocks(self.key(by), self.key(number))

    def check(self, root: str, commit: str, name: str, state: CheckState) -> None:
        raise AssertionError("beads runs no checks")


WORLDS = {
    "memory": MemoryWorld,
    "builtin": BuiltinWorld,
    "beads": BeadsWorld,
    **FORGES,
    **MORE_FORGES,
}
# Only the built-in tracker keeps its things in the database; the others' are in memory, files and
# forges, so that they show nothing more on PostgreSQL.
_MARKS = {"builtin": [], "beads": [pytest.mark.any_database, pytest.mark.real]}
EACH = [pytest.param(name, marks=_MARKS.get(name, [pytest.mark.any_database])) for name in WORLDS]

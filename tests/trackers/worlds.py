"""The same small world on each tracker: what the contract tests set up, by one set of words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from trackers.base import PullState, Tracker
from trackers.builtin import store
from trackers.builtin.adapter import BuiltinTracker
from trackers.builtin.models import Issue, Label, PullRequest, Root
from trackers.memory import MemoryTracker

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
READY = "ready-for-agent"


class World(Protocol):
    """One tracker, and the acts that happen on it without us."""

    tracker: Tracker

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


class MemoryWorld:
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


class BuiltinWorld:
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


WORLDS = {"memory": MemoryWorld, "builtin": BuiltinWorld}

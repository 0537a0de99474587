"""Everything that one forge holds, and its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count

from tests.trackers.forge.repo import Repo
from tests.trackers.forge.state import Label, Person, Token


class Clock:
    """A forge's own time: stands still, but moves a second with each thing that happens."""

    def __init__(self) -> None:
        self.at = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at

    def advance(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


class Shelf:
    """Everything that one forge holds."""

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        self.clock = Clock()
        self.now: Callable[[], datetime] = now or self.clock
        self.people: dict[str, Person] = {}
        self.tokens: dict[str, Token] = {}
        self.repos: dict[int, Repo] = {}
        self.renamed: dict[str, Repo] = {}
        self.organisation_labels: dict[str, list[Label]] = {}
        self._ids = count(1001)

    def next_id(self) -> int:
        return next(self._ids)

    def happen(self) -> datetime:
        """Something happens now, later than everything before when the clock is our own."""
        if self.now is self.clock:
            self.clock.advance(1)
        return self.now()

    def person(self, login: str, *, is_bot: bool = False) -> Person:
        """Somebody; made when new."""
        if login not in self.people:
            self.people[login] = Person(self.next_id(), login, is_bot)
        return self.people[login]

    def token(
        self,
        login: str,
        text: str = "",
        *,
        kind: str = "classic",
        permissions: Mapping[str, str] | None = None,
        repos: frozenset[str] | None = None,
        expires_at: datetime | None = None,
    ) -> str:
        """A credential of somebody; returns its text, which is a secret."""
        text = text or f"s3cret-{login}-{self.next_id()}"
        self.tokens[text] = Token(text, self.person(login), kind, permissions, repos, expires_at)
        return text

    def repo(self, full_name: str, **more: object) -> Repo:
        """A repository "owner/name"; `more` are fields of Repo, such as `is_private`."""
        owner, _, name = full_name.partition("/")
        found = Repo(self.next_id(), self.person(owner), name, self)
        for field_name, value in more.items():
            assert hasattr(found, field_name), field_name
            setattr(found, field_name, value)
        self.repos[found.id] = found
        return found

    def find_repo(self, full_name: str) -> Repo | None:
        """By name, whatever its case, as both forges do."""
        wanted = full_name.lower()
        return next((r for r in self.repos.values() if r.full_name.lower() == wanted), None)

    def rename(self, repo: Repo, full_name: str) -> None:
        """Give a repository another name; the old one leads to it from now on."""
        self.renamed[repo.full_name.lower()] = repo
        owner, _, repo.name = full_name.partition("/")
        repo.owner = self.person(owner)

    def remove(self, repo: Repo) -> None:
        """Delete a repository; pull requests of it elsewhere lose the repository of their head."""
        del self.repos[repo.id]
        for other in self.repos.values():
            for item in other.items.values():
                if item.pull and item.pull.head_repo is repo:
                    item.pull.head_repo = None

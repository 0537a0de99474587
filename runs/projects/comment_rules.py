"""Whose comments on issues and pull requests agents and reviewers are given. Pure.

Anybody may comment on a public repository, and what an agent reads may steer it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from trackers.base import Comment


@dataclass(frozen=True, slots=True)
class Readers:
    """Whom a project trusts: names in lower case, and whether everybody is read."""

    names: Collection[str] = ()
    reads_outsiders: bool = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """Comments that are given, and how many are not: of outsiders, and of people nobody could place."""

    kept: tuple[Comment, ...]
    outsiders: int = 0
    unknown: int = 0

    def describe_left_out(self) -> str:
        """Say in a sentence what was left out; empty when nothing was."""
        parts = []
        if self.outsiders:
            parts.append(f"{_count(self.outsiders)} of people who do not belong to the repository")
        if self.unknown:
            parts.append(f"{_count(self.unknown)} of people of whom that could not be told")
        many = self.outsiders + self.unknown
        return f"{' and '.join(parts)} {'was' if many == 1 else 'were'} left out." if parts else ""


def choose(said: Sequence[Comment], readers: Readers) -> Chosen:
    """Choose the comments of people who belong to the repository or whom the project names."""
    if readers.reads_outsiders:
        return Chosen(tuple(said))
    left = [
        one for one in said if one.is_outsider is not False and not _is_named(one, readers.names)
    ]
    unknown = sum(one.is_outsider is None for one in left)
    kept = tuple(one for one in said if one not in left)
    return Chosen(kept, len(left) - unknown, unknown)


def _is_named(one: Comment, names: Collection[str]) -> bool:
    # A name that came with an import is one of another forge, and may be anybody's here.
    return not one.is_imported and one.author.casefold() in names


def _count(number: int) -> str:
    return f"{number} comment{'' if number == 1 else 's'}"

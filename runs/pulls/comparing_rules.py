"""Which two commits a pull request compares. A pure rule over what is stored and what git has."""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

NO_COMMITS = "labsite does not know which commits this pull request is about, so its changes cannot be shown."
BRANCH_GONE = "The branch is not on origin any more. This is what was last seen of it."


@dataclass(frozen=True, slots=True)
class PullFacts:
    """What is known of a pull request's ends. A tip is None when there is no such branch."""

    is_open: bool
    base: str
    head: str
    stored_base: str = ""
    stored_head: str = ""
    base_tip: str | None = None
    head_tip: str | None = None


@dataclass(frozen=True, slots=True)
class Ends:
    """The commits to compare: what `head` has changed since it left `base`. `note` is for the page."""

    base: str = ""
    head: str = ""
    note: str = ""

    @property
    def are_known(self) -> bool:
        return bool(self.base and self.head)


def ends(facts: PullFacts) -> Ends:
    """An open one follows its branches; one that has ended keeps the commits that it ended with.

    Branches live on after that: a merged head is in the base, and a name may be used again.
    """
    if facts.is_open:
        base = facts.base_tip or facts.stored_base
        head = facts.head_tip or facts.stored_head
        note = "" if facts.head_tip else BRANCH_GONE
    else:
        base, head, note = facts.stored_base or facts.base_tip or "", facts.stored_head, ""
    if not (is_commit(base) and is_commit(head)):
        return Ends(note=NO_COMMITS)
    return Ends(base, head, note)


def is_commit(text: str) -> bool:
    """Whether a text is a full commit id, and nothing that git could take for an option."""
    return bool(_COMMIT.fullmatch(text))

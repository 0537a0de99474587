"""What an adapter refuses that it does not declare."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from trackers.base import Ability, Check, Issue, NewIssue, NewPull, Pull
from trackers.errors import Refused, TrackerError


class Limited:
    """The optional half of the seam, refused; adapters override what they declare."""

    def trouble(self, root: str) -> TrackerError | None:
        return None

    def blockers(
        self, keys: Mapping[str, Collection[str]], enough: int = 0
    ) -> Mapping[str, Mapping[str, Collection[str] | None] | None]:
        raise _cannot(Ability.BLOCKERS)

    def pulls(self, heads: Mapping[str, Collection[str]]) -> Mapping[str, Sequence[Pull] | None]:
        raise _cannot(Ability.PULLS)

    def pull(self, root: str, number: int) -> Pull:
        raise _cannot(Ability.PULLS)

    def comment(self, root: str, key: str, author: str, body: str) -> None:
        raise _cannot(Ability.COMMENT)

    def add_label(self, root: str, key: str, label: str) -> None:
        raise _cannot(Ability.LABEL)

    def remove_label(self, root: str, key: str, label: str) -> None:
        raise _cannot(Ability.LABEL)

    def close(self, root: str, key: str) -> None:
        raise _cannot(Ability.CLOSE)

    def claim(self, root: str, key: str) -> None:
        raise _cannot(Ability.STATUS)

    def set_status(self, root: str, key: str, is_working: bool) -> None:
        raise _cannot(Ability.STATUS)

    def create_issue(self, root: str, new: NewIssue) -> Issue:
        raise _cannot(Ability.CREATE_ISSUE)

    def create_label(self, root: str, label: str) -> None:
        raise _cannot(Ability.CREATE_LABEL)

    def create_pull(self, root: str, new: NewPull) -> Pull:
        raise _cannot(Ability.CREATE_PULL)

    def checks(self, root: str, commit: str) -> Sequence[Check]:
        raise _cannot(Ability.CHECKS)

    def set_hook(self, root: str, address: str, secret: str) -> None:
        raise _cannot(Ability.HOOKS)

    def merge(self, root: str, number: int, head_commit: str) -> str:
        raise _cannot(Ability.MERGE)


def _cannot(ability: Ability) -> Refused:
    return Refused(f"This tracker cannot do that: {ability.value.replace('_', ' ')}.")

"""What GitHub, Gitea and Forgejo have in common behind the seam: the acting half."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from trackers.account import Purpose
from trackers.base import (
    Ability,
    Issue,
    NewIssue,
    NewPull,
    NotFound,
    NotUnderstood,
    Pull,
    PullState,
    Refused,
    TrackerError,
    Unreachable,
)
from trackers.forges import hooking, reading
from trackers.forges.dialect import Need
from trackers.forges.naming import is_number, number_of
from trackers.forges.pool import side_by_side
from trackers.forges.tracker import ForgeTracker
from trackers.forges.turns import Answers, Turn
from trackers.forges.visit import Visit
from trackers.forges.waiting import Hint, Waits
from trackers.http.client import Answer

# Green: go.
LABEL_COLOUR = "0e8a16"
ABILITIES = frozenset(
    {
        Ability.PULLS,
        Ability.COMMENT,
        Ability.LABEL,
        Ability.CLOSE,
        Ability.CREATE_ISSUE,
        Ability.CREATE_LABEL,
        Ability.CREATE_PULL,
        Ability.CHECKS,
        Ability.MERGE,
        Ability.BLOCKERS,
        Ability.HOOKS,
        Ability.MILESTONES,
    }
)


class ActingTracker(ForgeTracker):
    """A forge that is written to. Subclasses say where forges differ."""

    abilities = ABILITIES
    _waits: dict[tuple[str, str], Waits]

    @abstractmethod
    def _blocked_by(self, visit: Visit, number: int) -> Sequence[Any]:
        """What an issue waits for, open or not. Raises NotFound where the forge has no such list."""

    @abstractmethod
    def _blocker(self, repository: str, entry: Any) -> str | None:
        """The key of an open issue that another in this repository waits for."""

    @abstractmethod
    def _place(self, entry: Any) -> str:
        """The repository of an issue, by the name that it has now; empty where it is not told."""

    @abstractmethod
    def _hint(self, entry: Any) -> Hint:
        """What an entry of the ready queue tells of waiting."""

    @abstractmethod
    def _label_words(self, visit: Visit, names: Sequence[str]) -> list[str] | list[int]:
        """How labels are sent in a body. Raises Refused for one that is not there."""

    @abstractmethod
    def _opened(self, visit: Visit, root: str, entry: Any) -> None:
        """Called with a new pull request, which the forge's list may show only a moment later."""

    @abstractmethod
    def _merged(self, visit: Visit, number: int, head_commit: str) -> Answer:
        """The answer to the question to merge, with one of the statuses 200, 404, 405, 409."""

    def blockers(
        self, keys: Mapping[str, Collection[str]], enough: int = 0
    ) -> Mapping[str, Mapping[str, Collection[str] | None] | None]:
        """What each named issue waits for; only those are asked for that may wait, see `Turn`."""
        visits = self._visits(keys)
        found = side_by_side(
            visits, lambda root: self._turn(visits[root], root, list(keys[root]), enough)
        )
        answer: dict[str, Mapping[str, Collection[str] | None] | None] = dict.fromkeys(keys)
        for root, waits in found.items():
            if isinstance(waits, TrackerError):
                self._troubles[root] = waits
            else:
                answer[root] = waits
        return answer

    def _turn(self, visit: Visit, root: str, keys: Sequence[str], enough: int) -> Answers:
        def ask(some: Sequence[str]) -> Mapping[str, Collection[str]]:
            found = side_by_side(some, lambda key: self._open_blockers(visit, root, key))
            told = {key: one for key, one in found.items() if not isinstance(one, TrackerError)}
            known.failed(found.keys() - told.keys(), self._now())
            for waits in found.values():
                if isinstance(waits, TrackerError):
                    raise waits
            return told

        known = self._waits_of(visit, root)
        numbers = [key for key in keys if is_number(key)]
        asked = known.answering(numbers, self._now())
        left_out: Answers = dict.fromkeys(key for key in numbers if key not in asked)
        return left_out | Turn(known, asked, enough, self._now(), ask).answers()

    def _open_blockers(self, visit: Visit, root: str, key: str) -> Collection[str]:
        known = self._waits_of(visit, root)
        try:
            entries = self._blocked_by(visit, number_of(key))
        except NotFound:
            return self._no_blockers(visit, root, key)
        name = known.name or str(visit.repository)
        by = sorted(reading.every(entries, lambda entry: self._blocker(name, entry)))
        known.found(key, by, self._now(), is_bare=not entries)
        return by

    def _no_blockers(self, visit: Visit, root: str, key: str) -> Collection[str]:
        """The issue is gone, or nothing is known here of what issues wait for."""
        try:
            self._entry(visit, number_of(key), Purpose.BLOCKERS)
        except NotFound:
            self._gone(visit, root)
            return ()
        self._waits_of(visit, root).not_there(self._now())
        return ()

    def _noted(self, visit: Visit, root: str, label: str, entries: Sequence[Any]) -> None:
        hints = {str(n): self._hint(one) for one in entries if (n := reading.index(one))}
        known = self._waits_of(visit, root)
        known.queue(hints, label)
        names = (self._place(one) for one in entries)
        known.name = next((name for name in names if name), known.name)

    def _waits_of(self, visit: Visit, root: str) -> Waits:
        return self._remembered(self._waits, visit, root, Waits)

    def set_hook(self, root: str, address: str, secret: str) -> None:
        """Set up the webhook that delivers to this address. Raises Refused."""
        hooking.set_hook(self._visit(root), self.kind, address, secret)

    def comment(self, root: str, key: str, author: str, body: str) -> None:
        """Write a comment; the forge shows it under its own account. Raises NotFound, Refused."""
        visit, number = self._visit(root), number_of(key)
        self._to_issue(visit, number, "POST", "comments", json={"body": body}, expect=(201,))

    def add_label(self, root: str, key: str, label: str) -> None:
        """Let an issue carry a label. Raises NotFound, Refused for a label that is not there."""
        visit, number = self._visit(root), number_of(key)
        words = self._label_words(visit, [label])
        self._to_issue(visit, number, "POST", "labels", json={"labels": words}, expect=(200,))

    def close(self, root: str, key: str) -> None:
        """Close an issue; never a pull request of that number. Raises NotFound, Refused."""
        visit = self._visit(root)
        issue = self._read_issue(self._entry(visit, number_of(key), Purpose.READ))
        if issue is None:
            raise NotFound(f"There is no issue {key}.")
        if not issue.is_open:
            return
        state = {"state": "closed"}
        answer = self._to_issue(visit, int(key), "PATCH", json=state, expect=(200, 201, 412))
        if answer.status == 412:
            raise Refused(f"{visit.host} does not close issue {key}: {_said(answer)}.")

    def create_issue(self, root: str, new: NewIssue) -> Issue:
        """Write an issue. Raises Refused for a label that is not there."""
        visit = self._visit(root)
        body = {"title": new.title, "body": new.body}
        words = {"labels": self._label_words(visit, new.labels)} if new.labels else {}
        answer = visit.send(
            "POST", "issues", json={**body, **words}, need=Need.WRITE_ISSUES, expect=(201,)
        )
        issue = self._read_issue(answer.data)
        if issue is None:
            raise NotUnderstood(
                f"{visit.host} wrote the issue, but labsite cannot read its answer."
            )
        return issue

    def create_pull(self, root: str, new: NewPull) -> Pull:
        """Open a pull request. Raises Refused, saying what is in its way."""
        visit = self._visit(root)
        answer = visit.send(
            "POST",
            "pulls",
            json={"title": new.title, "head": new.head, "base": new.base, "body": new.body},
            need=Need.WRITE_PULLS,
            expect=(201, 404, 409, 422, 423),
        )
        if answer.status != 201:
            raise self._not_opened(visit, new, answer)
        pull = self._read_pull(answer.data)
        if pull is None:
            raise NotUnderstood(
                f"{visit.host} opened the pull request, but labsite cannot read its answer."
            )
        self._opened(visit, root, answer.data)
        return pull

    def _not_opened(self, visit: Visit, new: NewPull, answer: Answer) -> TrackerError:
        """Why a pull request was not opened."""
        said = _said(answer)
        if answer.status == 409 or "already exists" in said.lower():
            return Refused(f"There is already an open pull request for {new.head}.")
        if answer.status == 404:
            about = visit.get(purpose=Purpose.READ, need=Need.SEE)
            if reading.told(about, "has_pull_requests") is False:
                return Refused(f"Pull requests are switched off in {visit.repository}.")
        for field, branch in (("head", new.head), ("base", new.base)):
            if _is_wrong(answer, field):
                return Refused(f"{visit.host} has no branch {branch}. Push it first.")
        if answer.status == 404:
            return Refused(
                f"{visit.host} did not find {new.head} or {new.base} in {visit.repository}, or "
                f"this account may not open pull requests there. Push the branch first."
            )
        return Refused(f"{visit.host} does not open a pull request for {new.head}: {said}.")

    def merge(self, root: str, number: int, head_commit: str) -> str:
        """Merge if the head still is `head_commit`; also fine when that was done before."""
        visit = self._visit(root)
        if not is_number(str(number)):
            raise NotFound(f"There is no pull request {number}.")
        answer = self._merged(visit, number, head_commit)
        if answer.status == 200 and (commit := reading.text(answer.data, "sha")):
            return commit
        pull = self._one_pull(visit, number, Purpose.READ)
        is_same = answer.status == 200 or pull.head_commit == head_commit
        if pull.state is PullState.MERGED and is_same:
            return pull.merge_commit
        if answer.status == 200:
            raise NotUnderstood(f"{visit.host} took the merge on, but does not show it as done.")
        raise self._not_merged(visit, pull, head_commit, answer)

    def _not_merged(
        self, visit: Visit, pull: Pull, head_commit: str, answer: Answer
    ) -> TrackerError:
        if pull.state is not PullState.OPEN:
            return Refused(f"Pull request {pull.number} is {pull.state.value}.")
        if pull.head_commit != head_commit:
            return Refused("The branch has moved since it was looked at. Look at it again first.")
        said = _said(answer)
        if "try again later" in said.lower():
            return Unreachable(
                f"{visit.host} does not merge pull request {pull.number} now: it conflicts with "
                f"{pull.base}, or that is still being found out. Try again in a moment."
            )
        if answer.status == 409:
            said = said if reading.said(answer.data) else "it conflicts with its base"
        return Refused(f"{visit.host} does not merge pull request {pull.number}: {said}.")

    def _to_issue(
        self,
        visit: Visit,
        number: int,
        method: str,
        *parts: str | int,
        json: Any,
        expect: Collection[int],
    ) -> Answer:
        """Do something to an issue. Raises NotFound when it is not there."""
        try:
            return visit.send(
                method, "issues", number, *parts, json=json, need=Need.WRITE_ISSUES, expect=expect
            )
        except NotFound as error:
            raise NotFound(f"There is no issue {number}.") from error


def _said(answer: Answer) -> str:
    """The forge's own reason, without a stop at its end."""
    return reading.said(answer.data).rstrip(".") or f"status {answer.status}"


def _is_wrong(answer: Answer, field: str) -> bool:
    """Whether GitHub says that one field of a pull request names nothing."""
    errors = reading.told(answer.data, "errors")
    return any(
        reading.text(one, "field") == field and reading.text(one, "code") == "invalid"
        for one in (errors if isinstance(errors, list) else [])
    )

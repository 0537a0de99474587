"""What GitHub, Gitea and Forgejo have in common behind the seam: the reading half."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from trackers.account import Account, Purpose
from trackers.base import Finding, Issue, NotFound, NotUnderstood, Pull, Refused, TrackerError
from trackers.forges import reading
from trackers.forges.dialect import Dialect, Need
from trackers.forges.examining import failed, login
from trackers.forges.naming import Repository, is_number, number_of, repository_of
from trackers.forges.pool import side_by_side
from trackers.forges.visit import Visit
from trackers.http.client import Client
from trackers.limited import Limited

Memory = TypeVar("Memory")
Found = TypeVar("Found")


class ForgeTracker(Limited):
    """Issues and pull requests on a forge. A root is `<forge>/<owner>/<repository>`.

    `accounts` says with which credential each forge is asked; it is read once per question.
    """

    kind: str
    dialect: Dialect

    def __init__(
        self,
        client: Client,
        accounts: Callable[[], Mapping[str, Account]],
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._accounts = accounts
        self._now = now
        self._lock = threading.Lock()
        self._troubles: dict[str, TrackerError | None] = {}

    @abstractmethod
    def _read_issue(self, entry: Any) -> Issue | None:
        """An issue out of an answer, or None for what is none."""

    @abstractmethod
    def _read_pull(self, entry: Any) -> Pull | None:
        """A pull request out of an answer, or None for what is none."""

    @abstractmethod
    def _list_params(self, label: str) -> Mapping[str, str]:
        """How open issues are asked for, with a label or with any."""

    @abstractmethod
    def _has_label(self, issue: Issue, label: str) -> bool:
        """Whether an issue carries a label, by the forge's own idea of sameness."""

    @abstractmethod
    def _comments(self, visit: Visit, number: int) -> Sequence[Any]:
        """The comments of an issue as the forge sends them, oldest first."""

    @abstractmethod
    def _pulls(self, visit: Visit, root: str, heads: Collection[str]) -> Sequence[Pull]:
        """Pull requests of these heads in any state."""

    @abstractmethod
    def _noted(self, visit: Visit, root: str, label: str, entries: Sequence[Any]) -> None:
        """Called with the entries of a label's ready queue, which may tell more than issues do."""

    def queues(self, labels: Mapping[str, str]) -> Mapping[str, Sequence[Issue] | None]:
        """The ready issues of each root, lowest number first; one list a root."""
        return self._of_each(labels, lambda root, visit: self._queue(visit, root, labels[root]))

    def still_open(
        self, keys: Mapping[str, Collection[str]]
    ) -> Mapping[str, Sequence[Issue] | None]:
        """Those of the named issues that are open, each asked for by its number."""
        visits = self._visits(keys)
        asked = [(root, key) for root in visits for key in keys[root] if is_number(key)]
        found = side_by_side(asked, lambda one: self._open_issue(visits[one[0]], one[1]))
        answer: dict[str, list[Issue] | None] = dict.fromkeys(keys)
        answer |= {root: [] for root in visits}
        for (root, _), issue in found.items():
            mine = answer[root]
            if isinstance(issue, TrackerError):
                answer[root], self._troubles[root] = None, issue
            elif issue is not None and mine is not None:
                mine.append(issue)
        return answer

    def greet(self, forge: str) -> Finding:
        """Whether a forge answers and accepts the account: one question. Never raises."""
        try:
            visit = self._visit(f"{forge}/a/b")
            if visit.account.app_id:  # it was asked for a token just now
                return Finding("account", True, f"{visit.host} knows the GitHub App.")
            if not visit.account.token:
                return Finding("account", None, "No token is set.")
            return Finding("account", True, login(visit))
        except TrackerError as error:
            return failed("account", error)

    def trouble(self, root: str) -> TrackerError | None:
        """Why a root could not be read last, by any of the questions about many."""
        return self._troubles.get(root)

    def open_issues(self, root: str) -> Sequence[Issue]:
        """Every open issue, lowest number first."""
        return self._listed(self._visit(root), "", Purpose.READ)

    def issue(self, root: str, key: str) -> Issue:
        """One issue with its comments. Raises NotFound."""
        visit, number = self._visit(root), number_of(key)
        entry = self._entry(visit, number, Purpose.READ)
        issue = self._read_issue(entry)
        if issue is None:
            raise NotFound(f"There is no issue {key}.")
        has_comments = reading.number(entry, "comments") != 0
        comments = self._comments(visit, number) if has_comments else ()
        return replace(issue, comments=reading.comments(comments))

    def pulls(self, heads: Mapping[str, Collection[str]]) -> Mapping[str, Sequence[Pull] | None]:
        """Pull requests of these heads; one list a root in the usual case (LAB-12)."""
        return self._of_each(heads, lambda root, visit: self._pulls(visit, root, heads[root]))

    def pull(self, root: str, number: int) -> Pull:
        """One pull request. Raises NotFound."""
        return self._one_pull(self._visit(root), number, Purpose.READ)

    def _one_pull(self, visit: Visit, number: int, purpose: Purpose) -> Pull:
        if not is_number(str(number)):
            raise NotFound(f"There is no pull request {number}.")
        try:
            entry = visit.get("pulls", number, purpose=purpose, need=Need.READ_PULLS)
        except NotFound as error:
            raise NotFound(f"There is no pull request {number}.") from error
        if reading.index(entry) != number:
            raise NotUnderstood(f"{visit.host} answered with something that is no pull request.")
        pull = self._read_pull(entry)
        if pull is None:
            raise NotFound(f"There is no pull request {number} with a branch.")
        return pull

    def _queue(self, visit: Visit, root: str, label: str) -> Sequence[Issue]:
        entries = self._queue_entries(visit, root, label)
        self._noted(visit, root, label, entries)
        return self._picked(entries, label)

    def _queue_entries(self, visit: Visit, root: str, label: str) -> Sequence[Any]:
        """What the forge lists for a ready queue, read to its end."""
        return self._entries(visit, label, Purpose.QUEUE)

    def _gone(self, visit: Visit, root: str) -> None:
        """Called when an issue of a ready queue is not there any more."""

    def _listed(self, visit: Visit, label: str, purpose: Purpose) -> Sequence[Issue]:
        """Open issues by number."""
        return self._picked(self._entries(visit, label, purpose), label)

    def _entries(self, visit: Visit, label: str, purpose: Purpose) -> Sequence[Any]:
        """Open issues as the forge sends them. A name with a comma cannot be asked for."""
        params = self._list_params("" if "," in label else label)
        return visit.every("issues", purpose=purpose, need=Need.READ_ISSUES, params=params)

    def _picked(self, entries: Sequence[Any], label: str) -> Sequence[Issue]:
        """The open issues among them by number.

        The label is looked for again here: Gitea lists everything for one that it does not know.
        """
        found = {int(one.key): one for one in reading.every(entries, self._read_issue)}
        listed = [found[number] for number in sorted(found)]
        return [one for one in listed if one.is_open and (not label or self._has_label(one, label))]

    def _open_issue(self, visit: Visit, key: str) -> Issue | None:
        try:
            entry = self._entry(visit, number_of(key), Purpose.QUEUE)
        except NotFound:
            return None
        issue = self._read_issue(entry)
        return issue if issue is not None and issue.is_open else None

    def _entry(self, visit: Visit, number: int, purpose: Purpose) -> Any:
        """What the forge says of an issue. Raises NotFound, also for one that was moved away."""
        try:
            entry = visit.get("issues", number, purpose=purpose, need=Need.READ_ISSUES)
        except NotFound as error:
            raise NotFound(f"There is no issue {number}.") from error
        told = reading.index(entry)
        if told is None:
            raise NotUnderstood(f"{visit.host} answered with something that is no issue.")
        if told != number:
            raise NotFound(f"There is no issue {number} any more in {visit.repository}.")
        return entry

    def _of_each(
        self, roots: Collection[str], ask: Callable[[str, Visit], Found]
    ) -> dict[str, Found | None]:
        """The answer for each root, all asked at once; None for a root that could not be read."""
        visits = self._visits(roots)
        found = side_by_side(visits, lambda root: ask(root, visits[root]))
        answer: dict[str, Found | None] = dict.fromkeys(roots)
        for root, one in found.items():
            answer[root] = None if isinstance(one, TrackerError) else one
            self._troubles[root] = one if isinstance(one, TrackerError) else None
        return answer

    def _visits(self, roots: Collection[str]) -> dict[str, Visit]:
        """The roots that can be asked at all. Each credential is made ready once, side by side."""
        accounts = self._accounts()
        named = {root: found for root in roots if (found := repository_of(root)) is not None}
        forges = {found.forge for found in named.values()} & set(accounts)
        ready = side_by_side(forges, lambda forge: self._ready(accounts[forge]))
        visits: dict[str, Visit] = {}
        for root in roots:
            found = named.get(root)
            account = ready.get(found.forge) if found else None
            if found is not None and isinstance(account, Account):
                visits[root] = self._visit_as(accounts[found.forge], account, found)
            error = account if isinstance(account, TrackerError) else _nobody(found)
            self._troubles[root] = None if root in visits else error
        return visits

    def _visit(self, root: str) -> Visit:
        """A repository to ask. Raises TrackerErrors when it cannot even be asked."""
        repository = repository_of(root)
        if repository is None:
            raise _nobody(repository)
        account = self._accounts().get(repository.forge)
        if account is None:
            raise _nobody(repository)
        return self._visit_as(account, self._ready(account), repository)

    def _visit_as(self, account: Account, ready: Account, repository: Repository) -> Visit:
        return Visit(
            self._client, self.dialect, ready, repository, lambda: self._not_accepted(account)
        )

    def _ready(self, account: Account) -> Account:
        """The account with a token that can be sent now."""
        return account

    def _not_accepted(self, account: Account) -> None:
        """The forge did not accept the account's token."""

    def _remembered(
        self, memories: dict[tuple[str, str], Memory], visit: Visit, root: str, new: type[Memory]
    ) -> Memory:
        """What is kept of a root; of another server behind the same name, nothing is."""
        with self._lock:
            return memories.setdefault((visit.account.api, root), new())


def _nobody(repository: Repository | None) -> Refused:
    """Why a root cannot even be asked."""
    if repository is None:
        return Refused("This project names no repository of a forge.")
    return Refused(f"labsite has no account for the forge of {repository}.")

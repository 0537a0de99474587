"""What GitHub, Gitea and Forgejo have in common as trackers. Subclasses say where they differ."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from trackers.account import Account, Purpose
from trackers.base import (
    Ability,
    BaseTracker,
    Comment,
    Finding,
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
from trackers.forges import reading, webhooks
from trackers.forges.connection_test import failed, login
from trackers.forges.repository import (
    Dialect,
    Need,
    Repository,
    RepositoryClient,
    is_number,
    number_of,
    repository_of,
)
from trackers.http.client import Answer, Client

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
# The client lets no more than a few calls to one host run at once; more hands would only wait.
HANDS = 8

Key = TypeVar("Key")
Found = TypeVar("Found")
Memory = TypeVar("Memory")


class ForgeTracker(BaseTracker):
    """Issues and pull requests on a forge. A root is `<forge>/<owner>/<repository>`.

    `accounts` says with which credential each forge is asked; it is read once per question.
    """

    kind: str
    dialect: Dialect
    abilities = ABILITIES

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
        """Whether an issue carries a label, compared as the forge does."""

    @abstractmethod
    def _comments(self, repo: RepositoryClient, number: int) -> Sequence[Any]:
        """The comments of an issue as the forge sends them, oldest first."""

    @abstractmethod
    def _reviewed(self, repo: RepositoryClient, number: int) -> Sequence[Comment]:
        """What the reviews of a pull request say, and the comments on its lines."""

    @abstractmethod
    def _pulls(self, repo: RepositoryClient, root: str, heads: Collection[str]) -> Sequence[Pull]:
        """Pull requests of these heads in any state."""

    @abstractmethod
    def _noted(self, repo: RepositoryClient, root: str, label: str, entries: Sequence[Any]) -> None:
        """Called with the entries of a label's ready queue, which hold more than issues do."""

    @abstractmethod
    def _label_words(self, repo: RepositoryClient, names: Sequence[str]) -> list[str] | list[int]:
        """Labels as they are sent in a body. Raises Refused for one that does not exist."""

    @abstractmethod
    def _opened(self, repo: RepositoryClient, root: str, entry: Any) -> None:
        """Called with a new pull request, which the forge's list may show only later."""

    @abstractmethod
    def _merged(self, repo: RepositoryClient, number: int, head_commit: str) -> Answer:
        """The answer to the merge call, with one of the statuses 200, 404, 405, 409, 422."""

    def queues(self, labels: Mapping[str, str]) -> Mapping[str, Sequence[Issue] | None]:
        """The ready issues of each root, lowest number first; one list a root."""
        return self._of_each(labels, lambda root, repo: self._queue(repo, root, labels[root]))

    def still_open(
        self, keys: Mapping[str, Collection[str]]
    ) -> Mapping[str, Sequence[Issue] | None]:
        """Those of the named issues that are open, each asked for by its number."""
        repos = self._repos(keys)
        asked = [(root, key) for root in repos for key in keys[root] if is_number(key)]
        found = in_parallel(asked, lambda one: self._open_issue(repos[one[0]], one[1]))
        answer: dict[str, list[Issue] | None] = dict.fromkeys(keys)
        answer |= {root: [] for root in repos}
        for (root, _), issue in found.items():
            mine = answer[root]
            if isinstance(issue, TrackerError):
                answer[root], self._troubles[root] = None, issue
            elif issue is not None and mine is not None:
                mine.append(issue)
        return answer

    def greet(self, forge: str) -> Finding:
        """Whether a forge answers and accepts the account, in one call. Never raises."""
        try:
            repo = self._repo(f"{forge}/a/b")
            if repo.account.app_id:  # it was asked for a token just now
                return Finding("account", True, f"{repo.host} knows the GitHub App.")
            if not repo.account.token:
                return Finding("account", None, "No token is set.")
            return Finding("account", True, login(repo))
        except TrackerError as error:
            return failed("account", error)

    def trouble(self, root: str) -> TrackerError | None:
        """Why a root could not be read last, by any of the calls for many roots."""
        return self._troubles.get(root)

    def open_issues(self, root: str) -> Sequence[Issue]:
        """Every open issue, lowest number first."""
        return self._listed(self._repo(root), "", Purpose.READ)

    def issue(self, root: str, key: str) -> Issue:
        """One issue with its comments. Raises NotFound."""
        repo, number = self._repo(root), number_of(key)
        entry = self._entry(repo, number, Purpose.READ)
        issue = self._read_issue(entry)
        if issue is None:
            raise NotFound(f"There is no issue {key}.")
        has_comments = reading.number(entry, "comments") != 0
        comments = self._comments(repo, number) if has_comments else ()
        return replace(issue, comments=self._placed(repo, reading.comments(comments)))

    def pulls(self, heads: Mapping[str, Collection[str]]) -> Mapping[str, Sequence[Pull] | None]:
        """Pull requests of these heads; one list a root in the usual case."""
        return self._of_each(heads, lambda root, repo: self._pulls(repo, root, heads[root]))

    def pull(self, root: str, number: int) -> Pull:
        """One pull request. Raises NotFound."""
        return self._one_pull(self._repo(root), number, Purpose.READ)

    def pull_comments(self, root: str, number: int) -> Sequence[Comment]:
        """What was said on a pull request, in reviews and on lines too. Raises NotFound."""
        repo = self._repo(root)
        said = reading.comments(self._comments(repo, number))
        return self._placed(repo, reading.by_time([*said, *self._reviewed(repo, number)]))

    def _placed(self, repo: RepositoryClient, said: Sequence[Comment]) -> tuple[Comment, ...]:
        """Comments with who may write to the repository, where their forge tells it elsewhere."""
        return tuple(said)

    def set_hook(self, root: str, address: str, secret: str) -> None:
        """Set up the webhook that delivers to this address. Raises Refused."""
        webhooks.set_hook(self._repo(root), self.kind, address, secret)

    def comment(self, root: str, key: str, author: str, body: str) -> None:
        """Write a comment; the forge shows it under its own account. Raises NotFound, Refused."""
        repo, number = self._repo(root), number_of(key)
        self._to_issue(repo, number, "POST", "comments", json={"body": body}, expect=(201,))

    def add_label(self, root: str, key: str, label: str) -> None:
        """Let an issue carry a label. Raises NotFound, Refused for a label that is not there."""
        repo, number = self._repo(root), number_of(key)
        words = self._label_words(repo, [label])
        self._to_issue(repo, number, "POST", "labels", json={"labels": words}, expect=(200,))

    def close(self, root: str, key: str) -> None:
        """Close an issue; never a pull request of that number. Raises NotFound, Refused."""
        repo = self._repo(root)
        issue = self._read_issue(self._entry(repo, number_of(key), Purpose.READ))
        if issue is None:
            raise NotFound(f"There is no issue {key}.")
        if not issue.is_open:
            return
        state = {"state": "closed"}
        answer = self._to_issue(repo, int(key), "PATCH", json=state, expect=(200, 201, 412))
        if answer.status == 412:
            raise Refused(f"{repo.host} does not close issue {key}: {_said(answer)}.")

    def create_issue(self, root: str, new: NewIssue) -> Issue:
        """Write an issue. Raises Refused for a label that is not there."""
        repo = self._repo(root)
        body = {"title": new.title, "body": new.body}
        words = {"labels": self._label_words(repo, new.labels)} if new.labels else {}
        answer = repo.send(
            "POST", "issues", json={**body, **words}, need=Need.WRITE_ISSUES, expect=(201,)
        )
        issue = self._read_issue(answer.data)
        if issue is None:
            raise NotUnderstood(f"{repo.host} wrote the issue, but labsite cannot read its answer.")
        return issue

    def create_pull(self, root: str, new: NewPull) -> Pull:
        """Open a pull request. Raises Refused, saying what is in its way."""
        repo = self._repo(root)
        answer = repo.send(
            "POST",
            "pulls",
            json={"title": new.title, "head": new.head, "base": new.base, "body": new.body},
            need=Need.WRITE_PULLS,
            expect=(201, 404, 409, 422, 423),
        )
        if answer.status != 201:
            raise self._not_opened(repo, new, answer)
        pull = self._read_pull(answer.data)
        if pull is None:
            raise NotUnderstood(
                f"{repo.host} opened the pull request, but labsite cannot read its answer."
            )
        self._opened(repo, root, answer.data)
        return pull

    def _not_opened(self, repo: RepositoryClient, new: NewPull, answer: Answer) -> TrackerError:
        """Why a pull request was not opened."""
        said = _said(answer)
        if answer.status == 409 or "already exists" in said.lower():
            return Refused(f"There is already an open pull request for {new.head}.")
        if answer.status == 404:
            about = repo.get(purpose=Purpose.READ, need=Need.SEE)
            if reading.value(about, "has_pull_requests") is False:
                return Refused(f"Pull requests are switched off in {repo.repository}.")
        for field, branch in (("head", new.head), ("base", new.base)):
            if _is_wrong(answer, field):
                return Refused(f"{repo.host} has no branch {branch}. Push it first.")
        if answer.status == 404:
            return Refused(
                f"{repo.host} did not find {new.head} or {new.base} in {repo.repository}, or "
                f"this account may not open pull requests there. Push the branch first."
            )
        return Refused(f"{repo.host} does not open a pull request for {new.head}: {said}.")

    def merge(self, root: str, number: int, head_commit: str) -> str:
        """Merge if the head still is `head_commit`; also fine when that was done before."""
        repo = self._repo(root)
        if not is_number(str(number)):
            raise NotFound(f"There is no pull request {number}.")
        answer = self._merged(repo, number, head_commit)
        if answer.status == 200 and (commit := reading.text(answer.data, "sha")):
            return commit
        pull = self._one_pull(repo, number, Purpose.READ)
        is_same = answer.status == 200 or pull.head_commit == head_commit
        if pull.state is PullState.MERGED and is_same:
            return pull.merge_commit
        if answer.status == 200:
            raise NotUnderstood(f"{repo.host} took the merge on, but does not show it as done.")
        raise self._not_merged(repo, pull, head_commit, answer)

    def _not_merged(
        self, repo: RepositoryClient, pull: Pull, head_commit: str, answer: Answer
    ) -> TrackerError:
        if pull.state is not PullState.OPEN:
            return Refused(f"Pull request {pull.number} is {pull.state.value}.")
        if pull.head_commit != head_commit:
            return Refused("The branch has moved since it was looked at. Look at it again first.")
        said = _said(answer)
        if "try again later" in said.lower():
            return Unreachable(
                f"{repo.host} does not merge pull request {pull.number} now: it conflicts with "
                f"{pull.base}, or that is still being found out. Try again in a moment."
            )
        if answer.status == 409:
            said = said if reading.error_text(answer.data) else "it conflicts with its base"
        return Refused(f"{repo.host} does not merge pull request {pull.number}: {said}.")

    def _to_issue(
        self,
        repo: RepositoryClient,
        number: int,
        method: str,
        *parts: str | int,
        json: Any,
        expect: Collection[int],
    ) -> Answer:
        """Do something to an issue. Raises NotFound when it is not there."""
        try:
            return repo.send(
                method, "issues", number, *parts, json=json, need=Need.WRITE_ISSUES, expect=expect
            )
        except NotFound as error:
            raise NotFound(f"There is no issue {number}.") from error

    def _one_pull(self, repo: RepositoryClient, number: int, purpose: Purpose) -> Pull:
        if not is_number(str(number)):
            raise NotFound(f"There is no pull request {number}.")
        try:
            entry = repo.get("pulls", number, purpose=purpose, need=Need.READ_PULLS)
        except NotFound as error:
            raise NotFound(f"There is no pull request {number}.") from error
        if reading.index(entry) != number:
            raise NotUnderstood(f"{repo.host} answered with something that is no pull request.")
        pull = self._read_pull(entry)
        if pull is None:
            raise NotFound(f"There is no pull request {number} with a branch.")
        return pull

    def _queue(self, repo: RepositoryClient, root: str, label: str) -> Sequence[Issue]:
        entries = self._queue_entries(repo, root, label)
        self._noted(repo, root, label, entries)
        return self._picked(entries, label)

    def _queue_entries(self, repo: RepositoryClient, root: str, label: str) -> Sequence[Any]:
        """What the forge lists for a ready queue, read to its end."""
        return self._entries(repo, label, Purpose.QUEUE)

    def _gone(self, repo: RepositoryClient, root: str) -> None:
        """Called when an issue of a ready queue is not there any more."""

    def _listed(self, repo: RepositoryClient, label: str, purpose: Purpose) -> Sequence[Issue]:
        """Open issues by number."""
        return self._picked(self._entries(repo, label, purpose), label)

    def _entries(self, repo: RepositoryClient, label: str, purpose: Purpose) -> Sequence[Any]:
        """Open issues as the forge sends them. A name with a comma cannot be asked for."""
        params = self._list_params("" if "," in label else label)
        return repo.every("issues", purpose=purpose, need=Need.READ_ISSUES, params=params)

    def _picked(self, entries: Sequence[Any], label: str) -> Sequence[Issue]:
        """The open issues among them by number.

        The label is looked for again here: Gitea lists everything for one that it does not know.
        """
        found = {int(one.key): one for one in reading.every(entries, self._read_issue)}
        listed = [found[number] for number in sorted(found)]
        return [one for one in listed if one.is_open and (not label or self._has_label(one, label))]

    def _open_issue(self, repo: RepositoryClient, key: str) -> Issue | None:
        try:
            entry = self._entry(repo, number_of(key), Purpose.QUEUE)
        except NotFound:
            return None
        issue = self._read_issue(entry)
        return issue if issue is not None and issue.is_open else None

    def _entry(self, repo: RepositoryClient, number: int, purpose: Purpose) -> Any:
        """The entry of an issue. Raises NotFound, also for one that was transferred."""
        try:
            entry = repo.get("issues", number, purpose=purpose, need=Need.READ_ISSUES)
        except NotFound as error:
            raise NotFound(f"There is no issue {number}.") from error
        told = reading.index(entry)
        if told is None:
            raise NotUnderstood(f"{repo.host} answered with something that is no issue.")
        if told != number:
            raise NotFound(f"There is no issue {number} any more in {repo.repository}.")
        return entry

    def _of_each(
        self, roots: Collection[str], ask: Callable[[str, RepositoryClient], Found]
    ) -> dict[str, Found | None]:
        """The answer for each root, in parallel; None for a root that could not be read."""
        repos = self._repos(roots)
        found = in_parallel(repos, lambda root: ask(root, repos[root]))
        answer: dict[str, Found | None] = dict.fromkeys(roots)
        for root, one in found.items():
            answer[root] = None if isinstance(one, TrackerError) else one
            self._troubles[root] = one if isinstance(one, TrackerError) else None
        return answer

    def _repos(self, roots: Collection[str]) -> dict[str, RepositoryClient]:
        """A client for each root with a repository and an account. Each credential is prepared once."""
        accounts = self._accounts()
        named = {root: found for root in roots if (found := repository_of(root)) is not None}
        forges = {found.forge for found in named.values()} & set(accounts)
        ready = in_parallel(forges, lambda forge: self._ready(accounts[forge]))
        repos: dict[str, RepositoryClient] = {}
        for root in roots:
            found = named.get(root)
            account = ready.get(found.forge) if found else None
            if found is not None and isinstance(account, Account):
                repos[root] = self._repo_as(accounts[found.forge], account, found)
            error = account if isinstance(account, TrackerError) else _nobody(found)
            self._troubles[root] = None if root in repos else error
        return repos

    def _repo(self, root: str) -> RepositoryClient:
        """The client of one root. Raises TrackerErrors when it has no repository or account."""
        repository = repository_of(root)
        if repository is None:
            raise _nobody(repository)
        account = self._accounts().get(repository.forge)
        if account is None:
            raise _nobody(repository)
        return self._repo_as(account, self._ready(account), repository)

    def _repo_as(
        self, account: Account, ready: Account, repository: Repository
    ) -> RepositoryClient:
        return RepositoryClient(
            self._client, self.dialect, ready, repository, lambda: self._not_accepted(account)
        )

    def _ready(self, account: Account) -> Account:
        """The account with a token that can be sent now."""
        return account

    def _not_accepted(self, account: Account) -> None:
        """The forge did not accept the account's token."""

    def _remembered(
        self,
        memories: dict[tuple[str, str], Memory],
        repo: RepositoryClient,
        root: str,
        new: type[Memory],
    ) -> Memory:
        """The memory of a root, by server, since an account may be given another address."""
        with self._lock:
            return memories.setdefault((repo.account.api, root), new())


def _nobody(repository: Repository | None) -> Refused:
    """The error for a root without repository or account."""
    if repository is None:
        return Refused("This project names no repository of a forge.")
    return Refused(f"labsite has no account for the forge of {repository}.")


def _said(answer: Answer) -> str:
    """The forge's own reason, without a full stop."""
    return reading.error_text(answer.data).rstrip(".") or f"status {answer.status}"


def _is_wrong(answer: Answer, field: str) -> bool:
    """Whether GitHub says that one field of a pull request is invalid."""
    errors = reading.value(answer.data, "errors")
    return any(
        reading.text(one, "field") == field and reading.text(one, "code") == "invalid"
        for one in (errors if isinstance(errors, list) else [])
    )


def in_parallel(
    keys: Collection[Key], ask: Callable[[Key], Found]
) -> dict[Key, Found | TrackerError]:
    """The answer for each key, or the error that stands for it."""

    def one(key: Key) -> Found | TrackerError:
        try:
            return ask(key)
        except TrackerError as error:
            return error

    asked = list(dict.fromkeys(keys))
    if len(asked) < 2:
        return {key: one(key) for key in asked}
    with ThreadPoolExecutor(min(HANDS, len(asked)), thread_name_prefix="forge") as pool:
        return dict(zip(asked, pool.map(one, asked), strict=True))

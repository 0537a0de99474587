"""The adapter of Gitea and Forgejo."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from trackers.account import Account, Purpose
from trackers.base import (
    Check,
    CheckOutput,
    Comment,
    Finding,
    Issue,
    NotFound,
    Pull,
    Refused,
    TrackerError,
)
from trackers.forges import (
    branch_test,
    check_outputs,
    connection_test,
    gitea_queue,
    gitea_reading,
    merge_rules,
    pulls,
    reading,
)
from trackers.forges.blockers import Hint, TrackerWithBlockers
from trackers.forges.repository import GITEA, Need, RepositoryClient, is_commit, number_of
from trackers.forges.tracker import LABEL_COLOUR, in_parallel
from trackers.http.client import Answer, Client

# A review's comments on lines are a list of their own; of more reviews only the newest are read.
REVIEWS_READ = 20


class GiteaTracker(TrackerWithBlockers):
    """Issues and pull requests on Gitea or Forgejo."""

    kind = "gitea"
    dialect = GITEA

    def __init__(
        self,
        client: Client,
        accounts: Callable[[], Mapping[str, Account]],
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(client, accounts, now)
        self._memories: dict[tuple[str, str], pulls.Memory] = {}
        self._blocker_caches = {}
        self._listings: dict[tuple[str, str], gitea_queue.Listing] = {}

    def open_count(self, root: str) -> int:
        """How many issues are open, by the X-Total-Count of a page."""
        repo, params = self._repo(root), self._list_params("")
        page = repo.page("issues", purpose=Purpose.QUEUE, need=Need.READ_ISSUES, params=params)
        if page.total is not None:
            return page.total
        return len(self._listed(repo, "", Purpose.QUEUE))

    def comment(self, root: str, key: str, author: str, body: str) -> None:
        """Write a comment. Gitea answers 500 where there is no such issue, so that is asked first."""
        self._entry(self._repo(root), number_of(key), Purpose.READ)
        super().comment(root, key, author, body)

    def remove_label(self, root: str, key: str, label: str) -> None:
        """Take a label off an issue, by the number that it has there. Raises NotFound, Refused."""
        repo, number = self._repo(root), number_of(key)
        carried = reading.value(self._entry(repo, number, Purpose.READ), "labels")
        for known in _numbers(carried, [label]).values():
            self._to_issue(repo, number, "DELETE", "labels", known, json=None, expect=(204,))

    def labels(self, root: str) -> Collection[str]:
        """The labels of the repository, and of the organisation that it belongs to."""
        repo = self._repo(root)
        entries = [*self._own_labels(repo), *self._shared_labels(repo)]
        return frozenset(name for entry in entries if (name := reading.text(entry, "name")))

    def create_label(self, root: str, label: str) -> None:
        """Make a label; Gitea itself would make a second one of the same name. Raises Refused."""
        if label in self.labels(root):
            return
        repo = self._repo(root)
        answer = repo.send(
            "POST",
            "labels",
            json={"name": label, "color": f"#{LABEL_COLOUR}"},
            need=Need.WRITE_ISSUES,
            expect=(201, 422),
        )
        if answer.status == 422:
            raise Refused(
                f"{repo.host} does not make a label “{label}”: {reading.error_text(answer.data)}"
            )

    def checks(self, root: str, commit: str) -> Sequence[Check]:
        """The newest status of each name. Raises NotFound for what is no whole commit."""
        repo = self._repo(root)
        if not is_commit(commit):
            raise NotFound(f"{commit[:60]} is not the name of a commit.")
        entries = repo.every(
            "commits", commit, "statuses", purpose=Purpose.READ, need=Need.READ_CHECKS
        )
        return gitea_reading.checks(entries, repo.account.api)

    def check_output(self, root: str, commit: str, check: Check) -> CheckOutput:
        """Read the log of its job, or the description of its status."""
        return check_outputs.read_from_gitea(self._repo(root), commit, check)

    def examine(self, root: str, label: str) -> Sequence[Finding]:
        """Try what labsite needs of this root, in words. Never raises."""
        return connection_test.examine_gitea(
            lambda: self._repo(root), label, lambda: self.labels(root)
        )

    def examine_branch(self, root: str, prefix: str, key: str) -> Sequence[Finding]:
        """Find out whether its rules let such branches be pushed. Never raises."""
        return branch_test.examine_gitea(lambda: self._repo(root), prefix, key)

    def _read_issue(self, entry: Any) -> Issue | None:
        return reading.issue(entry)

    def _read_pull(self, entry: Any) -> Pull | None:
        return gitea_reading.pull(entry)

    def _list_params(self, label: str) -> Mapping[str, str]:
        params = {"state": "open", "type": "issues"}
        return {**params, "labels": label} if label else params

    def _has_label(self, issue: Issue, label: str) -> bool:
        return label in issue.labels

    def _queue_entries(self, repo: RepositoryClient, root: str, label: str) -> Sequence[Any]:
        known = self._listing(repo, root, label)
        params = self._list_params("" if "," in label else label)
        return gitea_queue.entries(repo, known, params, self._now())

    def _listing(self, repo: RepositoryClient, root: str, label: str) -> gitea_queue.Listing:
        return self._remembered(self._listings, repo, f"{root}\n{label}", gitea_queue.Listing)

    def _gone(self, repo: RepositoryClient, root: str) -> None:
        with self._lock:
            mine = [
                one for (_, name), one in self._listings.items() if name.startswith(f"{root}\n")
            ]
        for one in mine:
            one.forget()

    def _comments(self, repo: RepositoryClient, number: int) -> Sequence[Any]:
        """All at once: Gitea does not page them."""
        found = repo.get("issues", number, "comments", purpose=Purpose.READ, need=Need.READ_ISSUES)
        return found if isinstance(found, list) else ()

    def _reviewed(self, repo: RepositoryClient, number: int) -> Sequence[Comment]:
        """None on an old server, which knows no reviews."""
        try:
            reviews = repo.every(
                "pulls", number, "reviews", purpose=Purpose.READ, need=Need.READ_PULLS
            )
        except NotFound:
            return ()
        said = reading.every(reviews, reading.review)
        commented = gitea_reading.commented(reviews, REVIEWS_READ)
        found = in_parallel(commented, lambda review: self._on_lines(repo, number, review))
        for one in found.values():
            if isinstance(one, TrackerError):
                raise one
            said += one
        return said

    def _placed(self, repo: RepositoryClient, said: Sequence[Comment]) -> tuple[Comment, ...]:
        """Whom an issue can be assigned to may write; Gitea says so beside no comment."""
        if all(one.is_outsider is not None for one in said):
            return tuple(said)
        try:
            found = repo.get("assignees", purpose=Purpose.READ, need=Need.SEE)
        except (NotFound, Refused):
            return tuple(said)
        people = found if isinstance(found, list) else ()
        names = {reading.text(one, "login").casefold() for one in people}
        return tuple(
            replace(one, is_outsider=one.author.casefold() not in names)
            if one.is_outsider is None
            else one
            for one in said
        )

    def _on_lines(self, repo: RepositoryClient, number: int, review: int) -> Sequence[Comment]:
        """The comments of a review on lines, all at once; none of one that was removed since."""
        try:
            found = repo.get(
                "pulls",
                number,
                "reviews",
                review,
                "comments",
                purpose=Purpose.READ,
                need=Need.READ_PULLS,
            )
        except NotFound:
            return ()
        return reading.every(found if isinstance(found, list) else (), gitea_reading.on_line)

    def _pulls(self, repo: RepositoryClient, root: str, heads: Collection[str]) -> Sequence[Pull]:
        memory = self._remembered(self._memories, repo, root, pulls.Memory)
        return pulls.gitea_pulls(repo, memory, heads, self._now)

    def _opened(self, repo: RepositoryClient, root: str, entry: Any) -> None:
        memory = self._remembered(self._memories, repo, root, pulls.Memory)
        memory.heads.learn(pulls.seen(gitea_reading.pull, [entry]))

    def _blocked_by(self, repo: RepositoryClient, number: int) -> Sequence[Any]:
        return repo.every(
            "issues", number, "dependencies", purpose=Purpose.BLOCKERS, need=Need.READ_ISSUES
        )

    def _blocker(self, repository: str, entry: Any) -> str | None:
        return gitea_reading.blocker(entry, repository)

    def _place(self, entry: Any) -> str:
        return gitea_reading.place(entry)

    def _hint(self, entry: Any) -> Hint:
        return Hint(None, reading.moment(entry, "updated_at"))

    def _label_words(self, repo: RepositoryClient, names: Sequence[str]) -> list[int]:
        """Numbers: older servers know nothing else, and all drop a label that they do not know."""
        known = _numbers(self._own_labels(repo), names)
        if len(known) < len(set(names)):
            known = {**_numbers(self._shared_labels(repo), names), **known}
        for name in names:
            if name not in known:
                raise Refused(f"There is no label “{name}” in {repo.repository}.")
        return [known[name] for name in names]

    def _own_labels(self, repo: RepositoryClient) -> Sequence[Any]:
        return repo.every("labels", purpose=Purpose.READ, need=Need.READ_ISSUES)

    def _shared_labels(self, repo: RepositoryClient) -> Sequence[Any]:
        """Labels of the organisation; none for a person, or where the token may not see them."""
        try:
            found = repo.outside("/orgs", repo.repository.owner, "labels", params={"limit": 50})
        except Refused:
            return ()
        return found.data if found.status == 200 and isinstance(found.data, list) else ()

    def _merged(self, repo: RepositoryClient, number: int, head_commit: str) -> Answer:
        about = repo.get(purpose=Purpose.READ, need=Need.SEE)
        return repo.send(
            "POST",
            "pulls",
            number,
            "merge",
            json={"Do": merge_rules.gitea_style(about), "head_commit_id": head_commit},
            need=Need.MERGE,
            expect=(200, 404, 405, 409, 422),
        )


def _numbers(entries: Any, names: Sequence[str]) -> dict[str, int]:
    """The numbers of labels by name."""
    found: dict[str, int] = {}
    for entry in entries if isinstance(entries, list) else ():
        name, known = reading.text(entry, "name"), reading.number(entry, "id")
        if name in names and known is not None:
            found.setdefault(name, known)
    return found

"""The adapter of GitHub: github.com and Enterprise, with a token or as a GitHub App."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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
    PullState,
    Refused,
)
from trackers.errors import MergeQueueError
from trackers.forges import (
    branch_test,
    check_outputs,
    connection_test,
    github_reading,
    merge_rules,
    pulls,
    reading,
)
from trackers.forges.blockers import Hint, TrackerWithBlockers
from trackers.forges.github_app import AppTokens
from trackers.forges.pulls import Heads
from trackers.forges.repository import GITHUB, Need, RepositoryClient, is_commit, number_of
from trackers.forges.tracker import LABEL_COLOUR
from trackers.http.client import Answer, Client


class GitHubTracker(TrackerWithBlockers):
    """Issues and pull requests on GitHub."""

    kind = "github"
    dialect = GITHUB

    def __init__(
        self,
        client: Client,
        accounts: Callable[[], Mapping[str, Account]],
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(client, accounts, now)
        self._heads: dict[tuple[str, str], Heads] = {}
        self._blocker_caches = {}
        self._tokens = AppTokens(client, now)

    def open_count(self, root: str) -> int:
        """How many issues are open. GitHub's own count has the pull requests in it."""
        return len(self._listed(self._repo(root), "", Purpose.QUEUE))

    def remove_label(self, root: str, key: str, label: str) -> None:
        """Take a label off an issue. Raises NotFound, Refused."""
        repo, number = self._repo(root), number_of(key)
        answer = self._to_issue(
            repo, number, "DELETE", "labels", label, json=None, expect=(200, 404)
        )
        if answer.status == 404:
            # It is not on it, which is fine; or there is no such issue, or no right to do that.
            carried = reading.labels(self._entry(repo, number, Purpose.READ))
            if label.casefold() in (name.casefold() for name in carried):
                raise Refused(
                    f"{repo.host} does not let this account take a label off issue {key}."
                )

    def labels(self, root: str) -> Collection[str]:
        """The labels of the repository."""
        return frozenset(self._names(self._repo(root)))

    def create_label(self, root: str, label: str) -> None:
        """Make a label. Raises Refused."""
        repo = self._repo(root)
        answer = repo.send(
            "POST",
            "labels",
            json={"name": label, "color": LABEL_COLOUR},
            need=Need.WRITE_ISSUES,
            expect=(201, 422),
        )
        errors = reading.value(answer.data, "errors")
        codes = [reading.text(one, "code") for one in errors] if isinstance(errors, list) else []
        if answer.status == 422 and "already_exists" not in codes:
            raise Refused(
                f"{repo.host} does not make a label “{label}”: {reading.error_text(answer.data)}"
            )

    def checks(self, root: str, commit: str) -> Sequence[Check]:
        """Check runs and commit statuses, by name. Raises NotFound for what is no whole commit."""
        repo = self._repo(root)
        if not is_commit(commit):
            raise NotFound(f"{commit[:60]} is not the name of a commit.")
        found: list[Check] = []
        for what, within, read in (
            ("check-runs", "check_runs", github_reading.check_run),
            ("status", "statuses", github_reading.status),
        ):
            entries = repo.every(
                "commits",
                commit,
                what,
                purpose=Purpose.READ,
                need=Need.READ_CHECKS,
                within=within,
            )
            found += reading.every(entries, read)
        return sorted(found, key=lambda check: check.name)

    def check_output(self, root: str, commit: str, check: Check) -> CheckOutput:
        """Read the end of its job's log, or what its check run says."""
        return check_outputs.read_from_github(self._repo(root), check)

    def examine(self, root: str, label: str) -> Sequence[Finding]:
        """Try what labsite needs of this root, in words. Never raises."""
        return connection_test.examine_github(lambda: self._repo(root), label, self._tokens)

    def examine_branch(self, root: str, prefix: str, key: str) -> Sequence[Finding]:
        """Find out whether its rules let such branches be pushed. Never raises."""
        return branch_test.examine_github(lambda: self._repo(root), prefix, key)

    def _ready(self, account: Account) -> Account:
        return self._tokens.ready(account)

    def _not_accepted(self, account: Account) -> None:
        self._tokens.drop(account)

    def _read_issue(self, entry: Any) -> Issue | None:
        return reading.issue(entry)

    def _read_pull(self, entry: Any) -> Pull | None:
        return github_reading.pull(entry)

    def _list_params(self, label: str) -> Mapping[str, str]:
        params = {"state": "open", "sort": "created", "direction": "asc"}
        return {**params, "labels": label} if label else params

    def _has_label(self, issue: Issue, label: str) -> bool:
        """GitHub's labels differ by more than upper and lower case."""
        return label.casefold() in (name.casefold() for name in issue.labels)

    def _comments(self, repo: RepositoryClient, number: int) -> Sequence[Any]:
        return repo.every("issues", number, "comments", purpose=Purpose.READ, need=Need.READ_ISSUES)

    def _reviewed(self, repo: RepositoryClient, number: int) -> Sequence[Comment]:
        reviews, on_lines = (
            repo.every("pulls", number, what, purpose=Purpose.READ, need=Need.READ_PULLS)
            for what in ("reviews", "comments")
        )
        return [
            *reading.every(reviews, reading.review),
            *reading.every(on_lines, github_reading.on_line),
        ]

    def _pulls(self, repo: RepositoryClient, root: str, heads: Collection[str]) -> Sequence[Pull]:
        known = self._remembered(self._heads, repo, root, Heads)
        return pulls.github_pulls(repo, known, heads)

    def _opened(self, repo: RepositoryClient, root: str, entry: Any) -> None:
        self._remembered(self._heads, repo, root, Heads).learn(
            pulls.seen(github_reading.pull, [entry])
        )

    def _blocked_by(self, repo: RepositoryClient, number: int) -> Sequence[Any]:
        return repo.every(
            "issues",
            number,
            "dependencies",
            "blocked_by",
            purpose=Purpose.BLOCKERS,
            need=Need.READ_ISSUES,
        )

    def _blocker(self, repository: str, entry: Any) -> str | None:
        return github_reading.blocker(entry, repository)

    def _place(self, entry: Any) -> str:
        return github_reading.place(entry)

    def _hint(self, entry: Any) -> Hint:
        at = reading.moment(entry, "updated_at")
        return Hint(github_reading.blocked_by(entry), at)

    def _label_words(self, repo: RepositoryClient, names: Sequence[str]) -> list[str]:
        """Names, as they are on GitHub; it would make or drop those that it does not know."""
        known = {name.casefold(): name for name in self._names(repo)}
        for name in names:
            if name.casefold() not in known:
                raise Refused(f"There is no label “{name}” in {repo.repository}.")
        return [known[name.casefold()] for name in names]

    def _names(self, repo: RepositoryClient) -> list[str]:
        entries = repo.every("labels", purpose=Purpose.READ, need=Need.READ_ISSUES)
        return [name for entry in entries if (name := reading.text(entry, "name"))]

    def _merged(self, repo: RepositoryClient, number: int, head_commit: str) -> Answer:
        about = repo.get(purpose=Purpose.READ, need=Need.SEE)
        pull = self._one_pull(repo, number, Purpose.READ)
        rules = self._merge_rules(repo, pull.base) if pull.state is PullState.OPEN else None
        if rules is not None and rules.has_queue:
            raise _needs_queue(repo, pull)
        styles = merge_rules.github_styles(about, rules)
        if not styles:
            raise Refused(
                f"The rules of {pull.base} on {repo.host} allow none of the ways of merging that "
                f"{repo.repository} allows. One has to be allowed in both."
            )
        for style in styles:
            answer = repo.send(
                "PUT",
                "pulls",
                number,
                "merge",
                json={"sha": head_commit, "merge_method": style},
                need=Need.MERGE,
                expect=(200, 404, 405, 409, 422),
            )
            said = reading.error_text(answer.data)
            if answer.status == 405 and merge_rules.is_queue_required(said):
                raise _needs_queue(repo, pull)
            if answer.status != 405 or not merge_rules.is_style_refused(said):
                break
        return answer

    def _merge_rules(self, repo: RepositoryClient, branch: str) -> merge_rules.MergeRules | None:
        """What rulesets say of a branch; None on servers and plans that have none."""
        try:
            entries = repo.every("rules", "branches", branch, purpose=Purpose.READ, need=Need.SEE)
        except (NotFound, Refused):
            return None
        return merge_rules.read_merge_rules(entries)


def _needs_queue(repo: RepositoryClient, pull: Pull) -> MergeQueueError:
    """Entering the queue takes GitHub's other API, which labsite does not speak."""
    return MergeQueueError(
        f"{repo.host} merges into {pull.base} by a queue. Nothing went wrong, and pull request "
        f"{pull.number} stays open: press “Merge when ready” on its page there. It is merged once "
        "the queue has come to it."
    )

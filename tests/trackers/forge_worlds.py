"""The small world of the contract tests on each forge, asked by the product's client and adapter.

`folder` keeps answers, so that asking again is conditional.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.trackers.forge import Double, Gitea, GitHub, Repo, faults, forgejo
from tests.trackers.forge.visitor import FORGE, a_client, accounts
from trackers.account import Account
from trackers.base import CheckState, Comment, Tracker
from trackers.forges.gitea import GiteaTracker
from trackers.forges.github import GitHubTracker

BEGINNING = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class ForgeWorld:
    """A forge in this process; `adapter` asks it as somebody who may write."""

    checks: Mapping[CheckState, Mapping[str, Any]]

    def __init__(self, forge: Double, adapter: Callable[..., Tracker], folder: Path | None) -> None:
        self.forge = forge
        self.token = forge.token("bot")
        held = accounts(forge, self.token)
        self.client = a_client(forge, folder)
        self.tracker = adapter(self.client, lambda: held, forge.now)

    def repo(self, root: str) -> Repo:
        """The repository of a root."""
        found = self.forge.find_repo(root.partition("/")[2])
        assert found is not None
        return found

    def key(self, number: int) -> str:
        return str(number)

    def root(self, name: str) -> str:
        repo = self.forge.repo(f"acme/{name}", roles={"bot": "write"})
        return f"{FORGE}/{repo.full_name}"

    def issue(
        self,
        root: str,
        number: int,
        title: str,
        *,
        labels: Sequence[str] = (),
        is_open: bool = True,
    ) -> None:
        """Numbers are given out in the order of time, whatever the order of a test."""
        made = self.repo(root).issue(title, number=number, labels=labels, is_open=is_open)
        made.created_at = BEGINNING + timedelta(seconds=number)

    def pull(self, root: str, head: str, state: str = "open") -> int:
        return self.repo(root).pull(head, state).number

    def lose(self, root: str) -> None:
        self._spoil(root, "", faults.status(503))

    def break_an_issue(self, root: str) -> None:
        self._spoil(root, "/issues", faults.broken_entries())

    def break_a_pull(self, root: str, head: str) -> None:
        self._spoil(root, "/pulls", faults.broken_entries())

    def remark(self, root: str, number: int, author: str, body: str) -> None:
        repo = self.repo(root)
        repo.remark(repo.items[number], self.forge.person(author), body)

    def said(self, root: str, number: int, comment: Comment) -> None:
        """Somebody reviews a pull request as a whole, or one line of it."""
        repo = self.repo(root)
        item, author = repo.items[number], self.forge.person(comment.author)
        path, _, line = comment.place.partition(":")
        review = repo.review(item, author, "" if path else comment.body)
        if path:
            hunk = f"@@ -1,2 +1,2 @@\n kept\n+{comment.quote}"
            repo.remark_on_line(item, review, comment.body, path, int(line), hunk)

    def milestone(self, root: str, number: int, title: str) -> None:
        self.repo(root).items[number].milestone = title

    def block(self, root: str, number: int, by: int) -> None:
        repo = self.repo(root)
        repo.items[number].blocked_by.append((repo, repo.items[by]))

    def check(self, root: str, commit: str, name: str, state: CheckState) -> None:
        self.repo(root).check(commit, name, **self.checks[state])

    def _spoil(self, root: str, path: str, fault: faults.Fault) -> None:
        place = f"/repos/{root.partition('/')[2]}{path}"
        self.forge.faults.add(fault, times=faults.FOREVER, path=place)


class GiteaWorld(ForgeWorld):
    """Gitea."""

    checks = {
        CheckState.PASSED: {"state": "success"},
        CheckState.FAILED: {"state": "failure"},
        CheckState.RUNNING: {"state": "pending"},
    }

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(Gitea(), GiteaTracker, folder)


class ForgejoWorld(GiteaWorld):
    """Forgejo, through the adapter of Gitea."""

    def __init__(self, folder: Path | None = None) -> None:
        ForgeWorld.__init__(self, forgejo(), GiteaTracker, folder)


class GitHubWorld(ForgeWorld):
    """GitHub; its checks are check runs."""

    checks = {
        CheckState.PASSED: {"state": "completed", "is_run": True},
        CheckState.FAILED: {"state": "completed", "conclusion": "failure", "is_run": True},
        CheckState.RUNNING: {"state": "in_progress", "is_run": True},
    }

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(GitHub(), GitHubTracker, folder)


class EnterpriseWorld(GitHubWorld):
    """A GitHub Enterprise server, whose API is below /api/v3."""

    def __init__(self, folder: Path | None = None) -> None:
        ForgeWorld.__init__(self, GitHub(enterprise=True), GitHubTracker, folder)


@functools.cache
def _key() -> tuple[str, str]:
    """A key pair as PEM; making one takes longer than most tests."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private.decode(), public.decode()


class AppWorld(GitHubWorld):
    """GitHub, asked by an installation of a GitHub App."""

    def __init__(self, folder: Path | None = None) -> None:
        forge = GitHub()
        private, public = _key()
        writes = ("issues", "pull_requests", "contents")
        forge.app(
            "12",
            "34",
            public,
            {
                "metadata": "read",
                "checks": "read",
                "statuses": "read",
                **dict.fromkeys(writes, "write"),
            },
        )
        account = Account(forge.api, app_id="12", app_installation="34", app_key=private)
        self.forge = forge
        self.client = a_client(forge, folder)
        self.tracker = GitHubTracker(self.client, lambda: {FORGE: account}, forge.now)


MORE_FORGES: Mapping[str, Callable[..., ForgeWorld]] = {
    "github enterprise": EnterpriseWorld,
    "github app": AppWorld,
}
FORGES: Mapping[str, Callable[..., ForgeWorld]] = {
    "gitea": GiteaWorld,
    "forgejo": ForgejoWorld,
    "github": GitHubWorld,
}

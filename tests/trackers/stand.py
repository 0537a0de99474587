"""An adapter on the double of its forge, with one repository; for tests of what forges share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.trackers.forge import Double, Gitea, GitHub, Repo, forgejo
from tests.trackers.forge.visitor import a_client, accounts
from trackers.base import Issue, Pull
from trackers.forges.gitea import GiteaTracker
from trackers.forges.github import GitHubTracker
from trackers.forges.tracker import ForgeTracker

ROOT = "1/acme/shop"
READY = "ready-for-agent"
NOTHING = "names no repository"
FORGES = {"github": GitHub, "gitea": Gitea, "forgejo": forgejo}


@dataclass
class Stand:
    """A forge, one repository on it, and the adapter that asks as `bot`, who may write."""

    forge: Double
    repo: Repo
    tracker: ForgeTracker
    token: str

    # Asked beside a root that names nothing and costs nothing, since the only root of a question
    # may say why it could not be read.

    def ready(self, root: str = ROOT) -> list[Issue] | None:
        """The ready queue of one root."""
        found = self.tracker.queues({root: READY, NOTHING: READY})[root]
        return None if found is None else list(found)

    def pulls(self, *heads: str, root: str = ROOT) -> list[Pull] | None:
        """The pull requests of heads."""
        found = self.tracker.pulls({root: heads, NOTHING: ()})[root]
        return None if found is None else list(found)

    def open(self, *keys: str, root: str = ROOT) -> list[str] | None:
        """Which of these issues are open."""
        found = self.tracker.still_open({root: keys, NOTHING: ()})[root]
        return None if found is None else [issue.key for issue in found]

    def waits(self, *keys: str, root: str = ROOT) -> dict[str, list[str]] | None:
        """What these issues wait for."""
        found = self.tracker.blockers({root: keys, NOTHING: ()})[root]
        return None if found is None else {key: list(others) for key, others in found.items()}

    def count(self) -> int:
        """How many requests the forge has seen."""
        return len(self.forge.log)


def a_stand(forge: Double, folder: Path | None = None, *, role: str = "write") -> Stand:
    """An adapter on a forge; `folder` keeps answers for conditional questions."""
    repo, token = forge.repo("acme/shop", roles={"bot": role}), forge.token("bot")
    return Stand(forge, repo, tracker_on(forge, token, folder), token)


def tracker_on(forge: Double, token: str, folder: Path | None = None) -> ForgeTracker:
    """The adapter of a forge's kind, with a credential."""
    made = GitHubTracker if forge.style == "github" else GiteaTracker
    return made(a_client(forge, folder), lambda: accounts(forge, token), forge.now)

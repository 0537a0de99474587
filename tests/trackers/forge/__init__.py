"""GitHub, Gitea and Forgejo in this process, strict about what their descriptions say.

    forge = Gitea()                                  # or GitHub(), forgejo(), GitHub(enterprise=True)
    repo, token = forge.repo("acme/shop", roles={"bot": "write"}), forge.token("bot")
    repo.issue("Add retries", number=7, labels=["ready-for-agent"]); repo.pull("afk/7", "merged")
    client = Client(transport=forge.transport(), …)  # or: with forge.serving() as api: … a real socket
    forge.faults.add(faults.status(502), path="/pulls"); forge.calls("/pulls"); forge.check()

`Account(api=forge.api, token=token)` asks it. The fixtures `github`, `gitea` and `forgejo` of
tests/trackers/conftest.py call `check()` at the end: a request that the description does not allow
fails the test. `forge.clock.advance(seconds)` moves the forge's time, or pass `now`.
"""

from __future__ import annotations

from tests.trackers.forge import faults
from tests.trackers.forge.asking import Asked, Dropped, Logged, Told
from tests.trackers.forge.double import Double
from tests.trackers.forge.gitea import Gitea, forgejo
from tests.trackers.forge.github import GitHub
from tests.trackers.forge.repo import Repo
from tests.trackers.forge.shelf import Clock
from tests.trackers.forge.state import SHA, Item

__all__ = [
    "SHA",
    "Asked",
    "Clock",
    "Double",
    "Dropped",
    "GitHub",
    "Gitea",
    "Item",
    "Logged",
    "Repo",
    "Told",
    "faults",
    "forgejo",
]

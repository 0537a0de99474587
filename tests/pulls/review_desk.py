"""A pull request for page tests: a few files, two commits, on the fake git."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from runs.pulls import acts as pulls
from tests import make
from tests.fakes import START, World
from trackers import registry
from trackers.base import NewPull
from trackers.builtin import store
from trackers.builtin.models import PullRequest

ORIGIN = "refs/remotes/origin/"
APP = "import os\n\n\ndef greet(name):\n    print('hello ' + name)\n    return os.name\n"
NEW = APP.replace("'hello ' + name", "f'hello {name}'")
BEFORE = {"src/app.py": APP, "old.txt": "gone\n"}
AFTER = {"src/app.py": NEW, "src/deep/down/new.py": "x = 1\ny = 2\n", "logo.png": "\0png"}


class Review:
    """The project, its git, and the one pull request."""

    def __init__(
        self,
        world: World,
        before: Mapping[str, str] = BEFORE,
        after: Mapping[str, str] = AFTER,
        name: str = "demo",
    ) -> None:
        world.lab = dataclasses.replace(world.lab, tracker_for=registry.tracker)
        self.world, self.git = world, world.repos
        self.project = make.a_project(name, tracker="builtin", tracker_root=store.create_root(name))
        self.base = self.git.commit(before, subject="chore: begin")
        middle = {**before, "src/deep/down/new.py": "x = 1\n"}
        self.first = self.git.commit(middle, self.base, subject="feat: begin", body="Why\n\nnot?")
        self.head = self.git.commit(after, self.first, subject="feat: <b>greet</b>")
        self.move(self.head)
        new = NewPull("afk/1", "main", "Greet", "It greets.", "Claude", self.head, self.base)
        self.number = store.create_pull(self.project.tracker_root, new, at=START)
        self.at = f"/projects/{self.project.pk}/pulls/{self.number}/"

    def move(self, head: str) -> None:
        """The branch is at this commit now."""
        self.git.refs |= {f"{ORIGIN}main": self.base, f"{ORIGIN}afk/1": head}

    def more(self) -> str:
        """A further commit on the branch."""
        head = self.git.commit({**AFTER, "late.txt": "late\n"}, self.head, subject="fix: late")
        self.move(head)
        return head

    def say(self, body: str = "Why?", by: str = "bert", **more: Any) -> int:
        return pulls.comment(self.world.lab, self.project, self.number, body=body, by=by, **more)

    @property
    def pull(self) -> PullRequest:
        return PullRequest.objects.get(number=self.number)

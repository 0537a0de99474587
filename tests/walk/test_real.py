"""One long random day on real git and tmux; not a commit and not a byte may be lost on it."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from runs.domain.ports import Lab
from runs.models import Project, Rescue, Run, Settings
from runs.work import merging, pulls
from tests.real import RealWorld, git
from tests.walk import walk
from tests.walk.walk import OFTEN, Walk
from trackers.base import PullState, Refused
from trackers.builtin import store
from trackers.builtin.models import PullRequest

pytestmark = pytest.mark.django_db(transaction=True)

STEPS, SEED, CAP, ISSUES = 200, 7, 2, 12
AGENT = ["sleep", "600"]


@dataclass
class RealHands:
    """Agents that write and commit real files; `made` is all that they ever made."""

    world: RealWorld
    files: dict[Path, tuple[Path, str]] = field(default_factory=dict)
    commits: dict[str, Path] = field(default_factory=dict)
    counted: int = 0

    def die(self, run: Run) -> None:
        self.world.tmux("kill-session", "-t", f"={run.session}")

    def scribble(self, run: Run) -> None:
        self.counted += 1
        file = Path(run.worktree) / f"note-{self.counted}.txt"
        file.write_text(f"thought {self.counted}\n")
        self.files[file] = self._repo(run), f"thought {self.counted}\n"

    def commit(self, run: Run) -> None:
        self.scribble(run)
        git(Path(run.worktree), "add", "-A")
        git(Path(run.worktree), "commit", "-qm", f"work {self.counted}")
        self.commits[git(Path(run.worktree), "rev-parse", "HEAD")] = self._repo(run)

    def deliver(self, run: Run) -> None:
        self.commit(run)
        # Origin may still have the branch of an attempt that was discarded here; then it refuses.
        with suppress(Refused, subprocess.CalledProcessError):
            git(Path(run.worktree), "push", "-q", "origin", f"HEAD:refs/heads/{run.branch}")
            pulls.create(self.world.lab, run, title=f"Work {self.counted}")

    def forward(self, minutes: int) -> None:
        self.world.offset += timedelta(minutes=minutes)

    def merge(self, lab: Lab, which: int) -> None:
        waiting = list(PullRequest.objects.filter(state=PullState.OPEN).order_by("pk"))
        if waiting:
            pull = waiting[which % len(waiting)]
            project = Project.objects.get(tracker_root=str(pull.root_id))
            with suppress(merging.MergeRefused):
                merging.merge(lab, project, pull.number, by="anna")

    def lost(self) -> Iterator[str]:
        for repo in {project.repo(self.world.paths) for project in Project.objects.all()}:
            reachable = _reachable(repo)
            for commit, of in self.commits.items():
                if of == repo and commit not in reachable:
                    yield f"commit {commit[:10]} of {repo.name} is nowhere any more"
            for file, (of, text) in self.files.items():
                if of == repo and not _is_there(file, text) and _blob(repo, text) not in reachable:
                    yield f"{file.name} of {repo.name} is nowhere any more"

    def _repo(self, run: Run) -> Path:
        return run.project.repo(self.world.paths)


def _is_there(file: Path, text: str) -> bool:
    return file.is_file() and file.read_text() == text


def _blob(repo: Path, text: str) -> str:
    """The name that git gives to this content."""
    done = subprocess.run(
        ["git", "-C", str(repo), "hash-object", "--stdin"],
        input=text.encode(),
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def _reachable(repo: Path) -> set[str]:
    """Every object that a ref or a worktree still leads to."""
    trees = git(repo, "worktree", "list", "--porcelain").splitlines()
    heads = [line[5:] for line in trees if line.startswith("HEAD ") and set(line[5:]) != {"0"}]
    found = git(repo, "rev-list", "--objects", "--all", *heads).splitlines()
    return {line.split()[0] for line in found}


def test_two_hundred_steps_on_real_git_lose_nothing(real: RealWorld) -> None:
    walk.prepare()
    for name in ("alpha", "beta"):
        project = real.project(name, argv=AGENT, tracker="builtin")
        for _ in range(ISSUES):
            store.create_issue(
                project.tracker_root,
                title="Do it",
                body="",
                author="anna",
                labels=["ready-for-agent"],
                at=real.lab.now(),
            )
    Settings.objects.update(session_cap=CAP)
    hands = RealHands(real)
    day = Walk(replace(real.lab, pause=lambda seconds: None), hands)
    chance = random.Random(SEED)  # noqa: S311
    acts, shares = list(OFTEN), list(OFTEN.values())
    for _ in range(STEPS):
        fuse = chance.choice([0, 0, 0, chance.randint(1, 40)])
        day.act(chance.choices(acts, shares)[0], chance.randrange(6), fuse)
    day.rest()
    ended = Counter(Run.objects.values_list("outcome", flat=True))
    assert min(ended["succeeded"], ended["stopped"], ended["died"], day.kills) >= 3, ended
    merged = PullRequest.objects.filter(state=PullState.MERGED).count()
    assert min(len(hands.commits), 3 * Rescue.objects.count(), 5 * merged) > 10

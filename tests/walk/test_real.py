"""One long random day on real git and tmux; not a commit and not a byte may be lost on it."""

from __future__ import annotations

import hashlib
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from runs.core.ports import Lab
from runs.kept import parked
from runs.models import AgentProfile, Project, Rescue, Run, Settings
from runs.pulls import acts as pulls
from runs.pulls import merging
from tests.real import RealWorld, git
from tests.walk import walk
from tests.walk.walk import OFTEN, TIMES, Walk
from trackers.base import PullState, Refused
from trackers.builtin import store
from trackers.builtin.models import PullRequest

pytestmark = pytest.mark.django_db(transaction=True)

# Git is asked for all that was ever made after each step; a night may take more of them.
STEPS, MOST_STEPS, SEEDS, CAP, ISSUES = 200 * TIMES, 1200 * TIMES, (2,), 2, 12
AGENT = ["sleep", "600"]


@dataclass
class RealHands:
    """Agents that write and commit real files; `made` is all that they ever made."""

    world: RealWorld
    files: dict[Path, tuple[Path, str]] = field(default_factory=dict)
    commits: dict[str, Path] = field(default_factory=dict)
    counted: int = 0
    tried: Counter[int] = field(default_factory=Counter)
    flashed: int = 0

    def die(self, run: Run) -> None:
        self.world.tmux("kill-session", "-t", f"={run.session}")

    def scribble(self, run: Run) -> None:
        self.counted += 1
        file = Path(run.worktree) / f"note-{self.counted}.txt"
        file.write_text(f"thought {self.counted}\n")
        self.files[file] = self._repo(run), f"thought {self.counted}\n"

    def commit(self, run: Run) -> None:
        self.scribble(run)
        if not (Path(run.worktree) / ".git").exists():
            return
        git(Path(run.worktree), "add", "-A")
        git(Path(run.worktree), "commit", "-qm", f"work {self.counted}")
        self.commits[git(Path(run.worktree), "rev-parse", "HEAD")] = self._repo(run)

    def deliver(self, run: Run) -> None:
        self.commit(run)
        if not (Path(run.worktree) / ".git").exists():
            return
        # Origin may still have the branch of an attempt that was discarded here; then it refuses.
        with suppress(Refused, subprocess.CalledProcessError):
            git(Path(run.worktree), "push", "-q", "origin", f"HEAD:refs/heads/{run.branch}")
            pulls.create(self.world.lab, run, title=f"Work {self.counted}")

    def misbehave(self, run: Run, how: int) -> None:
        tree, link = Path(run.worktree), Path(run.worktree) / ".git"
        self.scribble(run)
        kind = sum(self.tried.values()) % 4
        self.tried[kind] += 1
        if kind == 0 and link.exists():
            at = git(tree, "symbolic-ref", "-q", "--short", "HEAD")
            name = f"afk/9{self.counted}" if how else f"other-{self.counted}"
            git(tree, "branch", "-q", "-m", at, name)
        elif kind == 1 and link.is_file():
            link.unlink()
        elif kind == 2 and not link.is_dir():
            link.unlink(missing_ok=True)
            git(tree, "init", "-q", "-b", run.branch)
            self.commit(run)
        elif kind == 3:
            self.hide(run)

    def hide(self, run: Run) -> None:
        """Have git ignore what this agent then writes and never commits."""
        own = Path(run.worktree) / ".git"
        info = (own if own.is_dir() else self._repo(run)) / "info"
        info.mkdir(exist_ok=True)
        (info / "exclude").write_text("hidden-*\n")
        file = Path(run.worktree) / f"hidden-{self.counted}.txt"
        file.write_text(f"hidden {self.counted}\n")
        self.files[file] = self._repo(run), f"hidden {self.counted}\n"

    @contextmanager
    def flashing(self, how: int) -> Iterator[None]:
        self.counted += 1
        text = f"flash {self.counted}"
        after = ("rm -f .git", "git init -q -b x", "git branch -m x", "git add -A")[how % 4]
        argv = ["sh", "-c", f"echo '{text}' > flash-{self.counted}.txt; {after}; exit 9"]
        before = {run.pk for run in Run.objects.all()}
        AgentProfile.objects.update(argv=argv)
        try:
            yield
        finally:
            AgentProfile.objects.update(argv=AGENT)
            new = Run.objects.exclude(pk__in=before).exclude(worktree="")
            # Two hands in one worktree get in each other's way, as two gits do.
            self.world.until(lambda: not self._alive() & {run.session for run in new.all()})
            for run in new.all():
                file = Path(run.worktree) / f"flash-{self.counted}.txt"
                if file.exists():
                    self.flashed += 1
                    self.files[file] = self._repo(run), f"{text}\n"

    def _alive(self) -> set[str]:
        return {name for name, seen in self.world.sessions.look().items() if seen.alive}

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
            reachable = _reachable(repo) | self._in_own_repositories()
            for commit, of in self.commits.items():
                if of == repo and commit not in reachable:
                    yield f"commit {commit[:10]} of {repo.name} is nowhere any more"
            for file, (of, text) in self.files.items():
                if of == repo and not _is_there(file, text) and _blob(text) not in reachable:
                    yield f"{file.name} of {repo.name} is nowhere any more"

    def _in_own_repositories(self) -> set[str]:
        """What repositories lead to that agents made of their worktrees."""
        own = [tree for tree in self.world.paths.worktrees.glob("*") if (tree / ".git").is_dir()]
        listed = [git(tree, "rev-list", "--objects", "--all").splitlines() for tree in own]
        return {line.split()[0] for lines in listed for line in lines}

    def unlisted(self) -> Iterator[str]:
        """Worktrees that no page shows: neither a live run's nor parked."""
        shown = set(Run.objects.filter(settled_at=None).values_list("worktree", flat=True))
        for project in Project.objects.all():
            page, pages = 0, 1
            while page < pages:
                found = parked.listing(self.world.lab, project, page := page + 1)
                pages = found.last
                shown |= {entry.path for entry in found.entries}
        for tree in self.world.paths.worktrees.iterdir():
            if str(tree) not in shown:
                yield f"nobody lists {tree.name}"

    def _repo(self, run: Run) -> Path:
        return run.project.repo(self.world.paths)


def _is_there(file: Path, text: str) -> bool:
    return file.is_file() and file.read_text() == text


def _blob(text: str) -> str:
    """The name that git gives to this content."""
    content = text.encode()
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content)).hexdigest()  # noqa: S324


def _reachable(repo: Path) -> set[str]:
    """Every object that a ref or a worktree still leads to."""
    trees = git(repo, "worktree", "list", "--porcelain").splitlines()
    heads = [line[5:] for line in trees if line.startswith("HEAD ") and set(line[5:]) != {"0"}]
    found = git(repo, "rev-list", "--objects", "--all", *heads).splitlines()
    return {line.split()[0] for line in found}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_day_on_real_git_loses_nothing(real: RealWorld, seed: int) -> None:
    walk.prepare()
    for name in ("alpha", "beta"):
        project = real.project(name, argv=AGENT, tracker="builtin")
        for _ in range(ISSUES):
            _write_issue(real, project)
    Settings.objects.update(session_cap=CAP)
    hands = RealHands(real)
    day = Walk(replace(real.lab, pause=lambda seconds: None), hands)
    chance = random.Random(seed)  # noqa: S311
    acts, shares = list(OFTEN), list(OFTEN.values())
    steps = 0
    # How long a program outside takes decides which way a day goes, so no number of steps promises
    # that each kind of thing has come: it goes on until it has.
    while steps < STEPS or (steps < MOST_STEPS and _missing(day, hands)):
        fuse = chance.choice([0, 0, 0, chance.randint(1, 40)])
        day.act(chance.choices(acts, shares)[0], chance.randrange(6), fuse)
        steps += 1
        if steps > STEPS and steps % 10 == 0:
            _write_issue(real, chance.choice(Project.objects.order_by("pk")))
    day.rest()
    assert not list(hands.unlisted())
    assert not _missing(day, hands)


def _write_issue(real: RealWorld, project: Project) -> None:
    store.create_issue(
        project.tracker_root,
        title="Do it",
        body="",
        author="anna",
        labels=["ready-for-agent"],
        at=real.lab.now(),
    )


def _missing(day: Walk, hands: RealHands) -> dict[str, int]:
    """What has come too seldom on this day to have shown anything, with how often it came."""
    ended = Counter(Run.objects.values_list("outcome", flat=True))
    merged = PullRequest.objects.filter(state=PullState.MERGED).count()
    came = {outcome: (ended[outcome], 3) for outcome in ("succeeded", "stopped", "died")}
    came |= {"killed": (day.kills, 3), "misbehaved": (len(hands.tried), 4)}
    came |= {"flashed": (hands.flashed, 1), "committed": (len(hands.commits), 11)}
    came |= {"rescued": (Rescue.objects.count(), 4), "merged": (merged, 3)}
    return {name: times for name, (times, least) in came.items() if times < least}

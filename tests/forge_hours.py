"""A project on a forge in this process, and hours that pass in seconds: what is asked is counted there.

The tests and `bench.requests` share it. Time is passed in, and nothing waits on the wall.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from runs import sweep, tick
from runs.forges import tracker_cache
from runs.forges.trackers import Trackers
from runs.models import Forge, Project, Run, Settings, WatchSession
from runs.watch import acts as watches
from tests import make
from tests.fakes import START, World
from tests.trackers.forge import Double, Gitea, Repo
from tests.trackers.forge.visitor import a_client
from trackers.registry import Tools

STEP, SLOW_STEP = 5.0, 15.0
READY = "ready-for-agent"


@dataclass(frozen=True)
class Counted:
    """What the forge saw in a while: requests by purpose of the path, and git commands at origin."""

    api: int
    git: int
    by: Counter[str]


class Hours:
    """One project that is looked at as the worker does, and the forge that it is on."""

    def __init__(self, world: World, forge: Double, **fields: Any) -> None:
        self.world, self.forge, self.git = world, forge, 0
        world.repos.fetch = self._counted(world.repos.fetch)  # type: ignore[method-assign]
        world.repos.default_branch = self._counted(world.repos.default_branch)  # type: ignore[method-assign]
        self.client = a_client(forge, world.lab.paths.answers)
        row = Forge.objects.create(
            name="forge",
            kind=forge.style,
            api=forge.api,
            web=forge.web,
            credential={"token": forge.token("bot")},
            created_at=START,
        )
        trackers = Trackers(
            Tools(now=world.clock, client=lambda: self.client), lambda: world.clock.passed
        )
        world.lab = replace(world.lab, tracker_for=trackers.tracker_for, forges=trackers)
        Settings.current()
        Settings.objects.update(agent=make.an_agent())
        self.repo: Repo = forge.repo("acme/shop", roles={"bot": "write"})
        root = f"{row.pk}/acme/shop"
        make.a_project("shop", tracker=forge.style, forge=row, tracker_root=root, **fields)

    def _counted(self, command: Callable[..., Any]) -> Callable[..., Any]:
        """A git command that talks to origin."""

        def counted(*args: Any, **more: Any) -> Any:
            self.git += 1
            return command(*args, **more)

        return counted

    @property
    def project(self) -> Project:
        return Project.objects.get()

    def hook(self) -> None:
        """Its webhook told of everything not long ago."""
        before = self.world.clock.now - timedelta(hours=1)
        times = ("hooked_at", "issues_hooked_at", "pulls_hooked_at")
        Project.objects.update(**dict.fromkeys(times, before))

    def tell(self, event: str) -> None:
        """A signed delivery came, and wakes the worker."""
        now = self.world.clock.now
        told = {"issues_hooked_at": now} if event.startswith("issues") else {"pulls_hooked_at": now}
        Project.objects.update(hooked_at=now, **told)
        watches.project_changed(self.world.lab, self.project.pk)
        tick.tick(self.world.lab, project="shop")
        self.work_off()

    def live(self, key: str = "7", **fields: Any) -> Run:
        """A run at work, with its branch."""
        run = make.a_run(self.project, key, started_at=self.world.clock.now, **fields)
        self.world.live(run)
        self.branch(f"afk/{key}")
        return run

    def branch(self, name: str) -> None:
        paths = self.world.lab.paths
        tree = paths.worktrees / name.replace("/", "-")
        self.world.repos.add_worktree(self.project.repo(paths), tree, name, "f" * 40)

    def step(self, seconds: float = STEP) -> None:
        """What the worker does in these seconds, its tasks among it."""
        self.world.clock.forward(seconds=seconds)
        tick.tick(self.world.lab)
        self.work_off()

    def work_off(self) -> None:
        queue, lab = self.world.queue, self.world.lab
        while queue.refreshes:
            tracker_cache.refresh(lab, queue.refreshes.pop(0))
        while queue.sweeps:
            sweep.carry_out(lab, queue.sweeps.pop(0))

    def until(self, is_so: Any, most: float = 3600.0, step: float = STEP) -> float:
        """Seconds until something is so, seen every few seconds; fails when it does not come."""
        for number in range(int(most / step)):
            if is_so():
                return number * step
            self.step(step)
        raise AssertionError("it did not come about")

    def passes(self, step: float = STEP, **length: float) -> Counted:
        """Let time pass, and count what the forge saw of it."""
        asked, git = len(self.forge.log), self.git
        for _ in range(int(timedelta(**length).total_seconds() / step)):
            self.step(step)
        lines = self.forge.log[asked:]
        by = Counter(_kind(line.path) for line in lines)
        return Counted(len(lines), self.git - git, by)


def _kind(path: str) -> str:
    """What a request was about."""
    if path.endswith(("/dependencies", "/blocked_by")):
        return "dependencies"
    last = path.rstrip("/").rpartition("/")[2]
    return {"issues": "queue", "pulls": "pulls"}.get(last, "other")


def gitea(world: World, **fields: Any) -> Hours:
    """On a Gitea, which knows no ETags."""
    return Hours(world, Gitea(world.clock), **fields)


def _ready(hours: Hours, count: int = 300) -> None:
    for number in range(count):
        hours.repo.issue(f"issue {number}", labels=[READY])


def _idle(hours: Hours) -> None:
    hours.repo.issue("not ready")


def _parked(hours: Hours) -> None:
    """A run left its branch, and a pull request that waits for a review."""
    hours.branch("afk/7")
    hours.repo.pull("afk/7")


def _live(hours: Hours) -> None:
    """Automatic work has started what it may."""
    _idle(hours)
    hours.step()
    hours.live(key="900", kind="auto", watch=WatchSession.objects.get())


def _nobody(hours: Hours, count: int = 300) -> None:
    """All are asked for in each poll, and none may start without a person."""
    _ready(hours, count)
    Project.objects.update(trusted="nobody")


def _blocked(hours: Hours, count: int = 300) -> None:
    other = hours.forge.repo("acme/library", roles={"bot": "write"})
    blocker = other.issue("first")
    _ready(hours, count)
    for item in hours.repo.items.values():
        item.blocked_by.append((other, blocker))


# What an hour is counted of, and what a project is like in it: automatic work, a webhook, what there is.
CASES: Mapping[str, tuple[bool, bool, Callable[[Hours], None]]] = {
    "idle": (False, False, _idle),
    "idle, with a webhook": (False, True, _idle),
    "a pull request waits for its review": (False, False, _parked),
    "a pull request waits for its review, with a webhook": (False, True, _parked),
    "idle, automatic work": (True, False, _idle),
    "idle, automatic work, with a webhook": (True, True, _idle),
    "one active run": (True, False, _live),
    "one active run, with a webhook": (True, True, _live),
    "300 ready issues that wait for a person": (True, False, _nobody),
    "300 ready issues that wait for a person, with a webhook": (True, True, _nobody),
    "300 ready issues that wait for another": (True, False, _blocked),
}


def cost(world: World, case: str, *, before: float = 60, minutes: float = 60) -> Counted:
    """What one project costs its Gitea in so many minutes, after some `before` them."""
    is_auto, has_hook, prepare = CASES[case]
    hours = gitea(world, is_auto=is_auto)
    prepare(hours)
    if has_hook:
        hours.hook()
    Settings.objects.update(run_budget_minutes=600)
    hours.passes(SLOW_STEP, minutes=before)
    return hours.passes(SLOW_STEP, minutes=minutes)

"""Short sentences that the lifecycle tests share."""

from __future__ import annotations

from pathlib import Path

from django.db.models import F, Max

from runs import tick
from runs.core import lease
from runs.core.ports import Lab
from runs.core.tick_context import TickContext
from runs.dispatch import start_requests
from runs.issues import acts as issues
from runs.kept import retention
from runs.models import Host, Notice, Outbox, Project, Run, Settings, StartRequest
from runs.notices import deliveries
from tests.real import RealWorld, git


def ready(world, key="7", root="demo", title=""):  # type: ignore[no-untyped-def]
    """An issue with the ready label on the memory tracker."""
    tracker = getattr(world, "memory", None) or world.tracker
    tracker.add_issue(root, title or f"Issue {key}", key, labels=("ready-for-agent",))


def press_start(world, project: Project, by: str = "anna", wanted: str = "") -> StartRequest:  # type: ignore[no-untyped-def]
    """Press the button; the worker answers and carries the launch out."""
    asked = start_requests.request(world.lab, project, by, wanted)
    tick.tick(world.lab, project=project.slug)
    work(world)
    return StartRequest.objects.select_related("run", "run__project").get(pk=asked.pk)


def start(world, project: Project, key: str = "7") -> Run:  # type: ignore[no-untyped-def]
    """A working run on a fresh ready issue."""
    ready(world, key, project.tracker_root)
    asked = press_start(world, project, wanted=key)
    assert asked.run is not None, asked.text
    return asked.run


def project_with_an_issue(real: RealWorld) -> Project:
    """A project with the built-in tracker and one ready issue, number 1."""
    made = real.project(tracker="builtin")
    issues.create(real.lab, made, title="Retry", body="", labels=[made.ready_label], by="anna")
    return made


def begin(real: RealWorld, project: Project, key: str = "1") -> Run:
    """A working run on an issue that is there."""
    asked = press_start(real, project, wanted=key)
    assert asked.run is not None, asked.text
    return asked.run


def commit(run: Run, text: str, name: str = "work.txt") -> str:
    """What an agent does: write a file and commit it."""
    tree = Path(run.worktree)
    (tree / name).write_text(text)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", f"feat: {text}")
    return git(tree, "rev-parse", "HEAD")


def live(days: float) -> None:
    """Labsite has worked for so many more days, by the clock that nobody can set."""
    Host.objects.update(lived=F("lived") + days * retention.DAY)


def passing(world, number: int | None = None, project: str = "") -> TickContext:  # type: ignore[no-untyped-def]
    """A tick under way: with the lease of this number, or with one that it takes now."""
    taken = lease.acquire(world.lab) if number is None else number
    assert taken is not None
    return TickContext(world.lab, taken, Settings.current(), world.lab.now(), project)


def look(world):  # type: ignore[no-untyped-def]
    """One whole tick, now."""
    return tick.tick(world.lab, force=True)


def work(world) -> None:  # type: ignore[no-untyped-def]
    """Carry out what the queue was asked for."""
    if hasattr(world, "work"):
        world.work()
        return
    from runs.lifecycle import launch

    while world.queue.launches:
        launch.carry_out(world.lab, world.queue.launches.pop(0))


def post_notices(lab: Lab) -> None:
    """Post what the timeline tells, as the periodic task does until it has come to its end.

    On PostgreSQL a transaction of another test's database that ends in the very moment keeps
    entries back once (decision 9).
    """
    asked = lab.queue.deliveries  # type: ignore[attr-defined]
    before = len(asked)
    deliveries.post(lab)
    for _ in range(20):
        if not _is_behind():
            return
        del asked[before:]
        deliveries.post(lab)


def _is_behind() -> bool:
    newest = Notice.objects.aggregate(newest=Max("pk"))["newest"] or 0
    return Outbox.objects.filter(last_notice__lt=newest).exists()

"""Short sentences that the lifecycle tests share."""

from __future__ import annotations

from django.db.models import F

from runs.models import Host, Project, Run, StartRequest
from runs.work import starts, terms, tick


def ready(world, key="7", root="demo", title=""):  # type: ignore[no-untyped-def]
    """An issue with the ready label on the memory tracker."""
    tracker = getattr(world, "memory", None) or world.tracker
    tracker.add_issue(root, title or f"Issue {key}", key, labels=("ready-for-agent",))


def press_start(world, project: Project, by: str = "anna", wanted: str = "") -> StartRequest:  # type: ignore[no-untyped-def]
    """Press the button; the worker answers and carries the launch out."""
    asked = starts.request(world.lab, project, by, wanted)
    tick.tick(world.lab, project=project.slug)
    work(world)
    return StartRequest.objects.select_related("run", "run__project").get(pk=asked.pk)


def start(world, project: Project, key: str = "7") -> Run:  # type: ignore[no-untyped-def]
    """A working run on a fresh ready issue."""
    ready(world, key, project.tracker_root)
    asked = press_start(world, project, wanted=key)
    assert asked.run is not None, asked.text
    return asked.run


def live(days: float) -> None:
    """Labsite has worked for so many more days, by the clock that nobody can set."""
    Host.objects.update(lived=F("lived") + days * terms.DAY)


def look(world):  # type: ignore[no-untyped-def]
    """One whole tick, now."""
    return tick.tick(world.lab, force=True)


def work(world) -> None:  # type: ignore[no-untyped-def]
    """Carry out what the queue was asked for."""
    if hasattr(world, "work"):
        world.work()
        return
    from runs.work import launch

    while world.queue.launches:
        launch.carry_out(world.lab, world.queue.launches.pop(0))

"""`python -m bench.monitors [--tasks N] [--groups N]`: passes and checks of monitors, beside their floors."""

from __future__ import annotations

import argparse
import dataclasses
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import crowd, figures

REPEATS, FEW = 30, 8
SIZES = (10, 1000)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--tasks", type=int, default=1000)
    options.add_argument("--groups", type=int, default=200)
    given = options.parse_args()
    crowd.begin()
    print(figures.head())
    with tempfile.TemporaryDirectory(prefix="lab-monitors-") as folder:
        passes(_world(Path(folder)), given.tasks)
    for size in SIZES:
        with tempfile.TemporaryDirectory(prefix="lab-monitors-") as folder:
            checks(_world(Path(folder)), given.groups, size)


def _world(folder: Path):  # type: ignore[no-untyped-def]
    """A clock that is moved by hand, real signal folders, and the real database."""
    from runs.core import lease
    from runs.groups.signal_files import SignalFolders
    from runs.models import Project
    from tests.fakes import World

    Project.objects.all().delete()
    world = World(folder)
    world.lab = dataclasses.replace(world.lab, signals=SignalFolders())
    lease.acquire(world.lab)
    return world


def passes(world, tasks: int) -> None:  # type: ignore[no-untyped-def]
    """One pass over a group of many tasks: nothing new, and with tasks that stall."""
    from runs.groups import monitor_stepper, monitors
    from runs.models import Monitor
    from tests.make import a_project
    from tests.world.stories import passing

    group = _group(a_project("passes"), "passes", tasks)
    given = {"timeout_seconds": None, "release_seconds": None, "stale_seconds": 86_400}
    monitor = monitors.start(world.lab, group, by="anna", given=given)

    def bare() -> None:
        list(Monitor.objects.due(world.lab.host, world.clock.now).select_related("group__project"))
        monitor_stepper._listed(world.lab, monitor)

    def due() -> None:
        world.clock.forward(seconds=30)

    def stalled() -> None:
        Monitor.objects.update(stale_seconds=1)
        due()

    under_way = passing(world, _number(world))

    def one_pass() -> None:
        monitor_stepper.look(under_way)
        assert under_way.errors == []

    due()
    one_pass()
    _row(f"floor: the two reading queries, {tasks} tasks", bare, due)
    _row(f"a pass, {tasks} tasks, nothing new", one_pass, due)
    stalled()
    one_pass()
    _row(f"a pass, {tasks} tasks, {tasks // 10} of them stalled and warned of", one_pass, due)


def checks(world, groups: int, size: int) -> None:  # type: ignore[no-untyped-def]
    """All monitors look at their signal folders: five seconds after the checks before."""
    from runs.groups import monitor_stepper, monitors, signal_folders
    from runs.models import Monitor
    from tests.make import a_project
    from tests.world.stories import passing

    project = a_project("checks")
    for number in range(groups):
        group = _group(project, f"g{number}", size)
        _signals(world, group, size)
        given = {"poll_seconds": 86_000, "timeout_seconds": None}
        assert monitors.start(world.lab, group, by="anna", given=given).is_fast
    folders = [
        signal_folders.folder(world.lab, one.group) / ".all-done"
        for one in Monitor.objects.running().select_related("group__project")
    ]
    counted = 0

    def bare() -> None:
        list(Monitor.objects.due(world.lab.host, world.clock.now).select_related("group__project"))
        assert not any(path.exists() for path in folders)

    def due() -> None:
        nonlocal counted
        world.clock.forward(seconds=5)
        counted += 1

    under_way = passing(world, _number(world))

    def one_round() -> None:
        monitor_stepper.look(under_way)
        assert under_way.errors == []

    def until(told: bool) -> Callable[[], None]:
        """Let time pass to the next check that tells its progress, or to the next that does not."""

        def ready() -> None:
            due()
            while (counted % 3 == 0) != told:
                one_round()
                due()

        return ready

    due()
    one_round()
    name = f"{groups} groups of {size} tasks"
    _row(f"floor: one query and a look at one path each, {name}", bare)
    _row(f"5 s checks, {name}", one_round, until(told=False))
    _row(f"5 s checks that tell the progress, {name}", one_round, until(told=True), FEW)


def _group(project, name: str, tasks: int):  # type: ignore[no-untyped-def]
    """A group whose tasks are done, under way and waiting, a tenth of them under way."""
    from runs.models import Task
    from tests.fakes import START
    from tests.make import a_group

    group = a_group(project, name, signals=False)
    rows = []
    for number in range(tasks):
        more: dict[str, object] = {}
        if number % 10 == 0:
            more = {"status": "in_progress", "owner": f"fa-{number}", "claimed_at": START}
        elif number % 2:
            more = {"status": "completed", "completed_at": START, "owner": f"fa-{number}"}
        rows.append(Task(group=group, key=str(number), subject=f"Part {number}", **more))
    Task.objects.bulk_create(rows)
    return group


def _signals(world, group, size: int) -> None:  # type: ignore[no-untyped-def]
    """A signal folder in which half of the tasks have their files."""
    from runs.groups import signal_folders
    from runs.models import TaskGroup

    TaskGroup.objects.filter(pk=group.pk).update(signals=True)
    group.signals = True
    folder = signal_folders.folder(world.lab, group)
    world.lab.signals.prepare(folder, size, signal_folders.inscription(group))
    for number in range(1, size, 2):
        (folder / f"{number}.done").write_text("{}")


def _number(world) -> int:  # type: ignore[no-untyped-def]
    from runs.models import Host

    return int(Host.objects.values_list("lease_number", flat=True).get(name=world.lab.host))


def _row(
    name: str,
    act: Callable[[], object],
    before: Callable[[], object] | None = None,
    repeats: int = REPEATS,
) -> None:
    """Wall time, and the processor's, which a busy machine spoils less."""
    spent, used, most = [], [], 0
    for _ in range(repeats):
        if before is not None:
            before()
        gc.collect()
        began = time.process_time()
        with figures.queries() as asked:
            spent.append(figures.timed(act))
        used.append((time.process_time() - began) * 1000)
        most = max(most, asked.count)
    more = f"  {most} queries, {statistics.median(used):.1f} ms of processor"
    print(figures.line(name, spent, more), flush=True)


if __name__ == "__main__":
    sys.exit(main())

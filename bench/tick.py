"""`python -m bench.tick [--projects N] [--each N] [--history N]`: one tick over a crowd, beside its floor."""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import time
from collections.abc import Callable

from bench import crowd, figures

REPEATS = 30


class Counts:
    """How many processes this process started; an audit hook sees each, whoever asks for it."""

    def __init__(self) -> None:
        self.processes = 0
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _args: object) -> None:
        if event in ("subprocess.Popen", "os.posix_spawn", "os.fork"):
            self.processes += 1


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--projects", type=int, default=20)
    options.add_argument("--each", type=int, default=10)
    options.add_argument("--history", type=int, default=1_000_000)
    given = options.parse_args()
    crowd.begin()
    counts = Counts()
    with crowd.crowd(given.projects, given.each) as (world, runs):
        print(figures.head())
        measure(world, runs, counts, "an hour-old product")
        if given.history:
            began = time.perf_counter()
            crowd.write_history(given.history, runs[0].project_id, runs[0].pk)
            spent = time.perf_counter() - began
            print(f"{given.history} timeline rows written in {spent:.0f} s", file=sys.stderr)
            measure(world, runs, counts, f"{given.history} timeline rows behind")


def measure(world, runs, counts: Counts, name: str) -> None:  # type: ignore[no-untyped-def]
    from runs import tick
    from runs.models import Run

    def quiet() -> None:
        report = tick.tick(world.lab, force=True)
        assert (report.runs, report.ended, report.errors) == (len(runs), 0, []), report

    number = 0

    def type_first() -> None:
        nonlocal number
        number += 1
        crowd.type_into(world, runs, f"line {number}")
        time.sleep(0.3)
        world.offset += crowd.timedelta(seconds=6)

    def printed() -> None:
        quiet()
        shown = set(Run.objects.active().values_list("last_line", flat=True))
        assert shown == {f"line {number}"}, shown

    def floor() -> None:
        world.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_dead} #{pane_pid}")
        for part in (runs[:100], runs[100:]):
            argv: list[str] = []
            for run in part:
                argv += ["capture-pane", "-p", "-e", "-t", f"={run.session}:", ";"]
            world.tmux(*argv[:-1])

    quiet()
    _row(f"floor: list-panes and one chained capture ({name})", floor, counts)
    _row(f"tick, nothing new ({name})", quiet, counts)
    _row(f"tick and glance, nothing new ({name})", quiet, counts, lambda: _later(world))
    _row(f"tick and glance, every agent printed ({name})", printed, counts, type_first)


def _later(world) -> None:  # type: ignore[no-untyped-def]
    """Six seconds on, so that the glance is due."""
    world.offset += crowd.timedelta(seconds=6)


def _row(
    name: str, act: Callable[[], object], counts: Counts, before: Callable[[], object] | None = None
) -> None:
    spent, processes, most = [], 0, 0
    if before is not None:
        before()
    act()
    for _ in range(REPEATS):
        if before is not None:
            before()
        gc.collect()
        began_with = counts.processes
        with figures.queries() as asked:
            spent.append(figures.timed(act))
        processes = max(processes, counts.processes - began_with)
        most = max(most, asked.count)
    print(figures.line(name, spent, f"  {most} queries, {processes} processes"), flush=True)


if __name__ == "__main__":
    try:
        main()
    except subprocess.SubprocessError as error:
        sys.exit(str(error))

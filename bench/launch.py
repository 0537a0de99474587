"""`python -m bench.launch [--projects N] [--issues N]`: what the launch pass asks and decides for a crowd."""

from __future__ import annotations

import argparse
import gc
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench import crowd, figures

REPEATS = 20
CAP = 6


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--projects", type=int, default=500)
    options.add_argument("--issues", type=int, default=20)
    given = options.parse_args()
    crowd.begin()
    print(figures.head())
    measure(given.projects, given.issues)


def measure(projects: int, issues: int) -> None:
    """Decisions on facts alone, then facts and decision together on the built-in tracker."""
    from runs.dispatch import facts
    from runs.dispatch import rules as launching
    from runs.dispatch.rules import Room
    from runs.models import Settings
    from runs.watch import acts as watches
    from runs.watch import auto_dispatch
    from tests.fakes import World
    from trackers import registry

    world = World(Path(tempfile.mkdtemp(prefix="lab-bench-")))
    world.lab = replace(world.lab, tracker_for=registry.tracker)
    fill(projects, issues)
    settings = Settings.current()
    wishing = auto_dispatch.waiting(world.lab.now(), settings).lacking
    assert len(wishing) == projects
    for project in wishing:
        watches.store(world.lab, project, watches.SWITCH)
    queues = facts.gather(world.lab, settings, wishing)
    empty, full = Room((), 0, CAP), Room((), 0, projects * issues)
    name = f"{projects} projects of {issues} ready issues"
    row(f"decide: {CAP} free places ({name})", lambda: launching.fill(queues, empty))
    row(f"decide: a place for everybody ({name})", lambda: launching.fill(queues, full))
    row(
        f"decide: why each waits ({name})",
        lambda: [launching.explain(queue, empty) for queue in queues],
    )
    row(
        f"facts, built-in tracker, git faked ({name})",
        lambda: facts.gather(world.lab, settings, wishing),
    )


def fill(projects: int, issues: int) -> None:
    """That many automatic projects, every fifth issue with a section that names another."""
    from tests import make
    from tests.fakes import START
    from trackers.builtin import store
    from trackers.builtin.models import Issue, Label

    agent = make.an_agent()
    for number in range(projects):
        name = f"p{number}"
        root = store.create_root(name)
        made = make.a_project(name, tracker="builtin", tracker_root=root, is_auto=True, agent=agent)
        label = Label.objects.get(root_id=int(root), name=made.ready_label)
        rows = Issue.objects.bulk_create(
            Issue(
                root_id=int(root),
                number=key,
                title=f"Issue {key}",
                body="" if key % 5 else f"Why.\n\n## Blocked by\n\n- #{key - 1}\n",
                author="ada",
                labelled_by={made.ready_label: "ada"},
                created_at=START,
                updated_at=START,
            )
            for key in range(1, issues + 1)
        )
        label.issues.add(*rows)


def row(name: str, act: Callable[[], object]) -> None:
    act()
    spent, most = [], 0
    for _ in range(REPEATS):
        gc.collect()
        with figures.queries() as asked:
            spent.append(figures.timed(act))
        most = max(most, asked.count)
    print(figures.line(name, spent, f"  {most} queries"), flush=True)


if __name__ == "__main__":
    main()

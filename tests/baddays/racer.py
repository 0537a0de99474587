"""One of the processes that race: starts, stops, ticks, on the database and outside of its parent.

`python -m tests.baddays.racer FOLDER DATABASE SEED ACTS` prints what it did as JSON.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

ACTS = {"start": 45, "stop": 25, "tick": 20, "discard": 7, "lose": 3}


def main(folder: str, database: str, seed: str, acts: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django
    from django.conf import settings

    settings.DATABASES["default"]["NAME"] = database
    django.setup()
    from tests.real import RealWorld

    world = RealWorld(Path(folder))
    world.lab = replace(world.lab, pause=lambda seconds: None)
    chance, did = random.Random(seed), Counter[str]()  # noqa: S311
    for _ in range(int(acts)):
        act = chance.choices([*ACTS], [*ACTS.values()])[0]
        did[globals()[f"_{act}"](world, chance)] += 1
    print(json.dumps(did))


def _start(world, chance: random.Random) -> str:  # type: ignore[no-untyped-def]
    """Press the button of some project; what the worker would do then is done here."""
    from runs import tick
    from runs.dispatch import start_requests
    from runs.models import Project, StartRequest

    project = chance.choice(list(Project.objects.all()))
    asked = start_requests.request(world.lab, project, f"process {os.getpid()}")
    tick.tick(world.lab, project=project.slug)
    world.work()
    return f"start: {StartRequest.objects.get(pk=asked.pk).answer or 'left to another tick'}"


def _stop(world, chance: random.Random) -> str:  # type: ignore[no-untyped-def]
    from runs.lifecycle.stop import stop
    from runs.models import Run

    active = list(Run.objects.active().select_related("project"))
    if not active:
        return "stop: nothing runs"
    won = stop(world.lab, chance.choice(active), f"process {os.getpid()}")
    return "stop: ended" if won else "stop: had ended"


def _tick(world, chance: random.Random) -> str:  # type: ignore[no-untyped-def]
    from runs import tick

    report = tick.tick(world.lab, force=True)
    world.work()
    return "tick: skipped" if report.was_skipped else "tick: done"


def _discard(world, chance: random.Random) -> str:  # type: ignore[no-untyped-def]
    """A person removes kept work of an ended run by hand, so that its issue is free again."""
    import fcntl

    with (world.folder / "discard.lock").open("w") as lock:  # one person, in one place at a time
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _discard_one(world)


def _discard_one(world) -> str:  # type: ignore[no-untyped-def]
    from runs.models import Run

    done = Run.objects.exclude(settled_at=None).select_related("project").order_by("pk")
    for run in done:
        repo = run.project.repo(world.paths)
        if world.repos.tip(repo, f"refs/heads/{run.branch}") and not _is_taken(run):
            git = world.repos._git
            tree = world.paths.worktrees / f"{run.project.slug}-{run.issue_key}"
            shutil.rmtree(tree, ignore_errors=True)
            git(repo, "branch", "-D", run.branch)
            return "discard: done"
    return "discard: nothing is kept"


def _is_taken(run) -> bool:  # type: ignore[no-untyped-def]
    from runs.models import Run

    return Run.objects.filter(
        project=run.project, issue_key=run.issue_key, settled_at=None
    ).exists()


def _lose(world, chance: random.Random) -> str:  # type: ignore[no-untyped-def]
    """A session is killed from outside."""
    names = world.session_names()
    if not names:
        return "lose: nothing runs"
    world.tmux("kill-session", "-t", f"={chance.choice(names)}")
    return "lose: killed"


if __name__ == "__main__":
    main(*sys.argv[1:5])

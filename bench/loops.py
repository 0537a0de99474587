"""`python -m bench.loops [--turns N] [--long N]`: what labsite adds to the turns of a loop.

First on a running product: the time from the end of one turn's agent to the start of the next, beside
the floor, which is the start of the same program by hand. Then without one, on a database on disk:
a report in a short loop and in a long one, a prompt with many memories, and queries of a tick.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.figures import head, line, p95, queries, timed

AGENT = """#!{python} -IS
import os, sys, time
folder = {folder!r}
began = time.time()
open(folder + "/began", "a").write(f"{{began}}\\n")
path = os.environ.get("LAB_LOOP_EVENTS")
if path:
    open(path, "a").write('{{"topic": "build.done", "payload": "' + str(began) + '"}}\\n')
open(folder + "/ended", "a").write(f"{{time.time()}}\\n")
"""
SETUP = """
from runs.models import AgentProfile, LoopTerms, Project, Settings
from runs.wiring import lab
from runs.issues import acts as issues; from runs.projects import acts as projects
agent = AgentProfile.objects.create(name='turns', mode='one_shot', argv=['PROGRAM', '{prompt_file}'])
project = projects.add(lab(), name='bench', source='SOURCE', token='', by='anna')
Project.objects.update(agent=agent)
LoopTerms.objects.create(project=project, is_on=True, max_turns=TURNS)
issues.create(lab(), project, title='Loop', body='', labels=['ready-for-agent'], by='anna')
"""
READY = "from runs.models import Project; print(Project.objects.get().state)"
START = """
from runs.dispatch import start_requests
from runs.models import Project
from runs.wiring import lab
start_requests.request(lab(), Project.objects.get(), 'anna')
"""
ENDED = "from runs.models import Loop; print(Loop.objects.filter(end='turns').count())"


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--turns", type=int, default=60)
    options.add_argument("--long", type=int, default=10_000)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="lab-bench-") as folder:
        print(head())
        _gaps(Path(folder), given.turns)
    from bench import crowd

    crowd.begin()
    with tempfile.TemporaryDirectory(prefix="lab-bench-") as folder:
        _inside(Path(folder), given.long)


def _gaps(folder: Path, turns: int) -> None:
    """Turns of a program that does next to nothing, in a real session of a running product."""
    from bench.scene import a_repository
    from tests.house.product import lab
    from tests.prepared import OPERATOR
    from tests.story.conftest import Story

    program = folder / "agent"
    program.write_text(AGENT.format(python=sys.executable, folder=str(folder)))
    program.chmod(0o755)
    floors = [_spawn(program, folder) for _ in range(turns)]
    for name in ("began", "ended"):
        (folder / name).unlink()
    story = Story(folder / "state")
    made = lab("manage", "createsuperuser", "--noinput", state=story.state, **OPERATOR)
    assert made.returncode == 0, made.stderr
    story.up()
    try:
        text = SETUP.replace("PROGRAM", str(program)).replace("TURNS", str(turns))
        story.shell(text.replace("SOURCE", str(a_repository(folder / "checkout", 20))))
        _until(lambda: story.shell(READY) == "ready")
        story.shell(START)
        _until(lambda: story.shell(ENDED) == "1")
    finally:
        story.close()
    began, ended = (_stamps(folder / name) for name in ("began", "ended"))
    gaps = [after - before for before, after in zip(ended, began[1:], strict=False)]
    assert len(gaps) == turns - 1, (len(began), len(ended))
    print(line("floor: start of the same program by hand", floors))
    print(line("end of a turn -> the next agent runs", gaps))
    target = p95(floors) * 1000 + 150
    print(f"  p95 against its target floor p95 + 150 ms: {p95(gaps) * 1000:.0f} / {target:.0f} ms")


def _spawn(program: Path, folder: Path) -> float:
    asked = time.time()
    subprocess.run([str(program)], check=True, env={})
    return _stamps(folder / "began")[-1] - asked


def _stamps(path: Path) -> list[float]:
    return [float(word) for word in path.read_text().split()]


def _until(is_so: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.2)


def _inside(folder: Path, long: int) -> None:
    from runs.loops.prompts import PromptFacts, compose
    from tests.fakes import World
    from tests.loops.desk import Desk, desk_of, project_of, topic

    world = World(folder)
    desk = desk_of(world, project_of(world, max_turns=None, max_seconds=None))
    desk.begin()
    number = 0

    def turn(one: Desk) -> float:
        nonlocal number
        number += 1
        return timed(lambda: one.finish(topic("build.done", str(number))))

    print(line("a report of a turn, in a loop of ten turns", [turn(desk) for _ in range(10)]))
    _lengthen(desk, long)
    print(line(f"a report of a turn, after {long:,} turns", [turn(desk) for _ in range(30)]))
    _pages(desk, long)
    memories = [f"memory {n} " + "x" * 80 for n in range(2000)]
    facts = PromptFacts("objective " * 200, "DONE", memories=memories)
    print(
        line(
            "a prompt with 2,000 memories (target 20 ms)",
            [timed(lambda: compose(facts)) for _ in range(50)],
        )
    )
    _ticks(world)


def _lengthen(desk: Desk, long: int) -> None:  # type: ignore[name-defined]  # noqa: F821
    """As many turns as a loop of weeks has, copied from the last one that ended."""
    from runs.models import Loop, LoopTurn

    loop = desk.loop
    last = loop.turns.exclude(ended_at=None).latest("id")
    running = desk.turn
    rows: list[Any] = []
    for number in range(running.number + 1, long + 1):
        copy = LoopTurn.objects.get(pk=last.pk) if not rows else rows[-1]
        fields = {
            field.name: getattr(copy, field.name)
            for field in LoopTurn._meta.fields
            if field.name not in ("id", "number")
        }
        rows.append(LoopTurn(**fields, number=number + 1))
    LoopTurn.objects.bulk_create(rows, batch_size=200)
    LoopTurn.objects.filter(pk=running.pk).update(number=long + 2)
    Loop.objects.filter(pk=loop.pk).update(number=long + 2)
    desk.step()


def _pages(desk: Desk, long: int) -> None:  # type: ignore[name-defined]  # noqa: F821
    """The pages of a loop of so many turns, rendered in this process."""
    from django.contrib.auth.models import User
    from django.test import Client
    from django.urls import reverse

    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.create_superuser("bench"))

    def look(name: str, *more: object) -> float:
        address = reverse(f"runs:{name}", args=[desk.run.pk, *more])
        spent = timed(lambda: answers.append(client.get(address)))
        assert answers.pop().status_code == 200
        return spent

    answers: list[Any] = []
    pages = (("its page", "run"), ("its turns", "run-turns"), ("one turn", "run-turn", 1, long))
    for words, *about in pages:
        look(*about)  # templates are compiled once
        spent = [look(*about) for _ in range(20)]
        print(line(f"{words}, after {long:,} turns (target 100 ms)", spent))


def _ticks(world: Any) -> None:
    """A tick over a hundred runs between two turns, and over the same runs without their loops."""
    from runs import tick
    from runs.loops import beginning
    from runs.models import LoopTerms, Run, Settings
    from tests import make

    Settings.objects.update(session_cap=500)
    terms = LoopTerms.objects.select_related("project", "project__agent").get()
    for number in range(100):
        key = str(1000 + number)
        session = f"demo~{number + 2}~afk-{key}"
        run = make.a_run(terms.project, key=key, slot=number + 2, session=session)
        world.live(run)
    counts = []
    for _ in range(2):
        for _ in range(3):  # what is due once is done
            world.clock.forward(seconds=6)
            tick.tick(world.lab, force=True)
        world.clock.forward(seconds=6)
        with queries() as asked:
            spent = timed(lambda: tick.tick(world.lab, force=True))
        counts.append(asked.count)
        print(line(f"a tick, {asked.count} queries", [spent]))
        for run in Run.objects.active().filter(is_loop=False):
            beginning.make(world.lab, run, terms, terms.project.agent)  # type: ignore[arg-type]
    print(f"  queries that 100 loops add to a tick: {counts[1] - counts[0]} (target: at most 2)")


if __name__ == "__main__":
    main()

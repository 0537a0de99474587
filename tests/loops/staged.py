"""Loops of which all is real but tmux and git: `labctl turns` as a process, the agent API over HTTP,
agents that are scripts of the shell. A test says what each turn does, and reads what is left."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from runs.core.ports import Order, Output
from runs.core.states import NoticeKind
from runs.forges import mirror
from runs.machine import files
from runs.machine.tmux import TmuxSessions
from runs.models import Host, Loop, LoopRole, LoopTerms, LoopTurn, Notice, Project, Run
from tests import make
from tests.fakes import START, FakeClock, FakeSessions, World
from tests.labctl.session import COMMAND
from tests.patience import PATIENCE
from tests.world.stories import look, start, work

AGENT = """
turn=${{LAB_LOOP_EVENTS%/events.jsonl}}; turn=${{turn##*/}}; prompt=$LAB_RUN_FOLDER/loop/$turn/prompt.md
emit() {{ labctl emit "$@"; }}
gate() {{ touch {hand}/at-$turn; until [ -e {hand}/go-$turn ]; do sleep 0.02; done; }}
echo "$turn $(date +%s.%N)" >> {hand}/began
if [ -e {hand}/does-$turn ]; then . {hand}/does-$turn; else . {hand}/does; fi
"""


class RunningClock(FakeClock):
    """A clock that runs, and that a test can move beside."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        super().__init__()

    def __call__(self) -> datetime:
        return self.now + timedelta(seconds=time.monotonic() - self._began)


class OnDisk(FakeSessions):
    """Sessions that start nothing; their files are those that the runner writes."""

    def output(
        self, folder: Path, start: int, limit: int, record: str = "output.jsonl"
    ) -> Output | None:
        return files.read_piece(folder / record, start, limit)

    def wake(self, folder: Path) -> None:
        TmuxSessions.wake(self, folder)  # type: ignore[arg-type]


@dataclass
class Staged:
    """A loop whose runner is a process, and the hand that leads its agent."""

    stage: Stage
    run_id: int
    order: Order
    process: subprocess.Popen[bytes] = field(init=False)

    def begin(self, *arguments: str) -> Staged:
        """Start the runner, as its session does."""
        with self.screen_file.open("ab") as screen:
            self.process = subprocess.Popen(
                [*COMMAND, *self.order.argv[1:], "--pace", "0.1", *arguments],
                env={**self.order.env, "PATH": self.stage.path, "LC_ALL": "C"},
                cwd=self.order.cwd,
                stdin=subprocess.DEVNULL,
                stdout=screen,
                stderr=screen,
                start_new_session=True,
            )
        return self

    def code(self) -> int:
        """Its exit code, once it has ended."""
        assert self.process.wait(PATIENCE) == (self.loop.exit_code or 0), self.screen
        return self.process.returncode

    def ends(self) -> tuple[int, str, list[int]]:
        """Its exit code, why it ended and the numbers of its turns, once it has ended."""
        return self.code(), self.loop.end, [one.number for one in self.turns]

    @property
    def screen_file(self) -> Path:
        return self.stage.hand / "screen"

    @property
    def screen(self) -> str:
        return self.screen_file.read_text(errors="replace")

    @property
    def run(self) -> Run:
        return Run.objects.select_related("project", "profile").get(pk=self.run_id)

    @property
    def loop(self) -> Loop:
        return Loop.objects.get(run_id=self.run_id)

    @property
    def folder(self) -> Path:
        return self.order.folder / "loop"

    @property
    def turns(self) -> Sequence[LoopTurn]:
        """Those that are stored, in their order."""
        return list(self.loop.turns.order_by("pk"))

    def prompt(self, number: int, generation: int = 1) -> str:
        """The prompt of a turn as its agent found it on disk."""
        return (self.folder / f"{generation}-{number}" / "prompt.md").read_text()

    def told(self, kind: NoticeKind = NoticeKind.LOOP_STEP) -> list[str]:
        """What its timeline says."""
        found = Notice.objects.filter(run_id=self.run_id, kind=kind).order_by("pk")
        return list(found.values_list("text", flat=True))

    def began(self) -> list[tuple[str, float]]:
        """The agents that were started, each with when."""
        file = self.stage.hand / "began"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(line.split()[0], float(line.split()[1])) for line in lines]

    def until(self, holds: Callable[[], Any]) -> Any:
        """Wait for what does come; what it was."""
        end = time.monotonic() + PATIENCE
        while not (found := holds()):
            assert time.monotonic() < end, self.screen
            time.sleep(0.01)
        return found

    def is_at(self, turn: str) -> None:
        """Wait until the agent of a turn stands at its gate."""
        self.until((self.stage.hand / f"at-{turn}").exists)

    def let(self, turn: str) -> None:
        """Let it go on."""
        (self.stage.hand / f"go-{turn}").touch()

    def waits(self, words: str) -> None:
        """Wait until the runner says that it waits for this."""
        self.until(lambda: words in self.screen)

    def passes(self, **delta: float) -> None:
        """Time passes, in which the worker went on."""
        self.stage.world.clock.forward(**delta)
        self.stage.beats()


class Stage:
    """A project that works in loops, and what its agents do."""

    def __init__(self, world: World, url: str, folder: Path) -> None:
        self.world, self.hand = world, folder
        folder.mkdir()
        world.clock = RunningClock()
        world.sessions = OnDisk(world.clock)
        world.lab = replace(
            world.lab, now=world.clock, steady=world.clock.steady, sessions=world.sessions
        )
        (folder / "labctl").write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
        (folder / "labctl").chmod(0o755)
        (folder / "agent.sh").write_text(AGENT.format(hand=folder))
        self.path = f"{folder}:{os.environ['PATH']}"
        world.lab.paths.address.parent.mkdir(parents=True, exist_ok=True)
        world.lab.paths.address.write_text(url)
        self._loops: list[Staged] = []

    def project(self, *, output: str = "", **terms: Any) -> Project:
        """A project whose runs are loops with these terms."""
        self.world.tracker.add_root("demo")
        argv = ["sh", str(self.hand / "agent.sh"), "{prompt}"]
        agent = make.an_agent("Turner", argv=argv, mode="one_shot", output=output)
        project = make.a_project(agent=agent)
        LoopTerms.objects.create(project=project, is_on=True, **terms)
        return project

    def role(self, project: Project, name: str, *subscriptions: str) -> None:
        """A role of its loops."""
        LoopRole.objects.create(
            project=project,
            name=name,
            instructions=f"You are the {name}.",
            subscriptions=list(subscriptions),
        )

    def does(self, *turns: str, generation: int = 1) -> None:
        """What each turn does; whatever comes later does as the last one."""
        for number, script in enumerate(turns, 1):
            (self.hand / f"does-{generation}-{number}").write_text(f"{script}\n")
        (self.hand / "does").write_text(f"{turns[-1]}\n")

    def loop(self, project: Project, *turns: str, key: str = "7") -> Staged:
        """A loop on an issue whose turns do this; its runner is not started yet."""
        self.does(*turns)
        run = start(self.world, project, key)
        look(self.world)
        return self.runner_of(run)

    def runner_of(self, run: Run) -> Staged:
        """What the session of a run would start."""
        order = self.world.sessions.orders[run.session]
        order.folder.mkdir(parents=True, exist_ok=True)
        for name, text in order.files.items():
            (order.folder / name).write_text(text)
        self.beats()
        self._loops.append(Staged(self, run.pk, order))
        return self._loops[-1]

    def play(self, *turns: str, **terms: Any) -> Staged:
        """The same in a project with these terms, with its runner."""
        return self.loop(self.project(**terms), *turns).begin()

    def ticks(self) -> None:
        """What is due, and the launches that it asks for; twice, as a poll is read by the next tick."""
        for _ in range(2):
            look(self.world)
            work(self.world)
        self.beats()

    def mirrors(self) -> None:
        """What is to be told on the tracker is told."""
        while self.world.queue.mirrors:
            mirror.carry_out(self.world.lab, self.world.queue.mirrors.pop(0))

    def beats(self) -> None:
        """The worker is there, for as long as a busy machine may take: nobody ticks beside a loop."""
        at = self.world.clock() + timedelta(seconds=PATIENCE)
        Host.objects.update(last_tick_at=at)

    def close(self) -> None:
        """End what is left of it."""
        for loop in self._loops:
            if hasattr(loop, "process") and loop.process.poll() is None:
                loop.process.terminate()
                loop.process.wait(PATIENCE)


def result_line(cost: float, **more: Any) -> str:
    """The last line of Claude Code in print mode, for the shell: what the turn cost."""
    said = {
        **{"type": "result", "subtype": "success", "is_error": False, "num_turns": 1},
        **{"total_cost_usd": cost, "result": "ok"},
        "usage": {"input_tokens": 10, "output_tokens": 5},
        **more,
    }
    return f"echo '{json.dumps(said)}'"


__all__ = ["START", "Stage", "Staged", "result_line"]

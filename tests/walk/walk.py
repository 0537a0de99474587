"""Random days of one host: starts, stops, ticks, deaths, deliveries and kills of the product.

`Walk` does one act after another on a `Lab`, fake or real, and after each asks what must always
hold; `rest` lets everything come to a close. Rules are the product's; nothing here knows them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from django.db import connection

from runs import sweep, tick
from runs.accounts import holds
from runs.core.ports import Lab
from runs.core.states import Trouble
from runs.dispatch import start_requests
from runs.kept import counts, owners
from runs.kept.discard import DiscardRefused, discard
from runs.kept.restore import RestoreRefused, restore
from runs.lifecycle import launch
from runs.lifecycle.stop import stop
from runs.models import AgentProfile, Host, Project, Rescue, Run, Settings
from runs.stop_project import stop_project
from runs.watch import switch as auto
from tests.walk import promises
from tests.walk.outside import Fuse, Killed, mortal

if TYPE_CHECKING:
    from tests.fakes import FakeQueue

ANNA = "anna"
# How much longer than in a run for one change the days are: a night has time for 2 or 10.
TIMES = int(os.environ.get("WALK_TIMES", "1"))


class Hands(Protocol):
    """What agents, people and time do outside of the product."""

    def die(self, run: Run) -> None:
        """The agent's program ends by itself."""

    def scribble(self, run: Run) -> None:
        """The agent writes a file and does not commit it."""

    def commit(self, run: Run) -> None:
        """The agent commits all that is in its worktree."""

    def deliver(self, run: Run) -> None:
        """The agent pushes its branch and opens a pull request."""

    def misbehave(self, run: Run, how: int) -> None:
        """The agent renames its branch, deletes `.git`, makes its own repository, or hides files."""

    def flashing(self, how: int) -> AbstractContextManager[None]:
        """Whatever agent starts meanwhile writes something and ends within half a second."""

    def forward(self, minutes: int) -> None:
        """Time passes."""

    def merge(self, lab: Lab, which: int) -> None:
        """Somebody merges one of the open pull requests."""

    def lost(self) -> Iterator[str]:
        """Each piece of work that was made and is nowhere any more."""


class Walk:
    """One host with its projects, and the acts that may happen to it in any order."""

    def __init__(self, lab: Lab, hands: Hands) -> None:
        self.hands = hands
        self._queue = cast("FakeQueue", lab.queue)
        self.fuse = Fuse()
        self._ended: set[str] = set()
        self._lab = replace(
            mortal(lab, self.fuse), is_process_alive=lambda name: name not in self._ended
        )
        self.lab = self._next_life()
        self.kills = 0

    def _next_life(self) -> Lab:
        return replace(self._lab, process=f"boot:{len(self._ended) + 1}:1")

    def act(self, name: str, which: int = 0, fuse: int = 0) -> None:
        """Do one act; with `fuse` the product is killed before its n-th trace outside, if it comes."""
        try:
            with self._dying_at(fuse):
                ACTS[name](self, which)
        except Killed:
            self.kills += 1
            self.restart(which)
        found = [*promises.always(self.lab), *self.hands.lost()]
        assert not found, f"after {name} {which} {fuse}: {found}"

    def rest(self) -> None:
        """Nothing more happens from outside; then everything comes to a close by itself."""
        for _ in range(4):
            self.hands.forward(2)
            tick.tick(self.lab, force=True)
            self.work(0)
        found = [*promises.at_rest(self.lab), *self.hands.lost()]
        assert not found, found

    # What people do.

    def start(self, which: int) -> None:
        start_requests.request(self.lab, _one(Project.objects.all(), which), ANNA)

    def begin(self, which: int) -> None:
        """A press of the button on a day when nothing comes in between."""
        self.start(which)
        self.look(which)
        self.work(which)

    def stop(self, which: int) -> None:
        if run := _one(Run.objects.active(), which):
            stop(self.lab, run, ANNA)

    def stop_all(self, which: int) -> None:
        stop_project(self.lab, _one(Project.objects.all(), which), ANNA)

    def discard(self, which: int) -> None:
        project = _one(Project.objects.all(), which)
        found = counts.everything(self.lab, project, owners.remembered(project))
        if found:
            with suppress(DiscardRefused):
                discard(self.lab, project, found[which % len(found)].name, ANNA)

    def restore(self, which: int) -> None:
        if kept := _one(Rescue.objects.waiting(), which):
            with suppress(RestoreRefused):
                restore(self.lab, kept, ANNA)

    def merge(self, which: int) -> None:
        self.hands.merge(self.lab, which)

    def switch(self, which: int) -> None:
        project = _one(Project.objects.all(), which)
        auto.switch(self.lab, project, is_on=not project.is_auto, by=ANNA)

    def reset(self, which: int) -> None:
        auto.reset(self.lab, _one(Project.objects.all(), which), by=ANNA)

    # What the product does.

    def tick(self, which: int) -> None:
        tick.tick(self.lab, force=True)

    def look(self, which: int) -> None:
        tick.tick(self.lab, project=_one(Project.objects.all(), which).slug)

    def work(self, which: int) -> None:
        """Carry out what was asked of the queue; a task that was taken from it is not there again."""
        while self._queue.launches:
            launch.carry_out(self.lab, self._queue.launches.pop(0))
        while self._queue.sweeps:
            sweep.carry_out(self.lab, self._queue.sweeps.pop(0))

    def sweep(self, which: int) -> None:
        sweep.carry_out(self.lab, _one(Project.objects.all(), which).pk)

    def restart(self, which: int) -> None:
        """The product's process is gone, with all it held in memory; a new one begins."""
        self._ended.add(self.lab.process)
        self._queue.launches.clear()
        self._queue.sweeps.clear()
        self.lab = self._next_life()

    # What agents and time do.

    def die(self, which: int) -> None:
        self._with_agent(which, self.hands.die)

    def scribble(self, which: int) -> None:
        self._with_agent(which, self.hands.scribble)

    def commit(self, which: int) -> None:
        self._with_agent(which, self.hands.commit)

    def deliver(self, which: int) -> None:
        self._with_agent(which, self.hands.deliver)

    def misbehave(self, which: int) -> None:
        self._with_agent(which, lambda run: self.hands.misbehave(run, which))

    def flash(self, which: int) -> None:
        """A press of the button with an agent that does not last."""
        with self.hands.flashing(which):
            self.begin(which)

    def turn_away(self, which: int) -> None:
        """The service behind an agent refuses it: its hooks tell so, and it waits for a next word."""
        refused = {"trouble": Trouble.OVERLOAD, "agent_note": "Overloaded"}
        now = self.lab.now()
        self._with_agent(
            which,
            lambda run: Run.objects.filter(pk=run.pk).update(**refused, turn_ended_at=now),
        )

    def try_again(self, which: int) -> None:
        if held := _one(AgentProfile.objects.exclude(hold=""), which):
            holds.try_again(self.lab, held, by=ANNA)

    def pass_time(self, which: int) -> None:
        self.hands.forward((1, 5, 20, 50)[which % 4])

    def _with_agent(self, which: int, act: Callable[[Run], object]) -> None:
        alive = {name for name, seen in self.lab.sessions.look().items() if seen.alive}
        if run := _one(Run.objects.working().filter(session__in=alive), which):
            act(run)

    @contextmanager
    def _dying_at(self, fuse: int) -> Iterator[None]:
        """A dead process writes no more rows either; what it had open is rolled back."""
        self.fuse.light(fuse)
        try:
            with connection.execute_wrapper(self._row):
                yield
        finally:
            self.fuse.light(0)

    def _row(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not sql.startswith(("SELECT", "SAVEPOINT", "ROLLBACK", "RELEASE")):
            self.fuse.burn()
        elif self.fuse.is_dead and sql.startswith("SELECT"):
            raise Killed
        return execute(sql, params, many, context)


def _one(rows: Any, which: int) -> Any:
    """One of some rows, by a number that may be larger than there are."""
    found = list(rows.order_by("pk"))
    return found[which % len(found)] if found else None


# How often each act comes in a random day, beside the others.
OFTEN = {
    "begin": 7,
    "tick": 4,
    "deliver": 4,
    "commit": 3,
    "scribble": 2,
    "die": 3,
    "misbehave": 4,
    "flash": 2,
    "turn_away": 3,
    "try_again": 2,
    "stop": 2,
    "start": 2,
    "look": 2,
    "work": 2,
    "pass_time": 2,
    "discard": 3,
    "restore": 2,
    "merge": 2,
    "sweep": 2,
    "switch": 2,
    "reset": 1,
    "stop_all": 1,
    "restart": 1,
}
ACTS: dict[str, Callable[[Walk, int], None]] = {name: getattr(Walk, name) for name in OFTEN}


def prepare() -> None:
    """The rows that everything else presupposes."""
    Settings.current()
    Host.objects.get_or_create(name="local")

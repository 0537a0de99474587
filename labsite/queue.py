"""Our Huey: SQLite storage, a scheduler that offers the periodic task every 5 s, workers that wake.

Huey's own scheduler looks once a minute and its idle workers back off to seconds. Here the
scheduler's period is `OFFER_SECONDS`, and idle workers wait on a condition that every enqueue of
this process rings, so that an idle product polls rarely and still answers at once (stack.md 2).
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from huey import SqliteHuey
from huey.consumer import Consumer, Scheduler, Worker

OFFER_SECONDS = 5
SPARE = 2
NOTICES = 1
CHECKS, ENOUGH = 2, 8
MANY = 4
MOST_LOOKS = 200
DATAGRAM_BYTES = 4096
HEAR_SECONDS = 5.0
LOOK_GRACE_SECONDS = 15.0

logger = logging.getLogger(__name__)


class OftenScheduler(Scheduler):
    periodic_task_seconds = OFFER_SECONDS


class WokenWorker(Worker):
    """Waits for work on the queue's condition instead of sleeping through it."""

    delay: float

    def loop(self, now: Any = None) -> None:
        # Before the look, so that no ring falls between look and sleep.
        self._heard = self.huey.rung
        super().loop(now)

    def sleep(self) -> None:
        if self.stop_flag.is_set():
            return
        delay: float = min(self.delay, self.max_delay)
        self.huey.wait_for_work(self._heard, delay)
        self.delay = delay * self.backoff


class WakeConsumer(Consumer):
    """A consumer that hears wake-up datagrams. The one with the scheduler also carries out looks.

    Looks have a thread of their own: the lease lets only one go on at a time anyway, whatever
    else the workers have to do, and a project that is asked for often waits once.
    """

    hear_seconds = HEAR_SECONDS
    worker_class = WokenWorker
    scheduler_class = OftenScheduler

    def start(self) -> None:
        super().start()
        self.hear()

    def hear(self) -> None:
        """Start the threads that hear wake-ups and, beside the scheduler, look."""
        box = self.huey.wake_path if self.periodic else self.huey.more_wake_path
        if box is not None:
            threading.Thread(target=self._listen, args=(box,), name="Wake", daemon=True).start()
        if self.periodic:
            self._looker = threading.Thread(target=self._look, name="Look", daemon=True)
            self._looker.start()
            threading.Thread(target=self.huey.watch, name="Signals", daemon=True).start()

    def stop(self, graceful: bool = False) -> None:
        self.stop_flag.set()
        self.huey.is_stopping = True
        self.huey.ring(everyone=True)
        self.huey.looks.stop()
        super().stop(graceful)
        if graceful and self.periodic:
            self._looker.join(LOOK_GRACE_SECONDS)

    def _listen(self, path: Path) -> None:
        """Hear wake-ups; a socket that somebody removed is made again within seconds."""
        while not self.stop_flag.is_set():
            try:
                with _mailbox(path, self.hear_seconds) as box:
                    while path.exists() and not self.stop_flag.is_set():
                        self._hear_one(box)
            except OSError as error:  # its folder is gone too, or the disk is full
                logger.warning("wake-ups are not heard", extra={"error": str(error)})
                self.stop_flag.wait(self.hear_seconds)

    def _hear_one(self, box: socket.socket) -> None:
        try:
            text = box.recv(DATAGRAM_BYTES).decode("utf-8", "replace").strip()
        except TimeoutError:
            return
        try:
            self.huey.on_wake(text)
        except Exception:
            logger.exception("wake-up was not handled", extra={"text": text})

    def _look(self) -> None:
        while (project := self.huey.looks.take()) is not None:
            try:
                self.huey.on_look(project)
            except Exception:
                logger.exception("look failed", extra={"project": project})


def _mailbox(path: Path, seconds: float) -> socket.socket:
    """A socket at a path, which waits so long for each datagram. Raises OSError."""
    path.unlink(missing_ok=True)
    box = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        box.bind(str(path))
        path.chmod(0o600)
    except OSError:
        box.close()
        raise
    box.settimeout(seconds)
    return box


class Looks:
    """Which projects wait for a look, each once however often it is asked for.

    One that is asked for while it is looked at waits again, since that look may be too early.
    """

    def __init__(self, most: int = MOST_LOOKS) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._waiting: dict[str, None] = {}
        self._is_over = False

    def ask(self, project: str) -> None:
        """Have a project looked at soon."""
        with self._changed:
            # Too many names at once are no wake-ups of ours; the next tick looks at everything.
            if project in self._waiting or len(self._waiting) < self._most:
                self._waiting[project] = None
                self._changed.notify()

    def take(self) -> str | None:
        """The project that has waited longest, as soon as there is one; None after `stop`."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_over)
            if self._is_over:
                return None
            project = next(iter(self._waiting))
            del self._waiting[project]
            return project

    def waiting(self) -> list[str]:
        with self._changed:
            return list(self._waiting)

    def stop(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()


def rooms(workers: int) -> dict[str, threading.BoundedSemaphore]:
    """How many of each long task may run at once; one of each at the least.

    Clones and sweeps, which nobody waits for at a button, share one room. Validations, which may
    take hours, have their own, and so has what asks and tries agents, where there are many workers.
    """
    checks = CHECKS if workers > ENOUGH else 1
    agents = 1 if workers > ENOUGH else 0
    long = max(2, workers - SPARE - NOTICES - checks - agents)
    clones = 2 if long >= MANY else 1
    fetching = threading.BoundedSemaphore(clones)
    return {
        "clone": fetching,
        "sweep": fetching,
        "launch": threading.BoundedSemaphore(long - clones),
        "deliver": threading.BoundedSemaphore(NOTICES),
        "validate": threading.BoundedSemaphore(checks),
        "agent": threading.BoundedSemaphore(agents) if agents else fetching,
    }


class LabHuey(SqliteHuey):
    """SqliteHuey with the consumer above. What it wakes for and carries out is set by `runs.tasks`.

    `wake_path` belongs to the worker with the scheduler, `more_wake_path` to this process if it
    is a further one.

    `rooms` bound the tasks that may take minutes, clones apart from launches: `SPARE` workers stay
    free for ticks whatever hangs, and a launch never waits for clones.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._work = threading.Condition()
        self.rung = 0
        self.wake_path: Path | None = None
        self.more_wake_path: Path | None = None
        self.rooms = rooms(1)
        self.is_stopping = False
        self.looks = Looks()
        self.verbs: dict[str, Callable[[int], None]] = {}
        super().__init__(*args, **kwargs)
        self._asked = self.task(name="ask")(self._carry_out)

    def create_consumer(self, **options: Any) -> WakeConsumer:
        self.rooms = rooms(options.get("workers", 1))
        return WakeConsumer(self, **options)

    def enqueue(self, task: Any) -> Any:
        result = super().enqueue(task)
        self.ring()
        return result

    def ask(self, verb: str, number: int, priority: int = 0, delay: float | None = None) -> None:
        """Have the worker carry out a verb on a row; the verbs are filled in by `runs.tasks`.

        By name, so that a process can ask for work whose code it never imports.
        """
        self.enqueue(self._asked.s(verb, number, priority=priority, delay=delay))

    def _carry_out(self, verb: str, number: int) -> None:
        self.verbs[verb](number)

    def ring(self, everyone: bool = False) -> None:
        """Wake an idle worker of this process."""
        with self._work:
            self.rung += 1
            if everyone:
                self._work.notify_all()
            else:
                self._work.notify()

    def wait_for_work(self, heard: int, seconds: float) -> None:
        """Return when something was rung since `heard`, at the latest after `seconds`."""
        with self._work:
            self._work.wait_for(lambda: self.rung != heard, timeout=seconds)

    def on_wake(self, text: str) -> None:
        """Handle one wake-up; replaced by `runs.tasks`, which knows what a project is."""

    def on_look(self, project: str) -> None:
        """Look at one project now; replaced by `runs.tasks`."""

    def watch(self) -> None:
        """Ask for looks as events come in, beside the scheduler; replaced by `runs.tasks`."""

"""Our Huey: SQLite storage, idle workers that are woken, a scheduler that asks once for all of them.

Huey's own scheduler looks once a minute and its idle workers ask the queue again and again. Here
an idle worker sleeps until it is rung: by an enqueue of this process, by the datagram of another, or
by the scheduler, which looks every `OFFER_SECONDS` whether a ring was lost.
"""

from __future__ import annotations

import logging
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from labsite.loading import trim, without

with without("psycopg", "redis", "cysqlite"):  # for queues of other kinds
    from huey import SqliteHuey
    from huey.consumer import Consumer, Scheduler, Worker

OFFER_SECONDS = 5
TIDY_OFFERS = 12  # once a minute
SPARE = 2
NOTICES = 1
CHECKS, ENOUGH = 2, 8
OF_AGENTS, PLENTY = 3, 12
AFTER_RUNS, MOST = 2, 14
MANY = 4
MOST_LOOKS = 200
DATAGRAM_BYTES = 4096
HEAR_SECONDS = 5.0
LOOK_GRACE_SECONDS = 15.0

logger = logging.getLogger(__name__)


class OftenScheduler(Scheduler):
    """Offers periodic work, puts on the queue what was put off until now, and misses no lost ring.

    It sleeps until the first of these is due; what is put off meanwhile wakes it.
    """

    _offers = 0

    @property
    def periodic_task_seconds(self) -> float:
        seconds: float = self.huey.offer_seconds
        return seconds

    def loop(self, now: datetime | None = None) -> None:
        heard = self.huey.put_off.count
        moment = now or self.huey._get_timestamp()
        try:
            self._put_on(moment)
        except Exception:
            logger.exception("what was put off is looked at again")
            self.huey.put_off_at = None
        if self._next_periodic <= time.monotonic():
            # What a stall or a suspended machine missed is not made up for.
            while self._next_periodic <= time.monotonic():
                self._next_periodic += self.periodic_task_seconds
            self._offer(moment)
        self.huey.put_off.wait(heard, self._pause())

    def _put_on(self, moment: datetime) -> None:
        """Huey's own reading of the schedule locks the queue, so it is done only when it finds one."""
        due_at = self.huey.first_put_off()
        if due_at is not None and due_at <= self.huey.seconds_of(moment):
            for task in self.huey.read_schedule(moment):
                self.huey.enqueue(task)

    def _offer(self, moment: datetime) -> None:
        self._offers += 1
        try:
            if self._offers % TIDY_OFFERS == 0:
                self.huey.give_back()
            if self.huey.has_work():
                self.huey.ring()
            if self.periodic:
                self.huey.before_offer()
        except Exception:
            logger.exception("the queue is looked at again")
        if self.periodic:
            self.enqueue_periodic_tasks(moment)

    def _pause(self) -> float:
        if self.stop_flag.is_set():
            return 0.0
        rest: float = self._next_periodic - time.monotonic()
        due_at = self.huey.put_off_at
        if due_at is not None:
            rest = min(rest, due_at - self.huey.seconds_of(self.huey._get_timestamp()))
        return max(0.0, min(rest, self.periodic_task_seconds))


class WokenWorker(Worker):
    """Sleeps until it is rung instead of asking the queue."""

    def loop(self, now: Any = None) -> None:
        # Before the look, so that no ring falls between look and sleep.
        self._heard = self.huey.work.count
        super().loop(now)

    def sleep(self) -> None:
        if not self.stop_flag.is_set():
            self.huey.wait_for_work(self._heard, self.max_delay)


class Bell:
    """Wakes sleepers: the one who fell asleep last first, whose memory is still warm."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()
        self._asleep: list[threading.Event] = []

    def ring(self, everyone: bool = False) -> None:
        """Wake one sleeper, or all. Who is about to fall asleep will not."""
        with self._lock:
            self.count += 1
            woken = list(self._asleep) if everyone else self._asleep[-1:]
            del self._asleep[len(self._asleep) - len(woken) :]
        for event in woken:
            event.set()

    def wait(self, heard: int, seconds: float) -> None:
        """Sleep until it is rung, but not if it was since `count` was `heard`, nor for longer."""
        event = threading.Event()
        with self._lock:
            if self.count != heard:
                return
            self._asleep.append(event)
        event.wait(seconds)
        with self._lock:
            if event in self._asleep:
                self._asleep.remove(event)


class WakeConsumer(Consumer):
    """A consumer that hears wake-up datagrams. The one with the scheduler also carries out looks.

    Looks have a thread of their own: the lease lets only one go on at a time anyway, whatever
    else the workers have to do, and a project that is asked for often waits once.
    """

    hear_seconds = HEAR_SECONDS
    worker_class = WokenWorker
    scheduler_class = OftenScheduler

    def start(self) -> None:
        self._signals, told = socket.socketpair()
        told.setblocking(False)
        self._told = told
        signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
        super().start()
        self.hear()

    def loop(self, health_check_ts: float | None = None) -> float | None:
        """Sleep until a signal comes or the workers' health is due, in place of ten looks a second."""
        self._stop_flag_timeout = 0
        if not self.stop_flag.is_set() and self._signum is None:
            select.select([self._signals], [], [], self._health_check_interval)
        after: float | None = super().loop(health_check_ts)
        return after

    def hear(self) -> None:
        """Start the threads that hear wake-ups and, beside the scheduler, look."""
        if self.huey.has_others:
            threading.Thread(target=self._listen_to_others, name="Elsewhere", daemon=True).start()
            if self.periodic:
                threading.Thread(target=self._answer, name="Answers", daemon=True).start()
        box = self.huey.wake_path if self.periodic else self.huey.more_wake_path()
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
        self.huey.put_off.ring(everyone=True)
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

    def _listen_to_others(self) -> None:
        self.huey.hear_others(bool(self.periodic), self.stop_flag.is_set)

    def _answer(self) -> None:
        self.huey.answer_others(self.stop_flag.is_set)

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
    take hours, have their own, and so have, where there are many workers, what asks and tries agents,
    what agents have run for them and wait for, and the commands after runs, which a start would
    wait for otherwise.
    """
    checks = CHECKS if workers > ENOUGH else 1
    agents = 1 if workers > ENOUGH else 0
    for_agents = OF_AGENTS if workers > PLENTY else 0
    after = AFTER_RUNS if workers > MOST else 0
    long = max(2, workers - SPARE - NOTICES - checks - agents - for_agents - after)
    clones = 2 if long >= MANY else 1
    fetching = threading.BoundedSemaphore(clones)
    validating = threading.BoundedSemaphore(checks)
    launching = threading.BoundedSemaphore(long - clones)
    return {
        "clone": fetching,
        "sweep": fetching,
        "launch": launching,
        "after_run": threading.BoundedSemaphore(after) if after else launching,
        "deliver": threading.BoundedSemaphore(NOTICES),
        "validate": validating,
        "check_run": threading.BoundedSemaphore(for_agents) if for_agents else validating,
        "agent": threading.BoundedSemaphore(agents) if agents else fetching,
    }


class LabHuey(SqliteHuey):
    """SqliteHuey with the consumer above. What it wakes for and carries out is set by `runs.tasks`.

    `wake_path` belongs to the worker with the scheduler, `more_wake_path()` to this process if it
    is a further one.

    `rooms` bound the tasks that may take minutes, clones apart from launches: `SPARE` workers stay
    free for ticks whatever hangs, and a launch never waits for clones.
    """

    has_others = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.work, self.put_off = Bell(), Bell()
        self.put_off_at: float | None = None
        self.offer_seconds: float = OFFER_SECONDS
        self.wake_path: Path | None = None
        self.more_wake_path: Callable[[], Path | None] = lambda: None
        self.rooms = rooms(1)
        self.is_stopping = False
        self.looks = Looks()
        self.verbs: dict[str, Callable[[int], None]] = {}
        super().__init__(*args, **kwargs)
        self._asked = self.task(name="ask")(self._carry_out)

    def create_consumer(self, **options: Any) -> WakeConsumer:
        self.rooms = rooms(options.get("workers", 1))
        # The file may have been removed since the process that forked this one opened it.
        getattr(self.storage, "initialize_schema", lambda: None)()
        return WakeConsumer(self, **options)

    def let_go(self) -> None:
        """Close the connection to the queue; the next use opens another one."""
        self.storage.close()

    def enqueue(self, task: Any) -> Any:
        result = super().enqueue(task)
        self.ring()
        return result

    def dequeue(self) -> Any:
        """The next task. Whoever takes one wakes another worker, who looks whether there are more."""
        task = super().dequeue()
        if task is not None:
            self.ring()
        return task

    def add_schedule(self, task: Any) -> None:
        """Put a task off until its time, and have the scheduler know of it."""
        super().add_schedule(task)
        self.put_off.ring()

    def has_work(self) -> bool:
        """Whether something is on the queue; one read, without a lock."""
        rows = self.storage.sql(
            "select 1 from task where queue = ? limit 1", (self.name,), results=True
        )
        return bool(rows)

    def first_put_off(self) -> float | None:
        """When the first task that was put off is due, in seconds; one read, without a lock."""
        rows = self.storage.sql(
            "select min(timestamp) from schedule where queue = ?", (self.name,), results=True
        )
        self.put_off_at = rows[0][0] if rows else None
        return self.put_off_at

    @staticmethod
    def seconds_of(moment: datetime) -> float:
        """A moment as the queue stores it."""
        return moment.timestamp()

    def ask(self, verb: str, number: int, priority: int = 0, delay: float | None = None) -> None:
        """Have the worker carry out a verb on a row; the verbs are filled in by `runs.tasks`.

        By name, so that a process can ask for work whose code it never imports.
        """
        self.enqueue(self._asked.s(verb, number, priority=priority, delay=delay))

    def ask_of(self, host: str, verb: str, number: int, priority: int = 0) -> None:
        """Have the worker of another host carry it out; nobody here, whose tick finds the row."""

    def _carry_out(self, verb: str, number: int) -> None:
        self.verbs[verb](number)

    def ring(self, everyone: bool = False) -> None:
        """Wake an idle worker of this process."""
        self.work.ring(everyone)

    def wait_for_work(self, heard: int, seconds: float) -> None:
        """Sleep until something is rung, but not if it was since `heard`, nor for longer."""
        self.work.wait(heard, seconds)

    def refusal(self) -> str:
        """Why the queue cannot be used now; empty when it can, as a file always can."""
        return ""

    def hear_others(self, looks: bool, is_over: Callable[[], bool]) -> None:
        """Hear wake-ups of other machines until it is over; those of projects only with `looks`."""

    def answer_others(self, is_over: Callable[[], bool]) -> None:
        """Answer what other machines ask of this host; replaced by `runs.tasks`."""

    def give_back(self) -> None:
        """Return the memory that is free by now to the system."""
        self.before_tidying()
        trim()

    def before_tidying(self) -> None:
        """Close what nobody has used for a while; replaced by `runs.tasks`."""

    def before_offer(self) -> None:
        """Find out which periodic work has something to do; replaced by `runs.tasks`."""

    def on_wake(self, text: str) -> None:
        """Handle one wake-up; replaced by `runs.tasks`, which knows what a project is."""

    def on_look(self, project: str) -> None:
        """Look at one project now; replaced by `runs.tasks`."""

    def watch(self) -> None:
        """Ask for looks as events come in, beside the scheduler; replaced by `runs.tasks`."""

"""Our Huey: wakes at once, keeps room for ticks, hears datagrams."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from labsite.programs import worker_argv
from labsite.queue import OFFER_SECONDS, SPARE, LabHuey, Looks, OftenScheduler, rooms
from labsite.redis_queue import RedisLabHuey
from runs.core.ports import Steady
from runs.remote.link import Link
from tests.fakes import World
from tests.patience import PATIENCE

WORKERS = 4


class Counting:
    """It counts how often a worker found nothing to do and lay down to rest."""

    def __init__(self, *args, **kwargs):
        self.rested = threading.Semaphore(0)
        super().__init__(*args, **kwargs)

    def wait_for_work(self, heard, seconds):
        self.rested.release()
        return super().wait_for_work(heard, seconds)

    def until_all_rest(self, workers):
        for _ in range(workers):
            assert self.rested.acquire(timeout=PATIENCE)


class Observed(Counting, LabHuey):
    pass


class ObservedOnRedis(Counting, RedisLabHuey):
    pass


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    """What the queue is kept in."""
    return getattr(request, "param", "file")


on_each = pytest.mark.parametrize(
    "kind", ["file", pytest.param("redis", marks=pytest.mark.real)], indirect=True
)


@pytest.fixture
def same_queue(kind: str, tmp_path: Path, request: pytest.FixtureRequest):
    """Makes the Huey of one more process on one queue."""

    def make(of_file=LabHuey, on_redis=RedisLabHuey):
        if kind == "file":
            file = str(tmp_path / "queue.sqlite3")
            return of_file("test", filename=file, immediate=False, results=False)
        server = request.getfixturevalue("redis_server")
        return on_redis(Link(server.url, "key", "here", tmp_path))

    return make


@pytest.fixture
def huey(same_queue, tmp_path: Path):
    made = same_queue(Observed, ObservedOnRedis)
    made.wake_path = tmp_path / "worker.sock"
    yield made


@pytest.fixture
def consumer(huey):
    made = huey.create_consumer(workers=WORKERS, initial_delay=60, max_delay=60, periodic=False)
    for _, thread in made.worker_threads:
        thread.start()
    made.scheduler.start()
    yield made
    made.stop_flag.set()
    huey.ring(everyone=True)
    huey.put_off.ring(everyone=True)
    for _, thread in made.worker_threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


@on_each
def test_an_idle_worker_starts_at_once_although_it_polls_once_a_minute(huey, consumer):
    done = threading.Event()
    huey.verbs["mark"] = lambda number: done.set()
    huey.until_all_rest(WORKERS)
    huey.ask("mark", 1)
    assert done.wait(PATIENCE)


@on_each
def test_what_was_put_on_the_queue_without_a_ring_is_found_by_the_scheduler(huey, same_queue):
    """As when the ring got lost, or the worker was killed while work was queued."""
    done, late = threading.Event(), threading.Event()
    other = same_queue()
    huey.offer_seconds = 0.1
    huey.verbs |= {"mark": lambda number: done.set(), "late": lambda number: late.set()}
    consumer = huey.create_consumer(workers=2, initial_delay=60, max_delay=60, periodic=False)
    for _, thread in consumer.worker_threads:
        thread.start()
    try:
        huey.until_all_rest(2)
        other.ask("mark", 1)
        huey.ask("late", 1, delay=0.2)
        consumer.scheduler.start()
        assert done.wait(PATIENCE)
        assert late.wait(PATIENCE)
    finally:
        consumer.stop_flag.set()
        huey.ring(everyone=True)
        huey.put_off.ring(everyone=True)
        for thread in (consumer.scheduler, *(thread for _, thread in consumer.worker_threads)):
            thread.join(PATIENCE)
            assert not thread.is_alive()


def test_free_memory_is_given_back_once_a_minute(tmp_path):
    class Tidied(LabHuey):
        times = 0

        def give_back(self):
            self.times += 1

    huey = Tidied("test", filename=str(tmp_path / "queue.sqlite3"), immediate=False, results=False)
    scheduler = OftenScheduler(huey, threading.Event(), 1, False)
    for _ in range(25):
        scheduler._offer(huey._get_timestamp())
    assert huey.times * 60 == 24 * OFFER_SECONDS


@on_each
def test_one_ring_is_enough_for_all_that_is_queued(huey, consumer, same_queue):
    """Rings that came together count once: whoever takes a task wakes the next."""
    begun, go_on = threading.Semaphore(0), threading.Event()

    def slow(number: int) -> None:
        begun.release()
        go_on.wait(PATIENCE)

    huey.verbs["slow"] = slow
    other = same_queue()
    huey.until_all_rest(WORKERS)
    for number in range(WORKERS):
        other.ask("slow", number)
    huey.ring()
    try:
        for _ in range(WORKERS):
            assert begun.acquire(timeout=PATIENCE)
    finally:
        go_on.set()


@pytest.mark.parametrize("verb", ["clone", "launch"])
def test_hanging_work_leaves_workers_free_for_ticks_and_for_the_other_kind_of_work(
    huey, consumer, world: World, settings, verb
):
    from runs import tasks

    settings.HUEY = huey
    hang, started = threading.Event(), threading.Semaphore(0)
    ticked, other_done = threading.Event(), threading.Event()
    other = {"clone": "launch", "launch": "clone"}[verb]

    def slow(lab: object, number: int) -> None:
        started.release()
        hang.wait(PATIENCE)

    huey.verbs |= {
        verb: lambda number: tasks._long(verb, number, slow),
        other: lambda number: tasks._long(other, number, lambda lab, number: other_done.set()),
        "tick": lambda number: ticked.set(),
    }
    for number in range(6):
        huey.ask(verb, number)
    try:
        assert started.acquire(timeout=PATIENCE)
        huey.ask("tick", 1)
        huey.ask(other, 1)
        assert ticked.wait(PATIENCE)
        assert other_done.wait(PATIENCE)
        assert not started.acquire(blocking=False)
    finally:
        hang.set()


def test_a_notifier_that_hangs_holds_up_one_worker_and_fills_no_queue(
    huey, consumer, world: World, settings
):
    from runs import tasks

    settings.HUEY = huey
    hang, started, ticked = threading.Event(), threading.Semaphore(0), threading.Event()

    moments = iter(range(0, 100_000, 1000))

    def slow() -> Steady:
        """What a sending asks first; the second time it is told that its time is up."""
        started.release()
        hang.wait(PATIENCE)
        return Steady("boot", next(moments))

    settings.RUNS_LAB = lambda: replace(world.lab, steady=slow)
    huey.verbs |= {"deliver": tasks.deliver, "tick": lambda number: ticked.set()}
    for number in range(30):
        huey.ask("deliver", number)
    try:
        assert started.acquire(timeout=PATIENCE)
        huey.ask("tick", 1)
        assert ticked.wait(PATIENCE)
        assert not started.acquire(blocking=False)
        deadline = time.monotonic() + PATIENCE
        while len(huey) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(huey) == 0
    finally:
        hang.set()


@pytest.mark.parametrize("workers", [1, 2, 4, 6, 12, 13, 15])
def test_there_is_room_for_every_kind_of_work_and_workers_to_spare(workers):
    there = rooms(workers)
    made = {kind: room._value for kind, room in there.items()}
    in_all = sum(room._value for room in set(there.values()))
    assert min(made.values()) >= 1
    assert made["clone"] <= 2
    assert workers < 6 or in_all <= workers - SPARE


def test_commands_after_runs_hold_up_no_start_and_wait_for_none(
    huey, consumer, world: World, settings, monkeypatch
):
    from runs import tasks

    settings.HUEY = huey
    argv = worker_argv()
    huey.rooms = rooms(int(argv[argv.index("-w") + 1]))
    while huey.rooms["launch"].acquire(blocking=False):
        pass
    done = threading.Event()
    monkeypatch.setattr(tasks.after_run, "carry_out", lambda lab, number, is_stopping: done.set())
    huey.verbs["after_run"] = tasks.carry_out_after_run
    huey.ask("after_run", 7)
    assert done.wait(PATIENCE)


@pytest.fixture
def looked(huey, settings):
    """A consumer with a scheduler whose looks are noted, on the product's own wiring of wake-ups."""
    from runs import tasks

    settings.HUEY = huey
    made: list[str] = []
    huey.on_wake, huey.on_look = tasks.on_wake, made.append
    consumer = huey.create_consumer(workers=1, periodic=True)
    thread = threading.Thread(target=consumer._look)
    yield made, thread
    huey.looks.stop()
    if thread.ident:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_flood_of_wake_ups_is_one_look_for_each_project(huey, looked):
    made, thread = looked
    for _ in range(300):
        huey.on_wake("demo")
        huey.on_wake("other~1~afk-7")
    assert huey.looks.waiting() == ["demo", "other"]
    thread.start()
    _until(lambda: made == ["demo", "other"])
    huey.on_wake("demo")
    _until(lambda: made == ["demo", "other", "demo"])


def test_what_is_wished_during_a_look_is_one_more_look_afterwards(huey, looked):
    made, thread = looked
    begun, go_on = threading.Event(), threading.Event()

    def slow(project: str) -> None:
        made.append(project)
        begun.set()
        go_on.wait(PATIENCE)

    huey.on_look = slow
    huey.on_wake("demo")
    thread.start()
    assert begun.wait(PATIENCE)
    for _ in range(50):
        huey.on_wake("demo")
    assert (made, huey.looks.waiting()) == (["demo"], ["demo"])
    go_on.set()
    _until(lambda: made == ["demo", "demo"])
    assert huey.looks.waiting() == []


def test_a_flood_of_made_up_names_is_bounded(huey, looked):
    huey.looks = Looks(most=5)
    for number in range(50):
        huey.on_wake(f"name{number}")
    assert len(huey.looks.waiting()) == 5


def test_a_look_that_fails_does_not_silence_the_next_wake_up(huey, looked):
    made, thread = looked

    def broken(project: str) -> None:
        made.append(project)
        raise RuntimeError("no lab")

    huey.on_look = broken
    thread.start()
    huey.on_wake("demo")
    _until(lambda: made == ["demo"])
    huey.on_wake("demo")
    _until(lambda: made == ["demo", "demo"])


def test_a_look_waits_for_nothing_that_the_workers_do(huey, consumer, looked):
    """Not even when every worker hangs: a done signal is seen at once."""
    made, thread = looked
    thread.start()
    hang, started = threading.Event(), threading.Semaphore(0)

    def slow(number: int) -> None:
        started.release()
        hang.wait(PATIENCE)

    huey.verbs["hang"] = slow
    for number in range(8):
        huey.ask("hang", number)
    try:
        for _ in range(4):
            assert started.acquire(timeout=PATIENCE)
        huey.on_wake("demo")
        _until(lambda: made == ["demo"])
    finally:
        hang.set()


def test_only_the_worker_with_the_scheduler_hears_for_projects_and_each_hears_of_work(
    huey, consumer, tmp_path
):
    """Two workers on one queue: what one puts there wakes the other, whoever has an idle thread."""
    first, more = tmp_path / "worker.sock", tmp_path / "more.sock"
    huey.wake_path, huey.more_wake_path = first, lambda: more
    done, heard = threading.Event(), []
    huey.verbs["mark"] = lambda number: done.set()
    huey.on_wake = lambda text: (heard.append(text), huey.ring(everyone=True))
    consumer.hear()
    _until(more.exists)
    assert not first.exists()
    other = LabHuey("test", filename=huey.storage.filename, immediate=False, results=False)
    huey.until_all_rest(WORKERS)
    other.ask("mark", 1)
    assert not done.wait(0.5)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.sendto(b"", str(more))
    assert done.wait(PATIENCE)
    assert heard == [""]


def test_a_socket_that_somebody_removed_is_made_again(huey, consumer, tmp_path):
    path, heard = tmp_path / "more.sock", []
    huey.more_wake_path = lambda: path
    huey.on_wake = heard.append
    consumer.hear_seconds = 0.05
    consumer.hear()
    _until(path.exists)
    path.unlink()
    _until(path.exists)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        _until(lambda: _was_sent(bell, b"demo", path))
    _until(lambda: heard)
    assert heard == ["demo"]


def _was_sent(bell: socket.socket, text: bytes, path: Path) -> bool:
    try:
        bell.sendto(text, str(path))
    except OSError:
        return False
    return True


def _until(happened, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)

"""Our Huey: wakes at once, keeps room for ticks, hears datagrams."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import pytest

from labsite.queue import SPARE, LabHuey, Looks, rooms
from tests.fakes import World


@pytest.fixture
def huey(tmp_path: Path):
    made = LabHuey("test", filename=str(tmp_path / "queue.sqlite3"), immediate=False, results=False)
    made.wake_path = tmp_path / "worker.sock"
    yield made


@pytest.fixture
def consumer(huey):
    made = huey.create_consumer(workers=4, initial_delay=60, max_delay=60, periodic=False)
    for _, thread in made.worker_threads:
        thread.start()
    made.scheduler.start()
    yield made
    made.stop_flag.set()
    huey.ring(everyone=True)
    for _, thread in made.worker_threads:
        thread.join(5)
        assert not thread.is_alive()


def test_an_idle_worker_starts_at_once_although_it_polls_once_a_minute(huey, consumer):
    done = threading.Event()
    huey.verbs["mark"] = lambda number: done.set()
    time.sleep(0.2)
    began = time.monotonic()
    huey.ask("mark", 1)
    assert done.wait(5)
    assert time.monotonic() - began < 1


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
        hang.wait(10)

    huey.verbs |= {
        verb: lambda number: tasks._long(verb, number, slow),
        other: lambda number: tasks._long(other, number, lambda lab, number: other_done.set()),
        "tick": lambda number: ticked.set(),
    }
    for number in range(6):
        huey.ask(verb, number)
    try:
        assert started.acquire(timeout=5)
        huey.ask("tick", 1)
        huey.ask(other, 1)
        assert ticked.wait(5)
        assert other_done.wait(5)
        assert not started.acquire(blocking=False)
    finally:
        hang.set()


@pytest.mark.parametrize("workers", [1, 2, 4, 6, 12])
def test_there_is_room_for_every_kind_of_work_and_workers_to_spare(workers):
    made = {kind: room._value for kind, room in rooms(workers).items()}
    assert min(made.values()) >= 1
    assert made["clone"] <= 2
    assert workers < 4 or sum(made.values()) <= workers - SPARE


@pytest.fixture
def stored(settings):
    """The product's own queue, stored instead of carried out at once."""
    queue = settings.HUEY
    queue.immediate = False
    queue.flush()
    yield queue
    queue.flush()
    queue.looks = Looks()
    queue.immediate = True


def _next(queue: LabHuey) -> None:
    queue.execute(queue.dequeue())


@pytest.mark.django_db
def test_a_flood_of_wake_ups_is_one_look(world: World, stored):
    from runs import tasks

    for _ in range(300):
        tasks.on_wake("demo")
        tasks.on_wake("other~1~afk-7")
    assert stored.pending_count() == 2
    _next(stored)
    _next(stored)
    assert stored.pending_count() == 0
    tasks.on_wake("demo")
    assert stored.pending_count() == 1


@pytest.mark.django_db
def test_what_is_wished_during_a_look_is_one_more_look_afterwards(world: World, stored):
    from runs import tasks

    asked = []

    class Flooded(Looks):
        def begin(self, project: str) -> None:
            super().begin(project)
            for _ in range(50 if not asked else 0):
                tasks.on_wake("demo")
            asked.append(stored.pending_count())

    stored.looks = Flooded()
    tasks.on_wake("demo")
    _next(stored)
    assert (asked, stored.pending_count()) == ([0], 1)
    _next(stored)
    assert (asked, stored.pending_count()) == ([0, 0], 0)


@pytest.mark.django_db
def test_a_flood_of_made_up_names_does_not_fill_the_queue(world: World, stored):
    from runs import tasks

    stored.looks = Looks(most=5)
    for number in range(50):
        tasks.on_wake(f"name{number}")
    assert stored.pending_count() == 5


@pytest.mark.django_db
def test_a_look_that_fails_does_not_silence_the_next_wake_up(world: World, stored, settings):
    from runs import tasks

    def broken() -> None:
        raise RuntimeError("no lab")

    working, settings.RUNS_LAB = settings.RUNS_LAB, broken
    tasks.on_wake("demo")
    with contextlib.suppress(RuntimeError):
        _next(stored)
    settings.RUNS_LAB = working
    tasks.on_wake("demo")
    assert stored.pending_count() == 1

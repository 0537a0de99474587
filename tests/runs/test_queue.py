"""Our Huey: wakes at once, keeps room for ticks, hears datagrams."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from labsite.queue import LabHuey
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


def test_hanging_work_leaves_workers_free_for_ticks(
    huey, consumer, world: World, settings, monkeypatch
):
    from runs import tasks

    settings.HUEY = huey
    hang, started, ticked = threading.Event(), threading.Semaphore(0), threading.Event()

    def slow(lab: object, number: int) -> None:
        started.release()
        hang.wait(10)

    huey.verbs |= {
        "slow": lambda number: tasks._long("slow", number, slow),
        "tick": lambda number: ticked.set(),
    }
    for number in range(6):
        huey.ask("slow", number)
    try:
        for _ in range(2):
            assert started.acquire(timeout=5)
        huey.ask("tick", 1)
        assert ticked.wait(5)
        assert not started.acquire(blocking=False)
    finally:
        hang.set()

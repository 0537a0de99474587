"""The queues of several hosts on one Redis, and a Redis that goes away."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from labsite.doctor import storage
from labsite.redis_queue import RedisLabHuey
from runs.management import servers
from runs.remote.link import Link
from tests.redis_server import Server


class Machine:
    """The Huey of one host's worker, whose tasks the test takes off by hand."""

    def __init__(self, url: str, folder: Path, host: str, key: str = "key") -> None:
        folder.mkdir(exist_ok=True)
        self.link = Link(url, key, host, folder)
        self.huey = RedisLabHuey(self.link)
        self.huey.create_consumer(workers=1, periodic=False)
        self.done: list[int] = []
        self.huey.verbs["mark"] = self.done.append

    def work(self) -> list[int]:
        """Take and do all that is there."""
        self.link._again_at = 0.0  # not a moment later
        for task in self.huey.read_schedule():
            self.huey.enqueue(task)
        while (task := self.huey.dequeue()) is not None:
            self.huey.execute(task)
        return self.done


@pytest.fixture
def here(redis_server: Server, tmp_path: Path) -> Machine:
    return Machine(redis_server.url, tmp_path / "here", "here")


@pytest.fixture
def there(redis_server: Server, tmp_path: Path) -> Machine:
    return Machine(redis_server.url, tmp_path / "there", "there")


def test_each_host_takes_what_is_asked_of_it_or_of_any_and_nothing_of_another(
    redis_server: Server, here: Machine, there: Machine, tmp_path: Path
) -> None:
    web = RedisLabHuey(Link(redis_server.url, "key", "web", tmp_path), is_web_alone=True)
    web.ask_of("there", "mark", 1)
    here.huey.ask_of("there", "mark", 2)
    here.huey.ask("mark", 3)
    there.huey.ask_of("there", "mark", 4)
    assert (here.work(), there.work()) == ([3], [1, 2, 4])
    web.ask("mark", 5)
    assert (there.huey.has_work(), here.huey.pending_count()) == (True, 1)
    assert web.pending_count() == 1
    assert there.work() == [1, 2, 4, 5]
    assert here.work() == [3]


def test_the_most_urgent_comes_first_then_the_oldest(here: Machine) -> None:
    for number, priority in enumerate((0, 5, 0, 10)):
        here.huey.ask("mark", number, priority=priority)
    assert here.work() == [3, 1, 0, 2]


def test_a_worker_goes_on_with_its_own_work_while_redis_is_away_and_nothing_is_done_twice(
    redis_server: Server, here: Machine
) -> None:
    here.huey.ask("mark", 1)
    redis_server.stop()
    here.link._again_at = 0.0
    assert not here.huey.has_work()
    here.huey.ask("mark", 2)
    here.huey.ask("mark", 3, delay=-1)
    assert here.huey.has_work()
    assert here.work() == [2, 3]
    here.huey.ask("mark", 4, delay=60)
    assert here.work() == [2, 3]
    due_at = here.huey.first_put_off()
    assert due_at is not None
    soon = due_at - here.huey.seconds_of(here.huey._get_timestamp())
    assert 50 < soon < 61
    redis_server.start()  # empty: what it held is asked again by a tick
    assert here.work() == [2, 3]
    here.huey.ask("mark", 5)
    assert here.work() == [2, 3, 5]
    assert here.huey.first_put_off() == due_at


def test_a_web_process_whose_redis_is_away_answers_and_forgets(
    tmp_path: Path, here: Machine
) -> None:
    away = Link(f"unix://{tmp_path}/nobody.sock", "key", "here", tmp_path)
    web = RedisLabHuey(away)
    for _ in range(3):
        web.ask("mark", 1)
        web.ask_of("there", "mark", 1)
    assert web.storage._kept.queue_size() == 0


def test_work_that_nobody_with_the_key_signed_is_not_done(
    redis_server: Server, here: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    other = RedisLabHuey(Link(redis_server.url, "another key", "here", Path("/")))
    forged = other.serialize_task(other._asked.s("mark", 666))
    here.huey.storage.enqueue(forged)
    with pytest.raises(ValueError, match="mismatch"):
        here.huey.dequeue()
    here.huey.ask("mark", 1)
    assert here.work() == [1]


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        pytest.param(["", "never asked"], "", id="it answers"),
        pytest.param(["Connection refused", ""], "", id="it answers a moment later"),
        pytest.param(["Connection refused"] * 99, "Connection refused", id="it stays away"),
        pytest.param(["WRONGPASS invalid username-password pair"], "WRONGPASS", id="no entry"),
    ],
)
def test_a_start_waits_for_redis_a_while_and_then_says_in_one_sentence_what_to_do(
    answers: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    left = iter(answers)
    pauses: list[float] = []
    try:
        servers.wait_for_queue(
            lambda: next(left), 0.05, lambda s: pauses.append(time.sleep(0.02) or s)
        )
    except SystemExit as ended:
        assert words
        assert words in str(ended)
        assert "LAB_REDIS_URL" in str(ended)
    else:
        assert not words
    assert bool(pauses) == (answers[0] == "Connection refused")
    assert len(capsys.readouterr().err.splitlines()) == bool(pauses)


def test_the_doctor_says_whether_redis_answers(
    redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(url: str) -> tuple[str, str]:
        monkeypatch.setenv("LAB_REDIS_URL", url)
        (line,) = storage.redis()
        return line.status, line.seen

    assert told(redis_server.url) == ("ok", "answers")
    redis_server.stop()
    status, seen = told(redis_server.url)
    assert (status, "refused" in seen) == ("wrong", True)
    assert told("redis://u:secret@h:many") == ("wrong", "LAB_REDIS_URL cannot be read")

"""The bell between processes: the real one and the fake keep the same promises."""

from __future__ import annotations

import queue
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.core.paths import Paths
from runs.machine.bell import DatagramBell
from runs.remote.bell import FEED, LOOK, WORK, RedisBell, work_of
from runs.remote.link import Away, Link, Unfit
from runs.remote.ports import Bell
from tests.patience import PATIENCE
from tests.redis_server import Server


class HeardBell:
    """A `Bell` that remembers how often it rang."""

    def __init__(self) -> None:
        self.rings = 0
        self.looks: list[str] = []

    def timeline(self) -> None:
        self.rings += 1

    def look(self, project: str) -> None:
        self.looks.append(project)


# They start a server, or try to reach one.
REDIS = [pytest.param(kind, marks=pytest.mark.real) for kind in ("redis", "redis that is away")]


@pytest.fixture
def paths() -> Iterator[Paths]:
    with tempfile.TemporaryDirectory(prefix="lab-bell-") as folder:
        made = Paths(Path(folder))
        made.feed.mkdir(parents=True)
        yield made


@pytest.fixture(params=["fake", "datagrams", *REDIS])
def bell(request: pytest.FixtureRequest, paths: Paths) -> Bell:
    if request.param == "fake":
        return HeardBell()
    if request.param == "datagrams":
        return DatagramBell(paths)
    if request.param == "redis":
        return RedisBell(paths, _link(request.getfixturevalue("redis_server").url, paths, "here"))
    return RedisBell(paths, _link(f"unix://{paths.state}/nobody.sock", paths, "here"))


@pytest.fixture(params=["datagrams", *REDIS])
def real(request: pytest.FixtureRequest, paths: Paths) -> DatagramBell:
    """On the machine itself each rings alike, whatever becomes of Redis."""
    if request.param == "datagrams":
        return DatagramBell(paths)
    away = f"unix://{paths.state}/nobody.sock"
    here = request.param == "redis"
    url = request.getfixturevalue("redis_server").url if here else away
    return RedisBell(paths, _link(url, paths, "here"))


def _link(url: str, paths: Paths, host: str) -> Link:
    return Link(url, "the key of this installation", host, paths.state)


def _listen(path: Path) -> socket.socket:
    box = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    box.bind(str(path))
    box.settimeout(PATIENCE)
    return box


@pytest.mark.row("X-06", level="contract")
def test_ringing_with_nobody_there_raises_nothing(bell: Bell) -> None:
    bell.timeline()
    bell.timeline()
    bell.look("demo")


@pytest.mark.row("X-06", level="contract")
def test_every_web_process_hears_one_ring_without_data(paths: Paths, real: DatagramBell) -> None:
    with _listen(paths.feed_socket(1)) as first, _listen(paths.feed_socket(2)) as second:
        real.timeline()
        assert (first.recv(100), second.recv(100)) == (b"", b"")


@pytest.mark.row("X-06", level="contract")
def test_a_look_names_the_project_to_the_worker(paths: Paths, real: DatagramBell) -> None:
    with _listen(paths.worker_socket) as worker:
        real.look("demo")
        assert worker.recv(100) == b"demo"


@pytest.mark.row("X-06", level="contract")
def test_the_socket_of_a_killed_web_process_is_tidied_and_a_live_one_kept(paths: Paths) -> None:
    _listen(paths.feed_socket(1)).close()
    with _listen(paths.feed_socket(2)) as alive:
        DatagramBell(paths).timeline()
        assert alive.recv(100) == b""
        assert sorted(path.name for path in paths.feed.iterdir()) == ["2.sock"]


@pytest.mark.row("X-06", level="contract")
def test_a_web_process_that_does_not_read_never_blocks_the_worker(paths: Paths) -> None:
    with _listen(paths.feed_socket(1)) as stuck:
        bell = DatagramBell(paths)
        for _ in range(2000):
            bell.timeline()
        assert paths.feed_socket(1).exists()
        assert stuck.recv(100) == b""


def test_every_worker_hears_that_there_is_work(paths: Paths, real: DatagramBell) -> None:
    second, dead = paths.more_worker_socket(2), paths.more_worker_socket(3)
    second.parent.mkdir()
    _listen(dead).close()
    with _listen(paths.worker_socket) as first, _listen(second) as more:
        real.work()
        assert (first.recv(100), more.recv(100)) == (b"", b"")
        assert not dead.exists()


def test_a_missing_feed_folder_is_no_error(tmp_path: Path) -> None:
    DatagramBell(Paths(tmp_path / "nothing")).timeline()
    DatagramBell(Paths(tmp_path / "nothing")).work()


class Elsewhere:
    """Another machine, which hears of some channels."""

    def __init__(self, url: str, folder: Path, *channels: str) -> None:
        folder.mkdir()
        self.heard: queue.Queue[str] = queue.Queue()
        self._is_over = threading.Event()
        self.link = Link(url, "the key of this installation", "there", folder)
        self._thread = threading.Thread(
            target=self.link.hear, args=(channels, self.heard.put, self._is_over.is_set)
        )
        self._thread.start()
        assert self.next() == ""  # it listens from now on, and may have missed something

    def next(self) -> str:
        return self.heard.get(timeout=PATIENCE)

    def close(self) -> None:
        self._is_over.set()
        self.link.tell("bye")
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


@pytest.mark.row("C-61", level="contract")
def test_other_machines_hear_of_the_timeline_of_looks_and_of_work_for_them_or_for_any(
    redis_server: Server, paths: Paths, tmp_path: Path
) -> None:
    channels = (FEED, LOOK, WORK, work_of("there"), "bye")
    other = Elsewhere(redis_server.url, tmp_path / "there", *channels)
    bell = RedisBell(paths, _link(redis_server.url, paths, "here"))
    try:
        bell.work("here")
        bell.work("third")
        bell.look("demo")
        assert other.next() == "demo"
        for ring in (bell.timeline, bell.work, lambda: bell.work("there")):
            ring()
            assert other.next() == ""
        # Its own machine is rung by a datagram alone, and another installation not at all.
        RedisBell(Paths(tmp_path / "there"), other.link).look("own")
        foreign = Link(redis_server.url, "another key", "here", paths.state)
        RedisBell(paths, foreign).look("foreign")
        bell.look("last")
        assert other.next() == "last"
    finally:
        other.close()


@pytest.mark.row("C-61", level="contract")
def test_who_listens_hears_again_when_redis_is_back_and_looks_once_for_what_it_missed(
    redis_server: Server, paths: Paths, tmp_path: Path
) -> None:
    other = Elsewhere(redis_server.url, tmp_path / "there", LOOK, "bye")
    bell = RedisBell(paths, _link(redis_server.url, paths, "here"))
    try:
        redis_server.stop()
        bell.look("lost")
        redis_server.start()
        assert other.next() == ""
        bell._link._again_at = 0  # not a moment later
        bell.look("demo")
        assert other.next() == "demo"
    finally:
        other.close()


def test_who_lost_its_connection_for_a_moment_looks_once_for_what_it_missed(
    redis_server: Server, paths: Paths, tmp_path: Path
) -> None:
    other = Elsewhere(redis_server.url, tmp_path / "there", WORK, LOOK, "bye")
    try:
        _link(redis_server.url, paths, "here").client.client_kill_filter(_type="pubsub")
        assert other.next() == ""
        assert other.heard.empty()
    finally:
        other.close()


def test_a_redis_that_does_not_answer_is_asked_once_and_then_left_alone_for_a_moment(
    tmp_path: Path,
) -> None:
    link = Link(f"unix://{tmp_path}/nobody.sock", "key", "here", tmp_path)
    asked: list[int] = []
    for _ in range(3):
        with pytest.raises(Away):
            link.ask(lambda: asked.append(1) or link.client.ping())
    assert asked == [1]
    assert "nobody.sock" in link.refusal()


@pytest.mark.parametrize(
    "url",
    [
        "localhost:6379",
        "http://h:1",
        "redis://u:very@secret@h:many/0",
        "redis://u:verysecret@h:99999999/0",
        "redis://u:verysecret@h/0?socket_timeout=soon",
    ],
)
def test_an_address_that_cannot_be_meant_is_one_sentence_without_the_password(
    url: str, tmp_path: Path
) -> None:
    with pytest.raises(Unfit) as raised:
        Link(url, "key", "here", tmp_path).client.connection_pool.make_connection()
    assert "LAB_REDIS_URL" in str(raised.value)
    assert "secret" not in str(raised.value)

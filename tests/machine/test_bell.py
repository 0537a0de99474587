"""The bell between processes: the real one and the fake keep the same promises."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.core.paths import Paths
from runs.core.ports import Bell
from runs.machine.bell import DatagramBell
from tests.patience import PATIENCE


class HeardBell:
    """A `Bell` that remembers how often it rang."""

    def __init__(self) -> None:
        self.rings = 0
        self.looks: list[str] = []

    def timeline(self) -> None:
        self.rings += 1

    def look(self, project: str) -> None:
        self.looks.append(project)


@pytest.fixture
def paths() -> Iterator[Paths]:
    with tempfile.TemporaryDirectory(prefix="lab-bell-") as folder:
        made = Paths(Path(folder))
        made.feed.mkdir(parents=True)
        yield made


@pytest.fixture(params=["fake", "real"])
def bell(request: pytest.FixtureRequest, paths: Paths) -> Bell:
    return HeardBell() if request.param == "fake" else DatagramBell(paths)


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
def test_every_web_process_hears_one_ring_without_data(paths: Paths) -> None:
    with _listen(paths.feed_socket(1)) as first, _listen(paths.feed_socket(2)) as second:
        DatagramBell(paths).timeline()
        assert (first.recv(100), second.recv(100)) == (b"", b"")


@pytest.mark.row("X-06", level="contract")
def test_a_look_names_the_project_to_the_worker(paths: Paths) -> None:
    with _listen(paths.worker_socket) as worker:
        DatagramBell(paths).look("demo")
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


def test_every_worker_hears_that_there_is_work(paths: Paths) -> None:
    second, dead = paths.more_worker_socket(2), paths.more_worker_socket(3)
    second.parent.mkdir()
    _listen(dead).close()
    with _listen(paths.worker_socket) as first, _listen(second) as more:
        DatagramBell(paths).work()
        assert (first.recv(100), more.recv(100)) == (b"", b"")
        assert not dead.exists()


def test_a_missing_feed_folder_is_no_error(tmp_path: Path) -> None:
    DatagramBell(Paths(tmp_path / "nothing")).timeline()
    DatagramBell(Paths(tmp_path / "nothing")).work()

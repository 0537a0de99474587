"""A throwaway Redis server on a Unix socket, in a temporary folder that goes away with it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE


class Server:
    """One server process, which keeps nothing: after a restart it is empty."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lab-redis-"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """For LAB_REDIS_URL."""
        return f"unix://{self.folder}/redis.sock"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        import redis

        socket = f"{self.folder}/redis.sock"
        argv = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir"]
        self._process = subprocess.Popen(
            [*argv, str(self.folder), "--appendonly", "no"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + PATIENCE
        client = redis.Redis.from_url(self.url)
        while True:
            try:
                client.ping()
                client.close()
                return
            except redis.RedisError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def stop(self) -> None:
        """Kill the server, as a failing machine does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def empty(self) -> None:
        import redis

        client = redis.Redis.from_url(self.url)
        client.flushall()
        client.close()

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def redis_installed() -> Iterator[Server]:
    if shutil.which("redis-server") is None:
        pytest.skip("Redis (redis-server) is not installed")
    made = Server()
    made.start()
    yield made
    made.close()


@pytest.fixture
def redis_server(redis_installed: Server) -> Iterator[Server]:
    """A server that is up and empty, and that a test may stop and start."""
    if redis_installed._process is None:
        redis_installed.start()
    redis_installed.empty()
    yield redis_installed

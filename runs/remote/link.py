"""The connection to Redis: names of keys, patience, and what is heard from other machines.

What goes over it are hints and work whose truth is rows: losing any of it costs only time.
"""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

T = TypeVar("T")
SCHEMES = ("redis://", "rediss://", "unix://")
CONNECT_SECONDS = 1.0
ANSWER_SECONDS = 3.0
WAITING_SECONDS = 20.0
REST_SECONDS = 1.0
PING_SECONDS = 10
HEAR_SECONDS = 2.0
BOOT = Path("/proc/sys/kernel/random/boot_id")

logger = logging.getLogger(__name__)


class Unfit(ValueError):
    """The address of Redis cannot be meant; the text says what to write, and never the address."""


class Away(Exception):
    """Redis does not answer now, or refuses; the text is what it said."""


class Link:
    """One process's connections to Redis. `host`: whose sessions are on this machine.

    After a failure it is left alone for a moment, so that nobody waits for it again and again.
    """

    def __init__(self, url: str, secret: str, host: str, folder: Path) -> None:
        if not url.startswith(SCHEMES):
            raise Unfit(_HOW)
        try:
            self.client: Any = redis.Redis.from_url(url, **_patience(url))
            # For whoever waits for somebody else's word.
            self.waiting: Any = redis.Redis.from_url(
                url, **{**_patience(url), "socket_timeout": WAITING_SECONDS}
            )
        except (ValueError, TypeError):  # what it says may quote the password
            raise Unfit(_HOW) from None
        self.host = host
        self.secret = hashlib.sha256(b"labsite messages\0" + secret.encode()).digest()
        # One server may serve several installations, which have different keys.
        self._prefix = f"labsite:{hashlib.sha256(self.secret).hexdigest()[:12]}"
        self._folder = _name_of(folder)
        self._again_at = 0.0
        self._is_away = False

    def key(self, *parts: str) -> str:
        """The name of a key or channel of this installation."""
        return ":".join([self._prefix, *parts])

    def ask(self, question: Callable[[], T]) -> T:
        """What Redis answers to a question. Raises Away, at once when it just was."""
        if time.monotonic() < self._again_at:
            raise Away("it did not answer a moment ago")
        try:
            answer = question()
        except (redis.RedisError, OSError) as error:
            raise self._failed(error) from error
        self._answered()
        return answer

    def refusal(self) -> str:
        """Why Redis cannot be used now; empty when it answers."""
        try:
            self.client.ping()
        except (redis.RedisError, OSError) as error:
            return " ".join(str(error).split()).rstrip(".") or type(error).__name__
        return ""

    def tell(self, channel: str, text: str = "") -> None:
        """Tell whoever hears a channel on other machines. Never raises; a lost word costs time."""
        try:
            self.ask(lambda: self.client.publish(self.key(channel), f"{self._folder} {text}"))
        except Away:
            return

    def hear(
        self, channels: Sequence[str], heard: Callable[[str], object], is_over: Callable[[], bool]
    ) -> None:
        """Pass on what is told on channels by others than this state folder, until it is over.

        An empty text is passed on whenever it listens anew: something may have been missed.
        """
        names = [self.key(channel) for channel in channels]
        while not is_over():
            try:
                with self.client.pubsub() as ear:
                    ear.subscribe(*names)
                    while not is_over():
                        message = ear.get_message(timeout=HEAR_SECONDS)
                        if message is None:
                            continue
                        # The client connects anew by itself, and says so only by subscribing again.
                        if message["type"] == "subscribe" and message["data"] == len(names):
                            heard("")
                        elif message["type"] == "message":
                            self._pass_on(message["data"], heard)
            except (redis.RedisError, OSError) as error:
                self._failed(error)
                time.sleep(REST_SECONDS)

    def in_background(
        self, channels: Sequence[str], heard: Callable[[str], object], name: str = "Elsewhere"
    ) -> None:
        """The same in a thread of its own, as long as the process lives."""
        listen = lambda: self.hear(channels, heard, lambda: False)  # noqa: E731
        threading.Thread(target=listen, name=name, daemon=True).start()

    def _pass_on(self, data: bytes, heard: Callable[[str], object]) -> None:
        folder, _, text = data.decode("utf-8", "replace").partition(" ")
        if folder == self._folder:  # its own processes were rung by a datagram
            return
        try:
            heard(text.strip())
        except Exception:
            logger.exception("what another machine told was not handled", extra={"text": text})

    def _failed(self, error: Exception) -> Away:
        self._again_at = time.monotonic() + REST_SECONDS
        if not self._is_away:
            self._is_away = True
            logger.warning("redis does not answer", extra={"error": str(error)})
        return Away(str(error))

    def _answered(self) -> None:
        if self._is_away:
            self._is_away = False
            logger.warning("redis answers again")


def _patience(url: str) -> dict[str, Any]:
    options: dict[str, Any] = {
        "socket_timeout": ANSWER_SECONDS,
        "retry": Retry(NoBackoff(), 1),  # a connection that an old server closed
        "health_check_interval": PING_SECONDS,
    }
    if not url.startswith("unix://"):
        options |= {"socket_connect_timeout": CONNECT_SECONDS, "socket_keepalive": True}
    return options


def _name_of(folder: Path) -> str:
    """A state folder of a machine, by a name that no other one has."""
    try:
        at, boot = folder.stat(), BOOT.read_text()
    except OSError:
        return os.urandom(8).hex()
    told = f"{socket.gethostname()} {boot} {folder} {at.st_dev} {at.st_ino}"
    return hashlib.sha256(told.encode()).hexdigest()[:16]


_HOW = (
    "LAB_REDIS_URL is not the address of a Redis server; write it as "
    "redis://user:password@host:6379/0, rediss://… with TLS, or unix:///path/to/socket, with signs "
    "such as @ : / ? # % in user and password percent-encoded."
)

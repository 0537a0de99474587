"""The queue on Redis: one for each session host, and one for work that any host may do.

A worker that finds Redis away goes on with what it asks of itself; what others asked for meanwhile
is in rows, which a tick finds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from huey.serializer import SignedSerializer
from huey.storage import SCHEDULE_POP_LUA, BaseStorage, MemoryStorage, PriorityRedisStorage

from labsite.queue import LabHuey, WakeConsumer
from runs.remote.bell import LOOK, WORK, work_of
from runs.remote.link import Away, Link

ANY = "any host"


class HostQueue(PriorityRedisStorage):
    """Huey's own storage on our connection, for the queue of one host beside that for any."""

    def __init__(self, name: str, link: Link, own: str) -> None:
        BaseStorage.__init__(self, name)
        self.conn: Any = link.client
        self.name, self.blocking = name, False
        self._link = link
        self._pop = link.client.register_script(SCHEDULE_POP_LUA)
        self.queue_key, self._any_key = self.key_of(own), self.key_of(ANY)
        self.schedule_key = link.key("schedule", own)
        self.result_key, self.counter_key = link.key("results", own), link.key("counters", own)
        self._kept = MemoryStorage(name)
        self._put_off: dict[bytes, float] = {}
        self._lock = threading.Lock()
        self.is_worker = False

    def key_of(self, host: str) -> str:
        """The queue of a host."""
        return self._link.key("queue", host)

    def enqueue(self, data: bytes, priority: float | None = None) -> None:
        try:
            self._link.ask(lambda: super(HostQueue, self).enqueue(data, priority))
        except Away:
            if self.is_worker:
                self._kept.enqueue(data, priority)

    def dequeue(self) -> bytes | None:
        """What this worker asked of itself while Redis was away, then its queue, then that for any."""
        kept: bytes | None = self._kept.dequeue()
        if kept is not None:
            return kept
        for key in (self.queue_key, self._any_key):
            try:
                found = self._link.ask(lambda key=key: self.conn.zpopmin(key, count=1))  # type: ignore[misc]
            except Away:
                return None
            if found:
                return bytes(found[0][0][8:])  # behind the moment that keeps them in order
        return None

    def peek_many(self, keys: Any) -> dict[str, bytes]:
        """What was revoked; nothing ever is, so Redis need not be asked."""
        return {}

    def delete_data(self, key: str) -> bool:
        return False

    def queue_size(self) -> int:
        asked = self.conn.pipeline(transaction=False)
        for key in {self.queue_key, self._any_key}:  # one, where no worker is beside it
            asked.zcard(key)
        return sum(asked.execute()) + int(self._kept.queue_size())

    def has_work(self) -> bool:
        if self._kept.queue_size():
            return True
        try:
            return bool(self._link.ask(self.queue_size))
        except Away:
            return False

    def add_to_schedule(self, data: bytes, ts: Any) -> None:
        try:
            self._link.ask(lambda: super(HostQueue, self).add_to_schedule(data, ts))
        except Away:
            with self._lock:
                self._put_off[data] = self.convert_ts(ts)

    def read_schedule(self, ts: Any) -> list[bytes]:
        limit = self.convert_ts(ts)
        with self._lock:
            due = [data for data, at in self._put_off.items() if at <= limit]
            for data in due:
                del self._put_off[data]
        try:
            return [*due, *self._link.ask(lambda: super(HostQueue, self).read_schedule(ts))]
        except Away:
            return due

    def first_put_off(self) -> float | None:
        """When the first task that was put off is due, in seconds."""
        with self._lock:
            times = list(self._put_off.values())
        try:
            found = self._link.ask(
                lambda: self.conn.zrange(self.schedule_key, 0, 0, withscores=True)
            )
            times += [at for _, at in found]
        except Away:
            pass
        return min(times, default=None)


class RedisLabHuey(LabHuey):
    """Our Huey on Redis. Messages are signed: Redis may be open to more than may give work.

    A process without a worker beside it (`./lab up --only web`) asks any host.
    """

    storage_class = HostQueue
    has_others = True

    def __init__(self, link: Link, is_web_alone: bool = False) -> None:
        self._link = link
        super().__init__(
            "labsite",
            immediate=False,
            results=False,
            serializer=SignedSerializer(link.secret, salt="labsite queue"),
            link=link,
            own=ANY if is_web_alone else link.host,
        )

    def create_consumer(self, **options: Any) -> WakeConsumer:
        self.storage.is_worker = True
        return super().create_consumer(**options)

    def has_work(self) -> bool:
        return bool(self.storage.has_work())

    def first_put_off(self) -> float | None:
        self.put_off_at = self.storage.first_put_off()
        return self.put_off_at

    def ask_of(self, host: str, verb: str, number: int, priority: int = 0) -> None:
        if host == self._link.host:
            self.ask(verb, number, priority)
            return
        data = self.serialize_task(self._asked.s(verb, number, priority=priority))
        other = HostQueue(self.name, self._link, host)
        other.enqueue(data, priority)

    def refusal(self) -> str:
        return self._link.refusal()

    def hear_others(self, looks: bool, is_over: Callable[[], bool]) -> None:
        channels = [WORK, work_of(self._link.host), *([LOOK] if looks else [])]
        self._link.hear(channels, lambda text: self.on_wake(text), is_over)

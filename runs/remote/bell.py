"""Rings the processes of other machines over Redis, beside those of this one."""

from __future__ import annotations

from runs.core.paths import Paths
from runs.machine.bell import DatagramBell
from runs.remote.link import Link

FEED, LOOK, WORK = "feed", "look", "work"


def work_of(host: str) -> str:
    """The channel on which the workers of a host hear of work."""
    return f"{WORK}:{host}"


class RedisBell(DatagramBell):
    """The `Bell` of several machines: datagrams on this one, Redis for all others.

    So a ring on this machine needs no Redis, and comes once.
    """

    def __init__(self, paths: Paths, link: Link) -> None:
        super().__init__(paths)
        self._link = link

    def timeline(self) -> None:
        super().timeline()
        self._link.tell(FEED)

    def work(self, host: str = "") -> None:
        """Wake the workers of a host, or of any: there is something on a queue."""
        if host in ("", self._link.host):
            super().work()
        self._link.tell(work_of(host) if host else WORK)

    def look(self, project: str) -> None:
        super().look(project)
        self._link.tell(LOOK, project)

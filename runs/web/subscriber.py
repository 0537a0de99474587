"""One socket at the feed: its mailbox, and why it is ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from runs.web.feed_reader import Audience

LOGGED_OUT = 4401
GONE = 4404
OTHER_RIGHTS = 0  # never sent: the socket asks again what it may be sent, and joins anew


class Ended(Exception):
    """The watcher gets nothing more; its socket closes with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Watcher:
    """One socket's mailbox: the newest HTML of each region that it has not been sent yet.

    A slow socket makes regions overwrite each other here, so the box never grows beyond one page.
    """

    def __init__(self, audience: Audience, session: str, person: int, last: int | None) -> None:
        self.audience = audience
        self.session = session
        self.person = person
        self.last = last
        self.has_missed = False
        self.has_page = False
        self._regions: dict[str, str] = {}
        self._newest = 0
        self._code: int | None = None
        self._filled = asyncio.Event()

    def offer(self, newest: int, regions: Mapping[str, str]) -> None:
        """Put regions into the box; `newest` is the timeline entry up to which they are true."""
        if regions:
            self._regions |= regions
            self._newest = newest
            self._filled.set()

    def end(self, code: int) -> None:
        """Tell the socket to close instead of waiting for more."""
        self._code = code
        self._filled.set()

    async def frame(self) -> str:
        """Wait for the next frame and empty the box. Raises Ended."""
        await self._filled.wait()
        if self._code is not None:
            raise Ended(self._code)
        self._filled.clear()
        content, self._regions = "".join(self._regions.values()), {}
        return json.dumps({"id": self._newest, "content": content})

"""Tells the outside: Apprise and pings, each in a child process that is ended when it hangs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from runs.core.ports import DeviceGone, SeamError, UnfitAddress
from runs.machine import shell
from runs.notices.rules import Push, redacted

MESSENGER = Path(__file__).with_name("messenger.py")
PUSH_MESSENGER = Path(__file__).with_name("push_messenger.py")
TIMEOUT = 20.0
ANSWER_BYTES = 100_000


class AppriseNotifier:
    """`Notifier` by a messenger of its own for each thing that is told."""

    def __init__(self, environ: Mapping[str, str], timeout: float = TIMEOUT) -> None:
        self._env = shell.scrubbed(environ)
        self._timeout = timeout

    def check(self, url: str) -> str:
        return str(self._ask(url, what="check").get("service", ""))

    def send(self, url: str, title: str, text: str) -> None:
        self._ask(url, what="send", title=title, text=text)

    def push(self, push: Push) -> None:
        self._run(PUSH_MESSENGER, push.endpoint, asdict(push))

    def ping(self, url: str) -> None:
        self._ask(url, what="ping")

    def _ask(self, url: str, **order: str) -> dict[str, Any]:
        return self._run(MESSENGER, url, {"url": url, **order})

    def _run(self, messenger: Path, url: str, order: Mapping[str, object]) -> dict[str, Any]:
        """The order travels in memory that has no name, so that no file ever holds the address."""
        handle = os.memfd_create("order")
        try:
            os.write(handle, json.dumps(order).encode())
            done = shell.run(
                [sys.executable, "-I", str(messenger)],
                timeout=self._timeout,
                env=self._env,
                limit=ANSWER_BYTES,
                given=Path(f"/proc/self/fd/{handle}"),
            )
        except SeamError as error:
            raise SeamError(f"no answer within {self._timeout:g} seconds") from error
        finally:
            os.close(handle)
        try:
            answer = json.loads(done.stdout)
        except ValueError as error:
            raise SeamError(redacted(done.stderr[-500:], url) or "no reason given") from error
        if answer.get("ok"):
            return dict(answer)
        reason = redacted(str(answer.get("why") or "no reason given"), url)
        if answer.get("gone"):
            raise DeviceGone(reason)
        raise UnfitAddress(reason) if answer.get("final") else SeamError(reason)

"""What a worker answers to other machines: reads of its sessions and repositories, and few acts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import connections

from runs.core.ports import Lab, SeamError
from runs.remote import messages
from runs.remote.link import REST_SECONDS, Away, Link
from runs.remote.messages import Question

AT_ONCE = 6
LISTEN_SECONDS = 2
KEPT_SECONDS = 30

logger = logging.getLogger(__name__)


class Answers:
    """Answers questions to one host, each at most once."""

    def __init__(
        self,
        link: Link,
        lab: Callable[[], Lab],
        whole: Callable[[Lab], object] | None,
        moment: Callable[[], datetime],
    ) -> None:
        """`whole` makes what answers as `Elsewhere` for this host; `moment` is now, by the database."""
        self._link, self._lab, self._whole, self._moment = link, lab, whole, moment
        self._lock = threading.Lock()
        self._done: dict[str, datetime] = {}  # acts by their id, as long as they could come again
        self._free = threading.BoundedSemaphore(AT_ONCE)

    def run(self, is_over: Callable[[], bool]) -> None:
        """Until it is over. Whoever asks while all are busy waits on the list."""
        with ThreadPoolExecutor(AT_ONCE, "Answer") as pool:
            while not is_over():
                if not self._free.acquire(timeout=LISTEN_SECONDS):
                    continue
                text = self._next()
                if text is None:
                    self._free.release()
                else:
                    pool.submit(self._handle, text)

    def _next(self) -> bytes | None:
        asked = [self._link.key("asked", self._link.host)]
        try:
            found = self._link.ask(lambda: self._link.waiting.brpop(asked, timeout=LISTEN_SECONDS))
        except Away:
            time.sleep(REST_SECONDS)
            return None
        return None if found is None else bytes(found[1])

    def _handle(self, text: bytes) -> None:
        try:
            self.answer(text)
        except Away:  # whoever asked is told that an act may have happened
            logger.warning("an answer to another machine was lost")
        except Exception:
            logger.exception("a question of another machine was not answered")
        finally:
            self._free.release()
            connections.close_all()

    def answer(self, text: bytes) -> None:
        """Carry out one question, if it is meant for this host and still wanted, and answer it."""
        lab = self._lab()
        home = lab.paths.state
        try:
            question = messages.question(messages.opened(self._link.secret, text))
        except messages.Unreadable as error:
            logger.warning("a question was not understood", extra={"error": str(error)})
            return
        if question.host != lab.host or not self._is_ours(question):
            return
        told = self._told({**self._result(lab, question), "to": question.id}, home)
        key = self._link.key("answer", question.id)
        pipe = self._link.client.pipeline(transaction=True).lpush(key, told)
        pipe.expire(key, KEPT_SECONDS)
        self._link.ask(pipe.execute)

    def _is_ours(self, question: Question) -> bool:
        """Whether somebody still waits and nobody else has begun: whoever removes the claim may.

        Claims are Redis's, where others may write: that an act is done once is not left to them.
        """
        claim = self._link.key("claim", question.id)
        if not question.is_act:
            return bool(self._link.ask(lambda: self._link.client.delete(claim)))
        now = self._moment()
        with self._lock:
            may_come = now - messages.LONGEST_WAIT
            self._done = {one: at for one, at in self._done.items() if at >= may_come}
            if question.id in self._done or not question.is_timely(now):
                logger.warning("an act came late or again", extra={"asked": question.name})
                return False
            won = bool(self._link.ask(lambda: self._link.client.delete(claim)))
            if won:
                self._done[question.id] = now
            return won

    def _result(self, lab: Lab, question: Question) -> dict[str, Any]:
        """What there is to answer. What is not known here is said, so that nobody waits for it."""
        if not question.is_allowed or question.form > messages.FORM:
            version = lab.machine.version or "of another version"
            text = f"labsite {version} on host {lab.host} does not answer “{question.name}”"
            return {"error": text, "kind": "SeamError"}
        if question.part == "elsewhere":
            part = self._whole(lab) if self._whole else None
        else:
            part = getattr(lab, question.part)
        return _result(part, lab, question)

    def _told(self, result: Mapping[str, Any], home: Path) -> bytes:
        try:
            return messages.written(self._link.secret, result, home, messages.MOST_ANSWERED)
        except SeamError as error:
            told = {"error": str(error), "kind": "SeamError", "to": result.get("to")}
            return messages.written(self._link.secret, told, home, messages.MOST_ANSWERED)


def _result(part: object, lab: Lab, question: Question) -> dict[str, Any]:
    """What the call gave, or why it did not."""
    try:
        given = messages.meant({"args": question.args, "more": question.more}, lab.paths.state)
        asked = getattr(part, question.name)
        return {"value": asked(*given["args"], **given["more"])}
    except messages.Unreadable as error:
        return {"error": f"it was not asked rightly: {error}", "kind": "SeamError"}
    except SeamError as error:
        kind = type(error).__name__
        return {"error": str(error), "kind": kind if kind in messages.ERRORS else "SeamError"}
    except Exception as error:
        logger.exception("a question failed", extra={"asked": question.name})
        return {"error": f"it failed there: {type(error).__name__}", "kind": "SeamError"}

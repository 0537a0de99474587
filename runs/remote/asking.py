"""Sessions and repositories of another host, asked through its worker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from runs.core.ports import Lab, MaybeGiven, Repos, SeamError, Sessions
from runs.hosts import rules
from runs.remote import messages
from runs.remote.link import Away, Link
from runs.remote.messages import Question
from runs.remote.ports import Elsewhere
from runs.remote.records import FarRecords

SCREEN_SECONDS, GIT_SECONDS = 4.0, 12.0
GRACE_SECONDS = 5.0  # until then it can be told whether somebody has begun
# Their promise: None when it cannot be read.
NONE_WHERE_UNREAD = frozenset({"exit_of", "output"})
SILENT_SECONDS = 5.0
LIST_SECONDS, MOST_WAITING = 60, 500


class Others:
    """Every other host, as far as it answers."""

    def __init__(
        self,
        link: Link,
        home: Path,
        moment: Callable[[], datetime],
        patience: tuple[float, float] = (SCREEN_SECONDS, GIT_SECONDS),
        version_of: Callable[[str], str] = str,
    ) -> None:
        """`moment`: now, by the clock of the database, which all machines have in common.

        `patience`: seconds to wait for an answer of sessions, and of repositories. `version_of`: which
        labsite a host runs, as far as it told.
        """
        self._link, self._home, self._version_of = link, home, version_of
        self._moment = moment
        self._screens, self._git = patience
        self._silent: dict[str, float] = {}

    def at(self, lab: Lab, host: str) -> Lab:
        """A `Lab` whose sessions and repositories are another host's. What it asks may raise SeamError."""
        sessions = Far("sessions", lambda question: self._ask(host, question, self._screens))
        repos = Far("repos", lambda question: self._ask(host, question, self._git))
        whole = Far("elsewhere", lambda question: self._ask(host, question, self._whole(question)))
        return replace(
            lab,
            host=host,
            sessions=cast("Sessions", sessions),
            repos=cast("Repos", repos),
            records=FarRecords(whole),
            elsewhere=cast("Elsewhere", whole),
        )

    def _whole(self, question: Question) -> float:
        return self._git if question.is_act or question.name == "parked" else self._screens

    def _ask(self, host: str, question: Question, seconds: float) -> Any:
        """The host's answer. Raises SeamError, of an act that may have happened MaybeGiven."""
        if time.monotonic() < self._silent.get(host, 0.0):  # a page has several questions
            raise SeamError(f"host {host} did not answer a moment ago")
        question = self._addressed(question, host, seconds)
        self._check_version(question)
        text = messages.written(self._link.secret, question.values, self._home, messages.MOST_ASKED)
        try:
            if question.is_act:  # so that a failure further down means that it may have been sent
                self._link.ask(self._link.client.ping)
        except Away as error:
            raise _silent(host, error) from error
        try:
            found = self._link.ask(lambda: self._exchange(question, text, seconds))
        except Away as error:
            raise self._maybe(question, _silent(host, error)) from error
        if found is None:
            raise self._given_up(question, seconds)
        try:
            answer = self._answer_to(question, found)
        except messages.Unreadable as error:
            raise self._maybe(question, SeamError(f"host {host} answered, but {error}")) from error
        if "error" in answer:
            raise messages.ERRORS.get(answer["kind"], SeamError)(answer["error"])
        return answer["value"]

    def _addressed(self, question: Question, host: str, seconds: float) -> Question:
        """The question to a host; one that changes something also says until when it may."""
        if not question.is_act:
            return replace(question, host=host)
        until = self._moment() + timedelta(seconds=seconds + GRACE_SECONDS)
        return replace(question, host=host, until=until.isoformat())

    def _answer_to(self, question: Question, message: bytes) -> Mapping[str, Any]:
        """What a message says, if it is the answer to this question. Raises Unreadable."""
        answer = messages.read(self._link.secret, message, self._home)
        if answer.get("to") != question.id:
            raise messages.Unreadable("that does not answer this question")
        return answer

    def _check_version(self, question: Question) -> None:
        """Raises SeamError for what the worker there is too old for: it would leave it unanswered."""
        if not question.since:
            return
        version = self._version_of(question.host)
        if version and rules.numbers(version) < question.since:
            raise SeamError(
                f"host {question.host} runs an older labsite ({version}), which cannot be asked for "
                "this: bring it to the version of this machine"
            )

    def _exchange(self, question: Question, text: bytes, seconds: float) -> bytes | None:
        """Put a question on the host's list, and wait for the answer. None: nobody answered in time.

        Only as long as the claim is there is it carried out, by whoever takes that away first.
        """
        link, waiting = self._link, self._link.key("asked", question.host)
        pipe = link.client.pipeline(transaction=True)
        pipe.set(link.key("claim", question.id), 1, px=int((seconds + GRACE_SECONDS) * 1000))
        pipe.lpush(waiting, text)
        pipe.ltrim(waiting, 0, MOST_WAITING - 1)
        pipe.expire(waiting, LIST_SECONDS)
        pipe.execute()
        found = link.waiting.blpop([link.key("answer", question.id)], timeout=seconds)
        return None if found is None else cast("bytes", found[1])

    def _given_up(self, question: Question, seconds: float) -> SeamError:
        """Nobody answered: take the question back, which tells whether somebody began with it."""
        silent = SeamError(f"host {question.host} did not answer within {seconds:g} s")
        claim = self._link.key("claim", question.id)
        try:
            if self._link.ask(lambda: self._link.client.delete(claim)):
                self._silent[question.host] = time.monotonic() + SILENT_SECONDS
                return silent
        except Away:
            pass
        return self._maybe(question, silent)

    def _maybe(self, question: Question, error: SeamError) -> SeamError:
        return MaybeGiven(str(error)) if question.is_act else error


class Far:
    """One part of a host's `Lab`: what may be asked of it is, all else is refused."""

    def __init__(self, part: str, ask: Callable[[Question], Any]) -> None:
        self._part, self._ask = part, ask

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            question = Question(uuid.uuid4().hex, "", self._part, name, args, more)
            if not question.is_allowed:
                raise SeamError(f"“{name}” is done by the host's own worker only")
            try:
                return self._ask(question)
            except SeamError:
                if name in NONE_WHERE_UNREAD:
                    return None
                raise

        return call


def _silent(host: str, error: Away) -> SeamError:
    return SeamError(f"host {host} cannot be asked, since Redis does not answer: {error}")

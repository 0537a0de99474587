"""A house in memory in which a watch session lives: a clock, a queue, runs and validations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from runs.watch import rules as watching
from runs.watch.session import Do, Facts, Phase, Poll, Request, Terms, Validation

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MOST_STEPS = 200


class House:
    """Applies what `watching.step` asks for, as the product does, and writes down what happened.

    `queue` answers a ready query: keys, or None for a query that fails. `validates` says how the
    n-th validation ends; `slow` ones run until `validation_ends`.
    """

    def __init__(self, terms: Terms, slots: int = 3) -> None:
        self.session = watching.opened(terms)
        self.now = START
        self.slots = slots
        self.ready: list[str] = []
        self.blocked: int | None = 0
        self.is_tracker_down = False
        self.active: list[str] = []
        self.started: list[str] = []
        self.polls: list[int] = []
        self.notices: list[tuple[int, str]] = []
        self.validations: list[int] = []
        self.validates: Callable[[int], bool] = lambda number: True
        self.is_slow = False
        self.validation = Validation.NONE
        self.request = Request.NONE
        self.asked_at: datetime | None = None
        self.is_paused = False
        self.interrupted: list[str] = []
        self.killed: list[str] = []

    @property
    def seconds(self) -> int:
        return int((self.now - START).total_seconds())

    def ask(self, request: Request) -> House:
        """A person presses a button."""
        self.request, self.asked_at = request, self.now
        return self.tick()

    def wait(self, seconds: int, every: int = 1) -> House:
        """Let time pass, with a tick in each step."""
        for _ in range(0, seconds, every):
            self.now += timedelta(seconds=every)
            self.tick()
        return self

    def ends(self, *keys: str, is_success: bool = True) -> House:
        """These runs come to their end; then there is a tick."""
        for key in keys:
            self.active.remove(key)
            self.session = watching.counted(self.session, is_success=is_success)
        return self.tick()

    def stops(self, key: str) -> House:
        """A person stops a run, which counts as nothing."""
        self.active.remove(key)
        self.session = replace(self.session, stopped=self.session.stopped + 1)
        return self.tick()

    def validation_ends(self, passed: bool = True) -> House:
        """The slow validation comes to its end."""
        assert self.validation is Validation.RUNNING
        self.validation = Validation.PASSED if passed else Validation.FAILED
        return self.tick()

    def tick(self) -> House:
        """Step until it says wait."""
        poll: Poll | None = None
        for _ in range(MOST_STEPS):
            facts = Facts(
                self.now,
                active=len(self.active),
                poll=poll,
                validation=self.validation,
                request=self.request,
                asked_at=self.asked_at,
                is_paused=self.is_paused,
            )
            done = watching.step(self.session, facts)
            self.session, poll = done.session, None
            if self.validation in (Validation.PASSED, Validation.FAILED):
                self.validation = Validation.NONE
            if done.notice:
                self.notices.append((self.seconds, done.notice))
            if done.do is Do.POLL:
                poll = self._poll()
            elif done.do is Do.START:
                self._start(done.most)
                return self
            elif done.do is Do.VALIDATE:
                self._validate()
            elif done.do in (Do.CANCEL, Do.KILL):
                self._end_runs(done.do)
                return self
            else:
                return self
        raise AssertionError("the rule never says wait")

    def _poll(self) -> Poll:
        self.polls.append(self.seconds)
        if self.is_tracker_down:
            return Poll(None)
        taken = {*self.started}
        return Poll(len([key for key in self.ready if key not in taken]), self.blocked)

    def _start(self, most: int | None) -> None:
        free = [key for key in self.ready if key not in self.started]
        room = self.slots - len(self.active)
        chosen = free[: room if most is None else min(room, most)]
        self.active += chosen
        self.started += chosen

    def _validate(self) -> None:
        assert not self.active, "validated while runs were active"
        self.validations.append(self.seconds)
        if self.is_slow:
            self.validation = Validation.RUNNING
        else:
            passed = self.validates(len(self.validations))
            self.validation = Validation.PASSED if passed else Validation.FAILED

    def _end_runs(self, do: Do) -> None:
        (self.interrupted if do is Do.CANCEL else self.killed).extend(self.active)
        if do is Do.KILL:
            self.active.clear()
            self.validation = Validation.NONE

    @property
    def phase(self) -> Phase:
        return self.session.phase

    @property
    def end(self) -> tuple[int | None, str]:
        return self.session.code, self.session.ending.value if self.session.ending else ""

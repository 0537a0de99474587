"""`labctl turns`: the program of a loop's session, which runs one agent process after the other.

After each turn it reports how it ended and does what labsite answers. It keeps no state but what
lies in the loop's folder, so one that was killed goes on where it was: a turn that ended is
reported and not run again, and one in whose middle it was killed has failed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from labctl import turn_orders
from labctl.client import Client, Failed, NoAnswer
from labctl.session import client
from labctl.turn_files import LoopFolder, Result
from labctl.turn_orders import End, Restart, Step, Turn, Unusable, Wait
from labctl.turn_output import FLUSH_SECONDS, Screen
from labctl.turn_process import (
    ENDS,
    Ears,
    Interrupted,
    adopt_orphans,
    end_left_over,
    mark_of,
    run_turn,
)

USAGE = "usage: labctl turns [--pace FACTOR]   (started by labsite in the session of a loop)"
ADDRESS = "/agent/loop/step"
FAILED, WRONG, INTERRUPTED = 1, 2, 130
ENDED = frozenset({"ended", "unauthorized", "unknown_token", "no_token"})
ENDED_STATUSES = (401, 403, 404, 409)
AWAY = "labsite does not answer; the next turn waits for it."
HELD = "Another program runs this loop already; this one leaves it alone."
BACK = "labsite answers again."
KILLED = "the program that ran the turn was killed in the middle of it"

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things take, in seconds; tests make what is waited for in any case shorter by a factor."""

    look: float = 0.2
    first_delay: float = 0.2
    longest_delay: float = 5.0
    grace: float = 2.0
    last_report: float = 2.0

    def times(self, factor: float) -> Pace:
        """The same, quicker or slower."""
        return Pace(
            self.look * factor,
            self.first_delay * factor,
            self.longest_delay * factor,
            self.grace * factor,
            self.last_report,  # a labsite that answers is not waited for longer than it takes
        )


def run(arguments: Sequence[str]) -> int:
    """Run turns until the loop has ended; its exit code. 130: ended by a signal."""
    try:
        pace = _pace(arguments)
    except ValueError:
        print(USAGE, file=sys.stderr)
        return WRONG
    ears, screen = Ears(), Screen()
    adopt_orphans()
    try:
        code = _run(ears, screen, pace)
    except Failed as error:
        screen.say(str(error))
        code = FAILED
    except OSError as error:
        screen.say(f"The loop ends, since its folder cannot be used: {error}.")
        code = FAILED
    screen.flush(FLUSH_SECONDS)
    return code


def _run(ears: Ears, screen: Screen, pace: Pace) -> int:
    api, folder = client(os.environ), LoopFolder(os.environ["LAB_RUN_FOLDER"])
    try:
        folder.hold()
    except BlockingIOError:
        screen.say(HELD)
        return FAILED
    runner = Runner(api, folder, ears, screen, pace)
    try:
        return runner.run()
    except Interrupted:
        return runner.end_interrupted()


class Runner:
    """One loop run from here to its end, or to a restart."""

    def __init__(
        self, api: Client, folder: LoopFolder, ears: Ears, screen: Screen, pace: Pace
    ) -> None:
        self._api, self._folder, self._ears = api, folder, ears
        self._screen, self._pace = screen, pace
        self._number = 0
        self._result: Mapping[str, Any] | None = None
        self._woken_at = 0
        self._said = ""

    def run(self) -> int:
        """Ask and do, turn after turn. Raises Interrupted, Failed when the run has ended, OSError."""
        self._recover()
        self._number, self._result = self._folder.newest()
        while True:
            step = self._ask()
            if isinstance(step, End):
                self._screen.say(step.reason or f"The loop has ended with {step.code}.")
                return step.code
            if isinstance(step, Restart):
                self._restart(step.generation)
            if isinstance(step, Wait):
                self._wait(max(step.seconds, self._pace.look), f"Waiting: {step.why}")
            else:
                self._turn(step)

    def end_interrupted(self) -> int:
        """Tell labsite, once and within a moment."""
        try:
            with self._ears.within(self._pace.last_report):
                report = {**self._report(), "asks": "interrupted"}
                self._api.ask("POST", ADDRESS, report, self._pace.last_report)
        except (Interrupted, Failed):
            pass
        self._screen.say("The loop was interrupted.")
        return INTERRUPTED

    def _recover(self) -> None:
        """End what a runner that was killed left running, and store its turn as failed."""
        running = self._folder.running()
        generation, number = running.get("generation"), running.get("number")
        if type(generation) is not int or type(number) is not int:
            return
        if self._folder.result(generation, number) is not None:
            return
        path = os.path.join(self._folder.path, f"{generation}-{number}")  # noqa: PTH118
        pid, its_start = running.get("pid"), running.get("started")
        pid = pid if type(pid) is int else 0
        end_left_over(mark_of(path), pid, str(its_start or ""), self._pace.grace)
        began = running.get("started_at")
        began = float(began) if isinstance(began, (int, float)) else 0.0
        size, last = self._folder.output_of(generation, number)
        seconds = round(max(0.0, last - began), 3) if last and began else 0.0
        result = Result(trouble=KILLED, started_at=began, seconds=seconds, output_bytes=size)
        self._folder.record(generation, number, result)
        self._screen.say(f"Turn {number} has failed: {KILLED}.")

    def _report(self) -> dict[str, Any]:
        generation = self._folder.state.generation
        return {"number": self._number, "generation": generation, "result": self._result}

    def _ask(self) -> Step:
        """The next step, however long labsite is away. Raises Failed when the run has ended."""
        delay, is_away = self._pace.first_delay, False
        while True:
            self._woken_at = self._folder.woken_at()
            report, asks = self._report(), self._patiently(self._folder.take_asks, "signal files")
            try:
                step = self._answer(report | ({"asks": asks} if asks else {}))
                break
            except Failed as error:
                self._say_once(_trouble(error))
            except Unusable as error:
                self._say_once(f"labsite's answer is not understood ({error}); asking again.")
            is_away = True
            self._sleep(delay)
            delay = min(2 * delay, self._pace.longest_delay)
        if is_away:
            self._say_once(BACK)
        if self._result is not None:
            self._folder.shorten_old()
        if asks and not isinstance(step, Restart):  # a new generation has nothing to tell
            self._patiently(self._folder.told, "what was asked for")
        return step

    def _answer(self, report: Mapping[str, Any]) -> Step:
        """One attempt. Raises Failed, Unusable, Interrupted."""
        with self._ears.breakable():
            step = turn_orders.read(self._api.ask("POST", ADDRESS, report))
        generation = self._folder.state.generation
        if isinstance(step, Restart) and step.generation <= generation:
            raise Unusable(f"generation {step.generation} has begun before")
        is_same = isinstance(step, Turn) and (step.generation, step.number) == (
            generation,
            self._number,
        )
        if is_same and self._result is not None:
            raise Unusable(f"turn {self._number} has ended before")
        return step

    def _restart(self, generation: int) -> NoReturn:
        """Become a new process with the same arguments and new state. Raises OSError, Interrupted."""
        self._patiently(lambda: self._folder.enter(generation), "the new state")
        self._screen.say("The loop begins again.")
        self._screen.flush(FLUSH_SECONDS)
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
        if self._ears.asked:
            raise Interrupted
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606

    def _turn(self, order: Turn) -> None:
        """Run a turn and keep its result, unless it has one or somebody wakes us before it begins."""
        self._patiently(
            lambda: self._folder.enter(order.generation, order.notes, order.notes_number),
            "the new state",
        )
        known = self._folder.result(order.generation, order.number)
        if known is None:
            why = f": {order.why}" if order.why else "."
            begins = f"The next turn begins in {order.wait_seconds:g} s{why}"
            if order.wait_seconds and self._wait(order.wait_seconds, begins):
                return
            known = self._run_turn(order)
        self._number, self._result = order.number, known
        if self._ears.asked:
            raise Interrupted

    def _run_turn(self, order: Turn) -> Mapping[str, Any]:
        self._said = ""
        role = f" ({order.role})" if order.role else ""
        self._screen.say(f"Turn {order.number}{role} begins.")
        result = self._patiently(
            lambda: run_turn(order, self._folder, self._ears, self._screen, self._pace.grace),
            "the folder of the turn",
        )
        self._screen.say(f"Turn {order.number} {how(result)}.")
        return self._patiently(
            lambda: self._folder.record(order.generation, order.number, result), "the result"
        )

    def _wait(self, seconds: float, sentence: str) -> bool:
        """Wait for that long, or until somebody wakes us or asks for something by a file: True."""
        self._say_once(sentence)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._sleep(min(left, self._pace.look))
            if self._folder.woken_at() != self._woken_at or self._folder.is_asked():
                return True
        return False

    def _sleep(self, seconds: float) -> None:
        """Raises Interrupted when a signal has come."""
        until = time.monotonic() + seconds
        while not self._ears.asked and (left := until - time.monotonic()) > 0:
            shows = [self._screen.handle] if self._screen.handle is not None else []
            self._ears.wait(left, writes=shows)
            self._screen.flush()
        if self._ears.asked:
            raise Interrupted

    def _patiently(self, act: Callable[[], Made], what: str) -> Made:
        """Do it, again and again while the disk refuses; a loop is not lost to a full disk."""
        delay = self._pace.first_delay
        while True:
            try:
                return act()
            except OSError as error:
                self._say_once(f"{what} cannot be stored ({error.strerror}); trying again.")
            self._sleep(delay)
            delay = min(2 * delay, self._pace.longest_delay)

    def _say_once(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            self._screen.say(sentence)


def how(result: Result) -> str:
    """How a turn ended, as a sentence has it."""
    if result.is_interrupted:
        return f"was interrupted after {result.seconds:.1f} s"
    if result.trouble:
        return f"has failed: {result.trouble}"
    if result.signal is not None:
        return f"was ended by signal {result.signal} after {result.seconds:.1f} s"
    if result.exit_code:
        return f"has failed with exit status {result.exit_code} after {result.seconds:.1f} s"
    return f"ended after {result.seconds:.1f} s"


def _trouble(error: Failed) -> str:
    """What an answer that cannot be used means. Raises the error when the run has ended."""
    if isinstance(error, NoAnswer) or error.status >= 500:
        return AWAY
    if error.status in ENDED_STATUSES and error.code in ENDED:
        raise error
    return f"labsite refused the report ({error}); asking again."


def _pace(arguments: Sequence[str]) -> Pace:
    """Raises ValueError for wrong arguments."""
    if not arguments:
        return Pace()
    name, factor = arguments
    if name != "--pace" or not 0 < float(factor) <= 100:
        raise ValueError(name)
    return Pace().times(float(factor))

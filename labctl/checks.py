"""`labctl check`: labsite runs the project's commands in this worktree; they are followed here."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping

from labctl import show
from labctl.client import Client, Failed
from labctl.session import as_json, client

TYPE_CHECKING = False  # importing `typing` takes as long as Python itself
if TYPE_CHECKING:
    from typing import Any

PASSED, FAILED, WRONG_NAMES, NOT_RUN = 0, 1, 2, 3
FIRST_SECONDS, LONGEST_SECONDS = 0.1, 1.0
PATIENT_SECONDS = 5.0
# A piece of the output that is smaller was the last there is by now.
WHOLE_PIECE = 150_000


def add(things: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command and its arguments."""
    check = things.add_parser(
        "check",
        help="have labsite run the project's commands in this worktree",
        description="Have labsite run the project's commands in this worktree and show what they print. "
        "What ran, how it ended and on which files is kept as proof.",
        epilog="Exit status: 0 all passed, 1 one failed, 2 wrong names, 3 could not be run. "
        "Interrupted, it goes on; run it again to follow it.",
        allow_abbrev=False,
    )
    check.set_defaults(status=check_run)
    check.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    check.add_argument("--json", action="store_true", help="print the results as JSON at the end")
    check.add_argument("--stop", action="store_true", help="call off what is being run")


def check_run(options: argparse.Namespace, env: Mapping[str, str]) -> int:
    """Run, follow, and say how it went by the exit status."""
    try:
        return _check(client(env), options)
    except Failed as error:
        print(f"labctl: {show.plain(error)}", file=sys.stderr)
        return WRONG_NAMES if error.code == "unknown_command" else NOT_RUN
    except KeyboardInterrupt:
        print("labctl: it goes on; labctl check follows it again.", file=sys.stderr)
        return NOT_RUN


def _check(api: Client, options: argparse.Namespace) -> int:
    if options.stop:
        was_running = api.call("POST", "/agent/checks/stop").get("was_running")
        print("Called off." if was_running else "Nothing was running.")
        return PASSED
    names = [os.fsencode(name).decode("utf-8", "replace") for name in options.names]
    row = api.call("POST", "/agent/checks", {"names": names})
    tell = _nothing if options.json else _out
    row = _Follower(api, row, tell, time.sleep).until_over()
    if options.json:
        print(as_json(row))
    elif not row["trouble"]:
        print(_summary(row))
    if row["trouble"]:
        raise Failed(f"The commands could not be run: {row['trouble']}.")
    return FAILED if any(one["is_failure"] for one in row["results"]) else PASSED


class _Follower:
    """Prints what the commands of a check print, as it comes."""

    def __init__(
        self,
        api: Client,
        row: dict[str, Any],
        tell: Callable[[str], None],
        sleep: Callable[[float], None],
    ) -> None:
        self._api, self._row, self._tell, self._sleep = api, row, tell, sleep
        self._number = 0  # of the command that is shown
        self._start = -1  # where in its output; -1: its headline was not shown
        self._is_line_open = False
        self._waited = 0.0

    def until_over(self) -> dict[str, Any]:
        """Follow it to its end; how it ended."""
        delay = FIRST_SECONDS
        address = f"/agent/checks/{self._row['id']}"
        while True:
            has_news = self._show()
            if not self._row["is_running"]:
                return self._row
            delay = FIRST_SECONDS if has_news else min(delay * 1.5, LONGEST_SECONDS)
            self._wait(delay)
            self._row = self._api.call("GET", address)

    def _show(self) -> bool:
        """Show what is new; whether anything was."""
        has_news = False
        results = self._row["results"]
        if len(results) < self._number:  # begun again, by another worker
            self._number, self._start = 0, -1
            self._tell("\nlabsite was restarted; the commands are run again.\n")
        while self._number < len(results):
            one = results[self._number]
            if self._start < 0:
                self._tell(f"\n== {show.line(one['command'])}: {show.line(one['argv'])}\n")
                self._start = 0
            has_news = self._more() or has_news
            if one["is_running"]:
                break
            self._tell(f"{self._newline()}== {_how(one)}\n")
            self._number, self._start = self._number + 1, -1
        return has_news

    def _more(self) -> bool:
        """All that the command has printed since."""
        has_more = False
        while True:
            address = f"/agent/checks/{self._row['id']}/{self._number}/{self._start}"
            piece = self._api.call("GET", address)
            text, is_new = show.plain(piece["text"]), piece["next"] > self._start
            if text:
                self._tell(text)
                self._is_line_open = not text.endswith("\n")
            has_more = has_more or is_new
            is_whole = piece["next"] - self._start < WHOLE_PIECE
            self._start = max(self._start, piece["next"])
            if is_whole:
                return has_more

    def _newline(self) -> str:
        was_open, self._is_line_open = self._is_line_open, False
        return "\n" if was_open else ""

    def _wait(self, seconds: float) -> None:
        self._sleep(seconds)
        before, self._waited = self._waited, self._waited + seconds
        if before < PATIENT_SECONDS <= self._waited and not self._row["has_begun"]:
            print("labctl: labsite begins as soon as a worker is free.", file=sys.stderr)


def _summary(row: Mapping[str, Any]) -> str:
    lines = [f"  {show.line(one['command'])}: {_how(one)}" for one in row["results"]]
    return "\n".join(["", *lines])


def _how(one: Mapping[str, Any]) -> str:
    """How a command ended."""
    is_red = one["status"] != 0 or one.get("no_tests")
    allowed = " (allowed to fail)" if one["allow_fail"] and is_red else ""
    if one["skipped"]:
        return f"not run: {show.line(one['skipped'])}"
    if one["trouble"]:
        return f"could not be started: {show.line(one['trouble'])}{allowed}"
    if one["is_over_time"]:
        return f"ended after {one['seconds']:.0f} s, which is its limit{allowed}"
    if one["signal"]:
        return f"ended by signal {one['signal']}{allowed}"
    if one.get("no_tests"):
        return f"{show.line(one['no_tests'])}, so it counts as failed{allowed}"
    word = "passed" if one["status"] == 0 else f"failed with exit status {one['status']}"
    return f"{word} after {one['seconds']:.1f} s{allowed}"


def _out(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _nothing(text: str) -> None:
    pass

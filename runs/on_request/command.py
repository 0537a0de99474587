"""`./lab validate PROJECT`: runs the commands of a project's checks on a commit, by hand.

What is typed and what is printed. Needs no running product, and writes no row. Imports no Django,
so that arguments are checked before anything is read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from runs.core.refusal import ActRefused
from runs.core.terminal import Printer
from runs.on_request import switch_options
from runs.on_request.wish import Lines, Subject, Wish
from runs.validation.command_rules import shown
from runs.validation.specs import Scope

TAIL_LINES = 40
HAS_REVIEW = "Reviewers are asked of what an agent delivers, not here."


@dataclass(frozen=True, slots=True)
class Command:
    """What was typed."""

    wish: Wish
    lines: Lines

    def carry_out(self, goes_on: Callable[[], bool]) -> int:
        """Run it to its end; the exit code. Raises ActRefused, SeamError."""
        from runs.on_request import by_hand
        from runs.wiring import lab

        return by_hand.carry_out(lab(), self.wish, self.lines, goes_on)


def read(argv: Sequence[str]) -> Command:
    """What was typed. Raises ActRefused."""
    given = _parser().parse_args(argv)
    commit, issue = (given.commit or "").strip(), (given.issue or "").strip().removeprefix("#")
    for name, text in (("commit", given.commit), ("issue", given.issue)):
        if text is not None and (not text.strip() or text.strip().startswith("-")):
            raise ActRefused(f"Error: --{name} {text!r} names none.")
    if given.run_level and issue:
        raise ActRefused("Error: --issue and --run-level exclude each other.")
    scope = Scope.RUN_LEVEL if given.run_level else Scope.PER_ISSUE
    lines: Lines = (JsonLines if given.json else HumanLines)(sys.stdout)
    wish = Wish(given.project, issue, commit, scope, switch_options.read(given))
    return Command(wish, lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./lab validate",
        description="Run the commands of a project's checks on a commit, in a clean worktree. "
        f"No product has to run. {HAS_REVIEW}",
        epilog="Exit codes: 0 passed, 1 failed, 2 wrong arguments, 3 could not be run, 130 interrupted: "
        "Ctrl-C ends what it started.",
        allow_abbrev=False,
    )
    parser.add_argument("project", help="the project's name")
    parser.add_argument("--issue", metavar="KEY", help="the branch of this issue")
    parser.add_argument(
        "--commit", metavar="REV", help="this commit; by default the default branch of origin"
    )
    parser.add_argument(
        "--run-level", action="store_true", help="what is run for a whole session, not for an issue"
    )
    switch_options.add(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    return parser


@dataclass(slots=True)
class HumanLines:
    """For a terminal or a log."""

    out: IO[str]
    _printer: Printer = field(init=False)

    def __post_init__(self) -> None:
        self._printer = Printer(self.out)

    def begun(self, subject: Subject) -> None:
        if subject.warning:
            self._printer.line(f"Warning: {subject.warning}")
        what = f"{subject.project} at {subject.commit[:12]} ({subject.name}), {subject.scope.words}"
        self._printer.line(f"Validating {what}.")

    def command(self, result: Mapping[str, Any]) -> None:
        """Its name as it begins; how it ended, and the end of its output if it failed."""
        if result["is_running"]:
            self._printer.line(f"\n{result['command']}: {shown(result['argv'])}")
            return
        if result["skipped"]:
            self._printer.line(f"\n{result['command']}: not run, {result['skipped']}")
            return
        is_good = result["status"] == 0
        if not is_good:
            for line in str(result["tail"]).rstrip().splitlines()[-TAIL_LINES:]:
                self._printer.line(f"    {line}")
        allowed = "" if is_good or not result["allow_fail"] else " (allowed to fail)"
        self._printer.line(f"  {_how(result)}{allowed}")

    def ended(self, result: Mapping[str, Any], code: int) -> None:
        self._printer.line("")
        coverage = result["coverage_result"]
        if coverage:
            self._printer.line(f"coverage   {_coverage(coverage)}")
        if result["e2e_result"]:
            self._printer.line(f"end to end {_e2e(result['e2e_result'])}")
        self._printer.line(f"output     {result['artifacts']['log_dir']}")
        if result["artifacts"]["worktree_state"] == "kept":
            self._printer.line(f"worktree   {result['artifacts']['worktree_path']}")
        for why in result["failures"]:
            self._printer.line(f"failed     {why}")
        self._printer.line(
            f"{'Failed' if code else 'Passed'} after {result['duration_seconds']:.1f} s."
        )

    def skipped(self, why: str) -> None:
        self._printer.line(why)


@dataclass(slots=True)
class JsonLines:
    """One object a line; `event` says what it is. The last one has the fields of an export."""

    out: IO[str]
    _printer: Printer = field(init=False)

    def __post_init__(self) -> None:
        self._printer = Printer(self.out)

    def begun(self, subject: Subject) -> None:
        self._write(
            "began",
            project=subject.project,
            commit_hash=subject.commit,
            name=subject.name,
            scope=subject.scope.value,
            log_dir=subject.folder,
            warning=subject.warning,
        )

    def command(self, result: Mapping[str, Any]) -> None:
        self._write("command", **result)

    def ended(self, result: Mapping[str, Any], code: int) -> None:
        self._write("ended", **result, code=code)

    def skipped(self, why: str) -> None:
        self._write("skipped", reason=why, code=0)

    def _write(self, event: str, **values: Any) -> None:
        self._printer.line(json.dumps({"event": event, **values}, ensure_ascii=False))


def _how(result: Mapping[str, Any]) -> str:
    if result["trouble"]:
        return f"could not be started: {result['trouble']}"
    if result["is_over_time"]:
        return f"ended after {result['seconds']:.0f} s, its time limit"
    if result["signal"] is not None:
        return f"ended by signal {result['signal']}"
    word = "passed" if result["status"] == 0 else f"failed with exit status {result['status']}"
    return f"{word} after {result['seconds']:.1f} s"


def _coverage(found: Mapping[str, Any]) -> str:
    if found.get("percent") is None:
        return str(found.get("reason") or "could not be told")
    word = "reached" if found["passed"] else "missed"
    return f"{found['percent']:.2f} %, {found['needed']:g} % are needed: {word}"


def _e2e(found: Mapping[str, Any]) -> str:
    return "passed" if found["passed"] else f"failed: {found['failure_reason']}"

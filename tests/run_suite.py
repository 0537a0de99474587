"""`python -m tests.run_suite`: the quick or the long suite, and once more alone what failed.

Runs pytest once for each database, then each failed test again by itself after all others have ended.
What passes then is unstable: printed, and accepted up to MOST_UNSTABLE.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests import suites

TESTS = Path(__file__).resolve().parent
MOST_UNSTABLE = 5
# With more failures than this something is broken, and trying each again would only take time.
MOST_TRIED_AGAIN = 40
SLOWEST = 20
AGAIN_LIMIT = 180  # seconds for a test that is tried again, which also prepares what others share


@dataclass(frozen=True)
class Stage:
    """One run of pytest: `module` is what runs it, `arguments` choose its tests.

    Tests of a stage that `is_alone` run one after the other, in one process.
    """

    name: str
    module: str
    arguments: tuple[str, ...]
    is_alone: bool = False


@dataclass
class TestResult:
    """How one test of one stage ended."""

    __test__ = False

    stage: Stage
    name: str
    seconds: float = 0.0
    outcome: str = "passed"
    reason: str = ""

    def add_phase(self, outcome: str, seconds: float, reason: str) -> None:
        """Count set-up, call or tear-down in; a failed phase stays, a skipped one is the result."""
        self.seconds += seconds
        if outcome == "failed" and self.outcome != "failed":
            self.outcome, self.reason = outcome, reason
        elif outcome == "skipped" and self.outcome == "passed":
            self.outcome = outcome


@dataclass
class SuiteRun:
    """What the stages of a suite have shown so far."""

    results: list[TestResult] = field(default_factory=list)
    # Stages that pytest could not carry out, with its exit code.
    broken: list[tuple[Stage, int]] = field(default_factory=list)
    minutes: dict[str, float] = field(default_factory=dict)
    unstable: list[TestResult] = field(default_factory=list)

    @property
    def failed(self) -> list[TestResult]:
        """Return what failed and is not known to be unstable."""
        stable = [result for result in self.results if result.outcome == "failed"]
        return [result for result in stable if result not in self.unstable]

    @property
    def is_green(self) -> bool:
        """Return whether a change may be accepted after this run."""
        is_run = any(result.outcome == "passed" for result in self.results)
        few = len(self.unstable) <= MOST_UNSTABLE
        return is_run and few and not self.failed and not self.broken


def list_stages(options: argparse.Namespace) -> list[Stage]:
    """Return what a suite consists of, in the order in which it runs."""
    if not options.long:
        # Only files with such a mark: importing all others would take longer than these tests.
        marked = ("--suite=quick", "-m", "postgres", *find_marked_files("postgres"))
        return [
            Stage("SQLite", "pytest", ("--suite=quick",)),
            Stage("PostgreSQL", "tests.postgres", marked),
        ]
    some = [f"--part={options.part}"] if options.part else []
    some += ["--touched"] if options.touched else []
    everything = ("--database-bound", f"--timeout={suites.LONG_LIMIT}", *some)
    alone = ("--suite=long", "-m", "alone", *some, *find_marked_files("alone"))
    return [
        Stage("SQLite", "pytest", ("--suite=long", "-m", "not alone", *some)),
        Stage("alone", "pytest", alone, is_alone=True),
        Stage("PostgreSQL", "tests.postgres", everything),
    ]


def find_marked_files(mark: str) -> list[str]:
    """Return the files of tests in which that mark is given to some."""
    files = sorted(TESTS.rglob("test_*.py"))
    return [str(file) for file in files if f"pytest.mark.{mark}" in file.read_text()]


def count_processes(options: argparse.Namespace) -> int:
    """Return how many processes keep all cores busy.

    Tests of the long suite mostly wait for programs that they started. Those of the quick one compute,
    and each process more would collect all tests once more.
    """
    return int(options.cores) + (3 if options.long else 1)


def run_stage(stage: Stage, run: SuiteRun, processes: int) -> None:
    """Run one stage in `processes` processes and add its results to the run."""
    began = time.monotonic()
    # A file shares its server and its browser, so each process takes whole files, in the order that
    # tests/order.py gives them.
    spread = ("-n", str(processes), "--dist", "loadfile", "--no-loadscope-reorder")
    if stage.is_alone:
        spread = ("-n", "0")
    code, results = _run_pytest(stage, (*spread, *stage.arguments))
    run.results += results
    # 0 passed, 1 failed, 5 no test was left to run, such as in a part without any.
    if code not in (0, 1, 5):
        run.broken.append((stage, code))
    run.minutes[stage.name] = (time.monotonic() - began) / 60


def try_again(run: SuiteRun) -> None:
    """Run each failed test once more, one after the other; what passes now is unstable."""
    failed = run.failed
    if not failed or len(failed) > MOST_TRIED_AGAIN:
        return
    began = time.monotonic()
    for stage in {result.stage for result in failed}:
        mine = [result for result in failed if result.stage == stage]
        names = [result.name for result in mine]
        _, results = _run_pytest(stage, ("-n", "0", "--timeout", str(AGAIN_LIMIT), *names))
        passed = {result.name for result in results if result.outcome == "passed"}
        run.unstable += [result for result in mine if result.name in passed]
    run.minutes["again"] = (time.monotonic() - began) / 60


def _run_pytest(stage: Stage, arguments: Sequence[str]) -> tuple[int, list[TestResult]]:
    with tempfile.TemporaryDirectory(prefix="lab-suite-") as folder:
        outcomes = Path(folder) / "outcomes"
        argv = [sys.executable, "-m", stage.module, f"--outcomes={outcomes}", *arguments]
        code = subprocess.run(argv, check=False).returncode
        return code, read_outcomes(stage, outcomes.read_text() if outcomes.exists() else "")


def read_outcomes(stage: Stage, text: str) -> list[TestResult]:
    """Return the results that the lines of `suite_plugin.OutcomeWriter` tell, one per test."""
    results: dict[str, TestResult] = {}
    for line in text.splitlines():
        name, _phase, outcome, seconds, reason = json.loads(line)
        result = results.setdefault(name, TestResult(stage, name))
        result.add_phase(outcome, seconds, reason)
    return [*results.values()]


def report(run: SuiteRun, name: str) -> list[str]:
    """Return the lines that end a run: slowest tests, unstable and failed ones, minutes, the count."""
    slowest = sorted(run.results, key=lambda result: -result.seconds)[:SLOWEST]
    count = {
        outcome: sum(result.outcome == outcome for result in run.results)
        for outcome in ("passed", "failed", "skipped")
    }
    failed, unstable = run.failed, run.unstable
    passed = count["passed"] + len(unstable)
    minutes = ", ".join(f"{stage} {time:.1f}" for stage, time in run.minutes.items())
    return [
        "",
        f"== The {SLOWEST} slowest tests of the {name} suite",
        *(f"{result.seconds:8.1f} s  {_called(result)}" for result in slowest),
        *_list_results(f"Unstable, passed when run alone (at most {MOST_UNSTABLE})", unstable),
        *_list_results("Failed", failed),
        *_list_commands(failed),
        *(f"== {stage.name}: pytest ended with {code}, see above" for stage, code in run.broken),
        f"== {name} suite, minutes: {sum(run.minutes.values()):.1f} ({minutes}), "
        f"{len(unstable)} unstable",
        f"{passed} passed, {len(failed)} failed, {count['skipped']} skipped",
    ]


def _list_results(title: str, results: Sequence[TestResult]) -> Iterable[str]:
    if results:
        yield f"== {title}"
    for result in results:
        yield f"{_called(result)}"
        yield f"    {' '.join(result.reason.split())[:200]}"


def _list_commands(failed: Sequence[TestResult]) -> Iterable[str]:
    """Say how to run what failed once more."""
    for stage in {result.stage for result in failed}:
        names = " ".join(f"'{result.name}'" for result in failed if result.stage == stage)
        where = "" if stage.module == "pytest" else "--postgres "
        yield f"== Run again: ./lab test {where}-n 0 {names}"


def _called(result: TestResult) -> str:
    return f"{result.name}" + ("" if result.stage.module == "pytest" else " on PostgreSQL")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the options of a run; ends the program with 2 on a wrong one."""
    parser = argparse.ArgumentParser(prog="./lab test", allow_abbrev=False)
    parser.add_argument("--long", action="store_true", help="the long suite in place of the quick")
    parser.add_argument("--part", metavar="K/N", help="only this part of the long suite")
    parser.add_argument("--touched", action="store_true", help="only rooms that differ from main")
    parser.add_argument("--cores", type=int, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if (options.part or options.touched) and not options.long:
        parser.error("--part and --touched go with --long")
    try:
        suites.parse_part(options.part or "1/1")
    except ValueError as error:
        parser.error(str(error))
    return options


def main(argv: Sequence[str]) -> int:
    """Run a suite and print how it went.

    Returns:
        0 when a change may be accepted, 1 when something failed, 2 on a wrong option.
    """
    options = parse(argv)
    run = SuiteRun()
    for stage in list_stages(options):
        run_stage(stage, run, count_processes(options))
    try_again(run)
    print("\n".join(report(run, suites.LONG if options.long else suites.QUICK)), flush=True)
    return 0 if run.is_green else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

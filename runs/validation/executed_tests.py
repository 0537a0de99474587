"""Counts the tests that a command executed, by the summary lines of the usual test runners. Pure.

Many runners exit with 0 when a filter matched nothing, when a package holds no test, or when all of
them were skipped. Such a command has passed without proving anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MOST_BYTES = 1_000_000  # of the end of an output that is searched

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


@dataclass(frozen=True, slots=True)
class ExecutedTests:
    """How many tests ran, and how many were there and skipped."""

    executed: int
    skipped: int = 0

    def __add__(self, other: ExecutedTests) -> ExecutedTests:
        return ExecutedTests(self.executed + other.executed, self.skipped + other.skipped)


_Match = re.Match[str]
NONE = ExecutedTests(0)
SOME = ExecutedTests(1)


def _named(match: _Match) -> ExecutedTests:
    """Read the groups `executed`, or `total` of which `skipped` were not executed."""
    groups = match.groupdict()
    skipped = int(groups.get("skipped") or 0)
    if groups.get("executed") is not None:
        return ExecutedTests(int(groups["executed"]), skipped)
    return ExecutedTests(max(0, int(groups["total"]) - skipped), skipped)


def _pytest(match: _Match) -> ExecutedTests:
    counts = {word: int(number) for number, word in _PYTEST_COUNT.findall(match[0])}
    executed = sum(counts.get(word, 0) for word in _PYTEST_EXECUTED)
    return ExecutedTests(executed, counts.get("skipped", 0))


def _cargo(match: _Match) -> ExecutedTests:
    passed, failed, ignored, measured = map(int, match.groups())
    return ExecutedTests(passed + failed + measured, ignored)


def _jest(match: _Match) -> ExecutedTests:
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", match[0])}
    return ExecutedTests(
        counts.get("passed", 0) + counts.get("failed", 0), counts.get("skipped", 0)
    )


_PYTEST_COUNT = re.compile(r"(\d{1,9}) (passed|failed|errors?|xfailed|xpassed|skipped)\b")
_PYTEST_EXECUTED = ("passed", "failed", "error", "errors", "xfailed", "xpassed")
_N = r"(\d{1,9})"
_TOTAL, _SKIPPED, _EXECUTED = (
    rf"(?P<{name}>\d{{1,9}})" for name in ("total", "skipped", "executed")
)

# What each runner prints once per run, package or file, and how it is read. No line is read by two.
_SUMMARIES: tuple[tuple[str, Callable[[_Match], ExecutedTests]], ...] = (
    # pytest: "=== 2 passed, 1 skipped in 0.12s ===", with -q without the marks.
    (r"(?:=+ )?no tests ran in [\d.]+s.*", lambda _: NONE),
    (r"(?:=+ )?\d{1,9} [a-z]+(?:, \d{1,9} [a-z]+){0,8} in [\d.]+s.*", _pytest),
    # unittest and Django: "Ran 3 tests in 0.002s", and two lines later "OK (skipped=3)".
    (rf"Ran {_TOTAL} tests? in [\d.]+s(?:\s+OK \(skipped={_SKIPPED}[^)\n]*\))?", _named),
    # go test
    (r"\?\s+\S+\s+\[no test files\]", lambda _: NONE),
    (r"ok\s+\S+\s+\S+.*\[no tests to run\]", lambda _: NONE),
    (
        r"(?:ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\))(?!.*\[no tests to run\]).*",
        lambda _: SOME,
    ),
    # cargo test, cargo nextest
    (rf"test result: \w+\. {_N} passed; {_N} failed; {_N} ignored; {_N} measured;.*", _cargo),
    (rf" *Summary \[.*\] {_EXECUTED} tests? run:.*", _named),
    # jest, vitest, mocha, node --test
    (r"No tests? (?:files? )?found, exiting with code 0.*", lambda _: NONE),
    (r" *Tests:? +\d{1,9} \w+.*", _jest),
    (rf" *{_EXECUTED} passing \(.*", _named),
    (
        rf"(?:#|ℹ) tests {_TOTAL}(?:\n(?:#|ℹ) \w+ \d+){{0,4}}\n(?:#|ℹ) skipped {_SKIPPED}",
        _named,
    ),
    # Maven Surefire, Gradle
    (rf".*Tests run: {_TOTAL}, Failures: \d+, Errors: \d+, Skipped: {_SKIPPED}.*", _named),
    (r"(?:> )?Task :\S*[tT]est NO-SOURCE", lambda _: NONE),
    (r"(?:> )?Task :\S*[tT]est(?: UP-TO-DATE| FROM-CACHE)?", lambda _: SOME),
    # RSpec, minitest, PHPUnit, .NET, CTest, Swift
    (rf"{_TOTAL} examples?, \d+ failures?(?:, {_SKIPPED} pending)?.*", _named),
    (
        rf"{_TOTAL} (?:runs|tests), \d+ assertions, \d+ failures, \d+ errors, {_SKIPPED} skips.*",
        _named,
    ),
    (r"No tests executed!", lambda _: NONE),
    (rf"OK \({_TOTAL} tests?, \d+ assertions?\)", _named),
    (rf".*Failed: +\d+, Passed: +\d+, Skipped: +{_SKIPPED}, Total: +{_TOTAL}.*", _named),
    (r"No test is available in .*", lambda _: NONE),
    (r"No tests were found!!!", lambda _: NONE),
    (rf"\d+% tests passed, \d+ tests failed out of {_EXECUTED}", _named),
    (rf"\s*Executed {_EXECUTED} tests?, with .*", _named),
)
_READERS = tuple((re.compile(f"^{line}$", re.MULTILINE), read) for line, read in _SUMMARIES)


def count_tests(output: str, *, is_whole: bool) -> ExecutedTests | None:
    """Count the tests that the summaries of an output name.

    Args:
        output: what the command printed, or the end of it.
        is_whole: whether that is all of it. Of an end alone nobody can tell that no test ran.

    Returns:
        The sum over all summaries; None when there is none, or when it could not be told.
    """
    found = list(_read_summaries(_ANSI.sub("", output).replace("\r\n", "\n")))
    if not found:
        return None
    count = sum(found, NONE)
    return count if count.executed or is_whole else None


def _read_summaries(text: str) -> Iterator[ExecutedTests]:
    for line, read in _READERS:
        yield from map(read, line.finditer(text))


def describe_no_tests(count: ExecutedTests | None) -> str:
    """Return why a command proves nothing although it passed; empty when a test ran or none can tell."""
    if count is None or count.executed:
        return ""
    if count.skipped:
        return f"passed, but no test ran: {count.skipped} skipped"
    return "passed, but no test ran"

"""A command that passed without running a test proves nothing."""

from __future__ import annotations

import time

import pytest

from runs.validation import executed_tests
from runs.validation.executed_tests import ExecutedTests

# What the runners really print; each beside how many tests ran and how many were skipped.
OUTPUTS = [
    pytest.param("collected 0 items\n\n==== no tests ran in 0.01s ====", 0, 0, id="pytest none"),
    pytest.param("==== 3 deselected in 0.02s ====", 0, 0, id="pytest filter"),
    pytest.param("sss   [100%]\n3 skipped in 0.01s", 0, 3, id="pytest skipped"),
    pytest.param("==== 2 passed, 1 skipped in 0.12s ====", 2, 1, id="pytest"),
    pytest.param("=== 1 failed, 2 errors, 1 xfailed, 3 warnings in 61.1s (0:01:01) ===", 4, 0, id="pytest bad"),
    pytest.param("Ran 0 tests in 0.000s\n\nOK", 0, 0, id="unittest none"),
    pytest.param("Ran 3 tests in 0.002s\n\nOK (skipped=3)", 0, 3, id="unittest skipped"),
    pytest.param("Ran 3 tests in 0.002s\n\nOK", 3, 0, id="unittest"),
    pytest.param("?   \texample.com/a\t[no test files]", 0, 0, id="go no files"),
    pytest.param("ok  \texample.com/a\t0.003s [no tests to run]", 0, 0, id="go filter"),
    pytest.param("?   \ta\t[no test files]\nok  \tb\t(cached)", 1, 0, id="go"),
    pytest.param(
        "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 2 ignored; 0 measured; 5 filtered out; "
        "finished in 0.00s", 0, 2, id="cargo none"),
    pytest.param(
        "test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n"
        "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.0s",
        4, 0, id="cargo and its empty documentation tests"),
    pytest.param("     Summary [   0.004s] 0 tests run: 0 passed, 3 skipped", 0, 0, id="nextest"),
    pytest.param("No tests found, exiting with code 0", 0, 0, id="jest none"),
    pytest.param("No test files found, exiting with code 0", 0, 0, id="vitest none"),
    pytest.param("Tests:       3 skipped, 3 total", 0, 3, id="jest skipped"),
    pytest.param("Tests:       1 skipped, 2 passed, 3 total", 2, 1, id="jest"),
    pytest.param("\x1b[1m      Tests \x1b[22m 3 passed (3)", 3, 0, id="vitest in colours"),
    pytest.param("  0 passing (2ms)\n  3 pending", 0, 0, id="mocha"),
    pytest.param("# tests 2\n# suites 0\n# pass 0\n# fail 0\n# cancelled 0\n# skipped 2", 0, 2, id="node"),
    pytest.param("[WARNING] Tests run: 2, Failures: 0, Errors: 0, Skipped: 2", 0, 2, id="surefire"),
    pytest.param("> Task :a:test NO-SOURCE", 0, 0, id="gradle none"),
    pytest.param("> Task :a:test NO-SOURCE\n> Task :b:test UP-TO-DATE", 1, 0, id="gradle"),
    pytest.param("0 examples, 0 failures", 0, 0, id="rspec"),
    pytest.param("3 runs, 0 assertions, 0 failures, 0 errors, 3 skips", 0, 3, id="minitest"),
    pytest.param("No tests executed!", 0, 0, id="phpunit"),
    pytest.param("Passed!  - Failed:     0, Passed:     0, Skipped:     2, Total:     2, Duration: 1 ms", 0, 2, id="dotnet"),
    pytest.param("100% tests passed, 0 tests failed out of 5", 5, 0, id="ctest"),
    pytest.param("\t Executed 0 tests, with 0 failures (0 unexpected) in 0.0 seconds", 0, 0, id="swift"),
    pytest.param("9 passed in 1.00s\r\n", 9, 0, id="lines of a terminal"),
]  # fmt: skip


@pytest.mark.parametrize(("output", "executed", "skipped"), OUTPUTS)
def test_the_summaries_of_runners_are_counted(output: str, executed: int, skipped: int) -> None:
    found = executed_tests.count_tests(f"building\n{output}\ndone\n", is_whole=True)
    assert found == ExecutedTests(executed, skipped)


@pytest.mark.parametrize(
    "output",
    ["", "all is well", "no tests ran into trouble", "3 passed", "ok then", "I ran 0 tests in 1s"],
)
def test_what_is_no_summary_says_nothing(output: str) -> None:
    assert executed_tests.count_tests(output, is_whole=True) is None


def test_of_the_end_of_an_output_nobody_can_tell_that_no_test_ran() -> None:
    assert executed_tests.count_tests("Ran 0 tests in 0.0s", is_whole=False) is None
    assert executed_tests.count_tests("Ran 2 tests in 0.0s", is_whole=False) == ExecutedTests(2)


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (None, ""),
        (ExecutedTests(1), ""),
        (ExecutedTests(0), "passed, but no test ran"),
        (ExecutedTests(0, 3), "passed, but no test ran: 3 skipped"),
        (ExecutedTests(1, 3), ""),
    ],
)
def test_only_a_run_without_any_test_is_told(count: ExecutedTests | None, said: str) -> None:
    assert executed_tests.describe_no_tests(count) == said


@pytest.mark.parametrize("line", ["ok " * 300_000, "1 a, " * 200_000, "Tests " * 160_000])
def test_hostile_output_takes_no_time(line: str) -> None:
    began = time.process_time()
    executed_tests.count_tests(line[: executed_tests.MOST_BYTES], is_whole=True)
    assert time.process_time() - began < 2

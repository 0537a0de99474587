"""What follows from the checks of a delivered pull request: a case for each rule."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from runs.followups import red_check_rules as rules
from runs.followups import rules as follow_up_rules
from runs.followups.red_check_rules import Act, CheckFacts, Step, WatchState
from trackers.base import Check, CheckOutput, CheckState, PullState

GOOD = Check("lint", CheckState.PASSED)
BAD = Check("unit", CheckState.FAILED, "https://forge/unit")
RUNS = Check("slow", CheckState.RUNNING)
MINUTE = timedelta(minutes=1)
OPEN = CheckFacts(True, PullState.OPEN, (GOOD,), MINUTE, 30 * MINUTE)
WAIT, SEND = Step(Act.WAIT), Step(Act.SEND_BACK)


def end(state: WatchState) -> Step:
    return Step(Act.END, state)


@pytest.mark.parametrize(
    ("change", "step"),
    [
        pytest.param({}, end(WatchState.PASSED), id="all passed"),
        pytest.param({"is_on": False, "checks": (BAD,)}, end(WatchState.OVER), id="turned off"),
        pytest.param({"is_worked_on": True, "checks": (BAD,)}, end(WatchState.OVER), id="a later run"),
        pytest.param({"state": PullState.MERGED, "checks": (BAD,)}, end(WatchState.OVER), id="merged"),
        pytest.param({"state": PullState.CLOSED, "checks": (BAD,)}, end(WatchState.OVER), id="closed"),
        pytest.param({"state": None}, WAIT, id="pull request unknown"),
        pytest.param({"checks": None}, WAIT, id="checks unknown"),
        pytest.param({"checks": None, "since_head": rules.GIVE_UP_AFTER - MINUTE}, WAIT, id="unknown for long"),
        pytest.param({"checks": None, "since_head": rules.GIVE_UP_AFTER}, end(WatchState.OVER), id="never known"),
        pytest.param({"checks": (), "since_head": 29 * MINUTE}, WAIT, id="none yet"),
        pytest.param({"checks": (), "since_head": 30 * MINUTE}, end(WatchState.NO_CHECKS), id="none at all"),
        pytest.param({"checks": (GOOD, RUNS)}, WAIT, id="one runs"),
        pytest.param({"checks": (BAD, RUNS)}, WAIT, id="one failed, one runs"),
        pytest.param({"checks": (BAD, RUNS), "since_head": 59 * MINUTE}, WAIT, id="one runs long"),
        pytest.param({"checks": (BAD, RUNS), "since_head": 60 * MINUTE}, SEND, id="one runs for too long"),
        pytest.param({"checks": (GOOD, RUNS), "since_head": 60 * MINUTE}, WAIT, id="nothing failed so far"),
        pytest.param({"checks": (RUNS,), "since_head": rules.GIVE_UP_AFTER}, end(WatchState.OVER), id="one never ends"),
        pytest.param({"checks": (GOOD, BAD)}, SEND, id="one failed"),
        pytest.param({"checks": (BAD,), "rounds": 2}, SEND, id="the last round"),
        pytest.param({"checks": (BAD,), "rounds": 3}, end(WatchState.RED), id="no round left"),
        pytest.param({"checks": (BAD,), "since_head": rules.GIVE_UP_AFTER - MINUTE}, SEND, id="no slot for long"),
        pytest.param({"checks": (BAD,), "since_head": rules.GIVE_UP_AFTER}, end(WatchState.RED), id="never a slot"),
        pytest.param({"rounds": 3}, end(WatchState.PASSED), id="passed in the last round"),
    ],
)  # fmt: skip
def test_the_first_rule_that_holds_decides(change: dict[str, object], step: Step) -> None:
    assert rules.decide(replace(OPEN, **change)) == step


@pytest.mark.parametrize(
    ("step", "checks", "age", "delay"),
    [
        (WAIT, (GOOD, RUNS), MINUTE, rules.SOON),
        (WAIT, (), MINUTE, rules.LATER),
        (WAIT, (GOOD,), MINUTE, rules.LATER),
        (WAIT, None, MINUTE, rules.LATER),
        (end(WatchState.PASSED), (GOOD,), MINUTE, None),
        (end(WatchState.OVER), (RUNS,), MINUTE, None),
        (end(WatchState.RED), (BAD,), MINUTE, rules.SELDOM),
        (end(WatchState.RED), (BAD, RUNS), rules.RED_FOR - MINUTE, rules.SELDOM),
        (end(WatchState.RED), (BAD,), rules.RED_FOR, None),
    ],
)
def test_when_it_looks_again(
    step: Step, checks: tuple[Check, ...] | None, age: timedelta, delay: timedelta | None
) -> None:
    assert rules.choose_delay(step, checks, age) == delay


def test_the_agent_is_told_which_checks_failed_where_and_how_often_it_may_try() -> None:
    failed = rules.list_failed([GOOD, BAD, RUNS, Check("Build", CheckState.FAILED)])
    told = rules.write_message(8, "a" * 40, failed, 2)
    assert told.startswith(
        "The checks of pull request 8 failed on commit aaaaaaaaaaaa (attempt 2 of 3):\n"
        "- Build\n- unit: https://forge/unit\n\n"
    )
    assert "lint" not in told


@pytest.mark.parametrize(
    ("state", "names", "said"),
    [
        (WatchState.WATCHED, [], ("info", "checks not ended")),
        (WatchState.WATCHED, ["lint"], ("bad", "failed: lint")),
        (WatchState.RED, ["lint", "unit"], ("bad", "failed, needs you: lint, unit")),
        (WatchState.PASSED, [], ("good", "checks passed")),
        (WatchState.NO_CHECKS, [], ("warn", "no checks ran")),
        (WatchState.OVER, ["lint"], ("", "")),
    ],
)
def test_a_list_says_how_checks_stand(
    state: WatchState, names: list[str], said: tuple[str, str]
) -> None:
    assert rules.describe_state(state.value, names) == said


def test_many_long_names_are_cut() -> None:
    failed = [Check("n" * 900, CheckState.FAILED)] * 30
    assert len(rules.write_message(8, "a" * 40, failed, 1)) < 2000
    assert rules.name_checks(["n" * 900] * 12).endswith("n and 2 more")
    assert "more" not in rules.name_checks(["n"] * 10)
    assert "more" not in rules.write_message(8, "a" * 40, failed[:10], 1)
    assert rules.name_checks(["a", "b"]) == "a, b"


@pytest.mark.parametrize(
    ("printed", "cleaned"),
    [
        pytest.param("a\nb\n", "a\nb", id="plain"),
        pytest.param(
            "\x1b[31mred\x1b[0m\x1b[K \x1b]0;title\x07x", "red x", id="colours and a title"
        ),
        pytest.param("1 %\r50 %\r100 %\r\nok\r\n", "100 %\nok", id="printed over"),
        pytest.param("a\x00b\x08\u202ec\td", "abc\td", id="control and turning characters"),
        pytest.param("\ufeff2026-11-27T08:00:00.1234567Z E  assert", "E  assert", id="a time"),
        pytest.param("at 2026-11-27T08:00:00Z E", "at 2026-11-27T08:00:00Z E", id="a time within"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_output_is_cleaned_before_an_agent_reads_it(printed: str, cleaned: str) -> None:
    assert rules.clean_output(printed) == cleaned


LINES = [f"line {number}" for number in range(100)]


@pytest.mark.parametrize(
    ("text", "most", "cut"),
    [
        pytest.param("\n".join(LINES), 8_000, "\n".join(LINES[40:]), id="the last sixty lines"),
        pytest.param("ab\ncd\nef", 5, "cd\nef", id="as many whole lines as fit"),
        pytest.param("ab\ncd\nef", 4, "ef", id="not one that is cut"),
        pytest.param("x" * 30 + "end", 7, "xxxxend", id="the end of one long line"),
        pytest.param("E  bad\n##[error]exit 1\nPost job\nbye", 99, "E  bad\n##[error]exit 1", id="no cleaning up"),
        pytest.param("##[error]a\nb\n##[error]c\nd", 99, "##[error]a\nb\n##[error]c", id="the last error"),
        pytest.param("", 9, "", id="nothing"),
    ],
)  # fmt: skip
def test_the_end_of_what_a_check_printed_is_told(text: str, most: int, cut: str) -> None:
    assert rules.cut_output(text, most) == cut


LINT = Check("lint", CheckState.FAILED)


@pytest.mark.parametrize(
    ("outputs", "unread", "told"),
    [
        pytest.param([], 0, [], id="none"),
        pytest.param(
            [(BAD, CheckOutput("E  bad\nexit 1"))], 0,
            ["The end of the log of “unit”:\n| E  bad\n| exit 1"], id="a log",
        ),
        pytest.param([(BAD, CheckOutput(""))], 0, ["The log of “unit” is empty."], id="an empty log"),
        pytest.param(
            [(BAD, CheckOutput(None, "away.\nFor long"))], 0,
            ["The log of “unit” could not be read (away. For long). Its page: https://forge/unit"],
            id="a log that could not be read",
        ),
        pytest.param(
            [(LINT, CheckOutput(None, "", "2 errors"))], 2,
            [
                "The log of “lint” could not be read. The forge says of it:\n| 2 errors",
                "2 more failed. Their logs are not shown here.",
            ],
            id="what the forge says, and more of them",
        ),
    ],
)  # fmt: skip
def test_what_failed_checks_printed_is_marked_as_output(
    outputs: list[tuple[Check, CheckOutput]], unread: int, told: list[str]
) -> None:
    note = [rules.OUTPUT_NOTE] if told else []
    assert rules.write_outputs(outputs, unread) == "\n\n".join([*note, *told])


@pytest.mark.parametrize("number", range(1, 6))
def test_long_output_of_many_checks_has_an_end(number: int) -> None:
    long = "\n".join("x" * 199 for _ in range(60))
    outputs = [(BAD, CheckOutput(long))] * (number - 1) + [(LINT, CheckOutput("short"))]
    told = rules.write_outputs(outputs)
    assert len(told) < rules.ALL_CHARACTERS + 2_000
    assert told.count("The end of the log") == number
    assert told.endswith("| short")
    assert all(line.startswith("| ") for line in told.split("\n") if "xxx" in line)


def test_the_request_stays_below_what_a_person_may_write() -> None:
    failed = [Check("n" * 500, CheckState.FAILED, f"https://forge/{'u' * 190}")] * 30
    text = rules.write_message(12345678, "a" * 64, failed, 3)
    assert len(text) <= follow_up_rules.TEXT_CHARACTERS

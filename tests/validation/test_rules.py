"""What a validation's results mean, what comes next, and how commands are written: tables."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.core import naming
from runs.core.states import ValidationState as State
from runs.validation import rules as validating
from runs.validation.command_rules import Checked, UnfitCommands, read_commands, shown
from runs.validation.rules import DONE, Failure, FixEnd, FixFacts, Next, Verdict
from tests.fakes import START

GOOD, BAD = Checked(0, 1.0), Checked(2, 1.0)
ONE, TWO = [["pytest", "-q"]], [["ruff", "check"], ["pytest", "-q"]]


@pytest.mark.row("MALA-W-35", "MALA-W-36", level="pure")
@pytest.mark.parametrize(
    ("commands", "results", "more", "state", "reason", "is_fixable"),
    [
        pytest.param([], [], {}, State.NOTHING, "no commands are set", False, id="no commands"),
        pytest.param(
            [],
            [],
            {"conflict": "a b"},
            State.NOTHING,
            "no commands",
            False,
            id="none, whatever else",
        ),
        pytest.param(ONE, [GOOD], {}, State.PASSED, "1 command passed", False, id="one passed"),
        pytest.param(TWO, [GOOD, GOOD], {}, State.PASSED, "2 commands", False, id="all passed"),
        pytest.param(TWO, [GOOD], {}, State.RUNNING, "", False, id="one is missing"),
        pytest.param(TWO, [], {}, State.RUNNING, "", False, id="none has run"),
        pytest.param(
            TWO, [BAD], {}, State.FAILED, "ruff check failed with exit status 2", True, id="first"
        ),
        pytest.param(
            TWO, [GOOD, BAD], {}, State.FAILED, "pytest -q failed with", True, id="second"
        ),
        pytest.param(
            ONE,
            [Checked(None, 60.0, is_over_time=True)],
            {},
            State.FAILED,
            "pytest -q was ended after 60 s, its time limit",
            True,
            id="over time",
        ),
        pytest.param(
            ONE,
            [Checked(None, 1.0, signal=9)],
            {},
            State.FAILED,
            "ended by signal 9",
            True,
            id="signal",
        ),
        pytest.param(
            ONE, [Checked(None, 1.0)], {}, State.FAILED, "was interrupted", True, id="no status"
        ),
        pytest.param(
            ONE,
            [Checked(None, 0.0, trouble="No such file or directory")],
            {},
            State.FAILED,
            "pytest -q could not be started: No such file",
            False,
            id="a missing program is nothing an agent mends",
        ),
        pytest.param(
            ONE, [], {"conflict": "a and b"}, State.FAILED, "a and b", True, id="a conflict"
        ),
        pytest.param(
            ONE,
            [],
            {"trouble": "git hung"},
            State.FAILED,
            "it could not be carried out: git hung",
            False,
            id="trouble of ours is nothing an agent mends",
        ),
    ],
)
def test_what_results_mean(commands, results, more, state, reason, is_fixable) -> None:  # type: ignore[no-untyped-def]
    found = validating.verdict(commands, results, **more)
    assert (found.state, found.is_fixable) == (state, is_fixable)
    assert reason in found.reason
    assert bool(found.reason) is (state is not State.RUNNING)


@pytest.mark.row("MALA-W-35", level="pure")
@pytest.mark.parametrize(
    ("state", "is_fixable", "attempts", "most", "then"),
    [
        pytest.param(State.FAILED, True, 0, 2, Next.FIX, id="the first try"),
        pytest.param(State.FAILED, True, 1, 2, Next.FIX, id="the second try"),
        pytest.param(State.FAILED, True, 2, 2, Next.END, id="used up"),
        pytest.param(State.FAILED, True, 0, 0, Next.END, id="none allowed"),
        pytest.param(State.FAILED, False, 0, 2, Next.END, id="nothing to mend"),
        pytest.param(State.PASSED, False, 0, 2, Next.END, id="passed"),
        pytest.param(State.PASSED, False, 1, 2, Next.END, id="passed by a fixer"),
    ],
)
def test_what_comes_after_a_verdict(state, is_fixable, attempts, most, then) -> None:  # type: ignore[no-untyped-def]
    assert validating.after(Verdict(state, "why", is_fixable), attempts, most) is then


MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.mark.parametrize(
    ("alive", "commits", "is_done", "age", "end"),
    [
        pytest.param(True, 0, False, MINUTE, None, id="works"),
        pytest.param(True, 1, False, MINUTE, None, id="a commit without its word"),
        pytest.param(True, 1, True, MINUTE, FixEnd.DELIVERED, id="a commit and its word"),
        pytest.param(True, 0, True, MINUTE, None, id="a word without a commit"),
        pytest.param(False, 1, False, MINUTE, FixEnd.DELIVERED, id="gone with a commit"),
        pytest.param(False, 0, False, MINUTE, FixEnd.EMPTY, id="gone without one"),
        pytest.param(True, 0, False, HOUR, FixEnd.OVERDUE, id="time is up, inclusive"),
        pytest.param(True, 2, False, HOUR, FixEnd.DELIVERED, id="time is up, with commits"),
        pytest.param(None, 1, True, HOUR, None, id="session unknown"),
        pytest.param(False, None, False, HOUR, None, id="commits unknown"),
    ],
)
def test_how_a_fixer_has_ended(alive, commits, is_done, age, end) -> None:  # type: ignore[no-untyped-def]
    assert validating.fix_end(FixFacts(alive, commits, is_done, age, HOUR)) is end


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        pytest.param(f"fix: it\n\n{DONE}\n", True, id="on its own line"),
        pytest.param(f"fix: it\n\n  {DONE}  \nmore", True, id="with blanks"),
        pytest.param(f"fix: say {DONE} not", False, id="inside a sentence"),
        pytest.param("fix: it", False, id="not there"),
    ],
)
def test_the_done_word(message: str, answer: bool) -> None:
    assert validating.is_done(message) is answer


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("\n  \n# nothing\n", [], id="blank lines and comments"),
        pytest.param("pytest -q\nruff check", [["pytest", "-q"], ["ruff", "check"]], id="two"),
        pytest.param("pytest\r\nruff\r\n", [["pytest"], ["ruff"]], id="as browsers send it"),
        pytest.param("echo 'a b' \"c d\"", [["echo", "a b", "c d"]], id="quotes"),
        pytest.param("echo a\\ b", [["echo", "a b"]], id="backslash"),
        pytest.param("grep '|' x", [["grep", "|", "x"]], id="quoted, it is an argument"),
        pytest.param("sh -c 'a && b'", [["sh", "-c", "a && b"]], id="a shell that is asked for"),
        pytest.param("env A=1 make", [["env", "A=1", "make"]], id="env"),
        pytest.param("./x=y/run --a=b", [["./x=y/run", "--a=b"]], id="equals in a path"),
        pytest.param("echo $HOME *", [["echo", "$HOME", "*"]], id="nothing is expanded"),
    ],
)
def test_commands_are_argument_lists(text: str, commands: list[list[str]]) -> None:
    assert read_commands(text) == commands
    assert read_commands("\n".join(shown(argv) for argv in commands)) == commands


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("ok\necho 'a", "Line 2: a quotation is not closed", id="quote"),
        pytest.param("echo a\\", "Line 1", id="escape"),
        pytest.param("a && b", "&& would be an argument", id="and"),
        pytest.param("a | b", "| would be an argument", id="pipe"),
        pytest.param("a > b", "> would be an argument", id="redirection"),
        pytest.param("cd x; make", "x; would be an argument", id="semicolon"),
        pytest.param("A=1 make", "write env A=1 make", id="variable"),
        pytest.param("'' x", "the name of the program is empty", id="no program"),
        pytest.param("echo \x07", "cannot be seen", id="control character"),
        pytest.param("x" * 1001, "longer than 1000", id="long"),
        pytest.param("a\n" * 51, "at most 50 commands; these are 51", id="many"),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_line(text: str, why: str) -> None:
    with pytest.raises(UnfitCommands) as refused:
        read_commands(text)
    assert why in str(refused.value)


@pytest.mark.row("C-54", level="pure")
def test_a_conflict_names_both_issues_and_some_files() -> None:
    files = [f"f{number}" for number in range(10)]
    said = validating.conflict_text("issue 9", "issue 7", files)
    assert "issue 9 and issue 7" in said
    assert said.endswith("f7 and 2 more")
    assert validating.conflict_text("a", "b", []) == "the work of a and b conflict"


def test_the_task_of_a_fixer_says_what_failed_and_how_to_end() -> None:
    text = validating.task_text(Failure("pytest failed", TWO, "E assert 1\n"), "lab/fix-1", "main")
    for part in ("pytest failed", "    ruff check", "E assert 1", "lab/fix-1", DONE, "`main`"):
        assert part in text
    text = validating.task_text(Failure("they conflict", ONE, "", ["abc (issue 9)"]), "b", "main")
    assert "`abc (issue 9)`" in text
    assert "The end of what it printed" not in text


def test_the_names_of_fixes_and_of_check_folders() -> None:
    branch = naming.person_branch(naming.fix_label(31, 2, START))
    assert branch == "lab/fix-31-2-20261121-1200"
    assert naming.is_fix(branch)
    assert naming.is_managed(branch)
    assert naming.claimed_key(branch) is None
    assert not naming.is_fix("lab/fix-login-20261121-1200")
    assert naming.parse_session(naming.person_session("demo", "fix-31-2-20261121-1200")) is None
    assert naming.check_folder("demo", 3) == "demo.check-3"


def test_a_long_command_hides_from_no_row_how_it_ended() -> None:
    argv = ["sh", "-c", "make lint && make test || { echo 'it did not work'; exit 3; }; true"]
    said = validating.why_failed(argv, Checked(3, 1.0))
    assert said.startswith("sh -c 'make lint && ")
    assert said.endswith("… failed with exit status 3")
    assert len(said) <= 90


def trials(*tried: tuple[str, bool | None]) -> list[validating.Trial]:
    return [validating.Trial(without, passed) for without, passed in tried]


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        pytest.param([], [], id="nothing was delivered"),
        pytest.param(["a"], [], id="a single one needs no trial"),
        pytest.param(["a", "b"], ["", "b", "a"], id="everything first, then the newest"),
        pytest.param(list("abcdef"), ["", "f", "e", "d", "c", "b"], id="bounded"),
    ],
)
def test_what_is_left_out_one_after_the_other(names: list[str], wanted: list[str]) -> None:
    assert validating.list_trials(names) == wanted


@pytest.mark.parametrize(
    ("tried", "suspects", "said"),
    [
        pytest.param([], None, "", id="nothing was tried"),
        pytest.param([("", None)], None, "", id="the base could not be tried"),
        pytest.param([("", None), ("b", True)], None, "", id="without the base nothing counts"),
        pytest.param(
            [("", False)],
            (),
            "it fails on main alone too, so none of them is suspected",
            id="the base fails",
        ),
        pytest.param(
            [("", True), ("b", True), ("a", False)], ("b",), "without b it passes", id="one"
        ),
        pytest.param(
            [("", True), ("b", True), ("a", True)],
            ("b", "a"),
            "without b or without a it passes",
            id="together",
        ),
        pytest.param(
            [("", True), ("b", False), ("a", False)],
            (),
            "leaving out one of 2 deliveries mends nothing",
            id="none alone",
        ),
        pytest.param(
            [("", True), ("b", None), ("a", False)],
            (),
            "leaving out one of 1 deliveries mends nothing",
            id="one could not be tried",
        ),
        pytest.param([("", True), ("b", None)], (), "", id="no trial came to an end"),
        pytest.param([("", True)], (), "", id="no time was left"),
    ],
)
def test_who_is_suspected(
    tried: list[tuple[str, bool | None]], suspects: tuple[str, ...] | None, said: str
) -> None:
    assert validating.name_suspects(trials(*tried)) == suspects
    assert validating.describe_suspects(trials(*tried), "main") == said


@pytest.mark.row("C-54", level="pure")
@pytest.mark.parametrize(
    ("facts", "why"),
    [
        pytest.param((False, State.FAILED, "", True), "", id="failed"),
        pytest.param((False, State.CANCELLED, "", True), "", id="called off"),
        pytest.param((True, State.FAILED, "", True), "This session is open", id="open"),
        pytest.param((False, State.PASSED, "", True), "did not fail", id="passed"),
        pytest.param((False, State.NOTHING, "", True), "did not fail", id="proved nothing"),
        pytest.param((False, State.RUNNING, "", True), "did not fail", id="at work"),
        pytest.param((False, None, "", True), "did not fail", id="never validated"),
        pytest.param((False, State.FAILED, "Being removed.", True), "Being removed.", id="removed"),
        pytest.param((False, State.FAILED, "", False), "no validation commands", id="no commands"),
    ],
)
def test_an_ended_session_is_validated_again_where_its_last_validation_did_not_pass(
    facts: tuple[bool, State | None, str, bool], why: str
) -> None:
    said = validating.refuse_repeat(validating.RepeatFacts(*facts))
    assert (why in said) if why else said == ""
    assert said == "" or said.endswith("Nothing was begun.")
    is_open, newest, not_ready, has_commands = facts
    if not not_ready and has_commands:  # what its page can tell
        assert validating.can_repeat(is_open, newest) == (said == "")

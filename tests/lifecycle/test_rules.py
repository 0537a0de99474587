"""The pure rules, each as a table with an id per row."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.agents import commands
from runs.core import budgets
from runs.core.lease import LENGTH, Held, is_free
from runs.core.states import AnswerCode, Outcome, Trouble
from runs.dispatch.rules import Candidate, Queue, Refusal, Room, Start, decide_start
from runs.kept.teardown_rules import MergeFacts, guarded, is_merged, needs_rescue, teardown
from runs.lifecycle.verdict import (
    LINGERS_FOR,
    MOST_VAIN,
    MOST_VAIN_ALONE,
    Another,
    PrintFacts,
    RunFacts,
    ServerFacts,
    VainFacts,
    after_refusal,
    after_vain_resumes,
    has_lingered,
    is_server_lost,
    verdict,
)
from runs.projects.sources import WrongSource, name_from, read_source
from tests.fakes import START

BUDGET = timedelta(minutes=45)
SECOND = timedelta(seconds=1)
YOUNG, AT, OVER = BUDGET - SECOND, BUDGET, BUDGET + timedelta(hours=1)


@pytest.mark.row(
    "LAB-19", "LAB-20", "LAB-21", "LAB-22", "LAB-23", "LAB-24", "LAB-25", "LAB-26", level="pure"
)
@pytest.mark.row("LAB-14", "LAB-15", level="pure")
@pytest.mark.parametrize(
    ("is_done", "alive", "age", "expected"),
    [
        pytest.param(False, True, YOUNG, None, id="alive, no pull, young: goes on"),
        pytest.param(True, True, YOUNG, Outcome.SUCCEEDED, id="pull and alive"),
        pytest.param(True, False, YOUNG, Outcome.SUCCEEDED, id="pull and dead is no death"),
        pytest.param(True, True, OVER, Outcome.SUCCEEDED, id="a pull wins over time"),
        pytest.param(True, False, OVER, Outcome.SUCCEEDED, id="a pull wins over all"),
        pytest.param(False, False, YOUNG, Outcome.DIED, id="dead without pull"),
        pytest.param(False, False, OVER, Outcome.DIED, id="death beats time"),
        pytest.param(False, True, AT, Outcome.TIMED_OUT, id="exactly at the budget"),
        pytest.param(False, True, OVER, Outcome.TIMED_OUT, id="over the budget"),
        pytest.param(None, True, YOUNG, None, id="pull unknown, alive"),
        pytest.param(None, False, YOUNG, None, id="pull unknown, dead: prove nothing"),
        pytest.param(None, True, OVER, None, id="pull unknown, over: prove nothing"),
        pytest.param(False, None, YOUNG, None, id="liveness unknown"),
        pytest.param(False, None, OVER, None, id="liveness unknown, over"),
        pytest.param(True, None, OVER, None, id="liveness unknown, pull: next tick"),
        pytest.param(None, None, OVER, None, id="nothing known"),
    ],
)
def test_the_outcome_is_what_the_facts_prove(is_done, alive, age, expected):
    assert verdict(RunFacts(is_done, alive, age, BUDGET)) is expected


@pytest.mark.row("MALA-W-50", level="pure")
@pytest.mark.parametrize(
    ("has_pull", "alive", "expected"),
    [
        pytest.param(False, False, Outcome.INTERRUPTED, id="it gave way"),
        pytest.param(True, False, Outcome.SUCCEEDED, id="a pull request beats everything"),
        pytest.param(None, False, None, id="could not tell"),
        pytest.param(False, True, None, id="it has ten seconds"),
    ],
)
def test_the_end_of_an_interrupted_run_is_no_death(has_pull, alive, expected):
    assert verdict(RunFacts(has_pull, alive, YOUNG, BUDGET, was_interrupted=True)) is expected


@pytest.mark.row("C-03", level="pure")
@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("dirty", [True, False, None])
def test_only_a_clean_good_end_loses_its_worktree(outcome, dirty):
    decision = teardown(outcome, dirty)
    is_clean_end = outcome in (Outcome.SUCCEEDED, Outcome.NO_CHANGE, Outcome.OBSOLETE)
    assert decision.remove is (is_clean_end and dirty is False)
    assert bool(decision.warning) is (is_clean_end and dirty is not False)


@pytest.mark.row("LAB-106", "LAB-108", "LAB-109", level="pure")
@pytest.mark.parametrize(
    ("has_worktree", "unsaved", "merged", "removes", "deletes", "warns"),
    [
        pytest.param(True, True, True, False, False, True, id="dirty and merged: kept whole"),
        pytest.param(True, True, False, False, False, True, id="dirty and unmerged: kept whole"),
        pytest.param(True, True, None, False, False, True, id="dirty, merge unknown"),
        pytest.param(True, False, True, True, True, False, id="clean and merged: both go"),
        pytest.param(True, False, False, True, False, False, id="clean, unmerged: branch kept"),
        pytest.param(True, False, None, True, False, True, id="clean, merge unknown"),
        pytest.param(True, None, True, False, False, True, id="unknown and merged: kept whole"),
        pytest.param(True, None, False, False, False, True, id="unknown and unmerged"),
        pytest.param(True, None, None, False, False, True, id="nothing known"),
        pytest.param(False, False, True, False, True, False, id="bare and merged: branch goes"),
        pytest.param(False, False, False, False, False, False, id="bare and unmerged"),
        pytest.param(False, False, None, False, False, True, id="bare, merge unknown"),
        pytest.param(False, None, True, False, True, False, id="no worktree, so none to ask about"),
    ],
)
def test_the_guarded_teardown(has_worktree, unsaved, merged, removes, deletes, warns):
    decision = guarded(has_worktree, unsaved, merged)
    assert (decision.remove_worktree, decision.delete_branch) == (removes, deletes)
    assert bool(decision.warning) is warns


@pytest.mark.row("LAB-108", "LAB-138", "LAB-139", "C-56", "C-57", level="pure")
@pytest.mark.parametrize(
    ("tip", "fork", "is_ancestor", "is_claim", "heads", "expected"),
    [
        pytest.param("b", "a", True, True, (), True, id="moved and held by the default branch"),
        pytest.param("b", "a", False, True, (), False, id="moved and not held"),
        pytest.param("b", "a", None, True, (), None, id="git could not say"),
        pytest.param(
            "b", "a", False, True, ("b",), True, id="squash: a merged request of this tip"
        ),
        pytest.param("b", "a", None, True, ("b",), True, id="a merged request needs no ancestor"),
        pytest.param("c", "a", False, True, ("b",), False, id="moved on after its request"),
        pytest.param("a", "a", True, True, (), False, id="a claim that never moved"),
        pytest.param("a", "a", True, True, ("a",), False, id="never moved, an older run's request"),
        pytest.param("a", "", True, True, (), False, id="a claim of unknown origin"),
        pytest.param("a", "", True, True, ("a",), False, id="the same with a merged request"),
        pytest.param("a", "a", True, False, (), True, id="a session's branch that holds nothing"),
        pytest.param("a", "", True, False, (), True, id="the same, its origin unknown"),
        pytest.param("b", "", False, False, (), False, id="a session's branch with work"),
        pytest.param(None, "a", True, True, ("a",), None, id="no tip could be read"),
    ],
)
def test_a_branch_is_merged_when_it_moved_and_is_held(
    tip, fork, is_ancestor, is_claim, heads, expected
):
    facts = MergeFacts(tip, fork, is_ancestor, is_claim, frozenset(heads))
    assert is_merged(facts) is expected


@pytest.mark.parametrize("is_dirty", [True, False])
@pytest.mark.parametrize("stands_on_tip", [True, False])
@pytest.mark.parametrize("tip_stays", [True, False])
def test_only_what_something_else_still_holds_needs_no_rescue(is_dirty, stands_on_tip, tip_stays):
    held = not is_dirty and stands_on_tip and tip_stays
    assert needs_rescue(is_dirty, stands_on_tip, tip_stays) is not held


@pytest.mark.row("X-15", level="pure")
@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(-1, False, id="not yet"),
        pytest.param(0, True, id="now"),
        pytest.param(5, True, id="late"),
        pytest.param(-3600, True, id="stored time is an hour ahead: the clock was set back"),
    ],
)
def test_a_stored_due_time_survives_a_clock_that_jumps(seconds, expected):
    next_at = START - timedelta(seconds=seconds)
    assert budgets.is_due(START, next_at, timedelta(seconds=30)) is expected


@pytest.mark.row("X-15", level="pure")
def test_ages_clamp_at_zero_when_the_clock_goes_back():
    assert budgets.age(START - timedelta(hours=1), START) == timedelta(0)
    assert budgets.age(START, None) == timedelta(0)


@pytest.mark.row("X-13", level="pure")
@pytest.mark.parametrize(("seconds", "late"), [(59, False), (60, False), (61, True)])
def test_a_tick_older_than_two_intervals_is_late(seconds, late):
    every = timedelta(seconds=30)
    assert budgets.is_late(START + timedelta(seconds=seconds), START, every) is late
    assert budgets.is_late(START, None, every)


@pytest.mark.row("X-13", "LAB-17", level="pure")
@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param(Held("", None, None), True, id="nobody"),
        pytest.param(Held("a", START + SECOND, True), False, id="held"),
        pytest.param(Held("a", START + SECOND, None), False, id="held, owner unknown"),
        pytest.param(Held("a", START + SECOND, False), True, id="owner was killed"),
        pytest.param(Held("a", START, True), True, id="expired"),
        pytest.param(Held("a", START + LENGTH + SECOND, True), True, id="from a wrong clock"),
    ],
)
def test_a_lease_is_free_when_nobody_can_be_holding_it(held, expected):
    assert is_free(held, START) is expected


def _queue(**changes):
    facts = {"has_tracker": True, "ready": ["7", "8"], "claims": set(), "active": set()}
    facts |= changes
    if facts["ready"] is not None:
        facts["ready"] = [Candidate(key) for key in facts["ready"]]
    return Queue(**facts)


ROOM = Room(taken={1}, occupied=1, cap=2)


@pytest.mark.row("LAB-53", "LAB-55", "LAB-56", "LAB-64", "LAB-66", level="pure")
@pytest.mark.parametrize(
    ("queue", "room", "expected"),
    [
        pytest.param(_queue(), ROOM, Start("7", 2), id="first ready, lowest free slot"),
        pytest.param(_queue(), Room({2}, 1, 2), Start("7", 1), id="slot 1 is free"),
        pytest.param(_queue(claims={"7"}), ROOM, Start("8", 2), id="around a claimed one"),
        pytest.param(_queue(active={"7"}), ROOM, Start("8", 2), id="around an active one"),
        pytest.param(_queue(wanted="8"), ROOM, Start("8", 2), id="the one asked for"),
        pytest.param(
            _queue(wanted="8", claims={"8"}),
            ROOM,
            AnswerCode.NOTHING_READY,
            id="asked for, claimed",
        ),
        pytest.param(_queue(wanted="9"), ROOM, AnswerCode.NOTHING_READY, id="asked for, not ready"),
        pytest.param(_queue(ready=[]), ROOM, AnswerCode.NOTHING_READY, id="empty queue"),
        pytest.param(
            _queue(claims={"7", "8"}), ROOM, AnswerCode.NOTHING_READY, id="only claimed ones"
        ),
        pytest.param(_queue(), Room({1, 2}, 2, 2), AnswerCode.AT_CAP, id="at the cap"),
        pytest.param(
            _queue(ready=[]),
            Room({1, 2}, 2, 2),
            AnswerCode.NOTHING_READY,
            id="pick comes before cap",
        ),
        pytest.param(
            _queue(), Room(set(), 2, 2), AnswerCode.AT_CAP, id="the cap counts sessions, not slots"
        ),
        pytest.param(_queue(), Room({1}, None, 2), AnswerCode.SEAM_FAILED, id="tmux unknown"),
        pytest.param(_queue(has_tracker=False), ROOM, AnswerCode.NO_TRACKER, id="no tracker"),
        pytest.param(_queue(ready=None), ROOM, AnswerCode.TRACKER_FAILED, id="tracker unknown"),
        pytest.param(_queue(claims=None), ROOM, AnswerCode.SEAM_FAILED, id="claims unknown"),
    ],
)
def test_the_launch_pass_decides(queue, room, expected):
    decision = decide_start(queue, room)
    if isinstance(expected, Start):
        assert decision == expected
    else:
        assert isinstance(decision, Refusal)
        assert decision.code is expected
        assert decision.text


@pytest.mark.row("LAB-62", level="pure")
def test_the_task_names_the_seven_things():
    text = commands.task_text(key="7", title="Add retries", branch="afk/7", base="main")
    for element in (
        "labctl issue view 7",
        "comments",
        "`afk/7`. Stay on it",
        "Implement",
        "tests, build and linters",
        "Conventional Commit",
        "git push origin afk/7",
        "Closes #7",
        "to `main`",
        "stop. Do not take other work",
    ):
        assert element in text


@pytest.mark.row("X-14", level="pure")
@pytest.mark.parametrize(
    "title", ['it\'s "so" $(rm -rf /)', "a\nb; rm x", "<script>", "t" * 10_000, "{model} {prompt}"]
)
def test_a_title_stays_inside_one_literal_argument(title):
    prompt = commands.task_text(key="7", title=title, branch="afk/7", base="main")
    argv = commands.fill(
        ["agent", "--model", "{model}", "{prompt}"], {"model": "m", "prompt": prompt}
    )
    assert argv == ["agent", "--model", "m", prompt]
    assert len(prompt) < 4000


@pytest.mark.row("LAB-63", level="pure")
def test_arguments_without_a_value_leave_with_their_flag():
    values = {"model": "", "effort": "", "prompt": "go"}
    assert commands.fill(["a", "--model", "{model}", "--effort={effort}", "{prompt}"], values) == [
        "a",
        "go",
    ]


@pytest.mark.parametrize(
    ("text", "is_path"),
    [
        ("/home/me/shop", True),
        ("~/shop", True),
        ("https://forge.example/me/shop.git", False),
        ("git@forge.example:me/shop.git", False),
        ("ssh://git@forge.example/me/shop.git", False),
    ],
)
def test_paths_and_urls_are_told_apart(text, is_path):
    assert read_source(text).is_path is is_path


@pytest.mark.parametrize(
    "text",
    [
        "",
        "shop",
        "--upload-pack=evil",
        "ext::sh -c evil",
        "https://me:secret@forge.example/x",
        "/a\nb",
    ],
)
def test_what_git_must_never_see_is_refused_with_a_sentence(text):
    with pytest.raises(WrongSource, match=r"\."):
        read_source(text)


def test_a_name_is_proposed_from_the_source():
    assert name_from("git@forge.example:me/shop.git") == "shop"
    assert name_from("/home/me/shop/") == "shop"


@pytest.mark.parametrize(
    ("now", "due", "after"),
    [
        pytest.param(0, 0, 30, id="in time"),
        pytest.param(4, 0, 30, id="a little late makes the next no later"),
        pytest.param(29, 0, 30, id="nearly too late"),
        pytest.param(30, 0, 60, id="an interval late: anew"),
        pytest.param(3600, 0, 3630, id="much too late: anew"),
        pytest.param(0, 10, 30, id="too early: anew"),
        pytest.param(0, 9999, 30, id="from a wrong clock: anew"),
    ],
)
def test_the_next_turn_is_an_interval_after_the_last_was_due(now, due, after):
    found = budgets.next_turn(START + now * SECOND, START + due * SECOND, 30 * SECOND)
    assert found == START + after * SECOND


@pytest.mark.parametrize(
    ("failures", "wanted"),
    [(0, Another.SAME), (1, Another.FRESH), (2, Another.NONE), (9, Another.NONE)],
)
def test_a_session_that_is_refused_twice_is_replaced_once(failures: int, wanted: Another) -> None:
    assert after_refusal(failures) is wanted


@pytest.mark.parametrize(
    ("began_on", "now", "runs", "has_finished", "expected"),
    [
        pytest.param("b1:10:1", "", 2, False, True, id="two at once"),
        pytest.param("b1:10:1", "b1:11:9", 2, False, True, id="two, and another server is there"),
        pytest.param("b1:10:1", "b1:10:1", 2, False, False, id="the server lives"),
        pytest.param("b1:10:1", "", 1, False, False, id="one: it may have ended before its server"),
        pytest.param("b0:10:1", "", 1, False, True, id="one, and the machine was restarted"),
        pytest.param("b0:10:1", "b0:10:1", 1, False, False, id="as noted"),
        pytest.param("", "", 2, False, False, id="nobody noted the server"),
        pytest.param("b1:10:1", "", 2, True, False, id="it had told its result"),
    ],
)
def test_sessions_are_lost_with_their_server(began_on, now, runs, has_finished, expected):
    facts = ServerFacts(began_on, now, "b1", runs, has_finished)
    assert is_server_lost(facts) is expected


def test_where_the_boot_is_not_known_one_session_proves_nothing():
    assert not is_server_lost(ServerFacts("b0:10:1", "", "", 1))


@pytest.mark.parametrize(
    ("has_result", "silent_for", "agents", "expected"),
    [
        pytest.param(True, LINGERS_FOR, 0, True, id="result, and long silent"),
        pytest.param(True, LINGERS_FOR - SECOND, 0, False, id="it may still be ending"),
        pytest.param(False, BUDGET, 0, False, id="no result: it works, or thinks"),
        pytest.param(True, BUDGET, 1, False, id="an agent works in the background"),
        pytest.param(True, None, 0, False, id="when it printed is not known"),
    ],
)
def test_a_program_that_printed_its_result_and_stays_counts_as_ended(
    has_result, silent_for, agents, expected
):
    assert has_lingered(PrintFacts(has_result, silent_for, agents)) is expected


@pytest.mark.parametrize(
    ("times", "trouble", "do_others_work", "was_fresh", "expected"),
    [
        pytest.param(0, Trouble.LIMIT, True, False, Another.SAME, id="it had worked"),
        pytest.param(MOST_VAIN - 1, Trouble.LIMIT, True, False, Another.SAME, id="may be chance"),
        pytest.param(MOST_VAIN, Trouble.LIMIT, True, False, Another.FRESH, id="only it is refused"),
        pytest.param(9, Trouble.OVERLOAD, True, False, Another.FRESH, id="whatever the trouble"),
        pytest.param(MOST_VAIN, Trouble.LIMIT, True, True, Another.NONE, id="a fresh one too"),
        pytest.param(99, Trouble.OVERLOAD, False, False, Another.SAME, id="a long outage"),
        pytest.param(99, Trouble.LOGIN, False, False, Another.SAME, id="nobody has logged in"),
        pytest.param(MOST_VAIN, Trouble.LIMIT, False, False, Another.SAME, id="alone, for minutes"),
        pytest.param(
            MOST_VAIN_ALONE, Trouble.LIMIT, False, False, Another.FRESH, id="alone, for hours"
        ),
        pytest.param(
            MOST_VAIN_ALONE, Trouble.LIMIT, False, True, Another.SAME, id="alone, a fresh one too"
        ),
        pytest.param(MOST_VAIN_ALONE + 1, Trouble.LIMIT, False, False, Another.SAME, id="once"),
    ],
)
def test_a_session_that_is_refused_each_time_it_goes_on_is_given_up(
    times, trouble, do_others_work, was_fresh, expected
):
    facts = VainFacts(times, trouble, do_others_work, was_fresh)
    assert after_vain_resumes(facts) is expected

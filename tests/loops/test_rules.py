"""When a loop goes on, recovers, stays, idles and ends: a row for each rule."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from runs.loops import events
from runs.loops.events import Batch, Event
from runs.loops.rules import (
    SILENT,
    STAYS,
    CheckIn,
    Counters,
    End,
    Limits,
    Next,
    Outside,
    Step,
    Terms,
    TurnResult,
    after,
    count,
    given_up,
    is_check_in_due,
    nearing,
    next_step,
    pause_before_restart,
    pause_before_turn,
    reached,
)

DONE = Event("LOOP_COMPLETE")
STAYING = Terms(is_persistent=True)
HOUR = timedelta(hours=1)


def told(*topics: str | Event, **more) -> TurnResult:
    made = tuple(Event(one) if isinstance(one, str) else one for one in topics)
    return TurnResult(batch=Batch(made), **more)


def played(*turns: TurnResult, terms: Terms | None = None, outside: Outside | None = None):
    """The step after the last of some turns, its counters, and how many turns there were."""
    terms, counters = terms or Terms(), Counters()
    for turn in turns:
        counters, _ = count(terms, counters, turn)
        step = next_step(terms, counters, turn, outside or Outside())
        counters = after(step, counters)
        if step.next is Next.END:
            break
    return step, counters, counters.turns


@pytest.mark.row("RALPH-08", "RALPH-11", "RALPH-12", "RALPH-13", "RALPH-88", level="pure")
@pytest.mark.parametrize(
    ("terms", "turn", "is_end"),
    [
        pytest.param(Terms(), told("work.done", DONE), True, id="the last event"),
        pytest.param(Terms(), told(DONE, "work.done"), False, id="not the last event"),
        pytest.param(Terms(), told(DONE, role="builder"), False, id="a role completes nothing"),
        pytest.param(Terms(), told(DONE, exit_code=1), False, id="a failed turn completes nothing"),
        pytest.param(Terms(), told(last_line="LOOP_COMPLETE"), True, id="the last line"),
        pytest.param(Terms(), told(last_line="no LOOP_COMPLETE yet"), False, id="within a line"),
        pytest.param(
            Terms(has_roles=True), told(last_line="LOOP_COMPLETE"), False, id="text with roles"
        ),
        pytest.param(
            Terms(), told("a", last_line="LOOP_COMPLETE"), False, id="an event beats the text"
        ),
        pytest.param(Terms(), told(last_line=" LOOP_COMPLETE "), True, id="with space around it"),
        pytest.param(Terms(), told(last_line=" **LOOP_COMPLETE** "), True, id="in bold"),
        pytest.param(Terms(), told(last_line="__LOOP_COMPLETE__"), True, id="in bold by lines"),
        pytest.param(Terms(), told(last_line="_ LOOP_COMPLETE _"), True, id="in italics"),
        pytest.param(Terms(), told(last_line="***LOOP_COMPLETE***"), True, id="in both"),
        pytest.param(Terms(), told(last_line="**LOOP_COMPLETE"), False, id="half of a bold text"),
        pytest.param(Terms(), told(last_line="**not LOOP_COMPLETE**"), False, id="within bold"),
        pytest.param(
            Terms(), told(last_line="> **LOOP_COMPLETE**"), False, id="bold in a quotation"
        ),
        pytest.param(Terms(completion="FERTIG"), told("FERTIG"), True, id="another word"),
        pytest.param(Terms(completion="FERTIG"), told(DONE), False, id="not the word any more"),
    ],
)
def test_completion_is_the_coordinators_last_word(terms, turn, is_end):
    step, _, _ = played(turn, terms=terms)
    assert (step.end is End.COMPLETED) is is_end
    assert (step.next is Next.END) is is_end


@pytest.mark.row("RALPH-11", level="pure")
@pytest.mark.parametrize(
    ("batch", "is_end"),
    [
        pytest.param(Batch((DONE,), dropped=1), False, id="behind it something was not kept"),
        pytest.param(
            Batch((DONE,), malformed=1, malformed_row=1), False, id="behind it unreadable"
        ),
        pytest.param(Batch((DONE,), malformed=1), True, id="before it something unreadable"),
        pytest.param(Batch((DONE,), malformed_row=2), True, id="unreadable in turns before"),
    ],
)
def test_nobody_knows_what_came_last_behind_what_could_not_be_read(batch, is_end):
    step, _, _ = played(TurnResult(batch=batch))
    assert (step.end is End.COMPLETED) is is_end


@pytest.mark.parametrize(
    ("terms", "turn", "outside", "expected"),
    [
        pytest.param(Terms(), told("a"), Outside(), (Next.TURN, None, False), id="goes on"),
        pytest.param(Terms(), told(DONE), Outside(), (Next.END, End.COMPLETED, True), id="done"),
        pytest.param(STAYING, told(DONE), Outside(), (Next.STAY, None, True), id="stays"),
        pytest.param(
            STAYING, told(DONE, has_worked=False), Outside(), (Next.IDLE, None, True), id="idles"
        ),
        pytest.param(
            replace(STAYING, limits=Limits(turns=1)),
            told(DONE),
            Outside(),
            (Next.END, End.TURNS, True),
            id="done at its limit",
        ),
        pytest.param(
            replace(STAYING, limits=Limits(turns=1)),
            told("a"),
            Outside(),
            (Next.END, End.TURNS, False),
            id="its limit alone",
        ),
        pytest.param(
            Terms(Limits(turns=1)),
            told(DONE),
            Outside(unacknowledged=1),
            (Next.END, End.TURNS, False),
            id="refused at its limit",
        ),
        pytest.param(
            replace(STAYING, limits=Limits(turns=1)),
            told(DONE),
            Outside(unacknowledged=1),
            (Next.END, End.TURNS, False),
            id="refused at the limit of one that stays",
        ),
    ],
)
def test_the_work_at_hand_is_done_only_by_a_completion_that_is_accepted(
    terms, turn, outside, expected
):
    step, _, _ = played(turn, terms=terms, outside=outside)
    assert (step.next, step.end, step.completes) == expected


def test_a_refusal_says_all_of_its_reasons_in_one_sentence():
    terms = Terms(required=("review.passed", "docs.done"), is_strict=True)
    step, _, _ = played(told(DONE), terms=terms, outside=Outside(open_tasks=2, unacknowledged=1))
    text = (
        "Completion was not accepted: review.passed and docs.done must be told before; "
        "guidance of a person is not acknowledged yet; 2 tasks are open."
    )
    assert (step.put, step.told) == ((Event(events.RESUME, text),), (text,))


@pytest.mark.row("RALPH-80", "RALPH-89", "C-34", level="pure")
@pytest.mark.parametrize(
    ("terms", "outside", "refusal"),
    [
        pytest.param(Terms(required=("review.passed",)), Outside(), "review.passed", id="required"),
        pytest.param(Terms(), Outside(unacknowledged=1), "guidance", id="guidance"),
        pytest.param(Terms(is_strict=True), Outside(open_tasks=2), "2 tasks", id="strict"),
        pytest.param(Terms(is_strict=True), Outside(open_tasks=None), "could not", id="unknown"),
    ],
)
def test_a_completion_is_refused_with_a_resume_event_that_says_why(terms, outside, refusal):
    step, _, _ = played(told(DONE), terms=terms, outside=outside)
    assert step.next is Next.TURN
    (put,) = step.put
    assert put.topic == events.RESUME
    assert refusal in put.payload


@pytest.mark.row("RALPH-89", level="pure")
def test_required_events_count_from_any_turn_before():
    terms = Terms(required=("review.passed",))
    step, _, _ = played(told("review.passed"), told(DONE), terms=terms)
    assert step.end is End.COMPLETED


@pytest.mark.row("RALPH-66", level="pure")
def test_open_tasks_are_told_and_completion_is_accepted():
    step, _, _ = played(told(DONE), outside=Outside(open_tasks=3))
    assert step.end is End.COMPLETED
    assert "3 open tasks" in step.told[0]


@pytest.mark.parametrize("tasks", [0, None])
def test_without_open_tasks_nothing_is_told_of_them(tasks):
    step, _, _ = played(told(DONE), outside=Outside(open_tasks=tasks))
    assert (step.end, step.told) == (End.COMPLETED, ())


@pytest.mark.row(
    "RALPH-14",
    "RALPH-15",
    "RALPH-16",
    "RALPH-17",
    "RALPH-18",
    "RALPH-20",
    "RALPH-21",
    "RALPH-24",
    "C-35",
    level="pure",
)
@pytest.mark.parametrize(
    ("limits", "counters", "outside", "end", "code"),
    [
        (Limits(turns=3), Counters(turns=3), Outside(), End.TURNS, 2),
        (Limits(), Counters(), Outside(age=4 * HOUR), End.RUNTIME, 2),
        (Limits(cost=Decimal(1)), Counters(cost=Decimal("1.00")), Outside(), End.COST, 2),
        (Limits(), Counters(failures=3), Outside(), End.FAILURES, 1),
        (Limits(), Counters(redispatches=3), Outside(), End.THRASHING, 1),
        (Limits(), Counters(malformed=3), Outside(), End.MALFORMED, 1),
        (Limits(), Counters(same_event=3), Outside(), End.STALE, 1),
        (Limits(), Counters(), Outside(wants_stop=True), End.STOPPED, 1),
        (Limits(), Counters(), Outside(wants_restart=True), End.RESTART, 3),
        (Limits(), Counters(), Outside(has_workspace=False), End.WORKSPACE_GONE, 1),
    ],
)
def test_each_limit_is_reached_at_it_and_not_before(limits, counters, outside, end, code):
    assert list(reached(limits, counters, outside)) == [end]
    assert end.code == code
    less = replace(
        counters,
        turns=max(0, counters.turns - 1),
        cost=max(Decimal(0), counters.cost - Decimal("0.01")),
        failures=max(0, counters.failures - 1),
        redispatches=max(0, counters.redispatches - 1),
        malformed=max(0, counters.malformed - 1),
        same_event=max(0, counters.same_event - 1),
    )
    before = Outside(age=max(timedelta(), outside.age - timedelta(seconds=1)), has_workspace=None)
    assert list(reached(limits, less, before)) == []


@pytest.mark.row("RALPH-25", level="pure")
def test_two_conditions_at_once_give_the_reason_that_comes_first():
    counters = Counters(
        turns=100, cost=Decimal(9), failures=3, redispatches=3, malformed=3, same_event=3
    )
    outside = Outside(5 * HOUR, wants_stop=True, wants_restart=True, has_workspace=False)
    order = list(reached(Limits(cost=Decimal(9)), counters, outside))
    assert order == [
        End.TURNS,
        End.RUNTIME,
        End.COST,
        End.FAILURES,
        End.THRASHING,
        End.MALFORMED,
        End.STALE,
        End.STOPPED,
        End.RESTART,
        End.WORKSPACE_GONE,
    ]
    assert next_step(Terms(Limits(cost=Decimal(9))), counters, told("a"), outside).end is order[0]


@pytest.mark.row("RALPH-14", "RALPH-15", "RALPH-16", "RALPH-17", "C-35", level="pure")
def test_what_holds_where_nobody_chose_limits_and_what_was_counted_before_the_first_turn():
    assert Limits() == Limits(100, 4 * HOUR, None, 3, 3, 3, 3, 3, 3)
    assert Terms() == Terms(Limits(), "LOOP_COMPLETE", "", (), False, False, True, False)
    assert Counters() == Counters(
        0, Decimal(0), True, 0, 0, 0, None, 0, (), frozenset(), 0, frozenset(), 0, False
    )


def test_no_limit_is_none():
    free = Limits(turns=None, runtime=None, cost=None)
    assert not list(reached(free, Counters(turns=10**6, cost=Decimal(10**6)), Outside(1000 * HOUR)))


def test_what_is_completed_in_the_last_turn_is_completed():
    step, _, _ = played(told(DONE), terms=Terms(Limits(turns=1)))
    assert step.end is End.COMPLETED


@pytest.mark.row("RALPH-22", level="pure")
def test_an_interruption_comes_before_a_completion():
    step, _, _ = played(told(DONE), outside=Outside(is_interrupted=True))
    assert step.end is End.INTERRUPTED
    assert step.end.code == 130


@pytest.mark.row("RALPH-17", level="pure")
def test_a_good_turn_sets_the_failures_back():
    codes = (1, 1, 0, 1, 1, 1, 0)
    step, _, had = played(*(told(f"event.{i}", exit_code=code) for i, code in enumerate(codes)))
    assert (step.end, had) == (End.FAILURES, 6)


def test_a_turn_whose_exit_is_unknown_is_no_good_turn():
    _, counters, _ = played(told("a", exit_code=None))
    assert counters.failures == 1


@pytest.mark.row("RALPH-16", level="pure")
def test_the_cost_cap_is_reached_with_the_turn_that_passes_it():
    terms = Terms(Limits(cost=Decimal("1.00")))
    turns = (told(f"e.{i}", cost=Decimal("0.40")) for i in range(9))
    step, counters, had = played(*turns, terms=terms)
    assert (step.end, had, counters.cost) == (End.COST, 3, Decimal("1.20"))


def test_a_cost_that_was_not_told_stays_unknown():
    turns = told("a", cost=Decimal("0.10")), told("b", cost=None), told("c")
    assert played(turns[0])[1].is_cost_whole
    _, counters, _ = played(*turns)
    assert (counters.cost, counters.is_cost_whole) == (Decimal("0.10"), False)


@pytest.mark.row("RALPH-18", "RALPH-19", level="pure")
def test_a_task_blocked_three_times_is_given_up_and_dispatching_it_again_is_thrashing():
    blocked, again = Event("build.blocked", "parser\nwhy"), Event("build.task", "parser")
    terms, counters, announced = Terms(), Counters(), []
    for number in range(3):
        counters, put = count(terms, counters, told(blocked, f"other.{number}"))
        announced.append(put)
    assert announced == [(), (), (Event(events.ABANDONED, "parser"),)]
    for number in range(2):
        counters, put = count(terms, counters, told(again, f"more.{number}"))
        assert put == ()
    assert next_step(terms, counters, told("x"), Outside()).next is Next.TURN
    counters, _ = count(terms, counters, told(again, "end"))
    assert next_step(terms, counters, told("x"), Outside()).end is End.THRASHING


@pytest.mark.row("RALPH-18", "RALPH-19", level="pure")
def test_a_task_is_known_by_the_first_line_of_its_events_by_either_of_their_topics():
    first, second = Event("build.blocked", "\n parser \nwhy"), Event("task.blocked", "parser\n")
    _, counters, _ = played(told(first, second))
    assert counters.blocks == (("parser", 2),)
    counters, put = count(Terms(), counters, told(second, Event("task.start", " parser")))
    assert (put, counters.redispatches) == ((Event(events.ABANDONED, "parser"),), 1)
    assert given_up(Terms(), put[0]) == "“parser” was given up: it was blocked 3 times"
    assert given_up(Terms(), Event(events.ABANDONED)).startswith("“A task without a name” was")


def test_of_many_blocked_tasks_the_oldest_are_forgotten_and_their_names_are_bounded():
    blocked = [Event("build.blocked", f"{number:04d}" + "x" * 300) for number in range(1001)]
    counters, _ = count(Terms(), Counters(), told(*blocked))
    assert len(counters.blocks) == 1000
    assert [key for key, _ in counters.blocks[::999]] == ["0001" + "x" * 196, "1000" + "x" * 196]


def test_another_task_is_not_thrashing():
    blocked = [told(Event("build.blocked", "parser"), f"n.{i}") for i in range(3)]
    others = [told(Event("build.task", f"other {i}")) for i in range(3)]
    step, counters, _ = played(*blocked, *others)
    assert (step.next, counters.redispatches) == (Next.TURN, 0)


@pytest.mark.row("RALPH-24", level="pure")
@pytest.mark.parametrize(
    ("turns", "end"),
    [
        pytest.param([told("a")] * 3, End.STALE, id="three times the same"),
        pytest.param([told("a", "a", "a")], End.STALE, id="in one turn"),
        pytest.param([told("a"), told("a"), told("b"), told("a")], None, id="another between"),
        pytest.param(
            [told(Event("a", str(i))) for i in range(4)],
            None,
            id="another payload is another event",
        ),
    ],
)
def test_the_same_event_three_times_in_a_row_ends_the_loop(turns, end):
    assert played(*turns)[0].end is end


@pytest.mark.row("RALPH-24", level="pure")
def test_a_completion_is_no_repeated_event():
    terms = replace(STAYING, limits=Limits(same_event=1), may_idle=False)
    step, counters, _ = played(*[told(DONE)] * 5, terms=terms)
    assert (step.next, counters.same_event, counters.last_event) == (Next.STAY, 0, None)


@pytest.mark.row("RALPH-24", level="pure")
def test_unreadable_events_are_counted_over_turns():
    counters, _ = count(Terms(), Counters(), TurnResult(batch=Batch(malformed=1, malformed_row=2)))
    assert counters.malformed == 2


@pytest.mark.row("RALPH-27", level="pure")
def test_a_silent_loop_is_recovered_three_times_and_then_ends():
    terms = Terms(has_roles=True)
    first, _, _ = played(told(role="builder"), terms=terms)
    assert first.next is Next.RECOVER
    assert first.put == (Event(events.RESUME, SILENT, to="builder"),)
    step, _, had = played(*[told(role="builder")] * 9, terms=terms)
    assert (step.end, had) == (End.SILENT, 4)
    assert step.end.code == 1


def test_an_event_between_sets_the_recoveries_back():
    turns = [told(), told(), told(), told("a"), told(), told(), told(), told()]
    step, _, had = played(*turns)
    assert (step.end, had) == (End.SILENT, 8)


@pytest.mark.row("RALPH-24", "RALPH-89", level="pure")
def test_a_cancel_event_ends_well_and_asks_for_nothing():
    terms = Terms(cancellation="loop.cancel", required=("review.passed",))
    step, _, _ = played(told("loop.cancel", "more"), terms=terms)
    assert step.end is End.CANCELLED
    assert step.end.code == 0
    assert played(told("more"), terms=terms)[0].next is Next.TURN
    assert played(told("loop.cancel"))[0].next is Next.TURN


@pytest.mark.row("RALPH-59", "RALPH-60", "RALPH-64", level="pure")
def test_a_persistent_loop_stays_after_each_issue():
    step, counters, _ = played(*[told("a", DONE)] * 3, terms=STAYING)
    assert step.next is Next.STAY
    assert step.put == (Event(events.RESUME, STAYS),)
    assert step.told == ("The loop stays: its completion signal was answered with task.resume.",)
    assert counters.completions == 3


@pytest.mark.parametrize(
    ("step", "completions", "recoveries", "has_worked"),
    [
        (Step(Next.TURN), 0, 0, True),
        (Step(Next.RECOVER), 0, 1, True),
        (Step(Next.STAY), 1, 0, False),
        (Step(Next.IDLE), 1, 0, False),
        (Step(Next.END, end=End.COMPLETED), 0, 0, True),
    ],
)
def test_a_recovery_is_counted_and_a_completion_begins_the_next_work(
    step, completions, recoveries, has_worked
):
    found = after(step, Counters(has_worked=True))
    assert found == Counters(completions=completions, recoveries=recoveries, has_worked=has_worked)


@pytest.mark.row("RALPH-63", level="pure")
def test_a_persistent_loop_with_nothing_to_do_idles():
    step, _, _ = played(told(DONE), told(DONE, has_worked=False), terms=STAYING)
    assert step.next is Next.IDLE


@pytest.mark.row("RALPH-70", level="pure")
def test_without_the_mitigation_it_spends_a_turn_each_time():
    terms = replace(STAYING, may_idle=False)
    step, counters, _ = played(*[told(DONE, has_worked=False)] * 5, terms=terms)
    assert (step.next, counters.turns) == (Next.STAY, 5)


@pytest.mark.row("RALPH-61", level="pure")
@pytest.mark.parametrize(
    ("terms", "outside", "end"),
    [
        (replace(STAYING, limits=Limits(turns=1)), Outside(), End.TURNS),
        (STAYING, Outside(age=4 * HOUR), End.RUNTIME),
        (STAYING, Outside(wants_stop=True), End.STOPPED),
        (STAYING, Outside(is_interrupted=True), End.INTERRUPTED),
    ],
)
def test_hard_limits_end_a_persistent_loop(terms, outside, end):
    assert played(told(DONE), terms=terms, outside=outside)[0].end is end


@pytest.mark.row("RALPH-23", level="pure")
def test_only_a_completion_and_a_cancellation_are_no_failure():
    assert {end for end in End if end.code == 0} == {End.COMPLETED, End.CANCELLED}


def test_what_is_left_is_told_from_eighty_percent_on():
    limits = Limits(turns=10, runtime=HOUR, cost=Decimal(5))
    assert nearing(limits, Counters(turns=7, cost=Decimal("3.99")), Outside(HOUR * 0.79)) == {}
    assert nearing(limits, Counters(turns=8, cost=Decimal(4)), Outside(HOUR * 0.8)) == {
        End.TURNS: "2 of 10 turns",
        End.RUNTIME: "12 of 60 minutes",
        End.COST: "1.00 of 5.00 dollars",
    }
    short = Limits(turns=10, runtime=HOUR / 6, cost=Decimal(5))
    beyond = Counters(turns=12, cost=Decimal(6))
    assert nearing(short, beyond, Outside(HOUR)) == {
        End.TURNS: "0 of 10 turns",
        End.RUNTIME: "0 of 10 minutes",
        End.COST: "0.00 of 5.00 dollars",
    }
    near = Outside(HOUR / 6 - timedelta(seconds=59))
    assert nearing(short, Counters(), near) == {End.RUNTIME: "0 of 10 minutes"}
    assert nearing(Limits(None, None, None), Counters(turns=10**6), Outside(1000 * HOUR)) == {}


@pytest.mark.row("RALPH-72", level="pure")
@pytest.mark.parametrize(("code", "seconds"), [(0, 300), (3, 0), (1, 60), (2, 60), (130, 60)])
def test_a_loop_is_started_again_after_a_pause_that_its_code_gives(code, seconds):
    assert pause_before_restart(code) == timedelta(seconds=seconds)


@pytest.mark.row("RALPH-71", level="pure")
def test_a_message_of_a_person_is_not_kept_waiting():
    pause = timedelta(seconds=10)
    assert pause_before_turn(pause, has_message=False) == pause
    assert pause_before_turn(pause, has_message=True) == timedelta()


@pytest.mark.row("RALPH-78", level="pure")
@pytest.mark.parametrize(
    ("seconds", "cost", "words"),
    [
        (
            119,
            Decimal("1.204"),
            "turn 4 after 1 min (builder); 2 tasks open, 5 closed; $1.20 so far",
        ),
        (120, None, "turn 4 after 2 min (builder); 2 tasks open, 5 closed; cost unknown"),
    ],
)
def test_a_check_in_says_where_the_loop_stands(seconds, cost, words):
    assert CheckIn(4, timedelta(seconds=seconds), "builder", 2, 5, cost).words == words


@pytest.mark.row("RALPH-77", level="pure")
@pytest.mark.parametrize(
    ("minutes", "every", "is_due"),
    [(4.99, 5, False), (5, 5, True), (6, 5, True), (60, None, False), (None, 5, False)],
)
def test_a_check_in_is_due_at_its_interval_and_never_without_one(minutes, every, is_due):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    last = None if minutes is None else now - timedelta(minutes=minutes)
    interval = None if every is None else timedelta(minutes=every)
    assert is_check_in_due(now, last, interval) is is_due


@pytest.mark.row("RALPH-26", level="pure")
def test_each_end_is_kept_under_its_name_and_said_in_its_words():
    assert {end.value: end.words for end in End} == {
        "completed": "its loop was completed",
        "cancelled": "its loop was cancelled by its own event",
        "turns": "its loop reached its most turns",
        "runtime": "its loop reached its most time",
        "cost": "its loop reached its most money",
        "failures": "too many turns of its loop failed in a row",
        "thrashing": "tasks that were given up were begun again and again",
        "malformed": "too many events in a row could not be read",
        "stale": "the same event was told again and again",
        "stopped": "its loop was stopped between two turns",
        "restart": "its loop begins anew",
        "workspace_gone": "its worktree is gone",
        "silent": "too many turns in a row told no event",
        "interrupted": "its loop was interrupted by a signal",
        "lost": "its loop ended with its run",
    }

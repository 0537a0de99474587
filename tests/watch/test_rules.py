"""The rule of a watch session, row by row (MALA-W); nothing here waits for real (MALA-W-74)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.core.states import Outcome
from runs.watch import rules as watching
from runs.watch.rules import idle_text, step
from runs.watch.session import (
    VALIDATE_EVERY,
    Do,
    Facts,
    Phase,
    Poll,
    Reason,
    Request,
    Step,
    Terms,
    Validation,
    WrongTerms,
    read_terms,
)
from tests.watch.watch_house import START, House

BATCH = Terms()
WATCH = Terms(is_watching=True, every=VALIDATE_EVERY)


def house(terms: Terms = WATCH, *ready: str, slots: int = 3) -> House:
    made = House(terms, slots)
    made.ready = list(ready)
    return made.tick()


def keys(count: int) -> list[str]:
    return [str(number) for number in range(1, count + 1)]


# Entering, waiting, leaving.


@pytest.mark.row("MALA-W-01", "MALA-W-37", "MALA-W-67", "C-27", level="pure")
def test_without_watching_it_ends_when_nothing_is_ready_and_nothing_active():
    made = house(BATCH, "1", "2")

    assert made.ends("1").phase is Phase.WORKING
    made.ends("2")

    assert (made.phase, made.end, made.validations) == (Phase.ENDED, (0, "queue empty"), [0])


@pytest.mark.row("MALA-W-01", "MALA-W-65", level="pure")
def test_without_watching_an_empty_queue_ends_it_at_once():
    made = house(BATCH)

    assert (made.end, made.validations, made.polls) == ((0, "queue empty"), [], [0])


@pytest.mark.row("MALA-W-02", "MALA-W-76", level="pure")
def test_an_idle_session_asks_every_sixty_seconds():
    made = house().wait(59)
    assert made.polls == [0]

    assert made.wait(1).polls == [0, 60]
    assert made.wait(540).polls == list(range(0, 601, 60))


@pytest.mark.row("MALA-W-04", level="pure")
def test_what_gets_ready_during_the_wait_is_taken_at_the_next_poll():
    made = house().wait(5)
    made.ready = ["7"]

    assert made.wait(54).active == []
    assert made.wait(1).active == ["7"]
    assert made.phase is Phase.WORKING


@pytest.mark.row("MALA-W-05", level="pure")
def test_a_completion_asks_again_at_once_for_what_it_set_free():
    made = house(WATCH, "1").wait(20)
    made.ready.append("2")

    made.ends("1")

    assert (made.active, made.polls) == (["2"], [0, 20])


@pytest.mark.row("MALA-W-06", "MALA-W-07", "MALA-W-11", level="pure")
def test_the_limit_bounds_starting_and_ends_the_session():
    made = house(Terms(is_watching=True, limit=3), *keys(9), slots=2)
    assert made.active == ["1", "2"]

    made.ends("1")
    assert made.active == ["2", "3"]
    asked = len(made.polls)
    made.wait(300).ends("2").ends("3")

    assert made.started == ["1", "2", "3"]
    assert len(made.polls) == asked
    assert (made.end, made.phase) == ((0, "limit reached"), Phase.ENDED)


@pytest.mark.row("MALA-W-08", "MALA-W-19", level="pure")
def test_a_session_with_an_active_run_is_working_and_not_idle():
    made = house(WATCH, "1").wait(300)
    assert (made.phase, made.notices) == (Phase.WORKING, [])

    made.ends("1")

    assert made.phase is Phase.IDLE
    assert [at for at, _ in made.notices] == [300]


@pytest.mark.row("MALA-W-13", level="pure")
def test_a_session_read_back_from_storage_goes_on_where_it_was():
    made = house(WATCH, *keys(4), slots=4).ends(*keys(4)).wait(30)
    stored = made.session

    again = House(WATCH)
    again.session, again.now, again.started = replace(stored), made.now, made.started
    again.wait(29)

    assert (again.polls, again.session.completed, again.session.threshold) == ([], 4, 10)
    assert again.wait(1).polls == [60]


@pytest.mark.parametrize("hours", [8, -8])
def test_a_machine_that_slept_or_whose_clock_was_set_back_asks_once_and_goes_on(hours):
    made = house().wait(10)
    made.now += timedelta(hours=hours)

    made.tick()
    made.tick()

    assert (len(made.polls), made.phase) == (2, Phase.IDLE)


# Idle notices.


@pytest.mark.row("MALA-W-14", "MALA-W-15", level="pure")
def test_one_notice_on_the_way_into_idleness_and_one_every_five_minutes():
    assert [at for at, _ in house().wait(900).notices] == [0, 300, 600, 900]


@pytest.mark.row("MALA-W-19", level="pure")
def test_work_interrupts_idleness_so_the_next_idle_period_is_told_at_once():
    made = house().wait(10)
    made.ready = ["1"]
    made.wait(50).wait(10).ends("1")

    assert [at for at, _ in made.notices] == [0, 70]


@pytest.mark.row("MALA-W-16", "MALA-W-17", "MALA-W-18", "MALA-W-20", level="pure")
@pytest.mark.parametrize(
    ("blocked", "seconds", "text"),
    [
        pytest.param(0, 60, "Idle: no ready issues. Polling in 60s...", id="empty"),
        pytest.param(None, 60, "Idle: no ready issues. Polling in 60s...", id="count unknown"),
        pytest.param(3, 60, "Idle: 3 issues exist but none ready. Polling in 60s...", id="three"),
        pytest.param(0, 30, "Idle: no ready issues. Polling in 30s...", id="another interval"),
        pytest.param(0, 29.2, "Idle: no ready issues. Polling in 30s...", id="rounded up"),
    ],
)
def test_the_words_of_an_idle_notice(blocked, seconds, text):
    assert idle_text(Poll(0, blocked), timedelta(seconds=seconds)) == text


@pytest.mark.row("MALA-W-76", level="pure")
def test_the_blocked_count_is_wanted_only_when_a_notice_is_due():
    made = house()
    due = [
        watching.is_notice_due(made.session, START + timedelta(seconds=s)) for s in (1, 299, 300)
    ]

    assert due == [False, False, True]
    assert watching.is_notice_due(watching.opened(WATCH), START)


# Counting.


@pytest.mark.row("MALA-W-21", "MALA-W-24", "MALA-W-25", level="pure")
def test_success_and_failure_count_once_and_the_count_is_never_set_back():
    made = house(Terms(is_watching=True, every=2), *keys(5), slots=1)
    for key in keys(5):
        made.ends(key, is_success=key != "2")

    assert (made.session.completed, made.session.failed) == (5, 1)
    assert (made.session.threshold, len(made.validations)) == (6, 2)


@pytest.mark.row("MALA-W-27", level="pure")
def test_a_stopped_run_does_not_count_and_gives_its_place_back():
    made = house(Terms(is_watching=True, limit=1), "1", "2", slots=1)

    made.stops("1").wait(60)

    assert (made.session.completed, made.active) == (0, ["2"])


# Periodic validation.


@pytest.mark.row("MALA-W-29", "MALA-W-30", "MALA-W-63", level="pure")
def test_the_tenth_completion_is_validated_and_not_the_ninth():
    made = house(WATCH, *keys(20), slots=1)
    for key in keys(9):
        made.ends(key)
    assert made.validations == []

    made.ends("10")

    assert (len(made.validations), made.session.threshold, made.active) == (1, 20, ["11"])


@pytest.mark.row("MALA-W-31", "MALA-W-32", "MALA-W-33", level="pure")
def test_a_validation_waits_for_the_active_runs_and_nothing_starts_meanwhile():
    made = house(WATCH, *keys(20), slots=3)
    made.session = replace(made.session, completed=9)
    made.is_slow = True

    made.ends("1")
    assert (made.phase, made.active, made.validations) == (Phase.WAITING, ["2", "3"], [])
    made.wait(600).ends("2").ends("3")
    assert (made.phase, made.session.completed, len(made.validations)) == (Phase.VALIDATING, 12, 1)
    asked = len(made.polls)
    made.wait(120)
    assert (len(made.polls), made.active) == (asked, [])
    made.validation_ends()

    assert (made.phase, made.active, made.session.threshold) == (
        Phase.WORKING,
        ["4", "5", "6"],
        20,
    )


@pytest.mark.row("MALA-W-34", "C-26", level="pure")
@pytest.mark.parametrize(
    ("every", "completed", "threshold"),
    [(10, 10, 20), (10, 12, 20), (2, 7, 8), (2, 8, 10), (1, 5, 6), (3, 3, 6)],
)
def test_the_threshold_goes_up_until_it_is_above_the_count(every, completed, threshold):
    session = replace(watching.opened(Terms(is_watching=True, every=every)), completed=completed)

    done = step(session, Facts(START, validation=Validation.PASSED))

    assert (done.session.threshold, done.session.validated) == (threshold, completed)
    assert done.do is Do.POLL


@pytest.mark.row("MALA-W-35", "MALA-W-64", "MALA-W-68", level="pure")
def test_a_failed_validation_ends_the_session_with_one_and_is_not_repeated():
    made = house(Terms(is_watching=True, every=1), *keys(5), slots=1)
    made.validates = lambda number: False

    made.ends("1")

    assert (made.end, made.started, len(made.validations)) == ((1, "validation failed"), ["1"], 1)


@pytest.mark.row("MALA-W-64", "MALA-W-68", level="pure")
@pytest.mark.parametrize("request_", [Request.NONE, Request.DRAIN])
def test_a_validation_that_fails_beside_a_run_waits_for_it_and_is_not_repeated(request_):
    made = house(Terms(is_watching=True, every=1), "1", slots=1)
    made.is_slow = True
    made.ends("1")
    made.active = ["2"]  # another host stored its start in the same moment
    made.validation_ends(passed=False)
    assert (made.phase, made.end) == (Phase.DRAINING, (None, "validation failed"))
    if request_:
        made.ask(request_)
    made.ends("2")
    assert (made.end, len(made.validations)) == ((1, "validation failed"), 1)


@pytest.mark.row("MALA-W-50", level="pure")
def test_an_abort_after_a_failed_validation_interrupts_what_runs_and_is_one():
    made = house(Terms(is_watching=True, every=1), "1", slots=1)
    made.is_slow = True
    made.ends("1")
    made.active = ["2"]
    made.validation_ends(passed=False).ask(Request.ABORT)
    assert made.interrupted == ["2"]
    made.wait(10)
    assert made.killed == ["2"]
    assert made.tick().end == (1, "validation failed")


@pytest.mark.row("MALA-W-37", "C-27", level="pure")
def test_a_batch_of_twenty_five_is_validated_once_at_its_end():
    made = house(BATCH, *keys(25), slots=1)
    for key in keys(25):
        made.ends(key)

    assert (len(made.validations), made.end) == (1, (0, "queue empty"))


@pytest.mark.row("MALA-W-38", level="pure")
def test_a_session_that_ends_before_the_threshold_validates_at_its_end():
    made = house(Terms(is_watching=True, limit=3, every=10), *keys(9)).ends(*keys(3))

    assert (len(made.validations), made.end) == (1, (0, "limit reached"))


# Drain, abort, kill.


@pytest.mark.row("MALA-W-45", "MALA-W-48", "MALA-W-71", "C-13", level="pure")
def test_drain_waits_for_the_active_runs_however_long_then_validates():
    made = house(WATCH, *keys(9), slots=2).ask(Request.DRAIN)
    assert (made.phase, made.active) == (Phase.DRAINING, ["1", "2"])

    made.wait(36_000, every=30).ends("1").ends("2")

    assert (made.end, made.started, len(made.validations)) == ((130, "interrupted"), ["1", "2"], 1)


@pytest.mark.row("MALA-W-46", "MALA-W-53", "MALA-W-65", level="pure")
def test_drain_breaks_an_idle_wait_at_once():
    made = house().wait(1).ask(Request.DRAIN)

    assert (made.end, made.seconds, made.validations) == ((130, "interrupted"), 1, [])


@pytest.mark.row("MALA-W-46", level="pure")
def test_drain_of_an_idle_session_validates_what_was_completed():
    made = house(WATCH, "1").ends("1").wait(1).ask(Request.DRAIN)

    assert (made.end, len(made.validations)) == ((130, "interrupted"), 1)


@pytest.mark.row("MALA-W-47", level="pure")
@pytest.mark.parametrize(
    ("passed", "end"), [(True, (130, "interrupted")), (False, (1, "validation failed"))]
)
@pytest.mark.row("MALA-W-49", level="pure")
def test_drain_during_a_validation_waits_for_its_end(passed, end):
    made = house(Terms(is_watching=True, every=1), "1", "2", slots=1)
    made.is_slow = True
    made.ends("1").ask(Request.DRAIN).wait(100)
    assert made.phase is Phase.VALIDATING

    made.validation_ends(passed)

    assert (made.end, len(made.validations), made.started) == (end, 1, ["1"])


@pytest.mark.row("MALA-W-49", level="pure")
def test_a_final_validation_that_fails_during_a_drain_is_code_one():
    made = house(WATCH, "1")
    made.validates = lambda number: False

    assert made.ask(Request.DRAIN).ends("1").end == (1, "validation failed")


@pytest.mark.row("MALA-W-50", level="pure")
def test_abort_interrupts_the_runs_and_ends_them_after_ten_seconds():
    made = house(WATCH, *keys(2)).ask(Request.DRAIN).wait(1).ask(Request.ABORT)
    assert (made.interrupted[:2], made.killed) == (["1", "2"], [])

    made.wait(9)
    assert made.killed == []
    made.wait(2)

    assert (made.killed, made.end, made.validations) == (["1", "2"], (130, "interrupted"), [])


@pytest.mark.row("MALA-W-50", level="pure")
def test_abort_ends_at_once_when_the_runs_give_way():
    made = house(WATCH, "1").ask(Request.ABORT)
    made.active.clear()

    assert (made.tick().end, made.killed) == ((130, "interrupted"), [])


@pytest.mark.row("MALA-W-51", level="pure")
@pytest.mark.parametrize("with_validation", [False, True])
def test_kill_ends_everything_at_once_and_is_always_130(with_validation):
    made = house(Terms(is_watching=True, every=1), *keys(2), slots=1)
    if with_validation:
        made.is_slow = True
        made.ends("1")

    made.ask(Request.KILL).tick()

    assert made.end == (130, "interrupted")
    assert made.killed == ([] if with_validation else ["1"])


# Failing polls.


@pytest.mark.row("MALA-W-54", "MALA-W-58", "MALA-W-60", level="pure")
def test_a_failed_poll_is_tried_again_after_a_minute_and_tells_no_idleness():
    made = House(WATCH)
    made.is_tracker_down = True
    made.tick().wait(119)
    assert (made.polls, made.session.poll_failures, made.notices) == ([0, 60], 2, [])

    made.is_tracker_down = False
    made.wait(1)
    assert made.session.poll_failures == 0
    made.is_tracker_down = True
    made.wait(120)

    assert (made.session.poll_failures, made.session.code) == (2, None)


@pytest.mark.row("MALA-W-60", level="pure")
def test_an_idle_session_whose_poll_fails_stays_idle_and_tells_nothing_more():
    made = house()
    made.is_tracker_down = True

    made.wait(60)

    assert (made.phase, len(made.notices), made.session.poll_failures) == (Phase.IDLE, 1, 1)


@pytest.mark.row("MALA-W-56", "MALA-W-57", "MALA-W-70", level="pure")
@pytest.mark.parametrize("completed", [0, 1])
def test_the_third_failure_in_a_row_ends_it_with_three_at_once(completed):
    made = house(WATCH, *keys(completed))
    made.is_tracker_down = True
    made.ends(*keys(completed)).wait(180)

    assert made.end == (3, "poll failed")
    assert len(made.validations) == completed


@pytest.mark.row("MALA-W-59", level="pure")
def test_active_runs_may_finish_before_the_exit_for_failed_polls():
    made = house(WATCH, "1")
    made.is_tracker_down = True
    made.wait(600)
    assert (made.phase, made.active, len(made.polls)) == (Phase.DRAINING, ["1"], 4)

    assert made.ends("1").end == (3, "poll failed")


@pytest.mark.row("MALA-W-61", level="pure")
def test_a_failed_validation_on_the_way_out_of_failed_polls_is_code_one():
    made = house(WATCH, "1")
    made.validates = lambda number: False
    made.is_tracker_down = True

    assert made.wait(600).ends("1").end == (1, "validation failed")


# Final validation and codes.


@pytest.mark.row("MALA-W-62", "MALA-W-63", level="pure")
@pytest.mark.parametrize(("count", "validations"), [(12, 2), (10, 1)])
def test_the_final_validation_comes_only_when_something_was_completed_since(count, validations):
    made = house(WATCH, *keys(count), slots=1)
    for key in keys(count):
        made.ends(key)

    made.ask(Request.DRAIN)

    assert (len(made.validations), made.end) == (validations, (130, "interrupted"))


@pytest.mark.row("MALA-W-66", level="pure")
@pytest.mark.parametrize(
    "path", [Reason.QUEUE_EMPTY, Reason.LIMIT_REACHED, Reason.INTERRUPTED, Reason.POLL_FAILED]
)
def test_every_way_out_validates_what_was_completed(path):
    terms = {Reason.QUEUE_EMPTY: BATCH, Reason.LIMIT_REACHED: Terms(is_watching=True, limit=1)}
    made = house(terms.get(path, WATCH), "1")
    made.is_tracker_down = path is Reason.POLL_FAILED
    made.ends("1")
    if path is Reason.INTERRUPTED:
        made.ask(Request.DRAIN)
    made.wait(180)

    assert (len(made.validations), made.session.ending) == (1, path)


@pytest.mark.row("MALA-W-72", "C-44", level="pure")
def test_failed_issues_with_a_passed_validation_are_code_one_with_their_own_reason():
    made = house(BATCH, "1", "2").ends("1").ends("2", is_success=False)

    assert (made.end, len(made.validations)) == ((1, "issues failed"), 1)


@pytest.mark.row("C-51", level="pure")
@pytest.mark.parametrize("terms", [WATCH, BATCH], ids=["watching", "batch"])
def test_a_paused_project_starts_nothing_and_the_session_stays(terms):
    made = House(terms)
    made.ready, made.is_paused = ["1"], True
    made.tick().wait(120)
    assert (made.phase, made.started, made.polls) == (Phase.PAUSED, [], [0, 60, 120])

    made.is_paused = False

    assert made.wait(60).active == ["1"]


@pytest.mark.row("MALA-W-29", "MALA-W-44", "C-27", level="pure")
@pytest.mark.parametrize(
    ("typed", "terms"),
    [
        ((True, None, None), Terms(is_watching=True, every=10)),
        ((True, "", " "), Terms(is_watching=True, every=10)),
        ((True, "3", "2"), Terms(is_watching=True, limit=3, every=2)),
        ((False, None, None), Terms()),
        ((False, None, "5"), Terms(every=5)),
    ],
    ids=["watching", "empty fields", "numbers", "batch", "batch with validations"],
)
def test_what_is_typed_gives_the_terms(typed, terms):
    assert read_terms(*typed) == terms


@pytest.mark.row("MALA-W-40", "MALA-W-41", "MALA-W-43", level="pure")
@pytest.mark.parametrize("typed", ["0", "-1", "x", "1.5", "1e3", "--", "9" * 30])
@pytest.mark.parametrize("field", ["max-issues", "validate-every"])
def test_a_number_below_one_and_what_is_no_number_are_refused_alike(field, typed):
    given = (typed, None) if field == "max-issues" else (None, typed)
    with pytest.raises(WrongTerms) as refused:
        read_terms(True, *given)
    assert (refused.value.field, refused.value.text) == (
        field,
        f"Error: --{field} must be at least 1",
    )


@pytest.mark.row("MALA-W-23", "MALA-W-26", "MALA-W-27", "C-58", level="pure")
@pytest.mark.parametrize(
    ("outcome", "did_start", "counts"),
    [
        (Outcome.SUCCEEDED, True, True),
        (Outcome.NO_CHANGE, True, True),
        (Outcome.OBSOLETE, True, True),
        (Outcome.DIED, True, False),
        (Outcome.TIMED_OUT, True, False),
        (Outcome.REJECTED, True, False),
        (Outcome.LIMIT_REACHED, True, False),
        (Outcome.FAILED, True, False),
        (Outcome.FAILED, False, None),
        (Outcome.STOPPED, True, None),
        (Outcome.INTERRUPTED, True, None),
        (Outcome.INTERRUPTED, False, None),
    ],
)
def test_what_counts_as_the_end_of_an_issue(outcome, did_start, counts):
    assert watching.counts(outcome, did_start) is counts


@pytest.mark.row("MALA-W-72", "MALA-W-23", level="pure")
def test_issues_that_could_not_start_are_no_success():
    session = replace(watching.opened(BATCH), unstarted=1)

    done = step(session, Facts(START, poll=Poll(0)))

    assert (done.session.code, done.session.ending) == (1, Reason.ISSUES_FAILED)


@pytest.mark.row("MALA-W-67", "MALA-W-71", "MALA-W-27", level="pure")
@pytest.mark.parametrize(
    ("counts", "end"),
    [
        ({"stopped": 1}, (130, Reason.INTERRUPTED)),
        ({"stopped": 1, "completed": 2, "validated": 2}, (130, Reason.INTERRUPTED)),
        ({"stopped": 1, "unstarted": 1}, (1, Reason.ISSUES_FAILED)),
        ({"completed": 2, "validated": 2}, (0, Reason.QUEUE_EMPTY)),
    ],
    ids=["the only one", "one of three", "beside one that could not start", "none"],
)
def test_what_a_person_stopped_has_not_passed(counts, end):
    done = step(replace(watching.opened(BATCH), **counts), Facts(START, poll=Poll(0)))

    assert (done.session.code, done.session.ending) == end


@pytest.mark.row("C-51", "C-28", level="pure")
def test_the_switch_s_session_asks_nothing_while_paused_and_tells_no_idleness():
    auto = Terms(is_watching=True, is_auto=True)
    made = House(auto)
    made.is_paused = True
    assert made.tick().wait(200).phase is Phase.PAUSED
    assert made.polls == []

    made.is_paused = False

    assert made.wait(100).phase is Phase.IDLE
    assert (made.polls, made.notices) == ([201, 261], [])


def test_an_ended_session_does_nothing_whatever_is_asked():
    made = house(BATCH)
    ended = made.session

    for request in Request:
        assert step(ended, Facts(START, active=2, request=request)) == Step(ended)


# Any sequence.


class Days:
    """Random days of a session, and what holds after every step of them."""

    def __init__(self, made: House) -> None:
        self.made = made

    def act(self, choice: int) -> None:
        made = self.made
        if choice == 0 and made.active:
            made.ends(made.active[0], is_success=len(made.started) % 3 != 0)
        elif choice == 1 and made.active:
            made.stops(made.active[-1])
        elif choice == 2:
            made.ready.append(str(len(made.ready) + 1))
        elif choice == 3:
            made.is_tracker_down = not made.is_tracker_down
        elif choice == 4 and made.validation is Validation.RUNNING:
            made.validation_ends(len(made.validations) % 4 != 0)
        elif choice == 5:
            made.is_paused = not made.is_paused
        elif choice == 6:
            made.is_slow = not made.is_slow
        elif choice in (7, 8, 9) and made.seconds > 600:
            made.ask(max(made.request, Request(choice - 6)))
        made.wait(30, every=30)

    def check(self) -> None:
        made, terms = self.made, self.made.session.terms
        session = made.session
        if terms.limit is not None:
            assert session.completed + len(made.active) <= terms.limit
        assert len(set(made.started)) == len(made.started)
        assert session.validated <= session.completed
        assert session.failed <= session.completed
        assert (session.phase is Phase.ENDED) == (session.code is not None)
        if session.phase is Phase.ENDED:
            assert not made.active
            assert session.code in (0, 1, 3, 130)
            if session.code == 0:
                assert session.failed == 0
                assert session.validated == session.completed


@settings(max_examples=150, derandomize=True, deadline=None)
@given(
    terms=st.builds(
        Terms,
        is_watching=st.booleans(),
        limit=st.none() | st.integers(1, 6),
        every=st.none() | st.integers(1, 4),
    ),
    choices=st.lists(st.integers(0, 9), max_size=60),
)
def test_on_any_day_the_limit_holds_and_nought_is_never_claimed_for_what_failed(terms, choices):
    days = Days(house(terms, *keys(2), slots=2))
    for choice in choices:
        days.act(choice)
        days.check()

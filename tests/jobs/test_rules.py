"""What is done next with a job: one table for each rule, at its edges and with what is not known."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from runs.jobs.rules import JobFacts, Limits, Next, is_worked_on, next_step, wait_after

pytestmark = pytest.mark.pure

LIMITS = Limits()
FORGIVING = Limits(most_losses=2, forgives_living=True, time_to_leave=timedelta(0))
SOON, LATE = timedelta(seconds=1), LIMITS.stale
FREE = JobFacts(is_owned=False)
OWNED = JobFacts(is_owned=True, owner_alive=True, silence=SOON)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (FREE, False),
        (OWNED, True),
        (replace(OWNED, owner_alive=None), True),
        (replace(OWNED, owner_alive=False), False),
        (replace(OWNED, silence=None), True),
        (replace(OWNED, owner_alive=False, silence=None), False),
        (replace(OWNED, silence=LATE - SOON), True),
        (replace(OWNED, silence=LATE), False),
        (replace(OWNED, owner_alive=None, silence=LATE), False),
        (replace(OWNED, is_worked_on_here=True, silence=LATE), True),
        (replace(OWNED, is_worked_on_here=False), False),
    ],
)
def test_who_is_taken_to_be_at_work(facts: JobFacts, expected: bool) -> None:
    assert is_worked_on(facts, LIMITS) is expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (FREE, Next.ENQUEUE),
        (replace(FREE, is_due=False), Next.LEAVE),
        (replace(FREE, losses=9), Next.ENQUEUE),
        (replace(FREE, troubles=9), Next.ENQUEUE),
        (replace(FREE, time_left=SOON), Next.ENQUEUE),
        (replace(FREE, time_left=timedelta(0)), Next.GIVE_UP),
        (replace(FREE, is_due=False, time_left=-SOON), Next.GIVE_UP),
        (OWNED, Next.LEAVE),
        (replace(OWNED, is_due=False), Next.LEAVE),
        (replace(OWNED, losses=9), Next.LEAVE),
        (replace(OWNED, time_left=SOON), Next.LEAVE),
        (replace(OWNED, time_left=timedelta(0)), Next.GIVE_UP),
        (replace(OWNED, owner_alive=False), Next.RETRY_NOW),
        (replace(OWNED, owner_alive=False, is_due=False), Next.RETRY_NOW),
        (replace(OWNED, owner_alive=False, losses=1), Next.RETRY_NOW),
        (replace(OWNED, owner_alive=False, losses=2), Next.GIVE_UP),
        (replace(OWNED, silence=LATE), Next.RETRY_LATER),
        (replace(OWNED, silence=LATE, owner_alive=None), Next.RETRY_LATER),
        (replace(OWNED, silence=LATE, losses=2), Next.GIVE_UP),
    ],
)
def test_the_next_step(facts: JobFacts, expected: Next) -> None:
    assert next_step(facts, LIMITS) is expected


@pytest.mark.parametrize(("most", "expected"), [(1, Next.GIVE_UP), (2, Next.RETRY_NOW)])
def test_a_job_has_no_losses_unless_they_are_told(most: int, expected: Next) -> None:
    facts = replace(OWNED, owner_alive=False)
    assert next_step(facts, Limits(most_losses=most)) is expected


@pytest.mark.parametrize(("most", "expected"), [(0, Next.GIVE_UP), (1, Next.ENQUEUE)])
def test_a_job_has_no_troubles_unless_they_are_told(most: int, expected: Next) -> None:
    assert next_step(FREE, Limits(most_troubles=most)) is expected


def test_how_patient_a_kind_is_that_says_nothing() -> None:
    assert LIMITS.stale == timedelta(minutes=10)
    assert LIMITS.time_to_leave == timedelta(seconds=30)


@pytest.mark.parametrize(("troubles", "expected"), [(4, Next.ENQUEUE), (5, Next.GIVE_UP)])
def test_troubles_end_a_job_whose_kind_says_so(troubles: int, expected: Next) -> None:
    facts = replace(FREE, troubles=troubles)
    assert next_step(facts, Limits(most_troubles=5)) is expected
    assert next_step(replace(OWNED, troubles=troubles), Limits(most_troubles=5)) is Next.LEAVE


@pytest.mark.parametrize(
    ("alive", "losses", "expected"),
    [
        (True, 0, Next.RETRY_NOW),
        (True, 9, Next.RETRY_NOW),
        (None, 0, Next.RETRY_NOW),
        (None, 1, Next.GIVE_UP),
        (False, 0, Next.RETRY_NOW),
        (False, 1, Next.GIVE_UP),
    ],
)
def test_a_kind_that_forgives_is_never_given_up_for_an_owner_that_lives(
    alive: bool | None, losses: int, expected: Next
) -> None:
    facts = replace(OWNED, owner_alive=alive, silence=LATE, losses=losses)
    assert next_step(facts, FORGIVING) is expected


@pytest.mark.parametrize(
    ("troubles", "seconds"), [(0, 30), (1, 30), (2, 60), (5, 480), (6, 600), (99, 600)]
)
def test_each_trouble_in_a_row_waits_twice_as_long_up_to_a_limit(
    troubles: int, seconds: int
) -> None:
    assert wait_after(troubles, LIMITS) == timedelta(seconds=seconds)


@pytest.mark.parametrize(("troubles", "times"), [(10, 512), (11, 1024), (12, 1024), (10**9, 1024)])
def test_a_wait_without_a_limit_stops_to_double(troubles: int, times: int) -> None:
    limits = Limits(again_after=timedelta(seconds=1), longest_wait=timedelta(days=365))
    assert wait_after(troubles, limits) == timedelta(seconds=times)

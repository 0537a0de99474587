"""Watch sessions in the tick: rows, polls, counters, starts and ends, on fakes (MALA-W)."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection

from runs import tick
from runs.core.states import Outcome, RunKind
from runs.dispatch import start_requests
from runs.lifecycle import outcomes, stop
from runs.models import Notice, Project, Run, Settings, WatchSession
from runs.notices import addresses, deliveries
from runs.notices import rules as delivering
from runs.watch import acts as watches
from runs.watch.session import Phase, Request, Terms
from tests import make
from tests.fakes import START, World
from tests.patience import PATIENCE
from tests.watch.watch_day import BATCH, WATCH, Day
from tests.world.stories import post_notices
from trackers.base import NotUnderstood, Refused, Unreachable

pytestmark = pytest.mark.django_db(transaction=True)


# Entering, waiting, leaving.


@pytest.mark.row("MALA-W-01", "MALA-W-37", "MALA-W-67", "C-27", level="contract")
def test_a_session_that_does_not_watch_ends_when_all_is_done(world: World) -> None:
    day = Day(world, "1", "2").opens(BATCH)
    assert (day.active, day.session.every) == (["1", "2"], None)
    day.ends("1")
    assert day.session.is_open
    day.ends("2")
    session = day.session
    assert (session.phase, day.end, session.completed) == ("ended", (0, "queue empty"), 2)
    assert session.ended_at == world.clock.now
    assert "ended: queue empty (exit code 0); 2 completed" in day.told("watch.ended")[0]
    assert world.bell.looks[0] == "demo"


@pytest.mark.any_database
@pytest.mark.row("MALA-W-02", "MALA-W-03", "MALA-W-76", "MALA-W-74", level="contract")
@pytest.mark.row("C-06", "C-30", level="contract")
def test_an_idle_session_asks_once_a_minute_and_never_in_between(world: World) -> None:
    day = Day(world).opens()
    assert (day.polls, day.session.phase) == (1, "idle")
    assert (day.session.next_poll_at - world.clock.now).total_seconds() == 60
    assert day.wait_with_all_ticks(59).polls == 1
    assert day.wait_with_all_ticks(1).polls == 2
    day.wait_with_all_ticks(5 * 60 - 1)
    asked = world.tracker.calls
    assert (asked["queues"], asked["open_count"]) == (6, 2)
    assert set(asked) == {"queues", "open_count"}


@pytest.mark.row("MALA-W-04", level="contract")
def test_what_gets_ready_during_the_wait_is_taken_at_the_next_poll(world: World) -> None:
    day = Day(world).opens().wait(5)
    day.ready("7")
    assert day.wait(54).active == []
    assert day.wait(1).active == ["7"]
    assert day.session.phase == "working"


@pytest.mark.row("MALA-W-05", level="contract")
def test_an_issue_that_another_set_free_is_taken_without_waiting(world: World) -> None:
    day = Day(world, "1")
    day.ready("2", body="## Blocked by\n- #1")
    day.opens().wait(10)
    assert day.active == ["1"]
    world.tracker.close("demo", "1")
    assert day.ends("1").active == ["2"]


@pytest.mark.row("MALA-W-06", "MALA-W-07", "MALA-W-11", level="contract")
def test_the_limit_bounds_the_starts_and_ends_the_session(world: World) -> None:
    day = Day(world, *"12345", parallel=2).opens(Terms(is_watching=True, limit=3))
    assert day.active == ["1", "2"]
    day.ends("1")
    assert day.active == ["2", "3"]
    asked = day.polls
    day.wait(130, every=10).ends("2").wait(70, every=10).ends("3").wait(70, every=10)
    assert (day.started, day.polls) == (["1", "2", "3"], asked)
    assert day.end == (0, "limit reached")


@pytest.mark.row("MALA-W-08", "C-59", level="contract")
def test_only_runs_of_the_session_keep_it_from_being_idle(world: World) -> None:
    day = Day(world, "1")
    world.live(make.a_run(day.project, "90", slot=5))
    day.opens().wait(10)
    assert (day.session.phase, day.told("watch.idle")) == ("working", [])
    day.ends("1")
    assert (day.session.phase, len(day.told("watch.idle"))) == ("idle", 1)
    assert day.active == ["90"]


@pytest.mark.row("MALA-W-09", level="contract")
def test_runs_with_and_without_a_session_have_the_same_record(world: World) -> None:
    day = Day(world, "1").opens(BATCH).ends("1")
    day.ready("2")
    start_requests.request(day.lab, day.project, "anna", "2")
    tick.tick(day.lab, project="demo")
    day.tick().ends("2").wait(31, every=31)
    one, other = Run.objects.order_by("pk")
    same = ("outcome", "reason", "state", "slot", "agent", "commits", "worktree_fate", "warning")
    assert [getattr(one, name) for name in same] == [getattr(other, name) for name in same]
    assert re.sub(r"\d", "", one.prompt) == re.sub(r"\d", "", other.prompt)
    assert (one.watch_id is not None, other.watch_id) == (True, None)


@pytest.mark.row("MALA-W-10", level="contract")
@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.DIED, Outcome.STOPPED])
def test_what_was_worked_on_is_not_taken_again_although_its_branch_is_gone(
    world: World, outcome: Outcome
) -> None:
    day = Day(world, "1").opens().ends("1", outcome=outcome)
    world.repos.heads.clear()
    day.wait(130, every=10)
    assert day.started == ["1"]
    shutil.rmtree(Run.objects.get().worktree, ignore_errors=True)  # it would claim its issue too
    world.repos.trees.clear()
    watches.drain(day.lab, day.session, "anna")
    day.tick().opens()
    assert day.started == ["1", "1"]


@pytest.mark.postgres
@pytest.mark.row("MALA-W-12", level="contract")
def test_one_open_session_a_project_however_many_ask_at_once(world: World) -> None:
    day = Day(world)
    go, answers = threading.Barrier(5), []

    def one() -> None:
        go.wait()
        try:
            answers.append(watches.open(day.lab, day.project, WATCH, "anna").pk)
        except watches.AlreadyOpen as error:
            answers.append(-error.session.pk)
        connection.close()

    threads = [threading.Thread(target=one) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    session = WatchSession.objects.get()
    assert sorted(answers) == [-session.pk] * 4 + [session.pk]
    with pytest.raises(IntegrityError):
        WatchSession.objects.create(project=day.project, opened_at=START)


@pytest.mark.parametrize("fields", [{"state": "cloning"}, {"tracker": ""}], ids=str)
def test_a_project_that_cannot_be_driven_gets_no_session(
    world: World, fields: dict[str, str]
) -> None:
    with pytest.raises(watches.WatchRefused):
        watches.open(world.lab, make.a_project(**fields), WATCH, "anna")
    assert WatchSession.objects.count() == 0


@pytest.mark.row("MALA-W-13", level="contract")
def test_a_worker_that_starts_anew_goes_on_with_counters_and_times(world: World) -> None:
    day = Day(world, *"1234", parallel=4).opens().ends(*"1234").wait(30)
    asked = day.polls
    world.lab = day.lab = replace(world.lab, process="boot:2:2")
    world.dead_processes.add("boot:1:1")
    day.wait(29)
    session = day.session
    assert (session.completed, session.threshold, session.phase, day.polls) == (
        4,
        10,
        "idle",
        asked,
    )
    assert day.wait(1).polls == asked + 1


# Idle notices.


@pytest.mark.row("MALA-W-14", "MALA-W-15", "MALA-W-16", level="contract")
def test_idleness_is_told_at_once_and_then_every_five_minutes(world: World) -> None:
    day = Day(world).opens().wait(900, every=2)
    assert day.told_at("watch.idle") == [0, 300, 600, 900]
    assert set(day.told("watch.idle")) == {"Idle: no ready issues. Polling in 60s..."}


@pytest.mark.row("MALA-W-17", "MALA-W-20", level="contract")
def test_blocked_issues_are_counted_in_the_notice(world: World) -> None:
    day = Day(world)
    Settings.objects.update(watch_seconds=30)
    for key in "123":
        world.tracker.add_issue("demo", "not ready", key)
    day.opens()
    assert day.told("watch.idle") == ["Idle: 3 issues exist but none ready. Polling in 30s..."]


@pytest.mark.row("MALA-W-18", level="contract")
def test_a_count_that_is_not_known_is_left_out(world: World) -> None:
    day = Day(world)

    class Uncounted:
        def open_count(self, root: str) -> int:
            raise Refused("no counting here")

        def __getattr__(self, name: str) -> Any:
            return getattr(world.tracker, name)

    day.lab = replace(world.lab, tracker_for={"memory": Uncounted()}.get)
    day.opens()
    assert day.told("watch.idle") == ["Idle: no ready issues. Polling in 60s..."]
    assert day.report.errors == []


@pytest.mark.row("MALA-W-19", level="contract")
def test_work_interrupts_idleness(world: World) -> None:
    day = Day(world).opens().wait(10)
    day.ready("1")
    day.wait(60).ends("1")
    assert day.told_at("watch.idle") == [0, 70]


# Counting.


@pytest.mark.row("MALA-W-21", "MALA-W-24", "C-58", level="contract")
def test_an_issue_counts_once_whether_it_succeeded_or_failed(world: World) -> None:
    day = Day(world, "1", "2").opens(Terms(is_watching=True, every=2))
    run = Run.objects.get(issue_key="1")
    day.ends("1").ends("2", outcome=Outcome.TIMED_OUT)
    assert not outcomes.record(day.lab, run, Outcome.DIED, "again")
    session = day.session
    assert (session.completed, session.failed, session.validated, session.threshold) == (2, 1, 2, 4)


@pytest.mark.row("MALA-W-26", level="contract")
@pytest.mark.parametrize(
    ("outcome", "counts"),
    [
        (Outcome.SUCCEEDED, (1, 0)),
        (Outcome.NO_CHANGE, (1, 0)),
        (Outcome.OBSOLETE, (1, 0)),
        (Outcome.DIED, (1, 1)),
        (Outcome.TIMED_OUT, (1, 1)),
        (Outcome.REJECTED, (1, 1)),
        (Outcome.LIMIT_REACHED, (1, 1)),
        (Outcome.FAILED, (1, 1)),
        (Outcome.INTERRUPTED, (0, 0)),
        (Outcome.STOPPED, (0, 0)),
    ],
)
def test_which_outcomes_count_and_how(
    world: World, outcome: Outcome, counts: tuple[int, int]
) -> None:
    day = Day(world, "1").opens().ends("1", outcome=outcome)
    assert (day.session.completed, day.session.failed) == counts


@pytest.mark.row("MALA-W-23", "MALA-W-72", level="contract")
def test_an_agent_that_cannot_start_is_no_completion_and_no_success(world: World) -> None:
    day = Day(world, "1", "2")
    world.sessions.broken_start = "no such program"
    day.opens(BATCH)
    world.sessions.broken_start = ""
    day.wait(130, every=10)
    session = day.session
    assert (session.completed, session.failed, session.unstarted) == (0, 0, 2)
    assert day.started == ["1", "2"]
    assert day.end == (1, "issues failed")
    assert "2 could not start" in day.told("watch.failed")[0]


@pytest.mark.row("C-12", level="contract")
def test_failed_runs_and_failed_polls_are_counted_apart(world: World) -> None:
    day = Day(world, "1").opens().ends("1", outcome=Outcome.DIED)
    day.project.refresh_from_db()
    assert (day.project.streak, day.session.poll_failures) == (1, 0)
    day.fails().wait(120, every=10)
    day.project.refresh_from_db()
    assert (day.project.streak, day.session.poll_failures) == (1, 2)


@pytest.mark.row("MALA-W-25", level="contract")
def test_the_counter_goes_on_over_validations(world: World) -> None:
    day = Day(world, *"12345", parallel=1).opens(Terms(is_watching=True, every=2))
    for key in "12345":
        day.ends(key)
    session = day.session
    assert (session.completed, session.validated, session.threshold) == (5, 4, 6)


@pytest.mark.row("MALA-W-27", level="contract")
def test_a_stopped_run_does_not_count(world: World) -> None:
    day = Day(world, "1", "2", parallel=1).opens(Terms(is_watching=True, limit=1))
    assert stop.stop(day.lab, Run.objects.get(), "anna")
    day.wait(60, every=10)
    assert (day.session.completed, day.active) == (0, ["2"])


@pytest.mark.row("MALA-W-28", level="contract")
def test_a_lost_claim_is_nothing_and_its_issue_may_be_taken_again(world: World) -> None:
    day = Day(world, "1")
    repo = day.project.repo(world.lab.paths)

    class Quick:
        """Somebody else makes the branch between the look and the claim."""

        def add_worktree(self, *given: Any) -> None:
            world.repos.heads.setdefault(repo, {})["afk/1"] = "e" * 40
            world.repos.add_worktree(*given)

        def __getattr__(self, name: str) -> Any:
            return getattr(world.repos, name)

    day.lab = replace(world.lab, repos=Quick())
    day.opens()
    session = day.session
    assert (session.completed, session.failed, session.unstarted) == (0, 0, 0)
    assert session.is_open
    day.lab = world.lab
    world.repos.heads.clear()
    day.wait(130, every=10)
    assert day.active == ["1"]


@pytest.mark.long
def test_twenty_runs_that_end_at_once_are_counted_one_by_one(world: World) -> None:
    day = Day(world).opens()
    runs = [
        make.a_run(day.project, str(n), slot=n, watch=day.session, kind=RunKind.AUTO)
        for n in range(1, 21)
    ]
    go = threading.Barrier(20)

    def one(run: Run) -> None:
        go.wait()
        outcomes.record(day.lab, run, Outcome.DIED, "because")
        connection.close()

    threads = [threading.Thread(target=one, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert (day.session.completed, day.session.failed) == (20, 20)


# Failing polls.


@pytest.mark.row("MALA-W-54", "MALA-W-55", "MALA-W-58", "MALA-W-60", level="contract")
@pytest.mark.parametrize(
    "error",
    [
        Unreachable("It exited with 1."),
        NotUnderstood("It is not JSON."),
        Refused("bd is not there."),
        Unreachable("No answer in 10 s."),
    ],
    ids=["exit 1", "not json", "missing", "hang"],
)
def test_a_failed_poll_is_told_and_tried_again_in_a_minute(world: World, error: Any) -> None:
    day = Day(world).fails(error).opens().wait(119)
    assert (day.polls, day.session.poll_failures, day.told("watch.idle")) == (2, 2, [])
    assert len(day.told("watch.poll_failed")) == 2
    world.tracker.heal()
    assert day.wait(1).session.poll_failures == 0
    day.fails(error).wait(120)
    assert (day.session.poll_failures, day.session.is_open) == (2, True)


@pytest.mark.every_case
@pytest.mark.row("MALA-W-56", "MALA-W-57", "MALA-W-70", level="contract")
@pytest.mark.parametrize("completed", ["", "1"])
def test_the_third_failure_in_a_row_ends_it_with_three(world: World, completed: str) -> None:
    day = Day(world, *completed).opens().ends(*completed)
    before, asked = day.seconds, day.polls
    day.fails().wait(200, every=5).wait(600, every=60)
    session = day.session
    assert day.end == (3, "poll failed")
    assert (session.ended_at - day.began).total_seconds() == before + 180
    assert day.polls == asked + 3
    assert session.validated == len(completed)


@pytest.mark.row("MALA-W-59", level="contract")
def test_active_runs_finish_before_the_exit_for_failed_polls(world: World) -> None:
    day = Day(world, "1").opens().fails().wait(240, every=5)
    assert (day.session.phase, day.active) == ("draining", ["1"])
    assert day.ends("1").end == (3, "poll failed")


# Drain.


@pytest.mark.row("MALA-W-45", "MALA-W-48", "MALA-W-71", "C-13", level="contract")
def test_drain_starts_nothing_more_and_waits_for_what_runs(world: World) -> None:
    day = Day(world, *"123", parallel=2).opens()
    assert watches.drain(day.lab, day.session, "anna")
    assert not watches.drain(day.lab, day.session, "ben")
    asked = day.polls
    day.wait(120, every=20)
    assert (day.session.phase, day.active, day.polls) == ("draining", ["1", "2"], asked)
    day.ends("1").ends("2")
    assert (day.end, day.session.validated, day.started) == ((130, "interrupted"), 2, ["1", "2"])
    assert day.session.asked_by == "anna"


@pytest.mark.row("MALA-W-46", "MALA-W-53", "MALA-W-65", level="contract")
def test_drain_breaks_an_idle_wait_at_once(world: World) -> None:
    day = Day(world).opens().wait(1)
    watches.drain(day.lab, day.session, "anna")
    assert world.bell.looks[-1] == "demo"
    assert (day.tick().end, day.seconds) == ((130, "interrupted"), 1)


@pytest.mark.row("MALA-W-48", "MALA-W-11", level="contract")
def test_a_drain_while_the_tracker_thinks_starts_nothing(world: World) -> None:
    day = Day(world, "1")

    class Slow:
        def queues(self, labels: Mapping[str, str]) -> Any:
            watches.drain(world.lab, day.session, "anna")
            return world.tracker.queues(labels)

        def __getattr__(self, name: str) -> Any:
            return getattr(world.tracker, name)

    day.lab = replace(world.lab, tracker_for={"memory": Slow()}.get)
    assert day.opens().started == []
    assert day.tick().end == (130, "interrupted")


class Meanwhile:
    """Somebody acts after the queue was asked and before anything is stored."""

    def __init__(self, world: World, act: Any) -> None:
        self._world, self._act = world, act

    def check(self, *given: Any, **more: Any) -> Any:
        self._act()
        return self._world.login.check(*given, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.login, name)


@pytest.mark.row("MALA-W-48", level="contract")
def test_a_drain_just_before_a_run_is_stored_is_honoured(world: World) -> None:
    day = Day(world, "1")
    day.project.agent.login_command = ["agent", "status"]
    day.project.agent.save()
    act = Meanwhile(world, lambda: watches.drain(world.lab, day.session, "anna"))
    day.lab = replace(world.lab, login=act)
    assert day.opens().started == []
    assert day.tick().end == (130, "interrupted")


@pytest.mark.row("MALA-W-07", level="contract")
def test_the_limit_holds_although_another_host_started_a_run_meanwhile(world: World) -> None:
    day = Day(world, "1")
    day.project.agent.login_command = ["agent", "status"]
    day.project.agent.save()

    def elsewhere() -> None:
        if not Run.objects.exists():
            make.a_run(day.project, "8", slot=8, watch=day.session, kind=RunKind.AUTO)

    day.lab = replace(world.lab, login=Meanwhile(world, elsewhere))
    day.opens(Terms(is_watching=True, limit=1))
    assert day.started == ["8"]


@pytest.mark.row("MALA-W-31", level="contract")
def test_no_run_is_stored_beside_a_validation_that_another_host_began(world: World) -> None:
    day = Day(world, "1")
    day.project.agent.login_command = ["agent", "status"]
    day.project.agent.save()
    begun = {"validation": "running", "phase": "validating"}
    day.lab = replace(
        world.lab, login=Meanwhile(world, lambda: WatchSession.objects.update(**begun))
    )
    assert day.opens().started == []


@pytest.mark.row("C-51", level="contract")
def test_a_paused_project_starts_nothing_until_reset(world: World) -> None:
    from runs.watch import switch as auto

    day = Day(world, "1", streak=3).opens().wait(120)
    assert (day.session.phase, day.started, day.polls) == ("paused", [], 3)
    assert Project.objects.get().claimable == 1
    auto.reset(day.lab, day.project, by="anna")
    assert day.tick().active == ["1"]


@pytest.mark.row("C-48", level="contract")
def test_two_projects_know_nothing_of_each_other(world: World) -> None:
    day = Day(world, "1").opens()
    other = make.a_project("other", agent=make.an_agent("second"))
    world.tracker.add_root("other")
    world.tracker.add_issue("other", "One", "1", labels=["ready-for-agent"])
    watches.drain(day.lab, day.session, "anna")
    watches.open(day.lab, other, WATCH, "ben")
    day.tick()
    phases = dict(WatchSession.objects.values_list("project__name", "phase"))
    assert phases == {"demo": "draining", "other": "working"}
    assert Run.objects.active().filter(project=other).count() == 1


@pytest.mark.postgres
def test_ended_is_told_apart_by_the_database(world: World) -> None:
    day = Day(world).opens()
    rows = WatchSession.objects.filter(pk=day.session.pk)
    for nonsense in (
        {"code": 0},
        {"phase": Phase.ENDED},
        {"ended_at": START},
        {"failed": 1},
        {"validated": 1},
        {"limit": 0},
        {"request": 9},
    ):
        with pytest.raises(IntegrityError):
            rows.update(**nonsense)


@pytest.mark.row("MALA-W-01", "MALA-W-23", level="contract")
def test_a_batch_whose_agent_is_logged_out_waits_and_says_why(world: World) -> None:
    day = Day(world, "1")
    day.project.agent.login_command = ["agent", "status"]
    day.project.agent.save()
    world.login.answer = False
    day.opens(BATCH).wait(180, every=10)
    assert (day.session.phase, day.started) == ("working", [])
    assert day.session.held == "Test agent is not logged in."
    version = day.session.version
    day.wait(50, every=10)
    assert day.session.version <= version + 2  # the same reason is not stored again and again
    world.login.answer = True
    assert day.wait(70, every=10).active == ["1"]
    assert day.session.held == ""
    assert day.ends("1").end == (0, "queue empty")


@pytest.mark.row("MALA-W-01", level="contract")
def test_a_batch_ends_although_somebody_whom_nobody_trusts_marked_an_issue(world: World) -> None:
    day = Day(world, "1", trusted="anna").opens(BATCH)
    assert (day.started, day.end) == ([], (0, "queue empty"))


@pytest.mark.row("MALA-W-72", "C-14", level="contract")
def test_a_session_that_failed_is_told_outside_with_the_way_to_it(
    world: World, operator: User
) -> None:
    Settings.current()
    Settings.objects.update(public_address="https://lab.example")
    url = "json://127.0.0.1:1/token77"
    addresses.add(world.lab, operator, "phone", url, list(delivering.AT_FIRST))
    day = Day(world, "1").opens(BATCH)
    day.ends("1", outcome=Outcome.DIED)
    failed = day.session.pk
    day.opens(WATCH).asks(Request.DRAIN)
    assert day.end == (130, "interrupted")
    post_notices(day.lab)
    while world.queue.deliveries:
        deliveries.drain(day.lab, world.queue.deliveries.pop(0))
    told = [(title, text) for _, title, text in world.notifier.told]
    assert [title for title, _ in told] == ["demo: a watch session failed"]
    assert f"watch session {failed} ended: issues failed (exit code 1)" in told[0][1]
    assert told[0][1].endswith(f"https://lab.example/projects/{day.project.pk}/watch/{failed}/")


@pytest.mark.row("C-51", level="contract")
def test_the_pause_that_its_run_brought_about_is_told_of_the_session(world: World) -> None:
    day = Day(world, "1", streak=2).opens()
    day.ends("1", outcome=Outcome.DIED)
    told = Notice.objects.get(kind="auto.paused")
    assert told.watch_id == day.session.pk

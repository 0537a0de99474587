"""Automatic work in the tick: the switch, the pause, Reset, caps and trouble, on fakes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from runs import tick
from runs.core.ports import SeamError
from runs.core.states import Outcome, RunKind, RunState
from runs.dispatch import explain, start_requests, why
from runs.dispatch import rules as launching
from runs.dispatch.eligibility import Candidate, Queue, Room, Want, Why
from runs.dispatch.rules import Waiting
from runs.lifecycle import launch, outcomes, stop
from runs.models import Due, Notice, Project, Run, Settings, StartRequest, StartWait
from runs.watch import switch as auto
from tests import make
from tests.fakes import START, World
from tests.patience import PATIENCE
from trackers import registry
from trackers.base import Unreachable
from trackers.builtin import store

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(world: World) -> Project:
    Settings.current()
    return a_project(world)


def a_project(world: World, name: str = "demo", keys: str = "789", **fields: Any) -> Project:
    """A project with an agent and ready issues; the switch is on."""
    agent = make.an_agent(f"Agent of {name}", login_command=["agent", "status"])
    made = make.a_project(name, **{"is_auto": True, "agent": agent, **fields})
    world.tracker.add_root(name)
    for key in keys:
        world.tracker.add_issue(name, f"Issue {key}", key, labels=[made.ready_label])
    return made


def sweep(world: World) -> tick.Report:
    """The next launch pass by its own clock; no more than is due then."""
    world.clock.forward(seconds=46)
    return tick.tick(world.lab)


def carry_out(world: World) -> None:
    while world.queue.launches:
        launch.carry_out(world.lab, world.queue.launches.pop(0))


def explained(world: World, project: Project) -> Mapping[str, Waiting]:
    """Why each ready issue is not running, by its key."""
    project.refresh_from_db()
    return {one.issue.key: one for one in explain.explain(world.lab, project)[1]}


def started() -> list[tuple[str, str]]:
    return list(Run.objects.order_by("pk").values_list("issue_key", "kind"))


def fail(world: World, run: Run, outcome: Outcome = Outcome.DIED) -> None:
    assert outcomes.record(world.lab, run, outcome, "because")
    world.sessions.all.pop(run.session, None)


def test_ready_issues_start_one_after_the_other_without_a_click(
    world: World, project: Project
) -> None:
    sweep(world)
    carry_out(world)
    assert started() == [("7", "auto")]
    run = Run.objects.get()
    assert run.session == "demo~1~afk-auto-7"
    for _ in range(3):
        assert sweep(world).errors == []
    assert started() == [("7", "auto")]
    world.tracker.add_pull("demo", "afk/7", created_at=world.clock.now)
    sweep(world)
    carry_out(world)
    assert started() == [("7", "auto"), ("8", "auto")]


@pytest.mark.row("LAB-79", level="contract")
def test_the_switch_is_off_at_first_and_stays_where_it_was_put(world: World) -> None:
    made = make.a_project()
    assert made.is_auto is False
    assert auto.switch(world.lab, made, is_on=True, by="anna")
    assert not auto.switch(world.lab, made, is_on=True, by="ben")
    assert Project.objects.get().is_auto is True
    told = Notice.objects.filter(kind="auto.changed").values_list("text", "by")
    assert list(told) == [("automatic work was turned on", "anna")]


@pytest.mark.row("LAB-80", level="contract")
def test_turning_it_on_starts_work_before_the_next_sweep_is_due(world: World) -> None:
    made = a_project(world, is_auto=False)
    sweep(world)
    assert world.bell.looks == []
    auto.switch(world.lab, made, is_on=True, by="anna")
    assert world.bell.looks == ["demo"]
    tick.tick(world.lab, project="demo")
    assert started() == [("7", "auto")]


@pytest.mark.row("LAB-81", level="contract")
def test_the_launch_pass_has_its_own_cadence(world: World, project: Project) -> None:
    Settings.objects.update(launch_seconds=60, tick_seconds=20)
    tick.tick(world.lab)
    now = world.clock.now
    due = dict(Due.objects.values_list("activity", "next_at"))
    assert (due["fill"] - now).total_seconds() == 60
    assert (due["look"] - now).total_seconds() == 20
    asked = world.tracker.calls["queues"]
    for _ in range(2):
        world.clock.forward(seconds=20)
        tick.tick(world.lab)
    assert world.tracker.calls["queues"] == asked
    world.clock.forward(seconds=20)
    tick.tick(world.lab)
    assert world.tracker.calls["queues"] == asked + 1


@pytest.mark.row("LAB-83", "LAB-67", "C-18", level="contract")
def test_a_manual_run_neither_blocks_the_automatic_one_nor_counts_as_it(
    world: World, project: Project
) -> None:
    start_requests.request(world.lab, project, "anna", "7")
    tick.tick(world.lab, project="demo")
    carry_out(world)
    sweep(world)
    carry_out(world)
    assert started() == [("7", "manual"), ("8", "auto")]
    sweep(world)
    assert Run.objects.count() == 2
    start_requests.request(world.lab, project, "anna")
    tick.tick(world.lab, project="demo")
    assert started()[2] == ("9", "manual")
    Project.objects.update(parallel_runs=2)
    world.tracker.add_issue("demo", "Issue 10", "10", labels=[project.ready_label])
    sweep(world)
    assert started()[3:] == [("10", "auto")]


@pytest.mark.row("LAB-84", level="contract")
def test_a_switch_that_is_turned_off_while_the_tracker_thinks_is_honoured(
    world: World, project: Project
) -> None:
    class Slow:
        def queues(self, labels: Mapping[str, str]) -> Any:
            auto.switch(world.lab, project, is_on=False, by="anna")
            return world.tracker.queues(labels)

        def __getattr__(self, name: str) -> Any:
            return getattr(world.tracker, name)

    lab = replace(world.lab, tracker_for={"memory": Slow()}.get)
    assert tick.tick(lab).errors == []
    assert started() == []


def test_a_failure_that_is_recorded_while_the_tracker_thinks_pauses_in_time(
    world: World, project: Project
) -> None:
    class Slow:
        def queues(self, labels: Mapping[str, str]) -> Any:
            Project.objects.update(streak=3)
            return world.tracker.queues(labels)

        def __getattr__(self, name: str) -> Any:
            return getattr(world.tracker, name)

    tick.tick(replace(world.lab, tracker_for={"memory": Slow()}.get))
    assert started() == []


@pytest.mark.row("LAB-85", level="contract")
def test_a_full_house_is_no_error(world: World, project: Project) -> None:
    Settings.objects.update(session_cap=1)
    a_project(world, "other")
    for _ in range(3):
        assert sweep(world).errors == []
        carry_out(world)
    assert len(started()) == 1


@pytest.mark.row("LAB-86", level="contract")
def test_without_an_automatic_project_nobody_is_asked_anything(world: World) -> None:
    a_project(world, is_auto=False)
    a_project(world, "paused", streak=3)
    tick.tick(world.lab)
    sessions, repos = world.sessions.calls, world.repos.heads.copy()
    soon = world.clock.now + timedelta(seconds=25)
    Due.objects.filter(activity="look").update(next_at=soon)
    Due.objects.filter(activity="fill").update(next_at=world.clock.now)
    for _ in range(10):
        world.clock.forward(seconds=2)
        assert not tick.tick(world.lab).did
    assert world.sessions.calls == sessions
    assert (world.tracker.calls.total(), world.login.asked) == (0, 0)
    assert world.repos.heads == repos


@pytest.mark.row("LAB-87", level="contract")
def test_the_trouble_of_one_project_skips_only_it(world: World, project: Project) -> None:
    a_project(world, "other")
    world.tracker.fail("demo", Unreachable("It answered 500."))
    report = sweep(world)
    assert started() == [("7", "auto")]
    assert Run.objects.get().project.name == "other"
    assert ["demo" in error for error in report.errors] == [True]
    world.tracker.heal()
    sweep(world)
    assert Run.objects.filter(project=project).count() == 1


def test_git_trouble_of_one_project_skips_only_it(world: World, project: Project) -> None:
    a_project(world, "other")

    class Broken:
        def claims(self, repo: Any, keys: Any = None, prefix: str = "") -> Any:
            if repo.name == "demo.git":
                raise SeamError("git for-each-ref failed")
            return world.repos.claims(repo, keys, prefix)

        def __getattr__(self, name: str) -> Any:
            return getattr(world.repos, name)

    world.clock.forward(seconds=46)
    report = tick.tick(replace(world.lab, repos=Broken()))
    assert [run.project.name for run in Run.objects.all()] == ["other"]
    assert "for-each-ref" in report.errors[0]


@pytest.mark.row("LAB-88", level="contract")
@pytest.mark.parametrize("answer", [False, None])
def test_logged_out_claims_nothing(world: World, project: Project, answer: bool | None) -> None:
    world.login.answer = answer
    for _ in range(3):
        sweep(world)
    assert started() == []
    assert not any(world.repos.heads.values())
    assert world.login.asked == 3
    world.login.answer = True
    sweep(world)
    assert started() == [("7", "auto")]


@pytest.mark.any_database
@pytest.mark.row("LAB-89", "LAB-44", "LAB-75", "C-55", level="contract")
def test_only_kept_branches_start_nothing_however_often_it_is_looked(
    world: World, project: Project
) -> None:
    repo = project.repo(world.lab.paths)
    for key in "789":
        world.repos.heads.setdefault(repo, {})[f"afk/{key}"] = "f" * 40
    for _ in range(10):
        assert sweep(world).errors == []
    assert started() == []
    assert Project.objects.get().claimable == 0
    assert set(world.tracker.calls) <= {"queues", "pulls"}


@pytest.mark.row("LAB-89", level="contract")
def test_an_empty_queue_is_idle(world: World) -> None:
    a_project(world, keys="")
    assert sweep(world).errors == []
    assert started() == []


@pytest.mark.row("LAB-91", level="contract")
def test_a_failed_launch_is_no_failed_run_and_is_tried_more_rarely(world: World) -> None:
    Settings.current()
    project = a_project(world, keys="7")
    world.sessions.broken_start = "no such program"
    sweep(world)
    carry_out(world)
    project.refresh_from_db()
    waits = StartWait.objects.filter(project=project, issue_key="7")
    assert (Run.objects.get().outcome, project.streak, waits.get().failed) == ("failed", 0, 1)
    assert "no such program" in Notice.objects.get(kind="run.ended").text
    sweep(world)
    assert Run.objects.count() == 1
    sweep(world)
    carry_out(world)
    assert Run.objects.count() == 2
    for _ in range(2):
        sweep(world)
    assert Run.objects.count() == 2
    world.sessions.broken_start = ""
    auto.reset(world.lab, project, by="anna")
    tick.tick(world.lab, project="demo")
    carry_out(world)
    project.refresh_from_db()
    assert (waits.count(), project.retry_at) == (0, None)
    assert Run.objects.filter(state=RunState.WORKING).count() == 1


def test_an_issue_that_cannot_start_keeps_no_other_from_starting(world: World) -> None:
    Settings.current()
    project = a_project(world, keys="78", parallel_runs=2)
    folder = world.lab.paths.worktrees / "demo-7"
    for _ in range(8):
        sweep(world)
        folder.mkdir(parents=True)  # in the way of whatever was decided before it came
        carry_out(world)
        folder.rmdir()
    tried = [run.issue_key for run in Run.objects.order_by("pk")]
    assert tried[:2] == ["7", "8"]
    assert tried.count("8") == 1
    assert 2 <= tried.count("7") <= 4  # after 1, 2, 4 minutes
    project.refresh_from_db()
    assert project.retry_at is None
    texts = [one.text for one in explained(world, project)["7"].failed]
    assert any("Its last start failed; it is tried again at" in text for text in texts)


def test_a_folder_of_an_earlier_run_claims_its_issue_and_no_other(world: World) -> None:
    Settings.current()
    project = a_project(world, keys="78", parallel_runs=1)
    (world.lab.paths.worktrees / "demo-7").mkdir(parents=True)
    for _ in range(3):
        sweep(world)
        carry_out(world)
    assert [run.issue_key for run in Run.objects.all()] == ["8"]
    (failed,) = [one for one in explained(world, project)["7"].failed if one.why == Why.CLAIMED]
    assert "Its branch afk/7 is gone" in failed.text
    assert failed.change.text == "Discard afk/7"


def test_when_starts_of_several_issues_fail_the_project_waits(world: World) -> None:
    Settings.current()
    project = a_project(world, keys="789")
    world.sessions.broken_start = "no such program"
    for _ in range(2):
        sweep(world)
        carry_out(world)
    project.refresh_from_db()
    assert [run.issue_key for run in Run.objects.order_by("pk")] == ["7", "8"]
    assert project.retry_at == world.clock.now + timedelta(minutes=1)
    texts = [one.text for one in explained(world, project)["9"].failed]
    assert any("starts of several issues failed in a row" in text for text in texts)


def test_what_a_person_stopped_while_it_started_is_left_to_people(world: World) -> None:
    Settings.current()
    project = a_project(world, keys="78")
    sweep(world)
    run = Run.objects.get()
    assert stop.stop(world.lab, run, "ben")
    carry_out(world)
    for _ in range(4):
        sweep(world)
        carry_out(world)
    assert [one.issue_key for one in Run.objects.order_by("pk")] == ["7", "8"]
    texts = [one.text for one in explained(world, project)["7"].failed]
    assert "ben stopped its last start; it waits until somebody starts it." in texts
    assert auto.reset(world.lab, project, by="anna")
    assert not StartWait.objects.exists()
    assert not auto.reset(world.lab, project, by="anna")


def test_a_start_by_hand_takes_what_was_stopped(world: World) -> None:
    Settings.current()
    project = a_project(world, keys="7", is_auto=False)
    outcomes.record(
        world.lab, make.a_run(project, started_at=None), Outcome.STOPPED, "stopped", by="ben"
    )
    assert StartWait.objects.get().stopped_by == "ben"
    start_requests.request(world.lab, project, "anna", "7")
    tick.tick(world.lab, project="demo")
    carry_out(world)
    assert Run.objects.active().get().issue_key == "7"
    assert not StartWait.objects.exists()


@pytest.mark.row("LAB-92", "LAB-93", "C-52", level="contract")
def test_both_kinds_of_run_feed_the_streak_and_success_clears_it(
    world: World, project: Project
) -> None:
    for outcome, kind, expected in [
        (Outcome.DIED, RunKind.AUTO, 1),
        (Outcome.TIMED_OUT, RunKind.MANUAL, 2),
        (Outcome.STOPPED, RunKind.MANUAL, 2),
        (Outcome.REJECTED, RunKind.MANUAL, 3),
        (Outcome.SUCCEEDED, RunKind.MANUAL, 0),
    ]:
        run = make.a_run(project, str(expected), kind=kind)
        fail(world, run, outcome)
        assert not outcomes.record(world.lab, run, Outcome.DIED, "again")
        project.refresh_from_db()
        assert project.streak == expected
        assert project.last_failure_id == (run.pk if expected == 1 else project.last_failure_id)
    assert project.last_failure_id is None


@pytest.mark.row("LAB-94", "LAB-95", "LAB-67", level="contract")
def test_the_third_failure_pauses_that_project_alone(world: World, project: Project) -> None:
    other = a_project(world, "other", keys="")
    Project.objects.filter(pk=project.pk).update(streak=2)
    sweep(world)
    carry_out(world)
    assert started() == [("7", "auto")]
    fail(world, Run.objects.get())
    for _ in range(3):
        sweep(world)
    assert Run.objects.count() == 1
    project.refresh_from_db()
    assert (project.streak, project.is_auto, project.is_paused) == (3, True, True)
    world.tracker.add_issue("other", "Issue 1", "1", labels=[other.ready_label])
    sweep(world)
    assert Run.objects.filter(project=other).count() == 1
    start_requests.request(world.lab, project, "anna")
    tick.tick(world.lab, project="demo")
    carry_out(world)
    assert Run.objects.filter(project=project, kind="manual", state="working").count() == 1
    assert Project.objects.get(pk=project.pk).streak == 3


@pytest.mark.row("LAB-95", level="contract")
def test_of_two_projects_with_work_the_paused_one_starts_none(
    world: World, project: Project
) -> None:
    a_project(world, "other", keys="1")
    Project.objects.filter(pk=project.pk).update(streak=3)
    for _ in range(3):
        assert sweep(world).errors == []
        carry_out(world)
    assert set(Run.objects.values_list("project__name", flat=True)) == {"other"}
    assert Project.objects.get(pk=project.pk).is_auto


@pytest.mark.row("LAB-97", "LAB-98", level="contract")
def test_reset_starts_work_at_once_and_the_switch_does_not_clear_the_streak(
    world: World, project: Project
) -> None:
    Project.objects.update(streak=3)
    for is_on in (False, True):
        auto.switch(world.lab, project, is_on=is_on, by="anna")
        tick.tick(world.lab, project="demo")
    assert Project.objects.get().streak == 3
    assert started() == []
    assert auto.reset(world.lab, project, by="anna")
    assert not auto.reset(world.lab, project, by="ben")
    tick.tick(world.lab, project="demo")
    assert started() == [("7", "auto")]
    assert Project.objects.get().is_auto is True
    told = Notice.objects.filter(kind="streak.reset").values_list("text", "by")
    assert list(told) == [("the failure streak was reset from 3 to 0", "anna")]


@pytest.mark.row("LAB-98", level="contract")
@pytest.mark.parametrize("fields", [{"state": "cloning"}, {"tracker": ""}], ids=str)
def test_a_project_that_cannot_be_driven_is_neither_switched_on_nor_reset(
    world: World, fields: dict[str, str]
) -> None:
    made = make.a_project(streak=3, **fields)
    with pytest.raises(auto.AutoRefused):
        auto.switch(world.lab, made, is_on=True, by="anna")
    with pytest.raises(auto.AutoRefused):
        auto.reset(world.lab, made, by="anna")
    assert Project.objects.get().streak == 3


@pytest.mark.row("LAB-100", level="contract")
def test_the_pause_is_announced_once(world: World, project: Project) -> None:
    for number in range(1, 6):
        fail(world, make.a_run(project, str(number)))
        assert Notice.objects.filter(kind="auto.paused").count() == (number >= 3)
    told = Notice.objects.get(kind="auto.paused")
    assert "3 runs in a row failed" in told.text
    assert told.text.endswith("then press Resume")  # which is what the button says
    assert told.issue_key == "3"


@pytest.mark.row("LAB-101", "LAB-103", "LAB-104", "LAB-105", level="contract")
def test_the_hint_is_what_the_living_worker_counted_last(world: World, project: Project) -> None:
    def hint() -> int | None:
        return why.of(world.lab, Project.objects.all()).get(project.pk)

    world.repos.heads.setdefault(project.repo(world.lab.paths), {})["afk/8"] = "f" * 40
    assert hint() is None
    Settings.objects.update(session_cap=1)
    world.sessions.appear("demo~5~afk-99")
    sweep(world)
    asked = world.tracker.calls.copy()
    assert hint() == 2
    assert Run.objects.filter(kind="auto").count() == 0
    world.tracker.add_issue("demo", "Issue 10", "10", labels=[project.ready_label])
    sweep(world)
    assert hint() == 3
    assert asked != world.tracker.calls
    for _ in range(50):
        hint()
    assert world.tracker.calls["queues"] == asked["queues"] + 1
    Project.objects.update(is_auto=False)
    assert hint() is None
    Project.objects.update(is_auto=True)
    world.dead_processes.add(world.lab.process)
    assert hint() is None


def test_the_count_is_unknown_when_the_tracker_did_not_answer(
    world: World, project: Project
) -> None:
    sweep(world)
    assert Project.objects.get().claimable == 2
    world.tracker.fail()
    sweep(world)
    assert Project.objects.get().claimable is None


def test_people_go_first(world: World, project: Project) -> None:
    """Drain before fill: the last slot is theirs whose press came before the sweep."""
    Settings.objects.update(session_cap=1)
    other = a_project(world, "other")
    start_requests.request(world.lab, other, "anna")
    tick.tick(world.lab, force=True)
    assert started() == [("7", "manual")]
    assert StartRequest.objects.get().answer == "started"


def test_an_issue_waits_for_the_open_ones_that_its_text_names(world: World) -> None:
    Settings.current()
    made = a_project(world, keys="")
    label = [made.ready_label]
    world.tracker.add_issue("demo", "Seven", "7", labels=label, body="## Blocked by\n- #5\n- #99")
    world.tracker.add_issue("demo", "Five", "5", body="## Blocked by\n#6")
    world.tracker.add_issue("demo", "Six", "6")
    sweep(world)
    assert started() == []
    next(e for e in world.tracker.shelves["demo"].issues if e["key"] == "5")["is_open"] = False
    sweep(world)
    assert started() == [("7", "auto")]
    assert world.tracker.calls["still_open"] <= 4


def test_a_cap_of_the_host_holds_beside_the_general_one(world: World, project: Project) -> None:
    from runs.models import Host

    Host.objects.create(name="local", session_cap=1)
    a_project(world, "other")
    for _ in range(2):
        sweep(world)
        carry_out(world)
    assert len(started()) == 1


def test_two_projects_may_share_one_tracker_under_different_labels(world: World) -> None:
    Settings.current()
    a_project(world, keys="7")
    a_project(world, "twin", keys="", tracker_root="demo", ready_label="for-the-twin")
    world.tracker.add_issue("demo", "Issue 8", "8", labels=["for-the-twin"])
    sweep(world)
    assert {(run.project.name, run.issue_key) for run in Run.objects.all()} == {
        ("demo", "7"),
        ("twin", "8"),
    }


@pytest.mark.postgres
@pytest.mark.row("LAB-90", "LAB-58", level="contract")
def test_two_sweeps_at_once_make_one_run(world: World, project: Project) -> None:
    go = threading.Barrier(4)

    def one() -> None:
        go.wait()
        tick.tick(world.lab, force=True)
        connection.close()

    in_threads(one, 4)
    tick.tick(world.lab, force=True)
    assert started() == [("7", "auto")]
    assert len(world.queue.launches) == 1


@pytest.mark.row("LAB-99", level="contract")
def test_a_failure_is_added_to_what_is_stored_and_not_to_what_was_read_before(
    world: World, project: Project
) -> None:
    for number in (1, 2, 3):
        make.a_run(project, str(number), slot=number)
    for run in list(Run.objects.select_related("project")):  # each with the streak of before
        assert outcomes.record(world.lab, run, Outcome.DIED, "because")
    assert Project.objects.get().streak == 3


@pytest.mark.postgres
@pytest.mark.row("LAB-99", "X-09", level="real")
def test_twenty_failures_at_once_are_counted_one_by_one(world: World, project: Project) -> None:
    runs = [make.a_run(project, str(number), slot=number) for number in range(1, 21)]
    go = threading.Barrier(20)
    waiting = list(runs)

    def one() -> None:
        run = waiting.pop()
        go.wait()
        assert outcomes.record(world.lab, run, Outcome.DIED, "because")
        connection.close()

    in_threads(one, 20)
    assert Project.objects.get().streak == 20
    assert Notice.objects.filter(kind="auto.paused").count() == 1


def in_threads(act: Callable[[], None], number: int) -> None:
    threads = [threading.Thread(target=act) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)


def a_crowd(projects: int, issues: int) -> None:
    """Automatic projects on the built-in tracker; every fifth issue waits for another."""
    agent = make.an_agent()
    for number in range(projects):
        root = store.create_root(f"p{number}")
        made = make.a_project(
            f"p{number}", tracker="builtin", tracker_root=root, is_auto=True, agent=agent
        )
        for key in range(1, issues + 1):
            body = "" if key % 5 else f"## Blocked by\n- #{key - 1}"
            store.create_issue(
                root,
                title="t",
                body=body,
                author="ada",
                labels=[made.ready_label],
                at=START,
            )


@pytest.mark.long
@pytest.mark.every_case
@pytest.mark.parametrize("size", [1, 12])
def test_a_launch_pass_asks_the_database_as_often_for_one_project_as_for_twelve(
    world: World, size: int, django_assert_max_num_queries: Any
) -> None:
    """Nothing starts here, since each start is a transaction of its own."""
    Settings.current()
    a_crowd(size, size)
    Settings.objects.update(session_cap=1)
    world.sessions.appear("p0~9~afk-99")
    lab = replace(world.lab, tracker_for=registry.tracker)
    tick.tick(lab, force=True)
    with django_assert_max_num_queries(32):
        assert tick.tick(lab, force=True).errors == []
    assert Run.objects.filter(kind="auto").count() == 0
    assert set(Project.objects.values_list("claimable", flat=True)) == {size - size // 5}


def test_deciding_for_five_hundred_projects_of_twenty_issues_takes_less_than_a_second() -> None:
    """Pure, so that only this process's own time counts; `bench.launch` tells the figure."""
    ready = [Candidate(str(key)) for key in range(1, 21)]
    queues = [
        Queue(True, ready, {"1"}, (), project=number, want=Want(is_on=True))
        for number in range(500)
    ]
    took = []
    for _ in range(3):
        began = time.thread_time()
        picked = launching.fill(queues, Room((), 0, 500))
        took.append(time.thread_time() - began)
    assert min(took) < 1
    assert len(picked) == 500


class Remote:
    """A forge: asked beside the others, in a thread of its own."""

    abilities = frozenset[str]()

    def __init__(self, inner: Any, mistake: Exception | None = None) -> None:
        self._inner, self._mistake = inner, mistake

    def queues(self, labels: Mapping[str, str]) -> Any:
        if self._mistake is not None:
            raise self._mistake
        return self._inner.queues(labels)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.mark.row("LAB-87", level="contract")
@pytest.mark.parametrize(
    "mistake", [Unreachable("It answered 500."), KeyError("id")], ids=["no answer", "a bug of ours"]
)
def test_one_kind_of_tracker_never_keeps_another_from_its_work(
    world: World, project: Project, mistake: Exception
) -> None:
    a_project(world, "forged", tracker="forge")
    broken = {"memory": world.tracker, "forge": Remote(world.tracker, mistake)}
    report = tick.tick(replace(world.lab, tracker_for=broken.get), force=True)
    assert [run.project.name for run in Run.objects.all()] == ["demo"]
    assert ["forged" in error for error in report.errors] == [True]
    healed = {**broken, "forge": Remote(world.tracker)}
    world.clock.forward(seconds=45)
    tick.tick(replace(world.lab, tracker_for=healed.get), force=True)
    assert [run.project.name for run in Run.objects.order_by("pk")] == ["demo", "forged"]

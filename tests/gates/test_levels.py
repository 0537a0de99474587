"""Accepted work whose session ended without a run level: it needs somebody, and can be proven again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from runs.core.states import CompletionPolicy, NoticeKind, Outcome, ValidationState
from runs.dispatch import facts as dispatch_facts
from runs.gates import levels
from runs.gates.level_rules import Standing
from runs.models import Notice, Project, Run, Validation, WatchSession
from runs.validation import acts as validations
from runs.watch.session import Phase, Reason, Request
from tests import make
from tests.fakes import START, World
from tests.gates import attempt_rows as attempts
from tests.gates.test_check_pages import a_level
from tests.real import RealWorld, git
from tests.validation.test_run_level import Gated
from tests.watch.test_watch_pages import words
from tests.web import board_rows as rows
from tests.web.people import hx, text_of

pytestmark = pytest.mark.django_db(transaction=True)


def ended(session: WatchSession, request: Request, at: Any) -> None:
    WatchSession.objects.filter(pk=session.pk).update(
        request=request, asked_by="anna", reason=Reason.INTERRUPTED, phase=Phase.ENDED,
        code=130, ended_at=at,
    )  # fmt: skip


class Left(Gated):
    """A project whose session was aborted after runs were accepted."""

    def left(self, key: str, files: dict[str, str], request: Request = Request.ABORT) -> Run:
        run = self.accept(key, files)
        commit = git(self.checkout, "rev-parse", "HEAD")
        Run.objects.filter(pk=run.pk).update(
            accepted_commit=commit, attempts=1, host=self.lab.host, ended_at=self.lab.now()
        )
        ended(self.session, request, self.lab.now())
        run.refresh_from_db()
        return run

    def level(self, run: Run) -> Standing:
        run.refresh_from_db()
        return levels.read_levels([run])[run.pk].standing

    def prove(self, run: Run) -> Validation:
        row = levels.prove(self.lab, run, "anna")
        self.work()
        row.refresh_from_db()
        return row


@pytest.mark.row("C-54", "MALA-V-54", level="real")
@pytest.mark.parametrize("request_", [Request.ABORT, Request.KILL])
def test_what_an_ended_session_left_is_proven_alone_and_its_issue_closed(
    real: RealWorld, request_: Request
) -> None:
    desk = Left(real, "tests: ls")
    desk.accept("9", {"other.txt": "x"})
    run = desk.left("7", {"a.txt": "x"}, request_)
    assert desk.level(run) is Standing.OVER
    row = desk.prove(run)
    assert (row.run_id, row.session_id, row.number) == (run.pk, None, 1)
    assert row.state == ValidationState.PASSED
    assert row.results[0]["tail"] == "a.txt\nhello.txt\n"
    run.refresh_from_db()
    assert run.close_asked_at is not None
    assert levels.read_levels([run]) == {}
    with pytest.raises(levels.ProveRefusedError, match="being closed already"):
        levels.prove(real.lab, run, "anna")


@pytest.mark.row("C-54", level="real")
def test_a_level_that_failed_is_run_anew_each_time_that_it_is_asked_for(real: RealWorld) -> None:
    desk = Left(real, "tests: test -e ready")
    run = desk.left("7", {"a.txt": "x"})
    assert desk.prove(run).state == ValidationState.FAILED
    assert desk.level(run) is Standing.FAILED
    desk.push("main", {"ready": "x"})
    second = desk.prove(run)
    assert (second.number, second.state) == (2, ValidationState.PASSED)
    run.refresh_from_db()
    assert run.close_asked_at is not None


def failed_session(desk: Left, row: Validation) -> WatchSession:
    WatchSession.objects.filter(pk=desk.session.pk).update(
        reason=Reason.VALIDATION_FAILED, phase=Phase.ENDED, code=1, ended_at=desk.lab.now(),
        validation="",
    )  # fmt: skip
    assert row.state == ValidationState.FAILED
    desk.session.refresh_from_db()
    return desk.session


def held_keys(desk: Left) -> set[str]:
    keys, _, _ = dispatch_facts._active(desk.lab, [desk.project])
    return keys[desk.project.pk]


@pytest.mark.row("C-54", "MALA-V-54", level="real")
def test_a_session_that_is_validated_again_and_passes_has_its_issues_closed(
    real: RealWorld,
) -> None:
    desk = Left(real, "tests: test -e ready")
    runs = [desk.proven("7", {"a.txt": "x"}), desk.proven("8", {"b.txt": "x"})]
    session = failed_session(desk, desk.validate())
    assert [desk.level(run) for run in runs] == [Standing.FAILED] * 2
    assert desk.prove(runs[0]).state == ValidationState.FAILED
    assert held_keys(desk) == set()
    row = validations.validate_again(desk.lab, session, "anna")
    assert held_keys(desk) == {"7", "8"}  # no other run of them is started meanwhile
    assert [desk.level(run) for run in runs] == [Standing.COMES] * 2
    with pytest.raises(levels.ProveRefusedError, match="validates it"):
        levels.prove(real.lab, runs[0], "anna")
    desk.work()
    assert [desk.level(run) for run in runs] == [Standing.FAILED] * 2
    assert len(desk.issues()) == 2  # one of the session, one of the run that was proven alone
    row.refresh_from_db()
    assert row.follow_up_key == session.validations.get(number=1).follow_up_key
    desk.push("main", {"ready": "x"})
    third = validations.validate_again(desk.lab, session, "anna")
    desk.work()
    third.refresh_from_db()
    assert third.state == ValidationState.PASSED
    for run in runs:
        run.refresh_from_db()
        assert run.close_asked_at is not None


def test_another_failure_of_a_session_that_is_validated_again_gets_an_issue_of_its_own(
    real: RealWorld,
) -> None:
    desk = Left(real, "tests: false")
    desk.proven("7", {"a.txt": "x"})
    session = failed_session(desk, desk.validate())
    session.validations.update(reason="what was mended since")
    again = validations.validate_again(desk.lab, session, "anna")
    desk.work()
    again.refresh_from_db()
    first = session.validations.get(number=1)
    assert [one.key for one in desk.issues()] == [first.follow_up_key, again.follow_up_key]


def test_a_session_that_four_ask_for_at_once_is_validated_once(real: RealWorld) -> None:
    desk = Left(real, "tests: false")
    desk.proven("7", {"a.txt": "x"})
    session = failed_session(desk, desk.validate())
    begun: list[int] = []
    gate = threading.Barrier(4)

    def press() -> None:
        gate.wait()
        try:
            begun.append(validations.validate_again(real.lab, session, "anna").pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=press) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (len(begun), len(set(begun))) == (4, 1)
    assert session.validations.count() == 2


def test_asked_twice_at_once_it_runs_once(real: RealWorld) -> None:
    desk = Left(real, "tests: true")
    run = desk.left("7", {"a.txt": "x"})
    begun: list[int] = []
    gate = threading.Barrier(4)

    def press() -> None:
        gate.wait()
        try:
            begun.append(levels.prove(real.lab, run, "anna").pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=press) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(begun) == 4
    assert len(set(begun)) == 1
    assert Validation.objects.filter(run=run).count() == 1
    assert desk.level(run) is Standing.COMES


def _gates_off(run: Run) -> None:
    Project.objects.update(policy=CompletionPolicy.PULL_REQUEST)


def _reopened(run: Run) -> None:
    WatchSession.objects.update(phase=Phase.WORKING, reason="", code=None, ended_at=None)


def _unaccepted(run: Run) -> None:
    Run.objects.update(outcome=Outcome.FAILED)


@pytest.mark.parametrize(
    ("meanwhile", "said"),
    [
        (_gates_off, "no gates any more"),
        (_reopened, "validates it"),
        (_unaccepted, "did not accept this run"),
    ],
)
def test_what_has_nothing_to_prove_is_refused_and_begins_nothing(
    real: RealWorld, meanwhile: Callable[[Run], None], said: str
) -> None:
    desk = Left(real, "tests: true")
    run = desk.left("7", {"a.txt": "x"})
    meanwhile(run)
    with pytest.raises(levels.ProveRefusedError, match=said):
        levels.prove(real.lab, run, "anna")
    assert not Validation.objects.exists()


def test_a_session_that_passed_before_a_run_was_accepted_says_nothing_of_it(
    real: RealWorld,
) -> None:
    desk = Left(real, "tests: true")
    desk.accept("8", {"b.txt": "x"})
    assert desk.validate().state == ValidationState.PASSED
    real.offset += timedelta(minutes=5)
    assert desk.level(desk.left("7", {"a.txt": "x"})) is Standing.OVER


def test_killed_between_storing_and_asking_the_worker_it_is_found_again(real: RealWorld) -> None:
    desk = Left(real, "tests: true")
    run = desk.left("7", {"a.txt": "x"})
    row = levels.prove(real.lab, run, "anna")
    real.queue.validations.clear()
    validations.tend(real.lab)
    desk.work()
    row.refresh_from_db()
    assert row.state == ValidationState.PASSED


@pytest.fixture
def project(world: World) -> Project:
    rows.a_tick(world)
    return rows.a_tracked_project("billing", policy=CompletionPolicy.GATES)


def accepted(project: Project, key: str, watch: WatchSession | None, **more: Any) -> Run:
    run = make.a_run(
        project, key, slot=int(key), outcome=Outcome.SUCCEEDED, watch=watch,
        accepted_commit="4f2c9e1d" * 5, **{"branch": f"afk/{key}"} | more,
    )  # fmt: skip
    attempts.passed(run, 1)
    return run


def a_session(project: Project) -> WatchSession:
    return WatchSession.objects.create(project=project, opened_at=START, opened_by="anna")


@pytest.mark.row("C-54", level="contract")
def test_it_stands_under_needs_you_with_one_act_for_who_may_act(
    anna: Client, vera: Client, project: Project, world: World
) -> None:
    session = a_session(project)
    run = accepted(project, "7", session)
    assert "need-level" not in text_of(anna.get("/needs/"))
    ended(session, Request.ABORT, START)
    page = text_of(anna.get("/needs/"))
    need = page.partition(f'id="need-level-{run.pk}"')[2]
    said = words(need)
    assert "billing #7 passed its gates and was never proven at the run level" in said
    assert (
        f"Its watch session {session.pk} was aborted by anna before a run level was over." in said
    )
    assert "Branch afk/7 and commit 4f2c9e1 are kept. Its issue stays open." in said
    assert "Validate it again on top of main" in said
    door = f"/runs/{run.pk}/checks/prove"
    assert f'hx-post="{door}"' in need
    looker = text_of(vera.get("/needs/")).partition(f'id="need-level-{run.pk}"')[2]
    assert door not in looker
    assert vera.post(door).status_code == 403
    assert not Validation.objects.exists()
    assert anna.get(door).status_code == 405
    checks = text_of(anna.get(f"/runs/{run.pk}/checks/"))
    assert "issue stays open" in words(checks)
    assert f'formaction="{door}"' in checks
    assert door not in text_of(vera.get(f"/runs/{run.pk}/checks/"))
    answer = hx(anna, door)
    assert answer.status_code == 200
    assert "The run level of issue 7 has begun" in words(text_of(answer))
    assert hx(anna, door).status_code == 200
    assert Validation.objects.filter(run=run).count() == 1
    (told,) = Notice.objects.filter(kind=NoticeKind.VALIDATION_BEGAN)
    assert (told.by, told.run_id) == ("anna", run.pk)
    assert "need-level" not in text_of(anna.get("/needs/"))
    Validation.objects.update(state=ValidationState.PASSED, ended_at=START)
    Run.objects.update(close_asked_at=world.clock.now)
    refused = hx(anna, door)
    assert refused.status_code == 409
    assert "being closed already" in words(text_of(refused))


@pytest.mark.row("C-54", level="contract")
def test_several_are_told_in_one_row_that_begins_them_all(anna: Client, project: Project) -> None:
    session = a_session(project)
    runs = [accepted(project, key, session) for key in ("7", "8", "9")]
    other = accepted(project, "5", None)
    a_level(project, other)
    ended(session, Request.KILL, START)
    page = text_of(anna.get("/"))
    assert "3 runs were never proven at the run level" in words(page)
    door = f"/projects/{project.pk}/prove"
    assert f'hx-post="{door}"' in page
    assert "3 run levels began" in words(text_of(hx(anna, door)))
    assert "waits without a run level" in words(text_of(hx(anna, door)))
    begun = Validation.objects.running().values_list("run", flat=True)
    assert sorted(begun) == sorted(run.pk for run in runs)


def test_accepted_work_of_an_open_session_costs_no_query(
    anna: Client, project: Project, django_assert_num_queries: Any
) -> None:
    session = a_session(project)
    runs = [accepted(project, key, session) for key in ("7", "8")]
    project.open_watch = session.pk  # type: ignore[attr-defined]
    for run in runs:
        run.project = project
    with django_assert_num_queries(0):
        assert {one.standing for one in levels.read_levels(runs).values()} == {Standing.COMES}
    ended(session, Request.ABORT, START)
    project.open_watch = None  # type: ignore[attr-defined]
    with django_assert_num_queries(2):
        assert {one.standing for one in levels.read_levels(runs).values()} == {Standing.OVER}

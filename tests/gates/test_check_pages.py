"""The page of a run's checks, and *checking* wherever a run's state is shown."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from runs.core.history_ports import Change
from runs.core.states import (
    AttemptState,
    CompletionPolicy,
    Gate,
    GateTurn,
    NoticeKind,
    Outcome,
    ValidationState,
)
from runs.forges import mirror
from runs.gate_pages import check_pages
from runs.models import Attempt, CheckRun, Job, Notice, Project, Run, Validation
from runs.timeline import announce
from runs.web import fragments
from tests import make
from tests.api.program import Program
from tests.fakes import START, World
from tests.gates import attempt_rows as attempts
from tests.watch.test_watch_pages import part, words
from tests.web import board_rows as rows
from tests.web.people import hx, text_of
from tests.web.test_pages_text import PATCH

pytestmark = pytest.mark.django_db(transaction=True)

AUTH = 2


@pytest.fixture
def project(world: World) -> Project:
    rows.a_tick(world)
    return rows.a_tracked_project("billing", policy=CompletionPolicy.GATES)


def shown(client: Client, run: Run, query: str = "") -> str:
    return text_of(client.get(f"/runs/{run.pk}/checks/{query}"))


def section(html: str, name: str) -> str:
    return part(html, name)


@pytest.mark.row("MALA-V-19", level="contract")
def test_attempts_stand_side_by_side_newest_first_with_what_each_gate_said(
    anna: Client, project: Project
) -> None:
    run = attempts.checking(project)
    attempts.failed_in_clean_room(run, 1)
    attempts.running(run, 2)
    html = section(shown(anna, run), "check-attempts")
    assert html.index("Attempt 2 running") < html.index("Attempt 1 failed")
    newest, _, older = html.partition("Attempt 1")
    assert "Evidence passed, 1.8 s" in newest
    assert "Clean room running," in newest
    assert "Review waiting" in newest
    assert "Clean room failed, 59.2 s test failed with exit status 1" in older
    assert "coverage is 81.25 %, 85 % are needed" in older
    assert "Review not run" in older


CHANGED_CHECKS = [
    {
        **{"path": "tests/test_old.py", "part": "removed_test", "old_path": ""},
        "why": "A test file was deleted.",
    },
    {
        **{"path": "Makefile", "part": "command", "old_path": ""},
        "why": "`make <test>` reads it.",
    },
]


def test_what_the_work_changes_of_its_checks_is_shown_with_a_way_into_the_diff(
    anna: Client, project: Project
) -> None:
    run = attempts.checking(project)
    attempts.running(run, 1, context={"check_files": CHANGED_CHECKS})
    html = text_of(anna.get(f"/runs/{run.pk}/checks/"))
    found = section(html, "check-files")
    assert "Changes to the checks 2 files" in found
    assert "tests/test_old.py test removed A test file was deleted." in found
    assert "Makefile run by a check make &lt;test&gt; reads it." in found
    assert f'href="/runs/{run.pk}/checks/line?path=Makefile"' in html
    attempts.an_attempt(run, 2, state=AttemptState.PASSED)
    assert 'id="check-files"' not in text_of(anna.get(f"/runs/{run.pk}/checks/?attempt=2"))


@pytest.mark.row("MALA-V-12", level="contract")
def test_gates_that_were_skipped_say_so_and_the_resolution_has_its_rationale(
    anna: Client, project: Project
) -> None:
    run = make.a_run(project, outcome=Outcome.NO_CHANGE)
    attempts.an_attempt(
        run, state=AttemptState.PASSED, gate=Gate.REVIEW, claim="no_change", resolution="no_change",
        rationale="already fixed by 4f2c9e1", commit="",
        decisions=[
            attempts.said(Gate.EVIDENCE, at=1),
            attempts.said(Gate.CLEAN_ROOM, "the issue needs no commit (no change)", at=1, skipped=True),
            attempts.said(Gate.REVIEW, "the issue needs no commit (no change)", at=1, skipped=True),
        ],
    )  # fmt: skip
    html = shown(anna, run)
    chain = section(html, "check-attempts")
    assert "Clean room skipped the issue needs no commit" in chain
    assert "Review skipped" in chain
    assert "Resolution no change already fixed by 4f2c9e1" in words(html)


def test_how_often_it_was_tried_is_what_its_job_says_or_before_jobs_its_row(
    anna: Client, project: Project
) -> None:
    run = make.a_run(project, outcome=Outcome.STOPPED)
    job = {"kind": "attempt", "host": "local", "requested_at": START, "finished_at": START}
    for number in (1, 2):
        row = attempts.an_attempt(run, number, state=AttemptState.PASSED, losses=1, troubles=2)
    Job.objects.create(subject=row.pk, losses=3, troubles=4, **job)
    assert "Retries 2 × Worker restarts 1 ×" in words(shown(anna, run, "?attempt=1"))
    assert "Retries 4 × Worker restarts 3 ×" in words(shown(anna, run))


def test_a_command_that_was_stopped_in_its_middle_has_not_failed(
    anna: Client, project: Project
) -> None:
    run = make.a_run(project, outcome=Outcome.STOPPED)
    attempts.running(run, state=AttemptState.CANCELLED, reason="its run was ended meanwhile")
    room = section(shown(anna, run), "clean_room")
    assert "test interrupted" in room
    assert "failed" not in room


def test_what_is_to_be_typed_stands_as_code_and_nothing_else_becomes_markup(
    anna: Client, project: Project
) -> None:
    run = make.a_run(project, outcome=Outcome.FAILED, reason="gate evidence: run `labctl check`")
    why = "tests: `labctl check` ran it for `<b>other</b>` files and `\u202e`"
    attempts.an_attempt(
        run,
        state=AttemptState.FAILED,
        gate=Gate.EVIDENCE,
        evidence=[attempts.proof(attempts.COMMANDS[3], None, word=why)],
        decisions=[attempts.said(Gate.EVIDENCE, why, at=1, passed=False)],
    )
    html = anna.get(f"/runs/{run.pk}/checks/").content.decode()
    assert "run <code>labctl check</code></span>" in html
    assert html.count("tests: <code>labctl check</code> ran it for") == 3
    assert "<b>other</b>" not in html
    assert '<span class="odd">' in html


@pytest.mark.row("MALA-V-52", level="contract")
def test_the_issue_with_low_findings_is_linked_and_who_merges_is_said(
    anna: Client, project: Project
) -> None:
    run = make.a_run(project, outcome=Outcome.SUCCEEDED, accepted_commit="4f2c9e1d" * 5)
    attempts.passed(run, 1)
    Attempt.objects.update(artifacts={"review_issue": "12"})
    html = shown(anna, run)
    assert "Findings of P2 and P3 are written down in issue 12" in section(html, "review")
    assert "Merging is left to you" not in words(html)  # no run level has come to it
    Run.objects.update(close_asked_at=START, closed_at=START)
    merge = "Merging is left to you: commit 4f2c9e1d4f on branch afk/7"
    assert merge in words(shown(anna, run))


def test_every_attempt_has_an_address_and_one_that_never_was_is_not_found(
    anna: Client, project: Project
) -> None:
    run = attempts.checking(project)
    attempts.failed_in_clean_room(run, 1)
    attempts.running(run, 2)
    assert "118 of 120 tests passed" not in shown(anna, run)
    assert "118 of 120 tests passed" in shown(anna, run, "?attempt=1")
    assert anna.get(f"/runs/{run.pk}/checks/?attempt=3").status_code == 404
    assert anna.get(f"/runs/{run.pk}/checks/?attempt=x").status_code == 200
    assert anna.get("/runs/999999/checks/").status_code == 404


@pytest.mark.row("MALA-V-05", "MALA-V-08", "MALA-V-09", "MALA-V-14", level="contract")
def test_the_clean_room_shows_each_command_its_tests_and_the_coverage(
    anna: Client, project: Project
) -> None:
    run = make.a_run(project, outcome=Outcome.FAILED)
    attempts.failed_in_clean_room(run, 1)
    html = shown(anna, run)
    room = section(html, "clean_room")
    assert "deps skipped uv sync --all-extras uv.lock has not changed" in room
    assert "types failed (allowed) 1.5 s · exit status 1" in room
    assert "test failed 52.4 s · exit status 1" in room
    assert "118 of 120 tests passed tests.test_retry::test_waits_twice" in room
    assert "Coverage failed 81.25 % of 85 % needed Changed lines: 62.5 %" in room
    assert "The clean worktree was kept: /home/anna/.labsite/clean-rooms/billing/7/1" in room
    assert f'href="/runs/{run.pk}/checks/1/output/0-4.err.txt"' in html
    assert "FAILED tests/test_retry.py::test_waits_twice" in room
    assert "src/billing/retry.py code docs/retries.md docs" in words(html)


@pytest.mark.row("MALA-V-30", level="contract")
def test_evidence_says_who_recorded_it_and_why_it_does_not_count(
    anna: Client, project: Project
) -> None:
    run = attempts.checking(project)
    _, lint, types, test = attempts.COMMANDS
    attempts.an_attempt(run, evidence=[
        attempts.proof(lint, source="check", word="passed for exactly the committed files"),
        attempts.proof(types, proven=False, word="it ran for other files"),
        attempts.proof(test, 1, word="it failed with exit status 1"),
        attempts.proof(attempts.COMMANDS[0], None, word="nobody has run it in this attempt"),
    ])  # fmt: skip
    html = section(shown(anna, run), "evidence")
    assert "lint passed run by labsite, 4.2 s" in html
    assert "types does not count recorded by the agent, 4.2 s" in html
    assert "test failed recorded by the agent, 4.2 s" in html
    assert "it failed with exit status 1" in html
    assert "deps missing uv sync --all-extras nobody has run it in this attempt" in html


@pytest.mark.row("MALA-V-48", "MALA-V-52", level="contract")
def test_reviewers_stand_with_their_findings_the_gravest_first(
    anna: Client, project: Project
) -> None:
    run = make.a_run(project, outcome=Outcome.FAILED)
    row = attempts.failed_in_review(run, 1)
    row.reviews.filter(reviewer="reader").update(
        state="failed",
        findings=[
            {"priority": 0, "path": "", "line": None, "title": "<b>bad</b>", "body": "\x1bx"}
        ],
        log_name="reader.txt",
    )
    html = shown(anna, run)
    review = section(html, "review")
    assert review.index("P1 Retries forever on 401") < review.index("P2 Says three, does two")
    assert "elsewhere not reviewed" in review
    assert "&lt;b&gt;bad&lt;/b&gt;" in html
    assert "<b>bad</b>" not in html
    assert "\x1b" not in html
    assert "checks/line?path=src%2Fbilling%2Fretry.py&amp;line=2" in html
    assert f'href="/runs/{run.pk}/checks/1/output/reader.txt"' in html


@pytest.mark.row("MALA-V-49", "C-43", level="contract")
def test_what_nobody_reviewed_is_shown_as_not_reviewed_and_never_green(
    anna: Client, project: Project
) -> None:
    run = make.a_run(project, outcome=Outcome.SUCCEEDED)
    row = attempts.make_unreviewed(run)
    row.reviews.create(
        reviewer="silent", state="error", reason="it printed nothing", began_at=row.began_at
    )
    html = shown(anna, run)
    assert "Review not reviewed" in section(html, "review")
    assert "elsewhere not reviewed" in section(html, "review")
    assert "silent not reviewed" in section(html, "review")
    card = section(html, "check-attempts")
    assert "Attempt 1 passed, not reviewed" in card
    assert "Review not reviewed" in card
    (step,) = [one for one in check_pages.steps(row) if one.gate is Gate.REVIEW]
    assert (step.state, step.tone) == ("not reviewed", "warn")
    line = check_pages.line(run)
    assert line is not None
    assert (line.state, line.tone) == ("passed, not reviewed", "warn")


def test_a_finding_leads_to_its_line_in_the_diff_else_to_its_file_else_to_the_diff(
    anna: Client, project: Project, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    run = make.a_run(project, worktree=str(tmp_path), fork_point="abc")
    changes = [Change("app.py", "M", 2, 1)]
    monkeypatch.setattr(world.repos, "changes", lambda path, fork, head="": changes)
    monkeypatch.setattr(world.repos, "patch", lambda path, fork, limit, head="": PATCH)
    for query, place in (
        ("path=app.py&line=1", "f1-L1"),
        ("path=app.py&line=99999", "file-1"),
        ("path=app.py", "file-1"),
        ("path=nowhere.py&line=1", "changes"),
    ):
        answer = anna.get(f"/runs/{run.pk}/checks/line?{query}")
        assert answer.headers["Location"] == f"/runs/{run.pk}/changes/#{place}", query


@pytest.mark.row("MALA-V-96", level="contract")
def test_all_that_a_command_printed_is_one_click_away_and_nothing_else_is(
    anna: Client, project: Project, world: World
) -> None:
    run = make.a_run(project, outcome=Outcome.FAILED)
    row = attempts.failed_in_clean_room(run, 1)
    world.checks.printed[row.folder(world.lab.paths), "0-4.txt"] = b"<script>" + b"x" * 100
    world.checks.printed[row.folder(world.lab.paths), "secret.txt"] = b"no"
    answer = anna.get(f"/runs/{run.pk}/checks/1/output/0-4.txt")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert text_of(answer).startswith("<script>")
    for name in ("secret.txt", "0-4.err.txt", "..%2Fx"):
        assert anna.get(f"/runs/{run.pk}/checks/1/output/{name}").status_code == 404
    assert anna.get(f"/runs/{run.pk}/checks/2/output/0-4.txt").status_code == 404


def test_a_long_output_is_shown_a_piece_at_a_time(
    anna: Client, project: Project, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_pages, "RAW_BYTES", 10)
    run = make.a_run(project, outcome=Outcome.FAILED)
    row = attempts.failed_in_clean_room(run, 1)
    world.checks.printed[row.folder(world.lab.paths), "0-4.txt"] = b"abcdefghijklmnopqrstuvwxyz"
    at = f"/runs/{run.pk}/checks/1/output/0-4.txt"
    assert text_of(anna.get(at)).startswith("[bytes 16 to 26 of 26;")
    assert text_of(anna.get(at)).endswith("] qrstuvwxyz")
    assert text_of(anna.get(f"{at}?start=2")).endswith("] cdefghijkl")


@pytest.mark.row("X-18", level="contract")
def test_the_page_is_pushed_by_what_gates_tell_and_shows_the_running_output(
    anna: Client, project: Project, world: World
) -> None:
    run = attempts.checking(project)
    row = attempts.running(run)
    world.checks.printed[row.folder(world.lab.paths), "0-3.txt"] = b"collecting ...\n"
    html = shown(anna, run)
    assert "collecting ..." in html
    live = re.search(r'hx-get="([^"]+/checks/live)"[^>]* hx-ptag="([^"]+)"', html)
    assert live is not None
    headers = {"HX-Request": "true", "HX-PTag": live[2]}
    assert anna.get(live[1], headers=headers).status_code == 304
    world.checks.printed[row.folder(world.lab.paths), "0-3.txt"] = b"collecting ...\n1 passed\n"
    answer = anna.get(live[1], headers=headers)
    assert "1 passed" in text_of(answer)
    for name in set(re.findall(r'hx-target="#([\w-]+)"', text_of(answer))):
        assert html.count(f'id="{name}"') == 1, name
    for kind in (
        NoticeKind.GATE_STEP,
        NoticeKind.GATE_PASSED,
        NoticeKind.GATE_FAILED,
        NoticeKind.RUN_CHECKING,
        NoticeKind.RUN_REENTERED,
    ):
        with transaction.atomic():
            notice = announce.tell(world.lab, kind, "x", run=run)
        topics = fragments.topics_of(notice)
        assert {f"checks:{run.pk}", f"run:{run.pk}"} <= topics
    Attempt.objects.update(state=AttemptState.FAILED, ended_at=START, reason="it did not pass")
    pushed = fragments.regions(f"checks:{run.pk}", True)
    assert pushed is not None
    assert "it did not pass" in pushed["check-attempts"]


def test_an_earlier_attempt_refreshes_its_frame_alone(
    anna: Client, project: Project, world: World
) -> None:
    run = attempts.checking(project)
    attempts.failed_in_clean_room(run, 1)
    attempts.running(run, 2)
    html = shown(anna, run, "?attempt=1")
    assert f'hx-get="/runs/{run.pk}/checks/live?attempt=1"' in html
    assert f'hx-ws:connect="/ws/talk:{run.pk}"' in html
    answer = anna.get(f"/runs/{run.pk}/checks/live?attempt=1", headers={"HX-Request": "true"})
    targets = set(re.findall(r'hx-target="#([\w-]+)"', text_of(answer)))
    assert "run-head" in targets
    assert not any(name.startswith("check-") for name in targets)


def test_a_command_stands_beside_the_median_of_its_earlier_passes_here(
    anna: Client, project: Project, world: World
) -> None:
    _, lint, _, _ = attempts.COMMANDS
    other = rows.a_tracked_project("other")
    for number, (where, seconds, status) in enumerate(
        [
            (project, 1.0, 0),
            (project, 3.0, 0),
            (project, 90.0, 1),
            (project, 8.0, 0),
            (other, 70.0, 0),
        ]
    ):
        earlier = make.a_run(where, str(100 + number), outcome=Outcome.SUCCEEDED)
        results = [attempts.result(lint, seconds=seconds, status=status)]
        attempts.an_attempt(earlier, state=AttemptState.PASSED, results=results)
    run = attempts.checking(project)
    attempts.an_attempt(run, results=[attempts.result(lint, seconds=2.0)])
    assert "lint passed 2.0 s · median 3.0 s of 3 passes" in section(shown(anna, run), "clean_room")


def test_a_project_without_gates_is_told_what_they_are_and_where_to_turn_them_on(
    anna: Client, world: World, project: Project
) -> None:
    other = rows.a_tracked_project("other")
    html = shown(anna, make.a_run(other))
    assert "A run of this project ends with its pull request" in html
    assert f'href="/projects/{other.pk}/' in html.partition('id="check-attempts"')[2]
    html = shown(anna, make.a_run(project, "8", slot=2))
    assert "No attempt yet" in html
    page = text_of(anna.get(f"/runs/{make.a_run(other, '9', slot=3).pk}/"))
    assert '<div id="run-gates" hidden></div>' in page


@pytest.mark.row("MALA-V-54", "MALA-V-55", level="contract")
def test_the_run_level_of_a_run_without_a_session_stands_below_with_its_follow_up(
    anna: Client, project: Project
) -> None:
    run = make.a_run(project, outcome=Outcome.SUCCEEDED, accepted_commit="a" * 40)
    attempts.passed(run, 1)
    a_level(project, run, state=ValidationState.RUNNING, ended_at=None)
    assert "issue waits for the run level" in words(shown(anna, run))
    Validation.objects.all().delete()
    a_level(project, run, follow_up_key="12")
    html = shown(anna, run)
    level = words(html.partition('id="level-title"')[2])
    assert "Validation 1 failed" in level
    assert "test failed" in level
    assert "End to end failed" in level
    assert "the issue is still open" in level
    assert f'href="/projects/{project.pk}/issues/12/"' in html
    Run.objects.update(close_asked_at=START, closed_at=START)
    assert "issue closed" in words(shown(anna, run))


def a_level(project: Project, run: Run, **fields: Any) -> Validation:
    _, lint, _, test = attempts.COMMANDS
    known = {
        **{"state": ValidationState.FAILED, "reason": "test failed with exit status 1"},
        **{"number": 1, "began_at": START, "ended_at": START},
    }
    return Validation.objects.create(
        project=project, run=run, count=0, host="local", minutes=30, most_fixers=0, mark="m",
        **known | fields,
        spec={"commands": [{"name": c.name, "argv": c.argv, "kind": c.kind} for c in (lint, test)]},
        results=[attempts.result(lint, 1), attempts.result(test, 2, status=1)],
        e2e={"passed": False, "failure_reason": "the issue is still open", "seconds": 2.0,
             "fixture_path": "", "log": ""},
    )  # fmt: skip


def test_what_labctl_check_ran_is_listed_with_exit_status_and_duration(
    anna: Client, project: Project
) -> None:
    run = attempts.checking(project)
    assert "Run by labctl check" not in shown(anna, run)
    deps, lint, types, test = attempts.COMMANDS
    row = CheckRun.objects.create(
        run=run,
        host="local",
        mark="m",
        asked_at=START,
        results=[
            attempts.result(deps, 1),
            attempts.result(lint, 2, status=3, seconds=75.0),
            attempts.result(types, 3, status=1),
            attempts.result(test, 4, status=None, is_running=True, seconds=0.0),
        ],
    )
    assert (
        "running deps passed exit status 0, 1.5 s uv sync --all-extras "
        "lint failed exit status 3, 1 min ruff check . "
        "types failed (allowed) exit status 1, 1.5 s mypy --strict src test running pytest -q"
    ) in words(section(shown(anna, run), "check-runs"))
    tag = anna.get(f"/runs/{run.pk}/checks/live").headers["HX-PTag"]
    attempt = attempts.running(run, 1)
    Attempt.objects.filter(pk=attempt.pk).update(tree="a" * 40)
    row.results[-1] |= {"is_running": False, "skipped": "the dependencies failed"}
    row.is_running, row.tree, row.ended_at = False, "a" * 40, START
    row.save()
    said = words(section(shown(anna, run), "check-runs"))
    assert "exactly this commit" in said
    assert "test not run: the dependencies failed" in said
    again = anna.get(f"/runs/{run.pk}/checks/live", headers={"HX-PTag": tag})
    assert again.status_code == 200


@pytest.mark.parametrize("count", [1, 12])
def test_the_page_costs_a_fixed_number_of_queries(
    anna: Client, project: Project, count: int, django_assert_num_queries: Any
) -> None:
    run = attempts.checking(project)
    for number in range(1, count + 1):
        attempts.failed_in_clean_room(run, number)
    attempts.running(run, count + 1)
    anna.get(f"/runs/{run.pk}/checks/")  # who is here, and the medians, which are kept
    with django_assert_num_queries(AUTH + 5 + 5 + 5):
        anna.get(f"/runs/{run.pk}/checks/")
    live = anna.get(f"/runs/{run.pk}/checks/live").headers["HX-PTag"]
    with django_assert_num_queries(AUTH + 2 + 5):
        answer = anna.get(f"/runs/{run.pk}/checks/live", headers={"HX-PTag": live})
    assert answer.status_code == 304
    with django_assert_num_queries(AUTH + 7):
        anna.get(f"/runs/{run.pk}/")


def test_checking_is_a_state_of_its_own_wherever_a_run_is_shown(
    anna: Client, operator: User, project: Project, world: World
) -> None:
    run = attempts.checking(project)
    world.live(run)
    attempts.failed_in_clean_room(run, 1)
    attempts.running(run, 2)
    where = "checking (attempt 2): clean room"
    page = text_of(anna.get(f"/runs/{run.pk}/"))
    assert f'<span class="pill live"><span class="dot live"></span>{where}</span>' in page
    assert "Checks attempt 2: clean room" in words(page.partition('id="steps"')[2])
    assert "The budget rests while the gates check the work." in page
    assert 'id="stop"' in page
    assert part(page, "run-gates") == "Checks checking Attempt 2: clean room"
    overview = text_of(anna.get("/"))
    assert where in part(overview, "running")
    assert "1 live" in part(overview, "running")
    assert 'class="dot live"' in overview.partition(f'id="run-{run.pk}"')[2].partition("</span>")[0]
    assert "checking (attempt 2)" in words(text_of(anna.get("/history/")))
    assert Program.of(operator).get(f"/runs/{run.pk}").json()["state"] == "checking"
    Run.objects.update(gate_turn=GateTurn.BEGIN)
    Attempt.objects.filter(number=2).update(state=AttemptState.CANCELLED, ended_at=START)
    assert "checking (attempt 3): about to begin" in text_of(anna.get(f"/runs/{run.pk}/"))


def test_a_checking_run_is_at_work_on_the_tracker(project: Project) -> None:
    assert mirror._stands(attempts.checking(project)) == mirror.WORKING


def test_a_gate_that_failed_for_the_last_time_needs_somebody_with_two_ways_on(
    anna: Client, vera: Client, project: Project, world: World
) -> None:
    reason = "gate clean room: test failed with exit status 1; it was the last of 3 attempts"
    run = make.a_run(project, outcome=Outcome.FAILED, reason=reason, worktree_fate="kept")
    attempts.failed_in_clean_room(run, 3)
    page = text_of(anna.get("/needs/"))
    need = page.partition(f'id="need-gate-{run.pk}"')[2]
    said = words(need)
    assert "billing #7 did not pass the clean room gate in 3 attempts" in said
    assert (
        "Test failed with exit status 1; it was the last of 3 attempts. Its work is kept." in said
    )
    assert f'href="/runs/{run.pk}/checks/"' in need
    assert f'href="/runs/{run.pk}/resume"' in need
    assert f'href="/runs/{run.pk}/retry"' in need
    assert f"need-run-{run.pk}" not in page
    looker = text_of(vera.get("/needs/")).partition(f'id="need-gate-{run.pk}"')[2]
    assert "Open checks" in looker
    assert "/retry" not in looker
    shown = need.partition('name="shown" value="')[2].partition('"')[0]
    hx(anna, "/needs/hide", {"shown": shown})
    assert f'id="need-gate-{run.pk}"' not in text_of(anna.get("/needs/"))
    assert Notice.objects.filter(kind=NoticeKind.NEED_DISMISSED).exists()


@pytest.mark.row("MALA-V-55", level="contract")
def test_a_failed_run_level_and_an_issue_that_is_not_closed_need_somebody(
    anna: Client, project: Project, world: World
) -> None:
    run = make.a_run(project, outcome=Outcome.SUCCEEDED, accepted_commit="a" * 40)
    attempts.passed(run, 1)
    a_level(project, run, state=ValidationState.RUNNING, ended_at=None)
    assert "need-level" not in text_of(anna.get("/needs/"))
    Validation.objects.all().delete()
    a_level(project, run, follow_up_key="12")
    said = words(text_of(anna.get("/needs/")))
    assert "billing #7 passed its gates and failed the run level" in said
    assert "Its issue stays open. Issue 12 was made of it." in said
    Run.objects.update(close_asked_at=world.clock.now)
    assert "could not be closed" not in text_of(anna.get("/needs/"))
    world.clock.forward(seconds=301)
    said = words(text_of(anna.get("/needs/")))
    assert "billing #7 has an issue that could not be closed since" in said
    Run.objects.update(closed_at=world.clock.now)
    assert "could not be closed" not in text_of(anna.get("/needs/"))

"""Every action in both styles: what it answers, what it stores, what it refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from runs.core.states import AnswerCode, ProjectState
from runs.models import (
    AgentProfile,
    Fixer,
    ManualSession,
    Project,
    Run,
    Settings,
    StartRequest,
    Validation,
    WatchSession,
)
from tests import make
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.people import confirmed, hx, text_of

pytestmark = pytest.mark.django_db

SURE = {"sure": "yes"}


STATUSES = [
    (AnswerCode.STARTED, 200),
    (AnswerCode.NOTHING_READY, 409),
    (AnswerCode.AT_CAP, 409),
    (AnswerCode.NO_TRACKER, 400),
    (AnswerCode.NOT_READY, 409),
    (AnswerCode.TRACKER_FAILED, 502),
    (AnswerCode.SEAM_FAILED, 500),
    (AnswerCode.LOGGED_OUT, 409),
    (AnswerCode.START_FAILED, 500),
    (AnswerCode.EXPIRED, 503),
]


@pytest.mark.row("LAB-56", "LAB-64", "LAB-65", "LAB-132", level="contract")
@pytest.mark.parametrize(("code", "status"), STATUSES)
def test_a_start_answers_htmx_with_status_and_banner_and_a_form_with_303(
    anna: Client, world: World, code: AnswerCode, status: int
) -> None:
    project = rows.a_tracked_project()
    run = make.a_run(project, "7") if code is AnswerCode.STARTED else None
    rows.answer_starts(world, code, "Why it is so & <so>.", run)
    answer = hx(anna, f"/projects/{project.pk}/start", at=f"/projects/{project.pk}/")
    assert answer.status_code == status
    assert answer["Cache-Control"] == "no-store"
    assert '<hx-partial hx-target="#banner"' in text_of(answer)
    if code is AnswerCode.STARTED:
        assert "takes issue 7 of demo in slot 1" in text_of(answer)
        assert 'hx-target="#project-running"' in text_of(answer)
    else:
        assert "Why it is so &amp; &lt;so&gt;." in text_of(answer)
    plain = anna.post(f"/projects/{project.pk}/start", follow=True)
    assert plain.redirect_chain == [(f"/projects/{project.pk}/", 303)]
    assert ("takes issue 7" if run else "Why it is so &amp;") in text_of(plain)


def test_every_answer_of_the_launch_pass_has_a_status(anna: Client) -> None:
    from runs.dispatch.start_answers import STATUS

    assert set(STATUS) == set(AnswerCode)


@pytest.mark.row("LAB-56", level="contract")
def test_nothing_ready_is_a_notice_and_no_error(anna: Client, world: World) -> None:
    project = rows.a_tracked_project()
    rows.answer_starts(world, AnswerCode.NOTHING_READY, "Nothing is ready to start.")
    answer = text_of(hx(anna, f"/projects/{project.pk}/start"))
    assert 'class="banner info"' in answer
    assert 'role="alert"' not in answer


def test_a_worker_that_does_not_answer_is_said_calmly(anna: Client, world: World) -> None:
    project = rows.a_tracked_project()
    answer = hx(anna, f"/projects/{project.pk}/start", {"issue": "7"})
    assert answer.status_code == 202
    assert "written down" in text_of(answer)
    assert StartRequest.objects.get().wanted_key == "7"


@pytest.mark.row("LAB-46", "LAB-132", level="contract")
def test_stop_answers_with_the_row_and_the_numbers(anna: Client, world: World) -> None:
    project = rows.a_tracked_project()
    run = make.a_run(project, "7", worktree="/nowhere")
    world.live(run)
    answer = hx(anna, f"/runs/{run.pk}/stop")
    assert answer.status_code == 200
    text = text_of(answer)
    assert f'<hx-partial hx-target="#run-{run.pk}"' in text
    assert '<hx-partial hx-target="#stats"' in text
    assert "neither success nor failure" in text
    run.refresh_from_db()
    assert run.outcome == "stopped"
    again = anna.post(f"/runs/{run.pk}/stop", SURE, follow=True)
    assert again.redirect_chain == [(f"/runs/{run.pk}/", 303)]
    assert "had ended already" in text_of(again)


@pytest.mark.row("LAB-51", "LAB-132", level="contract")
def test_stop_all_stops_the_runs_of_one_project_only(anna: Client, world: World) -> None:
    mine, other = rows.a_tracked_project("foo"), rows.a_tracked_project("foobar")
    for number in ("1", "2"):
        world.sessions.appear(make.a_run(mine, number, slot=int(number)).session)
    kept = make.a_run(other, "1", slot=3)
    answer = hx(anna, f"/projects/{mine.pk}/stop-all", at=f"/projects/{mine.pk}/")
    assert "Stopped 2 sessions of foo" in text_of(answer)
    assert list(Run.objects.filter(outcome="")) == [kept]
    plain = anna.post(f"/projects/{mine.pk}/stop-all", SURE, follow=True)
    assert plain.redirect_chain == [(f"/projects/{mine.pk}/", 303)]
    assert "Stopped 0 sessions of foo" in text_of(plain)


@pytest.mark.row("LAB-51", level="contract")
@pytest.mark.parametrize(
    ("runs", "driven", "fixers", "asks"),
    [
        pytest.param(0, 0, 0, "", id="nothing"),
        pytest.param(1, 0, 0, "", id="one run has a Stop of its own"),
        pytest.param(0, 1, 0, "", id="a session that a person drives too"),
        pytest.param(2, 0, 0, "stop 2 sessions", id="two runs"),
        pytest.param(1, 1, 0, "stop 2 sessions", id="a run and a driven session"),
        pytest.param(1, 0, 1, "stop 2 sessions", id="a run and a fixer"),
        pytest.param(0, 0, 1, "stop 1 session", id="a fixer alone"),
    ],
)
def test_stop_all_is_offered_for_all_that_it_ends_and_has_no_stop_of_its_own(
    anna: Client, world: World, runs: int, driven: int, fixers: int, asks: str
) -> None:
    project = rows.a_tracked_project()
    make.a_run(project, "8", outcome="died")
    a_fixer(project, end="was interrupted")
    for number in range(runs):
        make.a_run(project, str(number), slot=number + 1)
    for number in range(driven):
        drive(project, str(number))
    for _ in range(fixers):
        a_fixer(project)
    html = text_of(anna.get(f"/projects/{project.pk}/"))
    assert ('id="stop-all"' in html) is bool(asks)
    if asks:
        assert f'data-confirm="Press again: {asks}"' in html


def drive(project: Project, label: str) -> ManualSession:
    """A live session that a person drives."""
    name = f"{project.slug}-{label}"
    return ManualSession.objects.create(
        project=project,
        host="here",
        label=label,
        session=f"lab-{name}",
        branch=f"lab/{label}",
        state="live",
        by="anna",
        asked_at=rows.ago(hours=1),
    )


def a_fixer(project: Project, end: str = "") -> Fixer:
    """An agent that mends the validation of the project's newest watch session, or did."""
    now = rows.ago(hours=1)
    session = WatchSession.objects.filter(project=project).first()
    if session is None:
        session = WatchSession.objects.create(project=project, opened_at=now)
    number = session.validations.count() + 1
    ended_at = now if end else None
    validation = Validation.objects.create(
        project=project,
        session=session,
        number=number,
        count=number,
        host="here",
        state="failed" if end else "running",
        minutes=5,
        most_fixers=1,
        began_at=now,
        ended_at=ended_at,
    )
    return Fixer.objects.create(
        validation=validation, project=project, number=1, asked_at=now, end=end, ended_at=ended_at
    )


@pytest.mark.row("LAB-132", level="contract")
def test_a_project_is_added_and_its_page_opened(anna: Client, world: World, tmp_path: Any) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    world.repos.urls[str(folder)] = "main"
    answer = hx(anna, "/projects/new", {"source": str(folder), "name": "", "token": ""})
    project = Project.objects.get()
    assert answer["HX-Redirect"] == f"/projects/{project.pk}/"
    assert "shop" in text_of(anna.get(f"/projects/{project.pk}/"))
    plain = anna.post("/projects/new", {"source": str(folder), "name": "again"})
    assert plain.status_code == 303


@pytest.mark.parametrize(
    ("data", "field", "text"),
    [
        pytest.param({"source": ""}, "source", "Write a path or a clone URL.", id="nothing"),
        pytest.param({"source": "/no/such/folder"}, "source", "no folder", id="no folder"),
        pytest.param(
            {"source": "/tmp", "name": "demo"}, "name", "called demo already", id="name taken"
        ),
        pytest.param({"source": "--upload-pack=x"}, "source", "", id="an option"),
    ],
)
def test_what_is_wrong_with_a_project_is_said_at_its_field(
    anna: Client, world: World, data: dict[str, str], field: str, text: str
) -> None:
    rows.a_tracked_project()
    for answer in (anna.post("/projects/new", data), hx(anna, "/projects/new", data)):
        assert answer.status_code == 400
        assert f'id="id_{field}_error"' in text_of(answer)
        assert text in text_of(answer)
    assert "csrfmiddlewaretoken" in text_of(anna.post("/projects/new", data))
    assert Project.objects.count() == 1


@pytest.mark.row("X-05", level="contract")
def test_a_token_is_never_shown_again(anna: Client, world: World) -> None:
    data = {"source": "/no/such/folder", "token": "tok-s3cret"}
    assert "tok-s3cret" not in text_of(anna.post("/projects/new", data))
    project = rows.a_tracked_project(token="tok-s3cret")
    for page in ("/", f"/projects/{project.pk}/", f"/projects/{project.pk}/live"):
        assert "tok-s3cret" not in text_of(anna.get(page))


@pytest.mark.row("LAB-132", level="contract")
def test_a_failed_project_is_cloned_again_or_removed(anna: Client, world: World) -> None:
    project = rows.a_tracked_project(state=ProjectState.FAILED, error="no such host")
    assert "no such host" in text_of(anna.get(f"/projects/{project.pk}/"))
    answer = hx(anna, f"/projects/{project.pk}/retry", at=f"/projects/{project.pk}/")
    assert "cloning" in text_of(answer)
    Project.objects.update(state=ProjectState.FAILED)
    assert confirmed(anna).post(f"/projects/{project.pk}/remove").status_code == 303
    assert Project.objects.get().state == ProjectState.REMOVING


@pytest.mark.row("LAB-128", "LAB-132", level="contract")
def test_a_choice_from_the_closed_lists_is_stored_and_another_is_not(
    anna: Client, world: World
) -> None:
    agent = make.an_agent(model_names=["big"], efforts=["high"])
    other = AgentProfile.objects.create(name="Other", argv=["x", "{prompt}"], model_names=["small"])
    good = {"agent": str(agent.pk), "model": "big", "effort": "high"}
    assert anna.post("/settings/", good).status_code == 303
    for wrong in (
        {**good, "model": "nonsense"},
        {**good, "model": "small"},
        {**good, "agent": "99"},
        {**good, "agent": str(other.pk)},
        {},
    ):
        for answer in (anna.post("/settings/", wrong), hx(anna, "/settings/", wrong)):
            assert answer.status_code == 400
            assert "_error" in text_of(answer)
        settings = Settings.current()
        assert (settings.agent, settings.model, settings.effort) == (agent, "big", "high")
    assert "from now on" in text_of(hx(anna, "/settings/", {**good, "model": ""}))
    assert Settings.current().model == ""


def test_the_way_back_never_leaves_the_site(anna: Client, world: World) -> None:
    run = make.a_run(rows.a_tracked_project(), "7")
    answer = anna.post(f"/runs/{run.pk}/stop", SURE, headers={"Referer": "https://evil.example/"})
    assert answer["Location"] == f"/runs/{run.pk}/"
    answer = anna.post(f"/runs/{run.pk}/stop", SURE, headers={"Referer": "http://testserver/?x=1"})
    assert answer["Location"] == "http://testserver/?x=1"


def test_pages_need_no_inline_style_or_script(anna: Client, world: World) -> None:
    project = rows.full_board(world, 2)
    for page in [*rows.pages(project), "/projects/new"]:
        html = text_of(anna.get(page))
        assert not re.search(r"\sstyle=", html), page
        assert not re.search(r"<script(?![^>]*\ssrc=)", html), page
        assert not re.search(r"\son\w+=", html), page
        assert "<style" not in html

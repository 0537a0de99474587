"""Automatic work on the pages: the switch, the pause, the number beside Start, and why something waits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs import tick
from runs.core.states import Outcome
from runs.kept.models import Parked
from runs.lifecycle import outcomes
from runs.models import Project, Run, Settings
from tests import make
from tests.api.program import Program
from tests.fakes import START, World
from tests.web import board_rows as rows
from tests.web.people import hx, text_of
from trackers import registry
from trackers.base import NewPull
from trackers.builtin import store

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(world: World) -> Project:
    """A project on the memory tracker with three ready issues; the switch is off."""
    Settings.current()
    made = make.a_project(agent=make.an_agent())
    world.tracker.add_root("demo")
    for key in "789":
        world.tracker.add_issue("demo", f"Issue {key}", key, labels=[made.ready_label])
    return made


def page_of(client: Client, project: Project) -> str:
    return text_of(client.get(f"/projects/{project.pk}/"))


@pytest.mark.row("LAB-79", "LAB-132", level="contract")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_htmx", [True, False])
def test_the_switch_says_what_it_is_and_is_turned_by_a_press(
    anna: Client, project: Project, world: World, is_htmx: bool
) -> None:
    at, url = f"/projects/{project.pk}/", f"/projects/{project.pk}/auto"
    assert "Turn on" in page_of(anna, project)
    sent = {"is_on": "on"}
    answer = hx(anna, url, sent, at=at) if is_htmx else anna.post(url, sent)
    assert answer.status_code == (200 if is_htmx else 303)
    if is_htmx:
        assert 'hx-target="#project-auto"' in text_of(answer)
    assert "Turn off" in page_of(anna, project)
    assert world.bell.looks == ["demo"]
    anna.post(url, {"is_on": "off"})
    assert "Turn on" in page_of(anna, project)


def test_only_those_who_may_act_see_the_switch(vera: Client, project: Project) -> None:
    assert "auto-switch" not in page_of(vera, project)
    assert vera.post(f"/projects/{project.pk}/auto", {"is_on": "on"}).status_code == 403
    assert Project.objects.get().is_auto is False


def test_an_open_pull_request_is_named_and_discard_is_not_advised(
    anna: Client, world: World, project: Project
) -> None:
    for name in ("demo-7", "demo-8"):
        (world.lab.paths.worktrees / name).mkdir(parents=True)
    web = "https://forge.test/o/r/pulls/12"
    Project.objects.update(pulls_seen=[[12, "afk/7", "Seven", web]])
    page = text_of(anna.get(f"/projects/{project.pk}/waiting"))
    seven, eight = page.split('id="waiting-8"')
    assert "Pull request #12 of afk/7 is open and claims the issue." in seven
    assert f'href="{web}"' in seven
    assert "Discard" not in seven
    assert "Discard afk/8" in eight


@pytest.mark.long
def test_one_reason_has_its_remedy_beside_it_and_several_have_a_line_of_their_own(
    anna: Client, world: World, project: Project
) -> None:
    world.repos.heads.setdefault(project.repo(world.lab.paths), {})["afk/8"] = "f" * 40
    page = text_of(anna.get(f"/projects/{project.pk}/waiting"))
    eight = page.split('id="waiting-8"')[1].split('id="waiting-9"')[0]
    assert (eight.count("data-why"), eight.count("To start it:")) == (2, 1)
    anna.post(f"/projects/{project.pk}/auto", {"is_on": "on"})
    page = text_of(anna.get(f"/projects/{project.pk}/waiting"))
    eight = page.split('id="waiting-8"')[1].split('id="waiting-9"')[0]
    assert (eight.count("data-why"), eight.count("Discard afk/8")) == (1, 1)
    assert "To start it:" not in eight


@pytest.mark.long
def test_with_labsites_own_tracker_its_page_names_the_pull_request_too_and_counts_agree(
    anna: Client, operator: User, world: World
) -> None:
    world.lab = replace(world.lab, tracker_for=registry.tracker)
    Settings.current()
    own = rows.a_tracked_project(agent=make.an_agent())
    number = rows.a_ready_issue(own)
    (world.lab.paths.worktrees / f"demo-{number}").mkdir(parents=True)
    new = NewPull(f"afk/{number}", "main", "Retries", "", author="lab")
    pull = store.create_pull(own.tracker_root, new, at=START)
    address = f"/projects/{own.pk}/pulls/{pull}/"
    page = text_of(anna.get(f"/projects/{own.pk}/waiting"))
    assert address in page
    assert f"Pull request #{pull} of afk/{number} is open" in page
    issue = text_of(anna.get(f"/projects/{own.pk}/issues/{number}/"))
    assert f"pull request #{pull} open" in issue
    assert address in issue
    rows.a_ready_issue(own, "Free")
    blocked = rows.a_ready_issue(own, "Blocked")
    body = f"## Blocked by\n- #{number}"
    store.edit_issue(own.tracker_root, blocked, title=None, body=body, at=START)
    Parked.objects.create(project=own, branch=f"afk/{number}", tip="a", committed_at=START)
    make.a_run(own, str(number), outcome="succeeded")
    told = Program.of(operator).get(f"/projects/{own.pk}/waiting").json()["items"]
    may = [one for one in told if all(why["only_auto"] for why in one["failed"])]
    assert (len(may), len(told)) == (1, 3)
    assert "1 of 3 can start" in text_of(anna.get(f"/projects/{own.pk}/"))
    assert '<span class="count">1 ready</span>' in text_of(anna.get("/"))


@pytest.mark.row("LAB-96", "LAB-98", level="contract")
def test_the_card_tells_of_the_pause_and_offers_reset_only_then(
    anna: Client, project: Project, world: World
) -> None:
    Project.objects.update(is_auto=True)
    for number in range(1, 4):
        shown = page_of(anna, project)
        assert "streak-reset" not in shown
        assert "runs in a row failed" not in shown
        run = make.a_run(project, str(number))
        outcomes.record(world.lab, run, Outcome.DIED, "because")
    shown = page_of(anna, project)
    assert "3 runs in a row failed." in shown
    assert f'<a href="/runs/{run.pk}/">The last one, issue 3, died.</a>' in shown
    assert 'id="streak-reset"' in shown
    assert "is paused after 3 failed runs in a row" in text_of(anna.get("/"))
    assert anna.get(f"/projects/{project.pk}/reset").status_code == 405
    answer = hx(anna, f"/projects/{project.pk}/reset", at=f"/projects/{project.pk}/")
    assert "streak-reset" not in text_of(answer)
    assert "streak-reset" not in page_of(anna, project)
    assert Project.objects.get().is_auto is True


@pytest.mark.row("LAB-98", level="contract")
def test_a_project_that_cannot_be_driven_is_refused_in_words(anna: Client, world: World) -> None:
    made = make.a_project(state="cloning", streak=3)
    for url in ("auto", "reset"):
        answer = hx(anna, f"/projects/{made.pk}/{url}", {"is_on": "on"})
        assert answer.status_code == 409
        assert "has not been cloned yet. Nothing was changed." in text_of(answer)


@pytest.mark.long
@pytest.mark.row("LAB-101", "LAB-102", "LAB-103", "LAB-105", level="contract")
def test_the_number_beside_start(anna: Client, project: Project, world: World) -> None:
    def hint() -> str:
        shown = page_of(anna, project)
        return shown.partition('id="start-hint">(')[2].partition("<")[0]

    assert hint() == ""
    Project.objects.update(is_auto=True)
    assert hint() == ""
    world.clock.forward(seconds=46)
    tick.tick(world.lab)
    assert hint() == "2"
    asked = world.tracker.calls.copy()
    tag = anna.get(f"/projects/{project.pk}/live", headers={"HX-Request": "true"})["HX-PTag"]
    for _ in range(5):
        page_of(anna, project)
    assert world.tracker.calls == asked
    world.dead_processes.add(world.lab.process)
    assert hint() == ""
    fresh = anna.get(f"/projects/{project.pk}/live", headers={"HX-Request": "true", "HX-PTag": tag})
    assert fresh.status_code == 200
    world.dead_processes.clear()
    Project.objects.update(is_auto=False)
    assert hint() == ""


def test_what_automatic_work_found_to_wait_is_said_in_the_list_and_left_out_of_the_counts(
    anna: Client, project: Project, world: World
) -> None:
    Settings.objects.update(session_cap=1)
    world.sessions.appear("other~9~afk-99")
    world.tracker.add_issue(
        "demo", "Later", "20", body="## Blocked by\n- #7", labels=[project.ready_label]
    )
    heard = [[key, f"Issue {key}", ""] for key in ("7", "8", "9", "20")]
    Project.objects.update(is_auto=True, trusted="ada", queue_seen=heard, queue_count=4)
    world.clock.forward(seconds=46)
    tick.tick(world.lab)
    told = Project.objects.get()
    assert told.claimable == 0
    assert told.held_seen["20"] == "waits for #7"
    page = page_of(anna, project)
    assert "waits for #7" in page
    assert 'name="issue" value="20"' not in page
    # A person who names it vouches for it.
    assert "author not trusted" in page
    assert 'name="issue" value="7"' in page
    assert f'<span id="start-hint">({told.claimable}<' in page
    assert f"{told.claimable} of 4 can start" in page


@pytest.mark.row("LAB-102", level="contract")
def test_zero_is_grey_and_the_click_looks_for_itself(
    anna: Client, project: Project, world: World
) -> None:
    Project.objects.update(is_auto=True, claimable=0, counted_by=world.lab.process)
    shown = page_of(anna, project)
    button = shown.partition('id="start"')[2].partition("</button>")[0]
    assert 'class="btn"' in button
    assert "(0" in button
    assert "disabled" not in button
    from runs.dispatch import start_requests

    start_requests.request(world.lab, project, "anna")
    tick.tick(world.lab, project="demo")
    assert Run.objects.get(kind="manual").issue_key == "7"


@pytest.mark.row("LAB-81", level="contract")
def test_the_settings_page_shows_each_clock_of_its_own(
    anna: Client, project: Project, world: World
) -> None:
    Settings.objects.update(tick_seconds=20, launch_seconds=60)
    assert "every 1 min, not yet" in text_of(anna.get("/settings/"))
    tick.tick(world.lab)
    shown = text_of(anna.get("/settings/")).partition('id="turns"')[2]
    assert "Runs are looked at</dt><dd>every 20 s, last" in shown
    assert "Automatic work is started</dt><dd>every 1 min, last" in shown


def test_the_page_says_why_each_ready_issue_is_not_running(
    anna: Client, project: Project, world: World
) -> None:
    world.repos.heads.setdefault(project.repo(world.lab.paths), {})["afk/8"] = "f" * 40
    shown = text_of(anna.get(f"/projects/{project.pk}/waiting"))
    for key in "789":
        assert f'id="waiting-{key}"' in shown
    assert shown.count("Automatic work of this project is off.") == 3
    assert "The branch afk/8 of an earlier run is kept" in shown
    assert f'formaction="/projects/{project.pk}/start" name="issue" value="7"' in shown
    assert f'formaction="/projects/{project.pk}/auto" name="is_on" value="on"' in shown
    make.a_run(project, "7")
    assert 'id="waiting-7"' not in text_of(anna.get(f"/projects/{project.pk}/waiting"))
    world.tracker.fail()
    assert "The tracker did not answer" in text_of(anna.get(f"/projects/{project.pk}/waiting"))


def test_a_viewer_reads_the_reasons_and_gets_no_button(vera: Client, project: Project) -> None:
    shown = text_of(vera.get(f"/projects/{project.pk}/waiting"))
    assert "Automatic work of this project is off." in shown
    assert "formaction" not in shown.partition('id="waiting"')[2].partition("</main>")[0]


@pytest.mark.parametrize("size", [1, 11])
def test_the_reasons_cost_the_same_for_one_issue_and_for_eleven(
    anna: Client, world: World, size: int, django_assert_max_num_queries
) -> None:
    Settings.current()
    made = rows.a_tracked_project()
    for _ in range(size):
        store.create_issue(
            made.tracker_root,
            title="t",
            body="## Blocked by\n#900",
            author="ada",
            labels=[made.ready_label],
            at=world.clock.now,
        )
    anna.get(f"/projects/{made.pk}/waiting")
    with django_assert_max_num_queries(24):
        anna.get(f"/projects/{made.pk}/waiting")

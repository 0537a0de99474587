"""What the pages show, and why something cannot be done."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from runs.core.states import Outcome, ProjectState
from runs.forges import tracker_cache as seen
from runs.kept.models import Parked
from runs.lifecycle import outcomes
from runs.models import Host, Project, Run, Settings
from runs.overview import queries
from runs.web import fragments
from tests import make
from tests.fakes import START, World
from tests.watch.test_watch_pages import part
from tests.web import board_rows as rows
from tests.web.people import text_of
from tests.world.memory_tracker import MemoryTracker
from trackers.base import Ability, NewPull, Pull, PullState
from trackers.builtin import store

pytestmark = pytest.mark.django_db

REMOTE = frozenset(Ability) - {Ability.LOCAL}


def test_pages_show_projects_runs_and_ready_issues(anna: Client, world: World) -> None:
    project = rows.full_board(world, 2)
    for page in rows.pages(project):
        assert anna.get(page).status_code == 200, page
    overview = text_of(anna.get("/"))
    for piece in (
        "2 of 6",
        "Ready 0",
        "other-1",
        "The session ended.",
        "The tracker did not answer.",
    ):
        assert piece in overview


def test_an_empty_overview_offers_a_project_and_the_demo(
    anna: Client, vera: Client, world: World
) -> None:
    assert "Try the demo" in text_of(anna.get("/"))
    assert "/projects/new" in text_of(anna.get("/"))
    assert "Try the demo" not in text_of(vera.get("/"))


def test_the_numbers_are_counted_from_stored_runs(anna: Client, world: World) -> None:
    project = rows.a_tracked_project()
    for number, (outcome, hours, took) in enumerate(
        [
            ("succeeded", 1, 10),
            ("succeeded", 30, 20),
            ("died", 2, 30),
            ("stopped", 3, 5),
            ("succeeded", 200, 9),
        ]
    ):
        ended = rows.ago(hours=hours)
        make.a_run(
            project,
            str(number + 1),
            outcome=outcome,
            started_at=rows.ago(hours=hours, minutes=took),
            ended_at=ended,
            settled_at=ended,
        )
    make.a_run(project, "9", outcome="failed", started_at=None)
    stats = queries.overview(world.lab).stats
    assert (stats.ended, stats.success, stats.counted) == (3, 67, 3)
    assert stats.median is not None
    assert stats.median.total_seconds() == 20 * 60


def test_without_runs_no_rate_is_invented(anna: Client, world: World) -> None:
    rows.a_tracked_project()
    page = text_of(anna.get("/"))
    assert "Success" not in page
    assert "Median" not in page


@pytest.mark.row("LAB-73", level="contract")
def test_an_issue_that_a_run_has_claimed_is_not_up_next(world: World) -> None:
    project = rows.a_tracked_project()
    first, second, third = (rows.a_ready_issue(project, f"Issue {n}") for n in range(3))
    make.a_run(project, str(first))
    make.a_run(project, str(second), outcome="died")
    make.a_run(project, str(third), outcome="failed", started_at=None)
    kept = Parked.objects.create(
        project=project, branch=f"afk/{second}", tip="a", committed_at=START
    )
    page = queries.overview(world.lab)
    assert [issue.key for issue in page.next] == [str(third)]
    assert page.stats.claimed == 2
    kept.delete()
    assert str(second) in [issue.key for issue in queries.overview(world.lab).next]


def test_what_cannot_start_says_why_and_every_count_leaves_it_out(
    anna: Client, world: World
) -> None:
    project = rows.a_tracked_project()
    first, second, third = (rows.a_ready_issue(project, f"Issue {n}") for n in range(3))
    root = project.tracker_root
    store.edit_issue(root, second, title=None, body=f"## Blocked by\n- #{first}\n- #99", at=START)
    pull = store.create_pull(
        root, NewPull(f"afk/{third}", "main", "Third", "", author="lab"), at=START
    )
    Parked.objects.create(project=project, branch=f"afk/{third}", tip="a", committed_at=START)
    make.a_run(project, str(third), outcome="succeeded")
    page = queries.overview(world.lab)
    assert [issue.key for issue in page.next] == [str(first)]
    assert (page.stats.ready, page.stats.claimed) == (1, 2)
    assert page.board.free_count(project) == 1
    shown = text_of(anna.get(f"/projects/{project.pk}/"))
    assert f"waits for #{first}" in shown
    assert f"pull request #{pull} open" in shown
    assert "1 of 3 can start" in shown
    store.set_open(root, first, is_open=False, at=START)
    assert [issue.key for issue in queries.overview(world.lab).next] == [str(second)]
    store.close_pull(root, pull, at=START)
    assert "earlier work kept" in text_of(anna.get(f"/projects/{project.pk}/"))
    Parked.objects.all().delete()
    assert len(queries.overview(world.lab).next) == 2


def test_a_paused_project_says_so_in_its_head(anna: Client, world: World) -> None:
    project = rows.a_tracked_project(streak=3)
    regions = fragments.regions(f"project:{project.pk}", True) or {}
    assert "paused" in regions["project-head"]
    assert "3 runs in a row failed" in regions["project-held-up"]
    Project.objects.update(streak=2)
    regions = fragments.regions(f"project:{project.pk}", True) or {}
    assert "paused" not in regions["project-head"]


def test_what_went_badly_needs_a_person_until_a_day_after_it_was_opened(
    anna: Client, vera: Client, world: World
) -> None:
    rows.a_tick(world)
    project = rows.a_tracked_project("billing", state=ProjectState.FAILED, error="no such host")
    make.a_run(project, "1", outcome="died", reason="exit status 1", ended_at=rows.ago(hours=23))
    old = make.a_run(
        project, "2", outcome="timed_out", reason="too long", ended_at=rows.ago(days=60)
    )
    make.a_run(
        project,
        "3",
        outcome="succeeded",
        warning="the worktree was kept",
        ended_at=rows.ago(hours=1),
    )
    make.a_run(project, "4", outcome="stopped", ended_at=rows.ago(hours=1))
    make.a_run(project, "5", outcome="died", ended_at=rows.ago(hours=3))
    make.a_run(project, "5", outcome="succeeded", ended_at=rows.ago(hours=2))

    def told() -> list[tuple[str, str]]:
        return [(row.need.title, row.need.what) for row in queries.overview(world.lab).needs.rows]

    everything = [
        ("billing", "could not be cloned"),
        ("billing #3", "was not tidied up completely"),
        ("billing #2", "timed out"),
        ("billing #1", "died"),
    ]
    assert told() == everything
    vera.get(f"/runs/{old.pk}/")
    anna.get(f"/runs/{old.pk}/")
    world.clock.forward(days=1, seconds=-1)
    assert told()[-3:] == everything[-3:]
    world.clock.forward(seconds=1)
    assert ("billing #2", "timed out") not in told()
    assert ("billing #1", "died") in told()


def test_pull_requests_and_unpushed_work_wait_for_a_person(anna: Client, world: World) -> None:
    rows.a_tick(world)
    project = rows.a_tracked_project("billing", warning="The token has expired.")
    new = NewPull("afk/7", "main", "Add retries", "", "Claude")
    number = store.create_pull(project.tracker_root, new, at=world.clock.now)
    about = {"project": project, "tip": "a" * 40, "committed_at": world.clock.now}
    Parked.objects.create(branch="afk/8", unpushed=2, **about)
    Parked.objects.create(branch="afk/9", unpushed=1, **about)
    Parked.objects.create(branch="afk/10", unpushed=0, **about)
    Parked.objects.create(branch="afk/11", unpushed=None, **about)
    needs = queries.overview(world.lab).needs
    assert [(row.need.what, row.label) for row in needs.rows] == [
        ("needs a look", "Open project"),
        ("waits for your review", "Review"),
        ("has 3 commits that origin does not", "Open parked work"),
    ]
    Project.objects.update(streak=3)
    assert len(queries.overview(world.lab).needs.rows) == 3  # nothing starts by itself here anyway
    Project.objects.update(is_auto=True)
    assert (
        queries.overview(world.lab).needs.rows[0].need.what
        == "is paused after 3 failed runs in a row"
    )
    at = f"/projects/{project.pk}/reset"
    assert f'hx-post="{at}"' in text_of(anna.get("/"))
    vera = Client()
    vera.force_login(make.a_user("vera", operator=False))
    assert at not in text_of(vera.get("/"))
    html = text_of(anna.post(at, headers={"HX-Request": "true"}))
    assert 'hx-target="#needs-you"' in html
    assert "is paused" not in html
    assert "2 parked branches" in needs.rows[2].need.why
    page = text_of(anna.get("/"))
    assert f"/projects/{project.pk}/pulls/{number}/" in text_of(anna.get("/"))
    assert "waits for your review" in page
    store.close_pull(project.tracker_root, number, at=world.clock.now)
    assert "waits for your review" not in text_of(anna.get("/"))


@pytest.mark.row("X-13", level="contract")
def test_a_late_worker_is_a_red_strip_on_every_page(anna: Client, world: World) -> None:
    project = rows.full_board(world, 1)
    world.clock.forward(seconds=60)
    assert "Nobody is watching" not in text_of(anna.get("/"))
    before = fragments.version("overview")
    world.clock.forward(seconds=1)
    assert fragments.version("overview") != before
    for page in [*rows.pages(project), "/projects/new", "/nowhere"]:
        assert "Nobody is watching" in text_of(anna.get(page)), page


def test_an_error_of_the_last_tick_is_on_every_page(anna: Client, world: World) -> None:
    rows.a_tick(world)
    Host.objects.update(last_error="tmux did not answer.")
    assert "tmux did not answer." in text_of(anna.get("/settings/"))


@pytest.mark.row("LAB-01", level="contract")
def test_an_adopted_run_shows_calmly(anna: Client, world: World) -> None:
    project = rows.a_tracked_project()
    run = make.a_run(
        project, "7", slot=None, is_adopted=True, kind="auto", issue_title="", agent=""
    )
    page = text_of(anna.get(f"/runs/{run.pk}/"))
    for piece in ("Adopted", "adopted", ">auto<", "None (never created)"):
        assert piece in page
    assert "did not write its task" in text_of(anna.get(f"/runs/{run.pk}/prompt/"))
    assert text_of(anna.get("/")).count(f'id="run-{run.pk}"') == 1


def test_the_page_of_a_dead_run_says_why(anna: Client, world: World) -> None:
    project = rows.a_tracked_project()
    run = make.a_run(
        project, "7", outcome="died", reason="the session was ended by signal 9", exit_signal=9, exited_at=rows.ago(minutes=1),
        last_words="\x1b[31mno more credit\x1b[0m", worktree_fate="kept", worktree="/state/worktrees/demo-7",
    )  # fmt: skip
    page = text_of(anna.get(f"/runs/{run.pk}/"))
    for piece in (
        "ended by signal 9",
        "SIGKILL",
        '<span class="ansi31">no more credit</span>',
        "/state/worktrees/demo-7",
    ):
        assert piece in page


def test_an_ended_run_shows_the_budget_it_had_and_what_became_of_its_pull_request(
    anna: Client, world: World
) -> None:
    project = rows.a_tracked_project(run_budget_minutes=50)
    new = NewPull("afk/7", "main", "Add retries", "", "Claude")
    number = store.create_pull(project.tracker_root, new, at=world.clock.now)
    run = make.a_run(project, "7")
    seen = {"pull_number": number}
    assert outcomes.record(world.lab, run, Outcome.SUCCEEDED, "delivered", seen=seen)
    Project.objects.update(run_budget_minutes=5)
    page = text_of(anna.get(f"/runs/{run.pk}/"))
    assert "of 50 min" in page
    assert part(page, "exit").count(f"Pull request #{number} open") == 1
    store.close_pull(project.tracker_root, number, at=world.clock.now)
    assert f"#{number} closed" in part(text_of(anna.get(f"/runs/{run.pk}/")), "exit")


def test_of_another_tracker_a_run_shows_what_that_told_last(anna: Client, world: World) -> None:
    world.lab = replace(world.lab, tracker_for={"memory": MemoryTracker(REMOTE)}.get)
    project = make.a_project("shop")
    run = make.a_run(project, "7", outcome="succeeded", pull_number=4, pull_state="open")

    def shown() -> str:
        return part(text_of(anna.get(f"/runs/{run.pk}/")), "exit")

    assert "Pull request #4 open" in shown()
    pull = Pull(4, "afk/7", PullState.MERGED)
    seen.keep_pulls(world.lab, project, [replace(pull, state=PullState.OPEN)], world.clock.now)
    assert "Pull request #4 open" in shown()
    seen.keep_pulls(world.lab, project, [], world.clock.now)
    assert "Pull request #4 no longer open" in shown()
    seen.keep_pulls(world.lab, project, [pull], world.clock.now)
    assert "Pull request #4 merged" in shown()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, "None (never created)", id="nothing was claimed"),
        pytest.param({"claimed_at": START}, "None (removed again, empty)", id="taken back"),
    ],
)
def test_a_failed_start_says_once_what_there_is_of_worktree_and_output(
    anna: Client, world: World, fields: dict[str, Any], expected: str
) -> None:
    about = {"outcome": "failed", "started_at": None, "worktree_fate": "none", **fields}
    run = make.a_run(rows.a_tracked_project(), "7", **about)
    page = text_of(anna.get(f"/runs/{run.pk}/"))
    assert f"Output None Worktree {expected}" in part(page, "exit")
    assert "No worktree" in text_of(anna.get(f"/runs/{run.pk}/changes/"))
    assert "never started" in text_of(anna.get(f"/runs/{run.pk}/terminal/"))
    Run.objects.update(last_words="no such model")
    page = text_of(anna.get(f"/runs/{run.pk}/"))
    assert page.count("no such model") == 1
    assert "Output None" not in part(page, "exit")


@pytest.mark.row("X-17", level="contract")
def test_a_new_line_of_the_agent_is_on_its_page_and_leaves_all_else_as_it_was(
    anna: Client, world: World
) -> None:
    run = make.a_run(rows.a_tracked_project(), "7")
    world.live(run)
    world.sessions.text[run.session] = "first"
    before = fragments.version(f"term:{run.pk}")
    assert fragments.version(f"term:{run.pk}") == before
    world.sessions.text[run.session] = "first\nsecond"
    assert fragments.version(f"term:{run.pk}") == before, "its changes are pushed on their own"
    assert "second" in text_of(anna.get(f"/runs/{run.pk}/terminal/"))


def test_a_hosted_project_shows_the_one_command_that_brings_merges_home(
    anna: Client, world: World
) -> None:
    project = rows.a_tracked_project(is_hosted=True)
    page = text_of(anna.get(f"/projects/{project.pk}/"))
    assert f"git -C /nowhere pull --ff-only {project.origin(world.lab.paths)} main" in page


@pytest.mark.row("LAB-64", level="contract")
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        pytest.param({"tracker": ""}, "no tracker", id="no tracker"),
        pytest.param({"state": ProjectState.CLONING}, "being cloned", id="cloning"),
        pytest.param({"state": ProjectState.FAILED}, "could not be cloned", id="failed"),
    ],
)
def test_a_start_that_cannot_work_is_disabled_with_the_reason(
    anna: Client, world: World, fields: dict[str, Any], why: str
) -> None:
    project = make.a_project(**fields)
    page = text_of(anna.get(f"/projects/{project.pk}/"))
    button = re.search(r'<button[^>]*id="start"[^>]*>', page)
    assert button is not None
    assert " disabled" in button[0]
    assert why in page


@pytest.mark.row("LAB-66", level="contract")
def test_at_the_cap_the_card_is_marked_and_the_start_disabled(anna: Client, world: World) -> None:
    project = rows.a_tracked_project()
    Settings.current()
    Settings.objects.update(session_cap=1)
    make.a_run(project, "7")
    assert '<div class="stat full"><small>Slots</small><b>1 of 1</b>' in text_of(anna.get("/"))
    assert "All 1 slots are taken" in text_of(anna.get(f"/projects/{project.pk}/"))


@pytest.mark.row("LAB-69", level="contract")
def test_the_project_that_was_opened_last_is_on_top(anna: Client, world: World) -> None:
    for name, opened in (
        ("beta", None),
        ("alpha", None),
        ("old", rows.ago(days=2)),
        ("new", rows.ago(hours=1)),
    ):
        rows.a_tracked_project(name, last_opened_at=opened)
    assert re.findall(r'<span class="name">(\w+)</span>', text_of(anna.get("/"))) == [
        "new",
        "old",
        "alpha",
        "beta",
    ]


@pytest.mark.parametrize(
    "query", ["?outcome=<script>", "?project=x&after=-1", "?at=99999999999999999999"]
)
def test_a_senseless_filter_is_as_if_it_were_not_there(
    anna: Client, world: World, query: str
) -> None:
    make.a_run(rows.a_tracked_project(), "7")
    answer = anna.get("/history/" + query)
    assert answer.status_code == 200
    assert "Issue 7" in text_of(answer)


@pytest.mark.parametrize(
    "page",
    [
        "/runs/987654321/",
        "/projects/987654321/",
        "/projects/987654321/live",
        "/runs/987654321/live",
        "/nowhere",
    ],
)
def test_what_is_not_there_is_404_in_the_look_of_the_house(
    anna: Client, world: World, page: str
) -> None:
    assert anna.get(page).status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("outcome", "fate", "shown"),
    [
        ("died", "kept", True),
        ("stopped", "kept", True),
        ("succeeded", "kept", False),
        ("failed", "none", False),
    ],
)
def test_a_kept_claim_tells_how_it_is_given_back(anna, world, outcome, fate, shown):
    run = make.a_run(
        make.a_project(), outcome=outcome, worktree="/state/worktrees/demo-7", worktree_fate=fate
    )
    page = text_of(anna.get(f"/runs/{run.pk}/"))
    assert ("discard it under Parked" in page) is shown


def test_a_page_does_not_carry_the_indentation_of_its_templates(anna: Client, world: World) -> None:
    html = anna.get("/").content.decode()
    assert "\n<main" in html
    assert "\n  " not in html

"""Pages full of odd things, light and dark, desk and phone: axe finds nothing, nothing is cut, all is big enough to touch."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from playwright.sync_api import expect

from runs.core.history_ports import Change
from runs.core.states import NoticeKind, ProjectState
from runs.kept import rescue
from runs.models import Project, Run
from runs.timeline import announce
from tests import make
from tests.fakes import FakeTree, World
from tests.web import board_rows as rows
from tests.web.browsing import OpenPage
from tests.web.looking import look, looks
from tests.web.test_pages_text import PATCH

pytestmark = pytest.mark.django_db(transaction=True)

COLOURS = "".join(
    f"\x1b[{code}m{code} \x1b[0m"
    for code in (
        *range(30, 38),
        *range(40, 48),
        *range(90, 98),
        7,
        2,
        "38;5;17",
        "48;5;226",
        "38;2;0;0;90",
    )
)

LAST_WORDS = (
    "\x1b[2mclaude-sonnet-5 · session 1\x1b[0m\nI look.\n\x1b[36m▸ Bash: make test\x1b[0m\n"
    "\x1b[2m  ok\x1b[0m\n\x1b[33m! rate limit (429)\x1b[0m\n\x1b[31m■ ended with an error\x1b[0m"
)


@pytest.fixture
def addresses(world: World, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A house full of things, and where its pages are."""
    project = rows.full_board(world, 3)
    title = "A title that says <b>a lot</b> and goes on and on, " * 8
    rows.a_ready_issue(project, title)
    live = make.a_run(
        project,
        "7",
        issue_title=title,
        worktree=str(tmp_path),
        fork_point="abc",
        prompt="Do it.\n" * 30,
        last_line="x" * 300,
    )
    world.sessions.appear(live.session)
    world.sessions.text[live.session] = COLOURS + "\nlong " * 3 + "y" * 500
    changes = [
        Change("app.py", "M", 2, 1),
        Change("a/very/long/path/" * 6 + "x.py", "?", None, None),
    ]
    monkeypatch.setattr(world.repos, "changes", lambda path, fork, head="": changes)
    monkeypatch.setattr(world.repos, "patch", lambda path, fork, limit, head="": PATCH)
    tree = world.lab.paths.worktrees / "demo-77"
    tree.mkdir(parents=True)
    repo = project.repo(world.lab.paths)
    world.repos.heads[repo] = {"afk/77": "a" * 40, "afk/a-long-name" * 8: "b" * 40}
    world.repos.trees[tree] = FakeTree("afk/77", "a" * 40, is_dirty=True)
    kept = rescue.keep(world.lab, project, "afk/77", "a" * 40, tree, why="a test", always=True)
    starting = make.a_run(project, "8", slot=8, state="starting", started_at=None)
    waiting = make.a_run(
        project,
        "9",
        slot=9,
        mode="one_shot",
        output="claude_stream_json",
        agent_state="rate_limited",
        agent_note="rate limit (429), try 1 of 2",
        agent_until=world.clock.now + timedelta(hours=1),
        agent_session="ef2428a7-c405-4f0b-9c90-3b85490cb350",
        agent_model="claude-sonnet-5",
        turns=12,
        issue_title=title,
    )
    world.sessions.appear(waiting.session)
    world.sessions.text[waiting.session] = "\x1b[36m▸ Bash: make test\x1b[0m"
    told = make.a_run(
        project,
        "10",
        outcome="died",
        reason="the agent ended with an error (HTTP 400): Credit balance is too low",
        mode="one_shot",
        output="claude_stream_json",
        agent_state="failed",
        agent_note="Credit balance is too low " * 10,
        agent_session="ef2428a7-c405-4f0b-9c90-3b85490cb350",
        resume_argv=["claude", "--resume", "{session}"],
        worktree="/somewhere/that/is/long/" * 5,
        worktree_fate="kept",
        turns=12,
        tokens_in=1_234_567,
        tokens_cached=1_000_000,
        tokens_out=4_321,
        cost_usd="1.25",
        last_words=LAST_WORDS,
    )
    dead = Run.objects.filter(outcome="died", output="").first()
    failed = rows.a_tracked_project(
        "failed", state=ProjectState.FAILED, error="fatal: no such host " * 30
    )
    cloning = rows.a_tracked_project(
        "cloning", state=ProjectState.CLONING, clone_progress="Receiving objects:  45% (450/1000)"
    )
    assert dead is not None
    counted = {"claimable": 2, "counted_by": world.lab.process}
    fields = {"is_auto": True, "streak": 3, "last_failure": told, **counted}
    Project.objects.filter(pk=project.pk).update(**fields)
    Project.objects.filter(name="other-0").update(**{**fields, "streak": 0})
    return {
        "overview": "/", "project": f"/projects/{project.pk}/", "failed project": f"/projects/{failed.pk}/",
        "cloning project": f"/projects/{cloning.pk}/", "live run": f"/runs/{live.pk}/",
        "terminal": f"/runs/{live.pk}/terminal/", "changes": f"/runs/{live.pk}/changes/", "prompt": f"/runs/{told.pk}/prompt/", "raw": f"/runs/{told.pk}/raw/", "starting run": f"/runs/{starting.pk}/",
        "waiting run": f"/runs/{waiting.pk}/", "run that told": f"/runs/{told.pk}/",
        "dead run": f"/runs/{dead.pk}/", "history": "/history/?least=x",
        "not found": "/nowhere", "needs you": "/needs/",
        "automatic": f"/projects/{project.pk + 1}/",
        "api": "/api/",
        "parked": f"/projects/{project.pk}/parked/", "rescue": f"/projects/{project.pk}/rescues/{kept.pk}/",
    }  # fmt: skip


def test_every_page_is_accessible_and_fits(
    open_page: OpenPage, operator: User, addresses: dict[str, str]
) -> None:
    page = open_page("/", operator)
    wrong: list[object] = []
    for name, address in addresses.items():
        page.goto(address)
        page.evaluate(
            "document.querySelectorAll('details:is(.file, .operation)').forEach(one => { one.open = true; })"
        )
        wrong += looks(page, name)
    assert wrong == []


def test_the_empty_overview_is_accessible(
    open_page: OpenPage, operator: User, world: World
) -> None:
    for width in (1440, 390):
        page = open_page("/", operator, width=width)
        expect(page.get_by_role("button", name="Try the demo")).to_be_visible()
        assert look(page, "empty overview", "light", width) == []


def test_the_audit_shows_what_happened_whole_beside_long_names(
    open_page: OpenPage, operator: User, world: World
) -> None:
    project = rows.a_tracked_project("a-project-with-a-long-name-" * 2 + "x")
    run = make.a_run(project, "7")
    text = "stopped by anna; worktree and branch kept, and it goes on to say why " * 2
    with transaction.atomic():
        announce.tell(
            world.lab, NoticeKind.RUN_ENDED, text, run=run, by="somebody-with-a-long-name"
        )
    page = open_page("/audit/", operator, width=1200)
    cell = page.locator("td.wide")
    assert cell.evaluate(
        "cell => [cell.scrollWidth <= cell.clientWidth, cell.clientWidth > 340]"
    ) == [True, True]
    assert look(page, "audit", "light", 1200) == []
    page.set_viewport_size({"width": 390, "height": 900})
    assert look(page, "audit", "light", 390) == []


def test_the_keyboard_reaches_the_content_first(
    open_page: OpenPage, operator: User, world: World
) -> None:
    page = open_page("/", operator)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_on_a_phone_the_bottom_bar_leads_everywhere(
    open_page: OpenPage, operator: User, addresses: dict[str, str]
) -> None:
    page = open_page("/", operator, width=390)
    bar = page.get_by_role("navigation", name="Main")
    box = bar.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] >= 899
    bar.get_by_role("link", name="Projects").click()
    page.locator("#projects").get_by_role("link", name="failed").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("failed")


def test_without_a_wish_for_motion_nothing_moves(
    open_page: OpenPage, operator: User, addresses: dict[str, str]
) -> None:
    page = open_page("/", operator, reduced_motion="reduce")
    assert page.evaluate("document.getAnimations().length") == 0

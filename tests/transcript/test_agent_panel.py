"""What pages show of a one-shot agent: its panel, its badge, its transcript."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from runs import tick
from runs.models import Run
from runs.transcript import panel
from tests import make
from tests.fakes import START, World
from tests.transcript import agent_lines as x
from tests.web import board_rows as rows
from tests.web.browsing import OpenPage
from tests.web.people import text_of

pytestmark = pytest.mark.django_db(transaction=True)

ONE_SHOT = {"mode": "one_shot", "output": "claude_stream_json"}
SOON = START + timedelta(hours=1)
SESSION = {"agent_session": x.SESSION, "resume_argv": ["claude", "--resume", "{session}"]}


def _run(**fields: object) -> Run:
    return make.a_run(make.a_project(), **{**ONE_SHOT, **fields})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"agent_state": "working"}, None, id="at work"),
        pytest.param({"agent_state": ""}, None, id="unknown"),
        pytest.param({"agent_state": "retrying"}, ("warn", "retrying", ""), id="retrying"),
        pytest.param(
            {"agent_state": "rate_limited", "agent_until": SOON},
            ("warn", "rate limited", "13:00:00 UTC"),
            id="rate limited with its end",
        ),
        pytest.param(
            {"agent_state": "rate_limited", "agent_until": START},
            ("warn", "rate limited", ""),
            id="an end that is over is not shown",
        ),
        pytest.param({"agent_state": "needs_login"}, ("bad", "needs login", ""), id="login"),
        pytest.param({"agent_state": "rate_limited", "outcome": "died"}, None, id="ended"),
    ],
)
def test_a_badge_says_what_a_live_agent_waits_for(world, fields, expected):
    found = panel.pill(_run(**fields), START)
    assert (found and (found.tone, found.text, found.until_words)) == expected


@pytest.mark.row("C-46", "X-16", level="contract")
@pytest.mark.parametrize(
    ("fields", "turns", "tokens", "cost"),
    [
        pytest.param({}, "not reported yet", "not reported yet", "not reported yet", id="live"),
        pytest.param({"outcome": "died"}, "unknown", "unknown", "unknown", id="never told"),
        pytest.param(
            {"outcome": "succeeded", "turns": 1, "tokens_in": 400, "tokens_out": 40},
            "1", "400 in, 40 out", "unknown", id="codex",
        ),
        pytest.param(
            {"turns": 1200, "tokens_in": 1_234_567, "tokens_cached": 1_000_000, "tokens_out": 5, "cost_usd": Decimal("0.001449")},
            "1,200", "1,234,567 in (1,000,000 of them cached), 5 out", "$0.0014", id="claude",
        ),
        pytest.param({"tokens_in": 5, "cost_usd": Decimal(0)}, "not reported yet", "5 in, unknown out", "$0.00", id="a cost of nothing was told"),
        pytest.param(
            {"outcome": "stopped", "turns": 3, "tokens_in": 889, "tokens_out": 105, "used_tokens": [1]},
            "3", "at least 889 in, 105 out", "unknown", id="stopped",
        ),
        pytest.param({"cost_usd": Decimal("1234.5")}, "not reported yet", "not reported yet", "$1,234.50", id="much"),
    ],
)  # fmt: skip
def test_numbers_that_were_not_told_are_unknown_and_never_nothing(
    world, fields, turns, tokens, cost
):
    found = panel.panel(_run(**fields), START)
    assert found is not None
    assert (found.turns, found.tokens, found.cost) == (turns, tokens, cost)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"outcome": "died", "worktree_fate": "kept"}, f"cd '/w/a b' && claude --resume {x.SESSION}", id="kept"),
        pytest.param({"outcome": "succeeded", "worktree_fate": "removed"}, "", id="its worktree is gone"),
        pytest.param({}, "", id="it still runs"),
        pytest.param({"outcome": "died", "worktree_fate": "kept", "agent_session": ""}, "", id="no session"),
        pytest.param({"outcome": "died", "worktree_fate": "kept", "resume_argv": []}, "", id="no command"),
    ],
)  # fmt: skip
def test_an_ended_session_can_be_gone_on_with_where_its_worktree_is(world, fields, expected):
    assert panel.resume(_run(**{"worktree": "/w/a b", **SESSION, **fields})) == expected


def test_what_an_agent_said_is_text_on_the_page(world: World, operator: User, client: Client):
    rows.a_tick(world)
    run = _run(
        agent_state="retrying",
        agent_note="<script>alert(1)</script>",
        agent_model="<b>model</b>",
        last_line="<i>x</i>",
    )
    client.force_login(operator)
    page = text_of(client.get(f"/runs/{run.pk}/"))
    assert "&lt;script&gt;alert(1)" in page and "<script>alert" not in page
    assert "&lt;b&gt;model" in page
    assert "retrying" in text_of(client.get("/"))


def test_a_run_whose_output_is_not_read_has_no_panel(world: World, operator: User, client: Client):
    rows.a_tick(world)
    run = _run(mode="interactive", output="")
    client.force_login(operator)
    page = text_of(client.get(f"/runs/{run.pk}/"))
    assert '<div id="agent-box"></div>' in page


def test_a_change_of_what_was_told_is_a_new_version_of_the_page(
    world: World, operator: User, client: Client
):
    rows.a_tick(world)
    run = _run()
    client.force_login(operator)
    live = f"/runs/{run.pk}/live"
    tag = client.get(live)["HX-PTag"]
    assert client.get(live, headers={"HX-PTag": tag}).status_code == 304
    Run.objects.update(turns=3)
    assert client.get(live, headers={"HX-PTag": tag}).status_code == 200


@pytest.mark.row("X-16", "X-17", level="browser")
def test_a_rate_limit_shows_on_page_and_board_and_goes_away(
    open_page: OpenPage, operator: User, world: World
):
    project = rows.full_board(world, 1)
    run = make.a_run(project, "7", slot=7, **ONE_SHOT)
    world.live(run)
    folder = world.lab.paths.run_folder(run.pk)

    def prints(*lines: x.Line) -> None:
        world.sessions.outputs[folder] = world.sessions.outputs.get(folder, b"") + x.written(*lines)
        world.clock.forward(seconds=5)
        tick.tick(world.lab)

    prints(x.claude_init(), x.claude_retry(delay=3_600_000))
    page = open_page(f"/runs/{run.pk}/", operator)
    board = open_page("/", operator)
    head, row = page.locator("#run-head"), board.locator(f"#run-{run.pk}")
    for shown in (head, row, page.locator("#agent-box")):
        expect(shown).to_contain_text("rate limited, goes on at")
    expect(page.locator("#timeline")).to_contain_text("the agent is held up by a rate limit")
    expect(page.locator("#agent-box")).to_contain_text(x.SESSION)
    prints(x.claude_says("On.", "m2"))
    for shown in (head, row, page.locator("#agent-box")):
        expect(shown).not_to_contain_text("rate limited")
    expect(row).to_contain_text("On.")
    expect(page.locator("#agent-box")).to_contain_text("Working")
    expect(page.locator("#timeline")).to_contain_text("the agent goes on")


def test_the_transcript_is_shown_after_the_end(open_page: OpenPage, operator: User, world: World):
    project = rows.full_board(world, 1)
    run = make.a_run(project, "7", slot=7, **ONE_SHOT)
    world.live(run)
    folder = world.lab.paths.run_folder(run.pk)
    world.sessions.outputs[folder] = x.written(
        x.claude_init(), x.claude_does("make test"), x.claude_result()
    )
    world.sessions.end(run.session, 0)
    tick.tick(world.lab, force=True)
    page = open_page(f"/runs/{run.pk}/terminal/", operator)
    terminal = page.locator("#terminal")
    expect(terminal).to_contain_text("transcript")
    expect(terminal).to_contain_text("▸ Bash: make test")
    page.get_by_role("link", name="Story", exact=True).click()
    expect(page.locator("#agent-box")).to_contain_text("$0.0014")
    expect(page.locator("#run-head")).to_contain_text("the agent finished")


def test_an_interactive_agent_shows_its_numbers_and_never_a_cost_that_nobody_told():
    told = {"turns": 3, "tokens_in": 1200, "tokens_cached": 200, "tokens_out": 30}
    run = make.a_run(make.a_project(), context_tokens=50, context_window=200, **told)
    shown = panel.panel(run, START)
    assert (shown.state, shown.turns, shown.tokens) == (
        "",
        "3",
        "1,200 in (200 of them cached), 30 out",
    )
    assert shown.context == "25 %: 50 of 200 tokens"
    assert shown.cost == "unknown: this program does not tell it"
    run.context_window = None
    assert panel.panel(run, START).context == "50 tokens; how many fit is not told"


def test_an_interactive_agent_that_told_nothing_has_no_panel():
    assert panel.panel(make.a_run(make.a_project()), START) is None

"""Limits of tokens and money at work: an agent is told once, its run ends neutrally, starts are held."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from runs import tick
from runs.core.ports import MaybeGiven, SeamError
from runs.core.states import AnswerCode, NoticeKind, Outcome, RunState
from runs.dispatch import explain
from runs.dispatch.eligibility import Why
from runs.models import Notice, Project, Run, Settings
from runs.overview import queries
from runs.settings import acts
from tests import make
from tests.fakes import START, World
from tests.world import stories

pytestmark = pytest.mark.django_db(transaction=True)

TODAY = "2026-11-21"
DIALOG = "Do you want to proceed?\n❯ 1. Yes\n  2. No\n"


@pytest.fixture
def project(world: World) -> Project:
    Settings.current()
    agent = make.an_agent("Interactive Claude", argv=["claude", "{prompt}"])
    made = make.a_project(agent=agent)
    world.tracker.add_root("demo")
    for key in "789":
        world.tracker.add_issue("demo", f"Issue {key}", key, labels=[made.ready_label])
    return made


def limit(world: World, **numbers: Any) -> None:
    acts.tune(world.lab, numbers, by="anna")


def uses(run: Run, tokens: int | None, cost: str | None = None, day: str = TODAY) -> None:
    """The run's numbers, as its agent told them on a day."""
    Run.objects.filter(pk=run.pk).update(
        tokens_in=tokens,
        cost_usd=cost,
        spent_days=[[day, tokens, cost]],
        spent_on=day,
    )


def a_run(world: World, project: Project, tokens: int | None = None, **fields: Any) -> Run:
    run = make.a_run(project, **{"worktree": "/srv/demo-7", **fields})
    world.live(run)
    uses(run, tokens)
    return run


def look(world: World, run: Run | None = None) -> Run | None:
    stories.look(world)
    if run is not None:
        run.refresh_from_db()
    return run


def told(kind: NoticeKind) -> list[str]:
    return list(Notice.objects.filter(kind=kind).order_by("pk").values_list("text", flat=True))


def test_an_agent_is_told_once_when_most_of_a_runs_limit_is_used(world, project):
    limit(world, run_tokens_limit=1000)
    run = a_run(world, project, 799)
    look(world, run)
    assert world.sessions.typed == []
    uses(run, 830)
    for _ in range(2):
        look(world, run)
    ((session, said),) = world.sessions.typed
    assert session == run.session
    assert said.startswith("About 83 % of the limit of tokens for one run is used")
    assert (run.outcome, run.limits_told) == ("", "run_tokens")
    assert told(NoticeKind.RUN_NEARS_LIMIT) == [
        "83 % of the limit of tokens for one run is used: 830 of 1,000 tokens; its agent is told"
    ]


@pytest.mark.parametrize(
    ("fields", "screen"),
    [
        pytest.param({"mode": "one_shot", "output": "codex_exec_json"}, "", id="one-shot"),
        pytest.param({}, DIALOG, id="a dialog"),
        pytest.param({"asks": "permission", "asked_at": START}, "", id="it asks"),
        pytest.param({"is_adopted": True}, "", id="adopted"),
    ],
)
def test_an_agent_that_could_not_read_it_is_told_nothing(world, project, fields, screen):
    limit(world, run_tokens_limit=1000)
    run = a_run(world, project, 900, **fields)
    world.sessions.text[run.session] = screen
    look(world, run)
    assert (world.sessions.typed, run.limits_told) == ([], "")


@pytest.mark.parametrize(
    ("error", "expected"),
    [(SeamError("the pipe broke"), ""), (MaybeGiven("half of it"), "run_tokens")],
)
def test_what_surely_was_not_told_is_told_again_and_nothing_twice(world, project, error, expected):
    limit(world, run_tokens_limit=1000)
    run = a_run(world, project, 900)
    world.sessions.giving = error
    look(world, run)
    assert run.limits_told == expected
    world.sessions.giving = None
    look(world, run)
    assert len(world.sessions.typed) == (1 if not expected else 0)


def test_a_run_that_reached_its_limit_ends_neutrally_and_its_work_is_kept(world, project):
    limit(world, run_tokens_limit=1000)
    run = a_run(world, project, 1200, turn_ended_at=None)
    look(world, run)
    assert (run.outcome, run.reason) == (
        Outcome.OVER_LIMIT,
        "the limit of tokens for one run is reached: 1,200 of 1,000 tokens; its work is kept",
    )
    assert run.session not in world.sessions.all
    project.refresh_from_db()
    assert project.streak == 0


def test_delivered_work_is_a_success_whatever_it_used(world, project):
    limit(world, run_tokens_limit=1000)
    run = a_run(world, project, 1200)
    world.tracker.add_pull("demo", run.branch)
    assert look(world, run).outcome == Outcome.SUCCEEDED


def test_a_projects_own_limit_of_a_run_comes_before_the_general_one(world, project):
    limit(world, run_tokens_limit=1000)
    Project.objects.update(run_tokens_limit=0)
    run = a_run(world, project, 1200)
    assert look(world, run).outcome == ""
    Project.objects.update(run_tokens_limit=1100)
    assert look(world, run).outcome == Outcome.OVER_LIMIT


def test_a_limit_of_a_day_ends_what_works_and_holds_what_would_start_until_the_next_day(
    world, project
):
    Project.objects.update(day_tokens_limit=1000)
    ended = make.a_run(project, "5", outcome="died", ended_at=START, settled_at=START)
    uses(ended, 700)
    run = a_run(world, project, 400)
    assert look(world, run).outcome == Outcome.OVER_LIMIT
    asked = stories.press_start(world, project, wanted="8")
    assert asked.answer == AnswerCode.OVER_LIMIT
    assert asked.text == (
        "The limit of tokens for this project today is reached: 1,100 of 1,000 tokens. Nothing new "
        "starts until 00:00 UTC. Raise the limit to start all the same."
    )
    look(world)
    (said,) = told(NoticeKind.LIMIT_REACHED)
    assert said.startswith("The limit of tokens for this project today is reached")
    world.clock.forward(days=1)
    assert stories.press_start(world, project, wanted="8").answer == AnswerCode.STARTED


def test_raising_the_limit_lets_it_go_on_the_same_day(world, project):
    limit(world, day_tokens_limit=1000)
    uses(make.a_run(project, "5", outcome="died", ended_at=START, settled_at=START), 1500)
    assert stories.press_start(world, project, wanted="8").answer == AnswerCode.OVER_LIMIT
    limit(world, day_tokens_limit=2000)
    assert stories.press_start(world, project, wanted="8").answer == AnswerCode.STARTED


def test_automatic_work_is_held_with_a_reason_and_goes_on_by_itself(world, project):
    Project.objects.update(is_auto=True)
    limit(world, day_cost_limit=Decimal("5.00"))
    uses(make.a_run(project, "5", outcome="died", ended_at=START, settled_at=START), 10, "5.02")
    world.clock.forward(seconds=46)
    tick.tick(world.lab)
    assert not Run.objects.active().exists()
    project.refresh_from_db()
    _, waiting = explain.explain(world.lab, project)
    (failed,) = [one for one in waiting[0].failed if one.why is Why.OVER_LIMIT]
    assert failed.text.startswith("The limit of money for all projects today is reached: $5.02 of")
    world.clock.forward(days=1)
    tick.tick(world.lab)
    assert Run.objects.active().exists()


def test_a_held_run_does_not_go_on_while_its_day_is_over_a_limit(world, project):
    profile = project.agent
    run = a_run(world, project, 1500, state=RunState.HELD, held_at=START, profile=profile)
    world.sessions.all.clear()
    limit(world, day_tokens_limit=1000)
    look(world, run)
    assert run.state == RunState.HELD
    limit(world, day_tokens_limit=0)
    Run.objects.filter(pk=run.pk).update(worktree="")
    look(world, run)
    assert run.state == RunState.STARTING


def test_an_unknown_cost_reaches_no_limit_of_money(world, project):
    limit(world, run_cost_limit=Decimal(1), day_cost_limit=Decimal(1))
    run = a_run(world, project, 10**9)
    assert look(world, run).outcome == ""
    assert stories.press_start(world, project, wanted="8").answer == AnswerCode.STARTED


@pytest.mark.parametrize("days", [-1, 1])
def test_a_clock_that_was_set_keeps_what_was_used_on_each_day(world, project, days):
    limit(world, day_tokens_limit=1000)
    uses(make.a_run(project, "5", outcome="died", ended_at=START, settled_at=START), 1500)
    world.clock.jump(days=days)
    assert stories.press_start(world, project, wanted="8").answer == AnswerCode.STARTED
    world.clock.jump(days=-days)
    assert stories.press_start(world, project, wanted="9").answer == AnswerCode.OVER_LIMIT


def test_what_was_used_before_the_clock_went_wrong_counts_for_its_day_still(world, project):
    """The run told more on what the clock called tomorrow, and the clock was set right again."""
    limit(world, day_tokens_limit=1000)
    run = make.a_run(project, "5", outcome="died", ended_at=START, settled_at=START)
    Run.objects.filter(pk=run.pk).update(
        spent_days=[[TODAY, 1500, None], ["2026-11-22", 10, None]], spent_on="2026-11-22"
    )
    assert stories.press_start(world, project, wanted="8").answer == AnswerCode.OVER_LIMIT


def test_a_limit_that_is_reached_is_one_card_for_its_scope_and_one_notice_a_day(world, project):
    other = make.a_project("other", agent=project.agent)
    limit(world, day_tokens_limit=1000)
    run = a_run(world, project, 1500)
    for _ in range(3):
        look(world, run)
    assert len(told(NoticeKind.LIMIT_REACHED)) == 1
    rows = [row for row in queries.needs(world.lab).needs.rows if row.need.id == "need-limit-0"]
    assert [(row.need.title, row.need.what, row.url) for row in rows] == [
        (
            "All projects",
            "reached the limit of tokens for all projects today",
            "/settings/",
        )
    ]
    Project.objects.filter(pk=other.pk).update(day_tokens_limit=5)
    uses(make.a_run(other, "5", outcome="died", ended_at=START, settled_at=START), 7)
    limit(world, day_tokens_limit=0)
    rows = [row.need for row in queries.needs(world.lab).needs.rows if "limit" in row.need.id]
    assert [row.title for row in rows] == ["other"]


def test_no_limit_costs_no_query(world, project, django_assert_num_queries):
    from runs.spending import gathering

    settings = Settings.current()
    with django_assert_num_queries(0):
        gathering.spending(settings, [project], START)
    settings.day_tokens_limit = 5
    with django_assert_num_queries(1):
        gathering.spending(settings, [project], START)


def test_numbers_of_a_day_are_shown_with_what_nobody_knows(world, project):
    uses(make.a_run(project, "5", outcome="died", ended_at=START, settled_at=START), 1500, "1.25")
    uses(a_run(world, project), 700)
    shown = queries.overview(world.lab).stats.today
    assert (shown.tokens, shown.cost, shown.unpriced) == (
        "2 k",
        "$1.25",
        "and 1 run of unknown cost",
    )
    world.clock.forward(days=1)
    assert queries.overview(world.lab).stats.today is None


def test_an_unknown_cost_is_never_shown_as_nothing(world, project):
    uses(a_run(world, project), 700)
    assert queries.overview(world.lab).stats.today.cost == "cost not told"


def test_a_run_that_told_its_cost_late_counts_for_the_day_on_which_it_ended(world, project):
    run = make.a_run(
        project,
        outcome="died",
        ended_at=START + timedelta(hours=11, minutes=59),
        spent_days=[[TODAY, 5, "3"]],
        spent_on=TODAY,
    )
    world.clock.forward(hours=12)
    limit(world, day_cost_limit=Decimal(2))
    assert run.spent_on == TODAY
    assert stories.press_start(world, project, wanted="8").answer == AnswerCode.STARTED

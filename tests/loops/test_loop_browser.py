"""The pages of loops in a browser: light and dark, at a desk and on a phone."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from runs.loop_settings import settings_acts
from runs.loops import acts, stored
from runs.loops.results import Result
from runs.loops.rules import Counters
from runs.models import Loop, LoopMemory, LoopTurn
from tests import make
from tests.fakes import START, World
from tests.loops.desk import desk_of, project_of, topic
from tests.web.browser_fixture import Tab
from tests.web.browsing import OpenPage
from tests.web.daphne_fixture import Served
from tests.web.looking import looks
from tests.web.test_feed_browser import LIVE

BEGIN = """
from datetime import UTC, datetime
from runs.loops import acts, stored
from runs.loops.prompts import PromptFacts
from runs.loops.rules import Limits, Terms
from runs.models import Loop, LoopTurn
from tests import make
Settings.objects.update_or_create(pk=1, defaults={"refresh_seconds": 60})
now = datetime.now(UTC)
project = make.a_project(created_at=now)
run = make.a_run(project, is_loop=True, requested_at=now, started_at=now)
rules = stored.of_terms(Terms(Limits(turns=4)))
loop = Loop.objects.create(
    run=run, terms={"rules": rules, "cooldown_seconds": 0}, state="turn", number=1, began_at=now
)
facts = stored.of_facts(PromptFacts("Do it.", "LOOP_COMPLETE"))
given = {"loop": loop, "generation": 1, "role": "coordinator", "facts": facts, "ordered_at": now}
turn = LoopTurn.objects.create(number=1, **given)
result = run.pk
"""
NEXT_TURN = """
turn.ended_at, turn.exit_code, turn.events = now, 0, [{"topic": "build.done", "payload": "", "to": ""}]
turn.used_turns, turn.used_seconds, turn.used_cost = turn.number, 60 * turn.number, 0
turn.save()
turn = LoopTurn.objects.create(number=turn.number + 1, **given)
Loop.objects.update(number=turn.number)
with transaction.atomic():
    announce.tell(lab, NoticeKind.LOOP_TURN, f"turn {turn.number} begins (coordinator)", run=run)
"""
READ = """
loop.guidance.update(given_in=turn, acknowledged_at=now)
with transaction.atomic():
    announce.tell(lab, NoticeKind.LOOP_STEP, "guidance was acknowledged", run=run)
"""


@pytest.mark.quick("a loop in a real browser")
@pytest.mark.row("X-18", "RALPH-79", "RALPH-83", level="browser")
def test_turns_come_in_and_guidance_goes_out_on_the_open_page(served: Served, tab: Tab) -> None:
    run = served.do(BEGIN)
    page = tab(f"/runs/{run}/", served.cookie())
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_selector(LIVE)
    page.evaluate("window.isSamePage = true")
    expect(page.locator("#run-loop")).to_contain_text("turn 1 of at most 4")
    page.get_by_label("Tell the next turn").fill("Use port 8080")
    served.do(NEXT_TURN)
    expect(page.locator("#run-loop")).to_contain_text("turn 2 of at most 4")
    expect(page.locator("#turn-1-1")).to_contain_text("build.done")
    expect(page.get_by_label("Tell the next turn")).to_have_value("Use port 8080")
    page.locator("#guide-form").get_by_role("button", name="Send").click()
    expect(page.locator("#run-loop")).to_contain_text("waits for the next turn")
    expect(page.locator("#run-loop")).to_contain_text("Use port 8080")
    served.do(READ)
    expect(page.locator("#run-loop")).to_contain_text("acknowledged")
    served.do(NEXT_TURN)
    expect(page.get_by_role("img", name="Turns left 2 of 4 after turn 2")).to_be_visible()
    page.get_by_text("Burn-down as a table").click()
    served.do(NEXT_TURN)
    expect(page.get_by_role("img", name="Turns left 1 of 4 after turn 3")).to_be_visible()
    expect(page.get_by_role("region", name="Table of the burn-down")).to_be_visible()
    page.get_by_role("button", name="Stop after this turn").click()
    expect(page.locator("#run-loop")).to_contain_text("Stops after this turn, as")
    assert page.evaluate("window.isSamePage") is True
    assert page.complaints == []


@pytest.mark.django_db(transaction=True)
def test_the_pages_of_a_loop_run_are_accessible_and_fit(
    open_page: OpenPage, operator: User, world: World
) -> None:
    project = project_of(world, max_turns=10, max_cost=Decimal(5))
    desk = desk_of(world, project)
    LoopMemory.objects.create(
        project=project, text="The port is 8080. " * 9, by="an agent", at=START
    )
    desk.begin()
    desk.finish(topic("build.done", "Two of three parts are there."), output="I built it.\n" * 9)
    desk.writes("# Notes\n- part one is done\n- part two is open\n")
    acts.guide(desk.lab, desk.run, "Use port 8080, and " + "long " * 90, by="anna")
    failed = Result(exit_code=3, seconds=75.0)
    desk.finish(topic("tests.failed", "see log"), output="It failed.\n", result=failed)
    repos = world.repos
    before = repos.commit({"a.py": "x = 1\n"})
    ends = {"head_before": before, "head": repos.commit({"a.py": "x = 2\n"}, before)}
    LoopTurn.objects.filter(number=2).update(
        **ends, commits=1, tokens_in=120_000, tokens_out=4_000, cost=Decimal("0.41")
    )
    page = open_page(f"/runs/{desk.run.pk}/", operator)
    wrong = looks(page, "loop-run")
    page.goto(f"/runs/{desk.run.pk}/turns/")
    wrong += looks(page, "loop-turns")
    page.goto(f"/runs/{desk.run.pk}/turns/1-2/")
    wrong += looks(page, "loop-turn")
    acts.acknowledge(desk.lab, desk.loop)
    desk.finish(topic("LOOP_COMPLETE"))
    assert desk.loop.end == "completed"
    page.goto(f"/runs/{desk.run.pk}/")
    wrong += looks(page, "loop-ended")
    assert wrong == []


@pytest.mark.django_db(transaction=True)
def test_the_plots_of_a_loop_are_accessible_and_fit(
    open_page: OpenPage, operator: User, world: World
) -> None:
    limits = {"max_turns": 40, "max_seconds": 14_400, "max_cost": Decimal(9)}
    desk = desk_of(world, project_of(world, **limits))
    desk.begin()
    facts, used, cost = desk.turn.facts, 0, Decimal(0)
    desk.loop.turns.all().delete()
    for number in range(1, 35):
        took, own = 60 + 97 * number % 600, Decimal(7 * number % 11) / 20
        used, cost = used + took, cost + own * (number % 9 != 4)
        LoopTurn.objects.create(
            loop=desk.loop, generation=1, number=number, role="coordinator", facts=facts,
            ordered_at=START + timedelta(seconds=used + 60 * number - took), exit_code=0,
            ended_at=START + timedelta(seconds=used + 60 * number), seconds=took,
            cost=None if number % 9 == 4 else own, used_turns=number, used_seconds=used, used_cost=cost,
        )  # fmt: skip
    counted = Counters(turns=34, cost=cost, is_cost_whole=False)
    Loop.objects.update(number=34, state="between", counters=stored.of_counters(counted))
    page = open_page(f"/runs/{desk.run.pk}/", operator)
    page.get_by_text("Burn-down as a table").click()
    expect(page.get_by_role("img", name="Turns left 6 of 40 after turn 34")).to_be_visible()
    expect(
        page.get_by_role("region", name="Table of the burn-down").get_by_role("row")
    ).to_have_count(21)
    assert looks(page, "loop-plots") == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.row("RALPH-86", level="browser")
def test_the_settings_of_loops_are_accessible_and_fit(
    open_page: OpenPage, operator: User, world: World
) -> None:
    agent = make.an_agent("Turner", mode="one_shot")
    world.tracker.add_root("demo")
    project, lab = make.a_project(agent=agent), world.lab
    page = open_page(f"/projects/{project.pk}/loops/", operator)
    wrong = looks(page, "loops-empty")
    role = {"name": "builder", "instructions": "Build it. " * 40, "subscriptions": ["build.*"]}
    made = settings_acts.add_role(lab, project, role, by="anna")
    settings_acts.add_role(
        lab, project, {**role, "name": "long-" * 11, "publishes": ["a.b"]}, by="anna"
    )
    LoopMemory.objects.create(project=project, text="x" * 400, by="an agent", at=START)
    page.goto(f"/projects/{project.pk}/loops/?preset=persistent")
    page.get_by_label("Work in loops").check()
    page.get_by_role("button", name="Save loop settings").click()
    page.locator(".error").first.wait_for()
    wrong += looks(page, "loops-refused")
    page.get_by_label("Maximum turns").fill("many")
    page.get_by_role("button", name="Save loop settings").click()
    expect(page.get_by_label("Maximum turns")).to_be_focused()  # the form is longer than the screen
    page.goto(f"/projects/{project.pk}/loops/roles/{made.pk}/")
    wrong += looks(page, "loops-role")
    page.goto(f"/projects/{project.pk}/loops/import")
    hats = "hats: {finder: {triggers: [task.resume], instructions: x, " + "y" * 60 + ": 1}}"
    page.get_by_label("ralph.yml").fill(f"max_iterations: 7\n{hats}")
    page.get_by_label("PROMPT.md").fill("# " + "Count all of the chairs " * 9)
    page.get_by_role("button", name="Show changes").click()
    page.get_by_role("heading", name="What would be imported").wait_for()
    wrong += looks(page, "loops-import")
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_text("Imported: 1 role, 0 new memories").wait_for()
    assert wrong == []

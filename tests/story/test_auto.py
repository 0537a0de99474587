"""Automatic work as its user sees it: on, three failures, paused, Reset; nothing is reloaded."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.house.product import until
from tests.story.test_bad_days import RUNS
from tests.story.test_main_job import STAY, _is_same_page, _make_demo

AGENT = """
import sys
from runs.models import AgentProfile, Project, Settings
code = {code!r}
profile = AgentProfile.objects.update_or_create(name='short', defaults={{'argv': [sys.executable, '-c', code, '{{prompt}}']}})[0]
Project.objects.update(agent=profile)
Settings.objects.update_or_create(pk=1, defaults={{'tick_seconds': 5, 'launch_seconds': {launch}}})
"""
IDLE = "import time; time.sleep(600)"
# An agent that ended before the launch looked at it once more would be a start that failed.
FAILS = """
import os, time
while not os.path.exists(os.path.join({folder!r}, os.path.basename(os.environ['LAB_BRANCH']))): time.sleep(0.05)
raise SystemExit(3)
"""
ISSUES = """
from runs.wiring import lab
from runs.models import Project
from runs.issues import acts as issues
for title in ('Four', 'Five', 'Six'):
    issues.create(lab(), Project.objects.get(), title=title, labels=['ready-for-agent'], by='anna')
"""
SESSIONS = "from runs.models import Run; print(*Run.objects.order_by('pk').values_list('session', flat=True))"
SWEEP = "from runs.models import Settings; Settings.objects.update(launch_seconds=5)"
THREE = "1:ended:died 2:ended:died 3:ended:died"


@pytest.mark.row("LAB-79", "LAB-80", "LAB-94", "LAB-95", "LAB-96", "LAB-97", level="browser")
@pytest.mark.row("LAB-100", "LAB-103", "LAB-44", "X-18", level="browser")
def test_automatic_work_goes_on_until_it_pauses_and_after_reset_and_off_it_says_why_not(story, tab):
    story.up()
    _make_demo(story)
    story.shell(ISSUES)
    folder = story.state.parent
    story.shell(AGENT.format(code=FAILS.format(folder=str(folder)), launch=3600))
    page, overview = tab("/projects/1/"), tab("/")
    page.evaluate(STAY)
    card = page.locator("#project-auto")
    expect(card.locator("#auto-switch")).to_have_text("Turn on automatic work")
    expect(page.locator("#streak-reset")).to_have_count(0)
    card.locator("#auto-switch").click()
    expect(card.locator("#auto-switch")).to_have_text("Turn off automatic work")
    until(lambda: story.shell(SESSIONS).startswith("demo~1~afk-auto-1"))

    story.shell(SWEEP)
    for key in ("1", "2", "3"):
        until(lambda key=key: f"{key}:working:" in story.shell(RUNS))
        (folder / key).touch()
    paused = card.locator("#auto-paused")
    expect(paused).to_contain_text("3 runs in a row failed.")
    expect(paused.get_by_role("link")).to_have_text(re.compile("issue 3, died"))
    expect(card.locator("#auto-switch")).to_have_text("Turn off automatic work")
    assert _is_same_page(page)
    expect(overview.locator("#needs-you")).to_contain_text("is paused after 3 failed runs in a row")
    page.wait_for_timeout(6_000)
    assert story.shell(RUNS) == THREE
    expect(page.get_by_text("automatic work is paused:")).to_have_count(1)

    story.shell(AGENT.format(code=IDLE, launch=3600))
    page.locator("#streak-reset").click()
    expect(paused).to_have_count(0)
    expect(page.locator("#streak-reset")).to_have_count(0)
    until(lambda: story.sessions() == ["demo~1~afk-auto-4"])
    expect(page.locator("#project-running")).to_contain_text("#4")
    expect(overview.locator("#needs-you")).not_to_contain_text("is paused after")
    assert _is_same_page(page)
    told = "from runs.models import Notice; print(list(Notice.objects.filter(kind__in=('auto.changed', 'streak.reset')).order_by('pk').values_list('kind', 'by')))"
    assert story.shell(told) == "[('auto.changed', 'anna'), ('streak.reset', 'anna')]"

    # Off again, each waiting issue says why, and one press starts it.
    card.locator("#auto-switch").click()
    expect(card.locator("#auto-switch")).to_have_text("Turn on automatic work")
    page.goto(f"{story.url}/projects/1/")
    page.locator("#why-not").click()
    waiting = page.locator("#waiting-5")
    expect(waiting).to_contain_text("Automatic work of this project is off.")
    waiting.get_by_role("button", name="Start #5").click()
    expect(page.locator("#banner")).to_contain_text("takes issue 5")
    expect(page.locator("#waiting-5")).to_have_count(0)
    until(lambda: story.sessions() == ["demo~1~afk-auto-4", "demo~2~afk-5"])
    page.goto(f"{story.url}/projects/1/")
    page.get_by_role("button", name=re.compile(r"Start.*#6")).click()
    expect(page.locator("#banner")).to_contain_text("takes issue 6")

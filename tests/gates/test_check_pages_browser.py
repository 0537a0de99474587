"""The page of a run's checks before real daphne: pushed, not reloaded; and without JavaScript."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from runs.core.states import CompletionPolicy
from tests.fakes import World
from tests.gates import attempt_rows as attempts
from tests.web import board_rows as rows
from tests.web.browser_fixture import Tab
from tests.web.browsing import OpenPage
from tests.web.daphne_fixture import Served
from tests.web.test_feed_browser import LIVE

BEGIN = """
from datetime import UTC, datetime
from tests import make
from tests.gates import attempt_rows as attempts
project = make.a_project(policy="gates", created_at=datetime.now(UTC))
Settings.objects.update_or_create(pk=1, defaults={"refresh_seconds": 60})
run = attempts.checking(project, attempts=0, gate_turn="begin")
result = run.pk
"""
AT_WORK = """
from pathlib import Path
run = Run.objects.get()
Run.objects.update(gate_turn="")
row = attempts.running(run)
folder = row.folder(lab.paths)
folder.mkdir(parents=True, mode=0o700)
(folder / "0-3.txt").write_text("collecting tests\\n")
with transaction.atomic():
    announce.tell(lab, NoticeKind.GATE_STEP, "clean room of attempt 1 runs pytest", run=run)
"""
FAILS = """
row.delete()
row = attempts.failed_in_clean_room(run, ended_at=attempts.after(0))
Run.objects.update(state="working", checking_at=None)
with transaction.atomic():
    announce.tell(lab, NoticeKind.RUN_REENTERED, "its agent is told what failed", run=run)
"""


@pytest.mark.quick("gates in a real browser")
@pytest.mark.row("X-18", "MALA-V-19", level="browser")
def test_gates_are_followed_on_the_open_page_without_a_reload(served: Served, tab: Tab) -> None:
    run = served.do(BEGIN)
    page = tab(f"/runs/{run}/checks/", served.cookie())
    page.wait_for_selector(LIVE)
    page.evaluate("window.isSamePage = true")
    expect(page.locator("#run-head")).to_contain_text("checking (attempt 1): about to begin")
    expect(page.locator("#check-attempts")).to_contain_text("No attempt yet")
    served.do(AT_WORK)
    expect(page.locator("#run-head")).to_contain_text("checking (attempt 1): clean room")
    expect(page.locator(".chain li[aria-current]")).to_contain_text("Clean room")
    expect(page.locator("#clean_room .term").last).to_contain_text("collecting tests")
    served.do("with (folder / '0-3.txt').open('a') as file: file.write('2 failed\\n')")
    expect(page.locator("#clean_room .term").last).to_contain_text("2 failed")
    served.do(FAILS)
    expect(page.locator("#run-head")).to_contain_text("working")
    expect(page.locator("#clean_room .reasons")).to_contain_text("test failed with exit status 1")
    expect(page.locator(".failed-tests")).to_contain_text("test_waits_twice")
    # It ended within the second in which it began, and its time is an age now.
    expect(page.locator(".attempt header time")).to_have_text(re.compile(" ago$"))
    assert page.evaluate("window.isSamePage") is True
    assert page.complaints == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.row("LAB-132", level="browser")
def test_attempts_are_read_without_scripts_and_by_the_keyboard(
    open_page: OpenPage, operator: User, world: World
) -> None:
    project = rows.a_tracked_project("billing", policy=CompletionPolicy.GATES)
    run = attempts.checking(project)
    for number in range(1, 5):
        attempts.failed_in_clean_room(run, number)
    attempts.running(run, 5)
    page = open_page(f"/runs/{run.pk}/", operator, java_script_enabled=False)
    page.locator("#run-gates").get_by_role("link", name="Checks").click()
    page.wait_for_url("**/checks/")
    earlier = page.get_by_text("2 earlier attempts")
    expect(page.get_by_role("link", name="Attempt 1", exact=True)).to_be_hidden()
    earlier.focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Attempt 1", exact=True).press("Enter")
    page.wait_for_url("**/checks/?attempt=1")
    expect(page.locator("#clean_room .failed-tests")).to_contain_text("test_waits_twice")
    lint = page.locator("#clean_room .commands li", has_text="ruff check")
    lint.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(lint.locator(".term")).to_have_text("ok")

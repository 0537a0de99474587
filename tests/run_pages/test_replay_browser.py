"""A live screen is pushed, and its recording replayed with keys, in a real browser on real tmux."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from runs.core.paths import Paths
from runs.core.ports import Order
from runs.machine.tmux import TmuxSessions
from tests.house.product import until
from tests.transcript.test_camera import shows
from tests.web.browser_fixture import Tab
from tests.web.daphne_fixture import PROJECT, Served, serving

CODE = """
import sys
print('the first <b>line</b>', flush=True)
sys.stdin.readline()
print('the second', flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def served(prepared_state: Path) -> Iterator[Served]:
    with serving(prepared_state) as made:
        yield made


@pytest.mark.row("LAB-130", level="browser")
def test_a_screen_is_pushed_as_it_changes_and_replayed_afterwards(served: Served, tab: Tab) -> None:
    number = int(served.do(PROJECT))
    name = str(served.do(f"result = Run.objects.get(pk={number}).session"))
    folder = served.paths.run_folder(number)
    sessions = TmuxSessions(Paths(served.state), os.environ)
    argv = [sys.executable, "-c", CODE]
    sessions.start(Order(name, folder, served.state, argv, marker="replay", recording=100_000))
    try:
        page = tab(f"/runs/{number}/terminal/", served.cookie())
        expect(page.locator("#screen")).to_contain_text("the first <b>line</b>")
        # Neither its refresh nor the question of a page without a socket.
        page.route(re.compile("/live|/terminal/screen"), lambda route: route.abort())
        sessions.press(name, "replay", "Enter")
        expect(page.locator("#screen")).to_contain_text("the second")
        assert page.locator("#screen b").count() == 0
        page.get_by_role("button", name="Wrap").click()
        expect(page.locator("#screen")).to_have_class(re.compile("wrap"))
        until(lambda: shows(folder, "the second"))  # the page may have heard of it before
    finally:
        sessions.kill(name, "replay")
    page.goto(f"{served.base_url}/runs/{number}/replay/")
    screen, bar = page.locator("#screen"), page.get_by_role("slider")
    expect(screen).to_have_class(re.compile("wrap"))
    bar.press("End")
    expect(screen).to_contain_text("the second")
    bar.press("Home")
    expect(screen).not_to_contain_text("the second")
    for _ in range(20):  # a busy machine records each half of a line
        page.get_by_role("button", name="Next change").press("Enter")
    expect(screen).to_contain_text("the second")
    expect(page.locator("#replay-note")).to_contain_text("End of the recording")
    page.get_by_role("button", name="Previous change").press("Enter")
    page.get_by_role("button", name="Previous change").press("Enter")
    page.get_by_label("Speed").select_option("20")
    page.get_by_role("button", name="Play").press("Enter")
    expect(page.locator("#replay-note")).to_contain_text("End of the recording")
    expect(screen).to_contain_text("the first <b>line</b>")
    assert page.locator("#screen b").count() == 0

"""A one-shot agent under the whole product: seen in a browser, and through the death of the worker."""

from __future__ import annotations

import json
import os
import signal

import pytest
from playwright.sync_api import expect

from tests.house.product import until
from tests.story.test_bad_days import ASK, PULL
from tests.story.test_main_job import _make_demo
from tests.transcript import agent_lines as x

CODE = """
import json, os, sys, time
folder = sys.argv[1]
for name, text in json.load(open(os.path.join(folder, "lines"))):
    while not os.path.exists(os.path.join(folder, name)): time.sleep(0.05)
    os.write(1, text.encode())
"""
PROFILE = """
from runs.models import AgentProfile, Project, Settings
profile = AgentProfile.objects.create(name='scripted', mode='one_shot', output='claude_stream_json', argv=[sys.executable, {script!r}, {folder!r}, '{{prompt}}'])
Project.objects.update(agent=profile)
Settings.objects.update_or_create(pk=1, defaults={{'tick_seconds': 5}})
"""
TOLD = "from runs.models import Run; r = Run.objects.get(); print(r.agent_state, r.turns, r.outcome, r.cost_usd, r.settled_at is not None)"


@pytest.mark.row("C-47", "X-17", "X-16", level="browser")
def test_a_rate_limit_comes_and_goes_while_the_worker_is_killed_and_the_cost_is_told(story, tab):
    folder = story.state.parent / "agent"
    folder.mkdir()
    steps = [
        ("begin", x.written(x.claude_init(), x.claude_says("I look.", "m1"), x.claude_retry(delay=3_600_000))),
        ("on", x.written(x.claude_says("I go on.", "m2"))),
        ("end", x.written(x.claude_says("Done.", "m3"), x.claude_result(num_turns=3))),
    ]  # fmt: skip
    (folder / "lines").write_text(json.dumps([(name, text.decode()) for name, text in steps]))
    (folder / "begin").touch()
    (folder / "agent.py").write_text(CODE)
    story.up()
    _make_demo(story)
    story.shell(PROFILE.format(script=str(folder / "agent.py"), folder=str(folder)))
    story.shell(ASK)
    until(lambda: story.sessions() == ["demo~1~afk-1"])
    page = tab("/runs/1/")
    page.evaluate("window.stayed = true")
    expect(page.locator("#run-head")).to_contain_text("rate limited, goes on at")
    terminal = tab("/runs/1/terminal/").locator("#terminal")
    expect(terminal).to_contain_text("I look.")
    os.kill(story.product.children()["worker"], signal.SIGKILL)
    (folder / "on").touch()
    expect(page.locator("#run-head")).not_to_contain_text("rate limited")
    expect(page.locator("#timeline")).to_contain_text("the agent goes on")
    assert story.shell(TOLD) == "working 2  None False"
    story.shell(PULL)
    until(lambda: "succeeded" in story.shell(TOLD))
    (folder / "end").touch()
    until(lambda: story.shell(TOLD) == "finished 3 succeeded 0.001449 True")
    expect(page.locator("#agent-box")).to_contain_text("$0.0014")
    expect(terminal).to_contain_text("Done.")
    assert story.sessions() == []
    assert page.evaluate("window.stayed === true")

"""What a person sees when a start is refused or fails, and what the pages say of runs found alive."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from playwright.sync_api import expect

from tests.house.product import until
from tests.real import git
from tests.story.test_main_job import _make_demo

POST_START = """async () => (await fetch('/projects/1/start', {method: 'POST', redirect: 'manual', headers: {
  'HX-Request': 'true', 'X-CSRFToken': document.querySelector('[name=csrfmiddlewaretoken]').value}})).status"""
# In one step: a push may take the button away between the press and the release of a mouse.
PRESS = """() => { const button = document.getElementById('start');
  if (button.disabled || button.matches('.htmx-request')) return false;
  document.getElementById('banner').replaceChildren(); button.click(); return true; }"""
GOES_ON = (
    "The worker has not answered yet",
    "It is tried again for up to two minutes",
    "An agent takes issue",
)
IS_CALM = "from runs.models import Run, StartRequest; print(not Run.objects.active().exists() and not StartRequest.objects.filter(answer='').exists())"
TOLD = "from runs.models import StartRequest; one = StartRequest.objects.latest('pk'); print(one.text, one.run.reason if one.run else '')"
AGENT = "from runs.models import AgentProfile, Project; p = AgentProfile.objects.create(name={name!r}, argv={argv!r}, login_command={login!r}); Project.objects.update(agent=p)"


def _agent(story, name, argv, login=()) -> None:  # type: ignore[no-untyped-def]
    story.shell(AGENT.format(name=name, argv=[*argv, "{prompt}"], login=list(login)))


def _press(page) -> None:  # type: ignore[no-untyped-def]
    # The banner not by its button: what is no error goes away by itself after a while, and the button with it.
    until(lambda: page.evaluate(PRESS))


def _fails(story, page, *words: str) -> None:  # type: ignore[no-untyped-def]
    """Press Start, and read why it failed.

    A press waits five seconds for its answer; on a busy machine a start takes longer, and then the
    banner only says that it goes on. What it would have said is kept with the request.
    """
    banner = page.locator("#banner")
    either = re.compile("|".join((*GOES_ON, *words)))
    _press(page)
    expect(banner).to_contain_text(either)
    said = banner.inner_text()
    if any(text in said for text in GOES_ON):
        until(lambda: story.shell(IS_CALM) == "True", told=lambda: story.product.log)
        said = story.shell(TOLD)
    assert [text for text in words if not re.search(text, said)] == [], said


@pytest.mark.row("LAB-59", "LAB-60", "LAB-61", "LAB-68", level="browser")
@pytest.mark.row("LAB-66", "LAB-64", "LAB-69", "LAB-01", level="browser")
@pytest.mark.row("LAB-128", "LAB-09", level="browser")
def test_refused_and_failed_starts_the_cap_and_an_adopted_run_show_on_the_pages(story, tab):
    story.up()
    _make_demo(story)
    page = tab("/projects/1/")
    _each_failed_start_says_why_in_the_banner_and_leaves_nothing(story, page)
    _the_cap_and_an_adopted_run_show(story, tab, page)
    _a_project_without_a_tracker_starts_nothing(story, page)
    _what_was_chosen_stays(story, page)


def _each_failed_start_says_why_in_the_banner_and_leaves_nothing(story, page) -> None:  # type: ignore[no-untyped-def]
    repo = story.paths.repos / "demo.git"

    _agent(story, "missing", ["no-such-agent"])
    _fails(story, page, "no-such-agent was not found")
    # 127 is a failed start whenever it comes, also after the second look of a slow machine.
    _agent(story, "hasty", ["sh", "-c", "echo no credit left; exit 127"])
    _fails(story, page, "exited immediately|ended with exit status 127", "no credit left")
    _agent(story, "stranger", ["sleep", "60"], login=["false"])
    _fails(story, page, "is not logged in")
    origin = story.paths.origins / "demo.git"
    _agent(story, "idle", ["sh", "-c", "sleep 600"])
    hidden = origin.rename(origin.with_name("hidden.git"))
    _fails(story, page, "does not appear to be a git repository")
    hidden.rename(origin)

    assert story.sessions() == []
    assert git(repo, "for-each-ref", "refs/heads") == ""
    assert not list(story.paths.worktrees.glob("*"))
    _press(page)
    expect(page.locator("article.run")).to_contain_text("#1")
    until(lambda: story.sessions() == ["demo~1~afk-1"])


def _the_cap_and_an_adopted_run_show(story, tab, page) -> None:  # type: ignore[no-untyped-def]
    story.shell(
        "from runs.models import Settings; Settings.objects.update_or_create(pk=1, defaults={'tick_seconds': 5, 'session_cap': 2})"
    )
    hand = [
        "tmux",
        "-S",
        str(story.paths.tmux_socket),
        "new-session",
        "-d",
        "-s",
        "demo~2~afk-3",
        "sleep 600",
    ]
    subprocess.run(hand, check=True)
    expect(page.locator("article.run").filter(has_text="adopted")).to_have_count(1)
    expect(page.locator("article.run")).to_have_count(2)
    until(lambda: len(story.sessions()) == 2)
    expect(page.locator("#start")).to_be_disabled()
    expect(page.locator("#start-control")).to_contain_text("2")
    assert page.evaluate(POST_START) == 409
    assert len(story.sessions()) == 2
    overview = tab("/")
    expect(overview.locator("#stats .full")).to_contain_text("2 of 2")
    adopted = overview.locator("article.run", has_text="adopted").locator("a").first
    adopted.click()
    expect(overview.locator("main")).to_contain_text("adopted")


def _a_project_without_a_tracker_starts_nothing(story, page) -> None:  # type: ignore[no-untyped-def]
    shutil.copytree(story.state / "demo" / "splitbill", story.state.parent / "other")
    story.shell(
        "from runs.wiring import lab; from runs.projects import acts as projects;"
        f"projects.add(lab(), name='aaa', source={str(story.state.parent / 'other')!r}, token='', by='anna')"
    )
    page.goto(f"{story.url}/")
    names = page.locator("#nav-projects a").all_inner_texts()
    assert [name.split()[0] for name in names if name.split()][:2] == ["demo", "aaa"]
    story.shell(
        "from runs.models import Project; Project.objects.filter(name='aaa').update(tracker='')"
    )
    page.goto(f"{story.url}/projects/2/")
    expect(page.locator("#start")).to_be_disabled()
    expect(page.locator("#start-control")).to_contain_text("tracker")


def _what_was_chosen_stays(story, page) -> None:  # type: ignore[no-untyped-def]
    page.goto(f"{story.url}/settings/")
    page.get_by_label("Model").select_option("opus")
    page.get_by_role("button", name=re.compile("Use for new sessions")).click()
    expect(page.locator("#banner")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Model")).to_have_value("opus")
    answer = page.evaluate(
        """async () => { const form = document.querySelector('#settings-form, main form');
        const data = new FormData(form); data.set('model', 'gpt-none');
        data.set('csrfmiddlewaretoken', document.querySelector('[name=csrfmiddlewaretoken]').value);
        return (await fetch(form.getAttribute('action') || location.href, {method: 'POST', body: new URLSearchParams(data)})).status; }"""
    )
    assert answer == 400
    page.reload()
    expect(page.get_by_label("Model")).to_have_value("opus")
    page.goto(f"{story.url}/admin/runs/settings/1/change/")
    expect(page.locator("#id_tick_seconds")).to_have_value("5")
    expect(page.locator("#id_run_budget_minutes")).to_have_value("45")

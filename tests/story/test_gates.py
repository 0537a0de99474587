"""Gates as their user sees them: the clean room fails, the agent is told why, mends it, and its issue is closed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.house.product import until
from tests.patience import BROWSER_PATIENCE
from tests.real import a_checkout, git
from tests.story.test_bad_days import ASK, RUNS
from tests.story.test_main_job import STAY, _is_same_page
from tests.web.looking import PICTURES

# Patient where several processes work one after the other.
PATIENT = BROWSER_PATIENCE * 2

# A plain program in tmux. The table that it makes is ignored by git, so that it forgets to commit it.
AGENT = """
mkdir -p data
echo 'ada 3' > data/table.txt
sed s/0/3/ total.sh > new && mv new total.sh
labctl issue view "$LAB_ISSUE" > /dev/null
commit() {
    git add -A
    git commit -q --allow-empty -m "$1 (#$LAB_ISSUE)"
    labctl check
    git push -q origin "$LAB_BRANCH"
    labctl done
}
commit 'feat: count the table'
while read -r line; do
    echo "heard: $line"
    case "$line" in
        *"no table"*) git add -f data/table.txt; commit 'fix: keep the table';;
    esac
done
"""
TESTS = """
test -f data/table.txt || { echo 'no table to count: data/table.txt'; exit 1; }
test "$(sh total.sh)" = 3
"""
REVIEWER = """#!/bin/sh
cat > /dev/null
echo '{"findings": [{"priority": 3, "path": "total.sh", "line": 1, "title": "Name the unit", "body": "Litres, not pints."}]}'
"""
MADE = """
import sys
from runs.wiring import lab
from runs.models import AgentProfile, Project, Settings
from runs.issues import acts as issues
from runs.projects import acts as projects
agent = AgentProfile.objects.create(name='Scripted', argv=['sh', {script!r}, '{{prompt}}'])
project = projects.add(lab(), name='shop', source={source!r}, token='', by='anna')
Project.objects.update(agent=agent)
issues.create(lab(), project, title='Count the table', labels=['ready-for-agent'], by='anna')
Settings.objects.update_or_create(pk=1, defaults={{'tick_seconds': 5}})
"""
STATE = "from runs.models import Project; print(Project.objects.get().state)"
ORDER = """
from runs.models import Run, Validation
run = Run.objects.get()
level = Validation.objects.get()
at = [one['at'] for attempt in run.gate_attempts.order_by('number') for one in attempt.decisions]
at += [level.ended_at.isoformat(), run.closed_at.isoformat()]
print(at == sorted(at), level.state, run.outcome, run.attempts, run.accepted_commit)
"""


def shop(story, folder: Path, agent: str) -> None:  # type: ignore[no-untyped-def]
    """A project with one ready issue, a test of its own, and a scripted interactive agent."""
    source = a_checkout(folder / "shop", folder / "shop-origin.git")
    (source / "total.sh").write_text("echo 0\n")
    (source / "tests.sh").write_text(TESTS)
    (source / ".gitignore").write_text("data/\n")
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "feat: count")
    git(source, "push", "-q", "origin", "main")
    script = folder / "agent.sh"
    script.write_text(agent)
    story.up()
    story.shell(MADE.format(script=str(script), source=str(source)))
    until(lambda: story.shell(STATE) == "ready")


def add_command(page: Page, name: str, argv: str, kind: str) -> None:
    page.get_by_role("link", name="Add a command").click()
    page.get_by_role("textbox", name="Name").fill(name)
    page.get_by_role("textbox", name="Command", exact=True).fill(argv)
    page.get_by_label("Kind").select_option(kind)
    page.get_by_role("button", name="Add command").click()
    expect(page.locator("#spec-commands")).to_contain_text(argv)


def choose_gates(page: Page) -> None:
    """Policy, commands and switches on the project's page *Checks*."""
    page.get_by_role("radio", name="Gates").check()
    page.get_by_role("button", name="Save policy").click()
    expect(page.get_by_text("Configuration error.").first).to_be_visible()
    add_command(page, "syntax", "sh -n total.sh", "lint")
    add_command(page, "tests", "sh tests.sh", "test")
    for switch in ("Coverage", "End to end"):
        page.get_by_role("checkbox", name=switch, exact=True).uncheck()
    page.get_by_role("button", name="Save switches and limits").click()
    expect(page.get_by_text("Configuration error.")).to_have_count(0)


def add_reviewer(page: Page, program: Path) -> None:
    program.write_text(REVIEWER)
    program.chmod(0o755)
    page.get_by_role("link", name="Add a reviewer").click()
    page.get_by_role("textbox", name="Name").fill("second pair of eyes")
    page.get_by_role("textbox", name="Command").fill(str(program))
    page.get_by_role("button", name="Add reviewer").click()
    expect(page.locator("#spec-reviewers")).to_contain_text("second pair of eyes")


def picture(page: Page, name: str) -> None:
    """Kept where TEST_PICTURES names a folder, for people who look at them."""
    if not PICTURES:
        return
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=Path(PICTURES) / f"{name}-{scheme}-{width}.png", full_page=True)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})


FAILS = """
echo 'echo 4' > total.sh
git commit -qam "feat: count (#$LAB_ISSUE)"
labctl check
git push -q origin "$LAB_BRANCH"
labctl done
while read -r line; do echo "heard: $line"; done
"""
ONE_ATTEMPT = """
from runs.wiring import lab
from runs.models import Project
from runs.specs import acts
from runs.issues import acts as issues
project = Project.objects.get()
issues.create(lab(), project, title='Count it again', labels=['ready-for-agent'], by='anna')
acts.store_terms(lab(), project, {'max_gate_attempts': 1, 'disabled': ['coverage', 'e2e', 'review']}, by='anna')
"""


@pytest.mark.row("X-18", "MALA-V-20", "MALA-V-22", "MALA-V-45", level="browser")
@pytest.mark.row("MALA-V-54", "MALA-V-86", level="browser")
def test_an_agent_fails_the_clean_room_is_told_why_and_its_issue_is_closed_and_the_next_is_not(
    story, tab, tmp_path
):
    shop(story, tmp_path, AGENT)
    page = tab("/projects/1/checks/")
    choose_gates(page)
    add_reviewer(page, tmp_path / "review")
    picture(page, "story-checks")
    page.goto(f"{story.url}/projects/1/")
    page.get_by_role("button", name="Start AFK run").first.click()
    expect(page.locator("article.run")).to_have_count(1)

    checks, issue = tab("/runs/1/checks/"), tab("/projects/1/issues/1/")
    checks.set_default_timeout(PATIENT)
    for one in (checks, issue):
        one.evaluate(STAY)
    first = checks.get_by_role("article", name="Attempt 1", exact=True)
    expect(first).to_contain_text("failed", timeout=PATIENT)
    expect(first).to_contain_text("sh tests.sh failed with exit status 1")
    picture(checks, "story-failed")
    second = checks.get_by_role("article", name="Attempt 2", exact=True)
    expect(second).to_contain_text("passed", timeout=PATIENT)
    expect(checks.locator("#run-head")).to_contain_text("succeeded", timeout=PATIENT)
    expect(checks.locator("#check-issue")).to_contain_text("closed", timeout=PATIENT)
    expect(checks.locator("#review")).to_contain_text("Name the unit")
    assert _is_same_page(checks)
    picture(checks, "story-closed")
    expect(issue.locator("main")).to_contain_text(re.compile("closed", re.IGNORECASE))
    assert _is_same_page(issue)
    picture(issue, "story-issue")
    tip = git(tmp_path / "shop-origin.git", "rev-parse", "refs/heads/afk/1")
    assert story.shell(ORDER) == f"True passed succeeded 2 {tip}"
    assert git(tmp_path / "shop-origin.git", "show", f"{tip}:data/table.txt") == "ada 3"
    assert story.sessions() == []

    # One that fails for the last time needs somebody.
    (tmp_path / "agent.sh").write_text(FAILS)
    story.shell(ONE_ATTEMPT)
    overview = tab("/")
    overview.evaluate(STAY)
    story.shell(ASK)
    need = overview.locator("#needs-you .need")
    expect(need).to_contain_text("did not pass the evidence gate", timeout=PATIENT)
    expect(need).to_contain_text("failed in labctl check for the committed files (exit status 1)")
    assert _is_same_page(overview)
    picture(overview, "story-needs")
    assert story.shell(RUNS) == "1:ended:succeeded 2:ended:failed"
    issue = tab("/projects/1/issues/2/")
    expect(issue.locator("main")).to_contain_text(
        "The gates did not pass, and this issue stays open"
    )
    picture(issue, "story-stays-open")

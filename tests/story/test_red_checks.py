"""A red check of a forge goes back to the agent with the end of its log, and the agent mends it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.house.product import until
from tests.patience import BROWSER_PATIENCE
from tests.real import git
from tests.story.test_bad_days import ASK, RUNS
from tests.story.test_forges import a_project
from tests.story.test_main_job import STAY, _is_same_page
from tests.trackers.forge import Gitea, Repo
from tests.trackers.forge.actions import end_job
from tests.trackers.forge.state import Check

# Patient where several processes work one after the other.
PATIENT = BROWSER_PATIENCE * 2
# What a runner prints: times, colours, and cleaning up behind the error.
LOG = """2026-11-27T08:00:00.1000000Z \x1b[36mrun sh tests.sh\x1b[0m
2026-11-27T08:00:01.1000000Z no table to count: data.txt
2026-11-27T08:00:01.2000000Z ##[error]Process completed with exit code 1.
2026-11-27T08:00:01.3000000Z Post job cleanup.
"""
# A plain program in tmux. It makes the table only once it has read what the check missed.
AGENT = """
push() {{ git add -A && git commit -q -m "$1 (#$LAB_ISSUE)" && git push -q origin "$LAB_BRANCH"; }}
case "$1" in
    *"| no table to count: data.txt"*)
        printf '%s' "$1" > {told}
        echo ada > data.txt
        push 'fix: add the table'
        labctl done;;
    *)
        echo 'cat data.txt' > total.sh
        push 'feat: count the table'
        labctl pr create --title 'Count the table' --body "Closes #$LAB_ISSUE";;
esac
while read -r line; do :; done
"""
FACTS = """
from runs.models import Notice, PullChecks
print(list(PullChecks.objects.values()), list(Notice.objects.values_list('text', flat=True)))
"""
SET_UP = """
from runs.models import AgentProfile, Project
AgentProfile.objects.filter(name='scripted').update(argv=['sh', {script!r}, '{{prompt}}'])
Project.objects.update(sends_back_red_checks=True)
"""


class Runner(dict[str, list[Check]]):
    """Runs the one job of each commit as soon as somebody asks for its checks: is the table there?"""

    def __init__(self, repo: Repo, origin: Path) -> None:
        super().__init__()
        self._repo, self._origin = repo, origin

    def get(self, commit: str, default: object = None) -> list[Check]:  # type: ignore[override]
        if commit not in self:
            is_red = not git(self._origin, "ls-tree", "--name-only", commit, "data.txt")
            end_job(self._repo, commit, "unit", is_red=is_red, log=LOG)
        return self[commit]


@pytest.mark.row("X-18", level="browser")
def test_a_red_check_is_sent_back_with_the_end_of_its_log_and_mended(story, tab, tmp_path):
    forge = Gitea(lambda: datetime.now(UTC), version="1.25.0")
    told, script = tmp_path / "told.txt", tmp_path / "agent.sh"
    script.write_text(AGENT.format(told=told))
    with forge.serving() as api:
        story.up()
        repo, origin, _ = a_project(story, forge, api)
        repo.checks = Runner(repo, origin)
        repo.issue("Count the table", number=7, labels=["ready-for-agent"])
        story.shell(SET_UP.format(script=str(script)))
        overview = tab("/")
        overview.evaluate(STAY)
        story.shell(ASK)
        until(
            lambda: story.shell(RUNS) == "7:ended:succeeded 7:ended:succeeded",
            told=lambda: f"{story.shell(FACTS)}\n{story.product.log}",
        )

        (pull,) = [one for one in repo.items.values() if one.pull]
        asked = told.read_text()
        red = git(origin, "rev-parse", "afk/7~1")
        assert f"The checks of pull request {pull.number} failed on commit {red[:12]}" in asked
        assert "(attempt 1 of 3):\n- unit: " in asked
        end = "| run sh tests.sh\n| no table to count: data.txt\n| ##[error]Process completed"
        assert end in asked
        assert "Post job" not in asked

        first, second = tab("/runs/1/"), tab("/runs/2/")
        for page, said in (
            (first, "failed (unit), sent back to its agent (1 of 3)"),
            (second, f"the checks of pull request {pull.number} passed"),
        ):
            page.set_default_timeout(PATIENT)
            expect(page.locator("main")).to_contain_text(said, timeout=PATIENT)
        assert git(origin, "show", "afk/7:data.txt") == "ada"
        assert [one.number for one in repo.items.values() if one.pull] == [pull.number]
        assert _is_same_page(overview)
    forge.check()
    assert story.sessions() == []

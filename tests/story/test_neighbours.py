"""Two runs do their worst to git, their own and the shared one, and a third one delivers beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.house.product import until
from tests.real import a_checkout, git
from tests.story.shell_agent import body_of, write_agent
from tests.story.test_bad_days import ASK, RUNS

ADD = """
import json
from runs.issues import acts as issues
from runs.models import AgentProfile, Project, Settings
from runs.projects import acts as projects
from runs.wiring import lab
facts = json.loads({facts!r})
agent = AgentProfile.objects.create(name='scripted', mode='interactive', argv=facts['argv'])
project = projects.add(lab(), name='shop', source=facts['source'], token='', by='anna')
Project.objects.update(agent=agent, parallel_runs=3, checks="git describe --tags\\ntest -f third.txt")
Settings.objects.update_or_create(pk=1, defaults={{'tick_seconds': 5}})
project.refresh_from_db()
for text in facts['bodies']:
    issues.create(lab(), project, title='Do it', body=text, labels=[project.ready_label], by='anna')
"""
STATE = "from runs.models import Project; print(Project.objects.get().state)"
WARNED = "from runs.models import Notice; print('\\n'.join(Notice.objects.filter(kind='run.warned', run__issue_key={key!r}).values_list('text', flat=True)))"
# In its own repository: settings, hooks, stash, refs, worktrees, gc, a shallow fetch. Then in the
# shared one, which it finds by its objects.
FIRST = """
git config extensions.worktreeConfig true
echo of-the-first >>hello.txt
git stash -q
hooks="$(git rev-parse --git-path hooks)"; mkdir -p "$hooks"
printf '#!/bin/sh\\nexit 1\\n' >"$hooks/pre-commit"; chmod +x "$hooks/pre-commit"
git config core.hooksPath "$PWD/$hooks"
git worktree add -q --detach ../mine
git update-ref refs/heads/afk/3 HEAD
git update-ref -d refs/remotes/origin/main
git fetch -q --depth=1 origin main
git gc -q --prune=now
shared="$(dirname "$(cat .git/objects/info/alternates)")"
git -C "$shared" config core.hooksPath "$PWD"
printf '#!/bin/sh\\nexit 1\\n' >"$shared/hooks/reference-transaction"
chmod +x "$shared/hooks/reference-transaction"
git -C "$shared" config core.bare false
git -C "$shared" config core.worktree "$PWD"
"""
SECOND = """
git stash list | wc -l | grep -q '^ *0$'
if git stash pop; then exit 1; fi
git tag -d v1.2.3
git reflog expire --expire=now --all
shared="$(dirname "$(cat .git/objects/info/alternates)")"
echo "$PWD/.git/objects" >"$shared/objects/info/alternates"
git config -f "$shared/config" extensions.worktreeConfig true
git config -f "$shared/config" core.repositoryformatversion 9
git config core.bare true
"""
THIRD = """
git describe --tags | grep -q '^v1[.]2[.]3$'
test -z "$(git stash list)"
echo third >third.txt
git add third.txt
git commit -q -m 'feat: third'
git push -q origin HEAD
labctl pr create --title 'Third' --body "Closes #$LAB_ISSUE"
"""


def _log(folder: Path, key: str) -> str:
    log = folder / f"{key}.log"
    return log.read_text() if log.exists() else ""


@pytest.mark.long
def test_a_third_run_delivers_and_is_checked_beside_two_that_do_their_worst(story, tab, tmp_path):
    origin = tmp_path / "shop-origin.git"
    shop = a_checkout(tmp_path / "shop", origin)
    git(shop, "tag", "-a", "-m", "first", "v1.2.3")
    git(shop, "push", "-q", "origin", "v1.2.3")
    agent = tmp_path / "agent"
    facts = {
        "argv": write_agent(agent),
        "source": str(shop),
        "bodies": [body_of(text) for text in (FIRST, SECOND, THIRD)],
    }
    product = story.up()
    story.shell(ADD.format(facts=json.dumps(facts)))
    until(lambda: story.shell(STATE) == "ready", told=lambda: product.log)

    for key in ("1", "2"):
        story.shell(ASK)
        until(lambda key=key: "ended with" in _log(agent, key), told=lambda: product.log)
        assert _log(agent, key).endswith("ended with 0\n"), _log(agent, key)
    repo = story.paths.repos / "shop.git"
    until(lambda: "extensions.worktreeconfig" in story.shell(WARNED.format(key="2")))
    assert "core.bare was set" in story.shell(WARNED.format(key="2"))
    told = story.shell(WARNED.format(key="1"))
    for name in ("core.bare", "core.worktree", "core.hookspath", "hook reference-transaction"):
        assert name in told
    assert git(repo, "config", "core.bare") == "true"
    assert not (repo / "objects/info/alternates").exists()

    story.shell(ASK)
    until(
        lambda: story.shell(RUNS) == "1:working: 2:working: 3:ended:succeeded",
        told=lambda: f"{story.shell(RUNS)}\n{_log(agent, '3')}\n{product.log}",
    )
    page = tab("/projects/1/pulls/4/")
    page.get_by_role("button", name="Run the checks").click()
    expect(page.locator("#pull-merge")).to_contain_text("checks passed")
    page.goto(f"{story.url}/runs/1/")
    expect(page.locator("main")).to_contain_text("labsite put it back")
    assert git(origin, "show", "afk/3:third.txt") == "third"

"""A loop under the whole product, with everything killed and started again while its turns run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.house.product import is_gone, until
from tests.real import a_checkout, git
from tests.story.test_bad_days import ASK

# Each turn of the agent does what the test hands it, and says when it began.
AGENT = """
turn=$LAB_ISSUE-$(basename "$(dirname "$LAB_LOOP_EVENTS")")
echo "$turn $$" >> {folder}/began
until [ -e {folder}/$turn ]; do sleep 0.02; done
commit() {{ echo "$1" >> total.sh; git commit -qam "feat: $1"; }}
. {folder}/$turn
"""
MADE = """
from runs.wiring import lab
from runs.models import AgentProfile, LoopTerms, Project, Settings
from runs.issues import acts as issues
from runs.projects import acts as projects
agent = AgentProfile.objects.create(name='Turner', mode='one_shot', argv=['sh', {script!r}, '{{prompt}}'])
project = projects.add(lab(), name='shop', source={source!r}, token='', by='anna')
Project.objects.update(agent=agent)
LoopTerms.objects.create(project=project, is_on=True, cooldown_seconds=1)
for title in {titles!r}:
    issues.create(lab(), project, title=title, labels=['ready-for-agent'], by='anna')
Settings.objects.update_or_create(pk=1, defaults={{'tick_seconds': 5}})
"""
STATE = "from runs.models import Project; print(Project.objects.get().state)"
RUN = "from runs.models import Run; r = Run.objects.first(); print(r.state, r.outcome, r.turns, r.commits, r.worktree_fate)"
LOOP = "from runs.models import Loop; l = Loop.objects.latest('pk'); print(l.state, l.end, l.exit_code, l.number)"
TURNS = """
from runs.models import LoopTurn
for t in LoopTurn.objects.order_by('pk'):
    print(t.generation, t.number, t.exit_code, t.trouble, t.commits, [e['topic'] for e in t.events])
"""
STOP = "from runs.wiring import lab; from runs.models import Run; from runs.lifecycle import stop; print(stop.stop(lab(), Run.objects.first(), 'anna'))"


class Shop:
    """A project that works in loops, and the hand that leads its agent."""

    def __init__(self, story, folder: Path, *titles: str, waits: bool = True) -> None:  # type: ignore[no-untyped-def]
        self.story = story
        self.folder = folder / "hand"
        self.folder.mkdir()
        self.source = a_checkout(folder / "shop", folder / "shop-origin.git")
        (self.source / "total.sh").write_text("echo 0\n")
        git(self.source, "add", "-A")
        git(self.source, "commit", "-q", "-m", "feat: count")
        git(self.source, "push", "-q", "origin", "main")
        script = folder / "agent.sh"
        script.write_text(AGENT.format(folder=self.folder))
        made = MADE.format(script=str(script), source=str(self.source), titles=titles)
        story.shell(made)
        if waits:
            until(lambda: story.shell(STATE) == "ready")

    def began(self) -> list[str]:
        """The turns that agents began, each time that one did."""
        file = self.folder / "began"
        return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []

    def pid(self, turn: str) -> int:
        """The process of a turn that began."""
        lines = (self.folder / "began").read_text().splitlines()
        return int(dict(line.split() for line in lines)[turn])

    def begins(self, turn: str) -> None:
        until(lambda: turn in self.began(), told=self.state)

    def does(self, turn: str, *lines: str) -> None:
        """Let a turn do this and end."""
        file = self.folder / f"{turn}.new"
        file.write_text("\n".join(lines) + "\n")
        file.rename(self.folder / turn)

    def state(self) -> str:
        asked = (RUN, LOOP, TURNS)
        log = self.story.product.log[-3000:] if self.story.product else ""
        return "\n".join([*map(self.story.shell, asked), log])


@pytest.mark.row("RALPH-13", "RALPH-39", "C-15", "LAB-135", level="real")
def test_a_loop_outlives_web_worker_and_product_and_stop_ends_its_turn(story, tmp_path):
    story.up()
    shop = Shop(story, tmp_path, "Count the table", "Count the chairs")
    story.shell(ASK)

    # The web process dies in the middle of a turn, which ends while nobody can be told.
    shop.begins("1-1-1")
    assert story.sessions() == ["shop~1~afk-1"]
    web = story.product.children()["web"]
    os.kill(web, signal.SIGKILL)
    told = 'labctl memory add "The chairs are in the cellar"'
    shop.does("1-1-1", "commit one", told, "labctl emit build.done first")
    until(lambda: "1 1 0  1 ['build.done']" in story.shell(TURNS), told=shop.state)

    # The worker dies between two turns.
    os.kill(story.product.children()["worker"], signal.SIGKILL)
    shop.begins("1-1-2")

    # The whole product is away while a turn runs and ends.
    story.product.press_ctrl_c()
    assert story.product.wait() == 0
    shop.does("1-1-2", "commit two", "commit three", "labctl emit build.done second")
    until(lambda: (story.paths.run_folder(1) / "loop" / "1-2" / "result.json").exists())
    story.up()
    shop.begins("1-1-3")

    done = ('git push -q origin "$LAB_BRANCH"', "labctl pr create", "labctl emit LOOP_COMPLETE")
    shop.does("1-1-3", *done)
    until(lambda: story.shell(LOOP) == "ended completed 0 3", told=shop.state)
    until(lambda: story.shell(RUN) == "ended succeeded 3 3 removed", told=shop.state)
    assert story.sessions() == []
    assert story.shell(TURNS).splitlines() == [
        "1 1 0  1 ['build.done']",
        "1 2 0  2 ['build.done']",
        "1 3 0  0 ['LOOP_COMPLETE']",
    ]
    assert shop.began() == ["1-1-1", "1-1-2", "1-1-3"]
    assert not (story.paths.worktrees / "shop-1").exists()
    assert git(tmp_path / "shop-origin.git", "rev-list", "--count", "main..afk/1") == "3"

    story.shell(ASK)
    shop.begins("2-1-1")
    prompt = story.paths.run_folder(2) / "loop" / "1-1" / "prompt.md"
    assert "\n- The chairs are in the cellar\n" in prompt.read_text()
    agent = shop.pid("2-1-1")
    assert story.shell(STOP) == "True"
    until(lambda: is_gone(agent), told=shop.state)
    until(lambda: story.sessions() == [])
    assert story.shell(LOOP) == "ended stopped 1 1"
    assert shop.began()[3:] == ["2-1-1"]

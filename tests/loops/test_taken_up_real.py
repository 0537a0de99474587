"""A run that died is taken up as a loop: real git, tmux, `labctl turns`, the real agent API."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from runs.core.states import Outcome
from runs.followups import acts
from runs.models import AgentProfile, Host, Loop, LoopTerms, LoopTurn, Run
from tests.labctl.session import COMMAND
from tests.patience import PATIENCE
from tests.real import RealWorld, git
from tests.world.stories import begin, look, ready, work

pytestmark = pytest.mark.django_db(transaction=True)

# It commits half of its task, leaves a file that is not committed, and dies without a word of a session.
DIES = """
echo one > one.txt; git add one.txt; git commit -qm "feat: the first half"
echo left > left.txt
until [ -e {hand}/die ]; do sleep 0.02; done
exit 3
"""
TURN = """
turn=$(basename "$(dirname "$LAB_LOOP_EVENTS")")
{{ pwd; git rev-parse --abbrev-ref HEAD; cat left.txt one.txt; git status --porcelain; }} > {hand}/$turn
if [ $turn = 1-1 ]; then labctl ack; labctl emit build.done; exit; fi
git add -A; git commit -qm "feat: the second half"
labctl emit LOOP_COMPLETE
"""


def script(hand: Path, name: str, text: str) -> list[str]:
    """The argument list of an agent that does this."""
    (hand / name).write_text(text.format(hand=hand))
    return ["sh", str(hand / name), "{prompt}"]


@pytest.mark.row("RALPH-01", "RALPH-04", "RALPH-13", level="real")
def test_two_fresh_turns_go_on_in_the_worktree_of_an_agent_that_died(
    real: RealWorld, live_server: Any, tmp_path: Path
) -> None:
    hand = tmp_path / "hand"
    hand.mkdir()
    project = real.project(argv=script(hand, "dies.sh", DIES))
    turner = AgentProfile.objects.create(
        name="Turner", mode="one_shot", argv=script(hand, "turn.sh", TURN)
    )
    LoopTerms.objects.create(project=project, profile=turner, recoveries=9)
    real.paths.address.parent.mkdir(parents=True, exist_ok=True)
    real.paths.address.write_text(live_server.url)
    labctl = real.paths.bin / "labctl"
    labctl.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    labctl.chmod(0o755)
    ready(real, "7", project.tracker_root, "Both halves")
    run = begin(real, project, "7")
    worktree = Path(run.worktree)
    real.until((worktree / "left.txt").exists)
    (hand / "die").touch()

    def is_over(one: Run) -> bool:
        look(real)
        one.refresh_from_db()
        return one.settled_at is not None

    real.until(lambda: is_over(run))
    assert (run.outcome, run.is_loop, run.agent_session) == (Outcome.DIED, False, "")
    half = git(worktree, "rev-parse", "HEAD")

    with override_settings(RUNS_LAB=lambda: real.lab):
        acts.resume(real.lab, run, "Mind left.txt.", by="anna", as_loop=True)
        look(real)
        work(real)
        made = Run.objects.get(continues=run)
        # Nobody ticks beside the turns: the worker counts as there.
        Host.objects.update(last_tick_at=real.lab.now() + timedelta(seconds=PATIENCE))
        real.until(lambda: Loop.objects.exclude(end="").exists())
        real.until(lambda: is_over(made))

    loop = Loop.objects.get(run=made)
    assert (made.outcome, loop.end, loop.exit_code) == (Outcome.SUCCEEDED, "completed", 0)
    assert (made.is_loop, made.branch, made.worktree) == (True, run.branch, run.worktree)
    turns = list(LoopTurn.objects.order_by("pk").values_list("number", "agent", "commits"))
    assert turns == [(1, "Turner", 0), (2, "Turner", 1)]
    for number in (1, 2):
        seen = (hand / f"1-{number}").read_text().splitlines()
        assert seen == [str(worktree), run.branch, "left", "one", "?? left.txt"]
        prompt = (loop.folder(real.paths) / f"1-{number}" / "prompt.md").read_text()
        assert "> # Implement: Both halves (#7)" in prompt
        assert "## NOT COMMITTED\n\n" in prompt
        assert "\n- left.txt\n" in prompt
        commits = f"Build on them:\n- {half[:7]} feat: the first half\n"
        assert (commits in prompt, "> Mind left.txt." in prompt) == (number == 1, number == 1)
    assert git(project.repo(real.paths), "rev-parse", f"{run.branch}~1") == half

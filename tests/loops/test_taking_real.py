"""`labctl next` as agents run it: real processes, real git, the real agent API."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import pytest
from django.test import override_settings

from runs import tick
from runs.core import tokens
from runs.core.states import NoticeKind
from runs.loops import acts, turns
from runs.loops.turns import Answer, Report
from runs.models import Host, Loop, LoopIssue, LoopTerms, Notice, Rescue, Run
from tests import make
from tests.labctl.session import Session
from tests.loops.staged import Stage
from tests.patience import PATIENCE
from tests.real import RealWorld, git
from tests.world.stories import begin, commit, ready

pytestmark = pytest.mark.django_db(transaction=True)
TOKEN = tokens.new_token()


@pytest.fixture
def run(real: RealWorld) -> Iterator[Run]:
    """A loop that stays on issue 7, whose program idles, and whose first turn was ordered."""
    agent = make.an_agent("Turner", argv=["true", "{prompt}"], mode="one_shot")
    project = real.project()
    project.agent = agent
    project.save()
    LoopTerms.objects.create(project=project, is_on=True, is_persistent=True)
    real.paths.bin.mkdir(parents=True, exist_ok=True)
    runner = real.paths.bin / "labctl"  # the test plays the runner
    runner.write_text("#!/bin/sh\nexec sleep 600\n")
    runner.chmod(0o700)
    ready(real, "7", project.tracker_root)
    found = begin(real, project, "7")
    Run.objects.filter(pk=found.pk).update(token_hash=tokens.hash_token(TOKEN), state="working")
    found.refresh_from_db()
    assert step(real, found, 0).do == "turn"
    with override_settings(RUNS_LAB=lambda: real.lab):
        yield found


@pytest.fixture
def session(run: Run, live_server: Any, tmp_path: Path) -> Session:
    more = {"LAB_LOOP_EVENTS": str(tmp_path / "events.jsonl")}
    made = Session(tmp_path / "agent", token=TOKEN, more=more, cwd=Path(run.worktree))
    made.address.write_text(live_server.url)
    return made


@pytest.fixture
def ticking(real: RealWorld) -> Iterator[Callable[[], None]]:
    """A worker that answers while the command waits, once it is asked to."""
    over = threading.Event()

    def answer() -> None:
        from django.db import connection

        while not over.is_set():
            tick.tick(real.lab, force=True)
            over.wait(0.05)
        connection.close()

    thread = threading.Thread(target=answer, daemon=True)
    yield thread.start
    over.set()
    if thread.is_alive():
        thread.join(PATIENCE)


def complete(real: RealWorld, run: Run) -> None:
    """Turn 1 commits and ends the issue at hand; the turn after it is ordered."""
    commit(run, "seven", "seven.txt")
    (Path(run.worktree) / "forgotten.txt").write_text("not committed")
    folder = Loop.objects.get(run=run).folder(real.lab.paths) / "1-1"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text('{"topic": "LOOP_COMPLETE"}\n')
    assert step(real, run, 1, turns.Result(exit_code=0, seconds=1.0)).do == "turn"


def step(real: RealWorld, run: Run, number: int, result: turns.Result | None = None) -> Answer:
    """What the runner asks."""
    Host.objects.update(last_tick_at=real.lab.now())
    now = Run.objects.select_related("project", "profile").get(pk=run.pk)
    return turns.step(real.lab, now, Report(number, 1, result))


def commits(run: Run) -> None:
    commit(run, "seven", "seven.txt")


def leaves(run: Run) -> None:
    (Path(run.worktree) / "new file.txt").write_text("not committed")
    (Path(run.worktree) / "README.md").write_text("changed")
    git(Path(run.worktree), "add", "README.md")


def touches_what_is_ignored(run: Run) -> None:
    cache = Path(run.worktree) / "cache"
    cache.mkdir()
    (cache / ".gitignore").write_text("*\n")
    (cache / "big").write_text("x")


@pytest.mark.parametrize(
    ("does", "told", "is_progress"),
    [
        (commits, [], True),
        (leaves, ["- README.md", "- new file.txt"], False),
        (touches_what_is_ignored, [], False),
    ],
)
def test_what_is_committed_is_progress_and_the_next_turn_is_told_what_is_not(
    real, run, does, told, is_progress
):
    does(run)
    folder = Loop.objects.get(run=run).folder(real.lab.paths) / "1-1"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text('{"topic": "build.done"}\n')
    prompt = step(real, run, 1, turns.Result(exit_code=0, seconds=1.0)).content["prompt"]
    section = prompt.partition("## NOT COMMITTED\n\n")[2].partition("\n\n## ")[0]
    assert section.splitlines()[1:] == told
    assert Loop.objects.get(run=run).counters["has_worked"] is is_progress


@pytest.mark.parametrize(
    ("switch", "where"),
    [
        (("switch", "-q", "-c", "other"), "the branch `other`"),
        (("switch", "-q", "--detach"), "no branch, as within a rebase"),
    ],
)
def test_a_turn_that_commits_on_another_branch_is_told_and_counts_as_none(real, run, switch, where):
    worktree = Path(run.worktree)
    git(worktree, *switch)
    commit(run, "seven", "seven.txt")
    folder = Loop.objects.get(run=run).folder(real.lab.paths) / "1-1"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text('{"topic": "build.done"}\n')
    prompt = step(real, run, 1, turns.Result(exit_code=0, seconds=1.0)).content["prompt"]
    assert (
        f"## ANOTHER BRANCH\n\nThe worktree is on {where}. Only what is committed on `afk/7`"
        in prompt
    )
    found = Loop.objects.get(run=run)
    assert (found.turns.get(number=1).commits, found.counters["has_worked"]) == (0, False)
    told = f"the worktree is on {where}, not on afk/7"
    for number, topic in ((2, "build.more"), (3, "build.most")):
        folder = folder.parent / f"1-{number}"
        folder.mkdir()
        (folder / "events.jsonl").write_text(f'{{"topic": "{topic}"}}\n')
        if number == 3:
            git(worktree, "switch", "-q", "afk/7")
        prompt = step(real, run, number, turns.Result(exit_code=0, seconds=1.0)).content["prompt"]
        assert ("## ANOTHER BRANCH" in prompt) is (number == 2)
    assert Notice.objects.filter(kind=NoticeKind.LOOP_STEP, text=told).count() == 1


@pytest.mark.row("C-50", "RALPH-44", "RALPH-67", "RALPH-75", level="real")
def test_an_agent_takes_its_next_issue_and_nothing_of_the_one_before_is_lost(
    real, run, session, ticking
):
    worktree = Path(run.worktree)
    complete(real, run)
    done = git(worktree, "rev-parse", "HEAD")
    ready(real, "8", run.project.tracker_root, "Second")
    ticking()
    said = session.run("next")
    assert said.code == 0, said
    assert said.err.startswith("Issue 8 is taken. Branch afk/8 begins at main (")
    assert said.out.startswith("# Implement: Second (#8)\n")
    assert "## When done\n- All tests pass\n" in said.out
    assert "**Labels of the issue:** `ready-for-agent`" in said.out
    assert git(worktree, "status", "--porcelain") == ""
    assert git(worktree, "symbolic-ref", "--short", "HEAD") == "afk/8"
    assert not (worktree / "seven.txt").exists()
    assert git(worktree, "rev-parse", "afk/7") == done
    rescue = Rescue.objects.get()
    assert rescue.branch == "afk/7"
    assert "forgotten.txt" in git(
        run.project.repo(real.lab.paths), "ls-tree", "--name-only", rescue.commit
    )
    again = session.run("next", "--json")
    assert (again.code, json.loads(again.out)["state"], json.loads(again.out)["key"]) == (
        0,
        "open",
        "8",
    )
    assert session.run("issue", "view").out.startswith("#8 Second"), "not the one of its session"


def conflict(real: RealWorld, run: Run) -> str:
    """A merge of origin's newest commit that stopped at a conflict, and that nobody ended."""
    worktree = Path(run.worktree)
    commit(run, "ours", "seven.txt")
    ours = git(worktree, "rev-parse", "HEAD")
    git(worktree, "checkout", "-q", "--detach", run.fork_point)
    (worktree / "seven.txt").write_text("theirs")
    git(worktree, "add", "-A")
    git(worktree, "commit", "-q", "-m", "feat: theirs")
    theirs = git(worktree, "rev-parse", "HEAD")
    git(worktree, "push", "-q", "origin", f"{theirs}:main")
    git(worktree, "checkout", "-q", run.branch)
    with pytest.raises(CalledProcessError):
        git(worktree, "merge", "-q", theirs)
    assert "UU" in git(worktree, "status", "--porcelain") or "AA" in git(
        worktree, "status", "--porcelain"
    )
    return ours


def test_a_merge_that_was_said_to_be_done_and_was_not_is_kept_and_holds_nobody_up(
    real, run, session, ticking
):
    """The turn ends in a conflict with the completion word; the next issue has a worktree without it."""
    ours = conflict(real, run)
    folder = Loop.objects.get(run=run).folder(real.lab.paths) / "1-1"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text('{"topic": "LOOP_COMPLETE"}\n')
    ready(real, "8", run.project.tracker_root)
    step(real, run, 1, turns.Result(exit_code=0, seconds=1.0))
    ticking()
    said = session.run("next")
    assert said.err.startswith("Issue 8 is taken. Branch afk/8 begins at main ("), said
    worktree, repo = Path(run.worktree), run.project.repo(real.paths)
    assert git(worktree, "branch", "--show-current") == "afk/8"
    assert git(worktree, "status", "--porcelain") == ""
    assert git(worktree, "rev-parse", "HEAD") == git(repo, "rev-parse", "refs/remotes/origin/main")
    assert git(repo, "rev-parse", "refs/heads/afk/7") == ours
    rescue = Rescue.objects.get()
    assert "<<<<<<<" in git(repo, "show", f"{rescue.commit}:seven.txt")


@pytest.mark.row("C-50", level="real")
def test_two_at_once_get_the_same_issue(real, run, session, ticking):
    complete(real, run)
    ready(real, "8", run.project.tracker_root)
    ready(real, "9", run.project.tracker_root)
    both = [session.start("next") for _ in range(2)]
    ticking()
    outs = [one.communicate(timeout=PATIENCE) for one in both]
    assert [one.returncode for one in both] == [0, 0], outs
    assert [out.splitlines()[0] for out, _ in outs] == ["# Implement: Issue 8 (#8)"] * 2
    assert LoopIssue.objects.count() == 2


@pytest.mark.row("C-50", level="real")
def test_without_an_issue_it_says_why_with_a_code_of_its_own(real, run, session, ticking):
    late = session.run("next", "--wait", "0.2")
    assert (late.code, late.out.splitlines()[0][:20]) == (0, "# Implement: Issue 7"), "it is open"
    complete(real, run)
    late = session.run("next", "--wait", "0.2")
    assert (late.code, late.out) == (1, "")
    assert late.err == "labsite has not answered yet. Ask again: labctl next\n"
    ticking()
    none = session.run("next")
    assert (none.code, none.err) == (3, "")
    assert none.out.startswith("Nothing is ready to start")
    assert session.run("next", "--wait", "-1").code == 2
    assert session.run("next", "--wait", "x").code == 2
    assert "3 there is none now" in session.run("next", "--help").out


def test_origin_away_and_a_kill_before_the_move_go_on_with_the_same_claim(
    real, run, session, ticking, tmp_path
):
    complete(real, run)
    ready(real, "8", run.project.tracker_root)
    ready(real, "9", run.project.tracker_root)
    origin = Path(git(run.project.repo(real.lab.paths), "config", "remote.origin.url"))
    away = origin.rename(origin.with_name("away.git"))
    ticking()
    said = session.run("next")
    assert said.code == 1
    assert "Issue 8 is claimed for this loop and cannot be begun yet" in said.err
    assert Run.objects.get().issue_key == "8"
    away.rename(origin)
    said = session.run("next")
    assert (said.code, said.out.splitlines()[0]) == (0, "# Implement: Issue 8 (#8)")
    assert list(LoopIssue.objects.values_list("issue_key", flat=True)) == ["7", "8"]


@pytest.mark.row("C-30", "C-50", "RALPH-37", "RALPH-64", level="real")
def test_one_runner_works_on_three_issues_and_idles_without_a_turn_between(stage: Stage) -> None:
    """The second issue is taken by its agent, the third by labsite while the loop idles."""
    project = stage.project(is_persistent=True)
    ready(stage.world, "8")
    loop = stage.loop(
        project,
        "echo note of 7 > $LAB_SCRATCHPAD; labctl task add one; emit task.added; emit LOOP_COMPLETE",
        "labctl next > $LAB_RUN_FOLDER/said; echo $? >> $LAB_RUN_FOLDER/said; emit LOOP_COMPLETE",
        "labctl next --wait 30 >> $LAB_RUN_FOLDER/said; echo $? >> $LAB_RUN_FOLDER/said; emit LOOP_COMPLETE",
        "gate; emit LOOP_COMPLETE",
    )
    loop.begin()
    loop.until(lambda: stage.ticks() or (loop.loop.state == "idle" and loop.loop.number == 3))
    said = (loop.order.folder / "said").read_text()
    assert "# Implement: Issue 8 (#8)" in said
    none = "Nothing is ready to start: no open issue carries the ready label."
    assert said.splitlines()[-2:] == [none, "3"]
    assert loop.prompt(2).startswith(
        "## NOTES OF THE TURNS BEFORE\n\ncompleted #7, looking for the next one\n"
    )
    assert (loop.folder / "scratchpad.md").read_text() == "completed #8, looking for the next one\n"
    ready(stage.world, "9")
    loop.passes(seconds=301)
    (loop.folder / "wake").touch()
    loop.until(lambda: stage.ticks() or (stage.hand / "at-1-4").exists())
    assert "> # Implement: Issue 9 (#9)" in loop.prompt(4)
    assert "- `task.resume`: Issue 9 was taken for this loop" in loop.prompt(4)
    acts.ask_stop(stage.world.lab, loop.run, by="anna")
    loop.let("1-4")
    assert loop.ends() == (1, "stopped", [1, 2, 3, 4])
    ends = loop.loop.issues.values_list("issue_key", "end")
    assert list(ends) == [("7", "completed"), ("8", "completed"), ("9", "completed")]
    assert loop.loop.counters["completions"] == 3

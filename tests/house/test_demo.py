"""The demo project on real git, and the scripted agent on a real worktree."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.agents.commands import task_text
from runs.core.states import ProjectState
from runs.demo import making as demo
from runs.issues import acts as issues
from runs.models import AgentProfile, Notice, Project
from tests.house.product import ROOT, until
from tests.patience import PATIENCE
from tests.real import RealWorld, git
from trackers.builtin.models import Issue

AGENT = ROOT / "runs" / "demo" / "agent.py"
LABCTL = """#!/bin/sh
echo "$*" >>"$TOLD"
[ "$1 $2" != "issue view" ] || cat "$ISSUE"
"""


def test_the_demo_is_a_real_repository_an_agent_and_three_ready_issues(real: RealWorld) -> None:
    project = demo.make(real.lab, "anna")
    real.work()
    project.refresh_from_db()
    assert project.state == ProjectState.READY
    assert project.default_branch == "main"
    assert git(Path(project.source), "log", "--format=%s") == "feat: split a bill among people"
    assert project.agent is not None
    assert project.agent.name == "Demo agent"
    tracker, root = real.lab.tracker_for("builtin"), project.tracker_root
    ready = tracker.queues({root: project.ready_label})[root]
    assert [issue.title for issue in ready] == [planned.title for planned in demo.planned_issues()]
    assert len(ready) == 3


def test_pressing_demo_again_gives_the_same_project(real: RealWorld) -> None:
    first = demo.make(real.lab, "anna")
    counts = [model.objects.count() for model in (Project, AgentProfile, Issue, Notice)]
    again = demo.make(real.lab, "anna")
    assert again == first
    assert [model.objects.count() for model in (Project, AgentProfile, Issue, Notice)] == counts


def test_a_demo_that_was_interrupted_is_completed(real: RealWorld) -> None:
    half = real.paths.demo / "splitbill.part"
    half.mkdir(parents=True)
    (half / "half.py").write_text("half written")
    project = demo.make(real.lab, "anna")
    assert not half.exists()
    assert not (Path(project.source) / "half.py").exists()
    Issue.objects.all().delete()
    project.agent = None
    project.save()
    root = Project.objects.get().tracker_root
    from trackers.builtin.models import Root

    Root.objects.filter(pk=root).update(next_number=1)
    again = demo.make(real.lab, "anna")
    assert again.agent is not None
    assert Issue.objects.count() == 3


def test_a_project_of_the_operators_own_keeps_its_name(real: RealWorld) -> None:
    real.project("demo", tracker="builtin")
    assert demo.make(real.lab, "anna").name == "labsite-demo"


class Workplace:
    """A worktree of the demo project on `afk/<N>`, with a `labctl` that notes what it is told."""

    def __init__(self, folder: Path, origin: Path) -> None:
        self.folder = folder
        self.origin = origin
        self.tree = folder / "tree"
        self.told = folder / "told"
        self.issue = folder / "issue"
        self.told.write_text("")
        self._started: list[subprocess.Popen[str]] = []
        (folder / "bin").mkdir()
        (folder / "bin" / "labctl").write_text(LABCTL)
        (folder / "bin" / "labctl").chmod(0o755)
        git(folder, "clone", "-q", "--bare", str(origin), str(folder / "origin.git"))
        git(folder, "clone", "-q", str(folder / "origin.git"), str(self.tree))

    def agent(self, key: str, issue: str, **more: str) -> subprocess.Popen[str]:
        """The agent at work on an issue."""
        self.issue.write_text(issue)
        git(self.tree, "switch", "-q", "-c", f"afk/{key}", "origin/main")
        environment = {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "TOLD": str(self.told),
            "ISSUE": str(self.issue),
            "DEMO_PAUSE": "0",
            **more,
        }
        prompt = task_text(key=key, title="a title", branch=f"afk/{key}", base="main")
        process = subprocess.Popen(
            [sys.executable, "-u", str(AGENT), prompt],
            cwd=self.tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._started.append(process)
        return process

    def close(self) -> None:
        for process in self._started:
            _end(process)

    def pushed(self, key: str) -> str:
        """The subject of what origin has for the issue's branch; empty for nothing."""
        branches = git(self.folder / "origin.git", "branch", "--list", f"afk/{key}")
        return (
            git(self.folder / "origin.git", "log", "-1", "--format=%s", f"afk/{key}")
            if branches
            else ""
        )


@pytest.fixture
def workplace(real: RealWorld, tmp_path: Path) -> Iterator[Workplace]:
    folder = tmp_path / "work"
    folder.mkdir()
    made = Workplace(folder, Path(demo.make(real.lab, "anna").source))
    yield made
    made.close()


def _until_idle(process: subprocess.Popen[str]) -> str:
    """What the agent prints until it waits for a person."""
    assert process.stdout is not None
    said = b""
    while not said.endswith(b"> \033[0m"):
        assert select.select([process.stdout], [], [], PATIENCE)[0], said.decode()
        piece = os.read(process.stdout.fileno(), 65536)
        assert piece, said.decode()
        said += piece
    return said.decode()


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


@pytest.mark.parametrize(
    ("number", "subject"),
    [
        (1, "fix: give the left-over cents to the first people"),
        (2, "feat: add --tip, which is added before the bill is split"),
        (3, "fix: answer a wrong amount with a message"),
    ],
)
def test_the_agent_does_each_issue_tests_it_pushes_it_and_opens_a_pull_request(
    workplace: Workplace, number: int, subject: str
) -> None:
    planned = demo.planned_issues()[number - 1]
    process = workplace.agent(str(number), f"#{number} {planned.title}\n\n{planned.body}")
    said = _until_idle(process)
    _end(process)
    told = workplace.told.read_text()
    assert told.startswith(f"issue view {number}\n")
    assert f"pr create --title {subject} --body" in told
    assert f"Closes #{number}" in told
    assert workplace.pushed(str(number)) == subject
    assert git(workplace.tree, "status", "--porcelain") == ""
    changed = git(workplace.tree, "diff", "--name-only", "origin/main", "HEAD").split()
    assert "splitbill.py" in changed
    assert any(name.startswith("test_") for name in changed)
    assert "FAILED" in said
    assert "\nOK" in said.replace("  \033[2m│\033[0m ", "")
    assert "\033[32m" in said


def test_all_three_pieces_of_work_fit_together(workplace: Workplace) -> None:
    for number, planned in enumerate(demo.planned_issues(), start=1):
        process = workplace.agent(str(number), planned.title + planned.body)
        _until_idle(process)
        _end(process)
    git(workplace.tree, "switch", "-q", "main")
    for number in (1, 2, 3):
        git(workplace.tree, "merge", "-q", "--no-edit", f"afk/{number}")
    done = subprocess.run(
        [sys.executable, "-m", "unittest", "-q"],
        cwd=workplace.tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# Each of them is the first once, and of any two each comes before the other.
@pytest.mark.parametrize("order", [(1, 3, 2), (2, 1, 3), (3, 2, 1)], ids=str)
def test_the_issues_are_done_in_any_order_with_a_merge_after_each(
    workplace: Workplace, order: tuple[int, ...]
) -> None:
    planned = demo.planned_issues()
    for number in order:
        issue = planned[number - 1]
        process = workplace.agent(str(number), issue.title + issue.body)
        _until_idle(process)
        _end(process)
        git(workplace.tree, "switch", "-q", "main")
        git(workplace.tree, "merge", "-q", "--no-edit", f"afk/{number}")
        git(workplace.tree, "push", "-q", "origin", "main")
    assert len({workplace.pushed(str(number)) for number in order}) == 3


def test_an_issue_that_the_script_does_not_know_is_written_down_and_delivered(
    workplace: Workplace,
) -> None:
    process = workplace.agent("9", "#9 Paint it blue")
    _until_idle(process)
    _end(process)
    assert workplace.pushed("9") == "docs: note issue 9 for a person"
    assert "Paint it blue" in (workplace.tree / "notes" / "issue-9.md").read_text()


def test_it_can_be_told_to_commit_without_push_and_to_open_no_pull_request(
    workplace: Workplace,
) -> None:
    process = workplace.agent("7", "x", DEMO_AGENT="commit; exit 7")
    assert process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 7
    assert git(workplace.tree, "rev-list", "--count", "origin/main..HEAD") == "1"
    assert workplace.pushed("7") == ""
    process = workplace.agent("8", "x", DEMO_AGENT="commit; push; exit 0")
    process.communicate(timeout=PATIENCE)
    assert workplace.pushed("8")
    assert "pr create" not in workplace.told.read_text()


def test_it_can_be_told_by_the_issue_to_print_a_marker_and_die_by_a_signal(
    workplace: Workplace,
) -> None:
    process = workplace.agent("7", "Title\n\ndemo-agent: print HERE I AM; signal 9\n")
    assert "HERE I AM" in process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == -signal.SIGKILL


def test_it_can_be_told_to_idle_and_to_write_down_what_reached_it(workplace: Workplace) -> None:
    dump = workplace.folder / "dump.json"
    process = workplace.agent("7", "x", DEMO_AGENT=f"dump {dump}; idle")
    until(lambda: dump.exists() and dump.read_text().endswith("}"))
    facts = json.loads(dump.read_text())
    assert "afk/7" in facts["argv"][-1]
    assert facts["cwd"] == str(workplace.tree)
    assert process.poll() is None
    _end(process)


def test_it_says_why_it_cannot_go_on(workplace: Workplace) -> None:
    (workplace.folder / "bin" / "labctl").write_text(
        "#!/bin/sh\necho 'the tracker is closed'; exit 1\n"
    )
    process = workplace.agent("7", "x")
    said = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 1
    assert "the tracker is closed" in said
    assert "I cannot go on" in said


def test_an_issue_of_ones_own_may_hold_steps_in_its_text(real: RealWorld) -> None:
    project = demo.make(real.lab, "anna")
    number = issues.create(
        real.lab,
        project,
        title="Try",
        body="demo-agent: idle",
        labels=["ready-for-agent"],
        by="anna",
    )
    assert number == 4

"""`labctl` is found by every shell that an agent runs commands with, a login shell too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from labsite.preflight import write_labctl
from runs.agents.commands import task_text
from tests.world import stories

ROOT = Path(__file__).resolve().parents[2]
# As Debian's /etc/profile does, whatever this machine's does.
PROFILE = 'PATH="/usr/local/bin:/usr/bin:/bin"; export PATH\n'


@pytest.mark.parametrize(
    "shell", [["bash", "-lc"], ["bash", "-c"], ["sh", "-c"]], ids=lambda shell: " ".join(shell)
)
def test_a_shell_finds_labctl(real, shell):
    write_labctl(real.paths, sys.executable, ROOT)
    (Path(real.environ["HOME"]) / ".profile").write_text(PROFILE)
    found = real.folder / "found"
    project = real.project(argv=[*shell, f"command -v labctl >{found}; sleep 600", "{prompt}"])
    stories.start(real, project)
    real.until(lambda: found.exists() and found.read_text())
    assert found.read_text().strip() == str(real.paths.bin / "labctl")


def test_what_an_operator_has_bash_read_first_is_read_as_well(real):
    write_labctl(real.paths, sys.executable, ROOT)
    own, found = real.folder / "own", real.folder / "found"
    own.write_text("export OWN=read\n")
    project = real.project(
        argv=["bash", "-lc", f'echo "$OWN $(bash -c \'echo $OWN; command -v labctl\')" >{found}; sleep 600', "{prompt}"]
    )  # fmt: skip
    project.agent.env = {"BASH_ENV": str(own)}
    project.agent.save()
    stories.start(real, project)
    real.until(lambda: found.exists() and found.read_text())
    assert found.read_text().split() == ["read", "read", str(real.paths.bin / "labctl")]


def test_a_file_that_names_itself_does_not_go_round(real):
    """A labsite that was started in a session of another one finds that one's file in its place."""
    write_labctl(real.paths, sys.executable, ROOT)
    found = real.folder / "found"
    project = real.project(
        argv=["bash", "-c", f"command -v labctl >{found}; sleep 600", "{prompt}"]
    )
    project.agent.env = {"BASH_ENV": str(real.paths.bash_env)}
    project.agent.save()
    stories.start(real, project)
    real.until(lambda: found.exists() and found.read_text())
    assert found.read_text().strip() == str(real.paths.bin / "labctl")


def test_the_task_says_where_it_lies_for_all_other_shells():
    text = task_text(key="7", title="x", branch="afk/7", base="main", labctl="/state/bin/labctl")
    assert "`labctl issue view 7`. If your shell does not find `labctl`, call it as `/state/bin/labctl`." in text  # fmt: skip
    assert "If your shell" not in task_text(key="7", title="x", branch="afk/7", base="main")

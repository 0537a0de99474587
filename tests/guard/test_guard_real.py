"""On real git and tmux: an agent that finds the shared repository and writes there by its path."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from runs.guard import rules
from runs.guard.shared_files import ASIDE
from runs.lifecycle.stop import stop
from runs.models import Notice, Run
from tests.guard.test_rules import VALUES
from tests.real import git
from tests.world.stories import look, start

pytestmark = [pytest.mark.real, pytest.mark.django_db(transaction=True)]

# `$S` is the shared repository, as an agent finds it.
WORST = {
    "bare": ('git -C "$S" config core.bare false', "core.bare"),
    "worktree settings": (
        'git -C "$S" config extensions.worktreeConfig true; git -C "$S" config core.worktree /tmp',
        "extensions.worktreeconfig",
    ),
    "hook folder": ('git -C "$S" config core.hooksPath "$PWD"', "core.hookspath"),
    "hook": (
        'printf "#!/bin/sh\\nexit 1\\n" >"$S/hooks/reference-transaction"; chmod +x "$S/hooks"/*',
        "hook reference-transaction",
    ),
    "objects of its own": (
        'echo "$PWD/.git/objects" >"$S/objects/info/alternates"',
        "objects/info/alternates",
    ),
    "no settings": ('rm "$S/config"', "config"),
    "bytes in place of settings": ('printf "\\377" >>"$S/config"', "\\xff"),
    "a folder in place of settings": (
        'rm "$S/config"; mkdir -p "$S/config/a"; chmod 0 "$S/config"',
        "config",
    ),
    "a hook of odd bytes": ('touch "$S/hooks/$(printf "a\\377")"', "hook a\\xff"),
    "a version of the future": ('git -C "$S" config core.repositoryformatversion 9', "version"),
}


def told(run: Run) -> str:
    rows = Notice.objects.filter(run=run, kind="run.warned").order_by("pk")
    return "\n".join(row.text for row in rows)


def play(run: Run, script: str) -> None:
    """Do what an agent does in its worktree."""
    found = 'S="$(dirname "$(cat .git/objects/info/alternates)")"\n'
    subprocess.run(["sh", "-c", found + script], cwd=run.worktree, check=False)


@pytest.mark.parametrize(("script", "name"), WORST.values(), ids=WORST)
def test_what_a_run_did_to_the_shared_repository_is_put_right_and_the_next_delivers(
    real, script, name
):
    project = real.project()
    first = start(real, project, "7")
    repo = project.repo(real.paths)
    before = (repo / "config").read_text()
    play(first, script)
    real.offset = timedelta(seconds=30)
    look(real)

    assert (repo / "config").read_text() == before
    assert not (repo / "objects/info/alternates").exists()
    assert not (repo / "hooks/reference-transaction").exists()
    assert name in told(first)
    assert "labsite put it back" in told(first)
    second = start(real, project, "8")
    assert told(second) == ""
    tree = Path(second.worktree)
    (tree / "work.txt").write_text("work")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: work")
    assert real.repos.tip(repo, "refs/heads/afk/8") == git(tree, "rev-parse", "HEAD")


def test_a_start_puts_right_what_was_done_just_before_it(real):
    project = real.project()
    first = start(real, project, "7")
    play(first, WORST["hook folder"][0])
    second = start(real, project, "8")
    assert "core.hookspath" in told(first)
    assert told(second) == ""


def test_what_it_did_last_is_put_right_when_it_has_ended(real):
    project = real.project()
    run = start(real, project)
    repo = project.repo(real.paths)
    play(run, WORST["hook"][0] + "; " + WORST["hook folder"][0])

    stop(real.lab, run, "anna")

    assert "core.hookspath, hook reference-transaction" in told(run)
    assert (repo / ASIDE / "reference-transaction").read_text().startswith("#!/bin/sh")
    assert git(repo, "config", "--get", "gc.auto") == "0"


def test_what_a_run_did_to_its_own_repository_is_told_while_it_works(real):
    run = start(real, real.project())
    play(run, "git config core.bare true")
    real.offset = timedelta(seconds=30)
    look(real)
    assert "core.bare was set" in told(run)
    assert "git --work-tree=. config --file .git/config --unset-all core.bare" in told(run)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("core.worktree", "gone"),
        ("core.worktree", "/"),
        ("core.repositoryformatversion", "9"),
        ("extensions.made", "up"),
        ("core.bare", "true"),
    ],
)
def test_the_advice_for_its_own_repository_works_where_git_refuses_to(tmp_path, name, value):
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", name, value)
    said = rules.describe_own_trouble(
        rules.find_own_trouble((tmp_path / ".git/config").read_text())
    )
    command = said[said.index("git --work-tree") :].split()
    subprocess.run(command, cwd=tmp_path, check=True)
    assert rules.find_own_trouble((tmp_path / ".git/config").read_text()) == ()


@pytest.mark.parametrize("text", VALUES)
def test_values_are_read_as_git_reads_them(tmp_path, text):
    file = tmp_path / "config"
    file.write_text(f"[core]\n\tbare = {text}\n")
    told = git(tmp_path, "config", "--file", str(file), "--get", "--bool", "core.bare")
    assert (told == "true") == VALUES[text]

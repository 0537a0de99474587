"""Removing a project: refused while something is active, and nothing that origin lacks is lost."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from runs.core.ports import SeamError
from runs.core.states import ProjectState
from runs.kept import removal as acts
from runs.kept import removal_rules
from runs.kept.removal_rules import Holdings
from runs.lifecycle.stop import stop
from runs.models import Notice, Project, RetiredFile, Run, WatchSession
from runs.overview import attention_rules
from runs.overview.need_facts import Picture, ProjectNeeds
from runs.setup import file_acts
from runs.watch import acts as watches
from tests import make
from tests.real import RealWorld, git
from tests.world.stories import begin, commit, look, project_with_an_issue
from trackers.builtin.models import Root


@pytest.mark.parametrize(
    ("to_stop", "says"),
    [
        ([], ""),
        (["stop run 3 (issue 1)"], "shop is still in use, so nothing was removed. First stop run"),
        (["stop run 3", "end session 2"], "First stop run 3 and end session 2."),
        (["a", "b", "c"], "First a, b and c."),
    ],
)
def test_a_refusal_says_what_to_stop(to_stop, says):
    said = removal_rules.refusal("shop", to_stop)
    assert says in said
    assert bool(said) == bool(to_stop)


@pytest.mark.parametrize(
    ("held", "has_work"),
    [
        (Holdings(parked=2), False),
        (Holdings(unpushed=1), True),
        (Holdings(uncommitted=("afk/1",)), True),
        (Holdings(parked=None, unpushed=None, uncommitted=None), True),
        (Holdings(rescues=1), True),
        (Holdings(is_hosted=True), True),
    ],
)
def test_what_may_be_nowhere_else_is_told_as_kept(held, has_work):
    assert held.has_work is has_work


def test_a_project_that_is_removed_needs_nobody_unless_that_failed():
    leaving = ProjectNeeds(1, "shop", state=ProjectState.REMOVING, warning="x", is_paused=True)
    assert attention_rules.needs(Picture(projects=[leaving])) == []
    stuck = ProjectNeeds(1, "shop", state=ProjectState.REMOVING, error="the disk is full")
    (need,) = attention_rules.needs(Picture(projects=[stuck]))
    assert (need.what, need.why) == (
        "could not be removed yet",
        "the disk is full. It is tried again by itself.",
    )


@pytest.fixture
def project(real: RealWorld) -> Project:
    return project_with_an_issue(real)


def parked_run(real: RealWorld, project: Project) -> Run:
    """A run that committed, changed one more file, and was stopped: all of it is only here."""
    run = begin(real, project)
    commit(run, "committed")
    (Path(run.worktree) / "work.txt").write_text("not committed")
    stop(real.lab, run, "anna")
    look(real)
    run.refresh_from_db()
    return run


def carry_on(real: RealWorld) -> None:
    """A tick a minute and a half later, and what it asks for."""
    real.offset += timedelta(seconds=100)
    look(real)
    real.work()


def rescued_text(repo: Path, name: str) -> list[str]:
    refs = git(repo, "for-each-ref", "--format=%(refname)", "refs/labsite/rescue/").split()
    return [git(repo, "show", f"{ref}:{name}") for ref in refs]


@pytest.mark.django_db(transaction=True)
def test_a_cloned_project_with_parked_work_goes_and_its_work_stays_on_disk(real, project):
    run = parked_run(real, project)
    held = acts.holdings(real.lab, project)
    assert (held.parked, held.unpushed, held.uncommitted) == (1, 1, ["afk/1"])
    assert (held.runs, held.issues) == (1, 1)
    acts.remove(real.lab, project, "anna")
    project.refresh_from_db()
    assert project.state == ProjectState.REMOVING
    real.work()
    assert not Project.objects.exists()
    assert not Root.objects.exists()
    assert not Path(run.worktree).exists()
    assert not real.paths.run_folder(run.pk).exists()
    (kept,) = real.paths.repos.glob("demo.git.kept-*")
    assert git(kept, "show", "afk/1:work.txt") == "committed"
    assert rescued_text(kept, "work.txt") == ["not committed"]
    told = Notice.objects.first()
    assert str(kept) in told.text
    assert Notice.objects.filter(by="anna", project=None, text="demo: is being removed").exists()
    (rows,) = (real.paths.state / "removed").glob("demo-*.json")
    models = {one["model"] for one in json.loads(rows.read_text())}
    assert {"runs.project", "runs.run", "builtin.issue"} <= models
    assert rows.stat().st_mode & 0o077 == 0
    again = real.project("demo2", tracker="builtin")
    assert again.state == ProjectState.READY


@pytest.mark.django_db(transaction=True)
def test_nothing_is_kept_of_a_project_whose_origin_has_everything(real, project):
    acts.remove(real.lab, project, "anna")
    real.work()
    assert not Project.objects.exists()
    assert list(real.paths.repos.glob("demo*")) == []


@pytest.mark.django_db(transaction=True)
def test_a_project_whose_repository_is_gone_can_be_removed_and_its_clone_is_kept_whole(
    real, project
):
    shutil.rmtree(project.url)
    acts.remove(real.lab, project, "anna")
    real.work()
    assert not Project.objects.exists()
    (kept,) = real.paths.repos.glob("demo.git.kept-*")
    assert git(kept, "rev-parse", "refs/remotes/origin/main")


@pytest.mark.django_db(transaction=True)
def test_a_worktree_that_no_rescue_can_hold_is_kept_as_it_lies(real, project):
    run = parked_run(real, project)
    tree = Path(run.worktree)
    inner = tree / "lib"
    git(tree, "init", "-q", "lib")
    git(inner, "commit", "-q", "--allow-empty", "-m", "feat: of a shallow clone")
    (inner / ".git" / "shallow").write_text(git(inner, "rev-parse", "HEAD"))
    acts.remove(real.lab, project, "anna")
    real.work()
    assert not Project.objects.exists()
    (kept,) = tree.parent.glob(f"{tree.name}.kept-*")
    assert (kept / "work.txt").read_text() == "not committed"


@pytest.mark.django_db(transaction=True)
def test_a_project_in_use_is_not_removed_and_says_what_to_stop(real, project):
    run = begin(real, project)
    session = watches.store(real.lab, project, watches.SWITCH)
    with pytest.raises(acts.RemovalRefused) as refused:
        acts.remove(real.lab, project, "anna")
    assert f"stop run {run.pk} (issue 1)" in refused.value.text
    assert "turn automatic work off" in refused.value.text
    project.refresh_from_db()
    assert project.state == ProjectState.READY
    assert WatchSession.objects.filter(pk=session.pk, ended_at=None).exists()


@pytest.mark.django_db(transaction=True)
def test_a_run_that_started_in_the_same_moment_is_waited_for(real, project):
    run = begin(real, project)
    Project.objects.update(state=ProjectState.REMOVING, clone_deadline=real.lab.now())
    acts.clone_or_remove(real.lab, project.pk)
    project.refresh_from_db()
    assert f"stop run {run.pk}" in project.clone_progress
    stop(real.lab, run, "anna")
    look(real)
    carry_on(real)
    assert not Project.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("at", ["force_remove", "set_aside", "rows"])
def test_a_removal_that_was_killed_is_finished_and_loses_nothing(real, project, monkeypatch, at):
    run = parked_run(real, project)
    acts.remove(real.lab, project, "anna")

    def killed(*_args, **_more):
        raise KeyboardInterrupt

    with monkeypatch.context() as cut:
        if at == "rows":
            cut.setattr(acts.store, "drop_root", killed)
        else:
            cut.setattr(type(real.repos), at, killed)
        with pytest.raises(KeyboardInterrupt):
            acts.clone_or_remove(real.lab, project.pk)
    assert Project.objects.exists()
    carry_on(real)
    assert not Project.objects.exists()
    assert not Path(run.worktree).exists()
    (kept,) = real.paths.repos.glob("demo.git.kept-*")
    assert git(kept, "show", "afk/1:work.txt") == "committed"
    assert "not committed" in rescued_text(kept, "work.txt")


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_put_away_is_told_and_tried_again(real, project, monkeypatch):
    acts.remove(real.lab, project, "anna")
    with monkeypatch.context() as full:
        error = SeamError("the disk is full")
        full.setattr(type(real.repos), "hold", lambda *_: (_ for _ in ()).throw(error))
        real.work()
    project.refresh_from_db()
    assert (project.state, project.error) == (ProjectState.REMOVING, "the disk is full")
    carry_on(real)
    assert not Project.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("what", ["stash", "tag", "worktree elsewhere"])
def test_what_an_agent_left_without_a_branch_is_kept_too(real, project, tmp_path, what):
    repo = project.repo(real.paths)
    tree = tmp_path / "elsewhere"
    git(repo, "worktree", "add", "-q", "--detach", str(tree), "refs/remotes/origin/main")
    if what == "stash":
        (tree / "hello.txt").write_text("stashed")
        git(tree, "stash")
    else:
        git(tree, "commit", "-q", "--allow-empty", "-m", "feat: on no branch")
    tip = git(tree, "rev-parse", "HEAD" if what != "stash" else "refs/stash")
    if what == "tag":
        git(tree, "tag", "try")
    if what != "worktree elsewhere":
        git(repo, "worktree", "remove", "--force", str(tree))
    acts.remove(real.lab, project, "anna")
    real.work()
    assert not Project.objects.exists()
    (kept,) = real.paths.repos.glob("demo.git.kept-*")
    assert git(kept, "cat-file", "-t", tip) == "commit"
    assert what != "worktree elsewhere" or git(tree, "rev-parse", "HEAD") == tip


@pytest.mark.django_db(transaction=True)
def test_a_project_whose_default_branch_was_renamed_on_origin_can_be_removed(real, project):
    parked_run(real, project)
    git(Path(project.url), "branch", "-m", "main", "trunk")
    acts.remove(real.lab, project, "anna")
    real.work()
    assert not Project.objects.exists()
    (kept,) = real.paths.repos.glob("demo.git.kept-*")
    assert git(kept, "show", "afk/1:work.txt") == "committed"


@pytest.mark.django_db(transaction=True)
def test_notes_of_a_worktree_that_are_no_text_keep_no_project_from_going(real, project):
    notes = project.repo(real.paths) / "worktrees" / "odd"
    notes.mkdir(parents=True)
    (notes / "gitdir").write_bytes(b"/tmp/\xff/.git\n")
    acts.remove(real.lab, project, "anna")
    real.work()
    assert not Project.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_rows_of_many_runs_are_written_with_few_questions(
    real, project, django_assert_max_num_queries
):
    for number in range(60):
        make.a_run(project, str(number), outcome="died", reason="exit status 1")
    acts.remove(real.lab, project, "anna")
    with django_assert_max_num_queries(300):
        real.work()
    assert not Project.objects.exists()
    (rows,) = (real.paths.state / "removed").glob("demo-*.json")
    told = json.loads(rows.read_text())
    runs = [one["fields"] for one in told if one["model"] == "runs.run"]
    assert sorted(int(one["issue_key"]) for one in runs) == list(range(60))
    assert {one["reason"] for one in runs} == {"exit status 1"}
    (issue,) = [one["fields"] for one in told if one["model"] == "builtin.issue"]
    assert len(issue["labels"]) == 1


@pytest.mark.django_db(transaction=True)
def test_the_rows_that_are_kept_hold_no_content_of_its_files(real, project):
    file_acts.store(real.lab, project, ".env", "API_KEY=s3cret-of-the-operator\n", by="anna")
    known = {"content": "API_KEY=s3cret-of-before\n", "changed_at": real.lab.now()}
    RetiredFile.objects.create(project=project, **known)
    acts.remove(real.lab, project, "anna")
    real.work()
    (rows,) = (real.paths.state / "removed").glob("demo-*.json")
    told = {one["model"]: one["fields"] for one in json.loads(rows.read_text())}
    assert (told["runs.projectfile"]["path"], told["runs.projectfile"]["content"]) == (".env", "")
    assert told["runs.retiredfile"]["content"] == ""

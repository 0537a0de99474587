"""What the tracker and origin are told of accepted work: closed once it is proven together."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runs.core.effects import ValidationEnd
from runs.core.ports import SeamError
from runs.core.states import CompletionPolicy, NoticeKind, Outcome, RunState, ValidationState
from runs.gates import closing
from runs.issues import acts as issues
from runs.models import Notice, Project, Run, Validation
from tests import make
from tests.real import RealWorld
from trackers.builtin.models import Issue

pytestmark = pytest.mark.django_db(transaction=True)


def git(where: Path, *words: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    argv = ["git", *who, "-C", str(where), *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def project(real: RealWorld) -> Project:
    made = real.project(tracker="builtin")
    Project.objects.filter(pk=made.pk).update(policy=CompletionPolicy.GATES)
    made.refresh_from_db()
    issues.create(real.lab, made, title="Retry", body="", labels=[], by="anna")
    return made


@pytest.fixture
def run(real: RealWorld, project: Project, tmp_path: Path) -> Run:
    """Accepted work on a branch that origin has not got yet."""
    repo = project.repo(real.lab.paths)
    base = real.lab.repos.upstream(repo, project.default_branch)
    place = tmp_path / "work"
    git(repo, "worktree", "add", "-q", "-b", "afk/1", str(place), base)
    (place / "new.txt").write_text("new\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "feat: new (#1)")
    made = make.a_run(project, "1", state=RunState.ENDED, outcome=Outcome.SUCCEEDED, reason="ok")
    facts = {"branch": "afk/1", "accepted_commit": git(place, "rev-parse", "HEAD"), "attempts": 1}
    Run.objects.filter(pk=made.pk).update(
        ended_at=real.lab.now(), close_asked_at=real.lab.now(), host=real.lab.host, **facts
    )
    made.refresh_from_db()
    return made


def origin_of(project: Project) -> Path:
    return Path(project.url)


def is_open(project: Project) -> bool:
    return Issue.objects.get(number=1).is_open


@pytest.mark.row("MALA-V-22", "C-10", level="real")
def test_an_issue_is_closed_with_its_commit_on_origin(real, project, run):
    closing.update_trackers(real.lab)
    run.refresh_from_db()
    assert run.closed_at is not None and not is_open(project)
    assert git(origin_of(project), "rev-parse", "afk/1") == run.accepted_commit
    closing.update_trackers(real.lab)
    assert Notice.objects.filter(kind=NoticeKind.ISSUE_CLOSED).count() == 1


def test_what_somebody_else_pushed_is_never_overwritten(real, project, run, tmp_path):
    other = tmp_path / "other"
    subprocess.run(["git", "clone", "-q", project.url, str(other)], check=True)
    git(other, "checkout", "-q", "-b", "afk/1")
    (other / "theirs.txt").write_text("theirs\n")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "theirs")
    git(other, "push", "-q", "origin", "afk/1")
    theirs = git(other, "rev-parse", "HEAD")
    closing.update_trackers(real.lab)
    closing.update_trackers(real.lab)
    run.refresh_from_db()
    assert git(origin_of(project), "rev-parse", "afk/1") == theirs
    assert run.closed_at is None and is_open(project)
    (said,) = Notice.objects.filter(kind=NoticeKind.RUN_WARNED).values_list("text", flat=True)
    assert "other commits on afk/1" in said


def test_a_branch_that_somebody_deleted_is_not_made_again(real, project, run):
    closing.push_accepted_commit(real.lab, run)
    git(origin_of(project), "update-ref", "-d", "refs/heads/afk/1")
    with pytest.raises(SeamError, match="deleted afk/1"):
        closing.push_accepted_commit(real.lab, run)


def test_what_was_left_out_of_the_run_level_stays_open(real, project, run):
    Run.objects.filter(pk=run.pk).update(close_asked_at=None)
    row = Validation.objects.create(
        project=project,
        run=run,
        number=1,
        count=1,
        host=real.lab.host,
        minutes=1,
        most_fixers=0,
        mark="m",
        state=ValidationState.PASSED,
        began_at=real.lab.now(),
        ended_at=real.lab.now(),
        left_out=["issue 1: its branch afk/1 is gone"],
    )
    end = ValidationEnd(row.pk, None, passed=True)
    closing.request_proven_closings(real.lab, end)
    assert Run.objects.get(pk=run.pk).close_asked_at is None
    Validation.objects.update(merged=[{"tip": run.accepted_commit}])
    closing.request_proven_closings(real.lab, end)
    assert Run.objects.get(pk=run.pk).close_asked_at is not None


class DiscardedMeanwhile:
    """Git, and a person who discards accepted work in the moment in which a branch is pushed."""

    def __init__(self, inner: Any, discarded: Run) -> None:
        self._inner, self._discarded = inner, discarded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def push_commit(self, *given: Any) -> None:
        self._inner.push_commit(*given)
        Run.objects.filter(pk=self._discarded.pk).update(accepted_commit="", close_asked_at=None)


@pytest.mark.row("C-10", level="real")
@pytest.mark.parametrize("which", ["its own", "the next one"])
def test_work_that_is_discarded_while_others_are_closed_closes_nothing(real, project, run, which):
    discarded = run
    if which == "the next one":
        issues.create(real.lab, project, title="Next", body="", labels=[], by="anna")
        known = {"state": RunState.ENDED, "outcome": Outcome.SUCCEEDED, "branch": "afk/2"}
        known |= {"accepted_commit": run.accepted_commit, "attempts": 1, "host": real.lab.host}
        discarded = make.a_run(project, "2", close_asked_at=real.lab.now(), **known)
    lab = replace(real.lab, repos=DiscardedMeanwhile(real.lab.repos, discarded))
    closing.update_trackers(lab)
    discarded.refresh_from_db()
    assert discarded.closed_at is None
    assert Issue.objects.get(number=int(discarded.issue_key)).is_open
    told = Notice.objects.filter(kind=NoticeKind.ISSUE_CLOSED, issue_key=discarded.issue_key)
    assert not told.exists()
    if which == "the next one":
        assert git(origin_of(project), "branch", "--list", "afk/2") == ""
        assert not is_open(project)

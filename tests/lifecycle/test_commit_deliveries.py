"""Runs of a project without pull requests: beads, real tmux, real git; commits are the delivery."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from runs import sweep, tick
from runs.core.ports import SeamError
from runs.core.states import NoticeKind
from runs.dispatch import explain
from runs.forges import mirror, tracker_cache
from runs.kept import discard, merged
from runs.lifecycle import delivery
from runs.models import Notice, Project, Run, WatchSession
from runs.watch import switch as auto
from tests.real import RealWorld, git
from tests.world.stories import look, press_start

pytestmark = pytest.mark.django_db(transaction=True)

KEY, LABEL = "bd-a1.2", "ready-for-agent"


@pytest.fixture
def project(real: RealWorld) -> Project:
    made = real.project(tracker="beads")
    real.beads().issue(KEY, "Retry", labels=[LABEL])
    return made


@pytest.fixture
def run(real: RealWorld, project: Project) -> Run:
    asked = press_start(real, project)
    assert asked.run is not None, asked.text
    return asked.run


def again(run: Run) -> Run:
    return Run.objects.select_related("project").get(pk=run.pk)


def commit(run: Run, message: str = f"feat: retry ({KEY})") -> str:
    tree = Path(run.worktree)
    with (tree / "work.txt").open("a") as book:
        book.write("work\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", message)
    return git(tree, "rev-parse", "HEAD")


def push(run: Run) -> None:
    git(Path(run.worktree), "push", "-q", "origin", run.branch)


def end(real: RealWorld, run: Run) -> None:
    real.tmux("kill-session", "-t", run.session)


@pytest.mark.row("X-04", "C-07", "C-53", "C-10", "LAB-37", "LAB-38", level="real")
def test_a_word_with_all_proof_is_a_success_that_keeps_the_claim(
    real: RealWorld, project: Project, run: Run
) -> None:
    assert (run.session, run.branch) == ("demo~1~afk-bd-a1__2", f"afk/{KEY}")
    assert Path(run.worktree).name == f"demo.{KEY}"
    assert real.session_names() == [run.session]
    assert "`labctl done`" in run.prompt
    made = commit(run)
    push(run)
    look(real)
    assert again(run).is_active, "without its word it may still be working"

    found = delivery.ask(real.lab, run, "agent, run 1")

    assert (found.commits, found.is_pushed, found.named_in) == (1, True, made)
    assert real.bell.looks[-1] == "demo"
    look(real)
    run = again(run)
    assert (run.outcome, run.worktree_fate) == ("succeeded", "removed")
    assert run.reason == f"commit {made[:7]} names the issue, and origin has afk/{KEY}"
    assert real.session_names() == []
    assert not Path(run.worktree).exists()
    repo = project.repo(real.paths)
    assert git(repo, "rev-parse", f"refs/heads/afk/{KEY}") == made
    assert git(Path(project.url), "rev-parse", f"refs/heads/afk/{KEY}") == made
    assert real.beads().shown(KEY)["status"] == "open"
    assert press_start(real, project).answer == "nothing_ready"
    commands = {call["argv"][0] for call in real.beads().calls()}
    assert commands <= {"ready", "list", "blocked"}, "nothing is written on the tracker"


@pytest.mark.row("C-07", level="real")
def test_a_word_alone_proves_nothing_and_is_used_up(real: RealWorld, run: Run) -> None:
    assert delivery.ask(real.lab, run, "a").commits == 0
    commit(run, "feat: retry, and no key")
    found = delivery.ask(real.lab, run, "a")
    assert (found.is_pushed, found.named_in) == (False, "")
    assert again(run).look_asked_at is None, "a look of the judge comes later than the word"

    look(real)

    run = again(run)
    assert (run.is_active, run.look_asked_at) == (True, None)
    assert run.proven == f"1 committed up to {found.tip[:7]}, not pushed, not named"
    said = Notice.objects.filter(run=run, text__contains="says that it is done")
    assert said.count() == 1, "a word that is repeated is told once"
    commit(run)
    push(run)
    look(real)
    assert again(run).is_active, "the word was about what there was then"
    delivery.ask(real.lab, run, "a")
    look(real)
    assert again(run).outcome == "succeeded"


@pytest.mark.row("C-07", level="real")
@pytest.mark.parametrize(
    ("message", "is_pushed", "outcome", "reason"),
    [
        (f"feat: retry ({KEY})", True, "succeeded", "names the issue"),
        (f"feat: retry ({KEY})", False, "died", "no push of the newest commit"),
        ("feat: retry (bd-a1)", True, "died", "no commit whose message names"),
        (None, False, "died", f"no commit on afk/{KEY}"),
    ],
)
def test_a_session_that_is_gone_is_judged_by_the_proof(
    real: RealWorld, run: Run, message: str | None, is_pushed: bool, outcome: str, reason: str
) -> None:
    if message is not None:
        commit(run, message)
    if is_pushed:
        push(run)
    end(real, run)

    look(real)

    assert again(run).outcome == outcome
    assert reason in again(run).reason


@pytest.mark.row("C-07", level="real")
def test_the_budget_ends_a_run_and_a_delivery_wins_over_time(real: RealWorld, run: Run) -> None:
    commit(run)
    real.offset = timedelta(minutes=200)
    look(real)
    assert again(run).outcome == "timed_out"
    assert again(run).reason.startswith("no push of the newest commit")
    assert "after 45 min" in again(run).reason


@pytest.mark.row("C-07", "LAB-15", level="real")
def test_an_origin_that_does_not_answer_ends_nothing(
    real: RealWorld, project: Project, run: Run
) -> None:
    commit(run)
    push(run)
    end(real, run)
    Project.objects.filter(pk=project.pk).update(url=str(real.folder / "nowhere.git"))
    report = look(real)
    assert again(run).is_active
    assert any("did not say" in error for error in report.errors)

    Project.objects.filter(pk=project.pk).update(url=project.url)
    look(real)
    assert again(run).outcome == "succeeded"


@pytest.mark.row("C-07", level="real")
def test_a_run_that_works_on_costs_no_question_to_origin(real: RealWorld, run: Run) -> None:
    asked: list[str] = []

    class Watched:
        def pushed(self, *argv: Any, **more: Any) -> Any:
            asked.append("pushed")
            raise SeamError("nobody should ask")

        def __getattr__(self, name: str) -> Any:
            return getattr(real.repos, name)

    commit(run)
    before = len(real.beads().calls())
    for _ in range(3):
        tick.tick(replace(real.lab, repos=Watched()), force=True)
    assert asked == []
    assert len(real.beads().calls()) == before, "no process of bd when there is nothing to ask"
    assert again(run).is_active


@pytest.mark.row("C-53", "LAB-01", level="real")
def test_a_session_made_by_hand_is_adopted_by_the_words_of_its_tracker(
    real: RealWorld, project: Project
) -> None:
    for name in ("demo~1~afk-bd-a1__2", "demo~2~afk-7", "demo~3~afk-x"):
        real.by_hand(name)
    look(real)
    found = Run.objects.get()
    assert (found.issue_key, found.branch, found.is_adopted) == (KEY, f"afk/{KEY}", True)


@pytest.mark.row("C-53", level="real")
def test_a_key_that_cannot_be_used_is_listed_and_never_started(
    real: RealWorld, project: Project
) -> None:
    place = real.beads()
    place.issue("auto-1", "Unfit", labels=[LABEL], priority=0)
    _, waiting = explain.explain(real.lab, project)
    texts = {one.issue.key: [failed.text for failed in one.failed] for one in waiting}
    assert any("auto- marks" in text or "begins with auto-" in text for text in texts["auto-1"])

    asked = press_start(real, project)

    assert asked.run is not None
    assert asked.run.issue_key == KEY
    assert press_start(real, project, wanted="auto-1").run is None


@pytest.mark.row("C-10", level="real")
def test_a_merged_branch_stays_as_long_as_its_issue_is_open(
    real: RealWorld, project: Project, run: Run
) -> None:
    commit(run)
    push(run)
    end(real, run)
    look(real)
    repo = project.repo(real.paths)
    checkout = real.folder / "demo-checkout"
    git(checkout, "fetch", "-q", "origin")
    git(checkout, "merge", "-q", f"origin/afk/{KEY}")
    git(checkout, "push", "-q", "origin", "main")
    real.repos.fetch(repo)

    assert merged.collect(real.lab, project) == []
    sweep.forget_reconciled(real.lab)
    look(real)
    assert real.repos.claims(repo, project.keys) == {KEY}
    real.beads().lose()
    assert merged.collect(real.lab, project) == [], "a tracker that does not answer frees nothing"


@pytest.mark.row("C-10", level="real")
def test_a_merged_branch_goes_when_its_issue_was_closed(
    real: RealWorld, project: Project, run: Run
) -> None:
    commit(run)
    push(run)
    end(real, run)
    look(real)
    checkout = real.folder / "demo-checkout"
    git(checkout, "fetch", "-q", "origin")
    git(checkout, "merge", "-q", f"origin/afk/{KEY}")
    git(checkout, "push", "-q", "origin", "main")
    real.repos.fetch(project.repo(real.paths))
    tracker = real.lab.tracker_for("beads")
    assert tracker is not None
    tracker.close(project.tracker_root, KEY)

    assert merged.collect(real.lab, project) == [f"afk/{KEY}"]


@pytest.mark.row("MALA-W-54", level="real")
def test_a_bd_that_fails_is_told_once_while_the_run_goes_on(
    real: RealWorld, project: Project, run: Run
) -> None:
    Project.objects.filter(pk=project.pk).update(is_auto=True)
    real.beads().fault({"command": "ready", "status": 1, "err": "Error: database is locked"})

    def warnings() -> list[str]:
        rows = Notice.objects.filter(project=project, kind__startswith="project.")
        return list(rows.order_by("pk").values_list("text", flat=True))

    real.offset = timedelta(minutes=5)
    before = len(warnings())
    tracker_cache.refresh(real.lab, project.pk)
    assert "database is locked" in warnings()[-1]
    assert len(warnings()) == before + 1
    assert again(run).is_active
    look(real)
    assert again(run).is_active

    real.offset = timedelta(minutes=15)
    tracker_cache.refresh(real.lab, project.pk)
    assert warnings()[-1] == "the tracker answers again"


@pytest.mark.row("MALA-W-54", level="real")
def test_one_failure_of_bd_is_one_failed_poll_however_often_it_is_polled(
    real: RealWorld, project: Project
) -> None:
    auto.switch(real.lab, project, is_on=True, by="anna")
    real.beads().fault({"command": "ready", "status": 1, "err": "Error: database is locked"})
    failed = Notice.objects.filter(kind=NoticeKind.WATCH_POLL_FAILED)
    for seconds in (0, 20, 40, 55):
        real.offset = timedelta(seconds=seconds)
        tick.tick(real.lab, force=True)
        assert (WatchSession.objects.get().poll_failures, failed.count()) == (1, 1)
    real.offset = timedelta(seconds=120)
    tick.tick(real.lab, force=True)
    assert WatchSession.objects.get().poll_failures == 0


@pytest.mark.row("C-02", "C-10", level="real")
@pytest.mark.parametrize(
    ("message", "status"), [(f"feat: x ({KEY})", "in_progress"), ("x", "open")]
)
def test_what_was_delivered_stays_marked_until_somebody_closes_it(
    real: RealWorld, project: Project, run: Run, message: str, status: str
) -> None:
    Project.objects.filter(pk=project.pk).update(mirror="status")
    mirror.carry_out(real.lab, run.pk)
    assert real.beads().shown(KEY)["status"] == "in_progress"
    commit(run, message)
    push(run)
    end(real, run)
    look(real)

    for _ in range(2):
        mirror.carry_out(real.lab, run.pk)

    assert real.beads().shown(KEY)["status"] == status


@pytest.mark.row("C-02", "MALA-W-28", "LAB-59", level="real")
def test_a_claim_that_bd_refuses_leaves_neither_branch_nor_worktree(
    real: RealWorld, project: Project
) -> None:
    Project.objects.filter(pk=project.pk).update(mirror="status")
    real.beads().fault({"command": "update", "status": 1, "err": "Error: blocked by bd-b3"})

    asked = press_start(real, project)

    assert asked.answer == "start_failed"
    assert "bd update was refused: blocked by bd-b3" in asked.text
    assert real.repos.claims(project.repo(real.paths)) == frozenset()
    assert list(real.paths.worktrees.glob("*")) == []
    assert real.session_names() == []
    run = Run.objects.get()
    assert (run.outcome, run.claimed_at, run.worktree, run.mirrored) == ("failed", None, "", "")
    assert real.beads().shown(KEY)["status"] == "open"
    assert press_start(real, project).answer == "started"
    assert real.beads().shown(KEY)["status"] == "in_progress"


def test_a_run_that_died_after_its_push_is_discarded_and_its_issue_is_delivered_again(
    real: RealWorld, project: Project, run: Run
) -> None:
    commit(run, "feat: half of it")
    push(run)
    end(real, run)
    look(real)
    assert again(run).outcome == "died"
    done = discard.discard(real.lab, project, f"afk/{KEY}", "anna")
    assert done.on_origin == f"afk/{KEY} was deleted on origin too."
    asked = press_start(real, project, wanted=KEY)
    assert asked.run is not None, asked.text
    look(real)
    assert again(asked.run).is_active
    commit(asked.run)
    push(asked.run)
    delivery.ask(real.lab, asked.run, "a")
    look(real)
    assert (again(asked.run).outcome, again(asked.run).commits) == ("succeeded", 1)

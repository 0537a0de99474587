"""Sessions that people drive: names, cap, worktrees of their own, and the guarded Stop."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction

from runs import tick
from runs.core import lease, naming
from runs.core.states import PersonState
from runs.dispatch import start_requests
from runs.machine.git import CHECKOUT
from runs.manual import acts as manual
from runs.manual import endings as manual_ends
from runs.models import AgentProfile, ManualSession, Notice, Project, Run, Settings
from runs.stop_project import stop_project
from tests import make
from tests.fakes import START, World
from tests.linked import cut
from tests.real import RealWorld, git
from tests.world.stories import start as start_run

pytestmark = pytest.mark.django_db(transaction=True)

NOW = datetime(2026, 11, 21, 23, 59, 30, tzinfo=UTC)


@pytest.mark.row("LAB-126", level="pure")
@pytest.mark.parametrize(
    ("text", "taken", "label"),
    [
        pytest.param("", [], "20261121-2359", id="no label: only the time"),
        pytest.param("fix login", [], "fix_login-20261121-2359", id="made safe"),
        pytest.param("a/b~c.d:é", [], "a-b_c_d-20261121-2359", id="odd letters"),
        pytest.param("--force", [], "force-20261121-2359", id="never a flag"),
        pytest.param("~~", [], "20261121-2359", id="nothing left of it"),
        pytest.param("", ["20261121-2359"], "20261122-0000", id="taken: the next minute, and day"),
        pytest.param("", ["20261121-2359", "20261122-0000"], "20261122-0001", id="taken twice"),
        pytest.param("b", ["a-20261121-2359"], "b-20261121-2359", id="another label is free"),
        pytest.param("x" * 40, [], "x" * 32 + "-20261121-2359", id="cut at 32"),
        pytest.param("afk-7", [], "afk-7-20261121-2359", id="never the name of a run"),
    ],
)
def test_a_label_is_safe_and_free(text: str, taken: list[str], label: str) -> None:
    made = naming.person_label(text, NOW, taken)
    assert made == label
    session = naming.person_session("demo", made)
    assert naming.is_word(session)
    assert naming.parse_session(session) is None
    assert naming.session_project(session) == "demo"
    assert naming.is_managed(naming.person_branch(made))
    assert naming.claimed_key(naming.person_branch(made)) is None


def opened(real: RealWorld, project: Project, text: str = "") -> ManualSession:
    row = manual.start(real.lab, project, text, "anna")
    real.queue.opened.clear()
    manual.carry_out(real.lab, row.pk)
    row.refresh_from_db()
    assert row.state == "live", row.warning
    return row


@pytest.mark.row("LAB-126", level="real")
@pytest.mark.row("LAB-127", level="real")
def test_three_sessions_have_three_worktrees_and_branches(real: RealWorld) -> None:
    project = real.project()
    rows = [opened(real, project) for _ in range(3)]
    minutes = [datetime.strptime(row.label, "%Y%m%d-%H%M").replace(tzinfo=UTC) for row in rows]
    assert {(b - a).seconds for a, b in pairwise(minutes)} == {60}
    repo = project.repo(real.paths)
    assert sorted(map(str, real.repos.registered(repo))) == sorted(row.worktree for row in rows)
    for row in rows:
        assert real.repos.standing(repo, Path(row.worktree)).branch == f"lab/{row.label}"
    assert len({row.worktree for row in rows}) == len({row.branch for row in rows}) == 3
    assert real.session_names() == sorted(row.session for row in rows)


@pytest.mark.row("LAB-06", level="real")
def test_no_tick_judges_or_ends_a_session_that_a_person_drives(real: RealWorld) -> None:
    row = opened(real, real.project(), "mine")
    for _ in range(10):
        real.offset += (Settings.current().run_budget) * 2
        tick.tick(real.lab, force=True)
        manual.watch(real.lab)
    assert real.session_names() == [row.session]
    assert not Run.objects.exists()
    assert Path(row.worktree).is_dir()


@pytest.mark.row("LAB-106", "LAB-107", "LAB-108", "LAB-109", level="real")
@pytest.mark.parametrize(
    ("state", "keeps_worktree", "keeps_branch"),
    [
        pytest.param("untouched", False, False, id="clean and merged: both go"),
        pytest.param("commit", False, True, id="clean and not merged: the branch stays"),
        pytest.param("untracked", True, True, id="a new file: both stay"),
        pytest.param("broken", True, True, id="git cannot say: both stay"),
    ],
)
def test_stop_tidies_by_the_guarded_rule(
    real: RealWorld, state: str, keeps_worktree: bool, keeps_branch: bool
) -> None:
    project = real.project()
    row = opened(real, project)
    tree = Path(row.worktree)
    if state != "untouched":
        (tree / "new.txt").write_text("new")
    if state == "commit":
        git(tree, "add", "new.txt")
        git(tree, "commit", "-qm", "new")
    if state == "broken":
        cut(tree)
        (tree / ".git").write_text("gitdir: /nowhere\n")
    assert manual_ends.stop(real.lab, row, "anna")
    assert not manual_ends.stop(real.lab, row, "anna")
    assert real.session_names() == []
    assert tree.exists() is keeps_worktree
    assert (real.repos.tip(project.repo(real.paths), f"refs/heads/{row.branch}") is not None) is (
        keeps_branch
    )
    assert bool(row.warning) is keeps_worktree
    assert Notice.objects.filter(kind="session.ended", by="anna").count() == 1


@pytest.mark.row("LAB-51", level="real")
def test_stop_all_ends_them_with_the_runs_of_one_project_only(real: RealWorld) -> None:
    project, other = real.project(), real.project("other")
    row, beside = opened(real, project), opened(real, other)
    run = start_run(real, project)
    assert stop_project(real.lab, project, "anna") == 2
    assert real.session_names() == [beside.session]
    run.refresh_from_db()
    row.refresh_from_db()
    assert (run.outcome, row.state) == ("stopped", "ended")


def test_a_program_that_ends_by_itself_leaves_its_work(real: RealWorld) -> None:
    row = opened(real, real.project())
    real.tmux("kill-session", "-t", f"={row.session}")
    manual.watch(real.lab)
    row.refresh_from_db()
    assert row.state == "ended"
    assert Path(row.worktree).is_dir()
    assert Notice.objects.filter(kind="session.ended").count() == 1


@pytest.fixture
def project(world: World) -> Project:
    made = make.a_project(agent=make.an_agent())
    Settings.current()
    return made


@pytest.mark.row("LAB-66", level="contract")
def test_the_cap_is_the_one_of_all_sessions(world: World, project: Project) -> None:
    Settings.objects.update(session_cap=2)
    manual.start(world.lab, project, "", "anna")
    world.live(make.a_run(project, slot=1))
    with pytest.raises(manual.SessionRefused, match="All 2 slots are taken"):
        manual.start(world.lab, project, "", "anna")
    world.tracker.add_root("demo")
    world.tracker.add_issue("demo", "9", labels=["ready-for-agent"])
    asked = start_requests.request(world.lab, project, "anna")
    tick.tick(world.lab, force=True)
    asked.refresh_from_db()
    assert asked.answer == "at_cap"
    assert ManualSession.objects.count() == 1


def test_nothing_is_counted_while_a_tick_counts(world: World, project: Project) -> None:
    number = lease.acquire(replace(world.lab, process="boot:2:2"))
    assert number is not None
    with pytest.raises(manual.SessionRefused, match="busy"):
        manual.start(world.lab, project, "", "anna")
    lease.release(world.lab, number)
    assert manual.start(world.lab, project, "", "anna").state == "starting"
    assert lease.acquire(world.lab) is not None


@pytest.mark.every_case
@pytest.mark.parametrize("why", ["long", "cloning", "one-shot", "tmux"])
def test_a_start_that_cannot_be_says_why_and_leaves_nothing(
    world: World, project: Project, why: str
) -> None:
    text = "x" * 33 if why == "long" else ""
    if why == "cloning":
        project.state = "cloning"
    if why == "one-shot":
        AgentProfile.objects.update(mode="one_shot")
        project.refresh_from_db()
    if why == "tmux":
        world.sessions.broken = "no answer"
    with pytest.raises(manual.SessionRefused):
        manual.start(world.lab, project, text, "anna")
    assert not ManualSession.objects.exists()


@pytest.mark.every_case
@pytest.mark.parametrize("why", ["fetch", "login", "spawn"])
def test_a_start_that_fails_is_undone(world: World, project: Project, why: str) -> None:
    if why == "fetch":
        world.repos.broken_fetch = "no network"
    elif why == "login":
        AgentProfile.objects.update(login_command=["check"])
        world.login.answer = False
    else:
        world.sessions.broken_start = "no room"
    row = manual.start(world.lab, project, "", "anna")
    manual.carry_out(world.lab, row.pk)
    row.refresh_from_db()
    assert row.state == "ended"
    assert "did not start" in row.warning
    assert row.settled_at is not None
    assert world.repos.trees == {}
    assert not any(world.repos.heads.values())


def test_a_stop_while_it_starts_wins(world: World, project: Project) -> None:
    row = manual.start(world.lab, project, "", "anna")

    class Slow:
        def approve(self, *args: object) -> None:
            manual_ends.stop(world.lab, ManualSession.objects.get(), "bob")

    manual.carry_out(replace(world.lab, trust=Slow()), row.pk)
    row.refresh_from_db()
    assert (row.state, row.started_at) == ("ended", None)
    assert world.sessions.all == {}
    assert world.repos.trees == {}


def test_a_lost_message_and_a_dead_starter_are_found_by_the_watch(
    world: World, project: Project
) -> None:
    row = manual.start(world.lab, project, "", "anna")
    world.queue.opened.clear()
    manual.watch(world.lab)
    assert world.queue.opened == [row.pk]
    ManualSession.objects.update(launcher="boot:9:9")
    manual.watch(world.lab)
    row.refresh_from_db()
    assert row.state == "starting"
    world.dead_processes.add("boot:9:9")
    manual.watch(world.lab)
    row.refresh_from_db()
    assert row.state == "ended"


def test_a_start_that_may_still_check_files_out_is_not_given_up(
    world: World, project: Project
) -> None:
    row = manual.start(world.lab, project, "", "anna")
    ManualSession.objects.update(launcher="boot:9:9")
    for minutes, state in ((2 * CHECKOUT / 60 + 5, "starting"), (15, "ended")):
        world.clock.forward(minutes=minutes)
        manual.watch(world.lab)
        row.refresh_from_db()
        assert row.state == state


def test_a_session_that_could_not_be_ended_is_ended_later(world: World, project: Project) -> None:
    row = manual.start(world.lab, project, "", "anna")
    manual.carry_out(world.lab, row.pk)
    row.refresh_from_db()
    world.sessions.broken_kill = "no"
    assert manual_ends.stop(world.lab, row, "anna")
    world.sessions.broken_kill = ""
    assert row.session in world.sessions.all
    manual.watch(world.lab)
    assert world.sessions.all == {}
    row.refresh_from_db()
    assert row.settled_at is not None


@pytest.mark.postgres
def test_the_database_refuses_two_of_one_label_and_an_end_without_moment(project: Project) -> None:
    facts = {
        "project": project,
        "host": "local",
        "label": "x",
        "session": "demo~x",
        "branch": "lab/x",
        "by": "anna",
        "asked_at": START,
    }
    ManualSession.objects.create(**facts)
    for wrong in (
        {"session": "demo~y"},
        {"label": "y"},
        {"label": "y", "session": "demo~y", "state": PersonState.ENDED},
        {"label": "y", "session": "demo~y", "settled_at": START},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            ManualSession.objects.create(**{**facts, **wrong})

"""Commands after a run and before its worktree is removed: run by the worker, told, never fatal. With fakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs.core.ports import SeamError
from runs.core.states import Outcome, WorktreeFate
from runs.jobs.recovery import recover_jobs
from runs.kept import discard, merged, removal
from runs.kept.discard import DiscardRefused
from runs.lifecycle import outcomes, reaper, stop
from runs.models import Discarding, Job, Notice, Project, Run
from runs.setup import after_run
from runs.validation.command_rules import Check, Checked
from tests import make
from tests.fakes import FakeTree, World
from tests.web.people import confirmed, text_of
from tests.world.stories import look, start

pytestmark = pytest.mark.django_db(transaction=True)

AFTER = "docker compose stop\nmake 'the report'"
DOWN = "docker compose down --volumes"


@pytest.fixture
def project(world: World) -> Project:
    world.tracker.add_root("demo")
    return make.a_project(agent=make.an_agent())


def _commands(world: World) -> list[str]:
    return [" ".join(one.argv) for one in world.checks.ran]


def _carry_out(world: World) -> None:
    """The worker does what it was asked for."""
    while world.queue.after_runs:
        after_run.carry_out(world.lab, world.queue.after_runs.pop(0))


def _again(run: Run) -> Run:
    return Run.objects.select_related("project").get(pk=run.pk)


def _stopped(world: World, project: Project) -> Run:
    run = start(world, project)
    stop.stop(world.lab, run, "anna")
    return _again(run)


def _succeeded(world: World, project: Project) -> Run:
    """A run that ended well; its worktree is clean."""
    run = start(world, project)
    outcomes.record(world.lab, run, Outcome.SUCCEEDED, "its pull request is open")
    reaper.settle(world.lab, run)
    return _again(run)


def _warned(run: Run) -> list[str]:
    rows = Notice.objects.filter(run=run, kind="run.warned").order_by("pk")
    return list(rows.values_list("text", flat=True))


class TestAfterARun:
    @pytest.fixture(autouse=True)
    def commands(self, project: Project) -> None:
        Project.objects.update(setup_after=AFTER)
        project.refresh_from_db()

    def test_the_worker_runs_them_once_the_session_is_gone_and_the_run_is_settled_after_them(
        self, world: World, project: Project
    ) -> None:
        sessions: list[int] = []
        world.checks.meanwhile = lambda check: sessions.append(len(world.sessions.look()))
        run = _stopped(world, project)
        assert (run.outcome, run.settled_at, world.checks.ran) == (Outcome.STOPPED, None, [])
        look(world)
        assert world.queue.after_runs == [run.pk]
        _carry_out(world)
        assert _commands(world) == ["docker compose stop", "make the report"]
        first = world.checks.ran[0]
        assert (first.cwd, first.env["LAB_OUTCOME"]) == (Path(run.worktree), "stopped")
        assert first.env["LAB_PORT_BASE"]
        assert first.mark != run.marker(world.lab.paths)
        assert sessions == [0, 0]
        look(world)
        run = _again(run)
        assert run.settled_at is not None
        assert [one["status"] for one in run.setup_after["results"]] == [0, 0]
        assert not Job.objects.unfinished().exists()

    def test_a_run_that_began_without_a_temporary_folder_gets_one_for_them(
        self, world: World, project: Project
    ) -> None:
        run = _stopped(world, project)
        world.sessions.temporary.clear()
        there: list[set[Path]] = []
        world.checks.meanwhile = lambda check: there.append(set(world.sessions.temporary))
        look(world)
        _carry_out(world)
        folder = world.lab.paths.temporary_folder(run.pk)
        assert there == [{folder}, {folder}]
        assert world.checks.ran[0].env["TMPDIR"] == str(folder)
        look(world)
        assert world.sessions.temporary == set()

    def test_what_the_screen_showed_is_kept_meanwhile(self, world: World, project: Project) -> None:
        run = start(world, project)
        world.sessions.text[run.session] = "the last words"
        stop.stop(world.lab, run, "anna")
        _carry_out(world)
        look(world)
        assert _again(run).last_words == "the last words"

    def test_one_that_fails_is_told_and_changes_nothing(
        self, world: World, project: Project, anna: Client
    ) -> None:
        world.checks.answers["docker compose stop"] = Checked(1, 2.0, tail="no daemon\n")
        run = _stopped(world, project)
        _carry_out(world)
        look(world)
        run = _again(run)
        assert len(world.checks.ran) == 2
        assert (run.outcome, run.settled_at is None) == (Outcome.STOPPED, False)
        assert _warned(run) == [
            "commands after the run: docker compose stop failed with exit status 1. Its outcome "
            "and its work are as they were."
        ]
        project.refresh_from_db()
        assert project.streak == 0
        text = text_of(anna.get(f"/runs/{run.pk}/"))
        assert "After the run" in text and "no daemon" in text

    def test_those_that_cannot_be_run_are_told_too(self, world: World, project: Project) -> None:
        run = _stopped(world, project)
        world.checks.broken = "the disk is full"
        _carry_out(world)
        world.checks.broken = ""
        look(world)
        assert _again(run).settled_at is not None
        assert _warned(run)[0].startswith("commands after the run: the disk is full.")

    def test_a_start_that_failed_has_none(self, world: World, project: Project) -> None:
        Project.objects.update(setup="npm ci")
        world.checks.answers["npm ci"] = Checked(1, 2.0)
        start(world, project)
        look(world)
        assert Run.objects.get().settled_at is not None
        assert (_commands(world), world.queue.after_runs) == (["npm ci"], [])

    def test_none_is_no_work(self, world: World, project: Project) -> None:
        Project.objects.update(setup_after="# nothing yet")
        run = _stopped(world, Project.objects.get())
        assert run.settled_at is not None
        assert (run.setup_after, world.queue.after_runs) == (None, [])

    def test_they_are_carried_out_once_however_often_they_are_asked_for(
        self, world: World, project: Project
    ) -> None:
        run = _stopped(world, project)
        look(world)
        look(world)
        _carry_out(world)
        after_run.carry_out(world.lab, run.pk)
        recover_jobs(world.lab, [after_run.HANDLER])
        look(world)
        assert (len(world.checks.ran), world.queue.after_runs) == (2, [])

    def test_a_killed_worker_has_those_run_again_that_had_not_ended(
        self, world: World, project: Project
    ) -> None:
        run = _stopped(world, project)
        _kill_during(world, "make the report")
        recover_jobs(world.lab, [after_run.HANDLER])
        _carry_out(world)
        look(world)
        assert _commands(world) == ["docker compose stop", "make the report", "make the report"]
        assert _again(run).settled_at is not None
        assert _warned(run) == []

    def test_after_a_second_death_the_run_is_settled_without_them(
        self, world: World, project: Project
    ) -> None:
        run = _stopped(world, project)
        for _ in "12":
            _kill_during(world, "docker compose stop")
            recover_jobs(world.lab, [after_run.HANDLER])
        assert world.queue.after_runs == []
        look(world)
        assert _again(run).settled_at is not None
        (text,) = _warned(run)
        assert text.startswith("commands after the run: labsite was ended twice while they ran.")

    def test_a_worker_that_is_told_to_end_lets_go_of_them(
        self, world: World, project: Project
    ) -> None:
        run = _stopped(world, project)
        after_run.carry_out(world.lab, world.queue.after_runs.pop(0), lambda: True)
        assert _again(run).setup_after["is_over"] is False
        recover_jobs(world.lab, [after_run.HANDLER])
        _carry_out(world)
        assert _again(run).setup_after["is_over"] is True


class _KilledError(BaseException):
    """Stands for the death of the worker."""


def _kill_during(world: World, command: str) -> None:
    """The worker dies while it runs a command."""

    def die(check: Check) -> None:
        if " ".join(check.argv) == command:
            raise _KilledError

    world.checks.meanwhile = die
    with pytest.raises(_KilledError):
        _carry_out(world)
    world.checks.meanwhile = lambda check: None
    Job.objects.unfinished().update(owner="gone:1:1")
    world.dead_processes.add("gone:1:1")


class TestBeforeRemoval:
    @pytest.fixture(autouse=True)
    def commands(self, project: Project) -> None:
        Project.objects.update(setup_removal=DOWN)
        project.refresh_from_db()

    @pytest.fixture
    def parked(self, world: World, project: Project) -> Run:
        """Issue 7 is parked in its clean worktree."""
        tree = world.lab.paths.worktrees / "demo-7"
        base = world.repos.commit({}, subject="chore: begin")
        tip = world.repos.commit({"a.py": "1"}, base, subject="feat: it")
        world.repos.refs["refs/remotes/origin/main"] = tip
        world.repos.heads[project.repo(world.lab.paths)] = {"afk/7": tip}
        world.repos.trees[tree] = FakeTree("afk/7", tip)
        tree.mkdir(parents=True)
        known: dict[str, Any] = {"worktree": str(tree), "fork_point": base}
        return make.a_run(project, "7", outcome="stopped", **known)

    def test_they_run_before_the_worktree_of_a_run_that_ended_well_goes(
        self, world: World, project: Project
    ) -> None:
        Project.objects.update(setup_after="make report")
        there: list[bool] = []
        world.checks.meanwhile = lambda check: there.append(check.cwd.is_dir())
        run = _succeeded(world, Project.objects.get())
        tree = Path(run.worktree)
        for _ in "12":
            assert _again(run).settled_at is None
            _carry_out(world)
            look(world)
        assert (_commands(world), there) == (["make report", DOWN], [True, True])
        run = _again(run)
        assert (run.worktree_fate, tree.exists()) == (WorktreeFate.REMOVED, False)

    def test_the_removal_goes_on_when_one_fails(self, world: World, project: Project) -> None:
        world.checks.answers[DOWN] = Checked(None, 600.0, is_over_time=True)
        run = _succeeded(world, project)
        _carry_out(world)
        look(world)
        run = _again(run)
        assert (run.outcome, run.worktree_fate) == (Outcome.SUCCEEDED, WorktreeFate.REMOVED)
        (text,) = _warned(run)
        assert text.startswith(f"commands before removal: {DOWN} ")

    def test_a_worktree_that_stays_has_none(self, world: World, project: Project) -> None:
        run = _stopped(world, project)
        assert (run.worktree_fate, run.setup_removal) == (WorktreeFate.KEPT, None)

    def test_one_that_stays_for_work_in_a_submodule_has_none_either(
        self, world: World, project: Project
    ) -> None:
        run = start(world, project)
        world.repos.submodule_work.add(Path(run.worktree))
        outcomes.record(world.lab, run, Outcome.SUCCEEDED, "its pull request is open")
        reaper.settle(world.lab, run)
        run = _again(run)
        assert (run.worktree_fate, run.setup_removal) == (WorktreeFate.KEPT, None)
        assert world.queue.after_runs == []

    def test_what_they_leave_in_the_worktree_keeps_it_and_they_are_not_run_again(
        self, world: World, project: Project
    ) -> None:
        run = _succeeded(world, project)
        tree = Path(run.worktree)

        def soil(check: Check) -> None:
            world.repos.trees[tree].is_dirty = True

        world.checks.meanwhile = soil
        _carry_out(world)
        for _ in "123":
            look(world)
        assert (_again(run).worktree_fate, tree.is_dir()) == (WorktreeFate.KEPT, True)
        assert _commands(world) == [DOWN]

    def test_the_sweep_asks_for_them_and_removes_the_next_time(
        self, world: World, parked: Run
    ) -> None:
        project = parked.project
        world.repos.merged_into["main"] = {"afk/7"}
        for _ in "12":
            assert merged.collect(world.lab, project) == []
        assert (world.checks.ran, world.queue.after_runs) == ([], [parked.pk])
        _carry_out(world)
        assert merged.collect(world.lab, project) == ["afk/7"]
        assert (_commands(world), Path(parked.worktree).exists()) == ([DOWN], False)

    def test_the_sweep_runs_none_for_a_worktree_that_holds_work(
        self, world: World, parked: Run
    ) -> None:
        world.repos.merged_into["main"] = {"afk/7"}
        world.repos.trees[Path(parked.worktree)].is_dirty = True
        assert merged.collect(world.lab, parked.project) == []
        assert world.queue.after_runs == []

    def test_the_sweep_runs_none_for_a_worktree_whose_submodule_holds_work(
        self, world: World, parked: Run
    ) -> None:
        world.repos.merged_into["main"] = {"afk/7"}
        world.repos.submodule_work.add(Path(parked.worktree))
        assert merged.collect(world.lab, parked.project) == []
        assert world.queue.after_runs == []

    def test_the_sweep_runs_none_for_a_worktree_that_stays_with_its_open_issue(
        self, world: World, parked: Run
    ) -> None:
        tip = world.repos.trees[Path(parked.worktree)].fork_point
        world.tracker.add_issue("demo", "Issue 7", key="7")
        world.tracker.add_pull("demo", "afk/7", "merged", head_commit=tip)
        assert merged.collect(world.lab, parked.project) == []
        assert (world.queue.after_runs, Path(parked.worktree).is_dir()) == ([], True)

    def test_the_sweep_runs_none_where_a_run_began_while_the_tracker_was_asked(
        self, world: World, parked: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.repos.merged_into["main"] = {"afk/7"}
        ask = world.tracker.pulls

        def begin(asked: Any) -> Any:
            make.a_run(parked.project, "7", worktree=parked.worktree, continues=parked)
            return ask(asked)

        monkeypatch.setattr(world.tracker, "pulls", begin)
        assert merged.collect(world.lab, parked.project) == []
        assert Run.objects.filter(continues=parked).exists()
        assert (world.queue.after_runs, Path(parked.worktree).is_dir()) == ([], True)

    def test_discard_has_the_worker_run_them_first(
        self, world: World, parked: Run, anna: Client
    ) -> None:
        at = f"/projects/{parked.project_id}/parked/discard"
        form = {"branch": "afk/7", "sure": "yes"}
        answer = confirmed(anna).post(at, form, follow=True)
        assert "after the project" in text_of(answer)
        row = Discarding.objects.get()
        assert (world.checks.ran, Path(parked.worktree).is_dir()) == ([], True)
        discard.carry_out(world.lab, row.pk)  # the worker is asked for both
        assert Path(parked.worktree).is_dir()
        world.queue.discards.clear()
        _carry_out(world)
        assert world.queue.discards == [row.pk]
        discard.carry_out(world.lab, row.pk)
        assert not Path(parked.worktree).exists()
        assert (_commands(world), Discarding.objects.count()) == ([DOWN], 0)

    def test_nobody_goes_on_in_the_worktree_meanwhile(self, world: World, parked: Run) -> None:
        discard.begin(world.lab, parked.project, "afk/7", "anna")
        assert after_run.is_clearing(make.a_run(parked.project, "7", worktree=parked.worktree))
        _carry_out(world)
        assert not after_run.is_clearing(parked)

    def test_a_project_is_removed_once_they_are_over(
        self, world: World, parked: Run, project: Project
    ) -> None:
        removal.remove(world.lab, project, "anna")
        for _ in "12":
            removal.carry_out(world.lab, project.pk)
        project.refresh_from_db()
        assert project.clone_progress == (
            "Waits: wait until the commands before the removal of afk/7 are over"
        )
        assert Path(parked.worktree).is_dir()
        _carry_out(world)
        removal.carry_out(world.lab, project.pk)
        assert _commands(world) == [DOWN]
        assert not Project.objects.exists()

    def test_a_program_that_discards_is_told_to_ask_again(self, world: World, parked: Run) -> None:
        with pytest.raises(DiscardRefused) as refused:
            discard.discard(world.lab, parked.project, "afk/7", "anna")
        assert refused.value.code == "commands_run"
        _carry_out(world)
        discard.discard(world.lab, parked.project, "afk/7", "anna")
        assert (_commands(world), Path(parked.worktree).exists()) == ([DOWN], False)

    def test_nothing_runs_where_a_live_session_works(self, world: World, project: Project) -> None:
        start(world, project)
        with pytest.raises(DiscardRefused, match="live session"):
            discard.begin(world.lab, project, "afk/7", "anna")
        assert world.queue.after_runs == []

    def test_a_discard_that_cannot_be_carried_out_after_them_says_so(
        self, world: World, parked: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = discard.begin(world.lab, parked.project, "afk/7", "anna")
        assert isinstance(row, Discarding)
        _carry_out(world)

        def fail(repo: Path, path: Path) -> None:
            raise SeamError("busy")

        monkeypatch.setattr(world.repos, "force_remove", fail)
        discard.carry_out(world.lab, row.pk)
        row.refresh_from_db()
        assert row.error == "busy"


def test_the_settings_page_says_when_each_list_runs_and_stores_it(
    world: World, project: Project, anna: Client
) -> None:
    at = f"/projects/{project.pk}/settings/setup/"
    text = text_of(anna.get(at))
    for words in ("before each further run", "after a run", "before a worktree is removed"):
        assert f"ommands {words}" in text
    sent = {"setup": "", "setup_again": "make up", "setup_after": "make stop"}
    answer = anna.post(
        at, {**sent, "setup_removal": DOWN, "setup_minutes": "10", "branch_prefix": "afk/"}
    )
    assert answer.status_code == 303
    project.refresh_from_db()
    assert (project.setup_again, project.setup_after) == ("make up", "make stop")
    assert project.setup_removal == DOWN
    told = Notice.objects.latest("pk").text
    assert "make" not in told and "commands after a run changed" in told
    wrong = anna.post(
        at,
        {**sent, "setup_removal": "make down && x", "setup_minutes": "10", "branch_prefix": "afk/"},
    )
    assert wrong.status_code == 422

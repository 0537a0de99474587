"""Parked work on real git: counted, discarded, swept, restored, and what must never be touched."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest
from django.db import connections

from runs import sweep, tick
from runs.core import naming
from runs.core.ports import SeamError
from runs.core.states import CompletionPolicy, Outcome
from runs.dispatch import start_requests
from runs.kept import counts, discard, disk, merged, parked, restore, retention
from runs.lifecycle.stop import stop
from runs.models import Host, Notice, Parked, Project, Rescue, Run, Settings, Term
from tests.linked import make_linked
from tests.patience import PATIENCE
from tests.real import git
from tests.world.stories import live, look, press_start, ready, start

pytestmark = pytest.mark.django_db(transaction=True)


def _commit(run: Run, name: str = "work.txt") -> str:
    tree = Path(run.worktree)
    (tree / name).write_text("work")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: work")
    return git(tree, "rev-parse", "HEAD")


def _merge(run: Run) -> None:
    git(Path(run.worktree), "push", "-q", "origin", f"{run.branch}:main")


def _close(real, *keys: str) -> None:
    """Close issues, as a merge with closing words does."""
    for issue in real.memory.shelves["demo"].issues:
        if issue["key"] in keys:
            issue["is_open"] = False


def _heads(real, project):
    return git(
        project.repo(real.paths), "for-each-ref", "--format=%(refname:strip=2)", "refs/heads"
    ).split()


def _stopped(real, project, key="7"):
    run = start(real, project, key)
    stop(real.lab, run, "anna")
    run.refresh_from_db()
    return run


def _swept(real, project):
    """The next ten-minute sweep of a project."""
    real.offset += timedelta(minutes=10)
    sweep.carry_out(real.lab, project.pk)
    project.refresh_from_db()


@pytest.mark.row("LAB-46", "LAB-116", "LAB-39", level="real")
def test_what_a_stop_and_a_death_leave_is_parked_and_what_is_live_is_not(real):
    project = real.project()
    stopped = _stopped(real, project, "7")
    dead = start(real, project, "8")
    alive = start(real, project, "9")
    real.tmux("kill-session", "-t", dead.session)
    look(real)
    rows = {row.branch: row for row in Parked.objects.all()}
    assert set(rows) == {"afk/7", "afk/8"}
    assert rows["afk/7"].worktree == Path(stopped.worktree).name
    assert Path(dead.worktree).is_dir()
    project.refresh_from_db()
    assert project.parked == 2
    assert alive.branch not in rows


@pytest.mark.row("LAB-119", level="real")
def test_unpushed_counts_against_the_branch_or_else_the_default_branch(real):
    project = real.project()
    never, pushed = start(real, project, "7"), start(real, project, "8")
    _commit(never), _commit(never, "more.txt")
    _commit(pushed)
    git(Path(pushed.worktree), "push", "-q", "origin", "afk/8")
    _commit(pushed, "later.txt")
    stop(real.lab, never, "anna")
    stop(real.lab, pushed, "anna")
    real.repos.fetch(project.repo(real.paths))
    counts.take(real.lab, project)
    assert dict(Parked.objects.values_list("branch", "unpushed")) == {"afk/7": 2, "afk/8": 1}


@pytest.mark.row("LAB-78", "LAB-123", "LAB-125", level="real")
def test_a_discard_removes_a_dirty_worktree_and_gives_the_issue_back(real):
    project = real.project()
    run = _stopped(real, project)
    tip = _commit(run)
    (Path(run.worktree) / "new.txt").write_text("not committed")
    kept = discard.discard(real.lab, project, "afk/7", "anna").rescue
    assert not Path(run.worktree).exists()
    assert _heads(real, project) == []
    assert kept.tip == tip
    assert git(project.repo(real.paths), "show", f"{kept.ref}:new.txt") == "not committed"
    told = Notice.objects.get(kind="work.discarded")
    assert (told.by, told.issue_key) == ("anna", "7")
    assert press_start(real, project).run.issue_key == "7"


@pytest.mark.parametrize(
    "branch", ["main", "laboratory/x", "feature/7", "afk/../main", "refs/heads/main", ""]
)
@pytest.mark.row("LAB-124", "LAB-114", level="real")
def test_a_branch_that_is_not_managed_is_never_discarded(real, branch):
    project = real.project()
    repo = project.repo(real.paths)
    for name in ("main", "laboratory/x", "feature/7"):
        git(repo, "branch", name, "refs/remotes/origin/main")
    before = _heads(real, project)
    with pytest.raises(discard.DiscardRefused) as refused:
        discard.discard(real.lab, project, branch, "anna")
    assert refused.value.code == "not_managed"
    assert _heads(real, project) == before


@pytest.mark.row("LAB-113", "LAB-124", level="real")
def test_what_a_live_session_owns_is_not_discarded_nor_swept(real):
    project = real.project()
    run = start(real, project)
    with pytest.raises(discard.DiscardRefused) as refused:
        discard.discard(real.lab, project, "afk/7", "anna")
    assert refused.value.code == "owned"
    _swept(real, project)
    assert Path(run.worktree).is_dir()
    assert _heads(real, project) == ["afk/7"]


@pytest.mark.row("LAB-113", level="real")
def test_a_start_in_progress_keeps_its_branch_from_discard_and_sweep(real):
    """The claim is made and the session is not: the row alone says whose it is."""
    project = real.project()
    run = start(real, project)
    real.tmux("kill-session", "-t", run.session)
    Run.objects.filter(pk=run.pk).update(state="starting", launcher=real.lab.process)
    _commit(run), _merge(run)
    with pytest.raises(discard.DiscardRefused):
        discard.discard(real.lab, project, "afk/7", "anna")
    _swept(real, project)
    assert Path(run.worktree).is_dir()
    assert _heads(real, project) == ["afk/7"]


def test_a_session_found_in_tmux_owns_its_branch_before_it_is_a_row(real):
    project = real.project()
    run = _stopped(real, project)
    real.by_hand("demo~2~afk-7")
    with pytest.raises(discard.DiscardRefused):
        discard.discard(real.lab, project, "afk/7", "anna")
    assert Path(run.worktree).is_dir()


def test_nothing_is_discarded_when_the_rescue_ref_cannot_be_written(real):
    project = real.project()
    run = _stopped(real, project)
    _commit(run)
    (project.repo(real.paths) / "refs" / "labsite").write_text("a file where git needs a folder")
    with pytest.raises(SeamError):
        discard.discard(real.lab, project, "afk/7", "anna")
    assert Path(run.worktree).is_dir()
    assert _heads(real, project) == ["afk/7"]
    assert not Notice.objects.filter(kind="work.discarded").exists()


@pytest.mark.parametrize("after", ["keep", "force_remove"])
def test_a_discard_that_is_killed_in_the_middle_goes_on_when_it_is_pressed_again(real, after):
    project = real.project()
    run = _stopped(real, project)
    (Path(run.worktree) / "new.txt").write_text("not committed")

    class Killed(BaseException):
        pass

    class Dying:
        """Git that is killed right after one step."""

        def __getattr__(self, name):
            act = getattr(real.repos, name)
            if name != after:
                return act

            def die(*args, **more):
                act(*args, **more)
                raise Killed

            return die

    with pytest.raises(Killed):
        discard.discard(replace(real.lab, repos=Dying()), project, "afk/7", "anna")
    assert _heads(real, project) == ["afk/7"]
    restore.adopt(real.lab, project)
    assert any(row.is_dirty for row in Rescue.objects.all())
    discard.discard(real.lab, project, "afk/7", "anna")
    assert _heads(real, project) == []
    kept = Rescue.objects.filter(is_dirty=True).first()
    assert git(project.repo(real.paths), "show", f"{kept.ref}:new.txt") == "not committed"


def test_the_second_of_two_discards_is_told_that_it_is_gone(real):
    project = real.project()
    _stopped(real, project)
    discard.discard(real.lab, project, "afk/7", "anna")
    with pytest.raises(discard.DiscardRefused) as refused:
        discard.discard(real.lab, project, "afk/7", "bert")
    assert refused.value.code == "gone"


def test_a_restore_brings_branch_files_and_uncommitted_state_back(real):
    project = real.project()
    run = _stopped(real, project)
    tip = _commit(run)
    (Path(run.worktree) / "new.txt").write_text("not committed")
    before = git(Path(run.worktree), "status", "--porcelain")
    kept = discard.discard(real.lab, project, "afk/7", "anna").rescue
    assert restore.restore(real.lab, kept, "bert") == "afk/7"
    assert git(project.repo(real.paths), "rev-parse", "refs/heads/afk/7") == tip
    assert git(Path(run.worktree), "status", "--porcelain") == before
    assert Notice.objects.get(kind="work.restored").by == "bert"
    assert Parked.objects.get().branch == "afk/7"
    with pytest.raises(restore.RestoreRefused, match="afk/7"):
        restore.restore(real.lab, kept, "anna")


def test_a_restore_takes_a_free_name_when_a_new_run_has_the_old_one(real):
    project = real.project()
    run = _stopped(real, project)
    tip = _commit(run)
    kept = discard.discard(real.lab, project, "afk/7", "anna").rescue
    fresh = press_start(real, project).run
    assert restore.restore(real.lab, kept, "anna") == "afk/7-restored"
    assert git(project.repo(real.paths), "rev-parse", "refs/heads/afk/7-restored") == tip
    assert git(Path(fresh.worktree), "rev-parse", "HEAD") != tip
    assert Run.objects.get(pk=fresh.pk).is_active


def test_a_rescue_goes_after_its_time_and_not_before(real):
    project = real.project()
    _stopped(real, project)
    kept = discard.discard(real.lab, project, "afk/7", "anna").rescue
    _swept(real, project)
    live(13.99)
    real.offset = timedelta(days=13, hours=23)
    _swept(real, project)
    assert git(project.repo(real.paths), "rev-parse", kept.ref)
    live(0.01)
    real.offset = timedelta(days=14, minutes=1)
    _swept(real, project)
    assert "rescue" not in git(project.repo(real.paths), "for-each-ref")
    assert not Rescue.objects.exists()


@pytest.mark.parametrize("days", [40, -40])
def test_no_clock_makes_rescues_and_output_vanish(real, days):
    """It may be wrong at boot, and right at the next one."""
    project = real.project()
    first = _stopped(real, project, "7")
    _swept(real, project)
    kept = discard.discard(real.lab, project, "afk/7", "anna").rescue
    _swept(real, project)
    for jump in (timedelta(days=days), timedelta(0)):
        real.jump = jump
        Host.objects.update(clock_boot="another boot", clock_apart=0.0)
        other = _stopped(real, project, f"{8 + bool(jump)}")
        discard.discard(real.lab, project, other.branch, "anna")
        for _ in range(2):
            _swept(real, project)
    assert git(project.repo(real.paths), "rev-parse", kept.ref) == kept.commit
    assert Rescue.objects.count() == 3
    assert real.paths.run_folder(first.pk).is_dir()


def test_what_a_restored_backup_rescued_long_ago_gets_its_time_anew(real):
    """A restore forgets how much of each time had passed."""
    project = real.project()
    _stopped(real, project)
    kept = discard.discard(real.lab, project, "afk/7", "anna").rescue
    _swept(real, project)
    live(20)
    real.offset = timedelta(days=40)
    Term.objects.all().delete()
    _swept(real, project)
    assert git(project.repo(real.paths), "rev-parse", kept.ref) == kept.commit
    live(14)
    _swept(real, project)
    assert not Rescue.objects.exists()


def test_a_rescue_that_only_git_remembers_is_listed_again_and_can_be_restored(real):
    project = real.project()
    run = _stopped(real, project)
    (Path(run.worktree) / "new.txt").write_text("not committed")
    discard.discard(real.lab, project, "afk/7", "anna")
    before = Rescue.objects.values("branch", "by", "tip", "files", "is_dirty").get()
    Rescue.objects.all().delete()
    _swept(real, project)
    assert Rescue.objects.values("branch", "by", "tip", "files", "is_dirty").get() == before
    assert restore.restore(real.lab, Rescue.objects.get(), "anna") == "afk/7"
    assert (Path(run.worktree) / "new.txt").read_text() == "not committed"


@pytest.mark.row("LAB-111", level="real")
def test_the_sweep_collects_what_was_merged_and_leaves_the_rest(real):
    project = real.project()
    merged, unmerged, dirty = (start(real, project, key) for key in ("7", "8", "9"))
    for run in (merged, unmerged, dirty):
        _commit(run, f"{run.issue_key}.txt")
        stop(real.lab, run, "anna")
    git(Path(dirty.worktree), "fetch", "-q", merged.worktree, "afk/7")
    git(Path(dirty.worktree), "rebase", "-q", "FETCH_HEAD")
    _merge(dirty)
    _close(real, "7", "9")
    (Path(dirty.worktree) / "new.txt").write_text("untracked")
    _swept(real, project)
    assert sorted(_heads(real, project)) == ["afk/8", "afk/9"]
    assert not Path(merged.worktree).exists()
    assert Path(unmerged.worktree).is_dir()
    assert Path(dirty.worktree).is_dir()
    assert Run.objects.get(pk=merged.pk).outcome == "stopped"
    assert "afk/7" in Notice.objects.get(kind="work.swept").text
    assert project.parked == 2


@pytest.mark.row("LAB-137", level="real")
def test_a_pull_request_after_the_end_changes_no_outcome_and_is_shown_until_it_is_merged(real):
    project = real.project()
    run = start(real, project)
    _commit(run)
    real.offset = timedelta(minutes=46)
    look(real)
    assert Run.objects.get().outcome == "timed_out"

    real.memory.add_pull("demo", "afk/7", "open")
    for _ in range(2):
        _swept(real, project)
        look(real)
    assert Run.objects.get().outcome == "timed_out"
    (entry,) = parked.listing(real.lab, project).entries
    assert (entry.outcome, entry.pull.state) == ("timed_out", "open")
    assert Path(run.worktree).is_dir()

    _merge(run)
    _close(real, "7")
    _swept(real, project)
    assert parked.listing(real.lab, project).entries == []
    assert _heads(real, project) == []
    assert Run.objects.get().outcome == "timed_out"


@pytest.mark.row("LAB-112", level="real")
def test_a_fetch_that_fails_does_not_stop_the_sweep(real):
    project = real.project()
    run = _stopped(real, project)
    _commit(run), _merge(run)
    _close(real, "7")
    real.repos.fetch(project.repo(real.paths))
    Path(project.url).rename(real.folder / "offline.git")
    _swept(real, project)
    assert _heads(real, project) == []


@pytest.mark.row("LAB-114", level="real")
def test_branches_under_other_names_are_never_swept(real):
    project = real.project()
    repo = project.repo(real.paths)
    for name in ("laboratory/x", "main", "feature/x", "labs/x"):
        git(repo, "branch", name, "refs/remotes/origin/main")
    _swept(real, project)
    sweep.forget_reconciled(real.lab)
    look(real)
    assert len(_heads(real, project)) == 4


@pytest.mark.row("LAB-138", level="real")
def test_a_run_that_died_before_its_first_commit_keeps_its_claim(real):
    project = real.project()
    run = start(real, project)
    real.tmux("kill-session", "-t", run.session)
    look(real)
    for _ in range(3):
        _swept(real, project)
    sweep.forget_reconciled(real.lab)
    look(real)
    assert _heads(real, project) == ["afk/7"]
    assert Path(run.worktree).is_dir()
    assert press_start(real, project).run is None


@pytest.mark.row("LAB-139", level="real")
def test_a_squashed_branch_is_collected_when_its_request_was_merged(real):
    project = real.project()
    run = _stopped(real, project)
    tip = _commit(run)
    real.memory.add_pull("demo", "afk/7", "merged", head_commit=tip)
    _close(real, "7")
    _swept(real, project)
    assert _heads(real, project) == []
    assert Rescue.objects.get().tip == tip


@pytest.mark.parametrize("how", ["as it was", "squashed"])
def test_merged_work_claims_its_issue_until_that_is_closed(real, how):
    """Without closing words, or into another branch: automatic work does not start it once more."""
    project = real.project()
    run = _stopped(real, project)
    tip = _commit(run)
    if how == "squashed":
        real.memory.add_pull("demo", "afk/7", "merged", head_commit=tip)
    else:
        _merge(run)
        real.repos.fetch(project.repo(real.paths))
    sweep.forget_reconciled(real.lab)
    look(real)
    _swept(real, project)
    assert _heads(real, project) == ["afk/7"]
    assert press_start(real, project).run is None
    real.memory.fail()
    _swept(real, project)
    assert _heads(real, project) == ["afk/7"]
    real.memory.heal()
    _close(real, "7")
    _swept(real, project)
    assert _heads(real, project) == []


def test_a_merged_request_of_an_older_commit_collects_nothing(real):
    project = real.project()
    run = _stopped(real, project)
    real.memory.add_pull("demo", "afk/7", "merged", head_commit=_commit(run))
    _commit(run, "later.txt")
    _swept(real, project)
    assert _heads(real, project) == ["afk/7"]


@pytest.mark.row("LAB-110", level="real")
def test_the_first_tick_after_a_start_tidies_orphans_before_it_starts_anything(real):
    """One clean and unmerged, one dirty, one merged without a worktree; none has a row of its own."""
    project = real.project()
    clean, dirty, merged = (_stopped(real, project, key) for key in ("7", "8", "9"))
    for run in (clean, dirty, merged):
        _commit(run, f"{run.issue_key}.txt")
    _merge(merged)
    _close(real, "9")
    ready(real, "10")
    real.repos.fetch(project.repo(real.paths))
    (Path(dirty.worktree) / "new.txt").write_text("untracked")
    real.repos.force_remove(project.repo(real.paths), Path(merged.worktree))
    Run.objects.filter(issue_key__in=["7", "8"]).delete()
    sweep.forget_reconciled(real.lab)
    asked = start_requests.request(real.lab, project, "anna", "10")
    look(real)
    asked.refresh_from_db()
    assert asked.run is not None, asked.text
    assert not Path(clean.worktree).exists()
    assert Path(dirty.worktree).is_dir()
    assert sorted(_heads(real, project)) == ["afk/7", "afk/8"]
    assert "afk/9" in Notice.objects.filter(kind="work.swept").first().text
    before = Notice.objects.count()
    look(real)
    assert Notice.objects.count() == before


def test_the_start_keeps_the_worktree_of_a_run_that_a_person_stopped(real):
    project = real.project()
    run = _stopped(real, project)
    _commit(run)
    sweep.forget_reconciled(real.lab)
    look(real)
    assert Path(run.worktree).is_dir()


@pytest.mark.row("LAB-115", level="real")
def test_the_operators_checkout_is_as_it_was_after_everything(real):
    project = real.project()
    checkout = real.folder / "demo-checkout"
    (checkout / "hello.txt").write_text("my own edit\n")
    before = (git(checkout, "status", "--porcelain"), git(checkout, "rev-parse", "HEAD"))
    run = _stopped(real, project)
    _commit(run)
    kept = discard.discard(real.lab, project, "afk/7", "anna").rescue
    restore.restore(real.lab, kept, "anna")
    _swept(real, project)
    sweep.forget_reconciled(real.lab)
    look(real)
    assert (git(checkout, "status", "--porcelain"), git(checkout, "rev-parse", "HEAD")) == before


def test_a_renamed_default_branch_is_noticed_by_the_sweep(real):
    project = real.project()
    origin = Path(project.url)
    git(origin, "branch", "-m", "main", "trunk")
    _swept(real, project)
    assert project.default_branch == "trunk"
    assert "trunk" in Notice.objects.get(kind="setting.changed").text


def test_disk_use_is_measured_and_warned_of_once_before_the_quota_is_reached(real):
    project = real.project()
    run = _stopped(real, project)
    (Path(run.worktree) / "big.bin").write_bytes(b"x" * 900_000)
    Project.objects.update(disk_quota_mb=1)
    _swept(real, project)
    assert Parked.objects.get().bytes > 900_000
    assert project.disk_bytes > Parked.objects.get().bytes
    assert disk.of(project, Settings.current()).is_low
    _swept(real, project)
    assert Notice.objects.filter(kind="disk.warned").count() == 1
    assert Path(run.worktree).is_dir()


def test_the_folders_of_runs_settled_long_ago_go_and_it_is_told(real):
    project = real.project()
    old, young = _stopped(real, project, "7"), _stopped(real, project, "8")
    Run.objects.filter(pk=old.pk).update(settled_at=old.settled_at - timedelta(days=31))
    assert retention.prune(real.lab, project) == 0
    live(31)
    assert retention.prune(real.lab, project) == 1
    assert not real.paths.run_folder(old.pk).exists()
    assert real.paths.run_folder(young.pk).exists()
    assert "output of 1 run" in Notice.objects.get(kind="work.swept").text
    assert retention.prune(real.lab, project) == 0


def test_two_thousand_parked_branches_cost_one_listing(world):
    from tests import make

    project = make.a_project()
    world.repos.heads[project.repo(world.lab.paths)] = {
        f"afk/{n}": "a" * 40 for n in range(1, 2001)
    }
    assert counts.take(world.lab, project) == 2000
    assert world.repos.listed == 1
    assert world.repos.counted == counts.COUNTED_AT_ONCE
    assert Parked.objects.count() == 2000


def test_a_tick_asks_for_sweeps_and_never_fetches_itself(world):
    from tests import make

    project = make.a_project()
    tick.tick(world.lab, force=True)
    assert world.queue.sweeps == [project.pk]
    assert world.repos.fetches == 0
    tick.tick(world.lab, force=True)
    assert world.queue.sweeps == [project.pk]


def test_an_unreadable_repository_keeps_the_old_numbers(world):
    from tests import make

    project = make.a_project(parked=3)
    world.repos.broken_list = "git for-each-ref failed"
    assert counts.take(world.lab, project) is None
    assert Project.objects.get().parked == 3


@pytest.mark.parametrize(
    ("branch", "expected"),
    [
        pytest.param("afk/7", True, id="a claim"),
        pytest.param("afk/7-restored", True, id="a restored claim"),
        pytest.param("lab/try~1", False, id="no name that git takes"),
        pytest.param("lab/über+x", True, id="any letters"),
        pytest.param("afk/a/b", True, id="below"),
        pytest.param("afk/", False, id="the prefix alone"),
        pytest.param("laboratory/x", False, id="another prefix"),
        pytest.param("afk", False, id="no prefix"),
        pytest.param("main", False, id="main"),
        pytest.param("afk/../heads/main", False, id="a way out"),
        pytest.param("afk/*", False, id="a pattern"),
        pytest.param("afk/x y", False, id="a space"),
        pytest.param("afk/x\n", False, id="a line end"),
        pytest.param("refs/heads/afk/7", False, id="a full name"),
        pytest.param("afk/" + "x" * 300, False, id="too long to store"),
    ],
)
@pytest.mark.row("LAB-114", level="pure")
def test_only_branches_under_the_managed_prefixes_are_managed(branch, expected):
    assert naming.is_managed(branch) is expected


def test_of_many_who_discard_at_once_one_does_and_the_others_are_told(real):
    """Threads here are processes elsewhere: the lock is the system's and each opens it anew."""
    project = real.project()
    run = _stopped(real, project)
    (Path(run.worktree) / "new.txt").write_text("not committed")
    answers: list[str] = []

    def press(by: str) -> None:
        try:
            discard.discard(real.lab, project, "afk/7", by)
            answers.append("done")
        except discard.DiscardRefused as refused:
            answers.append(refused.code)
        finally:
            connections.close_all()

    people = [Thread(target=press, args=(f"person {n}",)) for n in range(4)]
    for one in people:
        one.start()
    for one in people:
        one.join(PATIENCE)
    assert sorted(answers) == ["done", "gone", "gone", "gone"]
    assert Rescue.objects.count() == 1
    assert Notice.objects.filter(kind="work.discarded").count() == 1


def test_a_discard_never_takes_the_branch_of_a_start_that_came_in_between(real):
    """The branch is found, then somebody else discards it and a new run starts; then we go on."""
    project = real.project()
    _stopped(real, project)
    theirs = []

    class Slow:
        """Git whose answer is old by the time it is used."""

        def __getattr__(self, name):
            act = getattr(real.repos, name)
            if name != "branches" or theirs:
                return act

            def late(*args, **more):
                found = act(*args, **more)
                theirs.append(True)
                shutil.rmtree(found[0].worktree)
                git(project.repo(real.paths), "branch", "-D", "afk/7")
                theirs.append(press_start(real, project).run)
                return found

            return late

    with pytest.raises(discard.DiscardRefused) as refused:
        discard.discard(replace(real.lab, repos=Slow()), project, "afk/7", "anna")
    assert refused.value.code == "owned"
    assert Path(theirs[1].worktree).is_dir()
    assert _heads(real, project) == ["afk/7"]


def test_a_repository_that_somebody_holds_is_not_waited_for_without_end(real):
    real.repos.hold_seconds = 0.2
    project = real.project()
    _stopped(real, project)
    with real.repos.hold(project.repo(real.paths)), pytest.raises(SeamError, match="try again"):
        discard.discard(real.lab, project, "afk/7", "anna")
    assert _heads(real, project) == ["afk/7"]


@pytest.mark.parametrize("at_start", [False, True])
def test_merged_work_behind_gates_claims_its_issue_until_that_is_closed(real, at_start):
    """A merge closes no issue there: without the branch it would be started once more."""
    project = real.project()
    run = _stopped(real, project)
    _commit(run), _merge(run)
    project.policy = CompletionPolicy.GATES
    project.save()
    if at_start:
        sweep.forget_reconciled(real.lab)
        look(real)
    _swept(real, project)
    assert _heads(real, project) == ["afk/7"]
    real.memory.close(project.tracker_root, "7")
    _swept(real, project)
    assert _heads(real, project) == []


@pytest.mark.parametrize("outcome", [Outcome.NO_CHANGE, Outcome.OBSOLETE])
def test_the_empty_branch_of_a_run_with_nothing_to_deliver_goes_with_its_closed_issue(
    real, outcome
):
    project = real.project()
    run = _stopped(real, project)
    project.policy = CompletionPolicy.GATES
    project.save()
    Run.objects.filter(pk=run.pk).update(outcome=outcome)
    _swept(real, project)
    assert _heads(real, project) == ["afk/7"]
    real.memory.close(project.tracker_root, "7")
    Run.objects.filter(pk=run.pk).update(closed_at=real.lab.now())
    _swept(real, project)
    assert _heads(real, project) == []


@pytest.mark.row("LAB-113", level="real")
def test_a_sweep_never_takes_a_fresh_branch_for_the_merged_one_that_it_listed(real):
    """Listed as merged, then discarded and started anew: the new branch looks merged and clean."""
    project = real.project()
    run = _stopped(real, project)
    _commit(run), _merge(run)
    real.repos.fetch(project.repo(real.paths))
    fresh: list[Run] = []

    class Late:
        """A tracker whose answer comes after a whole discard and start."""

        def __getattr__(self, name):
            return getattr(real.memory, name)

        def pulls(self, heads):
            if not fresh:
                discard.discard(real.lab, project, "afk/7", "anna")
                fresh.append(press_start(real, project).run)
            return real.memory.pulls(heads)

    merged.collect(replace(real.lab, tracker_for=lambda kind: Late()), project)
    assert Path(fresh[0].worktree).is_dir()
    assert _heads(real, project) == ["afk/7"]


def test_a_restore_leaves_the_name_of_a_run_that_has_no_branch_yet(real):
    project = real.project()
    run = _stopped(real, project)
    kept = discard.discard(real.lab, project, "afk/7", "anna").rescue
    Run.objects.filter(pk=run.pk).update(
        outcome="", state="starting", ended_at=None, settled_at=None
    )
    assert restore.restore(real.lab, kept, "anna") == "afk/7-restored"


def _without_branch(real, project, key="7", *, how=("branch", "-m", "afk/7", "other")):
    """A run whose agent does away with its branch, commits, writes a file, and dies."""
    run = start(real, project, key)
    git(Path(run.worktree), *how)
    tip = _commit(run)
    (Path(run.worktree) / "left.txt").write_text("not committed")
    real.tmux("kill-session", "-t", run.session)
    look(real)
    run.refresh_from_db()
    return run, tip


@pytest.mark.parametrize(
    "how", [("branch", "-m", "afk/7", "other"), ("checkout", "-q", "--detach")]
)
def test_a_worktree_without_its_branch_is_parked_and_can_be_discarded_and_restored(real, how):
    make_linked(real)
    project = real.project()
    run, tip = _without_branch(real, project, how=how)
    if how[0] == "checkout":
        git(Path(run.worktree), "branch", "-q", "-D", "afk/7")
        counts.take(real.lab, project)
    project.refresh_from_db()
    assert project.parked == 1
    (shown,) = parked.listing(real.lab, project).entries
    assert (shown.branch, shown.path, shown.is_left) == ("afk/7", run.worktree, True)
    assert (shown.is_dirty, shown.ahead) == (True, 1)
    assert shown.stands_on == ("other" if how[0] == "branch" else "")
    kept = discard.discard(real.lab, project, "afk/7", "anna").rescue
    assert not Path(run.worktree).exists()
    assert (kept.tip, kept.is_dirty) == (tip, True)
    assert not parked.listing(real.lab, project).entries
    assert restore.restore(real.lab, kept, "anna") == "afk/7"
    assert (Path(run.worktree) / "left.txt").read_text() == "not committed"
    assert git(project.repo(real.paths), "rev-parse", "refs/heads/afk/7") == tip


@pytest.mark.quick("nothing else would tell where such work lies")
@pytest.mark.parametrize("name", ["afk/7", "afk/7-restored"])
def test_a_worktree_that_is_restored_on_another_commit_than_its_branch_is_listed_with_it(
    real, name
):
    project = real.project()
    _, tip = _without_branch(real, project, how=("checkout", "-q", "--detach"))
    kept = discard.discard(real.lab, project, "afk/7", "anna").rescue
    if name != "afk/7":
        git(project.repo(real.paths), "branch", "afk/7", kept.tip)
    assert restore.restore(real.lab, kept, "anna") == name
    shown = next(e for e in parked.listing(real.lab, project).entries if e.branch == name)
    tree = Path(shown.path)
    assert git(tree, "rev-parse", "HEAD") == tip
    assert (tree / "left.txt").read_text() == "not committed"
    assert shown.is_dirty
    discard.discard(real.lab, project, name, "anna")
    assert not tree.exists()
    assert name not in {e.branch for e in parked.listing(real.lab, project).entries}


@pytest.mark.parametrize(
    "how", [("branch", "-m", "afk/7", "other"), ("checkout", "-q", "--detach")]
)
def test_a_branch_that_a_run_renames_or_leaves_stays_here_with_all_that_it_did_since(real, how):
    project = real.project()
    run, made = _without_branch(real, project, how=how)
    if how[0] == "checkout":
        git(Path(run.worktree), "branch", "-q", "-D", "afk/7")
    repo = project.repo(real.paths)
    assert git(repo, "rev-parse", "refs/heads/afk/7") == run.fork_point
    (shown,) = parked.listing(real.lab, project).entries
    assert (shown.branch, shown.path, shown.is_dirty) == ("afk/7", run.worktree, True)
    kept = discard.discard(real.lab, project, "afk/7", "anna").rescue
    assert not Path(run.worktree).exists()
    assert (kept.tip, kept.head, kept.is_dirty) == (run.fork_point, made, True)
    assert restore.restore(real.lab, kept, "anna") == "afk/7"
    assert git(Path(run.worktree), "rev-parse", "HEAD") == made
    assert (Path(run.worktree) / "left.txt").read_text() == "not committed"
    if how[0] == "branch":
        assert git(Path(run.worktree), "rev-parse", "other") == made


def test_what_is_told_of_a_worktree_without_its_branch_is_true(real):
    make_linked(real)
    project = real.project()
    run, _ = _without_branch(real, project)
    told = Notice.objects.get(kind="run.reaped").text
    assert "its branch afk/7 is gone" in told
    assert run.worktree in told
    assert "branch afk/7 kept" not in told


def test_a_worktree_without_its_branch_keeps_its_issue_and_no_other(real):
    make_linked(real)
    project = real.project()
    _without_branch(real, project)
    ready(real, "8")
    asked = press_start(real, project, wanted="7")
    assert asked.run is None
    assert "Issue 7 is already claimed by the worktree of an earlier run." in asked.text
    assert press_start(real, project).run.issue_key == "8"


def test_a_folder_that_was_moved_away_is_not_told_as_removed_by_labsite(real, tmp_path):
    project = real.project()
    run = start(real, project)
    Path(run.worktree).rename(tmp_path / "mine")
    stop(real.lab, run, "anna")
    run.refresh_from_db()
    assert (run.worktree_fate, "somebody moved or removed it" in run.warning) == ("gone", True)
    assert "worktree removed" not in Notice.objects.get(kind="run.reaped").text


@pytest.mark.row("LAB-113", "LAB-116", level="real")
def test_a_branch_that_a_live_agent_made_in_its_worktree_is_neither_parked_nor_removed(real):
    make_linked(real)
    project = real.project()
    run = start(real, project)
    tree = Path(run.worktree)
    git(tree, "checkout", "-q", "-b", "afk/7-fix")
    _swept(real, project)
    assert tree.is_dir()
    assert _heads(real, project) == ["afk/7", "afk/7-fix"]
    assert project.parked == 0
    with pytest.raises(discard.DiscardRefused) as refused:
        discard.discard(real.lab, project, "afk/7-fix", "anna")
    assert refused.value.code == "owned"
    assert tree.is_dir()
    sweep.forget_reconciled(real.lab)
    look(real)
    assert tree.is_dir()
    stop(real.lab, run, "anna")
    assert counts.take(real.lab, project) == 2


def test_a_branch_that_a_live_agent_checks_out_while_it_is_swept_stays(real):
    make_linked(real)
    project = real.project()
    run = start(real, project)
    repo, tree = project.repo(real.paths), Path(run.worktree)
    git(repo, "branch", "afk/7-fix", "refs/remotes/origin/main")

    class Late:
        """A tracker that answers after the agent went on to the listed branch."""

        def __getattr__(self, name):
            return getattr(real.memory, name)

        def pulls(self, heads):
            git(tree, "checkout", "-q", "afk/7-fix")
            return real.memory.pulls(heads)

    assert merged.collect(replace(real.lab, tracker_for=lambda kind: Late()), project) == []
    assert _heads(real, project) == ["afk/7", "afk/7-fix"]

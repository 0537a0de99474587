"""What an agent or a person made is never removed by a start, a stop or a reap. On real tmux and git."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from runs import tick
from runs.dispatch import start_requests
from runs.lifecycle import launch
from runs.lifecycle.stop import stop
from runs.models import Run
from tests.real import git
from tests.world.stories import look, press_start, ready, start

pytestmark = pytest.mark.django_db(transaction=True)


def _again(run: Run) -> Run:
    return Run.objects.select_related("project").get(pk=run.pk)


def _commit(tree: Path, name: str = "work.txt") -> str:
    (tree / name).write_text("work")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: work")
    return git(tree, "rev-parse", "HEAD")


@pytest.mark.parametrize("with_origin", [True, False])
def test_a_start_never_touches_the_kept_worktree_of_an_earlier_run(real, with_origin):
    """The branch was renamed; its folder still holds unsaved work, and claims the issue."""
    project = real.project()
    run = start(real, project)
    tree = Path(run.worktree)
    git(tree, "branch", "-m", "afk/7", "feat/login")
    (tree / "precious.txt").write_text("unsaved")
    stop(real.lab, run, "anna")
    if not with_origin:
        Path(project.url).rename(real.folder / "gone")
    asked = press_start(real, project)
    assert asked.answer == "nothing_ready"
    assert (tree / "precious.txt").read_text() == "unsaved"
    assert git(tree, "branch", "--show-current") == "feat/login"


def test_a_failed_start_deletes_no_branch_that_it_did_not_make(real):
    """The operator's branch of that name appears between the pick and the claim."""
    project = real.project()
    ready(real)
    start_requests.request(real.lab, project, "anna")
    tick.tick(real.lab, project="demo")
    checkout, repo = real.folder / "demo-checkout", project.repo(real.paths)
    commit = _commit(checkout)
    git(repo, "fetch", "-q", str(checkout), "main:afk/7")
    real.work()
    run = Run.objects.get()
    assert run.outcome == "failed"
    assert "is there already" in run.reason
    assert git(repo, "rev-parse", "refs/heads/afk/7") == commit


def test_what_an_agent_wrote_before_the_worker_died_is_kept_and_judged(real):
    """The worker dies right after the spawn; the agent works, then ends; then the product is back."""
    script = ["sh", "-c", "echo report > report.md", "{prompt}"]
    project = real.project(argv=script)
    ready(real)
    start_requests.request(real.lab, project, "anna")
    tick.tick(real.lab, project="demo")
    run = Run.objects.get()

    def die(seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch.carry_out(replace(real.lab, pause=die), run.pk)
    real.until(lambda: real.sessions.exit_of(real.paths.run_folder(run.pk)) is not None)
    real.tmux("kill-server")
    back = replace(real.lab, process="another:1:1", is_process_alive=lambda name: False)
    for _ in range(2):
        tick.tick(back, force=True)
    run = _again(run)
    assert run.outcome == "died"
    assert (Path(run.worktree) / "report.md").exists()
    assert real.repos.claims(project.repo(real.paths)) == {"7"}


def test_a_second_look_that_tmux_does_not_answer_kills_no_agent(real):
    project = real.project()
    ready(real)
    start_requests.request(real.lab, project, "anna")
    tick.tick(real.lab, project="demo")
    run = Run.objects.get()
    program = real.sessions._program

    def break_tmux(seconds: float) -> None:
        real.sessions._program = "/no/such/tmux"

    launch.carry_out(replace(real.lab, pause=break_tmux), run.pk)
    real.sessions._program = program
    assert _again(run).state == "starting"
    look(real)
    assert _again(run).state == "working"
    assert real.session_names() == [run.session]


def test_a_stop_right_before_an_agent_exits_at_once_keeps_branch_and_worktree(real):
    project = real.project(argv=["sh", "-c", "exit 3", "{prompt}"])
    ready(real)
    start_requests.request(real.lab, project, "anna")
    tick.tick(real.lab, project="demo")
    run = Run.objects.select_related("project").get()

    def stop_now(seconds: float) -> None:
        stop(real.lab, _again(run), "anna")
        real.lab.pause(seconds)

    launch.carry_out(replace(real.lab, pause=stop_now), run.pk)
    look(real)
    run = _again(run)
    assert (run.outcome, run.worktree_fate) == ("stopped", "kept")
    assert Path(run.worktree).is_dir()
    assert real.repos.claims(project.repo(real.paths)) == {"7"}


def test_a_success_keeps_a_worktree_whose_commits_are_on_no_branch(real):
    run = start(real, real.project())
    tree = Path(run.worktree)
    git(tree, "checkout", "-q", "--detach")
    _commit(tree)
    real.memory.add_pull("demo", "afk/7")
    look(real)
    run = _again(run)
    assert (run.outcome, run.worktree_fate) == ("succeeded", "kept")
    assert (tree / "work.txt").exists()
    assert "on its branch" in run.warning


def test_untracked_work_counts_as_unsaved_whatever_git_is_configured_to_show(real):
    project = real.project()
    run = start(real, project)
    git(project.repo(real.paths), "config", "status.showUntrackedFiles", "no")
    (Path(run.worktree) / "new.txt").write_text("new")
    real.memory.add_pull("demo", "afk/7")
    look(real)
    assert _again(run).worktree_fate == "kept"
    assert (Path(run.worktree) / "new.txt").exists()


def test_the_launch_of_a_stopped_run_leaves_the_next_run_of_the_issue_alone(real):
    """Stop during the fetch, start again, and only then the first launch finds out."""
    project = real.project()
    ready(real)
    start_requests.request(real.lab, project, "anna")
    tick.tick(real.lab, force=True)  # which fetches nothing ahead
    first = Run.objects.select_related("project").get()
    real.queue.launches.clear()
    second = []

    class SlowFetch:
        def __getattr__(self, name):  # type: ignore[no-untyped-def]
            return getattr(real.repos, name)

        def fetch_default(self, *args, **more) -> str:  # type: ignore[no-untyped-def]
            stop(real.lab, first, "anna")
            look(real)
            second.append(press_start(real, project).run)
            return real.repos.fetch_default(*args, **more)

    launch.carry_out(replace(real.lab, repos=SlowFetch()), first.pk)
    look(real)
    assert _again(first).outcome == "stopped"
    assert real.session_names() == [second[0].session]
    assert _again(second[0]).is_active


def test_a_run_that_ends_between_two_looks_is_not_found_again_as_a_new_one(real):
    """Another project's look, and a stop between reading rows and sessions."""
    aa, bb = real.project("aa"), real.project("bb")
    run = start(real, aa, "1")
    start(real, bb, "1")

    class StopsInBetween:
        def __getattr__(self, name):  # type: ignore[no-untyped-def]
            return getattr(real.sessions, name)

        def look(self):  # type: ignore[no-untyped-def]
            seen = real.sessions.look()
            stop(real.lab, _again(run), "anna")
            return seen

    tick.tick(replace(real.lab, sessions=StopsInBetween()), force=True)
    tick.tick(real.lab, project="bb")
    look(real)
    assert Run.objects.count() == 2
    assert _again(run).outcome == "stopped"


def test_a_changed_default_branch_of_origin_is_the_base_of_the_next_run(real):
    project = real.project()
    checkout = real.folder / "demo-checkout"
    git(checkout, "branch", "-m", "main", "trunk")
    _commit(checkout, "newer.txt")
    git(checkout, "push", "-q", "origin", "trunk")
    git(Path(project.url), "symbolic-ref", "HEAD", "refs/heads/trunk")
    git(Path(project.url), "branch", "-D", "main")
    run = start(real, project)
    assert (Path(run.worktree) / "newer.txt").exists()
    project.refresh_from_db()
    assert project.default_branch == "trunk"


def test_what_an_agent_calls_origin_is_not_what_labsite_asks(real):
    project = real.project()
    start(real, project, "7")
    git(project.repo(real.paths), "remote", "set-url", "origin", "file:///nowhere")
    assert start(real, project, "8").state == "working"


def test_what_an_earlier_run_left_on_origin_keeps_a_start_from_the_branch_s_name(real):
    project = real.project()
    repo = project.repo(real.paths)
    first = start(real, project)
    _commit(Path(first.worktree))
    git(Path(first.worktree), "push", "-q", "origin", "afk/7")
    stop(real.lab, first, "anna")
    shutil.rmtree(first.worktree)
    git(repo, "branch", "-D", "afk/7")
    asked = press_start(real, project)
    assert "origin has a branch afk/7 with other commits" in asked.text
    assert real.repos.claims(repo) == frozenset()


def test_a_half_made_worktree_that_git_left_locked_is_rolled_back(real):
    """What `git worktree add` leaves when it is killed in the middle of its checkout."""
    project = real.project()
    repo, tree = project.repo(real.paths), real.paths.worktrees / "demo-7"
    commit = real.repos.upstream(repo, "main")
    git(
        repo,
        "worktree",
        "add",
        "-q",
        "--lock",
        "--reason",
        "initializing",
        "-b",
        "afk/7",
        str(tree),
        commit,
    )
    (tree / "hello.txt").unlink()
    assert real.repos.roll_back(repo, tree, "afk/7", commit)
    assert not tree.exists()
    assert start(real, project).state == "working"


def test_one_broken_run_never_keeps_the_others_from_being_judged(real):
    """A mistake of ours about one run is told and left for the next tick."""
    project = real.project()
    broken, fine = start(real, project, "1"), start(real, project, "2")
    for key in ("1", "2"):
        real.memory.add_pull("demo", f"afk/{key}")

    class Breaks:
        def __getattr__(self, name):  # type: ignore[no-untyped-def]
            return getattr(real.repos, name)

        def is_dirty(self, path: Path) -> bool:
            if path == Path(broken.worktree):
                raise OverflowError("a fact that nobody thought of")
            return real.repos.is_dirty(path)

    report = tick.tick(replace(real.lab, repos=Breaks()), force=True)
    assert any("nobody thought of" in error for error in report.errors)
    assert _again(fine).settled_at is not None
    look(real)
    assert _again(broken).settled_at is not None


def test_an_unexpected_error_answers_the_start_at_once(real):
    project = real.project()
    ready(real)

    class Breaks:
        def __getattr__(self, name):  # type: ignore[no-untyped-def]
            return getattr(real.repos, name)

        def fetch_default(self, *args, **more) -> str:  # type: ignore[no-untyped-def]
            raise OSError(28, "No space left on device")

    asked = start_requests.request(real.lab, project, "anna")
    tick.tick(real.lab, force=True)  # which fetches nothing ahead
    launch.carry_out(replace(real.lab, repos=Breaks()), real.queue.launches.pop())
    asked.refresh_from_db()
    assert asked.answer == "start_failed"
    assert Run.objects.get().outcome == "failed"


def test_an_agent_that_ends_its_own_launcher_leaves_no_agent_behind(real):
    script = "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(600)"
    project = real.project(argv=[sys.executable, "-c", script, "{prompt}"])
    ready(real)
    asked = press_start(real, project)
    assert asked.answer in ("start_failed", "started")
    for _ in range(2):
        look(real)
    assert real.session_names() == []
    assert _agents(script) == []


def _agents(script: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if script.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found

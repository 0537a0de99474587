"""From the press of Start to a working agent, and every way back (LAB-53 to LAB-72), on real tmux and git."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connections

from runs import sweep, tick
from runs.dispatch import start_requests
from runs.lifecycle import launch
from runs.lifecycle.stop import stop
from runs.models import AgentProfile, Notice, Parked, Project, Run, Settings, StartRequest
from tests import programs
from tests.real import git
from tests.world.stories import look, press_start, ready, start

pytestmark = pytest.mark.django_db(transaction=True)

DUMP = "import json,os,sys,time; json.dump({'argv': sys.argv[1:], 'env': dict(os.environ), 'cwd': os.getcwd()}, open('dump.part','w')); os.rename('dump.part','dump.json'); time.sleep(600)"
DUMPER = [sys.executable, "-c", DUMP]


def _dump(real, run: Run):  # type: ignore[no-untyped-def]
    path = Path(run.worktree) / "dump.json"
    real.until(path.exists)
    return json.loads(path.read_text())


@pytest.mark.row("LAB-53", "LAB-54", "C-32", "C-04", level="real")
def test_start_takes_the_lowest_ready_issue_in_a_worktree_of_its_own(real):
    project = real.project()
    for key in ("9", "7", "12", "8"):
        ready(real, key)
    with programs.started() as started:
        run = press_start(real, project).run
    assert (run.issue_key, run.branch, run.state, run.slot) == ("7", "afk/7", "working", 1)
    asked = [one for one in started if one != "git for-each-ref"]
    # Both speak with origin, side by side and beside the look that decides.
    assert sorted(asked[:3]) == ["git fetch", "git ls-remote", "tmux list-panes"]
    # Who commits and whether git signs, beside the checkout.
    made = ["git config", "git config", "git reset", "git update-ref", "git var"]
    assert sorted(asked[3:-2]) == made
    assert asked[-2:] == ["tmux new-session", "tmux list-panes"]
    assert len(started) <= 15, started  # `git worktree` was one, and started three more itself
    assert real.session_names() == ["demo~1~afk-7"]
    assert git(Path(run.worktree), "branch", "--show-current") == "afk/7"
    assert git(Path(run.worktree), "rev-parse", "HEAD") == run.fork_point
    assert (Path(run.worktree) / "hello.txt").exists()


@pytest.mark.row("LAB-76", level="real")
def test_a_claim_outlives_a_restart_and_the_loss_of_everything_that_was_stored(real):
    project = real.project()
    run = start(real, project, "7")
    stop(real.lab, run, "anna")
    Run.objects.all().delete()
    Parked.objects.all().delete()
    sweep.forget_reconciled(real.lab)
    real.lab = replace(real.lab, process="boot:9:9")
    look(real)
    assert press_start(real, project, wanted="7").answer == "nothing_ready"
    assert real.repos.claims(project.repo(real.paths)) == {"7"}
    assert [row.branch for row in Parked.objects.all()] == ["afk/7"]


@pytest.mark.row("LAB-55", "LAB-73", "C-31", level="real")
def test_a_branch_alone_claims_and_its_deletion_releases(real):
    project = real.project()
    repo = project.repo(real.paths)
    git(repo, "branch", "afk/7", "refs/remotes/origin/main")
    ready(real, "7")
    ready(real, "8")
    assert press_start(real, project).run.issue_key == "8"
    assert press_start(real, project).answer == "nothing_ready"
    git(repo, "branch", "-D", "afk/7")
    assert press_start(real, project).run.issue_key == "7"


@pytest.mark.row("LAB-75", "LAB-77", level="real")
def test_labels_and_pull_requests_play_no_part_in_the_claim(real):
    project = real.project()
    run = start(real, project)
    stop(real.lab, run, "anna")
    for _ in range(20):
        look(real)
    assert press_start(real, project).answer == "nothing_ready"
    assert not {"comment", "create_pull"} & set(real.memory.calls)
    repo = project.repo(real.paths)
    real.memory.add_pull("demo", "afk/7")
    shutil.rmtree(run.worktree)
    git(repo, "branch", "-D", "afk/7")
    assert press_start(real, project).run.issue_key == "7"


@pytest.mark.row("LAB-78", level="real")
def test_discarding_branch_and_worktree_makes_the_issue_startable_again(real):
    project = real.project()
    run = start(real, project)
    stop(real.lab, run, "anna")
    assert press_start(real, project).answer == "nothing_ready"
    shutil.rmtree(run.worktree)
    git(project.repo(real.paths), "branch", "-D", "afk/7")
    assert press_start(real, project).run.issue_key == "7"


@pytest.mark.row("LAB-57", "LAB-66", level="real")
def test_at_the_cap_nothing_is_claimed(real):
    project = real.project()
    Settings.objects.filter(pk=1).update(session_cap=2)
    start(real, project, "1")
    real.by_hand("demo~review-20260608-1530")
    ready(real, "2")
    asked = press_start(real, project)
    assert asked.answer == "at_cap"
    assert "2 slots" in asked.text
    assert real.repos.claims(project.repo(real.paths)) == {"1"}
    assert len(real.session_names()) == 2


@pytest.mark.row("LAB-58", level="real")
def test_ten_presses_and_two_issues_give_one_session_each(real):
    project = real.project()
    for key in ("7", "8"):
        ready(real, key)
    go, problems = threading.Barrier(10), []

    def press() -> None:
        try:
            go.wait()
            start_requests.request(real.lab, project, "anna")
            tick.tick(real.lab, project="demo")
        except Exception as error:
            problems.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=press) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    look(real)
    real.work()
    assert problems == []
    assert real.session_names() == ["demo~1~afk-7", "demo~2~afk-8"]
    answers = sorted(StartRequest.objects.values_list("answer", flat=True))
    assert answers == ["nothing_ready"] * 8 + ["started"] * 2


@pytest.mark.row("LAB-59", level="real")
def test_a_missing_agent_rolls_everything_back_and_the_issue_is_free_again(real):
    # By a path in the worktree, so that nobody can tell before.
    project = real.project(argv=["./no-such-agent", "{prompt}"])
    real.look_again_at_the_end()
    ready(real)
    for _ in range(2):
        asked = press_start(real, project)
        assert asked.answer == "start_failed"
        assert "no-such-agent could not be started" in asked.text
        assert real.repos.claims(project.repo(real.paths)) == frozenset()
        assert list(real.paths.worktrees.glob("*")) == []
        assert real.session_names() == []
    run = Run.objects.first()
    assert (run.outcome, run.started_at, run.worktree) == ("failed", None, "")


@pytest.mark.row("LAB-60", level="real")
def test_a_fetch_that_fails_aborts_with_gits_own_words(real):
    project = real.project()
    ready(real)
    shutil.rmtree(project.url)
    asked = press_start(real, project)
    assert asked.answer == "start_failed"
    assert "does not appear to be a git repository" in asked.text
    assert real.repos.claims(project.repo(real.paths)) == frozenset()


@pytest.mark.row("LAB-60", level="real")
def test_the_base_is_the_default_branch_as_origin_has_it_now(real):
    project = real.project()
    checkout = real.folder / "demo-checkout"
    (checkout / "newer.txt").write_text("newer")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "feat: newer")
    git(checkout, "push", "-q", "origin", "main")
    run = start(real, project)
    assert (Path(run.worktree) / "newer.txt").exists()


@pytest.mark.row("LAB-61", level="real")
def test_an_agent_that_exits_at_once_is_a_failed_start(real):
    project = real.project(argv=["sh", "-c", "echo no credit left; exit 3", "{prompt}"])
    real.look_again_at_the_end()
    ready(real)
    asked = press_start(real, project)
    assert asked.answer == "start_failed"
    assert "exited immediately" in asked.text
    assert "no credit left" in asked.text
    assert real.repos.claims(project.repo(real.paths)) == frozenset()


@pytest.mark.row("LAB-62", "LAB-63", "X-14", level="real")
@pytest.mark.parametrize(
    "title",
    ['it\'s "so" $(touch boom) `x`\nsecond line', "t" * 10_000, "<script>alert(1)</script>"],
)
def test_the_agent_gets_the_task_as_its_last_argument(real, title):
    project = real.project(argv=[*DUMPER, "--model", "{model}", "--effort", "{effort}", "{prompt}"])
    profile = project.agent
    AgentProfile.objects.filter(pk=profile.pk).update(model_names=["big"], efforts=["high"])
    Settings.objects.filter(pk=1).update(agent=profile, model="big", effort="high")
    ready(real, title=title)
    run = press_start(real, project).run
    argv = _dump(real, run)["argv"]
    assert argv[:4] == ["--model", "big", "--effort", "high"]
    assert len(argv) == 5
    for element in (
        "labctl issue view 7",
        "Stay on it",
        "tests, build",
        "Conventional Commit",
        "push origin afk/7",
        "Closes #7",
    ):
        assert element in argv[-1]
    assert run.prompt == argv[-1]
    assert not list(Path(run.worktree).glob("boom"))


@pytest.mark.row("LAB-128", level="real")
def test_the_next_start_uses_the_choice_that_was_stored_last(real):
    from runs.accounts import choice as agent_choice

    project = real.project(argv=[*DUMPER, "--model", "{model}", "{prompt}"])
    profile = project.agent
    AgentProfile.objects.filter(pk=profile.pk).update(model_names=["big", "small"])
    agent_choice.choose(real.lab, agent_id=profile.pk, model="big", effort="", by="anna")
    first = start(real, project, "7")
    with pytest.raises(agent_choice.ChoiceRefused):
        agent_choice.choose(real.lab, agent_id=profile.pk, model="huge", effort="", by="anna")
    agent_choice.choose(real.lab, agent_id=profile.pk, model="small", effort="", by="anna")
    second = start(real, project, "8")
    assert _dump(real, first)["argv"][1] == "big"
    assert _dump(real, second)["argv"][1] == "small"


@pytest.mark.row("LAB-64", level="real")
def test_a_project_without_a_tracker_starts_nothing(real):
    project = real.project()
    Project.objects.filter(pk=project.pk).update(tracker="")
    asked = press_start(real, project)
    assert asked.answer == "no_tracker"
    assert not Run.objects.exists()


def test_a_tracker_that_does_not_answer_is_a_refusal_and_claims_nothing(real):
    project = real.project()
    real.memory.fail()
    asked = press_start(real, project)
    assert asked.answer == "tracker_failed"
    assert "answered 500" in asked.text
    assert not Run.objects.exists()


@pytest.mark.row("LAB-67", level="real")
def test_several_manual_runs_may_run_at_once(real):
    project = real.project()
    for key in ("1", "2", "3"):
        start(real, project, key)
    assert real.session_names() == ["demo~1~afk-1", "demo~2~afk-2", "demo~3~afk-3"]


@pytest.mark.row("LAB-68", level="real")
def test_a_logged_out_agent_starts_nothing(real):
    project = real.project()
    AgentProfile.objects.filter(pk=project.agent_id).update(login_command=["false"])
    ready(real)
    asked = press_start(real, project)
    assert asked.answer == "logged_out"
    assert real.repos.claims(project.repo(real.paths)) == frozenset()
    AgentProfile.objects.filter(pk=project.agent_id).update(login_command=["true"])
    assert press_start(real, project).answer == "started"


@pytest.mark.row("LAB-69", level="real")
def test_starting_moves_the_project_to_the_top(real):
    for name in ("alpha", "beta", "gamma"):
        real.project(name)
    start(real, Project.objects.get(name="gamma"), "1")
    assert [p.name for p in Project.objects.all().recent_first()] == ["gamma", "alpha", "beta"]


@pytest.mark.row("LAB-70", level="real")
def test_the_worktree_is_trusted_and_unknown_keys_survive(real):
    project = real.project()
    AgentProfile.objects.filter(pk=project.agent_id).update(trust="claude")
    path = Path(real.environ["HOME"]) / ".claude.json"
    path.write_text(json.dumps({"theme": "dark", "projects": {"/other": {"x": 1}}}))
    path.chmod(0o640)
    run = start(real, project)
    content = json.loads(path.read_text())
    assert content["theme"] == "dark"
    assert content["projects"]["/other"] == {"x": 1}
    assert content["projects"][run.worktree]["hasTrustDialogAccepted"] is True
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.row("LAB-70", level="real")
def test_a_key_in_the_profile_is_approved_where_the_profile_keeps_its_files(real):
    """Seen with Claude Code 2.1.329: an unknown key stops an unattended run with a question."""
    project = real.project()
    home = real.folder / "agent-home"
    env = {"ANTHROPIC_API_KEY": "sk-" + "k" * 40, "CLAUDE_CONFIG_DIR": str(home)}
    AgentProfile.objects.filter(pk=project.agent_id).update(trust="claude", env=env)
    start(real, project)
    content = json.loads((home / ".claude.json").read_text())
    assert content["customApiKeyResponses"]["approved"] == ["k" * 20]
    assert content["bypassPermissionsModeAccepted"] is True
    assert "sk-" not in json.dumps(content)


@pytest.mark.row("LAB-70", level="real")
@pytest.mark.parametrize("text", ["{broken", "[]", '{"projects": 3}'])
def test_a_malformed_agent_config_fails_the_start_and_is_left_alone(real, text):
    project = real.project()
    AgentProfile.objects.filter(pk=project.agent_id).update(trust="claude")
    path = Path(real.environ["HOME"]) / ".claude.json"
    path.write_text(text)
    ready(real)
    asked = press_start(real, project)
    assert asked.answer == "start_failed"
    assert ".claude.json" in asked.text
    assert path.read_text() == text
    assert real.repos.claims(project.repo(real.paths)) == frozenset()


@pytest.mark.row("LAB-71", "C-05", level="real")
def test_worktrees_lie_in_the_state_folder_without_a_tilde(real):
    run = start(real, real.project())
    assert run.worktree == str(real.paths.worktrees / "demo-7")
    assert "~" not in run.worktree


@pytest.mark.row("LAB-72", level="real")
def test_an_agent_has_the_file_limit_of_the_settings(real):
    run = start(real, real.project(argv=["sh", "-c", "ulimit -n > limit; sleep 600", "{prompt}"]))
    path = Path(run.worktree) / "limit"
    real.until(lambda: path.exists() and path.read_text())
    assert path.read_text().strip() == "16384"


@pytest.mark.row("LAB-45", level="real")
def test_nothing_links_to_a_session_after_its_reap(real):
    run = start(real, real.project())
    stop(real.lab, run, "anna")
    run.refresh_from_db()
    assert not run.is_active
    assert real.session_names() == []


def test_the_session_knows_its_run_and_no_secret_of_the_product(real, monkeypatch):
    monkeypatch.setenv("LAB_SECRET_KEY", "the-key-of-the-product")
    run = start(real, real.project(argv=[*DUMPER, "{prompt}"]))
    seen = _dump(real, run)
    assert seen["env"]["LAB_PROJECT"] == "demo"
    assert seen["env"]["LAB_ISSUE"] == "7"
    assert seen["cwd"] == run.worktree
    assert "LAB_SECRET_KEY" not in seen["env"]
    token = (real.paths.run_folder(run.pk) / "token").read_text()
    assert token not in json.dumps(seen)
    assert token not in Path(f"/proc/{_pid(real)}/cmdline").read_text()


def _pid(real) -> str:  # type: ignore[no-untyped-def]
    return real.tmux("list-panes", "-a", "-F", "#{pane_pid}").strip()


def test_a_launch_whose_process_died_is_rolled_back_by_the_next_tick(real):
    project = real.project()
    ready(real)
    start_requests.request(real.lab, project, "anna")
    tick.tick(real.lab, project="demo")
    run = Run.objects.get()
    real.queue.launches.clear()
    dead = replace(real.lab, process="another:1:1", is_process_alive=lambda name: False)
    Run.objects.filter(pk=run.pk).update(launcher=dead.process)
    repo = project.repo(real.paths)
    commit, tree = real.repos.upstream(repo, "main"), real.paths.worktrees / "demo-7"
    Run.objects.filter(pk=run.pk).update(fork_point=commit, worktree=str(tree))
    real.repos.add_worktree(repo, tree, "afk/7", commit)
    tick.tick(dead, force=True)
    run.refresh_from_db()
    assert (run.outcome, run.started_at) == ("failed", None)
    assert real.repos.claims(repo) == frozenset()
    assert not (real.paths.worktrees / "demo-7").exists()
    assert press_start(real, project).answer == "started"


def test_a_launch_that_died_after_its_spawn_is_finished_by_the_next_tick(real):
    project = real.project()
    ready(real)
    start_requests.request(real.lab, project, "anna")
    tick.tick(real.lab, project="demo")
    run = Run.objects.get()
    cut = replace(real.lab, pause=_die)
    with pytest.raises(KeyboardInterrupt):
        launch.carry_out(cut, run.pk)
    dead = replace(real.lab, process="another:1:1", is_process_alive=lambda name: False)
    tick.tick(dead, force=True)
    run.refresh_from_db()
    assert (run.state, run.outcome) == ("working", "")
    assert real.session_names() == [run.session]


def _die(seconds: float) -> None:
    raise KeyboardInterrupt


def test_a_lost_queue_message_is_asked_for_again(real):
    project = real.project()
    ready(real)
    start_requests.request(real.lab, project, "anna")
    tick.tick(real.lab, project="demo")
    real.queue.launches.clear()
    real.offset = timedelta(seconds=10)
    look(real)
    real.work()
    assert Run.objects.get().state == "working"


def test_a_stop_during_the_start_wins_and_no_session_stays(real):
    project = real.project()
    ready(real)
    start_requests.request(real.lab, project, "anna")
    tick.tick(real.lab, project="demo")
    run = Run.objects.select_related("project").get()

    def stop_now(seconds: float) -> None:
        stop(real.lab, run, "anna")

    launch.carry_out(replace(real.lab, pause=stop_now), run.pk)
    look(real)
    run.refresh_from_db()
    assert (run.outcome, run.settled_at is not None) == ("stopped", True)
    assert real.session_names() == []
    assert Notice.objects.filter(run=run, kind="run.ended").count() == 1


def test_a_request_that_waited_too_long_for_a_worker_starts_nothing(real):
    project = real.project()
    ready(real)
    start_requests.request(real.lab, project, "anna")
    real.offset = timedelta(minutes=5)
    look(real)
    assert StartRequest.objects.get().answer == "expired"
    assert not Run.objects.exists()

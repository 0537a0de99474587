"""Resume: a new run goes on where an ended one stopped, with what a person says (World: all faked)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from runs import tick
from runs.core.states import Outcome, RunState
from runs.followups import acts, rules
from runs.kept import counts
from runs.kept.discard import DiscardRefused, discard
from runs.lifecycle import stop
from runs.models import AgentProfile, Notice, Project, Run, Settings, StartRequest
from tests import make
from tests.followups.conftest import dead, prints
from tests.transcript import agent_lines as x
from tests.world.stories import look, press_start, start, work

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "Use the other parser."


def _told(kind):  # type: ignore[no-untyped-def]
    return list(Notice.objects.filter(kind=kind).order_by("pk").values_list("text", flat=True))


def _press(world, run, text=TEXT, by="anna"):  # type: ignore[no-untyped-def]
    """Press Resume; the worker answers and carries the launch out."""
    asked = acts.resume(world.lab, Run.objects.get(pk=run.pk), text, by=by)
    tick.tick(world.lab, project=run.project.slug)
    work(world)
    return StartRequest.objects.select_related("run").get(pk=asked.pk)


def _resumed(world, run, text=TEXT, by="anna"):  # type: ignore[no-untyped-def]
    asked = _press(world, run, text, by)
    assert asked.run is not None, asked.text
    return asked.run


def test_a_run_that_died_goes_on_in_a_new_one_on_the_same_branch_in_its_own_session(world, project):
    before = dead(world, project)
    run = _resumed(world, before)
    assert (run.state, run.continues_id, run.follow_up) == (RunState.WORKING, before.pk, TEXT)
    same = ("branch", "worktree", "fork_point", "agent_session", "profile_id", "issue_title")
    assert [getattr(run, name) for name in same] == [getattr(before, name) for name in same]
    order = world.sessions.orders[run.session]
    assert order.argv[:4] == ["claude", "--resume", x.SESSION, "-p"]
    assert TEXT in order.argv[-1]
    assert "labctl pr create" in order.argv[-1]
    assert world.repos.fetches == 2  # what others pushed meanwhile
    before.refresh_from_db()
    assert before.outcome == Outcome.DIED
    told = [(one.text, one.by) for one in Notice.objects.filter(run=run, kind="run.starting")]
    assert told == [(f"Goes on from run {before.pk}, asked by anna (slot 1)", "anna")]


def test_its_work_is_not_parked_while_it_goes_on_and_is_again_afterwards(world, project):
    before = dead(world, project)
    assert [one.name for one in counts.parked(world.lab, project)] == ["afk/7"]
    run = _resumed(world, before)
    assert counts.parked(world.lab, project) == []
    with pytest.raises(DiscardRefused, match="live session works on"):
        discard(world.lab, project, "afk/7", "bob")
    stop.stop(world.lab, Run.objects.get(pk=run.pk), "anna")
    look(world)
    assert [one.name for one in counts.parked(world.lab, project)] == ["afk/7"]


def test_one_that_goes_on_succeeds_by_the_pull_request_that_it_opens(world, project):
    run = _resumed(world, dead(world, project))
    world.clock.forward(minutes=1)
    world.tracker.add_pull("demo", "afk/7", created_at=world.clock())
    look(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.SUCCEEDED


def test_an_agent_whose_session_is_not_known_gets_its_task_again_with_the_text(world, project):
    before = dead(world, project)
    Run.objects.update(agent_session="")
    run = _resumed(world, before)
    words = world.sessions.orders[run.session].argv[-1]
    assert "--resume" not in world.sessions.orders[run.session].argv
    assert words.index("Work on this issue was begun earlier") == 0
    assert words.index("You work unattended on issue 7") < words.index(TEXT)


def test_a_program_that_cannot_go_on_in_a_session_does_not_keep_the_old_ones_id(world, project):
    before = dead(world, project)
    AgentProfile.objects.filter(name="Claude").update(argv=["sh", "agent.sh", "{prompt}"])
    run = _resumed(world, before)
    assert (before.agent_session, run.agent_session) == (x.SESSION, "")


@pytest.mark.parametrize("vanishes", [True, False])
def test_a_program_that_knows_no_such_session_gets_its_task_and_the_text(world, project, vanishes):
    before = dead(world, project)
    world.sessions.vanish_at_once = vanishes
    run = _resumed(world, before)
    world.sessions.vanish_at_once = False
    if not vanishes:
        world.sessions.end(run.session, 1)
    for _ in range(2):
        look(world)
        work(world)
    run.refresh_from_db()
    assert (run.state, run.resumes, run.agent_session) == (RunState.WORKING, 1, "")
    words = world.sessions.orders[run.session].argv[-1]
    assert "--resume" not in world.sessions.orders[run.session].argv
    assert TEXT in words
    assert "You work unattended on issue 7" in words
    assert _told("run.step")[-2].endswith("it gets its task again")


def test_a_program_that_went_on_and_failed_does_not_get_its_task_though_it_names_no_model(
    world, project
):
    AgentProfile.objects.filter(name="Claude").update(
        argv=["codex", "exec", "--json", "{prompt}"], output="codex_exec_json"
    )
    before = start(world, project)
    prints(world, before, x.codex_thread(), x.codex_started())
    look(world)
    world.sessions.end(before.session, 1)
    look(world)
    run = _resumed(world, before)
    assert world.sessions.orders[run.session].argv[:4] == ["codex", "exec", "--json", "resume"]
    prints(world, run, x.codex_thread(), x.codex_started(), x.codex_failed("It broke."))
    world.sessions.end(run.session, 1)
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.resume_failures) == (Outcome.DIED, 0)


def test_hours_before_it_came_to_life_are_not_given_to_its_budget(world, project):
    before = dead(world, project)
    world.sessions.vanish_at_once = True
    run = _resumed(world, before)
    assert (run.state, run.started_at) == (RunState.HELD, None)
    world.sessions.vanish_at_once = False
    world.clock.forward(hours=2)
    look(world)
    work(world)
    run.refresh_from_db()
    assert (run.state, run.rested_seconds) == (RunState.WORKING, 0)


@pytest.mark.parametrize(
    "text", ["--help", "-", "/exit", "\x1b[31mred\x07\0 \u202e", "!rm", "a" * 4000]
)
def test_what_a_person_writes_stays_one_argument_and_never_an_option(world, project, text):
    run = _resumed(world, dead(world, project), text)
    (words,) = world.sessions.orders[run.session].argv[-1:]
    assert words.startswith("You are asked to go on")
    assert not set(words) & {"\x1b", "\x07", "\0", "\u202e"}


@pytest.mark.parametrize("text", ["", "  \n", "\0\x1b"])
def test_without_a_text_nothing_is_asked_for_and_the_field_says_so(world, project, text):
    before = dead(world, project)
    with pytest.raises(acts.FollowUpRefused) as refused:
        acts.resume(world.lab, before, text, by="anna")
    assert refused.value.fields == {"text": rules.NO_TEXT}
    assert not StartRequest.objects.filter(continues=before).exists()


def test_too_long_a_text_is_refused_at_its_field(world, project):
    with pytest.raises(acts.FollowUpRefused) as refused:
        acts.resume(world.lab, dead(world, project), "a" * 4001, by="anna")
    assert refused.value.field == "text"


@pytest.mark.postgres
def test_pressed_twice_or_by_two_people_it_makes_one_run(world, project):
    before = dead(world, project)
    first = acts.resume(world.lab, before, TEXT, by="anna")
    assert acts.resume(world.lab, before, TEXT, by="anna").pk == first.pk
    with pytest.raises(acts.FollowUpRefused, match="anna has asked for it in the same moment"):
        acts.resume(world.lab, before, "Something else.", by="bob")
    run = _resumed(world, before)
    assert acts.resume(world.lab, before, TEXT, by="anna").run_id == run.pk
    with pytest.raises(acts.FollowUpRefused, match=f"Run {run.pk} of issue 7 came after"):
        acts.resume(world.lab, before, "Something else.", by="bob")
    assert Run.objects.count() == 2


def test_a_resume_that_is_late_asks_to_be_pressed_again(world, project):
    before = dead(world, project)
    asked = acts.resume(world.lab, before, TEXT, by="anna")
    world.clock.forward(minutes=3)
    look(world)
    asked.refresh_from_db()
    assert (asked.answer, asked.run) == ("expired", None)
    assert asked.text.endswith("Press Resume again.")


def test_at_the_cap_nothing_goes_on_and_the_answer_says_so(world, project):
    before = dead(world, project)
    start(world, project, "8")
    Settings.objects.update(session_cap=1)
    asked = _press(world, before)
    assert (asked.answer, asked.run) == ("at_cap", None)


def test_a_held_agent_refuses_as_with_start(world, project):
    before = dead(world, project)
    now = world.clock()
    AgentProfile.objects.filter(name="Claude").update(
        hold="limit", held_at=now, held_until=now + timedelta(hours=1)
    )
    asked = _press(world, before)
    assert asked.answer == "agent_held"


def test_a_closed_issue_is_not_gone_on_with(world, project):
    before = dead(world, project)
    world.tracker.close("demo", "7")
    asked = _press(world, before)
    assert (asked.answer, asked.text) == (
        "cannot_go_on",
        "Issue 7 is closed. Open it again first.",
    )


def test_a_tracker_without_an_answer_starts_nothing(world, project):
    before = dead(world, project)
    world.tracker.fail()
    asked = _press(world, before)
    assert asked.answer == "tracker_failed"
    assert Run.objects.count() == 1


def test_a_merged_pull_request_of_its_branch_is_not_added_to(world, project):
    before = dead(world, project)
    number = world.tracker.add_pull("demo", "afk/7", "merged")
    asked = _press(world, before)
    assert asked.text == (
        f"Pull request {number} is merged already, so nothing more can be added to it."
    )


def test_a_worktree_that_is_gone_is_made_again_on_its_branch(world, project):
    before = dead(world, project)
    world.repos.remove_worktree(project.repo(world.lab.paths), Path(before.worktree))
    assert not Path(before.worktree).exists()
    run = _resumed(world, before)
    assert (run.state, Path(run.worktree).is_dir()) == (RunState.WORKING, True)
    assert run.worktree == before.worktree


def test_a_worktree_whose_making_was_cut_short_is_made_anew_and_not_used(world, project):
    before = dead(world, project)
    world.repos.half_made.add(Path(before.worktree))
    run = _resumed(world, before)
    assert (run.state, world.repos.half_made) == (RunState.WORKING, set())
    assert "Worktree made again on afk/7 at fffffff" in _told("run.step")


def test_a_branch_that_is_gone_is_refused_before_anything_is_asked_for(world, project):
    before = dead(world, project)
    world.repos.delete_branch(project.repo(world.lab.paths), "afk/7", before.fork_point)
    with pytest.raises(acts.FollowUpRefused, match="Its branch afk/7 is gone"):
        acts.resume(world.lab, before, TEXT, by="anna")


def test_a_branch_that_goes_between_press_and_start_fails_the_start_and_undoes_nothing(
    world, project
):
    before = dead(world, project)
    acts.resume(world.lab, before, TEXT, by="anna")
    tick.tick(world.lab, project="demo")
    world.repos.delete_branch(project.repo(world.lab.paths), "afk/7", before.fork_point)
    work(world)
    run = Run.objects.get(continues=before)
    assert (run.outcome, run.reason) == (
        Outcome.FAILED,
        "did not start: its branch afk/7 is not there any more",
    )
    assert Path(before.worktree).is_dir()


def test_a_start_that_fails_leaves_everything_as_it_was_and_it_may_be_pressed_again(world, project):
    before = dead(world, project)
    repo = project.repo(world.lab.paths)
    world.sessions.broken_start = "no more processes"
    asked = _press(world, before)
    assert (asked.answer, asked.text) == ("start_failed", "no more processes")
    failed = asked.run
    look(world)
    failed.refresh_from_db()
    assert (failed.outcome, failed.did_start) == (Outcome.FAILED, False)
    assert Path(before.worktree).is_dir()
    assert world.repos.tip(repo, "refs/heads/afk/7") == before.fork_point
    assert [one.name for one in counts.parked(world.lab, project)] == ["afk/7"]
    world.sessions.broken_start = ""
    assert _resumed(world, before, "Again.").continues_id == before.pk


def test_large_files_that_were_not_fetched_are_fetched_at_the_next_start(world, project):
    before = dead(world, project)
    world.repos.remove_worktree(project.repo(world.lab.paths), Path(before.worktree))
    world.repos.large_files, world.repos.broken_large_files = True, "batch response: 503"
    for _ in range(2):  # the worktree is made again, and is there the second time
        asked = _press(world, before)
        assert "large files could not be fetched: batch response: 503" in asked.text
        look(world)
    assert Path(before.worktree).is_dir()
    world.repos.broken_large_files = ""
    run = _resumed(world, before)
    assert [one[0] for one in world.repos.fetched_large] == [Path(run.worktree)]
    assert run.state == RunState.WORKING


@pytest.mark.parametrize("has_session", [True, False])
def test_a_worker_that_is_killed_while_it_starts_undoes_nothing(world, project, has_session):
    before = dead(world, project)
    acts.resume(world.lab, before, TEXT, by="anna")
    tick.tick(world.lab, project="demo")
    run = Run.objects.get(continues=before)
    Run.objects.filter(pk=run.pk).update(launcher="gone", launch_deadline=world.clock())
    world.dead_processes.add("gone")
    if has_session:
        world.sessions.appear(run.session, run.mark)
    world.queue.launches.clear()
    look(world)
    run.refresh_from_db()
    assert run.state == (RunState.WORKING if has_session else RunState.ENDED)
    assert Path(before.worktree).is_dir()
    assert world.repos.tip(project.repo(world.lab.paths), "refs/heads/afk/7")


def test_a_killed_request_is_answered_by_the_next_worker(world, project):
    before = dead(world, project)
    asked = acts.resume(world.lab, before, TEXT, by="anna")
    world.clock.forward(seconds=60)
    look(world)
    work(world)
    asked.refresh_from_db()
    assert asked.answer == "started"


def test_a_run_that_delivered_is_asked_for_changes_instead(world, project):
    run = start(world, project, "7")
    world.tracker.add_pull("demo", "afk/7")
    look(world)
    world.sessions.end(run.session, 0)
    look(world)
    run.refresh_from_db()
    with pytest.raises(acts.FollowUpRefused, match="Request changes"):
        acts.resume(world.lab, run, TEXT, by="anna")


def test_a_run_that_works_cannot_be_resumed(world, project):
    with pytest.raises(acts.FollowUpRefused, match="has not ended"):
        acts.resume(world.lab, start(world, project), TEXT, by="anna")


def test_nobody_else_takes_the_issue_while_a_resume_waits_and_starts(world, project):
    before = dead(world, project)
    acts.resume(world.lab, before, TEXT, by="anna")
    asked = press_start(world, project, "bob", wanted="7")
    assert asked.answer == "nothing_ready"
    assert Run.objects.active().get().continues_id == before.pk


def test_a_project_that_is_being_removed_starts_nothing(world, project):
    before = dead(world, project)
    acts.resume(world.lab, before, TEXT, by="anna")
    Project.objects.update(state="removing")
    look(world)
    assert StartRequest.objects.get(continues=before).answer == "not_ready"
    Project.objects.all().delete()
    assert not StartRequest.objects.exists()


def test_a_second_resume_goes_on_with_the_newest_run(world, project):
    first = dead(world, project)
    second = _resumed(world, first)
    prints(world, second, x.claude_init(), x.claude_does("make"))
    look(world)
    world.sessions.end(second.session, 1)
    look(world)
    third = _resumed(world, second, "Third try.")
    assert (third.continues_id, third.fork_point) == (second.pk, first.fork_point)
    assert third.agent_session == first.agent_session


def test_a_lost_race_for_the_issue_stores_nothing(world, project):
    before = dead(world, project)
    asked = acts.resume(world.lab, before, TEXT, by="anna")
    other = make.a_run(project, "7")
    Run.objects.filter(pk=other.pk).update(host="elsewhere")
    look(world)
    asked.refresh_from_db()
    assert (asked.answer, asked.run) != ("started", None)
    assert Run.objects.filter(continues=before).count() == 0

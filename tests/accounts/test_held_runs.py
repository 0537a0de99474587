"""Runs whose agent's account is refused wait, keep what they have, and go on (World: all faked)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from runs import sweep, tick
from runs.accounts import choice as agent_choice
from runs.accounts import hold_rules, holds, logins
from runs.accounts.held import wait_of
from runs.accounts.refusal_rules import Refused
from runs.core.states import Outcome, RunState, Trouble
from runs.dispatch import reserve, start_requests
from runs.followups import facts
from runs.kept.discard import DiscardRefused, discard
from runs.lifecycle import launch, resuming, stop
from runs.lifecycle.verdict import MOST_VAIN
from runs.models import AgentProfile, Host, Notice, Project, Run, Settings, WatchSession
from runs.stop_project import stop_project
from runs.watch import acts as watches
from runs.watch import switch as auto
from runs.watch.session import Terms
from tests import make
from tests.fakes import START, World
from tests.transcript import agent_lines as x
from tests.world.stories import look, passing, press_start, ready, start, work

pytestmark = pytest.mark.django_db(transaction=True)

RESET = START + timedelta(hours=2)
LIMIT = f"Claude AI usage limit reached|{int(RESET.timestamp())}"
ONE_SHOT = ["claude", "-p", "--model", "{model}", "{prompt}"]


@pytest.fixture
def project(world: World) -> Project:
    agent = make.an_agent(
        "Claude", argv=ONE_SHOT, mode="one_shot", output="claude_stream_json", model_names=["a"]
    )
    world.tracker.add_root("demo")
    return make.a_project(agent=agent)


def _prints(world, run, *lines):  # type: ignore[no-untyped-def]
    world.sessions.outputs[world.lab.paths.run_folder(run.pk)] = x.written(*lines)


def _ends(world, run, words=LIMIT, status=429):  # type: ignore[no-untyped-def]
    """Its program worked, was turned away and ended."""
    _prints(world, run, x.claude_init(), x.claude_does("make"), x.claude_refused(status, words))
    world.sessions.end(run.session, 1)


def _turned_away(world, project, key="7", **said):  # type: ignore[no-untyped-def]
    """A run that was started, turned away and looked at."""
    run = start(world, project, key)
    _ends(world, run, **said)
    look(world)
    run.refresh_from_db()
    return run


def _told(kind):  # type: ignore[no-untyped-def]
    return list(Notice.objects.filter(kind=kind).order_by("pk").values_list("text", flat=True))


def _profile() -> AgentProfile:
    return AgentProfile.objects.get(name="Claude")


@pytest.mark.row("LAB-24", level="contract")
def test_a_usage_limit_costs_no_run_and_no_issue(world, project):
    run = _turned_away(world, project)
    assert (run.state, run.outcome, run.trouble) == (RunState.HELD, "", Trouble.LIMIT)
    assert (run.slot, run.token_hash, run.exit_status) == (None, "", 1)
    assert run.session not in world.sessions.all
    assert Path(run.worktree).is_dir()
    project.refresh_from_db()
    assert (project.streak, project.parked) == (0, 0)
    profile = _profile()
    assert (profile.hold, profile.held_at, profile.holds) == ("limit", START, 1)
    assert profile.held_until == RESET + timedelta(minutes=1)
    assert _told("run.held") == [
        "waiting for Claude's usage limit, goes on at 14:01 UTC; worktree and branch kept"
    ]
    (told,) = _told("agent.held")
    assert told.startswith("Claude: usage limit reached; nothing is started with it until 14:01")


def test_nothing_starts_with_a_held_agent_until_its_time_and_the_refusal_says_when(world, project):
    _turned_away(world, project)
    ready(world, "8")
    asked = press_start(world, project, wanted="8")
    assert (asked.answer, asked.run) == ("agent_held", None)
    assert asked.text == (
        "Claude: usage limit reached. It is tried again at 14:01 UTC. Nothing was claimed."
    )
    assert Run.objects.count() == 1


def test_at_the_reset_the_run_goes_on_in_its_own_session_and_succeeds(world, project):
    run = _turned_away(world, project)
    tree = run.worktree
    world.clock.forward(hours=2, minutes=2)
    tick.tick(world.lab)
    work(world)
    run.refresh_from_db()
    assert (run.state, run.slot, run.resumes, run.worktree) == (RunState.WORKING, 1, 1, tree)
    assert run.started_at == START
    order = world.sessions.orders[run.session]
    assert order.argv == ["claude", "--resume", x.SESSION, "-p", hold_rules.FOLLOW_UP]
    assert world.repos.fetches == 1
    assert _profile().hold == ""
    assert _told("agent.released") == ["Claude: tried again now"]
    assert _told("run.resumed") == [f"the agent goes on in session {run.session}"]
    world.tracker.add_pull("demo", "afk/7")
    look(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.SUCCEEDED
    assert _profile().holds == 0


@pytest.mark.row("MALA-W-22", level="contract")
def test_an_issue_that_took_several_tries_of_its_agent_counts_once(world, project):
    ready(world, "7")
    watches.open(world.lab, project, Terms(is_watching=True), "anna")
    look(world)
    work(world)
    run = Run.objects.get()
    for resumes in (1, 2):
        _ends(world, run)
        look(world)
        world.clock.forward(hours=2 + 3 * resumes)
        tick.tick(world.lab)
        work(world)
        run.refresh_from_db()
        assert (run.state, run.resumes) == (RunState.WORKING, resumes)
        assert WatchSession.objects.get().completed == 0
    world.tracker.add_pull("demo", "afk/7")
    look(world)
    session = WatchSession.objects.get()
    assert (session.completed, session.failed) == (1, 0)
    assert Run.objects.count() == 1


def test_the_budget_rests_while_a_run_is_held(world, project):
    Project.objects.update(run_budget_minutes=50)
    run = start(world, project)
    world.clock.forward(minutes=40)
    _ends(world, run)
    look(world)
    world.clock.forward(hours=2)
    run.refresh_from_db()
    assert run.age(world.lab.now()) == timedelta(minutes=40)
    look(world)
    work(world)
    run.refresh_from_db()
    assert (run.state, run.rested_seconds) == (RunState.WORKING, 7200)
    world.clock.forward(minutes=9)
    look(world)
    run.refresh_from_db()
    assert run.is_active
    assert run.age(world.lab.now()) == timedelta(minutes=49)
    world.clock.forward(minutes=2)
    look(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.TIMED_OUT


@pytest.mark.row("LAB-22", level="contract")
def test_delivered_work_is_a_success_whatever_the_program_said_at_its_end(world, project):
    run = start(world, project)
    _ends(world, run)
    world.tracker.add_pull("demo", "afk/7")
    look(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.SUCCEEDED
    assert _profile().hold == ""


def test_what_only_the_issue_is_to_blame_for_is_a_death_as_ever(world, project):
    run = _turned_away(world, project, words="Prompt is too long", status=400)
    assert run.outcome == Outcome.DIED
    assert _profile().hold == ""


@pytest.mark.parametrize(
    ("words", "status", "hold", "minutes"),
    [
        pytest.param("API Error: 529 Overloaded", 529, "overload", 1, id="overload"),
        pytest.param("Invalid API key", 401, "login", 15, id="log-in"),
        pytest.param("Credit balance is too low", 400, "credit", 15, id="credit"),
        pytest.param("403 Your account does not have access to this model", 403, "model", 30, id="model"),
        pytest.param("Claude AI usage limit reached|1700000000", 429, "limit", 5, id="reset in the past"),
    ],
)  # fmt: skip
def test_each_trouble_of_the_account_holds_for_a_while(
    world, project, words, status, hold, minutes
):
    run = _turned_away(world, project, words=words, status=status)
    profile = _profile()
    assert (run.state, profile.hold) == (RunState.HELD, hold)
    assert profile.held_until == START + timedelta(minutes=minutes)


def test_a_refused_model_advises_no_log_in(world, project):
    words = "Failed to authenticate. API Error: 403 Your account does not have access to this model"
    _turned_away(world, project, words=words, status=403)
    (told,) = _told("agent.held")
    assert "Choose another model" in told
    assert "Log in" not in told


def test_several_runs_turned_away_together_are_one_hold(world, project):
    runs = [start(world, project, key) for key in ("1", "2", "3")]
    for run in runs:
        _ends(world, run, words="Rate limited", status=429)
    look(world)
    assert Run.objects.held().count() == 3
    assert (_profile().holds, len(_told("agent.held"))) == (1, 1)


def test_tries_in_vain_wait_longer_and_are_told_outside_once(world, project):
    run = _turned_away(world, project, words="Overloaded", status=529)
    waits = []
    for _ in range(7):
        profile = _profile()
        waits.append((profile.held_until - world.lab.now()) // timedelta(minutes=1))
        world.clock.now = profile.held_until
        look(world)
        work(world)
        run.refresh_from_db()
        assert run.state == RunState.WORKING
        _ends(world, run, words="Overloaded", status=529)
        look(world)
    assert waits == [1, 2, 4, 8, 16, 30, 30]
    assert len(_told("agent.held")) == 1


LONG = "Extra usage is required for long context requests"


def _refused_again(world, run, words=LONG):  # type: ignore[no-untyped-def]
    """It is started again when its agent is free, and refused before it did anything."""
    world.clock.now = max(world.clock.now, _profile().held_until or world.clock.now)
    look(world)
    work(world)
    run.refresh_from_db()
    assert run.state == RunState.WORKING
    _prints(world, run, x.claude_init(), x.claude_refused(429, words))
    world.sessions.end(run.session, 1)
    look(world)
    run.refresh_from_db()


def _works_beside(world, project):  # type: ignore[no-untyped-def]
    other = start(world, project, "9")
    _prints(world, other, x.claude_init(), x.claude_does("make"))
    world.clock.forward(minutes=6)
    return other


def test_a_session_that_alone_is_refused_each_time_gets_a_fresh_one_and_goes_on(world, project):
    Project.objects.update(parallel_runs=2)
    project.refresh_from_db()
    _works_beside(world, project)
    run = _turned_away(world, project, words=LONG)
    for _ in range(MOST_VAIN - 1):
        _refused_again(world, run)
        assert (run.state, run.agent_session) == (RunState.HELD, x.SESSION)
    _refused_again(world, run)
    assert (run.agent_session, _profile().hold) == ("", "")
    assert (
        f"did not go on: its session was refused 3 times in a row as soon as it went on: {LONG}; "
        "it gets its task again"
    ) in _told("run.step")
    work(world)
    run.refresh_from_db()
    assert run.state == RunState.WORKING
    order = world.sessions.orders[run.session]
    assert "--resume" not in order.argv and order.argv[-1].startswith(hold_rules.EARLIER_WORK)
    world.clock.forward(minutes=10)
    _ends(world, run, words=LONG)  # after work it is a new trouble
    look(world)
    run.refresh_from_db()
    assert (run.state, run.vain_resumes) == (RunState.HELD, 0)


def test_where_a_fresh_session_is_refused_too_a_person_is_told_and_it_is_not_tried_again(
    world, project
):
    Project.objects.update(parallel_runs=2)
    project.refresh_from_db()
    _works_beside(world, project)
    run = _turned_away(world, project, words=LONG)
    for _ in range(MOST_VAIN + 1):
        _refused_again(world, run)
    assert run.outcome == Outcome.FAILED
    assert run.reason.startswith("its agent was refused 3 times in a row as soon as it went on")
    assert LONG in run.reason and "start the issue again" in run.reason
    assert facts.take_up(run).has_failed  # so that fresh turns are offered
    assert _profile().hold == ""
    assert Path(run.worktree).is_dir()


def test_an_outage_of_hours_gives_no_session_up(world, project):
    run = _turned_away(world, project, words="Overloaded", status=529)
    for _ in range(12):
        _refused_again(world, run, "API Error: 529 Overloaded")
    assert (run.state, run.agent_session, run.vain_resumes) == (RunState.HELD, x.SESSION, 12)


def test_a_trouble_after_work_was_done_is_a_new_one(world, project):
    run = _turned_away(world, project, words="Overloaded", status=529)
    world.clock.now = _profile().held_until
    look(world)
    work(world)
    world.clock.forward(minutes=15)
    run.refresh_from_db()
    _ends(world, run, words="Overloaded", status=529)
    look(world)
    assert (_profile().holds, len(_told("agent.held"))) == (1, 2)


def test_a_later_reset_that_another_run_hears_of_is_taken_over(world, project):
    first, second = start(world, project, "1"), start(world, project, "2")
    _ends(world, first, words="Rate limited")
    look(world)
    assert _profile().held_until == START + timedelta(minutes=5)
    _ends(world, second)
    look(world)
    assert _profile().held_until == RESET + timedelta(minutes=1)


def test_try_again_now_lets_it_go_on_and_says_who_did(world, project):
    run = _turned_away(world, project)
    assert holds.try_again(world.lab, _profile(), by="anna")
    assert world.bell.looks[-1] == "demo"
    look(world)
    work(world)
    run.refresh_from_db()
    assert run.state == RunState.WORKING
    told = Notice.objects.get(kind="agent.released")
    assert (told.by, told.text) == ("anna", "Claude: tried again now")
    assert not holds.try_again(world.lab, _profile(), by="anna")


def test_a_release_of_another_hold_changes_nothing(world, project):
    _turned_away(world, project)
    before = _profile()
    world.clock.forward(minutes=1)
    AgentProfile.objects.update(held_at=world.lab.now())
    assert not holds.release(world.lab, before, "tried again now")
    assert _profile().hold == "limit"


def test_held_runs_go_on_oldest_first_and_before_anything_new(world, project):
    Settings.current()
    Settings.objects.update(session_cap=2)
    runs = [start(world, project, key) for key in ("1", "2")]
    _ends(world, runs[1])
    look(world)
    world.clock.forward(minutes=1)
    _ends(world, runs[0])
    look(world)
    ready(world, "3")
    holds.try_again(world.lab, _profile(), by="anna")
    Settings.objects.update(session_cap=1)
    start_requests.request(world.lab, project, "anna", "3")
    look(world)
    work(world)
    states = list(Run.objects.order_by("pk").values_list("issue_key", "state"))
    assert states == [("1", "held"), ("2", "working")]


def test_a_held_run_takes_no_slot_but_its_issue(world, project):
    Settings.current()
    Settings.objects.update(session_cap=1)
    _turned_away(world, project)
    other = make.a_project("other", agent=make.an_agent("Other"))
    world.tracker.add_root("other")
    assert start(world, other, "1").slot == 1
    again = press_start(world, project, wanted="7")
    assert again.run is None


def test_a_profile_that_cannot_resume_gets_its_task_again(world, project):
    AgentProfile.objects.update(argv=["tool", "{prompt}"])
    run = _turned_away(world, project)
    holds.try_again(world.lab, _profile(), by="anna")
    look(world)
    work(world)
    run.refresh_from_db()
    program, words = world.sessions.orders[run.session].argv
    assert program == "tool"
    assert words == f"{hold_rules.EARLIER_WORK}\n\n{run.prompt}"
    assert run.prompt.startswith("You work unattended on issue 7")


def test_a_session_that_is_not_taken_up_again_gets_the_task_again(world, project):
    run = _turned_away(world, project)
    holds.try_again(world.lab, _profile(), by="anna")
    world.sessions.vanish_at_once = True
    look(world)
    work(world)
    run.refresh_from_db()
    assert (run.state, run.agent_session) == (RunState.HELD, "")
    world.sessions.vanish_at_once = False
    look(world)
    work(world)
    run.refresh_from_db()
    assert run.state == RunState.WORKING
    assert world.sessions.orders[run.session].argv[-1].startswith(hold_rules.EARLIER_WORK)


def test_a_program_that_ends_before_it_took_its_session_up_gets_the_task_again(world, project):
    run = _turned_away(world, project)
    holds.try_again(world.lab, _profile(), by="anna")
    look(world)
    work(world)
    run.refresh_from_db()
    _prints(world, run, x.claude_refused(None, "No conversation found with session ID"))
    world.sessions.end(run.session, 1)
    look(world)
    run.refresh_from_db()
    assert (run.outcome, run.agent_session) == ("", "")
    look(world)
    work(world)
    run.refresh_from_db()
    assert run.state == RunState.WORKING
    _prints(world, run, x.claude_refused(None, "it broke"))
    world.sessions.end(run.session, 1)
    look(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.DIED


def test_a_task_that_cannot_be_started_again_is_a_failure_that_keeps_everything(world, project):
    AgentProfile.objects.update(argv=["tool", "{prompt}"])
    run = _turned_away(world, project)
    Run.objects.update(agent_session="")
    holds.try_again(world.lab, _profile(), by="anna")
    world.sessions.vanish_at_once = True
    look(world)
    work(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.FAILED
    assert run.reason.startswith("could not be started again: the agent exited immediately")
    assert Path(run.worktree).is_dir()


@pytest.mark.parametrize("what", ["worktree", "branch"])
def test_a_run_whose_place_is_gone_ends_and_says_so(world, project, what):
    run = _turned_away(world, project)
    if what == "worktree":
        Path(run.worktree).rmdir()
    else:
        world.repos.heads[project.repo(world.lab.paths)].clear()
    holds.try_again(world.lab, _profile(), by="anna")
    look(world)
    work(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.INTERRUPTED
    assert f"its {what} " in run.reason
    project.refresh_from_db()
    assert project.streak == 0


def test_a_tmux_that_fails_leaves_a_held_run_for_the_next_look(world, project):
    run = _turned_away(world, project)
    holds.try_again(world.lab, _profile(), by="anna")
    world.sessions.broken_start = "no room"
    look(world)
    work(world)
    run.refresh_from_db()
    assert (run.state, run.agent_session) == (RunState.HELD, x.SESSION)
    world.sessions.broken_start = ""
    look(world)
    work(world)
    run.refresh_from_db()
    assert run.state == RunState.WORKING


def test_a_session_that_could_not_be_ended_is_ended_before_the_run_goes_on(world, project):
    run = start(world, project)
    _ends(world, run)
    world.sessions.broken_kill = "busy"
    look(world)
    holds.try_again(world.lab, _profile(), by="anna")
    look(world)
    run.refresh_from_db()
    assert run.state == RunState.HELD
    world.sessions.broken_kill = ""
    look(world)
    work(world)
    look(world)
    work(world)
    run.refresh_from_db()
    assert run.state == RunState.WORKING
    assert world.sessions.all[run.session].alive


def test_an_interactive_agent_whose_turn_ended_in_an_error_is_held_while_it_lives(world, project):
    AgentProfile.objects.update(mode="interactive", output="")
    run = start(world, project)
    Run.objects.update(
        trouble="overload", turn_ended_at=START, agent_note="Overloaded", agent_session="abc"
    )
    world.clock.forward(seconds=30)
    look(world)
    run.refresh_from_db()
    assert (run.state, run.held_at) == (RunState.HELD, START)
    assert world.sessions.all == {}
    assert run.trouble == "overload"


def test_an_agent_that_still_works_at_its_turn_is_not_held(world, project):
    AgentProfile.objects.update(mode="interactive", output="")
    run = start(world, project)
    Run.objects.update(trouble="overload", turn_ended_at=None)
    look(world)
    run.refresh_from_db()
    assert run.state == RunState.WORKING


def test_stop_ends_a_held_run_and_keeps_its_work(world, project):
    run = _turned_away(world, project)
    assert stop_project(world.lab, project, "anna") == 1
    run.refresh_from_db()
    assert (run.outcome, run.worktree_fate) == (Outcome.STOPPED, "kept")
    world.clock.forward(hours=3)
    look(world)
    assert world.queue.launches == []


def test_stop_while_a_held_run_is_being_started_again_wins(world, project):
    run = _turned_away(world, project)
    holds.try_again(world.lab, _profile(), by="anna")
    look(world)
    Run.objects.get(pk=run.pk)
    run.refresh_from_db()
    assert run.is_resuming
    begun = world.lab.sessions.start

    def stopped_meanwhile(order):  # type: ignore[no-untyped-def]
        stop.stop(world.lab, Run.objects.get(pk=run.pk), "anna")
        begun(order)

    world.sessions.start = stopped_meanwhile
    work(world)
    run.refresh_from_db()
    assert (run.outcome, world.sessions.all) == (Outcome.STOPPED, {})
    assert run.settled_at is not None


def test_a_run_that_was_stopped_is_not_held(world, project):
    run = start(world, project)
    stop.stop(world.lab, Run.objects.get(pk=run.pk), "anna")
    host = Host.objects.get(name="local")
    refused = Refused(Trouble.LIMIT, "limit")
    assert not holds.hold(world.lab, run, refused, {}, host.lease_number)
    assert _profile().hold == ""


def test_a_tick_that_lost_its_lease_holds_nothing(world, project):
    run = start(world, project)
    host = Host.objects.get(name="local")
    assert not holds.hold(world.lab, run, Refused(Trouble.LIMIT, ""), {}, host.lease_number - 1)
    run.refresh_from_db()
    assert run.state == RunState.WORKING


def test_a_process_killed_between_resume_and_session_leaves_the_run_held(world, project):
    run = _turned_away(world, project)
    holds.try_again(world.lab, _profile(), by="anna")
    look(world)
    Run.objects.filter(pk=run.pk).update(launcher="boot:9:9", launch_deadline=START)
    world.dead_processes.add("boot:9:9")
    world.queue.launches.clear()
    look(world)
    run.refresh_from_db()
    assert run.outcome == ""
    assert Path(run.worktree).is_dir()
    look(world)
    work(world)
    run.refresh_from_db()
    assert run.state == RunState.WORKING


def test_carrying_a_resume_out_twice_starts_one_session(world, project):
    run = _turned_away(world, project)
    holds.try_again(world.lab, _profile(), by="anna")
    look(world)
    (asked,) = world.queue.launches
    launch.carry_out(world.lab, asked)
    launch.carry_out(world.lab, asked)
    assert len(world.sessions.all) == 1
    run.refresh_from_db()
    assert (run.state, run.resumes) == (RunState.WORKING, 1)


def test_two_passes_resume_a_held_run_once(world, project):
    run = _turned_away(world, project)
    holds.try_again(world.lab, _profile(), by="anna")
    under_way = passing(world, Host.objects.get(name="local").lease_number)
    first = Run.objects.select_related("project", "profile").get(pk=run.pk)
    second = Run.objects.select_related("project", "profile").get(pk=run.pk)
    world.lab.sessions.look()
    Host.objects.update(lease_owner=world.lab.process, lease_expires_at=START + timedelta(hours=1))
    room = resuming.Room(set(), 0, 5)
    assert resuming.resume(under_way, [first], room) == 1
    assert resuming.resume(under_way, [second], room) == 0


def test_sweep_and_discard_leave_a_held_run_its_branch(world, project):
    run = _turned_away(world, project)
    world.repos.merged_into.setdefault("main", set()).add(run.branch)
    sweep.carry_out(world.lab, project.pk)
    with pytest.raises(DiscardRefused) as refused:
        discard(world.lab, project, run.branch, "anna")
    assert refused.value.code == "owned"
    project.refresh_from_db()
    assert project.parked == 0
    assert Path(run.worktree).is_dir()


@pytest.mark.long
def test_a_limit_in_the_night_costs_no_issue_and_work_goes_on_after_the_reset(world, project):
    """Automatic work on five issues, one at a time, and a limit that begins with the second."""
    for key in "12345":
        ready(world, key)
    Project.objects.update(parallel_runs=2)
    project.refresh_from_db()
    auto.switch(world.lab, project, is_on=True, by="anna")
    look(world)
    work(world)
    assert set(Run.objects.values_list("issue_key", flat=True)) == {"1", "2"}
    for run in Run.objects.all():
        _ends(world, run)
    for _ in range(10):
        look(world)
        work(world)
        world.clock.forward(minutes=10)
    assert Run.objects.count() == Run.objects.held().count() == 2
    project.refresh_from_db()
    assert (project.streak, project.parked, project.is_auto) == (0, 0, True)
    world.clock.forward(minutes=30)
    for _ in range(6):
        look(world)
        work(world)
        for run in Run.objects.working():
            world.tracker.add_pull("demo", run.branch)
        world.clock.forward(minutes=2)
    assert sorted(Run.objects.values_list("issue_key", "outcome")) == [
        (key, "succeeded") for key in "12345"
    ]
    assert Notice.objects.filter(kind="run.ended").count() == 5


def test_a_tick_over_held_runs_asks_no_more_than_one_without(
    world, project, django_assert_max_num_queries
):
    _turned_away(world, project)
    with django_assert_max_num_queries(19):
        look(world)


def test_an_agent_that_is_held_is_not_tried_by_a_clock_that_was_wrong(world, project):
    _turned_away(world, project)
    far = START + timedelta(days=400)
    AgentProfile.objects.update(held_until=far)
    tick.tick(world.lab)
    assert _profile().hold == ""


def test_a_log_in_that_is_seen_again_releases_what_waited_for_it(world, project):
    _turned_away(world, project, words="Invalid API key · Please run /login", status=401)
    AgentProfile.objects.update(login_command=["claude", "auth", "status"], is_logged_in=False)
    assert logins.ask(world.lab, _profile()) is True
    assert (_profile().hold, _profile().holds) == ("", 0)
    assert _told("agent.released") == ["Claude: logged in again"]


def test_a_log_in_says_nothing_about_a_limit(world, project):
    _turned_away(world, project)
    AgentProfile.objects.update(login_command=["claude", "auth", "status"], is_logged_in=False)
    logins.ask(world.lab, _profile())
    assert _profile().hold == "limit"


def test_another_model_releases_what_was_refused_one_and_is_used(world, project):
    agent = _profile()
    Settings.current()
    Settings.objects.update(agent=agent)
    Project.objects.update(agent=None)
    project.refresh_from_db()
    words = "There's an issue with the selected model (b). It may not exist"
    run = _turned_away(world, project, words=words, status=404)
    agent_choice.choose(world.lab, agent_id=agent.pk, model="a", effort="", by="anna")
    assert _profile().hold == ""
    look(world)
    work(world)
    run.refresh_from_db()
    assert (run.state, run.model) == (RunState.WORKING, "a")
    assert "a" in world.sessions.orders[run.session].argv


class Killed(BaseException):
    """The process ended here."""


def test_a_process_killed_after_a_stop_in_the_middle_of_a_resume_leaves_no_session(world, project):
    run = _turned_away(world, project)
    holds.try_again(world.lab, _profile(), by="anna")
    look(world)
    begun = world.lab.sessions.start

    def dies(order):  # type: ignore[no-untyped-def]
        stop.stop(world.lab, Run.objects.get(pk=run.pk), "anna")
        look(world)
        begun(order)
        raise Killed

    world.sessions.start = dies
    with pytest.raises(Killed):
        work(world)
    world.sessions.start = begun
    world.dead_processes.add(world.lab.process)
    look(world)
    assert (world.sessions.all, Run.objects.count()) == ({}, 1)
    run.refresh_from_db()
    assert (run.outcome, run.worktree_fate) == (Outcome.STOPPED, "kept")


def test_a_held_run_of_another_host_takes_no_room_of_all(world, project):
    run = _turned_away(world, project)
    Host.objects.create(name="elsewhere")
    Run.objects.filter(pk=run.pk).update(host="elsewhere")
    settings = Settings.current()
    assert reserve.room(world.lab, settings, world.lab.sessions.look()).elsewhere == 0
    Run.objects.filter(pk=run.pk).update(state="working", held_at=None)
    assert reserve.room(world.lab, settings, world.lab.sessions.look()).elsewhere == 1


def test_what_several_programs_of_one_run_used_is_added_up(world, project):
    run = _turned_away(world, project)
    before = run.tokens_out or 0
    holds.try_again(world.lab, _profile(), by="anna")
    look(world)
    work(world)
    run.refresh_from_db()
    _prints(world, run, x.claude_init(), x.claude_result())
    world.tracker.add_pull("demo", "afk/7")
    world.sessions.end(run.session, 0)
    look(world)
    run.refresh_from_db()
    assert run.outcome == Outcome.SUCCEEDED
    assert run.tokens_out > before
    assert run.turns == 3  # one before it was held, two after


def test_nothing_starts_in_the_look_that_held_the_agent_for_new_sessions(world, project):
    Settings.current()
    Settings.objects.update(agent=_profile())
    Project.objects.update(agent=None, parallel_runs=3)
    project.refresh_from_db()
    ready(world, "1")
    auto.switch(world.lab, project, is_on=True, by="anna")
    look(world)
    work(world)
    run = Run.objects.get()
    for key in "2345":
        ready(world, key)
    _ends(world, run)
    asked = start_requests.request(world.lab, project, "anna", "3")
    look(world)
    assert Run.objects.count() == 1
    asked.refresh_from_db()
    assert asked.answer == "agent_held"


def test_a_run_that_was_read_before_its_agent_was_held_again_is_not_resumed(world, project):
    run = _turned_away(world, project)
    holds.try_again(world.lab, _profile(), by="anna")
    stale = Run.objects.select_related("project", "profile").get(pk=run.pk)
    holds.hold_start(world.lab, _profile(), Refused(Trouble.LIMIT, "again"))
    under_way = passing(world, Host.objects.get(name="local").lease_number)
    Host.objects.update(lease_owner=world.lab.process, lease_expires_at=START + timedelta(hours=1))
    assert resuming.resume(under_way, [stale], resuming.Room(set(), 0, 5)) == 0


def test_a_program_that_cannot_be_started_again_is_tried_more_and_more_rarely(world, project):
    run = _turned_away(world, project)
    holds.try_again(world.lab, _profile(), by="anna")
    world.sessions.broken_start = "no room"
    for _ in range(20):
        look(world)
        work(world)
    run.refresh_from_db()
    assert (run.state, run.resume_failures) == (RunState.HELD, 2)
    assert run.retry_at == world.clock.now + timedelta(minutes=1)
    assert len(_told("run.troubled")) == 1
    assert "no room" in wait_of(run, world.clock.now).text
    world.clock.forward(seconds=61)
    world.sessions.broken_start = ""
    look(world)
    work(world)
    run.refresh_from_db()
    assert run.state == RunState.WORKING


def test_a_program_that_never_comes_up_again_has_failed(world, project):
    AgentProfile.objects.update(argv=["claude", "--session-id", "{session}", "{prompt}"])
    run = _turned_away(world, project)
    holds.try_again(world.lab, _profile(), by="anna")
    for _ in range(12):
        world.clock.forward(seconds=100)
        look(world)
        work(world)
        run.refresh_from_db()
        if run.state == RunState.WORKING:
            world.sessions.end(run.session, 1)
    run.refresh_from_db()
    assert run.outcome in (Outcome.DIED, Outcome.FAILED)
    assert run.resumes <= 5
    assert Path(run.worktree).is_dir()


def test_a_run_whose_profile_was_deleted_goes_on_with_the_agent_of_its_project(world, project):
    run = _turned_away(world, project)
    other = make.an_agent("Other", argv=ONE_SHOT, mode="one_shot", output="claude_stream_json")
    Project.objects.update(agent=other)
    _profile().delete()
    look(world)
    work(world)
    run.refresh_from_db()
    assert (run.state, run.profile, run.agent) == (RunState.WORKING, other, "Other")


def test_another_trouble_is_told_outside_again(world, project):
    _turned_away(world, project)
    profile = _profile()
    holds.try_again(world.lab, profile, by="anna")
    look(world)
    work(world)
    run = Run.objects.get()
    _ends(world, run, "Credit balance is too low", 400)
    look(world)
    assert _profile().hold == Trouble.CREDIT
    assert len(_told("agent.held")) == 2


def test_what_no_calendar_holds_keeps_nobody_from_being_judged(world, project):
    run = start(world, project)
    _ends(world, run, "usage limit: try again in 9000000 days")
    look(world)
    run.refresh_from_db()
    assert run.state == RunState.HELD

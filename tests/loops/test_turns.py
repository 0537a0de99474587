"""The turns of a loop as labsite decides and stores them; the runner is played by the test."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from decimal import Decimal

import pytest

from runs.core.states import CompletionPolicy, NoticeKind, Outcome
from runs.lifecycle import outcomes
from runs.loops import acts, stored, turns
from runs.loops.acts import LoopRefused
from runs.loops.prompts import compose
from runs.loops.results import Result
from runs.models import (
    AgentProfile,
    CheckTerms,
    Host,
    Loop,
    LoopMemory,
    LoopRole,
    LoopTask,
    LoopTerms,
    Notice,
    Project,
    Run,
)
from tests import make
from tests.fakes import World
from tests.loops.desk import Desk, desk_of, project_of, topic
from tests.world.stories import look, start

pytestmark = pytest.mark.django_db(transaction=True)
DONE = topic("LOOP_COMPLETE")


@pytest.fixture
def project(world: World) -> Project:
    return project_of(world)


@pytest.fixture
def desk(world: World, project: Project) -> Desk:
    return desk_of(world, project)


def told(kind: NoticeKind) -> list[str]:
    return list(Notice.objects.filter(kind=kind).order_by("pk").values_list("text", flat=True))


@pytest.mark.row("RALPH-01", "RALPH-04", "RALPH-10", "RALPH-45", "C-47", level="contract")
def test_a_run_of_a_project_with_loops_runs_turns_and_no_agent(world, desk):
    (order,) = world.sessions.orders.values()
    assert order.argv == [str(world.lab.paths.bin / "labctl"), "turns"]
    assert (desk.run.is_loop, desk.run.mode) == (True, "one_shot")
    first = desk.begin()
    assert (first.do, first.content["number"], first.content["role"]) == ("turn", 1, "coordinator")
    assert first.content["argv"] == ["turner", first.content["prompt"]]
    assert "> # Implement:" in first.content["prompt"]


@pytest.mark.row("RALPH-13", "RALPH-23", "RALPH-26", "C-14", level="contract")
def test_a_completion_ends_the_run_well_with_code_0(world, desk):
    desk.begin()
    desk.finish(topic("build.done"))
    last = desk.finish(DONE)
    assert (last.do, last.content["code"]) == ("end", 0)
    desk.run.refresh_from_db()
    assert (desk.run.outcome, desk.run.turns) == (Outcome.SUCCEEDED, 2)
    assert desk.run.reason == "its loop was completed after 2 turns and 0 min (loop code 0)"
    assert (desk.loop.end, desk.loop.exit_code) == ("completed", 0)
    assert told(NoticeKind.LOOP_TURN) == [
        "turn 1 begins (coordinator)",
        "turn 1 (coordinator) ended after 1 s",
        "turn 2 begins (coordinator)",
        "turn 2 (coordinator) ended after 1 s",
    ]


def test_the_same_report_twice_stores_one_turn_and_gives_the_same_order(desk):
    first = desk.begin()
    assert desk.begin() == first
    second = desk.finish(topic("build.done"))
    again = desk.step(1, 1, result=Result(exit_code=1, seconds=9.0))
    assert again == second
    assert desk.loop.turns.count() == 2
    assert desk.loop.turns.get(number=1).exit_code == 0


@pytest.mark.row("RALPH-31", "RALPH-07", level="contract")
def test_each_stored_prompt_can_be_composed_again(world, desk):
    desk.begin()
    desk.writes("note-A")
    order = desk.finish(topic("build.done", "first"))
    assert order.content["prompt"].startswith("## NOTES OF THE TURNS BEFORE\n\nnote-A\n")
    assert "`build.done`: first" in order.content["prompt"]
    assert compose(stored.facts(desk.turn.facts)) == order.content["prompt"]


@pytest.mark.row("RALPH-32", "RALPH-33", level="contract")
def test_long_notes_are_cut_once(desk):
    desk.begin()
    desk.writes("\n".join(f"line {number}" for number in range(4000)))
    prompt = desk.finish(topic("build.done")).content["prompt"]
    assert prompt.count("are left out here") == 1
    assert "line 3999" in prompt
    assert "line 0\n" not in prompt


@pytest.mark.row("RALPH-14", "C-52", level="contract")
def test_the_most_turns_end_it_with_code_2_and_count_as_a_failure(world):
    project = project_of(world, max_turns=3)
    desk = desk_of(world, project)
    desk.begin()
    for _ in range(2):
        assert desk.finish(topic("build.done", str(_))).do == "turn"
    assert desk.finish(topic("build.done", "3")).content["code"] == 2
    desk.run.refresh_from_db()
    project.refresh_from_db()
    assert (desk.run.outcome, desk.loop.end, project.streak) == (Outcome.LIMIT_REACHED, "turns", 1)


def test_what_is_left_of_a_limit_is_told_once_from_eighty_percent_on(world):
    desk = desk_of(world, project_of(world, max_turns=10, max_seconds=3600))
    prompts = [desk.begin().content["prompt"]]
    for number in range(9):
        if number == 8:
            world.clock.forward(seconds=3000)
        prompts.append(desk.finish(topic("build.done", str(number))).content["prompt"])
    told = {n: prompt for n, prompt in enumerate(prompts, 1) if "## WHAT IS LEFT" in prompt}
    assert list(told) == [9, 10]
    assert "- 2 of 10 turns\n" in told[9]
    assert "minutes" not in told[9]
    assert "- 10 of 60 minutes\n" in told[10]
    assert "turns\n" not in told[10].partition("## WHAT IS LEFT")[2].partition("## ")[0]


@pytest.mark.row("RALPH-20", "C-15", level="contract")
def test_stop_after_this_turn_ends_it_as_stopped_with_code_1(world, desk):
    desk.begin()
    acts.ask_stop(world.lab, desk.run, by="anna")
    assert world.sessions.woken == [desk.loop.folder(world.lab.paths)]
    with pytest.raises(LoopRefused, match="anna has asked for it already"):
        acts.ask_stop(world.lab, desk.run, by="ben")
    assert desk.finish(topic("build.done")).content["code"] == 1
    desk.run.refresh_from_db()
    assert (desk.run.outcome, desk.loop.exit_code) == (Outcome.STOPPED, 1)
    assert desk.run.reason.startswith("its loop was stopped between two turns by anna")


@pytest.mark.row("RALPH-59", "RALPH-60", "RALPH-63", "RALPH-81", level="contract")
def test_a_loop_that_stays_idles_without_work_and_wakes_for_a_person(world):
    desk = desk_of(world, project_of(world, is_persistent=True))
    desk.begin()
    desk.finish(DONE)
    look(world)
    idle = desk.step(1, 1)
    assert (idle.do, idle.content["seconds"]) == ("wait", 300.0)
    assert "it looks again after 300 s, or when somebody writes" in idle.content["why"]
    acts.guide(world.lab, desk.run, "work on #50", by="anna")
    order = desk.step(1, 1)
    assert order.do == "turn"
    assert "work on #50" in order.content["prompt"]
    assert "Persistent mode: loop staying alive" in order.content["prompt"]


@pytest.mark.row("RALPH-71", level="contract")
def test_a_cooldown_stands_before_each_turn_and_a_message_cuts_it_short(world):
    desk = desk_of(world, project_of(world, cooldown_seconds=10))
    desk.begin()
    pause = desk.finish(topic("build.done"))
    assert (pause.do, pause.content["seconds"]) == ("wait", 10.0)
    world.clock.forward(seconds=4)
    assert desk.step(1, 1).content["seconds"] == 6.0
    acts.guide(world.lab, desk.run, "hurry", by="anna")
    assert desk.step(1, 1).do == "turn"


def test_no_turn_begins_while_the_worker_is_away(world, desk):
    desk.begin()
    Host.objects.update(last_tick_at=world.clock() - timedelta(minutes=2))
    run = Run.objects.select_related("project", "profile").get(pk=desk.run.pk)
    answer = turns.step(world.lab, run, turns.Report(1, 1, Result(exit_code=0)))
    assert answer.do == "wait"
    assert "worker is away" in answer.content["why"]
    assert desk.loop.turns.filter(ended_at=None).count() == 0


@pytest.mark.row("C-60", level="contract")
def test_a_session_that_is_gone_without_a_word_died(world, desk):
    desk.begin()
    world.sessions.end(desk.run.session, status=None)
    look(world)
    desk.run.refresh_from_db()
    assert desk.run.outcome == Outcome.DIED
    assert "no word of its loop" in desk.run.reason
    assert (desk.loop.end, desk.loop.exit_code) == ("lost", None)
    assert desk.turn.trouble == "its run ended before it did"


def test_an_open_pull_request_does_not_end_a_loop_that_goes_on(world, desk):
    desk.begin()
    world.tracker.add_pull("demo", desk.run.branch)
    look(world)
    desk.run.refresh_from_db()
    assert desk.run.outcome == ""


def test_a_project_whose_work_gates_prove_has_no_loops_yet(world, project):
    Project.objects.update(policy=CompletionPolicy.GATES)
    CheckTerms.objects.create(
        project=project, require_pytest_for_code_changes=False, disabled=["review"]
    )
    project.refresh_from_db()
    run = start(world, project)
    assert not Loop.objects.filter(run=run).exists()
    assert "works without a loop" in told(NoticeKind.RUN_WARNED)[0]


@pytest.mark.row("RALPH-87", level="contract")
def test_prompts_of_consecutive_issues_share_only_memory_text(world, project):
    first = desk_of(world, project)
    first.begin()
    before = stored.facts(first.turn.facts)
    first.writes("note of the first")
    acts.remember(world.lab, first.run, "the build needs make", "turner")
    acts.add_task(world.lab, first.loop, "left over")
    acts.guide(world.lab, first.run, "mind the table", by="anna")
    first.finish(topic("build.done", "halfway"))
    acts.acknowledge(world.lab, first.loop)
    first.finish(DONE)
    look(world)
    second = desk_of(world, project, "8")
    second.begin()
    after = stored.facts(second.turn.facts)
    assert after == dataclasses.replace(
        before,
        objective=second.loop.objective,
        memories=["the build needs make"],
        branch=second.run.branch,
    )
    assert "#7" not in compose(after)


@pytest.mark.parametrize(("own", "told"), [("high", "high"), ("", "low")])
def test_the_effort_of_a_role_is_over_that_of_the_run(world, project, own, told):
    agent = project.agent
    agent.argv, agent.efforts = ["turner", "{effort}", "{prompt}"], ["low", "high"]
    agent.save()
    roles = {"name": "builder", "instructions": "Build.", "subscriptions": ["build.task"]}
    LoopRole.objects.create(project=project, **roles, effort=own)
    desk = desk_of(world, project)
    Run.objects.update(effort="low")
    assert desk.begin().content["argv"][1] == "low"
    assert desk.finish(topic("build.task")).content["argv"][1] == told


@pytest.mark.row("RALPH-35", "RALPH-39", "RALPH-54", level="contract")
def test_the_next_issue_begins_with_nothing_but_the_memories(world, project):
    first = desk_of(world, project)
    first.begin()
    first.writes("note of the first")
    acts.remember(world.lab, first.run, "the build needs make", "turner")
    acts.add_task(world.lab, first.loop, "left over")
    first.finish(DONE)
    look(world)
    second = desk_of(world, project, "8")
    prompt = second.begin().content["prompt"]
    assert "the build needs make" in prompt
    assert "note of the first" not in prompt
    assert "left over" not in prompt
    assert LoopMemory.objects.count() == 1


@pytest.mark.parametrize("is_killed", [False, True], ids=["asked between turns", "run stopped"])
def test_a_report_that_loses_a_race_with_a_stop_counts_nothing_twice(world, desk, is_killed):
    """Somebody stops it between the read of a report and its write; the report is taken once more."""
    desk.begin()
    races = []

    def mask(text: str) -> str:
        if not races:
            races.append(text)
            run = Run.objects.select_related("project").get(pk=desk.run.pk)
            if is_killed:
                outcomes.record(desk.lab, run, Outcome.STOPPED, "stopped", by="anna")
            else:
                acts.ask_stop(desk.lab, run, by="anna")
        return text

    world.lab = dataclasses.replace(world.lab, mask=mask)
    last = desk.finish(DONE if is_killed else topic("build.done"))
    assert (last.do, last.content["code"]) == ("end", 1)
    assert races
    desk.run.refresh_from_db()
    assert (desk.run.outcome, desk.loop.end) == (Outcome.STOPPED, "stopped")
    assert (desk.run.turns or 0, desk.loop.turns.count()) == (0 if is_killed else 1, 1)


def test_another_machine_is_not_asked_for_what_lies_on_this_one(world, desk):
    desk.begin()
    Run.objects.update(host="elsewhere")
    run = Run.objects.select_related("project", "profile").get(pk=desk.run.pk)
    answer = turns.step(world.lab, run, turns.Report(1, 1, Result(exit_code=0)))
    assert "another machine" in answer.content["why"]
    assert desk.turn.ended_at is None


def test_an_agent_whose_account_is_held_waits_with_the_next_turn(world, desk):
    desk.begin()
    now = world.clock()
    AgentProfile.objects.update(
        hold="limit", hold_note="usage limit", held_at=now, held_until=now + timedelta(minutes=3)
    )
    answer = desk.finish(topic("build.done"))
    assert (answer.do, answer.content["seconds"]) == ("wait", 180.0)
    assert "Turner cannot be used: usage limit" in answer.content["why"]


def test_what_no_database_keeps_is_taken_out_of_what_agents_and_people_say(world, desk):
    desk.begin()
    said = "a\ud83d\0b"
    assert acts.remember(world.lab, desk.run, said, "turner").text == "a?b"
    assert acts.add_task(world.lab, desk.loop, said).text == "a?b"
    assert acts.set_task(world.lab, desk.loop, 1, LoopTask.State.OPEN, said).note == "a?b"
    assert acts.guide(world.lab, desk.run, said, by="anna").text == "a?b"
    broken = Result(exit_code=None, trouble=said, seconds=1.0)
    order = desk.finish('{"topic": "build.done", "payload": "\\ud83d\\u0000"}', result=broken)
    assert order.do == "turn"
    assert "\0" not in order.content["prompt"]
    assert order.content["prompt"].encode()


def test_an_agent_that_was_deleted_gives_its_turn_back_and_stop_is_heard(world, desk):
    desk.begin()
    desk.finish(topic("build.done", "first"))
    AgentProfile.objects.all().delete()
    assert "its agent is not there any more" in desk.step(1, 1).content["why"]
    other = make.an_agent("Other", argv=["other", "{prompt}"], mode="one_shot")
    LoopTerms.objects.update(profile=other)
    order = desk.step(1, 1)
    assert (order.content["argv"][0], order.content["number"]) == ("other", 3)
    assert "`build.done`: first" in order.content["prompt"]
    AgentProfile.objects.all().delete()
    acts.ask_stop(world.lab, desk.run, by="anna")
    assert desk.step(1, 1).content["code"] == 1


TURNED_AWAY = (
    '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"num_turns":1,'
    '"total_cost_usd":0.7,"result":"You\'ve hit your limit · resets 5pm (UTC)"}\n'
)


def test_a_turn_that_its_account_turned_away_is_run_again_and_its_wait_is_no_time(world, project):
    LoopTerms.objects.update(max_seconds=600, max_cost=Decimal(1))
    project.agent.output = "claude_stream_json"
    project.agent.save()
    LoopRole.objects.create(
        project=project, name="builder", instructions="Build.", subscriptions=["build.task"]
    )
    desk = desk_of(world, project)
    desk.begin()
    desk.finish(topic("build.task", "wire it"))
    refused = Result(exit_code=1, seconds=2.0)
    wait = desk.finish(output=TURNED_AWAY, result=refused)
    assert wait.do == "wait"
    held = AgentProfile.objects.get()
    assert held.held_until is not None
    assert Notice.objects.filter(kind=NoticeKind.AGENT_HELD).count() == 1
    assert told(NoticeKind.RUN_TROUBLED) == []
    acts.guide(world.lab, desk.run, "hurry", by="anna")  # which its account does not heed
    assert desk.step(2, 1).do == "wait"
    world.clock.now = held.held_until + timedelta(seconds=1)
    AgentProfile.objects.update(hold="", hold_note="", held_at=None, held_until=None)
    again = desk.step(2, 1)
    assert (again.content["role"], again.content["number"]) == ("builder", 3)
    assert "wire it" in again.content["prompt"]
    assert desk.finish(output=TURNED_AWAY, result=refused).content["code"] == 2
    assert desk.loop.end == "cost"
    used = list(desk.loop.turns.order_by("id").values_list("used_turns", "used_cost"))
    assert used == [(1, Decimal(0)), (1, Decimal("0.7")), (1, Decimal("1.4"))]
    assert (desk.turn.used_seconds or 0) < 60, "hours passed, in which its account was held"


def test_a_role_with_another_agent_gets_the_environment_of_that_alone(world, project):
    project.agent.env = {"KEY_OF_FIRST": "one-secret-1"}
    project.agent.save()
    other = make.an_agent("Other", argv=["other", "{prompt}"], mode="one_shot", env={"B": "2"})
    LoopRole.objects.create(
        **{"project": project, "name": "builder", "instructions": "Build.", "profile": other},
        subscriptions=["build.task"],
    )
    desk = desk_of(world, project)
    (session,) = world.sessions.orders.values()
    assert "KEY_OF_FIRST" not in session.env
    assert desk.begin().content["env"] == {"KEY_OF_FIRST": "one-secret-1"}
    assert desk.finish(topic("build.task")).content["env"] == {"B": "2"}


def test_a_flood_of_events_and_tasks_makes_no_endless_prompt(world, desk):
    desk.begin()
    for number in range(100):
        acts.add_task(world.lab, desk.loop, f"task {number} " + "x" * 3000)
    flood = [topic(f"build.e{number}", "y" * 8000) for number in range(300)]
    order = desk.finish(*flood)
    assert len(order.content["prompt"]) < 70_000
    assert "build.e299" in order.content["prompt"]
    assert "98 more: `labctl task list`" in order.content["prompt"]


def test_a_clock_that_is_set_back_makes_no_pause_longer(world):
    desk = desk_of(world, project_of(world, cooldown_seconds=60))
    desk.begin()
    desk.finish(topic("build.done"))
    look(world)
    world.clock.jump(days=-2)
    look(world)
    assert desk.step(1, 1).content["seconds"] <= 60


def test_a_loop_that_is_over_before_its_start_was_seen_has_started_all_the_same(desk):
    """Its first turn may end within the moment after which the launcher looks again."""
    Run.objects.update(state="starting", started_at=None)
    desk.begin()
    assert desk.finish(DONE).content["code"] == 0
    desk.run.refresh_from_db()
    assert (desk.run.outcome, desk.run.did_start) == (Outcome.SUCCEEDED, True)

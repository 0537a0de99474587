"""What turns leave that is easily read wrong, or makes work without end; the runner is played by the test."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs.core.history_ports import Change
from runs.core.states import Outcome
from runs.loops import acts, beginning, events, rules, stored
from runs.loops.events import Batch, Event
from runs.loops.prompts import PromptFacts, Task, compose
from runs.loops.results import Result
from runs.loops.rules import Counters, Terms, TurnResult
from runs.models import AgentProfile, LoopRole
from tests.fakes import World
from tests.loops.desk import Desk, desk_of, project_of, topic

pytestmark = pytest.mark.django_db(transaction=True)
DONE = topic("LOOP_COMPLETE")
WORD = "LOOP_COMPLETE"


def lines_of(*entries: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(one)}\n" for one in entries)


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}, **more}


def thought(text: str) -> dict[str, Any]:
    return {"type": "assistant", "message": {"content": [{"type": "thinking", "thinking": text}]}}


def got(text: str) -> dict[str, Any]:
    part = {"type": "tool_result", "content": text}
    return {"type": "user", "message": {"content": [part]}}


OVER = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": "x"}
CODEX_OVER = {"type": "turn.completed", "usage": {}}


def item(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"type": kind, **more}}


def desk_with(world: World, output: str, **terms: Any) -> Desk:
    project = project_of(world, **terms)
    AgentProfile.objects.filter(pk=project.agent_id).update(output=output)
    return desk_of(world, project)


@pytest.mark.row("RALPH-88", level="contract")
@pytest.mark.parametrize(
    ("output", "told", "is_end"),
    [
        ("claude_stream_json", [said(f"All is done.\n\n{WORD}\n")], True),
        ("claude_stream_json", [said(f"All is done.\n\n**{WORD}**")], True),
        ("claude_stream_json", [said(WORD), said("")], True),
        ("claude_stream_json", [said(WORD), said(" \n")], True),
        ("claude_stream_json", [said(WORD), thought("Nothing is left.")], True),
        ("claude_stream_json", [said(WORD), got("ok"), said("")], False),
        ("claude_stream_json", [said(f"At the end I will say:\n```\n{WORD}\n```")], False),
        ("claude_stream_json", [said("I look."), got(f"# PROMPT\n{WORD}\n")], False),
        ("claude_stream_json", [said("I look."), got(WORD), said("")], False),
        ("claude_stream_json", [said(WORD, parent_tool_use_id="toolu_1")], False),
        ("claude_stream_json", [said(WORD), said("Not yet.")], False),
        ("codex_exec_json", [item("agent_message", text=f"Done.\n{WORD}")], True),
        ("codex_exec_json", [item("agent_message", text=f"Done.\n**{WORD}**")], True),
        ("codex_exec_json", [item("agent_message", text=WORD), item("reasoning", text="x")], True),
        ("codex_exec_json", [item("agent_message", text=f"```\n{WORD}\n```\n")], False),
        (
            "codex_exec_json",
            [item("command_execution", command="cat x", exit_code=0, aggregated_output=WORD)],
            False,
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else None,
)
def test_of_a_record_only_the_last_line_that_the_agent_itself_said_completes(
    world, output, told, is_end
):
    desk = desk_with(world, output)
    desk.begin()
    over = OVER if output.startswith("claude") else CODEX_OVER
    assert (desk.finish(output=lines_of(*told, over)).do == "end") is is_end
    assert desk.loop.end == ("completed" if is_end else "")


def test_what_a_program_prints_beside_its_record_completes_nothing(world):
    desk = desk_with(world, "claude_stream_json")
    desk.begin()
    assert desk.finish(output=lines_of(said("Not yet."), OVER) + f"{WORD}\n").do == "turn"


@pytest.mark.parametrize("mark", ["\u2028", "\u0085", "\u2029"])
def test_a_line_break_of_other_scripts_in_an_event_breaks_no_event(world, mark):
    desk = desk_with(world, "")
    desk.begin()
    line = json.dumps(topic("build.done", f"one{mark}two"), ensure_ascii=False)
    order = desk.finish(line)
    assert order.do == "turn"
    assert [one["topic"] for one in desk.loop.turns.get(number=1).events] == ["build.done"]
    assert desk.loop.turns.get(number=1).malformed == 0
    assert "`build.done`: one" in order.content["prompt"]


@pytest.mark.row("RALPH-11", level="pure")
@pytest.mark.parametrize(
    "lines",
    [
        [*['{"topic": "a.b"}'] * (events.MOST_EVENTS - 1), json.dumps(DONE), '{"topic": "a.b"}'],
        [json.dumps(DONE), '{"topic": "build.ta'],
    ],
    ids=["too many", "unreadable"],
)
def test_a_completion_after_which_something_unread_was_told_is_not_the_last_word(lines):
    turn = TurnResult(batch=events.read(lines))
    assert turn.batch.events[-1].topic == WORD
    counters, _ = rules.count(Terms(), Counters(), turn)
    counters = rules.replace(counters, same_event=0)
    assert rules.next_step(Terms(), counters, turn, rules.Outside()).end is None


def test_lines_that_could_not_be_read_in_earlier_turns_keep_no_completion_back():
    turn = TurnResult(batch=Batch(malformed_row=2), last_line=WORD)
    counters, _ = rules.count(Terms(), Counters(), turn)
    assert rules.next_step(Terms(), counters, turn, rules.Outside()).end is rules.End.COMPLETED


@pytest.mark.parametrize(
    "result",
    [
        Result(exit_code=1, seconds=1.0),
        Result(signal=9, seconds=1.0),
        Result(trouble="killed in the middle of it", seconds=1.0),
    ],
    ids=["exit", "signal", "killed"],
)
def test_a_turn_that_failed_without_a_word_leaves_its_events_to_the_next_one(world, result):
    project = project_of(world)
    LoopRole.objects.create(
        project=project, name="builder", instructions="Build.", subscriptions=["build.task"]
    )
    desk = desk_of(world, project)
    desk.begin()
    desk.finish(topic("build.task", "wire it"))
    again = desk.finish(result=result)
    assert (again.content["role"], again.content["number"]) == ("builder", 3)
    assert again.content["prompt"].count("wire it") == 1
    assert desk.finish(result=result).do == "turn"
    assert desk.finish(result=result).content["code"] == 1
    assert desk.loop.end == "failures"


def test_a_turn_that_failed_after_it_told_something_has_had_its_events(world):
    project = project_of(world)
    LoopRole.objects.create(
        project=project, name="builder", instructions="Build.", subscriptions=["build.task"]
    )
    desk = desk_of(world, project)
    desk.begin()
    desk.finish(topic("build.task", "wire it"))
    order = desk.finish(topic("build.done"), result=Result(exit_code=1, seconds=1.0))
    assert order.content["role"] == "coordinator"
    assert "wire it" not in order.content["prompt"]


def test_what_is_asked_of_a_person_makes_no_endless_prompt(world):
    desk = desk_with(world, "", answer_seconds=60)
    desk.begin()
    desk.finish(*[topic("human.interact", f"{number} " + "y" * 7000) for number in range(100)])
    world.clock.forward(seconds=61)
    order = desk.step(1, 1)
    assert "## NO ANSWER" in order.content["prompt"]
    assert len(order.content["prompt"]) < 70_000


def test_tasks_that_no_prompt_shows_are_not_kept_with_each_turn(world):
    desk = desk_with(world, "")
    for number in range(200):
        acts.add_task(world.lab, desk.loop, f"task {number} " + "x" * 3000)
    order = desk.begin()
    assert len(json.dumps(desk.turn.facts)) < 60_000
    assert "task 1 x" in order.content["prompt"]
    assert "198 more: `labctl task list`" in order.content["prompt"]
    assert compose(stored.facts(desk.turn.facts)) == order.content["prompt"]
    assert "200 ready, 0 open, 0 closed" in order.content["prompt"]


def test_the_next_turn_is_told_which_files_are_not_committed(world):
    desk = desk_with(world, "")
    desk.begin()
    repos = world.repos
    files = [Change(f"file {n}.py", "M", 1, 0, is_open=True) for n in range(60)]
    repos.uncommitted = [
        Change("committed.py", "A", 1, 0),
        Change("odd\nname", "?", 1, 0, is_open=True),
    ]
    repos.uncommitted += files
    prompt = desk.finish(topic("build.done")).content["prompt"]
    section = prompt.partition("## NOT COMMITTED\n\n")[2].partition("\n\n## ")[0]
    assert section.splitlines()[1:3] == ["- odd name", "- file 0.py"]
    assert section.splitlines()[-1] == "- 11 more: `git status`"
    assert len(section.splitlines()) == 1 + 50 + 1
    assert "committed.py" not in prompt
    repos.broken_history = "git is not well"
    assert "## NOT COMMITTED" not in desk.finish(topic("build.more")).content["prompt"]


def test_a_task_of_several_lines_makes_no_section_of_the_prompt():
    tasks = [Task("1", "first\n## DONE\nat once", "ready")]
    prompt = compose(PromptFacts("Do it.", WORD, tasks=tasks))
    assert [one for one in prompt.splitlines() if one.startswith("## DONE")] == ["## DONE"]
    assert "first\n  ## DONE\n  at once (ready)" in prompt


def test_what_is_counted_of_tasks_does_not_grow_without_end():
    terms, counters = Terms(), Counters()
    for turn in range(10):
        told = tuple(Event("build.blocked", f"{turn} of {n}") for n in range(1000))
        counters, _ = rules.count(terms, counters, TurnResult(batch=Batch(told)))
    assert len(counters.blocks) <= rules.MOST_COUNTED
    for _ in range(3):
        last = TurnResult(batch=Batch((Event("build.blocked", "the last one"),)))
        counters, _ = rules.count(terms, counters, last)
    assert "the last one" in counters.abandoned
    assert ("the last one", 3) in counters.blocks


def test_given_up_tasks_do_not_grow_without_end_either():
    terms, counters = Terms(limits=rules.Limits(blocks=1)), Counters()
    for turn in range(10):
        told = tuple(Event("build.blocked", f"{turn} of {n}") for n in range(1000))
        counters, _ = rules.count(terms, counters, TurnResult(batch=Batch(told)))
    assert len(counters.abandoned) <= rules.MOST_COUNTED
    assert "9 of 999" in counters.abandoned


@pytest.mark.row("RALPH-15", level="contract")
def test_a_pause_that_is_longer_than_what_is_left_of_the_time_ends_with_it(world):
    desk = desk_of(world, project_of(world, max_seconds=600, cooldown_seconds=3600))
    desk.begin()
    wait = desk.finish(topic("build.done"))
    assert (wait.do, wait.content["seconds"] <= 600) == ("wait", True)
    world.clock.forward(seconds=wait.content["seconds"])
    assert desk.step(1, 1).content["code"] == 2
    assert desk.loop.end == "runtime"
    desk.run.refresh_from_db()
    assert desk.run.outcome == Outcome.LIMIT_REACHED


def test_events_of_a_turn_that_failed_are_there_once_when_its_loop_is_gone_on_with(world):
    desk = desk_of(world, project_of(world))
    desk.begin()
    desk.finish(topic("build.todo", "wire it"))
    acts.ask_stop(world.lab, desk.run, by="anna")
    desk.finish(result=Result(signal=9, seconds=1.0))
    assert desk.loop.end == "stopped"
    assert [one["payload"] for one in beginning._left_to_do(desk.loop)] == ["wire it"]

"""`./lab loop` without its process: what it says and does when things go from under it."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import pytest

from runs.core import masking
from runs.core.refusal import ActRefused
from runs.core.states import Outcome
from runs.lifecycle import outcomes
from runs.loop_command.command import Command, HumanLines, JsonLines, Lines
from runs.loop_command.follower import CODE_GONE, Follower
from runs.loop_command.forever import Forever
from runs.loops import acts
from runs.models import Loop, LoopRole, LoopTerms, Project, Run, Settings, StartRequest
from runs.ralph import role_file
from tests.fakes import World
from tests.loops.desk import Desk, project_of, topic
from tests.world.stories import look, ready, start, work
from trackers.base import Ability

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(world: World) -> Project:
    made = project_of(world)
    ready(world)
    return made


def wanted(lines: Lines | None = None, issue: str = "", *, continues: bool = False) -> Command:
    return Command("demo", issue, continues, {}, lines or HumanLines(StringIO()))


def follow(command: Command) -> Follower:
    follower = Follower.begin(command)
    assert follower is not None
    return follower


def begun(world: World, follower: Follower) -> Desk:
    """Its run, in whose session the runner asks."""
    assert follower.news() is None
    look(world)
    work(world)
    assert follower.news() is None
    return Desk(world, Run.objects.latest("pk"))


def settled(world: World) -> None:
    """What a worker does in the next minutes, in which a session that is done would have closed."""
    for _ in range(2):
        world.clock.forward(minutes=2)
        look(world)
        work(world)


def test_turns_are_told_as_they_begin_and_end_and_the_cost_where_one_is_told(world, project):
    out = StringIO()
    follower = follow(wanted(JsonLines(out)))
    desk = begun(world, follower)
    desk.begin()
    desk.finish(topic("build.done"))
    assert follower.news() is None
    desk.finish(topic("LOOP_COMPLETE"))
    settled(world)
    assert follower.news() == 0
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines[0] == {"event": "opened", "run": desk.run.pk, "issue": "7", "project": "demo"}
    texts = [line["text"] for line in lines if line.get("kind") == "loop.turn"]
    assert texts[:2] == ["turn 1 begins (coordinator)", "turn 1 (coordinator) ended after 1 s"]
    assert [line["number"] for line in lines if line["event"] == "turn"] == [1, 2]
    assert (lines[-1]["code"], lines[-1]["turns"], lines[-1]["cost"]) == (0, 2, None)


@pytest.mark.parametrize("presses", [1, 2])
def test_who_presses_before_anything_began_takes_the_request_back(world, project, presses, capsys):
    follower = follow(wanted())
    assert follower.press(presses) == 130
    assert not StartRequest.objects.exists()
    settled(world)
    assert not Run.objects.exists()
    assert "Nothing was started." in capsys.readouterr().err


def test_who_presses_while_the_run_is_being_stored_stops_that_run(world, project, capsys):
    follower = follow(wanted())
    look(world)  # the worker answers before the command looks
    assert follower.press(1) is None
    assert Loop.objects.get().stop_asked_by.endswith("at the command line")
    assert follower.press(2) is None
    run = Run.objects.get()
    assert (run.outcome, Loop.objects.get().exit_code) == (Outcome.INTERRUPTED, 130)
    settled(world)
    assert follower.news() == 130
    said = capsys.readouterr().err
    assert "Ctrl-C again ends it at once." in said
    assert "Ending the turn that runs." in said


def test_a_start_that_is_refused_is_said_with_two(world, project, capsys):
    follower = follow(wanted(issue="99"))
    settled(world)
    assert follower.news() == 2
    assert "Error: " in capsys.readouterr().err


def test_a_project_that_is_removed_is_said_in_one_sentence(world, project, capsys):
    waiting, running = follow(wanted(issue="99")), follow(wanted())
    begun(world, running)
    Project.objects.filter(pk=project.pk).delete()
    assert (waiting.news(), running.news()) == (CODE_GONE, CODE_GONE)
    said = capsys.readouterr().err.strip().splitlines()
    assert [line.partition(".")[0] for line in said[-2:]] == [
        "The project was removed",
        "The project was removed, and its loop with it",
    ]


def test_a_loop_whose_session_died_is_code_one(world, project):
    out = StringIO()
    follower = follow(wanted(HumanLines(out)))
    desk = begun(world, follower)
    outcomes.record(world.lab, desk.run, Outcome.DIED, "its session is gone")
    settled(world)
    assert follower.news() == 1
    assert "ended    1: its session is gone" in out.getvalue()


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"is_on": False}, "Error: demo does not work in loops"),
        ({"cancellation": "FINISHED"}, "Error: FINISHED is the word that cancels"),
    ],
)
def test_what_cannot_be_a_loop_asks_for_nothing(world, project, columns, text):
    LoopTerms.objects.update(**columns)
    command = wanted()
    command.options = {"completion": "FINISHED"}
    with pytest.raises(ActRefused, match=text):
        Follower.begin(command)
    Project.objects.update(policy="gates")
    LoopTerms.objects.update(is_on=True)
    with pytest.raises(ActRefused, match="Error: Gates prove"):
        Follower.begin(command)
    Project.objects.update(state="cloning")
    assert Follower.begin(command) is None
    assert not StartRequest.objects.exists()


def test_only_a_loop_that_did_not_complete_is_gone_on_with(world, project):
    with pytest.raises(ActRefused, match="no loop of demo "):
        Follower.begin(wanted(continues=True))
    follower = follow(wanted())
    desk = begun(world, follower)
    desk.begin()
    follower.press(2)
    settled(world)
    assert follower.news() == 130
    with pytest.raises(ActRefused, match="no loop of demo "):
        Follower.begin(wanted(issue="8", continues=True))
    again = follow(wanted(issue="7", continues=True))
    next_one = begun(world, again)
    assert next_one.run.continues_id == desk.run.pk
    assert next_one.begin().content["number"] == 2
    assert not next_one.loop.guidance.exists()
    next_one.finish(topic("LOOP_COMPLETE"))
    settled(world)
    assert again.news() == 0


@pytest.mark.row("RALPH-21", level="contract")
def test_a_restart_ends_the_command_with_three_and_continue_follows_the_loop_that_goes_on(
    world, project, capsys
):
    out = StringIO()
    follower = follow(wanted(JsonLines(out)))
    desk = begun(world, follower)
    desk.begin()
    assert follower.news() is None
    acts.ask_restart(world.lab, desk.run, by="anna")
    assert desk.finish(topic("build.done")).do == "restart"
    assert follower.news() == 3
    assert json.loads(out.getvalue().splitlines()[-1])["event"] == "restarted"

    again = follow(wanted(continues=True))
    assert again.news() is None
    assert (again.issue, StartRequest.objects.count()) == ("7", 1)
    desk.step(generation=2)
    desk.finish(topic("LOOP_COMPLETE"))
    settled(world)
    assert again.news() == 0
    assert "It runs already" in capsys.readouterr().err


@pytest.mark.row("RALPH-03", level="contract")
def test_a_prompt_is_an_issue_that_holds_it_and_the_objective_word_for_word(world, project):
    follower = follow(replace(wanted(), prompt="# Count the chairs\n\nAll of them."))
    desk = begun(world, follower)
    desk.begin()
    issue = world.tracker.issue("demo", desk.run.issue_key)
    assert (issue.title, desk.run.issue_title) == ("Count the chairs", "Count the chairs")
    assert desk.loop.objective == "# Count the chairs\n\nAll of them."
    assert issue.key != "7"


def test_what_is_secret_in_a_prompt_goes_to_no_tracker(world, project):
    world.lab = replace(world.lab, mask=masking.mask(["sk-ant-verysecret12345"]))
    follow(replace(wanted(), prompt="Use sk-ant-verysecret12345 for it"))
    issue = world.tracker.issue("demo", StartRequest.objects.get().wanted_key)
    assert "verysecret" not in f"{issue.title} {issue.body}"
    assert issue.title.startswith("Use ")


@pytest.mark.parametrize("way", ["refused", "pressed"])
def test_an_issue_of_a_prompt_of_which_no_loop_came_is_closed_again(world, project, way, capsys):
    if way == "refused":
        start(world, project, "9")
        Settings.objects.update_or_create(pk=1, defaults={"session_cap": 1})
    follower = follow(replace(wanted(), prompt="Count"))
    key = StartRequest.objects.latest("pk").wanted_key
    assert world.tracker.issue("demo", key).is_open
    if way == "refused":
        settled(world)
        assert follower.news() == 2
    else:
        assert follower.press(1) == 130
    assert not world.tracker.issue("demo", key).is_open
    assert f"Issue {key}, which held the prompt, was closed." in capsys.readouterr().err


def titled(world: World, title: str) -> list[str]:
    return [one.key for one in world.tracker.open_issues("demo") if one.title == title]


def test_forever_asks_again_for_the_issue_of_a_prompt_whose_start_was_refused(world, project):
    start(world, project, "9")
    Settings.objects.update_or_create(pk=1, defaults={"session_cap": 1})
    forever = replace(wanted(), prompt="Count", goes_on=True).begin()
    assert isinstance(forever, Forever)
    now = 0.0
    forever._clock = lambda: now
    for _ in range(3):
        look(world)
        assert forever.news() is None  # refused
        now += 61
        assert forever.news() is None  # asked for again
    asked = StartRequest.objects.exclude(run__isnull=False).values_list("wanted_key", flat=True)
    assert (len(set(asked)), len(asked)) == (1, 4)
    assert titled(world, "Count") == [asked[0]]
    look(world)
    assert (forever.news(), forever.press(1)) == (None, 130)
    assert titled(world, "Count") == []


def test_a_prompt_whose_issue_another_run_was_faster_to_take_is_followed_there(world, project):
    follower = follow(replace(wanted(), prompt="Count"))
    (asked,) = StartRequest.objects.all()
    asked.delete()
    faster = start(world, project, asked.wanted_key)
    asked.pk = None
    asked.save()
    follower._asked = asked
    look(world)
    assert (follower.news(), follower.issue) == (None, asked.wanted_key)
    assert world.tracker.issue("demo", faster.issue_key).is_open
    follower.leave()
    assert world.tracker.issue("demo", faster.issue_key).is_open


def test_a_prompt_that_no_issue_can_be_made_of_starts_nothing(world, project):
    world.tracker.abilities -= {Ability.CREATE_ISSUE}
    with pytest.raises(ActRefused, match="Error: no issue could be made of the prompt"):
        Follower.begin(replace(wanted(), prompt="Count"))
    assert not StartRequest.objects.exists()


HATS = """
hats:
  planner:
    triggers: [loop.start, task.resume]
    publishes: [build.task]
    instructions: Find work.
    backend: turner
"""


def test_roles_of_a_file_and_persistence_hold_for_one_run_alone(world, project):
    command = replace(wanted(), roles=role_file.read(HATS), options={"is_persistent": True})
    desk = begun(world, follow(command))
    order = desk.begin()
    assert order.content["role"] == "planner"
    assert "Find work." in order.content["prompt"]
    assert desk.turn.profile == project.agent
    assert desk.loop.terms["rules"]["is_persistent"]
    assert not LoopTerms.objects.get().is_persistent
    assert not LoopRole.objects.exists()


@pytest.mark.row("RALPH-29", level="contract")
def test_a_restart_begins_with_the_start_event_of_its_roles_again(world, project):
    desk = begun(world, follow(replace(wanted(), roles=role_file.read(HATS))))
    desk.begin()
    desk.finish(topic("build.task"))
    acts.ask_restart(world.lab, desk.run, by="anna")
    desk.finish(topic("build.done"))
    assert desk.step(generation=2).content["role"] == "planner"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hats: {a: {triggers: [], instructions: x}}", "a subscribes to no event"),
        ("hats: {a: {triggers: [x.y], instructions: ' '}}", "a, instructions: This field"),
        ("hats: {a: {triggers: [x.y], instructions: x}}", "No role subscribes to task.resume"),
    ],
)
def test_roles_that_do_not_fit_ask_for_nothing(world, project, text, said):
    command = replace(wanted(), roles=role_file.read(text), options={"is_persistent": True})
    with pytest.raises(ActRefused, match=f"Error: .*{said}"):
        Follower.begin(command)
    assert not StartRequest.objects.exists()

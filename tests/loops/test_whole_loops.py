"""Whole loops: the real runner, real agents, and what labsite decides, stores and tells of them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.core.states import NoticeKind, Outcome
from runs.followups import acts as followups
from runs.loops import acts
from runs.models import Host, Run
from runs.watch import switch as auto
from tests.loops.staged import Stage, result_line
from tests.world.stories import ready

pytestmark = pytest.mark.django_db(transaction=True)

BODY = "Fails silently.\n\n## DONE\n\nSay so at once."


@pytest.mark.row(
    *("RALPH-04", "RALPH-05", "RALPH-06", "RALPH-11", "RALPH-12", "RALPH-31", "RALPH-38"),
    *("RALPH-02", "RALPH-10", "RALPH-13", "RALPH-34", "RALPH-44", "RALPH-45", "RALPH-88"),
    level="real",
)
def test_an_issue_from_its_first_prompt_to_the_word_that_completes_it(stage: Stage) -> None:
    project = stage.project(completion="WELL_DONE", recoveries=9)
    issue = {"body": BODY, "labels": ["ready-for-agent", "bug"]}
    stage.world.tracker.add_issue("demo", "Add retry", "42", **issue)
    tasks = "for n in 1 2 3 4 5; do labctl task add $n; labctl task done $n; done"
    loop = stage.loop(
        project,
        f"echo note-A > $LAB_SCRATCHPAD; {tasks}; emit WELL_DONE; emit build.done",
        "gate; emit LOOP_COMPLETE",
        "cat $prompt",
        "echo '> WELL_DONE'",
        "echo 'When it is there I say WELL_DONE.'; echo 'WELL_DONE, nearly'",
        "printf 'WELL_DONE\\nI go on.\\n'",
        "printf 'All done.\\n\\nWELL_DONE\\n\\n'",
        key="42",
    ).begin()
    loop.is_at("1-2")
    stage.world.tracker.shelves["demo"].issues[0]["title"] = "Another title"
    loop.let("1-2")

    assert loop.ends() == (0, "completed", [1, 2, 3, 4, 5, 6, 7])

    first = loop.prompt(1)
    assert first.startswith("## OBJECTIVE\n")
    assert "NOTES OF THE TURNS" not in first
    quoted = (
        "> # Implement: Add retry (#42)\n>\n> Fails silently.\n>\n> ## DONE\n>\n> Say so at once."
    )
    assert first.count(quoted) == 2
    assert "> **Labels of the issue:** `bug`, `ready-for-agent`" in first
    assert "A pull request that references #42" in first
    assert "All tests pass" in first
    assert "comment with the link of the pull request" in first
    done = first.rpartition("\n## DONE\n")[2]
    assert first.count("\n## DONE\n") == 1
    assert "labctl emit WELL_DONE" in done
    assert quoted in done
    assert done.endswith("Do not say so before it is met in full.\n")

    second = loop.prompt(2)
    assert second.startswith("## NOTES OF THE TURNS BEFORE\n\nnote-A\n")
    assert "## TASKS: 0 ready, 0 open, 5 closed\n\n## HOW" in second
    assert [one.state for one in loop.loop.tasks.all()] == ["closed"] * 5
    assert quoted in loop.prompt(7)
    assert loop.run.outcome == Outcome.SUCCEEDED


@pytest.mark.row("RALPH-07", "RALPH-08", "RALPH-09", "RALPH-27", "RALPH-88", level="real")
def test_a_role_has_its_turns_completes_nothing_and_is_called_back_when_it_is_silent(
    stage: Stage,
) -> None:
    project = stage.project()
    stage.role(project, "builder", "build.*")
    loop = stage.loop(
        project,
        "emit build.task 'wire it'",
        "emit LOOP_COMPLETE",
        "echo LOOP_COMPLETE",  # in a loop with roles only an event counts
        "emit build.task again",
        "echo nothing",
    ).begin()

    assert loop.ends() == (1, "silent", [1, 2, 3, 4, 5, 6, 7, 8])

    coordinator, builder = "coordinator", "builder"
    assert [one.role for one in loop.turns] == [
        *(coordinator, builder, coordinator, coordinator),
        *[builder] * 4,
    ]
    for turn in loop.turns:
        prompt = loop.prompt(turn.number)
        assert ("## DONE" in prompt) is (turn.role == coordinator)
        assert ("## HOW TO WORK" in prompt) is (turn.role == coordinator)
        assert ("You are the builder." in prompt) is (turn.role == builder)
    assert "- `build.task`: wire it" in loop.prompt(2)
    for number in (6, 7, 8):
        assert "told no event" in loop.prompt(number)
    assert loop.run.outcome == Outcome.FAILED


@pytest.mark.row("RALPH-15", "RALPH-25", level="real")
def test_the_most_time_is_looked_at_after_a_turn_and_before_its_failures(stage: Stage) -> None:
    loop = stage.play("gate; exit 1", max_seconds=300, failures=1)
    loop.is_at("1-1")
    loop.passes(seconds=301)
    loop.let("1-1")
    assert loop.ends() == (2, "runtime", [1])
    assert loop.run.outcome == Outcome.LIMIT_REACHED


@pytest.mark.row("RALPH-25", level="real")
def test_the_most_turns_come_before_the_most_time(stage: Stage) -> None:
    loop = stage.play("gate; exit 1", max_seconds=300, failures=1, max_turns=1)
    loop.is_at("1-1")
    loop.passes(seconds=301)
    loop.let("1-1")
    assert loop.ends() == (2, "turns", [1])


@pytest.mark.row("RALPH-16", "C-46", level="real")
@pytest.mark.parametrize(
    "costs", [[0.4, 0.4, 0.4], [0.4, 5.0]], ids=["at its end", "passed in the middle of a turn"]
)
def test_the_most_money_is_looked_at_when_a_turn_is_over(stage: Stage, costs: list[float]) -> None:
    turns = [
        f"emit build.done {n}; {result_line(cost)}; touch worked-$turn"
        for n, cost in enumerate(costs)
    ]
    loop = stage.play(*turns, max_cost=1, output="claude_stream_json")
    assert loop.ends() == (2, "cost", list(range(1, len(costs) + 1)))
    assert float(loop.run.cost_usd or 0) == pytest.approx(sum(costs))
    assert (loop.run.tokens_in, loop.run.tokens_out) == (10 * len(costs), 5 * len(costs))
    # A turn is not ended in its middle.
    assert (loop.order.cwd / f"worked-1-{len(costs)}").exists()
    assert ("## WHAT IS LEFT" in loop.prompt(len(costs))) is (len(costs) == 3)


@pytest.mark.row("RALPH-18", "RALPH-19", level="real")
def test_work_that_was_given_up_and_is_begun_again_ends_it(stage: Stage) -> None:
    blocked = "emit build.blocked wire; emit note.made $turn"
    again = "emit build.task wire; emit note.made $turn"
    loop = stage.play(*[blocked] * 3, *[again] * 3)
    assert loop.ends() == (1, "thrashing", [1, 2, 3, 4, 5, 6])
    assert "- `task.abandoned`: wire" in loop.prompt(4)
    assert [text for text in loop.told() if "wire" in text] == [
        "“wire” was given up: it was blocked 3 times"
    ]


@pytest.mark.row("RALPH-20", "RALPH-23", "RALPH-24", level="real")
@pytest.mark.parametrize(
    ("script", "turns", "end", "code"),
    [
        ("emit build.done same", 3, "stale", 1),
        ("printf '{\\n[]\\nno json\\n' >> $LAB_LOOP_EVENTS", 1, "malformed", 1),
        ("emit build.done; rm -rf $LAB_WORKTREE", 1, "workspace_gone", 1),
        ("emit GIVE_UP; emit build.done", 1, "cancelled", 0),
        ("touch $LAB_RUN_FOLDER/loop/stop; emit build.done", 1, "stopped", 1),
    ],
)
def test_what_else_ends_it(stage: Stage, script: str, turns: int, end: str, code: int) -> None:
    loop = stage.play(script, cancellation="GIVE_UP", required=["review.passed"])
    assert loop.ends() == (code, end, list(range(1, turns + 1)))
    failed = Outcome.STOPPED if end == "stopped" else Outcome.FAILED
    assert loop.run.outcome == (failed if code else Outcome.SUCCEEDED)
    assert not (loop.folder / "stop").exists()


@pytest.mark.row("RALPH-17", "C-35", level="real")
@pytest.mark.parametrize(
    ("terms", "codes"),
    [({}, [1, 1, 0, 1, 1, 1]), ({"failures": 5}, [1, 1, 1, 1, 1])],
    ids=["three by default", "five"],
)
def test_turns_that_fail_in_a_row_end_it(
    stage: Stage, terms: dict[str, int], codes: list[int]
) -> None:
    turns = [f"emit build.done {n}; exit {code}" for n, code in enumerate(codes)]
    loop = stage.play(*turns, **terms)
    assert loop.ends() == (1, "failures", list(range(1, len(codes) + 1)))
    assert [one.exit_code for one in loop.turns] == codes


@pytest.mark.row("RALPH-89", "C-34", "RALPH-88", level="real")
def test_what_has_to_be_there_before_a_completion_holds_it_back_until_it_is(stage: Stage) -> None:
    loop = stage.play(
        "labctl task add 'left over'; emit LOOP_COMPLETE",
        "emit review.passed; labctl task done 1",
        "emit LOOP_COMPLETE",
        required=["review.passed"],
        is_strict=True,
    )
    assert loop.ends() == (0, "completed", [1, 2, 3])
    refused = "Completion was not accepted: review.passed must be told before; 1 tasks are open."
    assert f"- `task.resume`: {refused}" in loop.prompt(2)
    assert "Completion was not" not in loop.prompt(3)
    assert refused in loop.told()


@pytest.mark.row(
    *("RALPH-59", "RALPH-60", "RALPH-61", "RALPH-64", "RALPH-65", "RALPH-66", "RALPH-70", "C-34"),
    *("RALPH-14", "RALPH-26"),
    level="real",
)
def test_a_loop_that_stays_answers_completions_until_a_limit(stage: Stage) -> None:
    loop = stage.play(
        "labctl task add 'left over'; emit note.made $turn; emit LOOP_COMPLETE",
        "emit note.made $turn; emit LOOP_COMPLETE",
        is_persistent=True,
        may_idle=False,
        cleans_up=False,
        max_turns=3,
    )
    assert loop.ends() == (2, "turns", [1, 2, 3])
    stays = (
        "Persistent mode: loop staying alive after completion signal. "
        "Check for new tasks or await human guidance."
    )
    for number in (2, 3):
        prompt = loop.prompt(number)
        assert f"- `task.resume`: {stays}" in prompt
        assert f"- `note.made`: 1-{number - 1}" in prompt
        assert "- [1] left over (ready)" in prompt
    # Each cycle is one call of the agent, and each completion one piece of work of the one run.
    assert [turn for turn, _ in loop.began()] == ["1-1", "1-2", "1-3"]
    assert loop.loop.counters["completions"] == 2
    assert loop.run.outcome == Outcome.LIMIT_REACHED
    reason = "its loop reached its most turns after 3 turns and 0 min (loop code 2)"
    assert loop.run.reason == reason
    assert any(reason in text for text in loop.told(NoticeKind.RUN_ENDED))
    assert "It was completed with 1 open tasks." in loop.told()
    assert any("answered with task.resume" in text for text in loop.told())


@pytest.mark.row("RALPH-63", "RALPH-79", "RALPH-80", "RALPH-81", "RALPH-61", level="real")
def test_a_loop_that_stays_idles_without_work_hears_a_person_and_a_stop(stage: Stage) -> None:
    loop = stage.play(
        "emit LOOP_COMPLETE",
        "emit LOOP_COMPLETE",
        "labctl ack; emit LOOP_COMPLETE",
        is_persistent=True,
    )
    loop.until(lambda: stage.ticks() or "it looks again after 300 s" in loop.screen)
    assert [turn for turn, _ in loop.began()] == ["1-1"]
    acts.guide(stage.world.lab, loop.run, "work on #50", by="anna")
    loop.until(lambda: loop.loop.number == 3 and loop.loop.state == "idle")
    acts.ask_stop(stage.world.lab, loop.run, by="anna")

    assert loop.ends() == (1, "stopped", [1, 2, 3])

    assert "> work on #50" in loop.prompt(2)
    assert "guidance of a person is not acknowledged yet" in loop.prompt(3)
    assert "> work on #50" in loop.prompt(3)


@pytest.mark.row(
    "RALPH-79", "RALPH-80", "RALPH-21", "RALPH-28", "RALPH-29", "RALPH-30", "RALPH-40", level="real"
)
def test_guidance_outlives_a_restart_and_holds_the_completion_back(stage: Stage) -> None:
    project = stage.project()
    first = (
        "labctl memory add 'needs make'; labctl task add one; echo note > $LAB_SCRATCHPAD; emit a.b"
    )
    stage.does("emit LOOP_COMPLETE", "labctl ack; emit LOOP_COMPLETE", generation=2)
    loop = stage.loop(project, f"{first}; gate").begin()
    loop.is_at("1-1")
    acts.guide(stage.world.lab, loop.run, "look at #50", by="anna")
    (loop.folder / "restart").touch()
    pid = loop.process.pid
    loop.let("1-1")

    assert loop.ends() == (0, "completed", [1, 1, 2])

    assert loop.process.pid == pid
    prompt = loop.prompt(1, 2)
    assert "> look at #50" in prompt
    assert "- needs make" in prompt
    assert "a.b" not in prompt
    assert "## NOTES" not in prompt
    assert "## TASKS: 0 ready, 0 open, 1 closed" in prompt
    assert "guidance of a person is not acknowledged yet" in loop.prompt(2, 2)
    assert loop.loop.counters["turns"] == 2


@pytest.mark.row("RALPH-71", level="real")
def test_a_cooldown_stands_before_each_next_turn(stage: Stage) -> None:
    loop = stage.play("emit a.b", "emit LOOP_COMPLETE", cooldown_seconds=1)
    assert loop.ends() == (0, "completed", [1, 2])
    (_, first), (_, second) = loop.began()
    assert second - first >= 1.0
    assert "Waiting: a pause of 1 s before each turn" in loop.screen


@pytest.mark.row("RALPH-71", "RALPH-79", "RALPH-80", level="real")
def test_a_message_skips_the_cooldown_also_one_that_comes_in_the_last_turn(stage: Stage) -> None:
    loop = stage.play(
        "emit a.b",
        "gate; emit LOOP_COMPLETE",
        "labctl ack; emit LOOP_COMPLETE",
        cooldown_seconds=3600,
    )
    loop.waits("a pause of 3600 s before each turn")
    acts.guide(stage.world.lab, loop.run, "hurry", by="anna")
    loop.is_at("1-2")
    acts.guide(stage.world.lab, loop.run, "and the last word", by="anna")
    loop.let("1-2")
    assert loop.ends() == (0, "completed", [1, 2, 3])
    assert "> hurry" in loop.prompt(2)
    assert "> and the last word" in loop.prompt(3)
    assert "guidance of a person is not acknowledged yet" in loop.prompt(3)


@pytest.mark.row("RALPH-72", level="real")
def test_a_loop_that_stays_is_started_again_after_a_pause_for_its_code(stage: Stage) -> None:
    project = stage.project(is_persistent=True, cancellation="GIVE_UP", failures=1)
    for key in ("1", "2", "3"):
        ready(stage.world, key)
    assert auto.switch(stage.world.lab, project, is_on=True, by="anna")
    stage.ticks()
    for number, (code, pause) in enumerate([(0, 300), (1, 60)], 1):
        stage.does("emit GIVE_UP" if code == 0 else "exit 1")
        loop = stage.runner_of(Run.objects.active().get()).begin()
        assert loop.code() == code
        stage.world.sessions.all.pop(loop.run.session, None)
        loop.passes(seconds=pause - 20)
        stage.ticks()
        assert Run.objects.count() == number
        loop.passes(seconds=30)
        stage.ticks()
        assert Run.objects.count() == number + 1
        begins = f"the next one begins in {pause} s, where automatic work goes on"
        assert f"its loop ended with code {code}; {begins}" in loop.told()


@pytest.mark.row("RALPH-90", "RALPH-31", level="real")
def test_a_loop_that_was_killed_is_gone_on_with_and_a_fresh_one_counts_from_nothing(
    stage: Stage,
) -> None:
    lab, cost = stage.world.lab, result_line(0.1)
    project = stage.project(max_cost=1, output="claude_stream_json")
    told = f"emit a.b $turn; {cost}"
    notes = "echo note-A > $LAB_SCRATCHPAD; labctl task add 'left over'"
    loop = stage.loop(project, told, told, f"{told}; {notes}; gate").begin()
    loop.is_at("1-3")
    Host.objects.update(last_tick_at=stage.world.clock() - timedelta(minutes=5))
    loop.let("1-3")
    loop.waits("labsite's worker is away")
    loop.process.kill()
    stage.world.sessions.end(loop.run.session, status=None)
    stage.ticks()
    assert loop.run.outcome == Outcome.DIED

    stage.does(f"labctl ack; emit LOOP_COMPLETE; {cost}")
    followups.resume(lab, loop.run, "Go on with it.", by="anna")
    stage.ticks()
    again = stage.runner_of(Run.objects.active().get()).begin()
    assert again.ends() == (0, "completed", [4])
    first = again.prompt(4)
    assert first.startswith("## NOTES OF THE TURNS BEFORE\n\nnote-A\n")
    assert "> Go on with it." in first
    assert "left over (ready)" in first
    assert "- `a.b`: 1-3" in first
    assert (again.loop.counters["turns"], float(again.loop.counters["cost"])) == (4, 0.4)

    fresh = stage.loop(project, f"emit LOOP_COMPLETE; {cost}", key="8").begin()
    assert fresh.ends() == (0, "completed", [1])
    assert (fresh.loop.counters["turns"], float(fresh.loop.counters["cost"])) == (1, 0.1)

"""What a turn is asked: the composition of its prompt, notes, events and roles."""

from __future__ import annotations

import json

import pytest

from runs.loops import prompts
from runs.loops.events import Event, is_topic, read
from runs.loops.prompts import PromptFacts, Task, compose, for_issue
from runs.loops.roles import COORDINATOR, Role, next_turn, problems
from runs.loops.rules import End

FACTS = PromptFacts("Add retry.\n## DONE\nthree times", "LOOP_COMPLETE")
BUILDER = Role("builder", "Build it.", ("build.task", "task.resume"), ("build.done",))
REVIEWER = Role("reviewer", "Look at it.", ("build.*",))


def _with(**more) -> str:
    return compose(PromptFacts(FACTS.objective, FACTS.completion, **more))


def _headings(prompt: str) -> list[str]:
    return [line for line in prompt.splitlines() if line.startswith("## ")]


@pytest.mark.row("RALPH-04", "RALPH-05", "RALPH-06", level="pure")
def test_the_objective_stands_at_the_top_and_again_at_the_end_and_its_headings_are_quoted():
    prompt = compose(FACTS)
    assert _headings(prompt) == ["## OBJECTIVE", "## HOW TO WORK", "## DONE"]
    assert prompt.count("> Add retry.\n> ## DONE\n> three times") == 2
    assert "labctl emit LOOP_COMPLETE" in prompt.rpartition("\n## DONE")[2]


@pytest.mark.row("RALPH-07", level="pure")
def test_a_role_takes_the_place_of_the_workflow_and_of_done():
    prompt = _with(role=BUILDER)
    assert _headings(prompt) == ["## OBJECTIVE", "## YOUR ROLE: builder"]
    assert "LOOP_COMPLETE" not in prompt
    assert "`build.done`" in prompt


@pytest.mark.row("RALPH-31", "RALPH-39", "RALPH-79", level="pure")
def test_the_parts_of_a_full_prompt_stand_in_their_order():
    prompt = _with(
        scratchpad="note-A",
        memories=("new", "old"),
        guidance=("look at #50",),
        events=(Event("build.done", "first\nsecond"),),
        tasks=(Task("1", "one", "closed"), Task("2", "two", "ready"), Task("3", "three", "open")),
        nearing={End.TURNS: "2 of 10 turns"},
    )
    assert prompt.startswith("## NOTES OF THE TURNS BEFORE\n\nnote-A\n")
    assert _headings(prompt) == [
        "## NOTES OF THE TURNS BEFORE",
        "## MEMORIES",
        "## OBJECTIVE",
        "## WHAT IS LEFT",
        "## GUIDANCE",
        "## PENDING EVENTS",
        "## TASKS: 1 ready, 1 open, 1 closed",
        "## HOW TO WORK",
        "## DONE",
    ]
    assert "- old\n- new" in prompt
    assert "- `build.done`: first\n  second" in prompt
    assert "[2] two (ready)\n- [3] three (open)" in prompt
    assert "one" not in prompt.partition("## TASKS")[2].partition("## HOW")[0]


@pytest.mark.row("RALPH-38", level="pure")
def test_closed_tasks_are_counted_and_not_listed():
    prompt = _with(tasks=[Task(str(i), f"task {i}", "closed") for i in range(5)])
    assert "## TASKS: 0 ready, 0 open, 5 closed\n\n## HOW" in prompt


@pytest.mark.row("RALPH-34", level="pure")
def test_blank_notes_are_no_part():
    assert _with(scratchpad=" \n\t\n") == compose(FACTS)


def test_only_the_newest_memories_fit_and_the_others_are_counted():
    prompt = _with(memories=[f"{i:04d} " + "x" * 95 for i in range(2000)])
    assert "- 0000 " in prompt
    assert "- 1999 " not in prompt
    assert "\n1923 older ones: `labctl memory search WORD`." in prompt
    assert len(prompt) < 10_000
    unread = _with(memories=["the newest"], older_memories=40)
    assert "- the newest\n\n40 older ones: `labctl memory search WORD`." in unread


@pytest.mark.row("RALPH-44", level="pure")
def test_the_prompt_of_an_issue_has_number_text_labels_and_what_done_is():
    prompt = for_issue("42", "Add retry", "Fails silently.", ("bug", "backend"))
    assert prompt.startswith("# Implement: Add retry (#42)\n\nFails silently.")
    assert "`bug`, `backend`" in prompt
    assert "tests pass" in prompt
    assert "pull request that references #42" in prompt
    assert "comment with the link" in prompt
    assert "Labels" not in for_issue("42", "Add retry", "", ())


@pytest.mark.row("RALPH-32", "RALPH-33", level="pure")
def test_long_notes_keep_their_end_at_a_line_and_say_what_was_dropped():
    lines = [f"## Überschrift {i}\nnoté {i} " + "x" * 90 for i in range(400)]
    cut = prompts.notes_tail("\n".join(lines))
    notice, _, kept = cut.partition("\n\n")
    assert kept.endswith(lines[-1].partition("\n")[2])
    assert kept.splitlines()[0] in {line for one in lines for line in one.splitlines()}
    assert len(kept) <= prompts.MOST_NOTE_CHARACTERS
    assert "Überschrift 0;" in notice
    assert "are left out" in notice
    dropped = int(notice.split("first ")[1].split()[0])
    assert dropped + len(kept) == len("\n".join(lines))


def test_notes_of_one_endless_line_are_cut_in_it():
    cut = prompts.notes_tail("é" * 40_000)
    assert cut.endswith("é" * prompts.MOST_NOTE_CHARACTERS)
    assert "24000 characters" in cut


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"topic": "build.done"}', Event("build.done")),
        # Half an emoji and a NUL: neither git, argument lists nor PostgreSQL take them.
        ('{"topic": "build.done", "payload": "x\\ud83d\\u0000y"}', Event("build.done", "x?y")),
        ('{"topic": "build.done", "payload": "x"}', Event("build.done", "x")),
        ('{"topic": "a", "payload": {"b": "ü"}}', Event("a", '{"b": "ü"}')),
        ('{"topic": "a", "payload": null, "more": 1}', Event("a")),
        ('{"topic": "a", "payload": "%s"}' % ("x" * 9000), Event("a", "x" * 8000)),
        ("LOOP_COMPLETE", None),
        ('"LOOP_COMPLETE"', None),
        ('{"topic": 3}', None),
        ('{"topic": "../x"}', None),
        ('{"topic": "a b"}', None),
        ('{"topic": ""}', None),
        ("[" * 100_000, None),
    ],
)
def test_a_line_is_an_event_or_malformed(line, expected):
    batch = read([line])
    assert batch.events == ((expected,) if expected else ())
    assert batch.malformed == batch.malformed_row == (expected is None)


def test_malformed_lines_are_counted_in_a_row_over_turns():
    good = json.dumps({"topic": "a"})
    assert read(["x", "", "y"], malformed_row=1).malformed_row == 3
    assert read(["x", good, "y"], malformed_row=2).malformed_row == 1


def test_a_flood_of_events_is_counted_and_not_kept():
    batch = read(json.dumps({"topic": "a"}) for _ in range(100_000))
    assert (len(batch.events), batch.dropped) == (1000, 99_000)


def test_topics_are_words_joined_by_dots():
    assert is_topic("LOOP_COMPLETE")
    assert is_topic("build.task-2")
    assert not is_topic("a..b")
    assert not is_topic("a" * 101)


@pytest.mark.row("RALPH-09", level="pure")
@pytest.mark.parametrize(
    ("pending", "role", "given"),
    [
        pytest.param([], None, 0, id="nothing pending: the coordinator"),
        pytest.param(["other"], None, 1, id="nobody subscribes: the coordinator"),
        pytest.param(["build.task"], "builder", 1, id="the first that subscribes"),
        pytest.param(["build.done"], "reviewer", 1, id="by a pattern"),
        pytest.param(["other", "build.done"], "reviewer", 1, id="a role goes before"),
        pytest.param(["build.task", "x", "task.resume"], "builder", 2, id="all that are for it"),
        pytest.param([Event("task.resume", to="reviewer")], "reviewer", 1, id="aimed at a role"),
        pytest.param(
            [Event("task.resume", to=COORDINATOR)], None, 1, id="aimed at the coordinator"
        ),
        pytest.param([Event("build.task", to="gone")], None, 1, id="aimed at nobody there"),
    ],
)
def test_a_role_is_active_when_a_pending_event_is_for_it(pending, role, given):
    made = [Event(one) if isinstance(one, str) else one for one in pending]
    turn = next_turn([BUILDER, REVIEWER], made)
    assert (turn.role.name if turn.role else None) == role
    assert len(turn.given) == given
    assert sorted((*turn.given, *turn.left), key=str) == sorted(made, key=str)


@pytest.mark.row("RALPH-62", level="pure")
@pytest.mark.parametrize(
    ("roles", "words"),
    [
        ([], None),
        ([BUILDER, REVIEWER], None),
        ([REVIEWER], "No role subscribes to task.resume"),
        ([BUILDER, Role("Builder", "x", ("task.resume",))], "Two roles"),
        ([Role("a", "", ("task.resume",))], "no instructions"),
        ([Role("a", "x", ())], "subscribes to no event"),
        ([Role("a", "x", ("task.resume", "b c"))], "no topic"),
        ([Role("a", "x", ("task.resume", "LOOP_*"))], "ends the loop"),
        ([Role("Coordinator", "x", ("task.resume",))], "can be called"),
    ],
)
def test_roles_that_cannot_work_are_refused_with_a_sentence(roles, words):
    found = list(problems(roles, "LOOP_COMPLETE", is_persistent=True))
    assert not found if words is None else any(words in one for one in found)


def test_without_persistent_mode_nobody_has_to_take_the_resume_event():
    assert not list(problems([REVIEWER], "LOOP_COMPLETE", is_persistent=False))

"""What a turn is asked: the composition of its prompt, notes, events and roles."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from runs.loops import prompts, stored
from runs.loops.events import Event, is_topic, read
from runs.loops.prompts import PromptFacts, Task, compose, for_issue
from runs.loops.roles import COORDINATOR, ISSUES, Role, next_turn, problems
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
    assert "\n\n\n" not in prompt
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


WHOLE = """## NOTES OF THE TURNS BEFORE

note

## MEMORIES

- two
  lines
- new

## OBJECTIVE

This is what all work of this turn is for:

> Add retry.
>
> Twice.

Keep it in mind until the end of the turn.

## WHAT IS LEFT

The loop ends soon. Finish and commit what is begun. Left are:
- 2 of 10 turns
- 5 of 60 minutes

## GUIDANCE

A person who watches this loop says:

> Look at #50.

> Slowly.

Follow it, and confirm with `labctl ack`.

## NO ANSWER

The turn before asked a person:

> Which database?

Nobody answered in time. Go on without: decide what can be undone, note what you decided \
and why, and leave alone what cannot.

## PENDING EVENTS

- `build.done`: first

  third
- `build.task`

## ANOTHER BRANCH

The worktree is on the branch `other`. Only what is committed on `afk/7` counts: bring the work there first.

## COMMITS OF AN EARLIER RUN

An earlier run left these commits on `afk/7`, the newest first. Build on them:
- abc1234 feat: two
- def5678 feat: one
- 3 more: `git log`

## NOT COMMITTED

These files of the worktree have changes that are in no commit. Look at them first:
- a.py
- b c.py
- 7 more: `git status`

## TASKS: 1 ready, 0 open, 0 closed

- [2] two
  lines (ready)

## ISSUE AFTER ISSUE

This loop stays. `LOOP_COMPLETE` says that the issue at hand is done; the one after it is taken with \
`labctl next`, which claims it and prints it.

## YOUR ROLE: builder

Build it.

End the turn with an event: `labctl emit TOPIC TEXT`.
""".replace("\\\n", "")


def test_a_prompt_of_every_part_letter_by_letter():
    facts = PromptFacts(
        objective="\nAdd retry. \n\nTwice.\n",
        completion="LOOP_COMPLETE",
        scratchpad="\nnote\n",
        memories=(" new ", "two\nlines"),
        guidance=("Look at #50.", "Slowly."),
        unanswered="Which database?",
        events=(Event("build.done", "\nfirst\n \nthird "), Event("build.task")),
        tasks=(Task("2", "two\nlines", "ready"),),
        role=Role("builder", "\nBuild it.\n", ("build.task",)),
        nearing={End.TURNS: "2 of 10 turns", End.RUNTIME: "5 of 60 minutes"},
        stays=True,
        uncommitted=("a.py", "b c.py"),
        more_uncommitted=7,
        commits=("abc1234 feat: two", "def5678 feat: one"),
        more_commits=3,
        stands_on="the branch `other`",
        branch="afk/7",
    )
    assert compose(facts) == WHOLE
    assert stored.facts(json.loads(json.dumps(stored.of_facts(facts)))) == replace(
        facts,
        memories=list(facts.memories),
        guidance=list(facts.guidance),
        tasks=list(facts.tasks or ()),
        uncommitted=list(facts.uncommitted),
        commits=list(facts.commits),
    )


def test_facts_of_a_turn_that_was_stored_before_files_were_told_of_are_read():
    old = stored.of_facts(FACTS)
    files = ("uncommitted", "more_uncommitted", "stands_on", "branch")
    for name in (*files, "commits", "more_commits"):
        del old[name]
    assert compose(stored.facts(old)) == compose(FACTS)


@pytest.mark.parametrize(
    ("sizes", "whole"),
    [
        pytest.param([8_000, 1, 1], [True, True, False], id="none behind the first beyond it"),
        pytest.param([8_001, 1], [True, False], id="the first one alone is beyond it"),
        pytest.param([4_000, 4_000], [True, True], id="all fit"),
    ],
)
def test_texts_of_tasks_that_no_prompt_has_room_for_are_not_kept_with_it(sizes, whole):
    tasks = [Task(str(place), "x" * size, "ready") for place, size in enumerate(sizes)]
    shown = prompts.shown_tasks(tasks)
    assert [one.text == task.text for one, task in zip(shown, tasks, strict=True)] == whole
    assert [one.text for one, is_whole in zip(shown, whole, strict=True) if not is_whole] == (
        [""] * whole.count(False)
    )
    facts = PromptFacts("x", "LOOP_COMPLETE", tasks=tasks)
    assert compose(PromptFacts("x", "LOOP_COMPLETE", tasks=shown)) == compose(facts)


def test_ready_tasks_have_room_before_open_ones_and_closed_ones_need_none():
    tasks = [
        Task("1", "x" * 9_000, "closed"),
        Task("2", "y", "open"),
        Task("3", "z" * 8_001, "ready"),
    ]
    assert [one.text[:1] for one in prompts.shown_tasks(tasks)] == ["", "", "z"]


@pytest.mark.parametrize(
    ("size", "more"),
    [pytest.param(3_986, 0, id="just fits"), pytest.param(3_987, 1, id="one letter too long")],
)
def test_a_list_of_tasks_says_how_many_it_has_no_room_for(size, more):
    # "- [1] … (ready)" and its line end are 15 letters beside the text.
    tasks = [Task("1", "x" * 3_984, "ready"), Task("2", "y" * size, "ready")]
    prompt = _with(tasks=tasks)
    assert ("(ready)\n- 1 more: `labctl task list`" in prompt) is bool(more)
    assert ("more: `labctl" in prompt) is bool(more)
    assert ("y" * size in prompt) is not more


@pytest.mark.parametrize(("sizes", "fitting"), [([7_997], 1), ([7_998], 0), ([3_997, 3_997, 1], 2)])
def test_memories_fit_up_to_so_many_letters_with_their_marks(sizes, fitting):
    assert prompts.fitting_memories(sizes) == fitting


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
    assert for_issue("42", "Add retry", "\n", ()).startswith(
        "# Implement: Add retry (#42)\n\n## When done\n- All tests pass\n"
    )


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


@pytest.mark.row("RALPH-32", "RALPH-33", "RALPH-34", level="pure")
@pytest.mark.parametrize(
    ("text", "most", "kept", "dropped"),
    [
        pytest.param(" \n\t", 9, "", None, id="blank"),
        pytest.param(" \n\t", 1, "", None, id="blank and too long"),
        pytest.param("\nabc\n", 5, "abc", None, id="exactly so much"),
        pytest.param("aaaa\nbbbb", 4, "bbbb", 5, id="cut where a line begins"),
        pytest.param("aaaa\nbb\ncc", 5, "bb\ncc", 5, id="two whole lines"),
        pytest.param("aaaaaa\nbb\ncc", 5, "bb\ncc", 7, id="two whole lines behind a longer one"),
        pytest.param("aaaa\nbb\ncc", 4, "cc", 8, id="in a line"),
        pytest.param("aaaa\nbb\ncc", 3, "cc", 8, id="at the end of a line"),
        pytest.param("aabb\nc", 4, "c", 5, id="a last line of one letter"),
        pytest.param("aaaabbb\n", 4, "bbb", 4, id="in the last line"),
        pytest.param("aaaabbb", 4, "abbb", 3, id="a single line"),
    ],
)
def test_notes_are_cut_where_a_line_begins(text, most, kept, dropped):
    notice = f"[The first {dropped} characters of these notes are left out here.]\n\n"
    assert prompts.notes_tail(text, most) == (kept if dropped is None else notice + kept)


@pytest.mark.row("RALPH-33", level="pure")
@pytest.mark.parametrize(
    ("count", "more"), [(1, ""), (20, ""), (21, " and 1 more"), (23, " and 3 more")]
)
def test_the_headings_of_what_was_dropped_are_named_up_to_twenty(count, more):
    names = [f"{number:02d}" + "h" * 78 for number in range(count)]
    cut = prompts.notes_tail("".join(f"# {name}more\n" for name in names) + "end", 3)
    assert cut.partition("They were about: ")[2] == f"{'; '.join(names[:20])}{more}.]\n\nend"


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
        ([Role(" ", "x", ("task.resume",))], "A role has no name"),
        ([Role("a", " ", ("task.resume",))], "no instructions"),
        ([Role(" coordinator ", "x", ("task.resume",))], "can be called"),
        ([Role("Coordinator", "x", ("task.resume",))], "can be called"),
    ],
)
def test_roles_that_cannot_work_are_refused_with_a_sentence(roles, words):
    found = list(problems(roles, "LOOP_COMPLETE", is_persistent=True))
    assert not found if words is None else any(words in one for one in found)


def test_without_persistent_mode_nobody_has_to_take_the_resume_event():
    assert not list(problems([REVIEWER], "LOOP_COMPLETE", is_persistent=False))


def test_roles_of_one_name_are_each_named_in_order():
    names = ["b", "B", "a", "a", "c"]
    roles = [Role(name, "x", (f"topic.{place}",)) for place, name in enumerate(names)]
    assert [said.split(".")[0] for said in problems(roles, "x", is_persistent=False)] == [
        *("Two roles are called B", "Two roles are called a", "Two roles are called b"),
    ]


@pytest.mark.row("RALPH-68", level="pure")
def test_the_role_that_is_offered_for_a_loop_that_stays_can_be_saved():
    assert not list(problems([ISSUES], "LOOP_COMPLETE", is_persistent=True))
    assert (ISSUES.name, ISSUES.subscriptions) == ("issues", ("task.resume",))
    assert ISSUES.publishes == ("issue.done", "issues.none")
    assert all(f"labctl emit {topic}" in ISSUES.instructions for topic in ISSUES.publishes)

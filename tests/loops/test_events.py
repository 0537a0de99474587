"""Events that wait for a turn, questions among them, and with which ones a loop begins."""

from __future__ import annotations

import pytest

from runs.loops import events
from runs.loops.events import NO_WORDS, Batch, Event, newest, question, read
from runs.loops.roles import Role, first_events

ASKED = "human.interact"


def test_topics_of_labsite_are_what_roles_of_projects_subscribe_to():
    assert (
        *("task.resume", "human.guidance", "task.abandoned"),
        ASKED,
    ) == (events.RESUME, events.GUIDANCE, events.ABANDONED, events.ASK)


@pytest.mark.parametrize(
    ("lines", "most", "batch"),
    [
        pytest.param([], 9, Batch((), 0, 0, 0), id="nothing"),
        pytest.param(["", "  "], 9, Batch(), id="blank lines are none"),
        pytest.param(['{"topic": " a.b "}'], 9, Batch((Event("a.b"),)), id="space around a topic"),
        pytest.param(
            ["x", '{"topic": "a"}', '{"topic": "b"}'],
            2,
            Batch((Event("a"),), 1, 0, 1),
            id="unreadable ones count among the most",
        ),
    ],
)
def test_lines_become_one_batch(lines, most, batch):
    assert read(lines, most=most) == batch


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        pytest.param([], [], id="none"),
        pytest.param([1] * 201, [1] * 200, id="so many"),
        pytest.param([3, 20_000, 20_000], [20_000, 20_000], id="so many characters"),
        pytest.param([20_000, 20_001], [20_001], id="one more"),
        pytest.param([3, 40_000, 5], [5], id="none before one that does not fit"),
        pytest.param([3, 50_000], [50_000], id="the newest in any case"),
        pytest.param([5, 4, 3], [5, 4, 3], id="in their order"),
    ],
)
def test_only_the_newest_events_that_a_prompt_can_carry_are_kept(sizes, kept):
    made = [
        Event("t", f"{place:03d}" + "x" * (size - 4)) if size > 3 else Event("t" * size)
        for place, size in enumerate(sizes)
    ]
    found = newest(made)
    assert [len(one.topic) + len(one.payload) for one in found] == kept
    assert list(found) == made[len(made) - len(found) :]


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ((), ""),
        ((Event("build.done", "x"),), ""),
        ((Event(ASKED, " Which one? "), Event("build.done", "x")), "Which one?"),
        ((Event(ASKED, "One?"), Event(ASKED, "Two?")), "One?\nTwo?"),
        ((Event(ASKED, " "),), NO_WORDS),
        ((Event(ASKED, "x" * 7_999), Event(ASKED, "y")), "x" * 7_999 + "\n"),
    ],
)
def test_questions_of_a_turn_are_one_text_for_a_person(told, asked):
    assert question(told) == asked


@pytest.mark.parametrize(
    ("patterns", "topics"),
    [
        ((), []),
        (("build.*",), []),
        (("task.start",), ["task.start"]),
        (("loop.start",), ["loop.start"]),
        (("task.start", "loop.start"), ["loop.start"]),
    ],
)
def test_a_loop_begins_with_the_first_start_event_that_a_role_takes(patterns, topics):
    roles = [Role("a", "x", ("build.task",)), Role("b", "x", patterns)]
    assert [one.topic for one in first_events(roles)] == topics

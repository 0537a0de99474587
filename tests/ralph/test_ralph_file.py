"""The files of a Ralph project: what of them becomes settings, roles, memories and an issue."""

from __future__ import annotations

from decimal import Decimal

import pytest

from runs.ralph import ralph_file
from runs.ralph.ralph_file import Files
from runs.ralph.role_file import UnfitFile

WHOLE = """
event_loop:
  completion_promise: ALL_DONE
  cancellation_promise: GIVE_UP
  max_iterations: 10000
  max_runtime_seconds: 86400
  max_cost_usd: 50.0
  max_consecutive_failures: 5
  cooldown_delay_seconds: 5
  persistent: true
  required_events: [review.passed]
  starting_event: work.start
  checkpoint_interval: 5
  prompt_file: docs/PROMPT.md
cli:
  backend: claude
  prompt_mode: arg
core:
  guardrails: [Run the tests]
  specs_dir: ./specs
memories:
  enabled: true
  budget: 2000
tasks:
  enabled: false
RObot:
  enabled: true
  timeout_seconds: 600
  checkin_interval_seconds: 300
  telegram: {bot_token: x}
hats:
  finder:
    triggers: [work.start, task.resume]
    publishes: [build.task]
    instructions: Look for work.
tui: {prefix_key: ctrl-a}
"""
MEMORIES = """# Memories

## Patterns

### mem-1737372000-a1b2
> All handlers return a Result
> and never panic
<!-- tags: api, errors | created: 2024-01-20 -->

## Decisions

### mem-1737372100-c3d4
> JSONL over SQLite
<!-- created: 2024-01-20 -->

### mem-1737372100-empty
"""
TASKS = """{"id":"a","title":"Add tests","priority":3,"status":"open"}
{"id":"b","title":"Sign in","priority":1,"status":"in_progress"}
{"id":"c","title":"Old","priority":1,"status":"closed"}
broken
"""


def test_everything_that_loops_here_can_have_is_taken():
    found = ralph_file.read(Files(WHOLE, "# Agent\n\nUse `ralph emit`.", MEMORIES, TASKS))
    assert found.values == {
        **{"completion": "ALL_DONE", "cancellation": "GIVE_UP", "max_turns": 10_000},
        **{"max_seconds": 86_400, "max_cost": Decimal("50.00"), "failures": 5},
        **{"cooldown_seconds": 5, "is_persistent": True, "required": ["review.passed"]},
        **{"has_memories": True, "has_tasks": False},
        **{"check_in_seconds": 300, "answer_seconds": 600},
    }
    assert found.roles is not None
    assert found.roles[0].values["subscriptions"] == ["work.start", "task.resume", "loop.start"]
    assert found.backend == "claude"
    assert found.memories == (
        "All handlers return a Result\nand never panic (tags: api, errors)",
        "JSONL over SQLite",
        "Run the tests",
    )
    assert found.objective == (
        "# Agent\n\nUse `labctl emit`.\n\n## Open tasks\n\n- [ ] Sign in\n- [ ] Add tests"
    )
    assert sorted(line.partition(":")[0] for line in found.not_taken) == [
        *("RObot.telegram", "cli.prompt_mode", "core.specs_dir", "event_loop.checkpoint_interval"),
        *("memories.budget", "tasks.jsonl", "tasks.jsonl", "tui"),
    ]
    assert ralph_file.prompt_file(WHOLE) == "docs/PROMPT.md"


def test_the_flat_names_of_version_one_are_over_the_nested_ones():
    text = "agent: codex\nmax_iterations: 7\nmax_runtime: 60\nmax_cost: 2\nevent_loop: {max_iterations: 9}"
    found = ralph_file.read(Files(text))
    assert (found.backend, found.roles, found.objective) == ("codex", None, "")
    assert found.values == {
        **{"is_persistent": False, "max_turns": 7, "max_seconds": 60, "max_cost": Decimal("2.00")},
    }
    assert found.not_taken == ()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("event_loop: {max_iterations: many}", "event_loop.max_iterations"),
        ("event_loop: {max_iterations: true}", "event_loop.max_iterations"),
        ("event_loop: {max_iterations: -1}", "event_loop.max_iterations"),
        ("event_loop: {max_cost_usd: .nan}", "event_loop.max_cost_usd"),
        ("event_loop: {max_cost_usd: 1e99}", "event_loop.max_cost_usd"),
        ("event_loop: {completion_promise: all done}", "event_loop.completion_promise"),
        ("event_loop: {required_events: [a b]}", "event_loop.required_events"),
        ("event_loop: [1]", "event_loop"),
        ("agent: auto", "cli.backend"),
        ("memories: {inject: manual}", "memories.inject"),
        ("colour: red", "colour"),
        (
            "event_loop: {persistent: true}\nhats: {a: {triggers: [x.y], instructions: x}}",
            "event_loop.persistent",
        ),
    ],
)
def test_what_is_odd_is_left_out_and_listed_by_its_place(text, place):
    found = ralph_file.read(Files(text))
    assert [line.partition(":")[0] for line in found.not_taken] == [place]
    assert not found.values.get("is_persistent")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("agent: claude", "PROMPT.md"),
        ("prompt_file: TASK.md", "TASK.md"),
        ("prompt_file: ../../etc/passwd", "PROMPT.md"),
        ("prompt_file: /etc/passwd", "PROMPT.md"),
        ("event_loop: 7", "PROMPT.md"),
    ],
)
def test_the_prompt_lies_in_the_folder(text, path):
    assert ralph_file.prompt_file(text) == path


def test_memories_without_entries_are_its_paragraphs():
    found = ralph_file.read(
        Files("agent: x", memories="# Mine\n\n- Use tabs\n\n<!-- x -->\n\nTwo\nlines")
    )
    assert found.memories == ("Use tabs", "Two\nlines")


@pytest.mark.parametrize("text", ["", "[]", "a: [", "words", "x" * 300_000])
def test_what_is_no_ralph_yml_is_refused(text):
    with pytest.raises(UnfitFile):
        ralph_file.read(Files(text))

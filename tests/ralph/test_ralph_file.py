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
        ("event_loop: {max_iterations: 1.5}", "event_loop.max_iterations"),
        ("event_loop: {max_cost_usd: true}", "event_loop.max_cost_usd"),
        ("event_loop: {max_cost_usd: much}", "event_loop.max_cost_usd"),
        ("event_loop: {max_cost_usd: 0}", "event_loop.max_cost_usd"),
        ("event_loop: {max_cost_usd: 1000000000}", "event_loop.max_cost_usd"),
        ("event_loop: {starting_hat: lead}", "event_loop.starting_hat"),
        ("agent: custom", "cli.backend"),
        ("core: {rules: x}", "core.rules"),
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


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            "event_loop: {max_iterations: 0, max_runtime_seconds: 7.0}",
            {"max_turns": 0, "max_seconds": 7},
        ),
        ("event_loop: {max_iterations: null, max_cost_usd: null}", {}),
        ("event_loop: {completion_promise: '', required_events: []}", {}),
        ("completion_promise: ' DONE '", {"completion": "DONE"}),
        ("prompt_file: TASK.md", {}),
        ("event_loop: {required_events: b.c}", {"required": ["b.c"]}),
        ("event_loop: {max_cost_usd: 0.01}", {"max_cost": Decimal("0.01")}),
        ("event_loop: {max_cost_usd: 0.99}", {"max_cost": Decimal("0.99")}),
        ("event_loop: {max_cost_usd: 999999999}", {"max_cost": Decimal("999999999.00")}),
        ("event_loop: {starting_hat: '', starting_event: 7}", {}),
        ("memories: {inject: none}", {"has_memories": False}),
        ("memories: {inject: auto}", {"has_memories": True}),
        ("tasks:", {"has_tasks": True}),
        ("RObot: {timeout_seconds: 7, telegram: {}}", {}),
        ("RObot: {enabled: true, timeout_seconds: 7}", {"answer_seconds": 7}),
        ("core: {guardrails: x}", {}),
    ],
)
def test_each_setting_is_taken_with_what_it_may_be(text, values):
    found = ralph_file.read(Files(text))
    assert found.values == {"is_persistent": False, **values}
    assert found.not_taken == found.changed == ()


def test_it_is_said_where_each_setting_stood():
    found = ralph_file.read(Files(WHOLE))
    assert found.places == {
        "completion": "event_loop.completion_promise",
        "cancellation": "event_loop.cancellation_promise",
        "max_turns": "event_loop.max_iterations",
        "max_seconds": "event_loop.max_runtime_seconds",
        "max_cost": "event_loop.max_cost_usd",
        "failures": "event_loop.max_consecutive_failures",
        "cooldown_seconds": "event_loop.cooldown_delay_seconds",
        "is_persistent": "event_loop.persistent",
        "required": "event_loop.required_events",
        "has_memories": "memories",
        "has_tasks": "tasks",
        "check_in_seconds": "RObot.checkin_interval_seconds",
        "answer_seconds": "RObot.timeout_seconds",
    }


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("event_loop: {idle_timeout_secs: 1}", "event_loop.idle_timeout_secs", "most time"),
        ("event_loop: {checkpoint_interval: 1}", "event_loop.checkpoint_interval", "commit"),
        ("event_loop: {starting_hat: a}", "event_loop.starting_hat", "takes the first event"),
        ("core: {scratchpad: a}", "core.scratchpad", "is made for it"),
        ("core: {specs_dir: a}", "core.specs_dir", "read the repository"),
        ("memories: {budget: 1}", "memories.budget", "8,000"),
        ("memories: {filter: a}", "memories.filter", "of the project"),
        ("memories: {inject: manual}", "memories.inject", "or are off"),
        ("adapters: {}", "adapters", "agents are set up"),
        ("agent_priority: []", "agent_priority", "agents are set up"),
        ("max_tokens: 1", "max_tokens", "agents are set up"),
        ("cli: {prompt_mode: a}", "cli.prompt_mode", "agents are set up"),
        ("agent: custom", "cli.backend", "agents are set up"),
        ("events: {}", "events", "instructions of roles"),
        ("tui: {}", "tui", "page of a run"),
        ("hooks: {}", "hooks", "notices"),
        ("features: {}", "features", "settings of the project"),
        ("RObot: {enabled: true, telegram: {}}", "RObot.telegram", "for each person"),
        ("event_loop: {required_events: [a.b, a b]}", "event_loop.required_events", "some are no"),
        ("colour: red", "colour", "labsite has no such setting"),
    ],
)
def test_what_is_not_taken_has_its_reason(text, place, why):
    (line,) = ralph_file.read(Files(text)).not_taken
    assert line.startswith(f"{place}: ")
    assert why in line


def test_what_was_changed_in_hats_and_what_of_them_was_not_taken_is_listed_too():
    hats = "hats: {a: {triggers: [LOOP_COMPLETE, b.c], instructions: ralph emit b.c, color: red}}"
    found = ralph_file.read(Files(hats))
    assert found.changed == ("hats.a: its instructions name the commands of labctl now",)
    assert [line.partition(":")[0] for line in found.not_taken] == [
        "hats.a.triggers",
        "hats.a.color",
    ]


def test_no_hat_takes_the_completion_word_that_the_file_chose():
    text = "event_loop: {completion_promise: DONE}\nhats: {a: {triggers: [DONE, LOOP_COMPLETE]}}"
    found = ralph_file.read(Files(text))
    assert found.roles is not None
    assert found.roles[0].values["subscriptions"] == ["LOOP_COMPLETE"]


def test_one_hat_that_takes_the_resume_event_is_enough_to_stay():
    hats = "hats: {a: {triggers: [task.resume], instructions: x}, b: {triggers: [b.c], instructions: x}}"
    found = ralph_file.read(Files(f"event_loop: {{persistent: true}}\n{hats}"))
    assert (found.values["is_persistent"], found.not_taken) == (True, ())


def test_guardrails_become_memories():
    found = ralph_file.read(Files("core: {guardrails: [' Run the tests ', 7]}"))
    assert found.memories == ("Run the tests",)
    assert found.changed == ("core.guardrails: they are memories, which stand in each prompt",)


@pytest.mark.parametrize(
    ("files", "objective"),
    [
        (Files("event_loop: {prompt: ' Do it. '}"), "Do it."),
        (Files("event_loop: {prompt: 7}"), ""),
        (Files("event_loop: {prompt: Do it.}", "From the file."), "From the file."),
        (Files("a: 1", tasks='{"title": "One"}'), "# Open tasks\n\n## Open tasks\n\n- [ ] One"),
    ],
)
def test_the_objective_is_the_prompt_with_the_open_tasks(files, objective):
    assert ralph_file.read(files).objective == objective


def test_open_tasks_come_by_urgency_and_the_others_are_counted():
    lines = [
        '{"title": "later", "priority": 10}',
        *('{"title": "last", "priority": true}', '{"title": "first", "priority": 8}'),
        *('{"title": "last too"}', '{"title": " "}', '{"title": 7}', "[]", "7", "  "),
        *('{"title": "a", "status": "failed"}', '{"title": "b", "status": "done"}'),
        '{"title": "c", "status": "closed"}',
    ]
    found = ralph_file.read(Files("tasks: {}", tasks="\n".join(lines)))
    listed = found.objective.partition("## Open tasks\n\n")[2].splitlines()
    assert listed == ["- [ ] first", "- [ ] last", "- [ ] last too", "- [ ] later"]
    assert found.not_taken == (
        *("tasks.jsonl: 4 lines are no tasks", "tasks.jsonl: 3 tasks that are closed"),
    )
    assert found.changed == (
        "tasks.jsonl: its open tasks stand in the issue, since tasks here are of a loop",
    )


@pytest.mark.parametrize(("count", "left"), [(200, 0), (201, 1)])
def test_so_many_tasks_are_taken_each_with_so_much_of_its_title(count, left):
    lines = "\n".join('{"title": "%s"}' % ("x" * 400) for _ in range(count))
    found = ralph_file.read(Files("tasks: {}", tasks=lines))
    listed = found.objective.partition("## Open tasks\n\n")[2].splitlines()
    assert (len(listed), len(listed[0])) == (200, len("- [ ] ") + 300)
    assert found.not_taken == ("tasks.jsonl: the first 200 of 201 are taken",) * left


@pytest.mark.parametrize(
    ("text", "memories"),
    [
        ("> before\n### mem-1-a\n>One\n> \n", ("One",)),
        ("### mem-1-a\n<!-- tags: x | created: y -->\n", ()),
        ("### mem-1-a\n> One\n<!-- tags: -->\n", ("One",)),
        ("### mem-1-a\n> One\n\n## Next\n> of none\n", ("One",)),
        ("  # Mine\nOne\n  <!-- x -->\n\n\n  \n\n Two ", ("One", "Two")),
    ],
)
def test_memories_are_the_quoted_texts_of_their_entries(text, memories):
    assert ralph_file.read(Files("agent: x", memories=text)).memories == memories


def test_its_files_are_looked_for_under_both_generations_of_names():
    assert ralph_file.SETTINGS_NAMES == ("ralph.yml", "ralph.yaml")
    assert ralph_file.MEMORIES == (".ralph/agent/memories.md", ".agent/memories.md")
    assert ralph_file.TASKS == (".ralph/agent/tasks.jsonl", ".agent/tasks.jsonl")

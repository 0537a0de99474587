"""Roles of files: the hats of a ralph.yml, and roles as our API has them."""

from __future__ import annotations

import json

import pytest

from runs.ralph import role_file
from runs.ralph.role_file import UnfitFile

HATS = """
hats:
  coordinator:
    triggers: [plan.start, task.resume, LOOP_COMPLETE, "not a topic"]
    publishes: [build.task]
    default_publishes: build.ready
    description: Leads.
    instructions: |
      Tell `ralph emit build.task`, look at `ralph tools task ready`.
    max_activations: 3
  builder:
    name: Builder
    triggers: build.*
    publishes: []
    backend: {type: codex, args: [--fast]}
    instructions: Build.
"""


def test_hats_become_roles_and_what_they_cannot_be_is_listed():
    found = role_file.read(HATS, completion="LOOP_COMPLETE")
    lead, builder = found.roles
    assert lead.values["name"] == "coordinator role"
    assert lead.values["subscriptions"] == ["plan.start", "task.resume"]
    assert lead.values["publishes"] == ["build.task", "build.ready"]
    assert lead.values["instructions"] == (
        "Leads.\n\nTell `labctl emit build.task`, look at `labctl task list`."
    )
    assert (builder.values["name"], builder.agent) == ("Builder", "codex")
    assert builder.values["subscriptions"] == ["build.*"]
    assert [line.partition(":")[0] for line in found.not_taken] == [
        "hats.coordinator.triggers",
        "hats.coordinator.triggers",
        "hats.coordinator.max_activations",
        "hats.builder.backend",
    ]
    assert "its instructions name the commands of labctl now" in found.changed[1]


def test_the_event_that_its_loops_began_with_is_one_that_loops_begin_with_here():
    hats = {"a": {"triggers": ["plan.start"], "instructions": "x"}}
    found = role_file.of_hats(hats, starts=["plan.start"])
    assert found.roles[0].values["subscriptions"] == ["plan.start", "loop.start"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "roles.json",
            json.dumps({"roles": [{"name": "a", "instructions": "x", "subscriptions": ["b.c"]}]}),
        ),
        ("roles.toml", '[[roles]]\nname = "a"\ninstructions = "x"\nsubscriptions = ["b.c"]\n'),
        ("roles.yml", "hats: [{name: a, instructions: x, triggers: [b.c]}]"),
    ],
)
def test_yaml_json_and_toml_are_read(name, text):
    (role,) = role_file.read(text, name).roles
    assert (role.values["name"], role.values["subscriptions"]) == ("a", ["b.c"])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yml", "hats: [", "is no YAML or JSON"),
        ("a.toml", "hats = ", "is no TOML"),
        ("a.yml", "just words", "holds no settings"),
        ("a.yml", "agent: claude", "neither hats"),
        ("a.yml", "hats: 7", "neither a mapping nor a list"),
        ("a.yml", "a: &x [1]\nhats: *x", "alias"),
        ("a.yml", "[" * 40 + "]" * 40, "nested deeper"),
        ("a.yml", "x" * 300_000, "larger than"),
        ("a.yml", "roles: {}", "no list of roles"),
        ("a.json", '{"roles": [{"name": "a", "color": "red"}]}', "A role has no color"),
        ("a.json", '{"roles": [{"name": ["a"]}]}', "name of a role is no text"),
        ("a.json", '{"roles": [{"subscriptions": "b.c"}]}', "no list of topics"),
        ("a.json", '{"roles": [{"agent": true}]}', "agent of a role is the name"),
    ],
)
def test_what_is_no_file_of_roles_is_said_in_one_sentence(name, text, said):
    with pytest.raises(UnfitFile, match=said):
        role_file.read(text, name)

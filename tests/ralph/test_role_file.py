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
        ("a.toml", "hats = ", "is no TOML:"),
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
        ("a.json", '{"roles": [{"agent": 1.5}]}', "agent of a role is the name"),
        ("a.json", '{"roles": [{"name": "a"}, 7]}', "no list of roles"),
        ("a.json", '{"roles": [{"publishes": ["a", 7]}]}', "publishes of a role are no list"),
        ("a.json", '{"roles": [{"instructions": 7}]}', "instructions of a role is no text"),
        ("a.json", '{"roles": [{"model": 7}]}', "model of a role is no text"),
        ("a.json", '{"roles": [{"effort": 7}]}', "effort of a role is no text"),
        ("a.yml", "a: \ud83d", "is no YAML or JSON"),
        ("a.yml", "a: " + "[" * 12 + "]" * 12, "nested deeper than 12"),
        ("a.toml", "a = 1\n#" + "x" * 255_994, "larger than 256 kB"),
    ],
)
def test_what_is_no_file_of_roles_is_said_in_one_sentence(name, text, said):
    with pytest.raises(UnfitFile, match=said):
        role_file.read(text, name)


def test_a_file_may_be_so_large_and_so_deep():
    assert role_file.parsed("a = 1\n#" + "x" * 255_993, "a.toml") == {"a": 1}
    deep = role_file.parsed("a: " + "[" * 11 + "]" * 11)
    assert str(deep["a"]) == "[" * 11 + "]" * 11
    assert role_file.parsed("a: [" + "[], " * 20 + "]") == {"a": [[]] * 20}


def test_letters_that_a_database_refuses_are_taken_out_of_keys_and_texts():
    text = '{"a\\0": ["x\\0y", {"b\\0": 7}]}'
    assert role_file.parsed(text) == {"a": ["xy", {"b": 7}]}


def test_a_role_of_our_own_has_each_of_its_fields():
    whole = {
        **{"name": "a", "instructions": "x", "subscriptions": ["b.c"], "publishes": ["d.e"]},
        **{"agent": "codex", "model": "large", "effort": "high"},
    }
    (role,) = role_file.read(json.dumps({"roles": [whole]})).roles
    assert {**role.values, "agent": role.agent} == whole
    (bare,) = role_file.read('{"roles": [{"agent": 7}]}').roles
    texts = {"name": "", "instructions": "", "model": "", "effort": ""}
    assert (bare.values, bare.agent) == ({**texts, "subscriptions": [], "publishes": []}, 7)


def _hat(**more):
    """The one role of a hat `a`, what was changed, and what was not taken."""
    found = role_file.of_hats({"a": more}, "LOOP_COMPLETE", ["plan.start"])
    return found.roles[0], list(found.changed), list(found.not_taken)


@pytest.mark.parametrize(
    ("hat", "name", "value", "left"),
    [
        ({}, "name", "a", []),
        ({"name": "x" * 61}, "name", "x" * 60, []),
        ({"name": 7}, "name", "a", ["hats.a.name: it is no text"]),
        ({"name": "Coordinator"}, "name", "coordinator role", []),
        ({"model": "large"}, "model", "", ["hats.a.model: a role here has no such setting"]),
        ({"instructions": " x \n"}, "instructions", "x", []),
        ({"instructions": "x", "extra_instructions": ["y ", 7, " "]}, "instructions", "x\n\ny", []),
        ({"instructions": "x", "extra_instructions": "y"}, "instructions", "x", []),
        ({"instructions": "x", "extra_instructions": None}, "instructions", "x", []),
        ({"triggers": [" b.c ", "b.c", "d.*"]}, "subscriptions", ["b.c", "d.*"], []),
        ({"triggers": {"b": 1}}, "subscriptions", [], ["hats.a.triggers: it is no list of topics"]),
        (
            {"triggers": ["LOOP_*"]},
            *("subscriptions", []),
            ["hats.a.triggers: LOOP_* ends the loop and reaches no role"],
        ),
        (
            {"triggers": ["é" * 70]},
            *("subscriptions", []),
            [f"hats.a.triggers: “{'é' * 60}” is no topic"],
        ),
        ({"triggers": ["plan.start"]}, "subscriptions", ["plan.start", "loop.start"], []),
        (
            {"triggers": ["loop.start", "plan.start"]},
            *("subscriptions", ["loop.start", "plan.start"]),
            [],
        ),
        ({"publishes": ["b.*"]}, "publishes", [], ["hats.a.publishes: “b.*” is no topic"]),
        ({"default_publishes": "b.c"}, "publishes", ["b.c"], []),
        ({"publishes": ["b.c"], "default_publishes": "b.c"}, "publishes", ["b.c"], []),
        ({"default_publishes": "b c"}, "publishes", [], []),
    ],
)
def test_each_setting_of_a_hat_is_taken_or_listed(hat, name, value, left):
    role, _, not_taken = _hat(**hat)
    assert (role.values[name], not_taken) == (value, left)


@pytest.mark.parametrize(
    ("hat", "changed"),
    [
        ({"instructions": "x", "triggers": ["b.c"]}, []),
        (
            {"instructions": "ralph emit b.c"},
            ["hats.a: its instructions name the commands of labctl now"],
        ),
        (
            {"triggers": ["plan.start"]},
            ["hats.a: it takes loop.start too, with which loops begin here"],
        ),
        ({"triggers": ["plan.start", "loop.start"]}, []),
    ],
)
def test_what_became_something_else_is_listed(hat, changed):
    assert _hat(**hat)[1] == changed


ARGUMENTS = ["hats.a.backend: agents have their arguments in the settings"]


@pytest.mark.parametrize(
    ("backend", "agent", "left"),
    [
        (None, None, []),
        ("", None, []),
        ("x" * 101, "x" * 100, []),
        ({"type": "codex"}, "codex", []),
        ({"command": "mine"}, "mine", []),
        ({"type": "codex", "command": "mine", "agent": "b"}, "codex", ARGUMENTS),
        ({"args": ["-x"]}, None, ARGUMENTS),
    ],
)
def test_the_agent_of_a_hat_is_named_without_its_arguments(backend, agent, left):
    role, _, not_taken = _hat(backend=backend)
    assert (role.agent, not_taken) == (agent, left)


def test_what_is_no_hat_is_listed_and_the_others_are_taken():
    found = role_file.of_hats([7, {"triggers": ["b.c"]}, {"name": "c"}])
    assert [one.values["name"] for one in found.roles] == ["1", "c"]
    assert found.not_taken == ("hats.0: it is no hat",)
    named = role_file.of_hats([{"name": "c", "color": "red"}, {"color": "red"}])
    assert [line.partition(":")[0] for line in named.not_taken] == ["hats.c.color", "hats.1.color"]
    assert role_file.of_hats(None) == role_file.Roles()

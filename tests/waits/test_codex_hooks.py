"""The hooks that an interactive Codex is given, as the program itself knows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.waits import codex_hooks

LABCTL = Path("/a b/labctl")


@pytest.mark.parametrize(
    ("event", "known"),
    [
        (
            "permission_request",
            "sha256:64d445bfd419d5b91900ddea121a282cb3f6aeed3da1382929d6c61782ab3803",
        ),
        ("stop", "sha256:80157b5fd97b98cc1da1b60062fd5c603a480ecdf304571e60baf0f0a674e2da"),
    ],
)
def test_a_hook_is_trusted_by_the_digest_that_codex_0_169_told_of_it(event, known):
    """As its `hooks/list` answered for a script of that name."""
    assert codex_hooks.digest(event, "/tmp/w-codex/hook.sh") == known


def test_an_interactive_codex_is_given_our_hooks_and_trusts_these_alone():
    argv = codex_hooks.equipped(["/opt/bin/codex", "--model", "x", "{prompt}"], LABCTL)
    assert (argv[0], argv[-3:]) == ("/opt/bin/codex", ["--model", "x", "{prompt}"])
    hooks = [word for word in argv if word.startswith("hooks.")]
    assert [word.partition("=")[0] for word in hooks] == [
        *(f"hooks.{event}" for event in codex_hooks.EVENTS),
        "hooks.state",
    ]
    assert "command=\"'/a b/labctl' hook session\"" in hooks[0]
    assert hooks[-1].count("trusted_hash") == len(codex_hooks.EVENTS)
    assert not any("bypass" in word for word in argv)


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["claude", "{prompt}"],
        ["npx", "codex", "{prompt}"],
        ["codex", "exec", "{prompt}"],
        ["codex", "-c", "hooks.Stop=[]", "{prompt}"],
    ],
)
def test_what_is_no_interactive_codex_or_has_hooks_of_its_own_is_left_as_it_is(argv):
    assert codex_hooks.equipped(argv, LABCTL) == argv

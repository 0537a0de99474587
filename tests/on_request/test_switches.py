"""The switches of a session or a command over a project's terms, and how they are typed: tables."""

from __future__ import annotations

import argparse

import pytest

from runs.core.refusal import ActRefused
from runs.on_request import switch_options
from runs.validation import specs
from runs.validation.specs import Command, Coverage, Kind, Scope, Switch, Switches, Terms

TESTS = Command("tests", ("pytest",), Kind.TEST, coverage_args=("--cov-fail-under={threshold}",))
TERMS = Terms(commands=(TESTS,), disabled=frozenset({Switch.E2E}))


def read(*argv: str) -> Switches:
    parser = argparse.ArgumentParser()
    switch_options.add(parser)
    return switch_options.read(parser.parse_args(argv))


@pytest.mark.row("MALA-V-60", "MALA-V-69", "MALA-V-70", level="pure")
@pytest.mark.parametrize(
    ("argv", "found"),
    [
        pytest.param([], Switches(), id="nothing"),
        pytest.param(
            ["--disable-validations", "coverage, e2e,"],
            Switches(frozenset({Switch.COVERAGE, Switch.E2E})),
            id="two",
        ),
        pytest.param(["--disable-validations", ""], Switches(), id="an empty list"),
        pytest.param(
            ["--coverage-threshold", "90.5"], Switches(coverage_threshold=90.5), id="90.5"
        ),
        pytest.param(["--coverage-threshold", "0"], Switches(coverage_threshold=0.0), id="0"),
        pytest.param(["--keep-worktrees"], Switches(keep_worktrees=True), id="kept"),
    ],
)
def test_what_is_typed_is_stored_and_read_again(argv: list[str], found: Switches) -> None:
    assert read(*argv) == found
    assert Switches.stored(found.to_json()) == found
    assert bool(found.to_json()) == bool(argv and argv[-1])


@pytest.mark.row("MALA-V-68", "MALA-V-69", level="pure")
@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["--disable-validations", "covrage"], "covrage is none of the switches: post-validate"),
        (["--disable-validations", "e2e,codex-review"], "codex-review is called review now"),
        (["--coverage-threshold", "101"], "101 is no percentage from 0 to 100"),
        (["--coverage-threshold", "-1"], "-1 is no percentage"),
        (["--coverage-threshold", "nan"], "nan is no percentage"),
        (["--coverage-threshold", ""], "is no percentage"),
        (["--coverage-threshold", "many"], "many is no percentage"),
    ],
)
def test_what_cannot_be_meant_is_refused(argv: list[str], text: str) -> None:
    with pytest.raises(ActRefused, match=text):
        read(f"{argv[0]}={argv[1]}")


@pytest.mark.row("MALA-V-60", "MALA-V-69", "MALA-V-70", level="pure")
def test_switches_turn_more_off_and_nothing_on() -> None:
    found = specs.over(TERMS, Switches(frozenset({Switch.REVIEW}), 90.5, True))
    assert found.disabled == {Switch.E2E, Switch.REVIEW}
    assert found.coverage == Coverage(min_percent=90.5)
    assert found.worktrees.keep_on_failure
    assert specs.effective(found, Scope.PER_ISSUE).commands[0].argv[1] == "--cov-fail-under=90.5"
    assert specs.over(TERMS, Switches()) == TERMS


def test_what_a_row_keeps_of_an_older_version_turns_nothing_off() -> None:
    assert Switches.stored({"disabled": ["lint-everything", "e2e"]}) == Switches(
        frozenset({Switch.E2E})
    )
    assert Switches.stored({}) == Switches()

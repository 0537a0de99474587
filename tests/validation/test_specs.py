"""What a project's terms run for each scope, a row for each rule."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from runs.validation import specs
from runs.validation.specs import (
    Command,
    Coverage,
    Kind,
    Scope,
    Spec,
    Switch,
    Terms,
    UnknownSwitch,
    effective,
)

COVERAGE = ("--cov", "--cov-branch", "--cov-report=xml", "--cov-fail-under={threshold}")
DEPS = Command(
    "deps",
    ("uv", "sync", "--all-extras"),
    Kind.DEPS,
    lock_files=("pyproject.toml", "uv.lock"),
)
LINT = Command("ruff", ("ruff", "check"), Kind.LINT)
TESTS = Command(
    "tests",
    ("pytest",),
    Kind.TEST,
    use_test_mutex=True,
    coverage_args=COVERAGE,
    unit_args=("-m", "not integration"),
)
SLOW = Command("slow", ("pytest", "slow"), Kind.TEST, is_integration=True)
FULL = Command("full", ("./full",), Kind.E2E)
# Written down in another order than they run in.
TERMS = Terms((FULL, TESTS, SLOW, LINT, DEPS))
ISSUE, RUN = Scope.PER_ISSUE, Scope.RUN_LEVEL


def names(spec: Spec) -> list[str]:
    return [one.name for one in spec.commands]


def argv(spec: Spec, name: str) -> tuple[str, ...]:
    return next(one.argv for one in spec.commands if one.name == name)


def without(*switches: Switch) -> Terms:
    return replace(TERMS, disabled=frozenset(switches))


@pytest.mark.row("MALA-V-01", level="pure")
@pytest.mark.parametrize("scope", list(Scope))
def test_a_spec_says_six_things_and_comes_back_from_json_as_it_was(scope: Scope) -> None:
    spec = effective(TERMS, scope)
    stored = json.loads(json.dumps(specs.to_json(spec)))
    assert sorted(stored) == [
        *("commands", "coverage", "e2e", "require_clean_git"),
        *("require_pytest_for_code_changes", "scope"),
    ]
    assert specs.from_json(stored) == spec


@pytest.mark.row("MALA-V-02", level="pure")
def test_a_command_fails_its_validation_unless_that_is_said() -> None:
    plain = Command("x", ("x",), Kind.LINT)
    assert (plain.use_test_mutex, plain.allow_fail) == (False, False)
    assert [one.name for one in fields(Command)][:5] == [
        *("name", "argv", "kind", "use_test_mutex", "allow_fail")
    ]


@pytest.mark.row("MALA-V-03", "C-45", level="pure")
def test_there_are_six_kinds_and_no_other() -> None:
    assert [
        specs.kind(one) for one in ["deps", "lint", "format", "typecheck", "test", "e2e"]
    ] == list(Kind)
    for other in ("foo", "setup", "build", "custom", "", "TEST"):
        with pytest.raises(specs.UnknownKind, match="none of the kinds: deps, lint"):
            specs.kind(other)


@pytest.mark.row("MALA-V-100", level="pure")
def test_there_are_seven_switches_and_none_for_what_is_left_out() -> None:
    """No resume from metadata, no classification of one's own, no environment shared by a run."""
    assert {one.value for one in Switch} == {
        *("post-validate", "run-level-validate", "integration-tests", "coverage", "e2e", "review"),
        "followup-on-run-validate-fail",
    }


@pytest.mark.row("MALA-V-10", level="pure")
def test_there_are_two_scopes() -> None:
    assert [scope.value for scope in Scope] == ["per_issue", "run_level"]


@pytest.mark.row("MALA-V-13", level="pure")
def test_coverage_is_85_percent_with_branches_unless_somebody_says_otherwise() -> None:
    assert Coverage() == Coverage(True, 85.0, True, None)


@pytest.mark.row("MALA-V-15", "MALA-V-17", level="pure")
def test_the_fixture_and_the_worktrees_have_terms_of_their_own() -> None:
    assert (Terms().e2e.enabled, Terms().e2e.command, Terms().e2e.minutes) == (True, (), 5)
    assert Terms().worktrees == specs.WorktreePlan("", False)


def test_commands_run_in_the_order_of_their_kinds_whatever_order_they_stand_in() -> None:
    assert names(effective(TERMS, RUN)) == ["deps", "ruff", "tests", "slow", "full"]
    both = Terms((replace(LINT, name="b"), replace(LINT, name="a")))
    assert names(effective(both, ISSUE)) == ["b", "a"]


@pytest.mark.row("MALA-V-26", "MALA-V-59", "MALA-V-78", level="pure")
def test_everything_is_on_by_default_and_end_to_end_is_for_the_run_level_alone() -> None:
    issue, run = effective(TERMS, ISSUE), effective(TERMS, RUN)
    assert names(issue) == ["deps", "ruff", "tests", "slow"]
    assert (issue.e2e.enabled, run.e2e.enabled) == (False, True)
    assert issue.coverage == run.coverage == Coverage()
    assert Terms().disabled == frozenset()


@pytest.mark.row("MALA-V-39", "MALA-V-53", level="pure")
@pytest.mark.parametrize("scope", list(Scope))
def test_both_scopes_begin_with_the_dependencies(scope: Scope) -> None:
    assert effective(TERMS, scope).commands[0].argv == ("uv", "sync", "--all-extras")


@pytest.mark.row("MALA-V-40", level="pure")
@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        (["src/app.py"], False),
        ([], False),
        (["docs/uv.lock"], False),
        (["uv.lock"], True),
        (["src/app.py", "pyproject.toml"], True),
    ],
)
def test_dependencies_are_installed_when_a_lock_file_has_changed(
    changed: list[str], wanted: bool
) -> None:
    assert specs.is_wanted(DEPS, changed) is wanted
    assert specs.is_wanted(TESTS, changed)


@pytest.mark.row("MALA-V-61", "MALA-V-75", level="pure")
def test_without_post_validate_no_test_is_run_and_none_is_missed() -> None:
    terms = without(Switch.POST_VALIDATE)
    spec = effective(terms, RUN)
    assert names(spec) == ["deps", "ruff", "full"]
    assert not spec.coverage.enabled
    assert not spec.require_pytest_for_code_changes
    assert specs.lacking(terms, ISSUE) == ()


@pytest.mark.row("MALA-V-63", "MALA-V-76", level="pure")
def test_without_integration_tests_their_commands_go_and_the_others_leave_them_out() -> None:
    spec = effective(without(Switch.INTEGRATION_TESTS), ISSUE)
    assert names(spec) == ["deps", "ruff", "tests"]
    assert argv(spec, "tests")[-2:] == ("-m", "not integration")
    assert "not integration" not in argv(effective(TERMS, ISSUE), "tests")


@pytest.mark.row("MALA-V-64", "MALA-V-77", level="pure")
def test_without_coverage_nothing_measures_it() -> None:
    spec = effective(without(Switch.COVERAGE), ISSUE)
    assert argv(spec, "tests") == ("pytest",)
    assert not spec.coverage.enabled


@pytest.mark.row("MALA-V-65", "MALA-V-78", level="pure")
def test_without_e2e_there_is_no_fixture_and_no_command_of_that_kind() -> None:
    spec = effective(without(Switch.E2E), RUN)
    assert not spec.e2e.enabled
    assert names(spec) == ["deps", "ruff", "tests", "slow"]


@pytest.mark.row("MALA-V-62", "MALA-V-66", "MALA-V-67", level="pure")
@pytest.mark.parametrize("switch", [Switch.RUN_LEVEL, Switch.REVIEW, Switch.FOLLOW_UP])
def test_the_other_switches_change_no_command(switch: Switch) -> None:
    for scope in Scope:
        assert effective(without(switch), scope) == effective(TERMS, scope)


@pytest.mark.row("MALA-V-69", "MALA-V-79", level="pure")
@pytest.mark.parametrize(("percent", "shown"), [(85.0, "85"), (90.5, "90.5"), (0.0, "0")])
def test_the_threshold_goes_into_the_arguments_of_the_test_command(
    percent: float, shown: str
) -> None:
    spec = effective(replace(TERMS, coverage=Coverage(min_percent=percent)), ISSUE)
    assert argv(spec, "tests") == ("pytest", *COVERAGE[:3], f"--cov-fail-under={shown}")
    assert argv(spec, "slow") == ("pytest", "slow")


@pytest.mark.row("MALA-V-69", level="pure")
def test_a_threshold_is_a_percentage() -> None:
    assert [specs.threshold(text) for text in ("90.5", "0", "100", " 85 ")] == [90.5, 0, 100, 85]
    for text in ("", "x", "-1", "100.1", "nan", "inf"):
        with pytest.raises(specs.UnfitThreshold, match="from 0 to 100"):
            specs.threshold(text)


@pytest.mark.row("MALA-V-60", level="pure")
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("coverage,e2e", {Switch.COVERAGE, Switch.E2E}),
        (" coverage , e2e ,", {Switch.COVERAGE, Switch.E2E}),
        ("", set()),
        (["review"], {Switch.REVIEW}),
        (
            "post-validate,run-level-validate,integration-tests,coverage,e2e,review,"
            "followup-on-run-validate-fail",
            set(Switch),
        ),
    ],
)
def test_switches_are_read_from_a_list(given: Any, wanted: set[Switch]) -> None:
    assert specs.switches(given) == wanted


@pytest.mark.row("MALA-V-68", "MALA-V-71", level="pure")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("codex-review", "called review now"),
        ("coverage,codex-review", "called review now"),
        ("codex-thinking-mode", "none of the switches: post-validate"),
        ("lint", "none of the switches"),
        ("E2E", "none of the switches"),
    ],
)
def test_a_switch_that_nobody_knows_is_refused_and_an_old_name_points_to_the_new(
    given: str, said: str
) -> None:
    with pytest.raises(UnknownSwitch, match=said):
        specs.switches(given)


@pytest.mark.row("MALA-V-85", level="pure")
@pytest.mark.parametrize(
    ("terms", "said"),
    [
        (TERMS, ""),
        (replace(TERMS, commands=(LINT,)), "No command of the kind test is run per issue"),
        (replace(TERMS, commands=()), "No command of the kind test"),
        (replace(TERMS, commands=(LINT,), require_pytest_for_code_changes=False), ""),
        (replace(TERMS, commands=(SLOW,)), "No test command per issue measures coverage"),
        (replace(TERMS, commands=(SLOW,), disabled=frozenset({Switch.COVERAGE})), ""),
        (
            replace(TERMS, commands=(SLOW,), disabled=frozenset({Switch.INTEGRATION_TESTS})),
            "No command of the kind test",
        ),
        (replace(TERMS, commands=(SLOW,), disabled=frozenset({Switch.POST_VALIDATE})), ""),
        (replace(TERMS, commands=(replace(SLOW, argv=("make", "coverage")),)), ""),
        (replace(TERMS, commands=(SLOW,), coverage=Coverage(report_path="lcov.info")), ""),
        (replace(TERMS, commands=(SLOW,), coverage=Coverage(enabled=False)), ""),
    ],
)
def test_code_changes_need_tests_and_coverage_before_anything_runs(terms: Terms, said: str) -> None:
    found = specs.lacking(terms, ISSUE)
    assert len(found) == bool(said)
    assert said in " ".join(found)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, ""),
        ({"name": ""}, "name"),
        ({"name": "../x"}, "name"),
        ({"name": "x" * 61}, "name"),
        ({"argv": ()}, "argv"),
        ({"argv": ("",)}, "argv"),
        ({"minutes": 0}, "minutes"),
        ({"minutes": 1441}, "minutes"),
        ({"lock_files": ("../uv.lock",)}, "lock_files"),
        ({"lock_files": ("/etc/passwd",)}, "lock_files"),
        ({"lock_files": ("web/package.json",)}, ""),
        ({"coverage_args": ("--cov",)}, "coverage_args"),
        ({"unit_args": ("-m", "x")}, "unit_args"),
        ({"is_integration": True}, "is_integration"),
    ],
)
def test_what_is_wrong_with_a_command_is_said_at_its_field(
    given: dict[str, Any], field: str
) -> None:
    assert list(specs.wrong(replace(LINT, **given))) == ([field] if field else [])
    if field in ("coverage_args", "unit_args", "is_integration"):
        assert specs.wrong(replace(TESTS, **given)) == {}

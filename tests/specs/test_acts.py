"""What people change of a project's checks: stored whole or refused at the field, told, never overwritten."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runs.core.states import CompletionPolicy
from runs.models import CheckCommand, CheckTerms, LoopTerms, Notice, Project, Reviewer
from runs.settings.edits import ChangedMeanwhile
from runs.specs import acts, spec_file
from runs.specs.acts import SpecRefused
from runs.validation.spec_models import terms_of
from runs.validation.specs import Command, Kind, Switch
from tests import make
from tests.fakes import World

pytestmark = pytest.mark.django_db

TESTS = Command("pytest", ("pytest", "--token=geheim"), Kind.TEST, use_test_mutex=True)
LINT = Command("ruff", ("ruff", "check"), Kind.LINT)
MYPY = Command("mypy", ("mypy",), Kind.LINT)


@pytest.fixture
def project(world: World) -> Project:
    return make.a_project()


def told() -> list[tuple[str, str]]:
    return list(Notice.objects.order_by("pk").values_list("text", "by"))


def names(project: Project) -> list[str]:
    return [one.name for one in project.check_commands.all()]


def test_the_policy_is_chosen_and_told_once(world: World, project: Project) -> None:
    assert acts.store_policy(world.lab, project, "gates", by="anna")
    assert not acts.store_policy(world.lab, project, "gates", by="anna")
    assert Project.objects.get().policy == CompletionPolicy.GATES
    assert told() == [("the completion policy is gates now", "anna")]
    with pytest.raises(SpecRefused, match="no completion policy; there are") as refused:
        acts.store_policy(world.lab, project, "hope", by="anna")
    assert refused.value.field == "policy"


def test_gates_are_refused_while_runs_are_loops(world: World, project: Project) -> None:
    LoopTerms.objects.create(project=project, is_on=True)
    with pytest.raises(SpecRefused, match="Turn off “Work in loops”") as refused:
        acts.store_policy(world.lab, project, "gates", by="anna")
    assert refused.value.field == "policy"
    assert Project.objects.get().policy == CompletionPolicy.PULL_REQUEST
    file = spec_file.read('{"format": "labsite checks", "version": 1, "policy": "gates"}')
    with pytest.raises(SpecRefused, match="Turn off"):
        spec_file.take(world.lab, project, file, by="anna")
    LoopTerms.objects.update(is_on=False)
    assert acts.store_policy(world.lab, project, "gates", by="anna")


@pytest.mark.row("MALA-V-13", "MALA-V-15", "MALA-V-17", "MALA-V-59", level="contract")
def test_a_project_that_set_nothing_has_the_defaults(project: Project) -> None:
    terms = terms_of(project)
    assert terms.disabled == frozenset()
    assert (terms.coverage.enabled, terms.coverage.min_percent, terms.coverage.branch) == (
        *(True, 85.0, True),
    )
    assert terms.coverage.report_path is None
    assert (terms.e2e.enabled, terms.e2e.command, terms.e2e.required_env) == (True, (), ())
    assert not terms.worktrees.keep_on_failure
    assert not CheckTerms.objects.exists()


@pytest.mark.row("MALA-V-15", "MALA-V-17", "MALA-V-60", level="contract")
def test_terms_are_stored_and_told_without_commands(world: World, project: Project) -> None:
    values = {
        "disabled": "coverage,e2e",
        "coverage_min_percent": 90.5,
        "e2e_command": ["./full", "--token=geheim"],
        "e2e_required_env": ["CLAUDE_TOKEN"],
        "keep_worktrees": True,
    }
    assert acts.store_terms(world.lab, project, values, by="anna")
    assert not acts.store_terms(world.lab, project, values, by="anna")
    terms = terms_of(project)
    assert terms.disabled == {Switch.COVERAGE, Switch.E2E}
    assert (terms.coverage.min_percent, terms.e2e.command[0]) == (90.5, "./full")
    assert terms.e2e.required_env == ("CLAUDE_TOKEN",)
    assert terms.worktrees.keep_on_failure
    assert told() == [
        (
            "checks: turned off: coverage, e2e; minimum coverage: 90.5; end-to-end command changed; "
            "variables of the end-to-end check changed; "
            "keep the clean worktree after a failure: on",
            "anna",
        )
    ]


@pytest.mark.row("MALA-V-68", level="contract")
@pytest.mark.parametrize(
    ("values", "field", "said"),
    [
        ({"disabled": "codex-review"}, "disabled", "called review now"),
        ({"disabled": ["lint"]}, "disabled", "none of the switches"),
        ({"coverage_min_percent": 101}, "coverage_min_percent", "less than or equal"),
        ({"coverage_report_path": "../x"}, "coverage_report_path", "below the repository"),
        ({"e2e_command": [""]}, "e2e_command", "Write the program"),
        ({"e2e_command": "./full"}, "e2e_command", "Write the program"),
        ({"e2e_required_env": ["A=B"]}, "e2e_required_env", "names of variables"),
        ({"e2e_minutes": 0}, "e2e_minutes", "greater than or equal"),
        ({"max_gate_attempts": 21}, "max_gate_attempts", "less than or equal"),
        ({"coverage_enabled": False}, "coverage_enabled", "no such setting"),
        ({"project_id": 1}, "project_id", "no such setting"),
    ],
)
def test_wrong_terms_are_refused_at_their_field_and_nothing_is_stored(
    world: World, project: Project, values: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(SpecRefused, match=said) as refused:
        acts.store_terms(world.lab, project, {"keep_worktrees": True, **values}, by="anna")
    assert list(refused.value.fields) == [field]
    assert not CheckTerms.objects.exists()
    assert told() == []


def test_a_command_is_added_changed_moved_and_removed(world: World, project: Project) -> None:
    lab = world.lab
    tests = acts.add_command(lab, project, TESTS, by="anna")
    ruff = acts.add_command(lab, project, LINT, by="anna")
    mypy = acts.add_command(lab, project, MYPY, by="anna")
    assert acts.change_command(lab, tests, replace(TESTS, minutes=5), by="anna")
    assert not acts.change_command(lab, tests, replace(TESTS, minutes=5), by="anna")
    assert acts.move_command(lab, mypy, is_up=True, by="anna")
    assert not acts.move_command(lab, mypy, is_up=True, by="anna")
    assert names(project) == ["pytest", "mypy", "ruff"]
    assert not acts.move_command(lab, tests, is_up=False, by="anna"), "the only one of its kind"
    assert acts.remove_command(lab, ruff, by="anna")
    assert not acts.remove_command(lab, ruff, by="anna")
    assert terms_of(project).commands == (replace(TESTS, minutes=5), MYPY)
    assert [text for text, _ in told()] == [
        *("command pytest (tests) was added", "command ruff (lint) was added"),
        *("command mypy (lint) was added", "command pytest (tests) was changed"),
        *("command mypy was moved up", "command ruff was removed"),
    ]
    assert "geheim" not in str(told())


@pytest.mark.row("MALA-V-02", level="contract")
def test_a_command_without_allow_fail_is_stored_so(world: World, project: Project) -> None:
    acts.add_command(world.lab, project, LINT, by="anna")
    row = CheckCommand.objects.get()
    assert (row.allow_fail, row.use_test_mutex, row.minutes) == (False, False, 30)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": "ruff"}, "name"),
        ({"name": ""}, "name"),
        ({"argv": ()}, "argv"),
        ({"argv": ("x",) * 201}, "argv"),
        ({"kind": Kind.LINT, "unit_args": ("-m",)}, "unit_args"),
        ({"minutes": 2000}, "minutes"),
    ],
)
def test_a_wrong_command_is_refused_at_its_field(
    world: World, project: Project, given: dict[str, Any], field: str
) -> None:
    acts.add_command(world.lab, project, LINT, by="anna")
    with pytest.raises(SpecRefused) as refused:
        acts.add_command(world.lab, project, replace(TESTS, **given), by="anna")
    assert list(refused.value.fields) == [field]
    assert names(project) == ["ruff"]


def test_there_is_a_limit_of_commands(world: World, project: Project) -> None:
    rows = [
        CheckCommand(project=project, position=n, name=f"c{n}", argv=["x"], kind="lint")
        for n in range(50)
    ]
    CheckCommand.objects.bulk_create(rows)
    with pytest.raises(SpecRefused, match="at most 50"):
        acts.add_command(world.lab, project, TESTS, by="anna")


def test_whoever_saves_a_form_of_before_a_change_is_told_and_overwrites_nothing(
    world: World, project: Project
) -> None:
    lab = world.lab
    row = acts.add_command(lab, project, TESTS, by="anna")
    marks = (acts.mark(acts.terms_row(project)), acts.mark(row), acts.mark(project))
    acts.store_terms(lab, project, {"keep_worktrees": True}, by="bert", seen=marks[0])
    acts.change_command(lab, row, replace(TESTS, minutes=5), by="bert", seen=marks[1])
    acts.store_policy(lab, project, "gates", by="bert", seen=marks[2])
    for late in (
        lambda: acts.store_terms(lab, project, {"e2e_minutes": 7}, by="anna", seen=marks[0]),
        lambda: acts.change_command(lab, row, TESTS, by="anna", seen=marks[1]),
        lambda: acts.store_policy(lab, project, "pull_request", by="anna", seen=marks[2]),
    ):
        with pytest.raises(ChangedMeanwhile) as refused:
            late()
        assert refused.value.code == "changed"
    assert terms_of(project).worktrees.keep_on_failure
    assert terms_of(project).e2e.minutes == 5
    assert terms_of(project).commands[0].minutes == 5
    assert Project.objects.get().policy == "gates"
    acts.remove_command(lab, row, by="bert")
    with pytest.raises(SpecRefused, match="removed meanwhile"):
        acts.change_command(lab, row, TESTS, by="anna")


def test_the_mark_is_another_one_after_each_change(world: World, project: Project) -> None:
    marks = {acts.mark(acts.terms_row(project))}
    for values in ({"keep_worktrees": True}, {"disabled": "e2e"}, {"e2e_command": ["x"]}):
        acts.store_terms(world.lab, project, values, by="anna")
        marks.add(acts.mark(acts.terms_row(project)))
    assert len(marks) == 4


def test_proposals_are_taken_together_or_not_at_all(world: World, project: Project) -> None:
    lab = world.lab
    acts.add_command(lab, project, LINT, by="anna")
    new = replace(LINT, argv=("ruff", "check", "src"))
    assert acts.take(lab, project, [new, TESTS], {"keep_worktrees": True}, by="anna") == (1, 1)
    assert acts.take(lab, project, [new, TESTS], {"keep_worktrees": True}, by="anna") == (0, 0)
    assert names(project) == ["ruff", "pytest"]
    assert told()[1:] == [
        (
            "commands pytest, ruff were taken over; checks: keep the clean worktree after a failure: on",
            "anna",
        )
    ]
    with pytest.raises(SpecRefused):
        acts.take(lab, project, [MYPY, replace(MYPY, name="x", argv=())], {}, by="anna")
    with pytest.raises(SpecRefused):
        acts.take(lab, project, [MYPY], {"e2e_minutes": 0}, by="anna")
    assert names(project) == ["ruff", "pytest"]


def test_a_reviewer_is_an_agent_or_a_command(world: World, project: Project) -> None:
    lab, agent = world.lab, make.an_agent()
    row = acts.add_reviewer(lab, project, {"name": "codex", "profile_id": agent.pk}, by="anna")
    acts.add_reviewer(lab, project, {"name": "script", "command": ["/opt/review"]}, by="anna")
    mark = acts.mark(row)
    assert acts.change_reviewer(lab, row, {"is_on": False}, by="bert", seen=mark)
    assert not acts.change_reviewer(lab, row, {"is_on": False}, by="bert")
    with pytest.raises(ChangedMeanwhile):
        acts.change_reviewer(lab, row, {"instructions": "x"}, by="anna", seen=mark)
    assert [(one.name, one.is_on) for one in Reviewer.objects.all()] == [
        ("codex", False),
        ("script", True),
    ]
    assert acts.remove_reviewer(lab, row, by="anna")
    assert not acts.remove_reviewer(lab, row, by="anna")
    assert [text for text, _ in told()] == [
        *("reviewer codex was added", "reviewer script was added"),
        *("reviewer codex was changed", "reviewer codex was removed"),
    ]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": "script"}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"command": []}, "profile_id"),
        ({"profile_id": 1}, "command"),
        ({"command": "./review"}, "command"),
        ({"command": ["./review"]}, "command"),
        ({"command": ["scripts/review"]}, "command"),
        ({"command": [], "profile_id": 999}, "profile_id"),
        ({"instructions": "x" * 10_001}, "instructions"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_reviewer_is_refused_at_its_field(
    world: World, project: Project, given: dict[str, Any], field: str
) -> None:
    acts.add_reviewer(world.lab, project, {"name": "script", "command": ["/opt/x"]}, by="anna")
    with pytest.raises(SpecRefused) as refused:
        values = {"name": "other", "command": ["/opt/x"], **given}
        acts.add_reviewer(world.lab, project, values, by="anna")
    assert list(refused.value.fields) == [field]
    assert Reviewer.objects.count() == 1


def test_there_is_a_limit_of_reviewers(world: World, project: Project) -> None:
    for number in range(10):
        values = {"name": f"r{number}", "command": ["/opt/x"]}
        acts.add_reviewer(world.lab, project, values, by="anna")
    with pytest.raises(SpecRefused, match="at most 10"):
        acts.add_reviewer(world.lab, project, {"name": "r", "command": ["/opt/x"]}, by="anna")

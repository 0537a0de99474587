"""The page *Checks* of a project, without JavaScript: what it shows, stores and refuses."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from runs.core.states import CompletionPolicy
from runs.models import (
    AgentProfile,
    CheckCommand,
    LoopTerms,
    Notice,
    Project,
    Reviewer,
    Settings,
)
from runs.specs import acts
from runs.validation.spec_models import terms_of
from runs.validation.specs import Command, Kind, Switch
from tests import make
from tests.fakes import World

pytestmark = pytest.mark.django_db

TESTS = Command("pytest", ("pytest", "-q"), Kind.TEST, coverage_args=("--cov",))
GIVEN = {
    "name": "ruff",
    "argv": "ruff check .",
    "kind": "lint",
    "minutes": "30",
    "coverage_args": "",
    "unit_args": "",
    "lock_files": "",
}
TERMS = {
    "on": [one.value for one in Switch],
    "require_clean_git": "on",
    "require_pytest_for_code_changes": "on",
    "coverage_min_percent": "85",
    "coverage_branch": "on",
    "coverage_report_path": "",
    "max_gate_attempts": "3",
    "max_review_attempts": "3",
    "review_minutes": "20",
    "review_total_minutes": "120",
    "e2e_command": "",
    "e2e_required_env": "",
    "e2e_minutes": "5",
}


def said(answer: Any) -> str:
    """The words of a page as somebody reads them."""
    words = re.sub(r"<(title|script).*?</\1>|<[^>]*>", " ", answer.content.decode(), flags=re.S)
    return re.sub(r"\s+([.,])", r"\1", " ".join(html.unescape(words).split()))


class Page:
    """The page of one project, as Anna uses it."""

    def __init__(self, client: Client, project: Project) -> None:
        self.client, self.project = client, project

    def at(self, name: str = "spec", *more: object) -> str:
        return reverse(f"runs:{name}", args=[self.project.pk, *more])

    def get(self, name: str = "spec", *more: object) -> Any:
        return self.client.get(self.at(name, *more))

    def text(self) -> str:
        return said(self.get())

    def post(self, name: str, data: dict[str, Any] | None = None, *more: object) -> Any:
        return self.client.post(self.at(name, *more), data or {})

    def add(self, world: World, command: Command = TESTS) -> CheckCommand:
        return acts.add_command(world.lab, self.project, command, by="bert")


@pytest.fixture
def page(world: World, client: Client, operator: User) -> Page:
    client.force_login(operator)
    return Page(client, make.a_project())


def test_a_new_project_is_led_to_its_first_command(page: Page) -> None:
    shown = page.text()
    assert "nothing is run until you have accepted them" in shown
    assert "A run has succeeded when the pull request of its branch is there" in shown
    assert "Configuration error" not in shown


@pytest.mark.row("MALA-V-59", "MALA-V-13", level="contract")
def test_a_new_project_has_all_switches_on_and_85_percent(page: Page) -> None:
    form = page.get().context["terms_form"]
    assert [(name, is_on) for name, _, _, is_on in form.switches] == [
        (one.value, True)
        for one in (
            *(Switch.POST_VALIDATE, Switch.INTEGRATION_TESTS, Switch.COVERAGE, Switch.REVIEW),
            *(Switch.RUN_LEVEL, Switch.E2E, Switch.FOLLOW_UP),
        )
    ]
    assert form["coverage_min_percent"].value() == "85"
    assert form["coverage_branch"].value()


def test_the_policy_is_chosen_and_what_happens_is_said(page: Page) -> None:
    answer = page.post("spec-policy", {"policy": "gates"})
    assert (answer.status_code, answer.url) == (303, page.at())
    shown = page.text()
    assert Project.objects.get().policy == CompletionPolicy.GATES
    assert "the agent has to have run" not in shown
    assert "No reviewer is set up, so the review fails" in shown
    assert page.post("spec-policy", {"policy": "hope"}).status_code == 422


def test_gates_are_refused_at_the_field_while_runs_are_loops(page: Page) -> None:
    LoopTerms.objects.create(project=Project.objects.get(), is_on=True)
    answer = page.post("spec-policy", {"policy": "gates"})
    assert answer.status_code == 422
    assert "Turn off “Work in loops”" in answer.content.decode()


@pytest.mark.row("MALA-V-85", level="contract")
def test_a_missing_test_command_is_a_configuration_error_before_anything_runs(
    page: Page, world: World
) -> None:
    Project.objects.update(policy="gates")
    assert "Configuration error. No command of the kind test" in page.text()
    head = said(page.client.get(reverse("runs:project-runs", args=[page.project.pk])))
    assert "Blocked. No command of the kind test" in head
    page.add(world, Command("pytest", ("pytest",), Kind.TEST))
    assert "Configuration error. No test command per issue measures coverage" in page.text()
    CheckCommand.objects.update(coverage_args=["--cov"])
    assert "Configuration error" not in page.text()


@pytest.mark.row("MALA-V-02", "MALA-V-03", level="contract")
def test_a_command_is_written_down_changed_and_removed(page: Page) -> None:
    assert page.get("spec-command-new").status_code == 200
    assert page.post("spec-command-new", GIVEN).url == page.at()
    row = CheckCommand.objects.get()
    assert (row.argv, row.kind, row.allow_fail) == (["ruff", "check", "."], "lint", False)
    shown = said(page.get("spec-command", row.pk))
    assert "Edit ruff" in shown
    changed = {**GIVEN, "argv": "ruff check 'my src'", "minutes": "5", "allow_fail": "on"}
    page.post("spec-command", {**changed, "seen": acts.mark(row)}, row.pk)
    row.refresh_from_db()
    assert (row.argv, row.minutes, row.allow_fail) == (["ruff", "check", "my src"], 5, True)
    assert "ruff check 'my src'" in page.text()
    assert page.post("spec-command-remove", {}, row.pk).url == page.at()
    assert not CheckCommand.objects.exists()


@pytest.mark.row("MALA-V-03", level="contract")
@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"kind": "foo"}, "kind", "There is no such kind."),
        ({"name": ""}, "name", "Write a name."),
        ({"name": "../x"}, "name", "Write 1 to 60 letters"),
        ({"argv": ""}, "argv", "Write the program and its arguments."),
        ({"argv": "# nothing"}, "argv", "Write the program and its arguments."),
        ({"argv": "a && b"}, "argv", "No shell reads this"),
        ({"argv": "a 'b"}, "argv", "A quotation is not closed."),
        ({"argv": "a\nb"}, "argv", "Write one command on one line."),
        ({"minutes": "many"}, "minutes", "Write a number."),
        ({"minutes": "0"}, "minutes", "from 1 to 1440"),
        ({"lock_files": "../x"}, "lock_files", "Write paths below"),
        ({"unit_args": "-m x"}, "unit_args", "Only commands of the kind test"),
        ({"coverage_args": "a | b"}, "coverage_args", "No shell reads this"),
    ],
)
def test_what_is_wrong_is_said_at_the_field_and_what_was_typed_stays(
    page: Page, given: dict[str, str], field: str, said: str
) -> None:
    answer = page.post("spec-command-new", {**GIVEN, **given})
    assert answer.status_code == 422
    form = answer.context["form"]
    assert list(form.errors) == [field]
    assert said in str(form.errors[field])
    assert form[field].value() == given[field]
    assert not CheckCommand.objects.exists()


@pytest.mark.row("MALA-V-15", "MALA-V-17", "MALA-V-60", "MALA-V-69", level="contract")
def test_switches_and_limits_are_stored(page: Page) -> None:
    given = {
        **TERMS,
        "on": ["post-validate", "review"],
        "coverage_min_percent": "90.5",
        "keep_worktrees": "on",
        "e2e_command": "./full --it",
        "e2e_required_env": "CLAUDE_TOKEN, HOME",
    }
    assert page.post("spec-terms", given).url == page.at()
    terms = terms_of(page.project)
    assert terms.disabled == set(Switch) - {Switch.POST_VALIDATE, Switch.REVIEW}
    assert terms.coverage.min_percent == 90.5
    assert terms.worktrees.keep_on_failure
    assert (terms.e2e.command, terms.e2e.required_env) == (
        ("./full", "--it"),
        ("CLAUDE_TOKEN", "HOME"),
    )
    assert page.post("spec-terms", given).status_code == 303
    assert Notice.objects.count() == 1


@pytest.mark.row("MALA-V-68", level="contract")
@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"on": ["codex-review"]}, "on"),
        ({"coverage_min_percent": "101"}, "coverage_min_percent"),
        ({"coverage_min_percent": "nan"}, "coverage_min_percent"),
        ({"max_gate_attempts": "0"}, "max_gate_attempts"),
        ({"coverage_report_path": "/etc/x"}, "coverage_report_path"),
        ({"e2e_required_env": "A=B"}, "e2e_required_env"),
        ({"e2e_command": "a; b"}, "e2e_command"),
    ],
)
def test_wrong_terms_come_back_on_the_page_at_their_field(
    page: Page, given: dict[str, Any], field: str
) -> None:
    answer = page.post("spec-terms", {**TERMS, **given})
    assert answer.status_code == 422
    assert list(answer.context["terms_form"].errors) == [field]
    assert terms_of(page.project).disabled == frozenset()


def test_somebody_elses_change_is_not_overwritten_unseen(page: Page, world: World) -> None:
    mark = page.get().context["terms_form"]["seen"].value()
    acts.store_terms(world.lab, page.project, {"e2e_minutes": 7}, by="bert")
    answer = page.post("spec-terms", {**TERMS, "e2e_minutes": "9", "seen": mark})
    assert answer.status_code == 409
    (both,) = answer.context["terms_form"].conflict.fields
    assert "bert changed this" in said(answer)
    assert (both.mine, both.theirs) == ("9", "7")
    assert terms_of(page.project).e2e.minutes == 7
    again = answer.context["terms_form"]["seen"].value()
    page.post("spec-terms", {**TERMS, "e2e_minutes": "9", "seen": again})
    assert terms_of(page.project).e2e.minutes == 9


def test_a_command_that_was_removed_meanwhile_is_not_there(page: Page, world: World) -> None:
    row = page.add(world)
    acts.remove_command(world.lab, row, by="bert")
    assert page.get("spec-command", row.pk).status_code == 404
    assert page.post("spec-command-move", {}, row.pk).status_code == 404
    other = make.a_project("other")
    foreign = acts.add_command(world.lab, other, TESTS, by="bert")
    assert page.get("spec-command", foreign.pk).status_code == 404


def test_commands_change_places(page: Page, world: World) -> None:
    for name in ("a", "b"):
        page.add(world, Command(name, (name,), Kind.LINT))
    first = CheckCommand.objects.get(name="a")
    page.post("spec-command-move", {"to": "down"}, first.pk)
    assert [one.name for one in terms_of(page.project).commands] == ["b", "a"]
    part = page.client.post(
        page.at("spec-command-move", first.pk), {"to": "up"}, headers={"HX-Request": "true"}
    )
    assert part.status_code == 200
    assert 'hx-target="#spec-commands"' in part.content.decode()
    assert [one.name for one in terms_of(page.project).commands] == ["a", "b"]


def test_reviewers_are_added_changed_and_removed(page: Page) -> None:
    agent = make.an_agent("Reader")
    given = {"name": "reader", "profile_id": str(agent.pk), "is_on": "on"}
    assert page.post("spec-reviewer-new", given).url == page.at()
    row = Reviewer.objects.get()
    assert (row.profile, row.is_on) == (agent, True)
    assert "reader Reader" in page.text()
    page.post("spec-reviewer", {"name": "reader", "command": "/opt/review --json"}, row.pk)
    row.refresh_from_db()
    assert (row.profile, row.command, row.is_on) == (None, ["/opt/review", "--json"], False)
    wrong = page.post("spec-reviewer", {"name": "reader"}, row.pk)
    assert (wrong.status_code, list(wrong.context["form"].errors)) == (422, ["profile_id"])
    assert page.post("spec-reviewer-new", {"name": "reader", "command": "x"}).status_code == 422
    assert page.post("spec-reviewer-new", {"name": "x", "profile_id": "999"}).status_code == 422
    page.post("spec-reviewer-remove", {}, row.pk)
    assert not Reviewer.objects.exists()


def test_a_reviewers_model_and_effort_are_of_its_agents_lists(page: Page) -> None:
    agent = make.an_agent("Reader", model_names=["big"], efforts=["high"])
    other = make.an_agent("Other", model_names=["small"])
    given = {"name": "reader", "profile_id": str(agent.pk), "model": "big", "effort": "high"}
    for wrong, field in (
        ({"model": "huge"}, "model"),
        ({"model": "small"}, "model"),
        ({"profile_id": str(other.pk), "model": "small"}, "effort"),
        ({"profile_id": "", "command": "review", "effort": ""}, "model"),
    ):
        answer = page.post("spec-reviewer-new", {**given, **wrong})
        assert (answer.status_code, list(answer.context["form"].errors)) == (422, [field])
    assert page.post("spec-reviewer-new", given).url == page.at()
    row = Reviewer.objects.get()
    assert (row.model, row.effort) == ("big", "high")
    form = page.get("spec-reviewer", row.pk).context["form"]
    assert (form["model"].value(), form["effort"].value()) == ("big", "high")
    assert "Reader big high" in page.text()


@pytest.mark.row("MALA-V-01", level="contract")
def test_the_specs_of_both_scopes_are_shown_and_told_as_json(page: Page, world: World) -> None:
    page.add(world)
    page.add(world, Command("full", ("./full",), Kind.E2E))
    shown = page.text()
    assert "Per issue 1 command" in shown
    assert "Run level 2 commands" in shown
    for scope, names in (("per_issue", ["pytest"]), ("run_level", ["pytest", "full"])):
        told = page.get("spec-json", scope).json()
        assert sorted(told) == [
            *("commands", "coverage", "e2e", "require_clean_git"),
            *("require_pytest_for_code_changes", "scope"),
        ]
        assert (told["scope"], [one["name"] for one in told["commands"]]) == (scope, names)
        assert told["commands"][0]["argv"] == ["pytest", "-q", "--cov"]
    assert page.get("spec-json", "other").status_code == 404


@pytest.mark.row("MALA-V-65", "MALA-V-61", level="contract")
def test_a_command_that_a_switch_leaves_out_says_so(page: Page, world: World) -> None:
    page.add(world)
    page.add(world, Command("whole", ("./whole",), Kind.E2E))
    assert "not run: a switch" not in page.text()
    acts.store_terms(world.lab, page.project, {"disabled": ["e2e"]}, by="bert")
    assert "./whole not run: a switch below turns it off · run level only" in page.text()
    assert page.text().count("not run: a switch") == 1
    off = {"disabled": ["e2e", "post-validate"]}
    acts.store_terms(world.lab, page.project, off, by="bert")
    assert page.text().count("not run: a switch") == 2


@pytest.mark.row("C-39", level="contract")
def test_what_the_end_to_end_check_needs_is_shown_before_the_first_run(
    page: Page, world: World
) -> None:
    Settings.current()
    Settings.objects.update(agent=None)
    world.programs.gone.add("no-such-program")
    values = {"e2e_command": ["no-such-program"], "e2e_required_env": ["NO_SUCH_KEY"]}
    acts.store_terms(world.lab, page.project, values, by="bert")
    assert "What the end-to-end check needs" not in page.text()  # a pull request needs none of it
    page.post("spec-policy", {"policy": "gates"})
    found = page.get().context
    assert found["missing"] == ["Agent", "no-such-program", "NO_SUCH_KEY"]
    assert "The check fails while one of them is missing" in page.text()
    agent = make.an_agent("Reader", is_logged_in=True)
    Settings.objects.update(agent=agent)
    assert "Agent" not in page.get().context["missing"]
    AgentProfile.objects.update(is_logged_in=False)
    assert "It is not logged in on this machine" in page.text()
    acts.store_terms(world.lab, page.project, {"disabled": "e2e"}, by="bert")
    assert page.get().context["missing"] == []


def origin(world: World, files: dict[str, str]) -> str:
    """Let origin's default branch hold these files; the commit."""
    commit = world.repos.upstream(Path(), "main")
    world.repos.made[commit] = world.repos.made[world.repos.commit(files)]
    return commit


@pytest.mark.row("MALA-V-39", level="contract")
def test_commands_are_proposed_from_the_repository_and_stored_once_accepted(
    page: Page, world: World
) -> None:
    commit = origin(world, {"pyproject.toml": "[tool.ruff]\n[tool.pytest]\n", "uv.lock": ""})
    shown = said(page.get("spec-propose"))
    assert "uv sync --all-extras Dependencies, because of uv.lock." in shown
    assert "--cov-fail-under={threshold}" in shown
    assert not CheckCommand.objects.exists()
    take = {"commit": commit, "take": ["dependencies", "pytest"]}
    assert page.post("spec-propose", take).url == page.at()
    assert [one.name for one in terms_of(page.project).commands] == ["dependencies", "pytest"]
    assert said(page.get("spec-propose")).count("Is there already.") == 2
    CheckCommand.objects.filter(name="pytest").update(minutes=5)
    assert said(page.get("spec-propose")).count("Replaces the command of this name") == 1
    assert world.checks.ran == []


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"take": []}, "Tick a command"),
        ({"take": ["other"]}, "Tick a command|not proposed any more"),
        ({"take": ["pytest", "other"]}, "not proposed any more"),
        ({"take": ["pytest"], "commit": "0" * 40}, "The repository has moved on"),
    ],
)
def test_what_is_not_proposed_now_is_not_stored(
    page: Page, world: World, given: dict[str, Any], why: str
) -> None:
    commit = origin(world, {"pyproject.toml": "[tool.pytest]"})
    answer = page.post("spec-propose", {"commit": commit, **given})
    assert answer.status_code == 422
    assert re.search(why, said(answer))
    assert not CheckCommand.objects.exists()


def test_a_repository_without_a_word_of_checks_or_an_answer_proposes_nothing(
    page: Page, world: World
) -> None:
    origin(world, {"README.md": "x"})
    assert "Nothing is proposed" in said(page.get("spec-propose"))
    world.repos.broken_history = "no such repository"
    answer = page.get("spec-propose")
    assert (answer.status_code, "no such repository" in said(answer)) == (200, True)


def test_a_mala_file_is_shown_before_it_is_taken(page: Page, world: World) -> None:
    origin(world, {"mala.yaml": "preset: go\ncoder: amp\n"})
    form = page.get("spec-import").context["form"]
    assert form["text"].value() == "preset: go\ncoder: amp\n"
    text = "preset: go\r\ncoder: amp\r\ncommands: {test: 'go test ./... <b>'}"
    shown = page.post("spec-import", {"text": text})
    assert shown.status_code == 200
    assert "coder: agents are set up in the settings." in said(shown)
    assert "No coverage is asked for" in said(shown)
    assert not CheckCommand.objects.exists()
    sent = re.search(r'name="text" value="([^"]*)"', shown.content.decode())
    assert sent is not None
    kept = html.unescape(sent[1])
    assert page.post("spec-import", {"text": kept, "sure": "yes"}).url == page.at()
    terms = terms_of(page.project)
    assert terms.disabled == {Switch.COVERAGE}
    assert terms.commands[-1].argv == ("sh", "-c", "go test ./... <b>")


@pytest.mark.row("MALA-V-98", level="contract")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("codex_review: true", "is an old name; it is review_enabled now"),
        ("a: [", "The file is no YAML"),
        ("", "Paste the file."),
        ("x" * 64_001, "larger than 64 kB"),
    ],
)
def test_a_file_that_is_refused_says_why_at_its_field(page: Page, text: str, why: str) -> None:
    for more in ({}, {"sure": "yes"}):
        answer = page.post("spec-import", {"text": text, **more})
        assert answer.status_code == 422
        assert why in str(answer.context["form"].errors["text"])
    assert not CheckCommand.objects.exists()


def test_a_viewer_sees_everything_and_no_form(page: Page, viewer: User, world: World) -> None:
    page.add(world)
    page.client.force_login(viewer)
    shown = page.text()
    assert "pytest -q" in shown
    assert "<form" not in page.get().content.decode().split('id="main"')[1]
    for name in ("spec-command-new", "spec-propose", "spec-import", "spec-reviewer-new"):
        assert page.get(name).status_code == 403
    assert page.post("spec-policy", {"policy": "gates"}).status_code == 403


def test_the_page_asks_as_much_for_eleven_commands_as_for_one(
    page: Page, world: World, django_assert_num_queries: Any
) -> None:
    page.add(world)
    page.get()
    with CaptureQueriesContext(
        connection,
    ) as one:
        page.get()
    for number in range(10):
        page.add(world, Command(f"c{number}", ("x",), Kind.LINT))
        values = {"name": f"r{number}", "profile_id": make.an_agent(f"a{number}").pk}
        acts.add_reviewer(world.lab, page.project, values, by="bert")
    with django_assert_num_queries(len(one)):
        page.get()


def test_a_refresh_sends_the_parts_and_no_form(page: Page, world: World) -> None:
    page.add(world)
    answer = page.client.get(page.at("spec-live"), headers={"HX-Request": "true"})
    sent = answer.content.decode()
    for part in ("spec-lacking", "spec-commands", "spec-reviewers", "spec-happens"):
        assert f'hx-target="#{part}"' in sent
    assert "csrfmiddlewaretoken" not in sent
    tag = answer.headers["HX-PTag"]
    headers = {"HX-Request": "true", "HX-PTag": tag}
    assert page.client.get(page.at("spec-live"), headers=headers).status_code == 304

"""The export of a project's checks is what the import takes: the same checks elsewhere, or a word at each path."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs.models import AgentProfile, CheckCommand, CheckTerms, Notice, Project, Reviewer
from runs.specs import acts, spec_file
from runs.specs.acts import SpecRefused
from runs.validation.spec_models import terms_of
from runs.validation.specs import Command, Kind, Switch
from tests import make
from tests.fakes import World
from tests.specs.test_pages import said

pytestmark = pytest.mark.django_db

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9 ._:/()+-]{0,20}", fullmatch=True)
# Whatever somebody may type, but the letters that no database keeps.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
WORDS = st.lists(TEXTS.filter(bool), max_size=3)
COMMANDS = st.builds(
    lambda name, argv, kind, rest, tests: {
        **{"name": name, "argv": argv, "kind": kind, **rest},
        **(tests if kind == "test" else {}),
    },
    NAMES,
    st.lists(TEXTS.filter(bool), min_size=1, max_size=4),
    st.sampled_from([one.value for one in Kind]),
    st.fixed_dictionaries(
        {"minutes": st.integers(1, 1440), "use_test_mutex": st.booleans()},
        optional={"allow_fail": st.booleans(), "lock_files": st.just(["uv.lock", "a/b"])},
    ),
    st.fixed_dictionaries(
        {"coverage_args": WORDS, "unit_args": WORDS, "is_integration": st.booleans()}
    ),
)
TERMS = st.fixed_dictionaries(
    {},
    optional={
        "disabled": st.lists(st.sampled_from([one.value for one in Switch]), unique=True),
        "coverage_min_percent": st.floats(0, 100),
        "coverage_report_path": st.sampled_from(["", "a/cov.xml"]),
        "e2e_command": st.sampled_from([[], ["./full", "--all"]]),
        "e2e_required_env": st.sampled_from([[], ["TOKEN", "HOME"]]),
        "e2e_minutes": st.integers(1, 120),
        "keep_worktrees": st.booleans(),
        "require_clean_git": st.booleans(),
        "max_review_attempts": st.integers(1, 20),
        "review_minutes": st.integers(1, 240),
        "review_total_minutes": st.integers(1, 1440),
        "track_low_findings": st.booleans(),
    },
)
REVIEWERS = st.builds(
    lambda name, who, text, is_on: {"name": name, "instructions": text, "is_on": is_on, **who},
    NAMES,
    st.sampled_from([{"agent": "Reader"}, {"command": ["/opt/review", "--json"]}]),
    TEXTS,
    st.booleans(),
)


def by_name(rows: Any) -> Any:
    return st.lists(rows, max_size=4, unique_by=lambda one: one["name"])


DOCUMENTS = st.fixed_dictionaries(
    {
        "format": st.just("labsite checks"),
        "version": st.just(1),
        "policy": st.sampled_from(["pull_request", "gates"]),
        "terms": TERMS,
        "commands": by_name(COMMANDS),
        "reviewers": by_name(REVIEWERS),
    }
)
SMALL: dict[str, Any] = {"format": "labsite checks", "version": 1}
LINT = {"name": "ruff", "argv": ["ruff"], "kind": "lint"}
SCRIPT = {"name": "script", "command": ["/opt/review"]}


def taken(world: World, project: Project, document: dict[str, Any]) -> spec_file.Taken:
    read = spec_file.read(json.dumps(document))
    return spec_file.take(world.lab, project, read, by="anna")


def exported(project: Project) -> str:
    return spec_file.written(spec_file.of_project(Project.objects.get(pk=project.pk)))


def assert_holds(told: dict[str, Any], document: dict[str, Any]) -> None:
    """An export says all that a document said, beside the defaults of what it left out."""
    assert told["policy"] == document["policy"]
    order = [one.value for one in Switch]
    wanted = dict(document["terms"])
    if "disabled" in wanted:
        wanted["disabled"].sort(key=order.index)
    assert told["terms"] == {**told["terms"], **wanted}
    for name in ("commands", "reviewers"):
        pairs = list(zip(told[name], document[name], strict=True))
        assert [row for row, _ in pairs] == [{**row, **one} for row, one in pairs]


@pytest.fixture
def filled(world: World) -> Project:
    """A project with a command and a reviewer that no document of a test names."""
    project = make.a_project()
    acts.add_command(world.lab, project, Command("own", ("own",), Kind.LINT), by="bert")
    acts.add_reviewer(world.lab, project, {"name": "own", "command": ["/opt/own"]}, by="bert")
    return project


@pytest.mark.long
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(document=DOCUMENTS)
def test_what_is_exported_and_imported_elsewhere_is_the_same(
    world: World, document: dict[str, Any]
) -> None:
    Project.objects.all().delete()
    AgentProfile.objects.all().delete()
    make.an_agent("Reader")
    first, second = make.a_project("first"), make.a_project("second")
    acts.add_command(world.lab, second, Command("gone", ("x",), Kind.DEPS), by="bert")
    taken(world, first, document)
    text = exported(first)
    assert_holds(json.loads(text), document)
    assert spec_file.take(world.lab, second, spec_file.read(text), by="anna").not_taken == ()
    assert exported(second) == text
    assert terms_of(second) == terms_of(first)
    again = spec_file.take(world.lab, second, spec_file.read(text), by="anna")
    assert not again.is_change, "it was so already"


@pytest.mark.row("MALA-V-98", level="contract")
@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"version": 2}, {"version": "reads version 1"}),
        ({"version": "1"}, {"version": "reads version 1"}),
        ({"version": True}, {"version": "reads version 1"}),
        ({"version": None}, {"version": "reads version 1"}),
        ({"format": "mala"}, {"format": "has to be “labsite checks”"}),
        ({"colour": "red"}, {"colour": "no such field"}),
        ({"policy": "hope"}, {"policy": "should be"}),
        ({"terms": {"colour": 1}}, {"terms.colour": "no such field"}),
        ({"terms": {"coverage_min_percent": "85"}}, {"terms.coverage_min_percent": "number"}),
        ({"terms": {"coverage_min_percent": 101}}, {"terms.coverage_min_percent": "less than"}),
        ({"terms": {"keep_worktrees": 1}}, {"terms.keep_worktrees": "boolean"}),
        ({"terms": {"max_gate_attempts": 0}}, {"terms.max_gate_attempts": "greater than"}),
        ({"terms": {"coverage_report_path": "../x"}}, {"terms.coverage_report_path": "below"}),
        ({"terms": {"e2e_required_env": ["A=B"]}}, {"terms.e2e_required_env": "variables"}),
        ({"terms": {"disabled": ["codex-review"]}}, {"terms.disabled.0": "should be"}),
        ({"commands": {}}, {"commands": "has to be a list"}),
        ({"commands": [LINT, {"name": "b", "kind": "lint"}]}, {"commands.1.argv": "missing"}),
        ({"commands": [{**LINT, "argv": ["a", 1]}]}, {"commands.0.argv.1": "has to be a text"}),
        ({"commands": [{**LINT, "argv": ["a\0"]}]}, {"commands.0.argv.0": "cannot be kept"}),
        ({"commands": [{**LINT, "argv": ["\ud800"]}]}, {"commands.0.argv.0": "cannot be kept"}),
        ({"commands": [{**LINT, "argv": []}]}, {"commands.0.argv": "Write the program"}),
        ({"commands": [{**LINT, "kind": "foo"}]}, {"commands.0.kind": "should be"}),
        ({"commands": [{**LINT, "minutes": 1.5}]}, {"commands.0.minutes": "integer"}),
        ({"commands": [{**LINT, "unit_args": ["x"]}]}, {"commands.0.unit_args": "kind test"}),
        ({"commands": [LINT, LINT]}, {"commands.1.name": "of this name already"}),
        (
            {"commands": [{**LINT, "name": "../x"}, LINT, {**LINT, "name": "b", "argv": [""]}]},
            {"commands.0.name": "Write 1 to 60", "commands.2.argv": "Write the program"},
        ),
        ({"reviewers": [SCRIPT, SCRIPT]}, {"reviewers.1.name": "of this name already"}),
        ({"reviewers": [{"name": "x"}]}, {"reviewers.0.agent": "Choose an agent"}),
        (
            {"reviewers": [{"name": "x", "agent": "Nobody"}, {**SCRIPT, "command": ["./x"]}]},
            {"reviewers.1.command": "a program of this machine"},
        ),
        ({"review_enabled": True}, {"review_enabled": "no such field"}),
        ({"codex_review": True}, {"codex_review": "it is review_enabled now"}),
        (
            {"terms": {"codex_review_log_path": "x"}},
            {"terms.codex_review_log_path": "it is review_log_path now"},
        ),
        ({"codex_thinking_mode": "high"}, {"codex_thinking_mode": "does not exist any more"}),
    ],
)
def test_what_does_not_fit_is_refused_at_its_path_and_nothing_is_stored(
    world: World, filled: Project, more: dict[str, Any], wrong: dict[str, str]
) -> None:
    before, told = exported(filled), Notice.objects.count()
    document = {**SMALL, "policy": "gates", "terms": {"e2e_minutes": 9}, **more}
    with pytest.raises(SpecRefused) as refused:
        taken(world, filled, document)
    fields = refused.value.fields
    assert list(fields) == list(wrong)
    assert [text in fields[path] for path, text in wrong.items()] == [True] * len(wrong), fields
    assert (exported(filled), Notice.objects.count()) == (before, told)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is no JSON"),
        ("[]", "Send a JSON object"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"version": 1, "version": 1}', "“version” stands twice"),
        ('{"a": ' + "9" * 5000 + "}", "is no JSON"),
        ('{"a": ' * 100_000, "nested too deeply"),
        ('{"a": "' + "x" * 2_000_000 + '"}', "larger than 2 MB"),
        ("{}", "format: This is missing. version: This is missing."),
    ],
)
def test_a_text_that_is_no_document_says_why(text: str, why: str) -> None:
    with pytest.raises(SpecRefused, match=why):
        spec_file.read(text)


def test_what_a_document_leaves_out_stays(world: World, filled: Project) -> None:
    before = exported(filled)
    assert not taken(world, filled, SMALL).is_change
    assert exported(filled) == before
    found = taken(world, filled, {**SMALL, "commands": [LINT]})
    assert (found.is_change, found.removed) == (True, ("command own",))
    assert [one.name for one in CheckCommand.objects.all()] == ["ruff"]
    assert [one.name for one in Reviewer.objects.all()] == ["own"]
    assert Notice.objects.order_by("pk").last().text == "commands are ruff now"  # type: ignore[union-attr]


def test_commands_that_are_there_come_into_the_order_of_the_document(
    world: World, filled: Project
) -> None:
    rows = [{**LINT, "name": name} for name in "abc"]
    for wanted in (rows, rows[::-1], [rows[1], rows[0]]):
        assert taken(world, filled, {**SMALL, "commands": wanted}).is_change
        assert [one.name for one in CheckCommand.objects.all()] == [one["name"] for one in wanted]


def test_a_model_that_is_not_offered_here_is_left_out_and_told(
    world: World, filled: Project
) -> None:
    make.an_agent("Reader", model_names=["big"])
    row = {"name": "x", "agent": "Reader", "model": "big", "effort": "high"}
    found = taken(world, filled, {**SMALL, "reviewers": [row]})
    assert found.not_taken == ("reviewers.0.effort: Reader does not offer high here.",)
    kept = Reviewer.objects.get()
    assert (kept.model, kept.effort) == ("big", "")


def test_a_reviewer_whose_agent_is_not_here_is_left_out_and_told(
    world: World, filled: Project
) -> None:
    found = taken(world, filled, {**SMALL, "reviewers": [{"name": "x", "agent": "Gone"}, SCRIPT]})
    assert found.not_taken == ("reviewers.0 (x): there is no agent Gone here.",)
    assert [one.name for one in Reviewer.objects.all()] == ["script"]


@pytest.fixture
def page(client: Client, operator: User, filled: Project) -> Client:
    client.force_login(operator)
    return client


@pytest.mark.row("MALA-V-01", "MALA-V-98", level="contract")
def test_the_page_exports_and_imports(page: Client, world: World, filled: Project) -> None:
    acts.store_policy(world.lab, filled, "gates", by="bert")
    answer = page.get(reverse("runs:spec-export", args=[filled.pk]))
    assert answer["Content-Disposition"] == 'attachment; filename="checks-demo.json"'
    text = answer.content.decode()
    other = make.a_project("other")
    acts.add_command(world.lab, other, Command("mine", ("x",), Kind.LINT), by="bert")
    place, before = reverse("runs:spec-import", args=[other.pk]), exported(other)
    shown = page.post(place, {"text": text})
    assert "Completion policy Gates" in said(shown)
    listed = said(shown)
    assert "Removed, because the file does not name them command mine" in listed
    assert "Everything can be imported." in listed
    assert "Require a clean worktree on Code changes need a test command on" in listed
    assert "require_clean_git True" not in listed and "[]" not in listed.partition("The file")[0]
    assert exported(other) == before, "it was only shown"
    done = page.post(place, {"text": text, "sure": "yes"})
    assert done.url == reverse("runs:spec", args=[other.pk])
    assert exported(other) == text
    assert not CheckTerms.objects.filter(project=filled).exists()


def test_the_page_says_each_path_at_the_field(page: Client, filled: Project) -> None:
    document = {**SMALL, "version": 3, "commands": [{**LINT, "argv": [1]}], "x": 1}
    place = reverse("runs:spec-import", args=[filled.pk])
    for more in ({}, {"sure": "yes"}):
        answer = page.post(place, {"text": json.dumps(document), **more})
        assert answer.status_code == 422
        assert answer.context["form"].errors["text"] == [
            "version: This labsite reads version 1 of the format and no other.",
            "commands.0.argv.0: This has to be a text.",
            "x: There is no such field.",
            "Nothing was changed.",
        ]

"""A project whose gates could prove nothing starts no agent, and says what is missing."""

from __future__ import annotations

import pytest

from runs.core.states import AnswerCode, CompletionPolicy
from runs.dispatch import provable
from runs.models import CheckCommand, CheckTerms, Project, Reviewer, Run
from runs.validation.specs import Switch
from tests import make
from tests.fakes import World
from tests.world.stories import press_start, ready

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(world: World) -> Project:
    world.tracker.add_root("demo")
    made = make.a_project(agent=make.an_agent(), policy=CompletionPolicy.GATES)
    ready(world, "7", made.tracker_root)
    return made


def asked(world: World, project: Project) -> tuple[str, str]:
    found = press_start(world, project, wanted="7")
    return found.answer, found.text


@pytest.mark.row("MALA-V-85", level="contract")
def test_without_a_test_command_nothing_starts(world, project):
    answer, text = asked(world, project)
    assert answer == AnswerCode.NOT_READY
    assert "No command of the kind test" in text
    assert not Run.objects.exists()


@pytest.mark.row("C-43", level="contract")
def test_a_review_without_a_reviewer_is_told_before_an_agent_works(world, project):
    CheckTerms.objects.create(project=project, disabled=[Switch.COVERAGE.value])
    CheckCommand.objects.create(
        project=project, position=1, name="tests", argv=["pytest"], kind="test"
    )
    assert "no reviewer is set" in asked(world, project)[1]
    Reviewer.objects.create(project=project, name="R", command=["review"])
    assert asked(world, project)[0] == AnswerCode.STARTED


def test_a_project_that_takes_pull_requests_asks_for_none_of_it(world, project):
    Project.objects.update(policy=CompletionPolicy.PULL_REQUEST)
    assert asked(world, Project.objects.get())[0] == AnswerCode.STARTED


@pytest.mark.row("C-43", level="contract")
def test_what_gates_lack_is_asked_for_all_projects_at_once(
    world, project, django_assert_num_queries
):
    plain = make.a_project("plain", policy=CompletionPolicy.PULL_REQUEST)
    with django_assert_num_queries(0):
        assert provable.of([plain]) == {plain.pk: ""}
    second = make.a_project("second", policy=CompletionPolicy.GATES)
    for one in (project, second):
        CheckTerms.objects.create(project=one, disabled=[Switch.COVERAGE.value])
        CheckCommand.objects.create(
            project=one, position=1, name="tests", argv=["pytest"], kind="test"
        )
    Reviewer.objects.create(project=second, name="R", command=["review"])
    with django_assert_num_queries(3):
        found = provable.of([project, plain, second])
    assert found == {project.pk: provable.NO_REVIEWER, plain.pk: "", second.pk: ""}

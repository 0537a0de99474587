"""What the description allows and what it forbids, sent by schemathesis: no answer is outside of it.

Each operation gets the edges of its schema and some random requests, always the same ones: no 500,
only declared statuses, content types and shapes, nothing undeclared accepted, nothing without token.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.contrib.auth.models import User
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.core.failures import FailureGroup, ServerError
from schemathesis.generation import GenerationMode
from schemathesis.generation.hypothesis.builder import (
    HypothesisTestConfig,
    HypothesisTestMode,
    create_test,
)
from schemathesis.specs.openapi.checks import positive_data_acceptance

from labsite.database import chosen
from runs.api.api import description
from runs.dispatch import start_requests
from runs.groups import acts as groups
from runs.groups import monitors, tasks
from runs.models import Project, Run
from tests import make
from tests.api.program import a_token
from tests.fakes import World
from trackers.base import NewPull
from trackers.builtin import store

pytestmark = pytest.mark.django_db

# The edges come on top. What a server's database adds shows with few.
EXAMPLES = 2 if chosen() else 5
# It never ends; tests/api/test_stream.py is about it.
STREAM = "/api/v1/timeline/stream"
# Beyond the description these are bound by rules: a source has to exist, a label and a model have
# to be on their lists, a title and a comment have to say something, a number of issues is one.
RULED = {
    "project_new",
    "issue_new",
    "issue_edit",
    "issue_labels",
    "comment_new",
    "pull_comment_new",
    "run_resume",
    "run_changes",
    "settings_choose",
    "parked_discard",
    "run_answer",
    "forge_new",
    "forge_edit",
    "tracker_choose",
    "watch_open",
    "workflow_start",
    "group_make",
    "group_of_issues",
    "task_add",
    "task_claim",
    "task_complete",
    "task_release",
    "monitor_start",
}

DESCRIBED = description()
# A copy: schemathesis changes what it is given.
schema = schemathesis.openapi.from_dict(json.loads(json.dumps(DESCRIBED))).exclude(path=STREAM)
schema.app = get_wsgi_application()
if chosen():  # what is refused for its form never reaches the database
    schema.config.generation.update(modes=[GenerationMode.POSITIVE])


@pytest.fixture
def house(world: World, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of each thing under the id 1, so that many requests find something."""
    # No worker answers a start here; that shows after 5 looks as well as after 250.
    monkeypatch.setattr(start_requests, "STEP_SECONDS", 1.0)
    agent = make.an_agent(model_names=["big"])
    Project.objects.filter(pk=project.pk).update(agent=agent)
    store.create_issue(
        project.tracker_root, title="t", body="", author="a", labels=[], at=world.clock.now
    )
    store.create_pull(
        project.tracker_root, NewPull("afk/2", "main", "t", "", author="a"), at=world.clock.now
    )
    world.live(make.a_run(project, "1"))
    group = groups.make(world.lab, project, "g", new=[tasks.NewTask("t")], by="anna")
    monitors.start(world.lab, group, by="anna")


@pytest.fixture
def token(house: None, operator: User) -> str:
    """Anna's, which may act."""
    return a_token(operator)[1]


@pytest.fixture
def one_connection() -> Iterator[None]:
    """Requests do not close the connection whose transaction holds the test."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


OPERATIONS = [
    operation["operationId"]
    for path, methods in DESCRIBED["paths"].items()
    for operation in methods.values()
    if path != STREAM
]


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_answer_is_outside_the_description(name: str, token: str, one_connection: None) -> None:
    """Its requests are made here. Made as tests are collected they took each process 15 s."""

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    def answered(case: Case) -> None:
        case.call_and_validate(
            headers={"Authorization": f"Bearer {token}"},
            excluded_checks=[positive_data_acceptance] if name in RULED else [],
        )

    operation = schema.find_operation_by_id(name)
    config = HypothesisTestConfig(project=schema.config, modes=list(HypothesisTestMode))
    create_test(operation=operation, test_func=answered, config=config)()


def test_every_operation_is_fuzzed() -> None:
    found = [schema.find_operation_by_id(name) for name in OPERATIONS]
    fuzzed = {(one.path, one.method) for one in found}
    listed = {(path, method) for path, methods in DESCRIBED["paths"].items() for method in methods}
    assert listed - fuzzed == {(STREAM, "get")}


def test_a_broken_operation_would_be_found(token: str, one_connection: None, world: World) -> None:
    operation: Any = schema["/api/v1/runs"]["GET"]
    Run.objects.update(kind="nonsense")
    case = operation.Case(query={})
    with pytest.raises(FailureGroup) as found:
        case.call_and_validate(headers={"Authorization": f"Bearer {token}"})
    assert [type(one) for one in found.value.exceptions] == [ServerError]

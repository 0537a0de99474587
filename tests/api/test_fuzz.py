"""What the description allows and what it forbids, sent by schemathesis: no answer is outside of it.

Each operation gets the edges of its schema and some random requests, always the same ones: no 500,
only declared statuses, content types and shapes, nothing undeclared accepted, nothing without token.
"""

from __future__ import annotations

import functools
import json
import os
from collections import Counter
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
from schemathesis.generation.meta import CoveragePhaseData
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from labsite.database import chosen
from runs.api.api import api, description
from runs.dispatch import start_requests
from runs.groups import acts as groups
from runs.groups import monitors, tasks
from runs.loops import beginning as loops
from runs.loops import stored
from runs.loops.prompts import PromptFacts
from runs.models import Host, LoopMemory, LoopTerms, LoopTurn, Project, Run
from tests import make
from tests.api.program import a_token
from tests.fakes import World
from trackers.base import NewPull
from trackers.builtin import store

pytestmark = [pytest.mark.django_db, pytest.mark.long]

# The edges come on top. What a server's database adds shows with few.
EXAMPLES = 2
# Of one kind of edge so many are sent of an operation, and at least one of each field: an operation with
# thirty fields has five hundred edges. LAB_FUZZ=whole sends all of them.
EDGES = 10_000 if os.environ.get("LAB_FUZZ") == "whole" else 2
# It never ends; tests/api/test_stream.py is about it.
STREAM = "/api/v1/timeline/stream"
# Beyond the description these are bound by rules: a source has to exist, a label and a model have
# to be on their lists, a title and a comment have to say something, a number of issues is one, a cursor is what an answer gave.
RULED = {
    "project_new",
    "run_list",
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
    "host_set",
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
    "checks_change",
    "checks_import",
    "loop_settings_change",
    "guidance_send",
    "memory_add",
    "setup_file_store",
}

# By their names, since all that is described would take each process that collects tests a second.
OPERATIONS = [
    operation.view_func.__name__
    for _, router in api._routers
    for view in router.path_operations.values()
    for operation in view.operations
    if operation.view_func.__name__ != "timeline_stream"
]


@functools.cache
def described() -> Any:
    """What is described, as schemathesis reads it; a copy, since it changes what it is given."""
    schema = schemathesis.openapi.from_dict(json.loads(json.dumps(description())))
    schema = schema.exclude(path=STREAM)
    schema.app = get_wsgi_application()
    if chosen():  # what is refused for its form never reaches the database
        schema.config.generation.update(modes=[GenerationMode.POSITIVE])
    return schema


@pytest.fixture
def house(world: World, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of each thing under the id 1, so that many requests find something."""
    # No worker answers a start here; that shows after 5 looks as well as after 250.
    monkeypatch.setattr(start_requests, "STEP_SECONDS", 1.0)
    monkeypatch.setattr(start_requests, "LONGEST_STEP", 1.0)
    agent = make.an_agent(model_names=["big"])
    Project.objects.filter(pk=project.pk).update(agent=agent)
    store.create_issue(
        project.tracker_root, title="t", body="", author="a", labels=[], at=world.clock.now
    )
    store.create_pull(
        project.tracker_root, NewPull("afk/2", "main", "t", "", author="a"), at=world.clock.now
    )
    run = make.a_run(project, "1")
    world.live(run)
    loop = loops.make(world.lab, run, LoopTerms(project=project), agent, "Do it.")
    facts = stored.of_facts(PromptFacts("Do it.", "LOOP_COMPLETE"))
    given = {"generation": 1, "number": 1, "role": "coordinator", "ordered_at": world.clock.now}
    LoopTurn.objects.create(loop=loop, facts=facts, **given)
    LoopMemory.objects.create(project=project, text="t", by="anna", at=world.clock.now)
    Host.objects.update_or_create(pk=1, defaults={"name": "a"})
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


class Edges:
    """Which edges of one operation are sent."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kinds: Counter[str] = Counter()
        self._fields: set[tuple[str | None, str | None]] = set()

    def takes(self, edge: CoveragePhaseData) -> bool:
        """Whether it is one of the first of its kind, or the first of its field."""
        field = edge.parameter, edge.location
        if self._kinds[edge.scenario] >= self._most and field in self._fields:
            return False
        self._kinds[edge.scenario] += 1
        self._fields.add(field)
        return True


@pytest.mark.every_case
@pytest.mark.parametrize("name", OPERATIONS)
def test_no_answer_is_outside_the_description(name: str, token: str, one_connection: None) -> None:
    """Its requests are made here. Made as tests are collected they took each process 15 s.

    Without a token and with a wrong one it is asked once, after its first success: for every success
    that was nearly half of all requests, and what they hold is read after the token.
    """
    left_out = [positive_data_acceptance] if name in RULED else []
    edges = Edges(EDGES)

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        # They judge how examples are made, which hangs on what a process has loaded: Hypothesis
        # takes texts and numbers out of all modules of the project.
        suppress_health_check=list(HealthCheck),
    )
    def answered(case: Case) -> None:
        about = case._meta.phase.data if case._meta else None
        if isinstance(about, CoveragePhaseData) and not edges.takes(about):
            return
        answer = case.call_and_validate(
            headers={"Authorization": f"Bearer {token}"}, excluded_checks=left_out
        )
        if answer.status_code < 300 and ignored_auth not in left_out:
            left_out.append(ignored_auth)

    operation = described().find_operation_by_id(name)
    config = HypothesisTestConfig(project=described().config, modes=list(HypothesisTestMode))
    create_test(operation=operation, test_func=answered, config=config)()


def test_every_operation_is_fuzzed() -> None:
    found = [described().find_operation_by_id(name) for name in OPERATIONS]
    fuzzed = {(one.path, one.method) for one in found}
    listed = {
        (path, method) for path, methods in description()["paths"].items() for method in methods
    }
    assert listed - fuzzed == {(STREAM, "get")}


def test_a_broken_operation_would_be_found(token: str, one_connection: None, world: World) -> None:
    operation: Any = described()["/api/v1/runs"]["GET"]
    Run.objects.update(kind="nonsense")
    case = operation.Case(query={})
    with pytest.raises(FailureGroup) as found:
        case.call_and_validate(headers={"Authorization": f"Bearer {token}"})
    assert [type(one) for one in found.value.exceptions] == [ServerError]

"""Terms, commands and reviewers in the admin: the same limits, told on the project's timeline."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from runs.models import CheckCommand, CheckTerms, Notice, Project, Reviewer
from runs.specs import acts, unfit
from tests import make
from tests.fakes import World
from tests.web.people import confirmed

pytestmark = pytest.mark.django_db

COMMAND = {
    **{"position": "1", "name": "ruff", "argv": '["ruff", "check"]', "kind": "lint"},
    **{"minutes": "30", "coverage_args": "[]", "unit_args": "[]", "lock_files": "[]"},
}


@pytest.fixture
def admin(client: Client, operator: User, world: World) -> Client:
    client.force_login(operator)
    return confirmed(client)


@pytest.fixture
def project(world: World) -> Project:
    return make.a_project()


def post(admin: Client, what: str, data: dict[str, Any], *ident: int) -> Any:
    return admin.post(reverse(f"admin:runs_{what}", args=ident), data)


def errors(answer: Any) -> list[str]:
    return list(answer.context["adminform"].form.errors)


@pytest.mark.row("MALA-V-03", level="contract")
@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, ""),
        ({"kind": "foo"}, "kind"),
        ({"argv": "ruff check"}, "argv"),
        ({"argv": '{"a": 1}'}, "argv"),
        ({"argv": "[1]"}, "argv"),
        ({"argv": "[]"}, "argv"),
        ({"name": "../x"}, "name"),
        ({"minutes": "0"}, "minutes"),
        ({"lock_files": '["../x"]'}, "lock_files"),
        ({"unit_args": '["-m"]'}, "unit_args"),
    ],
)
def test_a_command_has_the_limits_of_the_page(
    admin: Client, project: Project, given: dict[str, str], field: str
) -> None:
    answer = post(admin, "checkcommand_add", {**COMMAND, "project": project.pk, **given})
    if field:
        assert errors(answer) == [field]
        assert not CheckCommand.objects.exists()
        return
    row = CheckCommand.objects.get()
    assert (row.argv, row.allow_fail) == (["ruff", "check"], False)
    told = Notice.objects.get()
    assert (told.project, told.by) == (project, "anna")
    changed = {**COMMAND, "argv": '["ruff", "--token=geheim"]'}
    assert post(admin, "checkcommand_change", changed, row.pk).status_code == 302
    assert Notice.objects.latest("pk").text == "ruff (lint): argv changed"


def test_terms_and_reviewers_too(admin: Client, project: Project, world: World) -> None:
    acts.store_terms(world.lab, project, {"keep_worktrees": True}, by="bert")
    row = CheckTerms.objects.get()
    given = {name: getattr(row, name) for name in unfit.TERMS}
    given = {name: json.dumps(v) if isinstance(v, list) else v for name, v in given.items()}
    given = {name: value for name, value in given.items() if value is not False}
    wrong = post(admin, "checkterms_change", {**given, "disabled": '["codex-review"]'}, row.pk)
    assert errors(wrong) == ["disabled"]
    right = post(admin, "checkterms_change", {**given, "disabled": '["e2e"]'}, row.pk)
    assert right.status_code == 302
    assert CheckTerms.objects.get().disabled == ["e2e"]
    reviewer = {"project": project.pk, "position": "1", "name": "r", "is_on": "on", "command": "[]"}
    assert errors(post(admin, "reviewer_add", reviewer)) != []
    assert post(admin, "reviewer_add", {**reviewer, "command": '["review"]'}).status_code == 302
    assert Reviewer.objects.get().project == project

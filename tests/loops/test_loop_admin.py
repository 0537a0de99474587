"""Loop settings, roles and memories in the admin: the limits of the page, told on the timeline."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from runs.models import LoopMemory, LoopRole, LoopTerms, Notice, Project
from tests import make
from tests.fakes import START, World
from tests.loops.test_loop_settings import TERMS
from tests.web.people import confirmed

pytestmark = pytest.mark.django_db

ROLE = {
    **{"position": "1", "name": "builder", "instructions": "Build.", "model": ""},
    **{"subscriptions": '["build.*"]', "publishes": "[]"},
}
GIVEN = {**TERMS, "required": "[]", "is_persistent": "", "profile": ""}


@pytest.fixture
def admin(client: Client, operator: User, world: World) -> Client:
    client.force_login(operator)
    return confirmed(client)


@pytest.fixture
def project(world: World) -> Project:
    return make.a_project(agent=make.an_agent("Turner", mode="one_shot"))


def post(admin: Client, what: str, data: dict[str, Any], *ident: int) -> Any:
    return admin.post(reverse(f"admin:runs_{what}", args=ident), data)


def errors(answer: Any) -> list[str]:
    return list(answer.context["adminform"].form.errors)


@pytest.mark.row("X-08", level="contract")
@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, ""),
        ({"max_cost": "5"}, "max_cost"),
        ({"completion": "two words"}, "completion"),
        ({"required": '{"a": 1}'}, "required"),
    ],
)
def test_terms_have_the_limits_of_the_page(
    admin: Client, project: Project, given: dict[str, str], field: str
) -> None:
    answer = post(admin, "loopterms_add", {**GIVEN, "project": project.pk, **given})
    if field:
        assert errors(answer) == [field]
        return
    assert LoopTerms.objects.get().is_on
    assert (Notice.objects.get().project, Notice.objects.get().by) == (project, "anna")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, ""),
        ({"name": "coordinator"}, "name"),
        ({"subscriptions": '["LOOP_COMPLETE"]'}, "subscriptions"),
        ({"subscriptions": "x"}, "subscriptions"),
    ],
)
def test_roles_have_the_limits_of_the_page(
    admin: Client, project: Project, given: dict[str, str], field: str
) -> None:
    answer = post(admin, "looprole_add", {**ROLE, "project": project.pk, **given})
    if field:
        assert errors(answer) == [field]
        return
    row = LoopRole.objects.get()
    assert post(admin, "looprole_delete", {"post": "yes"}, row.pk).status_code == 403


def test_memories_are_read_and_removed(admin: Client, project: Project) -> None:
    row = LoopMemory.objects.create(project=project, text="a fact", by="an agent", at=START)
    assert "a fact" in admin.get(reverse("admin:runs_loopmemory_changelist")).content.decode()
    assert admin.get(reverse("admin:runs_loopmemory_add")).status_code == 403
    assert post(admin, "loopmemory_delete", {"post": "yes"}, row.pk).status_code == 302
    assert not LoopMemory.objects.exists()
    assert Notice.objects.get().by == "anna"

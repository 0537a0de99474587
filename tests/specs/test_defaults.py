"""What an admin sets for new projects: applied when one is made, said on its page, nothing else changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from runs.core.states import CompletionPolicy
from runs.models import CheckDefaults, CheckTerms, Notice, Project
from runs.projects import acts as projects
from runs.validation.spec_models import terms_of
from runs.validation.specs import Switch
from tests import make
from tests.fakes import World
from tests.specs.test_admin import errors, post
from tests.specs.test_pages import said
from tests.web.people import confirmed

pytestmark = pytest.mark.django_db

GIVEN = {
    **{"policy": "gates", "disabled": '["e2e"]', "coverage_min_percent": "72.5"},
    **{"require_clean_git": "on", "require_pytest_for_code_changes": "on", "coverage_branch": "on"},
    **{"coverage_report_path": "", "e2e_command": "[]", "e2e_required_env": "[]"},
    **{"e2e_minutes": "5", "max_gate_attempts": "5", "max_review_attempts": "2"},
    **{"review_minutes": "30", "review_total_minutes": "90"},
}


@pytest.fixture
def admin(client: Client, operator: User, world: World) -> Client:
    client.force_login(operator)
    return confirmed(client)


def added(world: World, folder: Path, name: str = "new") -> Project:
    folder.mkdir()
    world.repos.urls[str(folder)] = "main"
    return projects.add(world.lab, name=name, source=str(folder), token="", by="anna")


def test_without_a_word_of_an_admin_a_project_has_those_of_the_program(
    world: World, tmp_path: Path
) -> None:
    project = added(world, tmp_path / "new")
    assert project.policy == CompletionPolicy.PULL_REQUEST
    assert not CheckTerms.objects.exists()


@pytest.mark.row("MALA-V-59", level="contract")
def test_a_new_project_begins_with_what_an_admin_set(
    admin: Client, world: World, tmp_path: Path
) -> None:
    old = make.a_project("old")
    opened = admin.get(reverse("admin:runs_checkdefaults_changelist"))
    assert opened.url == reverse("admin:runs_checkdefaults_change", args=[1])
    form = said(admin.get(opened.url))
    assert "Minimum coverage:" in form and "Attempts for reviews:" in form
    assert post(admin, "checkdefaults_change", GIVEN, 1).status_code == 302
    told = Notice.objects.latest("pk")
    assert "coverage min percent changed from 85.0 to 72.5" in told.text
    assert (told.by, told.project) == ("anna", None)
    project = added(world, tmp_path / "new")
    project.refresh_from_db()
    terms = terms_of(project)
    assert project.policy == CompletionPolicy.GATES
    assert (terms.disabled, terms.coverage.min_percent) == ({Switch.E2E}, 72.5)
    row = project.check_terms
    assert (row.max_gate_attempts, row.max_review_attempts, row.review_minutes) == (5, 2, 30)
    assert row.review_total_minutes == 90
    old.refresh_from_db()
    assert (old.policy, CheckTerms.objects.filter(project=old).exists()) == ("pull_request", False)
    page = said(admin.get(reverse("runs:spec", args=[project.pk])))
    assert "Same as the defaults of new projects." in page
    page = said(admin.get(reverse("runs:spec", args=[old.pk])))
    assert (
        "Differs from the defaults of new projects: completion policy, switches, minimum coverage, "
        "attempts for evidence and clean room, attempts for reviews, time limit of a review, "
        "time limit of all reviews of a run."
    ) in page
    page = said(admin.get(reverse("runs:settings")))
    assert "Checks of new projects Change Completion policy Gates Turned off e2e" in page


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"policy": "hope"}, "policy"),
        ({"disabled": '["codex-review"]'}, "disabled"),
        ({"coverage_min_percent": "101"}, "coverage_min_percent"),
        ({"e2e_command": '[""]'}, "e2e_command"),
        ({"max_gate_attempts": "0"}, "max_gate_attempts"),
    ],
)
def test_defaults_have_the_limits_of_the_page(
    admin: Client, given: dict[str, Any], field: str
) -> None:
    admin.get(reverse("admin:runs_checkdefaults_changelist"))
    assert errors(post(admin, "checkdefaults_change", {**GIVEN, **given}, 1)) == [field]
    assert CheckDefaults.stored().policy == CompletionPolicy.PULL_REQUEST


def test_defaults_can_be_neither_added_nor_removed(admin: Client) -> None:
    admin.get(reverse("admin:runs_checkdefaults_changelist"))
    assert admin.get(reverse("admin:runs_checkdefaults_add")).status_code == 403
    assert post(admin, "checkdefaults_delete", {"post": "yes"}, 1).status_code == 403

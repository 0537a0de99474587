"""Accounts on forges: added, changed, removed; recognised from a clone address; never shown again."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from runs.forges import acts as forges
from runs.models import Forge, Notice, Project
from runs.projects import acts as projects
from tests.fakes import World
from tests.make import a_project

pytestmark = pytest.mark.django_db

TOKEN = "tok-5d1f0c"
WEB = "https://git.example"


def an_account(world: World, **more: Any) -> Forge:
    told = {"name": "Ours", "kind": "gitea", "web": WEB, "credential": {"token": TOKEN}, **more}
    return forges.add(world.lab, by="anna", **told)


@pytest.mark.row("X-05", level="contract")
def test_an_account_is_kept_encrypted_and_told_without_its_token(world: World) -> None:
    forge = an_account(world)
    assert (forge.api, Forge.objects.get().account.token) == (f"{WEB}/api/v1", TOKEN)
    with connection.cursor() as cursor:
        cursor.execute("SELECT credential FROM runs_forge")
        stored = str(cursor.fetchall())
    assert TOKEN not in repr(Forge.objects.get().account) + repr(forge.credential) + stored
    assert [TOKEN in one.text for one in Notice.objects.all()] == [False]
    assert world.forges.forgotten == 0  # told after the commit, which this test never makes


def test_an_edit_keeps_the_credential_unless_a_new_one_is_typed(world: World) -> None:
    forge = an_account(world)
    forges.edit(world.lab, forge, name="Theirs", web=WEB, credential={"token": " "}, by="anna")
    assert Forge.objects.get().account.token == TOKEN
    forges.edit(world.lab, forge, name="Theirs", web=WEB, credential={"token": "new"}, by="anna")
    assert (Forge.objects.get().name, Forge.objects.get().account.token) == ("Theirs", "new")


@pytest.mark.parametrize(
    ("field", "more"),
    [
        pytest.param("token", {"credential": {}}, id="no credential"),
        pytest.param("token", {"credential": {"token": "two words"}}, id="two words"),
        pytest.param("token", {"credential": {"app_id": "1"}}, id="an app on gitea"),
        pytest.param(
            "app_key",
            {
                "kind": "github",
                "credential": {"app_id": "1", "app_installation": "2", "app_key": "x"},
            },
            id="no key",
        ),
        pytest.param(
            "app_installation",
            {"kind": "github", "credential": {"app_id": "1", "app_key": "x"}},
            id="half an app",
        ),
        pytest.param("kind", {"kind": "svn"}, id="an unknown kind"),
        pytest.param("web", {"web": "git.example"}, id="no address"),
        pytest.param("api", {"api": "https://u:p@git.example"}, id="a password in the address"),
        pytest.param("name", {"name": " "}, id="no name"),
    ],
)
def test_what_cannot_be_kept_is_refused_at_its_field(
    world: World, field: str, more: dict[str, Any]
) -> None:
    with pytest.raises(forges.ForgeRefused) as refused:
        an_account(world, **more)
    assert (refused.value.field, Forge.objects.count()) == (field, 0)


@pytest.mark.postgres
def test_a_name_is_used_once(world: World) -> None:
    an_account(world)
    with pytest.raises(forges.ForgeRefused):
        an_account(world)


def test_an_account_that_a_project_uses_stays(world: World) -> None:
    forge = an_account(world)
    a_project(tracker="gitea", forge=forge, tracker_root=f"{forge.pk}/ann/shop")
    with pytest.raises(forges.ForgeRefused, match="demo"):
        forges.remove(world.lab, forge, by="anna")
    Project.objects.all().delete()
    forges.remove(world.lab, forge, by="anna")
    assert not Forge.objects.exists()


@pytest.mark.row("C-42", level="contract")
def test_a_forge_is_recognised_by_its_account_by_its_host_or_by_asking(world: World) -> None:
    url = "ssh://git@git.example:2222/ann/shop.git"
    with pytest.raises(forges.ForgeRefused, match="neither"):
        forges.recognise(world.lab, url)
    world.forges.kinds[WEB] = forges.ForgeKind.GITEA
    found = forges.recognise(world.lab, url)
    assert (found.kind, found.api, found.place.name) == ("gitea", f"{WEB}/api/v1", "ann/shop")
    assert forges.recognise(world.lab, "https://u:pw@github.com/ann/shop").kind == "github"
    ours = an_account(world, web=f"{WEB}:8443")
    assert forges.recognise(world.lab, url).forges == [ours]
    world.forges.broken = "no route"
    with pytest.raises(forges.ForgeRefused, match="no route"):
        forges.recognise(world.lab, "https://other.example/ann/shop")


@pytest.mark.row("C-42", level="contract")
def test_a_project_of_a_forge_uses_its_account_for_git_as_well(world: World) -> None:
    forge = an_account(world)
    url = f"{WEB}/ann/shop.git"
    world.repos.urls[url] = "main"
    project = projects.add(
        world.lab, name="shop", source=url, token="", by="anna", tracker="gitea", forge=forge
    )
    project = Project.objects.get(pk=project.pk)
    assert (project.tracker, project.tracker_root) == ("gitea", f"{forge.pk}/ann/shop")
    assert (project.token, project.git_token) == ("", TOKEN)
    assert TOKEN not in repr(project.git_token)
    project.token = "own"
    assert project.git_token == "own"


def test_a_forges_token_is_for_that_forge_alone(world: World) -> None:
    forge = an_account(world)
    project = a_project(tracker="gitea", forge=forge)
    for url in (
        "https://other.example/a/b.git",
        "http://git.example/a/b.git",
        "git@git.example:a/b",
    ):
        project.url = url
        assert project.git_token == ""


@pytest.mark.parametrize(
    ("field", "more"),
    [
        pytest.param("forge", {"tracker": "gitea"}, id="no account"),
        pytest.param("tracker", {"tracker": "beads"}, id="no folder of beads"),
    ],
)
def test_a_tracker_that_a_source_cannot_have(world: World, field: str, more: Any) -> None:
    world.repos.urls["https://other.example/a/b.git"] = "main"
    with pytest.raises(projects.ProjectRefused) as refused:
        projects.add(
            world.lab, name="", source="https://other.example/a/b.git", token="", by="anna", **more
        )
    assert refused.value.field == field
    with pytest.raises(projects.ProjectRefused, match="not one of"):
        projects.add(
            world.lab,
            name="",
            source="https://other.example/a/b.git",
            token="",
            by="anna",
            forge=an_account(world),
        )


def test_the_connection_test_and_the_label(world: World) -> None:
    world.tracker.add_root("demo")
    project = a_project()
    assert [one.ok for one in forges.examine(world.lab, project)] == [True, False, True]
    forges.create_ready_label(world.lab, project, by="anna")
    assert [one.ok for one in forges.examine(world.lab, project)] == [True, True, True]
    project.tracker = ""
    assert [one.ok for one in forges.examine(world.lab, project)] == [False]

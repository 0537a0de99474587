"""Trackers and accounts on forges over the API: the verbs of the pages, no credential in any answer."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from runs.forges import hooks
from runs.models import Forge, Project, Settings
from tests import make
from tests.api.program import Program, denied
from tests.fakes import START, World
from tests.forges.test_forge_pages import GIVEN, TOKEN, WEB, a_ledger, an_account
from tests.forges.test_hooks import send
from tests.world.memory_tracker import MemoryTracker
from trackers.base import Ability

pytestmark = pytest.mark.django_db


@pytest.fixture
def there(world: World, project: Project) -> Forge:
    """An account on a forge that answers, and the project's clone address there."""
    Settings.current()
    some = {"memory": world.tracker, "gitea": world.tracker}
    world.lab = dataclasses.replace(world.lab, tracker_for=some.get)
    Project.objects.update(url=f"{WEB}/lab/demo.git")
    made = an_account(world)
    world.tracker.add_root(f"{made.pk}/lab/demo")
    return made


@pytest.mark.row("X-05", level="contract")
def test_an_account_is_kept_changed_and_removed_and_its_token_is_in_no_answer(
    program: Program, world: World
) -> None:
    made = program.post("/forges", GIVEN)
    assert made.status_code == 201, made.content
    assert made.json()["api"] == f"{WEB}/api/v1"
    one = f"/forges/{made.json()['id']}"
    changed = program.send("PUT", one, {"name": "Robot", "web": WEB})
    assert changed.json()["name"] == "Robot"
    assert Forge.objects.get().account.token == TOKEN
    away = denied(
        program.send("PUT", one, {"name": "R", "web": "https://thief.example"}), 422, "invalid"
    )
    assert set(away["fields"]) == {"token"}
    listed = program.get("/forges")
    assert [row["name"] for row in listed.json()["items"]] == ["Robot"]
    assert TOKEN not in (made.content + changed.content + listed.content).decode()
    project = make.a_project("uses-it", forge=Forge.objects.get())
    denied(program.send("DELETE", one), 409, "in_use")
    Project.objects.filter(pk=project.pk).update(forge=None)
    assert program.send("DELETE", one).status_code == 204
    denied(program.send("DELETE", one), 404, "not_found")


@pytest.mark.row("X-10", level="contract")
def test_accounts_and_secrets_are_minded_by_admins(
    world: World, viewer: User, project: Project, there: Forge
) -> None:
    viewer.user_permissions.add(Permission.objects.get(codename="act"))
    mine = Program.of(User.objects.get(pk=viewer.pk))
    one = f"/forges/{there.pk}"
    for method, path, content in (
        ("POST", "/forges", GIVEN),
        ("PUT", one, {"name": "n", "web": WEB}),
        ("DELETE", one, None),
        ("POST", f"/projects/{project.pk}/hooks/secret", None),
    ):
        denied(mine.send(method, path, content), 403, "not_allowed")
    assert mine.get("/forges").status_code == 200
    assert (Forge.objects.get().name, Project.objects.get().hook_secret) == ("Ours", "")


def test_the_ledger_is_told(looking: Program, world: World) -> None:
    a_ledger(world)
    told = looking.get("/forges").json()
    assert told["people_percent"] == 40
    quota = told["items"][0]["quota"]
    assert (quota["limit"], quota["remaining"], quota["blocked_until"]) == (5000, 4200, None)
    assert quota["spent"] == [
        {"purpose": "ready queue", "calls": 100, "unchanged": 95},
        {"purpose": "writing", "calls": 5, "unchanged": 0},
    ]


def test_a_project_goes_to_a_forge_and_comes_back(
    program: Program, world: World, project: Project, there: Forge
) -> None:
    path = f"/projects/{project.pk}/tracker"
    given = {"tracker": "gitea", "forge": there.pk, "ready_label": "go", "mirror": "comments"}
    told = program.send("PUT", path, given)
    assert told.status_code == 200, told.content
    assert told.json() == {
        "tracker": "gitea",
        "forge": there.pk,
        "repository": "lab/demo",
        "url": f"{WEB}/lab/demo",
        "ready_label": "go",
        "working_label": "",
        "mirror": "comments",
        "abilities": sorted(Ability),
        "read_at": None,
        "asked_every_seconds": None,
        "asked_why": "",
        "waits_until": None,
        "warning": "",
        "hook_path": "/hooks/demo/",
        "hooked_at": None,
    }
    assert program.get(path).json() == told.json()
    run = make.a_run(project)
    denied(program.send("PUT", path, {"tracker": "builtin"}), 409, "runs_active")
    run.delete()
    assert program.send("PUT", path, {"tracker": "builtin"}).json()["hook_path"] == ""


@pytest.mark.parametrize(
    ("given", "status", "code", "field"),
    [
        pytest.param({"tracker": "gitea"}, 422, "invalid", "tracker", id="no account"),
        pytest.param({"tracker": "gitea", "forge": 999}, 404, "not_found", "", id="unknown"),
        pytest.param({"tracker": "beads"}, 422, "invalid", "tracker", id="no beads"),
        pytest.param(
            {"tracker": "builtin", "ready_label": "a,b"}, 422, "invalid", "ready_label", id="label"
        ),
        pytest.param({"tracker": "jira"}, 422, "invalid", "tracker", id="no such tracker"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(
    program: Program,
    project: Project,
    there: Forge,
    given: dict[str, Any],
    status: int,
    code: str,
    field: str,
) -> None:
    said = denied(program.send("PUT", f"/projects/{project.pk}/tracker", given), status, code)
    assert set(said["fields"]) == ({field} if field else set())
    assert Project.objects.get().tracker == "builtin"


def test_the_connection_is_tested_and_the_label_made(
    program: Program, world: World, project: Project, there: Forge
) -> None:
    path = f"/projects/{project.pk}/tracker"
    program.send("PUT", path, {"tracker": "gitea", "forge": there.pk, "ready_label": "go"})
    found = program.post(f"{path}/examine").json()["items"]
    assert {"name", "ok", "text"} == set(found[0])
    assert program.post(f"{path}/label").status_code == 200
    assert "go" in world.tracker.labels(f"{there.pk}/lab/demo")
    world.tracker.fail()
    denied(program.post(f"{path}/label"), 502, "no_answer")


@pytest.mark.row("X-01", level="contract")
def test_what_the_tracker_cannot_do_is_refused_with_a_sentence(
    program: Program, world: World, project: Project
) -> None:
    few = MemoryTracker([Ability.LOCAL])
    world.lab = dataclasses.replace(world.lab, tracker_for={"memory": few}.get)
    Project.objects.update(tracker="memory", tracker_root=few.add_root("demo"))
    one = f"/projects/{project.pk}"
    assert program.get(f"{one}/tracker").json()["abilities"] == ["local"]
    denied(program.post(f"{one}/tracker/label"), 409, "refused")
    for path in ("issues", "pulls", "issues/1", "pulls/1"):
        denied(program.get(f"{one}/{path}"), 409, "refused")
    denied(program.post(f"{one}/issues", {"title": "t"}), 409, "refused")


def test_a_project_is_added_on_a_forge(program: Program, world: World, there: Forge) -> None:
    source = f"{WEB}/lab/shop.git"
    world.repos.urls[source] = "main"
    made = program.post("/projects", {"source": source, "forge": there.pk})
    assert made.status_code == 201, made.content
    assert (made.json()["name"], made.json()["tracker"]) == ("shop", "gitea")
    said = denied(program.post("/projects", {"source": source, "forge": 999}), 422, "invalid")
    assert set(said["fields"]) == {"forge"}


@pytest.mark.postgres
def test_deliveries_are_listed_a_page_at_a_time(
    program: Program, looking: Program, world: World, project: Project, there: Forge
) -> None:
    Project.objects.update(tracker="gitea")
    made = program.post(f"/projects/{project.pk}/hooks/secret")
    assert made.status_code == 201
    assert made.json()["hook_path"] == "/hooks/demo/"
    secret = made.json()["secret"]
    assert Project.objects.get().hook_secret == secret
    for number in range(3):
        send(Client(), secret, b"%d" % number, delivery=f"d{number}")
    send(Client(), secret, b"0", delivery="d0")
    first = looking.get(f"/projects/{project.pk}/hooks", limit=2).json()
    rest = looking.get(f"/projects/{project.pk}/hooks", cursor=first["next"]).json()
    assert [len(first["items"]), len(rest["items"]), rest["next"]] == [2, 1, None]
    assert rest["items"][0] | {"id": 0} == {
        "id": 0,
        "event": "issues",
        "did": "woke",
        "received_at": START.isoformat().replace("+00:00", "Z"),
        "repeats": 1,
    }
    assert hooks.UNKNOWN not in str(first)

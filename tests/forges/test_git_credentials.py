"""With what git reaches a forge: a token that lasts, or a short one of a GitHub App (X-05, C-42)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from runs.agents import orders
from runs.core import tokens
from runs.core.ports import SeamError
from runs.forges import rules as forging
from runs.lifecycle import launch
from runs.models import Forge, Project, Run, Settings
from runs.projects import acts as projects
from runs.projects import git_credentials, origin
from tests import make
from tests.fakes import START, World
from trackers.base import Refused

pytestmark = pytest.mark.django_db

WEB = "https://github.example"
URL = f"{WEB}/acme/shop.git"
APP = {"app_id": "12", "app_installation": "34", "app_key": "pem"}
ASKED = f"Password for '{WEB.replace('//', '//x-access-token@')}': "


def a_forge(**credential: str) -> Forge:
    return Forge.objects.create(
        name="ours", kind="github", api=f"{WEB}/api/v3", web=WEB, created_at=START,
        credential=credential or APP,
    )  # fmt: skip


@pytest.fixture
def project(world: World) -> Project:
    Settings.current()
    forge = a_forge()
    return make.a_project(
        tracker="github", forge=forge, tracker_root=f"{forge.pk}/acme/shop", url=URL
    )


@pytest.mark.row("C-42", "X-05", level="contract")
def test_an_app_gives_git_a_short_token_at_its_own_forge_alone(
    world: World, project: Project
) -> None:
    assert project.git_token == ""
    token = git_credentials.of_git(world.lab, project)
    assert (token, world.forges.sold) == ("ghs_12_1", ["acme/shop"])
    assert "ghs_12_1" not in repr(token)
    for url in ("https://other.example/acme/shop.git", f"git@{WEB[8:]}:acme/shop.git", "/path"):
        project.url = url
        assert git_credentials.of_git(world.lab, project) == ""
        assert not git_credentials.is_asked_for(project)
    project.url, project.token = URL, "own"
    assert git_credentials.of_git(world.lab, project) == "own"
    assert world.forges.sold == ["acme/shop"]


def test_a_project_is_added_and_fetched_with_it(world: World, project: Project) -> None:
    url = f"{WEB}/acme/other.git"
    world.repos.urls[url] = "main"
    given = {"name": "other", "source": url, "token": "", "by": "anna", "tracker": "github"}
    made = projects.add(world.lab, forge=project.forge, **given)
    assert world.forges.sold == ["acme/other"]
    assert made.token == ""

    world.forges.broken = "GitHub App 12 may not see the files."
    with pytest.raises(projects.ProjectRefused):
        projects.add(world.lab, forge=project.forge, **{**given, "name": "more"})
    with pytest.raises(SeamError, match="may not see the files"):
        origin.freshen(world.lab, project)


def test_an_app_that_gives_no_token_is_a_start_that_failed(world: World, project: Project) -> None:
    project.agent = make.an_agent()
    project.save()
    world.forges.broken = "GitHub App 12 may not see the files."
    run = make.a_run(project, state="starting", started_at=None)
    launch.carry_out(world.lab, run.pk)
    run.refresh_from_db()
    assert run.outcome == "failed"
    assert "may not see the files" in run.reason


@pytest.mark.row("X-05", level="contract")
def test_a_session_gets_no_token_and_may_ask_for_one(world: World, project: Project) -> None:
    run = make.a_run(project)
    order = orders.make(world.lab, run, make.an_agent(), Settings.current())
    assert set(order.files) == {"token", "prompt.md"}
    assert order.env["GIT_ASKPASS"] == str(world.lab.paths.bin / "git-askpass")
    assert order.env["GIT_CONFIG_KEY_0"] == f"credential.{WEB}.helper"
    assert order.env["GIT_CONFIG_VALUE_0"] == ""
    assert world.forges.sold == []


def ask(client: Client, token: str, prompt: str) -> tuple[int, dict[str, Any]]:
    answer = client.post(
        reverse("runs:agent:git-credential"),
        json.dumps({"prompt": prompt}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer["Cache-Control"] == "no-store"
    return answer.status_code, answer.json()


@pytest.mark.row("X-05", level="contract")
def test_the_door_gives_a_run_the_token_of_its_own_project(
    world: World, project: Project, client: Client
) -> None:
    token = tokens.new_token()
    run = make.a_run(project, token_hash=tokens.hash_token(token))
    assert ask(client, token, ASKED) == (200, {"password": "ghs_12_1"})
    for prompt in ("", "Password for 'https://evil.example': ", ASKED.replace("https", "http")):
        assert ask(client, token, prompt)[0] == 409
    Project.objects.update(token="own")
    assert ask(client, token, ASKED)[0] == 409
    Run.objects.filter(pk=run.pk).update(token_hash="")
    assert ask(client, token, ASKED)[0] == 401
    assert world.forges.sold == ["acme/shop"]


def test_who_has_a_token_that_lasts_is_not_asked_again(world: World) -> None:
    forge = a_forge(token="lasts")
    project = make.a_project(tracker="github", forge=forge, url=URL)
    assert git_credentials.of_git(world.lab, project) == "lasts"
    with pytest.raises(Refused):
        git_credentials.answer(world.lab, project, ASKED)


@pytest.mark.parametrize(
    ("prompt", "url", "is_ours"),
    [
        pytest.param("Password for 'https://x@git.example': ", "https://git.example/a/b", True, id="git's"),
        pytest.param("Password for 'https://git.example': ", "https://git.example/a/b", True, id="no user"),
        pytest.param("Passwort für »https://x@GIT.example«: ", "https://git.example/a/b", True, id="other words"),
        pytest.param("Password for 'https://x@git.example/a/b.git': ", "https://git.example/a/b", True, id="with its path"),
        pytest.param("Password for 'https://x@git.example:8443': ", "https://git.example/a/b", False, id="port"),
        pytest.param("Password for 'http://x@git.example': ", "https://git.example/a/b", False, id="in the clear"),
        pytest.param("Password for 'https://git.example@evil.example': ", "https://git.example/a/b", False, id="as a user"),
        pytest.param("Password for 'https://git.example.evil.example': ", "https://git.example/a/b", False, id="as a part"),
        pytest.param("Password for 'https://evil.example/https://git.example': ", "https://git.example/a/b", False, id="as a path"),
        pytest.param("Password for 'https://git.example%40evil.example': ", "https://git.example/a/b", False, id="decoded"),
        pytest.param("Enter passphrase for key '/home/a/.ssh/id': ", "https://git.example/a/b", False, id="ssh"),
    ],
)  # fmt: skip
def test_only_questions_about_the_same_server_are_answered(
    prompt: str, url: str, is_ours: bool
) -> None:
    assert forging.is_asked_for(prompt, url) is is_ours

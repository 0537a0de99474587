"""What a repository's files suggest for the set-up: read when somebody asks, stored when they save."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.core.ports import SeamError
from runs.models import Project
from runs.setup.proposal_rules import SetUpProposal, add_commands, propose_setup
from tests import make
from tests.fakes import World
from tests.web.people import text_of

MODULES = '[submodule "lib"]\n\tpath = lib\n\turl = ../lib.git\n'
LFS = ".gitattributes keeps large files with Git LFS"


@pytest.mark.parametrize(
    ("texts", "has_submodules", "commands", "begins"),
    [
        pytest.param({}, False, [], [], id="nothing"),
        pytest.param({".gitmodules": ""}, False, [], [], id="an empty list of submodules"),
        pytest.param({".gitmodules": MODULES}, True, [], ["Submodules are"], id="submodules"),
        pytest.param(
            {"package.json": "{}", "package-lock.json": "{}"},
            False,
            ["npm ci"],
            ["npm ci installs what the project depends on (package.json, npm)."],
            id="a lock file",
        ),
        pytest.param(
            {".gitattributes": "*.psd filter=lfs diff=lfs\n"}, False, [], [LFS], id="large files"
        ),
        pytest.param({".gitattributes": "# filter=lfs\n*.sh eol=lf\n"}, False, [], [], id="others"),
        pytest.param({".env.example": "A="}, False, [], [".env.example is"], id="an example"),
    ],
)
def test_what_files_suggest(
    texts: dict[str, str], has_submodules: bool, commands: list[str], begins: list[str]
) -> None:
    found = propose_setup(texts)
    assert (found.has_submodules, list(found.commands)) == (has_submodules, commands)
    assert len(found.sentences) == len(begins)
    assert all(a.startswith(b) for a, b in zip(found.sentences, begins, strict=True))


@pytest.mark.parametrize(
    ("stored", "lines", "expected"),
    [
        ("", ["npm ci"], "npm ci"),
        ("make all\n", ["npm ci"], "make all\nnpm ci"),
        ("npm  'ci'", ["npm ci"], "npm  'ci'"),
        ("make all", [], "make all"),
    ],
)
def test_what_is_stored_stays(stored: str, lines: list[str], expected: str) -> None:
    assert add_commands(stored, lines) == expected


@pytest.fixture
def at(world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    project = make.a_project(agent=make.an_agent())
    files = {"uv.lock": "", "pyproject.toml": "[project]", ".gitmodules": MODULES}
    commit = world.repos.commit(files)
    monkeypatch.setattr(world.repos, "upstream", lambda repo, branch: commit)
    return f"/projects/{project.pk}/settings/setup/"


@pytest.mark.django_db
def test_it_is_read_when_somebody_asks_and_stored_when_they_save(at: str, anna: Client) -> None:
    assert "uv sync" not in text_of(anna.get(at))
    shown = text_of(anna.get(f"{at}?look=1"))
    assert "uv sync --all-extras installs what the project depends on (uv.lock)." in shown
    assert "uv sync --all-extras</textarea>" in shown
    assert re.search('name="has_submodules"[^>]* checked', shown)
    stored = Project.objects.get()
    assert (stored.setup, stored.has_submodules) == ("", False)


@pytest.mark.django_db
def test_a_repository_that_cannot_be_read_is_said(
    at: str, world: World, anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise SeamError("no such repository")

    monkeypatch.setattr(world.repos, "upstream", fail)
    answer = anna.get(f"{at}?look=1")
    assert answer.status_code == 200
    assert "could not be read, and nothing was changed: no such repository" in text_of(answer)


@pytest.mark.django_db
def test_nothing_is_proposed_to_who_may_only_look(at: str, viewer: User, client: Client) -> None:
    client.force_login(viewer)
    shown = text_of(client.get(f"{at}?look=1"))
    assert "proposal-title" not in shown


def test_nothing_found_is_an_empty_proposal() -> None:
    assert propose_setup({"README.md": "hello"}) == SetUpProposal()

"""What a repository's files suggest for the set-up: read when somebody asks, stored when they save."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.core.ports import SeamError
from runs.models import Project
from runs.setup.proposal_rules import (
    GitFacts,
    SetUpProposal,
    add_commands,
    list_notes_on_git,
    list_troubles,
    propose_setup,
)
from tests import make
from tests.fakes import World
from tests.web.people import text_of

HERE = GitFacts(has_lfs=True, url="https://forge.test/a/b.git")
MODULES = '[submodule "lib"]\n\tpath = lib\n\turl = ../lib.git\n'


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
        pytest.param({".gitattributes": "*.psd filter=lfs diff=lfs\n"}, False, [], [], id="LFS"),
        pytest.param({"lefthook.yml": ""}, False, [], ["lefthook.yml keeps hooks"], id="hooks"),
        pytest.param({".env.example": "A="}, False, [], [".env.example is"], id="an example"),
    ],
)
def test_what_files_suggest(
    texts: dict[str, str], has_submodules: bool, commands: list[str], begins: list[str]
) -> None:
    found = propose_setup(texts, HERE)
    assert (found.has_submodules, list(found.commands)) == (has_submodules, commands)
    assert len(found.sentences) == len(begins)
    assert all(a.startswith(b) for a, b in zip(found.sentences, begins, strict=True))


LARGE = {".gitattributes": "*.psd filter=lfs diff=lfs\n"}


def module(*urls: str) -> dict[str, str]:
    return {".gitmodules": "".join(f'[submodule "x"]\n\turl = {url}\n' for url in urls)}


@pytest.mark.parametrize(
    ("texts", "facts", "says"),
    [
        pytest.param(LARGE, HERE, [], id="LFS is here"),
        pytest.param(LARGE, GitFacts(has_lfs=False), ["git-lfs is not installed"], id="not here"),
        pytest.param(LARGE, GitFacts(), ["whether git-lfs is here is unknown"], id="unknown"),
        pytest.param({".gitattributes": "# filter=lfs\n"}, GitFacts(), [], id="a comment"),
        pytest.param(module("../lib.git", "./lib"), HERE, [], id="beside it"),
        pytest.param(module("https://bot@FORGE.test:443/c/d"), HERE, [], id="same host"),
        pytest.param(module("git@forge.test:c/d.git"), HERE, [], id="same host by SSH"),
        pytest.param(
            module("https://other.test/c", "git@third.test:d.git"),
            HERE,
            ["on other.test, third.test, where the project's token is not sent"],
            id="other hosts",
        ),
        pytest.param(module("/srv/lib.git"), HERE, [], id="a path"),
    ],
)
def test_what_a_new_worktree_will_lack(
    texts: dict[str, str], facts: GitFacts, says: list[str]
) -> None:
    found = list_troubles(texts, facts)
    assert len(found) == len(says)
    assert all(b in a for a, b in zip(found, says, strict=True))


def test_what_git_of_the_user_means_for_agents() -> None:
    assert list_notes_on_git(HERE) == []
    hooks, signing = list_notes_on_git(GitFacts(hooks_path="/h", why_unsigned="gpg failed"))
    assert "hooks from /h for all repositories" in hooks
    assert "gpg failed. Runs sign nothing" in signing


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
    assert propose_setup({"README.md": "hello"}, HERE) == SetUpProposal()

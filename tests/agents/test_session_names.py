"""In whose name an agent commits."""

from __future__ import annotations

import pytest
from django.test import Client

from runs.agents import orders
from runs.core import naming
from runs.core.ports import SeamError
from runs.models import Fixer, Settings
from runs.validation import fixers
from tests import make
from tests.fakes import World
from tests.web.people import text_of

pytestmark = pytest.mark.django_db

NAMES = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")


def _named(world: World, committer: str = "", **profile: object) -> list[str | None]:
    run = make.a_run(make.a_project(committer=committer))
    order = orders.make(world.lab, run, make.an_agent(**profile), Settings.current())
    return [order.env.get(name) for name in NAMES]


def test_the_name_of_the_users_own_git_is_left_to_git(world: World) -> None:
    assert _named(world) == [None] * 4


def test_an_agent_commits_as_labsite_where_git_knows_no_name(world: World) -> None:
    world.repos.named = None
    assert _named(world) == ["labsite", "labsite@localhost"] * 2


def test_a_profile_may_set_another_name(world: World) -> None:
    world.repos.named = None
    found = _named(world, env={"GIT_AUTHOR_NAME": "Robot"})
    assert found == ["Robot", "labsite@localhost", "labsite", "labsite@localhost"]


def test_a_git_that_cannot_be_asked_stops_no_start(world: World, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    def fail(repo: object) -> None:
        raise SeamError("no answer")

    monkeypatch.setattr(world.repos, "committer", fail)
    assert _named(world) == [None] * 4


@pytest.mark.parametrize(
    ("general", "own", "expected"),
    [
        pytest.param("Anna Berg <a@b.org>", "", ["Anna Berg", "a@b.org"] * 2, id="the settings"),
        pytest.param("", "Bert <b@b.org>", ["Bert", "b@b.org"] * 2, id="the project"),
        pytest.param("Anna <a@b.org>", "Bert <b@b.org>", ["Bert", "b@b.org"] * 2, id="both"),
    ],
)
@pytest.mark.parametrize("known", [None, "Git's <git@b.org>"])
def test_settings_and_project_say_who_commits(  # type: ignore[no-untyped-def]
    world: World, general, own, expected, known
) -> None:
    world.repos.named = known
    Settings.objects.update_or_create(pk=1, defaults={"committer": general})
    assert _named(world, committer=own) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "Anna", "anna@example.org", "<a@b.org>", " <a@b.org>", ". <a@b.org>"),
        *(
            "A <a b>",
            "A <a@b> x",
            "A\n <a@b>",
            "A <a@b>\nB <b@c>",
            "A <<a@b>",
            "x" * 101 + " <a@b>",
        ),
    ],
)
def test_what_git_could_not_take_for_a_person_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        naming.parse_committer(text)


def test_the_settings_of_a_project_say_what_is_wrong_with_a_committer(
    world: World, anna: Client
) -> None:
    project = make.a_project(agent=make.an_agent())
    at = f"/projects/{project.pk}/settings/agents/"
    wrong = anna.post(at, {"agent": project.agent_id, "committer": "Anna"})
    assert "Write a name and an address, such as: Anna Berg" in text_of(wrong)
    assert "Now empty means: whoever git names for the user that runs labsite" in text_of(wrong)
    anna.post(at, {"agent": project.agent_id, "committer": " Anna Berg <a@b.org> "})
    project.refresh_from_db()
    assert project.committer == "Anna Berg <a@b.org>"


def test_who_commits_holds_for_agents_that_mend_a_validation_too(world: World) -> None:
    project = make.a_project(committer="Bert <b@b.org>")
    fixer = Fixer(project=project, prompt="mend", worktree="/unused", session="s", mark="m")
    order = fixers._order(world.lab, fixer, make.an_agent(), Settings.current())
    assert [order.env.get(name) for name in NAMES] == ["Bert", "b@b.org"] * 2

"""Setting a project's tracker up: recognised, chosen, tested in words, its label made with a click."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.test import Client

from runs.core.states import ForgeKind
from runs.forges import acts as forges
from runs.models import Forge, Project, Settings
from tests import make
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.people import confirmed, hx, text_of
from tests.world.memory_tracker import MemoryTracker
from trackers.base import Ability, Finding

pytestmark = pytest.mark.django_db

WEB = "https://git.example"
SOURCE = f"{WEB}/lab/shop.git"
NEW = "/projects/new"
PAGE = "/projects/1/tracker/"


@pytest.fixture
def forge(world: World) -> Forge:
    """A Gitea that is recognised, an account there, and what its adapter answers."""
    world.forges.kinds[WEB] = ForgeKind.GITEA
    world.repos.urls[SOURCE] = "main"
    some = {"memory": world.tracker, "gitea": world.tracker}
    world.lab = dataclasses.replace(world.lab, tracker_for=some.get)
    return forges.add(
        world.lab, name="Robot", kind="gitea", web=WEB, credential={"token": "tok"}, by="anna"
    )


@pytest.fixture
def project(world: World) -> Project:
    Settings.current()
    made = rows.a_tracked_project(pk=1)
    Project.objects.update(url=SOURCE)
    return made


# The form of a new project.


@pytest.mark.row("C-42", level="contract")
def test_a_clone_address_of_a_forge_asks_where_the_issues_are_before_anything_is_added(
    anna: Client, world: World, forge: Forge
) -> None:
    first = anna.post(NEW, {"source": SOURCE})
    assert first.status_code == 400
    page = text_of(first)
    assert "Say where the issues of this repository are." in page
    assert "This is Gitea or Forgejo at git.example, repository lab/shop." in page
    assert f'value="forge-{forge.pk}" id="tracker-forge-{forge.pk}" checked' in page
    assert not Project.objects.exists()

    done = anna.post(NEW, {"source": SOURCE, "tracker": f"forge-{forge.pk}"})
    assert done.status_code == 303
    made = Project.objects.get()
    assert (made.tracker, made.tracker_root) == ("gitea", f"{forge.pk}/lab/shop")
    assert made.forge == forge


@pytest.mark.row("C-42", level="contract")
def test_the_issues_may_still_be_kept_by_labsite_itself(
    anna: Client, world: World, forge: Forge
) -> None:
    assert anna.post(NEW, {"source": SOURCE, "tracker": "builtin"}).status_code == 303
    assert (Project.objects.get().tracker, Project.objects.get().forge) == ("builtin", None)


@pytest.mark.parametrize("chosen", ["forge-999", "beads", "nonsense"])
def test_what_was_not_offered_is_not_taken(
    anna: Client, world: World, forge: Forge, chosen: str
) -> None:
    answer = anna.post(NEW, {"source": SOURCE, "tracker": chosen})
    assert answer.status_code == 400
    assert "is not offered for this repository" in text_of(answer)
    assert not Project.objects.exists()


def test_with_scripts_the_choice_appears_when_the_address_is_typed(
    anna: Client, vera: Client, world: World, forge: Forge
) -> None:
    part = text_of(hx(anna, "/projects/new/trackers", {"source": SOURCE}, at=NEW))
    assert part.startswith('<div id="project-trackers"><fieldset')
    assert "on https://git.example, asked as Robot" in part
    nothing = text_of(hx(anna, "/projects/new/trackers", {"source": "/nowhere"}, at=NEW))
    assert nothing.strip() == '<div id="project-trackers"></div>'
    assert hx(vera, "/projects/new/trackers", {"source": SOURCE}, at=NEW).status_code == 403
    form = text_of(anna.get(NEW))
    assert 'hx-post="/projects/new/trackers"' in form
    assert 'id="project-trackers"' in form


def test_without_an_account_there_an_admin_is_led_to_add_one_and_back(
    anna: Client, world: World
) -> None:
    page = text_of(anna.post(NEW, {"source": "git@github.com:lab/shop.git"}))
    assert "No account there is set up yet." in page
    link = page.partition("/forges/new?")[2].partition('"')[0]
    assert "kind=github" in link
    assert "name=github.com" in link
    confirmed(anna)
    form = text_of(anna.get("/forges/new?" + link.replace("&amp;", "&")))
    assert 'value="https://github.com"' in form
    assert '<option value="github" selected>' in form
    given = {"kind": "github", "name": "GitHub", "web": "https://github.com", "token": "tok"}
    back = anna.post("/forges/new?" + link.replace("&amp;", "&"), given)["Location"]
    again = text_of(anna.get(back))
    assert 'value="git@github.com:lab/shop.git"' in again
    assert "asked as GitHub" in again


def test_a_password_in_the_address_is_in_no_link(anna: Client, world: World) -> None:
    source = "https://me:hunter2pass@github.com/lab/shop.git"
    page = text_of(hx(anna, "/projects/new/trackers", {"source": source}, at=NEW))
    assert page.strip() == '<div id="project-trackers"></div>'
    shown = text_of(anna.post(NEW, {"source": source}))
    assert "Leave the password out of the URL" in shown
    assert "forges/new" not in shown


def test_an_operator_without_admin_rights_is_told_whom_to_ask(
    client: Client, world: World, viewer: Any
) -> None:
    from django.contrib.auth.models import Permission

    viewer.user_permissions.add(Permission.objects.get(codename="act"))
    client.force_login(viewer)
    page = text_of(client.post(NEW, {"source": "https://github.com/lab/shop"}))
    assert "An admin can add one." in page
    assert "/forges/new" not in page


def test_a_folder_with_beads_offers_them(anna: Client, world: World, tmp_path: Any) -> None:
    folder = tmp_path / "shop"
    (folder / ".beads").mkdir(parents=True)
    (folder / ".git").mkdir()
    world.repos.urls[str(folder)] = "main"
    first = anna.post(NEW, {"source": str(folder)})
    assert first.status_code == 400
    assert "those of beads in its folder" in text_of(first)
    assert anna.post(NEW, {"source": str(folder), "tracker": "beads"}).status_code == 303
    made = Project.objects.get()
    assert (made.tracker, made.ready_label) == ("beads", "")


def test_a_link_to_the_form_makes_labsite_ask_nobody(
    anna: Client, world: World, forge: Forge
) -> None:
    world.forges.kinds["https://inside.example"] = ForgeKind.GITEA
    inside = text_of(anna.get(f"{NEW}?source=https://inside.example/a/b"))
    assert "This is Gitea" not in inside
    assert 'value="https://inside.example/a/b"' in inside
    assert "asked as Robot" in text_of(anna.get(f"{NEW}?source={SOURCE}"))


def test_a_forge_that_does_not_answer_never_keeps_a_project_out(anna: Client, world: World) -> None:
    world.forges.broken = "timed out"
    world.repos.urls[SOURCE] = "main"
    assert anna.post(NEW, {"source": SOURCE}).status_code == 303
    assert Project.objects.get().tracker == "builtin"


def test_the_connection_is_tested_before_the_project_is_added(
    anna: Client, world: World, forge: Forge
) -> None:
    world.forges.findings = [
        Finding("issues", True, "Issues can be read."),
        Finding("writing", False, "The token may not write issues: give it write:issue."),
        Finding("checks", None, "The server did not answer."),
    ]
    told = {"source": SOURCE, "tracker": f"forge-{forge.pk}", "name": "shop"}
    for answer in (
        hx(anna, "/projects/new/test", told, at=NEW),
        anna.post("/projects/new/test", told),
    ):
        page = text_of(answer)
        assert answer.status_code == 200
        assert "give it write:issue" in page
        assert "could not be tried" in page
    assert world.forges.tried[0] == ("gitea", "lab/shop", "ready-for-agent")
    assert not Project.objects.exists()
    none = text_of(hx(anna, "/projects/new/test", {"source": SOURCE, "tracker": "builtin"}, at=NEW))
    assert "Choose an account on a forge first." in none


# The page of a project's tracker.


def given(forge: Forge, **more: str) -> dict[str, str]:
    told = {"tracker": f"forge-{forge.pk}", "ready_label": "ready", "mirror": "status"}
    return {**told, "working_label": "in-progress", "repository": "", **more}


def test_the_tracker_is_changed_on_its_page(
    anna: Client, world: World, project: Project, forge: Forge
) -> None:
    page = text_of(anna.get(PAGE))
    assert 'value="builtin" id="choice-builtin" checked' in page
    assert "stay where they are, hidden, until this project comes back" in page
    answer = anna.post(PAGE, given(forge), follow=True)
    assert "The tracker of this project was changed." in text_of(answer)
    now = Project.objects.get()
    assert (now.tracker, now.tracker_root) == ("gitea", f"{forge.pk}/lab/shop")
    assert (now.ready_label, now.working_label, now.mirror) == ("ready", "in-progress", "status")
    again = text_of(anna.get(PAGE))
    assert f'id="choice-forge-{forge.pk}" checked' in again
    assert 'value="lab/shop"' in again
    assert "it was so already" in text_of(
        anna.post(PAGE, given(forge, repository="lab/shop"), follow=True)
    )


def test_a_switch_is_refused_while_runs_are_active(
    anna: Client, world: World, project: Project, forge: Forge
) -> None:
    make.a_run(project)
    answer = anna.post(PAGE, given(forge))
    assert answer.status_code == 400
    assert "Runs are active." in text_of(answer)
    assert Project.objects.get().tracker == "builtin"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        pytest.param({"tracker": "forge-99"}, "not on the list", id="no such account"),
        pytest.param({"tracker": ""}, "This field is required", id="nothing chosen"),
        pytest.param({"ready_label": ""}, "Write the label", id="no label"),
        pytest.param({"ready_label": "a,b"}, "no comma", id="a comma"),
        pytest.param({"repository": "one"}, "ends in owner/name", id="no repository"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    anna: Client, world: World, project: Project, forge: Forge, more: dict[str, str], says: str
) -> None:
    answer = anna.post(PAGE, given(forge, **more))
    assert answer.status_code == 400
    assert says in text_of(answer)
    assert Project.objects.get().tracker == "builtin"


def test_who_may_only_look_sees_it_and_changes_nothing(
    vera: Client, world: World, project: Project, forge: Forge
) -> None:
    page = text_of(vera.get(PAGE))
    assert "kept by labsite itself" in page
    assert "<fieldset" not in page
    for address in (PAGE, f"{PAGE}test", f"{PAGE}label"):
        assert vera.post(address, given(forge)).status_code == 403
    assert Project.objects.get().tracker == "builtin"


def test_the_test_says_in_words_what_is_missing_and_keeps_it(
    anna: Client, world: World, project: Project, forge: Forge
) -> None:
    world.tracker.add_root(f"{forge.pk}/lab/shop")
    anna.post(PAGE, given(forge))
    answer = hx(anna, f"{PAGE}test", at=PAGE)
    assert 'hx-target="#findings"' in text_of(answer)
    plain = anna.post(f"{PAGE}test")
    assert plain.status_code == 200
    assert "ready" in text_of(plain)
    assert Forge.objects.get().examined_at is not None
    world.tracker.fail(f"{forge.pk}/lab/shop")
    assert "The tracker answered 500." in text_of(hx(anna, f"{PAGE}test", at=PAGE))


def test_the_ready_label_is_made_with_one_click(
    anna: Client, world: World, project: Project, forge: Forge
) -> None:
    root = world.tracker.add_root(f"{forge.pk}/lab/shop")
    anna.post(PAGE, given(forge))
    assert "Make the label ready" in text_of(anna.get(PAGE))
    answer = hx(anna, f"{PAGE}label", at=PAGE)
    assert "The label ready is there." in text_of(answer)
    assert "ready" in world.tracker.labels(root)
    assert anna.post(f"{PAGE}label").status_code == 303


@pytest.mark.row("X-01", level="contract")
def test_what_a_tracker_cannot_do_is_not_offered_and_refused(
    anna: Client, world: World, project: Project
) -> None:
    few = MemoryTracker([Ability.LOCAL])
    few.add_root("demo")
    world.lab = dataclasses.replace(world.lab, tracker_for={"memory": few}.get)
    Project.objects.update(tracker="memory", tracker_root="demo")
    page = text_of(anna.get(PAGE))
    assert "Make the label" not in page
    assert "a run is done when its commits are pushed" in page
    refused = hx(anna, f"{PAGE}label", at=PAGE)
    assert refused.status_code == 409
    assert "labsite cannot make labels on this project" in text_of(refused)


def test_a_project_that_is_not_there_has_no_tracker(anna: Client, world: World) -> None:
    assert anna.get("/projects/9/tracker/").status_code == 404
    assert anna.post("/projects/9/tracker/test").status_code == 404


@pytest.mark.parametrize("count", [1, 11])
def test_the_page_asks_a_fixed_number_of_questions(
    anna: Client,
    world: World,
    project: Project,
    forge: Forge,
    count: int,
    django_assert_num_queries: Any,
) -> None:
    for number in range(count):
        forges.add(
            world.lab,
            name=f"A {number}",
            kind="gitea",
            web=WEB,
            credential={"token": "t"},
            by="anna",
        )
    anna.get(PAGE)
    with django_assert_num_queries(10):
        assert anna.get(PAGE).status_code == 200


# The card on the project's page.


def test_the_card_leads_to_the_forge_and_says_what_was_heard(
    vera: Client, anna: Client, world: World, project: Project, forge: Forge
) -> None:
    assert "kept by labsite itself" in text_of(vera.get("/projects/1/"))
    anna.post(PAGE, given(forge))
    Project.objects.update(asked_every=90, asked_why="the quota is low")
    Forge.objects.update(trouble="The token may not write issues.")
    page = text_of(vera.get("/projects/1/"))
    assert (
        '<a class="link" href="https://git.example/lab/shop" rel="noreferrer">lab/shop</a>' in page
    )
    assert "asked as Robot" in page
    assert "the quota is low" in page
    assert "The token may not write issues." in page
    assert "label <code>in-progress</code>" in page
    assert "pull requests" in page

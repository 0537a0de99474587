"""The webhook on a project's page: its address, a secret that is shown once, what came and what it did."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from runs.forges import hook_rules as rules
from runs.forges import hooks
from runs.forges.hook_rules import EVENTS
from runs.models import HookDelivery, Project, Settings
from runs.web import fragments
from tests import make
from tests.fakes import START, World
from tests.forges.test_hooks import send
from tests.web.people import confirmed, hx, text_of

pytestmark = pytest.mark.django_db

PAGE = "/projects/1/"
SECRET = "/projects/1/tracker/secret"
SET_UP = "/projects/1/tracker/hook"


@pytest.fixture
def project(world: World) -> Project:
    Settings.current()
    return make.a_project(pk=1)


def secret_in(page: str) -> str:
    found = re.search(r'<code id="hook-secret">([^<]+)</code>', page)
    assert found is not None
    return found[1]


def test_the_secret_is_made_on_a_page_that_asks_again_and_shown_once(
    anna: Client, world: World, project: Project
) -> None:
    assert "It has no secret yet" in text_of(anna.get(PAGE))
    assert "/confirm/" in anna.get(SECRET)["Location"]
    assert "/confirm/" in anna.post(SECRET)["Location"]
    assert not Project.objects.get().hook_secret

    confirmed(anna)
    assert "Make a secret" in text_of(anna.get(SECRET))
    shown = text_of(anna.post(SECRET))
    secret = secret_in(shown)
    assert Project.objects.get().hook_secret == secret
    assert "http://testserver/hooks/demo/" in shown
    pages = (PAGE, f"{PAGE}live", SECRET, "/audit/", "/", f"{PAGE}tracker/")
    assert secret not in "".join(text_of(anna.get(page)) for page in pages)
    page = text_of(anna.get(PAGE))
    assert "stored and not shown again" in page
    assert "Make a new secret" in page
    assert send(Client(), secret).json()["code"] == "woke"


@pytest.mark.parametrize("kind", list(EVENTS))
def test_the_page_with_the_secret_names_the_events_of_that_forge(
    anna: Client, world: World, project: Project, kind: str
) -> None:
    Project.objects.update(tracker=kind)
    confirmed(anna)
    shown = text_of(anna.post(SECRET))
    told = shown[shown.index("Events:") : shown.index("</ol>")]
    assert re.findall("<b>([^<]+)</b>", told) == list(EVENTS[kind])


def test_only_admins_make_a_secret(vera: Client, world: World, project: Project) -> None:
    assert "Make a secret" not in text_of(vera.get(PAGE))
    answer = confirmed(vera).post(SECRET)
    assert answer.status_code == 403
    assert "Nothing was changed." in text_of(answer)
    assert not Project.objects.get().hook_secret


def test_the_address_is_the_one_that_people_reach_labsite_by(
    anna: Client, world: World, project: Project
) -> None:
    Settings.objects.update(public_address="https://lab.example.org/")
    assert "https://lab.example.org/hooks/demo/" in text_of(anna.get(PAGE))
    confirmed(anna)
    assert "https://lab.example.org/hooks/demo/" in text_of(anna.post(SECRET))


def test_a_project_without_a_forge_shows_no_webhook(anna: Client, world: World) -> None:
    make.a_project(pk=1, tracker="")
    page = text_of(anna.get(PAGE))
    assert "Webhook" not in page
    assert "/hooks/" not in page


@pytest.mark.postgres
def test_the_last_twenty_deliveries_are_shown_with_what_they_did(
    anna: Client, world: World, project: Project
) -> None:
    secret = hooks.make_secret(world.lab, project, by="anna")
    before = fragments.version("project:1")
    send(Client(), secret, event="ping", delivery="ping")
    assert fragments.version("project:1") != before
    for number in range(22):
        send(Client(), secret, b"%d" % number, delivery=f"d{number}")
    send(Client(), secret, b"21", delivery="d21")
    page = text_of(anna.get(PAGE))
    assert "Last heard" in page
    assert page.count('<li id="hook-') == 20
    assert "<code>issues</code> looked at the project" in page
    assert "came again 1 time, nothing was done" in page
    assert HookDelivery.objects.count() == 23
    live = text_of(hx_get(anna, f"{PAGE}live"))
    assert 'id="hook-deliveries"' in live
    assert live.count('<li id="hook-') == 20


def hx_get(client: Client, address: str) -> Any:
    return client.get(address, headers={"HX-Request": "true"})


@pytest.mark.parametrize("count", [1, 11])
def test_the_page_asks_a_fixed_number_of_questions(
    anna: Client, world: World, project: Project, count: int, django_assert_num_queries: Any
) -> None:
    secret = hooks.make_secret(world.lab, project, by="anna")
    for number in range(count):
        send(Client(), secret, b"%d" % number, delivery=f"d{number}")
    anna.get(PAGE)
    with django_assert_num_queries(18):
        assert anna.get(PAGE).status_code == 200


def test_a_new_secret_by_htmx_leads_to_the_question(
    anna: Client, world: World, project: Project
) -> None:
    answer = hx(anna, SECRET, at=PAGE)
    assert answer.status_code == 403
    assert "/confirm/" in answer["HX-Redirect"]


@pytest.mark.parametrize(
    ("heard", "changed", "is_silent"),
    [
        (None, None, False),
        (None, 10, True),
        (None, -10, False),
        (50, 52, False),
        (50, 90, True),
        (110, 120, False),
        (50, 40, False),
    ],
)
def test_a_hook_that_missed_a_change_for_an_hour_is_silent(
    heard: int | None, changed: int | None, is_silent: bool
) -> None:
    """In minutes since the secret was made; it is asked after two hours."""

    def at(minutes: int | None) -> datetime | None:
        return None if minutes is None else START + timedelta(minutes=minutes)

    now = START + timedelta(hours=2)
    assert rules.is_silent(now, START, at(heard), at(changed)) is is_silent


def test_a_silent_hook_is_said_on_the_tracker_card(
    anna: Client, world: World, project: Project
) -> None:
    hooks.make_secret(world.lab, project, by="anna")
    now = world.lab.now()
    assert "although something changed" not in text_of(anna.get(PAGE))
    Project.objects.update(
        hook_since=now - timedelta(hours=2), changed_at=now - timedelta(minutes=50)
    )
    assert "Nothing was delivered yet although something changed" in text_of(anna.get(PAGE))


def test_labsite_sets_the_hook_up_itself_and_a_refusal_leaves_the_old_secret_alone(
    anna: Client, world: World, project: Project
) -> None:
    Project.objects.update(tracker="memory", tracker_root="demo")
    world.tracker.add_root("demo")
    confirmed(anna)
    assert "Set it up for me" in text_of(anna.get(SECRET))
    assert anna.post(SET_UP).status_code == 303
    secret = Project.objects.get().hook_secret
    assert world.tracker.shelves["demo"].hooks == {"http://testserver/hooks/demo/": secret}
    assert send(Client(), secret).json()["code"] == "woke"
    world.tracker.fail()
    refused = anna.post(SET_UP, follow=True)
    assert "The webhook was not set up" in text_of(refused)
    assert "may be gone or no longer fit" in text_of(refused)
    assert Project.objects.get().hook_secret == secret
    left = Project.objects.get()
    heard = (left.hooked_at, left.issues_hooked_at, left.pulls_hooked_at)
    assert heard == (None, None, None), "it is not relied on until it delivers again"
    assert send(Client(), secret, b"later", delivery="later").json()["code"] == "woke"
    assert Project.objects.get().hooked_at is not None

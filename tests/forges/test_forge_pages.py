"""Accounts on forges: added, changed and removed on pages that never show a credential; the ledger."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from runs.forges import acts as forges
from runs.models import Asked, Forge, Project, Quota, QuotaHour, Settings
from tests import make
from tests.fakes import START, World
from tests.web.people import confirmed, text_of

pytestmark = pytest.mark.django_db

TOKEN = "tok-5d1f0c"
WEB = "https://git.example"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nsecretlines\n-----END RSA PRIVATE KEY-----"
GIVEN = {"kind": "gitea", "name": "Ours", "web": WEB, "token": TOKEN}


def an_account(world: World, **more: Any) -> Forge:
    told = {"name": "Ours", "kind": "gitea", "web": WEB, "credential": {"token": TOKEN}, **more}
    return forges.add(world.lab, by="anna", **told)


@pytest.fixture
def admin(anna: Client, world: World) -> Client:
    return confirmed(anna)


@pytest.mark.postgres
@pytest.mark.row("X-05", level="contract")
def test_an_account_goes_in_and_its_token_never_comes_out(
    admin: Client, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = admin.post("/forges/new", GIVEN)
    assert (answer.status_code, answer["Location"]) == (303, "/forges/")
    kept = Forge.objects.get()
    assert (kept.api, kept.account.token) == (f"{WEB}/api/v1", TOKEN)
    wrong = admin.post("/forges/new", GIVEN)
    assert wrong.status_code == 400
    assert "There is an account called Ours already." in text_of(wrong)
    pages = ("/forges/", "/forges/new", f"/forges/{kept.pk}/", "/forges/live", "/audit/")
    shown = "".join(text_of(admin.get(page)) for page in pages) + text_of(wrong) + caplog.text
    assert TOKEN not in shown
    assert "git.example" in shown


@pytest.mark.row("X-05", level="contract")
def test_a_github_app_goes_in_as_well(admin: Client, world: World) -> None:
    given = {"kind": "github", "name": "App", "web": "https://github.com", "app_id": "12"}
    given |= {"app_installation": "34", "app_key": KEY}
    wrong = admin.post("/forges/new", {**given, "app_installation": ""})
    assert "needs its id, its installation and its key" in text_of(wrong)
    assert "secretlines" not in text_of(wrong)
    assert '<details class="reveal" open>' in text_of(wrong)
    assert admin.post("/forges/new", given).status_code == 303
    kept = Forge.objects.get()
    assert kept.account.app_key == KEY
    assert "secretlines" not in text_of(admin.get(f"/forges/{kept.pk}/"))


def test_an_edit_keeps_or_replaces_the_token_and_takes_none_elsewhere(
    admin: Client, world: World
) -> None:
    kept = an_account(world)
    page = f"/forges/{kept.pk}/"
    assert f'value="{WEB}"' in text_of(admin.get(page))
    told = {"name": "Robot", "web": WEB}
    assert admin.post(page, told).status_code == 303
    assert (Forge.objects.get().name, Forge.objects.get().account.token) == ("Robot", TOKEN)
    assert admin.post(page, {**told, "token": "new"}).status_code == 303
    assert Forge.objects.get().account.token == "new"
    away = admin.post(page, {"name": "Robot", "web": "https://thief.example"})
    assert away.status_code == 400
    assert "Write the token for thief.example too." in text_of(away)
    assert Forge.objects.get().web == WEB


def test_an_account_is_removed_unless_a_project_uses_it(admin: Client, world: World) -> None:
    kept = an_account(world)
    project = make.a_project(forge=kept)
    refused = admin.post(f"/forges/{kept.pk}/remove", follow=True)
    assert "It is used by demo" in text_of(refused)
    assert Forge.objects.exists()
    Project.objects.filter(pk=project.pk).update(forge=None)
    assert admin.post(f"/forges/{kept.pk}/remove").status_code == 303
    assert not Forge.objects.exists()


def test_only_admins_mind_accounts_and_are_asked_again(
    anna: Client, vera: Client, world: World
) -> None:
    kept = an_account(world)
    for page in ("/forges/new", f"/forges/{kept.pk}/"):
        assert "/confirm/" in anna.get(page)["Location"]
        assert confirmed(vera).get(page).status_code == 403
        assert confirmed(vera).post(page, GIVEN).status_code == 403
    assert "/confirm/" in anna.post(f"/forges/{kept.pk}/remove")["Location"]
    assert confirmed(vera).post(f"/forges/{kept.pk}/remove").status_code == 403
    shown = text_of(vera.get("/forges/"))
    assert "Ours" in shown
    assert "Add an account" not in shown
    assert f"/forges/{kept.pk}/" not in shown
    assert Forge.objects.count() == 1


def test_adding_leads_back_to_the_page_that_wanted_it_and_nowhere_else(
    admin: Client, world: World
) -> None:
    back = admin.post("/forges/new?next=/projects/new%3Fsource%3Dx", GIVEN)
    assert back["Location"] == "/projects/new?source=x"
    Forge.objects.all().delete()
    away = admin.post("/forges/new?next=https://elsewhere.example/", GIVEN)
    assert away["Location"] == "/"


def a_ledger(world: World, projects: int = 1) -> Forge:
    Settings.current()
    kept = an_account(world)
    account = kept.account
    quota = Quota.objects.create(
        host=account.host,
        account=account.id,
        limit=5000,
        remaining=4200,
        reset_at=START + timedelta(minutes=20),
        seen_at=START,
    )
    for hours, purpose, calls, unchanged in (
        (0, "ready queue", 60, 55),
        (1, "ready queue", 40, 40),
        (0, "writing", 5, 0),
        (25, "reading", 999, 0),
    ):
        hour = START - timedelta(hours=hours)
        QuotaHour.objects.create(
            quota=quota, hour=hour, purpose=purpose, calls=calls, unchanged=unchanged
        )
    for number in range(projects):
        make.a_project(f"demo-{number}", forge=kept, asked_every=90, asked_why="the quota is low")
    return kept


def test_the_ledger_tells_what_is_left_and_who_spent_what(
    vera: Client, anna: Client, world: World
) -> None:
    a_ledger(world)
    page = text_of(vera.get("/forges/"))
    assert "4200 of 5000 left" in page
    assert "leaves 40 % of each API quota for people" in page
    assert "/admin/" not in page
    assert "/admin/runs/settings/1/change/" in text_of(anna.get("/forges/"))
    assert '<td class="tight">ready queue</td>' in page
    assert '<progress class="meter" max="100" value="100"' in page
    assert '<td class="num">100</td><td class="num muted">95</td>' in page
    assert ">999<" not in page
    assert "asked every 1 min 30 s: the quota is low" in page or "the quota is low" in page


def test_the_ledger_tells_what_each_project_spent_of_its_budget_in_the_last_hour(
    vera: Client, world: World
) -> None:
    kept = a_ledger(world)
    Project.objects.update(tracker="gitea", tracker_root=f"{kept.pk}/Ann/Shop")
    quota = Quota.objects.get()
    for minutes, calls in ((0, 20), (50, 3), (70, 900)):
        at = START - timedelta(minutes=minutes)
        Asked.objects.create(quota=quota, repository="ann/shop", at=at, calls=calls)
    assert "23 of 400 background requests in the last hour" in text_of(vera.get("/forges/"))


def test_an_account_that_waits_or_needs_a_person_says_so(vera: Client, world: World) -> None:
    kept = a_ledger(world)
    Quota.objects.update(blocked_until=START + timedelta(minutes=5))
    Forge.objects.update(trouble="The token has expired.")
    page = text_of(vera.get("/forges/"))
    assert "Nothing is sent until" in page
    assert "needs you" not in page
    world.clock.forward(minutes=6)
    page = text_of(vera.get("/forges/"))
    assert "Nothing is sent until" not in page
    assert "needs you" in page
    assert "The token has expired." in page
    world.clock.forward(minutes=30)
    assert "it tells of no limit just now" in text_of(vera.get("/forges/"))
    assert kept.name in page


def test_the_ledger_refreshes_only_when_something_changed(vera: Client, world: World) -> None:
    a_ledger(world)
    first = vera.get("/forges/live", headers={"HX-Request": "true"})
    assert 'id="forge-ledger"' in text_of(first)
    tag = first["HX-PTag"]
    world.clock.forward(seconds=4)
    same = vera.get("/forges/live", headers={"HX-Request": "true", "HX-PTag": tag})
    assert same.status_code == 304
    Quota.objects.update(remaining=4100)
    changed = vera.get("/forges/live", headers={"HX-Request": "true", "HX-PTag": tag})
    assert "4100 of 5000 left" in text_of(changed)


def test_without_accounts_the_page_says_what_they_are_for(
    anna: Client, vera: Client, world: World
) -> None:
    assert "No forge accounts yet" in text_of(anna.get("/forges/"))
    assert "An admin can add one." in text_of(vera.get("/forges/"))
    assert "/forges/" in text_of(vera.get("/settings/"))


@pytest.mark.parametrize("projects", [1, 11])
def test_the_ledger_asks_a_fixed_number_of_questions(
    vera: Client, world: World, projects: int, django_assert_num_queries: Any
) -> None:
    a_ledger(world, projects)
    vera.get("/forges/")
    with django_assert_num_queries(15):
        assert vera.get("/forges/").status_code == 200

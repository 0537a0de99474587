"""Dismiss and Snooze: for one person, as far as the page showed it, and back by themselves."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from runs.core.states import NoticeKind, Outcome
from runs.models import HiddenNeed, Notice, NoticeTimes, Project, Run
from runs.overview import attention, digest, queries
from runs.overview.hiding_rules import Choice
from tests import make
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.people import text_of

pytestmark = pytest.mark.django_db

HX = {"HX-Request": "true", "HX-Current-URL": "http://testserver/"}


@pytest.fixture
def project(world: World) -> Project:
    rows.a_tick(world)
    return rows.a_tracked_project("billing")


@pytest.fixture
def berta(db: None) -> Client:
    """Somebody else who may act."""
    client = Client()
    client.force_login(make.a_user("berta"))
    return client


def died(project: Project, *keys: str, reason: str = "exit status 1") -> list[Run]:
    return [make.a_run(project, key, outcome=Outcome.DIED, reason=reason) for key in keys]


def shown(world: World, *runs: Run) -> str:
    """What a page says of these runs."""
    idents = {f"need-run-{run.pk}" for run in runs}
    found = queries.needs(world.lab).needs.found
    return " ".join(f"{one.id}.{one.facts}" for one in found if one.id in idents)


def listed(client: Client) -> list[str]:
    """What is on somebody's list, and that title, icon and count say the same."""
    answer = client.get("/needs/")
    needs = answer.context["page"].needs
    titles = [row.need.title for row in needs.rows]
    assert client.get("/needs/count").json() == {"count": len(titles)}
    assert client.get("/").context["page"].needs.total == needs.total == len(titles)
    assert f"<title>({len(titles)}) " in text_of(answer) or not titles
    return titles


def streak(world: World, number: int) -> None:
    Project.objects.update(streak=number)
    rows.tell(world, f"{number} in a row", NoticeKind.AUTO_PAUSED)


def hides(client: Client, shown: str, how: str = "dismiss", **more: Any) -> Any:
    return client.post(f"/needs/hide?for={how}", {"shown": shown}, **more)


def test_a_group_is_dismissed_by_one_press_for_one_person_alone(
    anna: Client, berta: Client, world: World, project: Project
) -> None:
    runs = died(project, "1", "2", "3")
    other = died(project, "4", reason="exit status 2")
    html = text_of(anna.get("/"))
    assert html.count('class="need"') == 2
    named = shown(world, *runs)
    pressed = " ".join(reversed(named.split()))
    assert f'value="{pressed}"' in html or f'value="{named}"' in html
    answer = hides(anna, named, headers=HX)
    assert answer.status_code == 200
    assert "Dismissed: 3 things, for you alone." in text_of(answer)
    assert "3 dismissed" in text_of(answer)
    assert listed(anna) == ["billing #4"]
    assert len(listed(berta)) == 4
    # For everybody else it counts as opened, and leaves in a day.
    world.clock.forward(days=1)
    rows.a_tick(world)
    assert listed(berta) == ["billing #4"]
    assert Run.objects.get(pk=other[0].pk).seen_until is None
    (told,) = Notice.objects.filter(kind=NoticeKind.NEED_DISMISSED)
    assert (told.by, told.text.endswith("3 things")) == ("anna", True)


@pytest.mark.row("LAB-132", level="contract")
def test_what_is_snoozed_comes_back_by_itself_or_by_hand(
    anna: Client, world: World, project: Project
) -> None:
    (run,) = died(project, "1")
    answer = hides(anna, shown(world, run), "hour")
    assert (answer.status_code, answer["Location"]) == (303, "/")
    html = text_of(anna.get("/"))
    assert "1 snoozed" in html
    assert "Snoozed, for you alone." in html
    assert listed(anna) == []
    world.clock.forward(minutes=59)
    rows.a_tick(world)
    assert listed(anna) == []
    version = anna.get("/live")["HX-PTag"]
    world.clock.forward(minutes=10)
    rows.a_tick(world)
    fresh = anna.get("/live", headers={"HX-PTag": version})
    assert f'id="need-run-{run.pk}"' in text_of(fresh)
    assert listed(anna) == ["billing #1"]

    hides(anna, shown(world, run), "change")
    assert listed(anna) == []
    assert anna.post("/needs/back", {"need": f"need-run-{run.pk}"}).status_code == 303
    assert listed(anna) == ["billing #1"]
    hides(anna, shown(world, run))
    anna.post("/needs/back", headers=HX)
    assert listed(anna) == ["billing #1"]


def test_the_morning_is_that_of_the_person(anna: Client, world: World, project: Project) -> None:
    NoticeTimes.objects.create(user=User.objects.get(username="anna"), zone="Asia/Tokyo")
    (run,) = died(project, "1")
    hides(anna, shown(world, run), "morning")
    # It is 21:00 there.
    assert HiddenNeed.objects.get().until == world.clock.now + timedelta(hours=10)


def test_what_changes_comes_back_and_what_changed_meanwhile_is_not_hidden(
    anna: Client, world: World, project: Project
) -> None:
    Project.objects.update(is_auto=True, streak=3)
    (need,) = queries.needs(world.lab).needs.found
    was = f"{need.id}.{need.facts}"
    assert "Nothing was hidden." in text_of(hides(anna, was, "dismiss", headers=HX))
    hides(anna, was, "change")
    assert listed(anna) == []
    streak(world, 4)
    assert listed(anna) == ["billing"]
    said = text_of(hides(anna, was, "change", headers=HX))
    assert "Nothing was hidden. 1 changed meanwhile and stayed." in said
    assert listed(anna) == ["billing"]
    # What is over is forgotten: when it comes again as it was, it is on the list.
    streak(world, 3)
    assert listed(anna) == []
    streak(world, 0)
    (run,) = died(project, "1")
    hides(anna, shown(world, run), "hour")
    streak(world, 3)
    assert listed(anna) == ["billing"]


def test_the_same_press_twice_is_one_and_a_later_one_counts(
    anna: Client, world: World, project: Project
) -> None:
    (run,) = died(project, "1")
    named = shown(world, run)
    for how, told in (("hour", 1), ("hour", 1), ("change", 2), ("dismiss", 3), ("dismiss", 3)):
        assert hides(anna, named, how).status_code == 303
        assert HiddenNeed.objects.count() == 1
        assert Notice.objects.filter(kind=NoticeKind.NEED_DISMISSED).count() == told
    for bad in ("", "need-run-x", "' or 1=1", f"{named}x", "." * 5000):
        hides(anna, bad)
    assert HiddenNeed.objects.count() == 1
    assert hides(anna, named, "ever", headers=HX).status_code == 400
    assert anna.get("/needs/hide").status_code == 405


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_presses_at_the_same_moment_leave_one_row(world: World, project: Project) -> None:
    user = make.a_user("anna")
    died(project, "1", "2")
    found = queries.needs(world.lab).needs.found
    wrong: list[BaseException] = []

    def press(choice: Choice) -> None:
        try:
            attention.hide(world.lab, user, found, found, choice)
        except BaseException as error:
            wrong.append(error)
        finally:
            connection.close()

    choices = (Choice.HOUR, Choice.CHANGE, Choice.DISMISS) * 3
    threads = [threading.Thread(target=press, args=[choice]) for choice in choices]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert wrong == []
    assert HiddenNeed.objects.count() == 2
    assert queries.needs(world.lab, attention.hidden_of(user.pk)).needs.total == 0


def test_who_may_only_look_hides_nothing_and_sees_all(
    anna: Client, vera: Client, world: World, project: Project
) -> None:
    runs = died(project, "1", "2")
    html = text_of(vera.get("/"))
    assert "Snooze" not in html
    assert "Dismiss" not in html
    assert hides(vera, shown(world, *runs)).status_code == 403
    assert vera.post("/needs/back").status_code == 403
    hides(anna, shown(world, *runs))
    assert listed(vera) == ["billing #2", "billing #1"]


def test_the_list_is_cut_with_a_way_to_the_rest_and_costs_the_same_for_many(
    anna: Client, world: World, project: Project, django_assert_num_queries: Any
) -> None:
    for number in range(60):
        died(project, str(number), reason=f"exit status {number}")
    anna.get("/")
    html = text_of(anna.get("/"))
    assert html.count('class="need"') == digest.NEEDS
    assert f"Show {60 - digest.NEEDS} more" in html
    assert text_of(anna.get("/needs/")).count('class="need"') == 60
    assert "Older runs that ended badly" not in html
    named = " ".join(f"{one.id}.{one.facts}" for one in queries.needs(world.lab).needs.found[:30])
    hides(anna, named, "hour")
    anna.get("/")  # shows what was said of it
    for page, cost in (("/", 6), ("/needs/", 5)):
        with django_assert_num_queries(2 + cost):
            assert "30 snoozed" in text_of(anna.get(page))

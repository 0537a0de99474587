"""The pages on notices to the outside: addresses are written and never shown, each minds their own."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from runs.core.encrypted import HIDDEN
from runs.models import Delivery, NoticeAddress, Settings
from runs.notices import addresses, deliveries
from runs.notices import rules as delivering
from tests import make
from tests.chromium import press_twice
from tests.fakes import START, World
from tests.people.test_people_look import be_asked
from tests.web.browsing import OpenPage
from tests.web.looking import look
from tests.web.people import confirmed, hx, text_of

pytestmark = pytest.mark.django_db

URL = "json://127.0.0.1:1/token77"
PAGE = "/account/notices/"


@pytest.fixture
def mine(anna: Client, world: World) -> Client:
    return confirmed(anna)


@pytest.fixture
def address(world: World, operator: User) -> NoticeAddress:
    return addresses.add(world.lab, operator, "phone", URL, ["ended.died"])


def add(client: Client, **given: Any) -> Any:
    facts = {"name": "phone", "url": URL, "topics": ["ended.died", "auto.paused"], **given}
    return client.post("/account/notices/new", facts)


@pytest.mark.row("X-05", level="contract")
def test_an_address_is_added_and_never_shown(
    mine: Client, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert add(mine).status_code == 303
    kept = NoticeAddress.objects.get()
    assert (kept.url, kept.service, kept.topics) == (URL, "JSON", ["auto.paused", "ended.died"])
    again = add(mine, name="phone 2")
    assert again.status_code == 400
    assert "You have this address already." in text_of(again)
    pages = [PAGE, f"{PAGE}{kept.pk}/", f"{PAGE}new", "/account/"]
    shown = "".join(text_of(mine.get(page)) for page in pages) + text_of(again) + caplog.text
    assert "token77" not in shown
    assert "phone" in shown


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"name": ""}, "Write a name.", id="no name"),
        pytest.param({"url": ""}, "Write an address.", id="no address"),
        pytest.param({"url": "nonsense"}, "This address cannot be used", id="an unfit address"),
        pytest.param({"topics": ["run.step"]}, "Select a valid choice", id="no such kind"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_kept(
    mine: Client, given: dict[str, Any], says: str
) -> None:
    answer = add(mine, **given)
    assert answer.status_code == 400
    assert says in text_of(answer)
    assert not NoticeAddress.objects.exists()


def test_adding_asks_again_and_needs_the_permission(
    anna: Client, vera: Client, world: World
) -> None:
    assert add(anna).url.startswith("/confirm/")
    assert add(confirmed(vera)).status_code == 403
    assert not NoticeAddress.objects.exists()
    assert vera.get(PAGE).status_code == 200


def test_quiet_by_default_and_the_choice_is_changed(mine: Client, address: NoticeAddress) -> None:
    page = text_of(mine.get(f"{PAGE}new"))
    assert page.count(" checked") == len(delivering.AT_FIRST)
    assert text_of(mine.get(f"{PAGE}{address.pk}/")).count(" checked") == 1
    assert mine.post(f"{PAGE}{address.pk}/", {"topics": []}).status_code == 303
    address.refresh_from_db()
    assert address.topics == []


def test_nobody_minds_the_address_of_another(
    mine: Client, world: World, address: NoticeAddress
) -> None:
    other = Client()
    other.force_login(make.a_user("eve"))
    for path in (f"{address.pk}/test", f"{address.pk}/remove", f"{address.pk}/"):
        assert other.post(PAGE + path).status_code == 404
    assert f"address-{address.pk}" not in text_of(other.get(PAGE))
    assert mine.post(f"{PAGE}{address.pk}/remove").status_code == 303
    assert not NoticeAddress.objects.exists()
    assert mine.post(f"{PAGE}{address.pk}/remove").status_code == 404


def test_a_test_says_how_it_went(mine: Client, world: World, address: NoticeAddress) -> None:
    def at_once(delivery_id: int) -> None:
        deliveries.carry_out(world.lab, delivery_id)

    world.queue.deliver = at_once  # type: ignore[method-assign]
    assert "The test was sent to phone" in text_of(hx(mine, f"{PAGE}{address.pk}/test", at=PAGE))
    assert len(world.notifier.told) == 1
    world.notifier.broken = "status 500"
    failed = hx(mine, f"{PAGE}{address.pk}/test", at=PAGE)
    assert failed.status_code == 502
    assert "status 500" in text_of(failed)
    page = text_of(mine.get(PAGE))
    assert "after 1 try: status 500" in page


def test_a_test_that_hangs_is_on_its_way(
    mine: Client, world: World, address: NoticeAddress
) -> None:
    assert "is on its way" in text_of(hx(mine, f"{PAGE}{address.pk}/test", at=PAGE))


@pytest.mark.parametrize("many", [1, 11])
def test_the_page_asks_a_fixed_number_of_questions(
    mine: Client,
    world: World,
    address: NoticeAddress,
    many: int,
    django_assert_num_queries: Any,
) -> None:
    for number in range(many):
        Delivery.objects.create(
            address=address, title=f"t{number}", text="", created_at=START, next_at=START
        )
    mine.get(PAGE)
    # Of these one: how what was sent to anybody stands, so that the page hears of it.
    with django_assert_num_queries(9):
        mine.get(PAGE)


@pytest.mark.row("X-05", level="contract")
def test_an_admin_writes_the_ping_address_and_cannot_read_it(mine: Client) -> None:
    address = "/admin/runs/settings/1/change/"
    Settings.current()

    def shown() -> dict[str, Any]:
        form = mine.get(address).context["adminform"].form
        return {name: value for name, value in form.initial.items() if value is not None}

    facts = {"ping_url": "https://watch.example/abc77", "public_address": "https://lab.example"}
    assert mine.post(address, {**shown(), **facts}).status_code == 302
    assert Settings.current().ping_url == "https://watch.example/abc77"
    assert "abc77" not in text_of(mine.get(address)) + text_of(mine.get("/"))
    assert (
        mine.post(address, {**shown(), "ping_url": HIDDEN, "tick_seconds": 31}).status_code == 302
    )
    assert Settings.current().ping_url == "https://watch.example/abc77"
    assert Settings.current().tick_seconds == 31
    assert mine.post(address, {**facts, "ping_url": "nonsense"}).status_code == 200
    assert mine.post(address, {**shown(), "ping_url": ""}).status_code == 302
    assert Settings.current().ping_url == ""


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_in_a_browser_an_address_is_added_tried_and_removed(
    open_page: OpenPage, operator: User, world: World, scheme: str, width: int
) -> None:
    world.queue.deliver = lambda pk: deliveries.carry_out(world.lab, pk)  # type: ignore[method-assign]
    page = open_page("/account/", operator, width=width, color_scheme=scheme)
    be_asked(page, START.isoformat())
    page.get_by_role("main").get_by_role("link", name="Notices").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Notices")
    wrong = look(page, "no notices", scheme, width)
    page.get_by_role("link", name="Add an address").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Add an address")
    page.get_by_label("Name").fill("my phone")
    page.get_by_label("Address", exact=True).fill("nonsense")
    page.get_by_label("a run ended: died").check()
    page.get_by_role("button", name="Add address").click()
    expect(page.get_by_text("This address cannot be used")).to_be_visible()
    wrong += look(page, "a wrong address", scheme, width)
    assert page.get_by_label("a run ended: died").is_checked()
    page.get_by_label("Address", exact=True).fill(URL)
    page.get_by_role("button", name="Add address").click()
    expect(page.get_by_text("Notices of the kinds you chose go to my phone")).to_be_visible()
    page.get_by_role("button", name="Send a test to my phone").click()
    expect(page.get_by_text("The test was sent to my phone.")).to_be_visible()
    page.reload()
    expect(page.get_by_role("region", name="Table of deliveries")).to_contain_text("sent")
    wrong += look(page, "notices", scheme, width)
    page.get_by_role("link", name="Choose what my phone is told").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("my phone")
    wrong += look(page, "choose", scheme, width)
    page.go_back()
    press_twice(page.get_by_role("button", name="Remove my phone"))
    expect(page.get_by_text("Nothing is sent to my phone any more.")).to_be_visible()
    assert wrong == []

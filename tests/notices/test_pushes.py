"""Web Push: really encrypted, through the same door as all notices, to the devices of a person."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from runs.core import tokens
from runs.core.ports import DeviceGone, Lab, SeamError, UnfitAddress
from runs.core.states import NoticeKind
from runs.models import (
    Delivery,
    Looking,
    Notice,
    NoticeAddress,
    NoticeTimes,
    Project,
    PushKeys,
    Run,
)
from runs.notices import addresses, deliveries, pushes
from runs.notices.notifier import AppriseNotifier
from runs.notices.rules import Push
from runs.run_pages import tabs
from runs.secrets.known import Known
from runs.timeline import announce
from tests import make
from tests.fakes import World
from tests.notices.push_service import Browser, PushService, is_signed
from tests.notices.test_deliveries import work
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)

TOPICS = ["auto.paused", "run.waits", "pull.opened"]


@pytest.fixture
def service(settings: Any) -> Iterator[PushService]:
    made = PushService()
    settings.PUSH_HOSTS = [made.at]
    yield made
    made.close()


@pytest.fixture
def browser(service: PushService) -> Browser:
    return Browser(service.at)


@pytest.fixture
def real(world: World) -> Lab:
    """The same world, with the real messenger."""
    return replace(world.lab, notifier=AppriseNotifier(os.environ, PATIENCE))


def turned_on(world: World, user: User, browser: Browser, name: str = "phone") -> NoticeAddress:
    return addresses.turn_on(world.lab, user, name, addresses.Device(**browser.given), TOPICS)


def tells(world: World, project: Project, text: str = "three in a row") -> None:
    with transaction.atomic():
        announce.tell(world.lab, NoticeKind.AUTO_PAUSED, text, project=project)


def test_a_push_is_encrypted_for_its_device_and_signed(
    world: World, real: Lab, operator: User, service: PushService, browser: Browser
) -> None:
    turned_on(world, operator, browser)
    project = make.a_project()
    tells(world, project)

    work(world, real)

    (path, headers, body), *more = service.got
    assert (path, more) == ("/push/a1", [])
    assert b"three in a row" not in body and b"demo" not in body
    told = browser.read(body)
    assert told["title"] == "demo: automatic runs paused themselves"
    assert told["body"] == "three in a row"
    assert (told["url"], told["acts"]) == (f"/projects/{project.pk}/", [])
    assert headers["content-encoding"] == "aes128gcm"
    assert int(headers["ttl"]) > 0 and headers["urgency"] == "high"
    assert len(headers["topic"]) == 32
    assert is_signed(headers["authorization"], PushKeys.objects.get().public)
    assert Delivery.objects.get().state == "sent"


def test_the_private_key_and_the_endpoint_are_nowhere_to_be_read(
    world: World, operator: User, browser: Browser
) -> None:
    from django.db import connection

    turned_on(world, operator, browser)
    public = pushes.public_key(world.lab)
    keys = PushKeys.objects.get()
    assert pushes.public_key(world.lab) == public
    with connection.cursor() as cursor:
        cursor.execute("SELECT private, public FROM runs_pushkeys")
        stored = str(cursor.fetchall())
        cursor.execute("SELECT url FROM runs_noticeaddress")
        stored += str(cursor.fetchall())
    assert str(keys.private) not in stored and browser.endpoint not in stored
    mask = Known({}).mask(fresh=True)
    assert str(keys.private) not in mask(f"the key is {keys.private}")


def test_a_device_that_is_gone_is_removed_with_a_word(
    world: World, real: Lab, operator: User, service: PushService, browser: Browser
) -> None:
    turned_on(world, operator, browser)
    service.status = 410
    tells(world, make.a_project())

    work(world, real)

    assert not NoticeAddress.objects.exists()
    said = Notice.objects.get(kind=NoticeKind.DELIVERY_FAILED)
    assert said.text == "phone takes no notices any more and was removed from the devices of anna"


def test_a_service_that_is_busy_is_asked_again_as_all_addresses_are(
    world: World, real: Lab, operator: User, service: PushService, browser: Browser
) -> None:
    turned_on(world, operator, browser)
    service.status = 429
    tells(world, make.a_project())
    work(world, real)
    row = Delivery.objects.get()
    assert (row.state, row.tries) == ("waiting", 1)
    assert "status 429" in row.error and "push/a1" not in row.error
    service.status = 201
    world.clock.forward(minutes=1)
    work(world, real)
    row.refresh_from_db()
    assert (row.state, row.tries, len(service.got)) == ("sent", 2, 2)


def _push(browser: Browser, **more: Any) -> Push:
    key = {"private": "A" * 42 + "E", "subject": "mailto:a@example.org", "text": "{}"}
    return Push(**{**browser.given, **key, **more})


@pytest.mark.parametrize("status", [301, 302, 307])
def test_no_redirect_is_followed(service: PushService, browser: Browser, status: int) -> None:
    service.status = status
    with pytest.raises(UnfitAddress):
        AppriseNotifier(os.environ, PATIENCE).push(_push(browser, inside=True))
    assert [path for path, *_ in service.got] == ["/push/a1"]


def test_a_host_inside_is_not_called_though_its_name_looks_outside(
    service: PushService, browser: Browser
) -> None:
    # It passed the look at its form once; what the name stands for is looked at before each call.
    with pytest.raises(UnfitAddress, match="inside a network"):
        AppriseNotifier(os.environ, PATIENCE).push(_push(browser))
    assert service.got == []


def test_a_host_is_asked_for_by_its_name_and_one_that_is_none_is_final(
    service: PushService, browser: Browser
) -> None:
    named = browser.endpoint.replace("127.0.0.1", "localhost")
    AppriseNotifier(os.environ, PATIENCE).push(_push(browser, inside=True, endpoint=named))
    assert service.got[0][1]["host"] == service.at.replace("127.0.0.1", "localhost")
    with pytest.raises(UnfitAddress, match="no name"):
        AppriseNotifier(os.environ, PATIENCE).push(_push(browser, endpoint="https://a..b.example/"))


def test_answers_of_a_service_are_what_they_are(service: PushService, browser: Browser) -> None:
    notifier = AppriseNotifier(os.environ, PATIENCE)
    for status in (404, 410):
        service.status = status
        with pytest.raises(DeviceGone):
            notifier.push(_push(browser, inside=True))
    service.status = 500
    with pytest.raises(SeamError) as later:
        notifier.push(_push(browser, inside=True))
    assert not isinstance(later.value, UnfitAddress)
    with pytest.raises(UnfitAddress, match="keys of the device"):
        notifier.push(replace(_push(browser, inside=True), p256dh="x"))


@pytest.mark.postgres
def test_of_two_devices_of_one_name_the_second_is_refused_also_at_the_same_moment(
    world: World, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Meanwhile(list[str]):
        """Another request stores its device between the look and the write."""

        def __iter__(self) -> Any:
            now = world.lab.now()
            NoticeAddress.objects.create(user=operator, name="phone", url="x://", created_at=now)
            return super().__iter__()

    device = addresses.Device(**Browser("push.example.org", scheme="https").given)
    with pytest.raises(addresses.AddressRefused) as refused:
        addresses.turn_on(world.lab, operator, "phone", device, Meanwhile())
    assert refused.value.field == "name"


def test_a_browser_belongs_to_who_turned_it_on_last(world: World, operator: User) -> None:
    browser = Browser("push.example.org", scheme="https")
    given = {**browser.given, "endpoint": f"{browser.given['endpoint']}#other"}
    addresses.turn_on(world.lab, operator, "old", addresses.Device(**given), TOPICS)
    bert = make.a_user("bert")
    made = turned_on(world, bert, browser)
    assert list(NoticeAddress.objects.values_list("user", "pk")) == [(bert.pk, made.pk)]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"endpoint": "https://10.0.0.1/x"}, "endpoint"),
        ({"endpoint": "http://push.example.org/x"}, "endpoint"),
        ({"p256dh": "AAAA"}, "endpoint"),
        ({"auth": "AAAA"}, "endpoint"),
        ({"auth": "?"}, "endpoint"),
    ],
)
def test_what_is_no_device_is_refused_and_nothing_is_stored(
    world: World, operator: User, change: dict[str, str], field: str
) -> None:
    given = {**Browser("push.example.org", scheme="https").given, **change}
    with pytest.raises(addresses.AddressRefused) as refused:
        addresses.turn_on(world.lab, operator, "phone", addresses.Device(**given), TOPICS)
    assert set(refused.value.fields) == {field}
    assert not NoticeAddress.objects.exists()


@pytest.fixture
def device(world: World, operator: User) -> NoticeAddress:
    return turned_on(world, operator, Browser("push.example.org", scheme="https"))


def _asks(world: World, run: Run, text: str = "asks") -> None:
    with transaction.atomic():
        announce.tell(world.lab, NoticeKind.RUN_WAITS, f"{text} {run.pk}", run=run)


def _titles(world: World) -> list[str]:
    return [json.loads(one.text)["title"] for one in world.notifier.pushed]


def test_a_night_of_many_is_one_push(world: World, device: NoticeAddress) -> None:
    project = make.a_project()
    for number in range(40):
        tells(world, project, f"pause {number}")
    work(world)
    assert _titles(world) == ["labsite: 40 notices"]
    assert set(Delivery.objects.values_list("state", flat=True)) == {"sent"}
    assert Delivery.objects.filter(bundle=None).count() == 1
    tells(world, project, "one more")
    work(world)
    assert _titles(world)[1:] == ["demo: automatic runs paused themselves"]


def test_no_later_push_replaces_several_in_one(
    world: World, operator: User, device: NoticeAddress
) -> None:
    project = make.a_project()
    runs = [make.a_run(project, str(n), slot=n) for n in range(1, 8)]
    for run in runs:
        _asks(world, run)
    work(world)
    world.clock.forward(minutes=2)
    for text in ("again", "once more"):
        _asks(world, runs[0], text)
        work(world)
    many, first, second = world.notifier.pushed
    assert (many.topic, first.topic == second.topic != "") == ("", True)
    lead = Delivery.objects.filter(bundle=None).order_by("pk")[0]
    tags = [json.loads(one.text)["tag"] for one in (many, first)]
    assert tags == [f"many-{lead.pk}", f"run-{runs[0].pk}"]
    # The service that hands it on cannot try out of which run it is.
    assert first.topic != tokens.hash_token(tags[1])[:32]
    PushKeys.objects.all().delete()
    assert pushes.public_key(world.lab)
    _asks(world, runs[0], "with another key")
    work(world)
    assert world.notifier.pushed[-1].topic != first.topic


def test_what_was_seen_is_in_no_push_of_several(
    world: World, operator: User, device: NoticeAddress
) -> None:
    project = make.a_project()
    runs = [make.a_run(project, str(n), slot=n) for n in range(1, 8)]
    pushes.look(world.lab, operator.pk, f"run:{runs[3].pk}")
    for run in runs:
        _asks(world, run)
    work(world)
    assert _titles(world) == ["labsite: 6 notices"]
    assert Delivery.objects.get(state="skipped").notice.run_id == runs[3].pk  # type: ignore[union-attr]


def test_several_in_one_push_that_fail_are_told_of_once(
    world: World, device: NoticeAddress
) -> None:
    project = make.a_project()
    for number in range(7):
        tells(world, project, f"pause {number}")
    world.notifier.broken = "no route"
    work(world)
    assert not Delivery.objects.exclude(state="waiting", bundle=None).exists()
    for pause in (1, 5, 15, 60, 240):
        world.clock.forward(minutes=pause)
        work(world)
    assert set(Delivery.objects.values_list("state", flat=True)) == {"failed"}
    assert Notice.objects.filter(kind=NoticeKind.DELIVERY_FAILED).count() == 1


def test_more_than_five_a_minute_wait_and_become_one(world: World, device: NoticeAddress) -> None:
    project = make.a_project()
    for number in range(5):
        tells(world, project, f"pause {number}")
        work(world)
    for number in range(5, 8):
        tells(world, project, f"pause {number}")
    work(world)
    assert len(world.notifier.pushed) == 5
    world.clock.forward(minutes=1)
    work(world)
    assert len(world.notifier.pushed) in (6, 7, 8)
    assert not Delivery.objects.exclude(state="sent").exists()


def test_quiet_hours_hold_notices_until_their_end(
    world: World, operator: User, device: NoticeAddress
) -> None:
    told = {"quiet_from": time(11, 0), "quiet_to": time(13, 0)}
    NoticeTimes.objects.create(user=operator, **told)
    tells(world, make.a_project())
    NoticeAddress.objects.update(tests_weekly=True, tested_at=world.lab.now() - timedelta(days=8))
    work(world)
    assert world.notifier.pushed == []
    for row in Delivery.objects.all():  # the notice, and the test of the week
        assert (row.state, row.next_at.hour, row.tries) == ("waiting", 13, 0)
    deliveries.try_out(world.lab, device)  # somebody waits for it
    work(world)
    assert len(world.notifier.pushed) == 1
    world.clock.forward(minutes=61)
    work(world)
    assert len(world.notifier.pushed) == 3


@pytest.mark.parametrize("page", tabs.ALL)
def test_who_looks_at_a_thing_gets_no_push_of_it(
    world: World, operator: User, device: NoticeAddress, page: str
) -> None:
    run = make.a_run(make.a_project())
    pushes.look(world.lab, operator.pk, f"{page}:{run.pk}")
    with transaction.atomic():
        announce.tell(world.lab, NoticeKind.RUN_WAITS, "asks", run=run)
    work(world)
    row = Delivery.objects.get()
    assert (row.state, world.notifier.pushed) == ("skipped", [])
    assert row.seen_at is not None
    # A page that was left says nothing more.
    pushes.look_away(operator.pk, f"{page}:{run.pk}")
    with transaction.atomic():
        announce.tell(world.lab, NoticeKind.RUN_WAITS, "asks again", run=run)
    work(world)
    assert len(world.notifier.pushed) == 1
    pushes.look(world.lab, operator.pk, "overview")
    pushes.look(world.lab, operator.pk, f"project:{run.project_id}")
    assert not Looking.objects.exists()


def test_what_a_device_answers_is_kept_once(world: World, device: NoticeAddress) -> None:
    tells(world, make.a_project())
    work(world)
    receipt = json.loads(world.notifier.pushed[0].text)["receipt"]
    row = Delivery.objects.get()
    assert receipt not in str(row.__dict__)
    assert pushes.answered(world.lab, receipt, is_seen=False)
    row.refresh_from_db()
    first = row.delivered_at
    assert (first, row.seen_at) == (world.lab.now(), None)
    world.clock.forward(minutes=2)
    assert pushes.answered(world.lab, receipt, is_seen=True)
    row.refresh_from_db()
    assert (row.delivered_at, row.seen_at) == (first, world.lab.now())
    assert not pushes.answered(world.lab, "x", is_seen=True)
    assert not pushes.answered(world.lab, "", is_seen=True)


def test_what_was_not_seen_goes_to_the_next_address(
    world: World, operator: User, device: NoticeAddress
) -> None:
    mail = addresses.add(world.lab, operator, "mail", "json://127.0.0.1:1/x", ["run.waits"])
    addresses.choose(world.lab, mail, ["run.waits"], by="anna", after_minutes=10)
    project = make.a_project()
    seen, unseen = make.a_run(project), make.a_run(project, "8", slot=2)
    for run in (seen, unseen):
        with transaction.atomic():
            announce.tell(world.lab, NoticeKind.RUN_WAITS, f"asks {run.pk}", run=run)
    work(world)
    assert (len(world.notifier.pushed), world.notifier.told) == (2, [])
    pushes.look(world.lab, operator.pk, f"run:{seen.pk}")
    world.clock.forward(minutes=9)
    work(world)
    assert world.notifier.told == []
    world.clock.forward(minutes=1)
    work(world)
    assert [title for _, title, _ in world.notifier.told] == [
        "demo #8: an agent waits for you: permission, question, no next word"
    ]
    states = Delivery.objects.filter(address=mail).order_by("pk").values_list("state", flat=True)
    assert list(states) == ["skipped", "sent"]


def test_each_address_that_wants_it_is_tested_every_week_and_a_failure_is_told(
    world: World, operator: User, device: NoticeAddress
) -> None:
    work(world)
    world.clock.forward(minutes=60 * 24 * 8)
    work(world)
    assert world.notifier.pushed == []  # off by default
    addresses.choose(world.lab, device, TOPICS, by="anna", tests_weekly=True)
    work(world)
    work(world)
    assert len(world.notifier.pushed) == 1
    world.clock.forward(minutes=60 * 24 * 6)
    work(world)
    assert len(world.notifier.pushed) == 1
    world.clock.forward(minutes=60 * 24)
    world.notifier.broken = "no route"
    for pause in (0, 1, 5, 15, 60, 240):
        world.clock.forward(minutes=pause)
        work(world)
    said = Notice.objects.get(kind=NoticeKind.DELIVERY_FAILED)
    assert said.text == "the weekly test could not be sent to phone: no route"


def test_a_lost_key_is_replaced_and_its_devices_are_turned_off(
    world: World, device: NoticeAddress, settings: Any
) -> None:
    before = pushes.public_key(world.lab)
    settings.SECRET_KEY = "another one, since the folder was restored without it"
    assert pushes.public_key(world.lab) != before
    assert not NoticeAddress.objects.exists()

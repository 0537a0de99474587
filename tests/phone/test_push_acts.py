"""Acts of a push: bound to person, thing and version, done once, dead with their question."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from runs.core.effects import PushOffer
from runs.core.states import NoticeKind, Outcome
from runs.models import Delivery, Notice, NoticeAddress, PushAct, Run
from runs.notices import addresses, pushes
from runs.notices.push_rules import PushVerb
from runs.people import acts as people
from runs.people import passwords
from runs.phone import acts
from tests import make
from tests.fakes import World
from tests.notices.push_service import Browser
from tests.notices.test_deliveries import work
from tests.pulls.test_merging import Review
from tests.real import RealWorld
from tests.waits.test_answering import idle, since, waiting
from tests.waits.test_stepper import DIALOG, project, run, shows
from tests.web.people import confirmed, text_of

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["idle", "project", "run", "waiting"]

TOPICS = ["run.waits", "pull.opened"]


@pytest.fixture
def device(world: World, operator: User) -> NoticeAddress:
    return _device(world, operator)


def _device(world: Any, user: User) -> NoticeAddress:
    given = Browser("push.example.org", user.username, "https").given
    return addresses.turn_on(world.lab, user, "phone", addresses.Device(**given), TOPICS)


def _told(world: World) -> dict[str, Any]:
    work(world)
    told = json.loads(world.notifier.pushed[-1].text)
    assert isinstance(told, dict)
    return told


def _links(world: World) -> dict[str, str]:
    return {one["act"]: one["url"] for one in _told(world)["acts"]}


@pytest.fixture
def links(world: World, device: NoticeAddress, waiting: Run) -> dict[str, str]:
    """The links of a push about an agent that asks for a permission."""
    return _links(world)


def _changed(world: World) -> tuple[Any, ...]:
    run = Run.objects.get()
    return (
        run.answer,
        run.outcome,
        len(world.sessions.typed),
        PushAct.objects.filter(used_at=None).count(),
    )


def test_a_push_of_a_question_offers_what_is_plain(
    world: World, device: NoticeAddress, waiting: Run
) -> None:
    told = _told(world)
    assert [one["label"] for one in told["acts"]] == ["Allow", "Deny", "Stop"]
    assert (told["url"], told["tag"]) == (f"/runs/{waiting.pk}/", f"run-{waiting.pk}")
    tokens = [one["url"].split("/")[-2] for one in told["acts"]]
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM runs_pushact")
        stored = str(cursor.fetchall())
    assert all(len(token) > 40 and token not in stored for token in tokens)


@pytest.mark.long
def test_a_press_answers_the_agent_without_a_log_in_and_once(
    client: Client, world: World, links: dict[str, str], waiting: Run
) -> None:
    answer = client.post(links["allow"], headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()["ok"]) == (200, True)
    waiting.refresh_from_db()
    assert (waiting.answer[:2], waiting.answered_by) == ("1.", "anna")
    row = Delivery.objects.get()
    assert row.acted_at == row.seen_at == world.lab.now()
    before = _changed(world)

    for _ in range(2):
        again = client.post(links["allow"], headers={"Accept": "application/json"})
        assert again.status_code == 409
        assert "was used already" in again.json()["text"]
    assert _changed(world) == before


def test_a_get_says_what_will_happen_and_does_nothing(
    client: Client, world: World, links: dict[str, str]
) -> None:
    before = _changed(world)
    for verb, words in (("allow", "1. Yes"), ("stop", "Stop the run of demo #")):
        page = client.get(links[verb])
        assert page.status_code == 200
        assert words in text_of(page)
        assert "once" in text_of(page)
        client.head(links[verb])
    assert _changed(world) == before
    assert "no-store" in page.headers["Cache-Control"]


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_a_new_password_ends_what_pushes_offer_and_a_forgotten_one_the_devices(
    client: Client, world: World, links: dict[str, str], operator: User, is_forgotten: bool
) -> None:
    if is_forgotten:
        make.a_user("root")
        people.forget_password(world.lab, operator.pk, by="root")
    else:
        passwords.change(world.lab, operator, "another correct horse 77", "")
    answer = client.post(links["stop"], headers={"Accept": "application/json"})
    assert (answer.status_code, Run.objects.get().outcome) == (409, "")
    assert NoticeAddress.objects.exists() is not is_forgotten


def test_stop_ends_the_run_and_keeps_its_work(
    client: Client, world: World, links: dict[str, str], waiting: Run
) -> None:
    page = client.post(links["stop"])
    assert page.status_code == 200 and "Stopped." in text_of(page)
    waiting.refresh_from_db()
    assert (waiting.outcome, waiting.reason[:15]) == (Outcome.STOPPED, "stopped by anna")
    assert Notice.objects.filter(kind=NoticeKind.RUN_ENDED, by="anna").exists()
    # The question is over, and so are the other links.
    assert "had ended already" in text_of(client.get(links["allow"]))
    assert client.post(links["allow"]).status_code == 409


def test_an_agent_that_stopped_is_told_to_continue(
    client: Client, world: World, device: NoticeAddress, idle: Run
) -> None:
    found = _links(world)
    assert list(found) == ["continue", "stop"]
    assert client.post(found["continue"]).status_code == 200
    idle.refresh_from_db()
    assert (idle.answer, idle.answered_by) == ("Continue.", "anna")


def test_a_link_dies_with_its_question(
    client: Client, world: World, links: dict[str, str], waiting: Run
) -> None:
    other = DIALOG.replace("rm -rf build", "git push --force")
    shows(world, waiting, other)
    Run.objects.filter(pk=waiting.pk).update(waits_at=since(waiting) + timedelta(seconds=30))
    before = _changed(world)[:3]
    for verb in links:
        page = client.get(links[verb])
        assert page.status_code == 410
        assert client.post(links[verb]).status_code == 409
    assert _changed(world)[:3] == before


def test_another_dialog_since_the_push_is_not_answered(
    client: Client, world: World, links: dict[str, str], waiting: Run
) -> None:
    world.sessions.text[waiting.session] = DIALOG.replace("rm -rf build", "rm -rf /")
    before = len(world.sessions.typed)
    page = client.post(links["allow"])
    assert page.status_code == 409
    assert len(world.sessions.typed) == before


@pytest.mark.parametrize("change", ["out", "role", "other", "late"])
def test_who_may_not_act_any_more_changes_nothing(
    client: Client, world: World, operator: User, links: dict[str, str], change: str
) -> None:
    if change == "out":
        User.objects.filter(pk=operator.pk).update(is_active=False)
    elif change == "role":
        operator.user_permissions.clear()
        User.objects.filter(pk=operator.pk).update(is_superuser=False)
    elif change == "other":
        client.force_login(make.a_user("bert"))
    else:
        world.clock.forward(hours=25)
    before = _changed(world)
    assert client.get(links["stop"]).status_code == 410
    assert client.post(links["stop"]).status_code == 409
    assert _changed(world) == before


@pytest.fixture
def viewers(world: World) -> NoticeAddress:
    return _device(world, make.a_user("vera", operator=False))


def test_who_may_only_look_is_offered_nothing(
    world: World, viewers: NoticeAddress, waiting: Run
) -> None:
    assert _told(world)["acts"] == []


def test_unknown_links_and_receipts_say_so(client: Client, world: World) -> None:
    assert client.get("/push/act/nothing/").status_code == 410
    assert client.post("/push/act/nothing/").status_code == 409
    assert client.put("/push/act/nothing/").status_code == 405
    assert client.post("/push/receipt", {"id": "x", "what": "seen"}).status_code == 404
    assert client.get("/push/receipt").status_code == 405


def test_a_device_answers_by_its_receipt(
    client: Client, world: World, device: NoticeAddress, waiting: Run
) -> None:
    receipt = _told(world)["receipt"]
    for what, status in (("delivered", 204), ("seen", 204), ("stolen", 404)):
        assert client.post("/push/receipt", {"id": receipt, "what": what}).status_code == status
    row = Delivery.objects.get()
    assert row.delivered_at and row.seen_at and row.acted_at is None
    client.force_login(device.user)
    assert "seen" in text_of(client.get("/account/notices/"))


@pytest.mark.postgres
def test_many_presses_at_once_do_it_once(world: World, links: dict[str, str], waiting: Run) -> None:
    token, done = links["allow"].split("/")[-2], []
    gate = threading.Barrier(4)

    def press() -> None:
        try:
            row = acts.find(world.lab, token)
            gate.wait()
            assert row is not None
            done.append(acts.perform(world.lab, row).ok)
        finally:
            connection.close()

    threads = [threading.Thread(target=press) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(done) == [False, False, False, True]
    assert Notice.objects.filter(kind=NoticeKind.RUN_ANSWERED).count() == 1


def test_merge_merges_what_was_told_and_nothing_newer(
    real: RealWorld, operator: User, client: Client
) -> None:
    review = Review(real)
    Run.objects.filter(pk=review.run.pk).update(pull_number=review.number)
    notice = Notice.objects.filter(kind=NoticeKind.PULL_OPENED).latest("pk")
    (offer,) = acts.offers(real.lab, notice.pk, operator.pk)
    assert (offer.verb, offer.about["head"]) == ("merge", review.head)
    before = review.main
    newer = review.commit("newer\n")
    review.push()
    row = _row(real, operator, offer)
    said = acts.perform(real.lab, row)
    assert not said.ok and review.main == before
    fresh = replace(offer, about={**offer.about, "head": newer})
    assert acts.perform(real.lab, _row(real, operator, fresh)).ok
    assert review.main != before and review.pull.state == "merged"


def test_a_link_to_merge_in_a_project_that_was_removed_says_so(
    world: World, operator: User, waiting: Run
) -> None:
    about = {"project": waiting.project_id + 1, "number": 1, "head": "0" * 40}
    row = _row(world, operator, PushOffer(PushVerb.MERGE, "Merge", "Merge it", about))
    assert acts.perform(world.lab, row) == acts.Done(False, acts.UNKNOWN, "/account/notices/")
    assert PushAct.objects.get().said == acts.UNKNOWN


def _row(world: Any, user: User, offer: Any) -> PushAct:
    now = world.lab.now()
    address = NoticeAddress.objects.first() or _device(world, user)
    told = {"title": "t", "text": "t", "created_at": now, "next_at": now}
    delivery = Delivery.objects.create(address=address, **told)
    return PushAct.objects.create(
        digest=str(PushAct.objects.count()), user=user, delivery=delivery, act=offer.verb,
        words=offer.words, about=offer.about, created_at=now, expires_at=now + pushes.LIVES,
    )  # fmt: skip


def test_turning_on_asks_who_one_is_and_says_what_is_wrong(
    anna: Client, client: Client, world: World
) -> None:
    assert anna.get("/account/notices/device").headers["Location"].startswith("/confirm/")
    mine = confirmed(anna)
    page = mine.get("/account/notices/device")
    assert pushes.public_key(world.lab) in page.content.decode()
    good = Browser("push.example.org", scheme="https")
    for change, words in (
        ({"endpoint": ""}, "has not allowed notifications yet"),
        ({"endpoint": "https://192.168.1.1/x"}, "its host is inside a network"),
        ({"auth": "x"}, "keys cannot be read"),
    ):
        answer = mine.post("/account/notices/device", {"name": "p", **good.given, **change})
        assert answer.status_code == 400
        assert words in text_of(answer)
    assert mine.post("/account/notices/device", {"name": "p", **good.given}).status_code == 303
    shown = mine.get("/account/notices/")
    assert good.endpoint not in shown.content.decode()
    assert NoticeAddress.objects.get().endpoint_digest in shown.content.decode()


def test_quiet_hours_are_stored_and_wrong_ones_are_named(anna: Client, world: World) -> None:
    at = "/account/notices/quiet"
    for given, words in (
        ({"quiet_from": "22:00", "zone": "UTC"}, "Write both times"),
        ({"quiet_from": "x", "quiet_to": "07:00", "zone": "UTC"}, "valid time"),
        ({"zone": "Mars/Base"}, "no time zone"),
        ({"zone": "../../etc/passwd"}, "no time zone"),
    ):
        answer = anna.post(at, given)
        assert answer.status_code == 400 and words in text_of(answer)
    given = {"quiet_from": "22:00", "quiet_to": "07:00", "zone": "Europe/Berlin"}
    assert anna.post(at, given).status_code == 303
    assert "22:00 to 07:00, Europe/Berlin" in text_of(anna.get("/account/notices/"))
    assert 'value="22:00"' in anna.get(at).content.decode()
    assert anna.post(at, {"zone": "UTC"}).status_code == 303
    assert "Notices are sent at any hour" in text_of(anna.get("/account/notices/"))

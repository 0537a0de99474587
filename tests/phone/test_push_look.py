"""The pages of devices, light and dark, desk and phone: axe finds nothing, nothing is cut."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from runs.core import tokens
from runs.models import Delivery, NoticeAddress, PushAct
from runs.notices import addresses, pushes
from tests.fakes import START, World
from tests.notices.push_service import Browser
from tests.people.test_people_look import be_asked
from tests.web.browsing import OpenPage
from tests.web.looking import looks

pytestmark = pytest.mark.django_db(transaction=True)


def test_every_page_of_devices_is_accessible_and_fits(
    open_page: OpenPage, operator: User, world: World
) -> None:
    for name in ("phone", "the tablet with the cracked screen " * 2):
        given = Browser("push.example.org", name[:9], "https").given
        addresses.turn_on(
            world.lab, operator, name.strip(), addresses.Device(**given), ["run.waits"]
        )
    device = NoticeAddress.objects.order_by("pk")[0]
    told = {"address": device, "text": "t", "created_at": START, "next_at": START}
    states = (
        {"state": "sent", "sent_at": START, "acted_at": START},
        {"state": "sent", "sent_at": START, "delivered_at": START},
        {"state": "failed", "error": "status 403 " + "x" * 100, "tries": 6},
        {"state": "skipped"},
    )
    rows = [Delivery.objects.create(title="demo #7: waits", **told, **one) for one in states]
    PushAct.objects.create(
        digest=tokens.hash_token("good"), user=operator, delivery=rows[0], act="merge",
        words="Merge pull request 7 of demo into main: " + "words " * 20,
        about={"project": 1, "number": 7, "head": "a"}, created_at=START,
        expires_at=START + pushes.LIVES,
    )  # fmt: skip
    page = open_page("/account/", operator)
    be_asked(page, START.isoformat())
    wrong: list[object] = []
    for name, address in {
        "devices": "/account/notices/", "choose": f"/account/notices/{device.pk}/",
        "act": "/push/act/good/", "dead act": "/push/act/none/",
    }.items():  # fmt: skip
        page.goto(address)
        wrong += looks(page, name)
    assert wrong == []

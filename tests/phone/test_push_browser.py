"""A push in a real browser: shown by the service worker, answered for, and opened."""

from __future__ import annotations

import json

import pytest

from tests.house.product import until
from tests.notices.push_service import Browser
from tests.phone.test_installable_browser import READY, TAKEN
from tests.web.browser_fixture import Tab
from tests.web.daphne_fixture import Served

PUSH = """
import json
from runs.notices import addresses, deliveries
from django.contrib.auth.models import User
from runs.models import Delivery, NoticeAddress
from dataclasses import replace
made = addresses.turn_on(lab, User.objects.get(username="anna"), "this one", addresses.Device(**{given!r}), ["auto.paused"])
class Kept:
    def push(self, push):
        self.text = push.text
kept = Kept()
row = Delivery.objects.create(address=made, title="labsite: a test", text="Hello.", created_at=lab.now(), next_at=lab.now())
deliveries.carry_out(replace(lab, notifier=kept), row.pk)
result = [row.pk, kept.text]
"""
KEPT_AT = """
from runs.models import NoticeAddress
result = str(NoticeAddress.objects.get().url).partition("#")[0]
"""
# As a browser tells it; only one's own word that it is still at it is not taken from a script.
RENEWED = """([old, fresh]) => {
  const bytes = text => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), c => c.charCodeAt(0));
  const made = one => ({ endpoint: one.endpoint, getKey: name => bytes(one[name]).buffer });
  const told = new ExtendableEvent("pushsubscriptionchange");
  Object.assign(told, { oldSubscription: made(old), newSubscription: made(fresh) });
  self.addEventListener("error", event => event.preventDefault(), { once: true });
  self.dispatchEvent(told);
}"""


@pytest.fixture(scope="module")
def served(once_served: Served) -> Served:
    return once_served


def test_a_push_is_shown_and_its_delivery_is_known(tab: Tab, served: Served) -> None:
    page = tab("/account/notices/", cookie=served.cookie(), service_workers="allow")
    page.evaluate(READY)
    page.evaluate(TAKEN)
    given = Browser("push.example.org", scheme="https").given
    number, text = served.do(PUSH.replace("{given!r}", repr(given)))
    told = json.loads(text)
    told["acts"] = [{"act": "stop", "label": "Stop", "url": "/push/act/none/"}]

    (worker,) = page.context.service_workers
    # The headless browser shows no notifications and says so; all else is real.
    worker.evaluate("""() => {
      self.shown = [];
      self.registration.showNotification = async (title, options) => { self.shown.push([title, options]); };
    }""")
    control = page.context.new_cdp_session(page)
    found: list[str] = []
    control.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: found.extend(one["registrationId"] for one in event["registrations"]),
    )
    control.send("ServiceWorker.enable")
    # An event of the browser comes in while the page is asked something.
    until(lambda: found or page.evaluate("0"))
    control.send(
        "ServiceWorker.deliverPushMessage",
        {"origin": served.base_url, "registrationId": found[-1], "data": json.dumps(told)},
    )

    row = page.locator(f"#delivery-{number}")
    until(lambda: page.reload() and "delivered" in row.inner_text())
    ((title, options),) = worker.evaluate("self.shown")
    assert (title, options["body"], options["tag"]) == ("labsite: a test", "Hello.", "test")
    assert options["actions"] == [{"action": "stop", "title": "Stop"}]

    # A press on a link that is dead says so in the place of the notification, and changes nothing.
    worker.evaluate("told => act(told, told.acts[0])", told)
    _, (_, after) = worker.evaluate("self.shown")
    assert "This link is not known" in after["body"]
    assert after["tag"] == "test"
    # Its browser has another subscription now: labsite is told, and keeps the device with it.
    fresh = Browser("push.example.org", scheme="https").given
    worker.evaluate(RENEWED, [given, fresh])
    until(lambda: served.do(KEPT_AT) == fresh["endpoint"], told=lambda: str(served.do(KEPT_AT)))
    # Without an answer nobody knows; without a network nothing was sent.
    worker.evaluate("() => { self.fetch = () => Promise.reject(new TypeError('no answer')); }")
    for is_online, words in (("true", "not known whether it was done"), ("false", "Nothing was")):
        worker.evaluate(
            "() => Object.defineProperty(self.navigator, 'onLine',"
            f" {{ get: () => {is_online}, configurable: true }})"
        )
        worker.evaluate("told => act(told, told.acts[0])", told)
        assert words in worker.evaluate("self.shown.at(-1)[1].body")

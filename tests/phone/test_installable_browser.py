"""The service worker in a real browser: installed, an offline page in place of old facts, a live title."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser_fixture import Tab
from tests.web.daphne_fixture import Served
from tests.web.looking import looks
from tests.web.test_feed_served import PROJECT

READY = "async () => { const found = await navigator.serviceWorker.ready; return found.scope; }"
TAKEN = "() => new Promise(done => navigator.serviceWorker.controller ? done(true) : navigator.serviceWorker.addEventListener('controllerchange', () => done(true)))"


@pytest.fixture(scope="module")
def served(once_served: Served) -> Served:
    return once_served


def _installed(tab: Tab, served: Served, path: str = "/") -> Page:
    page = tab(path, cookie=served.cookie(), service_workers="allow")
    assert page.evaluate(READY) == f"{served.base_url}/"
    assert page.evaluate(TAKEN)
    return page


def test_the_product_can_be_installed_and_says_offline_that_nothing_is_known(
    tab: Tab, served: Served
) -> None:
    number = int(served.do(PROJECT))
    page = _installed(tab, served, f"/runs/{number}/")

    told = page.context.new_cdp_session(page).send("Page.getAppManifest")
    assert told["errors"] == []
    assert json.loads(told["data"])["short_name"] == "lab"

    page.context.set_offline(True)
    answer = page.goto(f"{served.base_url}/runs/{number}/")
    assert answer is not None and answer.status == 503
    expect(page.get_by_role("heading", level=1)).to_have_text("labsite cannot be reached")
    assert "Seven" not in page.inner_text("body")
    # Its look is there too, and axe has nothing to say of it.
    assert page.evaluate("document.styleSheets.length") == 1
    assert looks(page, "offline") == []

    page.context.set_offline(False)
    page.get_by_role("link", name="Try again").click()
    expect(page.locator("#run-head")).to_be_visible()
    kept = page.evaluate(
        "async () => (await Promise.all((await caches.keys()).map(async name =>"
        " (await (await caches.open(name)).keys()).map(one => new URL(one.url).pathname)))).flat()"
    )
    assert kept and all(one == "/offline" or one.startswith("/static/") for one in kept)
    # The page may have been refreshing itself when the network went, and is told so in three ways.
    offline = ("ERR_INTERNET", "503", "Failed to fetch")
    assert [one for one in page.complaints if not any(word in one for word in offline)] == []


def test_title_and_icon_follow_what_needs_somebody(tab: Tab, served: Served) -> None:
    number = int(served.do(PROJECT))
    page = tab("/settings/", cookie=served.cookie())
    icon = page.locator("#tab-icon")
    counted = re.compile(r"\?n=(\d+)$")
    expect(icon).to_have_attribute("href", counted)
    before = int(counted.search(icon.get_attribute("href") or "")[1])  # type: ignore[index]
    served.do(
        "from runs.lifecycle import outcomes\n"
        f"outcomes.record(lab, Run.objects.get(pk={number}), 'died', 'gone')"
    )
    expect(page).to_have_title(f"({before + 1}) Settings · lab")
    expect(icon).to_have_attribute("href", re.compile(rf"\?n={before + 1}$"))

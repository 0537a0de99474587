"""Passkeys in a real browser with its virtual device, in front of the served product."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, expect

from tests import databases
from tests.chromium import press_twice
from tests.house.product import until
from tests.patience import BROWSER_PATIENCE
from tests.web.daphne_fixture import Served

PASSWORD = "correct horse battery"
LATER = """
from django.contrib.sessions.backends.db import SessionStore
session = SessionStore({key!r})
session["confirmed_at"] = "2020-01-01T00:00:00+00:00"
session.save()
"""


@pytest.fixture(scope="module")
def house(prepared_state: Path) -> Iterator[Served]:
    """The served product with Anna in it, one for the whole module."""
    folder = Path(tempfile.mkdtemp(prefix="lab-served-"))
    databases.copy(prepared_state, folder)
    made = Served(folder)
    try:
        made.start()
        made.cookie("anna")
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


class Desk:
    """One browser profile at http://localhost with a device that holds passkeys."""

    def __init__(self, browser: Browser, house: Served) -> None:
        self.house = house
        self.context: BrowserContext = browser.new_context(
            base_url=f"http://localhost:{house.port}", permissions=["clipboard-read"]
        )
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(BROWSER_PATIENCE)
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda said: self._heard(said.type, said.text))
        self.cdp: CDPSession = self.context.new_cdp_session(self.page)
        self.cdp.send("WebAuthn.enable")
        self.device = self.new_device()

    def _heard(self, kind: str, text: str) -> None:
        if kind == "error" and "Content Security" in text:
            self.complaints.append(text)

    def new_device(self) -> str:
        options = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
            "automaticPresenceSimulation": True,
        }
        made = self.cdp.send("WebAuthn.addVirtualAuthenticator", {"options": options})
        return str(made["authenticatorId"])

    def lose_device(self) -> None:
        self.cdp.send("WebAuthn.removeVirtualAuthenticator", {"authenticatorId": self.device})

    def log_in(self) -> None:
        self.page.goto("/login/")
        self.page.get_by_label("Name").fill("anna")
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Log in").click()
        expect(self.page.get_by_role("heading", level=1, name="Welcome")).to_be_visible()

    def log_out(self) -> None:
        self.page.goto("/")
        self.page.get_by_role("button", name="Log out").click()
        expect(self.page.get_by_role("heading", name="Log in")).to_be_visible()

    def add_passkey(self, name: str) -> None:
        self.page.goto("/account/")
        self.page.get_by_role("link", name="Add a passkey").click()
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_role("button", name="Make a passkey").click()
        expect(self.page.get_by_role("status").filter(has_text=name)).to_be_visible()

    def remove_passkey(self, name: str) -> None:
        self.page.goto("/account/")
        press_twice(self.page.get_by_role("button", name=f"Remove {name}"))
        expect(self.page.locator("#banner")).to_contain_text("The passkey is removed.")

    def ten_minutes_pass(self) -> None:
        """The session was asked long ago."""
        key = next(c["value"] for c in self.context.cookies() if c["name"] == "lab_session")
        self.house.do(LATER.format(key=key))

    def close(self) -> None:
        self.context.close()
        assert self.complaints == []


@pytest.fixture
def desk(browser: Browser, house: Served) -> Iterator[Desk]:
    made = Desk(browser, house)
    yield made
    made.close()


def test_a_passkey_is_made_logs_in_and_answers_when_asked_again(desk: Desk) -> None:
    page = desk.page
    desk.log_in()
    desk.add_passkey("laptop")
    desk.log_out()
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", level=1, name="Welcome")).to_be_visible()
    desk.ten_minutes_pass()
    page.goto("/account/")
    page.get_by_role("link", name="Make a token").click()
    expect(page.get_by_role("heading", level=1, name="Confirm that it is you")).to_be_visible()
    page.get_by_role("button", name="Use your passkey").click()
    expect(page.get_by_role("heading", level=1, name="Make a token")).to_be_visible()
    page.get_by_label("Name").fill("nightly")
    page.get_by_role("button", name="Make token").click()
    text = page.locator("#token").inner_text()
    assert text.startswith("lab_")
    page.get_by_role("button", name="Copy").click()
    # What the button says then it says for two seconds only.
    until(lambda: page.evaluate("navigator.clipboard.readText()") == text)
    page.get_by_role("link", name="Done").click()
    expect(page.locator("main")).to_contain_text("nightly")
    assert text not in page.content()
    assert text not in desk.house.log()
    desk.remove_passkey("laptop")


def test_a_removed_passkey_opens_nothing_and_the_page_says_so(desk: Desk, browser: Browser) -> None:
    desk.log_in()
    desk.add_passkey("old phone")
    other = Desk(browser, desk.house)
    other.log_in()
    other.add_passkey("another one")
    desk.remove_passkey("old phone")
    desk.log_out()
    desk.page.get_by_role("button", name="Use a passkey").click()
    expect(desk.page.get_by_role("alert")).to_contain_text("not known here")
    assert desk.page.url.endswith("/login/")
    desk.log_in()
    other.remove_passkey("another one")
    other.close()


def test_without_the_device_one_is_told_what_to_do_and_the_password_still_works(desk: Desk) -> None:
    page = desk.page
    desk.log_in()
    desk.add_passkey("lost key")
    desk.lose_device()
    desk.device = desk.new_device()
    desk.ten_minutes_pass()
    page.goto("/account/tokens/new")
    page.get_by_role("button", name="Use your passkey").click()
    expect(page.locator("#passkey-said")).to_contain_text("No passkey was used.")
    page.get_by_role("main").get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.locator("#passkey-said")).to_contain_text("use your password")
    desk.log_in()
    page.goto("/account/tokens/new")
    expect(page.get_by_role("heading", level=1, name="Make a token")).to_be_visible()
    desk.remove_passkey("lost key")


def test_without_javascript_the_password_still_works(browser: Browser, house: Served) -> None:
    context = browser.new_context(
        base_url=f"http://localhost:{house.port}", java_script_enabled=False
    )
    page = context.new_page()
    page.goto("/login/?next=/account/tokens/new")
    page.get_by_label("Name").fill("anna")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1, name="Make a token")).to_be_visible()
    page.get_by_label("Name").fill("by hand")
    page.get_by_role("button", name="Make token").click()
    assert page.locator("#token").inner_text().startswith("lab_")
    assert not page.get_by_role("button", name="Copy").is_visible()
    context.close()

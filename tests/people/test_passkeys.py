"""Passkeys over HTTP, with a device in software: made, shown, and every way to be refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import IntegrityError, transaction
from django.test import Client, RequestFactory

from runs.models import Notice, Passkey
from runs.people import acts as people
from runs.people import challenges
from runs.people import passkey_rules as rules
from tests import make
from tests.fakes import World
from tests.people.authenticator import PRESENT, Device
from tests.web.people import confirmed, text_of

pytestmark = pytest.mark.django_db


class Browser(Client):
    """A browser at http://localhost."""

    def __init__(self, user: User | None = None, **options: Any) -> None:
        super().__init__(SERVER_NAME="localhost", **options)
        if user is not None:
            self.force_login(user)

    def question(self, address: str) -> dict[str, Any]:
        answer = self.post(address)
        assert answer.status_code == 200, answer.content
        return dict(json.loads(answer.content))

    def add(self, device: Device, name: str = "laptop") -> Any:
        confirmed(self)
        options = self.question("/account/passkeys/add")
        return self.post("/account/passkeys/add", {"name": name, "answer": device.make(options)})

    def log_in(self, device: Device, **more: Any) -> Any:
        options = self.question("/login/passkey/question")
        return self.post("/login/passkey", {"answer": device.show(options, **more)})


@pytest.fixture
def device(world: World, operator: User) -> Device:
    """Anna's device, with a passkey."""
    made = Device()
    assert Browser(operator).add(made).status_code == 200
    return made


def is_in(browser: Client) -> bool:
    return "_auth_user_id" in browser.session


@pytest.mark.parametrize(
    ("scheme", "host", "name", "origin", "says"),
    [
        pytest.param("http", "localhost:8420", "localhost", "http://localhost:8420", "", id="here"),
        pytest.param("http", "lab.localhost", "lab.localhost", "http://lab.localhost", "", id="sub"),
        pytest.param("https", "Lab.Example", "lab.example", "https://lab.example", "", id="https"),
        pytest.param("https", "a.b:443", "a.b", "https://a.b", "", id="default port"),
        pytest.param("https", "a.b:8443", "a.b", "https://a.b:8443", "", id="other port"),
        pytest.param("http", "lab.example", "lab.example", "http://lab.example", "https", id="http"),
        pytest.param(
            "http", "127.0.0.1:8420", "127.0.0.1", "http://127.0.0.1:8420",
            "http://localhost:8420", id="IP",
        ),
        pytest.param("https", "192.0.2.1", "192.0.2.1", "https://192.0.2.1", "a name", id="IP, TLS"),
        pytest.param("https", "[::1]:80", "::1", "https://[::1]:80", "a name", id="IPv6"),
    ],
)  # fmt: skip
def test_a_site_is_where_passkeys_work_or_says_why_not(
    scheme: str, host: str, name: str, origin: str, says: str
) -> None:
    site = rules.site(scheme, host)
    assert (site.name, site.origin) == (name, origin)
    assert says in site.why_not if says else site.why_not == ""


@pytest.mark.parametrize(
    ("stored", "shown", "is_copy"),
    [(0, 0, False), (0, 1, False), (5, 6, False), (5, 5, True), (5, 4, True), (5, 0, True)],
)
def test_a_count_that_does_not_go_up_is_a_copy(stored: int, shown: int, is_copy: bool) -> None:
    assert rules.is_copy(stored, shown) is is_copy


def test_a_passkey_is_made_listed_and_logs_in(device: Device, operator: User) -> None:
    browser = Browser()
    assert "Use a passkey" in text_of(browser.get("/login/?next=/runs/"))
    options = browser.question("/login/passkey/question")
    assert (options["rpId"], options["userVerification"]) == ("localhost", "required")
    assert options.get("allowCredentials", []) == []
    given = {"answer": device.show(options), "next": "/runs/"}
    answer = browser.post("/login/passkey", given)
    assert answer.json() == {"next": "/runs/"}
    assert browser.session["_auth_user_id"] == str(operator.pk)
    assert browser.get("/account/tokens/new").status_code == 200
    assert browser.session.get_expiry_age() > 60 * 60 * 24
    page = text_of(browser.get("/account/"))
    assert "laptop" in page
    assert Passkey.objects.get().sign_count == 1
    told = [n.text for n in Notice.objects.all()]
    assert told == ["anna logged in with a passkey", "passkey laptop added"]


def test_a_login_never_leads_to_another_site(device: Device) -> None:
    browser = Browser()
    options = browser.question("/login/passkey/question")
    given = {"answer": device.show(options), "next": "//evil.example"}
    assert browser.post("/login/passkey", given).json() == {"next": "/"}


def test_an_answer_counts_once_and_only_for_its_question(device: Device) -> None:
    browser = Browser()
    options = browser.question("/login/passkey/question")
    answer = device.show(options)
    assert browser.post("/login/passkey", {"answer": answer}).status_code == 200
    browser.post("/logout/")
    again = browser.post("/login/passkey", {"answer": answer})
    assert again.status_code == 400
    assert "took too long" in again.json()["text"]
    old = device.show(browser.question("/login/passkey/question"))
    browser.question("/login/passkey/question")
    assert browser.post("/login/passkey", {"answer": old}).status_code == 400
    assert not is_in(browser)


def test_of_two_answers_at_the_same_time_one_gets_the_question(device: Device) -> None:
    browser = Browser()
    browser.question("/login/passkey/question")
    requests = [RequestFactory().post("/login/passkey") for _ in range(2)]
    for request in requests:
        request.session = SessionStore(browser.session.session_key)
        assert challenges.KEY in request.session  # both have read it before either is done
    taken = [challenges.take(request, "login") for request in requests]
    assert [one is not None for one in taken] == [True, False]


def test_a_question_ends_after_five_minutes(device: Device, world: World) -> None:
    for seconds, status in ((299, 200), (300, 400), (-1, 400)):
        browser = Browser()
        options = browser.question("/login/passkey/question")
        world.clock.forward(seconds=seconds)
        answer = browser.post("/login/passkey", {"answer": device.show(options)})
        assert answer.status_code == status, seconds


def test_a_question_of_another_browser_or_for_another_purpose_is_no_question(
    device: Device, operator: User
) -> None:
    one, other = Browser(), Browser()
    other.question("/login/passkey/question")
    stolen = device.show(one.question("/login/passkey/question"))
    assert other.post("/login/passkey", {"answer": stolen}).status_code == 400
    inside = Browser(operator)
    wrong = device.show(inside.question("/login/passkey/question"))
    assert inside.post("/confirm/passkey", {"answer": wrong}).status_code == 400


def test_a_copy_is_refused_and_told(device: Device, operator: User) -> None:
    assert Browser().log_in(device).status_code == 200
    device.count = 0
    browser = Browser()
    answer = browser.log_in(device)
    assert answer.status_code == 400
    assert "there is a copy of it" in answer.json()["text"]
    assert not is_in(browser)
    told = Notice.objects.latest("pk")
    assert told.kind == "passkey.refused"
    assert told.text == "passkey laptop of anna was refused: it seems to be a copy"


def test_nobody_without_the_key_can_have_a_copy_told(device: Device) -> None:
    assert Browser().log_in(device).status_code == 200
    forger = Device()
    forger.id, forger.handle, forger.count = device.id, device.handle, -1
    forger.counts = False
    forger.count = 0
    assert Browser().log_in(forger).status_code == 400
    assert not Notice.objects.filter(kind="passkey.refused").exists()


def test_a_device_that_does_not_count_may_go_on(device: Device) -> None:
    device.counts = False
    for _ in range(3):
        assert Browser().log_in(device).status_code == 200


WRONG: list[Any] = [
    pytest.param({"origin": "http://localhost:81"}, id="another port"),
    pytest.param({"origin": "http://evil.example"}, id="another site"),
    pytest.param({"flags": PRESENT}, id="nobody was verified"),
    pytest.param({"flags": 0}, id="nobody was present"),
    pytest.param({"id": b"unknown"}, id="an unknown passkey"),
    pytest.param({"handle": "somebody"}, id="another person's handle"),
    pytest.param({"handle": ""}, id="no handle"),
    pytest.param({"key": Device().key}, id="another key"),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_answer_that_is_not_right_lets_nobody_in(device: Device, wrong: dict[str, Any]) -> None:
    for name, value in wrong.items():
        setattr(device, name, value)
    browser = Browser()
    answer = browser.log_in(device)
    assert (answer.status_code, list(answer.json())) == (400, ["text"])
    assert not is_in(browser)


@pytest.mark.parametrize(
    "answer",
    ["", "null", "[]", "{", "[" * 100_000, '{"id": 7}', '{"id": "x", "response": 1}', '{"id": null, "response": {}}'],
)  # fmt: skip
def test_nonsense_is_refused_in_words(device: Device, operator: User, answer: str) -> None:
    browser = Browser()
    browser.question("/login/passkey/question")
    assert browser.post("/login/passkey", {"answer": answer}).status_code == 400
    inside = confirmed(Browser(operator))
    inside.question("/account/passkeys/add")  # type: ignore[attr-defined]
    given = {"name": "x", "answer": answer}
    assert inside.post("/account/passkeys/add", given).status_code == 400
    real = json.loads(device.show(browser.question("/login/passkey/question")))
    for part in ("clientDataJSON", "authenticatorData", "signature"):
        browser.question("/login/passkey/question")
        broken = {**real, "response": {**real["response"], part: answer or None}}
        given = {"answer": json.dumps(broken)}
        assert browser.post("/login/passkey", given).status_code == 400


def test_a_removed_passkey_and_one_of_a_deactivated_person_open_nothing(
    device: Device, operator: User, world: World
) -> None:
    make.a_user("ada")
    people.deactivate(world.lab, operator.pk, by="ada")
    assert Browser().log_in(device).status_code == 400
    people.reactivate(world.lab, operator.pk, by="ada")
    anna = Browser(operator)
    eve = Browser(make.a_user("eve", operator=False))
    address = f"/account/passkeys/{Passkey.objects.get().pk}/remove"
    eve.post(address)
    assert Passkey.objects.exists()
    for _ in range(2):
        assert anna.post(address).status_code == 303
    answer = Browser().log_in(device)
    assert "not known here" in answer.json()["text"]
    assert Notice.objects.latest("pk").text == "passkey laptop removed"


@pytest.mark.postgres
def test_a_passkey_belongs_to_one_person_once(device: Device, operator: User) -> None:
    eve = make.a_user("eve", operator=False)
    for browser in (Browser(operator), Browser(eve)):
        answer = browser.add(device)
        assert answer.status_code == 400
        assert "registered already" in answer.json()["text"]
    row = Passkey.objects.values().get()
    with pytest.raises(IntegrityError), transaction.atomic():
        Passkey.objects.create(**{**row, "id": None})
    options = confirmed(Browser(operator)).question("/account/passkeys/add")  # type: ignore[attr-defined]
    assert len(options["excludeCredentials"]) == 1


@pytest.mark.parametrize("name", ["", "   ", "x" * 101])
def test_a_passkey_needs_a_name(world: World, operator: User, name: str) -> None:
    answer = Browser(operator).add(Device(), name)
    assert "Give it a name" in answer.json()["text"]
    assert not Passkey.objects.exists()


def test_a_second_device_is_known_as_the_same_person(device: Device, operator: User) -> None:
    second = Device()
    assert Browser(operator).add(second, "phone").status_code == 200
    assert second.handle == device.handle
    assert Browser().log_in(second).status_code == 200


def test_who_has_a_passkey_is_asked_for_it_and_no_password_does(
    device: Device, operator: User, world: World
) -> None:
    browser = Browser(operator)
    asked = browser.get("/account/tokens/new")
    page = text_of(browser.get(asked.url))
    assert "Use your passkey" in page
    assert 'name="password"' not in page
    given = {"password": "correct horse battery", "next": "/"}
    answer = browser.post("/confirm/", given)
    assert answer.status_code == 403
    assert "a password is not enough" in text_of(answer)
    options = browser.question("/confirm/passkey/question")
    assert len(options["allowCredentials"]) == 1
    given = {"answer": device.show(options, handle=""), "next": "/account/tokens/new"}
    assert browser.post("/confirm/passkey", given).json() == {"next": "/account/tokens/new"}
    assert browser.get("/account/tokens/new").status_code == 200


def test_the_passkey_of_somebody_else_confirms_nothing(device: Device, world: World) -> None:
    eve = make.a_user("eve", operator=False)
    hers = Device()
    browser = Browser(eve)
    browser.add(hers)
    world.clock.forward(minutes=11)
    options = browser.question("/confirm/passkey/question")
    assert browser.post("/confirm/passkey", {"answer": device.show(options)}).status_code == 400
    assert browser.get("/account/tokens/new").status_code == 302


def test_where_no_passkey_works_the_password_does_and_the_page_says_why(
    device: Device, operator: User
) -> None:
    browser = Client(HTTP_HOST="127.0.0.1:8420")
    browser.force_login(operator)
    page = text_of(browser.get("/account/"))
    assert "open http://localhost:8420 instead" in page
    assert "/account/passkeys/new" not in page
    assert 'name="password"' in text_of(browser.get("/confirm/?next=/account/tokens/new"))
    confirmed(browser)
    assert "an IP address" in text_of(browser.get("/account/passkeys/new"))
    answer = browser.post("/account/passkeys/add")
    assert (answer.status_code, "an IP address" in answer.json()["text"]) == (400, True)
    stranger = Client(HTTP_HOST="127.0.0.1")
    assert "Use a passkey" not in text_of(stranger.get("/login/"))
    assert stranger.post("/login/passkey/question").status_code == 400


@pytest.mark.row("X-10", level="contract")
def test_adding_one_is_asked_for_again_and_needs_a_login(operator: User, world: World) -> None:
    browser = Browser(operator)
    assert browser.get("/account/passkeys/new").url.startswith("/confirm/")
    assert browser.post("/account/passkeys/add").url.startswith("/confirm/")
    for address in ("/account/passkeys/add", "/confirm/passkey", "/account/passkeys/1/remove"):
        assert Browser().post(address).url.startswith("/login/")
    for address in ("/login/passkey", "/login/passkey/question"):
        assert Browser().get(address).status_code == 405
        strict = Browser(enforce_csrf_checks=True)
        assert strict.post(address).status_code == 403


def test_passkeys_cannot_be_guessed_for_ever_and_leave_few_sessions(
    device: Device, world: World
) -> None:
    browser = Browser()
    statuses = [browser.post("/login/passkey", {"answer": "{}"}).status_code for _ in range(31)]
    assert statuses == [400] * 30 + [429]
    asked = [Browser().post("/login/passkey/question").status_code for _ in range(61)]
    assert asked == [200] * 60 + [429]
    kept = [one for one in Session.objects.all() if "passkey_question" in one.get_decoded()]
    assert len(kept) == 60
    assert all((one.expire_date - kept[0].expire_date).total_seconds() < 600 for one in kept)

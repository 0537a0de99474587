"""Webhooks in: who is heard, that nothing of the content is believed, and that a repeat does nothing."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.db import connection, connections
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from runs.core.states import NoticeKind, ProjectState
from runs.forges import hook_rules as rules
from runs.forges import hooks
from runs.forges.hook_views import hook as door
from runs.models import HookDelivery, Notice, Project, Run, Tries
from runs.people.throttle import Kind
from tests import make
from tests.fakes import World
from tests.web.people import text_of

pytestmark = pytest.mark.django_db

BODY = json.dumps({"action": "labeled", "issue": {"number": 7}}).encode()
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def secret(world: World) -> str:
    return hooks.make_secret(world.lab, make.a_project(), by="anna")


@pytest.fixture
def forge() -> Client:
    return Client(enforce_csrf_checks=True)


def signature(secret: str, body: bytes) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def github(secret: str, body: bytes, event: str, delivery: str) -> dict[str, str]:
    return {
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": delivery,
        "X-Hub-Signature-256": f"sha256={signature(secret, body)}",
    }


def gitea(secret: str, body: bytes, event: str, delivery: str) -> dict[str, str]:
    return {
        **github(secret, body, event, delivery),
        "X-Gitea-Event": event,
        "X-Gitea-Delivery": delivery,
        "X-Gitea-Signature": signature(secret, body),
    }


def forgejo(secret: str, body: bytes, event: str, delivery: str) -> dict[str, str]:
    return {
        "X-Forgejo-Event": event,
        "X-Forgejo-Delivery": delivery,
        "X-Forgejo-Signature": signature(secret, body),
    }


def send(
    forge: Client,
    secret: str,
    body: bytes = BODY,
    *,
    style: Any = github,
    event: str = "issues",
    delivery: str = "one",
    key: str = "demo",
    content_type: str = JSON,
    **more: Any,
) -> Any:
    headers = style(secret, body, event, delivery)
    return forge.post(
        f"/hooks/{key}/", body, content_type=content_type, headers={**headers, **more}
    )


def told(answer: Any, status: int, code: str) -> str:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.content
    assert answer["Cache-Control"] == "no-store"
    assert set(answer.json()) == {"code", "text"}
    return str(answer.json()["text"])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("style", [github, gitea, forgejo])
@pytest.mark.parametrize("content_type", [JSON, FORM])
def test_a_signed_delivery_of_each_forge_wakes_its_project_and_no_other(
    forge: Client, world: World, secret: str, style: Any, content_type: str
) -> None:
    make.a_project("other")
    body = BODY if content_type == JSON else b"payload=%7B%22action%22%3A%22labeled%22%7D"

    answer = send(forge, secret, body, style=style, content_type=content_type)

    assert "looked at now" in told(answer, 200, "woke")
    assert world.bell.looks == ["demo"]
    for told_at in ("hooked_at", "issues_hooked_at"):
        heard = dict(Project.objects.values_list("slug", told_at))
        assert heard == {"demo": world.clock(), "other": None}
    row = HookDelivery.objects.get()
    assert (row.project.slug, row.event, row.delivery, row.did) == ("demo", "issues", "one", "woke")


@pytest.mark.django_db(transaction=True)
def test_the_content_is_never_believed(forge: Client, world: World, secret: str) -> None:
    run = make.a_run(Project.objects.get(), "7")
    body = b'{"action": "closed", "pull_request": {"merged": true, "head": {"ref": "afk/7"}}'
    told(send(forge, secret, body, event="pull_request"), 200, "woke")
    run.refresh_from_db()
    assert run.is_active
    assert world.tracker.calls.total() == 0
    assert not Notice.objects.exclude(kind=NoticeKind.SETTING_CHANGED).exists()


@pytest.mark.django_db(transaction=True)
def test_a_ping_is_heard_and_wakes_nobody(forge: Client, world: World, secret: str) -> None:
    told(send(forge, secret, event="ping"), 200, "greeted")
    told(send(forge, secret, b"{}", event="star", delivery="two"), 200, "nothing")
    assert world.bell.looks == []
    assert HookDelivery.objects.count() == 2


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("again", "delivery"),
    [
        pytest.param(BODY, "one", id="the very same"),
        pytest.param(BODY, "another", id="the same body under another id, which nobody signs"),
        pytest.param(b'{"action": "other"}', "one", id="the same id with another body"),
    ],
)
def test_a_delivery_that_was_seen_before_does_nothing(
    forge: Client, world: World, secret: str, again: bytes, delivery: str
) -> None:
    told(send(forge, secret), 200, "woke")
    world.clock.forward(days=29)

    text = told(send(forge, secret, again, delivery=delivery), 200, "seen")

    assert "seen before" in text
    assert "Nothing was done." in text
    assert world.bell.looks == ["demo"]
    row = HookDelivery.objects.get()
    assert (row.repeats, row.repeated_at) == (1, world.clock())


def test_what_was_seen_is_forgotten_after_thirty_days(
    forge: Client, world: World, secret: str
) -> None:
    told(send(forge, secret), 200, "woke")
    world.clock.forward(days=30, seconds=1)
    told(send(forge, secret), 200, "woke")
    assert HookDelivery.objects.count() == 1


def test_the_same_delivery_to_another_project_is_another_one(
    forge: Client, world: World, secret: str
) -> None:
    other = make.a_project("other")
    told(send(forge, secret), 200, "woke")
    told(send(forge, hooks.make_secret(world.lab, other, by="anna"), key="other"), 200, "woke")


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_of_two_at_the_same_time_one_wakes(world: World, secret: str) -> None:
    ready, codes = threading.Barrier(4), []

    def deliver() -> None:
        ready.wait()
        codes.append(send(Client(), secret).json()["code"])
        connections.close_all()

    threads = [threading.Thread(target=deliver) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == ["seen", "seen", "seen", "woke"]
    assert world.bell.looks == ["demo"]
    assert HookDelivery.objects.get().repeats == 3


def test_an_unknown_project_and_a_wrong_signature_are_told_apart_by_nobody(
    forge: Client, world: World, secret: str
) -> None:
    make.a_project("bare")
    ways = {
        "wrong": lambda: send(forge, "not the secret"),
        "unknown": lambda: send(forge, secret, key="nowhere"),
        "no secret was made": lambda: send(forge, "", key="bare"),
        "not signed": lambda: forge.post("/hooks/demo/", BODY, content_type=JSON),
        "odd": lambda: send(forge, secret, **{"X-Hub-Signature-256": "sha256=é"}),
    }
    seen = set()
    for ask in ways.values():
        with CaptureQueriesContext(
            connection,
        ) as asked:
            answer = ask()
        told(answer, 403, "not_signed")
        # Each request has a number of its own, whatever is asked.
        heads = {name: value for name, value in answer.headers.items() if name != "X-Request-ID"}
        seen.add((answer.content, tuple(sorted(heads.items())), len(asked)))
    assert len(seen) == 1
    assert not HookDelivery.objects.exists()
    assert world.bell.looks == []


def test_the_secret_of_nobody_is_decrypted_as_that_of_a_project(
    world: World, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the time of the answer would tell which projects there are."""
    hooks._hidden()
    counts = []
    real = Fernet.decrypt
    for key in ("demo", "nowhere"):
        made: list[str] = []

        def noted(self: Fernet, token: Any, made: list[str] = made, **more: Any) -> bytes:
            made.append("one")
            return real(self, token, **more)

        monkeypatch.setattr(Fernet, "decrypt", noted)
        with pytest.raises(hooks.NotSigned):
            hooks.receive(world.lab, key, rules.Sent(), BODY)
        counts.append(len(made))
    assert counts == [1, 1]


def test_wrong_ones_are_counted_by_address_and_never_shut_the_door_for_right_ones(
    forge: Client, world: World, secret: str
) -> None:
    for _ in range(Kind.HOOK.value.tries):
        told(send(forge, "wrong"), 403, "not_signed")
    shut = send(forge, "wrong")
    assert "Wait" in told(shut, 429, "too_many_tries")
    assert shut["Retry-After"] == "45"
    told(send(forge, secret), 200, "woke")
    assert Tries.objects.count() == 1


@pytest.mark.long
def test_wrong_ones_never_keep_people_from_logging_in(
    forge: Client, world: World, secret: str
) -> None:
    for _ in range(Kind.ADDRESS.value.tries + 1):
        send(forge, "wrong")
    answer = Client().post("/login/", {"username": "x", "password": "y"})
    assert answer.status_code != 429


@pytest.mark.parametrize(
    ("changes", "status", "code", "text"),
    [
        pytest.param({"state": ProjectState.CLONING}, 409, "not_ready", "cloned", id="cloning"),
        pytest.param({"state": ProjectState.FAILED}, 409, "not_ready", "cloned", id="failed"),
        pytest.param({"tracker": "builtin"}, 409, "not_ready", "no forge", id="built in"),
        pytest.param({"tracker": ""}, 409, "not_ready", "no forge", id="no tracker"),
    ],
)
def test_a_project_that_cannot_be_woken_says_so_to_its_own_forge_only(
    forge: Client,
    world: World,
    secret: str,
    changes: dict[str, str],
    status: int,
    code: str,
    text: str,
) -> None:
    Project.objects.update(**changes)
    assert text in told(send(forge, secret), status, code)
    told(send(forge, "wrong"), 403, "not_signed")
    assert not HookDelivery.objects.exists()


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"content_type": "text/plain"}, id="another type"),
        pytest.param({"event": ""}, id="no event"),
        pytest.param({"event": "<b>"}, id="an odd event"),
        pytest.param({"delivery": ""}, id="no id"),
    ],
)
def test_what_no_forge_sends_is_refused_in_words(
    forge: Client, world: World, secret: str, more: dict[str, str]
) -> None:
    text = told(send(forge, secret, **more), 400, "bad_request")
    assert text.endswith("Nothing was done.")
    assert not HookDelivery.objects.exists()


@pytest.mark.parametrize("method", ["get", "put", "delete", "head"])
def test_only_post_is_answered(forge: Client, world: World, secret: str, method: str) -> None:
    assert getattr(forge, method)("/hooks/demo/").status_code == 405


class Endless(io.RawIOBase):
    """A body without an end; notes how much of it was read."""

    def __init__(self) -> None:
        self.taken = 0

    def read(self, size: int = -1) -> bytes:
        assert size > 0, "read to the end"
        self.taken += size
        return b"x" * size


def test_a_body_is_read_no_further_than_the_bound(forge: Client, world: World, secret: str) -> None:
    big = b"x" * (rules.MOST_BYTES + 1)
    assert "too much" in told(send(forge, secret, big), 413, "too_big")
    told(send(forge, secret, big[:-1]), 200, "woke")

    request = RequestFactory().post("/hooks/demo/", b"", content_type=JSON)
    request._stream = Endless()  # type: ignore[attr-defined]
    answer = door(request, key="demo")
    assert answer.status_code == 413
    assert request._stream.taken == rules.MOST_BYTES + 1  # type: ignore[attr-defined]

    announced = RequestFactory().post("/hooks/demo/", b"", content_type=JSON)
    announced.META["CONTENT_LENGTH"] = str(rules.MOST_BYTES + 1)
    announced._stream = Endless()  # type: ignore[attr-defined]
    assert door(announced, key="demo").status_code == 413
    assert announced._stream.taken == 0  # type: ignore[attr-defined]


def test_an_accepted_delivery_costs_a_fixed_number_of_queries(
    forge: Client, world: World, secret: str, django_assert_num_queries: Any
) -> None:
    def deliver(number: int) -> int:
        with CaptureQueriesContext(connection) as asked:
            told(send(forge, secret, b"%d" % number, delivery=str(number)), 200, "woke")
        return len(asked)

    first = deliver(0)
    for number in range(1, 12):
        deliver(number)
    assert deliver(12) == first <= 9


def test_the_secret_is_stored_encrypted_and_is_in_no_answer(
    forge: Client, world: World, secret: str
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT hook_secret FROM runs_project")
        (stored,) = cursor.fetchone()
    assert secret not in stored
    assert len(stored) > 40
    assert secret not in text_of(send(forge, secret))
    notice = Notice.objects.get(kind=NoticeKind.SETTING_CHANGED)
    assert (notice.by, notice.project_id) == ("anna", Project.objects.get().pk)
    assert secret not in notice.text


def test_a_new_secret_ends_the_old_one(forge: Client, world: World, secret: str) -> None:
    send(forge, secret, b"first", delivery="first")
    new = hooks.make_secret(world.lab, Project.objects.get(), by="anna")
    assert new != secret
    assert Project.objects.get().hooked_at is None  # polling does not rely on it any more
    told(send(forge, secret), 403, "not_signed")
    told(send(forge, new), 200, "woke")
    assert Notice.objects.filter(text__contains="new secret").exists()


def test_a_delivery_is_forgotten_with_its_project(world: World, secret: str) -> None:
    send(Client(), secret)
    Run.objects.all().delete()
    Project.objects.get().delete()
    assert not HookDelivery.objects.exists()
    assert timedelta(days=30) == rules.REMEMBERED

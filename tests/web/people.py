"""Two people at the door: Anna, who may act, and Vera, who may only look."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client

from runs import wiring
from runs.people import stepup


@pytest.fixture
def anna(client: Client, operator: User) -> Client:
    client.force_login(operator)
    return client


@pytest.fixture
def vera(viewer: User) -> Client:
    made = Client()
    made.force_login(viewer)
    return made


def confirmed(client: Client) -> Client:
    """The same client as one that was asked who it is just now, by the clock of the test."""
    session = client.session
    session[stepup.CONFIRMED] = wiring.lab().now().isoformat()
    session.save()
    return client


def hx(client: Client, address: str, data: dict[str, str] | None = None, at: str = "/") -> Any:
    """A POST as htmx makes it on the page `at`."""
    headers = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{at}"}
    return client.post(address, data or {}, headers=headers)


def text_of(answer: Any) -> str:
    """The page without the line breaks of its templates, which no browser shows."""
    return unbroken(answer.content.decode())


def unbroken(html: str) -> str:
    """HTML whose line breaks are gone beside a tag and a space within words; texts as typed stay."""
    parts = re.split(r"(<(pre|textarea)\b.*?</\2>)", html, flags=re.DOTALL)
    for place in range(0, len(parts), 3):
        parts[place] = re.sub(r"(?<=>)\s*\n\s*|\s*\n\s*(?=<)", "", parts[place])
        parts[place] = re.sub(r"\s*\n\s*", " ", parts[place])
    return "".join(part for place, part in enumerate(parts) if place % 3 != 2)


def confirm_everybody() -> None:
    """Everybody who is logged in was asked who they are just now."""
    engine = import_module(settings.SESSION_ENGINE)
    for row in Session.objects.all():
        store = engine.SessionStore(row.session_key)
        store[stepup.CONFIRMED] = wiring.lab().now().isoformat()
        store.save()

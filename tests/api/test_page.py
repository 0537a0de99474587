"""The description of the API for people: every operation, behind login, without a foreign script."""

from __future__ import annotations

import html
from collections import defaultdict

import pytest
from django.test import Client

from runs.api.api import description
from tests.fakes import World
from tests.web.people import text_of

pytestmark = pytest.mark.django_db


def test_every_operation_and_shape_is_on_the_page(vera: Client, world: World) -> None:
    shown = html.unescape(text_of(vera.get("/api/")))
    for path, methods in description()["paths"].items():
        assert path in shown
        for method, about in methods.items():
            assert f'id="op-{about["operationId"]}"' in shown
            assert about["summary"] in shown
            address = path.format_map(defaultdict(lambda: 1))
            assert f"http://testserver{address}" in shown, (method, path)
    for name in ("Problem", "RunRow", "Entry"):
        assert f'id="shape-{name}"' in shown
    assert '-d \'{"title": "Add a retry"}\'' in shown


def test_the_page_needs_a_login(client: Client, world: World) -> None:
    assert client.get("/api/")["Location"].startswith("/login/")
    assert client.post("/api/").status_code in (302, 403, 405)


def test_operations_have_names_that_are_theirs_alone() -> None:
    names = [
        about["operationId"]
        for methods in description()["paths"].values()
        for about in methods.values()
    ]
    assert len(names) == len(set(names))

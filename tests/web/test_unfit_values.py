"""Values that a database cannot keep are the sender's mistake, on every door and on both databases."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import DataError
from django.http import HttpRequest
from django.test import Client

from runs.issues import acts as issues
from runs.models import Project
from runs.web import trouble_views
from runs.web.refusals import denial
from tests import make
from tests.fakes import World
from trackers.builtin import store

pytestmark = pytest.mark.django_db

HUGE = str(2**63)


@pytest.fixture
def door(operator: User, world: World) -> Client:
    """Anna's browser, which sees what a person would see of a mistake of ours."""
    client = Client(raise_request_exception=False)
    client.force_login(operator)
    return client


@pytest.fixture
def shop(world: World) -> Project:
    made = make.a_project("shop", tracker="builtin", tracker_root=store.create_root("shop"))
    issues.create(world.lab, made, title="One", by="anna")
    return made


@pytest.mark.every_case
@pytest.mark.row("X-14", level="contract")
@pytest.mark.parametrize(
    "address",
    [
        "/projects/{shop}/issues/?q={value}",
        "/projects/{shop}/issues/?label={value}",
        "/projects/{shop}/issues/?page={value}",
        "/projects/{shop}/issues/{value}/",
        "/projects/{shop}/pulls/{value}/",
        "/projects/{value}/",
        "/history/?outcome={value}",
        "/history/?project={value}",
        "/history/?at={value}",
        "/runs/{value}/",
        "/admin/runs/run/?q={value}",
        "/admin/runs/project/{value}/change/",
        "/login/?next={value}",
    ],
)
def test_no_address_makes_a_mistake_of_ours(door: Client, shop: Project, address: str) -> None:
    for value in ("%00", "a%00b", "%ED%A0%80", HUGE, "9" * 400):
        answer = door.get(address.format(shop=shop.pk, value=value))
        assert answer.status_code < 500, value


@pytest.mark.every_case
@pytest.mark.row("X-14", level="contract")
@pytest.mark.parametrize(
    ("address", "fields"),
    [
        ("/login/", ("username", "password")),
        ("/projects/new", ("name", "source", "token")),
        ("/projects/{shop}/issues/new", ("title", "body", "labels")),
        ("/projects/{shop}/start", ("issue",)),
        ("/projects/{shop}/issues/1/comment", ("comment",)),
        ("/projects/{shop}/issues/1/labels", ("labels",)),
        ("/settings/", ("agent", "model", "effort")),
    ],
)
def test_no_form_makes_a_mistake_of_ours(
    door: Client, shop: Project, address: str, fields: tuple[str, ...]
) -> None:
    for value in ("\0", "a\0b", HUGE, "9" * 400):
        sent = dict.fromkeys(fields, value)
        assert door.post(address.format(shop=shop.pk), sent).status_code < 500, value


def test_what_only_the_database_refuses_is_a_bad_request() -> None:
    error = DataError("integer out of range")
    try:
        raise error
    except DataError:
        answer = trouble_views.failed(HttpRequest())
    assert answer.status_code == 400
    assert b"Nothing was done" in answer.content
    told = denial(error)
    assert (told.status, told.code) == (422, "invalid")
    assert "integer out of range" not in told.text

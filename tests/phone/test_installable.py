"""Manifest, service worker, offline page, icons: open to a browser without log-in, and free of facts."""

from __future__ import annotations

import json
import re
import struct
import zlib
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from runs.core.states import Outcome
from runs.lifecycle import outcomes
from runs.models import Host, Run
from runs.phone import icons
from tests import make
from tests.fakes import World

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

OPEN = ("/manifest.webmanifest", "/worker.js", "/offline", "/favicon.svg", "/icons/192.png")


@pytest.mark.parametrize("address", OPEN)
def test_what_a_browser_fetches_by_itself_tells_nothing_of_runs(
    client: Client, world: World, address: str
) -> None:
    run = make.a_run(make.a_project())
    outcomes.record(world.lab, run, Outcome.DIED, "gone")

    answer = client.get(address)

    assert answer.status_code == 200
    assert run.project.name.encode() not in answer.content
    assert b">1<" not in answer.content
    assert "'self'" in answer.headers["Content-Security-Policy"]
    assert client.post(address).status_code == 405


def test_the_manifest_names_icons_that_there_are(client: Client, world: World) -> None:
    answer = client.get(reverse("runs:manifest"))
    told = json.loads(answer.content)

    assert answer.headers["Content-Type"] == "application/manifest+json"
    assert (told["name"], told["scope"], told["display"]) == ("labsite", "/", "standalone")
    for one in told["icons"]:
        if one["type"] != "image/png":
            continue
        body = client.get(one["src"]).content
        width, height = struct.unpack(">II", body[16:24])
        assert f"{width}x{height}" == one["sizes"]
    assert {one["purpose"] for one in told["icons"] if "purpose" in one} == {"any", "maskable"}
    assert client.get("/icons/7.png").status_code == 404


def test_the_worker_keeps_only_what_has_no_facts(client: Client, world: World) -> None:
    text = client.get("/worker.js").content.decode()
    known = json.loads(re.search(r"const LAB = (.*);\n", text)[1])  # type: ignore[index]

    assert known["offline"] == "/offline"
    assert all(one == "/offline" or one.startswith("/static/") for one in known["files"])
    assert client.get("/worker.js").headers["Service-Worker-Allowed"] == "/"


def test_pages_name_the_colours_of_both_schemes(
    client: Client, world: World, operator: User
) -> None:
    client.force_login(operator)
    page = client.get("/history/").content.decode()

    assert 'rel="manifest"' in page
    found = dict(re.findall(r'name="theme-color" content="(#\w+)" media="\S+ (\w+)\)"', page))
    assert sorted(found.values()) == ["dark", "light"]


def test_title_and_icon_count_what_needs_somebody(
    client: Client, world: World, operator: User
) -> None:
    Host.objects.update_or_create(name=world.lab.host, defaults={"last_tick_at": world.lab.now()})
    client.force_login(operator)
    assert "<title>Overview" in client.get("/").content.decode()
    project = make.a_project()
    for key in ("7", "8"):
        run = make.a_run(project, key, slot=int(key))
        outcomes.record(world.lab, run, Outcome.DIED, "gone")
    assert Run.objects.count() == 2

    page = client.get("/").content.decode()

    assert "<title>(2) Overview" in page
    assert "/favicon.svg?n=2" in page
    assert "<title>(2) " in client.get("/needs/").content.decode()
    # A page that has not counted leaves it to the icon.
    assert "<title>Settings" in client.get("/settings/").content.decode()
    assert ">2</text>" in client.get("/favicon.svg").content.decode()
    assert client.get("/needs/count").json() == {"count": 2}


def test_the_count_is_asked_anew_only_when_something_was_told(
    client: Client, world: World, operator: User, django_assert_num_queries: Any
) -> None:
    Host.objects.update_or_create(name=world.lab.host, defaults={"last_tick_at": world.lab.now()})
    client.force_login(operator)
    client.get("/needs/count")
    with django_assert_num_queries(3):  # session, person, facts
        assert client.get("/needs/count").json() == {"count": 0}
    run = make.a_run(make.a_project())
    outcomes.record(world.lab, run, Outcome.DIED, "gone")
    assert client.get("/needs/count").json() == {"count": 1}


def _pixels(body: bytes) -> tuple[int, list[bytes]]:
    width = struct.unpack(">I", body[16:20])[0]
    start = body.index(b"IDAT") + 4
    size = struct.unpack(">I", body[start - 8 : start - 4])[0]
    raw = zlib.decompress(body[start : start + size])
    row = 1 + 4 * width
    return width, [raw[n * row + 1 : (n + 1) * row] for n in range(width)]


@pytest.mark.parametrize("name", icons.ICONS)
def test_icons_are_the_dot_on_its_ground(name: str) -> None:
    width, rows = _pixels(icons.png(name))
    middle, corner = rows[width // 2][4 * (width // 2) :][:4], rows[0][:4]

    if icons.ICONS[name].is_badge:
        assert (middle, corner[3]) == (bytes((255, 255, 255, 255)), 0)
        return
    assert middle == bytes((*icons.DOT, 255))
    assert corner[3] == (255 if icons.ICONS[name].is_maskable else 0)
    assert rows == rows[::-1]


@pytest.mark.parametrize(
    ("count", "words"), [(0, ""), (3, ">3<"), (99, ">99<"), (100, ">99+<"), (12345, ">99+<")]
)
def test_the_icon_of_a_tab_shows_at_most_two_digits(count: int, words: str) -> None:
    assert words in icons.svg(count)
    assert ("<text" in icons.svg(count)) is bool(words)

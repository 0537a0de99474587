"""Hosts over the HTTP API: shown, changed by who may, and nobody's later change is overwritten."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models.functions import Now

from runs.models import Host, Notice, Run
from tests import make
from tests.api.program import Program, denied
from tests.fakes import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def hosts(world: World) -> tuple[Host, Host]:
    Host.objects.all().delete()
    names = (world.lab.host, "gpu")
    made = [Host.objects.create(name=name, seen_at=Now(), disk_free_mb=9000) for name in names]
    return made[0], made[1]


def test_hosts_are_listed_and_shown_without_secrets(
    program: Program, hosts: tuple[Host, Host], world: World
) -> None:
    own, gpu = hosts
    Host.objects.filter(pk=gpu.pk).update(disk_free_mb=100, machine="abc", labels=["gpu"])
    run = make.a_run(make.a_project(), "1", host="gpu")
    rows = {row["name"]: row for row in program.get("/hosts").json()["items"]}
    assert set(rows) == {own.name, "gpu"}
    shown = program.get(f"/hosts/{gpu.pk}").json()
    assert shown == rows["gpu"]
    assert (shown["state"], shown["runs"], shown["labels"]) == ("working", 1, ["gpu"])
    assert shown["closed"].startswith("takes nothing new: less than 1 GB of disk is free")
    assert not {"machine", "lease_owner", "tmux_socket"} & shown.keys()
    denied(program.get("/hosts/987654321"), 404, "not_found")
    denied(program.post(f"/hosts/{gpu.pk}/give-up"), 409, "refused")
    Host.objects.filter(pk=gpu.pk).update(seen_at=Now() - timedelta(minutes=9))
    assert program.get(f"/hosts/{gpu.pk}").json()["state"] == "unknown"
    assert program.post(f"/hosts/{gpu.pk}/give-up").json() == {"ended": 1}
    assert Run.objects.get(pk=run.pk).outcome == "stopped"


def test_what_a_host_is_for_is_set_and_nobody_overwrites_a_later_change(
    program: Program, hosts: tuple[Host, Host]
) -> None:
    path = f"/hosts/{hosts[1].pk}"
    seen = program.get(path)["ETag"]
    Host.objects.update(load=3.0, seen_at=Now())  # a tick: it changes nothing that is set
    headers = {"HTTP_IF_MATCH": seen}
    body = {"labels": ["GPU", "big-disk"], "session_cap": 2.0}
    set_to = program.client.patch(
        f"/api/v1{path}", body, content_type="application/json", **headers
    )
    assert set_to.status_code == 200, set_to.content
    assert (set_to.json()["labels"], set_to.json()["session_cap"]) == (["big-disk", "gpu"], 2)
    late = program.client.patch(
        f"/api/v1{path}", {"session_cap": 5}, content_type="application/json", **headers
    )
    denied(late, 412, "changed")
    assert program.send("PATCH", path, {"ssh_address": "a@b"}).json()["session_cap"] == 2
    assert program.send("PATCH", path, {"session_cap": None}).json()["session_cap"] is None
    said = denied(program.send("PATCH", path, {"labels": ["no spaces"]}), 422, "invalid")
    assert "labels" in said["fields"]
    assert (
        "ssh_address"
        in denied(program.send("PATCH", path, {"ssh_address": "-oProxyCommand=x"}), 422, "invalid")[
            "fields"
        ]
    )
    assert Host.objects.get(pk=hosts[1].pk).ssh_address == "a@b"


def test_a_host_is_drained_resumed_and_removed_by_program(
    program: Program, hosts: tuple[Host, Host]
) -> None:
    path = f"/hosts/{hosts[1].pk}"
    for _ in range(2):
        assert program.post(f"{path}/drain").json()["state"] == "draining"
    for _ in range(2):
        assert program.post(f"{path}/resume").json()["state"] == "working"
    assert Notice.objects.filter(kind="host.changed", by="anna").count() == 2
    make.a_run(make.a_project(), "1", host="gpu")
    denied(program.send("DELETE", path), 409, "refused")
    assert program.send("DELETE", f"{path}?and_runs=true").json() == {"ended": 1}
    denied(program.get(path), 404, "not_found")
    denied(program.send("DELETE", f"/hosts/{hosts[0].pk}"), 409, "refused")


def test_who_is_no_admin_drains_and_neither_sets_nor_removes(
    world: World, viewer: User, hosts: tuple[Host, Host]
) -> None:
    viewer.user_permissions.add(Permission.objects.get(codename="act"))
    program, path = Program.of(viewer), f"/hosts/{hosts[1].pk}"
    assert program.post(f"{path}/drain").status_code == 200
    denied(program.send("PATCH", path, {"session_cap": 3}), 403, "not_allowed")
    denied(program.send("DELETE", path), 403, "not_allowed")
    assert Host.objects.filter(removed_at=None).count() == 2

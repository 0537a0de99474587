"""How a machine joins by a token that works once, and the page on hosts with its acts."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.test import Client

from labsite import env, host_command, joined
from runs.core.states import NoticeKind, Outcome
from runs.hosts import acts
from runs.hosts.acts import HostRefused, Terms
from runs.models import Host, HostInvite, Notice, Run, Settings
from tests import make
from tests.fakes import World
from tests.hosts.test_two_hosts import Machine
from tests.web.people import text_of

pytestmark = pytest.mark.django_db
GPU = Terms(("gpu",), 3, "anna@gpu1")


@pytest.fixture
def shared(world: World) -> World:
    world.lab = replace(world.lab, machine=Machine(identity="one"))
    return world


def ask(client: Client, token: str, machine: str = "two") -> Any:
    sent = json.dumps({"token": token, "machine": machine})
    return client.post("/hosts/join", sent, content_type="application/json")


def test_a_token_lets_one_machine_in_and_is_used_up(shared: World, client: Client) -> None:
    token = acts.invite(shared.lab, "gpu-1", GPU, "anna")
    answer = ask(client, token)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    told = answer.json()["settings"]
    assert told["LAB_SESSION_HOST"] == "gpu-1"
    assert told["LAB_SECRET_KEY"]
    host = Host.objects.get(name="gpu-1")
    assert (host.machine, host.labels, host.session_cap) == ("two", ["gpu"], 3)
    again = ask(client, token, "three")
    assert again.status_code == 403
    assert again.json()["text"] == acts.USED_UP
    assert Host.objects.get(name="gpu-1").machine == "two"
    invited = HostInvite.objects.get()
    assert token not in json.dumps(list(HostInvite.objects.values()), default=str)
    assert invited.used_at is not None
    assert not any(token in text for text in Notice.objects.values_list("text", flat=True))


def test_a_token_expires_and_a_newer_one_takes_its_place(shared: World, client: Client) -> None:
    old = acts.invite(shared.lab, "gpu-1", GPU, "anna")
    token = acts.invite(shared.lab, "gpu-1", GPU, "anna")
    assert ask(client, old).status_code == 403
    shared.clock.forward(hours=1)
    assert ask(client, token).status_code == 403
    assert not Host.objects.filter(name="gpu-1").exists()


@pytest.mark.parametrize(
    ("sent", "status"), [("{", 400), ("[]", 400), ('{"token": "x"}', 400), ("{}", 400)]
)
def test_what_is_no_request_to_join_is_refused(
    shared: World, client: Client, sent: str, status: int
) -> None:
    answer = client.post("/hosts/join", sent, content_type="application/json")
    assert answer.status_code == status
    assert client.get("/hosts/join").status_code == 405
    assert ask(client, "x", "/../").status_code == 403


def test_what_cannot_be_invited(world: World, shared: World) -> None:
    with pytest.raises(HostRefused, match="cannot name a host"):
        acts.invite(shared.lab, "a/b", GPU, "anna")
    Host.objects.create(name="gpu-1")
    with pytest.raises(HostRefused, match="There is a host gpu-1 already"):
        acts.invite(shared.lab, "gpu-1", GPU, "anna")
    with pytest.raises(HostRefused, match="cannot be a label"):
        acts.terms(["a b"], None, "")
    with pytest.raises(HostRefused, match="The cap is a number"):
        acts.terms([], -1, "")
    with pytest.raises(HostRefused, match="an address for ssh"):
        acts.terms([], None, "-oProxyCommand=x")
    gone = Host.objects.create(name="gone", removed_at=world.clock.now)
    run = make.a_run(make.a_project(), host=gone.name, outcome=Outcome.STOPPED)
    Run.objects.filter(pk=run.pk).update(settled_at=None)
    with pytest.raises(HostRefused, match="has not cleaned up what it had"):
        acts.invite(shared.lab, "gone", GPU, "anna")  # another machine would settle it unseen
    Run.objects.filter(pk=run.pk).update(settled_at=world.clock.now)
    acts.invite(shared.lab, "gone", GPU, "anna")
    alone = replace(world.lab, machine=Machine())
    with pytest.raises(HostRefused, match="need a PostgreSQL database"):
        acts.invite(alone, "gpu-2", GPU, "anna")


def test_what_a_joined_machine_was_told_counts_as_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_STATE_DIR", str(tmp_path))
    for name in joined.NAMES:
        monkeypatch.delenv(name, raising=False)
    assert env.text("LAB_SESSION_HOST", "local") == "local"
    file = joined.write(tmp_path, {"LAB_SESSION_HOST": "b", "LAB_SECRET_KEY": "k", "PATH": "x"})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "PATH" not in file.read_text()
    assert env.text("LAB_SESSION_HOST", "local") == "b"
    monkeypatch.setenv("LAB_SESSION_HOST", "c")
    assert env.text("LAB_SESSION_HOST", "local") == "c"
    file.write_text("{")
    with pytest.raises(env.WrongSetting, match="join again with a new token"):
        env.text("LAB_SECRET_KEY")


def test_a_machine_joins_by_the_command_once(
    shared: World, live_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setenv("LAB_STATE_DIR", str(tmp_path / "b"))
    token = acts.invite(shared.lab, "gpu-1", GPU, "anna")
    assert host_command.main(["join", live_server.url, token]) == 0
    said = capfd.readouterr()
    assert "./lab up --only worker" in said.out
    assert token not in said.out + said.err
    kept = joined.read(tmp_path / "b")
    assert kept["LAB_SESSION_HOST"] == "gpu-1"
    assert kept["LAB_WEB_URL"] == live_server.url
    assert host_command.main(["join", live_server.url, token]) == 1
    assert "belongs to a host already" in capfd.readouterr().err
    monkeypatch.setenv("LAB_STATE_DIR", str(tmp_path / "c"))
    assert host_command.main(["join", live_server.url, token]) == 1
    assert capfd.readouterr().err.strip() == acts.USED_UP
    assert not (tmp_path / "c" / joined.FILE).exists()
    assert host_command.main(["join", "http://lab.example.org", token]) == 1
    assert "use https://" in capfd.readouterr().err


def log_in(client: Client, *, operator: bool = True) -> User:
    user = make.a_user(operator=operator)
    client.force_login(user)
    return user


def test_the_page_shows_each_host_and_drains_it(shared: World, client: Client) -> None:
    log_in(client)
    Settings.current()
    host = Host.objects.create(name="gpu-1", labels=["gpu"], load=2.5, version="0.1.0+93")
    page = text_of(client.get("/hosts/"))
    assert "gpu-1" in page
    assert "unknown" in page
    answer = client.post(f"/hosts/{host.pk}/drain", follow=True)
    assert "gpu-1 takes nothing new." in text_of(answer)
    host.refresh_from_db()
    assert host.is_draining
    client.post(f"/hosts/{host.pk}/resume")
    host.refresh_from_db()
    assert not host.is_draining
    assert Notice.objects.filter(kind=NoticeKind.HOST_CHANGED).exclude(by="").count() == 2


def test_who_only_looks_changes_no_host(shared: World, client: Client) -> None:
    log_in(client, operator=False)
    host = Host.objects.create(name="gpu-1")
    assert "Drain" not in text_of(client.get("/hosts/"))
    for act in ("drain", "resume", "give-up", "remove"):
        assert client.post(f"/hosts/{host.pk}/{act}").status_code == 403
    host.refresh_from_db()
    assert (host.is_draining, host.removed_at) == (False, None)


def test_the_page_asks_before_it_gives_up_or_removes(shared: World, client: Client) -> None:
    log_in(client)
    client.get("/hosts/")
    host = Host.objects.create(name="local", seen_at=shared.clock.now)
    run = make.a_run(make.a_project())
    asked = text_of(client.get(f"/hosts/{host.pk}/remove"))
    assert "demo #7" in asked
    refused = client.post(f"/hosts/{host.pk}/remove")
    assert refused.status_code == 409
    assert Run.objects.get(pk=run.pk).is_active
    Host.objects.update(seen_at=F("seen_at") - timedelta(days=900))
    assert "demo #7" in text_of(client.get(f"/hosts/{host.pk}/give-up"))
    client.post(f"/hosts/{host.pk}/give-up")
    run.refresh_from_db()
    assert (run.outcome, run.settled_at) == (Outcome.STOPPED, None)
    alone = client.post(f"/hosts/{host.pk}/remove")
    assert "local is the only host" in text_of(alone)
    assert "Remove…" not in text_of(client.get("/hosts/"))
    Host.objects.create(name="gpu-1")
    assert "Remove…" in text_of(client.get("/hosts/"))
    client.post(f"/hosts/{host.pk}/remove")
    assert Host.objects.get(pk=host.pk).removed_at is not None
    assert client.get(f"/hosts/{host.pk}/remove").status_code == 404

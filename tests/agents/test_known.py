"""What labsite holds as secret reaches one mask, soon after it was stored and wherever it was."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection

from labsite import logs
from runs.core import masking
from runs.core.ports import Order
from runs.core.states import Outcome
from runs.lifecycle import outcomes
from runs.machine import recorder
from runs.models import AgentProfile, Forge, Notice, NoticeAddress, Settings
from runs.secrets import masked
from runs.secrets.known import AGE, Known
from runs.transcript import listening
from runs.validation.command_rules import Check
from runs.validation.command_runner import LocalChecks
from tests import make
from tests.fakes import START, World
from tests.transcript import agent_lines as x

pytestmark = pytest.mark.django_db

KEY = "sk-ant-Qw3rTy-0123456789"


class Watch:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def known(watch: Watch) -> Known:
    return Known({"GATEWAY_KEY": "inherited-0123", "LANG": "C.UTF-8"}, watch)


@pytest.fixture
def guarded(world: World, known: Known) -> World:
    """The fake outside behind the masks, as the real one is."""
    world.lab = masked.lab(world.lab, known)
    return world


def test_every_kind_of_secret_is_known(known: Known, operator: User, settings: Any) -> None:
    make.an_agent(env={"API_KEY": KEY, "IS_SANDBOX": "1", "FLAG_KEY": "true"})
    forge = Forge.objects.create(
        name="f",
        kind="gitea",
        api="x",
        web="x",
        credential={"token": "t0ken-of-forge"},
        created_at=START,
    )
    app = {"app_id": "12345678", "app_key": "-----BEGIN K-----\nMIIEvQIBADANBg\n-----END K-----"}
    Forge.objects.create(
        name="g", kind="github", api="x", web="x", credential=app, created_at=START
    )
    make.a_project(
        forge=forge, token="t0ken-of-git", hook_secret="hook-s3cret", url="https://me:in-ur1-pw@h/x"
    )
    NoticeAddress.objects.create(
        user=operator,
        name="n",
        url="slack://TokenA12345/x/Qw3rTyabcdefGHIJKL012345",
        created_at=START,
    )
    Settings.objects.update_or_create(pk=1, defaults={"ping_url": "https://hc.example/ping/me"})
    for secret in (
        *(KEY, "t0ken-of-forge", "MIIEvQIBADANBg", "t0ken-of-git", "hook-s3cret", "in-ur1-pw"),
        *("slack://TokenA12345/x/Qw3rTyabcdefGHIJKL012345", "Qw3rTyabcdefGHIJKL012345"),
        *("https://hc.example/ping/me", "inherited-0123", settings.SECRET_KEY),
    ):
        assert known(f"<{secret}>") == "<[hidden]>"
    for word in ("true", "1", "12345678", "C.UTF-8", "me", "h"):
        assert known(f"<{word}>") == f"<{word}>"


def test_a_common_word_is_hidden_nowhere_whatever_it_is_called(known: Known) -> None:
    make.an_agent(env={"API_KEY": "true", "AUTH_TOKEN": "disabled", "SECRET": "12345678"})
    make.a_project(token="password", hook_secret="webhooks")
    text = "true, disabled, 12345678, password and webhooks"
    assert known(text) == text


def test_it_asks_the_database_once_in_a_while(
    known: Known, watch: Watch, django_assert_num_queries: Any
) -> None:
    known("x")
    with django_assert_num_queries(0):
        assert [known("text") for _ in range(50)] == ["text"] * 50
    watch.now += AGE
    with django_assert_num_queries(8):
        assert [known("text") for _ in range(50)] == ["text"] * 50


def test_what_this_process_stored_is_known_at_once(known: Known) -> None:
    assert known(KEY) == KEY
    profile = make.an_agent(env={"API_KEY": KEY})
    assert known(KEY) == "[hidden]"
    profile.delete()


def test_what_another_process_stored_is_known_soon(known: Known, watch: Watch) -> None:
    profile = make.an_agent(env={"API_KEY": KEY})
    with connection.cursor() as cursor:
        cursor.execute("SELECT env FROM runs_agentprofile WHERE id = %s", [profile.pk])
        stored = cursor.fetchone()
        AgentProfile.objects.filter(pk=profile.pk).update(env={})
        assert known(KEY) == KEY
        cursor.execute("UPDATE runs_agentprofile SET env = %s WHERE id = %s", [*stored, profile.pk])
    watch.now += AGE
    assert known(KEY) == "[hidden]"


def test_a_database_that_is_away_changes_nothing(
    known: Known, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    make.an_agent(env={"API_KEY": KEY})
    assert known(KEY) == "[hidden]"
    watch.now += AGE

    def away(*_: object, **__: object) -> None:
        raise OperationalError("away")

    with connection.execute_wrapper(away):
        assert known(KEY) == "[hidden]"


def test_a_log_line_shows_none(known: Known) -> None:
    make.an_agent(env={"API_KEY": KEY})
    known("x")
    told = logs._redact(logging.getLogger("test"), "info", {"event": f"it is {KEY}"})
    assert told == {"event": "it is [hidden]"}


def test_screens_come_in_masked(guarded: World) -> None:
    make.an_agent(env={"API_KEY": KEY})
    guarded.sessions.appear("s")
    guarded.sessions.text["s"] = f"key {KEY[:9]}\x1b[31m{KEY[9:]}"
    assert KEY[9:] not in guarded.lab.sessions.screens(["s"])["s"]


def test_a_launcher_is_given_what_is_stored_up_to_now(guarded: World, tmp_path: Any) -> None:
    guarded.lab.mask("x")
    make.an_agent(env={"API_KEY": KEY})
    guarded.lab.sessions.start(
        Order(
            "s",
            tmp_path,
            tmp_path,
            ["x"],
            output="claude_stream_json",
            env={"A_KEY": "of-order-1"},
            files={"token": "its-token"},
        )
    )
    given = json.loads(guarded.sessions.orders["s"].files["secrets.json"])
    assert {KEY, "of-order-1", "its-token"} <= set(given)
    assert KEY not in repr(guarded.sessions.orders["s"])


def test_what_is_told_and_why_a_run_ended_shows_none(guarded: World, db: None) -> None:
    make.an_agent(env={"API_KEY": KEY})
    run = make.a_run(make.a_project())
    assert outcomes.record(guarded.lab, run, Outcome.DIED, f"it said {KEY}")
    assert run.reason == "it said [hidden]"
    assert [one.text for one in Notice.objects.filter(run=run)] == ["it said [hidden]"]


def test_a_record_that_the_agent_wrote_itself_shows_none(guarded: World) -> None:
    run = make.a_run(make.a_project(), mode="one_shot", output="claude_stream_json")
    guarded.live(run)
    said = x.written(x.claude_init(), x.claude_says(f"it is {KEY}"), x.claude_refused(401, KEY))
    guarded.sessions.outputs[guarded.lab.paths.run_folder(run.pk)] = said
    make.an_agent("later", env={"API_KEY": KEY})
    found = listening.last_words(guarded.lab, run)
    assert KEY not in str(found)
    assert "it is [hidden]" in str(found["last_words"])


@pytest.mark.real
@pytest.mark.parametrize("printed", [KEY, KEY.replace("-", "%2D"), f"{KEY[:9]}\n  {KEY[9:]}"])
def test_commands_of_validations_keep_none(guarded: World, tmp_path: Path, printed: str) -> None:
    make.an_agent(env={"API_KEY": KEY})
    known = Known({})
    checks = masked.MaskedChecks(LocalChecks(dict(os.environ)), known)
    argv = [sys.executable, "-c", f"print({f'<{printed}>'!r})"]
    minute = timedelta(minutes=1)
    done = checks.run(Check(argv, tmp_path, tmp_path, "1.txt", "mark-x", minute), lambda: True)
    assert "[hidden]" in done.tail
    for text in (done.tail, (tmp_path / "1.txt").read_text()):
        assert KEY[9:] not in text


def test_the_launcher_leaves_no_file_with_secrets_behind(tmp_path: Path) -> None:
    (tmp_path / masking.FILE).write_text(json.dumps([KEY]))
    assert recorder.read_mask(str(tmp_path))(f"<{KEY}>") == "<[hidden]>"
    assert not list(tmp_path.iterdir())
    assert recorder.read_mask(str(tmp_path)) is masking.NOTHING

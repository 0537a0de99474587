"""Which account pays for an agent's work, and that a profile can leave a variable out of its sessions."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from django.test import Client

from runs.accounts import payment_rules
from runs.accounts.payment_rules import PaymentFacts
from runs.agents.on_machine import AgentLogin, AgentPrograms
from runs.core.ports import Order
from runs.machine import shell
from runs.models import Notice
from tests import make
from tests.fakes import World
from tests.real import RealWorld
from tests.web.people import text_of
from tests.world.stories import press_start, ready

CLAUDE = ["/opt/bin/claude", "-p", "{prompt}"]
KEY, TOKEN = "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"


@pytest.mark.parametrize(
    ("facts", "text", "is_odd"),
    [
        pytest.param(PaymentFacts(CLAUDE), "The account that is logged in pays.", False, id="login"),
        pytest.param(PaymentFacts(CLAUDE, own=[KEY]), f"{KEY} of this profile pays.", False, id="own"),
        pytest.param(PaymentFacts(CLAUDE, inherited=[KEY]), f"{KEY} pays, with", True, id="inherited"),
        pytest.param(
            PaymentFacts(CLAUDE, own=[KEY], inherited=[TOKEN]), f"{TOKEN} pays, with", True,
            id="the one that the program prefers",
        ),
        pytest.param(PaymentFacts(CLAUDE, inherited=["CODEX_API_KEY"]), "The account", False, id="of another program"),
        pytest.param(
            PaymentFacts(["codex", "exec"], inherited=["CODEX_API_KEY"]), "CODEX_API_KEY pays, with", True, id="Codex"
        ),
        pytest.param(PaymentFacts(["own-agent"], inherited=[KEY]), "", False, id="a program nobody knows"),
        pytest.param(PaymentFacts([]), "", False, id="no program"),
    ],
)  # fmt: skip
def test_who_pays(facts: PaymentFacts, text: str, is_odd: bool) -> None:
    found = payment_rules.describe_payment(facts)
    assert found.text.startswith(text)
    assert bool(found.text) is bool(text)
    assert found.is_odd is is_odd


@pytest.mark.django_db(transaction=True)
def test_card_and_run_say_that_an_inherited_key_pays(world: World, anna: Client) -> None:
    project = make.a_project(agent=make.an_agent(argv=["claude", "{prompt}"]))
    world.tracker.add_root("demo")
    world.programs.variables[KEY] = "sk-of-somebody"
    ready(world, "7")
    run = press_start(world, project).run
    told = Notice.objects.filter(run=run, text__startswith=f"{KEY} pays")
    assert told.count() == 1
    assert f"{KEY} pays, with which labsite was started" in text_of(anna.get("/settings/"))
    assert "sk-of-somebody" not in text_of(anna.get("/settings/"))


@pytest.mark.django_db(transaction=True)
def test_a_log_in_that_pays_is_on_the_card_and_no_news(world: World, anna: Client) -> None:
    profile = make.an_agent(argv=["claude", "{prompt}"], env={KEY: ""})
    project = make.a_project(agent=profile)
    world.tracker.add_root("demo")
    world.programs.variables[KEY] = "sk-of-somebody"
    ready(world, "7")
    run = press_start(world, project).run
    assert not Notice.objects.filter(run=run, text__contains="pays").exists()
    assert "The account that is logged in pays." in text_of(anna.get("/settings/"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"B": "2"}, {"A": "1", "B": "2", "E": ""}, id="one more"),
        pytest.param({"A": "3"}, {"A": "3", "E": ""}, id="another value"),
        pytest.param({"A": ""}, {"E": ""}, id="left out; what was empty before stays"),
        pytest.param({"C": ""}, {"A": "1", "E": ""}, id="left out, though it is not there"),
    ],
)
def test_an_empty_variable_is_left_out(given: dict[str, str], expected: dict[str, str]) -> None:
    assert shell.add_variables({"A": "1", "E": ""}, given) == expected


@pytest.mark.real
def test_questions_to_a_program_leave_it_out_too(tmp_path: Path) -> None:
    environ = {"PATH": "/usr/bin:/bin", KEY: "sk-1"}
    programs = AgentPrograms(environ, tmp_path)
    assert programs.variable(KEY, {}) == "sk-1"
    assert programs.variable(KEY, {KEY: ""}) == ""
    asks = [sys.executable, "-c", f"import os, sys; sys.exit({KEY!r} in os.environ)"]
    assert AgentLogin(environ).check(asks, {KEY: ""}) is True
    assert AgentLogin(environ).check(asks, {}) is False


@pytest.mark.real
def test_a_session_does_not_get_it(real: RealWorld, tmp_path: Path) -> None:
    real.sessions._env[KEY] = "sk-1"
    code = "import json, os, sys, time; json.dump(dict(os.environ), open('env.part', 'w')); "
    code += "os.rename('env.part', 'env.json'); time.sleep(600)"
    order = Order(
        session="demo~1~afk-7",
        folder=tmp_path / "run",
        cwd=tmp_path,
        argv=[sys.executable, "-c", code],
        marker="m-1",
        env={KEY: "", "KEPT": "1"},
    )
    real.sessions.start(order)
    real.until((tmp_path / "env.json").exists)
    found = json.loads((tmp_path / "env.json").read_text())
    assert KEY not in found
    assert found["KEPT"] == "1"

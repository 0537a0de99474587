"""The environment of an agent profile: encrypted at rest, written in admin and never shown."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from runs.models import AgentProfile, Notice
from tests import make
from tests.fakes import World
from tests.web.people import confirmed

SECRETS = {"API_KEY": "very-secret", "HOME_OF_IT": "also-secret"}


def _stored() -> str:
    with connection.cursor() as cursor:
        cursor.execute("select env from runs_agentprofile where name = 'Test agent'")
        return str(cursor.fetchone()[0])


@pytest.mark.django_db
@pytest.mark.row("X-05", level="contract")
def test_an_environment_is_encrypted_at_rest_and_hidden_in_repr():
    make.an_agent(env=SECRETS)
    assert "secret" not in _stored() and "API_KEY" not in _stored()
    profile = AgentProfile.objects.get(name="Test agent")
    assert profile.env == SECRETS
    assert {**profile.env} == SECRETS
    for shown in (repr(profile.env), str(profile.env), repr(vars(profile))):
        assert "secret" not in shown
        assert "API_KEY" in shown
    AgentProfile.objects.filter(pk=profile.pk).update(env={"B": "other-secret"})
    assert "secret" not in _stored()
    profile.refresh_from_db()
    assert profile.env == {"B": "other-secret"}


@pytest.mark.django_db
def test_an_empty_environment_stays_an_empty_object():
    make.an_agent()
    assert AgentProfile.objects.get(name="Test agent").env == {}


@pytest.mark.django_db
@pytest.mark.row("LAB-134", level="contract")
def test_an_environment_from_another_key_reads_as_empty_instead_of_failing(settings):
    make.an_agent(env=SECRETS)
    settings.SECRET_KEY = "another key"
    assert AgentProfile.objects.get(name="Test agent").env == {}


@pytest.fixture
def page(world: World, operator, client: Client):
    """Sends the change form of a profile with some environment; gives the answer."""
    client.force_login(operator)
    confirmed(client)
    profile = make.an_agent(env=SECRETS)
    address = reverse("admin:runs_agentprofile_change", args=[profile.pk])

    def send(env: str | None = None, **fields: str):
        if env is None:
            return client.get(address)
        given = {
            "name": "Test agent",
            "mode": "interactive",
            "argv": '["agent", "{prompt}"]',
            "env": env,
            "trust": "",
            "model_names": "[]",
            "efforts": "[]",
            "login_command": "[]",
        }
        return client.post(address, given | fields)

    return send


def _env() -> dict[str, str]:
    return AgentProfile.objects.get(name="Test agent").env


@pytest.mark.row("X-05", level="contract")
def test_the_page_of_a_profile_shows_names_and_no_value(page):
    text = page().content.decode()
    assert "API_KEY" in text and "••••" in text
    assert "very-secret" not in text and "also-secret" not in text


def test_a_value_that_comes_back_hidden_is_kept_and_is_no_change(page):
    hidden = json.dumps(dict.fromkeys(SECRETS, "••••"))
    assert page(hidden, mode="one_shot").status_code == 302
    assert _env() == SECRETS
    assert "environment" not in Notice.objects.latest("pk").text


def test_values_can_be_added_replaced_and_removed_beside_hidden_ones(page):
    assert page('{"API_KEY": "••••", "NEW": "fresh"}').status_code == 302
    assert _env() == {"API_KEY": "very-secret", "NEW": "fresh"}
    assert page('{"API_KEY": "other", "NEW": "••••"}').status_code == 302
    assert _env() == {"API_KEY": "other", "NEW": "fresh"}
    told = Notice.objects.latest("pk").text
    assert told.endswith("environment changed")
    assert page("").status_code == 302
    assert _env() == {}


def test_a_hidden_value_that_was_never_stored_is_asked_for(page):
    answer = page('{"API_KEY": "••••", "UNKNOWN": "••••"}')
    assert "Write the value of UNKNOWN." in answer.content.decode()
    assert "very-secret" not in answer.content.decode()
    assert _env() == SECRETS

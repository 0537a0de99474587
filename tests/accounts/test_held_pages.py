"""What pages and the API show of agents whose account cannot be used, and of runs that wait."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from runs.models import AgentProfile, Notice, Run, Settings
from tests import make
from tests.api.program import Program
from tests.fakes import START
from tests.web.people import confirmed, text_of
from tests.world.stories import look, press_start, ready

pytestmark = pytest.mark.django_db(transaction=True)

UNTIL = START + timedelta(hours=2)


@pytest.fixture
def held(world):  # type: ignore[no-untyped-def]
    """A run that waits for the limit of its agent."""
    agent = make.an_agent(
        "Claude", hold="limit", hold_note="resets 2pm", held_at=START, held_until=UNTIL, holds=1
    )
    project = make.a_project(agent=agent)
    world.tracker.add_root("demo")
    Settings.current()
    return make.a_run(
        project,
        state="held",
        held_at=START,
        started_at=START - timedelta(minutes=10),
        trouble="limit",
        slot=None,
        session="demo~1~afk-7",
        profile=agent,
        agent="Claude",
        claimed_at=START,
    )


@pytest.fixture
def anna(client):  # type: ignore[no-untyped-def]
    client.force_login(make.a_user())
    return client


def _page(client, url):  # type: ignore[no-untyped-def]
    return text_of(client.get(url))


def test_the_board_says_what_a_run_waits_for_and_when_it_goes_on(held, anna):
    text = _page(anna, "/")
    assert "waiting for Claude&#x27;s usage limit" in text
    assert re.search(r'held\s*until <time datetime="2026-11-21T14:00:00Z"', text)
    assert '<span class="pill warn">1 held</span>' in text


def test_the_overview_has_one_card_for_a_held_agent_with_its_button(held, anna):
    text = _page(anna, "/")
    need = text.partition(f'id="need-agent-{held.profile_id}"')[2].partition("</div></div>")[0]
    assert "usage limit reached since 12:00 UTC, tried again at 14:00 UTC" in need
    assert "1 run waits and goes on then." in need
    assert f"/settings/agents/{held.profile_id}/try-again" in need
    assert "Log in" not in need


@pytest.mark.parametrize(
    ("hold", "words", "button"),
    [
        pytest.param("login", "Log in, or correct its key.", "Log in", id="log-in"),
        pytest.param("model", "Choose another model", "Settings", id="model"),
        pytest.param("credit", "Add credit", "Settings", id="credit"),
    ],
)
def test_a_card_offers_what_helps(held, anna, hold, words, button):
    AgentProfile.objects.filter(pk=held.profile_id).update(hold=hold)
    text = _page(anna, "/")
    need = text.partition(f'id="need-agent-{held.profile_id}"')[2].partition("</div></div>")[0]
    assert words in need
    assert f">{button}<" in need


def test_a_run_page_says_that_its_budget_rests(held, anna, world):
    world.clock.forward(minutes=30)
    text = _page(anna, f"/runs/{held.pk}/")
    assert re.search("waiting for Claude&#x27;s usage limit, goes on at ?<time", text)
    assert "The budget does not run while the run is held." in text
    assert "10 min used" in text
    assert "tmux attach" not in text


def test_a_held_run_takes_no_slot_on_pages(held, anna):
    Settings.objects.update(session_cap=1)
    assert "All 1 slots are taken" not in _page(anna, "/")


def test_a_run_whose_agent_is_free_again_waits_for_a_slot(held, anna):
    AgentProfile.objects.update(hold="", hold_note="", held_at=None, held_until=None)
    text = _page(anna, "/")
    assert "waiting for a free slot" in text
    assert "need-agent" not in text


def test_why_not_running_names_the_hold_and_offers_to_try_again(held, anna, world):
    ready(world, "8")
    text = _page(anna, f"/projects/{held.project_id}/waiting")
    assert "Claude: usage limit reached. It is tried again at 14:00 UTC." in text
    assert f"/settings/agents/{held.profile_id}/try-again" in text
    assert "Try Claude again now" in text


def test_try_again_now_releases_the_agent_and_is_in_the_audit_log(held, anna):
    answer = anna.post(f"/settings/agents/{held.profile_id}/try-again", follow=True)
    assert answer.status_code == 200
    assert AgentProfile.objects.get(pk=held.profile_id).hold == ""
    assert Notice.objects.get(kind="agent.released").by == "anna"
    assert "tried again now" in _page(anna, "/audit/")
    again = anna.post(f"/settings/agents/{held.profile_id}/try-again", follow=True)
    assert "was not held any more" in text_of(again)


def test_only_whoever_may_act_may_try_again(held, client):
    client.force_login(make.a_user("bert", operator=False))
    assert client.post(f"/settings/agents/{held.profile_id}/try-again").status_code == 403
    assert AgentProfile.objects.get(pk=held.profile_id).hold == "limit"


def test_a_start_is_refused_with_the_time(held, world, anna):
    ready(world, "8")
    asked = press_start(world, held.project, wanted="8")
    assert (asked.answer, asked.text) == (
        "agent_held",
        "Claude: usage limit reached. It is tried again at 14:00 UTC. Nothing was claimed.",
    )


def test_the_overview_asks_no_more_for_held_agents(held, anna, django_assert_num_queries):
    _page(anna, "/")
    with django_assert_num_queries(7):
        _page(anna, "/")
    AgentProfile.objects.update(hold="", hold_note="", held_at=None, held_until=None)
    Run.objects.update(state="working", held_at=None)
    with django_assert_num_queries(7):
        _page(anna, "/")


def test_a_watch_session_says_what_keeps_it(held, world):
    from runs.watch import switch as auto

    ready(world, "8")
    held.project.parallel_runs = 3
    held.project.save()
    auto.switch(world.lab, held.project, is_on=True, by="anna")
    look(world)
    assert Run.objects.count() == 1
    held.project.refresh_from_db()
    assert held.project.streak == 0


def test_a_profile_that_is_changed_in_admin_is_tried_again(held, anna):
    form = {"name": "Claude", "mode": "interactive", "argv": '["agent", "{prompt}"]'}
    form |= {"env": '{"KEY": "new"}', "resume_argv": "[]", "model_names": "[]", "efforts": "[]"}
    form |= {"login_command": "[]", "login_argv": "[]"}
    address = f"/admin/runs/agentprofile/{held.profile_id}/change/"
    answer = confirmed(anna).post(address, form)
    assert answer.status_code == 302, text_of(answer)
    assert AgentProfile.objects.get(pk=held.profile_id).hold == ""


def test_the_api_tells_of_held_runs_and_agents_and_tries_again(held, anna):
    program = Program.of(User.objects.get())
    run = program.get(f"/runs/{held.pk}").json()
    assert (run["state"], run["held_until"], run["resumes"]) == ("held", "2026-11-21T14:00:00Z", 0)
    assert program.get("/runs", outcome="active").json()["items"][0]["held_until"]
    (agent,) = [one for one in program.get("/agents").json()["items"] if one["hold"]]
    assert agent["hold"] == {
        "trouble": "limit",
        "note": "resets 2pm",
        "since": "2026-11-21T12:00:00Z",
        "until": "2026-11-21T14:00:00Z",
    }
    for _ in range(2):
        answer = program.post(f"/agents/{held.profile_id}/try-again")
        assert (answer.status_code, answer.json()["hold"]) == (200, None)
    assert program.post("/agents/987654321/try-again").status_code == 404


def test_the_project_page_says_why_nothing_starts_and_offers_to_try_again(held, anna):
    text = _page(anna, f"/projects/{held.project_id}/")
    assert re.search(r"Claude: usage limit reached\.\s+Nothing starts with it until", text)
    assert f'formaction="/settings/agents/{held.profile_id}/try-again"' in text


def test_the_list_of_runs_marks_a_held_one(held, anna):
    assert '<span class="dot warn"></span>held' in _page(anna, "/history/")

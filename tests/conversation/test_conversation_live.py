"""A conversation that goes on: its page gets what is new, once, and nothing of what it has."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs.models import Run
from tests.conversation import long_talk
from tests.conversation.conftest import TREE
from tests.web import board_rows as rows
from tests.world import agent_homes as homes

pytestmark = pytest.mark.django_db


def add(home: Path, *lines: Any) -> None:
    with homes.claude_path(home, TREE).open("ab") as file:
        for line in lines:
            file.write(json.dumps(line).encode() + b"\n")


class Tab:
    """An open page: it asks with the tag that it was given last, as htmx does."""

    def __init__(self, client: Client, run: Run, query: str = "") -> None:
        self._client = client
        html = client.get(f"/runs/{run.pk}/conversation/{query}").content.decode()
        found = re.search(
            r'hx-get="([^"]*)"\s+hx-trigger="lab:refresh"[^>]*hx-ptag="([^"]*)"', html
        )
        assert found is not None
        self._address, self._tag = unescape(found[1]), found[2]

    def asks(self) -> str:
        """What comes; empty for 304."""
        headers = {"HX-Request": "true", "HX-PTag": self._tag}
        answer = self._client.get(self._address, headers=headers)
        if answer.status_code == 304:
            return ""
        self._tag = answer["HX-PTag"]
        return answer.content.decode()


@pytest.fixture
def talk(home: Path, claude_run: Run) -> long_talk.Claude:
    made = long_talk.Claude(TREE)
    homes.write(homes.claude_path(home, TREE), [made.says("One.")])
    return made


def test_nothing_new_is_304(anna, claude_run, talk):
    tab = Tab(anna, claude_run)
    assert [tab.asks(), tab.asks()] == ["", ""]


def test_what_is_new_comes_once_and_what_was_there_not_again(anna, home, claude_run, talk):
    tab = Tab(anna, claude_run)
    add(home, talk.says("Two."))
    html = tab.asks()
    assert ("One." in html, "Two." in html) == (False, True)
    assert tab.asks() == ""
    add(home, talk.says("Three."))
    html = tab.asks()
    assert ("Two." in html, "Three." in html) == (False, True)


def test_a_call_that_runs_gets_its_result_when_it_comes(anna, home, claude_run, talk):
    add(home, talk.does("toolu_1", "Bash", command="sleep 1"))
    tab = Tab(anna, claude_run)
    add(home, talk.says("Meanwhile."))
    assert "no result yet" in tab.asks()
    add(home, talk.gets("toolu_1", "slept well"))
    html = tab.asks()
    assert "slept well" in html
    assert "no result yet" not in html
    add(home, talk.says("Later."))
    html = tab.asks()
    assert ("slept well" in html, "Later." in html) == (False, True)


def test_half_a_line_is_no_news(anna, home, claude_run, talk):
    tab = Tab(anna, claude_run)
    raw = json.dumps(talk.says("Slowly.")).encode() + b"\n"
    with homes.claude_path(home, TREE).open("ab") as file:
        file.write(raw[:50])
        file.flush()
        assert tab.asks() == ""
        file.write(raw[50:])
    assert "Slowly." in tab.asks()


def test_a_crowd_of_news_comes_in_pieces(anna, home, claude_run, talk):
    tab = Tab(anna, claude_run)
    add(
        home,
        talk.does("toolu_1", "Bash", command="sleep"),
        *(talk.says(f"N{n}.") for n in range(300)),
    )
    seen: list[str] = []
    while html := tab.asks():
        seen += re.findall(r"N(\d+)\.", html)
    assert seen == [str(n) for n in range(300)]


def test_a_page_in_the_middle_is_left_alone(anna, home, claude_run, talk):
    add(home, *(talk.says(f"N{n}.") for n in range(200)))
    tab = Tab(anna, claude_run, "?start=0")
    add(home, talk.says("New."))
    assert tab.asks() == ""


def test_a_record_that_was_rewritten_is_said_and_not_mixed_in(anna, home, claude_run, talk):
    add(home, *(talk.says(f"N{n}.") for n in range(20)))
    tab = Tab(anna, claude_run)
    homes.write(homes.claude_path(home, TREE), [talk.says("Anew.")])
    html = tab.asks()
    assert ("was rewritten" in html, "Anew." in html) == (True, False)
    assert tab.asks() == ""


def test_a_page_says_that_its_agent_goes_on_in_another_session(anna, home, world, claude_run, talk):
    tab = Tab(anna, claude_run)
    named = Tab(anna, claude_run, f"?record={homes.SESSION}")
    add(home, talk.says("Last of the first."))
    homes.write(
        homes.claude_path(home, TREE, homes.OTHER), [homes.said(TREE, "Second.", homes.OTHER)]
    )
    events = [json.dumps({"event": "SessionStart", "session": homes.OTHER}).encode() + b"\n"]
    world.sessions.events[world.lab.paths.run_folder(claude_run.pk)] = b"".join(events)
    assert "Last of the first." in tab.asks()
    html = tab.asks()
    assert re.search(r'goes on in <a [^>]*href="[^"?]*">session 2</a>', html)
    assert tab.asks() == ""
    assert "goes on" not in named.asks() + named.asks()


@pytest.mark.parametrize(
    "tag",
    ["", "x", ".", "v.1.2.3", "v.-1.5", f"v.{10**20}.0", f"v.1.{'1' * 5000}", "v.\u0664.\u0664"],
)
def test_a_tag_that_is_none_of_ours_does_no_harm(anna, claude_run, talk, tag):
    headers = {"HX-Request": "true", "HX-PTag": tag.encode().decode("latin1")}
    answer = anna.get(f"/runs/{claude_run.pk}/conversation/live", headers=headers)
    assert answer.status_code == 200


@pytest.mark.django_db(transaction=True)
def test_messages_appear_on_an_open_page(open_page, operator, world, home, claude_run, talk):
    rows.a_tick(world)
    add(home, talk.does("toolu_1", "Bash", command="sleep 1"))
    page = open_page(f"/runs/{claude_run.pk}/conversation/", operator)
    page.get_by_text("no result yet").wait_for()
    page.locator("summary", has_text="sleep 1").click()
    add(home, talk.gets("toolu_1", "slept well"), talk.says("New words."))
    page.get_by_text("New words.").wait_for()
    page.get_by_text("slept well").wait_for()  # what was open stays open
    add(home, talk.says("Last words."))
    page.get_by_text("Last words.").wait_for()
    said = page.locator(".said").all_inner_texts()
    assert [len([one for one in said if words in one]) for words in ("One.", "New words.")] == [
        1,
        1,
    ]


@pytest.mark.django_db(transaction=True)
def test_a_record_that_comes_later_appears_on_an_open_page(
    open_page, operator, world, home, claude_run
):
    rows.a_tick(world)
    page = open_page(f"/runs/{claude_run.pk}/conversation/", operator)
    page.get_by_text("No record of a conversation yet").wait_for()
    homes.write(homes.claude_path(home, TREE), [homes.said(TREE, "First words.")])
    page.get_by_text("First words.").wait_for()
    add(home, homes.said(TREE, "Second words.", uuid="u-2"))
    page.get_by_text("Second words.").wait_for()


def test_the_list_of_things_to_do_is_told_when_it_changes(anna, home, claude_run, talk):
    tab = Tab(anna, claude_run)
    add(home, talk.says("Nothing of the list."))
    assert "talk-todos" not in tab.asks()
    entry = {"content": "Mend it", "status": "in_progress", "activeForm": "Mending"}
    add(home, talk.does("toolu_1", "TodoWrite", todos=[entry]))
    html = tab.asks()
    assert 'hx-target="#talk-todos"' in html
    assert "To-do list of the agent" in html
    add(home, talk.gets("toolu_1", "Todos have been modified."))
    tab.asks()
    add(home, talk.says("# A heading and no list"))
    assert "talk-todos" not in tab.asks()

"""Titles as pages, terminals and agents get them: nothing that steers, turns or hides."""

from __future__ import annotations

import io
import unicodedata
from datetime import UTC, datetime
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from labctl import show
from runs.agents import commands
from runs.core import writing
from runs.core.terminal import Printer
from runs.groups import terms as grouping
from trackers import plain
from trackers.base import Issue, Pull, PullState
from trackers.builtin import models as stored
from trackers.builtin import store

EVIL = "\x1b[31mpay \u202eevil\u202c \U000e0041\x9b2J\nnow"
SHOWN = "[31mpay evil 2J now"
FINE = "Größe 漢字 👩‍💻 می‌خواهم → 1.0 ✓️"


@pytest.mark.parametrize(
    "clean",
    [
        pytest.param(plain.line, id="the rule"),
        pytest.param(lambda text: Issue("1", text).title, id="issues of every tracker"),
        pytest.param(lambda text: Pull(1, "afk/1", PullState.OPEN, text).title, id="pull requests"),
        pytest.param(writing.title, id="what people and agents write"),
        pytest.param(writing.one_line, id="rows"),
        pytest.param(lambda text: grouping.subject_of(text, "1"), id="subjects of tasks"),
        pytest.param(show.line, id="the agent's command"),
    ],
)
def test_a_title_is_one_line_without_what_steers_or_hides(clean) -> None:
    assert clean(EVIL) == SHOWN
    assert clean(FINE) == FINE


def test_the_task_of_an_agent_holds_no_control_character_of_a_title() -> None:
    text = commands.task_text(key="7", title=EVIL, branch="afk/7", base="main")
    assert f"by its author: {SHOWN}\n" in text


def test_a_terminal_gets_lines_without_what_steers_it() -> None:
    out = io.StringIO()
    Printer(out).line(f"\tone\n{EVIL}")
    assert out.getvalue() == f"\tone\n{SHOWN.replace(' now', '')}\nnow\n"


def test_the_agents_command_hides_what_labsite_hides() -> None:
    hidden = {code for code in range(0x110000) if plain.text(chr(code)) != chr(code)}
    assert hidden - {ord("\r")} == {
        code for code in range(0x110000) if show.plain(chr(code)) != chr(code)
    } - {ord("\r")}
    for code in hidden:
        assert unicodedata.category(chr(code)) in {"Cc", "Cf", "Zl", "Zp", "Cn"}


@pytest.mark.django_db
def test_titles_that_were_kept_before_are_cleaned_by_the_update() -> None:
    update = import_module("trackers.builtin.migrations.0006_titles_on_one_line")
    root = store.create_root("demo")
    at = datetime(2026, 3, 1, tzinfo=UTC)
    for title in (EVIL, FINE):
        store.create_issue(root, title=title, body="", author="anna", labels=(), at=at)
    update.clean(apps, connection.schema_editor())
    assert list(stored.Issue.objects.order_by("pk").values_list("title", flat=True)) == [
        SHOWN,
        FINE,
    ]

"""A real agent that prints its environment shows nobody the key of its profile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from runs.models import Project, Run
from tests import make
from tests.agents.house import CLAUDE, CODEX, KEY, PRINT
from tests.agents.script import Say, Shell
from tests.api.program import Program
from tests.house.product import written
from tests.patience import PATIENCE
from trackers.builtin.models import IssueComment, PullRequest

# Of another form than the key that every profile of these tests has.
TOKEN = "0123-gateway-Secret"
# Longer than a line of the terminal.
LONG = "eyJhbGciOiJIUzI1NiJ9." + "".join(f"{n:03}aBcD-xYz_{n * n:04}" for n in range(30))
PARTS = [LONG[at : at + 24] for at in range(24, len(LONG) - 24, 24)]
ROWS = frozenset({"runs_agentprofile"})  # where it is kept, encrypted
PRINTED = "env | sort"
PUBLISHED = (
    'echo "$ANTHROPIC_API_KEY$SCRIPTED_KEY" > key.txt && git add key.txt && '
    'git commit -qm "feat: use $ANTHROPIC_API_KEY$SCRIPTED_KEY" && git push -q origin afk/1; '
    'labctl issue comment 1 -m "the key is $ANTHROPIC_API_KEY$SCRIPTED_KEY"; '
    'labctl pr create --title "Use it" --body "Closes #1 with $ANTHROPIC_API_KEY$SCRIPTED_KEY"'
)


@pytest.mark.parametrize("name", [PRINT, CODEX])
def test_a_one_shot_agent_shows_no_key_anywhere(house, name):
    profile = house.profile(name, GATEWAY_TOKEN=TOKEN)
    house.model.script(
        *(Shell(PRINTED), Say(f"I found {KEY}, {KEY[:20]}\n{KEY[20:]} and {TOKEN}.")),
    )
    project = house.project(profile)
    run = house.until_over(house.start(project), PATIENCE)
    assert "[hidden]" in run.last_words, house.told(run)
    _shows_nothing(house, project, run)


@pytest.mark.parametrize("name", [PRINT])
def test_an_agent_that_publishes_its_key_publishes_none(house, name):
    profile = house.profile(name, GATEWAY_TOKEN=TOKEN)
    house.model.script(Shell(PUBLISHED), Say("It is open."))
    project = house.project(profile)
    run = house.until_over(house.start(project), PATIENCE)
    assert run.pull_number, house.told(run)
    assert IssueComment.objects.get().body == "the key is [hidden]"
    assert PullRequest.objects.get().body == "Closes #1 with [hidden]"
    _shows_nothing(house, project, run)


def test_an_interactive_agent_shows_no_key_while_it_works_and_afterwards(house):
    profile = house.profile(CLAUDE, GATEWAY_TOKEN=TOKEN, LONG_TOKEN=LONG)
    if "--settings" not in profile.argv:
        profile.argv[1:1] = ["--settings", '{"skipDangerousModePermissionPrompt": true}']
        profile.save()
    house.model.script(Shell(PRINTED), Say(f"Look:\n\n{LONG}\n\nI found {KEY} and {TOKEN} in it."))
    project = house.project(profile)
    run = house.start(project)
    run = house.until(run, lambda run: "I found" in _screen(house, run), PATIENCE)
    assert "[hidden]" in _screen(house, run)
    _shows_nothing(house, project, run)
    house.real.lab.sessions.kill(run.session, run.marker(house.real.lab.paths))
    run = house.until_over(run, PATIENCE)
    _shows_nothing(house, project, run)


def _screen(house: Any, run: Run) -> str:
    return str(house.real.lab.sessions.screens([run.session]).get(run.session, ""))


def _shows_nothing(house: Any, project: Project, run: Run) -> None:
    """Looks wherever a person, a program or a thief of the database can look."""
    found = {
        place
        for place, text in [*_rows(), *_pages(project, run), *_files(house, run)]
        for secret in (KEY, TOKEN, KEY[20:], *PARTS)
        if secret in text
    }
    assert not found


def _rows() -> Iterator[tuple[str, str]]:
    with connection.cursor() as cursor:
        for table in set(connection.introspection.table_names(cursor)) - ROWS:
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608
            yield table, "\n".join(map(str, cursor.fetchall()))


def _pages(project: Project, run: Run) -> Iterator[tuple[str, str]]:
    anna = make.a_user(f"anna{Run.objects.count()}{run.pk}{run.state}")
    person, program = Client(), Program.of(anna)
    person.force_login(anna)
    paths = [
        reverse("runs:run", args=[run.pk]),
        reverse("runs:run-live", args=[run.pk]),
        *(
            reverse(f"runs:run-{tab}", args=[run.pk])
            for tab in ("terminal", "changes", "prompt", "raw")
        ),
        reverse("runs:project", args=[project.pk]),
        reverse("admin:runs_run_change", args=[run.pk]),
        reverse("admin:runs_run_changelist"),
        reverse("admin:runs_agentprofile_changelist"),
    ]
    if run.pull_number:
        paths.append(reverse("runs:pull", args=[project.pk, run.pull_number]))
        paths.append(reverse("runs:pull-files", args=[project.pk, run.pull_number]))
    for path in paths:
        answer = person.get(path)
        assert answer.status_code == 200, path
        yield path, answer.content.decode()
    for path in (f"/runs/{run.pk}", "/timeline", "/runs"):
        answer = program.get(f"{path}")
        assert answer.status_code == 200, path
        yield path, json.dumps(answer.json(), ensure_ascii=False)


def _files(house: Any, run: Run) -> Iterator[tuple[str, str]]:
    for path, content in written(house.real.paths.run_folder(run.pk)):
        if path.name != "order.json":
            yield path.name, content.decode(errors="replace")

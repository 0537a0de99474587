"""The settings of a project on our pages, and that nobody's change of them is overwritten."""

from __future__ import annotations

import re
import threading
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from runs.models import Notice, Project, Settings
from runs.project_settings import acts, pages
from runs.settings import edits
from runs.settings.acts import TuningRefused
from tests import make
from tests.fakes import World
from tests.patience import PATIENCE
from tests.web import board_rows as rows
from tests.web.people import text_of

# Columns that nobody sets: what labsite found out, counts, or keeps for itself.
NO_SETTINGS = {
    *("id", "name", "slug", "state", "source", "url", "is_hosted", "default_branch", "created_at"),
    *("clone_progress", "clone_deadline", "error", "warning", "origin_warning", "builtin_root"),
    *("token", "hook_secret", "parked", "disk_bytes", "disk_warned", "swept_at", "last_opened_at"),
    *("streak", "last_failure", "retry_at", "kicked_at", "claimable", "blocked", "counted_by"),
    *("home", "silent_since", "issues_of_runs_asked_at", "past_prefixes"),
}


def test_every_column_of_a_project_is_on_one_page_of_settings_or_is_none() -> None:
    seen = {
        *("queue_count", "queue_seen", "held_seen", "queue_seen_at", "pulls_seen", "pulls_closed"),
        *("pulls_seen_at", "queue_asked_at", "asked_every", "asked_why", "pulls_asked_at"),
        *("hooked_at", "issues_hooked_at", "pulls_hooked_at", "watched_at", "changed_at"),
        *("hook_since", "silent_since"),
    }
    places = [name for one in pages.ALL for name in (*one.fields, *one.elsewhere)]
    assert len(places) == len(set(places))
    columns = {field.name for field in Project._meta.concrete_fields}
    assert columns - NO_SETTINGS - seen == set(places)
    assert set(acts.GROUPS) <= {one.key for one in pages.ALL}


@pytest.mark.parametrize(
    ("shown", "now", "names"),
    [
        pytest.param({"a": 1, "b": "x"}, {"a": 1, "b": "x"}, [], id="same"),
        pytest.param({"a": 1, "b": "x"}, {"a": 2, "b": "x"}, ["a"], id="one"),
        pytest.param({"a": None}, {"a": ""}, [], id="nothing is nothing"),
        pytest.param({"a": Decimal("5.00")}, {"a": Decimal(5)}, [], id="amounts"),
        pytest.param({"a": "x\r\ny"}, {"a": "x\ny"}, [], id="ends of lines"),
        pytest.param({"a": True}, {"a": False}, ["a"], id="boxes"),
        pytest.param({"a": 1}, {"a": 1, "b": 2}, [], id="was not shown"),
        pytest.param({"a": "b.1", "b": ""}, {"a": "b.2", "b": ""}, ["a"], id="points"),
    ],
)
def test_a_mark_says_which_fields_were_changed(shown: Any, now: Any, names: list[str]) -> None:
    assert edits.changed(edits.mark(shown), now) == names
    assert edits.changed("", now) == []
    assert "b.1" not in edits.mark(shown)


def seen_in(answer: Any) -> str:
    found = re.search(r'name="seen" value="([^"]+)"', text_of(answer))
    assert found is not None
    return found[1]


LIMITS = {
    "run_budget_minutes": "60",
    "run_tokens_limit": "",
    "run_cost_limit": "",
    "day_tokens_limit": "0",
    "day_cost_limit": "0",
}


@pytest.mark.django_db
def test_each_page_shows_its_settings_with_help_and_default(
    anna: Client, vera: Client, world: World
) -> None:
    project = rows.a_tracked_project()
    for group in pages.ALL:
        text = text_of(anna.get(f"/projects/{project.pk}/settings/{group.key}/"))
        for name in group.fields:
            assert f'name="{name}"' in text
            assert f'id="id_{name}_helptext"' in text
        for link in group.pages(project):
            assert f'href="{link.url}"' in text
    limits = f"/projects/{project.pk}/settings/limits/"
    assert "Now empty means: 45, from the general settings" in text_of(anna.get(limits))
    assert ">Save<" not in text_of(vera.get(limits))
    assert vera.post(limits, LIMITS).status_code == 403
    assert anna.get(f"/projects/{project.pk}/settings/nothing/").status_code == 404


@pytest.mark.django_db
def test_what_is_wrong_stands_at_its_field_and_nothing_is_half_stored(
    anna: Client, world: World
) -> None:
    project = rows.a_tracked_project()
    at = f"/projects/{project.pk}/settings/limits/"
    answer = anna.post(at, {**LIMITS, "day_cost_limit": "-1"})
    assert answer.status_code == 422
    assert 'id="id_day_cost_limit_error"' in text_of(answer)
    project.refresh_from_db()
    assert project.run_budget_minutes is None
    answer = anna.post(at, LIMITS)
    assert answer.status_code == 303
    project.refresh_from_db()
    assert project.run_budget_minutes == 60
    told = Notice.objects.get()
    assert (told.by, told.project_id) == ("anna", project.pk)
    assert told.text == "run budget (minutes) changed from not set to 60"
    anna.post(at, LIMITS)
    assert Notice.objects.count() == 1


@pytest.mark.django_db
def test_an_agent_is_chosen_by_name(anna: Client, world: World) -> None:
    project = rows.a_tracked_project()
    agent = make.an_agent()
    at = f"/projects/{project.pk}/settings/agents/"
    assert anna.post(at, {"agent": "99999"}).status_code == 422
    assert anna.post(at, {"agent": str(agent.pk)}).status_code == 303
    project.refresh_from_db()
    assert project.agent_id == agent.pk
    assert agent.name in Notice.objects.get().text


@pytest.mark.django_db
@pytest.mark.parametrize(("take", "kept"), [("mine", 60), ("theirs", 90)])
def test_a_change_of_somebody_else_is_shown_beside_mine_and_one_is_chosen(
    anna: Client, world: World, take: str, kept: int
) -> None:
    project = rows.a_tracked_project()
    at = f"/projects/{project.pk}/settings/limits/"
    seen = seen_in(anna.get(at))
    acts.store(world.lab, project, {"run_budget_minutes": 90}, by="bert")
    acts.store(world.lab, project, {"trusted": "carla"}, by="carla")
    answer = anna.post(at, {**LIMITS, "seen": seen})
    text = re.sub(r"\s+", " ", text_of(answer))
    assert answer.status_code == 409
    assert "bert changed this" in text
    assert re.findall(r'class="said">([^<]*)', text) == ["60", "90"], text[text.find("bert") :][
        :1500
    ]
    assert 'value="60"' in text
    project.refresh_from_db()
    assert project.run_budget_minutes == 90
    again = {**LIMITS, "seen": seen_in(answer), "take-run_budget_minutes": take}
    assert anna.post(at, again).status_code == 303
    project.refresh_from_db()
    assert project.run_budget_minutes == kept


@pytest.mark.django_db
def test_a_change_of_another_field_is_no_conflict(anna: Client, world: World) -> None:
    project = rows.a_tracked_project()
    at = f"/projects/{project.pk}/settings/limits/"
    seen = seen_in(anna.get(at))
    acts.store(world.lab, project, {"trusted": "carla"}, by="carla")
    assert anna.post(at, {**LIMITS, "seen": seen}).status_code == 303


@pytest.mark.django_db
def test_what_is_no_setting_is_refused(world: World) -> None:
    project = rows.a_tracked_project()
    with pytest.raises(TuningRefused) as refused:
        acts.store(world.lab, project, {"slug": "x", "trusted": "anna"}, by="anna")
    assert set(refused.value.fields) == {"slug"}
    with pytest.raises(TuningRefused):
        acts.store(world.lab, project, {"trusted": "anna", "parallel_runs": 0}, by="anna")
    assert Project.objects.get(pk=project.pk).trusted == ""
    assert Settings.current() is not None


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_of_two_who_save_at_once_one_is_told(world: World) -> None:
    project = rows.a_tracked_project()
    seen = edits.mark({"run_budget_minutes": None})
    go, said = threading.Barrier(2), []

    def save(minutes: int) -> None:
        try:
            go.wait(PATIENCE)
            values = {"run_budget_minutes": minutes}
            said.append(acts.store(world.lab, project, values, by="anna", seen=seen))
        except edits.ChangedMeanwhile:
            said.append(False)
        finally:
            connection.close()

    threads = [threading.Thread(target=save, args=(minutes,)) for minutes in (10, 20)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(PATIENCE)
    assert sorted(said) == [False, True]
    assert Notice.objects.count() == 1


@pytest.mark.django_db
def test_what_was_stored_between_look_and_write_is_not_overwritten(world: World) -> None:
    project = rows.a_tracked_project(run_budget_minutes=10)
    Project.objects.update(run_budget_minutes=20)
    mine = Project.objects.filter(pk=project.pk)
    with pytest.raises(edits.ChangedMeanwhile):
        edits.store(mine, {"run_budget_minutes": 10}, {"run_budget_minutes": 30})
    edits.store(mine, {"run_budget_minutes": 20}, {"run_budget_minutes": 30})
    assert mine.get().run_budget_minutes == 30

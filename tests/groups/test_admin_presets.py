"""Presets of monitors in the admin: the table, ranges, what is locked, and who follows (X-08)."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from runs import tick
from runs.core.states import NoticeKind
from runs.groups import monitors
from runs.models import Checkpoint, Monitor, MonitorPreset, Notice
from tests.fakes import World
from tests.groups.monitor_house import OFFER, a_watched, complete, told
from tests.groups.preset_table import TABLE
from tests.web.people import confirmed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def admin(client: Client, operator: User, world: World) -> Client:
    client.force_login(operator)
    return confirmed(client)


def _at(name: str) -> str:
    row = MonitorPreset.objects.complete().get(name=name)
    return reverse("admin:runs_monitorpreset_change", args=[row.pk])


def _save(admin: Client, name: str, **changed: Any) -> Any:
    row = MonitorPreset.objects.complete().get(name=name)
    values = {n: getattr(row, n) for n in monitors.OPTIONS} | changed
    given = {n: "" if v is None else v for n, v in values.items() if v is not False}
    return admin.post(_at(name), given)


@pytest.mark.row(*(f"RUNE-{n}" for n in range(51, 58)), "X-08", level="contract")
def test_the_admin_shows_the_presets_of_the_table(admin: Client) -> None:
    listed = admin.get(reverse("admin:runs_monitorpreset_changelist")).context["cl"].result_list
    found = {
        p.name: (*(getattr(p, name) for name in monitors.OPTIONS), p.is_unique) for p in listed
    }
    assert found == {name.value: row for name, row in TABLE.items()}


@pytest.mark.row("X-08", "RUNE-60", level="contract")
def test_a_changed_interval_is_followed_by_a_running_monitor(admin: Client, world: World) -> None:
    monitor = a_watched(world, 2)
    own = a_watched(world, 2, name="own", poll_seconds=60)
    tick.tick(world.lab)
    assert _save(admin, "work", poll_seconds=10).status_code == 302
    changed = Notice.objects.get(kind=NoticeKind.SETTING_CHANGED)
    assert (changed.by, changed.text) == (
        "anna",
        "monitor preset work: poll interval (seconds) changed from 30 to 10",
    )
    looks = []
    for second in range(5, 65, OFFER):
        world.clock.forward(seconds=OFFER)
        tick.tick(world.lab)
        count = Notice.objects.filter(group=monitor.group, kind="monitor.progress").count()
        looks += [second] if count > len(looks) + 1 else []
    assert looks == [10, 20, 30, 40, 50, 60]
    assert Monitor.objects.get(pk=own.pk).poll_seconds == 60


@pytest.mark.row("X-08", level="contract")
def test_a_shorter_timeout_holds_at_the_next_pass(admin: Client, world: World) -> None:
    monitor = a_watched(world, 2)
    tick.tick(world.lab)
    complete(monitor, "1")
    world.clock.forward(minutes=20)
    tick.tick(world.lab)
    assert _save(admin, "work", timeout_seconds=600).status_code == 302
    world.clock.forward(seconds=30)
    tick.tick(world.lab)
    monitor.refresh_from_db()
    assert monitor.timed_out
    assert told(NoticeKind.MONITOR_ENDED) == ["Work completed with partial results: 1/2"]


@pytest.mark.row("X-08", level="contract")
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("poll_seconds", 0),
        ("poll_seconds", ""),
        ("stale_seconds", -1),
        ("timeout_seconds", 0),
        ("release_seconds", 31_536_001),
        ("label", ""),
        ("label", "x" * 81),
    ],
)
def test_numbers_outside_their_range_are_refused_at_the_field(
    admin: Client, field: str, wrong: object
) -> None:
    answer = _save(admin, "work", **{field: wrong})
    assert answer.status_code == 200
    assert list(answer.context["adminform"].form.errors) == [field]
    assert not Notice.objects.exists()


@pytest.mark.row("RUNE-45", level="contract")
@pytest.mark.parametrize("name", ["review", "audit"])
def test_unique_findings_have_the_release_time_empty_and_locked(admin: Client, name: str) -> None:
    page = admin.get(_at(name)).context["adminform"]
    assert "release_seconds" in page.readonly_fields
    assert "is_unique" in page.readonly_fields
    _save(admin, name, release_seconds=60, is_unique="")
    row = MonitorPreset.objects.get(name=name)
    assert (row.release_seconds, row.is_unique) == (None, True)
    assert "release_seconds" not in admin.get(_at("work")).context["adminform"].readonly_fields


@pytest.mark.row("RUNE-45", level="contract")
def test_a_work_monitor_of_a_review_keeps_its_tasks_whatever_the_preset_becomes(
    admin: Client, world: World
) -> None:
    monitor = a_watched(world, 1)
    monitor.group.preset = "review"
    monitor.group.save()
    Monitor.objects.update(release_seconds=None)
    _save(admin, "work", release_seconds="")
    _save(admin, "work", release_seconds=60)
    monitor.refresh_from_db()
    assert monitor.release_seconds is None


def test_a_preset_that_was_removed_comes_back_as_it_was_shipped(admin: Client) -> None:
    _save(admin, "work", poll_seconds=7)
    row = MonitorPreset.objects.get(name="work")
    gone = reverse("admin:runs_monitorpreset_delete", args=[row.pk])
    assert admin.post(gone, {"post": "yes"}).status_code == 302
    assert {p.name: p.poll_seconds for p in monitors.presets()}["work"] == 30


def test_monitors_groups_and_checkpoints_are_only_read(admin: Client, world: World) -> None:
    monitor = a_watched(world, 1)
    complete(monitor, "1")
    tick.tick(world.lab)
    point = Checkpoint.objects.get()
    rows = {"monitor": monitor.pk, "taskgroup": monitor.group_id, "checkpoint": point.pk}
    for name, pk in rows.items():
        assert admin.get(reverse(f"admin:runs_{name}_changelist")).status_code == 200
        at = reverse(f"admin:runs_{name}_change", args=[pk])
        assert admin.get(at).status_code == 200
        assert admin.post(at, {}).status_code == 403

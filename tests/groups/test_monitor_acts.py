"""Starting and stopping a monitor: options, presets, refusals (RUNE-01 to RUNE-11, RUNE-45)."""

from __future__ import annotations

from typing import Any

import pytest

from runs.core.states import NoticeKind
from runs.groups import monitors
from runs.groups.terms import MonitorState, PresetName
from runs.models import Monitor, MonitorPreset, Notice, TaskGroup
from tests import make
from tests.fakes import World
from tests.groups.preset_table import TABLE

pytestmark = pytest.mark.django_db(transaction=True)


def a_group(tasks: int = 3, **fields: Any) -> TaskGroup:
    return make.a_group(make.a_project(), tasks=tasks, **fields)


def _row(preset: MonitorPreset | Monitor) -> tuple[Any, ...]:
    return tuple(getattr(preset, name) for name in monitors.OPTIONS)


@pytest.mark.row(*(f"RUNE-{n}" for n in range(51, 58)), level="contract")
def test_the_presets_are_those_of_the_table(world: World) -> None:
    found = {p.name: (*_row(p), p.is_unique) for p in monitors.presets()}
    assert found == {name.value: row for name, row in TABLE.items()}


@pytest.mark.row(*(f"RUNE-{n}" for n in range(51, 58)), level="contract")
@pytest.mark.parametrize("name", list(TABLE))
def test_a_monitor_has_the_options_of_the_groups_preset(world: World, name: PresetName) -> None:
    monitor = monitors.start(world.lab, a_group(preset=name), by="anna", phase="work")
    wanted = list(TABLE[name][:6])
    wanted[0] = wanted[0].replace("{phase}", "work")
    assert _row(monitor) == tuple(wanted)
    assert monitor.preset == name


@pytest.mark.row("RUNE-06", "RUNE-07", "RUNE-08", "RUNE-09", "RUNE-10", "RUNE-11", level="contract")
def test_what_is_not_given_is_the_default(world: World) -> None:
    monitor = monitors.start(world.lab, a_group(), by="anna", preset="")
    assert _row(monitor) == ("Monitor", 30, 300, None, None, False)
    assert monitor.expected == 3
    assert Notice.objects.get().text.startswith("Monitor: ")


@pytest.mark.row("RUNE-01", level="contract")
def test_each_option_can_be_given(world: World) -> None:
    given = {
        "label": "Night  shift",
        "poll_seconds": 10,
        "stale_seconds": 60,
        "timeout_seconds": "",
        "release_seconds": 90,
        "has_checkpoints": False,
    }
    group = a_group()
    monitor = monitors.start(world.lab, group, by="anna", given=given, expected=5)
    stored = Monitor.objects.get(pk=monitor.pk)
    assert _row(stored) == ("Night shift", 10, 60, None, 90, False)
    assert (stored.expected, stored.started_by, stored.preset) == (5, "anna", "work")
    told = Notice.objects.get()
    assert (told.kind, told.group, told.by) == (NoticeKind.MONITOR_STARTED, group, "anna")
    assert world.bell.looks == ["demo"]


@pytest.mark.row("RUNE-01", "RUNE-45", "X-08", level="contract")
@pytest.mark.parametrize(
    ("preset", "given", "expected", "field"),
    [
        pytest.param("nothing", {}, None, "preset", id="unknown preset"),
        pytest.param("work", {"colour": 1}, None, "colour", id="unknown option"),
        pytest.param("work", {"poll_seconds": 0}, None, "poll_seconds", id="no interval"),
        pytest.param("work", {"poll_seconds": ""}, None, "poll_seconds", id="empty interval"),
        pytest.param("work", {"stale_seconds": "soon"}, None, "stale_seconds", id="no number"),
        pytest.param("work", {"timeout_seconds": 0}, None, "timeout_seconds", id="no time"),
        pytest.param("work", {"timeout_seconds": 2**40}, None, "timeout_seconds", id="ages"),
        pytest.param("work", {"label": " "}, None, "label", id="no label"),
        pytest.param("work", {"label": "x" * 81}, None, "label", id="long label"),
        pytest.param("work", {}, -1, "expected", id="fewer than none"),
        pytest.param("review", {"release_seconds": 60}, None, "release_seconds", id="review"),
        pytest.param("audit", {"release_seconds": 60}, None, "release_seconds", id="audit"),
    ],
)
def test_what_is_wrong_is_refused_by_its_name(
    world: World, preset: str, given: dict[str, Any], expected: int | None, field: str
) -> None:
    group = a_group()
    with pytest.raises(monitors.MonitorRefused) as refused:
        monitors.start(world.lab, group, by="anna", preset=preset, given=given, expected=expected)
    assert list(refused.value.fields) == [field]
    assert not Monitor.objects.exists()
    assert not Notice.objects.exists()


@pytest.mark.row("RUNE-45", level="contract")
def test_tasks_of_a_review_are_not_given_back_under_another_preset_either(world: World) -> None:
    group = a_group(preset="review")
    with pytest.raises(monitors.MonitorRefused):
        monitors.start(world.lab, group, by="anna", preset="work")
    assert monitors.start(
        world.lab, group, by="anna", preset="work", given={"release_seconds": None}
    )


@pytest.mark.row("RUNE-03", level="contract")
def test_a_group_that_is_closed_or_gone_is_not_watched(world: World) -> None:
    group = a_group(closed_at=world.clock())
    with pytest.raises(monitors.MonitorRefused):
        monitors.start(world.lab, group, by="anna")
    TaskGroup.objects.all().delete()
    with pytest.raises(monitors.MonitorRefused):
        monitors.start(world.lab, group, by="anna")


@pytest.mark.postgres
def test_of_two_monitors_of_a_group_the_second_is_refused_and_names_the_first(
    world: World,
) -> None:
    group = a_group()
    first = monitors.start(world.lab, group, by="anna")
    with pytest.raises(monitors.AlreadyWatched) as refused:
        monitors.start(world.lab, group, by="vera")
    assert refused.value.monitor == first
    assert monitors.stop(world.lab, first, by="anna")
    assert monitors.start(world.lab, group, by="vera").pk != first.pk


def test_a_monitor_is_stopped_once_and_tells_who_did_it(world: World) -> None:
    monitor = monitors.start(world.lab, a_group(), by="anna")
    assert monitors.stop(world.lab, monitor, by="vera")
    assert not monitors.stop(world.lab, monitor, by="anna")
    stored = Monitor.objects.get()
    assert (stored.state, stored.ended_by, stored.result) == (MonitorState.STOPPED, "vera", None)
    told = Notice.objects.filter(kind=NoticeKind.MONITOR_ENDED)
    assert [one.by for one in told] == ["vera"]

"""Equal passes of monitors become one entry; nothing else of the timeline is touched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from runs.api import showing
from runs.core.states import NoticeKind
from runs.models import Delivery, Notice, NoticeAddress, Settings
from runs.notices import pruning
from runs.notices.rules import Delivering
from runs.timeline import folding, queries
from runs.timeline.fold_rules import Fold, Passed, fold
from runs.timeline.folding import Folding
from tests import make
from tests.fakes import World

pytestmark = pytest.mark.postgres

OLD = timedelta(days=8)
AT = datetime(2026, 11, 1, tzinfo=UTC)


def passed(pk: int, text: str, **more: Any) -> Passed:
    return Passed(pk, text, AT + timedelta(minutes=pk), **more)


def told(folds: list[Fold]) -> list[tuple[int, str, int, tuple[int, ...]]]:
    return [(one.kept.pk, one.kept.text, one.kept.times, one.gone) for one in folds]


@pytest.mark.parametrize(
    ("passes", "wanted"),
    [
        ([], []),
        ([passed(1, "1/5")], [(1, "1/5", 1, ())]),
        ([passed(1, "1/5"), passed(2, "1/5"), passed(3, "1/5")], [(3, "1/5", 3, (1, 2))]),
        # What was so again later is an entry of its own.
        (
            [passed(1, "1/5"), passed(2, "2/5"), passed(3, "1/5")],
            [(1, "1/5", 1, ()), (2, "2/5", 1, ()), (3, "1/5", 1, ())],
        ),
        # Two that tell by turns: each in its own row.
        (
            [passed(1, "a: 1/5"), passed(2, "b"), passed(3, "a: 1/5"), passed(4, "b")],
            [(3, "a: 1/5", 2, (1,)), (4, "b", 2, (2,))],
        ),
        # One that was folded before goes on.
        ([passed(5, "x", times=7, since=AT), passed(6, "x")], [(6, "x", 8, (5,))]),
    ],
)
def test_equal_passes_in_a_row_are_one(
    passes: list[Passed], wanted: list[tuple[int, str, int, tuple[int, ...]]]
) -> None:
    assert told(fold(passes)) == wanted


def test_a_fold_begins_with_the_first_that_was_told() -> None:
    kept = fold([passed(5, "x", times=7, since=AT), passed(6, "x")])[0].kept
    assert (kept.since, kept.at) == (AT, AT + timedelta(minutes=6))


def _passes(world: World, group: Any, texts: list[str], **more: Any) -> list[int]:
    """Entries of a group, one a minute, from eight days ago."""
    rows = [
        Notice(
            **{
                "at": world.clock.now - OLD + timedelta(minutes=number),
                "kind": NoticeKind.MONITOR_PROGRESS,
                "project": group.project,
                "group": group,
                "text": text,
                "is_news": False,
                **more,
            }
        )
        for number, text in enumerate(texts)
    ]
    return [row.pk for row in Notice.objects.bulk_create(rows)]


def _texts() -> list[tuple[str, int | None]]:
    return list(Notice.objects.order_by("pk").values_list("text", "times"))


@pytest.mark.django_db
def test_old_passes_are_folded_in_steps_and_a_second_turn_finds_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "AT_ONCE", 4)
    one, other = make.a_group(make.a_project(), "one"), make.a_group(make.a_project("b"), "other")
    _passes(world, one, ["1/5"] * 7 + ["2/5"] * 3)
    _passes(world, other, ["1/5"] * 2)
    new = _passes(world, one, ["2/5", "2/5"], at=world.clock.now)
    turns = Folding()
    assert turns.tend(world.lab) == 9
    assert _texts() == [("1/5", 7), ("2/5", 3), ("1/5", 2), ("2/5", None), ("2/5", None)]
    assert Folding().tend(world.lab) == turns.tend(world.lab) == 0
    # Later these are old too, and go on from what was folded before.
    world.clock.forward(days=9)
    assert turns.tend(world.lab) + turns.tend(world.lab) == 2
    last = Notice.objects.get(pk=new[-1])
    assert (last.times, last.since) == (
        5,
        world.clock.now - timedelta(days=9) - OLD + timedelta(minutes=7),
    )


@pytest.mark.django_db
def test_nothing_else_is_touched(world: World) -> None:
    project = make.a_project()
    group, run = make.a_group(project), make.a_run(project)
    address = NoticeAddress.objects.create(
        user=make.a_user(), name="x", url="json://x", created_at=world.clock.now
    )
    _passes(world, group, ["x", "x"], run=run, kind=NoticeKind.RUN_STEP)
    _passes(world, group, ["x", "x"], kind=NoticeKind.MONITOR_CHECKPOINT)
    _passes(world, group, ["x", "x"], kind=NoticeKind.MONITOR_WARNED)
    for pk in _passes(world, group, ["x", "x"]):  # somebody was sent these
        Delivery.objects.create(
            address=address,
            notice_id=pk,
            title="t",
            created_at=world.clock.now,
            next_at=world.clock.now,
        )
    assert Folding().tend(world.lab) == 0
    assert _texts() == [("x", None)] * 8


@pytest.mark.django_db
def test_a_turn_ends_after_so_many_steps_and_the_next_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "AT_ONCE", 2)
    monkeypatch.setattr(folding, "STEPS", 2)
    _passes(world, make.a_group(make.a_project()), ["x"] * 6)
    turns = Folding()
    assert [turns.tend(world.lab) for _ in range(4)] == [3, 2, 0, 0]
    assert _texts() == [("x", 6)]


@pytest.mark.django_db
@pytest.mark.both_databases
def test_who_reads_on_from_a_folded_entry_misses_nothing(world: World) -> None:
    project = make.a_project()
    group = make.a_group(project)
    first = _passes(world, group, ["x"] * 120)
    between = _passes(world, group, ["a task"], kind=NoticeKind.TASK_COMPLETED)
    after = _passes(world, group, ["y", "y"])
    Folding().tend(world.lab)
    for seen in (0, first[0], first[60], first[-2], between[0], after[0]):
        got = [row.pk for row in queries.after(seen, 50)]
        wanted = [pk for pk in (first[-1], between[0], after[-1]) if pk > seen]
        assert got[-len(wanted) :] == wanted  # on PostgreSQL some may come once more
    assert queries.newest() == after[-1]


@pytest.mark.django_db
def test_page_and_api_say_how_often_and_since_when(client: Client, world: World) -> None:
    group = make.a_group(make.a_project())
    _passes(world, group, ["Wave: 1/5 tasks"] * 3)
    Folding().tend(world.lab)
    entry = showing.entry(Notice.objects.get())
    assert (entry.times, entry.since) == (3, world.clock.now - OLD)
    client.force_login(make.a_user())
    page = client.get(f"/projects/{group.project_id}/groups/{group.pk}/").content.decode()
    assert "×3" in page
    assert "2026-11-13 12:00 UTC" in page


@pytest.mark.django_db
def test_a_turn_with_nothing_to_do_costs_one_read_of_an_index(
    world: World, django_assert_num_queries: Any
) -> None:
    Settings.current()
    with django_assert_num_queries(2):
        Folding().tend(world.lab)
    rows = folding.waiting().filter(group__gt=1).order_by("group_id", "pk")[:1]
    if connection.vendor == "sqlite":
        assert "notice_unfolded" in rows.explain()


@pytest.mark.django_db
def test_what_was_sent_long_ago_is_removed_and_what_is_open_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "AT_ONCE", 2)
    address = NoticeAddress.objects.create(
        user=make.a_user(), name="x", url="json://x", created_at=world.clock.now
    )
    now = world.clock.now

    def sent(days: int, state: Delivering = Delivering.FAILED) -> None:
        at = now - timedelta(days=days)
        Delivery.objects.create(
            address=address, title=f"{days}", state=state, created_at=at, next_at=at
        )

    for days in (200, 150, 91):
        sent(days)
    sent(95, Delivering.WAITING)
    sent(89)
    assert pruning.tend(world.lab) == 3
    assert pruning.tend(world.lab) == 0
    assert [one.title for one in Delivery.objects.order_by("pk")] == ["95", "89"]


@pytest.mark.django_db
def test_what_nobody_can_be_sent_holds_up_no_removal(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the notices of somebody who was deactivated, which wait for good."""
    monkeypatch.setattr(pruning, "AT_ONCE", 2)
    address = NoticeAddress.objects.create(
        user=make.a_user(), name="x", url="json://x", created_at=world.clock.now
    )
    at = world.clock.now - timedelta(days=200)
    for state in [*[Delivering.WAITING] * 3, *[Delivering.FAILED] * 3]:
        Delivery.objects.create(
            address=address, title=state, state=state, created_at=at, next_at=at
        )
    assert pruning.tend(world.lab) == 3
    assert {one.title for one in Delivery.objects.all()} == {Delivering.WAITING}

"""Changing the tunable numbers from outside the admin: the same limits, the same words."""

from __future__ import annotations

import pytest

from runs.models import Notice, Settings
from runs.settings import acts as tuning
from runs.settings.acts import NUMBERS, TuningRefused
from tests.fakes import World

pytestmark = pytest.mark.django_db


@pytest.mark.row("X-08", level="contract")
def test_numbers_are_stored_and_told_with_the_name(world: World) -> None:
    tuning.tune(world.lab, {"session_cap": 9, "tick_seconds": 30}, by="anna")

    assert Settings.current().session_cap == 9
    notice = Notice.objects.get()
    assert (notice.text, notice.by) == ("session cap changed from 6 to 9", "anna")


def test_what_is_so_already_is_not_told(world: World) -> None:
    tuning.tune(world.lab, {"session_cap": 6}, by="anna")
    assert not Notice.objects.exists()


@pytest.mark.parametrize(
    ("numbers", "field", "said"),
    [
        ({"session_cap": 0}, "session_cap", "1"),
        ({"session_cap": 501}, "session_cap", "500"),
        ({"tick_seconds": -5}, "tick_seconds", "5"),
        ({"run_budget_minutes": 10**30}, "run_budget_minutes", "10080"),
        ({"model": 5}, "model", "no such number"),
        ({"id": 2}, "id", "no such number"),
    ],
)
def test_a_wrong_number_stores_nothing_at_all(
    world: World, numbers: dict[str, int], field: str, said: str
) -> None:
    with pytest.raises(TuningRefused) as refused:
        tuning.tune(world.lab, {"refresh_seconds": 10, **numbers}, by="anna")
    assert set(refused.value.fields) == {field}
    assert said in refused.value.fields[field]
    assert Settings.current().refresh_seconds == 4
    assert not Notice.objects.exists()


def test_every_number_of_the_model_may_be_tuned() -> None:
    kinds = ("PositiveIntegerField", "PositiveBigIntegerField", "DecimalField")
    numbers = {f.name for f in Settings._meta.fields if f.get_internal_type() in kinds}
    assert numbers == set(NUMBERS)

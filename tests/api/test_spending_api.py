"""What programs are told of the day's use and of limits, and how they set them."""

from __future__ import annotations

import pytest

from runs.models import Settings
from tests import make
from tests.api.program import denied
from tests.fakes import START

pytestmark = pytest.mark.django_db
TODAY = "2026-11-21"
OVER = {"outcome": "died", "ended_at": START, "settled_at": START, "spent_on": TODAY}


def test_the_day_is_summed_up_with_what_nobody_knows_and_what_is_held(program, world):
    one, other = make.a_project("one"), make.a_project("other", day_tokens_limit=50)
    make.a_run(one, **OVER, spent_days=[[TODAY, 100, "1.25"]])
    make.a_run(one, "8", **OVER, spent_days=[[TODAY, 30, None]])
    make.a_run(other, **OVER, spent_days=[[TODAY, 60, None]])
    told = program.get("/spending").json()
    assert told["day"] == TODAY
    assert told["all"] == {
        "tokens": 190,
        "cost_usd": 1.25,
        "runs": 3,
        "unpriced": 2,
        "silent": 0,
    }
    rows = [(row["project"], row["cost_usd"], bool(row["held"])) for row in told["projects"]]
    assert rows == [(one.pk, 1.25, False), (other.pk, None, True)]


def test_limits_are_set_and_shown_like_other_numbers(program, world):
    given = {"run_tokens_limit": 500_000, "day_cost_limit": 12.5}
    told = program.send("PATCH", "/settings", given).json()
    assert (told["run_tokens_limit"], told["day_cost_limit"]) == (500_000, 12.5)
    assert Settings.current().run_tokens_limit == 500_000
    denied(program.send("PATCH", "/settings", {"day_cost_limit": -1}), 422, "invalid")
    told = program.send("PATCH", "/settings", {"day_cost_limit": 0.001, "run_cost_limit": 1.1})
    limits = told.json()
    assert (limits["day_cost_limit"], limits["run_cost_limit"]) == (0.01, 1.1)


def test_a_project_shows_its_own_limits(program, world):
    made = make.a_project(run_cost_limit="2.50", day_tokens_limit=7)
    told = program.get(f"/projects/{made.pk}").json()
    limits = [told[f"{name}_limit"] for name in ("run_tokens", "run_cost", "day_tokens")]
    assert limits == [None, 2.5, 7]

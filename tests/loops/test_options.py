"""Options of `./lab loop`: what is understood, and that they hold for one run alone."""

from __future__ import annotations

from decimal import Decimal

import pytest

from runs.core import budgets
from runs.dispatch import start_requests
from runs.loops import options, stored
from runs.loops.options import WrongOption
from runs.models import LoopTerms, Run, StartRequest
from tests.fakes import World
from tests.loops.desk import Desk, project_of, topic
from tests.world.stories import look, ready, work


@pytest.mark.parametrize(
    ("option", "text", "columns"),
    [
        ("max-turns", "1", {"max_turns": 1}),
        ("max-turns", " 1000000 ", {"max_turns": 1_000_000}),
        ("max-turns", "none", {"max_turns": None}),
        ("max-runtime", "90", {"max_seconds": 90}),
        ("max-runtime", "4h", {"max_seconds": 14_400}),
        ("max-runtime", "none", {"max_seconds": None}),
        ("max-runtime", "8784h", {"max_seconds": 366 * 86_400}),
        ("max-cost", "0.01", {"max_cost": "0.01"}),
        ("max-cost", "9999999999.99", {"max_cost": "9999999999.99"}),
        ("max-cost", "2.5", {"max_cost": "2.50"}),
        ("max-cost", "1e2", {"max_cost": "100.00"}),
        ("max-cost", "none", {"max_cost": None}),
        ("cooldown", "0", {"cooldown_seconds": 0}),
        ("cooldown", "24h", {"cooldown_seconds": 86_400}),
        ("completion-word", "all.done", {"completion": "all.done"}),
    ],
)
def test_what_is_typed_becomes_columns_of_the_settings(option, text, columns):
    assert options.read({option: text}) == columns


@pytest.mark.parametrize(
    ("option", "text"),
    [
        *(("max-turns", text) for text in ("", "0", "-1", "1.5", "1000001", "1" * 5000, "²")),
        *(("max-runtime", text) for text in ("", "0", "-1", "1d", "4 h", "31622401", "٣")),
        *(
            ("max-cost", text)
            for text in ("", "0", "-1", "0.001", "nan", "inf", "1e99", "$2", "2.505", "٣")
        ),
        *(("cooldown", text) for text in ("", "none", "86401", "-1")),
        *(("completion-word", text) for text in ("", "two words", "a" * 101, "-x")),
    ],
)
def test_what_is_no_value_is_refused_by_the_name_of_its_option(option, text):
    with pytest.raises(WrongOption, match=f"^--{option} is "):
        options.read({option: text})


def test_what_was_not_typed_is_left_to_the_project():
    assert options.read(dict.fromkeys(options.OPTIONS)) == {}
    assert options.values({}) == {}
    assert options.values({"max_cost": "2.50"}) == {"max_cost": Decimal("2.50")}
    kept = {options.OBJECTIVE: "x", options.ROLES: [], "max_turns": 2}
    assert options.values(kept) == {"max_turns": 2}
    assert (options.objective(kept), options.objective({})) == ("x", "")
    assert set(kept) == {"objective", "roles", "max_turns"}
    assert options.values({"max_cost": None}) == {"max_cost": None}
    assert budgets.typed_seconds("10m") == 600


def test_a_prompt_is_cleaned_and_has_a_most() -> None:
    assert options.prompt(" Do it.\r\n", "PROMPT.md") == "Do it."
    assert len(options.prompt("x" * 30_000, "PROMPT.md")) == 30_000
    with pytest.raises(WrongOption, match=r"^PROMPT.md has more than 30,000 characters"):
        options.prompt("x" * 30_001, "PROMPT.md")
    with pytest.raises(WrongOption, match=r"^PROMPT.md is empty"):
        options.prompt(" \n", "PROMPT.md")


@pytest.mark.django_db(transaction=True)
@pytest.mark.row("RALPH-12", "RALPH-14", level="contract")
def test_options_of_a_start_are_over_the_settings_for_its_loop_alone(world: World) -> None:
    project = project_of(world, max_turns=9, max_cost=Decimal(5))
    wanted = options.read({"max-turns": "2", "max-runtime": "10m", "max-cost": "none"})
    wanted |= options.read({"completion-word": "FINISHED", "cooldown": "7s"})
    ready(world)
    start_requests.request(world.lab, project, "anna", loop_options=wanted)
    look(world)
    work(world)
    run = Run.objects.get()
    desk = Desk(world, run)
    terms = stored.terms(desk.loop.terms["rules"])
    assert (terms.limits.turns, terms.limits.cost, terms.completion) == (2, None, "FINISHED")
    assert desk.loop.terms["cooldown_seconds"] == 7
    assert run.own_budget_seconds == 600 + 3600
    desk.begin()
    desk.finish(topic("LOOP_COMPLETE"))
    assert desk.loop.end == ""
    kept = LoopTerms.objects.get()
    assert (kept.max_turns, kept.max_cost, kept.completion) == (9, Decimal(5), "LOOP_COMPLETE")


@pytest.mark.django_db(transaction=True)
def test_a_request_is_taken_back_only_before_it_is_answered(world: World) -> None:
    project = project_of(world)
    asked = start_requests.request(world.lab, project, "anna")
    StartRequest.objects.update(answer="started")
    assert not start_requests.withdraw(asked)
    StartRequest.objects.update(answer="")
    assert start_requests.withdraw(asked)
    assert not StartRequest.objects.exists()

"""Turns and tokens of agents that print none, from their own records: live, bounded, and at the end."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from runs import tick
from runs.models import AgentProfile, Run
from runs.transcript import own_usage
from tests import make
from tests.fakes import START, World
from tests.transcript.test_usage_rules import message, thread, turn
from tests.world import agent_homes as homes
from tests.world.agent_homes import AGENT, OTHER, SESSION, THREAD

pytestmark = pytest.mark.django_db(transaction=True)

TREE = "/srv/work.trees/demo-7"
CLAUDE = {"argv": ["claude", "{prompt}"], "trust": "claude"}
CODEX = {"argv": ["codex", "{prompt}"]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def a_run(world: World, agent: dict[str, object] = CLAUDE, **fields: object) -> Run:
    """A run at work, as its page and the tick know it."""
    profile = make.an_agent(name=f"Agent {AgentProfile.objects.count()}", **agent)
    session = SESSION if agent is CLAUDE else ""
    told = {"worktree": TREE, "agent_session": session, "requested_at": START, **fields}
    name = f"project-{profile.pk}"
    run = make.a_run(make.a_project(name), profile=profile, **told)
    world.live(run)
    return run


def said(ident: str, seconds: float = 10, **more: object) -> dict[str, object]:
    return {**homes.said(TREE), **message(ident, seconds), **more}


def looked(world: World, run: Run) -> Run:
    world.clock.forward(seconds=6)
    tick.tick(world.lab)
    run.refresh_from_db()
    return run


def numbers(run: Run) -> tuple[int | None, ...]:
    return run.turns, run.tokens_in, run.tokens_cached, run.tokens_out


def test_the_numbers_of_interactive_claude_code_are_kept_as_they_come(world, home):
    run = a_run(world)
    path = homes.write(homes.claude_path(home, TREE), [said("m1")])
    assert numbers(looked(world, run)) == (1, 120, 20, 10)
    homes.write(homes.agent_path(path), [said("m2", isSidechain=True)])
    with path.open("a") as file:
        file.write(json.dumps(said("m3", 20)) + "\n")
    run = looked(world, run)
    assert numbers(run) == (2, 360, 60, 30)
    assert (run.agent_model, run.context_tokens, run.context_window) == ("opus", 120, None)
    assert run.cost_usd is None
    assert run.spent_days == [["2026-11-21", 390, None]]


def test_the_numbers_of_interactive_codex_are_kept_with_its_window(world, home):
    run = a_run(world, CODEX)
    lines = [homes.codex_meta(TREE), turn(), thread(400, 10)]
    homes.write(homes.codex_path(home), lines)
    run = looked(world, run)
    assert numbers(run) == (1, 400, 40, 20)
    assert (run.context_tokens, run.context_window) == (77, 1000)


def test_codex_in_one_shot_tells_its_tokens_before_its_end(world, home):
    fields = {"mode": "one_shot", "output": "codex_exec_json", "agent_session": THREAD}
    run = a_run(world, CODEX, **fields)
    homes.write(homes.codex_path(home), [homes.codex_meta(TREE), turn(), thread(400, 10)])
    assert numbers(looked(world, run)) == (1, 400, 40, 20)


def test_a_record_of_another_session_is_not_the_runs(world, home):
    run = a_run(world)
    line = {**said("m1"), "sessionId": OTHER}
    homes.write(homes.claude_path(home, TREE), [line])
    assert numbers(looked(world, run)) == (None, None, None, None)


def test_a_look_that_finds_nothing_new_writes_nothing(world, home, django_assert_num_queries):
    run = a_run(world)
    homes.write(homes.claude_path(home, TREE), [said("m1")])
    looked(world, run)
    run = Run.objects.select_related("profile").get()  # as a tick reads it
    with django_assert_num_queries(0):
        assert own_usage.listen(world.lab, [run]) == 0


def test_a_hundred_megabytes_are_read_in_pieces_and_all_of_them_count(world, home):
    run = a_run(world)
    line = json.dumps(said("m0", x="y" * 200_000)).encode() + b"\n"
    path = homes.write(homes.claude_path(home, TREE), [])
    with path.open("wb") as file:
        for number in range(500):
            file.write(line.replace(b'"m0"', f'"n{number:03}"'.encode()))
    assert path.stat().st_size > 100_000_000
    looks = 0
    while own_usage.listen(world.lab, [run]):
        looks += 1
        assert run.own_usage["places"][0][1] <= looks * own_usage.OF_ONE
    assert (numbers(run)[:2], looks) == ((500, 60_000), 50)


def test_one_agent_that_writes_much_keeps_no_other_from_being_read(world, home):
    loud, quiet = a_run(world), a_run(world, agent_session=OTHER, session="s-8")
    big = homes.write(homes.claude_path(home, TREE), [said("m1")])
    with big.open("ab") as file:
        file.write(b"{}\n" * 4_000_000)
    line = {**said("m1"), "sessionId": OTHER}
    homes.write(homes.claude_path(home, TREE, OTHER), [line])
    own_usage.listen(world.lab, [loud, quiet])
    quiet.refresh_from_db()
    assert numbers(quiet) == (1, 120, 20, 10)


def test_a_record_that_is_truncated_takes_nothing_back(world, home):
    run = a_run(world)
    path = homes.write(homes.claude_path(home, TREE), [said("m1", 10), said("m2", 11)])
    looked(world, run)
    homes.write(path, [said("m2", 11), said("m3", 12)])
    assert numbers(looked(world, run)) == (3, 360, 60, 30)


def test_what_is_told_after_the_end_counts_for_the_day_on_which_the_run_ended(world, home):
    run = a_run(world)
    homes.write(homes.claude_path(home, TREE), [said("m1")])
    Run.objects.filter(pk=run.pk).update(
        outcome="stopped", state="ended", ended_at=START + timedelta(seconds=20)
    )
    world.clock.forward(seconds=86_400)
    tick.tick(world.lab)
    run.refresh_from_db()
    assert run.settled_at is not None
    assert numbers(run) == (1, 120, 20, 10)
    assert run.spent_days == [["2026-11-21", 130, None]]


def test_an_agent_of_which_nothing_can_be_read_has_no_numbers(world):
    run = a_run(world, {"argv": ["aider", "{prompt}"]})
    assert numbers(looked(world, run)) == (None, None, None, None)
    assert AGENT not in str(run.own_usage)

"""The page of a loop run: where it stands, its turns, one in full, and what people ask of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from runs.core.states import NoticeKind
from runs.loop_pages import run_card, turn_page
from runs.loops import acts, stored
from runs.loops.rules import Counters
from runs.models import AgentProfile, Loop, LoopGuidance, LoopMemory, LoopTurn, Notice
from runs.web import fragments
from tests import make
from tests.fakes import START, World
from tests.loops.desk import Desk, desk_of, project_of, topic
from tests.specs.test_pages import said

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def desk(world: World) -> Desk:
    return desk_of(world, project_of(world, max_turns=50))


@pytest.fixture
def anna(client: Client, operator: User) -> Client:
    client.force_login(operator)
    return client


def at(desk: Desk, name: str = "run", *more: object) -> str:
    return reverse(f"runs:{name}", args=[desk.run.pk, *more])


def shown(anna: Client, desk: Desk, name: str = "run", *more: object) -> str:
    answer = anna.get(at(desk, name, *more))
    assert answer.status_code == 200
    return said(answer)


def many(desk: Desk, count: int, **columns: Any) -> None:
    """So many turns more, as they are stored."""
    last = desk.turn
    values = {"cost": Decimal("0.25"), "used_seconds": 61.0, "used_cost": Decimal(1), **columns}
    LoopTurn.objects.filter(ended_at=None).update(ended_at=START)
    LoopTurn.objects.bulk_create(
        LoopTurn(
            loop=desk.loop, generation=1, number=number, role="coordinator", facts=last.facts,
            ordered_at=START, ended_at=START, seconds=61, exit_code=0, tokens_in=1000,
            tokens_out=500, events=[topic("build.done")], answer="x" * 2000, used_turns=number, **values,
        )
        for number in range(last.number + 1, last.number + 1 + count)
    )  # fmt: skip
    Loop.objects.update(number=last.number + count)


@pytest.mark.row("RALPH-26", "RALPH-83", "X-16", level="contract")
def test_the_card_says_where_the_loop_stands(anna: Client, desk: Desk) -> None:
    assert "about to begin" in shown(anna, desk)
    desk.begin()
    page = shown(anna, desk)
    assert "turn 1 of at most 50" in page
    assert "Working as coordinator." in page
    desk.finish(topic("build.done"), topic("tests.passed"), output="I built it.\n")
    page = shown(anna, desk)
    assert "turn 2 of at most 50" in page
    assert "build.done +1" in page
    assert "exit 0" in page
    assert "Turns 1 of 50" in page
    assert "unknown: its agent reports no cost" in page
    desk.finish(topic("LOOP_COMPLETE"))
    page = shown(anna, desk)
    assert "completed" in page
    assert "Exit code 0" in page
    assert "Stop after this turn" not in page
    assert "Send guidance" not in page


def test_a_run_without_a_loop_has_no_card(anna: Client, world: World) -> None:
    run = make.a_run(make.a_project())
    page = said(anna.get(reverse("runs:run", args=[run.pk])))
    assert "Send guidance" not in page
    assert anna.get(reverse("runs:run-turns", args=[run.pk])).status_code == 404
    assert anna.get(reverse("runs:run-turn", args=[run.pk, 1, 1])).status_code == 404


@pytest.mark.row("X-16", level="contract")
def test_limits_of_time_and_money_are_shown_as_they_are_used(anna: Client, world: World) -> None:
    desk = desk_of(world, project_of(world, max_turns=5, max_seconds=600, max_cost=Decimal(2)))
    desk.begin()
    world.clock.forward(seconds=540)
    Loop.objects.update(
        counters={**desk.loop.counters, **_counted(turns=4, cost="1.50", is_cost_whole=False)}
    )
    card = run_card.of(desk.run, world.clock())
    assert card is not None
    assert [(one.name, one.text, one.is_low) for one in card.meters] == [
        ("Turns", "4 of 5", True),
        ("Time", "9 min of 10 min", True),
        ("Cost", "$1.50 of $2.00, some turns unknown", False),
    ]
    assert 'value="1.5"' in anna.get(at(desk)).content.decode()


@pytest.mark.row("X-16", level="contract")
def test_what_is_left_of_each_limit_is_drawn_over_the_turns(anna: Client, world: World) -> None:
    limits = {"max_turns": 4, "max_seconds": 600, "max_cost": Decimal(2)}
    desk = desk_of(world, project_of(world, **limits))
    AgentProfile.objects.update(output="claude_stream_json")
    desk.begin()
    world.clock.forward(seconds=60)
    desk.finish(topic("a.b"), output=COSTS)
    page = shown(anna, desk)
    assert "Turns 1 of 4" in page
    assert "Turns left" not in page, "one turn makes no line"
    world.clock.forward(seconds=240)
    desk.finish(topic("b.c"))
    page = anna.get(at(desk))
    for text in ("Turns left 2 of 4", "Time left 5 min of 10 min"):
        assert text in said(page)
    assert "Money left, at most $1.30 of $2.00" in said(page)
    assert "Some turns reported no cost" in said(page)
    assert "M0 0L200 0L200 25L1000 25L1000 50" in page.content.decode()
    assert "Money left, at most $1.30 of $2.00 after turn 2" in page.content.decode()
    burn_down = page.context["loop_card"].burn_down
    assert [(one.number, cells) for one, cells in burn_down.rows] == [
        (2, ("2", "5 min", "unknown")),
        (1, ("3", "9 min", "$1.30")),
    ]
    acts.ask_restart(desk.lab, desk.run, by="anna")
    desk.finish(topic("c.d"))
    assert desk.loop.generation == 2
    page = shown(anna, desk)
    assert "Turns left" not in page, "its lines begin anew"
    desk.step(0, 2)
    world.clock.forward(seconds=60)
    desk.finish(topic("a.b"), output=COSTS)
    assert "Turns left" not in shown(anna, desk)
    desk.finish(topic("b.c"), output=COSTS)
    page = shown(anna, desk)
    for text in ("Turns left 2 of 4", "Time left 4 min of 10 min", "Money left $0.60 of $2.00"):
        assert text in page


COSTS = '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"total_cost_usd":0.7,"result":"ok"}\n'


@pytest.mark.parametrize(
    ("limits", "columns", "names"),
    [
        ({}, {}, ["Cost so far"]),
        ({}, {"cost": None, "used_cost": 0}, []),
        ({"max_turns": 500}, {"cost": None, "used_cost": 0}, ["Turns left"]),
        ({"max_cost": 1}, {"used_cost": Decimal("1.2")}, ["Money left"]),
    ],
)
def test_only_what_is_limited_or_told_is_drawn(
    world: World, limits: dict[str, Any], columns: dict[str, Any], names: list[str]
) -> None:
    desk = desk_of(world, project_of(world, **{"max_turns": None, "max_seconds": None, **limits}))
    desk.begin()
    many(desk, 300, **columns)
    card = run_card.of(desk.run, world.clock())
    assert card is not None
    plots = card.burn_down.plots if card.burn_down else []
    assert [plot.name for plot in plots] == names
    assert all(plot.line.path.count("L") < 2 * 200 + 2 for plot in plots)
    if "max_cost" in limits:
        assert plots[0].text == "$0.20 over"


def _counted(**values: Any) -> dict[str, Any]:
    return {**stored.of_counters(Counters()), **values}


def test_a_turn_opens_to_its_prompt_its_answer_and_its_events(
    anna: Client, desk: Desk, world: World
) -> None:
    first = desk.begin().content["prompt"]
    LoopMemory.objects.create(
        project=desk.run.project, text="the <port> is 8080", by="an agent", at=START
    )
    desk.writes("note-A")
    second = desk.finish(topic("build.done", "<script>1</script>"), output="I built it.\n").content
    page = anna.get(at(desk, "run-turn", 1, 1))
    assert page.context["prompt"].begin == first
    words = said(page)
    assert "I built it." in words
    assert "<script>1</script>" in words
    assert "<script>1</script>" not in page.content.decode()
    assert "This is the first turn." in words
    assert "No commit in this turn." in words
    page = anna.get(at(desk, "run-turn", 1, 2))
    assert page.context["prompt"].begin == second["prompt"]
    whole = anna.get(at(desk, "run-turn-prompt", 1, 2))
    assert whole.content.decode() == second["prompt"]
    assert whole["Content-Disposition"].endswith(f'"run-{desk.run.pk}-turn-1-2.md"')
    assert anna.get(at(desk, "run-turn-prompt", 9, 1)).status_code == 404
    words = said(page)
    assert "note-A" in words
    assert "the <port> is 8080" in words
    assert "the <port> is 8080" not in said(anna.get(at(desk, "run-turn", 1, 1)))
    assert anna.get(at(desk, "run-turn", 2, 1)).status_code == 404


def test_a_prompt_that_is_too_long_for_a_page_is_a_file(
    anna: Client, desk: Desk, world: World
) -> None:
    desk.begin()
    desk.finish(topic("build.done"))
    turn = desk.turn
    events = [{"topic": "a.b", "payload": f"{n} " + "x" * 8000, "to": ""} for n in range(490)]
    tasks = [{"key": str(n), "text": f"task {n}", "state": "ready"} for n in range(500)]
    turn.facts = {**turn.facts, "events": events, "tasks": tasks}
    turn.save()
    page = anna.get(at(desk, "run-turn", 1, 2))
    assert len(page.content) < 200_000
    words = said(page)
    assert "3,8" in words and "characters are left out here" in words
    assert "too long to be compared here" in words
    assert "500 tasks; the first 100 are shown." in words
    prompt = turn_page.prompt_of(turn)
    shown = page.context["prompt"]
    assert prompt.startswith(shown.begin) and prompt.endswith(shown.end)
    assert len(shown.begin) + len(shown.end) + shown.left_out == len(prompt)
    whole = anna.get(at(desk, "run-turn-prompt", 1, 2))
    assert whole.content.decode() == prompt
    assert anna.get(at(desk, "run-turn", 1, 1)).status_code == 200


@pytest.mark.row("RALPH-31", level="contract")
def test_what_changed_in_the_prompt_is_shown_line_by_line(anna: Client, desk: Desk) -> None:
    desk.begin()
    desk.writes("note-A <b>")
    desk.finish(topic("build.done"))
    found = anna.get(at(desk, "run-turn", 1, 2)).context["prompt_diff"]
    added = [str(line.html) for line in found.lines if line.kind == "plus"]
    assert "note-A &lt;b&gt;" in added
    assert not [line for line in found.lines if line.kind == "minus"]


def test_two_prompts_are_compared() -> None:
    found = turn_page.changed("a\nb\nc\n", "a\nx\nc\n")
    assert [(one.kind, one.old, one.new, str(one.html)) for one in found.lines] == [
        ("hunk", None, None, "@@ -1,3 +1,3 @@"),
        ("", 1, 1, "a"),
        ("minus", 2, None, "b"),
        ("plus", None, 2, "x"),
        ("", 3, 3, "c"),
    ]
    assert turn_page.changed("a\n", "a\n").lines == []
    far = turn_page.changed("a" * 2000 + "one", "a" * 2000 + "two").lines
    assert [(one.kind, len(str(one.html))) for one in far[1:]] == [("minus", 2001), ("plus", 2001)]
    long = turn_page.changed("", "\n".join(map(str, range(5000))))
    assert (len(long.lines), long.is_cut) == (turn_page.MOST_LINES, True)


def test_the_commits_of_a_turn_are_shown_as_a_diff(anna: Client, desk: Desk, world: World) -> None:
    repos = world.repos
    before = repos.commit({"a.txt": "one\n"})
    after = repos.commit({"a.txt": "two\n"}, before)
    desk.begin()
    desk.finish(topic("build.done"))
    LoopTurn.objects.filter(number=1).update(head_before=before, head=after, commits=1)
    repos.broken_history = "git is not well"
    assert "git is not well" in shown(anna, desk, "run-turn", 1, 1)
    repos.broken_history = ""
    (file,) = anna.get(at(desk, "run-turn", 1, 1)).context["files"]
    assert (file.change.path, file.change.added) == ("a.txt", 1)


@pytest.mark.row("RALPH-83", "RALPH-20", "RALPH-28", level="contract")
def test_stop_and_restart_are_asked_for_once(anna: Client, desk: Desk) -> None:
    desk.begin()
    assert anna.post(at(desk, "run-loop-stop")).status_code == 303
    page = shown(anna, desk)
    assert "Stops after this turn, as anna asked." in page
    assert "Stop after this turn" not in page
    again = said(anna.post(at(desk, "run-loop-stop"), follow=True))
    assert "anna has asked for it already." in again
    assert anna.post(at(desk, "run-loop-restart")).status_code == 303
    assert "Restarts after this turn" in shown(anna, desk)
    desk.finish(topic("build.done"))
    assert desk.loop.end == "stopped"
    page = said(anna.post(at(desk, "run-loop-restart"), follow=True))
    assert "This loop has ended" in page


@pytest.mark.row("RALPH-79", "RALPH-83", level="contract")
def test_guidance_is_sent_and_says_where_it_is(anna: Client, desk: Desk) -> None:
    desk.begin()
    assert anna.post(at(desk, "run-guide"), {"text": "Use <port> 8080"}).status_code == 303
    page = shown(anna, desk)
    assert "Use <port> 8080" in page
    assert "waits for the next turn" in page
    order = desk.finish(topic("build.done"))
    assert "Use <port> 8080" in order.content["prompt"]
    assert "in the prompt of turn 2" in shown(anna, desk)
    acts.acknowledge(desk.lab, desk.loop)
    assert "acknowledged" in shown(anna, desk)
    assert Notice.objects.get(kind=NoticeKind.LOOP_GUIDED).by == "anna"


def test_guidance_that_cannot_be_sent_is_kept_in_the_form(anna: Client, desk: Desk) -> None:
    desk.begin()
    answer = anna.post(at(desk, "run-guide"), {"text": "x" * 4001})
    assert answer.status_code == 409 or answer.status_code == 422
    assert "x" * 4001 in answer.content.decode()
    assert "At most 4,000 characters." in said(answer)
    assert "Write a text." in said(anna.post(at(desk, "run-guide"), {"text": " "}, follow=True))
    assert not LoopGuidance.objects.exists()


def test_all_turns_are_listed_a_page_at_a_time(anna: Client, desk: Desk) -> None:
    desk.begin()
    many(desk, 120)
    page = anna.get(at(desk, "run-turns"))
    assert len(page.context["turns"]) == run_card.PAGE
    assert "1.5 k" in said(page)
    assert "$0.25" in said(page)
    seen = [row.turn.number for row in page.context["turns"]]
    while (older := page.context["older"]) is not None:
        page = anna.get(at(desk, "run-turns"), {"before": older})
        seen += [row.turn.number for row in page.context["turns"]]
    assert seen == list(range(121, 0, -1))
    assert anna.get(at(desk, "run-turns"), {"before": "x"}).status_code == 200


@pytest.mark.parametrize("name", ["run", "run-turns"])
def test_ten_thousand_turns_cost_no_more_queries(anna: Client, desk: Desk, name: str) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert anna.get(at(desk, name)).status_code == 200
        return len(queries)

    desk.begin()
    desk.finish(topic("build.done"))
    count()
    before = count()
    many(desk, 300)
    assert count() == before


def test_the_card_asks_four_queries(desk: Desk, world: World) -> None:
    desk.begin()
    acts.guide(desk.lab, desk.run, "Go on", by="anna")
    many(desk, 60)
    with CaptureQueriesContext(connection) as queries:
        assert run_card.of(desk.run, world.clock()) is not None
    assert len(queries) == 4


def test_what_a_loop_tells_concerns_its_page(desk: Desk) -> None:
    desk.begin()
    acts.guide(desk.lab, desk.run, "Go on", by="anna")
    acts.ask_stop(desk.lab, desk.run, by="anna")
    wanted = {NoticeKind.LOOP_TURN, NoticeKind.LOOP_STEP, NoticeKind.LOOP_GUIDED}
    told = Notice.objects.filter(kind__in=wanted)
    assert {one.kind for one in told} == wanted
    for one in told:
        assert f"run:{desk.run.pk}" in fragments.topics_of(one)
    pushed = fragments.regions(f"run:{desk.run.pk}", True)
    assert pushed is not None
    assert "turn 1 of at most 50" in pushed["run-loop"]
    assert "loop-guide" not in pushed


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"exit_code": 0}, ("", "exit 0")),
        ({"exit_code": 3}, ("bad", "exit 3")),
        ({"exit_signal": 9}, ("bad", "signal 9")),
        ({"trouble": "no such program"}, ("bad", "not run")),
        ({"exit_code": 1, "was_refused": True}, ("warn", "turned away")),
        ({"ended_at": None}, ("live", "running")),
        ({}, ("bad", "unknown")),
    ],
)
def test_how_a_turn_ended_in_words(columns: dict[str, Any], words: tuple[str, str]) -> None:
    row = run_card.TurnRow(LoopTurn(**{"ended_at": START, **columns}))
    assert (row.tone, row.state) == words


def test_who_may_only_look_asks_nothing(client: Client, desk: Desk, world: World) -> None:
    desk.begin()
    client.force_login(make.a_user("vera", operator=False))
    page = shown(client, desk)
    assert "turn 1 of at most 50" in page
    assert "Restart" not in page
    assert "Send guidance" not in page
    for name in ("run-guide", "run-loop-stop", "run-loop-restart"):
        assert client.post(at(desk, name), {"text": "x"}).status_code == 403
    assert shown(client, desk, "run-turn", 1, 1)

"""What is told of a run and what is folded, rule by rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runs.core.states import NoticeKind
from runs.run_pages import story_rules
from runs.run_pages.story_rules import Fact, Leads, Source
from tests.patience import least_cost

START = datetime(2026, 11, 23, 2, 0, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def notice(minutes: float, kind: NoticeKind, text: str = "", **more: object) -> Fact:
    return Fact(at(minutes), Source.TIMELINE, kind, text, **more)  # type: ignore[arg-type]


def commit(minutes: float, ident: str = "ab12cd3") -> Fact:
    return notice(minutes, NoticeKind.RUN_STEP, f"commit {ident} feat: x")


def edit(minutes: float, path: str = "app.py") -> Fact:
    return Fact(at(minutes), Source.EDIT, text=path, place="/c#m0-0")


def ran(minutes: float, passed: bool | None) -> Fact:
    return Fact(at(minutes), Source.TESTS, text="pytest -q", passed=passed)


K = NoticeKind
STARTED = notice(0, K.RUN_STARTED, "agent started")
STEP = notice(3, K.RUN_STEP, "something small")


@pytest.mark.row("LAB-130", level="pure")
@pytest.mark.parametrize(
    ("facts", "names", "hidden"),
    [
        pytest.param([], [], 0, id="nothing"),
        pytest.param([STARTED, STEP], ["Agent started"], 1, id="a step is folded"),
        pytest.param(
            [notice(0, K.RUN_STEP, "Branch afk/7 created from ab12cd3")], ["Claimed"], 0, id="claim"
        ),
        pytest.param([edit(1), edit(2)], ["First edit"], 1, id="of edits the first"),
        pytest.param(
            [ran(1, False), ran(2, False), ran(3, True), ran(4, True), ran(5, False)],
            ["Tests red", "Tests green", "Tests red"],
            2,
            id="tests where they turn",
        ),
        pytest.param([ran(1, None)], [], 1, id="tests whose end is not known turn nothing"),
        pytest.param([ran(1, False), ran(2, None), ran(3, False)], ["Tests red"], 2, id="nor between"),
        pytest.param([commit(1), STEP, commit(4)], ["Committed"], 2, id="commits in a row are one"),
        pytest.param(
            [commit(1), ran(2, True), commit(4)],
            ["Committed", "Tests green", "Committed"],
            0,
            id="commits with an event between",
        ),
        pytest.param(
            [notice(1, K.RUN_WAITS), notice(2, K.RUN_ANSWERED), notice(3, K.RUN_GOES_ON)],
            ["Waited for you", "Answered"],
            1,
            id="an answer says that it went on",
        ),
        pytest.param(
            [notice(1, K.RUN_TROUBLED), notice(2, K.RUN_GOES_ON), notice(3, K.RUN_GOES_ON)],
            ["Held up", "Went on"],
            1,
            id="it goes on by itself, once",
        ),
        pytest.param(
            [notice(1, K.RUN_CHECKING), notice(2, K.GATE_STEP), notice(3, K.GATE_FAILED),
             notice(4, K.RUN_REENTERED), notice(5, K.GATE_PASSED)],
            ["Checks began", "Checks failed", "Back to the agent", "Checks passed"],
            1,
            id="gates",
        ),
        pytest.param(
            [notice(1, K.PULL_OPENED), notice(2, K.RUN_ENDED, outcome="succeeded"),
             notice(3, K.RUN_REAPED), notice(4, K.PULL_MERGED)],
            ["Pull request", "Succeeded", "Merged"],
            1,
            id="delivered",
        ),
        pytest.param([notice(1, K.RUN_ENDED, outcome="timed_out")], ["Timed out"], 0, id="its end"),
        pytest.param([notice(1, K.RUN_ENDED, outcome="odd")], ["Ended"], 0, id="an unknown end"),
        pytest.param(
            [STARTED, Fact(at(0), Source.UNREAD, ident=1, count=9000), commit(5)],
            ["Agent started", "Committed"],
            9000,
            id="entries that were not read count",
        ),
        pytest.param([notice(n, K.RUN_WARNED) for n in (1, 2)], ["Warning"] * 2, 0, id="warnings"),
        pytest.param([notice(1, K.LOOP_TURN)] * 3, [], 3, id="turns of a loop"),
    ],
)  # fmt: skip
def test_what_is_told_and_what_is_folded(facts: list[Fact], names: list[str], hidden: int) -> None:
    for order in (facts, facts[::-1]):
        story = story_rules.tell(order)
        assert [event.name for event in story.events] == names
        assert sum(event.hidden for event in story.events) + story.hidden == hidden


def test_an_event_says_how_long_after_the_one_before_and_where_it_leads() -> None:
    facts = [STARTED, edit(2), commit(12), notice(12, K.RUN_ENDED, "died", outcome="died")]
    told = story_rules.tell(facts).events
    assert [event.after for event in told] == [
        None,
        timedelta(minutes=2),
        timedelta(minutes=10),
        None,
    ]
    leads = [Leads.TERMINAL, Leads.CONVERSATION, Leads.CHANGES, Leads.TERMINAL]
    assert [event.leads for event in told] == leads
    assert [event.tone for event in told] == ["live", "", "good", "bad"]
    assert [event.fact.text for event in told] == ["", "app.py", "ab12cd3 feat: x", "died"]


@pytest.mark.parametrize(
    ("kind", "text", "name", "rest"),
    [
        (K.RUN_STARTED, "agent started in session demo~1", "Agent started", "in session demo~1"),
        (K.PULL_OPENED, "pull request 4 opened: Fix", "Pull request", "4 opened: Fix"),
        (K.LOOP_GUIDED, "guidance: Use port 80", "Guidance", "Use port 80"),
    ],
)
def test_what_the_name_of_an_event_says_is_not_said_again(
    kind: NoticeKind, text: str, name: str, rest: str
) -> None:
    (event,) = story_rules.tell([notice(0, kind, text)]).events
    assert (event.name, event.fact.text) == (name, rest)


def test_commits_in_a_row_are_the_last_one_with_their_number() -> None:
    (event,) = story_rules.tell([commit(1, "aaa"), commit(2, "bbb"), commit(3, "ccc")]).events
    assert (event.times, event.fact.text) == (3, "ccc feat: x")
    assert [one.text for one in event.folded] == ["aaa feat: x", "bbb feat: x"]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([], []),
        ([edit(1, "a"), edit(2, "b"), edit(3, "c")], ["a", "b", "c"]),
        (
            [edit(1, "a"), edit(2, "b"), edit(3, "c"), edit(4, "d"), edit(5, "e")],
            ["a", 2, "d", "e"],
        ),
        (
            [edit(1, "a"), *(ran(minute, minute % 2 == 0) for minute in range(2, 8))],
            ["a", 2, True, False, True, False],
        ),
        ([ran(1, None), ran(2, None), ran(3, None), edit(4, "a")], [1, None, None, "a"]),
    ],
)
def test_of_a_long_record_the_first_event_and_the_newest_facts_are_kept(
    facts: list[Fact], expected: list[object]
) -> None:
    thinned = story_rules.thin(facts, 2)
    found = [
        one.count
        if one.source is Source.UNREAD
        else one.text
        if one.source is Source.EDIT
        else one.passed
        for one in thinned
    ]
    assert found == expected
    assert story_rules.thin(thinned, 2) == thinned
    assert sum(one.count for one in thinned) == len(facts)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest -q", True),
        ("cd /srv/x && python -m pytest tests", True),
        ("npm test", True),
        ("npm run test -- --ci", True),
        ("go test ./...", True),
        ("cargo test", True),
        ("make check", True),
        ("./gradlew test", True),
        (".venv/bin/pytest", True),
        ("python manage.py test", True),
        ("cat tests/test_app.py", False),
        ("git commit -m 'test it'", False),
        ("ls contest", False),
    ],
)
def test_which_commands_are_tests(command: str, expected: bool) -> None:
    assert story_rules.is_test(command) is expected


@pytest.mark.parametrize("unit", [" -/make", "make ", "make   -", " \t", "python3", "python -m "])
def test_no_command_of_an_agent_takes_long_to_look_at(unit: str) -> None:
    command = "make" + unit * 4000
    assert not story_rules.is_test(command)
    assert least_cost(lambda: story_rules.is_test(command)) < 0.3

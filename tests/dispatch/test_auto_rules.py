"""The rules of work that goes on by itself: streak, blockers, what may start, and why something does not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.core.states import AnswerCode, Outcome
from runs.dispatch import rules as launching
from runs.dispatch import streak
from runs.dispatch.blocking import Block, block_of, references
from runs.dispatch.eligibility import Act, Want, Why, obstacles
from runs.dispatch.rules import Candidate, Queue, Refusal, Room, decide_start, explain, fill
from runs.dispatch.streak import Move

ROOM = Room(taken={1}, occupied=1, cap=6)
FULL = Room(taken={1}, occupied=1, cap=1)


def a_queue(**changes):
    facts = {
        "has_tracker": True,
        "ready": [Candidate("7"), Candidate("8")],
        "claims": set(),
        "active": set(),
        "want": Want(is_on=True),
    }
    return Queue(**{**facts, **changes})


@pytest.mark.row("LAB-92", "C-52", level="pure")
@pytest.mark.parametrize(
    ("outcome", "did_start", "moved"),
    [
        pytest.param(Outcome.SUCCEEDED, True, Move.CLEARS, id="success sets zero"),
        pytest.param(Outcome.NO_CHANGE, True, Move.CLEARS, id="no change sets zero"),
        pytest.param(Outcome.OBSOLETE, True, Move.CLEARS, id="obsolete sets zero"),
        pytest.param(Outcome.DIED, True, Move.ADDS, id="died"),
        pytest.param(Outcome.TIMED_OUT, True, Move.ADDS, id="timed out"),
        pytest.param(Outcome.REJECTED, True, Move.ADDS, id="rejected by the gates"),
        pytest.param(Outcome.FAILED, True, Move.ADDS, id="loop code 1"),
        pytest.param(Outcome.LIMIT_REACHED, True, Move.ADDS, id="loop code 2"),
        pytest.param(Outcome.STOPPED, True, Move.LEAVES, id="a person's stop"),
        pytest.param(Outcome.INTERRUPTED, True, Move.LEAVES, id="a person's abort"),
        pytest.param(Outcome.STOPPED, False, Move.LEAVES, id="stopped before it started"),
        pytest.param(Outcome.FAILED, False, Move.LEAVES, id="a failed start"),
    ],
)
def test_how_each_outcome_moves_the_streak(outcome, did_start, moved):
    assert streak.move(outcome, did_start) is moved


def test_every_outcome_has_its_place_in_the_table():
    assert all(streak.move(outcome, did_start=True) in Move for outcome in Outcome)


@pytest.mark.row("LAB-94", level="pure")
@pytest.mark.parametrize(("count", "paused"), [(0, False), (2, False), (3, True), (4, True)])
def test_automatic_work_pauses_at_three(count, paused):
    assert streak.is_paused(count) is paused


@pytest.mark.parametrize(
    ("failed", "minutes"), [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (10_000, 60)]
)
def test_failed_starts_are_tried_again_more_and_more_rarely(failed, minutes):
    assert streak.wait_after(failed) == timedelta(minutes=minutes)


BODIES = [
    pytest.param("", (), id="nothing"),
    pytest.param("## Blocked by\n- #5\n- #6\n", ("5", "6"), id="a list"),
    pytest.param("# Blocked by\n#5", ("5",), id="level one"),
    pytest.param("###### blocked BY:\n#5", ("5",), id="level six, any case, colon"),
    pytest.param("## Blocked by ##\n#5", ("5",), id="closed heading"),
    pytest.param("## Blocked by\n#5 and #6, #5 again", ("5", "6"), id="many on a line, each once"),
    pytest.param("## Blocked by\n#5\n## Notes\n#6", ("5",), id="until the next heading"),
    pytest.param("## Blocked by\n#5\n#### Notes\n#6", ("5",), id="a lower heading ends it too"),
    pytest.param("## Blocked by\n#5\n\n## Blocked by\n#6", ("5", "6"), id="two sections"),
    pytest.param("Blocked by #5", (), id="a sentence is no section"),
    pytest.param("## Not blocked by\n#5", (), id="another heading"),
    pytest.param("## Blocked by others\n#5", (), id="a longer heading"),
    pytest.param("See #4\n## Blocked by\nnone", (), id="nothing in it"),
    pytest.param("## Blocked by\n- other/place#5", (), id="an issue of another place"),
    pytest.param("## Blocked by\n```\n#5\n```\n#6", ("6",), id="a code block is an example"),
    pytest.param("```\n## Blocked by\n#5\n```", (), id="a heading in a code block"),
    pytest.param("## Blocked by\r\n- #5\r\n", ("5",), id="other line ends"),
    pytest.param("## Blocked by\n#007", ("7",), id="leading zeros"),
    pytest.param("## Blocked by\n#5a #x #", (), id="no numbers"),
    pytest.param("###Blocked by\n#5", ("5",), id="without a space"),
    pytest.param("##blocked by: ##\n#5\n## Notes\n#6", ("5",), id="without a space, closed"),
    pytest.param("##Blocked by others\n#5", (), id="a longer one without a space"),
]


@pytest.mark.parametrize(("body", "keys"), BODIES)
def test_what_a_blocked_by_section_names(body, keys):
    assert references(body) == keys


@pytest.mark.parametrize(
    ("waits_for", "block"),
    [
        pytest.param({"7": ()}, Block(), id="waits for nothing"),
        pytest.param({"7": ("5",)}, Block(), id="closed or not there never blocks"),
        pytest.param({"7": ("5", "6"), "5": ()}, Block(("5",)), id="open blocks"),
        pytest.param({"7": ("7",)}, Block(("7",), ("7", "7")), id="waits for itself"),
        pytest.param(
            {"7": ("8",), "8": ("9",), "9": ("7",)},
            Block(("8",), ("7", "8", "9", "7")),
            id="circle",
        ),
        pytest.param(
            {"7": ("8",), "8": ("9",), "9": ("8",)}, Block(("8",)), id="a circle it is not part of"
        ),
    ],
)
def test_what_blocks_an_issue(waits_for, block):
    assert block_of("7", waits_for) == block


@pytest.mark.row("LAB-82", level="pure")
@pytest.mark.parametrize(
    ("changes", "room", "why"),
    [
        pytest.param({}, ROOM, None, id="all hold"),
        pytest.param({"want": Want()}, ROOM, Why.SWITCHED_OFF, id="the switch is off"),
        pytest.param({}, FULL, Why.AT_CAP, id="at the cap"),
        pytest.param({"auto_alive": 1}, ROOM, Why.PROJECT_FULL, id="an automatic run is alive"),
        pytest.param({"claims": {"7", "8"}}, ROOM, Why.CLAIMED, id="nothing claimable"),
        pytest.param({"streak": 3}, ROOM, Why.PAUSED, id="paused"),
        pytest.param({"waits": True}, ROOM, Why.RETRIED_LATER, id="a start failed just now"),
        pytest.param({"is_logged_in": False}, ROOM, Why.LOGGED_OUT, id="logged out"),
        pytest.param({"is_logged_in": None}, ROOM, Why.LOGIN_UNKNOWN, id="login unknown"),
        pytest.param({"claims": None}, ROOM, Why.CLAIMS_UNKNOWN, id="claims unknown"),
        pytest.param({}, Room(set(), None, 6), Why.SESSIONS_UNKNOWN, id="sessions unknown"),
        pytest.param({"has_agent": False}, ROOM, Why.NO_AGENT, id="no agent"),
        pytest.param({"state": "cloning"}, ROOM, Why.NOT_CLONED, id="not cloned"),
        pytest.param({"trusted": {"ada"}}, ROOM, Why.NOT_TRUSTED, id="an unknown author"),
        pytest.param({}, Room(set(), 0, 6, elsewhere=6), Why.AT_CAP, id="full on other hosts"),
        pytest.param({}, Room(set(), 2, 6, host_cap=2), Why.AT_CAP, id="this host is full"),
    ],
)
def test_each_condition_alone_vetoes(changes, room, why):
    queue = a_queue(**changes)
    picked = fill([queue], room)
    failed = obstacles(queue, Candidate("7"), room)
    assert [one.why for one in failed] == ([why] if why else [])
    assert [start.key for _, start in picked] == ([] if why else ["7"])


@pytest.mark.row("C-17", "C-18", "LAB-83", level="pure")
@pytest.mark.parametrize(
    ("queues", "room", "keys"),
    [
        pytest.param([a_queue()], ROOM, [(0, "7", 2)], id="one, the lowest"),
        pytest.param([a_queue(parallel=2)], ROOM, [(0, "7", 2), (0, "8", 3)], id="two allowed"),
        pytest.param([a_queue(active={"7"})], ROOM, [(0, "8", 2)], id="manual on 7: auto on 8"),
        pytest.param([a_queue(active={"7"}, auto_alive=1)], ROOM, [], id="auto on 7: no second"),
        pytest.param(
            [a_queue(parallel=2), a_queue(project=1)],
            Room(set(), 0, 2),
            [(0, "7", 1), (1, "7", 2)],
            id="one project in turn before a second of the first",
        ),
        pytest.param(
            [a_queue(parallel=2), a_queue(project=1)],
            Room(set(), 0, 1),
            [(0, "7", 1)],
            id="the cap in the middle",
        ),
        pytest.param([a_queue(ready=None), a_queue(project=1)], ROOM, [(1, "7", 2)], id="LAB-87"),
        pytest.param(
            [a_queue(want=Want(True, frozenset({"8"})))], ROOM, [(0, "8", 2)], id="only these"
        ),
        pytest.param(
            [a_queue(ready=[Candidate("7", block=Block(("5",))), Candidate("8")])],
            ROOM,
            [(0, "8", 2)],
            id="around a blocked one",
        ),
        pytest.param(
            [a_queue(ready=[Candidate("7", block=Block(None)), Candidate("8")])],
            ROOM,
            [(0, "8", 2)],
            id="around one that nobody knows of",
        ),
        pytest.param(
            [
                a_queue(
                    trusted={"ada"},
                    ready=[Candidate("7", author="mallory"), Candidate("8", author="Ada")],
                )
            ],
            ROOM,
            [(0, "8", 2)],
            id="a trusted author",
        ),
        pytest.param(
            [
                a_queue(
                    trusted={"ada"},
                    ready=[
                        Candidate("7", author="mallory", ready_by="eve"),
                        Candidate("8", author="mallory", ready_by="ada"),
                    ],
                )
            ],
            ROOM,
            [(0, "8", 2)],
            id="marked ready by someone trusted",
        ),
    ],
)
def test_what_automatic_work_starts(queues, room, keys):
    picked = fill(queues, room)
    assert [(queue.project, start.key, start.slot) for queue, start in picked] == keys


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, "7", id="auto's own conditions do not keep a person"),
        pytest.param({"streak": 3, "auto_alive": 1, "want": Want()}, "7", id="nor do these"),
        pytest.param({"trusted": {"ada"}, "wanted": "8"}, "8", id="who names it vouches for it"),
        pytest.param(
            {"trusted": {"ada"}}, AnswerCode.NOTHING_READY, id="an unnamed start does not"
        ),
        pytest.param(
            {"ready": [Candidate("7", block=Block(("5",)))], "wanted": "7"},
            AnswerCode.NOTHING_READY,
            id="blocked stays blocked",
        ),
        pytest.param({"is_logged_in": False}, AnswerCode.LOGGED_OUT, id="logged out"),
    ],
)
def test_what_a_person_may_start_all_the_same(changes, expected):
    answer = decide_start(a_queue(**{"want": Want(), **changes}), ROOM)
    found = answer.code if isinstance(answer, Refusal) else answer.key
    assert found == expected


@pytest.mark.parametrize(
    ("changes", "room", "why", "acts"),
    [
        pytest.param({}, ROOM, [[], [Why.NOT_FIRST]], [[], [Act.START]], id="the first one starts"),
        pytest.param({"want": Want()}, ROOM, [[Why.SWITCHED_OFF]] * 2, [[Act.START]] * 2, id="off"),
        pytest.param(
            {"claims": {"7"}, "want": Want()},
            ROOM,
            [[Why.CLAIMED, Why.SWITCHED_OFF], [Why.SWITCHED_OFF]],
            [[Act.DISCARD, Act.START], [Act.START]],
            id="what stops a person too has to go, then one press",
        ),
        pytest.param(
            {"claims": {"7"}},
            ROOM,
            [[Why.CLAIMED], []],
            [[Act.DISCARD], []],
            id="discard is enough",
        ),
        pytest.param(
            {"claims": {"7"}, "ready": [Candidate("7", pull=12)]},
            ROOM,
            [[Why.CLAIMED]],
            [[Act.REVIEW]],
            id="what was delivered is reviewed and not discarded",
        ),
        pytest.param(
            {"streak": 3, "ready": [Candidate("7", block=Block(("5", "6")))]},
            FULL,
            [[Why.BLOCKED, Why.BLOCKED, Why.PAUSED, Why.AT_CAP]],
            [[Act.CLOSE, Act.CLOSE, Act.RAISE_CAP, Act.START]],
            id="every failed condition in order",
        ),
        pytest.param(
            {"ready": [Candidate("7", block=Block(("8",), ("7", "8", "7")))]},
            ROOM,
            [[Why.CYCLE]],
            [[Act.EDIT]],
            id="a circle is told as one",
        ),
        pytest.param({"active": {"7", "8"}}, ROOM, [], [], id="what runs is not asked about"),
    ],
)
def test_why_an_issue_is_not_running(changes, room, why, acts):
    answer = explain(a_queue(**changes), room)
    assert [[one.why for one in issue.failed] for issue in answer] == why
    assert [[change.act for change in issue.changes] for issue in answer] == acts
    assert all(one.text and one.change.text for issue in answer for one in issue.failed)


def test_what_the_page_tells_is_what_the_launch_pass_does():
    """Whatever fails no condition is started, and nothing else."""
    for changes in ({}, {"parallel": 2}, {"claims": {"7"}}, {"want": Want()}, {"streak": 5}):
        queue = a_queue(**changes)
        started = {start.key for _, start in fill([queue], ROOM)}
        assert {one.issue.key for one in explain(queue, ROOM) if not one.failed} == started


@pytest.mark.row("LAB-101", level="pure")
def test_claimable_is_ready_minus_claimed():
    queue = a_queue(ready=[Candidate(key) for key in "789"], claims={"8"})
    assert [issue.key for issue in launching.claimable(queue)] == ["7", "9"]


@pytest.mark.row("MALA-W-07", "MALA-W-10", level="pure")
@pytest.mark.parametrize(
    ("want", "keys"),
    [
        pytest.param(Want(is_on=True, most=1), ["7"], id="one more"),
        pytest.param(Want(is_on=True, most=0), [], id="no more"),
        pytest.param(Want(is_on=True, most=5), ["7", "8"], id="more than there is"),
        pytest.param(Want(is_on=True, without=frozenset("7")), ["8"], id="worked on already"),
        pytest.param(Want(is_on=True, only=frozenset("8")), ["8"], id="only one"),
    ],
)
def test_a_session_wants_no_more_than_its_limit_and_nothing_twice(want, keys):
    started = fill([a_queue(want=want, parallel=5)], Room((), 0, 9))
    assert [start.key for _, start in started] == keys


@pytest.mark.row("MALA-W-07", level="pure")
def test_at_the_limit_a_person_may_start_the_rest():
    (seven, _) = explain(a_queue(want=Want(is_on=True, most=0), parallel=5), ROOM)
    assert [failed.why for failed in seven.failed] == [Why.AT_LIMIT]
    assert [change.act for change in seven.changes] == [Act.START]


UNTRUSTED = Candidate("7", author="mallory")
UNKNOWN_BLOCK = Candidate("7", block=Block(None))
BLOCKED = Candidate("7", block=Block(("3",)))


@pytest.mark.row("MALA-W-01", "MALA-W-23", level="pure")
@pytest.mark.parametrize(
    ("changes", "room", "keys", "held"),
    [
        pytest.param({}, ROOM, ["7", "8"], "", id="starts"),
        pytest.param({"ready": []}, ROOM, [], "", id="nothing ready: a batch ends"),
        pytest.param({"claims": {"7", "8"}}, ROOM, [], "", id="claimed: a batch ends"),
        pytest.param({"ready": [BLOCKED]}, ROOM, [], "", id="blocked: a batch ends"),
        pytest.param(
            {"ready": [UNTRUSTED], "trusted": ("anna",)}, ROOM, [], "", id="untrusted: a batch ends"
        ),
        pytest.param(
            {"want": Want(is_on=True, without=frozenset({"7", "8"}))},
            ROOM,
            [],
            "",
            id="worked on already: a batch ends",
        ),
        pytest.param(
            {"ready": [UNKNOWN_BLOCK]},
            ROOM,
            ["7"],
            "The tracker did not say whether what it waits for is open.",
            id="nobody could say what blocks it: waits",
        ),
        pytest.param(
            {"is_logged_in": False, "agent": "Claude"},
            ROOM,
            ["7", "8"],
            "Claude is not logged in.",
            id="logged out: waits for a person",
        ),
        pytest.param(
            {"has_agent": False}, ROOM, ["7", "8"], "No agent is chosen.", id="no agent: waits"
        ),
        pytest.param(
            {"claims": None, "git_error": "hung"},
            ROOM,
            ["7", "8"],
            "git could not list the claims: hung.",
            id="git does not answer: waits",
        ),
        pytest.param(
            {},
            FULL,
            ["7", "8"],
            "All 1 slots are taken. A slot is free again when a run ends or is stopped.",
            id="the cap: waits",
        ),
    ],
)
def test_what_keeps_a_session_open_and_what_holds_it_up(changes, room, keys, held):
    queue = a_queue(**changes)
    assert [one.key for one in launching.hopeful(queue)] == keys
    assert launching.held(queue, room) == held

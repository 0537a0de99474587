"""The rules of a pass and of a check, each as a table with an id per row (RUNE)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.groups import fast_path, monitor_rules
from runs.groups import terms as grouping
from runs.groups.fast_path import AllDone, Next, Unreadable
from runs.groups.monitor_rules import Checkpoint, End, Kind, Memory, Pass
from runs.groups.terms import Decision, Options, Result, TaskFacts, TaskStatus
from tests.house.product import ROOT

STATUS = {"p": TaskStatus.PENDING, "i": TaskStatus.IN_PROGRESS, "c": TaskStatus.COMPLETED}
PLAIN = Options(label="Work")
WITH = Options(label="Work", has_checkpoints=True)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


BACK = Options(label="Work", release=seconds(600), has_checkpoints=True)


def listed(words: str) -> list[TaskFacts]:
    """`1c 2i 3p`: tasks by key and status; `2i7` in its seventh claim, `2i!` follows a run."""
    tasks = []
    for number, word in enumerate(words.split()):
        key, status, rest = word[0], word[1], word[2:]
        claim = int(rest) if rest.isdigit() else 1
        tasks.append(TaskFacts(number, key, f"Part {key}", STATUS[status], claim, rest != "!"))
    return tasks


def run(options: Options, expected: int, *script: tuple[float, str]) -> list[Pass]:
    """Passes over a group, each at a second after the start, each with the memory of the last."""
    memory, made = Memory(), []
    for at, words in script:
        made.append(monitor_rules.look(options, expected, memory, listed(words), seconds(at)))
        memory = made[-1].memory
    return made


def kinds(passed: Pass) -> list[Kind]:
    return [event.kind for event in passed.events]


def points(passes: list[Pass]) -> list[Checkpoint]:
    return [e.checkpoint for p in passes for e in p.events if e.checkpoint is not None]


def short(passes: list[Pass]) -> list[str]:
    """Checkpoints as `n percentage decision blockers`."""
    return [f"{p.n} {p.percentage} {p.decision} {len(p.blockers)}" for p in points(passes)]


@pytest.mark.row(
    *(f"RUNE-{n:02}" for n in (11, 20, 21, 22, 23, 24, 25, 27, 28, 29, 30, 31, 33, 43)),
    level="pure",
)
@pytest.mark.parametrize(
    ("options", "expected", "script", "told"),
    [
        pytest.param(PLAIN, 2, [(0, "1i"), (400, "1i"), (430, "1c 2c")], [], id="not asked for"),
        pytest.param(WITH, 0, [(0, "")], ["1 100 COMPLETE 0"], id="none expected"),
        pytest.param(
            WITH, 4,
            [(0, "1c"), (30, "1c 2c"), (60, "1c 2c 3c"), (90, "1c 2c 3c 4c")],
            ["1 25 CONTINUE 0", "2 50 CONTINUE 0", "3 75 CONTINUE 0", "4 100 COMPLETE 0"],
            id="each milestone once",
        ),
        pytest.param(
            WITH, 4, [(0, "1c"), (30, "1c"), (60, "1c"), (90, "1c")], ["1 25 CONTINUE 0"],
            id="no repeats",
        ),
        pytest.param(WITH, 9, [(n * 30, "1i 2p") for n in range(10)], [], id="nothing happens"),
        pytest.param(WITH, 3, [(0, "1c")], ["1 33 CONTINUE 0"], id="a third is 33"),
        pytest.param(
            WITH, 3, [(0, "1c 2c"), (30, "1c 2c")], ["1 66 CONTINUE 0", "2 66 CONTINUE 0"],
            id="two thirds are 66",
        ),
        pytest.param(WITH, 8, [(0, "1c"), (30, "1c 2c")], ["1 25 CONTINUE 0"], id="12 is not 25"),
        pytest.param(
            WITH, 5,
            [(0, "1p"), (30, "1c 2c 3c 4c"), (60, "1c 2c 3c 4c"), (90, "1c 2c 3c 4c"),
             (120, "1c 2c 3c 4c")],
            ["1 80 CONTINUE 0", "2 80 CONTINUE 0", "3 80 CONTINUE 0"],
            id="several at once follow one a pass",
        ),
        pytest.param(
            WITH, 4, [(0, "1c 2c 3c"), (30, "1c 2c 3c 4c")],
            ["1 75 CONTINUE 0", "2 100 COMPLETE 0"],
            id="unless the group completes first",
        ),
        pytest.param(WITH, 2, [(0, "1c 2c")], ["1 100 COMPLETE 0"], id="straight to done"),
        pytest.param(WITH, 9, [(0, "1i"), (300, "1i")], [], id="exactly stale is not stale"),
        pytest.param(
            WITH, 9, [(0, "1i"), (301, "1i")], ["1 0 INVESTIGATE 1"], id="a second more is"
        ),
        pytest.param(
            WITH, 9, [(0, "1i"), *((301 + 30 * n, "1i") for n in range(10))],
            ["1 0 INVESTIGATE 1"], id="a blocker once",
        ),
        pytest.param(
            WITH, 4, [(0, "1i 2p"), (301, "1i 2p"), (331, "1i 2c")],
            ["1 0 INVESTIGATE 1", "2 25 INVESTIGATE 1"],
            id="a blocker takes no milestone away, and an old one is to be investigated still",
        ),
        pytest.param(
            WITH, 9, [(0, "1i"), (100, "1i 2i"), (310, "1i 2i"), (410, "1i 2i"), (440, "1i 2i")],
            ["1 0 INVESTIGATE 1", "2 0 INVESTIGATE 2"], id="a second blocker lists both, then quiet",
        ),
        pytest.param(
            WITH, 4, [(0, "1i"), (301, "1i 2c")], ["1 25 INVESTIGATE 1"],
            id="milestone and blocker in one",
        ),
        pytest.param(
            WITH, 9, [(0, "1i"), (301, "1i"), (331, "1p"), (361, "1i2"), (700, "1i2")],
            ["1 0 INVESTIGATE 1"], id="given back and stalled again",
        ),
        pytest.param(
            WITH, 9, [(0, "1i"), (301, "1i"), (331, "1c"), (361, "1i2"), (700, "1i2")],
            ["1 0 INVESTIGATE 1", "2 0 INVESTIGATE 1"], id="completed, reopened, stalled again",
        ),
        pytest.param(
            WITH, 4, [(0, "1i"), (301, "1i"), (331, "1i 2c"), (361, "1c 2c 3c 4c")],
            ["1 0 INVESTIGATE 1", "2 25 INVESTIGATE 1", "3 100 COMPLETE 0"],
            id="numbers go on whatever the reason",
        ),
    ],
)  # fmt: skip
def test_checkpoints(
    options: Options, expected: int, script: list[tuple[float, str]], told: list[str]
) -> None:
    assert short(run(options, expected, *script)) == told


@pytest.mark.row("RUNE-23", "C-24", level="pure")
def test_after_a_jump_the_lowest_milestone_is_told_first() -> None:
    passes = run(WITH, 5, (0, "1c 2c 3c 4c"), (30, "1c 2c 3c 4c"), (60, "1c 2c 3c 4c"))
    assert [p.memory.milestone for p in passes] == [25, 50, 75]


@pytest.mark.row("RUNE-14", "RUNE-15", "RUNE-26", "RUNE-41", level="pure")
@pytest.mark.parametrize(
    ("script", "stale"),
    [
        pytest.param([(3600, "1i"), (3900, "1i")], False, id="age counts from first sight"),
        pytest.param([(3600, "1i"), (3901, "1i")], True, id="and then it is stale"),
        pytest.param([(0, "1i"), (290, "1i2"), (400, "1i2")], False, id="a new claim starts anew"),
        pytest.param(
            [(0, "1i"), (200, "1c"), (230, "1i"), (400, "1i")], False, id="completion too"
        ),
        pytest.param([(0, "1i"), (200, "1p"), (400, "1i2")], False, id="given back and taken"),
        pytest.param([(0, "1i"), (400, "1p")], False, id="a pending task is never stale"),
        pytest.param([(0, "1i"), (400, "1c")], False, id="nor is a completed one"),
    ],
)
def test_how_old_a_task_is(script: list[tuple[float, str]], stale: bool) -> None:
    last = run(PLAIN, 9, *script)[-1]
    assert (Kind.STALLED in kinds(last)) == stale


@pytest.mark.row("RUNE-09", "RUNE-38", "RUNE-39", "RUNE-40", "RUNE-44", "C-21", level="pure")
@pytest.mark.parametrize(
    ("release", "stale", "age", "words", "told"),
    [
        pytest.param(None, 300, 400, "1i", ["task #1 may be stalled (>5min)"], id="never back"),
        pytest.param(600, 300, 600, "1i", ["task #1 may be stalled (>5min)"], id="not yet"),
        pytest.param(
            600, 300, 601, "1i", ["task #1 stalled (>10min) — auto-releasing"], id="back"
        ),
        pytest.param(
            300, 300, 301, "1i", ["task #1 stalled (>5min) — auto-releasing"], id="both at once"
        ),
        pytest.param(300, 300, 300, "1i", [], id="neither"),
        pytest.param(
            30, 45, 40, "1i", ["task #1 stalled (>0.5min) — auto-releasing"], id="before the warning"
        ),
        pytest.param(
            600, 300, 900, "1i!", ["task #1 may be stalled (>5min)"], id="one that follows a run"
        ),
        pytest.param(
            600, 90, 100, "1i 2i",
            ["task #1 may be stalled (>1.5min)", "task #2 may be stalled (>1.5min)"], id="each",
        ),
    ],
)  # fmt: skip
def test_stalled_tasks(
    release: int | None, stale: int, age: float, words: str, told: list[str]
) -> None:
    options = Options(
        label="Forge",
        stale=seconds(stale),
        release=None if release is None else seconds(release),
    )
    last = run(options, 9, (0, words), (age, words))[-1]
    assert [event.text for event in last.events[1:]] == [f"Forge: {text}" for text in told]


@pytest.mark.row("RUNE-39", "RUNE-41", level="pure")
def test_a_task_that_goes_back_has_a_fresh_clock() -> None:
    passes = run(BACK, 9, (0, "1i"), (601, "1i"), (631, "1i2"), (931, "1i2"), (932, "1i2"))
    assert passes[1].memory.seen == {}
    assert Kind.STALLED not in kinds(passes[3])
    assert Kind.STALLED in kinds(passes[4])


@pytest.mark.row("RUNE-16", "RUNE-42", level="pure")
def test_the_order_of_a_pass_in_which_all_applies() -> None:
    options = Options(
        "Work",
        stale=seconds(300),
        release=seconds(600),
        timeout=seconds(600),
        has_checkpoints=True,
    )
    last = run(options, 4, (0, "1i"), (100, "1i 2i"), (601, "1i 2i 3c"))[-1]
    assert kinds(last) == [
        Kind.PROGRESS,
        Kind.CHECKPOINT,
        Kind.RELEASED,
        Kind.STALLED,
        Kind.TIMEOUT,
    ]
    assert last.end is End.TIMEOUT


@pytest.mark.row("RUNE-05", "RUNE-08", "RUNE-17", "RUNE-18", "RUNE-19", "RUNE-46", level="pure")
@pytest.mark.parametrize(
    ("timeout", "at", "words", "end"),
    [
        pytest.param(None, 48 * 3600, "1i", None, id="no timeout at all"),
        pytest.param(600, 600, "1i", None, id="at the limit"),
        pytest.param(600, 601, "1i", End.TIMEOUT, id="over it"),
        pytest.param(600, 601, "1c 2c 3c", End.COMPLETE, id="completion first"),
        pytest.param(None, 0, "1c 2c 3c", End.COMPLETE, id="complete"),
        pytest.param(None, 0, "1c 2c 3c 4c", End.COMPLETE, id="more than expected"),
        pytest.param(None, 0, "1c 2c 3p", None, id="one is left"),
    ],
)
def test_how_a_pass_ends_a_monitor(
    timeout: int | None, at: float, words: str, end: End | None
) -> None:
    options = Options(timeout=None if timeout is None else seconds(timeout))
    last = run(options, 3, (at, words))[-1]
    assert last.end is end
    if end is End.COMPLETE:
        keys = tuple(word[0] for word in words.split())
        assert last.result == Result(keys, (), timed_out=False)
    else:
        assert last.result is None


@pytest.mark.row("RUNE-47", "RUNE-48", "C-23", level="pure")
@pytest.mark.parametrize("timed_out", [True, False])
def test_a_final_listing_is_split_by_status(timed_out: bool) -> None:
    found = grouping.split(listed("1c 2i 3p 4c"), timed_out=timed_out)
    assert found == Result(("1", "4"), ("2", "3"), timed_out)


@pytest.mark.row(
    *("RUNE-10", "RUNE-13", "RUNE-35", "RUNE-36", "RUNE-46", "RUNE-49", "RUNE-50"), level="pure"
)
def test_what_is_said() -> None:
    options = Options("Audit", timeout=seconds(450), has_checkpoints=True)
    first, second = run(options, 4, (0, "1i"), (6 * 60 + 59, "1i 2c 3i"))
    assert [event.text for event in first.events] == ["Audit progress: 0/4 tasks"]
    assert [event.text for event in second.events] == [
        "Audit progress: 1/4 tasks",
        "Checkpoint 1 — Audit\nProgress: 1/4 (25%)\nActive: Part 1, Part 3\n"
        "Blockers: #1 Part 1 (stale >6min)\nDecision: INVESTIGATE",
        "Audit: task #1 may be stalled (>5min)",
    ]
    (last,) = run(options, 4, (451, "1c 2c 3c"))
    assert last.events[-1].text == ("Audit timeout reached (7.5 min). Collecting partial results.")
    assert 100 not in [point.percentage for point in points([last])]
    split = grouping.split(listed("1c 2c 3c 4p"), timed_out=True)
    assert monitor_rules.partial(options, split, 4) == "Audit completed with partial results: 3/4"
    assert Options().label == "Monitor"


@pytest.mark.row("RUNE-34", "RUNE-36", level="pure")
def test_without_active_tasks_and_blockers_a_checkpoint_says_so() -> None:
    (point,) = points(run(WITH, 4, (0, "1c 2p")))
    assert point == Checkpoint(1, "Work", 1, 4, 25, (), (), Decision.CONTINUE)
    assert monitor_rules.lines(point) == [
        "Checkpoint 1 — Work",
        "Progress: 1/4 (25%)",
        "Active: none",
        "Decision: CONTINUE",
    ]


@pytest.mark.row("RUNE-32", level="pure")
def test_a_decision_is_one_of_three() -> None:
    assert set(Decision) == {"CONTINUE", "INVESTIGATE", "COMPLETE"}


LATE = Options("Work", timeout=seconds(90))
SENTINEL = AllDone(3, "2026-11-21T12:00:00Z")


@pytest.mark.row("RUNE-63", "RUNE-68", "RUNE-69", "RUNE-70", "RUNE-71", level="pure")
@pytest.mark.parametrize(
    ("options", "number", "sentinel", "signals", "at", "after", "said"),
    [
        pytest.param(
            PLAIN, 1, None, 1, 0, Next.WAIT, "Work: Progress: 1/3 tasks signaled", id="first"
        ),
        pytest.param(PLAIN, 2, None, None, 5, Next.WAIT, "", id="second"),
        pytest.param(
            PLAIN, 3, None, None, 10, Next.WAIT, "Work: Progress: 0/3 tasks signaled",
            id="third, and nobody could count",
        ),
        pytest.param(PLAIN, 0, None, None, 12, Next.WAIT, "", id="one that was woken"),
        pytest.param(
            PLAIN, 4, SENTINEL, None, 15, Next.FINISH,
            "Work: All 3 signals received at 2026-11-21T12:00:00Z", id="all of them",
        ),
        pytest.param(
            LATE, 0, SENTINEL, None, 900, Next.FINISH,
            "Work: All 3 signals received at 2026-11-21T12:00:00Z", id="before the timeout",
        ),
        pytest.param(
            PLAIN, 4, Unreadable.CORRUPTED, None, 15, Next.FALL_BACK,
            "Work: .all-done file corrupted, falling back to TaskList polling", id="corrupted",
        ),
        pytest.param(LATE, 19, None, None, 90, Next.WAIT, "", id="at the limit"),
        pytest.param(
            LATE, 20, None, 2, 91, Next.TIME_OUT,
            "Work: Timeout after 1.5 min. 2/3 signals received.", id="over it",
        ),
    ],
)  # fmt: skip
def test_a_check(
    options: Options,
    number: int,
    sentinel: AllDone | Unreadable | None,
    signals: int | None,
    at: float,
    after: Next,
    said: str,
) -> None:
    found = fast_path.check(options, 3, number, sentinel, signals, seconds(at))
    assert found.next is after
    assert [event.text for event in found.events] == ([said] if said else [])


@pytest.mark.row("RUNE-71", "RUNE-85", level="pure")
@pytest.mark.parametrize(
    ("number", "at", "is_counted"),
    [
        pytest.param(0, 0, False, id="woken"),
        pytest.param(1, 0, True, id="first"),
        pytest.param(2, 5, False, id="second"),
        pytest.param(3, 10, True, id="third"),
        pytest.param(7, 30, False, id="seventh"),
        pytest.param(20, 91, True, id="late"),
    ],
)
def test_signals_are_counted_only_where_that_is_told(
    number: int, at: float, is_counted: bool
) -> None:
    assert fast_path.is_counted(LATE, number, seconds(at)) == is_counted


@pytest.mark.row("RUNE-62", level="pure")
@pytest.mark.parametrize(
    ("is_fast", "poll", "said"),
    [
        (True, 30, "Work: Signal directory detected — event-driven monitoring (5s interval)"),
        (
            False,
            45,
            "Work: No signal directory — falling back to TaskList polling (45s interval)",
        ),
    ],
)
def test_what_a_monitor_says_first(is_fast: bool, poll: int, said: str) -> None:
    options = Options("Work", poll=seconds(poll))
    assert fast_path.entering(options, is_fast=is_fast) == said


@pytest.mark.row("RUNE-59", level="pure")
@pytest.mark.parametrize("call", ["monitor_rules.look(options", "fast_path.check("])
def test_one_monitor_is_shared_by_all(call: str) -> None:
    """Pages, commands, workflows and the API start and read monitors; one place watches."""
    rooms = ("runs", "labsite", "labctl")
    files = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    assert [p.name for p in files if call in p.read_text()] == ["monitor_stepper.py"]

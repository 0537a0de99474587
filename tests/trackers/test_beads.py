"""What only the tracker of beads does: its command line, its versions, its ways to go wrong."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runs.forges.bd import BdCommand
from tests.trackers.bd import Beads, environ
from trackers.base import (
    Ability,
    NewIssue,
    NotFound,
    NotUnderstood,
    Refused,
    TrackerError,
    Unreachable,
)
from trackers.beads import reading
from trackers.beads.adapter import BeadsTracker
from trackers.beads.command import Ended
from trackers.keys import KeyRule, is_key, rule_of

pytestmark = pytest.mark.real

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LABEL = "ready-for-agent"


class Clock:
    def __init__(self) -> None:
        self.at = AT

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def place(tmp_path: Path) -> Beads:
    return Beads(tmp_path / "place")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tracker(clock: Clock) -> BeadsTracker:
    return BeadsTracker(BdCommand(environ()), clock)


def queue(tracker: BeadsTracker, place: Beads, label: str = "") -> list[str]:
    found = tracker.queues({place.root: label})[place.root]
    return [issue.key for issue in found or ()]


# The ready queue.


@pytest.mark.row("C-17", level="contract")
@pytest.mark.parametrize("style", ["new", "old", "wrapped"])
def test_the_queue_is_bds_own_order_with_ties_by_key(
    tracker: BeadsTracker, place: Beads, style: str
) -> None:
    same = "2026-03-01T08:00:00Z"
    place.issue("bd-z9", "urgent", priority=0, created_at=same)
    place.issue("bd-b2", "second of two", priority=1, created_at=same)
    place.issue("bd-a1", "first of two", priority=1, created_at=same)
    place.issue("bd-0", "later", priority=1, created_at="2026-03-02T08:00:00Z")
    place.issue("bd-w", "taken", priority=0, status="in_progress")
    place.issue("bd-c", "closed", priority=0, status="closed")
    place.issue("bd-d", "waits", priority=0)
    place.blocks("bd-a1", "bd-d")
    place.style(style)

    assert queue(tracker, place) == ["bd-z9", "bd-a1", "bd-b2", "bd-0"]


def test_an_epic_is_no_work_that_could_be_started(tracker: BeadsTracker, place: Beads) -> None:
    place.issue("bd-e", "all of it", issue_type="epic")
    place.issue("bd-e.1", "a part of it", issue_type="feature")

    assert queue(tracker, place) == ["bd-e.1"]
    assert [one.key for one in tracker.open_issues(place.root)] == ["bd-e", "bd-e.1"]
    with pytest.raises(Refused, match="bd-e is an epic in bd, so it was not claimed"):
        tracker.claim(place.root, "bd-e")


@pytest.mark.row("C-17", level="contract")
def test_a_version_that_tells_no_time_keeps_bds_order(tracker: BeadsTracker, place: Beads) -> None:
    for key in ("bd-z", "bd-a", "bd-m"):
        place.issue(key, key, created_at="")

    assert queue(tracker, place) == ["bd-z", "bd-a", "bd-m"]


@pytest.mark.row("X-01", level="contract")
def test_a_label_narrows_the_queue_and_the_whole_queue_is_asked_for(
    tracker: BeadsTracker, place: Beads
) -> None:
    for number in range(25):
        place.issue(f"bd-{number:02}", "one of many", labels=[LABEL] if number % 2 else [])

    assert len(queue(tracker, place)) == 25
    assert len(queue(tracker, place, LABEL)) == 12
    with pytest.raises(Refused, match="cannot be asked for the label"):
        queue(tracker, place, "one,two")


@pytest.mark.row("X-01", level="contract")
def test_blockers_are_the_open_issues_that_bd_tells(tracker: BeadsTracker, place: Beads) -> None:
    for key in ("bd-1", "bd-2", "bd-3", "bd-4"):
        place.issue(key, key)
    place.issue("bd-5", "done", status="closed")
    for blocker in ("bd-1", "bd-5"):
        place.blocks(blocker, "bd-2")
    place.blocks("bd-5", "bd-3")

    found = tracker.blockers({place.root: ["bd-1", "bd-2", "bd-3"]})[place.root]

    assert found == {"bd-2": ("bd-1",)}
    open_ones = tracker.still_open({place.root: ["bd-1", "bd-5", "bd-9"]})[place.root] or ()
    assert [issue.key for issue in open_ones] == ["bd-1"]


# One issue, and changes.


@pytest.mark.row("C-53", level="contract")
def test_a_part_of_a_key_is_not_the_key(tracker: BeadsTracker, place: Beads) -> None:
    place.issue("lab-bd-7", "bd would take bd-7 for this one")

    for act in (
        lambda: tracker.issue(place.root, "bd-7"),
        lambda: tracker.close(place.root, "bd-7"),
        lambda: tracker.add_label(place.root, "bd-7", "x"),
    ):
        with pytest.raises(NotFound):
            act()
    assert place.shown("lab-bd-7")["status"] == "open"
    assert tracker.issue(place.root, "lab-bd-7").key == "lab-bd-7"


@pytest.mark.row("X-01", level="contract")
@pytest.mark.parametrize("style", ["new", "old", "wrapped"])
def test_an_issue_is_read_from_each_version(
    tracker: BeadsTracker, place: Beads, style: str
) -> None:
    place.issue(
        "bd-a1.2", "Retry", description="Text", acceptance_criteria="It retries", labels=["x"]
    )
    place.style(style)
    tracker.comment(place.root, "bd-a1.2", "ada", "-f is text\nand so is $(this)")

    issue = tracker.issue(place.root, "bd-a1.2")

    assert issue.body == "Text\n\n## Acceptance criteria\n\nIt retries"
    assert [(c.author, c.body) for c in issue.comments] == [
        ("ada", "-f is text\nand so is $(this)")
    ]
    with pytest.raises(NotFound):
        tracker.issue(place.root, "bd-none")


@pytest.mark.row("X-01", level="contract")
def test_changes_arrive_and_are_no_error_the_second_time(
    tracker: BeadsTracker, place: Beads
) -> None:
    made = tracker.create_issue(
        place.root, NewIssue("--title of an issue", "--body\nof it", ("x", "y"), "ada")
    )
    for _ in range(2):
        tracker.set_status(place.root, made.key, True)
        tracker.add_label(place.root, made.key, "-z")
        tracker.remove_label(place.root, made.key, "x")
    kept = place.shown(made.key)
    assert (kept["title"], kept["description"]) == ("--title of an issue", "--body\nof it")
    assert (kept["status"], kept["labels"], kept["created_by"]) == (
        "in_progress",
        ["y", "-z"],
        "ada",
    )
    assert tracker.labels(place.root) == {"y", "-z"}

    tracker.set_status(place.root, made.key, False)
    assert place.shown(made.key)["status"] == "open"
    for _ in range(2):
        tracker.close(place.root, made.key)
    assert place.shown(made.key)["status"] == "closed"
    tracker.set_status(place.root, made.key, False)
    assert place.shown(made.key)["status"] == "closed", "freeing does not open it again"
    with pytest.raises(Refused, match="is closed in bd"):
        tracker.set_status(place.root, made.key, True)


@pytest.mark.row("C-02", level="contract")
@pytest.mark.parametrize("status", ["in_progress", "hooked", "blocked", "deferred", "closed"])
def test_only_what_is_free_is_claimed(tracker: BeadsTracker, place: Beads, status: str) -> None:
    place.issue("bd-1", "one", status=status)
    with pytest.raises(Refused, match=f"bd-1 is {status} in bd, so it was not claimed"):
        tracker.claim(place.root, "bd-1")
    assert place.shown("bd-1")["status"] == status


@pytest.mark.row("C-02", level="contract")
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        pytest.param({"status": 1, "err": "Error: blocked by bd-2"}, Refused, id="blocked"),
        pytest.param({"err": "Error claiming bd-1: taken"}, Refused, id="on stderr alone"),
        pytest.param({"status": 1, "err": "database is locked"}, Unreachable, id="locked"),
        pytest.param({"status": 1, "err": "unknown flag: --status"}, NotUnderstood, id="strange"),
    ],
)
def test_a_claim_that_bd_does_not_make_is_an_error(
    tracker: BeadsTracker, place: Beads, fault: dict[str, Any], error: type[TrackerError]
) -> None:
    place.issue("bd-1", "one")
    place.fault({"command": "update", **fault})
    with pytest.raises(error):
        tracker.claim(place.root, "bd-1")
    assert place.shown("bd-1")["status"] == "open"


@pytest.mark.row("X-01", level="contract")
def test_no_text_becomes_an_option_and_no_daemon_is_started(
    tracker: BeadsTracker, place: Beads
) -> None:
    place.issue("bd-1", "one")
    tracker.comment(place.root, "bd-1", "--actor", "--file=/etc/passwd")
    tracker.add_label(place.root, "bd-1", "--all")

    for call in place.calls():
        options = call["argv"][: call["argv"].index("--")]
        assert not {"--file=/etc/passwd", "--all", "--actor"} & set(options)
    assert not place.has_daemon
    with pytest.raises(Refused, match="zero character"):
        tracker.comment(place.root, "bd-1", "ada", "a\0b")
    with pytest.raises(Refused, match="longer than"):
        tracker.comment(place.root, "bd-1", "ada", "x" * 200_000)
    with pytest.raises(Refused, match="cannot be given the label"):
        tracker.create_issue(place.root, NewIssue("t", labels=("a,b",)))


# What goes wrong.

FAULTS: list[Any] = [
    pytest.param(
        {"status": 1, "err": "Error: database is locked"},
        Unreachable,
        "database is locked",
        id="exit 1",
    ),
    pytest.param({"status": 1}, Unreachable, "exit status 1", id="exit 1 without words"),
    pytest.param(
        {"status": 1, "out": '{"error": "no such column: wisp"}'},
        Unreachable,
        "no such column",
        id="json",
    ),
    pytest.param({"out": "not json"}, NotUnderstood, "not JSON: not json", id="not json"),
    pytest.param({"out": ""}, NotUnderstood, "nothing", id="nothing"),
    pytest.param({"out": '{"ready": 3}'}, NotUnderstood, "else than a list", id="wrong shape"),
    pytest.param({"out": "[" * 100_000}, NotUnderstood, "not JSON", id="too deep"),
    pytest.param(
        {"status": 1, "err": "Error: unknown flag: --limit"}, NotUnderstood, "version", id="flag"
    ),
    pytest.param(
        {"status": 1, "err": "Error: no beads database found"},
        Refused,
        "no beads",
        id="no database",
    ),
    pytest.param(
        {"status": 1, "err": "push to https://me:hunter2@host failed, token=hunter2"},
        Unreachable,
        r"https://\*\*\*@host failed, token=\*\*\*",
        id="secret",
    ),
]


@pytest.mark.row("MALA-W-55", level="contract")
@pytest.mark.parametrize(("fault", "kind", "words"), FAULTS)
def test_each_way_to_go_wrong_is_typed_and_told_in_bds_words(
    tracker: BeadsTracker,
    place: Beads,
    fault: Mapping[str, Any],
    kind: type[TrackerError],
    words: str,
) -> None:
    place.fault(fault)
    with pytest.raises(kind, match=words) as raised:
        queue(tracker, place)
    assert "hunter2" not in str(raised.value)
    assert len(str(raised.value)) < 500


@pytest.mark.row("MALA-W-55", level="contract")
def test_a_bd_that_hangs_or_is_not_there_is_told(place: Beads, tmp_path: Path) -> None:
    class Impatient(BdCommand):
        def __call__(
            self, argv: Sequence[str], cwd: Path, seconds: float, env: Mapping[str, str]
        ) -> Ended:
            return super().__call__(argv, cwd, 0.3, env)

    place.fault({"hang": 30})
    with pytest.raises(Unreachable, match="no answer within"):
        queue(BeadsTracker(Impatient(environ()), Clock()), place)
    with pytest.raises(Refused, match="bd is not installed"):
        queue(BeadsTracker(BdCommand({"PATH": str(tmp_path)}), Clock()), place)


@pytest.mark.row("MALA-W-54", level="contract")
def test_a_failed_queue_is_asked_again_after_a_minute_and_others_at_once(
    tracker: BeadsTracker, place: Beads, clock: Clock, tmp_path: Path, caplog: Any
) -> None:
    other = Beads(tmp_path / "other")
    for one in (place, other):
        one.issue("bd-1", "one")
    place.fault({"command": "ready", "status": 1, "err": "Error: busy"})

    def ask() -> Mapping[str, Sequence[str] | None]:
        found = tracker.queues({place.root: "", other.root: ""})
        return {root: issues and [i.key for i in issues] for root, issues in found.items()}

    with caplog.at_level(logging.WARNING):
        assert ask() == {place.root: None, other.root: ["bd-1"]}
    assert "bd gave no answer" in caplog.text
    clock.at += timedelta(seconds=59)
    assert ask() == {place.root: None, other.root: ["bd-1"]}
    assert len(place.calls()) == 1
    clock.at += timedelta(seconds=1)
    assert ask() == {place.root: ["bd-1"], other.root: ["bd-1"]}


@pytest.mark.row("MALA-W-55", level="contract")
def test_a_refusal_with_status_0_is_one(tracker: BeadsTracker, place: Beads) -> None:
    place.issue("bd-1", "one")
    place.fault({"command": "label add", "err": "Error adding label: read-only"})
    with pytest.raises(Refused, match="read-only"):
        tracker.add_label(place.root, "bd-1", "x")


@pytest.mark.row("MALA-W-55", level="contract")
def test_a_change_that_bd_does_not_let_through_is_refused_and_a_lock_is_not(
    tracker: BeadsTracker, place: Beads
) -> None:
    place.issue("bd-1", "one")
    place.issue("bd-2", "waits")
    place.blocks("bd-1", "bd-2")
    with pytest.raises(Refused, match="blocked by open issues"):
        tracker.close(place.root, "bd-2")
    place.fault({"command": "close", "status": 1, "err": "Error: database is locked"})
    with pytest.raises(Unreachable, match="locked"):
        tracker.close(place.root, "bd-1")


@pytest.mark.row("X-01", level="contract")
def test_the_examination_says_what_is_missing(
    tracker: BeadsTracker, place: Beads, tmp_path: Path
) -> None:
    place.issue("bd-1", "one", labels=[LABEL])
    assert [(f.name, f.ok) for f in tracker.examine(place.root, LABEL)] == [
        ("bd", True),
        ("issues", True),
        ("ready queue", True),
    ]
    place.issue("auto-1", "unfit")
    place.spoil()
    texts = [f.text for f in tracker.examine(place.root, "") if f.ok is False]
    assert any("no key or no title" in text for text in texts)
    assert any("auto-1 cannot be started" in text for text in texts)
    for root in (str(tmp_path), "relative/path", "\0"):
        found = tracker.examine(root, LABEL)
        assert [f.ok for f in found] == [False]


def test_the_abilities_are_what_bd_can_do(tracker: BeadsTracker) -> None:
    assert Ability.PULLS not in tracker.abilities
    assert Ability.LOCAL not in tracker.abilities


# Pure: reading and keys.


@pytest.mark.parametrize(
    ("out", "keys"),
    [
        ("[]", []),
        ("null", []),
        ('{"schema_version": 1, "data": [{"id": "bd-1", "title": "t"}]}', ["bd-1"]),
        ('{"schema_version": 1}', []),
        ('Warning: stale\n[{"id": "bd-1", "title": "t"}]', ["bd-1"]),
        ('[{"issue": {"id": "bd-1", "title": "t"}, "blocked_by": []}]', ["bd-1"]),
        (
            '[{"id": "bd-1", "title": "t", "priority": "high", "labels": 3, "status": null}]',
            ["bd-1"],
        ),
        ('[3, null, {"id": 7, "title": "t"}, {"id": "bd-2", "title": "t"}]', ["bd-2"]),
    ],
)
def test_lists_are_read_leniently(out: str, keys: list[str]) -> None:
    assert [entry.key for entry in reading.read(reading.listed(out)).entries] == keys


@pytest.mark.row("C-53", level="pure")
@pytest.mark.parametrize(
    ("key", "is_fit"),
    [
        ("bd-a1b2", True),
        ("bd-a1b2.3", True),
        ("bd-a1b2.3.10", True),
        ("my_project-x1", True),
        ("gt--abc", True),
        ("BD-1", True),
        ("auto-1", False),
        ("7", False),
        ("x", False),
        ("-a-b", False),
        ("bd-", False),
        ("bd-a..b", False),
        ("bd-a__b", False),
        ("bd-a.", False),
        ("bd-a.lock", False),
        ("bd-a/b", False),
        ("bd-a b", False),
        ("bd~a-b", False),
        ("bd-ä", False),
        ("bd-1\n", False),
        ("feature-20260608-1530", False),
        ("bd-" + "a" * 90, False),
    ],
)
def test_a_key_can_be_used_as_it_is_or_not_at_all(key: str, is_fit: bool) -> None:
    assert is_key(key, KeyRule.WORD) is is_fit


@pytest.mark.row("LAB-74", level="pure")
def test_numbers_stay_strict() -> None:
    assert [
        k for k in ("7", "07", "0", "x", "-7", "7 ", "٧", "9" * 19) if is_key(k, KeyRule.NUMBER)
    ] == ["7"]
    assert (rule_of("beads"), rule_of("github")) == (KeyRule.WORD, KeyRule.NUMBER)


def test_the_double_refuses_what_bd_would(place: Beads) -> None:
    run: Callable[..., Ended] = BdCommand(environ())
    for argv in (["bd", "ready", "--fast"], ["bd", "dance"], ["bd", "list", "-x"]):
        ended = run(argv, place.folder, 5.0, {})
        assert ended.status == 1
        assert "unknown" in ended.err
    done = run(["bd", "create", "--json", "--", "t"], place.folder, 5.0, {"BD_ACTOR": "ada"})
    assert json.loads(done.out)["created_by"] == "ada"

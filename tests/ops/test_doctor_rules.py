"""What the doctor makes of facts: a table for each rule."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from labsite.doctor import checks, product, rules
from labsite.doctor.checks import Check
from labsite.doctor.lines import Line, Status, as_json, as_text, exit_code, ok, warning, wrong
from runs.setup.proposal_rules import GitFacts
from tests.patience import PATIENCE

OK, WARNING, WRONG = Status.OK, Status.WARNING, Status.WRONG


@pytest.mark.parametrize(
    ("said", "status"),
    [
        pytest.param("git version 2.39.5", OK, id="new enough"),
        pytest.param("git version 2.30.0", OK, id="just new enough"),
        pytest.param("git version 2.29.9", WRONG, id="too old"),
        pytest.param("git version 10.1", OK, id="numbers are not compared as words"),
        pytest.param("git version unknown", WARNING, id="names no version"),
        pytest.param(None, WRONG, id="not on PATH"),
    ],
)
def test_a_program_is_judged_by_its_version(said: str | None, status: Status) -> None:
    assert rules.program("git", said, (2, 30)).status == status


GIB = rules.GIB


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("Anna <a@b>", "as Anna <a@b>"),
        (None, "labsite <labsite@localhost>, since git knows no name"),
    ],
)
def test_the_doctor_says_who_commits(found: str | None, said: str) -> None:
    line = rules.committer(found)
    assert line.status is Status.OK
    assert said in line.seen


@pytest.mark.parametrize(
    ("free", "inodes", "status"),
    [
        pytest.param(50 * GIB, 10**6, OK, id="room"),
        pytest.param(50 * GIB, None, OK, id="files are not counted"),
        pytest.param(GIB - 1, 10**6, WARNING, id="less than a gigabyte"),
        pytest.param(50 * GIB, 9_999, WARNING, id="few files left"),
        pytest.param(99 * 1024**2, 10**6, WRONG, id="nearly full"),
        pytest.param(50 * GIB, 10, WRONG, id="nearly no files left"),
    ],
)
def test_a_full_disk_is_told_in_time(free: int, inodes: int | None, status: Status) -> None:
    assert rules.disk(rules.Room("state folder", free, inodes)).status == status


NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("stamp", "set_by", "ahead", "status"),
    [
        pytest.param(NOW, 3.0, -20.0, OK, id="right"),
        pytest.param(None, None, None, OK, id="nothing to compare with"),
        pytest.param(NOW + 4, 0.0, 59.0, OK, id="within what is normal"),
        pytest.param(NOW, 0.0, 61.0, WARNING, id="the last tick lies in the future"),
        pytest.param(NOW - 6, 0.0, None, WARNING, id="the disk has another time"),
        pytest.param(NOW, -3600.0, None, WARNING, id="set back since the start"),
        pytest.param(NOW, 3600.0, None, WARNING, id="set forward since the start"),
    ],
)
def test_a_clock_that_jumps_is_seen(
    stamp: float | None, set_by: float | None, ahead: float | None, status: Status
) -> None:
    assert rules.clock(rules.ClockFacts(NOW, stamp, set_by, ahead)).status == status


def test_a_clock_of_long_ago_is_wrong() -> None:
    assert rules.clock(rules.ClockFacts(1000.0, 1000.0, 0.0, None)).status == WRONG


@pytest.mark.parametrize(
    ("runs", "answer", "taken", "status", "said"),
    [
        pytest.param(True, 200, "", OK, "labsite runs here", id="ours answers"),
        pytest.param(True, None, "", WRONG, "answers nothing", id="ours is silent"),
        pytest.param(True, 500, "", WRONG, "status 500", id="ours fails"),
        pytest.param(False, None, "Port 1 is in use", WRONG, "in use", id="another program"),
        pytest.param(False, None, "", OK, "is free", id="free"),
    ],
)
def test_our_own_product_is_told_from_another_program(
    runs: bool, answer: int | None, taken: str, status: Status, said: str
) -> None:
    line = rules.port(rules.PortFacts("http://127.0.0.1:1", runs, answer, taken))
    assert (line.status, said in line.seen) == (status, True)


@pytest.mark.parametrize(
    ("hard", "inotify", "seen"),
    [
        pytest.param(None, {}, [OK, OK], id="no limit, nothing told"),
        pytest.param(
            16384, {"max_user_instances": 128, "max_user_watches": 8192}, [OK, OK], id="enough"
        ),
        pytest.param(1024, {}, [WARNING, OK], id="few files"),
        pytest.param(None, {"max_user_instances": 64}, [OK, WARNING], id="few watchers"),
    ],
)
def test_limits_that_agents_would_hit(
    hard: int | None, inotify: Mapping[str, int], seen: list[Status]
) -> None:
    assert [line.status for line in rules.limits(hard, 16384, inotify)] == seen


@pytest.mark.parametrize(
    ("found", "status"),
    [
        pytest.param({"django": "5.2", "huey": "3"}, OK, id="as pinned"),
        pytest.param({"django": "5.2"}, WRONG, id="one is missing"),
        pytest.param({"django": "5.1", "huey": "3"}, WARNING, id="another version"),
    ],
)
def test_packages_are_held_against_their_pins(found: dict[str, str], status: Status) -> None:
    pins = {"django": "5.2", "huey": "3", "pytest": "9"}
    assert rules.packages(pins, {"django", "huey"}, found).status == status


@pytest.mark.parametrize(
    ("error", "unknown", "exposed", "status"),
    [
        pytest.param("", [], [], OK, id="fine"),
        pytest.param("LAB_PORT is 'x'", ["LAB_X"], [], WRONG, id="cannot be meant"),
        pytest.param("", ["LAB_HOSTT"], [], WARNING, id="nothing reads it"),
        pytest.param("", [], ["open to all"], WARNING, id="open without TLS"),
    ],
)
def test_settings_come_first_and_say_what_is_wrong(
    error: str, unknown: list[str], exposed: list[str], status: Status
) -> None:
    assert product.settings_line(error, unknown, exposed).status == status


@pytest.mark.parametrize(
    ("waiting", "newer", "older", "status"),
    [
        pytest.param([], [], [], OK, id="level"),
        pytest.param(["runs.0009"], [], [], WARNING, id="to be applied"),
        pytest.param(["runs.0009"], ["runs.0010_newer"], [], WRONG, id="of a newer version"),
        pytest.param(["runs.0009"], [], ["runs.0007_older"], WRONG, id="of a version too old"),
    ],
)
def test_migrations(waiting: list[str], newer: list[str], older: list[str], status: Status) -> None:
    assert product.migrations(waiting, newer, older).status == status


def _tick(age: float | None, is_late: bool = False, error: str = "") -> dict[str, Any]:
    return {"age": age, "is_late": is_late, "error": error, "interval": 30}


@pytest.mark.parametrize(
    ("facts", "is_running", "status"),
    [
        pytest.param(_tick(5), True, OK, id="fresh"),
        pytest.param(_tick(500, True), True, WRONG, id="late while it runs"),
        pytest.param(_tick(500, True), False, OK, id="late, but nothing runs"),
        pytest.param(_tick(None), True, WRONG, id="never, while it runs"),
        pytest.param(_tick(None), False, OK, id="never yet"),
        pytest.param(_tick(5, error="tmux did not answer"), True, WARNING, id="with an error"),
        pytest.param(_tick(-50), True, OK, id="the clock line tells of the future"),
    ],
)
def test_the_last_tick(facts: dict[str, Any], is_running: bool, status: Status) -> None:
    assert product.tick(facts, is_running).status == status


def _agent(
    found: str | None,
    used: bool = True,
    asked: bool = False,
    login: bool | None = None,
    unfit: str = "",
    worker: bool | None = None,
    odd_payment: str = "",
) -> dict[str, Any]:
    return {
        "name": "A",
        "program": "a",
        "found": found,
        "unfit": unfit,
        "found_by_worker": worker,
        "version": "",
        "used": used,
        "asked": asked,
        "logged_in": login,
        "odd_payment": odd_payment,
        "untried": "",
    }


@pytest.mark.parametrize(
    ("agent", "status"),
    [
        pytest.param(_agent("/bin/a"), OK, id="there, no check"),
        pytest.param(_agent("/bin/a", asked=True, login=True), OK, id="logged in"),
        pytest.param(_agent("/bin/a", asked=True, login=False), WARNING, id="logged out"),
        pytest.param(_agent("/bin/a", asked=True, login=None), WARNING, id="its check hangs"),
        pytest.param(_agent(None), WARNING, id="missing and used"),
        pytest.param(_agent(None, worker=False), WARNING, id="missing for the worker too"),
        pytest.param(_agent(None, worker=True), OK, id="missing for this shell alone"),
        pytest.param(_agent("/bin/a", worker=False), WARNING, id="missing for the worker alone"),
        pytest.param(_agent("/bin/a", worker=True), OK, id="there for both"),
        pytest.param(_agent("/bin/a", unfit="It refuses root."), WARNING, id="refuses root"),
        pytest.param(_agent("/bin/a", unfit="It refuses root.", used=False), OK, id="not in use"),
        pytest.param(_agent(None, used=False), OK, id="missing and not used"),
        pytest.param(_agent("/bin/a", odd_payment="A key pays. Do x."), WARNING, id="a key pays"),
        pytest.param(
            _agent("/bin/a", odd_payment="A key pays.", used=False), OK, id="a key, not in use"
        ),
    ],
)
def test_agents(agent: dict[str, Any], status: Status) -> None:
    assert [line.status for line in product.agents([agent])] == [status]


def test_of_a_version_that_nobody_tried_the_doctor_says_how_to_try_it() -> None:
    new = {**_agent("/bin/a"), "version": "9.0", "untried": "This version was never tried."}
    there, version = product.agents([new])
    assert (there.status, version.status) == (OK, WARNING)
    assert "A 9.0: This version was never tried" in version.seen
    assert version.advice == 'Try it: ./lab agent try "A"'
    assert len(list(product.agents([{**new, "used": False}]))) == 1


RUNS = {
    "working": ["demo~1~afk-7"],
    "known": ["demo~1~afk-7", "demo~2~afk-8"],
    "worktrees": [],
    "words": [],
}


@pytest.mark.parametrize(
    ("live", "status"),
    [
        pytest.param(["demo~1~afk-7"], OK, id="alike"),
        pytest.param(
            ["demo~1~afk-7", "demo~2~afk-8", "my-own"], OK, id="starting, and a person's own"
        ),
        pytest.param(["demo~1~afk-7", "demo~3~afk-9"], WARNING, id="a session without a run"),
        pytest.param([], WARNING, id="a run without a session"),
        pytest.param(None, WARNING, id="tmux could not tell"),
    ],
)
def test_sessions_and_runs_are_held_against_each_other(
    live: list[str] | None, status: Status
) -> None:
    assert product.sessions(RUNS, live).status == status


def test_worktrees_repositories_and_secrets() -> None:
    assert product.worktrees(["/w/a"], ["/w/a"]).status == OK
    assert not list(product.unlinked([]))
    (line,) = product.unlinked(["demo-7"])
    assert "no worktrees of git any more" in line.seen and "demo-7" in line.seen
    assert product.worktrees(["/w/a"], ["/w/a", "/w/b"]).seen == "folders without a run: /w/b"
    assert product.beside([]).status == OK
    assert (
        product.beside(["reviews/9-1"]).status,
        "9-1" in product.beside(["reviews/9-1"]).seen,
    ) == (
        WARNING,
        True,
    )
    assert [line.status for line in product.repositories({}, 3)] == [OK]
    assert [line.status for line in product.repositories({"demo": "bad object"}, 3)] == [WRONG]
    assert (product.secrets(0).status, product.secrets(2).status) == (OK, WARNING)


NO_BD = "The command bd is not installed where labsite looks for programs."


@pytest.mark.parametrize(
    ("trouble", "status", "seen"),
    [
        pytest.param({}, OK, "bd version 1.2, 3 projects can be read", id="fine"),
        pytest.param({"demo": NO_BD}, WRONG, f"demo: {NO_BD}", id="missing"),
        pytest.param(
            {"demo": NO_BD, "web": NO_BD}, WRONG, f"demo, web: {NO_BD}", id="once for all"
        ),
        pytest.param(
            {"demo": "no beads database", "web": "database is locked"},
            WRONG,
            "demo: no beads database; web: database is locked",
            id="each its own",
        ),
    ],
)
def test_beads_is_one_line(trouble: dict[str, str], status: Status, seen: str) -> None:
    (line,) = product.beads({"said": "bd version 1.2", "projects": 3, "trouble": trouble})
    assert (line.status, line.seen) == (status, seen)


def test_without_a_project_on_beads_nothing_is_said_of_it() -> None:
    assert list(product.beads({"said": "", "projects": 0, "trouble": {}})) == []


def test_only_what_is_wrong_fails_the_call() -> None:
    assert exit_code([ok("a", "x"), warning("b", "x", "y")]) == 0
    assert exit_code([ok("a", "x"), wrong("b", "x", "y")]) == 1
    assert exit_code([]) == 0


def test_machines_get_stable_keys() -> None:
    told = json.loads(as_json([ok("a", "x"), wrong("b", "y", "z")]))
    assert told == {
        "status": "wrong",
        "checks": [
            {"check": "a", "status": "ok", "seen": "x", "advice": ""},
            {"check": "b", "status": "wrong", "seen": "y", "advice": "z"},
        ],
    }
    assert json.loads(as_json([])) == {"status": "ok", "checks": []}


def test_people_get_a_line_each_and_a_closing_sentence() -> None:
    text = as_text([ok("a", "x"), warning("long", "much\n to say", "do it")])
    assert text.splitlines() == [
        "ok       a     x",
        "warning  long  much to say",
        "               → do it",
        "",
        "2 checks: 1 to look at, the rest is fine. Nothing was changed.",
    ]
    assert as_text([ok("a", "x")]).endswith("All 1 checks are fine.")


@pytest.mark.parametrize(
    ("texts", "facts", "said"),
    [
        pytest.param({}, GitFacts(), [], id="nothing"),
        pytest.param({".gitmodules": "[submodule"}, GitFacts(has_submodules=True), [], id="on"),
        pytest.param(
            {".gitmodules": "[submodule"}, GitFacts(), ["submodules, which are not"], id="off"
        ),
        pytest.param(
            {".gitattributes": "* filter=lfs"},
            GitFacts(has_lfs=False),
            ["git-lfs is not installed here"],
            id="large files",
        ),
    ],
)
def test_what_a_project_lacks_is_said(
    texts: Mapping[str, str], facts: GitFacts, said: list[str]
) -> None:
    found = product.describe_set_up(texts, facts)
    lines = list(product.set_up({"demo": found}))
    assert [line.status for line in lines] == ([WARNING] * len(said) or [OK])
    assert all(part in line.seen for part, line in zip(said, lines, strict=False))


def test_signing_and_hooks_of_the_user_are_said() -> None:
    assert [line.status for line in product.git_settings(GitFacts())] == [OK]
    lines = list(product.git_settings(GitFacts(hooks_path="/h", why_unsigned="no key")))
    assert [(line.check, line.status) for line in lines] == [("signing", WARNING)] * 2
    assert "no key" in lines[1].seen


@pytest.mark.long
def test_a_check_that_fails_or_hangs_keeps_no_other_from_being_told() -> None:
    never = threading.Event()

    def fails() -> list[Line]:
        raise ValueError("odd")

    def hangs() -> list[Line]:
        never.wait(PATIENCE)
        return []

    lines = checks.run(
        [Check("odd", fails), Check("slow", hangs), Check("fine", lambda: [ok("fine", "x")])], 6
    )
    never.set()
    assert [(line.check, line.status) for line in lines] == [
        ("odd", WRONG),
        ("slow", WRONG),
        ("fine", OK),
    ]
    assert "ValueError: odd" in lines[0].seen
    assert "within 6 seconds" in lines[1].seen


def test_orders_for_the_terminal_are_not_passed_on() -> None:
    text = as_text([ok("git", "version \x1b]0;evil\x07 \x1b[2J 3\x9b1m")])
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert "version" in text


def test_credentials_are_hidden_in_every_line() -> None:
    lines = checks.run(
        [Check("a", lambda: [wrong("a", "https://u:pw@host failed", "password=pw2")])], 5
    )
    assert "pw" not in lines[0].seen
    assert "pw2" not in lines[0].advice

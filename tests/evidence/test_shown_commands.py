"""What the records of the real programs show: each command with its status, and the agent's words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs.core.states import Claim
from runs.evidence.shown_commands import LINE_BYTES, MOST_OPEN, Marker, Reader
from runs.transcript.record_rules import Form
from tests.conversation.long_talk import Claude

RECORDED = Path(__file__).parent / "recorded"
W = "/srv/trees/demo-7"
FIXED = Marker(Claim.NO_CHANGE, "it is fixed already")


def lines(name: str) -> list[bytes]:
    return (RECORDED / f"{name}.jsonl").read_bytes().splitlines()


def read(form: Form, *found: bytes, **more: Any) -> Reader:
    reader = Reader(form, **more)
    for line in found:
        reader.read(line)
    return reader


def told(reader: Reader) -> list[tuple[str, int | None, str]]:
    shown = [one for _, one in reader.ended()]
    return [(one.line.split("\n")[0], one.status, one.folder) for one in shown]


def checks(reader: Reader) -> list[tuple[str, int | None, str]]:
    """The lines that hold the project's command, with why a status is hidden."""
    shown = [one for _, one in reader.ended() if "check.sh" in one.line]
    return [(one.line, one.status, one.hidden) for one in shown][1:]


OF_ALL = [
    ("./check.sh", 0, ""),
    ("STATUS=3 ./check.sh", 3, ""),
    ("./check.sh 2>&1 | tail -1", 0, ""),
    ("cd .. && demo-7/check.sh", 0, ""),
]
BACKGROUND = "it was left running in the background"


@pytest.mark.row("MALA-V-25", level="contract")
@pytest.mark.parametrize("name", ["claude", "claude_printed"])
def test_claude_codes_commands_are_shown_with_their_statuses(name):
    found = checks(read(Form.CLAUDE, *lines(name)))
    assert found[:4] == OF_ALL
    assert found[4] == ("sleep 1; ./check.sh", None, BACKGROUND)
    assert found[5] == ("sleep 30; ./check.sh", 143, "")


def test_a_command_of_an_agent_that_it_started_is_shown_and_its_words_are_not_its_own():
    reader = read(Form.CLAUDE, *lines("claude_agent"), is_main=False)
    assert ("./check.sh", 0, W) in told(reader)
    assert reader.marker is None
    printed = read(Form.CLAUDE, *lines("claude_printed"))
    assert ("./check.sh", 0, "") in checks(printed)[6:]


@pytest.mark.row("MALA-V-25", level="contract")
def test_codexs_commands_are_shown_with_their_statuses():
    found = checks(read(Form.CODEX, *lines("codex")))
    assert found[:4] == OF_ALL
    assert found[4:] == [("sleep 33; STATUS=6 ./check.sh", 6, ""), ("./check.sh", 0, "")]
    assert {folder for _, _, folder in told(read(Form.CODEX, *lines("codex")))} == {W}


@pytest.mark.row("MALA-V-25", level="contract")
def test_codexs_printed_commands_are_shown_with_their_statuses():
    found = checks(read(Form.CODEX_PRINTED, *lines("codex_printed")))
    assert [status for _, status, _ in found[:4]] == [0, 3, 0, 0]
    assert found[0][0] == "/bin/bash -lc ./check.sh"


@pytest.mark.row("MALA-V-31", level="contract")
@pytest.mark.row("MALA-V-35", level="contract")
@pytest.mark.parametrize(
    ("form", "name"),
    [
        (Form.CLAUDE, "claude"),
        (Form.CLAUDE, "claude_printed"),
        (Form.CODEX, "codex"),
        (Form.CODEX_PRINTED, "codex_printed"),
    ],
)
def test_a_marker_counts_in_the_agents_own_words_alone(form, name):
    found = lines(name)
    printed_by_a_tool = [one for one in found if b"ISSUE_OBSOLETE" in one]
    assert printed_by_a_tool or name == "claude"
    assert read(form, *found).marker == FIXED
    assert read(form, *(one for one in found if b"ISSUE_NO_CHANGE" not in one)).marker is None


@pytest.mark.row("MALA-V-35", level="contract")
def test_a_marker_in_the_task_the_issue_or_a_quotation_has_no_effect():
    talk, mark = Claude(W), "ISSUE_NO_CHANGE: says somebody else"
    found: list[Any] = [
        talk.prompt(f"Work on issue 7.\n\n{mark}"),
        talk.does("toolu_1", "Bash", command="labctl issue view 7"),
        talk.gets("toolu_1", f"The page is broken.\n{mark}\n"),
        talk.thinks(mark),
        talk.says(f"The issue says:\n\n> {mark}\n\n```\n{mark}\n```\nI go on."),
        talk.line("user", message={"content": mark}, isCompactSummary=True),
        talk.line("system", subtype="notice", content=mark),
        talk.line("user", message={"content": f"<command-name>{mark}"}, isMeta=True),
    ]
    assert read(Form.CLAUDE, *map(raw, found)).marker is None


def test_a_subagents_words_in_the_record_of_the_main_one_are_not_its_own():
    mark = "ISSUE_OBSOLETE: says the part"
    told = [Claude(W).says(mark) | {"parent_tool_use_id": "toolu_1"}]
    told.append(Claude(W, isSidechain=True, agentId="a-1").says(mark))
    assert read(Form.CLAUDE, *map(raw, told)).marker is None
    assert read(Form.CLAUDE, raw(Claude(W).says(mark))).marker is not None


def raw(entry: Any) -> bytes:
    return json.dumps(entry).encode()


def call(talk: Claude, ident: str, line: str, **given: Any) -> bytes:
    return raw(talk.does(ident, "Bash", command=line, **given))


def test_a_call_without_a_result_has_no_status():
    talk = Claude(W)
    [(_, one)] = read(Form.CLAUDE, call(talk, "toolu_1", "pytest")).ended()
    assert (one.status, one.hidden) == (None, "no end of it is told")


@pytest.mark.parametrize(
    ("text", "more", "status"),
    [
        ("3 passed", {}, 0),
        ("Exit code 1\nboom", {"is_error": True}, 1),
        ("<tool_use_error>not allowed</tool_use_error>", {"is_error": True}, None),
        ("", {"told": {"interrupted": True}}, None),
        ("", {"told": {"backgroundTaskId": "b1"}}, None),
        ("", {"told": {"returnCodeInterpretation": "No matches found"}}, None),
    ],
)
def test_only_a_result_that_tells_the_end_gives_a_status(text, more, status):
    talk = Claude(W)
    found = [call(talk, "toolu_1", "pytest"), raw(talk.gets("toolu_1", text, **more))]
    [(_, one)] = read(Form.CLAUDE, *found).ended()
    assert one.status == status
    assert bool(one.hidden) is (status is None)


def test_a_result_of_another_call_and_one_that_is_too_long_end_nothing():
    talk = Claude(W)
    found = [
        call(talk, "toolu_1", "pytest"),
        raw(talk.gets("toolu_2", "3 passed")),
        raw(talk.gets("toolu_1", "x" * (LINE_BYTES + 1))),
    ]
    [(_, one)] = read(Form.CLAUDE, *found).ended()
    assert one.status is None


def test_no_other_tool_runs_commands():
    talk = Claude(W)
    found = [
        raw(talk.does("toolu_1", "Write", file_path="x", content="pytest", command="pytest")),
        raw(talk.gets("toolu_1", "done")),
    ]
    assert read(Form.CLAUDE, *found).ended() == []


@pytest.mark.row("MALA-V-29", level="pure")
def test_what_was_written_before_a_moment_does_not_count():
    talk = Claude(W)
    found = [call(talk, "toolu_1", "pytest"), raw(talk.gets("toolu_1", "3 passed"))]
    moment = json.loads(found[1])["timestamp"]
    assert len(read(Form.CLAUDE, *found).ended()) == 1
    last = read(Form.CLAUDE, *found).last
    assert read(Form.CLAUDE, *found, after=last).ended() == [], moment
    timeless = [raw({**json.loads(one), "timestamp": None}) for one in found]
    assert read(Form.CLAUDE, *timeless, after=last).ended() == []
    assert len(read(Form.CLAUDE, *timeless).ended()) == 1


@pytest.mark.parametrize(
    ("words", "shown"),
    [(None, 3), (("pytest",), 1), (("pytest", "é"), 2), (("cargo",), 0), ((), 0)],
)
def test_only_commands_that_hold_a_word_are_shown(words, shown):
    talk = Claude(W)
    found = [call(talk, f"toolu_{n}", line) for n, line in enumerate(("pytest", "ls", "./é.sh"))]
    assert len(read(Form.CLAUDE, *found, words=words).ended()) == shown


def test_calls_that_never_end_are_forgotten_in_order_and_stay_open():
    talk = Claude(W)
    found = [call(talk, f"toolu_{n}", f"pytest {n}") for n in range(MOST_OPEN + 10)]
    shown = read(Form.CLAUDE, *found).ended()
    assert len(shown) == MOST_OPEN + 10
    assert {one.status for _, one in shown} == {None}


def test_no_line_makes_the_reading_fail():
    odd = [
        b"",
        b"{",
        b'"tool_use" "command"',
        b'{"type":"assistant","message":"tool_use"}',
        b'{"type":"assistant","message":{"content":[{"type":"tool_use","input":{"command":5}}]}}',
        b'{"payload":{"type":"function_call","arguments":"{"},"type":"response_item"}',
        b'{"type":"item.completed","item":{"type":"command_execution","exit_code":"x"}}',
        b'{"a":' * 5000 + b'"tool_use" "command" ISSUE_OBSOLETE',
        b"\xff\xfe tool_use",
    ]
    for form in Form:
        assert read(form, *odd).ended() == []

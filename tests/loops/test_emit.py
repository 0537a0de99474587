"""`labctl emit`: what agents of a loop tell, as a file that other programs write to as well."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from labctl import loop_events
from runs.loops import events
from tests.labctl.session import Session

pytestmark = [pytest.mark.real, pytest.mark.quick("an agent's own command, shown in milliseconds")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


@pytest.fixture
def session(tmp_path: Path, file: Path) -> Session:
    return Session(tmp_path / "session", more={"LAB_LOOP_EVENTS": str(file)})


def env(file: Path) -> dict[str, str]:
    return {"LAB_LOOP_EVENTS": str(file)}


def told(file: Path) -> list[tuple[str, str]]:
    """As labsite reads them."""
    batch = events.read(file.read_text().splitlines(), most=1_000_000)
    assert batch.malformed == 0
    return [(event.topic, event.payload) for event in batch.events]


@pytest.mark.row("RALPH-76", level="real")
def test_a_question_is_the_event_that_asks_a_person(session, file):
    said = session.run("ask", "Which", "port?")
    assert (said.code, said.err) == (0, "")
    assert "End this turn now" in said.out
    assert told(file) == [("human.interact", "Which port?")]
    assert events.question(events.read(file.read_text().splitlines()).events) == "Which port?"
    for words in ([], [" "]):
        assert session.run("ask", *words).code == 2
    assert session.run("ask", "--help").out == "usage: labctl ask TEXT\n"


def test_an_event_is_a_line_of_the_turns_file(session, file):
    began = time.time()
    for arguments in (
        ["build.done", "All\ntests „pass“ \U0001f600"],
        ["LOOP_COMPLETE"],
        ["a", "b", "c"],
    ):
        said = session.run("emit", *arguments)
        assert (said.code, said.out, said.err) == (0, "", "")
    assert told(file) == [
        ("build.done", "All\ntests „pass“ \U0001f600"),
        ("LOOP_COMPLETE", ""),
        ("a", "b c"),
    ]
    assert began <= json.loads(file.read_text().splitlines()[0])["at"] <= time.time()
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "topic", ["", "a..b", ".a", "a.", "1a", "a b", "a/b", "ä", "a\n", "a" * 101, "--topic", "-"]
)
def test_a_wrong_topic_is_refused_with_a_sentence(session, file, topic):
    said = session.run("emit", topic, "text")
    assert (said.code, said.out) == (2, "")
    assert "is no topic" in said.err
    assert said.err.count("\n") == 1
    assert not file.exists()


def test_without_a_topic_it_says_how_it_is_called(session):
    assert session.run("emit").code == 2
    assert session.run("emit", "--help").out == "usage: labctl emit TOPIC [TEXT]\n"
    assert "emit" in session.run("--help").out


def test_elsewhere_it_says_that_nobody_listens(session):
    session.env.pop("LAB_LOOP_EVENTS")
    said = session.run("emit", "build.done")
    assert (said.code, said.err) == (
        1,
        "labctl: this is no loop run, so nobody listens to events.\n",
    )


def test_a_long_text_is_cut(session, file):
    assert session.run("emit", "a", "ä" * 60_000).code == 0
    assert told(file) == [("a", "ä" * events.MOST_PAYLOAD)]
    assert len(file.read_text()) < events.MOST_PAYLOAD + 100


def test_bytes_that_are_no_text_are_told_all_the_same(session, file):
    assert session.run("emit", "a", os.fsdecode(b"x\xff\x01y")).code == 0
    assert told(file) == [("a", "x�y")]


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "no folder", "invalid"])
def test_what_is_no_plain_file_is_not_written_to(tmp_path, file, kind):
    target = tmp_path / "target"
    target.write_text("mine")
    if kind == "link":
        file.symlink_to(target)
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    path = {"no folder": tmp_path / "x" / "y", "invalid": "a\0b"}.get(kind, file)
    code, text = loop_events.emit({"LAB_LOOP_EVENTS": str(path)}, "a", "text")
    assert code == 1
    assert text.endswith(".")
    assert target.read_text() == "mine"


def test_a_hundred_thousand_events_cost_nobody_much(file):
    before = time.process_time()
    for number in range(100_000):
        assert loop_events.emit(env(file), "build.done", str(number)) == (0, "")
    assert time.process_time() - before < 30
    with file.open() as lines:
        batch = events.read(lines)
    assert (len(batch.events), batch.dropped) == (events.MOST_EVENTS, 99_000)
    assert batch.events[-1].payload == "999"


def test_a_flood_fills_no_disk(file):
    with file.open("wb") as sparse:
        sparse.truncate(loop_events.FULL)
    code, text = loop_events.emit(env(file), "a", "text")
    assert (code, file.stat().st_size) == (1, loop_events.FULL)
    assert "more events than anybody reads" in text


def test_commands_at_the_same_time_leave_whole_lines(session, file):
    programs = [session.start("emit", f"topic{n}", "x" * 7000) for n in range(12)]
    for program in programs:
        program.communicate()
        assert program.returncode == 0
    assert sorted(told(file)) == sorted((f"topic{n}", "x" * 7000) for n in range(12))

"""What the agent of a loop keeps with `labctl`: real processes against the real agent API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs.core import tokens
from runs.groups import acts as groups
from runs.loops import acts, beginning
from runs.models import LoopMemory, LoopTerms, Project, Run
from tests import make
from tests.fakes import World
from tests.labctl.session import Said, Session
from tests.loops.desk import project_of

pytestmark = pytest.mark.django_db(transaction=True)
TOKEN = tokens.new_token()


@pytest.fixture
def project(world: World) -> Project:
    return project_of(world)


@pytest.fixture
def run(world: World, project: Project) -> Run:
    """A loop whose agent has a turn."""
    made = make.a_run(project, agent="Turner", token_hash=tokens.hash_token(TOKEN))
    beginning.make(world.lab, made, LoopTerms.objects.get(), project.agent)
    return made


@pytest.fixture
def session(run: Run, live_server: Any, tmp_path: Path) -> Session:
    events = str(tmp_path / "events.jsonl")
    made = Session(tmp_path / "session", token=TOKEN, more={"LAB_LOOP_EVENTS": events})
    made.address.write_text(live_server.url)
    return made


def ok(said: Said) -> str:
    assert (said.code, said.err) == (0, "")
    return said.out


def refused(said: Said) -> str:
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("labctl: ")
    return said.err


def test_memories_are_kept_listed_and_searched(session, project, world):
    assert ok(session.run("memory", "list")) == "No memories yet.\n"
    first = ok(session.run("memory", "add", "The tests", "need „TZ=UTC“."))
    assert first.startswith("Memory ") and first.endswith(" is kept for all later runs.\n")
    assert ok(session.run("memory", "add", "The tests need „TZ=UTC“.")) == first, "asked again"
    ok(session.run("memory", "add", text="Two\x1b[31m\nlines"))
    assert ok(session.run("memory", "list")) == ("- Two[31m\n  lines\n- The tests need „TZ=UTC“.\n")
    assert ok(session.run("memory", "search", "tz=utc")) == "- The tests need „TZ=UTC“.\n"
    assert ok(session.run("memory", "search", "a&q=%")) == "No memory has a&q=%.\n"
    (found,) = json.loads(ok(session.run("memory", "search", "lines", "--json")))
    assert found["text"] == "Two[31m\nlines"
    assert "run" in LoopMemory.objects.first().by

    # The next run of the project has them, whatever became of this one.
    later = make.a_run(project, key="8", token_hash=tokens.hash_token("other"))
    assert [one.text for one in acts.memories(later.project_id)][-1] == "The tests need „TZ=UTC“."


def test_tasks_are_added_closed_blocked_and_made_ready(session, run):
    assert ok(session.run("task", "list")) == "No tasks yet.\n"
    assert ok(session.run("task", "add", "Read the parser")) == "#1\tready\tRead the parser\n"
    assert ok(session.run("task", "add", "Read the parser")).startswith("#1\t"), "asked again"
    assert json.loads(ok(session.run("task", "add", "Mend it", "--json")))["number"] == 2
    blocked = ok(session.run("task", "block", "2", "-m", "no network"))
    assert blocked == "#2\tblocked\tMend it\tno network\n"
    assert ok(session.run("task", "done", "#1")) == "#1\tdone\tRead the parser\n"
    assert ok(session.run("task", "done", "1")) == "#1\tdone\tRead the parser\n"
    assert ok(session.run("task", "list")) == (
        "#1\tdone\tRead the parser\n#2\tblocked\tMend it\tno network\n"
    )
    assert ok(session.run("task", "ready", "2")) == "#2\tready\tMend it\n"
    assert ok(session.run("task", "add", "Read the parser")).startswith("#3\t"), "the first is done"
    assert "There is no task 9 in this loop." in refused(session.run("task", "done", "9"))
    for word in ("x", "1.5", "-1", "²", "9" * 10):
        said = session.run("task", "block", "--", word)
        assert (said.code, said.out) == (2, "")
        assert "is no number of a task; labctl task list shows them." in said.err


def test_tasks_of_a_group_are_still_reached_and_a_text_without_quotes_is_explained(
    session, project, world
):
    groups.make(world.lab, project, "review-7", by="anna")
    made = ok(session.run("task", "add", "review-7", "Read the lexer", "Read the tests"))
    assert made == "#1\tpending\tRead the lexer\n#2\tpending\tRead the tests\n"
    assert ok(session.run("task", "list", "review-7")) == made
    ok(session.run("task", "claim", "review-7"))
    assert ok(session.run("task", "done", "review-7", "1")) == "Task #1 is completed.\n"
    assert ok(session.run("task", "list")) == "No tasks yet.\n"
    said = refused(session.run("task", "add", "Read", "the", "parser"))
    assert said.endswith('put its text in quotes: labctl task add "Read the parser"\n')
    keyed = session.run("task", "add", "Read", "--key", "7")
    assert (keyed.code, keyed.out) == (2, "")


def test_guidance_is_confirmed_once_it_was_given(session, run, world):
    acts.guide(world.lab, run, "Use the new parser", by="anna")
    assert ok(session.run("ack")) == "There was no guidance to confirm.\n", "in no prompt yet"
    loop = acts.of_run(run)
    now = world.lab.now()
    turn = loop.turns.create(generation=1, number=1, role="coordinator", ordered_at=now)
    loop.guidance.update(given_in=turn)
    assert ok(session.run("ack")) == "1 piece of guidance confirmed.\n"
    assert loop.guidance.get().acknowledged_at is not None
    assert ok(session.run("ack")) == "There was no guidance to confirm.\n"


def test_a_run_that_is_no_loop_and_an_empty_text_are_refused_with_a_sentence(session, run):
    assert "Write a text." in refused(session.run("memory", "add", text="  \n"))
    assert "At most 4,000" in refused(session.run("task", "add", "x" * 4001))
    both = session.run("memory", "add", "x", "-F", "-")
    assert (both.code, both.err) == (
        2,
        "labctl: write the memory as words or name a file, not both.\n",
    )
    run.loop.delete()
    for words in (["task", "list"], ["task", "add", "x"], ["task", "done", "1"], ["ack"]):
        assert "This run is no loop." in refused(session.run(*words))
    ok(session.run("memory", "add", "Every run may leave one"))

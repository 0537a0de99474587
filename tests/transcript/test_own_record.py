"""Which of the files that agents keep for themselves are a run's, and that no other is ever read."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from runs.machine.agent_records import MOST_OPENED
from runs.models import Run
from runs.transcript import own_record, record_rules
from runs.transcript.record_rules import Form, Wanted
from tests import make
from tests.fakes import START, World
from tests.world import agent_homes as homes
from tests.world.agent_homes import AGENT, CALL, OTHER, SESSION, THREAD

pytestmark = pytest.mark.django_db

TREE = "/srv/work.trees/demo-7"
CLAUDE = {"argv": ["claude", "{prompt}"], "trust": "claude"}
CODEX = {"argv": ["codex", "{prompt}"]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def a_run(agent: dict[str, object], **fields: object) -> Run:
    profile = make.an_agent(**agent)
    told = {"worktree": TREE, "agent_session": SESSION, **fields}
    return make.a_run(make.a_project(), profile=profile, **told)


def names(world: World, run: Run) -> list[str]:
    return [record.name for record in own_record.find(world.lab, run)]


def words(world: World, run: Run) -> list[bytes]:
    found = [world.lab.records.read(one, 0, 10_000) for one in own_record.find(world.lab, run)]
    return [one.data for one in found if one is not None]


def test_claude_codes_record_is_found_by_its_session_with_those_of_its_agents(world, home):
    main = homes.write(homes.claude_path(home, TREE), [homes.said(TREE)])
    agent = homes.write(homes.agent_path(main), [homes.said(TREE, "Part.", isSidechain=True)])
    meta = {"toolUseId": CALL, "agentType": "general-purpose"}
    homes.write(agent.with_name(f"agent-{AGENT}.meta.json"), [meta])
    found = own_record.find(world.lab, a_run(CLAUDE))
    told = [(one.form, one.name, one.call) for one in found]
    assert told == [("claude", SESSION, ""), ("claude", f"{SESSION}.{AGENT}", CALL)]


def test_every_session_that_its_hooks_named_is_there_in_their_order(world, home):
    for session in (SESSION, OTHER):
        homes.write(homes.claude_path(home, TREE, session), [homes.said(TREE, session=session)])
    run = a_run(CLAUDE, agent_session="")
    events = [{"event": "SessionStart", "session": one} for one in (OTHER, SESSION, OTHER)]
    raw = "".join(json.dumps(one) + "\n" for one in events).encode()
    world.sessions.events[world.lab.paths.run_folder(run.pk)] = raw
    assert names(world, run) == [OTHER, SESSION]


def test_a_home_of_its_own_is_looked_into(world, tmp_path):
    own = tmp_path / "elsewhere"
    path = homes.claude_path(tmp_path, TREE).relative_to(tmp_path / ".claude")
    homes.write(own / path, [homes.said(TREE)])
    assert names(world, a_run({**CLAUDE, "env": {"CLAUDE_CONFIG_DIR": str(own)}})) == [SESSION]


def test_a_home_that_only_its_hooks_name_is_looked_into(world, tmp_path):
    path = homes.write(homes.claude_path(tmp_path / "hidden", TREE), [homes.said(TREE)])
    run = a_run(CLAUDE)
    event = {"event": "Stop", "session": SESSION, "transcript": str(path)}
    folder = world.lab.paths.run_folder(run.pk)
    world.sessions.events[folder] = json.dumps(event).encode() + b"\n"
    assert names(world, run) == [SESSION]


def test_a_folder_under_another_name_is_found_by_the_session_and_believed_by_what_it_says(
    world, home
):
    """The program cuts the name of a folder whose path is very long."""
    homes.write(home / ".claude/projects/cut-a1b2" / f"{SESSION}.jsonl", [homes.said(TREE)])
    assert names(world, a_run(CLAUDE)) == [SESSION]


@pytest.mark.parametrize(("age", "found"), [(0, [SESSION]), (999, [])], ids=["newest", "oldest"])
def test_of_many_folders_only_those_that_changed_last_are_opened(world, home, age, found):
    projects = home / ".claude/projects"
    homes.write(projects / "cut-a1b2" / f"{SESSION}.jsonl", [homes.said(TREE)])
    for number in range(MOST_OPENED):
        (projects / f"a-{number:03}").mkdir()
        os.utime(projects / f"a-{number:03}", (1_000_000 - number,) * 2)
    os.utime(projects / "cut-a1b2", (1_000_001 - age,) * 2)
    assert names(world, a_run(CLAUDE)) == found


@pytest.mark.parametrize(
    "line",
    [homes.said("/srv/work.trees/demo-8"), homes.said(TREE, session=OTHER)],
    ids=["of another folder", "of another session"],
)
def test_a_record_of_somebody_else_is_not_read(world, home, line):
    homes.write(homes.claude_path(home, TREE), [line])
    assert names(world, a_run(CLAUDE)) == []


def test_a_record_that_says_nothing_yet_is_believed_where_it_belongs_alone(world, home):
    run = a_run(CLAUDE)
    homes.write(home / ".claude/projects/cut-a1b2" / f"{SESSION}.jsonl", [{"type": "mode"}])
    assert names(world, run) == []
    homes.write(homes.claude_path(home, TREE), [{"type": "mode"}])
    assert names(world, run) == [SESSION]


@pytest.mark.parametrize("what", ["link", "linked folder", "pipe", "folder"])
def test_nothing_but_a_plain_file_is_opened(world, home, tmp_path, what):
    secret = homes.write(tmp_path / "secret" / f"{SESSION}.jsonl", [homes.said(TREE)])
    path = homes.claude_path(home, TREE)
    path.parent.parent.mkdir(parents=True)
    if what == "linked folder":
        path.parent.symlink_to(secret.parent)
    else:
        path.parent.mkdir()
    if what == "link":
        path.symlink_to(secret)
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    assert names(world, a_run(CLAUDE)) == []


def test_a_record_that_became_a_link_meanwhile_is_not_read(world, home, tmp_path):
    path = homes.write(homes.claude_path(home, TREE), [homes.said(TREE)])
    [record] = own_record.find(world.lab, a_run(CLAUDE))
    path.unlink()
    path.symlink_to(homes.write(tmp_path / "secret", [{}]))
    assert world.lab.records.read(record, 0, 100) is None


@pytest.mark.parametrize("session", ["../../x", "a/b", "", ".." * 8, "x" * 500])
def test_an_id_that_is_no_file_name_finds_nothing(world, home, session):
    homes.write(homes.claude_path(home, TREE), [homes.said(TREE)])
    found = world.lab.records.find(Wanted(TREE, sessions=(session,)))
    assert list(found) == []


def test_codexs_record_is_found_by_its_session(world, home):
    homes.write(homes.codex_path(home), [homes.codex_meta(TREE)])
    found = own_record.find(world.lab, a_run(CODEX, agent_session=THREAD))
    assert [(one.form, one.name) for one in found] == [(Form.CODEX, THREAD)]


def test_codexs_record_of_another_folder_is_not_read(world, home):
    homes.write(homes.codex_path(home), [homes.codex_meta("/srv/other")])
    assert names(world, a_run(CODEX, agent_session=THREAD)) == []


def test_an_interactive_codex_tells_no_id_and_is_found_by_folder_and_time(world, home):
    homes.write(homes.codex_path(home), [homes.codex_meta(TREE)])
    world.clock.forward(minutes=1)
    assert names(world, a_run(CODEX, agent_session="")) == [THREAD]


def test_what_was_begun_there_before_the_run_is_not_its_own(world, home):
    homes.write(homes.codex_path(home), [homes.codex_meta(TREE)])
    world.clock.forward(minutes=1)
    assert names(world, a_run(CODEX, agent_session="", requested_at=world.clock.now)) == []


def test_a_one_shot_agent_without_its_own_file_has_what_it_printed(world):
    run = a_run(CLAUDE, mode="one_shot", output="claude_stream_json")
    assert names(world, run) == []
    homes.write(world.lab.paths.run_folder(run.pk) / "output.jsonl", [{"type": "system"}])
    [record] = own_record.find(world.lab, run)
    assert (record.form, record.is_printed) == (Form.CLAUDE, True)
    assert words(world, run) == [b'{"type": "system"}\n']


def test_another_program_has_none(world, home):
    homes.write(homes.claude_path(home, TREE), [homes.said(TREE)])
    assert names(world, a_run({}, agent_session="")) == []


@pytest.mark.parametrize(
    ("session", "days"),
    [
        (THREAD, ["22", "21", "20"]),
        (SESSION, ["23", "22", "21", "20"]),
    ],
)
def test_codex_is_looked_for_on_few_days(session, days):
    wanted = Wanted(TREE, sessions=(session,), since=START, until=START + timedelta(days=1))
    assert [day for _, _, day in record_rules.days(wanted)] == days

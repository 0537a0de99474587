"""State folders that earlier versions made: this one starts on them, and everything is still there.

The two in `older/` are dumps of databases with a row in each table, made by the oldest version that
this one takes (its migrations ended at 0052) and by the version before this one.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.db.migrations import RunPython
from django.db.migrations.loader import MigrationLoader

from labsite.database import chosen
from runs.core.paths import Paths
from tests import prepared
from tests.house.product import lab
from tests.web.daphne_fixture import Served

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(bool(chosen()), reason="the dumps are SQLite's"),
]

DUMPS = Path(__file__).parent / "older"
KEY = {"LAB_SECRET_KEY": "older-folder-key"}
SHOWN = {
    "/": ["Demo"],
    "/runs/1/": ["Issue 1", "died", "Its session is gone.", "The last words of it"],
    "/runs/2/": ["Issue 2", "succeeded", "Its pull request is there."],
    "/projects/1/": ["Demo", "branch of ManualSession"],
    "/projects/1/issues/": ["Say good day", "Teach it words", "Third thing"],
    "/projects/1/issues/1/": ["Body of 1", "body of IssueComment"],
    "/projects/1/pulls/1/": ["Good day said", "What it does", "body of PullComment"],
    "/projects/1/groups/1/": ["wave", "Part nine", "fa-1"],
    "/projects/1/workflows/1/": ["name of WorkflowPhase"],
    "/projects/1/watch/1/": ["limit reached"],
    "/projects/1/rescues/1/": ["branch of Rescue"],
    "/audit/": ["Demo was added", "Group wave was made"],
    "/settings/": ["Own agent", "Claude Code (print)", "Codex"],
    "/people/": ["anna", "vera"],
    "/account/": ["name of ApiToken", "name of Passkey"],
    "/forges/": ["name of Forge"],
}

Rows = dict[str, list[dict[str, Any]]]


class Older:
    """A folder of the version whose last migration of `runs` was `leaf`, after a start of this one."""

    def __init__(self, leaf: str, state: Path) -> None:
        state.mkdir(mode=0o700)
        self.leaf, self.state = leaf, state
        with closing(sqlite3.connect(Paths(state).database)) as database:
            database.executescript((DUMPS / f"{leaf}.sql").read_text())
        self.before = _rows(state)
        self.done = lab("manage", "prepare", state=state, **KEY)


@pytest.fixture(scope="module", params=["0052_start_waits", "0077_retry"])
def older(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Older:
    return Older(request.param, tmp_path_factory.mktemp("older") / "state")


@pytest.fixture(scope="module")
def served(older: Older) -> Iterator[Served]:
    made = Served(older.state, **KEY)
    try:
        made.start()
        yield made
    finally:
        made.close()


def _rows(state: Path) -> Rows:
    with closing(sqlite3.connect(Paths(state).database)) as database:
        database.row_factory = sqlite3.Row
        return {
            name: [dict(row) for row in database.execute(f'SELECT * FROM "{name}"')]  # noqa: S608
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }


def _schema(state: Path) -> dict[str, list[str]]:
    """What each table and index was made of; only the order of columns and terms is left open."""
    with closing(sqlite3.connect(Paths(state).database)) as database:
        return {
            name: sorted(re.findall(r"\w+|[^\w\s]", made))
            for name, made in database.execute(
                "SELECT name, sql FROM sqlite_master WHERE sql <> ''"
            )
        }


@pytest.mark.real
def test_each_row_is_as_it_was(older: Older) -> None:
    assert older.done.returncode == 0, older.done.stderr
    after = _rows(older.state)
    changed = {
        (table, number)
        for table, rows in older.before.items()
        for number, row in enumerate(rows)
        if table != "sqlite_sequence" and row.items() - after[table][number].items()
    }
    assert [
        table
        for table, rows in older.before.items()
        if not rows and table.startswith(("runs_", "builtin_"))
    ] == []
    assert changed == ({("builtin_issue", 1)} if older.leaf.startswith("0052") else set())
    assert after["builtin_issue"][1]["title"] == "Teach it words"


def test_what_ended_badly_long_ago_does_not_come_back(older: Older) -> None:
    died = _rows(older.state)["runs_run"][0]
    assert died["outcome"] == "died"
    assert died["seen_until"] == (died["ended_at"] if older.leaf.startswith("0052") else None)


def test_new_columns_say_of_older_rows_what_is_true_of_them(older: Older) -> None:
    rows = _rows(older.state)
    assert [run["took_seconds"] for run in rows["runs_run"]] == [3600, 3600]
    assert [kept["host"] for kept in rows["runs_parked"]] == ["local"]


def test_the_tables_are_those_of_a_new_folder(
    older: Older, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert _schema(older.state) == _schema(prepared.migrated(tmp_path_factory))


def test_no_migration_does_to_a_new_folder_what_making_it_leaves_out() -> None:
    """`tables.create` makes tables and does these two alone; whoever adds a step decides for it."""
    steps = {
        operation.code.__name__
        for step in MigrationLoader(None).disk_migrations.values()
        for operation in step.operations
        if isinstance(operation, RunPython)
    }
    of_django = {"noop", "update_proxy_model_permissions"}
    of_old_rows = {
        "forget_what_is_old",
        "tell_of_waits",
        "tell_of_limits",
        "tell_of_hosts",
        "took",
        "name_host",
        "clean",
        "move_to_jobs",
    }
    assert steps == {"keep_order", "add"} | of_django | of_old_rows


def test_a_new_folder_has_the_agents_and_settings_that_an_old_one_had(
    older: Older, tmp_path_factory: pytest.TempPathFactory
) -> None:
    new, old = _rows(prepared.migrated(tmp_path_factory)), _rows(older.state)
    told = {"env", "version"}  # encrypted, and changed since
    for mine, theirs in zip(new["runs_agentprofile"], old["runs_agentprofile"], strict=False):
        assert {**mine, **{one: theirs[one] for one in told}} == theirs
    assert [row["name"] for row in new["runs_agentprofile"]] == [
        "Claude Code",
        "Claude Code (print)",
        "Codex",
    ]
    assert new["runs_settings"] == old["runs_settings"]


# The tables and rows of the other are the same by now, as the tests above say.
@pytest.mark.parametrize("older", ["0052_start_waits"], indirect=True)
def test_pages_show_it_and_secrets_can_be_read(served: Served) -> None:
    cookie = served.cookie("anna")
    missing = {}
    for path, words in SHOWN.items():
        status, page = served.get(path, cookie)
        missing[path] = [word for word in words if status != 200 or word not in page]
    assert missing == {path: [] for path in SHOWN}
    found = served.do(
        "agent = AgentProfile.objects.get(name='Own agent');"
        "result = [dict(agent.env.items()), str(Project.objects.get().token)]"
    )
    assert found == [{"API_KEY": "very-secret"}, "forge-token-1"]

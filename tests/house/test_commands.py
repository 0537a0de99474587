from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from labsite.mend import set_damaged_aside
from runs.core.paths import Paths
from runs.management import state_files
from runs.management.commands.tick import lines
from runs.tick import Report
from tests import databases, prepared
from tests.fakes import World
from tests.house.product import ROOT, lab


@pytest.mark.real
def test_a_script_makes_an_account_and_a_token_before_the_first_start(tmp_path: Path) -> None:
    """Its first command makes the folder and the tables."""
    state = tmp_path / "state"
    missing = lab("manage", "api_token", "anna", "--name", "script", state=state)
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr.splitlines()[-1].endswith("There is no user 'anna'. No token was made.")
    assert "Traceback" not in missing.stderr
    account = lab("manage", "createsuperuser", "--noinput", state=state, **prepared.OPERATOR)
    assert account.returncode == 0, account.stderr
    assert databases.ask(state, "select username from auth_user") == [("anna",)]
    made = lab("manage", "api_token", "anna", "--name", "script", "--scope", "act", state=state)
    assert made.returncode == 0, made.stderr
    assert re.fullmatch(r"lab_[\w-]{43}\n", made.stdout)


@pytest.mark.real
def test_a_wrong_setting_is_one_sentence_in_every_command(tmp_path: Path) -> None:
    done = lab("manage", "tick", state=tmp_path / "state", LAB_PORT="none")
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["LAB_PORT is 'none'; use a whole number from 1 to 65535."]


@pytest.mark.real
def test_one_tick_in_the_foreground_says_what_it_did(tables: Path) -> None:
    done = lab("manage", "tick", state=tables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Looked at 0 runs.", "Nothing had to be done."]


@pytest.mark.parametrize(
    ("report", "said"),
    [
        pytest.param(
            Report(runs=3, ended=1, settled=1, started=2),
            ["Looked at 3 runs.", "1 run ended.", "1 run settled.", "2 runs started."],
            id="what was done",
        ),
        pytest.param(
            Report(errors=["tmux did not answer: gone"]),
            [
                "Looked at 0 runs.",
                "Nothing had to be done.",
                "Could not tell: tmux did not answer: gone.",
            ],
            id="what could not be told",
        ),
        pytest.param(
            Report(was_skipped=True),
            ["Another tick holds the lease, so this one was skipped. Nothing was changed."],
            id="the lease is held",
        ),
    ],
)
def test_a_ticks_report_reads_in_plain_words(report: Report, said: list[str]) -> None:
    assert lines(report) == said


@pytest.mark.django_db
def test_a_tick_by_hand_beside_another_one_is_skipped(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    from runs.core import lease

    assert lease.acquire(world.lab)
    call_command("tick")
    assert "skipped" in capsys.readouterr().out


@pytest.mark.real
def test_the_demo_is_made_from_the_command_line_and_says_how_to_go_on(tables: Path) -> None:
    (tables / "demo").write_text("in the way")
    done = lab("demo", state=tables)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "demo" in done.stderr
    (tables / "demo").unlink()
    first = lab("demo", state=tables)
    assert first.returncode == 0, first.stderr
    assert "./lab up" in first.stdout
    assert lab("demo", state=tables).stdout == first.stdout


def test_static_files_are_collected_once_and_again_when_one_is_missing(
    tmp_path: Path, settings: Any
) -> None:
    settings.STATIC_ROOT = tmp_path / "static"
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    }
    paths = Paths(tmp_path)
    assert state_files.collect_static(paths)
    assert not state_files.collect_static(paths)
    for collected in (tmp_path / "static").rglob("*.css"):
        collected.unlink()
    assert state_files.collect_static(paths)
    assert not state_files.collect_static(paths)

    # All that our pages ask for, and of libraries with dozens of files no more than that.
    collected = {*json.loads((tmp_path / "static" / state_files.MANIFEST).read_text())["paths"]}
    asked = {
        name
        for folder in ("templates", "runs")
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in (".html", ".py", ".js")
        for name in re.findall(r"""\bstatic(?: |\()['"]([^'"{]+)['"]""", path.read_text())
    }
    assert "lab.css" in asked
    assert asked <= collected
    assert len(collected) < 100


def test_a_busy_database_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    writer = sqlite3.connect(paths.database)
    writer.execute("create table t (x)")
    writer.execute("begin immediate")
    assert set_damaged_aside([paths.database], "now") == []
    writer.close()


def test_a_database_that_cannot_be_prepared_is_one_sentence(used: Path) -> None:
    databases.ask(used, "drop table django_migrations")
    done = lab("up", "--port", "0", state=used)
    assert done.returncode == 1
    assert done.stderr.startswith("The database ")
    assert len(done.stderr.splitlines()) == 1

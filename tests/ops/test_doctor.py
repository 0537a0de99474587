"""`./lab doctor` on real state folders, whole and broken."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from labsite.database import chosen
from tests import databases
from tests.house.product import Product, lab
from tests.patience import PATIENCE


def _doctor(state: Path, **more: str) -> tuple[int, list[dict[str, str]]]:
    done = lab("doctor", "--json", state=state, **{"LAB_PORT": "0", **more})
    assert done.stderr == "", done.stderr
    told = json.loads(done.stdout)
    assert done.returncode == int(told["status"] == "wrong")
    return done.returncode, told["checks"]


def _lines(checks: list[dict[str, str]], status: str) -> dict[str, str]:
    return {line["check"]: line["seen"] for line in checks if line["status"] == status}


def _tools(tmp_path: Path, *left_out: str) -> Path:
    """A PATH with everything that is on the real one but for some programs."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(place).glob("*"):
            link = folder / program.name
            link.unlink(missing_ok=True)
            link.symlink_to(program)
    for name in left_out:
        (folder / name).unlink()
    return folder


def _everything(state: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of a state folder with its mode and content, sockets and SQLite's own memory aside."""
    return {
        str(path.relative_to(state)): (path.lstat().st_mode, path.read_bytes())
        for path in state.rglob("*")
        if path.is_file() and not path.name.endswith("-shm")
    }


@pytest.mark.both_databases
def test_a_used_and_stopped_product_is_fine_and_stays_untouched(used: Path) -> None:
    before = _everything(used)
    code, checks = _doctor(used)
    assert _lines(checks, "wrong") == {}
    assert code == 0
    assert {"settings", "git", "tmux", "database", "migrations", "last_tick"} <= set(
        _lines(checks, "ok")
    )
    assert (used / "secret.key").read_text().strip() not in json.dumps(checks)
    assert _everything(used) == before


def test_beside_a_live_product_it_is_harmless_and_knows_it(start: Callable[..., Product]) -> None:
    product = start()
    _, checks = _doctor(product.state)
    assert product.url in _lines(checks, "ok")["port"]
    assert "last_tick" in _lines(checks, "ok")
    assert _lines(checks, "wrong") == {}
    assert product.get("/readyz") == 200
    # One that holds the folder and does not answer is wrong.
    (product.state / "address").write_text("http://127.0.0.1:9\n")
    assert "answers nothing" in _lines(_doctor(product.state)[1], "wrong")["port"]


@pytest.mark.real
def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    code, checks = _doctor(tmp_path / "none")
    assert code == 0
    assert "is not there yet" in _lines(checks, "warning")["state_folder"]
    assert not (tmp_path / "none").exists()


@pytest.mark.real
def test_an_empty_folder_stays_empty(tmp_path: Path) -> None:
    code, checks = _doctor(tmp_path)
    assert code == 1 or _lines(checks, "wrong") == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("LAB_HTTPS", "perhaps"), ("LAB_STATE_DIR", "/proc/x'y")],
)
def test_a_wrong_setting_is_the_first_line_and_the_rest_is_told(
    used: Path, name: str, value: str
) -> None:
    code, checks = _doctor(used, **{name: value})
    assert code == 1
    if name != "LAB_STATE_DIR":
        assert checks[0]["check"] == "settings"
        assert checks[0]["status"] == "wrong"
        assert name in checks[0]["seen"]
    assert "git" in _lines(checks, "ok")


@pytest.mark.both_databases
def test_whatever_is_wrong_at_once_is_told_each_with_its_own_line(used: Path) -> None:
    (used / "secret.key").unlink()
    used.chmod(0o755)
    (used / "queue.sqlite3").chmod(0o644)
    databases.ask(
        used, "delete from django_migrations where app = 'runs' and name = '0067_held_seen'"
    )
    if not chosen():  # a PostgreSQL server takes no reference into nothing
        databases.ask(
            used, "insert into runs_due (host_id, activity, next_at) values (99, 'x', '2026-01-01')"
        )
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        _, checks = _doctor(used, LAB_PORT=str(other.getsockname()[1]), LAB_HTTP="1")
    wrong, warnings = _lines(checks, "wrong"), _lines(checks, "warning")
    assert "missing" in wrong["secret_key"]
    assert "0755" in wrong["state_folder"]
    assert "in use by another program" in wrong["port"]
    assert chosen() or "runs_due" in wrong["database"]
    assert "queue.sqlite3 has mode 0644" in warnings["files"]
    assert "runs.0067_held_seen" in warnings["migrations"]
    assert warnings["settings"] == "nothing reads LAB_HTTP"
    assert not (used / "secret.key").exists()


@pytest.mark.both_databases
def test_missing_programs_and_a_newer_database_are_named(used: Path, tmp_path: Path) -> None:
    databases.ask(
        used,
        "insert into django_migrations (app, name, applied) "
        "values ('runs', '9999_future', '2026-01-01')",
    )
    code, checks = _doctor(used, PATH=str(_tools(tmp_path, "tmux", "git")))
    assert code == 1
    assert {"tmux", "git"} <= set(_lines(checks, "wrong"))
    assert "runs.9999_future" in _lines(checks, "wrong")["migrations"]
    assert "database" in _lines(checks, "ok")


def test_programs_that_hang_cost_seconds_and_one_line_each(used: Path, tmp_path: Path) -> None:
    """So does an agent whose login check hangs; one that says no is told as well."""
    tools = _tools(tmp_path, "tmux", "git")
    for name in ("tmux", "git"):
        (tools / name).write_text("#!/bin/sh\nexec sleep 600\n")
        (tools / name).chmod(0o755)
    _profile(used, "Hangs", [sys.executable, "-c", "import time; time.sleep(600)"])
    _profile(used, "Says no", [sys.executable, "-c", "raise SystemExit(1)"])
    began = time.monotonic()
    _, checks = _doctor(used, PATH=str(tools))
    assert time.monotonic() - began < PATIENCE / 2
    assert "no answer within 5 seconds" in _lines(checks, "wrong")["git"]
    assert "no answer within 5 seconds" in _lines(checks, "wrong")["tmux"]
    assert "database" in _lines(checks, "ok")
    seen = [line["seen"] for line in checks if line["status"] == "warning"]
    assert "Hangs: the login check gave no answer" in seen
    assert "Says no: not logged in" in seen


def _profile(state: Path, name: str, login: list[str]) -> None:
    """By SQL, since a shell of Django would cost seconds more."""
    databases.ask(
        state,
        f"update runs_agentprofile set name = '{name}', argv = '[\"{sys.executable}\", \"x\"]', "  # noqa: S608
        f"login_command = '{json.dumps(login)}' where id = (select min(id) from runs_agentprofile "
        'where login_command = \'[]\' or login_command = \'["claude", "auth", "status"]\')',
    )


def test_damaged_files_pipes_and_devices_in_the_state_folder_hold_up_nothing(used: Path) -> None:
    """As a restore by other programs, or a hostile agent, may leave them; each stays where it is."""
    content = b"not a database at all" * 1000
    if not chosen():  # a PostgreSQL server looks after its own files
        (used / "lab.sqlite3").write_bytes(content)
    for name in ("up.lock", "address", "queue.sqlite3"):
        (used / name).unlink(missing_ok=True)
        os.mkfifo(used / name)
    (used / "secret.key").unlink()
    (used / "secret.key").symlink_to("/dev/zero")
    began = time.monotonic()
    code, checks = _doctor(used)
    assert code == 1
    assert time.monotonic() - began < PATIENCE / 2
    assert {"secret_key", "queue"} <= set(_lines(checks, "wrong"))
    if not chosen():
        assert "database" in _lines(checks, "wrong")
        assert (used / "lab.sqlite3").read_bytes() == content


def test_it_speaks_on_a_terminal_that_knows_only_ascii_and_prints_no_secret(used: Path) -> None:
    key = "sekret-key-" + "x" * 40
    more = {"LAB_SECRET_KEY": key, "PYTHONIOENCODING": "ascii", "LAB_MISTYPED": "1"}
    done = lab("doctor", state=used, LAB_PORT="0", **more)
    assert done.stderr == ""
    assert "nothing reads LAB_MISTYPED" in done.stdout
    assert key not in done.stdout


# A whole product would do no more for it, and take three programs.
CLONED = """
from runs.demo import making
from runs.projects import cloning
from runs.wiring import lab
cloning.carry_out_clone(lab(), making.make(lab(), 'anna').pk)
"""


def test_a_broken_repository_and_a_stray_worktree_are_told(used: Path) -> None:
    assert lab("manage", "shell", "-v", "0", "-c", CLONED, state=used).returncode == 0
    assert "repository" in _lines(_doctor(used)[1], "ok")
    (used / "worktrees" / "left").mkdir()
    (used / "reviews" / "99-1").mkdir(parents=True)
    objects = next((used / "repos").glob("*.git")) / "objects"
    shutil.rmtree(objects)
    objects.mkdir()
    _, checks = _doctor(used)
    assert "demo" in _lines(checks, "wrong")["repository"]
    assert "left" in _lines(checks, "warning")["worktrees"]
    assert "reviews/99-1" in _lines(checks, "warning")["checks"]


def test_django_that_cannot_start_is_one_line(used: Path, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "django.py").write_text("raise ImportError('no django here')\n")
    code, checks = _doctor(used, PYTHONPATH=str(tmp_path / "broken"))
    assert code == 1
    assert "no django here" in checks[0]["seen"]
    # A file can be looked at without Django, a server not.
    assert ("database" in _lines(checks, "ok")) != bool(chosen())
    assert "queue" in _lines(checks, "ok")


@pytest.mark.real
@pytest.mark.parametrize("argv", [["--yaml"], ["now"]])
def test_a_wrong_call_is_status_two(tmp_path: Path, argv: list[str]) -> None:
    done = lab("doctor", *argv, state=tmp_path)
    assert done.returncode == 2
    assert "usage: ./lab doctor" in done.stderr

"""`./lab doctor` on real state folders, whole and broken."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from labsite.database import chosen
from tests import databases
from tests.house.product import Product, lab, until
from tests.patience import PATIENCE

ON_SQLITE = pytest.mark.skipif(
    bool(chosen()), reason="a PostgreSQL server looks after its own files"
)


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
    assert _everything(used) == before


def test_beside_a_live_product_it_is_harmless_and_knows_it(start: Callable[..., Product]) -> None:
    product = start()
    _, checks = _doctor(product.state)
    assert product.url in _lines(checks, "ok")["port"]
    assert "last_tick" in _lines(checks, "ok")
    assert _lines(checks, "wrong") == {}
    assert product.get("/readyz") == 200


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    code, checks = _doctor(tmp_path / "none")
    assert code == 0
    assert "is not there yet" in _lines(checks, "warning")["state_folder"]
    assert not (tmp_path / "none").exists()


def test_an_empty_folder_stays_empty(tmp_path: Path) -> None:
    code, checks = _doctor(tmp_path)
    assert code == 1 or _lines(checks, "wrong") == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("LAB_PORT", "none"), ("LAB_HTTPS", "perhaps"), ("LAB_STATE_DIR", "/proc/x'y")],
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


def test_port_zero_is_a_good_setting(used: Path) -> None:
    assert "settings" in _lines(_doctor(used, LAB_PORT="0")[1], "ok")


def test_a_mistyped_variable_is_told(used: Path) -> None:
    _, checks = _doctor(used, LAB_HTTP="1")
    assert _lines(checks, "warning")["settings"] == "nothing reads LAB_HTTP"


@ON_SQLITE
def test_a_damaged_database_is_told_and_left_where_it_is(used: Path) -> None:
    database = used / "lab.sqlite3"
    content = b"not a database at all" * 1000
    database.write_bytes(content)
    code, checks = _doctor(used)
    assert code == 1
    assert "database" in _lines(checks, "wrong")
    assert database.read_bytes() == content


@ON_SQLITE
def test_a_reference_into_nothing_is_told(used: Path) -> None:
    databases.ask(
        used, "insert into runs_due (host_id, activity, next_at) values (99, 'x', '2026-01-01')"
    )
    assert "runs_due" in _lines(_doctor(used)[1], "wrong")["database"]


@pytest.mark.both_databases
def test_an_older_database_waits_for_its_changes(used: Path) -> None:
    databases.ask(
        used, "delete from django_migrations where app = 'runs' and name = '0067_held_seen'"
    )
    assert "runs.0067_held_seen" in _lines(_doctor(used)[1], "warning")["migrations"]


@pytest.mark.both_databases
def test_a_newer_database_is_wrong(used: Path) -> None:
    databases.ask(
        used,
        "insert into django_migrations (app, name, applied) "
        "values ('runs', '9999_future', '2026-01-01')",
    )
    assert "runs.9999_future" in _lines(_doctor(used)[1], "wrong")["migrations"]


def test_a_missing_key_and_an_open_folder_are_wrong(used: Path) -> None:
    (used / "secret.key").unlink()
    used.chmod(0o755)
    (used / "queue.sqlite3").chmod(0o644)
    _, checks = _doctor(used)
    found = _lines(checks, "wrong")
    assert "missing" in found["secret_key"]
    assert "0755" in found["state_folder"]
    assert "queue.sqlite3 has mode 0644" in _lines(checks, "warning")["files"]
    assert not (used / "secret.key").exists()


def test_missing_programs_are_named_with_what_to_install(used: Path, tmp_path: Path) -> None:
    code, checks = _doctor(used, PATH=str(_tools(tmp_path, "tmux", "git")))
    assert code == 1
    assert {"tmux", "git"} <= set(_lines(checks, "wrong"))
    assert "database" in _lines(checks, "ok")


def test_programs_that_hang_cost_seconds_and_one_line_each(used: Path, tmp_path: Path) -> None:
    tools = _tools(tmp_path, "tmux", "git")
    for name in ("tmux", "git"):
        (tools / name).write_text("#!/bin/sh\nexec sleep 600\n")
        (tools / name).chmod(0o755)
    began = time.monotonic()
    _, checks = _doctor(used, PATH=str(tools))
    assert time.monotonic() - began < PATIENCE / 2
    assert "no answer within 5 seconds" in _lines(checks, "wrong")["git"]
    assert "no answer within 5 seconds" in _lines(checks, "wrong")["tmux"]
    assert "database" in _lines(checks, "ok")


def test_an_agent_whose_login_check_hangs_or_says_no(used: Path) -> None:
    _profile(used, "Hangs", [sys.executable, "-c", "import time; time.sleep(600)"])
    _profile(used, "Says no", [sys.executable, "-c", "raise SystemExit(1)"])
    began = time.monotonic()
    _, checks = _doctor(used)
    assert time.monotonic() - began < PATIENCE / 2
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


def test_a_port_of_another_program_is_wrong(used: Path) -> None:
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        _, checks = _doctor(used, LAB_PORT=str(other.getsockname()[1]))
    assert "in use by another program" in _lines(checks, "wrong")["port"]


def test_pipes_and_devices_in_the_state_folder_hold_up_nothing(used: Path) -> None:
    """As a restore by other programs, or a hostile agent, may leave them."""
    for name in ("up.lock", "address", "queue.sqlite3"):
        (used / name).unlink(missing_ok=True)
        os.mkfifo(used / name)
    (used / "secret.key").unlink()
    (used / "secret.key").symlink_to("/dev/zero")
    began = time.monotonic()
    _, checks = _doctor(used)
    assert time.monotonic() - began < PATIENCE / 2
    assert {"secret_key", "queue"} <= set(_lines(checks, "wrong"))


def test_it_speaks_on_a_terminal_that_knows_only_ascii(used: Path) -> None:
    done = lab("doctor", state=used, LAB_PORT="0", PYTHONIOENCODING="ascii", LAB_MISTYPED="1")
    assert done.stderr == ""
    assert "nothing reads LAB_MISTYPED" in done.stdout


def test_a_product_that_holds_the_folder_and_does_not_answer_is_wrong(
    start: Callable[..., Product],
) -> None:
    product = start()
    (product.state / "address").write_text("http://127.0.0.1:9\n")
    assert "answers nothing" in _lines(_doctor(product.state)[1], "wrong")["port"]


def test_a_broken_repository_and_a_stray_worktree_are_told(used: Path) -> None:
    assert lab("demo", state=used).returncode == 0
    product = Product(used)
    try:
        product.wait_until_ready()
        _until_cloned(used)
    finally:
        product.close()
    assert "repository" in _lines(_doctor(used)[1], "ok")
    (used / "worktrees" / "left").mkdir()
    objects = next((used / "repos").glob("*.git")) / "objects"
    shutil.rmtree(objects)
    objects.mkdir()
    _, checks = _doctor(used)
    assert "demo" in _lines(checks, "wrong")["repository"]
    assert "left" in _lines(checks, "warning")["worktrees"]


def _until_cloned(state: Path) -> None:
    until(lambda: databases.ask(state, "select 1 from runs_project where state = 'ready'"))


def test_django_that_cannot_start_is_one_line(used: Path, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "django.py").write_text("raise ImportError('no django here')\n")
    code, checks = _doctor(used, PYTHONPATH=str(tmp_path / "broken"))
    assert code == 1
    assert "no django here" in checks[0]["seen"]
    # A file can be looked at without Django, a server not.
    assert ("database" in _lines(checks, "ok")) != bool(chosen())
    assert "queue" in _lines(checks, "ok")


def test_no_secret_is_printed(used: Path) -> None:
    key = "sekret-key-" + "x" * 40
    done = lab("doctor", state=used, LAB_SECRET_KEY=key)
    assert key not in done.stdout + done.stderr
    assert (used / "secret.key").read_text().strip() not in lab("doctor", state=used).stdout


@pytest.mark.parametrize("argv", [["--yaml"], ["now"]])
def test_a_wrong_call_is_status_two(tmp_path: Path, argv: list[str]) -> None:
    done = lab("doctor", *argv, state=tmp_path)
    assert done.returncode == 2
    assert "usage: ./lab doctor" in done.stderr

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from labsite.database import chosen
from runs.core.paths import Paths
from tests import databases
from tests.house.product import Product, is_gone, lab, until
from tests.patience import PATIENCE

Start = Callable[..., Product]


@pytest.mark.both_databases
def test_up_prints_one_line_with_the_address_and_on_the_first_start_the_set_up_link(
    start: Start, tmp_path: Path
) -> None:
    product = start(state=tmp_path / "fresh")
    assert product.printed[0] == f"labsite is ready: {product.url}/"
    assert len(product.printed) == 2
    link = product.printed[1].split(product.url)[1].split()[0]
    assert link.startswith("/setup/")
    assert product.get(link) == 200
    assert product.get("/healthz") == 200


def test_the_set_up_link_is_not_printed_once_there_is_an_account(running: Product) -> None:
    assert len(running.printed) == 1


def test_sessions_find_the_command_and_the_address_in_private_files(running: Product) -> None:
    paths = Paths(running.state)
    assert paths.address.read_text() == f"{running.url}\n"
    assert paths.address.stat().st_mode & 0o777 == 0o600
    help_text = subprocess.run(
        [paths.bin / "labctl"], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert "usage" in (help_text.stdout + help_text.stderr).lower()
    assert running.state.stat().st_mode & 0o777 == 0o700


def test_a_second_up_on_the_same_state_folder_is_refused(running: Product) -> None:
    _refused(
        lab("up", "--port", "0", state=running.state), "already runs", str(running.process.pid)
    )
    assert running.get("/healthz") == 200


def test_the_worker_loads_no_pages_and_no_api(running: Product) -> None:
    children = running.children()
    assert "pydantic_core" not in Path(f"/proc/{children['worker']}/maps").read_text()
    assert "pydantic_core" in Path(f"/proc/{children['web']}/maps").read_text()


def test_ctrl_c_ends_web_and_worker_and_the_exit_code_is_0(start: Start) -> None:
    product = start()
    children = product.children()
    assert set(children) == {"web", "worker"}
    product.press_ctrl_c()
    assert product.wait() == 0
    assert all(is_gone(pid) for pid in children.values())
    assert "Traceback" not in product.log
    assert not Paths(product.state).address.exists()


def test_sigterm_ends_it_as_cleanly(start: Start) -> None:
    product = start()
    children = product.children()
    product.process.send_signal(signal.SIGTERM)
    assert product.wait() == 0
    assert all(is_gone(pid) for pid in children.values())


@pytest.mark.parametrize("name", ["web", "worker"])
def test_a_killed_child_is_replaced(start: Start, name: str) -> None:
    product = start()
    before = product.children()
    os.kill(before[name], signal.SIGKILL)
    until(
        lambda: product.children().get(name, before[name]) != before[name], told=lambda: product.log
    )
    assert f"The {name} process was ended by SIGKILL; it is started again in 0.2 s." in product.log
    until(lambda: _answers(product), told=lambda: product.log)


def _answers(product: Product) -> bool:
    try:
        return product.get("/healthz") == 200
    except OSError:
        return False


def test_children_do_not_outlive_a_killed_supervisor(start: Start) -> None:
    product = start()
    children = product.children()
    product.process.kill()
    until(lambda: all(is_gone(pid) for pid in children.values()))


@pytest.mark.row("LAB-135", level="real")
def test_stop_and_start_of_the_product_never_end_an_agent_session(start: Start) -> None:
    product = start()
    tmux = ["tmux", "-S", str(Paths(product.state).tmux_socket)]
    subprocess.run(
        [*tmux, "new-session", "-d", "-s", "demo~1~afk-7", "sleep", "600"],
        check=True,
        timeout=PATIENCE,
    )
    try:
        product.press_ctrl_c()
        product.wait()
        start(state=product.state)
        alive = subprocess.run(
            [*tmux, "list-panes", "-a", "-F", "#{session_name}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert alive.stdout.split() == ["demo~1~afk-7"]
    finally:
        subprocess.run([*tmux, "kill-server"], check=False, timeout=PATIENCE)


STATE_FILES = (
    *(() if chosen() else ("lab.sqlite3",)),
    "queue.sqlite3",
    "secret.key",
    "static.stamp",
    "static/staticfiles.json",
)


@pytest.mark.row("LAB-134", level="real")
@pytest.mark.parametrize("damage", ["missing", "garbage", "empty"])
def test_damaged_or_missing_state_files_do_not_stop_the_product(
    start: Start, used: Path, damage: str
) -> None:
    for name in STATE_FILES:
        file = used / name
        file.unlink()
        if damage != "missing":
            file.write_bytes(b"" if damage == "empty" else b"\xff\xfe garbage " * 500)
    product = start(state=used)
    assert product.get("/login/") in (200, 302)
    assert product.get("/readyz") in (200, 503)
    assert "Traceback" not in product.log


@pytest.mark.skipif(bool(chosen()), reason="a PostgreSQL server looks after its own files")
@pytest.mark.row("LAB-134", level="real")
def test_what_was_damaged_is_kept_beside_and_named(start: Start, used: Path) -> None:
    (used / "lab.sqlite3").write_bytes(b"garbage" * 1000)
    product = start(state=used)
    kept = list(used.glob("lab.sqlite3.damaged-*"))
    assert [file.read_bytes() for file in kept] == [b"garbage" * 1000]
    assert str(kept[0]) in product.log


def _refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """One sentence that says what to do, exit code 1, no traceback."""
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not done.stdout
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("missing", ["git", "tmux"])
def test_a_missing_program_is_one_sentence(tmp_path: Path, missing: str) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in {"git", "tmux", "dirname", "readlink", "sh"} - {missing}:
        found = next(
            Path(folder) / name
            for folder in os.environ["PATH"].split(":")
            if (Path(folder) / name).exists()
        )
        (tools / name).symlink_to(found)
    _refused(lab("up", state=tmp_path / "state", PATH=str(tools)), missing, "install")


def test_a_database_of_a_newer_version_is_one_sentence(used: Path) -> None:
    code = (
        "from django.db.migrations.recorder import MigrationRecorder as R; "
        "from django.db import connection; R(connection).record_applied('runs', '9999_future')"
    )
    assert lab("manage", "shell", "-v", "0", "-c", code, state=used).returncode == 0
    _refused(lab("up", "--port", "0", state=used), "newer labsite", "runs.9999_future", "backup")


def test_a_database_that_is_too_old_is_one_sentence_and_left_alone(used: Path) -> None:
    steps = "select app, name from django_migrations where app in ('runs', 'builtin') order by id"
    databases.ask(
        used,
        "update django_migrations set name = '0030_labctl_done' where name = '0052_start_waits'",
    )
    before = databases.ask(used, steps)
    _refused(lab("up", "--port", "0", state=used), "older", "0030_labctl_done", "operating.md")
    assert databases.ask(used, steps) == before


def test_a_queue_that_somebody_else_holds_is_one_sentence(used: Path) -> None:
    queue = Paths(used).queue
    with contextlib.closing(sqlite3.connect(queue, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        _refused(lab("up", "--port", "0", state=used), str(queue), "locked", "then start again")


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        _refused(lab("up", "--port", port, state=tmp_path / "state"), port, "--port")
        _refused(lab("up", state=tmp_path / "state", LAB_PORT=port), port, "--port")


def test_a_state_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    _refused(lab("up", state=tmp_path / "file" / "state"), "LAB_STATE_DIR")


def test_a_host_that_is_not_this_machine_is_one_sentence(tmp_path: Path) -> None:
    _refused(
        lab("up", "--port", "0", "--host", "192.0.2.1", state=tmp_path / "state"),
        "192.0.2.1",
        "--host",
    )


@pytest.mark.parametrize(
    ("name", "value"), [("LAB_PORT", "many"), ("LAB_PORT", "70000"), ("LAB_HTTPS", "perhaps")]
)
def test_a_setting_that_cannot_be_meant_is_one_sentence(
    tmp_path: Path, name: str, value: str
) -> None:
    more = {name: value}
    _refused(
        lab(
            "up", *(() if name == "LAB_PORT" else ("--port", "0")), state=tmp_path / "state", **more
        ),
        name,
        value,
    )


def test_behind_tls_the_agents_command_is_not_sent_to_another_address(start: Start) -> None:
    product = start(LAB_HTTPS="1")
    assert product.get("/agent/whoami") == 401


def test_a_setting_that_makes_the_product_quietly_wrong_stops_the_start(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong_settings.py"
    wrong.write_text("from labsite.settings import *\nHUEY.immediate = True\n")
    more = {"DJANGO_SETTINGS_MODULE": "wrong_settings", "PYTHONPATH": str(tmp_path)}
    done = lab("up", "--port", "0", state=tmp_path / "state", **more)
    assert done.returncode == 1
    assert "The queue is in immediate mode." in done.stderr

from __future__ import annotations

import contextlib
import os
import re
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
DATABASE = () if chosen() else ("lab.sqlite3",)


@pytest.mark.both_databases
def test_up_prints_one_line_with_the_address_and_on_the_first_start_the_set_up_link(
    start: Start, tmp_path: Path
) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir(mode=0o700)
    for name in DATABASE:  # an empty file is as good as none, which the first commands find
        (fresh / name).touch()
    product = start(state=fresh)
    assert product.printed[0] == f"labsite is ready: {product.url}/"
    assert len(product.printed) == 2
    link = product.printed[1].split(product.url)[1].split()[0]
    assert link.startswith("/setup/")
    assert product.get(link) == 200
    assert product.get("/healthz") == 200
    # What made the tables has ended, and nobody keeps what that had loaded.
    assert set(product.children()) == {"web", "worker"}


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


def test_web_and_worker_share_what_they_have_loaded_and_nothing_else(running: Product) -> None:
    for pid in running.children().values():
        sizes = {
            name: int(size)
            for name, size in re.findall(
                r"^(\w+): +(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE
            )
        }
        assert sizes["Pss"] < 0.75 * sizes["Rss"]
        assert os.getsid(pid) == pid
        opened = {str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()}
        assert opened.isdisjoint(str(lock) for lock in running.state.glob("*.lock"))
        assert str(Path(f"/proc/{pid}/fd/0").readlink()) == os.devnull


def test_the_demo_names_the_page_while_the_product_runs(running: Product) -> None:
    assert f"{running.url}/projects/1/" in lab("demo", state=running.state).stdout


@pytest.mark.row("LAB-135", level="real")
def test_dead_children_are_replaced_and_ctrl_c_leaves_the_agent_session_to_the_next_start(
    start: Start,
) -> None:
    product = start()
    for name in ("web", "worker"):
        killed = product.children()[name]
        os.kill(killed, signal.SIGKILL)
        _replaced(product, name, killed)
    # One that keeps dying is started afresh, in case that what it shares is the reason.
    again = product.children()["worker"]
    os.kill(again, signal.SIGKILL)
    until(lambda: product.children().get("worker", again) != again, told=lambda: product.log)
    argv = Path(f"/proc/{product.children()['worker']}/cmdline").read_bytes().split(b"\0")
    assert argv[2] == b"run_huey"
    assert "it is started again in 0.4 s" in product.log

    children = product.children()
    assert set(children) == {"web", "worker"}
    tmux = ["tmux", "-S", str(Paths(product.state).tmux_socket)]
    subprocess.run(
        [*tmux, "new-session", "-d", "-s", "demo~1~afk-7", "sleep", "600"],
        check=True,
        timeout=PATIENCE,
    )
    try:
        product.press_ctrl_c()
        assert product.wait() == 0
        assert all(is_gone(pid) for pid in children.values())
        assert "Traceback" not in product.log
        assert not Paths(product.state).address.exists()
        product = start(state=product.state)
        alive = subprocess.run(
            [*tmux, "list-panes", "-a", "-F", "#{session_name}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert alive.stdout.split() == ["demo~1~afk-7"]
    finally:
        subprocess.run([*tmux, "kill-server"], check=False, timeout=PATIENCE)
    children = product.children()
    assert set(children) == {"web", "worker"}
    product.process.send_signal(signal.SIGTERM)
    assert product.wait() == 0
    assert all(is_gone(pid) for pid in children.values())


def _replaced(product: Product, name: str, killed: int) -> None:
    until(lambda: product.children().get(name, killed) != killed, told=lambda: product.log)
    assert f"The {name} process was ended by SIGKILL; it is started again in 0.2 s." in product.log
    until(lambda: _answers(product), told=lambda: product.log)


def _answers(product: Product) -> bool:
    try:
        return product.get("/healthz") == 200
    except OSError:
        return False


STATE_FILES = ("queue.sqlite3", "secret.key", "static.stamp", "static/staticfiles.json")
GARBAGE = b"\xff\xfe garbage " * 500


@pytest.mark.row("LAB-134", level="real")
def test_damaged_or_missing_state_files_do_not_stop_the_product(start: Start, used: Path) -> None:
    """A damaged database makes a start migrate, which takes longest: an empty one is that above."""
    for damages in ((b"", GARBAGE, None, None), (GARBAGE, b"", GARBAGE, b"")):
        for name, content in zip(STATE_FILES, damages, strict=True):
            (used / name).unlink()
            if content is not None:
                (used / name).write_bytes(content)
        if damages[0]:
            for name in DATABASE:
                (used / name).write_bytes(GARBAGE)
        product = start(state=used)
        assert product.get("/login/") in (200, 302)
        assert product.get("/readyz") in (200, 503)
        assert "Traceback" not in product.log
        product.close()
    for name in DATABASE:  # a PostgreSQL server looks after its own files
        kept = list(used.glob(f"{name}.damaged-*"))
        assert [file.read_bytes() for file in kept] == [GARBAGE]
        assert str(kept[0]) in product.log


def _refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """One sentence that says what to do, exit code 1, no traceback."""
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not done.stdout
    for word in words:
        assert word in done.stderr


@pytest.mark.real
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
    databases.ask(
        used,
        "insert into django_migrations (app, name, applied) "
        "values ('runs', '9999_future', '2026-01-01')",
    )
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


@pytest.mark.real
def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        _refused(lab("up", "--port", port, state=tmp_path / "state"), port, "--port")
        _refused(lab("up", state=tmp_path / "state", LAB_PORT=port), port, "--port")


@pytest.mark.real
def test_a_state_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    _refused(lab("up", state=tmp_path / "file" / "state"), "LAB_STATE_DIR")


@pytest.mark.real
def test_a_host_that_is_not_this_machine_is_one_sentence(tmp_path: Path) -> None:
    _refused(
        lab("up", "--port", "0", "--host", "192.0.2.1", state=tmp_path / "state"),
        "192.0.2.1",
        "--host",
    )


@pytest.mark.real
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


def test_behind_tls_the_agents_command_is_not_sent_to_another_address_and_all_end_with_a_kill(
    start: Start,
) -> None:
    product = start(LAB_HTTPS="1")
    assert product.get("/agent/whoami") == 401
    children = product.children()
    assert set(children) == {"web", "worker"}
    product.process.kill()
    until(lambda: all(is_gone(pid) for pid in children.values()))


@pytest.mark.real
def test_a_setting_that_makes_the_product_quietly_wrong_stops_the_start(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong_settings.py"
    wrong.write_text("from labsite.settings import *\nHUEY.immediate = True\n")
    more = {"DJANGO_SETTINGS_MODULE": "wrong_settings", "PYTHONPATH": str(tmp_path)}
    done = lab("up", "--port", "0", state=tmp_path / "state", **more)
    assert done.returncode == 1
    assert "The queue is in immediate mode." in done.stderr


def test_web_and_worker_of_one_folder_can_be_started_apart(start: Start, used: Path) -> None:
    worker = start("--only", "worker")
    assert worker.printed == [f"labsite's worker is ready on {used}."]
    assert set(worker.children()) == {"worker"}
    assert not Paths(used).address.exists()
    web = start("--only", "web", "--port", "0")
    assert set(web.children()) == {"web"}
    assert web.get("/healthz") == 200
    assert Paths(used).address.read_text() == f"{web.url}\n"
    for argv, holder in (((), worker), (("--only", "worker"), worker), (("--only", "web"), web)):
        port = () if "worker" in argv else ("--port", "0")
        done = lab("up", *argv, *port, state=used)
        _refused(done, "already runs", str(holder.process.pid))
    web.press_ctrl_c()
    assert web.wait() == 0
    assert set(worker.children()) == {"worker"}


APART = {"LAB_DATABASE_URL": "", "LAB_REDIS_URL": "", "LAB_WEB_URL": ""}


@pytest.mark.real
@pytest.mark.any_database
@pytest.mark.parametrize(
    ("argv", "more", "words"),
    [
        pytest.param(
            ("--only", "worker"), {}, ("no database", "--only web", "LAB_DATABASE_URL"),
            id="a worker that would be alone in an empty folder",
        ),
        pytest.param(
            ("--port", "0"), {"LAB_REDIS_URL": "redis://127.0.0.1"},
            ("LAB_REDIS_URL", "LAB_DATABASE_URL"), id="several machines without one database",
        ),
        pytest.param(
            ("--only", "worker", "--port", "1"), {}, ("--port", "web part"),
            id="a port without a web part",
        ),
    ],
)  # fmt: skip
def test_parts_that_could_never_meet_are_refused(
    tmp_path: Path, argv: tuple[str, ...], more: dict[str, str], words: tuple[str, ...]
) -> None:
    _refused(lab("up", *argv, state=tmp_path / "state", **{**APART, **more}), *words)

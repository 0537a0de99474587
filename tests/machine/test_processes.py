"""Processes: bounded in time and output, ended gently, never waited for longer than they live."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runs.core.ports import SeamError
from runs.machine import shell
from tests.house.product import until
from tests.late_watch import LateWatch
from tests.patience import PATIENCE

pytestmark = pytest.mark.real


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("on_stderr", [None, lambda text: None], ids=["plain", "followed"])
def test_a_program_that_ended_is_not_waited_for_because_of_what_it_left_behind(on_stderr):
    began = time.monotonic()
    argv = ["sh", "-c", "echo out; echo err >&2; sleep 90 & exit 3"]
    done = shell.run(argv, timeout=80, on_stderr=on_stderr)
    assert (done.status, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert time.monotonic() - began < 60


def test_what_a_program_said_is_read_however_long_this_machine_held_us_up(monkeypatch, tmp_path):
    """It has ended before anybody looks, and more time has passed than its pipes are waited for."""
    watch, heard = LateWatch(), tmp_path / "heard"
    monkeypatch.setattr(shell, "time", watch)

    def hear(text: str) -> None:
        if text.strip():
            heard.touch()
            until(lambda: _is_gone(int(text)))
            watch.each = 2 * shell.DRAIN

    code = f"echo $$ >&2; while [ ! -e {heard} ]; do sleep 0.05; done; echo out"
    done = shell.run(["sh", "-c", code], timeout=PATIENCE, on_stderr=hear)
    assert (done.status, done.stdout) == (0, "out\n")


@pytest.mark.parametrize("on_stderr", [None, lambda text: None], ids=["plain", "followed"])
def test_much_output_on_both_pipes_is_read_whole(on_stderr):
    code = (
        "import sys\nfor _ in range(300): sys.stdout.write('o' * 999); sys.stderr.write('e' * 99)"
    )
    done = shell.run(_python(code), timeout=PATIENCE, on_stderr=on_stderr)
    assert (done.status, len(done.stdout), len(done.stderr)) == (0, 299700, 29700)


def test_output_beyond_the_limit_ends_the_program_and_is_marked_as_cut():
    code = "import sys\nwhile True: sys.stdout.write('x' * 9999)"
    began = time.monotonic()
    done = shell.run(_python(code), timeout=PATIENCE, limit=100_000)
    assert (done.is_cut, len(done.stdout), done.status) == (True, 100_000, 0)
    assert time.monotonic() - began < PATIENCE / 2
    assert len(shell.check(_python(code), timeout=PATIENCE, limit=500)) == 500


def test_output_within_the_limit_is_whole():
    done = shell.run(_python("print('x' * 99)"), timeout=PATIENCE, limit=100)
    assert (done.is_cut, len(done.stdout), done.status) == (False, 100, 0)


@pytest.fixture
def time_is_up(monkeypatch) -> Callable[[str], None]:
    """Heard from a program, its words end its time."""
    watch = LateWatch()
    monkeypatch.setattr(shell, "time", watch)

    def hear(text: str) -> None:
        if text:
            watch.ahead = 2 * PATIENCE

    return hear


def test_a_program_that_takes_too_long_may_tidy_up_before_it_is_killed(
    tmp_path: Path, monkeypatch, time_is_up
):
    monkeypatch.setattr(shell, "GRACE", PATIENCE)
    lock = tmp_path / "index.lock"
    lock.touch()
    code = f"trap 'rm {lock}; exit 1' TERM; echo begun >&2; while true; do sleep 0.05; done"
    with pytest.raises(SeamError, match=rf"no answer within {PATIENCE:g} seconds"):
        shell.run(["sh", "-c", code], timeout=PATIENCE, on_stderr=time_is_up)
    assert not lock.exists()


def test_a_program_that_does_not_listen_is_killed_with_its_children(tmp_path: Path, time_is_up):
    pids = tmp_path / "pids"
    code = f"trap '' TERM; sleep 600 & echo $$ $! > {pids}; echo begun >&2; wait; sleep 600"
    with pytest.raises(SeamError, match="no answer"):
        shell.run(["sh", "-c", code], timeout=PATIENCE, on_stderr=time_is_up)
    until(lambda: all(_is_gone(int(pid)) for pid in pids.read_text().split()))


def test_a_program_that_closes_its_output_is_still_held_to_its_time():
    began = time.monotonic()
    with pytest.raises(SeamError, match="no answer"):
        shell.run(["sh", "-c", "exec >&- 2>&-; sleep 600"], timeout=0.5)
    assert time.monotonic() - began < PATIENCE / 2


def test_a_quiet_program_is_reported_as_still_going_on(monkeypatch, tmp_path: Path):
    """It goes on until it was reported three times."""
    monkeypatch.setattr(shell, "SIGN_OF_LIFE", 0.2)
    heard: list[str] = []
    go = tmp_path / "go"

    def hear(text: str) -> None:
        heard.append(text)
        if heard.count("") == 3:
            go.touch()

    code = f"while [ ! -e {go} ]; do sleep 0.05; done; echo done >&2"
    shell.run(["sh", "-c", code], timeout=PATIENCE, on_stderr=hear)
    assert heard.count("") >= 3
    assert heard[-1] == "done\n"


def test_a_program_is_ended_when_its_listener_fails():
    pid: list[int] = []

    def listen(text: str) -> None:
        pid.append(int(text))
        raise RuntimeError("the listener failed")

    with pytest.raises(RuntimeError):
        shell.run(["sh", "-c", "echo $$ >&2; sleep 600"], timeout=PATIENCE, on_stderr=listen)
    assert _is_gone(pid[0])


def test_a_long_run_keeps_only_the_end_of_what_was_said():
    code = "import sys\nfor n in range(60000): print(n, file=sys.stderr)"
    done = shell.run(_python(code), timeout=PATIENCE)
    assert done.stderr.endswith("59999\n")
    assert len(done.stderr) < 100_000


def test_no_pipe_stays_open():
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        shell.run(["sh", "-c", "echo x; sleep 1 & exit 0"], timeout=PATIENCE)
    # Fewer are there when something of an earlier test was tidied away meanwhile.
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_what_a_failed_program_said_can_be_kept_by_every_database() -> None:
    """PostgreSQL keeps no letter 0, and lists of git end their names with one."""
    done = shell.run(["sh", "-c", r"printf 'a\0b'; exit 3"], timeout=PATIENCE)
    assert shell.words(["git", "ls-files"], done) == "git ls-files failed: a b"

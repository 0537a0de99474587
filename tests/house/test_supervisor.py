from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from labsite import supervisor
from labsite.supervisor import (
    CALM_SECONDS,
    FIRST_DELAY,
    LONGEST_DELAY,
    LONGEST_IDLE,
    WORTHWHILE_SECONDS,
    Child,
    Supervisor,
    next_delay,
    next_idle,
)
from tests.house.product import ROOT, is_gone, until
from tests.patience import PATIENCE


@pytest.mark.parametrize(
    ("before", "lived", "delay"),
    [
        pytest.param(0.0, 0.1, FIRST_DELAY, id="the first crash waits shortly"),
        pytest.param(0.2, 0.1, 0.4, id="the second twice as long"),
        pytest.param(12.8, 5.0, 25.6, id="and so on"),
        pytest.param(25.6, 5.0, LONGEST_DELAY, id="up to a limit"),
        pytest.param(LONGEST_DELAY, 5.0, LONGEST_DELAY, id="and not beyond it"),
        pytest.param(LONGEST_DELAY, CALM_SECONDS, FIRST_DELAY, id="a calm time begins anew"),
    ],
)
def test_the_delay_grows_from_crash_to_crash(before: float, lived: float, delay: float) -> None:
    assert next_delay(before, lived) == delay


@pytest.mark.parametrize(
    ("least", "before", "rested", "after"),
    [
        pytest.param(60.0, 240.0, WORTHWHILE_SECONDS, 60.0, id="it was worth it"),
        pytest.param(60.0, 60.0, 5.0, 120.0, id="who asks every few minutes has it stay longer"),
        pytest.param(60.0, LONGEST_IDLE, 5.0, LONGEST_IDLE, id="up to a limit"),
        pytest.param(9000.0, 9000.0, 5.0, 9000.0, id="never less than was set"),
    ],
)
def test_a_program_that_was_soon_needed_again_stays_longer(
    least: float, before: float, rested: float, after: float
) -> None:
    assert next_idle(least, before, rested) == after


def test_a_childs_end_is_told_in_words() -> None:
    assert supervisor.how_it_ended(3) == "ended with status 3"
    assert supervisor.how_it_ended(-9) == "was ended by SIGKILL"


@pytest.mark.real
def test_the_supervisor_does_not_import_django() -> None:
    code = "import sys; sys.argv = ['manage.py', 'up', '--help']; import manage, labsite.supervisor; print([m for m in sys.modules if m.split('.')[0] in ('django', 'huey', 'channels')])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert done.stdout.strip() == "[]"


STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"


def _supervise(
    folder: Path, code: str, on_demand: str = "None", pass_fds: Sequence[int] = ()
) -> subprocess.Popen[str]:
    """A supervisor of one small child, in a process of its own."""
    script = folder / "supervise.py"
    script.write_text(
        textwrap.dedent(f"""
            import os, socket, sys
            sys.path.insert(0, {str(ROOT)!r})
            from labsite.supervisor import Child, OnDemand, Supervisor
            child = Child("child", [sys.executable, "-c", {code!r}], on_demand={on_demand})
            ready = lambda: print(child.process.pid, flush=True)
            sys.exit(Supervisor([child], os.environ, lambda: True, ready).run())
        """)
    )
    return subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=pass_fds,
    )


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.real
def test_a_second_ctrl_c_ends_a_stubborn_child_at_once(tmp_path: Path) -> None:
    process = _supervise(tmp_path, STUBBORN)
    said = {_line(process), _line(process)}
    pid = int(next(line for line in said if line != "up"))
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert "Stopping" in process.stderr.readline()
    assert not is_gone(pid)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    assert is_gone(pid)
    process.communicate()


@pytest.mark.real
def test_a_child_that_crashes_again_and_again_is_started_ever_later(tmp_path: Path) -> None:
    process = _supervise(tmp_path, "raise SystemExit(3)")
    assert process.stderr is not None
    said = [process.stderr.readline().strip() for _ in range(3)]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert said == [
        f"The child process ended with status 3; it is started again in {delay} s."
        for delay in ("0.2", "0.4", "0.8")
    ]


@pytest.mark.real
def test_a_killed_supervisor_takes_its_child_along(tmp_path: Path) -> None:
    process = _supervise(tmp_path, "import time; time.sleep(600)")
    pid = int(_line(process))
    process.kill()
    process.wait()
    try:
        until(lambda: is_gone(pid))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        process.communicate()


SERVES_ONE = """
import os, socket, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
connection, _ = socket.socket(fileno=int(options["--fd"])).accept()
connection.sendall(f"{os.getpid()} {options['--idle-seconds']}".encode())
connection.close()
sys.exit(90)
"""


@pytest.mark.real
def test_a_program_that_nobody_uses_is_started_by_the_next_connection(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        process = _supervise(
            tmp_path,
            SERVES_ONE,
            f"OnDemand(socket.socket(fileno={listening.fileno()}), 60)",
            pass_fds=[listening.fileno()],
        )
        _line(process)
        answers = []
        for _ in range(3):
            with socket.create_connection(listening.getsockname(), PATIENCE) as client:
                answers.append(client.recv(100).decode().split())
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE)
    # One that was needed again at once stays longer before it ends again.
    assert [seconds for _, seconds in answers] == ["60", "120", "240"]
    assert len({pid for pid, _ in answers}) == 3
    assert "is started again" not in said


class Ended:
    """A process that ends when it is asked to."""

    pid = 1

    def __init__(self) -> None:
        self.status: int | None = None

    def poll(self) -> int | None:
        return self.status

    def terminate(self) -> None:
        self.status = 0

    wait, kill = poll, terminate


def test_workers_of_a_host_that_was_removed_end_together_and_wait_and_the_web_process_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    why = ["Host a was removed."]
    worker, second, web = (Child(name, [], obstacle=lambda: why[0]) for name in "abc")
    web.obstacle = str
    for child in (worker, second, web):
        child.process = Ended()
    watched = Supervisor([worker, second, web], {}, lambda: True, lambda: None)
    worker.ask_to_end()
    for _ in range(2):
        watched.look_after()
    assert (worker.process, second.process, web.is_gone()) == (None, None, False)
    for child in (worker, second):
        child.due = 0.0
    for _ in range(2):
        watched.look_after()
    assert worker.is_held and second.is_held
    assert capsys.readouterr().err.count(why[0]) == 2  # once a process

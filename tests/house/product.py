"""`./lab up` as a person starts it: a real process on a real terminal, in a state folder of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from tests import databases
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parent.parent.parent
LAB = ROOT / "lab"


def environment(state: Path, **more: str) -> dict[str, str]:
    """The machine's environment without settings of ours, plus the ones given."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LAB_", "DJANGO_"))
    }
    ours = {"LAB_PYTHON": sys.executable, "LAB_STATE_DIR": str(state)}
    return {**kept, **ours, **databases.environment(state), **more}


def lab(
    *argv: str, state: Path, cwd: Path | None = None, program: Path = LAB, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run one `lab` command to its end."""
    return subprocess.run(
        [str(program), *argv],
        env=environment(state, **more),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def until(
    happened: Callable[[], object], seconds: float = PATIENCE, told: Callable[[], str] = str
) -> None:
    """Wait for another process; no clock of ours drives it."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"it never happened; the product said:\n{told()}"
        time.sleep(0.05)


def written(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file below a folder with its content, while a running product makes and removes some."""
    for place, _, names in os.walk(folder):
        for path in (Path(place) / name for name in names):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file():
                    yield path, path.read_bytes()


class Product:
    """A running `./lab up --port 0` whose terminal the test holds."""

    def __init__(self, state: Path, *argv: str, **more: str) -> None:
        self.state = state
        self._log = state.parent / f"{state.name}.err"
        self._out = state.parent / f"{state.name}.out"
        self.terminal, terminal = pty.openpty()
        with self._log.open("ab") as err, self._out.open("wb") as out:
            self.process = subprocess.Popen(
                [str(LAB), "up", *(argv or ("--port", "0"))],
                env=environment(state, **more),
                stdin=terminal,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=lambda: _take_terminal(terminal),
            )
        os.close(terminal)

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def printed(self) -> list[str]:
        """The lines on standard output."""
        return self._out.read_text().splitlines()

    @property
    def url(self) -> str:
        found = re.search(r"http://\S+?(?=/$)", self.printed[0])
        assert found, self.printed
        return found[0]

    def wait_until_ready(self) -> Product:
        until(lambda: self.printed or self.process.poll() is not None, told=lambda: self.log)
        assert self.process.poll() is None, self.log
        return self

    def get(self, path: str) -> int:
        """The status of a page."""
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=PATIENCE) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def children(self) -> dict[str, int]:
        """Process ids of web and worker."""
        return {name: pids[0] for name, pids in self._programs().items()}

    def workers(self) -> list[int]:
        """Process ids of all workers."""
        return self._programs().get("worker", [])

    def _programs(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                parent = int(stat.read_text().rpartition(")")[2].split()[1])
                command = (stat.parent / "cmdline").read_bytes()
                part = re.match(
                    rb"labsite (web|worker)|.*(labsite\.web|run_huey)", command, re.DOTALL
                )
                if parent == self.process.pid and part:
                    name = "web" if b"web" in part[0] else "worker"
                    found.setdefault(name, []).append(int(stat.parent.name))
        return found

    def press_ctrl_c(self) -> None:
        os.write(self.terminal, b"\x03")

    def wait(self, seconds: float = PATIENCE) -> int:
        """The exit code."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it goes on; it said:\n{self.log}"
            if select.select([self.terminal], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    os.read(self.terminal, 4096)
        return int(self.process.returncode)

    def close(self) -> None:
        """End everything of this product, whatever state the test left it in."""
        children = [pid for pids in self._programs().values() for pid in pids]
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE)
            self.process.kill()
            self.process.wait()
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.terminal >= 0:
            os.close(self.terminal)
            self.terminal = -1


def _take_terminal(terminal: int) -> None:
    """Make the pseudo-terminal the controlling one, so that Ctrl-C on it is a real one.

    It runs between fork and exec, where an import could wait for ever for another thread's lock.
    """
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def is_gone(pid: int) -> bool:
    """Whether a process has ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True

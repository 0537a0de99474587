"""A small HTTP server that plays labsite for the runner of a loop, and the runner as its session has it."""

from __future__ import annotations

import http.server
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from runs.core.ports import Order
from tests.labctl.session import COMMAND, Session
from tests.patience import PATIENCE

Answer = dict[str, Any] | tuple[int, Any] | Callable[[dict[str, Any]], Any]
END = {"do": "end", "code": 0, "reason": "The objective is met."}


class Labsite(http.server.ThreadingHTTPServer):
    """Answers each report with the next of its answers, then that the loop has ended."""

    daemon_threads = True

    def __init__(self, *answers: Answer) -> None:
        self.answers: Iterator[Answer] = iter(answers)
        self.reports: list[dict[str, Any]] = []
        self.closing = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results that were reported, each once."""
        found = {(r["generation"], r["number"]): r["result"] for r in self.reports if r["result"]}
        return list(found.values())

    def close(self) -> None:
        self.closing.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    server: Labsite

    def do_POST(self) -> None:
        report = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert (self.path, self.headers["Authorization"]) == ("/agent/loop/step", "Bearer a-token")
        self.server.reports.append(report)
        answer = next(self.server.answers, END)
        if callable(answer):
            answer = answer(report)
        status, content = answer if isinstance(answer, tuple) else (200, answer)
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


def turn(number: int, *argv: str, generation: int = 1, **more: Any) -> dict[str, Any]:
    """The order to run a turn; one word is a script for the shell."""
    words = list(argv) if len(argv) > 1 else ["sh", "-c", *argv]
    order = {"do": "turn", "generation": generation, "number": number, "argv": words}
    return {**order, "prompt": f"prompt {number}\n", "has_stdin": True, **more}


class Runner:
    """`labctl turns` in a folder of its own, started as often as a test likes."""

    def __init__(self, folder: Path) -> None:
        self.session = Session(folder)
        self.run_folder = folder / "run"
        self.loop = self.run_folder / "loop"
        self.here = folder / "here"
        self.here.mkdir()
        self.session.env |= {"HERE": str(self.here), "LAB_WORKTREE": str(self.here)}
        self._sites: list[Labsite] = []
        self._processes: list[subprocess.Popen[bytes]] = []

    def play(self, *answers: Answer) -> Labsite:
        """A labsite that gives these answers, at the address that the session knows."""
        self._sites.append(Labsite(*answers))
        self.session.address.write_text(self._sites[-1].url)
        return self._sites[-1]

    def start(self, *, pace: float = 0.1, limits: str = "") -> subprocess.Popen[bytes]:
        """The runner as a process; what it shows goes to a file."""
        argv = [*COMMAND, "turns", "--pace", str(pace)]
        if limits:
            argv = ["sh", "-c", f'{limits}; exec "$@"', "sh", *argv]
        with (self.here / "screen").open("ab") as screen:
            self._processes.append(
                subprocess.Popen(
                    argv,
                    env=self.session.env,
                    cwd=self.here,
                    stdin=subprocess.DEVNULL,
                    stdout=screen,
                    stderr=screen,
                    start_new_session=True,
                )
            )
        return self._processes[-1]

    def start_in(self, sessions: Any) -> None:
        """The runner as the program of a session, as a launch starts it."""
        sessions.start(
            Order(
                session="demo~1~afk-7",
                folder=self.run_folder,
                cwd=self.here,
                argv=[*COMMAND, "turns", "--pace", "0.1"],
                env=self.session.env,
                marker="demo~1~afk-7",
            )
        )

    def run(self, **options: Any) -> int:
        """The runner to its end; its exit code."""
        return self.start(**options).wait(PATIENCE)

    @property
    def screen(self) -> str:
        return (self.here / "screen").read_text(errors="replace")

    def read(self, name: str) -> str:
        """A file that an agent wrote."""
        return (self.here / name).read_text()

    def until(self, holds: Callable[[], Any]) -> Any:
        """Wait for what does come; what it was."""
        end = time.monotonic() + PATIENCE
        while not (found := holds()):
            assert time.monotonic() < end, self.screen
            time.sleep(0.01)
        return found

    def agents(self) -> list[int]:
        """The processes of turns that live: an agent cannot clean its environment away."""
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    environ = (folder / "environ").read_bytes().split(b"\0")
                except OSError:
                    continue
                if any(one.startswith(b"LAB_LOOP_EVENTS=" + bytes(self.loop)) for one in environ):
                    found.append(int(folder.name))
        return found

    def close(self) -> None:
        """End what is left of it."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait(PATIENCE)
        for pid in self.agents():
            subprocess.run(["kill", "-9", str(pid)], check=False)
        for site in self._sites:
            site.close()

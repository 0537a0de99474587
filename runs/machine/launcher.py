#!/usr/bin/env python3
"""Runs inside a session as `python -I -S launcher.py FOLDER MARKER`; standard library only.

Reads the private order in FOLDER, starts the agent as its child, waits, and writes how it ended
to FOLDER/exit, since a tmux server that is killed keeps no status (stack.md section 6). MARKER is
only there to be seen by `processes`: it cannot be cleaned away as an environment can.

An interactive agent has the pane to itself. Of a one-shot agent whose output is read, the launcher
keeps the raw lines (`recorder`) and shows the pane what a person can read. A child of it records the
screen (`camera`).
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import time

# Each start of an agent waits for these imports: `json` would take 9 ms, `contextlib` 5, `typing` more.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence
    from typing import Any

    from runs.machine.recorder import Recorder
else:
    import _signal as signal  # whose numbers `signal` makes enums of, for 5 ms

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# As a rule it is over at once; a busy machine may take a second for it.
LAST_LOOK = 2.0
ENDINGS = (signal.SIGTERM, signal.SIGHUP)
# What we, Python or tmux handle otherwise, and an agent must find as any program does.
_OURS = (
    *(signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGTTOU),
    *(signal.SIGTTIN, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD),
)


class suppress:  # noqa: N801  (as in contextlib)
    """Leave a block at one of these errors and go on behind it."""

    def __init__(self, *errors: type[BaseException]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self._errors)


def read_order(folder: str) -> dict[str, Any]:
    """Return what is to be started, as `TmuxSessions` wrote it."""
    with open(os.path.join(folder, "order.json"), encoding="utf-8") as file:  # noqa: PTH118, PTH123
        text = file.read()
    try:
        from _json import make_scanner
    except ImportError:  # a Python that has it not in C
        import json

        found: dict[str, Any] = json.loads(text)
        return found
    scanner: Any = make_scanner
    order: dict[str, Any] = scanner(_AsJson)(text, 0)[0]
    return order


class _AsJson:
    """How `json` sets its scanner up when nothing else is asked for."""

    strict = True
    memo: dict[str, str] = {}
    object_hook = object_pairs_hook = parse_constant = None
    parse_float, parse_int = float, int


def main(folder: str) -> int:
    order = read_order(folder)
    asked: list[int] = []  # told to end: whoever did that knows, and nothing of us may linger
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    for number in ENDINGS:
        signal.signal(number, lambda told, _frame: asked.append(told))
    _adopt_orphans()
    camera = Camera(folder, order["screen"]) if order.get("screen") else None
    recorder, ends = _recorder(folder) if order.get("output") else (None, ())
    child = os.fork()
    if child == 0:
        _become_agent(order, ends)
    for end in ends:
        os.close(end)
    with suppress(PermissionError, ProcessLookupError):
        os.setpgid(child, child)  # the child does it too; whoever is second may be refused
    _give_terminal(child)
    if camera is not None:
        camera.start()  # what the screen shows until then waits in its pipe
    if recorder is None:
        status = _wait_for(child, camera)
    else:
        status = recorder.follow(lambda: _buried(child, camera))
    _write_exit(folder, status)
    _end(recorder, camera)
    if not asked:
        _wake_after_us(order["wake"])
    return _die_alike(-status) if status < 0 else status


def _end(recorder: Recorder | None, camera: Camera | None) -> None:
    """Nothing that the agent left behind goes on, and what it printed last is kept."""
    _end_orphans(camera)
    if recorder is not None:
        recorder.close()
    if camera is not None:
        camera.end()


def _adopt_orphans() -> None:
    """Whatever leaves the agent's tree becomes our child, and so can be found and ended."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _find_ours() -> None:
    """Let our own modules be imported."""
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120


def _recorder(folder: str) -> tuple[Recorder, tuple[int, int]]:
    """What keeps the agent's output, and the ends of both pipes that the agent writes to."""
    _find_ours()
    from runs.machine import recorder

    (out, agent_out), (err, agent_err) = os.pipe(), os.pipe()
    mask = recorder.read_mask(folder)
    made = recorder.Recorder(recorder.open_record(folder), recorder.open_pane(), out, err, mask)
    return made, (agent_out, agent_err)


class Camera:
    """The child that records the screen. One that is killed is started again, some times."""

    TRIES = 4

    def __init__(self, folder: str, order: dict[str, Any]) -> None:
        self._folder, self._order = folder, order
        self._tries, self.pid = 0, 0
        self._pipe = -1
        # Read before the agent could; a recorder that needs it too removes it.
        self._secrets = ""
        path = os.path.join(folder, "secrets.json")  # noqa: PTH118
        with suppress(OSError):
            with open(path, encoding="utf-8") as file:  # noqa: PTH123
                self._secrets = file.read()
            if not order["is_secret_shared"]:
                os.unlink(path)  # noqa: PTH108
        with suppress(OSError):
            flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
            self._pipe = os.open(os.path.join(folder, "pane"), flags)  # noqa: PTH118

    def start(self) -> None:
        """Begin to record, or begin again."""
        if self._pipe < 0 or self._tries >= self.TRIES:
            self.pid = 0
            return
        self._tries += 1
        self.pid = 0
        # Until it has its own answers to signals it would give ours, and never end.
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
        try:
            self.pid = os.fork()
            if self.pid == 0:
                with suppress(BaseException):
                    self._become()
                os._exit(0)
        except OSError:
            pass  # with too many processes nothing is recorded, and the agent works
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)

    def _become(self) -> None:
        """In the child: nothing of ours stays open, and it dies with us."""
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for handle in (0, 1, 2):
            os.dup2(null, handle)
        # Not what the launcher holds for an agent that prints: its terminal and its pipes.
        signal.set_wakeup_fd(-1)
        os.closerange(3, self._pipe)
        os.closerange(self._pipe + 1, os.sysconf("SC_OPEN_MAX"))
        _find_ours()
        from runs.transcript import camera

        camera.run(self._folder, self._pipe, self._order, self._secrets)

    def was(self, pid: int) -> None:
        """Somebody was buried: if it was the child, there is another one."""
        if pid and pid == self.pid:
            self.start()

    def end(self) -> None:
        """It takes what it has not seen yet, for a moment at most."""
        self._tries = self.TRIES
        if not self.pid:
            return
        with suppress(OSError):
            os.kill(self.pid, signal.SIGTERM)
            limit = time.monotonic() + LAST_LOOK
            while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > limit:
                    os.kill(self.pid, signal.SIGKILL)
                time.sleep(0.002)
        with suppress(OSError):
            os.unlink(os.path.join(self._folder, "pane"))  # noqa: PTH108, PTH118


def _buried(child: int, camera: Camera | None) -> int | None:
    """Bury what has ended; how the agent ended, None while it works."""
    while True:
        pid, raw = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            return os.waitstatus_to_exitcode(raw)
        if pid == 0:
            return None
        if camera is not None:
            camera.was(pid)


def _wait_for(child: int, camera: Camera | None) -> int:
    """How the agent ended; orphans that end meanwhile are only buried."""
    while True:
        pid, raw = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(raw)
        if camera is not None:
            camera.was(pid)


def _end_orphans(camera: Camera | None) -> None:
    """End what the agent left behind: TERM, a moment, then KILL until no child is left."""
    spared = camera.pid if camera is not None else 0
    for turn in range(40):
        left = [pid for pid in _children() if pid != spared]
        if not left:
            return
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGTERM if turn == 0 else signal.SIGKILL)
        limit = time.monotonic() + (0.5 if turn == 0 else 0.05)
        while time.monotonic() < limit and left:
            left = [pid for pid in left if not _is_buried(pid)]
            if left:
                time.sleep(0.01)


def _is_buried(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _wake_after_us(wake: list[str]) -> None:
    """Have the worker look as soon as this process is gone and its pane is dead.

    tmux 3.3a now and then reaps a pane without reporting it, and then its own hook stays silent.
    """
    launcher = os.getpid()
    watch, hold = os.pipe()
    if os.fork() != 0:
        os.close(watch)
        os.set_inheritable(hold, False)
        return
    import socket

    os.setsid()
    for handle in (0, 1, 2, hold):
        os.close(handle)
    os.read(watch, 1)  # nobody writes: this returns when the launcher's end closes with it
    while os.getppid() == launcher:  # its files are closed a moment before it has ended
        time.sleep(0.001)
    # By now tmux was told of both ends, and hears of them before it hears whoever asks after this.
    time.sleep(0.002)
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.sendto(wake[1].encode(), wake[0])
    os._exit(0)


def _children() -> list[int]:
    """Our children. Theirs become ours when they end, so that repeating this reaches all."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208
        with (
            suppress(OSError, ValueError),
            open(f"/proc/{int(name)}/stat", encoding="latin-1") as file,  # noqa: PTH123
        ):
            if int(file.read().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(name))
    return found


def _die_alike(number: int) -> int:
    """End by the same signal, so that tmux reports it too; without a core file of our own."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number


def _become_agent(order: dict[str, Any], ends: Sequence[int]) -> None:
    """In the child: limits, folder, environment, then the agent itself; 127 when it cannot run.

    `ends` are the pipes for its output. Such an agent asks nobody: nothing comes from its input.
    """
    try:
        os.setpgid(0, 0)
        _give_terminal(os.getpid())
        for number in _OURS:
            signal.signal(number, signal.SIG_DFL)
        if ends:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for target, end in enumerate(ends, start=1):
                os.dup2(end, target)
        if order["nofile"]:
            _limit_files(order["nofile"])
        os.chdir(order["cwd"])
        # Nothing else of our own environment: the tmux server may be older than the product, and
        # TMUX would lead the agent's own tmux commands to our server.
        env = {"TERM": os.environ.get("TERM", "screen-256color"), **order["env"]}
        os.execvpe(order["argv"][0], order["argv"], env)  # noqa: S606
    except OSError as error:
        print(
            f"{order['argv'][0]} could not be started: {error.strerror}",
            file=sys.stderr,
            flush=True,
        )
    os._exit(127)


def _limit_files(number: int) -> None:
    """The file-descriptor limit, soft and hard, for the whole tree."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and number > hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))
            return
        number = hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))


def _give_terminal(group: int) -> None:
    """Make the agent's process group the one that the terminal talks to."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    with suppress(OSError):
        os.tcsetpgrp(0, group)


def _write_exit(folder: str, status: int) -> None:
    path = os.path.join(folder, "exit")  # noqa: PTH118
    with suppress(OSError):
        with open(path + ".part", "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(f'{{"status": {status}, "at": {time.time()!r}}}')
        os.rename(path + ".part", path)  # noqa: PTH104


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

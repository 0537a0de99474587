"""Records the screen of a session while its program changes it: whole screens and what changed.

Runs as a child of the session's launcher, so that it lives exactly as long, whatever happens to web
process and worker. tmux copies what the program prints into a pipe; that is only the sign that there
is something to see. What is kept is what tmux then shows, without secrets. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runs.core import masking
from runs.core.masking import Mask
from runs.transcript import frames
from runs.transcript.frames import FILES, FIRST, GAP, KEY, SIZE, Frame

PIECE = 65_536
ROOM = 1_048_576  # of the pipe, so that it takes what comes while a screen is taken
SETTLE, REST = 0.03, 0.05
BACK = 200  # lines above the screen that are looked at for what went past
PATIENCE = 3.0


class Film:
    """The files of a recording: its beginning stays, and of its end two pieces, of which the older
    gives way. A disk that is full costs frames and nothing else."""

    def __init__(self, folder: str, limit: int) -> None:
        self._paths = [os.path.join(folder, name) for name in FILES]  # noqa: PTH118
        self._rooms = [limit // 2, limit // 4, limit // 4]
        self.number, self._place = self._newest()
        self.is_new = self.number == 0
        self._handle = self._open(anew=self.is_new)
        self.since_key = 0

    def keep(self, frame: Frame) -> None:
        """Write a frame; a whole one gets the number of the file that it stands in."""
        line = frame.written()
        try:
            self.since_key += len(line)
            done = os.write(self._handle, line)
            while done < len(line):
                done += os.write(self._handle, line[done:])
        except OSError:
            # The rest of the line may be missing; a line that cannot be read is passed over.
            with contextlib.suppress(OSError):
                os.write(self._handle, b"\n")

    @property
    def is_full(self) -> bool:
        """Whether the file has no room left, so that the next whole screen begins another one."""
        try:
            return os.fstat(self._handle).st_size >= self._rooms[self._place]
        except OSError:
            return False

    def turn(self) -> None:
        """Go on in the next file."""
        os.close(self._handle)
        self._place = 1 if self._place != 1 else 2
        self.number += 1
        self._handle = self._open(anew=True)

    def _open(self, *, anew: bool) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(self._paths[self._place], flags | (os.O_TRUNC if anew else 0), 0o600)
        if not anew:
            os.write(handle, b"\n")  # whoever wrote before may have been killed within a line
        self.number = self.number or 1
        return handle

    def _newest(self) -> tuple[int, int]:
        """The number and the place of the file that was written last; 0 when there is none."""
        found = [(self._number(place), place) for place in range(len(FILES))]
        return max(found, key=lambda one: (one[0], -one[1]))

    def _number(self, place: int) -> int:
        try:
            with open(self._paths[place], "rb") as file:  # noqa: PTH123
                first = frames.read(file.readline(frames.LINE_BYTES).strip())
        except OSError:
            return 0
        return first.number if first is not None else 0


class Camera:
    """Takes a screen after each change, not more often than `frames.pause` says."""

    def __init__(self, film: Film | None, shot: Callable[[], str | None], mask: Mask) -> None:
        self._film = film
        self._shot = shot
        self._mask = mask
        self._screen: list[str] = []
        self._size = (0, 0)
        self._history = 0
        self._begun = time.time() - time.monotonic()
        self._has_any = False
        self.pause = frames.LEAST

    def take(self) -> None:
        """One frame, if anything changed."""
        text = self._shot() if self._film is not None else None
        if text is None or self._film is None:
            return
        head, _, body = text.partition("\n")
        try:
            history, columns, rows = (int(one) for one in head.split())
        except ValueError:
            return
        lines = frames.coloured(self._mask(body.removesuffix("\n")))
        above = min(BACK, history)
        passed = max(0, history - self._history) if self._has_any else 0
        kept = min(passed, above)
        shown = lines[above - kept : above + rows]
        self._history = history
        self._write(shown, (columns, rows), passed - kept)

    def _write(self, lines: list[str], size: tuple[int, int], lost: int) -> None:
        at = self._begun + time.monotonic()
        by = frames.changes(self._screen, lines)
        self.pause = frames.pause(sum(max(gone, len(put)) for _, gone, put in by), self.pause)
        film = self._film
        if film is None or (not by and size == self._size and self._has_any):
            return
        screen = lines[-size[1] :]
        if not self._has_any:
            why = FIRST if film.is_new else GAP
        else:
            why = SIZE if size != self._size else ""
            if not why:
                film.keep(Frame(at, by=by, lost=lost))
            if film.is_full:
                film.turn()
                why = KEY
            elif film.since_key >= frames.KEY_BYTES:
                why = KEY
        self._screen, self._size, self._has_any = screen, size, True
        if why:
            film.since_key = 0
            film.keep(Frame(at, why, film.number, size, screen))


def run(folder: str, pipe: int, order: Mapping[str, Any], secrets: str) -> None:
    """Record until told to end (TERM), and take one screen more then."""
    ended: list[int] = []
    # Python goes on with a `select` that a signal has interrupted, so the signal has to be readable.
    told, told_into = os.pipe()
    os.set_blocking(told_into, False)
    signal.set_wakeup_fd(told_into, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda told, _frame: ended.append(told))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGHUP))
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, ROOM)
    limit = int(order["limit"])
    film = Film(folder, limit) if limit else None
    argv = [*order["tmux"], *_asks(order["session"])]
    camera = Camera(film, lambda: _said(argv), masking.mask(json.loads(secrets or "[]")))
    _follow(camera, pipe, told, ended)


def _follow(camera: Camera, pipe: int, told: int, ended: Sequence[int]) -> None:
    """Wait without cost until something is printed; then look once it has settled, and no more
    often than the camera wants. `told` can be read as soon as a signal came."""
    due: float | None = None
    last = 0.0
    while not ended:
        now = time.monotonic()
        wait = None if due is None else max(0.0, min(REST, due - now))
        if _has_news(pipe, told, wait) and due is None:
            due = max(time.monotonic() + SETTLE, last + camera.pause)
        if due is not None and time.monotonic() >= due:
            due, last = None, time.monotonic()
            camera.take()
        elif due is not None:
            select.select([told], [], [], min(REST, max(0.0, due - time.monotonic())))
    camera.take()


def _has_news(pipe: int, told: int, wait: float | None) -> bool:
    """Whether anything was printed; it is taken out of the pipe and thrown away."""
    ready, _, _ = select.select([pipe, told], [], [], wait)
    if pipe not in ready:
        return False
    with contextlib.suppress(BlockingIOError):
        for _ in range(64):
            if not os.read(pipe, PIECE):
                break
    return True


def _asks(session: str) -> list[str]:
    """How many lines are above the screen and how large it is; then the screen, and some above it."""
    pane = f"={session}:"
    facts = "#{history_size} #{pane_width} #{pane_height}"
    return [
        *("display-message", "-p", "-t", pane, facts, ";"),
        *("capture-pane", "-pe", "-t", pane, "-S", f"-{BACK}"),
    ]


def _said(argv: list[str]) -> str | None:
    """What tmux answers; None where it does not."""
    out, into = os.pipe()
    try:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, into, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
    except OSError:
        os.close(out)
        return None
    finally:
        os.close(into)
    data, end = bytearray(), time.monotonic() + PATIENCE
    try:
        while True:
            with contextlib.suppress(InterruptedError):
                ready, _, _ = select.select([out], [], [], max(0.0, end - time.monotonic()))
                if not ready:
                    os.kill(child, signal.SIGKILL)
                    return None
                piece = os.read(out, PIECE)
                if not piece:
                    break
                data += piece
    finally:
        os.close(out)
        _, status = os.waitpid(child, 0)
    return data.decode("utf-8", "replace") if status == 0 else None

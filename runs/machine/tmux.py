"""Sessions on a private tmux server. One funnel for every command; a hiccup is never "no sessions"."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from runs.core import masking, naming
from runs.core.paths import Paths
from runs.core.ports import (
    KEYS,
    Exit,
    MaybeGiven,
    Order,
    Output,
    SeamError,
    Sighting,
    UnremovableError,
)
from runs.machine import files, processes, recorder, shell, sightings, tmux_recall
from runs.transcript import frames

TIMEOUT = 5.0
# Times as long: whoever gives up too early has a failed run, and the machine is busy. Less than the
# 30 s after which a browser gives up, since a log-in is started while somebody waits.
START_PATIENCE = 4
EXIT_BYTES = 4096
# How long tmux's own "no server" is believed while no process and no socket say otherwise.
TRUSTED_SECONDS = 600.0
SHORT = 80
COMMAND_BYTES = 15_000  # tmux 3.3a refuses messages of 16 KB as "command too long"
COLUMNS, ROWS, SCROLLBACK = 160, 48, 10000
_NO_SERVER = (
    *("no server running", "error connecting to", "server exited unexpectedly", "lost server"),
    "no current target",  # a server without any session, as one is while it ends
)
# How long a program may take to show what was pasted; then Enter follows nevertheless.
PASTED_WITHIN, PASTED_LOOK, PASTED_END = 10.0, 0.1, 12
# With fewer, a text is not looked for by its letters.
FEW_LETTERS = 2
_PASTED = "Pastedtext"
_NOTE = re.compile(rf"{_PASTED}\d+")
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
_ELSEWHERE = "not-this-session"
_NO_SESSION = ("can't find session", "can't find pane", "session not found")
_OF_OUR_TERMINAL = frozenset(
    {"TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "TMUX_PANE", "PWD", "OLDPWD"}
)
_GIT = (
    *("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_SSH", "GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"),
)
PRESSED = frozenset({*"123456789", *KEYS})
LAUNCHER = Path(__file__).with_name("launcher.py")


def _gone(name: str) -> str:
    return f"the session {name} is not there any more"


def _letters(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


def _shows(screen: str | None, before: str | None, text: str) -> bool:
    """Whether the end of a text that was pasted came onto a screen; long ones show as a note.

    One of signs alone shows as a screen that has changed. None: a screen that could not be read.
    """
    if screen is None or screen == before:
        return False
    end = _letters(text)[-PASTED_END:]
    if len(end) < FEW_LETTERS:
        return before is not None
    shown, had = _letters(screen), _letters(before or "")
    # An earlier note may have left the screen as this one came; each has a number of its own.
    is_noted = bool({*_NOTE.findall(shown)} - {*_NOTE.findall(had)})
    return is_noted or any(shown.count(part) > had.count(part) for part in (end, _PASTED))


class TmuxSessions:
    """`Sessions` on the private socket of one state folder."""

    def __init__(
        self,
        paths: Paths,
        environ: Mapping[str, str],
        program: str = "tmux",
        timeout: float = TIMEOUT,
    ) -> None:
        self._paths = paths
        self._program = program
        self.timeout = timeout
        self._is_configured = False
        self._absent_until = 0.0
        self._env = shell.scrubbed(environ, own_bin=paths.bin)
        self._env.pop("COLORTERM", None)
        self._env.setdefault("TERM", "xterm-256color")

    def look(self) -> Mapping[str, Sighting]:
        if time.monotonic() < self._absent_until and tmux_recall.is_absent(self._paths.tmux_socket):
            return {}
        done = self._tmux("list-panes", "-a", "-F", sightings.FORMAT)
        if done.status != 0:
            if self._is_absent(done.stderr):
                self._absent_until = time.monotonic() + TRUSTED_SECONDS
                return {}
            raise SeamError(shell.words(["tmux", "list-panes"], done))
        return sightings.read(done.stdout.splitlines())

    def server(self) -> str:
        living = tmux_recall.living(self._paths.tmux_socket)
        return processes.name_of(min(living)) if living else ""

    def start(self, order: Order) -> None:
        """The order goes through a private file: tmux limits a command to 16 KB, and `ps` is public."""
        _refuse_odd(order.session, order.marker)
        try:
            self._write_order(order)
        except OSError as error:
            raise SeamError(
                f"the order of the session could not be written: {error.strerror or error}"
            ) from error
        if not self._paths.tmux_socket.exists():
            tmux_recall.recall(
                self._paths.tmux_socket
            )  # or a second server would hide the first one
        program = [sys.executable, "-I", "-S", str(LAUNCHER), str(order.folder)]
        size = ("-x", str(order.columns or COLUMNS), "-y", str(ROWS))
        done = self._tmux(
            *("new-session", "-d", "-s", order.session, *size),
            *("--", *program, *([order.marker] if order.marker else [])),
            *(";", "set-option", "-t", f"={order.session}:", sightings.MARK, order.marker),
            *_piped(order),
            timeout=START_PATIENCE * self.timeout,
        )
        if done.status != 0:
            raise SeamError(shell.words(["tmux", "new-session"], done))

    def _write_order(self, order: Order) -> None:
        """The whole environment is in it: a tmux server keeps the one that it was started with."""
        order.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Of a program that worked on the same run before.
        for name in (recorder.NAME, "exit", masking.FILE, frames.PIPE):
            (order.folder / name).unlink(missing_ok=True)
        env = _for_agents(self._env)
        if len(str(order.folder)) <= SHORT:
            # An agent's own `tmux kill-server` must reach neither our server nor its user's.
            env["TMUX_TMPDIR"] = str(order.folder)
        content = {
            "argv": list(order.argv),
            "env": shell.add_variables(env, {**order.env, processes.MARKER: order.marker}),
            "cwd": str(order.cwd),
            "nofile": order.nofile,
            "output": order.output,
            "wake": [str(self._paths.worker_socket), order.session],
        }
        if order.recording is not None:
            os.mkfifo(order.folder / frames.PIPE, 0o600)
            content["screen"] = {
                "limit": order.recording,
                "tmux": [self._program, "-u", "-S", str(self._paths.tmux_socket)],
                "session": order.session,
                "is_secret_shared": bool(order.output),
            }
        for name, text in {**order.files, "order.json": json.dumps(content)}.items():
            _write_private(order.folder / name, text)

    def screens(self, names: Sequence[str], lines: int = 0) -> Mapping[str, str]:
        """As few commands as fit: a mark before each capture tells them apart; the lost are left out."""
        if not names:
            return {}
        mark = uuid.uuid4().hex
        found: dict[str, str] = {}
        wanted = list(names)
        while wanted:
            argv, asked = _captures(wanted, lines, mark)
            done = self._tmux(*argv)
            found |= _split(done.stdout, mark)
            if self._is_absent(done.stderr):
                break
            if done.status == 0:
                wanted = wanted[asked:]
                continue
            if not any(text in done.stderr for text in _NO_SESSION):
                raise SeamError(shell.words(["tmux", "capture-pane"], done))
            wanted = [name for name in wanted if name not in found][1:]
        return found

    def kill(self, name: str, marker: str) -> None:
        """A session of that name which somebody else has marked is not the one that was meant."""
        _refuse_odd(name, marker)
        family = processes.family(marker)
        try:
            self._if_marked(name, marker, f"kill-session -t ={name}")
        finally:
            processes.end_marked(marker, family)

    def working_in(self, folder: Path) -> Sequence[tuple[int, str]]:
        try:
            return processes.working_in(folder.resolve())
        except OSError:
            return ()

    def interrupt(self, name: str, marker: str) -> None:
        """As a key: a program that reads keys decides, any other gets SIGINT with its children."""
        _refuse_odd(name, marker)
        self._if_marked(name, marker, f"send-keys -t ={name}: C-c")

    def _if_marked(self, name: str, marker: str, command: str) -> None:
        """Give a session that carries a marker a command; no error when it is gone."""
        argv = ("if-shell", "-F", "-t", f"={name}:", f"#{{==:#{{{sightings.MARK}}},{marker}}}")
        done = self._tmux(*argv, command, timeout=2 * self.timeout)
        gone = any(text in done.stderr for text in (*_NO_SESSION, *_NO_SERVER))
        if done.status != 0 and not gone:
            raise SeamError(shell.words(["tmux", command.split()[0]], done))

    def make_temporary(self, folder: Path) -> None:
        """It may lie where others have theirs too, so that each step on the way has to be ours.

        The state folder itself was looked at when labsite started, and may be a link.
        """
        top = folder.parent.parent
        shared = (top,) if top == self._paths.shared_place else ()
        try:
            for place in (*shared, folder.parent, folder):
                place.mkdir(mode=0o700, exist_ok=True)
                seen = place.lstat()
                if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid():
                    raise SeamError(
                        f"{place} belongs to somebody else: remove it, then start again"
                    )
        except OSError as error:
            raise SeamError(f"{folder} cannot be made: {error.strerror}") from error

    def clear_temporary(self, folder: Path) -> None:
        with contextlib.suppress(UnremovableError):  # what belongs to somebody else stays
            files.remove_tree(folder)

    def forget(self, folder: Path) -> None:
        for name in ("token", "git-token", "order.json", masking.FILE):
            with contextlib.suppress(OSError):
                (folder / name).unlink(missing_ok=True)

    def exit_of(self, folder: Path) -> Exit | None:
        """The agent can write this file too, so nothing in it is believed that cannot be meant."""
        text = files.read_small(folder / "exit", EXIT_BYTES)
        return None if text is None else sightings.read_exit(text)

    def output(
        self, folder: Path, start: int, limit: int, record: str = recorder.NAME
    ) -> Output | None:
        return files.read_piece(folder / record, start, limit)

    def wake(self, folder: Path) -> None:
        """A file that is touched; its runner looks at it while it waits. Without a runner, nothing."""
        with contextlib.suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            handle = os.open(folder / "wake", flags, 0o600)
            try:
                os.utime(handle)
            finally:
                os.close(handle)

    def say(self, name: str, marker: str, text: str, *, is_secret: bool = False) -> None:
        """Through memory without a name, since argument lists are public."""
        _refuse_odd(name, marker)
        handle = os.memfd_create("said")
        try:
            os.write(handle, text.encode())
            given = Path(f"/proc/self/fd/{handle}")
            done = self._tmux("load-buffer", "-b", name, "-", given=given)
        finally:
            os.close(handle)
        if done.status != 0:
            raise SeamError(_gone(name) if self._is_absent(done.stderr) else done.stderr.strip())
        if is_secret:
            self._give(name, marker, f"paste-buffer -d -b {name} -t ={name}:")
        else:
            self._paste(name, marker, text)
        try:
            self._give(name, marker, f"send-keys -t ={name}: Enter")
        except SeamError as error:
            raise MaybeGiven(f"the text was given, and Enter perhaps not: {error}") from error

    def _paste(self, name: str, marker: str, text: str) -> None:
        """Paste what was loaded, and wait until the program shows it."""
        before = self._plain(name)
        # In brackets where the program asks for them, so that a text of several lines stays one.
        self._give(name, marker, f"paste-buffer -p -d -b {name} -t ={name}:")
        # A program takes an Enter that comes along with a paste for a part of it.
        end = time.monotonic() + PASTED_WITHIN
        while not _shows(self._plain(name), before, text):
            if time.monotonic() > end:
                raise MaybeGiven("the program did not show the text, so Enter was not pressed")
            time.sleep(PASTED_LOOK)
        time.sleep(PASTED_LOOK)

    def press(self, name: str, marker: str, key: str) -> None:
        _refuse_odd(name, marker)
        if key not in PRESSED:
            raise SeamError(f"{key!r} is no key that is pressed in a session")
        self._give(name, marker, f"send-keys -t ={name}: {key}")

    def _give(self, name: str, marker: str, command: str) -> None:
        """The same as `_if_marked`, and an error where there is no such session any more."""
        argv = ("if-shell", "-F", "-t", f"={name}:", f"#{{==:#{{{sightings.MARK}}},{marker}}}")
        done = self._tmux(*argv, command, f"display-message -p {_ELSEWHERE}")
        if _ELSEWHERE in done.stdout or self._is_absent(done.stderr):
            raise SeamError(_gone(name))
        if any(text in done.stderr for text in _NO_SESSION):
            raise SeamError(_gone(name))
        if done.status != 0:
            raise MaybeGiven(shell.words(["tmux", command.split()[0]], done))

    def _plain(self, name: str) -> str | None:
        """A session's screen without colours; None where it cannot be read."""
        try:
            return _COLOURS.sub("", self.screens([name]).get(name, ""))
        except SeamError:
            return None

    def attach_command(self, name: str) -> Sequence[str]:
        return [self._program, "-S", str(self._paths.tmux_socket), "attach", "-t", f"={name}"]

    def _tmux(
        self, *argv: str, timeout: float | None = None, given: Path | None = None
    ) -> shell.Finished:
        """Every command; asked once more when the server lost its socket and has made a new one."""
        command = [
            *(self._program, "-u", "-S", str(self._paths.tmux_socket)),
            *("-f", str(self._config()), *argv),
        ]
        limit = timeout or self.timeout
        done = shell.run(command, timeout=limit, env=self._env, given=given)
        if (
            done.status != 0
            and self._is_absent(done.stderr)
            and tmux_recall.recall(self._paths.tmux_socket)
        ):
            return shell.run(command, timeout=limit, env=self._env, given=given)
        return done

    def _config(self) -> Path:
        """The server's configuration, written anew when it is not what this version wants."""
        path, wanted = self._paths.state / "tmux.conf", _configuration(self._paths)
        try:
            if not self._is_configured or not path.exists():
                if not path.exists() or path.read_text() != wanted:
                    _write_private(path, wanted)
                self._is_configured = True
        except OSError as error:
            if not self._paths.state.is_dir():
                raise SeamError(f"the state folder {self._paths.state} is gone") from error
            raise SeamError(f"{path} could not be written: {error.strerror or error}") from error
        return path

    def _is_absent(self, stderr: str) -> bool:
        """Whether tmux says that there is no server, which is an answer and not an error."""
        return any(text in stderr for text in _NO_SERVER) and "Permission denied" not in stderr


def _refuse_odd(name: str, marker: str) -> None:
    """Raise SeamError for a name or marker that tmux would read as more than a word."""
    if not naming.is_word(name) or (marker and not naming.is_word(marker)):
        raise SeamError(f"{name!r} with the mark {marker!r} is not a session of ours")


def _for_agents(env: Mapping[str, str]) -> dict[str, str]:
    """Without what describes our own terminal and folder, and without git settings of our caller.

    The last would redirect all git of the agent (GIT_DIR). Ours reads what BASH_ENV named before.
    """
    first = {"LAB_BASH_ENV": env["BASH_ENV"]} if env.get("BASH_ENV") else {}
    return first | {
        name: value
        for name, value in env.items()
        if name not in _OF_OUR_TERMINAL and (not name.startswith("GIT_") or name.startswith(_GIT))
    }


def _configuration(paths: Paths) -> str:
    """Server options: dead panes stay until read, and each end of a session wakes the worker.

    The hook's shell line holds only our own paths and a session name; names of sessions that
    we start are sanitised, and tmux quotes the others with `q:`.
    """
    wake = f"{_quoted(paths.bin / 'labctl')} wake --socket {_quoted(paths.worker_socket)}"
    name = "#{?hook_session_name,#{q:hook_session_name},#{q:session_name}}"
    hook = f'run-shell -b "{wake} {name} >/dev/null 2>&1 || true"'
    return "\n".join(
        [
            "set -g remain-on-exit on",
            "set -g exit-empty on",
            f"set -g history-limit {SCROLLBACK}",
            "set -g default-terminal screen-256color",
            "set -g status off",
            "set -g set-clipboard off",
            "set -g mouse on",
            f"set-hook -g pane-died {{ {hook} }}",
            f"set-hook -g session-closed {{ {hook} }}",
            "",
        ]
    )


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "'\\''") + "'"


def _piped(order: Order) -> list[str]:
    """What has tmux copy all that the program prints into the pipe of the recording."""
    if order.recording is None:
        return []
    # tmux reads signs of its own in it, and dates.
    path = _quoted(order.folder / frames.PIPE).replace("#", "##").replace("%", "%%")
    return [";", "pipe-pane", "-O", "-t", f"={order.session}:", f"exec cat > {path}"]


def _captures(names: Sequence[str], lines: int, mark: str) -> tuple[list[str], int]:
    """One chain of captures, and of how many of the names: as many as tmux takes in one message."""
    argv: list[str] = []
    room = COMMAND_BYTES
    for number, name in enumerate(names):
        piece = ["display-message", "-p", "-t", f"={name}:", f"{mark} #{{session_name}}", ";"]
        piece += ["capture-pane", "-peJ", "-t", f"={name}:", "-S", f"-{lines}" if lines else "0"]
        room -= sum(len(word.encode()) + 1 for word in piece) + 2
        if argv and room < 0:
            return argv, number
        argv += [*([";"] if argv else []), *piece]
    return argv, len(names)


def _split(text: str, mark: str) -> dict[str, str]:
    found = {}
    for part in text.split(f"{mark} ")[1:]:
        name, _, screen = part.partition("\n")
        if name:
            found[name] = screen.rstrip("\n")
    return found


def _write_private(path: Path, text: str) -> None:
    """Write a file that only this user can read, in one step."""
    part = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    part.rename(path)

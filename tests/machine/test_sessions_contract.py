"""Sessions: the fake and real tmux answer alike; what only tmux can show is shown on it."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from runs.core.paths import Paths
from runs.core.ports import Order, SeamError
from runs.machine import processes
from runs.machine.tmux import TmuxSessions
from tests.fakes import FakeClock, FakeSessions
from tests.house.product import until
from tests.patience import PATIENCE

pytestmark = [pytest.mark.real, pytest.mark.quick("contract of the fake and the real tmux")]

IDLE = [sys.executable, "-c", "import time; time.sleep(600)"]


def an_order(folder: Path, name: str = "demo~1~afk-7", argv=None, **more) -> Order:  # type: ignore[no-untyped-def]
    return Order(
        session=name,
        folder=folder / name,
        cwd=folder,
        argv=argv or IDLE,
        marker=f"{folder.name}-{name}",
        **more,
    )


@pytest.fixture(params=["fake", pytest.param("real", id="tmux")])
def sessions(request, tmp_path):
    if request.param == "fake":
        yield FakeSessions(FakeClock())
    else:
        yield request.getfixturevalue("real").sessions


@pytest.mark.row("LAB-16", level="real")
def test_no_server_is_no_sessions_and_no_error(sessions):
    assert sessions.look() == {}
    assert sessions.screens(["demo~1~afk-7"]) == {}


@pytest.mark.row("LAB-42", level="real")
def test_a_started_session_is_seen_alive_and_ends_once_and_again(sessions, tmp_path):
    sessions.start(an_order(tmp_path))
    seen = sessions.look()
    assert seen["demo~1~afk-7"].alive
    sessions.kill("demo~1~afk-7", f"{tmp_path.name}-demo~1~afk-7")
    assert sessions.look() == {}
    sessions.kill("demo~1~afk-7", "")


def test_one_server_holds_the_sessions_and_a_later_one_has_another_name(sessions, tmp_path):
    sessions.start(an_order(tmp_path))
    name = sessions.server()
    sessions.start(an_order(tmp_path, "demo~2~afk-8"))
    assert sessions.server() == name
    boot, pid, started = name.split(":")
    assert boot
    assert pid.isdigit()
    assert started.isdigit()


def test_without_a_session_real_tmux_has_no_server(real, tmp_path):
    assert real.sessions.server() == ""
    real.sessions.start(an_order(tmp_path))
    before = real.sessions.server()
    real.tmux("kill-server")
    until(lambda: real.sessions.server() == "")
    real.sessions.start(an_order(tmp_path))
    assert real.sessions.server() not in ("", before)


@pytest.mark.row("LAB-133", level="real")
def test_a_secret_is_given_to_a_session_that_does_not_show_it_and_to_no_other(sessions, tmp_path):
    told = tmp_path / "told"
    echo = "import getpass, sys; open(sys.argv[1], 'w').write(getpass.getpass())"
    order = an_order(tmp_path, argv=[sys.executable, "-c", echo, str(told)])
    with pytest.raises(SeamError, match="not there any more"):
        sessions.say("demo~1~afk-7", order.marker, "code", is_secret=True)
    sessions.start(order)
    if not isinstance(sessions, FakeSessions):
        until(lambda: "Password" in sessions.screens(["demo~1~afk-7"]).get("demo~1~afk-7", ""))
    with pytest.raises(SeamError, match="not there any more"):
        sessions.say("demo~1~afk-7", "lab-another", "code", is_secret=True)
    text = 'it\'s "$HOME"; #{pane_id} ' + "x" * 3000
    sessions.say("demo~1~afk-7", order.marker, text, is_secret=True)
    if isinstance(sessions, FakeSessions):
        assert sessions.typed == [("demo~1~afk-7", text)]
        return
    until(lambda: told.exists() and told.read_text())
    assert told.read_text() == text


def test_a_text_and_a_digit_reach_the_session_that_is_meant_and_no_other(sessions, tmp_path):
    told = tmp_path / "told"
    echo = "import sys; open(sys.argv[1], 'w').write(input() + '|' + input() + '|' + input())"
    order = an_order(tmp_path, argv=[sys.executable, "-c", echo, str(told)])
    for give in (sessions.say, sessions.press):
        with pytest.raises(SeamError, match="not there any more"):
            give("demo~1~afk-7", order.marker, "1")
    sessions.start(order)
    with pytest.raises(SeamError, match="not there any more"):
        sessions.say("demo~1~afk-7", "lab-another", "to another run")
    with pytest.raises(SeamError, match="not there any more"):
        sessions.press("demo~1~afk-7", "lab-another", "1")
    with pytest.raises(SeamError, match="no key"):
        sessions.press("demo~1~afk-7", order.marker, "C-d")
    text = 'it\'s "$HOME"; #{pane_id}\nand more'
    sessions.say("demo~1~afk-7", order.marker, text)
    sessions.press("demo~1~afk-7", order.marker, "2")
    sessions.say("demo~1~afk-7", order.marker, "the end")
    if isinstance(sessions, FakeSessions):
        given = [text, "key 2", "the end"]
        assert sessions.typed == [("demo~1~afk-7", one) for one in given]
        return
    until(lambda: told.exists() and told.read_text())
    assert told.read_text() == text.replace("\n", "|") + "|2the end"


def test_a_note_that_takes_the_place_of_an_earlier_one_shows_a_text_too(real, tmp_path):
    """A program that shows what is pasted as a note, and draws its screen anew for each."""
    told = tmp_path / "told"
    draws = (
        "stty -echo; n=0; printf 'Ask?'; while read -r line; do n=$((n + 1)); "
        """echo "$line" >> "$0"; printf '\\033[2J\\033[H[Pasted text #%s +3 lines]' $n; done"""
    )
    order = an_order(tmp_path, argv=["sh", "-c", draws, str(told)])
    real.sessions.start(order)
    until(lambda: "Ask?" in real.sessions.screens([order.session]).get(order.session, ""))
    for _ in range(3):
        real.sessions.say(order.session, order.marker, "first line\nlast line")
    until(lambda: told.exists() and told.read_text().count("last line") == 3)


@pytest.mark.parametrize("text", ["?", "👍"])
def test_a_text_without_letters_is_sent_too(sessions, tmp_path, text):
    """Nothing of it can be looked for on the screen by its letters."""
    told = tmp_path / "told"
    echo = "import sys; open(sys.argv[1], 'w').write(input('Ask? '))"
    order = an_order(tmp_path, argv=[sys.executable, "-c", echo, str(told)])
    sessions.start(order)
    if not isinstance(sessions, FakeSessions):
        until(lambda: "Ask?" in sessions.screens(["demo~1~afk-7"]).get("demo~1~afk-7", ""))
    sessions.say("demo~1~afk-7", order.marker, text)
    if isinstance(sessions, FakeSessions):
        assert sessions.typed == [("demo~1~afk-7", text)]
        return
    until(lambda: told.exists() and told.read_text())
    assert told.read_text() == text


def test_two_sessions_of_one_name_are_refused(sessions, tmp_path):
    sessions.start(an_order(tmp_path))
    with pytest.raises(SeamError):
        sessions.start(an_order(tmp_path))


def test_screens_leave_out_what_is_gone(sessions, tmp_path):
    sessions.start(an_order(tmp_path))
    assert set(sessions.screens(["nobody", "demo~1~afk-7", "demo~2~afk-8"])) == {"demo~1~afk-7"}


CAUGHT = [
    sys.executable,
    "-uc",
    "import time\ntry:\n print('ready')\n time.sleep(600)\nexcept KeyboardInterrupt:\n raise SystemExit(5)",
]


@pytest.mark.row("MALA-W-50", level="real")
def test_an_interrupt_reaches_the_program_of_the_marked_session_alone(real, tmp_path):
    mine, other = an_order(tmp_path, argv=CAUGHT), an_order(tmp_path, "demo~2~afk-8", CAUGHT)
    for order in (mine, other):
        real.sessions.start(order)
        real.until(lambda: "ready" in real.sessions.screens([order.session])[order.session])  # noqa: B023
    real.sessions.interrupt(mine.session, other.marker)
    real.sessions.interrupt(other.session, other.marker)
    real.until(lambda: not real.sessions.look()[other.session].alive)
    # tmux may never tell the status of a program that ended by a key; the product reads its own note.
    real.until(lambda: real.sessions.exit_of(other.folder) is not None)
    assert real.sessions.exit_of(other.folder).status == 5
    assert real.sessions.look()[mine.session].alive


def test_an_interrupt_of_a_session_that_is_gone_is_no_error(sessions, tmp_path):
    sessions.interrupt("demo~1~afk-7", "mark")
    sessions.start(an_order(tmp_path))
    sessions.interrupt("demo~1~afk-7", "of-somebody-else")
    sessions.interrupt("demo~2~afk-8", "mark")
    assert sessions.look()["demo~1~afk-7"].alive


def test_killing_foo_leaves_foobar(sessions, tmp_path):
    sessions.start(an_order(tmp_path, "foo~1~afk-1"))
    sessions.start(an_order(tmp_path, "foo~1~afk-11"))
    sessions.kill("foo~1~afk-1", f"{tmp_path.name}-foo~1~afk-1")
    assert set(sessions.look()) == {"foo~1~afk-11"}


def test_a_session_shows_the_mark_it_was_started_with(sessions, tmp_path):
    sessions.start(an_order(tmp_path))
    assert sessions.look()["demo~1~afk-7"].marker == f"{tmp_path.name}-demo~1~afk-7"


@pytest.mark.parametrize("marker", ["", "somebody-1"])
def test_a_session_that_somebody_else_marked_is_never_ended(sessions, tmp_path, marker):
    sessions.start(an_order(tmp_path))
    sessions.kill("demo~1~afk-7", marker)
    assert sessions.look()["demo~1~afk-7"].alive


@pytest.mark.parametrize(
    ("name", "marker"),
    [("demo~1~afk-7' ; kill-server '", "m"), ("demo~1~afk-7", "#{pid}"), ("", "m"), ("=a", "")],
)
def test_a_name_or_mark_that_is_more_than_a_word_is_refused(sessions, tmp_path, name, marker):
    with pytest.raises(SeamError):
        sessions.kill(name, marker)
    with pytest.raises(SeamError):
        sessions.start(Order(name, tmp_path / "order", tmp_path, IDLE, marker=marker))


@pytest.mark.row("LAB-16", level="real")
def test_a_server_without_a_session_is_no_sessions_and_no_error(real):
    real.by_hand("demo~1~afk-7")
    real.tmux("set-option", "-s", "exit-empty", "off")
    real.tmux("kill-session", "-t", "=demo~1~afk-7")
    assert real.sessions.look() == {}
    real.sessions.kill("demo~1~afk-7", "")


def test_a_session_made_by_hand_has_no_mark_and_ends_only_as_such(real):
    real.by_hand("demo~1~afk-7")
    assert real.sessions.look()["demo~1~afk-7"].marker == ""
    real.sessions.kill("demo~1~afk-7", "ours-1")
    assert set(real.sessions.look()) == {"demo~1~afk-7"}
    real.sessions.kill("demo~1~afk-7", "")
    assert real.sessions.look() == {}


@pytest.mark.row("LAB-42", level="real")
def test_when_somebody_took_the_name_the_processes_of_the_run_end_all_the_same(real, tmp_path):
    real.sessions.start(an_order(tmp_path, argv=["sh", "-c", "setsid sleep 600 & sleep 600"]))
    marker = f"{tmp_path.name}-demo~1~afk-7"
    real.until(lambda: len(processes.marked(marker)) >= 4)
    real.tmux("rename-session", "-t", "=demo~1~afk-7", "elsewhere")
    real.by_hand("demo~1~afk-7")
    real.sessions.kill("demo~1~afk-7", marker)
    assert processes.marked(marker) == []
    assert real.sessions.look()["demo~1~afk-7"].alive


def test_an_odd_mark_of_somebody_else_does_not_confuse_the_look(real):
    real.by_hand("demo~1~afk-7")
    real.tmux("set-option", "-t", "=demo~1~afk-7:", "@lab_marker", "a|1|b\n#{pid}")
    assert real.sessions.look()["demo~1~afk-7"].marker == "a_1_b___pid_"
    assert real.sessions.look()["demo~1~afk-7"].alive


def test_an_order_that_cannot_be_written_is_an_error_with_a_reason(real, tmp_path):
    (tmp_path / "full").write_text("a file where the folder should be")
    with pytest.raises(SeamError, match="order of the session could not be written"):
        real.sessions.start(an_order(tmp_path / "full"))
    assert real.sessions.look() == {}


@pytest.mark.row("LAB-14", level="real")
@pytest.mark.parametrize("script", ["exit 1", "echo broken >&2; exit 1"])
def test_a_tmux_that_fails_is_an_error_and_never_no_sessions(real, tmp_path, script):
    bad = tmp_path / "tmux"
    bad.write_text(f"#!/bin/sh\n{script}\n")
    bad.chmod(0o755)
    with pytest.raises(SeamError):
        TmuxSessions(real.paths, os.environ, program=str(bad)).look()
    with pytest.raises(SeamError):
        TmuxSessions(real.paths, os.environ, program=str(tmp_path / "missing")).look()


def test_without_a_server_tmux_is_asked_once_and_again_once_there_is_one(real, tmp_path):
    log = tmp_path / "asked"
    counting = tmp_path / "tmux"
    counting.write_text(f'#!/bin/sh\necho x >>{log}\nexec tmux "$@"\n')
    counting.chmod(0o755)
    sessions = TmuxSessions(real.paths, real.environ, program=str(counting))
    assert [sessions.look() for _ in range(3)] == [{}, {}, {}]
    assert log.read_text() == "x\n"
    real.by_hand("demo~1~afk-7")
    assert sessions.look()["demo~1~afk-7"].alive
    real.paths.tmux_socket.unlink()
    assert sessions.look()["demo~1~afk-7"].alive


def test_a_tmux_that_is_slow_on_a_busy_machine_makes_its_session_all_the_same(real, tmp_path):
    slow = tmp_path / "tmux"
    slow.write_text('#!/bin/sh\ncase "$*" in *new-session*) sleep 5;; esac\nexec tmux "$@"\n')
    slow.chmod(0o755)
    sessions = TmuxSessions(real.paths, real.environ, program=str(slow), timeout=4)
    sessions.start(an_order(tmp_path))
    assert real.sessions.look()["demo~1~afk-7"].alive


def test_the_first_to_ask_at_the_same_time_do_not_break_each_others_configuration(real):
    for _ in range(50):
        (real.paths.state / "tmux.conf").unlink(missing_ok=True)
        sessions = TmuxSessions(real.paths, real.environ, program="true", timeout=PATIENCE)
        with ThreadPoolExecutor(6) as pool:
            assert (
                list(pool.map(partial(_look, sessions, threading.Barrier(6)), range(6))) == [{}] * 6
            )


def _look(sessions, begin, _):
    begin.wait(PATIENCE)
    return sessions.look()


def test_exit_status_time_and_last_words_are_kept_until_read(real, tmp_path):
    real.sessions.start(an_order(tmp_path, argv=["sh", "-c", "echo last words; exit 7"]))
    seen = _ended(real)
    assert (seen.status, seen.signal) == (7, None)
    assert "last words" in real.sessions.screens(["demo~1~afk-7"], 50)["demo~1~afk-7"]


def test_a_signal_is_told_from_a_status_and_outlives_the_tmux_server(real, tmp_path):
    real.sessions.start(an_order(tmp_path, argv=["sh", "-c", "kill -9 $$"]))
    assert _ended(real).signal == 9
    real.tmux("kill-server")
    assert real.sessions.exit_of(tmp_path / "demo~1~afk-7").signal == 9


def _own_limits():
    return resource.getrlimit(resource.RLIMIT_NOFILE)


def _shown(limit):
    return "unlimited" if limit == resource.RLIM_INFINITY else str(limit)


ODD_EXITS = [
    *("", "[]", "7", "null", "{}", '{"status": 0}', '{"status": "0", "at": 1.8e9}', "\xff"),
    *('{"status": 1e300, "at": 1.8e9}', '{"status": Infinity, "at": 1.8e9}'),
    *('{"status": true, "at": 1.8e9}', '{"status": 256, "at": 1.8e9}'),
    '{"status": 111111111111111111111111, "at": 1.8e9}',
    '{"status": -65, "at": 1.8e9}',
    *(f'{{"status": 0, "at": {at}}}' for at in ("1e300", "-1e300", "NaN", "Infinity", "0", "9e9")),
    '{"status": 0, "at": 1' + "1" * 400 + "}",
    "[" * 4000,
    '{"status": 0, "at": 1.8e9}' + " " * 5000,
]


@pytest.mark.parametrize("text", ODD_EXITS, ids=range(len(ODD_EXITS)))
def test_an_exit_file_that_cannot_be_meant_is_not_believed(tmp_path, text):
    (tmp_path / "exit").write_text(text, encoding="latin-1")
    assert TmuxSessions(Paths(tmp_path), os.environ).exit_of(tmp_path) is None


def test_an_exit_file_that_is_none_holds_nobody_up_and_leads_nowhere(tmp_path):
    sessions = TmuxSessions(Paths(tmp_path), os.environ)
    (tmp_path / "good").write_text('{"status": 3, "at": 1.8e9}')
    assert sessions.exit_of(tmp_path) is None
    os.mkfifo(tmp_path / "exit")
    assert sessions.exit_of(tmp_path) is None
    (tmp_path / "exit").unlink()
    (tmp_path / "exit").symlink_to(tmp_path / "good")
    assert sessions.exit_of(tmp_path) is None
    (tmp_path / "exit").unlink()
    (tmp_path / "exit").mkdir()
    assert sessions.exit_of(tmp_path) is None
    (tmp_path / "exit").rmdir()
    (tmp_path / "good").rename(tmp_path / "exit")
    assert sessions.exit_of(tmp_path).status == 3


def _ended(real):
    """How it ended. tmux 3.3 now and then misses the status of a pane that ends at once (it never
    shows it then), so the launcher's own note counts; what tmux does show must agree with it."""
    folder = real.folder / "demo~1~afk-7"
    real.until(lambda: not real.sessions.look()["demo~1~afk-7"].alive)
    seen, noted = real.sessions.look()["demo~1~afk-7"], real.sessions.exit_of(folder)
    if seen.ended_at is not None:
        assert (seen.exit_status, seen.exit_signal) == (noted.status, noted.signal)
    return noted


def test_a_program_that_is_missing_says_so_on_its_screen(real, tmp_path):
    real.sessions.start(an_order(tmp_path, argv=["no-such-agent"]))
    assert _ended(real).status == 127
    assert (
        "no-such-agent could not be started"
        in real.sessions.screens(["demo~1~afk-7"], 50)["demo~1~afk-7"]
    )


def test_after_a_kill_children_that_left_the_session_are_gone_too(real, tmp_path):
    script = "trap '' HUP; setsid sleep 600 & nohup sleep 601 >/dev/null 2>&1 & sleep 602"
    real.sessions.start(an_order(tmp_path, argv=["sh", "-c", script]))
    marker = f"{tmp_path.name}-demo~1~afk-7"
    real.until(lambda: len(processes.marked(marker)) >= 4)
    real.sessions.kill("demo~1~afk-7", marker)
    assert processes.marked(marker) == []


@pytest.mark.row("LAB-42", level="real")
@pytest.mark.parametrize(
    "command",
    [
        "env -i setsid {sleep}",
        "env -i sh -c 'setsid {sleep} & exit' & sleep 0.2; true",
        "env -i sh -c '(setsid sh -c \"{sleep} & wait\" &) ; exit'",
    ],
)
def test_a_process_that_cleaned_its_environment_and_left_ends_with_its_run(real, tmp_path, command):
    seconds = f"{os.getpid() % 10000}{tmp_path.name[-1]}7"
    script = command.format(sleep=f"/bin/sleep {seconds}") + " & sleep 600"
    real.sessions.start(an_order(tmp_path, argv=["sh", "-c", script]))
    real.until(lambda: _sleepers(seconds))
    real.sessions.kill("demo~1~afk-7", f"{tmp_path.name}-demo~1~afk-7")
    assert _sleepers(seconds) == []


@pytest.mark.row("LAB-42", level="real")
def test_what_an_agent_leaves_behind_ends_when_it_ends_by_itself(real, tmp_path):
    seconds = f"{os.getpid() % 10000}97"
    script = f"env -i setsid sh -c 'trap \"\" TERM HUP; /bin/sleep {seconds}' & sleep 0.3; exit 3"
    real.sessions.start(an_order(tmp_path, argv=["sh", "-c", script]))
    assert _ended(real).status == 3
    assert _sleepers(seconds) == []


def test_what_was_left_behind_in_a_folder_is_found_and_nothing_else_there(real, tmp_path):
    left, beside = tmp_path / "tree", tmp_path / "tree-2"
    for folder in (left / "sub", beside):
        folder.mkdir(parents=True)
    with contextlib.ExitStack() as ended:

        def begin(folder, *argv):
            made = subprocess.Popen(["env", "-i", *argv], cwd=folder, start_new_session=True)
            ended.callback(made.wait)
            ended.callback(os.killpg, made.pid, signal.SIGKILL)
            return made.pid

        one = begin(left / "sub", "/bin/sleep", "60")
        begin(beside, "/bin/sleep", "60")
        # Who began this one lives and works elsewhere, as labsite does when it runs git in there.
        begin(tmp_path, "/bin/sh", "-c", f"cd {left} && /bin/sleep 60 & wait")
        real.until(lambda: real.sessions.working_in(left) == [(one, "sleep")])
    assert real.sessions.working_in(left) == []


def _sleepers(seconds):
    wanted = f"/bin/sleep\0{seconds}\0".encode()
    return [line for line in _command_lines() if line == wanted]


def _command_lines():
    """Of every process there is; some end while they are asked."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes()


def _environment(real, tmp_path, sessions, **more):
    """What the agent of a new session finds in its environment."""
    script = "env -0 > env.part; mv env.part env; sleep 600"
    sessions.start(an_order(tmp_path, "demo~2~afk-8", argv=["sh", "-c", script], **more))
    real.until((tmp_path / "env").exists)
    lines = (tmp_path / "env").read_text().split("\0")[:-1]
    return dict(line.partition("=")[::2] for line in lines)


def test_an_agent_that_ends_its_tmux_server_does_not_end_ours(real, tmp_path):
    script = "tmux kill-server; tmux rename-session x; tmux kill-session; echo done; sleep 600"
    real.sessions.start(an_order(tmp_path, argv=["sh", "-c", script]))
    screen = lambda: real.sessions.screens(["demo~1~afk-7"]).get("demo~1~afk-7", "")  # noqa: E731
    real.until(lambda: "done" in screen())
    assert real.sessions.look()["demo~1~afk-7"].alive


def test_an_agent_knows_nothing_of_the_tmux_server_that_it_runs_in(real, tmp_path):
    found = _environment(real, tmp_path, real.sessions)
    assert not {"TMUX", "TMUX_PANE"} & set(found)
    assert found["TERM"] == "screen-256color"


def test_a_session_gets_the_environment_of_now_and_not_of_the_server_s_start(real, tmp_path):
    old = TmuxSessions(
        real.paths, {**real.environ, "COLOUR": "old", "GONE": "yes"}, timeout=PATIENCE
    )
    old.start(an_order(tmp_path))
    new = TmuxSessions(real.paths, {**real.environ, "COLOUR": "new"}, timeout=PATIENCE)
    found = _environment(real, tmp_path, new, env={"OF_THE_ORDER": "1"})
    assert (found["COLOUR"], found["OF_THE_ORDER"]) == ("new", "1")
    assert "GONE" not in found
    assert found["LAB_RUN_MARKER"] == f"{tmp_path.name}-demo~2~afk-8"
    assert found["PATH"].startswith(f"{real.paths.bin}:")


def test_git_settings_of_our_caller_do_not_redirect_the_agent_s_git(real, tmp_path):
    caller = {
        **real.environ,
        "GIT_DIR": "/elsewhere",
        "GIT_WORK_TREE": "/elsewhere",
        "GIT_INDEX_FILE": "/elsewhere",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "a.b",
        "GIT_CONFIG_VALUE_0": "c",
        "GIT_ASKPASS": "/elsewhere",
        "GIT_SSH_COMMAND": "ssh -4",
        "GIT_SSL_CAINFO": "/etc/ours.pem",
        "GIT_HTTP_PROXY_AUTHMETHOD": "basic",
    }
    sessions = TmuxSessions(real.paths, caller, timeout=PATIENCE)
    found = _environment(real, tmp_path, sessions, env={"GIT_TERMINAL_PROMPT": "0"})
    kept = {name for name in found if name.startswith("GIT_")}
    assert kept == {
        *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
        *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_SSH_COMMAND", "GIT_TERMINAL_PROMPT"),
        *("GIT_SSL_CAINFO", "GIT_HTTP_PROXY_AUTHMETHOD"),
    }


@pytest.mark.row("LAB-72", level="real")
@pytest.mark.parametrize("limit", [1000, 0])
def test_the_file_limit_holds_for_the_whole_tree(real, tmp_path, limit):
    script = "sh -c 'ulimit -Sn; ulimit -Hn'; sleep 600"
    real.sessions.start(an_order(tmp_path, argv=["sh", "-c", script], nofile=limit))
    shown = lambda: real.sessions.screens(["demo~1~afk-7"]).get("demo~1~afk-7", "").split()  # noqa: E731
    real.until(lambda: len(shown()) == 2)
    # No limit of ours (0) leaves the one of this machine, which tmux got from this very process.
    assert shown() == (["1000", "1000"] if limit else [_shown(n) for n in _own_limits()])


@pytest.mark.row("X-05", level="real")
def test_no_secret_of_ours_reaches_a_session_or_an_argument_list(real, tmp_path, monkeypatch):
    environ = {
        **real.environ,
        "LAB_SECRET_KEY": "s3cret-key",
        "DJANGO_SUPERUSER_PASSWORD": "s3cret-key",
    }
    sessions = TmuxSessions(real.paths, environ, timeout=PATIENCE)
    sessions.start(
        an_order(tmp_path, argv=["sh", "-c", "env; sleep 600"], files={"token": "t0ken-value"})
    )
    screen = lambda: sessions.screens(["demo~1~afk-7"], 500).get("demo~1~afk-7", "")  # noqa: E731
    real.until(lambda: "LAB_RUN_MARKER" in screen())
    assert "s3cret-key" not in screen()
    folder = tmp_path / "demo~1~afk-7"
    assert (folder / "token").read_text() == "t0ken-value"
    assert (folder / "token").stat().st_mode & 0o777 == 0o600
    real.until(lambda: any(b"sleep\x00600" in line for line in _command_lines()))
    assert not any(b"t0ken-value" in line for line in _command_lines())
    sessions.forget(folder)
    assert not (folder / "token").exists()


def test_an_argument_with_newlines_quotes_and_20000_characters_arrives_as_one(real, tmp_path):
    odd = 'it\'s "odd" $(touch boom) `x` ; \n second\tline ' + "x" * 20_000
    code = "import json,os,sys,time; open('part','w').write(json.dumps(sys.argv[1:])); os.rename('part','got'); time.sleep(600)"
    real.sessions.start(an_order(tmp_path, argv=[sys.executable, "-c", code, odd]))
    got = tmp_path / "got"
    real.until(got.exists)
    import json

    assert json.loads(got.read_text()) == [odd]
    assert not (tmp_path / "boom").exists()


def test_a_state_folder_with_a_long_path_still_has_a_server(tmp_path, request):
    paths = Paths(tmp_path / ("long" * 40))
    for folder in (paths.state, paths.bin, paths.tmux_socket.parent):
        folder.mkdir(parents=True, exist_ok=True)
    sessions = TmuxSessions(paths, os.environ, timeout=PATIENCE)
    sessions.start(an_order(tmp_path))
    try:
        assert "demo~1~afk-7" in sessions.look()
    finally:
        sessions.kill("demo~1~afk-7", f"{tmp_path.name}-demo~1~afk-7")
        assert len(str(paths.tmux_socket)) < 108


def test_the_end_of_a_session_wakes_the_worker_even_when_tmux_has_no_hook(real, tmp_path):
    """Seen with tmux 3.3a: now and then a pane dies without a report and its hook stays silent."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as worker:
        worker.bind(str(real.paths.worker_socket))
        worker.settimeout(PATIENCE)
        real.sessions.start(an_order(tmp_path, argv=["sh", "-c", "exit 3"]))
        assert worker.recv(100) == b"demo~1~afk-7"
    assert not real.sessions.look()["demo~1~afk-7"].alive


def test_nothing_that_an_earlier_program_left_is_taken_for_the_next_ones(real, tmp_path):
    """A run that was held is started again in the same folder."""
    order = an_order(tmp_path, argv=["sleep", "60"])
    order.folder.mkdir(parents=True, exist_ok=True)
    for name in ("output.jsonl", "exit"):
        (order.folder / name).write_text('{"status": 3, "at": 1}')
    real.sessions.start(order)
    assert real.sessions.exit_of(order.folder) is None
    assert real.sessions.output(order.folder, 0, 100) is None

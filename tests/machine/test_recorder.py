"""What a one-shot agent prints, kept and shown by the launcher, on real tmux and with a bad disk."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from runs.core.paths import Paths
from runs.core.ports import Order
from runs.machine import processes, recorder
from runs.machine.recorder import Pane, Record, Recorder
from runs.machine.tmux import TmuxSessions
from tests.fakes import FakeClock, FakeSessions
from tests.late_watch import LateWatch
from tests.transcript import agent_lines as x

NAME = "demo~1~afk-7"
SAY = "import os,sys,time; say=lambda *a: [os.write(1, p) for p in a]\n"


def begin(real, code: str, output: str = "claude_stream_json") -> Path:  # type: ignore[no-untyped-def]
    """Start an agent that is this Python code; its folder."""
    folder = real.folder / NAME
    argv = [sys.executable, "-c", SAY + code, "the task"]
    real.sessions.start(
        Order(NAME, folder, real.folder, argv, marker=real.folder.name, output=output)
    )
    return folder


def ended(real, seconds: float = 10):  # type: ignore[no-untyped-def]
    real.until(lambda: not real.sessions.look()[NAME].alive, seconds)
    return real.sessions.exit_of(real.folder / NAME)


def screen(real) -> str:  # type: ignore[no-untyped-def]
    return real.sessions.screens([NAME], 1000).get(NAME, "")


def lines(*told) -> str:  # type: ignore[no-untyped-def]
    return repr(x.written(*told))


def test_raw_lines_are_kept_privately_and_the_pane_shows_words(real):
    told = (x.claude_init(), x.claude_does("make test"), x.claude_says("Fixed it."))
    folder = begin(real, f"say({lines(*told)}); time.sleep(600)")
    real.until(lambda: "Fixed it." in screen(real))
    assert "▸ Bash: make test" in screen(real)
    assert '"type"' not in screen(real)
    record = folder / "output.jsonl"
    assert record.read_bytes() == x.written(*told)
    assert record.stat().st_mode & 0o777 == 0o600
    assert real.sessions.output(folder, 0, 10).data == x.written(*told)[:10]


def test_nothing_comes_from_its_input_and_its_errors_are_kept_too(real):
    code = "print(repr(sys.stdin.read()), sys.stdin.isatty(), flush=True); sys.stderr.write('oh no\\n'); sys.exit(3)"
    folder = begin(real, code)
    assert ended(real).status == 3
    assert "'' False" in screen(real) and "oh no" in screen(real)
    kept = (folder / "output.jsonl").read_text().splitlines()
    assert sorted(kept) == sorted(["'' False", '{"type": "labsite.stderr", "text": "oh no"}'])


def test_an_interactive_agent_still_has_the_terminal_to_itself(real):
    code = "print([os.isatty(n) for n in (0, 1, 2)], os.tcgetpgrp(0) == os.getpgrp(), flush=True); time.sleep(600)"
    folder = begin(real, code, output="")
    real.until(lambda: "[True, True, True] True" in screen(real))
    assert not (folder / "output.jsonl").exists()
    assert real.sessions.output(folder, 0, 10) is None


@pytest.mark.parametrize("output", ["", "codex_exec_json"])
def test_an_agent_finds_signals_as_any_program_does(real, output):
    folder = real.folder / NAME
    argv = ["sh", "-c", "grep SigIgn /proc/self/status; sleep 600"]
    real.sessions.start(
        Order(NAME, folder, real.folder, argv, marker=real.folder.name, output=output)
    )
    real.until(lambda: "SigIgn" in screen(real))
    assert int(screen(real).split("SigIgn:")[1].split()[0], 16) == 0


@pytest.mark.parametrize(
    ("code", "status", "number"),
    [
        ("sys.exit(1)", 1, None),
        ("os.kill(os.getpid(), 9)", None, 9),
        ("os.kill(os.getpid(), 15)", None, 15),
        ("import signal; signal.signal(2, lambda *_: sys.exit(0)); os.kill(os.getpid(), 2)", 0, None),
        ("import signal; signal.signal(15, lambda *_: sys.exit(143)); os.kill(os.getpid(), 15)", 143, None),
    ],
    ids=["exit 1", "SIGKILL", "SIGTERM", "SIGINT answered with 0", "SIGTERM answered with 143"],
)  # fmt: skip
def test_how_it_ended_is_not_lost_and_half_a_line_is_kept(real, code, status, number):
    folder = begin(real, f'say({lines(x.claude_init())}, b\'{{"type": "resu\'); {code}')
    seen = ended(real)
    assert (seen.status, seen.signal) == (status, number)
    assert (
        (folder / "output.jsonl")
        .read_bytes()
        .startswith(x.written(x.claude_init()) + b'{"type": "resu')
    )


def test_ctrl_c_in_the_pane_reaches_the_agent(real):
    begin(real, "print('ready', flush=True); time.sleep(600)")
    real.until(lambda: "ready" in screen(real))
    real.tmux("send-keys", "-t", f"={NAME}:", "C-c")
    assert ended(real).signal in (2, None)


def test_a_child_that_keeps_the_pipe_open_holds_nobody_up(real):
    code = (
        "import subprocess; p = subprocess.Popen(['sh', '-c', 'trap \"\" TERM HUP; while :; do echo flood; done'], start_new_session=True);"
        f"say({lines(x.claude_result())})"
    )
    folder = begin(real, code)
    assert ended(real, 15).status == 0
    assert x.written(x.claude_result()).strip() in (folder / "output.jsonl").read_bytes()
    real.until(lambda: processes.marked(real.folder.name) == [])


def test_a_flood_is_cut_in_the_record_and_the_end_is_kept_all_the_same(real):
    flood = x.claude_says("x" * 100_000)
    code = f"line = {lines(flood)}\nfor _ in range(260): say(line)\nsay({lines(x.claude_result())})"
    folder = begin(real, code)
    assert ended(real, 30).status == 0
    record = folder / "output.jsonl"
    assert 19_000_000 < record.stat().st_size < 22_000_000
    with record.open("rb") as file:
        file.seek(-2000, os.SEEK_END)
        tail = file.read()
    assert tail.endswith(x.written({"type": "labsite.cut"}, x.claude_result()))
    assert "done after 2 turns" in screen(real)


def test_a_line_that_never_ends_fills_no_memory_and_no_record(real):
    code = "for _ in range(200): say(b'x' * 65536)\nsay(b'\\nafter\\n'); time.sleep(600)"
    folder = begin(real, code)
    real.until(lambda: "after" in screen(real))
    assert (folder / "output.jsonl").read_bytes() == b"after\n"
    (launcher,) = [pid for pid in processes.marked(real.folder.name) if _is_launcher(pid)]
    peak = Path(f"/proc/{launcher}/status").read_text().split("VmHWM:")[1].split()[0]
    assert int(peak) < 60_000


def _is_launcher(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"launcher.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def test_a_pane_that_nobody_reads_does_not_hold_the_agent_up(real):
    """The tmux server is stopped: its terminals take nothing more."""
    code = f"while not os.path.exists('go'): time.sleep(0.02)\nfor _ in range(40): say({lines(x.claude_says('x' * 50_000))})\nopen('through', 'w').close(); time.sleep(600)"
    begin(real, code)
    server = int(real.tmux("display-message", "-p", "#{pid}"))
    os.kill(server, signal.SIGSTOP)
    (real.folder / "go").touch()
    try:
        real.until((real.folder / "through").exists)
    finally:
        os.kill(server, signal.SIGCONT)
    real.until(lambda: "not shown here" in screen(real))


def test_a_tmux_server_that_is_killed_loses_nothing_of_the_record(real):
    code = (
        "import signal; signal.signal(1, signal.SIG_IGN)\n"
        f"say({lines(x.claude_init())}); open('begun', 'w').close()\n"
        f"while not os.path.exists('go'): time.sleep(0.02)\nsay({lines(x.claude_result())}); sys.exit(5)"
    )
    folder = begin(real, code)
    real.until((real.folder / "begun").exists)
    real.tmux("kill-server")
    (real.folder / "go").touch()
    real.until(lambda: real.sessions.exit_of(folder) is not None)
    assert real.sessions.exit_of(folder).status == 5
    assert (folder / "output.jsonl").read_bytes() == x.written(x.claude_init(), x.claude_result())


def test_a_record_of_an_earlier_start_is_begun_anew_and_a_link_is_not_followed(real):
    folder = real.folder / NAME
    folder.mkdir()
    (real.folder / "elsewhere").write_text("precious")
    (folder / "output.jsonl").symlink_to(real.folder / "elsewhere")
    begin(real, "say(b'new\\n')")
    ended(real)
    assert (folder / "output.jsonl").read_bytes() == b"new\n"
    assert (real.folder / "elsewhere").read_text() == "precious"


def test_an_argument_that_is_too_long_for_the_system_says_so(real):
    argv = [sys.executable, "-c", "pass", "x" * 140_000]
    order = Order(NAME, real.folder / NAME, real.folder, argv, output="claude_stream_json")
    real.sessions.start(order)
    assert ended(real).status == 127
    assert "could not be started: Argument list too long" in screen(real)


def test_a_full_disk_costs_lines_and_nothing_else():
    record = Record(os.open("/dev/full", os.O_WRONLY))
    for _ in range(10):
        record.keep(b"{}\n", "assistant")
    record.close()
    Record(None).keep(b"{}\n", "assistant")


def test_after_a_full_disk_the_next_line_stands_on_a_line_of_its_own(tmp_path):
    """A pipe that takes half of it stands in for a disk that does."""
    out, into = os.pipe()
    os.set_blocking(into, False)
    record = Record(into)
    record.keep(b"x" * 70_000 + b"\n", "assistant")
    taken = os.read(out, 100_000)
    assert taken == b"x" * 65_536
    record.keep(b'{"type": "result"}\n', "result")
    assert os.read(out, 1000) == b'\n{"type": "result"}\n'


def test_a_record_is_read_in_pieces_by_the_fake_and_the_real_one(tmp_path, real):
    fake = FakeSessions(FakeClock())
    folder = tmp_path / "run"
    folder.mkdir()
    for sessions in (fake, real.sessions):
        assert sessions.output(folder, 0, 10) is None
    (folder / "output.jsonl").write_bytes(b"0123456789")
    fake.outputs[folder] = b"0123456789"
    for sessions in (fake, real.sessions):
        found = [sessions.output(folder, start, 4) for start in (0, 8, 10, 99, -3, -99)]
        assert [one.data for one in found] == [b"0123", b"89", b"", b"", b"789", b"0123"]
        assert {one.size for one in found} == {10}


def test_a_record_that_is_no_file_is_none(tmp_path):
    sessions = TmuxSessions(Paths(tmp_path), os.environ)
    os.mkfifo(tmp_path / "output.jsonl")
    assert sessions.output(tmp_path, 0, 10) is None
    (tmp_path / "output.jsonl").unlink()
    (tmp_path / "output.jsonl").symlink_to("/etc/passwd")
    assert sessions.output(tmp_path, 0, 10) is None


def test_what_was_said_last_is_kept_however_long_this_machine_held_us_up(tmp_path, monkeypatch):
    """More time has passed than is given to what is in the pipes."""
    before = signal.getsignal(signal.SIGCHLD)
    watch = LateWatch()
    watch.each = 2 * recorder.DRAIN
    monkeypatch.setattr(recorder, "time", watch)
    (out, says), (err, complains) = os.pipe(), os.pipe()
    kept = tmp_path / "record"
    record = Record(os.open(kept, os.O_WRONLY | os.O_CREAT))
    made = Recorder(record, Pane(None), out, err)
    try:
        os.write(says, b"the last word\n")
        made.follow(lambda: 0)
    finally:
        made.close()
        signal.signal(signal.SIGCHLD, before)
        for end in (says, complains):
            os.close(end)
    assert kept.read_bytes() == b"the last word\n"


def test_a_pane_without_a_terminal_shows_nothing_and_breaks_nothing():
    pane = Pane(None)
    for _ in range(10):
        pane.show("x" * 100_000)
    assert pane.handle is None
    pane.close()

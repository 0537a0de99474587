"""`labctl hook`: what agents' hooks leave in signal folders, and what they cannot do to them."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labctl import hook, sending_back, signal_files
from labctl.safe_files import opened
from labctl.session import remember_group
from runs.core.paths import Paths
from runs.core.ports import SeamError
from runs.groups.fast_path import AllDone, Unreadable
from runs.groups.signal_files import SignalFolders
from runs.groups.signal_rules import Inscription, Output, Signal
from tests.labctl.session import ROOT, Session
from tests.patience import PATIENCE

SIGNALS = SignalFolders()
AGREED = Inscription("work", "2026-11-21T12:00:00Z", "out", (), ("1", "2", "3"))
PAYLOAD = {
    "session_id": "abc123",
    "transcript_path": "/home/anna/.claude/projects/demo/abc123.jsonl",
    "cwd": "/home/anna/demo",
    "permission_mode": "default",
    "hook_event_name": "TaskCompleted",
    "task_id": "1",
    "task_subject": "Implement user authentication",
    "task_description": "Add login and signup endpoints",
    "teammate_name": "implementer",
    "team_name": "reviewers",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = Paths(tmp_path).signals("demo", "reviewers")
    SIGNALS.prepare(folder, 3, AGREED)
    return folder


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):  # type: ignore[no-untyped-def]
    """Runs the hook in this process: arguments, what is on standard input, more environment."""

    def run(*arguments: str, said: Any = PAYLOAD, **env: str) -> SimpleNamespace:
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        mine = {"LAB_SIGNALS": str(tmp_path / "signals" / "demo"), "LAB_PROJECT": "demo", **env}
        monkeypatch.setattr(os, "environ", mine)
        code = hook.run(arguments)
        return SimpleNamespace(code=code, err=capsys.readouterr().err)

    return run


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_completed_task_leaves_its_signal_and_asks_for_a_look(folder, call, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as worker:
        worker.bind(str(tmp_path / "w.sock"))
        worker.settimeout(PATIENCE)
        done = call("task-completed", LAB_WAKE_SOCKET=str(tmp_path / "w.sock"))
        assert worker.recv(100) == b"demo"
    assert (done.code, done.err) == (0, "")
    said = json.loads((folder / "1.done").read_text())
    assert said.pop("completed_at").endswith("Z")
    assert said == {
        "task_id": "1",
        "worker": "implementer",
        "subject": "Implement user authentication",
    }
    assert names(folder) == [".expected", "1.done", "inscription.json"]


@pytest.mark.real
@pytest.mark.row("RUNE-66", "RUNE-67", "RUNE-78", level="real")
def test_the_command_leaves_the_sentinel_with_the_last_task(folder, tmp_path):
    session = Session(tmp_path / "s", more={"LAB_SIGNALS": str(folder.parent)})
    for key in ("1", "2", "2", "3"):
        text = json.dumps({**PAYLOAD, "task_id": key})
        said = session.run("hook", "task-completed", text=text)
        assert (said.code, said.out, said.err) == (0, "", "")
    assert isinstance(SIGNALS.sentinel(folder), AllDone)
    assert [s.task for s in SIGNALS.done(folder)] == ["1", "2", "3"]


@pytest.mark.real
@pytest.mark.row("RUNE-78", "RUNE-67", level="real")
def test_twenty_programs_that_complete_at_once_leave_twenty_signals_and_one_sentinel(tmp_path):
    folder = Paths(tmp_path).signals("demo", "reviewers")
    keys = [str(number) for number in range(20)]
    SIGNALS.prepare(folder, 20, Inscription("work", "", "", (), tuple(keys)))
    session = Session(tmp_path / "s", more={"LAB_SIGNALS": str(folder.parent)})
    programs = [session.start("hook", "task-completed", stdin=subprocess.PIPE) for _ in keys]
    for key, program in zip(keys, programs, strict=True):  # each waits for its input
        assert program.stdin is not None
        program.stdin.write(json.dumps({**PAYLOAD, "task_id": key}))
        program.stdin.flush()
    for program in programs:
        assert program.stdin is not None
        program.stdin.close()
    for program in programs:
        assert program.wait(PATIENCE) == 0
        assert program.stdout is not None
        assert program.stderr is not None
        assert (program.stdout.read(), program.stderr.read()) == ("", "")
        program.stdout.close(), program.stderr.close()
    signals = [f"{key}.done" for key in keys]
    assert names(folder) == sorted([".all-done", ".expected", "inscription.json", *signals])
    assert isinstance(SIGNALS.sentinel(folder), AllDone)
    before = (folder / ".all-done").stat()
    again = session.run("hook", "task-completed", text=json.dumps({**PAYLOAD, "task_id": "7"}))
    assert again.code == 0
    after = (folder / ".all-done").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.row("RUNE-75", "RUNE-74", level="contract")
@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"not json", id="not json"),
        pytest.param(b"\xff\xfe{", id="not text"),
        pytest.param(b"[" * 100_000, id="too deep"),
        pytest.param(["1"], id="no object"),
        pytest.param({**PAYLOAD, "team_name": None}, id="no group"),
        pytest.param({**PAYLOAD, "team_name": "elsewhere"}, id="foreign group"),
        pytest.param({**PAYLOAD, "team_name": "../demo/reviewers"}, id="group above"),
        pytest.param({**PAYLOAD, "team_name": "a b"}, id="group with a space"),
        pytest.param({**PAYLOAD, "team_name": "n" * 129}, id="group too long"),
        pytest.param({**PAYLOAD, "task_id": None}, id="no task"),
        pytest.param({**PAYLOAD, "task_id": ""}, id="empty task"),
        pytest.param({**PAYLOAD, "task_id": "../1"}, id="task above"),
        pytest.param({**PAYLOAD, "task_id": "a/b"}, id="task with a slash"),
        pytest.param({**PAYLOAD, "task_id": "n" * 129}, id="task too long"),
        pytest.param({**PAYLOAD, "task_id": "17"}, id="foreign task"),
        pytest.param({**PAYLOAD, "task_description": "x" * 1_100_000}, id="over 1 MB"),
    ],
)
def test_unfit_input_is_ignored_and_fails_nobody(folder, call, tmp_path, said):
    everything = sorted(tmp_path.rglob("*"))
    for event in ("task-completed", "idle"):
        assert call(event, said=said).code == 0
    assert sorted(tmp_path.rglob("*")) == everything


@pytest.mark.row("RUNE-75", "RUNE-76", level="contract")
@pytest.mark.parametrize("text", ["0", "abc", "03", "-1", "1.5", "", "1" * 40])
def test_a_number_that_is_none_brings_neither_signal_nor_sentinel(folder, call, text):
    (folder / ".expected").write_text(text)
    assert call("task-completed").code == 0
    assert names(folder) == [".expected", "inscription.json"]
    assert not SIGNALS.is_ready(folder)


@pytest.mark.row("RUNE-61", "RUNE-75", level="contract")
def test_without_a_folder_or_a_number_nothing_is_written(folder, call, tmp_path):
    (folder / ".expected").unlink()
    assert call("task-completed").code == 0
    assert names(folder) == ["inscription.json"]
    SIGNALS.clean(folder)
    assert call("task-completed").code == 0
    assert call("task-completed", LAB_SIGNALS="").code == 0
    assert call("task-completed", LAB_SIGNALS=str(tmp_path / "nowhere")).code == 0
    assert call("nonsense").code == 0
    assert call("task-completed", "--group").code == 0
    assert not folder.exists()


def test_odd_words_in_a_payload_are_made_fit(folder, call):
    call("task-completed", said={**PAYLOAD, "task_id": 2, "teammate_name": "a b/../c"})
    call("task-completed", said={**PAYLOAD, "task_subject": "\ud800two\n\tlines " + "x" * 300})
    two, one = SIGNALS.done(folder, {"2"})[0], SIGNALS.done(folder, {"1"})[0]
    assert (two.worker, two.subject) == ("", "Implement user authentication")
    assert one.subject.startswith("?two lines xxx") and len(one.subject) == 256


@pytest.mark.parametrize(
    ("arguments", "env", "team"),
    [
        pytest.param(("--group", "reviewers"), {}, "session-a1b2c3d4", id="told on the line"),
        pytest.param((), {"LAB_GROUP": "reviewers"}, "session-a1b2c3d4", id="told to the session"),
        pytest.param((), {"LAB_GROUP": "auditors"}, "reviewers", id="the payload's group is there"),
    ],
)
def test_a_group_may_be_named_apart_from_the_team(folder, call, arguments, env, team):
    call("task-completed", *arguments, said={**PAYLOAD, "team_name": team}, **env)
    assert SIGNALS.count(folder) == 1


def test_the_group_that_the_session_made_is_meant(folder, call, tmp_path):
    remember_group({"LAB_RUN_FOLDER": str(tmp_path)}, "reviewers")
    said = {**PAYLOAD, "team_name": "session-6b8c8d47"}
    call("task-completed", said=said, LAB_RUN_FOLDER=str(tmp_path))
    assert SIGNALS.count(folder) == 1
    remember_group({"LAB_RUN_FOLDER": str(tmp_path / "nowhere")}, "reviewers")
    call("task-completed", said={**said, "task_id": "2"}, LAB_RUN_FOLDER=str(tmp_path / "nowhere"))
    assert SIGNALS.count(folder) == 1


def test_an_agent_without_tasks_of_its_own_is_told_which_one_it_works_on(folder, call):
    stop = {"hook_event_name": "Stop", "cwd": "/tmp", "stop_hook_active": False}
    env = {"LAB_GROUP": "reviewers", "LAB_TASK": "3", "LAB_WORKER": "codex-3"}
    assert call("task-completed", said=stop, **env).code == 0
    assert [(s.task, s.worker) for s in SIGNALS.done(folder)] == [("3", "codex-3")]


@pytest.mark.row("RUNE-73", "RUNE-74", level="contract")
def test_planted_links_are_not_followed(folder, call, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("mine")
    (folder / "1.done").symlink_to(secret)
    done = call("task-completed")
    assert (done.code, secret.read_text(), SIGNALS.count(folder)) == (0, "mine", 0)
    assert [c.task for c in SIGNALS.crashed(folder)] == ["1"]

    (folder / ".all-done").symlink_to(secret)
    assert SIGNALS.sentinel(folder) is Unreadable.CORRUPTED
    SIGNALS.prepare(folder, 1, AGREED)
    assert (secret.read_text(), SIGNALS.sentinel(folder)) == ("mine", None)

    (folder / ".expected").unlink()
    (folder / ".expected").symlink_to(secret)
    secret.write_text("1")
    assert not SIGNALS.is_ready(folder)

    elsewhere = tmp_path / "elsewhere" / "reviewers"
    elsewhere.mkdir(parents=True)
    (elsewhere / ".expected").write_text("1")
    (folder.parent / "linked").symlink_to(elsewhere)
    assert call("task-completed", said={**PAYLOAD, "team_name": "linked"}).code == 0
    with pytest.raises(SeamError):
        SIGNALS.write(folder.parent / "linked", Signal("1", "", "", ""))
    (tmp_path / "signals" / "other").symlink_to(elsewhere.parent)
    SIGNALS.clean(folder.parent / "linked")
    with pytest.raises(SeamError):
        SIGNALS.clean(tmp_path / "signals" / "other" / "reviewers")
    SIGNALS.clean_all(tmp_path / "signals" / "other")
    assert names(elsewhere) == [".expected"]
    assert not (folder.parent / "linked").is_symlink()


@pytest.mark.row("RUNE-74", level="contract")
def test_a_state_folder_that_is_reached_over_a_link_works(folder, call, tmp_path):
    (tmp_path / "way").symlink_to(tmp_path / "signals")
    call("task-completed", LAB_SIGNALS=str(tmp_path / "way" / "demo"))
    assert SIGNALS.count(folder) == 1


@pytest.mark.row("RUNE-77", level="contract")
def test_only_whole_signals_count(folder):
    for name in ("x.done.tmp.1", "1.done.tmp.9.ab", ".done", "a b.done", "2.DONE", "3.began"):
        (folder / name).write_text("{}")
    (folder / "4.done").mkdir()
    assert SIGNALS.count(folder) == 0
    (folder / "1.done").write_text("{")
    (folder / "2.done").write_text('{"task_id": "3"}')
    assert (SIGNALS.count(folder), SIGNALS.done(folder)) == (2, [])


@pytest.mark.row("RUNE-69", level="contract")
@pytest.mark.parametrize(
    "text",
    [
        "{",
        "",
        "[]",
        '{"total": 3}',
        '{"total": "3", "completed_at": "now"}',
        "x" * 70000,
        '{"total": 3, "completed_at": "now", "more": "' + "x" * 70_000 + '"}',
        '{"total": true, "completed_at": "now"}',
        '{"total": 0, "completed_at": "now"}',
    ],
)
def test_a_corrupted_sentinel_says_so(folder, text):
    (folder / ".all-done").write_text(text)
    assert SIGNALS.sentinel(folder) is Unreadable.CORRUPTED


def test_a_folder_in_place_of_the_sentinel_is_no_sentinel(folder):
    os.mkfifo(folder / ".all-done")
    assert SIGNALS.sentinel(folder) is Unreadable.CORRUPTED


@pytest.mark.row("RUNE-72", "RUNE-78", level="contract")
def test_fifty_writers_and_a_reader_do_not_disturb_one_another(folder):
    keys = [str(number) for number in range(50)]
    SIGNALS.prepare(folder, 50, Inscription("work", "", "", (), tuple(keys)))
    begin, seen, is_over = threading.Barrier(51), set(), threading.Event()

    def write(key: str) -> None:
        begin.wait(PATIENCE)
        SIGNALS.write(folder, Signal(key, "ann", "x" * 200, "2026-11-21T12:00:00Z"))

    def parse() -> None:
        while not is_over.is_set():
            for path in [*folder.glob("*.done"), *folder.glob(".all-done")]:
                seen.add(path.name)
                assert json.loads(path.read_text())["completed_at"] == "2026-11-21T12:00:00Z"

    failed: list[BaseException] = []
    crew = [guarded(failed, write, key) for key in keys]
    reader = guarded(failed, parse)
    begin.wait(PATIENCE)
    for one in crew:
        one.join(PATIENCE)
    is_over.set()
    reader.join(PATIENCE)
    assert failed == []
    assert SIGNALS.sentinel(folder) == AllDone(50, "2026-11-21T12:00:00Z")
    assert len(SIGNALS.done(folder)) == 50
    assert names(folder) == sorted(
        [".all-done", ".expected", "inscription.json", *(f"{key}.done" for key in keys)]
    )


def guarded(
    failed: list[BaseException], act: Callable[..., None], *arguments: str
) -> threading.Thread:
    def run() -> None:
        try:
            act(*arguments)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.row("RUNE-67", "RUNE-78", level="contract")
def test_a_number_that_changes_meanwhile_leaves_no_wrong_sentinel(folder):
    """The writer read 1, and the number is 2 by the time its sentinel is there."""
    SIGNALS.prepare(folder, 1, AGREED)
    with opened(str(folder)) as at:
        really, numbers = signal_files.expected, iter([1])
        try:
            signal_files.expected = lambda fd: next(numbers, None) or really(fd)
            (folder / ".expected").write_text("2")
            signal_files.write(at, "1", "", "", "2026-11-21T12:00:00Z")
        finally:
            signal_files.expected = really
    assert SIGNALS.sentinel(folder) is None


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
sys.path.insert(0, {root!r})
from labctl import hook
sys.exit(hook.run(["task-completed"]))
"""
HANGING = """
import os, sys
sys.path.insert(0, {root!r})
from labctl import signal_files
from labctl.safe_files import opened
from labctl.session import remember_group
os.fsync = lambda fd: (print("in it", flush=True), sys.stdin.read())
with opened(sys.argv[1]) as at:
    signal_files.write(at, "2", "ann", "Read it", "now")
"""


@pytest.mark.real
@pytest.mark.row("RUNE-81", level="real")
def test_a_writer_that_crashed_is_told_from_one_that_never_ran(folder):
    env = {**os.environ, "LAB_SIGNALS": str(folder.parent)}
    code = FULL.format(root=str(ROOT))
    full = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        input=json.dumps(PAYLOAD),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert full.returncode == 0
    assert "File too large" in full.stderr
    assert [c.task for c in SIGNALS.crashed(folder)] == ["1"]
    assert SIGNALS.count(folder) == 0

    writer = subprocess.Popen(
        [sys.executable, "-c", HANGING.format(root=str(ROOT)), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert writer.stdin and writer.stdout
    with writer.stdin, writer.stdout:
        assert writer.stdout.readline() == b"in it\n"
        assert [c.task for c in SIGNALS.crashed(folder)] == ["1"]  # the other one is at work
        writer.kill()
        writer.wait(PATIENCE)
    assert [c.task for c in SIGNALS.crashed(folder)] == ["1", "2"]
    assert SIGNALS.count(folder) == 0
    (folder / "3.began").write_text("")
    (folder / "3.done").write_text("{}")
    assert [c.task for c in SIGNALS.crashed(folder)] == ["1", "2"]  # the third came that far
    assert SIGNALS.write(folder, Signal("2", "ann", "Read it", "now"))
    assert [c.task for c in SIGNALS.crashed(folder)] == ["1"]


@pytest.fixture
def review(tmp_path: Path) -> Path:
    folder = Paths(tmp_path).signals("demo", "reviewers")
    workers = (Output("ann", "ann.md"), Output("bob", "../../bob.md"), Output("eve", ""))
    SIGNALS.prepare(folder, 1, Inscription("review", "", "out", workers, ("1",)))
    (tmp_path / "tree" / "out").mkdir(parents=True)
    return folder


@pytest.mark.row("RUNE-87", level="contract")
def test_a_worker_that_rests_without_its_output_is_sent_back_with_the_reason(
    review, call, tmp_path
):
    mine = {**PAYLOAD, "teammate_name": "ann", "cwd": str(tmp_path / "tree")}
    output = tmp_path / "tree" / "out" / "ann.md"
    for text, part in [
        (None, "out/ann.md"),
        ("x" * 49, "49 bytes"),
        ("x" * 60, "SEAL:"),
        ("x" * 60 + "\n not SEAL: there", "SEAL:"),
    ]:
        if text is not None:
            output.write_text(text)
        sent = call("idle", said=mine)
        assert (sent.code, part in sent.err) == (2, True)
    assert [(b.worker, "SEAL:" in b.why) for b in SIGNALS.sent_back(review)] == [("ann", True)]
    output.write_text("x" * 60 + "\nSEAL: complete\n")
    assert call("idle", said=mine).code == 0
    assert [b.is_over for b in SIGNALS.sent_back(review)] == [True]
    output.unlink()
    assert call("idle", said=mine).code == 2
    assert [b.is_over for b in SIGNALS.sent_back(review)] == [False]


@pytest.mark.row("RUNE-87", level="contract")
@pytest.mark.parametrize("event", ["idle", "task-completed"])
def test_a_signal_waits_for_the_output_of_its_worker(review, call, tmp_path, event):
    mine = {**PAYLOAD, "teammate_name": "ann", "cwd": str(tmp_path / "tree")}
    assert call("task-completed", said=mine).code == 0
    assert (SIGNALS.count(review), len(SIGNALS.sent_back(review))) == (0, 1)
    (tmp_path / "tree" / "out" / "ann.md").write_text("x" * 60 + "\nSEAL: complete\n")
    assert call(event, said=mine).code == 0
    assert [b.is_over for b in SIGNALS.sent_back(review)] == [True]
    assert isinstance(SIGNALS.sentinel(review), AllDone)
    assert SIGNALS.done(review)[0].subject == "Implement user authentication"


def test_a_worker_that_cannot_do_better_is_left_to_people(review, call, tmp_path):
    mine = {**PAYLOAD, "teammate_name": "ann", "cwd": str(tmp_path / "tree")}
    codes = [call("idle", said=mine).code for _ in range(hook.MOST_TIMES + 2)]
    assert codes == [2] * hook.MOST_TIMES + [0, 0]
    assert [b.worker for b in SIGNALS.sent_back(review)] == ["ann"]
    with opened(str(review)) as at:
        assert sending_back.sent_back(at)[0]["times"] == hook.MOST_TIMES + 2


def test_an_output_that_leads_elsewhere_is_not_looked_at(review, call, tmp_path):
    (tmp_path / "private").write_text("x" * 60 + "\nSEAL: mine\n")
    (tmp_path / "tree" / "out" / "ann.md").symlink_to(tmp_path / "private")
    mine = {**PAYLOAD, "teammate_name": "ann", "cwd": str(tmp_path / "tree")}
    done = call("idle", said=mine)
    assert (done.code, "leads out" in done.err) == (0, True)
    agreed = Inscription("review", "", "out", (Output("ann", "ann.md"),))
    with pytest.raises(SeamError):
        SIGNALS.lacking(tmp_path / "tree", agreed, "ann")


@pytest.mark.parametrize("worker", ["bob", "eve", "unknown", "", "a b"])
def test_nobody_is_sent_back_for_a_file_that_is_not_theirs_to_leave(review, call, tmp_path, worker):
    mine = {**PAYLOAD, "teammate_name": worker, "cwd": str(tmp_path / "tree")}
    assert call("idle", said=mine).code == 0
    assert SIGNALS.sent_back(review) == []
